"""Functions of noise, ends of intervals and kinds of numbers that records misjudged; the truths are in closed form."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

import dpaudit
from dpaudit.symbolic.growing import rounding


def of(release, pair, claim="eps=1"):
    return dpaudit.record_noise(release, [pair], claim, seed=3).pairs[0]


def floor_of_whole(x, rng):
    g = rng.geometric(0.5)
    return bool((math.floor(g) if x else g) <= 2)


def half_of_whole(x, rng):  # int(1.0) is not below 1
    g = 0.5 * rng.geometric(0.5)
    return bool(int(g) <= 0 if x else g < 1.0)


def tie_of_whole(x, rng):  # round(3.5) is 4
    g = rng.geometric(0.5) + 0.5
    return bool(round(g) <= 3 if x else g < 3.0)


def part_of_a_rounding(x, rng):  # 2 is what is rounded, or itself
    z = rng.laplace()
    if z > 3:
        return math.floor(z)
    return (2 if x else math.floor(z)) if z > 2.9 else 0


def tens_of_thousands(x, rng):
    z = rng.laplace(scale=1e5)
    return bool(round(z, -5) < 200_000 if x else z < 150_000)


def wraps(x, rng):  # 0 - 1 is 255 of numbers of 8 bits
    return bool(rng.integers(0, 2, dtype=np.uint8) - 1 > 10) == bool(x)


def divides(x, rng):  # numpy's numbers give an infinity
    try:
        return float(1 / rng.integers(2))
    except ZeroDivisionError:
        return x


@pytest.mark.filterwarnings("ignore:(divide|overflow):RuntimeWarning")
@pytest.mark.parametrize(
    "release", [floor_of_whole, half_of_whole, tie_of_whole, part_of_a_rounding, tens_of_thousands, wraps, divides]
)
def test_two_ways_to_one_law_are_no_violation(release):
    assert of(release, (0, 1), "eps=0.1").grade != "proved"
    assert dpaudit.certify(release, "eps=0.1", [(0, 1)], seconds=2).verdict != "violated"


def other_function(x, rng):
    z = rng.laplace()
    return round(z, 1) if x else float(np.floor(z))


def other_order(x, rng):
    z, keys = rng.laplace(), [{"a": 1, "b": 2}, {"b": 2, "a": 1}]
    return [math.floor(z), keys[x]] if rng.random() < 0.5 else [math.trunc(z), keys[1 - x]]


def rounded_beside_itself(x, rng):
    z = rng.laplace()
    return [z, z + rng.laplace(), math.floor(z + 0.5 * x)]


def nearly_the_same(x, rng):
    z = rng.laplace()
    return [z, z + 5e-11 * x, bool(z > rng.laplace())]


def without_an_end(x, rng):
    y = 0.1 * x + rng.normal()
    return y if y > 0 else None


def underflows(x, rng):  # e^-745.2 is 0
    return bool(math.exp(rng.laplace(200.0 * x, 100.0)) == 0.0)


def infinite_scale(x, rng):
    return 1 if x else int(rng.laplace(0.0, math.inf) > 0)


def half_or_whole(x, rng):  # below 0 it is seen on x_prime only
    z, other = rng.laplace(), rng.laplace()
    return z if (other if x else z) > 0 else None


def fixed_end(x, rng):  # between 0 and 1 there are outputs of the one input only: delta is 0.34
    z = rng.normal()
    return [x + z, bool(z > 0)]


def fixed_ends(x, rng):
    z = rng.normal()
    return [x + z, bool(z > 0), bool(z > 1)]


def other_scale(family):
    return lambda x, rng: getattr(rng, family)(scale=1.0 + 0.01 * x)


@pytest.mark.parametrize(
    ("release", "claim"),
    [(one, "eps=1") for one in (other_function, other_order, rounded_beside_itself, nearly_the_same)]
    + [(one, claim) for one in (fixed_end, fixed_ends) for claim in ("eps=5,delta=0.01", "rho=1")]
    + [(without_an_end, "eps=7"), (underflows, "eps=1"), (infinite_scale, "eps=1"), (half_or_whole, "eps=1")]
    + [(other_scale(family), "eps=1") for family in ("laplace", "logistic", "exponential", "gumbel")],
)
def test_a_broken_claim_is_never_the_same(release, claim):
    assert of(release, (0, 1), claim).grade in ("proved", "not recorded", "hint")
    assert dpaudit.certify(release, claim, [(0, 1)], seconds=2).verdict != "kept"


@pytest.mark.parametrize(
    ("release", "reason"),
    [
        (lambda x, rng: bool(rng.laplace() + x == math.floor(rng.laplace())), "for a comparison"),
        (lambda x, rng: bool(math.floor(rng.laplace()) == rng.laplace() + x), "for a comparison"),
        (lambda x, rng: 1.5 - math.floor(x + rng.laplace()), "for a product"),
    ],
)
def test_noise_beside_rounded_noise_is_looked_at(release, reason):  # it raised TypeError
    found = of(release, (0.0, 1.0))
    assert found.grade == "not recorded" and reason in found.unproved


def test_an_interval_between_whole_numbers_is_known():  # its example was at the end, which is outside of it
    found = of(lambda x, rng: (lambda z: 1 if z > 0 else -1 if z < -1 else 0)(x + rng.laplace()), (0.0, 1.0))
    assert found.grade == "same" and found.implied == pytest.approx(1.0)


@pytest.mark.parametrize("factors", [(1e-200, 1e-200), (1e-323, 1.0), (1e-310, 0.5), (1e300, 1e-300)])
def test_noise_beyond_the_range_of_doubles_is_a_look(factors):  # the loss is 2, and "the same" was said of the first
    found = of(lambda x, rng: (2 * x + rng.laplace()) * factors[0] * factors[1], (0.0, 1.0))
    assert found.grade == "not recorded" and "range of doubles" in found.unproved


@pytest.mark.parametrize("without", [lambda z: z[z > 0], lambda z: z[:0], lambda z: z.fill(2.0) or z])
def test_an_array_without_noise_left_is_summed(without):  # it raised RecursionError
    found = of(lambda x, rng: (without(x / 3 + rng.laplace(size=3)).sum(), rng.laplace()), (0.0, 1.0))
    assert found.grade == "same" and not found.unproved


@pytest.mark.parametrize("inside", [lambda z: z, lambda z: [z, 1], lambda z: {"a": (z, "b")}])
def test_a_zero_of_noise_has_the_sign_of_the_noise(inside):  # which loses 2, and "the same" was said
    assert of(lambda x, rng: inside((2 * x + rng.laplace()) * 0), (0.0, 1.0)).grade == "hint"
    assert of(lambda x, rng: inside((2 * x + rng.laplace()) * 0 + 1.0), (0.0, 1.0)).grade == "same"


@pytest.mark.parametrize("claim", ["rho=0.45", "mu=1.2", "eps=0.9, delta=0.1"])
def test_a_bound_that_other_noise_than_normal_need_not_reach_implies_nothing(claim):
    """By sums over a grid, noise that moves by a scale has rho .37 and mu 1.03, two of half a scale delta .03 at .9."""

    def release(x, rng):
        return x + rng.laplace() if "delta" not in claim else (x + rng.laplace(scale=2.0), x + rng.laplace(scale=2.0))

    found = of(release, (0.0, 1.0), claim)
    assert found.grade in ("not recorded", "same") and not found.statement


@pytest.mark.parametrize("scale", [1e-200, 1e-10, 1.0])
def test_an_error_of_probabilities_is_not_taken_for_privacy(scale):
    found = of(lambda x, rng: bool(scale * x + rng.laplace(scale=scale) > 0), (0, 1), "eps=0.99999")
    assert found.grade in ("proved", "implied", "not recorded")


def window(x, rng):  # at its end 0.2 the loss is (1 - 0.2) - 0.2
    y = x + rng.laplace()
    return y if 0.2 < y <= 0.8 else None


def truncated(x, rng):  # at -3 it is (4^2 - 3^2) / 2
    y = x + rng.normal()
    return y if -3 < y <= 3 else None


@pytest.mark.parametrize(("release", "loss"), [(window, 0.6), (truncated, 3.5)])
def test_a_loss_at_the_end_of_an_interval_is_found(release, loss):
    assert of(release, (0.0, 1.0), f"eps={0.9999 * loss}").grade == "proved"
    found = of(release, (0.0, 1.0), f"eps={1.0001 * loss}")
    assert found.grade != "proved" and found.loss == pytest.approx(loss, rel=1e-6)


@pytest.mark.parametrize("draw", [lambda: random.gauss(0, -1), lambda: -random.expovariate(-1)])
def test_noise_of_a_negative_parameter_is_as_python_has_it(draw):
    assert of(lambda x: 100 * x + draw(), (0, 1)).grade == "proved"


@pytest.mark.parametrize("digits", range(-6, 7))
def test_a_rounding_is_at_most_a_number_up_to_half_a_step(digits):
    by, step = rounding(digits), Fraction(10) ** -digits
    for count in range(-200, 200):
        limit, end = float(count * step), float((count + Fraction(1, 2)) * step)
        assert by.last(limit) == pytest.approx(end, rel=1e-12)
        assert by.last(math.nextafter(limit, -math.inf)) == pytest.approx(float(Fraction(end) - step), rel=1e-9)
