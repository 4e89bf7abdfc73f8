"""Checks that runs are independent of each other: within a batch, between calls, whatever the size of the batch.

Outputs are turned into yes-or-no features that were fixed on a pilot of other draws: above the median of a column, far
from it, equal to the most common output. Two runs that share noise share features. Each check collects independent
pairs of runs and asks Fisher's exact test whether a feature of the first tells anything of the same feature of the
second (given the margins, the number of pairs that have both is hypergeometric); where both runs are of one input, also
whether the two are equal more often than runs of different pairs. The level is split evenly over the tests of a check,
whose number the pilot fixes. Validity: under independence each test keeps its share, so the check its level.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit.conformance.case import Case, fail, p_text
from dpaudit.conformance.outcomes import CheckSkipped
from dpaudit.evidence.outcomes import Outcomes, Reading, join, read_outputs

PILOT = 200
PAIRS = 240  # of runs, in each part of a check
COLUMNS = 3  # of an output that are looked at
LONG = 50  # size of the batch whose last output is compared with a single one
CONSTANT = "the outputs do not vary, so they show no noise to be shared"
Flags = NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class Feature:
    """A yes-or-no question about one output: of a number of column `column`, or of its token.

    Validity: `reading` is fixed on the pilot, so that the answer never depends on the other outputs of a batch (a None
    among numbers makes objects of all of them).
    """

    kind: str  # "above", "far" or "token"
    reading: Reading
    column: int = 0
    centre: float = 0.0
    spread: float = 0.0
    token: str = ""

    def of(self, outcomes: Outcomes) -> Flags:
        """The answer for each outcome, shape (draws,)."""
        if self.kind == "token":
            found = outcomes.as_objects().tokens
            return np.array([token == self.token for token in (found if found is not None else [])], dtype=bool)
        values = self.reading(outcomes).numbers[:, self.column]
        with np.errstate(invalid="ignore"):
            chosen = values > self.centre if self.kind == "above" else np.abs(values - self.centre) > self.spread
        return np.asarray(chosen, dtype=bool)

    def __str__(self) -> str:
        names = {"above": "being above the median", "far": "the distance from the median", "token": "the common value"}
        return names[self.kind] + (f" in column {self.column}" if self.column else "")


def features(pilot: Outcomes) -> list[Feature]:
    """Features of the outputs of one input, fixed on pilot draws: those that some of these have and some have not."""
    found = []
    reading = Reading(0 if pilot.tokens is not None else pilot.numbers.shape[1])
    for column in range(min(COLUMNS, pilot.numbers.shape[1])):
        values = pilot.numbers[:, column]
        values = values[np.isfinite(values)]
        if values.size:
            centre = float(np.median(values))
            spread = float(np.median(np.abs(values - centre)))
            found += [Feature("above", reading, column, centre), Feature("far", reading, column, centre, spread)]
    listed = pilot.as_objects().tokens
    common = Counter(listed.tolist()).most_common(1) if listed is not None else []
    if common and common[0][1] > 1:
        found.append(Feature("token", reading, token=common[0][0]))
    return [feature for feature in found if 0 < feature.of(pilot).sum() < len(pilot)]


def fisher(both: int, first: int, second: int, total: int) -> tuple[float, float]:
    """p-values of more and of fewer pairs that have both than independence gives, given the margins.

    Examples
    --------
    >>> more, fewer = fisher(5, 5, 5, 10)
    >>> round(more, 6), round(fewer, 6)  # 1 / binomial(10, 5)
    (0.003968, 1.0)
    """
    values = np.arange(max(0, first + second - total), min(first, second) + 1)

    def log_binomial(n: Any, k: Any) -> Any:
        return special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)

    logs = log_binomial(first, values) + log_binomial(total - first, second - values) - log_binomial(total, second)
    masses = np.exp(logs)
    return min(1.0, float(masses[values >= both].sum())), min(1.0, float(masses[values <= both].sum()))


def dependence(first: Flags, second: Flags) -> float:
    """Two-sided p-value of Fisher's exact test of independence of two flags of the same pairs."""
    return min(1.0, 2.0 * min(fisher(int((first & second).sum()), int(first.sum()), int(second.sum()), len(first))))


def more_equal(within: Flags, across: Flags) -> float:
    """One-sided p-value: are the pairs `within` equal more often than independent pairs `across`?"""
    total = len(within) + len(across)
    return fisher(int(within.sum()), int(within.sum() + across.sum()), len(within), total)[0]


def equal_pairs(first: Outcomes, second: Outcomes) -> tuple[Flags, Flags]:
    """Whether runs are equal: of the first half of the pairs with their own partner, of the rest with the next one's.

    Each run enters one comparison, so that the flags are independent.
    """
    a, b = first.as_objects().tokens, second.as_objects().tokens
    if a is None or b is None:
        return np.zeros(0, bool), np.zeros(0, bool)
    half = len(a) // 2
    within = np.array([x == y for x, y in zip(a[:half], b[:half], strict=True)], dtype=bool)
    across = np.array([x == y for x, y in zip(a[half:-1:2], b[half + 1 :: 2], strict=False)], dtype=bool)
    return within, across


def _judge(case: Case, where: str, tests: list[tuple[float, str]], advice: str) -> str | None:
    if not tests:
        raise CheckSkipped(CONSTANT)
    p_value, what = min(tests)
    if p_value * len(tests) < case.level:
        fail(f"runs must be independent {where}, got dependence in {what} ({p_text(p_value)}). {advice}")
    return None


def _tests(first: Outcomes, second: Outcomes, of_first: list[Feature], of_second: list[Feature],
           same_law: bool) -> list[tuple[float, str]]:  # fmt: skip
    tests = [(dependence(f.of(first), g.of(second)), str(f)) for f in of_first for g in of_second
             if (f.kind, f.column) == (g.kind, g.column)]  # fmt: skip
    return [*tests, (more_equal(*equal_pairs(first, second)), "equal outputs")] if same_law and tests else tests


def independent_in_a_batch(case: Case) -> str | None:
    """Two outputs of one call."""
    name = "independent_in_a_batch"
    if not case.subject.is_vectorised:
        raise CheckSkipped("the mechanism is called once a draw")
    data = case.inputs[0]
    chosen = features(_singles(case, name, data, PILOT))
    pairs = [read_outputs(case.draw(data, 2, name, 1, k), 2) for k in range(PAIRS)]
    first, second = (join([pair.rows(slice(i, i + 1)) for pair in pairs]) for i in (0, 1))
    tests = _tests(first, second, chosen, chosen, same_law=True)
    return _judge(case, "within a batch", tests, "Draw noise for each output: rng.laplace(size=size).")


def independent_calls(case: Case) -> str | None:
    """Three calls of one copy of the mechanism, with different generators, on the same input and on two in turn."""
    name = "independent_calls"
    tests: list[tuple[float, str]] = []
    data = case.inputs[0]
    for part, other in enumerate([data, *case.inputs[1:2]]):
        of_first = features(_singles(case, name, data, PILOT, is_copied=True))
        of_second = of_first if part == 0 else features(_singles(case, name, other, PILOT, part, is_copied=True))
        runs = []
        for k in range(PAIRS):
            # A copy for each pair: noise that is kept after the first call would otherwise be the same in all of them.
            subject = case.with_mechanism(case.copied())
            runs.append([read_outputs(case.draw(x, 1, name, 2, part, k, i, subject=subject), 1)
                         for i, x in enumerate((data, other, data))])  # fmt: skip
        # Three, so that noise of every second call is seen whichever call of the copy is the odd one.
        first, second, third = (join([row[i] for row in runs]) for i in (0, 1, 2))
        tests += _tests(first, second, of_first, of_second, same_law=part == 0)
        tests += _tests(second, third, of_second, of_first, same_law=part == 0)
    return _judge(case, "of earlier calls", tests, "Keep no noise between calls.")


def batch_law(case: Case) -> str | None:
    """A single output, and the last one of a larger batch: the same law."""
    name = "batch_law"
    if not case.subject.is_vectorised:
        raise CheckSkipped("the mechanism is called once a draw")
    data = case.inputs[0]
    chosen = features(_singles(case, name, data, PILOT))
    single = _singles(case, name, data, PAIRS, 1)
    last = join([read_outputs(case.draw(data, LONG, name, 2, k), LONG).rows(slice(LONG - 1, LONG))
                 for k in range(PAIRS)])  # fmt: skip
    tests = []
    for feature in chosen:
        a, b = feature.of(single), feature.of(last)
        more, fewer = fisher(int(a.sum()), int(a.sum() + b.sum()), len(a), len(a) + len(b))
        tests.append((min(1.0, 2.0 * min(more, fewer)), str(feature)))
    if not tests:
        raise CheckSkipped(CONSTANT)
    p_value, what = min(tests)
    if p_value * len(tests) < case.level:
        fail(f"an output must have one law whatever the size of its batch, got another share of {what} for size 1 and "
             f"the last of size {LONG} ({p_text(p_value)}).")  # fmt: skip
    return None


def _singles(case: Case, name: str, data: Any, count: int, part: int = 0, *, is_copied: bool = False) -> Outcomes:
    """Outputs of calls of size 1, each with a generator of its own; `is_copied`: and with a copy of the mechanism."""
    subjects = (case.with_mechanism(case.copied()) if is_copied else None for _ in range(count))
    drawn = [case.draw(data, 1, name, 0, part, k, subject=subject) for k, subject in enumerate(subjects)]
    return join([read_outputs(outputs, 1) for outputs in drawn])
