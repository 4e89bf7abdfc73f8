"""The two-sided optimum: known figures, the size of its tests, and that no better guess was overlooked."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.bench.laws import (
    bits_law,
    exact_or_laplace_law,
    gaussian_law,
    geometric_law,
    laplace_law,
    response_law,
    truncated_laplace_law,
)
from dpaudit.bench.optimum import Guess, LineTest, bound, draws_to_detection, parameter_bound
from dpaudit.bench.problem import finite_law
from dpaudit.privacy.claims import ApproxDP, GaussianDP, ProfileClaim, PureDP


def tails(loss: float) -> Guess:
    """The guess on both tails of Laplace noise, where the loss is constant."""
    return Guess(0.5, 0.5 * math.exp(-loss), 2)


def test_laplace_at_claim_1_with_true_epsilon_1_2():
    # The tails alone need 901 draws a side (922 with a prototype's approximation); a part of the middle helps.
    best = draws_to_detection(laplace_law(1.2), PureDP(1.0))
    assert best.draws == pytest.approx(922, rel=0.06)
    assert best.draws <= 901
    assert LineTest(tails(1.2), 1.0, 0.0, 2 * 901, 0.05).rejection(tails(1.2).correct, tails(1.2).wrong) >= 0.9
    assert draws_to_detection(laplace_law(2.0), PureDP(1.0)).draws == pytest.approx(51, abs=1)


def test_bounds_at_100_000_draws_a_side():
    assert bound(laplace_law(1.0), 0.0).median == pytest.approx(0.990, abs=5e-4)
    normal = bound(gaussian_law(1.0), 0.01)
    assert 2.20 < normal.median < gaussian_law(1.0).epsilon_at(0.01) == pytest.approx(2.3178, abs=1e-3)


def test_power_of_the_optimum_by_simulation():
    best = draws_to_detection(laplace_law(1.2), PureDP(1.0))
    rng, audits = np.random.default_rng(5), 20_000
    rates = [best.guess.correct, best.guess.wrong, 1.0 - best.guess.mass]
    correct, wrong, _ = rng.multinomial(2 * int(best.draws), rates, size=audits).T
    p = stats.binom.sf(correct - 1, correct + wrong, 1.0 / (1.0 + math.exp(-1.0)))
    # 20,000 audits of power 0.9 (0.9001 at most, by the search): 6 standard deviations are 0.0128, so 2e-9 of seeds.
    assert (p <= 0.05).mean() == pytest.approx(0.9, abs=0.0128)


def test_least_draws_by_enumeration():
    truth = 1.0 / (1.0 + math.exp(-2.0))
    best = draws_to_detection(finite_law([truth, 1 - truth], [1 - truth, truth]), PureDP(1.0))

    def power(draws):
        counts = np.arange(2 * draws + 1)
        rejected = stats.binom.sf(counts - 1, 2 * draws, 1.0 / (1.0 + math.exp(-1.0))) <= 0.05
        return stats.binom.pmf(counts, 2 * draws, truth)[rejected].sum()

    assert power(int(best.draws)) >= 0.9
    assert max(power(draws) for draws in range(int(0.8 * best.draws), int(best.draws))) < 0.9


LINES = {
    "laplace, delta 0.001": (laplace_law(1.2), ApproxDP(1.0, 1e-3)),
    "laplace, delta 0.01": (laplace_law(1.2), ApproxDP(1.0, 0.01)),
    "gaussian": (gaussian_law(2.0), ApproxDP(1.0, 0.01)),
    "small delta": (gaussian_law(1.0), ApproxDP(1.0, 1e-6)),
    "catastrophe": (exact_or_laplace_law(0.02, 0.5), ApproxDP(0.5, 0.01)),
    "cut off": (truncated_laplace_law(1.0, 5.0), ApproxDP(1.0, 1e-3)),
    "large epsilon": (gaussian_law(4.0), ApproxDP(5.0, 1e-3)),
}


@pytest.mark.parametrize("name", LINES)
def test_size_over_the_whole_boundary_of_the_null(name):
    law, claim = LINES[name]
    best = draws_to_detection(law, claim)
    assert math.isfinite(best.draws)
    factor, cost = math.exp(claim.epsilon), 0.5 * claim.delta * best.guess.n_events
    most = (1.0 - cost) / (1.0 + factor)
    around = best.guess.mass / (1.0 + factor) * np.geomspace(0.5, 2.0, 150)
    wrongs = np.concatenate([np.linspace(0.0, most, 150), np.minimum(around, most)])
    test = LineTest(best.guess, best.epsilon, best.delta, 2 * int(best.draws), 0.05)
    sizes = [test.rejection(factor * wrong + cost, wrong) for wrong in wrongs.tolist()]
    # The critical value is set on 9 points; between them the size of a discrete test may be a little larger.
    assert max(sizes) <= 0.0502
    assert test.rejection(best.guess.correct, best.guess.wrong) >= 0.9


def test_size_inside_the_null_is_smaller():
    best = draws_to_detection(*LINES["laplace, delta 0.01"])
    test = LineTest(best.guess, 1.0, 0.01, 2 * int(best.draws), 0.05)
    assert test.rejection(0.9 * (math.e * 0.18 + 0.01), 0.18) < 0.01


def test_no_random_guess_needs_fewer_draws():
    law, claim = laplace_law(1.2), ApproxDP(1.0, 0.01)
    best, rng = draws_to_detection(law, claim), np.random.default_rng(11)
    p_high, q_high = np.cumsum(law.p[::-1]), np.cumsum(law.q[::-1])
    p_low, q_low = np.cumsum(law.p), np.cumsum(law.q)
    for _ in range(40):
        i, j = rng.integers(len(law.p) - 1, size=2)
        if i + j + 2 > len(law.p):
            i, j = len(law.p) - 2 - i, len(law.p) - 2 - j
        guess = Guess(0.5 * (p_high[i] + q_low[j]), 0.5 * (q_high[i] + p_low[j]), 2)
        # 1% fewer draws: the last digits of the search.
        test = LineTest(guess, 1.0, 0.01, 2 * int(0.99 * best.draws), 0.05)
        assert test.rejection(guess.correct, guess.wrong) < 0.9


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_the_bound_exceeds_the_truth_at_most_as_often_as_it_may(delta):
    law = laplace_law(1.0)
    truth, draws = law.epsilon_at(delta), 2_000
    guess = bound(law, delta, draws).guess
    rng, audits = np.random.default_rng(7), 20_000
    correct, wrong, _ = rng.multinomial(2 * draws, [guess.correct, guess.wrong, 1.0 - guess.mass], size=audits).T
    accuracy = stats.beta.ppf(0.05, correct, wrong + 1.0)
    cost = 0.5 * delta * guess.n_events
    bounds = np.log((accuracy * guess.mass - cost) / ((1.0 - accuracy) * guess.mass))
    assert np.median(bounds) == pytest.approx(bound(law, delta, draws).median, abs=0.01)
    # At most 5%; 6 standard deviations of 20,000 audits are 0.0092, so 1e-9 of seeds.
    assert (bounds > truth).mean() <= 0.05 + 0.0092


def test_the_standard_error_shrinks_with_the_square_root_of_the_draws():
    few, many = (bound(response_law(1.0), 0.0, draws).standard_error for draws in (10_000, 1_000_000))
    assert few / many == pytest.approx(10.0, rel=0.08)  # each is known to 1.1% (4,000 simulations)


def test_free_lines():
    law = gaussian_law(1.3)
    best = draws_to_detection(law, GaussianDP(1.0))
    assert 0.0 < best.epsilon < 5.0 and best.delta == pytest.approx(GaussianDP(1.0).profile(best.epsilon))
    found = parameter_bound(law, GaussianDP(1.0))
    assert 1.25 < found.median < 1.3 and 0.0 < found.standard_error < 0.02
    stretched = parameter_bound(law, ProfileClaim(GaussianDP(1.0).profile))
    assert stretched.median > 1.3  # the profile of N(1.3, 1) is more than the one of N(1, 1) stretched by 1.3
    assert parameter_bound(law, ApproxDP(1.0, 0.01)) == bound(law, 0.01)


@pytest.mark.parametrize(
    ("law", "claim"),
    [
        (laplace_law(1.0), PureDP(1.0)),
        (geometric_law(0.5), PureDP(0.5)),
        (bits_law(0.125, 8), PureDP(1.0)),
        (gaussian_law(1.0), GaussianDP(1.0)),
        (finite_law([1.0], [1.0]), PureDP(0.1)),
    ],
    ids=["laplace", "geometric", "bits", "gaussian", "the same law"],
)
def test_a_claim_that_is_kept_is_never_found(law, claim):
    assert math.isinf(draws_to_detection(law, claim).draws)
