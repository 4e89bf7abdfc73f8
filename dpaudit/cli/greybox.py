"""`dpaudit greybox`."""

from __future__ import annotations

from typing import Any

import click

from dpaudit.cli.group import main, with_debug, with_quiet
from dpaudit.cli.outputs import output_console, subject_output
from dpaudit.errors import UsageError

PAIRS_SHOWN = 10
FOUND, NOTHING_FOUND, NOT_APPLICABLE = 1, 0, 5  # exit statuses, as of an audit


@main.command("greybox")
@click.argument("target", metavar="TARGET")
@click.option("--claim", help="The promise, as for `dpaudit audit`: what noise-free parts are compared with.")
@click.option("--pairs", help="Pairs of inputs, as for `dpaudit audit`.")
@click.option("--runs", type=int, default=16, show_default=True, help="Streams on which each input is run.")
@click.option("--seed", type=int, help="Non-negative; one is drawn and printed by default.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@with_quiet
@with_debug
@click.pass_context
def greybox_command(
    ctx: click.Context, /, target: str, claim: str | None, pairs: str | None, form: str, **options: Any
) -> None:
    """Run both inputs of each pair on the same randomness, and say what differs.

    Tens of runs, no statistics: draws that one input takes and the other does not, other calls, other noise, a
    noise-free part beyond what the claim allows. TARGET must take a numpy generator; of a program (exec:COMMAND) only
    the outputs are compared. Exit status 1 for what is definite or implied, 0 for nothing but hints, 5 where nothing
    can be compared, or only outputs that show no difference.
    """
    import json

    from rich.text import Text

    from dpaudit.audits.grey_box import replay_same_randomness
    from dpaudit.reports import wording
    from dpaudit.subjects.targets import resolve_pairs, resolve_target

    with subject_output():
        listed = resolve_pairs(pairs) if pairs is not None else None
        subject = resolve_target(target)
        if listed is None and subject.pairs() is None:
            raise UsageError(f"pairs must be given: {subject.target} has none. For example --pairs '0,1'.")
        result = replay_same_randomness(subject, listed, claim, **options)
    finding = result.side_finding()
    if form == "json":
        click.echo(json.dumps(finding.to_dict(), indent=1, allow_nan=False, ensure_ascii=False))
    else:
        console = output_console()
        console.print(Text(wording.clean(finding.summary, 600)), soft_wrap=True)
        for pair in result.pairs[:PAIRS_SHOWN]:
            text = f"{pair.id}: {pair.grade}. {pair.statement}".rstrip()
            console.print(Text(wording.clean(text, 600)), soft_wrap=True)
            for hint in pair.hints:
                text = f"  {hint.kind}, on {len(hint.runs)} of {result.runs} streams: {hint.text}"
                console.print(Text(wording.clean(text, 300)), soft_wrap=True)
        console.print(Text(f"{result.samples} runs of the mechanism, seed {result.seed}"))
    ctx.exit({"found": FOUND, "nothing_found": NOTHING_FOUND}.get(finding.status, NOT_APPLICABLE))
