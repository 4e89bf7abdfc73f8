"""`dpaudit reproduce`."""

from __future__ import annotations

from typing import Any

import click

from dpaudit.cli.group import command, tell
from dpaudit.cli.outputs import output_console


@command("reproduce", quiet="No progress on stderr.")
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("--out", default="reproductions", show_default=True, help="Folder of the JSON files and the plots.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of everything random.")
@click.option("--quick", is_flag=True, help="Few repetitions: a smoke test.")
@click.option("--data", default="", metavar="FILE", help="A file of your own, for an experiment that reads one.")
def reproduce_command(_: click.Context, given: Any) -> None:
    """Run published experiments again, with the printed numbers beside ours.

    Without a NAME, list what can be reproduced. Each writes NAME.json and NAME.png.
    """
    from dpaudit.reproductions.command import chosen, listing, reproduce

    console = output_console()
    if not given.names:
        console.print(listing())
    options = {name: getattr(given, name) for name in ("seed", "quick", "out", "data")}
    for name, reproduction in chosen(given.names).items():
        shown, written = reproduce(name, reproduction, tell=tell, **options)
        console.print(shown)
        for path in written:
            click.echo(f"Written: {path}")
