"""`dpaudit claims`."""

from __future__ import annotations

from typing import Any

import click

from dpaudit.cli.group import command
from dpaudit.cli.outputs import output_console


@command("claims")
@click.option("--paper", help="Show the claims of this paper only.")
@click.option(
    "--verdict",
    type=click.Choice(["verified", "verified in part", "refuted as printed", "not checkable"]),
    help="Show these only.",
)
@click.option("--tests", help="Folder of the tests whose marks count.  [default: tests, if one there marks a claim]")
@click.option("--out", help="Folder for claims.json and claims.html.  [default: write no files]")
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit status 1 if a claim has no test.")
def claims_command(ctx: click.Context, given: Any) -> None:
    """Show what papers claim, with the verdicts and the tests that check it.

    The ledgers come from installed packages, so this works in any folder. Exit status 0; with --check 1 if a claim has
    no test, or if the mark of a test names no claim.
    """
    from dpaudit.ledgers.command import claims

    shown, written, covered = claims(given.paper, given.verdict, given.tests, given.out, given.only_check)
    output_console().print(shown)
    for path in written:
        click.echo(f"Written: {path}")
    if given.only_check:
        ctx.exit(0 if covered else 1)
