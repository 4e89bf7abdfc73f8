"""Plan of one run: how many canaries a claim needs, and how good the guesses have to be.

Everything here is for one rule with a stated number of guesses, at the full error rate. Where no number is
stated, an audit divides the error rate among four: these figures are then those of a confidence 1 - (1 - confidence) /
4.
"""

from __future__ import annotations

import bisect
import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.arguments import check_options
from dpaudit.inference.bound_search import just_above
from dpaudit.privacy.claims import Claim
from dpaudit.results.saving import Saved
from dpaudit.scores.auditing import records_reject
from dpaudit.scores.designs import claim_of_change
from dpaudit.scores.guesses import Record, Rule
from dpaudit.scores.profile_bounds import ProfileBound, check_claim, parameter_lower

SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
SHARES = (1.0, 0.3, 0.1)  # of the canaries that are guessed on
MAX_CANARIES = 10**7
SCHEMA = "dpaudit.scores-plan/1"


@dataclasses.dataclass(frozen=True)
class PlannedRun:
    """One number of canaries."""

    canaries: int
    ceiling: float  # the lower bound on epsilon if every guess is right
    parameter_ceiling: float  # that on the claim's parameter
    accuracies: tuple[
        float, ...
    ]  # for each of `SHARES`, the least share of right guesses that refutes; inf if none does


@dataclasses.dataclass(frozen=True)
class OneRunPlan(Saved):
    """Plan of one run to refute a claim."""

    claim: str
    delta: float  # at which epsilon is bounded
    confidence: float
    needed: float  # the least number of canaries of which right guesses on all refute the claim; inf above ten million
    runs: tuple[PlannedRun, ...]

    schema = SCHEMA

    def _to_saved(self, record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "shares": list(SHARES)}


def plan_one_run(claim: Claim, confidence: float = 0.95) -> OneRunPlan:
    """Number of canaries that a claim needs in one run at a confidence, and what accuracy at several numbers of them.

    Raises
    ------
    UsageError
        If scores cannot speak of the claim, or the confidence is out of range.

    Examples
    --------
    >>> from dpaudit.privacy.claims import PureDP
    >>> plan_one_run(PureDP(3.0)).needed  # 0.05 > (e^3 / (1 + e^3))^m from m = 62 on
    62
    """
    check_options(confidence=confidence)
    claim = claim_of_change(claim, "one-run")
    check_claim(claim)
    level = 1.0 - confidence
    budget = np.array([just_above(claim.value)])

    def refutes(canaries: int, guesses: int, correct: int) -> bool:
        record = Record(Rule(guesses), correct, canaries, level)
        return bool(records_reject(claim, [record], budget)[0])

    runs = []
    for size in SIZES:
        perfect = Record(Rule(size), size, size, level)
        bound = ProfileBound((perfect.delta,))
        ceiling, own = bound.epsilon(claim.report_delta), parameter_lower(claim, bound)
        accuracies = tuple(_least_accuracy(refutes, size, max(1, round(share * size))) for share in SHARES)
        runs.append(PlannedRun(size, ceiling, own, accuracies))
    needed = _least(lambda canaries: refutes(canaries, canaries, canaries))
    return OneRunPlan(str(claim), claim.report_delta, confidence, needed, tuple(runs))


def _least_accuracy(refutes: Callable[[int, int, int], bool], canaries: int, guesses: int) -> float:
    """The least share of right guesses that refutes the claim: more of them do so too."""
    if not refutes(canaries, guesses, guesses):
        return math.inf
    return _least_between(lambda correct: refutes(canaries, guesses, correct), 0, guesses) / guesses


def _least(refutes: Callable[[int], bool]) -> float:
    high = 1
    while not refutes(high):
        high *= 2
        if high > MAX_CANARIES:
            return math.inf
    return _least_between(refutes, high // 2, high)


def _least_between(refutes: Callable[[int], bool], low: int, high: int) -> int:
    """The least number above `low` that refutes, where `high` does and all above one that does."""
    return low + 1 + bisect.bisect_left(range(low + 1, high), True, key=refutes)
