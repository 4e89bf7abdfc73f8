"""`FDP`: its profile is that of the function, never below it; audits, the command line, and what is refused."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from support.samplers import normal

import dpaudit
from dpaudit import FDP, GaussianDP, PureDP, UsageError
from dpaudit.privacy.trade_off import GRID

EPSILONS = (0.0, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0)


def gaussian(mu):
    return FDP(lambda rate: norm.cdf(norm.isf(rate) - mu), name=f"f of mu = {mu:g}")


def pure(epsilon):
    return lambda rate: max(0.0, 1.0 - math.exp(epsilon) * rate, math.exp(-epsilon) * (1.0 - rate))


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_the_profile_of_a_gaussian_function_is_the_gaussian_one_rounded_up(mu):
    claim = gaussian(mu)
    for epsilon in EPSILONS:
        exact = GaussianDP(mu).profile(epsilon)
        assert exact <= claim.profile(epsilon) <= exact * (1.0 + 1e-3) + 1e-11, epsilon


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_the_profile_of_a_pure_function_is_the_pure_one(epsilon):
    corner = 1.0 / (1.0 + math.exp(epsilon))
    listed = FDP([(0.0, 1.0), (corner, corner), (1.0, 0.0)])
    for at in (*EPSILONS, epsilon):
        exact = PureDP(epsilon).profile(at)
        assert exact - 1e-15 <= listed.profile(at) <= exact + 1e-11
        assert exact - 1e-15 <= FDP(pure(epsilon)).profile(at) <= exact + 1e-5


@given(st.floats(0.05, 6.0), st.floats(0.0, 10.0))
@settings(max_examples=8, deadline=None)
def test_between_its_points_a_function_is_rounded_down(mu, shift):
    rates = np.sort(np.concatenate([GRID[1:-1] * (1.0 - 1e-3 * shift), np.geomspace(1e-8, 0.9, 50)]))
    claim = gaussian(round(mu, 2))
    assert np.all(claim.trade_off(rates) <= norm.cdf(norm.isf(rates) - round(mu, 2)) + 1e-12)


def test_a_scale_stretches_and_the_claim_is_a_value():
    claim = gaussian(1.0)
    assert claim.parameter == "scale" and claim.value == 1.0 and claim.with_value(2.0).value == 2.0
    assert claim.with_value(2.0).profile(2.0) == claim.profile(1.0)
    assert str(claim) == "f of mu = 1" and str(claim.with_value(2.0)) == "f of mu = 1 (scale 2)"
    again = pickle.loads(pickle.dumps(claim))
    assert again == claim == copy.deepcopy(claim) and hash(again) == hash(claim) and claim != gaussian(2.0)
    assert isinstance(again, FDP) and again.profile(1.0) == claim.profile(1.0)


# Rates: an audit at confidence 0.95 of a claim that holds is "violated" in at most 5% of seeds; these seeds are fixed.
@pytest.mark.parametrize(("mu", "is_violated"), [(1.05, False), (0.6, True)])
@pytest.mark.parametrize("mode", ["sequential", "fixed"])
def test_audits_hold_a_mechanism_to_its_trade_off_function(mu, is_violated, mode):
    result = dpaudit.audit(normal, gaussian(mu), [(0.0, 1.0)], samples=20_000, seed=4, mode=mode, severity=False,
                           floating_point=False)  # fmt: skip
    assert (result.verdict == "violated") is is_violated


def test_the_bound_of_a_scale_is_below_the_truth():
    # Normal noise of mu = 1 has 1.2 times the epsilon of the claim at every delta, or more: scale 1.2 or more is true.
    claim = FDP(lambda rate: norm.cdf(norm.isf(rate) - 1.0), scale=1.0 / 1.3)
    result = dpaudit.audit(normal, claim, [(0.0, 1.0)], samples=40_000, seed=5, floating_point=False)
    assert result.verdict == "violated" and 1.0 / 1.3 < result.worst.parameter_lower <= 1.0


@pytest.mark.parametrize(
    ("trade_off", "message"),
    [
        (lambda rate: math.nan, r"trade_off must be in \[0, 1\], got nan at 0\."),
        (lambda rate: 1.2 - rate, r"trade_off must be in \[0, 1\], got 1\.2 at 0\."),
        (lambda rate: min(1.0, 1.1 - rate) if rate < 0.5 else 0.0, "trade_off must be at most 1 minus the rate"),
        (lambda rate: 0.1 + 0.2 * rate if rate < 0.5 else 0.0, "trade_off must not increase"),
        (lambda rate: (1.0 - rate**2) * (1 - rate), "trade_off must be convex"),
        (lambda rate: 1.0 / 0.0, "trade_off must be a number at every rate"),
        (lambda rate: "no", "trade_off must be a number at every rate"),
        ([(0.0, 1.0)], r"trade_off must have at least two pairs of rates, got an array of shape \(1, 2\)"),
        ([(0.1, 0.8), (1.0, 0.0)], "trade_off must have increasing rates from 0 to 1"),
        ([(0.0, 1.0), (0.5, 0.4), (0.5, 0.3), (1.0, 0.0)], "trade_off must have increasing rates from 0 to 1"),
        ([(0.0, 0.2), (0.5, 0.2), (0.7, 0.0), (1.0, 0.0)], "trade_off must be convex, got 0.2 at 0.5"),
        ([(0.0, 1.0), (1.0, math.nan)], "trade_off must be in"),
        (7, r"trade_off must have at least two pairs"),
        ("curve", "trade_off must be a function or pairs of rates, got 'curve'"),
    ],
)  # fmt: skip
def test_what_is_no_trade_off_function_is_refused(trade_off, message):
    with pytest.raises(UsageError, match=message):
        FDP(trade_off)


@pytest.mark.parametrize("epsilon", [710.0, 1e4, 1e300, math.inf])
def test_a_trade_off_function_promises_something_beyond_700_nats(epsilon):
    """e^epsilon raised beyond 709 nats; the profile of the claim itself has always been cut off at 700."""
    curve = FDP([(0.0, 0.9), (0.9, 0.0), (1.0, 0.0)]).curves[0]
    assert (curve.first(epsilon), curve.second(epsilon)) == (curve.first(700.0), curve.second(700.0))
    assert 0.1 <= curve.first(epsilon) <= 0.1 + 1e-9
