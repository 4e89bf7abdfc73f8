"""Replay of a floating-point witness: a saved rule on low bits, unchanged, on fresh draws of the pair it was found on.

The rule was fixed before these draws, whoever wrote it, so one exact binomial test at the full error rate of the check
(1e-3) holds for the one pair: no search, no division over pairs.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from dpaudit.audits.low_bits import Candidate, count_again
from dpaudit.audits.replaying import check_not_redacted, saved_inputs, subject_again
from dpaudit.errors import UsageError
from dpaudit.inference.low_bit_rules import VERSION, LowBitRule
from dpaudit.privacy.claims import Budget, whole_number
from dpaudit.privacy.pairs import Pair
from dpaudit.results.model import AuditResult, FloatingPointPair
from dpaudit.running.draws import Drawer
from dpaudit.running.streams import FLOAT_REPLAY_COINS, FLOAT_REPLAY_DRAWS, root_of, stream


@dataclasses.dataclass(frozen=True)
class FloatingPointReplay:
    """What a saved rule on low bits did on fresh draws.

    `confirmed` says that the doubles break the pair's budget (epsilon, delta) at level 1 - confidence on these draws
    alone; `epsilon_lower` is the lower bound that they give, in nats, `description` the rule with its counts on them.
    """

    pair: str
    description: str
    correct: int
    wrong: int
    abstained: int
    budget: Budget
    epsilon_lower: float
    p_value: float
    confidence: float
    seed: int
    confirmed: bool


def replay_floating_point(
    result: AuditResult,
    mechanism: Any,
    *,
    pair: str | None = None,
    inputs: Pair | None = None,
    samples: int | None = None,
    seed: int | None = None,
) -> FloatingPointReplay:
    """Run the floating-point witness of one pair again, on fresh draws.

    Parameters
    ----------
    result : AuditResult
        Whose floating-point finding leaks, of `dpaudit.load` or fresh.
    mechanism : object or callable
        The subject that was audited.
    pair : str, optional
        The id of a pair that leaks; the worst one by default.
    inputs : Pair, optional
        Its two inputs; those saved in the result by default.
    samples : int, optional
        About this many runs on each input, at least 10; by default as many as the check tested its rule on.
    seed : int, optional
        A fresh one by default.

    Raises
    ------
    UsageError
        If the result is redacted, or has no such pair, no witness for it, or not its inputs.
    SubjectError
        If the subject breaks.

    Examples
    --------
    >>> import dpaudit
    >>> def release(data, size, rng):
    ...     return data + rng.laplace(size=size)
    >>> result = dpaudit.audit(release, "eps=1", [(0.0, 1.0)], samples=5_000, seed=7)
    >>> replay_floating_point(result, release, seed=8).confirmed
    True
    """
    if samples is not None:
        whole_number("samples", samples, "an integer of at least 10", 10)
    root = root_of(seed)
    check_not_redacted(result)
    found = _leak(result, pair)
    assert result.floating_point is not None and found.rule is not None
    both = inputs if inputs is not None else _inputs(result, found)
    if (version := found.rule.get("version", 1)) != VERSION:
        raise UsageError(
            f"witness must be a rule on low bits of version {VERSION}, got one of version {version}. "
            "Run the audit again: it finds a new rule and tests it."
        )
    try:
        rule = LowBitRule.from_dict(found.rule, both.x, both.x_prime)
    except (IndexError, KeyError, OverflowError, TypeError, ValueError, ZeroDivisionError) as error:
        raise UsageError(f"witness must be one that this version can read, got {error!r}.") from error
    subject = subject_again(mechanism, result)
    tested = found.correct + found.wrong + found.abstained
    data = (both.x, both.x_prime)

    draw = Drawer(subject, data, root, FLOAT_REPLAY_DRAWS)
    candidate = Candidate(Pair(*data, found.id, found.x_id, found.x_prime_id), (0, 1), found.budget, 0)
    level = result.floating_point.error_rate
    labelled = 2 * samples if samples is not None else tested
    again = count_again(candidate, rule, labelled, draw, stream(root, FLOAT_REPLAY_COINS), level)
    return FloatingPointReplay(
        pair=found.id,
        description=again.description,
        correct=again.correct,
        wrong=again.wrong,
        abstained=again.abstained,
        budget=found.budget,
        epsilon_lower=again.epsilon_lower,
        p_value=again.p_value,
        confidence=1.0 - level,
        seed=root,
        confirmed=again.verdict == "leaks",
    )


def _leak(result: AuditResult, pair: str | None) -> FloatingPointPair:
    """The pair of this id that leaks, with its rule; the worst one without an id."""
    examined = result.floating_point.pairs if result.floating_point is not None else ()
    leaks = [entry for entry in examined if entry.verdict == "leaks"]
    known = [entry for entry in leaks if entry.rule is not None]
    if not known:
        given = "one of a version that saved none" if leaks else "one whose low bits do not leak"
        raise UsageError(f"result must hold a floating-point witness, got {given}.")
    if pair is None:
        return known[0]
    for entry in known:
        if entry.id == pair:
            return entry
    raise UsageError(f"pair must be the id of a pair whose low bits leak, such as {known[0].id!r}, got {pair!r}.")


def _inputs(result: AuditResult, found: FloatingPointPair) -> Pair:
    """The inputs of a pair, from the finding of the same id: a large universe keeps only some of them."""
    for finding in result.findings:
        if finding.id == found.id:
            return saved_inputs(result, finding)
    raise UsageError(f"inputs of {found.id!r} must be given: the result does not hold them.")
