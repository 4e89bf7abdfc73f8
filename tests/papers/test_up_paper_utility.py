"""Section 5 of the paper on two metric spaces: accuracy and expected error of the widened privacy-first mechanism."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from up_literal_sets import levels, random_space, space_of, widened_sets

from dpaudit_mechanisms.ledger import entry
from dpaudit_mechanisms.two_metrics import OnTheLine, PrivacyFirst, WidenedPrivacyFirst, query_mechanism

SEEDS = st.integers(0, 2**32)
V_2 = [[0.0, 100.0], [1000.0, 1001.0]]


def random_case(seed):
    """A space, widths by dataset, and the sets of every dataset with the ball subtracted."""
    space, rng = random_space(seed), np.random.default_rng([seed, 2])
    widths = [Fraction(int(v), 2) for v in rng.integers(0, 5, size=len(space.f))]
    return space, widths, [widened_sets(space, x, widths, "ball") for x in space.datasets]


def mass(space, values):
    return sum((space.measure[r] for r in values), Fraction(0))


def within(space, x, limit):
    return {r for r in space.outcomes if space.kept[space.f[x]][r] <= limit}


def accuracy(space, x, sets, limit, epsilon):
    """Eq. (18), from any sets."""
    inside = within(space, x, limit)
    weights = [math.exp(-epsilon * i) for i in range(len(sets))]
    over = math.fsum(w * float(mass(space, one & inside)) for w, one in zip(weights, sets, strict=True))
    return over / math.fsum(w * float(mass(space, one)) for w, one in zip(weights, sets, strict=True))


@pytest.mark.claim("UP-U1", "UP-U2", "UP-U3", "UP-U4")
@given(SEEDS, st.sampled_from([0.5, 1.0, 2.0]), st.sampled_from([0.1, 1.0, 3.0]))
def test_the_identities_hold_for_sets_that_are_a_partition(seed, limit, epsilon):
    space, widths, every = random_case(seed)
    mechanism = WidenedPrivacyFirst(space.spaces(), epsilon, [float(v) for v in widths])
    plain = WidenedPrivacyFirst(space.spaces(), epsilon, 0.0)
    assert plain.accuracy(limit) == pytest.approx(PrivacyFirst(space.spaces(), epsilon).accuracy(limit))
    for x, sets in enumerate(every):
        inside = within(space, x, limit)
        outside, whole = set(space.outcomes) - inside, mass(space, space.outcomes)
        assert mechanism.accuracy(limit)[x] == pytest.approx(accuracy(space, x, sets, limit, epsilon))  # (18)
        for part in (inside, outside, set(space.outcomes)):  # (19), (20), in rationals
            assert sum(mass(space, one & part) for one in sets) == mass(space, part)
        assert all(mass(space, one) == mass(space, one & inside) + mass(space, one & outside) for one in sets)
        weights = [math.exp(-epsilon * i) for i in range(len(sets))]
        parts = [math.fsum(w * float(mass(space, one & part)) for w, one in zip(weights, sets, strict=True))
                 for part in (outside, inside)]  # fmt: skip
        assert mechanism.accuracy(limit)[x] == pytest.approx(1.0 / (1.0 + parts[0] / parts[1]))  # (21)
        away = space.kept[space.f[x]]
        a = [sum((away[r] * space.measure[r] for r in one), Fraction(0)) for one in sets]
        assert sum(a) == sum(far * m for far, m in zip(away, space.measure, strict=True))  # (25)
        assert sum(mass(space, one) for one in sets) == whole
        mean = math.fsum(w * float(v) for w, v in zip(weights, a, strict=True)) / math.fsum(
            w * float(mass(space, one)) for w, one in zip(weights, sets, strict=True)
        )
        assert mechanism.expected_error()[x] == pytest.approx(mean, abs=1e-12)  # (23), (24)


@pytest.mark.claim("UP-U1", "UP-U2", "UP-U4")
def test_with_the_printed_sets_the_totals_are_counted_twice():
    data = entry("UP-U1").counterexample
    assert data == entry("UP-U2").counterexample == entry("UP-U4").counterexample
    space, x = space_of(data), data["x"]
    sets = widened_sets(space, x, [Fraction(v) for v in data["delta"]])
    assert sum(mass(space, one) for one in sets) == data["sum_of_masses"] != mass(space, space.outcomes)
    inside = within(space, x, Fraction(data["T"]))
    assert sum(mass(space, one & inside) for one in sets) != mass(space, inside)
    assert not any(data["delta"])  # delta = 0, and yet not the value of the privacy-first mechanism
    exact = PrivacyFirst(space.spaces(), 1.0).accuracy(data["T"])[x]
    assert accuracy(space, x, sets, data["T"], 1.0) == pytest.approx(data["P_T"]) != pytest.approx(exact)
    other = widened_sets(space, data["other_x"], [Fraction(v) for v in data["delta"]])
    assert sum(mass(space, one) for one in other) == mass(space, space.outcomes)  # the middle dataset has no trouble


def split_by_level(space, x, found, limit):
    """(mu(R_i outside C_T), mu(R_i inside)) by level i."""
    inside = within(space, x, limit)
    top = max(found[x])
    return [tuple(int(mass(space, {r for r in space.outcomes if found[x][r] == i and (r in inside) == kept}))
                  for kept in (False, True)) for i in range(top + 1)]  # fmt: skip


@pytest.mark.claim("UP-U3")
def test_a_lower_ratio_at_level_0_alone_can_lower_the_accuracy():
    data = entry("UP-U3").counterexample
    space, x, epsilon = space_of(data), data["x"], data["epsilon"]
    reached = []
    for name in ("delta", "other_delta"):
        found = levels(space, lambda s, x, name=name: widened_sets(s, x, [Fraction(v) for v in data[name]], "ball"))
        parts = split_by_level(space, x, found, data["T"])
        mechanism = WidenedPrivacyFirst(space.spaces(), epsilon, data[name])
        reached.append((parts[0][0] / parts[0][1], mechanism.accuracy(data["T"])[x]))
    assert [ratio for ratio, _ in reached] == data["ratio_at_0"] and reached[1][0] < reached[0][0]
    assert [p for _, p in reached] == pytest.approx(data["P_T"]) and reached[1][1] < reached[0][1]


@pytest.mark.claim("UP-U6")
def test_a_wider_dataset_need_not_affect_the_others_nor_grow_its_own_zero_set():
    data = entry("UP-U6").counterexample
    spaces = space_of(data).spaces()
    before = WidenedPrivacyFirst(spaces, 1.0, data["delta"])
    after = WidenedPrivacyFirst(spaces, 1.0, data["other_delta"])
    assert before.accuracy(0.5)[0] != pytest.approx(after.accuracy(0.5)[0])
    assert before.accuracy(0.5)[1] == after.accuracy(0.5)[1]  # "affects all other datasets"
    still = WidenedPrivacyFirst(spaces, 1.0, [0.5, 0.0])  # less than the distance to any other value
    assert np.array_equal(still.levels, before.levels)


@pytest.mark.claim("UP-U5")
@pytest.mark.parametrize("epsilon", [1.0, 4.0, 6.0])
def test_the_derivative_of_the_expected_error_is_the_quotient_rule_by_levels(epsilon):
    """Central differences of eq. (24) on the line, V_2, against the double sum of eq. (26) with differences of a, b."""
    delta, step = 5.0, 1e-3

    def by_level(width):
        mechanism = query_mechanism(V_2, epsilon, width)
        profile, count = mechanism.profile, 40
        edges = np.append(profile.edges, profile.edges[-1] + profile.width * np.arange(1, count + 1))
        found = np.append(profile.levels, profile.first + np.arange(count))
        b, a = np.zeros(count), np.zeros(count)
        low, high = edges[:-1], edges[1:]
        keep = found < count  # e^-40 and less beyond
        np.add.at(b, found[keep].astype(int), 2.0 * (high - low)[keep])
        np.add.at(a, found[keep].astype(int), (high**2 - low**2)[keep])
        return a, b, mechanism.expected_error()

    (a_low, b_low, mean_low), (a, b, mean), (a_high, b_high, mean_high) = (
        by_level(delta + s * step) for s in (-1.0, 0.0, 1.0)
    )
    weights = np.exp(-epsilon * np.arange(len(a)))
    da, db = (a_high - a_low) / (2.0 * step), (b_high - b_low) / (2.0 * step)
    terms = np.outer(weights, weights) * (np.outer(da, b) - np.outer(db, a))
    assert mean == pytest.approx(weights @ a / (weights @ b), rel=1e-6)
    printed = terms.sum() / (weights @ b) ** 2
    assert printed == pytest.approx((mean_high - mean_low) / (2.0 * step), rel=1e-3, abs=1e-6)
    assert da[0] >= 0.0 and db[0] >= 0.0


@pytest.mark.claim("UP-U5")
def test_the_sign_of_the_derivative_is_undetermined():
    errors = [query_mechanism(V_2, 6.0, width).expected_error() for width in (1.0, 5.0, 50.0)]
    assert errors[0] > errors[1] < errors[2]


@pytest.mark.claim("UP-S14")
@pytest.mark.parametrize("width", [0.0, 5.0])
def test_the_expected_error_on_the_line_is_the_integral_of_the_density(width):
    mechanism = query_mechanism([[0.0, 2.0], [6.0, 8.0]], 1.0, width)
    assert isinstance(mechanism, OnTheLine)
    grid = np.linspace(-400.0, 400.0, 1_600_001)
    middles, step = (grid[1:] + grid[:-1]) / 2.0, grid[1] - grid[0]
    density = np.exp(mechanism.log_density(0.0, middles))
    assert density.sum() * step == pytest.approx(1.0, abs=1e-9)
    assert (density * np.abs(middles)).sum() * step == pytest.approx(mechanism.expected_error(), rel=1e-6)
