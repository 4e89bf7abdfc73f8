"""`dpaudit check`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dpaudit.cli.group import list_option, main, note, with_debug, with_quiet
from dpaudit.cli.outputs import output_console, subject_output, written_or_reported
from dpaudit.config import formats
from dpaudit.errors import UsageError

MAX_CHARACTERS = 1_000  # characters of a claim, or of pairs, as they are kept for the line that runs a check again


@main.command("check")
@click.argument("target", metavar="[TARGET]", required=False)
@click.option("--claim", help="The promise, as for `dpaudit audit`.")
@click.option("--pairs", help="Pairs of inputs, as for `dpaudit audit`.")
@list_option("--only", help="Names of checks to run, with commas.  [default: all]")
@click.option("--xfail", multiple=True, metavar="NAME=REASON", help="A known failure, with the reason; repeatable.")
@click.option("--samples", type=int, default=10_000, show_default=True, help="Of the audits among the checks.")
@click.option("--error-rate", type=float, default=0.001, show_default=True, help="Of the list of one mechanism.")
@click.option("--seed", type=int, help="Non-negative; one is drawn and printed by default.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--out", help="Folder to write check.json to.  [default: none]")
@click.option("--list", "listing", is_flag=True, help="Print the checks and stop.")
@with_quiet
@with_debug
@click.pass_context
def check_command(
    ctx: click.Context,
    /,
    target: str | None,
    claim: str | None,
    pairs: str | None,
    only: str | None,
    xfail: tuple[str, ...],
    form: str,
    out: str | None,
    listing: bool,
    **options: Any,
) -> None:
    """Run the conformance suite: every check that any mechanism must pass.

    TARGET is package.module:attribute or path/file.py:attribute: an instance, a function, or a class (its examples(),
    else the instance made without arguments). A check that does not apply is skipped, with the reason. Exit status as
    of `audit`: 1 if a check fails, 5 if one is inconclusive.
    """
    from dpaudit.conformance.running import check
    from dpaudit.privacy.parsing import as_claim
    from dpaudit.reports import check as checked
    from dpaudit.reports import terminal
    from dpaudit.results.saving import check_folder
    from dpaudit.subjects.targets import load_target, resolve_pairs

    console = output_console()
    if listing:
        console.print(terminal.show([checked.listing()]))
        return
    if target is None:
        raise UsageError("target must be given, got none. Name a mechanism, for example mymodule.py:release.")
    written = Path(out) / "check.json" if out is not None else None
    if written is not None:
        check_folder("out", written.parent)
    promise = as_claim(claim)
    with subject_output():
        listed = resolve_pairs(pairs) if pairs is not None else None
        found = check(
            load_target(target),
            promise,
            listed,
            only=formats(only) if only is not None else None,
            expected_failures=_known_failures(xfail),
            target=target,
            **options,
        )
    stated = {"claim": claim, "pairs": pairs}
    texts = {name: text for name, text in stated.items() if text is not None and len(text) <= MAX_CHARACTERS}
    found = dataclasses.replace(found, options={**found.options, **texts})
    paths: Sequence[Path] = ()
    status = found.exit_status
    if written is not None:
        paths, status = written_or_reported(ctx, lambda: [found.save(written)], status)
    if form == "json":
        click.echo(found.to_text(), nl=False)
    else:
        console.print(terminal.show(checked.check_blocks(found)))
    for path in paths:
        note(f"Written: {path}", err=form == "json")
    ctx.exit(status)


def _known_failures(texts: Sequence[str]) -> dict[str, str]:
    known: dict[str, str] = {}
    for text in texts:
        name, equals, reason = (part.strip() for part in text.partition("="))
        if not equals or not name or not reason:
            raise UsageError(f"xfail must be NAME=REASON, got {text!r}.")
        if known.setdefault(name, reason) != reason:
            raise UsageError(f"xfail must have one reason for each name, got two for {name!r}.")
    return known
