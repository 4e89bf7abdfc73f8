"""`dpaudit museum`."""

from __future__ import annotations

from pathlib import Path

import click

from dpaudit.cli.group import list_option, main, plain, say, with_debug
from dpaudit.cli.outputs import output_console
from dpaudit.errors import SubjectError, UsageError

PARTS = ("told", "searched", "mended", "releases")


@main.command("museum")
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("--list", "listing", is_flag=True, help="Print the exhibits and stop.")
@list_option("--only", help=f"Parts to run: {','.join(PARTS)}.  [default: all]")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the audits.")
@click.option("--seeds", type=int, default=1, show_default=True, help="With which the mended versions are audited.")
@click.option("--out", default="reports/museum", show_default=True, help="Folder of museum.json and its pages.")
@click.option("--libraries", metavar="FOLDER", help="Environments of real releases, one each; see --install.")
@click.option("--install", is_flag=True, help="Make the environments that are not in --libraries yet (pip), and stop.")
@click.option("--resume", is_flag=True, help="Leave out what is saved already for this seed.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
@with_debug
@click.pass_context
def museum_command(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    listing: bool,
    only: str | None,
    seed: int,
    seeds: int,
    out: str,
    libraries: str | None,
    install: bool,
    resume: bool,
    quiet: bool,
) -> None:
    """Audit re-created real bugs, with a known pair and with a searched pair, and their mended versions.

    Exit status 0 if every bug that is run was found in each way and no mended version was called violated, else 3.
    """
    from rich.table import Table
    from rich.text import Text

    from dpaudit.exhibits import environments, museum
    from dpaudit.exhibits.command import run_museum
    from dpaudit.exhibits.page import figures
    from dpaudit.results.saving import check_folder

    exhibits = museum(*names)
    console = output_console()
    if listing:
        for exhibit in exhibits:
            console.print(Text(f"{exhibit.name}  [{exhibit.kind}]  {exhibit.source}"))
        return
    if not exhibits:
        raise UsageError(
            "names must be of exhibits, got none: no museum is installed (entry-point group dpaudit.museum)."
        )
    parts = PARTS if only is None else tuple(part.strip() for part in only.split(","))
    for part in parts:
        if part not in PARTS:
            raise UsageError(f"only must be of {', '.join(PARTS)}, got {part!r}.")
    if seed < 0 or seeds < 1:
        raise UsageError(f"seed must be non-negative and seeds positive, got {seed} and {seeds}.")
    tell = (lambda text: None) if quiet else (lambda text: say(plain(text)))
    places = None if libraries is None else Path(libraries)
    if install:
        if places is None:
            raise UsageError("libraries must be a folder for the environments with --install, got none.")
        releases = [release for exhibit in exhibits for release in exhibit.releases]
        ctx.exit(SubjectError.exit_status if environments.install(releases, places, tell) else 0)
    folder = Path(out)
    check_folder("out", folder)
    records = run_museum(
        exhibits,
        folder,
        all_exhibits=len(museum()),
        parts=parts,
        seed=seed,
        seeds=seeds,
        resume=resume,
        libraries=places,
        tell=tell,
    )
    table = Table(box=None, show_header=False, pad_edge=False)
    for row in figures(records):
        table.add_row(*map(Text, row))
    console.print(table)
    for name in ("museum.json", "museum.md", "museum.html"):
        click.echo(f"Written: {folder / name}")
    missed = [
        record for record in records for part in ("told", "searched") if not record.get(part, {"found": 1})["found"]
    ]
    broken = [record for record in records if "violated" in record.get("mended", ())]
    ctx.exit(SubjectError.exit_status if missed or broken else 0)
