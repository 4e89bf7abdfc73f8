"""`dpaudit certify`."""

from __future__ import annotations

from typing import Any

import click

from dpaudit.cli.group import command, shared
from dpaudit.cli.outputs import finish, subject_output
from dpaudit.cli.subjects import given_subject

COLUMNS = ("pair", "verdict", "claimed", "ε at least", "ε at most", "δ", "mass left")  # of `attachments.COLUMNS`
MAX_PAIRS = 20
STATUS = {"kept": 0, "violated": 1, "open": 5}


@command("certify")
@click.argument("target", metavar="TARGET")
@shared("claim", "pairs")
@click.option("--seconds", type=float, default=60.0, show_default=True, help="Time for the exploration.")
@click.option(
    "--rounding",
    type=float,
    default=1e-12,
    show_default=True,
    help="By how much a claim may be exceeded: nats of epsilon, a share of delta. 0: not at all.",
)
@click.option(
    "--generator", "--face", "face", type=click.Choice(["numpy", "random"]), help="TARGET's generator. [default: numpy]"
)
@click.option("--out", type=click.Path(dir_okay=False), help="Save the certificate to this file, as JSON.")
@shared("table")
def certify_command(ctx: click.Context, given: Any) -> None:
    """Prove or disprove a claim, by running TARGET through all outcomes of its draws.

    For mechanisms with finitely many outcomes of each draw: bits, integers, choices, shuffles, binomial and geometric
    draws, and uniform numbers that are only compared. No statistics: what is said is proved for the pairs that are
    listed. Exit status 0 if the claim is kept on all pairs, 1 if it is violated on one, 5 if it stays open.
    """
    from dpaudit.reports import wording
    from dpaudit.reports.attachments import certified_row
    from dpaudit.reports.document import Block, Paragraph, Table
    from dpaudit.results.saving import check_file
    from dpaudit.symbolic.certificate import VERDICTS, short_fraction
    from dpaudit.symbolic.certifying import certify

    if given.out is not None:
        check_file("out", given.out)
    with subject_output():
        subject, pairs = given_subject(given, given.claim)
        options = {name: getattr(given, name) for name in ("seconds", "rounding", "face")}
        result = certify(subject, given.claim, pairs, **options)
    write = (lambda: [result.save(given.out)]) if given.out is not None else list
    blocks: list[Block] = [Paragraph(wording.clean(result.summary(), 900))]
    if not result.refusal:
        ordered = sorted(result.pairs, key=lambda pair: VERDICTS.index(pair.verdict))
        exact = ["" if pair.exact is None else wording.clean(short_fraction(pair.exact), 60) for pair in ordered]
        cells = [certified_row(pair) for pair in ordered]
        rows = [(*(row[name] for name in COLUMNS), own) for row, own in zip(cells, exact, strict=True)]
        blocks.append(Table("", (*COLUMNS, "e^ε"), rows).first(MAX_PAIRS))
    finish(ctx, given, result, lambda: blocks, write, STATUS[result.verdict])
