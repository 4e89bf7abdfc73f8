"""`dpaudit greybox`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import click

from dpaudit.cli.group import command, shared
from dpaudit.cli.outputs import print_result, subject_output
from dpaudit.cli.subjects import given_subject
from dpaudit.errors import OutputError

if TYPE_CHECKING:
    from dpaudit.audits.grey_box import GreyBoxPair
    from dpaudit.reports.document import Document
    from dpaudit.results.model import Verdict
    from dpaudit.symbolic.recorded_noise import RecordedPair, RecordedResult

MAX_PAIRS = 10  # whose grades are printed
FINDINGS = ("definite", "implied", "proved")  # grades that give exit status 1
FOUND, NOTHING_FOUND, NOT_APPLICABLE = 1, 0, 5  # exit statuses, as of an audit


@command("greybox")
@click.argument("target", metavar="TARGET")
@click.option("--claim", help="The promise, as for `dpaudit audit`: what noise-free parts are compared with.")
@shared("pairs")
@click.option("--runs", type=int, default=16, show_default=True, help="Streams on which each input is run.")
@shared("seed")
@click.option("--trace", is_flag=True, help="Record the noise as symbols too, and print the calls side by side.")
@click.option("--trace-html", type=click.Path(dir_okay=False), help="Write that table to a file of HTML.")
@click.option("--with-values", is_flag=True, help="Show numbers of what was recorded: they may be of the inputs.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def greybox_command(ctx: click.Context, given: Any) -> None:
    """Run both inputs of each pair on the same randomness, and say what differs.

    Tens of runs, no statistics: draws that one input takes and the other does not, other calls, other noise, a
    noise-free part beyond what the claim allows. TARGET must take a numpy generator; of a program (exec:COMMAND) only
    the outputs are compared. Exit status 1 for what is definite or implied, 0 for nothing but hints, 5 where nothing
    can be compared, or only outputs that show no difference.

    With --trace the noise of any of the usual generators is recorded, also where TARGET takes none: see the guide
    "Record the noise". A pair then has one grade, that of its record where it is recorded and its replay is not
    "definite": what is proved by that gives exit status 1, what composition implies does not.
    """
    from dpaudit.audits.grey_box import replay_same_randomness
    from dpaudit.reports.document import Paragraph
    from dpaudit.reports.wording import clean
    from dpaudit.results.saving import json_text, write_whole
    from dpaudit.symbolic.recorded_noise import KIND, record_noise

    with_values, trace_html = given.with_values, given.trace_html
    with subject_output():
        subject, pairs = given_subject(given, "")
        result = replay_same_randomness(subject, pairs, given.claim, runs=given.runs, seed=given.seed)
        is_traced = given.trace or trace_html
        tape = record_noise(subject, pairs, given.claim, seed=result.seed) if is_traced else None
    finding = result.side_finding()
    noise = tape.side_finding(with_values=with_values) if tape is not None else None
    graded = _one_grade(result.pairs, tape.pairs if tape is not None else ())
    statuses = {one.status for one in (finding, noise) if one is not None}
    is_found = any(pair.grade in FINDINGS for pair in graded) or (noise is not None and noise.status == "found")
    if tape is not None and trace_html:
        from dpaudit.reports import html

        try:
            write_whole(trace_html, html.render(_trace(tape, with_values)) if tape.pairs else "")
        except OSError as error:
            raise OutputError(f"trace-html must be a file that can be written, got {trace_html}: {error}.") from error
    shown = finding.to_dict() if noise is None else {KIND: noise.to_dict(), finding.kind: finding.to_dict()}
    # One answer: what was recorded of a pair is known of every draw, and stands for what some streams showed of it.
    led_by, beside = finding, noise
    if noise is not None and (noise.status == "found" or (noise.status == "nothing_found" and not is_found)):
        led_by, beside = noise, finding
    texts = [clean(led_by.summary, 600)]
    for pair in graded[:MAX_PAIRS]:
        statement = "" if pair.statement in led_by.summary else f" {pair.statement}"
        texts.append(clean(f"{pair.id}: {pair.grade}.{statement}", 600))
        for hint in pair.hints:
            texts.append(clean(f"  {hint.kind}, on {len(hint.runs)} of {result.runs} streams: {hint.text}", 300))
    runs = result.samples + (0 if tape is None else tape.runs)
    texts.append(f"{runs} runs of the mechanism, seed {result.seed}")
    if beside is not None and beside.status == "not_applicable":  # why the one of the two has nothing to say
        texts.append(clean(beside.summary, 600))
    table = _trace(tape, with_values).sections[0].blocks if tape is not None and given.trace and tape.pairs else ()
    print_result(given.form, lambda: json_text(shown), lambda: [*map(Paragraph, texts), *table])
    # What the one cannot compare the other may.
    ctx.exit(FOUND if is_found else NOT_APPLICABLE if statuses == {"not_applicable"} else NOTHING_FOUND)


def _trace(tape: RecordedResult, with_values: bool) -> Document:
    """The first calls of both runs on the worst pair; a star marks those that differ."""
    from dpaudit.reports.document import Document, Section, Table
    from dpaudit.reports.wording import clean

    worst = tape.pairs[0]
    rows = [("*" * row.differs, *row.texts(with_values), row.place) for row in worst.trace]
    table = Table("", ("", "x", "x_prime", "line"), [[clean(text, 200) for text in row] for row in rows])
    headline, footer = clean(f"{tape.subject}: {worst.id}"), "Made by `dpaudit greybox`. A star marks what differs."
    verdicts: dict[str, Verdict] = {"proved": "violated", "same": "not_refuted"}
    verdict = verdicts.get(worst.grade, "inconclusive")
    return Document("Calls of both runs", headline, verdict, (Section("calls", "Calls", (table,)),), footer)


def _one_grade(replayed: Sequence[GreyBoxPair], recorded: Sequence[RecordedPair]) -> list[GreyBoxPair]:
    """The pairs with one grade each: that of the record where there is one, unless the replay is definite."""
    known = {pair.id: pair for pair in recorded if pair.grade != "not recorded"}
    found = []
    for pair in replayed:
        record = known.get(pair.id)
        if record is not None and pair.grade != "definite":
            # "implied" of a replay is a finding, that of a record is none: `record_noise` has the difference.
            grade = "implied by composition" if record.grade == "implied" else record.grade
            pair = dataclasses.replace(pair, grade=cast(Any, grade), statement="", implied_loss=None)
        found.append(pair)
    return found
