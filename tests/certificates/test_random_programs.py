"""No certificate is wrong on random small programs: against laws that are computed without tracing, and all events.

The expected loss is the largest (P(S) - delta) / Q(S) over *all* events S of at most 8 outcomes, in fractions: the
definition of (epsilon, delta), not the formula that certificates use.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from random_programs import INPUTS, law, paths, random_program, run

import dpaudit

MOST_OUTCOMES = 8
MOST_PATHS = 16


def largest_ratio(p: dict[Any, Fraction], q: dict[Any, Fraction], delta: Fraction) -> Fraction | None:
    """The largest (P(S) - delta) / Q(S) over all events with P(S) > delta, both directions; None for infinity."""
    outcomes = sorted(set(p) | set(q), key=repr)
    best = Fraction(0)
    for size in range(1, len(outcomes) + 1):
        for event in itertools.combinations(outcomes, size):
            for a, b in ((p, q), (q, p)):
                first = sum((a.get(outcome, Fraction(0)) for outcome in event), Fraction(0)) - delta
                second = sum((b.get(outcome, Fraction(0)) for outcome in event), Fraction(0))
                if first > 0 and second == 0:
                    return None
                if first > 0:
                    best = max(best, first / second)
    return best


def check(seed: int) -> bool:
    """Compare one program; whether it was small enough."""
    rng = np.random.default_rng([20_261_125, seed])
    program = random_program(rng)
    x, x_prime = rng.choice(INPUTS, size=2, replace=False).tolist()
    p, q = law(program, x), law(program, x_prime)
    assert sum(p.values()) == sum(q.values()) == 1
    if len(p.keys() | q.keys()) > MOST_OUTCOMES or not 1 < paths(program) <= MOST_PATHS:
        return False
    delta = float(rng.choice([0.0, 0.0, 0.01, 0.2]))
    expected = largest_ratio(p, q, Fraction(delta))
    # Claims at, just above and just below the loss, where a wrong digit would show, and elsewhere.
    loss = math.log(max(expected, 1)) if expected is not None else 0.0
    claimed = max(0.0, float(rng.choice([loss - 1e-9, loss, loss + 1e-9, 0.5, 2.0])))
    result = dpaudit.certify(
        lambda x, rng: run(program, x, rng), claim=dpaudit.ApproxDP(claimed, delta), pairs=[(x, x_prime)], seconds=600
    )
    pair = result.pairs[0]
    where = (seed, program, result.refusal)
    # The allowance is 1e-12: no claim above is within 1e-10 of it, and doubles decide.
    is_within = expected is not None and loss <= claimed + 1e-12
    right = "kept" if is_within else "violated"
    if pair.mass_left > 0.0:  # draws that are explored value by value, up to a tail that a delta may pay for
        assert pair.verdict in (right, "open"), where
        return True
    assert pair.exact == (None if expected is None else max(expected, Fraction(1))), where
    assert pair.verdict == right, where
    return True


def test_random_programs_have_their_exact_losses():
    assert sum(map(check, range(150))) >= 60  # the others have too many outcomes or paths, or draw nothing


@pytest.mark.long
def test_more_random_programs_have_their_exact_losses():
    assert sum(map(check, range(650, 3_600))) >= 1_300
