"""`dpaudit museum`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpaudit.cli.group import command, list_option, tell
from dpaudit.cli.outputs import output_console
from dpaudit.errors import SubjectError, UsageError

PARTS = ("told", "searched", "mended", "releases")


@command("museum", quiet="No progress on stderr.")
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("--list", "listing", is_flag=True, help="Print the cases and stop.")
@list_option("--only", help=f"Parts to run: {','.join(PARTS)} (told: on the known pair).  [default: all]")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the audits.")
@click.option("--seeds", type=int, default=1, show_default=True, help="With which the mended versions are audited.")
@click.option("--out", default="reports/museum", show_default=True, help="Folder of museum.json and its pages.")
@click.option("--libraries", metavar="FOLDER", help="Environments of real releases, one each; see --install.")
@click.option("--install", is_flag=True, help="Make the environments that are not in --libraries yet (pip), and stop.")
@click.option("--resume", is_flag=True, help="Leave out what is saved already for this seed.")
def museum_command(ctx: click.Context, given: Any) -> None:
    """Audit re-created real bugs, with a known pair and with a searched pair, and their mended versions.

    Exit status 0 if every bug that is run was found in each way and no mended version was called violated, else 3.
    """
    from rich.text import Text

    from dpaudit.exhibits import environments, museum
    from dpaudit.exhibits.command import run_museum
    from dpaudit.exhibits.page import figures
    from dpaudit.reports import terminal
    from dpaudit.reports.document import Table
    from dpaudit.results.saving import check_folder

    exhibits = museum(*given.names)
    console = output_console()
    if given.listing:
        for exhibit in exhibits:
            console.print(Text(f"{exhibit.name}  [{exhibit.kind}]  {exhibit.source}"))
        return
    if not exhibits:
        raise UsageError(
            "names must be of cases, got none: no bug corpus is installed (entry-point group dpaudit.museum)."
        )
    parts = PARTS if given.only is None else tuple(part.strip() for part in given.only.split(","))
    for part in parts:
        if part not in PARTS:
            raise UsageError(f"only must be of {', '.join(PARTS)}, got {part!r}.")
    if given.seed < 0 or given.seeds < 1:
        raise UsageError(f"seed must be non-negative and seeds positive, got {given.seed} and {given.seeds}.")
    places = None if given.libraries is None else Path(given.libraries)
    if given.install:
        if places is None:
            raise UsageError("libraries must be a folder for the environments with --install, got none.")
        releases = [release for exhibit in exhibits for release in exhibit.releases]
        ctx.exit(SubjectError.exit_status if environments.install(releases, places, tell) else 0)
    folder = Path(given.out)
    check_folder("out", folder)
    options = {name: getattr(given, name) for name in ("seed", "seeds", "resume")}
    count = len(museum())
    records = run_museum(exhibits, folder, all_exhibits=count, parts=parts, libraries=places, tell=tell, **options)
    console.print(terminal.show([Table("", ("", ""), figures(records))]))
    for name in ("museum.json", "museum.md", "museum.html"):
        click.echo(f"Written: {folder / name}")
    missed = [
        record for record in records for part in ("told", "searched") if not record.get(part, {"found": 1})["found"]
    ]
    broken = [record for record in records if "violated" in record.get("mended", ())]
    ctx.exit(SubjectError.exit_status if missed or broken else 0)
