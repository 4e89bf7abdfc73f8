"""`dpaudit replay`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dpaudit.cli.group import command, note, plain
from dpaudit.cli.outputs import print_result, subject_output
from dpaudit.errors import UsageError

if TYPE_CHECKING:
    from dpaudit.privacy.claims import Claim
    from dpaudit.privacy.pairs import Pair
    from dpaudit.results.model import AuditResult
    from dpaudit.subjects.callables import Subject


@command("replay")
@click.argument("result", metavar="RESULT")
@click.option("--pair", help="The id of the pair; the worst one by default.")
@click.option("--target", help="The mechanism. Without it nothing is run, unless the file is trusted.")
@click.option("--trust-file", is_flag=True, help="Run the code that the file names, as its target and its pairs.")
@click.option("--claim", help="The promise; the one of the result by default.")
@click.option("--pairs", help="Where the pair's inputs are: module:function; by default the result holds them.")
@click.option("--floating-point", is_flag=True, help="Run the witness on low bits, of a pair whose low bits leak.")
@click.option("--samples", type=click.IntRange(min=1), help="Runs on each input; as many as the audit by default.")
@click.option("--seed", type=click.IntRange(min=0), help="A fresh one by default.")
def replay_command(ctx: click.Context, given: Any) -> None:
    """Run the witness of one pair of a saved RESULT (audit.json) again, on fresh draws.

    The rule is fixed now, so this tests the one pair at the full confidence, without a search. Exit status 1 if the
    violation is confirmed, 0 if not, 5 if the rule said nothing on any draw, or the draws depend on each other.

    A result is data: code that it names is run only with --trust-file. The code to run is printed first.
    """
    from dpaudit.audits.replaying import replay, replay_floating_point
    from dpaudit.privacy.parsing import parse_claim
    from dpaudit.reports.brief import replay_blocks
    from dpaudit.results.model import load
    from dpaudit.subjects.fresh import FRESH
    from dpaudit.subjects.targets import fresh_target, names_pairs, resolve_target

    result, pair, target = given.result, given.pair, given.target
    attribute = result.partition(".py:")[2]
    if result.endswith(".py") or attribute:
        code = result if attribute else f"{result}:NAME"
        raise UsageError(
            f"result must be a saved result such as audit.json, got {result!r}, which is code. "
            f"`dpaudit audit {code} --out DIR` saves one; the code is given with --target {code}."
        )
    saved = load(result)
    named = saved.subject.get("target")
    if named is not None and not isinstance(named, str):
        raise UsageError(f"target of {result!r} must be a text, got {named!r:.80}.")
    is_from_file = target is None
    if is_from_file:
        target = _trusted_target(result, named, given.trust_file)
    if given.floating_point and given.claim is not None:
        said = f"claim must not be given with --floating-point, got {given.claim!r}: the budget is the saved one."
        raise UsageError(said)
    is_fresh = FRESH in str(saved.subject.get("interface", ""))
    if is_fresh and is_from_file:  # a factory is called to know what it makes, before fingerprints can be compared
        raise UsageError(f"target must be given with --target: {result!r} had a fresh object a call, of a factory.")
    if pair is None and given.floating_point:
        pair = next(
            (leak.id for leak in (saved.floating_point.pairs if saved.floating_point is not None else ())), None
        )
    elif pair is None:
        pair = saved.worst.id if saved.worst is not None else None
    pairs = given.pairs or (_recorded(saved, pair) if given.trust_file else None)
    ran = [target, *(text for text in (pairs,) if text is not None and names_pairs(text))]
    note(plain(f"Running code: {', '.join(ran)}{' (as the file says)' * is_from_file}."))
    with subject_output():
        subject = (fresh_target if is_fresh else resolve_target)(target)
    before = saved.subject.get("fingerprint")
    if before and before != subject.fingerprint and is_from_file:
        raise UsageError(
            f"target must be the code that was audited, got another at {target!r} (fingerprint {subject.fingerprint}, "
            "not that of the file). Nothing was called. Give it with --target to replay the witness on it."
        )
    if before and before != subject.fingerprint:
        note(f"Note: the code of {target} is not what was audited (fingerprint {subject.fingerprint}).")
    sizes: dict[str, Any] = {"pair": pair, "samples": given.samples, "seed": given.seed}
    if given.floating_point:
        with subject_output():
            inputs = _inputs(subject, pairs, pair) if pair is not None else None
            again = replay_floating_point(saved, subject, inputs=inputs, **sizes)
        print_result("table", str, lambda: replay_blocks(again))
        ctx.exit(1 if again.confirmed else 0)
    is_stated = given.claim is not None
    promise = parse_claim(given.claim) if is_stated else _saved_claim(saved, subject, given.trust_file)
    with subject_output():
        outcome = replay(saved, subject, promise, inputs=_inputs(subject, pairs, pair), **sizes)
    print_result("table", str, lambda: replay_blocks(outcome))
    says_nothing = bool(outcome.dependence) or outcome.correct + outcome.wrong == 0
    ctx.exit(1 if outcome.confirmed else 5 if says_nothing else 0)


def _trusted_target(result: str, named: str | None, trust_file: bool) -> str:
    """The target that a file names, where the file is trusted."""
    if not named:
        raise UsageError(f"target must be given with --target: {result!r} names none.")
    if not trust_file:
        raise UsageError(
            f"target must be given with --target: {result!r} names {named!r:.200}, which was not run. "
            "Use --trust-file where you know who wrote the file."
        )
    return named


def _saved_claim(saved: AuditResult, subject: Subject, trust_file: bool) -> Claim:
    """The claim of a result: the subject's own if it prints the same, else what its text says.

    A text may name a file with a metric, which is opened only where the result is trusted.
    """
    from dpaudit.privacy.parsing import parse_claim

    try:
        stated = subject.claim
    except UsageError:  # the audit was given another one, or it would not be there
        stated = None
    if stated is not None and str(stated) == saved.claim:
        return stated
    try:
        if saved.claim.strip().startswith("metric=") and not trust_file:
            raise UsageError("a metric is in a file")
        return parse_claim(saved.claim)
    except UsageError as error:
        own = f"that of {subject.target} is {stated}" if stated is not None else "the subject states none"
        raise UsageError(
            f"claim must be given with --claim: {saved.claim!r} cannot be read back from the result, and {own}."
        ) from error


def _recorded(saved: AuditResult, pair: str | None) -> str | None:
    """Source of the pairs of the audit, if the result names it and does not hold the inputs of this one."""
    from dpaudit.reports.replay_command import holds_inputs

    given = saved.options.get("pairs")
    return given if isinstance(given, str) and not holds_inputs(saved, pair) else None


def _inputs(subject: Subject, pairs: str | None, pair: str | None) -> Pair | None:
    """The pair of this id among those of --pairs, or among the subject's own; None if the result has to have it."""
    from dpaudit.privacy.pairs import as_pairs
    from dpaudit.subjects.targets import resolve_pairs

    own = subject.pairs() if pairs is None else resolve_pairs(pairs)
    known = {entry.id: entry for entry in as_pairs(own)} if own is not None else {}
    if pairs is not None and pair not in known:
        raise UsageError(f"pairs must hold the pair {pair!r}, got {pairs!r} without it.")
    return known.get(pair) if pair is not None else None
