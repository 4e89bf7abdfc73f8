"""Counts in a tree: projections, TopDown, exact draws given the sums, and Metropolis-Hastings with inequalities."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampler_checks import DRAWS, is_drawn_from
from scipy import integrate, stats
from support.refusals import refusals

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import PureDP
from dpaudit_mechanisms.constrained.diagnostics import effective_sample_size, split_r_hat
from dpaudit_mechanisms.constrained.hierarchy import (
    Hierarchy,
    HierarchyConditioned,
    HierarchyImaged,
)
from dpaudit_mechanisms.constrained.metropolis import Chains, HierarchyMetropolis, Inequalities
from dpaudit_mechanisms.faulty.constrained import HierarchyForgetsTheLevels, MetropolisStartsAtTheTruth

SEEDS = st.integers(0, 2**32)
SMALL = Hierarchy.of_sizes([1, 2])
COUNTS = np.array([3.0, 0.0, 1.0])
TAXI = Hierarchy.of_sizes([43, 61, 1, 69, 69, 20])


@st.composite
def trees(draw):
    """Trees of two to four levels with up to 12 leaves."""
    if draw(st.booleans()):
        return Hierarchy.flat(draw(st.integers(1, 5)))
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    if draw(st.booleans()):
        return Hierarchy.of_sizes(sizes)
    two = Hierarchy.of_sizes(sizes)  # each leaf gets one or two children: four levels
    more = draw(st.lists(st.integers(1, 2), min_size=two.leaves, max_size=two.leaves))
    first = two.nodes - two.leaves
    return Hierarchy([*two.parents, *np.repeat(np.arange(first, two.nodes), more).tolist()])


# ---- the tree -------------------------------------------------------------------------------------------------------


@pytest.mark.claim("CD-F3")
@given(trees(), SEEDS)
def test_nodes_are_the_sums_of_their_children_and_of_their_leaves(tree, seed):
    counts = np.random.default_rng(seed).normal(size=tree.leaves)
    nodes = tree.totals(counts)
    for node in range(tree.nodes):
        below = tree.children(node)
        if below.size:
            assert nodes[node] == pytest.approx(nodes[below].sum())
    assert nodes[-tree.leaves :] == pytest.approx(counts)
    equalities = tree.equalities()
    assert equalities.contains(nodes[None])[0]
    assert equalities.dimension == tree.leaves and equalities.rank == tree.nodes - tree.leaves


@pytest.mark.claim("CD-S9")
@given(trees(), SEEDS)
def test_the_image_is_the_projection_onto_the_equalities(tree, seed):
    points = np.random.default_rng(seed).normal(size=(4, tree.nodes)) * 5.0
    assert tree.image(points) == pytest.approx(tree.equalities().project(points), abs=1e-9)


@given(trees(), SEEDS, st.booleans())
def test_top_down_is_consistent_and_keeps_the_root(tree, seed, non_negative):
    points = np.random.default_rng(seed).normal(size=(4, tree.nodes)) * 5.0
    released = tree.top_down(points, non_negative)
    assert tree.equalities().contains(released).all()
    expected = np.maximum(points[:, 0], 0.0) if non_negative else points[:, 0]
    assert released[:, 0] == pytest.approx(expected)
    if non_negative:
        assert released.min() >= 0.0
    consistent = tree.totals(np.abs(points[:, : tree.leaves]))
    assert tree.top_down(consistent, non_negative) == pytest.approx(consistent, abs=1e-9)  # nothing to do


# ---- exact draws given the sums -------------------------------------------------------------------------------------


@pytest.mark.claim("CD-L3.3")
@pytest.mark.parametrize("tree", [Hierarchy.flat(3), SMALL, TAXI], ids=["flat", "small", "taxi"])
def test_a_record_costs_epsilon_and_the_twin_forgets_levels(tree):
    mechanism, twin = HierarchyConditioned(0.5, tree), HierarchyForgetsTheLevels(0.5, tree)
    assert mechanism.claim == PureDP(0.5) == twin.claim
    for pair in mechanism.pairs():
        assert mechanism.privacy_loss(pair.x, pair.x_prime) == pytest.approx(0.5)
        assert twin.privacy_loss(pair.x, pair.x_prime) == pytest.approx(0.5 * tree.levels)
        draws = mechanism.sample(pair.x, 20, np.random.default_rng(1))
        ratios = mechanism.log_density(pair.x, draws) - mechanism.log_density(pair.x_prime, draws)
        assert np.abs(ratios).max() <= 0.5 * (1.0 + 1e-9)
        truth, other = mechanism.nodes(pair.x), mechanism.nodes(pair.x_prime)
        far = truth + 1e3 * (truth - other)  # the loss is reached along the line through both
        assert mechanism.log_density(pair.x, far[None])[0] - mechanism.log_density(pair.x_prime, far[None])[0] == (
            pytest.approx(0.5)
        )
    assert (mechanism.log_density(pair.x, draws + 1.0) == -np.inf).all()  # off the sums
    assert f"loss {0.5 * tree.levels:g} nats" in twin.fault


def small_moments():
    """E of u^2 for leaves, middle nodes and root of SMALL at scale 1, by a grid in the three leaves."""
    grid = np.linspace(-12.0, 12.0, 97)
    leaves = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), axis=-1).reshape(-1, 3)
    nodes = SMALL.totals(leaves)
    weights = np.exp(-np.abs(nodes).sum(axis=1))
    return (weights[:, None] * nodes**2).sum(axis=0) / weights.sum()


@pytest.mark.claim("CD-A1")
def test_exact_draws_and_chains_have_the_moments_of_the_density():
    """Means of squares of 100,000 draws. The largest kurtosis is below 8, so that 6 standard errors are 5%; so are
    those of chains of at least 20,000 effective draws at 11%. The grid's own error is below 1%."""
    expected = small_moments()
    mechanism, rng = HierarchyConditioned(3.0, SMALL), np.random.default_rng(20_261_543)  # scale 1
    draws = mechanism.sample(COUNTS, 100_000, rng) - SMALL.totals(COUNTS)
    assert (draws**2).mean(axis=0) == pytest.approx(expected, rel=0.06)
    assert (1.15**2 * draws**2).mean(axis=0) != pytest.approx(expected, rel=0.06)  # control: a larger scale
    chains = HierarchyMetropolis(3.0, SMALL).chains(COUNTS, 400, 250, rng)[:, 20:] - SMALL.totals(COUNTS)
    for node in range(SMALL.nodes):
        assert split_r_hat(chains[:, :, node]) < 1.05
        assert effective_sample_size(chains[:, :, node]) > 8_000
    assert (chains**2).mean(axis=(0, 1)) == pytest.approx(expected, rel=0.12)


# ---- inequalities ---------------------------------------------------------------------------------------------------


@pytest.mark.claim("CD-A1", "CD-S17")
def test_chains_with_non_negative_counts_have_the_law_of_rejection():
    """A tree of three leaves, two of them with small counts: means of both samplers, 7 standard errors of 20,000 draws
    and of chains of at least 5,000 effective ones (each node has a standard deviation below 2 scales)."""
    rng, scale = np.random.default_rng(20_261_545), 2.0
    mechanism = HierarchyMetropolis(3.0, SMALL, non_negative=True)
    assert mechanism.scale == scale and mechanism.claim == PureDP(3.0)
    proposals = HierarchyConditioned(1.5, SMALL).sample(COUNTS, 200_000, rng)  # the same scale without inequalities
    rejected = proposals[(proposals >= 0.0).all(axis=1)]
    assert len(rejected) > 20_000
    chains = mechanism.chains(COUNTS, 400, 300, rng)[:, 50:]
    assert chains.min() >= 0.0
    assert (np.abs(chains[:, :, 0] - chains[:, :, 3:].sum(axis=2)) < 1e-9).all()
    for node in range(SMALL.nodes):
        size = effective_sample_size(chains[:, :, node])
        assert size > 5_000 and split_r_hat(chains[:, :, node]) < 1.05
        limit = 7.0 * 2.0 * scale * math.sqrt(1.0 / size + 1.0 / len(rejected))
        assert abs(chains[:, :, node].mean() - rejected[:, node].mean()) < limit
        if node in (0, 4):  # control: without limits the root and the leaf without a record are elsewhere
            assert abs(chains[:, :, node].mean() - proposals[:, node].mean()) > limit


def test_general_inequalities_are_kept_and_change_with_single_leaves():
    """A row over several nodes: twice the first leaf less the root is at least -1."""
    row = np.zeros((1, SMALL.nodes))
    row[0, 0], row[0, 3] = -1.0, 2.0
    limits = Inequalities(SMALL, row, [-1.0])
    assert limits.by_leaf().tolist() == [[1.0, -1.0, -1.0]]
    start = np.tile([3.0, 1.0, 1.0], (50, 1))
    running, rng = Chains(SMALL, SMALL.totals(COUNTS), 1.0, start, limits), np.random.default_rng(20_261_546)
    for _ in range(50):
        running.sweep(rng)
        assert (running.states() @ row[0] >= -1.0 - 1e-9).all()
    assert 0 < running.accepted < running.proposed
    with pytest.raises(UsageError, match="start must satisfy the inequalities"):
        Chains(SMALL, SMALL.totals(COUNTS), 1.0, [[0.0, 3.0, 3.0]], limits)
    limits = Inequalities.non_negative(SMALL)
    for leaf in range(SMALL.leaves):  # each of them is asked, in every chain
        start = np.ones((3, SMALL.leaves))
        start[-1, leaf] = -0.5
        with pytest.raises(UsageError, match=r"start must satisfy the inequalities, got a slack of -0\.5"):
            Chains(SMALL, SMALL.totals(COUNTS), 1.0, start, limits)


@pytest.mark.claim("CD-S7")
@pytest.mark.parametrize("count", [0.0, 1.0, 4.0])
def test_the_exact_gamma_of_a_non_negative_leaf_under_a_root(count):
    """One leaf and its root: noise of half the scale in one variable, the interval of `ConditionedLaplace`.

    gamma of one more record is log((1 - e^(-2(x+1)/s) / 2) / (1 - e^(-2x/s) / 2)) over 2 / s: below 1, so that twice
    the scale is more than enough.
    """
    scale = 4.0  # levels / epsilon at epsilon = 1/2

    def mass(x):
        return 1.0 - 0.5 * math.exp(-2.0 * x / scale)

    def density(u, x):
        return math.exp(-2.0 * abs(u) / scale) / scale / mass(x)

    ends = (-count, 0.0, 80.0)
    total = sum(integrate.quad(density, a, b, args=(count,))[0] for a, b in itertools.pairwise(ends))
    assert total == pytest.approx(1.0, abs=1e-8)
    gamma = math.log(mass(count + 1.0) / mass(count)) / (2.0 / scale)
    assert 0.0 < gamma < 1.0
    mechanism = HierarchyMetropolis(1.0, Hierarchy.flat(1), non_negative=True, sweeps=60)
    assert mechanism.scale == scale  # 2 * levels / epsilon
    assert mechanism.gamma([count], [count + 1.0]) == pytest.approx(gamma, abs=1e-4)  # a grid of 1/100
    draws = mechanism.sample([count], DRAWS, np.random.default_rng(20_261_547))[:, 0] - count

    def cdf(u):
        low = stats.laplace.cdf(-count, scale=scale / 2.0)
        return (stats.laplace.cdf(u, scale=scale / 2.0) - low) / (1.0 - low)

    assert is_drawn_from(draws, cdf)  # false alarm rate 1e-10 each; 60 sweeps leave far less than the test's 0.015


# ---- degenerate cases -----------------------------------------------------------------------------------------------


test_what_makes_no_sense_is_refused = refusals(
    (lambda: Hierarchy([0, 0]), "parents must"),
    (lambda: Hierarchy.of_sizes([2.5]), r"sizes\[0\] must"),
    (lambda: Hierarchy.flat(0), "leaves must"),
    (lambda: HierarchyImaged(1.0, [-1, 0]), "tree must"),
    (lambda: Hierarchy([-1, 0, 3, 0]), "parents must"),
    (lambda: Hierarchy([-1, 0, 0, 1]), "all leaves on the last level"),
    (lambda: HierarchyConditioned(1.0, Hierarchy([-1, 0, 1, 2])), "tree must"),
    (lambda: HierarchyConditioned(1.0, SMALL).sample([1.0], 1, None), "data must"),
    (lambda: HierarchyConditioned(1.0, SMALL).sample([1.0, 1.0, np.inf], 1, None), "data must"),
    (lambda: HierarchyMetropolis(1.0, SMALL, non_negative=True).sample([-1.0, 0.0, 0.0], 1, None), "non-negative"),
    (lambda: HierarchyMetropolis(1.0, SMALL, sweeps=0), "sweeps must"),
    (lambda: HierarchyImaged(0.0, SMALL), "epsilon must"),
)


def test_rounding_makes_no_released_count_negative():
    """Slacks of the inequalities add up roundings of their own: a state of -1e-16 satisfies them."""

    class Rounded:
        def states(self):
            return SMALL.totals([[-1e-16, 2.0, 1.0]])

    released = HierarchyMetropolis(1.0, SMALL, non_negative=True)._released(Rounded())
    assert released.min() == 0.0 and (released == SMALL.totals([[0.0, 2.0, 1.0]])).all()
    assert HierarchyMetropolis(1.0, SMALL)._released(Rounded()).min() == -1e-16


def test_the_chain_that_starts_at_the_truth_stays_there_now_and_then():
    twin = MetropolisStartsAtTheTruth(1.0, SMALL)
    draws = twin.sample(COUNTS, 2_000, np.random.default_rng(20_261_549))
    assert (draws == SMALL.totals(COUNTS)).all(axis=1).any() and "loss inf" in twin.fault
    sound = HierarchyMetropolis(1.0, SMALL, sweeps=5).sample(COUNTS, 2_000, np.random.default_rng(20_261_549))
    assert not (sound == SMALL.totals(COUNTS)).any()
