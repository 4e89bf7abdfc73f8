"""Features of doubles: what their bits say, checked against exact arithmetic with fractions and float.hex."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.features.input_facts import Location
from dpaudit.features.low_bits import (
    INFINITE,
    KINDS,
    SIZES,
    ZERO,
    Attainable,
    OwnBits,
    SeenBefore,
    attainable,
    low_bit_views,
    lowest_set_bit,
)
from dpaudit.features.shapes import rounded

GRID, LANES = 2.0**53, SIZES.lanes
finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=300, deadline=None)
@given(finite.filter(bool))
def test_a_double_is_a_multiple_of_its_lowest_set_bit_and_of_no_larger_power_of_two(value):
    position, exponent = (int(part[0]) for part in lowest_set_bit(np.array([value])))
    step = Fraction(2) ** position
    assert (Fraction(value) / step).denominator == 1
    assert (Fraction(value) / (2 * step)).denominator == 2
    assert Fraction(2) ** exponent <= abs(Fraction(value)) < Fraction(2) ** (exponent + 1)


def test_zero_infinities_and_nan_have_codes_of_their_own():
    values = np.array([0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1.0])
    expected = [ZERO, ZERO, INFINITE, INFINITE, math.nan, -1074.0, 0.0]
    np.testing.assert_array_equal(OwnBits("lowest bit")(values), expected)
    for kind in KINDS:
        codes = OwnBits(kind, 0.01)(values)
        np.testing.assert_array_equal(codes[2:5], [INFINITE, INFINITE, math.nan])
        assert np.all(codes[5:] < ZERO)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(), min_size=1, max_size=40), st.integers(0, 39))
def test_a_code_does_not_depend_on_the_batch(values, place):
    # NaN and infinities included: what a rule sees of an output must never depend on its batch.
    batch = np.array(values)
    own = batch[place % len(values)][None]
    for view in [*low_bit_views(batch, batch[::-1], Location(0.0, 1.0), 0.7), SeenBefore.learn(batch, batch)]:
        np.testing.assert_array_equal(view(batch)[place % len(values)], view(own)[0])


def test_decimal_places_are_those_of_the_shortest_decimal():
    values = np.array([3.0, 0.5, 0.25, 0.1 + 0.2, 0.3, -12.345, 1 / 3, 1e-9, 1e-12, 1e300])
    assert OwnBits("decimal places")(values).tolist() == [0, 1, 2, 10, 1, 3, 10, 9, 10, 0]


def test_a_remainder_is_told_apart_by_parts_of_the_step_centred_at_zero():
    remainder = OwnBits("remainder", 0.01)
    # 1/3 = 33 steps and a third; a multiple of the step is in the first part however it rounds
    assert remainder(np.array([1 / 3]))[0] == round(64 / 3)
    assert set(remainder(np.arange(-300, 300) * 0.01).tolist()) == {0}


def test_seen_before_compares_bits():
    seen = SeenBefore.learn(np.array([0.0, 0.5]), np.array([0.5, 0.3]))
    assert seen(np.array([0.0, -0.0, 0.5, 0.3, 0.1 + 0.2])).tolist() == [1, 0, 3, 2, 0]
    assert SeenBefore.learn(np.zeros(0), np.zeros(0))(np.array([0.0])).tolist() == [0]


def test_the_bits_in_use_of_a_double_are_those_from_its_first_to_its_last():
    # 12 = 1100 in binary: of size 2^3, two bits; 12 + 2^-9 has 13, from 2^3 to 2^-9.
    for value, bits in ((12.0, 2), (12.0 + 2.0**-9, 13)):
        (code,) = OwnBits("bits used")(np.array([value])).tolist()
        assert OwnBits("bits used").words(code, code) == f"of size 2^3 and {bits} bits in use"


def test_an_end_between_the_codes_of_numbers_and_that_of_0_is_no_power_of_two():
    """Before: "multiples of 2^549755813889", half way to the code of 0, for outputs that are 0."""
    lowest, half = OwnBits("lowest bit"), 2.0**39 + 1.0
    assert lowest.words(half, 2.0**40) == lowest.words(2.0**40, 2.0**40) == "that are 0"
    assert lowest.words(-3.0, half) == "that are multiples of 2^-3 and not 0"
    assert lowest.words(-3.0, math.inf) == "that are multiples of 2^-3"


@pytest.mark.parametrize(("location", "scale"), [(0.0, 1.0), (10.0, 10.0), (-3.7, 0.3), (0.1, 1 / 3)])
def test_every_draw_of_a_sampler_by_inversion_is_attainable(location, scale):
    # numpy's formula for Generator.laplace, and scale * log(u). Vectorised logarithms may differ from those of the C
    # library in the last bit, for about 0.3% of the draws here.
    rng = np.random.default_rng(20_261_121)
    values = location + rng.laplace(scale=scale, size=4_000)
    own = around(location, location + 1.0, scale, "numpy")(values).astype(int)
    assert np.mean(own & 1 == 1) > 0.97
    u = rng.random(4_000) - 0.5
    values = location - scale * np.sign(u) * np.log(1.0 - 2.0 * np.abs(u))
    own = around(location, location + 1.0, scale, "logarithm")(values).astype(int)
    assert np.mean(own & 1 == 1) > 0.97
    # the control: of doubles drawn by other means most are not attainable near 0
    other = np.random.default_rng(1).normal(size=4_000)
    assert np.mean(around(0.0, 1.0, 1.0, "numpy")(other) == 3) < 0.5


def around(location, other, scale, sampler):
    """The view of these locations, of noise of this scale."""
    return Attainable(Location(location, other), 1.0 / scale, sampler, "one")


def given_by_some_neighbour(values, location, scale, sampler):
    """Which of the values (a multiple of LANES of them) one of seven u gives, around the nearest; by plain formulas."""
    with np.errstate(all="ignore"):
        noise = values - location
        tail, upper = np.exp(-np.abs(noise) / scale), noise > 0.0
        nearest = np.rint(GRID * (np.where(upper, 1.0 - 0.5 * tail, 0.5 * tail) if sampler == "numpy" else tail))
        u = (nearest + np.arange(-3.0, 4.0)[:, None]) / GRID
        inner = np.where(upper, (2.0 - u) - u, u + u) if sampler == "numpy" else np.clip(u, 1.0 / GRID, 1.0)
        given = location + np.where(upper, -scale, scale) * np.log(inner)
    return ((given == values) & np.isfinite(values)).any(axis=0)


@pytest.mark.parametrize("location", [0.0, 1.0, -3.7, 1e3, -1e9, 1e17, 5e-324])
@pytest.mark.parametrize("scale", [1.0, 10.0, 1 / 3, 1e-8, 1e16])
def test_what_is_attainable_is_found_as_by_trying_every_neighbour(location, scale):
    # Trying one neighbour loses none: u on the other side give none of the value's side, those behind none in between.
    rng = np.random.default_rng(20_261_123)
    other, rare = location + scale, np.arange(1, 400) / GRID
    drawn = [at + rng.laplace(scale=scale, size=2_000) for at in (location, other)]
    logs = [np.log(rng.random(2_000)), np.log(rare), np.log1p(-rare)]
    drawn += [at + sign * scale * log for at in (location, other) for sign in (-1.0, 1.0) for log in logs]
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1e300, -1e300, location, other]
    drawn += [rng.normal(size=1_000), special]
    values = np.concatenate(drawn)
    values = np.concatenate([values, np.nextafter(values, math.inf), np.nextafter(values, -math.inf)])
    values = values[~np.isnan(values)]
    values = np.concatenate([values, np.zeros(-len(values) % LANES)])
    for sampler in ("numpy", "logarithm"):
        codes = around(location, other, scale, sampler)(values).astype(int)
        for bit, place in ((1, location), (2, other)):
            assert np.array_equal(given_by_some_neighbour(values, place, scale, sampler), codes & bit > 0)
            assert 0 < np.sum(codes & bit > 0) < len(codes)


def of_every_kind(rng, count):
    """Doubles of which some each can come from 0 only, from 1 only, from both and from neither, on any processor.

    Those drawn at 0 and at 1 are attainable there unless logarithms disagree. Around a location nearly every draw of
    the other one is a double that it cannot give. Small doubles that no sampler drew have bits below every grid.
    """
    drawn = [at + rng.laplace(size=count) for at in (0.0, 1.0)]
    return rng.permutation(np.concatenate([*drawn, 1e-3 * rng.normal(size=count)]))


@pytest.mark.parametrize("sampler", ["numpy", "logarithm"])
def test_what_is_attainable_does_not_depend_on_where_vectors_end(sampler):
    values = of_every_kind(np.random.default_rng(20_261_124), 2_003)
    view = around(0.0, 1.0, 1.0, sampler)
    whole = view(values)
    for start in (1, LANES - 1, LANES, LANES + 1, len(values) - 1):
        assert np.array_equal(view(values[start:]), whole[start:])
    assert set(whole.tolist()) == {0, 1, 2, 3}  # of each kind some, so that a code in a wrong place shows


def test_what_was_seen_before_is_asked_only_where_a_double_comes_again():
    first, second = np.array([0.1, 0.2]), np.array([0.3, 0.4])
    for of_x_prime, is_asked in ((second, False), (np.array([0.3, 0.2]), True)):
        kinds = [type(view) for view in low_bit_views(first, of_x_prime, None, 1.0)]
        assert (SeenBefore in kinds) == is_asked


def test_attainability_is_tried_only_where_location_and_scale_make_sense():
    assert [rule.scale for rule in attainable(Location(0.0, 2.0), 0.5)] == [2.0, 2.0, 4.0, 4.0]
    assert len(attainable(Location(0.0, 1.0), 0.5)) == 2
    for x, x_prime, epsilon in [(math.nan, 1.0, 1.0), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.0, 1.0, math.inf)]:
        assert attainable(Location(x, x_prime), epsilon) == []
    assert attainable(None, 1.0) == []


def test_a_worked_out_zero_has_no_sign():
    """Outputs between the points (0, 0) and (1, 1) are as near to either, up to errors of rounding of either sign."""
    numbers = rounded(np.array([-1e-17, 1e-17, -0.0, -2.0]), np.full(4, 3.0))
    assert np.signbit(numbers).tolist() == [False, False, False, True] and numbers[3] == -2.0
