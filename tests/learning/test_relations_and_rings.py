"""Relations of two parts of a row, and rings about a centre that nobody told: planted ones are found, noise has none.

Draws come from fixed seeds. What is asserted of them is no rate; where chance decides, a comment says how far it is.
"""

import math

import numpy as np
import pytest

from dpaudit.bench.gallery.table_laws import equal_counts, near_columns, step_on_a_grid, thick_ring
from dpaudit.learning.kinds import multiples, relations, rings
from dpaudit.learning.reductions import Gap, Own, Residue
from dpaudit.learning.training import Training

RNG = np.random.default_rng


def draws(law, size, seed, **options):
    first, second = (law(x, size, RNG((seed, x)), **options).reshape(size, -1) for x in (1, 0))
    return Training(first, second)


@pytest.mark.parametrize("width", [1e-2, 1e-4])
def test_two_columns_that_are_close_are_found_among_many(width):
    # 60 of 600 draws of x within a width that holds 0.28 * 1e-2 of the others: two of these at most.
    found = list(relations.propose(draws(near_columns, 600, 1, columns=12, width=width)))
    assert set(found[0].reduction.columns) == {1, 10}


@pytest.mark.parametrize("columns", [20, 120])
def test_columns_that_are_equal_by_chance_too_are_compared_by_label(columns):
    # 0.11 of x against 0.01, of 1,000 draws each: 9.4 deviations, of which 6.4 are asked for.
    found = list(relations.propose(draws(equal_counts, 1_000, 2, columns=columns)))
    assert [one.reduction.columns for one in found] == [(columns - 5, columns - 3)]


@pytest.mark.parametrize("dimensions", [2, 3])
def test_a_step_of_a_path_on_a_grid_is_found(dimensions):
    found = list(relations.propose(draws(step_on_a_grid, 500, 3, dimensions=dimensions)))
    columns = tuple(range(2 * dimensions, 4 * dimensions))
    assert found[0].reduction == Gap(columns)
    inside = found[0].reduction(np.concatenate([np.zeros((1, 2 * dimensions)), np.zeros((1, 4 * dimensions))], axis=1))
    assert inside.tolist() == [0.0]


@pytest.mark.parametrize("centre", [(3.0, -1.0), (2.0, 0.5)])
def test_a_thick_ring_is_found_about_any_centre(centre):
    # 300 of 3,000 draws of x on it: an annulus of a hundredth holds 12 of the others.
    found = list(rings.propose(draws(thick_ring, 3_000, 4, centre=centre, thickness=1e-3)))
    assert found and found[0].name.startswith("spikes in rings")
    assert math.dist(found[0].reduction.centre, centre) < 0.05


@pytest.mark.parametrize(("unit", "step"), [(1.0, 1_000.0), (1e-3, 0.01)])
def test_a_few_multiples_of_a_step_are_found_among_many_residues(unit, step):
    # 40 of 800 draws of x and hardly any other, of 1,000 residues or ones that no double tells: 6.4 deviations, of
    # which at most 5.2 are asked for.
    values = np.floor(RNG(7).exponential(1e8, size=(2, 800, 1))) if unit == 1.0 else RNG(7).normal(size=(2, 800, 1))
    values[0, :40] = step * np.rint(values[0, :40] / step)
    found = list(multiples.propose(Training(*values)))
    assert found[0].reduction == Residue(Own(0), step)
    assert list(multiples.propose(Training(values[1, ::2], values[1, 1::2]))) == []


def test_noise_has_neither():
    # By chance a window of four draws a label, or of eight about one of some hundred centres: rarer than one in 100.
    for seed in range(3):
        noise = RNG(seed).normal(size=(2, 400, 8))
        assert list(relations.propose(Training(*noise))) == []
        assert list(rings.propose(Training(*noise[:, :, :2]))) == []
    same = draws(step_on_a_grid, 400, 5, dimensions=2)
    # The grid under both labels tells nothing, but is a place where draws are dense: a gap, or a residue of one.
    shared = list(relations.propose(Training(same.numbers[:400:2], same.numbers[1:400:2])))
    assert shared and all(isinstance(one.reduction, Gap) or "modulo" in one.name for one in shared)


@pytest.mark.parametrize("columns", [1, 2, 6, 12])
def test_what_is_no_number_is_no_error(columns):
    for value in (np.nan, np.inf, 0.0, 1e300):
        rows = np.full((300, columns), value)
        for kind in (multiples, relations, rings):
            assert list(kind.propose(Training(rows, rows))) == []
    mixed = RNG(6).normal(size=(2, 300, columns))
    mixed[:, ::3] = np.nan
    mixed[:, 1::3, 0] = np.inf
    for kind in (multiples, relations, rings):
        list(kind.propose(Training(*mixed)))  # and nothing warns


def test_points_near_circles_are_counted_as_one_by_one(monkeypatch):
    monkeypatch.setattr(rings, "AT_ONCE", 7)  # several blocks, the last one shorter
    rng = np.random.default_rng(5)
    points, centres, radius = rng.normal(size=(rings.FIRST, 3)), rng.normal(size=(50, 3)), rng.random(50) + 0.5
    squares = np.square(points[None] - centres[:, None]).sum(axis=2) - np.square(radius)[:, None]
    expected = (np.abs(squares) < 2.0 * rings.NEAR * radius[:, None]).sum(axis=1)
    assert np.array_equal(rings._on(points, centres, radius), expected) and expected.max() > expected.min()


@pytest.mark.parametrize("draws", [40, 400])
def test_the_clearest_window_is_that_of_a_search_through_all(draws):
    labels = np.random.default_rng(6).random((3, draws)) < 0.5
    labels[1, draws // 2 : draws // 2 + 8] = True
    sizes, starts, ratios = rings._clearest(labels)
    assert sizes.tolist() == [k for k in rings.WINDOWS if 4 * k <= draws] and starts.shape == ratios.shape
    for row, k in enumerate(sizes.tolist()):
        for centre, own in enumerate(labels.astype(int)):
            places = range(k, draws - 2 * k + 1, max(1, k // 4))
            apart = [abs(3 * own[at : at + k].sum() - own[at - k : at + 2 * k].sum()) for at in places]
            shares = [own[at - k : at + 2 * k].sum() * (3 * k - own[at - k : at + 2 * k].sum()) for at in places]
            merits = [a * a / max(share, 1) for a, share in zip(apart, shares, strict=True)]
            assert starts[row, centre] == places[int(np.argmax(merits))] and np.isfinite(ratios[row, centre])
