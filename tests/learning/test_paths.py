"""Priors of paths: the sum over all paths against paths one by one, and what the training labels say of an order.

No assertion has an error rate: sums are exact, and the cases that are drawn (fixed seeds) show properties that hold for
each of them.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.learning.paths import ASTRAY, LEVELS, ORDERS, PathPriors
from dpaudit.testing.betting import Book, components_for, fit_bets

FIXED = settings(derandomize=True, deadline=None, max_examples=60)
# Logarithms of such sums, of emissions of some units: a few dozen operations at 2**-53 of at most 100 each.
LOG_ROUNDING = 1e-11
ROUNDING = 1e-12  # sums of 625 products of a few doubles below 1: 625 * 8 * 2**-53 = 6e-13
TOP = LEVELS - 1
RISING = {
    "monotone": [0.5, 0.2, 0.2, 0.05, 0.05],
    "mirrored": [0.02, 0.02, 0.3, 0.3, 0.36],
}


def one(switch, rises=0, centre=-1):
    return PathPriors(np.array([switch]), np.array([rises]), np.array([centre]))


def log_sum(paths, logs):
    return paths.log_sum(paths.emissions(logs))


def chance(path, switch, rises, centre):
    """The prior of one chain of levels, written out from the docstrings."""
    if rises == 0:
        start = [0.35, 0.1, 0.1, 0.1, 0.35]
    else:
        start = RISING["monotone" if centre < 0 else "mirrored"]
    probability = start[path[0]]
    for before, level in itertools.pairwise(path):
        if rises == 0:
            neighbours = [k for k in (before - 1, before + 1) if 0 <= k < LEVELS]
            anew = 0.5 * (level in neighbours) / len(neighbours) + 0.5 * start[level]
        else:
            steps = {0: [0, 0.5, 0.2, 0.15, 0.15], 1: [0, 0, 0.6, 0.2, 0.2], 2: [0, 0, 0, 0.6, 0.4]}
            anew = (1.0 - ASTRAY) * steps.get(before, [0, 0, 0, 0, 1])[level] + ASTRAY / LEVELS
        probability *= (1.0 - switch) * (level == before) + switch * anew
    return probability


def levels_of(chain, cells, rises, centre):
    """The level of each cell, for a chain from the first cell on, or from the centre outwards."""
    levels = np.array(chain)
    if rises < 0:
        levels = TOP - levels
    if centre < 0:
        return levels
    result = np.full(cells, -1)
    for step, level in enumerate(levels):
        above = (centre + 1) // 2 + step
        below = centre - above
        if above < cells:
            result[above] = level
        if 0 <= below < cells and below != above:
            result[below] = TOP - level
    return result


@pytest.mark.parametrize("switch", [0.0, 0.05, 0.4, 1.0])
@pytest.mark.parametrize(
    ("rises", "centre", "chain"),
    [(0, -1, 4), (1, -1, 4), (-1, -1, 4), (1, 3, 2), (-1, 3, 2), (1, 2, 3), (-1, 2, 3), (1, 4, 3), (1, 1, 3)],
)
def test_the_sum_over_paths_is_that_of_all_paths_one_by_one(switch, rises, centre, chain):
    cells = 4
    emission = np.random.default_rng(1).normal(scale=3.0, size=(cells, LEVELS, 1, 3))
    total, prior = np.zeros(3), 0.0
    for path in itertools.product(range(LEVELS), repeat=chain):
        levels = levels_of(path, cells, rises, centre)
        assert np.all(levels >= 0)  # a chain says the level of every cell
        prior += chance(path, switch, rises, centre)
        total += chance(path, switch, rises, centre) * np.exp(sum(emission[c, levels[c], 0] for c in range(cells)))
    assert prior == pytest.approx(1.0, abs=ROUNDING)
    assert log_sum(one(switch, rises, centre), emission)[0] == pytest.approx(np.log(total), abs=LOG_ROUNDING)


@FIXED
@given(
    st.integers(1, 30),
    st.integers(0, 5),
    st.floats(0.0, 1.0),
    st.sampled_from([-1, 0, 1]),
    st.data(),
    st.integers(0, 100),
)
def test_the_prior_sums_to_one_and_padding_cells_change_nothing(cells, padding, switch, rises, data, seed):
    centre = data.draw(st.integers(-1, 2 * (cells - 1))) if rises else -1
    paths = one(switch, rises, centre)
    assert log_sum(paths, np.zeros((cells, LEVELS, 1, 1)))[0, 0] == pytest.approx(0.0, abs=1e-12)
    emission = np.random.default_rng(seed).normal(scale=5.0, size=(cells, LEVELS, 1, 1))
    padded = np.pad(emission, ((0, padding), (0, 0), (0, 0), (0, 0)))
    assert log_sum(paths, padded)[0, 0] == pytest.approx(log_sum(paths, emission)[0, 0], abs=1e-10)


@pytest.mark.parametrize(("rises", "centre"), [(0, -1), (1, -1), (-1, -1), (1, 119), (-1, 118)])
@pytest.mark.parametrize("switch", [0.03, 0.3])
def test_the_sum_over_paths_survives_large_counts(switch, rises, centre):
    # Labels that no rising path would have are unlikely, never impossible: else bets on them would have no number.
    emission = np.random.default_rng(2).normal(scale=1e6, size=(120, LEVELS, 1, 1))
    assert math.isfinite(log_sum(one(switch, rises, centre), emission)[0, 0])


def test_several_partitions_have_the_sums_that_they_have_alone():
    rng = np.random.default_rng(3)
    paths = PathPriors(np.array([0.3, 0.1, 0.5, 0.2]), np.array([0, 1, -1, 1]), np.array([-1, -1, 6, 7]))
    emission = rng.normal(scale=3.0, size=(8, LEVELS, 4, 2))
    together = log_sum(paths, emission)
    for k in range(4):
        alone = log_sum(paths.only(slice(k, k + 1)), emission[:, :, k : k + 1])
        assert together[k] == pytest.approx(alone[0], abs=LOG_ROUNDING)
    both = PathPriors.concatenated([paths.only(np.array([2, 0])), paths.only(slice(3, 4))])
    assert np.allclose(log_sum(both, emission[:, :, [2, 0, 3]]), together[[2, 0, 3]], atol=LOG_ROUNDING)


# --- from training counts ---


def counts_of(levels, each=40.0, masses=None):
    """Expected training counts of cells at these log-odds of label 1, and none in NaN's cell."""
    right = 1.0 / (1.0 + np.exp(-np.array(levels, dtype=float)))
    draws = each * (np.ones(len(levels)) if masses is None else np.array(masses, dtype=float))
    return np.concatenate([np.stack([draws * (1.0 - right), draws * right]), np.zeros((2, 1))], axis=1)


@pytest.mark.parametrize("order", ["monotone", "mirrored"])
def test_the_training_labels_say_whether_levels_rise_or_fall(order):
    for levels, rises in (([-1, -0.5, 0, 0.5, 1], 1), ([1, 0.5, 0, -0.5, -1], -1), ([0, 0, 0, 0, 1], 1)):
        paths = PathPriors.of_counts([counts_of(levels)], [order], [False])
        assert paths.rises.tolist() == [rises]


def test_free_paths_switch_as_often_whatever_the_cells_and_others_rise_less_often():
    counts = counts_of([0] * 20)
    paths = PathPriors.of_counts([counts] * 4, ["free", "free", "monotone", "mirrored"], [False, True, False, False])
    # 21 cells; 8 do not follow their neighbour, or 80% of rough ones; 5 rise; 3 of 11 mirrored ones
    assert paths.switch.tolist() == pytest.approx([8 / 21, 0.8, 5 / 21, 3 / 11])
    assert paths.rises.tolist() == [0, 0, 1, 1] and paths.centre.tolist() == [-1, -1, -1, 19]


def test_the_centre_is_where_masses_mirror_each_other():
    for masses, centre in (
        ([1, 1, 1, 1], 3),
        ([1, 2, 4, 2, 1], 4),
        ([1, 2, 4, 2, 1, 0, 0], 4),
        ([0.2, 1, 2, 4, 2, 1], 6),
    ):
        paths = PathPriors.of_counts([counts_of([0] * len(masses), masses=masses)], ["mirrored"], [False])
        assert paths.centre.tolist() == [centre]


@pytest.mark.parametrize("order", ORDERS)
def test_no_draws_and_a_single_cell_have_a_prior_too(order):
    for counts in (np.zeros((2, 2)), np.zeros((2, 9)), counts_of([1.0])):
        paths = PathPriors.of_counts([counts], [order], [False])
        assert log_sum(paths, np.zeros((counts.shape[1], LEVELS, 1, 1)))[0, 0] == pytest.approx(0.0, abs=1e-12)


def shares_of_orders(levels, each):
    """Shares of the weights that twins of all three orders have, with the highest level of 1.2 nats among others."""
    counts = counts_of(levels, each)
    paths = PathPriors.of_counts([counts] * 3, ORDERS, [False] * 3)
    train = np.repeat(counts[:, :, None], 3, axis=2)
    components = components_for(1.0, 0.0, np.array([0.05, 0.15, 0.4]))
    prior = np.zeros((3, components.up.shape[1]))
    bets = fit_bets(Book(train, np.zeros_like(train), paths), components, prior, (3,), twins=[0, 0, 0])
    return dict(zip(ORDERS, np.exp(bets.log_weights).sum(axis=1).tolist(), strict=True))


def test_the_labels_decide_between_twins():
    shares = shares_of_orders([-1.2, -1.2, -1.2, -0.7, 0.0, 0.7, 1.2, 1.2, 1.2], 60.0)
    assert shares["mirrored"] > shares["monotone"] > shares["free"] > 0.02
    shares = shares_of_orders([-1.2, -1.2, -1.2, -1.2, -1.2, -1.2, 0.0, 1.2, 1.2], 300.0)  # not mirrored
    assert shares["monotone"] > shares["free"] > 0.02 and shares["monotone"] > shares["mirrored"] > 0.02
    shares = shares_of_orders([1.2, -1.2, -1.2, 1.2, 1.2, -1.2, 1.2, -1.2, 1.2], 60.0)  # neither
    assert shares["free"] > 0.8 and min(shares.values()) > 0.02
