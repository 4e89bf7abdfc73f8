"""`dpaudit check`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dpaudit.cli.group import command, list_option, shared
from dpaudit.cli.outputs import finish, print_result, subject_output
from dpaudit.cli.subjects import check_target, given_pairs
from dpaudit.config import formats
from dpaudit.errors import UsageError

MAX_CHARACTERS = 1_000  # characters of a claim, or of pairs, as they are kept for the line that runs a check again


@command("check")
@click.argument("target", metavar="[TARGET]", required=False)
@shared("claim", "pairs")
@list_option("--only", help="Names of checks to run, with commas.  [default: all]")
@click.option("--xfail", multiple=True, metavar="NAME=REASON", help="A known failure, with the reason; repeatable.")
@click.option("--samples", type=int, default=10_000, show_default=True, help="Of the audits among the checks.")
@click.option("--error-rate", type=float, default=0.001, show_default=True, help="Of the list of one mechanism.")
@shared("seed", "table")
@click.option("--out", help="Folder to write check.json to.  [default: none]")
@click.option("--list", "listing", is_flag=True, help="Print the checks and stop.")
def check_command(ctx: click.Context, given: Any) -> None:
    """Run the conformance suite: every check that any mechanism must pass.

    TARGET is package.module:attribute or path/file.py:attribute: an instance, a function, or a class (its examples(),
    else the instance made without arguments). A check that does not apply is skipped, with the reason. Exit status as
    of `audit`: 1 if a check fails, 5 if one is inconclusive.
    """
    from dpaudit.conformance.result import CheckRecord
    from dpaudit.conformance.running import check
    from dpaudit.privacy.parsing import as_claim
    from dpaudit.reports import check as checked
    from dpaudit.results.saving import check_folder
    from dpaudit.subjects.targets import load_target

    if given.listing:
        print_result("table", str, lambda: [checked.listing()])
        return
    check_target(given.target)
    written = Path(given.out) / "check.json" if given.out is not None else None
    if written is not None:
        check_folder("out", written.parent)
    promise = as_claim(given.claim)
    with subject_output():
        pairs = given_pairs(given.pairs)
        only = formats(given.only) if given.only is not None else None
        options: dict[str, Any] = {name: getattr(given, name) for name in ("target", "samples", "error_rate", "seed")}
        known = _known_failures(given.xfail)
        done: list[CheckRecord] = []
        options["on_check"] = done.append
        try:
            found = check(load_target(given.target), promise, pairs, only=only, expected_failures=known, **options)
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(f"Checks by then: {', '.join(f'{one.name} {one.status}' for one in done) or 'none'}.")
            raise
    stated = {"claim": given.claim, "pairs": given.pairs}
    texts = {name: text for name, text in stated.items() if text is not None and len(text) <= MAX_CHARACTERS}
    found = dataclasses.replace(found, options={**found.options, **texts})
    write = (lambda: [found.save(written)]) if written is not None else list
    finish(ctx, given, found, lambda: checked.check_blocks(found), write, found.exit_status)


def _known_failures(texts: Sequence[str]) -> dict[str, str]:
    known: dict[str, str] = {}
    for text in texts:
        name, equals, reason = (part.strip() for part in text.partition("="))
        if not equals or not name or not reason:
            raise UsageError(f"xfail must be NAME=REASON, got {text!r}.")
        if known.setdefault(name, reason) != reason:
            raise UsageError(f"xfail must have one reason for each name, got two for {name!r}.")
    return known
