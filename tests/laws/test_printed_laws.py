"""Laws as the papers print them: where they hold, a search that found nothing; where not, a smallest counterexample.

Finite mechanisms and exact sums; no statistics. What holds instead of a refuted statement is checked beside it.
"""

import itertools
import math

import numpy as np
import pytest

from dpaudit import strategies
from dpaudit.laws import finite


def both_ways(table):
    return np.maximum(table, np.swapaxes(table, -2, -1))


# ---- conditioning (constrained DP, section 3) ------------------------------------------------------------------------


# ---- imaging (constrained DP, section 3) -----------------------------------------------------------------------------


# ---- group privacy (utility first vs. privacy first, sections 3.2 and 3.6) -------------------------------------------


# ---- embeddings (metric query release, section 4) --------------------------------------------------------------------


def stub(rng, points, size):
    """A random mechanism on all datasets of `size` points, with the largest loss of two that differ in one point."""
    data = list(itertools.product(range(points), repeat=size))
    rows = strategies.random_mechanisms(rng, 1, len(data), 3)[0]
    losses = finite.losses(rows)
    adjacent = np.array([[sum(a != b for a, b in zip(x, y, strict=True)) == 1 for y in data] for x in data])
    return {x: k for k, x in enumerate(data)}, rows, losses[adjacent].max()


@pytest.mark.claim("MQ-T8", "MQ-S8")
def test_a_map_of_single_points_before_a_private_mechanism_costs_nothing():
    for seed in range(1_000):
        rng = np.random.default_rng([17, seed])
        number, rows, epsilon = stub(rng, 2, 2)
        embedding = rng.integers(0, 2, size=4)  # four points of a space, to two
        data = list(itertools.product(range(4), repeat=2))
        derived = rows[[number[tuple(embedding[list(x)])] for x in data]]
        adjacent = np.array([[sum(a != b for a, b in zip(x, y, strict=True)) == 1 for y in data] for x in data])
        assert finite.losses(derived)[adjacent].max() <= epsilon


@pytest.mark.claim("MQ-T8")
def test_a_map_that_looks_at_all_points_costs_more():
    # Each point is sent to 1 if any point is above 1: one changed point changes both images, and costs 2 epsilon.
    keep = math.e / (1.0 + math.e)
    one = np.array([[keep, 1.0 - keep], [1.0 - keep, keep]])
    mechanism = finite.in_parallel(one, one)  # on two bits, one changed bit costs 1
    before, after = mechanism[0], mechanism[3]  # (0, 0) -> 0, 0 and (2, 0) -> 1, 1
    assert finite.losses(np.stack([before, after])).max() == pytest.approx(2.0)


# ---- the summary table (constrained DP, table 1) ---------------------------------------------------------------------

LEFT, RIGHT = np.array([1.0, 1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0, 1.0])


def largest(rows):
    return finite.losses(rows).max(axis=(-2, -1))
