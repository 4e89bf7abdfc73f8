"""The contract of `dpaudit.testing.protocols.Test`, held by every test that the label game plays."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

from dpaudit.privacy.claims import ApproxDP, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.reading.outcomes import read_outputs
from dpaudit.testing.fixed_game import FixedGame
from dpaudit.testing.pair_game import tests_of as portfolio_of
from dpaudit.testing.protocols import CannotGoOn, Training
from dpaudit.testing.protocols import Test as TestOfAClaim
from dpaudit.testing.refined_edges import RefinedGame
from dpaudit.testing.renyi_game import RenyiGame
from dpaudit.testing.sequential_game import SequentialGame

LEVEL = 0.05
DRAWS = 4_000
MADE = {
    "fixed": lambda: FixedGame(PureDP(1.0), DRAWS),
    "fixed, delta": lambda: FixedGame(ApproxDP(1.0, 1e-3), DRAWS),
    "refined": lambda: RefinedGame(PureDP(1.0), DRAWS),
    "sequential": lambda: SequentialGame(PureDP(1.0), DRAWS),
    "sequential, free lines": lambda: SequentialGame(GaussianDP(1.0), DRAWS),
    "renyi, fixed": lambda: RenyiGame(RenyiDP(2.0, 1.0), False, DRAWS),
    "renyi, sequential": lambda: RenyiGame(ZeroConcentratedDP(0.5), True, DRAWS),
}
pytestmark = pytest.mark.parametrize("make", MADE.values(), ids=MADE)


def outputs(shift: float, size: int, seed: int):
    """Laplace noise of scale 1, moved."""
    return read_outputs(shift + np.random.default_rng(seed).laplace(size=size), size)


def prepared(make, shift: float) -> TestOfAClaim:
    test = make()
    test.prepare(Training(outputs(shift, 600, 1), outputs(0.0, 600, 2)), LEVEL)
    test.start(LEVEL)
    return test


def counted(test: TestOfAClaim, shift: float, size: int = DRAWS // 2, seed: int = 3) -> TestOfAClaim:
    first, second = outputs(shift, size, seed), outputs(0.0, size, seed + 1)
    test.add(test.statistic.count(first), test.statistic.count(second))
    test.update()
    return test


def test_what_is_counted_is_fixed_before_it_is_counted(make):
    test = prepared(make, 3.0)
    before, fresh = test.statistic, outputs(1.0, 100, 9)
    counts = before.count(fresh)
    counted(test, 3.0)
    np.testing.assert_array_equal(test.statistic.count(fresh), counts)


def test_counts_add_up_over_batches(make):
    test = prepared(make, 3.0)
    first = outputs(3.0, 300, 5)
    parts = [test.statistic.count(first.rows(part)) for part in (slice(0, 100), slice(100, None))]
    np.testing.assert_array_equal(parts[0] + parts[1], test.statistic.count(first))
    np.testing.assert_array_equal(test.statistic.zeros() + parts[0], parts[0])


def test_a_large_leak_is_rejected_and_the_verdict_is_the_bound(make):
    """A loss of 6 where 1 (mu, order 2: 1, rho 0.5) is allowed: 2,000 draws a side miss it with probability < 1e-12."""
    test = counted(prepared(make, 6.0), 6.0)
    assert test.is_rejected
    assert test.lower > test.claim.value
    assert test.known_lower > test.claim.value
    assert test.log_wealth is None or test.log_wealth >= -math.log(LEVEL)


def test_equal_laws_are_not_rejected_and_bounds_are_finite(make):
    """Both sides the same law at a budget of 1: P(rejected) < 1e-9, since most of the budget would have to be luck."""
    test = counted(prepared(make, 0.0), 0.0)
    assert not test.is_rejected
    assert 0.0 <= test.known_lower <= test.lower <= test.claim.value


@pytest.mark.parametrize("factor", [1.02, 0.98])
def test_the_level_is_what_decides(make, factor):
    """Neither doubled nor shared once more: levels just above and just below what the draws reach."""
    size = 200
    probe = counted(prepared(make, 2.5), 2.5, size=size)
    level = min(_reached(probe) * factor, 0.999)
    test = make()
    test.prepare(Training(outputs(2.5, 600, 1), outputs(0.0, 600, 2)), LEVEL)
    test.start(level)
    counted(test, 2.5, size=size)
    assert test.is_rejected == (_reached(test) <= level)
    assert test.is_rejected == (test.lower > test.claim.value)


def _reached(test: TestOfAClaim) -> float:
    """The smallest level at which the test would reject its budget."""
    return math.exp(-test.log_wealth) if test.log_wealth is not None else float(test.p_value)


def test_the_witness_is_told_and_its_counts_are_the_draws(make):
    test = counted(prepared(make, 6.0), 6.0)
    assert sum(test.counts) == DRAWS
    assert test.describe("x", "x'")
    assert test.rule_record()["game"]
    assert set(test.line)


def test_evidence_goes_on_or_says_that_it_cannot(make):
    test = counted(prepared(make, 3.0), 3.0, size=500)
    if test.log_wealth is None:
        with pytest.raises(CannotGoOn, match=type(test).__name__):
            test.saved("a night")
        with pytest.raises(CannotGoOn):
            test.restore({}, None, 0.0, 1.0)
        return
    state = test.saved("a night")
    other = make()
    other.start(LEVEL)
    other.restore(state, None, 0.0, 3.0)
    assert other.log_wealth == pytest.approx(test.log_wealth, rel=1e-9)
    more = counted(other, 3.0, size=300, seed=11).log_wealth, counted(test, 3.0, size=300, seed=11).log_wealth
    assert more[0] == pytest.approx(more[1], rel=1e-9)


def test_the_power_is_a_loss_above_the_budget(make):
    test = prepared(make, 3.0)
    detectable, at_budget = test.power(0.1, 0.9)
    assert at_budget > 0.0
    assert detectable > at_budget


def test_nothing_of_the_contract_is_left_out(make):
    test = make()
    assert not inspect.isabstract(type(test))
    assert isinstance(test, TestOfAClaim)
    assert test.can_be_sure or not test.is_sure


@pytest.mark.parametrize("sequential", [True, False])
@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 0.01), GaussianDP(1.0), RenyiDP(2.0, 1.0)], ids=str)
def test_the_shares_of_a_portfolio_sum_to_the_level(make, claim, sequential):
    del make
    shares = [share for share, _ in portfolio_of(claim, sequential, DRAWS, alone=False)]
    assert math.fsum(shares) == pytest.approx(1.0, rel=1e-12)
    assert all(share > 0.0 for share in shares)
