"""Checks that runs are independent of each other: within a batch, between calls, whatever the size of the batch.

Outputs are turned into yes-or-no features that were fixed on a pilot of other draws: above the median of a column, far
from it, equal to the most common output. Two runs that share noise share features. Each check collects independent
pairs of runs and asks Fisher's exact test whether a feature of the first tells anything of the same feature of the
second (given the margins, the number of pairs that have both is hypergeometric); where both runs are of one input, also
whether the two are equal more often than runs of different pairs. The level is split evenly over the tests of a check,
whose number the pilot fixes. Validity: under independence each test keeps its share, so the check its level.
"""

from __future__ import annotations

from typing import Any

from dpaudit.conformance.case import Case, fail, p_text
from dpaudit.conformance.outcomes import CheckSkipped
from dpaudit.features.outcomes import Outcomes, join
from dpaudit.inference.independence import Feature, dependence, equal_pairs, features, fisher, more_equal

PILOT = 200
PAIRS = 240  # of runs, in each part of a check
LONG = 50  # size of the batch whose last output is compared with a single one
CONSTANT = "the outputs do not vary, so they show no noise to be shared"


def _judge(case: Case, tests: list[tuple[float, str]], demanded: str, advice: str = "") -> str | None:
    """Fail where a test is significant; `demanded` says what must hold, with {} for the feature that shows it."""
    if not tests:
        raise CheckSkipped(CONSTANT)
    p_value, what = min(tests)
    if p_value * len(tests) < case.level:
        fail(f"{demanded.format(what)} ({p_text(p_value)}).{advice}")
    return None


def _tests(first: Outcomes, second: Outcomes, of_first: list[Feature], of_second: list[Feature],
           same_law: bool) -> list[tuple[float, str]]:  # fmt: skip
    tests = [(dependence(f.of(first), g.of(second)), str(f)) for f in of_first for g in of_second
             if f.asks_as(g)]  # fmt: skip
    return [*tests, (more_equal(*equal_pairs(first, second)), "equal outputs")] if same_law and tests else tests


def independent_in_a_batch(case: Case) -> str | None:
    """Two outputs of one call."""
    name = "independent_in_a_batch"
    if not case.subject.is_vectorised:
        raise CheckSkipped("the mechanism is called once a draw")
    data = case.inputs[0]
    chosen = features(_singles(case, name, data, PILOT))
    pairs = [case.read(data, 2, name, 1, k) for k in range(PAIRS)]
    first, second = (join([pair.rows(slice(i, i + 1)) for pair in pairs]) for i in (0, 1))
    tests = _tests(first, second, chosen, chosen, same_law=True)
    demanded = "runs must be independent within a batch, got dependence in {}"
    return _judge(case, tests, demanded, " Draw noise for each output: rng.laplace(size=size).")


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
            copy = case.with_mechanism(case.copied())
            runs.append([case.read(x, 1, name, 2, part, k, i, subject=copy) for i, x in enumerate((data, other, data))])
        # Three, so that noise of every second call is seen whichever call of the copy is the odd one.
        first, second, third = (join([row[i] for row in runs]) for i in (0, 1, 2))
        tests += _tests(first, second, of_first, of_second, same_law=part == 0)
        tests += _tests(second, third, of_second, of_first, same_law=part == 0)
    demanded = "runs must be independent of earlier calls, got dependence in {}"
    return _judge(case, tests, demanded, " Keep no noise between calls.")


def batch_law(case: Case) -> str | None:
    """A single output, and the last one of a larger batch: the same law."""
    name = "batch_law"
    if not case.subject.is_vectorised:
        raise CheckSkipped("the mechanism is called once a draw")
    data = case.inputs[0]
    chosen = features(_singles(case, name, data, PILOT))
    single = _singles(case, name, data, PAIRS, 1)
    last = join([case.read(data, LONG, name, 2, k).rows(slice(LONG - 1, LONG)) for k in range(PAIRS)])
    tests = []
    for feature in chosen:
        a, b = feature.of(single), feature.of(last)
        more, fewer = fisher(int(a.sum()), int(a.sum() + b.sum()), len(a), len(a) + len(b))
        tests.append((min(1.0, 2.0 * min(more, fewer)), str(feature)))
    demanded = "an output must have one law whatever the size of its batch, got another share of {} for size 1 and "
    return _judge(case, tests, f"{demanded}the last of size {LONG}")


def _singles(case: Case, name: str, data: Any, count: int, part: int = 0, *, is_copied: bool = False) -> Outcomes:
    """Outputs of calls of size 1, each with a generator of its own; `is_copied`: and with a copy of the mechanism."""
    subjects = (case.with_mechanism(case.copied()) if is_copied else None for _ in range(count))
    return join([case.read(data, 1, name, 0, part, k, subject=subject) for k, subject in enumerate(subjects)])
