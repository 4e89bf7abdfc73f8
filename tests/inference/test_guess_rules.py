"""Guessing rules: the choice among candidates, against one that asks every candidate at every value."""

import numpy as np
import pytest
from scipy import special

from dpaudit.inference.exact import CellTest
from dpaudit.inference.guess_rules import _best
from dpaudit.inference.payoffs import Inequalities
from dpaudit.learning.partition import CellScore
from dpaudit.privacy.claims import ApproxDP, GaussianDP, PureDP

SIDES = [(True, False), (False, True), (True, True)]


def last_rejected(accuracy, mass, sides, lines, values):
    """The last value up to which one candidate rejects all, 0 for none, and by how much the first."""
    epsilons, deltas = (side[[k for k in (0, 1) if sides[k]]] for side in lines)
    epsilon, cost = epsilons.max(axis=0), 0.5 * deltas.sum(axis=0) / mass
    excess = accuracy - special.expit(epsilon) - cost * special.expit(-epsilon)
    rejected = np.logical_and.accumulate(excess > 0.0)
    return (values[rejected.sum() - 1] if rejected.any() else 0.0), excess[0]


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(0.5, 0.05), GaussianDP(1.0)])
@pytest.mark.parametrize("most", [0.51, 0.7, 0.99])
def test_the_rule_is_that_of_the_largest_value_and_then_of_the_largest_margin(claim, most):
    rng = np.random.default_rng(11)
    values = claim.value * 1.1 ** np.arange(-20, 21)
    for anchor in (0, 5):
        lines = Inequalities(claim).lines_at(values, anchor)
        accuracy, mass = rng.uniform(0.4, most, size=60), rng.uniform(0.05, 1.0, size=60)
        sides = np.array(SIDES)[rng.integers(0, 3, size=60)].T
        own = [last_rejected(a, m, s, lines, values) for a, m, s in zip(accuracy, mass, sides.T, strict=True)]
        bound, margin, at = _best(accuracy, mass, sides, lines, values)
        assert (bound, margin) == pytest.approx(max(own), abs=1e-12)
        assert own[at] == pytest.approx(max(own), abs=1e-12)


@pytest.mark.parametrize(("plus", "minus"), [((1,), ()), ((), (2,)), ((1,), (2,))])
def test_the_counts_and_the_p_value_are_those_of_the_record(plus, minus):
    test = CellTest(PureDP(1.0), 400, CellScore(None, plus, minus), 0.0)
    test.start(0.05)
    test.take(90, 2, 2.5)
    assert test.counts == (90, 2, 308) and test.lower == 2.5
    assert test.p_value < 1e-6  # 90 of 92 right where 73% are allowed
