"""Rank trees by brute force: sums over all prunings, and over all assignments of shifts, of small trees."""

import dataclasses
import itertools
import json
import math
import tracemalloc

import numpy as np
import pytest
from scipy import special

from dpaudit.learning.rank_tree import (
    LOG_2,
    SIZES,
    Forest,
    Ordered,
    Shifts,
    Steps,
    pruned_trees,
    shift_likelihoods,
    shift_trees,
)

SAMPLES = {
    "few": ([0.3, 1.5, 1.5, 2.0, 4.0, 7.0, 7.5, 9.0, 9.5, 11.0, 12.0, 13.0], [0, 0, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1]),
    "repeated": ([2.0] * 7 + [5.0] * 6 + [6.0, 8.0], [1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0]),
    "not numbers": ([math.nan] * 5 + [1.0, 2.0, 3.0, math.inf, -math.inf], [1, 1, 1, 1, 0, 0, 0, 1, 0, 0]),
    "equal": ([3.0] * 9, [1, 0, 0, 1, 1, 1, 1, 1, 1]),
}


def ordered(name):
    values, labels = SAMPLES[name]
    return Ordered.of(np.array(values), np.array(labels))


class Node:
    """A cell of a forest's only tree, with its halves."""

    def __init__(self, forest, depth=0, k=0):
        level = forest.levels[depth]
        self.first, self.last = int(level.first[k]), int(level.last[k])
        self.ones, self.draws, self.is_root = int(level.ones[k]), int(level.draws[k]), depth == 0
        at = 2 * int(level.splits[:k].sum())
        self.halves = [Node(forest, depth + 1, at + side) for side in (0, 1)] if level.splits[k] else []
        self.cells = len(level.first)

    def all(self):
        return [self, *itertools.chain.from_iterable(half.all() for half in self.halves)]


def log_likelihoods(node, strengths=SIZES.strengths):
    """Labels of a cell that is a leaf: (likelihood, mean of the next label), averaged over strengths."""
    if node.is_root:
        return 0.5**node.draws, 0.5
    shares = np.array(SIZES.shares[: len(strengths)]) / sum(SIZES.shares[: len(strengths)])
    zeros = node.draws - node.ones
    each = [
        share * math.exp(special.betaln(node.ones + s / 2.0, zeros + s / 2.0) - special.betaln(s / 2.0, s / 2.0))
        for share, s in zip(shares, strengths, strict=True)
    ]
    means = [(node.ones + s / 2.0) / (node.draws + s) for s in strengths]
    return sum(each), sum(w * m for w, m in zip(each, means, strict=True)) / sum(each)


def prunings(node):
    """(prior, leaves) of every pruning below a cell."""
    if not node.halves:
        yield 1.0, (node,)
        return
    yield 0.5, (node,)
    for (p, left), (q, right) in itertools.product(*(list(prunings(half)) for half in node.halves)):
        yield 0.5 * p * q, left + right


@pytest.mark.parametrize("name", SAMPLES)
def test_pruned_trees_are_the_sum_over_all_prunings(name):
    view = ordered(name)
    forest = Forest([view])
    grown = pruned_trees(forest)
    total, mean = 0.0, np.zeros(len(view.values))
    for prior, leaves in prunings(Node(forest)):
        chance = prior * math.prod(log_likelihoods(leaf)[0] for leaf in leaves)
        total += chance
        for leaf in leaves:
            mean[leaf.first : leaf.last] += chance * log_likelihoods(leaf)[1]
    assert grown.evidence[0] == pytest.approx(math.log(total) + LOG_2 * int(view.draws.sum()), abs=1e-10)
    assert grown.steps(0)(view.values) == pytest.approx(mean / total, abs=1e-9)


@pytest.mark.parametrize("name", SAMPLES)
def test_trees_that_hear_what_was_said_are_the_sum_over_all_prunings_and_who_is_believed(name):
    """Each leaf has its one probability, or those that were said of its values; half and half."""
    forest = Forest([ordered(name)])
    ones, draws = np.diff(forest.ones), np.diff(forest.ends)
    said = np.linspace(-1.0, 2.0, len(draws))
    p = special.expit(said)
    total, expected = 0.0, np.zeros(len(draws))
    for prior, leaves in prunings(Node(forest)):
        for believed in itertools.product([False, True], repeat=len(leaves)):
            weight, q = prior * 0.5 ** len(leaves), p.copy()
            for leaf, is_said in zip(leaves, believed, strict=True):
                own = slice(leaf.first, leaf.last)
                if is_said:
                    weight *= np.prod(p[own] ** ones[own] * (1.0 - p[own]) ** (draws[own] - ones[own]))
                else:
                    likelihood, q[own] = log_likelihoods(leaf)
                    weight *= likelihood
            total, expected = total + weight, expected + weight * q
    grown = pruned_trees(forest, said)
    assert grown.evidence[0] == pytest.approx(math.log(total) + LOG_2 * draws.sum())
    assert grown.probabilities == pytest.approx(expected / total)
    assert grown.steps(0)(forest.views[0].values) == pytest.approx(expected / total)


def leaving(node, size, atoms):
    if node.last - node.first == 1 and node.draws >= SIZES.min_atom:
        return min(SIZES.leaving, 0.5 / max(atoms, 1))
    at_end = node.first == 0 or node.last == size
    return min(SIZES.leaving, SIZES.leaving_at_ends if at_end else 0.3 / node.cells)


@pytest.mark.parametrize("base", [0.0, 0.7])
def test_shift_trees_are_the_sum_over_all_shifts_of_all_cells(base, monkeypatch):
    """A tree of two levels of splits: every cell has one of three shifts."""
    small = dataclasses.replace(SIZES, shifts=(-1.0, 0.0, 1.0))
    monkeypatch.setattr("dpaudit.learning.rank_tree.SIZES", small)
    view = Ordered(np.arange(4.0), np.arange(4.0), np.array([3, 4, 5, 3]), np.array([0, 3, 5, 1]))
    forest = Forest([view])
    log_odds = base + np.array([0.0, 0.1, -0.2, 0.3])
    likelihoods = np.exp(shift_likelihoods(log_odds, view.ones, view.draws))
    (found,) = shift_trees(forest, np.log(likelihoods))
    root = Node(forest)
    cells = root.all()
    assert len(cells) == 7
    parent = {id(half): cell for cell in cells for half in cell.halves}
    atoms = int((view.draws >= SIZES.min_atom).sum())
    none, count = small.shifts.index(0.0), len(small.shifts)
    total, of_values = 0.0, np.zeros((4, count))
    for shifts in itertools.product(range(count), repeat=len(cells) - 1):
        of = dict(zip(map(id, cells), (none, *shifts), strict=True))
        chance = 1.0
        for cell in cells[1:]:
            leave = leaving(cell, 4, atoms)
            stays = of[id(cell)] == of[id(parent[id(cell)])]
            chance *= leave / count + (1.0 - leave) * stays
            if not cell.halves:
                chance *= likelihoods[of[id(cell)], cell.first]
        total += chance
        for cell in cells:
            if not cell.halves:
                of_values[cell.first, of[id(cell)]] += chance
    assert found.evidence == pytest.approx(math.log(total / math.prod(likelihoods[none])), abs=1e-5)
    assert len(found.weights) == 4  # no two neighbours say the same here
    assert found.weights == pytest.approx(of_values / total, rel=1e-5)


def test_few_draws_are_split_only_at_the_ends_and_where_a_value_repeats():
    size = 4 * SIZES.min_split_smooth - 4
    each = np.ones(size, dtype=int)
    smooth = Ordered(np.arange(float(size)), np.arange(float(size)), each, 0 * each)
    draws = np.append(each[:-1], 2)
    repeated = Ordered(np.arange(float(size)), np.arange(float(size)), np.roll(draws, size // 2 + 5), 0 * each)
    for view, expected in ((smooth, [True, False, False, True]), (repeated, [True, False, True, True])):
        assert Forest([view]).levels[2].splits.tolist() == expected


def test_likelihoods_of_shifts_are_those_of_coins():
    log_odds, ones, draws = np.array([0.3, -2.0]), np.array([3, 0]), np.array([4, 2])
    found = shift_likelihoods(log_odds, ones, draws)
    for k, shift in enumerate(SIZES.shifts):
        p = special.expit(log_odds + shift)
        assert found[k] == pytest.approx(ones * np.log(p) + (draws - ones) * np.log(1.0 - p), rel=1e-12)


def test_several_views_are_grown_as_each_alone():
    views = [ordered(name) for name in SAMPLES]
    together = pruned_trees(Forest(views))
    for k, view in enumerate(views):
        alone = pruned_trees(Forest([view]))
        assert together.evidence[k] == pytest.approx(alone.evidence[0], abs=1e-12)
        assert together.steps(k)(view.values) == pytest.approx(alone.steps(0)(view.values), abs=1e-12)


def test_what_labels_do_not_follow_tells_nothing():
    grown = pruned_trees(Forest([ordered("equal")]))
    assert grown.evidence[0] == pytest.approx(0.0, abs=1e-12) and grown.steps(0).probabilities.tolist() == [0.5]


@pytest.mark.parametrize("name", SAMPLES)
def test_steps_and_shifts_are_read_back_as_they_were(name):
    view = ordered(name)
    forest = Forest([view])
    asked = np.array([-math.inf, -1.0, 0.3, 1.7, 2.0, 5.0, 8.8, 100.0, math.inf, math.nan])
    steps = pruned_trees(forest).steps(0)
    again = Steps.from_dict(json.loads(json.dumps(steps.to_dict())))
    np.testing.assert_array_equal(again(asked), steps(asked))
    told_of_values = shift_likelihoods(np.zeros(len(view.values)), view.ones, view.draws)
    (shifts,) = shift_trees(forest, told_of_values)
    back = Shifts.from_dict(json.loads(json.dumps(shifts.to_dict())))
    log_odds = np.linspace(-3.0, 3.0, len(asked))
    np.testing.assert_array_equal(back(asked, log_odds), shifts(asked, log_odds))
    assert np.all((steps(asked) > 0.0) & (steps(asked) < 1.0))


def test_neighbours_that_no_cell_tells_apart_are_one_value_and_edges_lie_between_such():
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.normal(size=2_000), np.full(9, 0.25), np.full(2, -0.5)])
    labels = (rng.random(len(values)) < special.expit(2.0 * values)).astype(np.intp)
    view = Ordered.of(values, labels)
    assert len(view.values) < len(values) / 5
    assert view.draws.max() == 9  # the atom; of others at most half of what a cell in the middle needs to split
    assert (view.draws[:16] == 1).all()
    assert (view.draws[-16:] == 1).all()
    inside = (values[:, None] >= view.first) & (values[:, None] <= view.values)
    assert (inside.sum(axis=1) == 1).all()
    assert inside.sum(axis=0).tolist() == view.draws.tolist()
    assert inside[labels == 1].sum(axis=0).tolist() == view.ones.tolist()
    steps = pruned_trees(Forest([view])).steps(0)
    assert len(steps.edges) > 3
    assert (steps(view.first) == steps(view.values)).all()


def test_a_tree_on_many_counted_draws_takes_no_memory_for_each_of_them():
    counts = np.full((2, 256), 40_000)  # 20 million draws; a table of them all took 2 GiB
    tracemalloc.start()
    tree = pruned_trees(Forest([Ordered.of_counts(counts)])).steps(0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.allclose(tree.probabilities, 0.5, rtol=0.0, atol=1e-12)  # each cell has both labels as often: rounding
    assert peak < 64 << 20
