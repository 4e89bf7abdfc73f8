"""`dpaudit certify`."""

from __future__ import annotations

import click

from dpaudit.cli.group import main, note, plain, with_debug, with_quiet
from dpaudit.cli.outputs import output_console, subject_output
from dpaudit.errors import UsageError

COLUMNS = ("pair", "verdict", "claimed", "epsilon at least", "at most", "delta", "e^epsilon", "mass left")
PAIRS_SHOWN = 20
STATUS = {"kept": 0, "violated": 1, "open": 5}


@main.command("certify")
@click.argument("target", metavar="TARGET")
@click.option("--claim", help="The promise, as for `dpaudit audit`.")
@click.option("--pairs", help="Pairs of inputs, as for `dpaudit audit`.")
@click.option("--seconds", type=float, default=60.0, show_default=True, help="Time for the exploration.")
@click.option(
    "--rounding",
    type=float,
    default=1e-12,
    show_default=True,
    help="By how much a claim may be exceeded: nats of epsilon, a share of delta. 0: not at all.",
)
@click.option(
    "--face", type=click.Choice(["numpy", "random"]), help="The generator that TARGET is given.  [default: numpy]"
)
@click.option("--out", type=click.Path(dir_okay=False), help="Save the certificate to this file, as JSON.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@with_quiet
@with_debug
@click.pass_context
def certify_command(
    ctx: click.Context,
    /,
    target: str,
    claim: str | None,
    pairs: str | None,
    seconds: float,
    rounding: float,
    face: str | None,
    out: str | None,
    form: str,
) -> None:
    """Prove or disprove a claim, by running TARGET through all outcomes of its draws.

    For mechanisms with finitely many outcomes of each draw: bits, integers, choices, shuffles, binomial and geometric
    draws, and uniform numbers that are only compared. No statistics: what is said is proved for the pairs that are
    listed. Exit status 0 if the claim is kept on all pairs, 1 if it is violated on one, 5 if it stays open.
    """
    import json

    from rich.table import Table
    from rich.text import Text

    from dpaudit.reports import wording
    from dpaudit.subjects.targets import resolve_pairs, resolve_target
    from dpaudit.symbolic.certificate import VERDICTS
    from dpaudit.symbolic.certifying import certify

    with subject_output():
        listed = resolve_pairs(pairs) if pairs is not None else None
        subject = resolve_target(target)
        if claim is None and subject.claim is None:
            raise UsageError(f"claim must be given: {subject.target} states none. For example --claim eps=1.")
        if listed is None and subject.pairs() is None:
            raise UsageError(f"pairs must be given: {subject.target} has none. For example --pairs '0,1'.")
        result = certify(subject, claim, listed, seconds=seconds, rounding=rounding, face=face)
    if out is not None:
        result.save(out)
    if form == "json":
        click.echo(json.dumps(result.to_dict(), indent=1, allow_nan=False, ensure_ascii=False))
    else:
        console = output_console()
        console.print(Text(wording.clean(result.summary(), 900)))
        if not result.refusal:
            table = Table()
            for name in COLUMNS:
                table.add_column(name, overflow="fold")  # cut off, a number reads as another one
            ordered = sorted(result.pairs, key=lambda pair: VERDICTS.index(pair.verdict))
            for pair in ordered[:PAIRS_SHOWN]:
                table.add_row(*[Text(wording.clean(text, 60)) for text in pair.row()])
            console.print(table)
            if len(ordered) > PAIRS_SHOWN:
                console.print(Text(f"and {len(ordered) - PAIRS_SHOWN:,} more pairs"))
        if out is not None:
            note(f"Written: {plain(out)}", err=False)
    ctx.exit(STATUS[result.verdict])
