"""`dpaudit reproduce`."""

from __future__ import annotations

import click

from dpaudit.cli.group import main, plain, say, with_debug
from dpaudit.cli.outputs import output_console


@main.command("reproduce")
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("--out", default="reproductions", show_default=True, help="Folder of the JSON files and the plots.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of everything random.")
@click.option("--quick", is_flag=True, help="Few repetitions: a smoke test.")
@click.option("--data", default="", metavar="FILE", help="A file of your own, for an experiment that reads one.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
@with_debug
def reproduce_command(names: tuple[str, ...], out: str, seed: int, quick: bool, data: str, quiet: bool) -> None:
    """Run published experiments again, with the printed numbers beside ours.

    Without a NAME, list what can be reproduced. Each writes NAME.json and NAME.png.
    """
    from dpaudit.reproductions.command import chosen, listing, reproduce

    console = output_console()
    if not names:
        console.print(listing())
    tell = (lambda text: None) if quiet else (lambda text: say(plain(text)))
    for name, reproduction in chosen(names).items():
        shown, written = reproduce(name, reproduction, seed=seed, quick=quick, out=out, tell=tell, data=data)
        console.print(shown)
        for path in written:
            click.echo(f"Written: {path}")
