"""`dpaudit claims`."""

from __future__ import annotations

from typing import Any

import click

from dpaudit.cli.group import main, with_debug, with_quiet
from dpaudit.cli.outputs import output_console


@main.command("claims")
@click.option("--paper", help="Show the claims of this paper only.")
@click.option(
    "--verdict",
    type=click.Choice(["verified", "verified in part", "refuted as printed", "not checkable"]),
    help="Show these only.",
)
@click.option("--tests", help="Folder of the tests whose marks count.  [default: tests, if one there marks a claim]")
@click.option("--out", help="Folder for claims.json and claims.html.  [default: write no files]")
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit status 1 if a claim has no test.")
@with_quiet
@with_debug
@click.pass_context
def claims_command(ctx: click.Context, /, only_check: bool, **options: Any) -> None:
    """Show what papers claim, with the verdicts and the tests that check it.

    The ledgers come from installed packages, so this works in any folder. Exit status 0; with --check 1 if a claim has
    no test, or if the mark of a test names no claim.
    """
    from dpaudit.ledgers.command import claims

    shown, written, covered = claims(only_check=only_check, **options)
    console = output_console()
    console.print(shown)
    for path in written:
        click.echo(f"Written: {path}")
    if only_check:
        ctx.exit(0 if covered else 1)
