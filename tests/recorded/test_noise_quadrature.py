"""Quadratures of recorded noise against closed forms: the place of the largest, and hockey-stick divergences.

A number that enters a proof is a lower bound, so that each is also at most its closed form.
"""

from __future__ import annotations

import math

import pytest
from largest import chances_of_largest
from scipy.special import ndtr

from dpaudit.symbolic.densities import NoisyNumber, hockey_stick, largest_ratio, mixed_hockey_stick
from dpaudit.symbolic.laws import Law

INFINITE = (-math.inf, math.inf)
GAPS = (0.0, 0.3, 1.0, 4.0)


def moved(family, gap, scale=1.0, scale_prime=None):
    laws = Law(family, scale), Law(family, scale if scale_prime is None else scale_prime)
    return NoisyNumber((gap, 0.0), (1.0, 1.0), laws, (INFINITE, INFINITE), "output", "")


# The place of the larger of two: the first leads by a gap.
LEADS = {
    "gumbel": lambda g: 1.0 / (1.0 + math.exp(-g)),
    "normal": lambda g: float(ndtr(g / math.sqrt(2.0))),
    "laplace": lambda g: 1.0 - math.exp(-g) * (2.0 + g) / 4.0,  # the difference of two has this tail
    "exponential": lambda g: 1.0 - 0.5 * math.exp(-g),  # the difference is Laplace noise
}


@pytest.mark.parametrize("family", LEADS)
@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("scale", [1.0, 7.0])
def test_the_larger_of_two_noisy_numbers_has_its_closed_form(family, gap, scale):
    first, second = chances_of_largest([gap * scale, 0.0], Law(family, scale))
    assert first == pytest.approx(LEADS[family](gap), abs=1e-9)
    assert first + second == pytest.approx(1.0, abs=1e-12)


def gumbel_curve(gap, epsilon):
    """Delta of Gumbel noise that moves by gap: p/q falls in t, so that p(S) - e^epsilon q(S) is largest on t <= c.

    With w = exp(-t): log p/q = gap + w (1 - e^gap) where p is moved up by gap; it is above epsilon for small w, t > c.
    """
    w = (gap - epsilon) / math.expm1(gap)
    return 0.0 if w <= 0.0 else -math.expm1(-w * math.exp(gap)) - math.exp(epsilon) * -math.expm1(-w)


CURVES = {
    "laplace": lambda g, e: -math.expm1(0.5 * (e - g)) if g > e else 0.0,
    "normal": lambda g, e: float(ndtr(0.5 * g - e / g) - math.exp(e) * ndtr(-0.5 * g - e / g)),
    # Moved up by a gap: below the start of the other there is nothing, above it p/q = e^gap.
    "exponential": lambda g, e: max(-math.expm1(e - g), 0.0),
    "gumbel": gumbel_curve,
}


@pytest.mark.parametrize("family", CURVES)
@pytest.mark.parametrize(("gap", "epsilon"), [(1.0, 0.0), (1.0, 0.5), (3.0, 1.0)])
def test_the_divergence_of_moved_noise_is_its_closed_form_from_below(family, gap, epsilon):
    law = Law(family, 1.0)
    closed = CURVES[family](gap, epsilon)
    by_mixture = mixed_hockey_stick([(1.0, gap, 1.0, law)], [(1.0, 0.0, 1.0, law)], epsilon)
    assert by_mixture == pytest.approx(closed, abs=1e-6) and by_mixture <= closed + 1e-12
    mu = gap if family == "normal" else 0.0
    by_number = hockey_stick([moved(family, gap)], mu, epsilon)
    assert by_number == pytest.approx(closed, abs=1e-6) and by_number <= closed + 1e-12


@pytest.mark.parametrize(
    ("family", "gap", "loss"),
    [
        ("laplace", 1.5, 1.5),
        ("normal", 1.5, math.inf),
        ("gumbel", 1.5, 1.5),  # p/q = gap - w (e^gap - 1), largest at w = 0
        ("logistic", 1.5, 1.5),
        ("exponential", 1.5, 1.5),  # moved up: on the common support p/q = e^gap
        ("exponential", -1.5, math.inf),  # moved down: outputs that the other cannot give
    ],
)
def test_the_loss_of_moved_noise_is_its_closed_form_from_below(family, gap, loss):
    found = largest_ratio(moved(family, gap))
    assert found <= loss + 1e-12 and (found == loss or found == pytest.approx(loss, rel=1e-6))


def test_a_vector_of_several_laws_has_the_sum_of_their_losses():
    leaves = [moved("laplace", 1.0), moved("laplace", 1.0, 4.0), moved("logistic", 0.5)]
    assert sum(map(largest_ratio, leaves)) == pytest.approx(1.75, rel=1e-6)
