"""Noise budgets of datacubes: closed forms, the convex program, groups, and budgets that know the recovery."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import refusals

from dpaudit.privacy.claims import GaussianDP, PureDP
from dpaudit_mechanisms.datacubes import (
    DatacubeRelease,
    Domain,
    FourierStrategy,
    HaarStrategy,
    MatrixStrategy,
    SketchStrategy,
    Workload,
    all_and_half,
    all_and_with_attribute,
    all_marginals,
    base_counts,
    clusters,
    convex_budgets,
    fair_column_weights,
    find_grouping,
    greedy_grouping,
    group_constants,
    hierarchy,
    joint_budgets,
    least_variance,
    optimal_budgets,
    tree_rows,
    uniform_budgets,
    workload_itself,
)
from dpaudit_mechanisms.datacubes.budgets import noise_variances, norm

SEEDS = st.integers(0, 2**32)
ORDERS = st.sampled_from([1, 2])
POSITIVE = st.floats(1e-3, 1e3)
CLAIMS = {1: PureDP(1.0), 2: GaussianDP(1.0)}
# Three groupings of three columns into a single one and a pair: no weights of columns give both half of the weight.
UNFAIR = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 0], [0, 0, 1], [1, 0, 1], [0, 1, 0]])
FIGURE_1 = Workload(Domain.binary(3), [(0,), (0, 1)])


# ---- closed forms ---------------------------------------------------------------------------------------------------


@pytest.mark.claim("DC-EQ4", "DC-C3.3.L", "DC-C3.3.G")
@given(st.lists(st.tuples(POSITIVE, POSITIVE), min_size=1, max_size=6), ORDERS, POSITIVE, SEEDS)
def test_optimal_budgets_are_tight_and_no_other_feasible_ones_are_better(groups, order, total, seed):
    costs, constants = np.array(groups).T
    eta = optimal_budgets(costs, constants, order, total)
    assert norm(constants * eta, order) == pytest.approx(total)
    value = costs @ noise_variances(eta, order)
    assert value == pytest.approx(least_variance(costs, constants, order, total))
    rng = np.random.default_rng(seed)
    for _ in range(20):
        other = eta * rng.uniform(0.5, 2.0, len(eta))
        other *= total / norm(constants * other, order)
        assert costs @ noise_variances(other, order) >= value * (1.0 - 1e-12)
    even = uniform_budgets(constants, order, total)
    assert norm(constants * even, order) == pytest.approx(total) and np.ptp(even) == 0.0
    # an independent solver of the same program, with its own proof: one column that all groups are in
    found = convex_budgets(costs, constants[:, None], order, total)
    assert found.budgets == pytest.approx(eta, rel=1e-4)
    assert found.value == pytest.approx(value, rel=1e-8) and found.lower_bound == pytest.approx(value, rel=1e-8)


test_what_makes_no_sense_is_refused = refusals(
    (lambda: optimal_budgets([1.0], [1.0], 3), "order must"),
    (lambda: optimal_budgets([0.0], [1.0], 1), "costs must"),
    (lambda: optimal_budgets([1.0], [0.0], 1), "constants must"),
    (lambda: convex_budgets([1.0], [[1.0]], 3), "order must"),
    (lambda: convex_budgets([-1.0], [[1.0]], 1), "costs must"),
    (lambda: convex_budgets([1.0, 1.0], [[1.0], [0.0]], 1), "columns must"),
    (lambda: group_constants([[1.0]], [1]), "groups must"),
    (lambda: clusters(FIGURE_1, "best"), "budgets must"),
    (lambda: clusters(FIGURE_1, order=3), "order must"),
    (lambda: joint_budgets(FourierStrategy(FIGURE_1), FIGURE_1, 1), "strategy must"),
    (lambda: joint_budgets(workload_itself(FIGURE_1), FIGURE_1, 0), "order must"),
)


# ---- any matrix -----------------------------------------------------------------------------------------------------


@st.composite
def matrices(draw, entries=(-2.0, -1.0, 0.0, 0.0, 1.0, 3.0)):
    shape = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    rows = st.lists(st.sampled_from(entries), min_size=shape[1], max_size=shape[1]).filter(any)
    return np.array(draw(st.lists(rows, min_size=shape[0], max_size=shape[0])))


@pytest.mark.claim("DC-EQ1")
@given(matrices(), ORDERS, SEEDS)
def test_convex_budgets_are_feasible_tight_and_optimal(matrix, order, seed):
    costs = np.random.default_rng(seed).uniform(0.1, 10.0, len(matrix))
    found = convex_budgets(costs, matrix, order, total=2.0)
    kept = (np.abs(matrix.T) ** order @ found.budgets**order) ** (1.0 / order)
    assert kept.max() == pytest.approx(2.0)
    assert costs @ noise_variances(found.budgets, order) == pytest.approx(found.value)
    assert found.lower_bound <= found.value * (1.0 + 1e-9)
    assert found.lower_bound >= found.value * (1.0 - 1e-7)


@pytest.mark.parametrize("order", [1, 2])
def test_the_gap_is_as_small_where_costs_are_of_many_sizes(order):
    for seed in range(25):
        rng = np.random.default_rng(20_261_130 + seed)
        changes = rng.normal(size=rng.integers(2, 12, size=2))
        found = convex_budgets(10.0 ** rng.uniform(-6.0, 6.0, len(changes)), changes, order)
        assert (np.abs(changes.T) ** order @ found.budgets**order).max() <= 1.0 + 1e-12
        assert found.lower_bound >= found.value * (1.0 - 1e-7)


@pytest.mark.claim("DC-D3.2", "DC-S6")
def test_a_matrix_strategy_has_the_budgets_of_its_implicit_twin():
    domain = Domain.binary(3)
    workload = all_and_with_attribute(domain, 1)
    of_marginals = (base_counts(domain), workload_itself(workload), FourierStrategy(workload), clusters(workload))
    for strategy in (*of_marginals, HaarStrategy(domain)):
        recovery = strategy.initial(np.eye(strategy.rows), workload).T
        written = MatrixStrategy(domain, strategy.matrix(), recovery)
        assert written.column_weights is not None
        costs = np.split(written.costs(workload), np.cumsum(strategy.group_sizes)[:-1])
        assert [np.ptp(of_group) for of_group in costs] == pytest.approx(
            [0.0] * strategy.groups
        )  # consistent with them
        for order, claim in CLAIMS.items():
            rows = strategy.spread(strategy.optimal(workload, order))
            assert written.optimal(workload, order) == pytest.approx(rows / norm(rows, 1) * norm(
                written.optimal(workload, order), 1))  # fmt: skip
            # DC-T3.4: the convex program over the budgets of all rows has nothing better
            best = convex_budgets(written.costs(workload), written.entries, order)
            release = DatacubeRelease(workload, strategy, claim, recovery="initial")
            assert release.total_variance() == pytest.approx(best.value, rel=1e-6)


@pytest.mark.claim("DC-G3")
def test_trees_over_any_number_of_cells_are_grouped_by_levels():
    for cells, fan_out in ((1, 2), (2, 2), (3, 2), (5, 2), (8, 2), (7, 3)):
        rows = tree_rows(cells, fan_out)
        depth = math.ceil(round(math.log(cells, fan_out), 9))
        assert find_grouping(rows).max() + 1 == depth + 1 == rows.sum(axis=0).max() == rows.sum(axis=0).min()
        if cells > 1:
            without_root = tree_rows(cells, fan_out, root=False)
            assert len(without_root) == len(rows) - 1 and find_grouping(without_root).max() + 1 == depth
    assert (tree_rows(8) == hierarchy(Domain.binary(3)).matrix()).all()


def test_a_row_that_no_neighbour_changes_costs_nothing():
    domain = Domain([4])
    workload = all_marginals(domain, 1)
    strategy = MatrixStrategy(domain, tree_rows(4))
    release = DatacubeRelease(workload, strategy, PureDP(1.0), adjacency="replace_one")
    assert release.eta[0] == release.eta.max() > 0.0  # the total
    assert release.strategy.sensitivity(release.eta, 1, "replace_one") == pytest.approx(1.0)
    total = MatrixStrategy(domain, np.ones((1, 4)))
    assert total.optimal(Workload(domain, [()]), 1, "replace_one").tolist() == [1.0]


@pytest.mark.parametrize("order", [1, 2])
def test_replaced_records_have_budgets_of_their_own_in_a_matrix_strategy(order):
    """The coefficients of figure 1: the total does not change, and characters change in half of the pairs."""
    workload = all_and_half(Domain.binary(3), 1)
    fourier = FourierStrategy(workload)
    rows = fourier.matrix()[1:]  # without the total, which needs no noise where records are replaced
    one_way = Workload(workload.domain, workload.sets)
    recovery = fourier.initial(np.eye(fourier.rows), one_way).T[:, 1:]
    changes = MatrixStrategy(workload.domain, rows, recovery).changes("replace_one")
    costs = (recovery**2).sum(axis=0)
    best = convex_budgets(costs, changes, order)
    closed = fourier.optimal(workload, order)[1:]
    closed /= fourier.sensitivity([0.0, *closed], order, "replace_one")
    factor = 2.0 if order == 1 else 1.0
    assert best.lower_bound <= best.value <= factor * float((costs / closed**2).sum()) * (1.0 + 1e-9)
    kept = (np.abs(changes * best.budgets[:, None]) ** order).sum(axis=0) ** (1.0 / order)
    assert kept.max() == pytest.approx(1.0)


@pytest.mark.claim("DC-L3.2.b", "DC-T3.4")
def test_equal_budgets_within_groups_are_optimal_exactly_where_the_columns_have_fair_weights():
    groups = find_grouping(UNFAIR)
    assert groups.tolist() == [0, 0, 1, 1, 2, 2] and group_constants(UNFAIR, groups).tolist() == [1.0] * 3
    assert fair_column_weights(UNFAIR, groups) is None
    # b + 2 a = 1 for the budgets b of single cells and a of pairs (their squares, for normal noise), and b = c a
    c, root = 2.0 ** (1.0 / 3.0), 2.0**0.5
    for order, unequal in ((1, 6.0 * (2.0 + c) ** 2 * (1.0 + c**-2)), (2, 3.0 * (2.0 + root) * (1.0 + 1.0 / root))):
        equal = least_variance([2.0] * 3, [1.0] * 3, order)
        best = convex_budgets(np.ones(6), UNFAIR, order)
        assert equal == pytest.approx({1: 108.0, 2: 18.0}[order])
        assert best.value == pytest.approx(unequal) and best.lower_bound == pytest.approx(unequal)
        assert best.value < 0.98 * equal
    # R = I: the workload is the rows themselves, and the strategy chooses the better budgets by itself
    rng, compared = np.random.default_rng(7), 0
    for _ in range(60):
        matrix = random_partitions(rng)
        labels = find_grouping(matrix)
        costs = rng.uniform(0.5, 2.0, labels.max() + 1)
        sizes = np.bincount(labels)
        for order in (1, 2):
            equal = least_variance(costs * sizes, np.ones(len(costs)), order)
            best = convex_budgets(costs[labels], matrix, order)
            if fair_column_weights(matrix, labels) is not None:
                assert best.value == pytest.approx(equal, rel=1e-6)
                compared += 1
            else:
                assert best.value < equal * (1.0 - 1e-6)
    assert 20 < compared < 110


def random_partitions(rng):
    """Up to three random partitions of up to five columns, as rows of 0 and 1 in a random order."""
    columns, rows = int(rng.integers(2, 6)), []
    for _ in range(int(rng.integers(1, 4))):
        labels = rng.integers(3, size=columns)
        rows += [labels == label for label in np.unique(labels)]
    return np.array(rows, dtype=float)[rng.permutation(len(rows))]


# ---- groups ---------------------------------------------------------------------------------------------------------


def brute_force(matrix):
    """The least number of groups over all partitions of the rows, or None; the numbers of groups that occur."""
    found = set()
    for labels in itertools.product(range(len(matrix)), repeat=len(matrix)):
        used = sorted(set(labels))
        if labels[0] == 0 and used == list(range(len(used))) and group_constants(matrix, labels) is not None:
            found.add(len(used))
    return found


@pytest.mark.claim("DC-D3.1", "DC-G7")
def test_a_grouping_is_found_where_there_is_one_and_all_have_the_same_number_of_groups():
    rng, groupable = np.random.default_rng(11), 0
    for _ in range(150):
        if rng.random() < 0.6:
            matrix = random_partitions(rng)[:5] * rng.choice([-1.0, 1.0])
        else:
            matrix = rng.choice([0.0, 0.0, 1.0, -1.0, 2.0], size=(int(rng.integers(1, 5)), int(rng.integers(1, 5))))
        matrix = matrix[matrix.any(axis=1)]
        if not len(matrix):
            continue
        numbers = brute_force(matrix)
        assert len(numbers) <= 1
        found = find_grouping(matrix)
        assert (found is not None) == bool(numbers)
        greedy = greedy_grouping(matrix)
        if found is not None:
            assert {int(found.max()) + 1} == numbers
            groupable += 1
        assert greedy is None or {int(greedy.max()) + 1} == numbers
    assert 40 < groupable < 140


@pytest.mark.claim("DC-G1", "DC-G2", "DC-G3", "DC-G4", "DC-G5", "DC-G6", "DC-X7", "DC-L3.2.a", "DC-S18")
def test_the_groups_by_construction_are_groupings_of_the_rows_written_out():
    domain = Domain([2, 4])
    workload = Workload(domain, [(0,), (0, 1), (1,)])
    strategies = [base_counts(domain), workload_itself(workload), hierarchy(domain), HaarStrategy(domain)]
    for strategy in [*strategies, SketchStrategy(domain, 3, 4, seed=2)]:
        matrix = strategy.matrix()
        used = matrix.any(axis=1)
        labels = np.repeat(np.arange(strategy.groups), strategy.group_sizes)[used]
        assert group_constants(matrix[used], labels) == pytest.approx(strategy.constants(1))
        assert find_grouping(matrix[used]).max() + 1 == strategy.groups
        # every column has one and the same sum under the budgets of groups, and it is epsilon
        budgets = optimal_budgets(np.arange(1.0, strategy.groups + 1.0), strategy.constants(1), 1, total=1.5)
        assert np.abs(matrix[used]).T @ budgets[labels] == pytest.approx(np.full(domain.cells, 1.5))
    assert convex_budgets([1.0, 5.0, 9.0], base_counts(Domain([3])).matrix(), 1).budgets == pytest.approx([1.0] * 3)
    fourier = FourierStrategy(all_marginals(Domain.binary(3), 3))
    assert group_constants(fourier.matrix(), np.arange(8)) == pytest.approx(8.0**-0.5)
    assert group_constants(workload_itself(FIGURE_1).matrix(), [0, 0, 1, 1, 1, 1]).tolist() == [1.0, 1.0]
    assert group_constants(workload_itself(FIGURE_1).matrix(), [0, 1, 0, 1, 1, 1]) is None


# ---- clusters and joint budgets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2])
def test_clusters_cover_the_workload_and_lower_its_variance(order):
    for domain in (Domain.binary(7), Domain([3, 2, 5, 4])):
        for workload in (all_marginals(domain, 1), all_and_half(domain, 1), all_and_with_attribute(domain, 2)):
            for budgets in ("optimal", "uniform"):
                found = clusters(workload, budgets, order)
                assert len(found.assigned(workload)) == len(workload.sets)  # each is in one of the clusters
                both = [
                    DatacubeRelease(workload, strategy, CLAIMS[order], budgets, recovery="initial").total_variance()
                    for strategy in (workload_itself(workload), found)
                ]
                assert both[1] <= both[0] * (1.0 + 1e-12)
                # no merge of two clusters lowers it further
                for i, j in itertools.combinations(range(found.groups), 2):
                    union = set(found.marginals[i]) | set(found.marginals[j])
                    rest = [m for n, m in enumerate(found.marginals) if n not in (i, j)]
                    merged = cluster_variance(workload, found, budgets, order, [*rest, union], {i, j})
                    assert merged >= cluster_variance(workload, found, budgets, order, found.marginals, ()) * (1 - 1e-9)


def cluster_variance(workload, clustered, budgets, order, marginals, merged):
    """Of the initial recovery from the cluster that each marginal is in, the merged ones being the last."""
    assigned = clustered.assigned(workload)
    order_of = [n for n in range(clustered.groups) if n not in merged]
    weights = np.zeros(len(marginals))
    for position, weight in zip(assigned, workload.weights, strict=True):
        weights[len(marginals) - 1 if position in merged else order_of.index(position)] += weight
    costs = weights * [math.prod(workload.domain.sizes[a] for a in marginal) for marginal in marginals]
    ones = np.ones(len(marginals))
    if budgets == "optimal":
        return least_variance(costs, ones, order)
    return float(costs @ noise_variances(uniform_budgets(ones, order), order))


def test_joint_budgets_are_proved_optimal_for_normal_noise_and_never_worse_for_laplace_noise():
    for domain in (Domain.binary(6), Domain([3, 2, 4])):
        workload = all_and_half(domain, 1)
        for strategy in (workload_itself(workload), hierarchy(domain), clusters(workload)):
            for order, claim in CLAIMS.items():
                found = joint_budgets(strategy, workload, order)
                release = DatacubeRelease(workload, strategy, claim, "joint")
                assert norm(found.budgets, order) == pytest.approx(1.0)
                assert release.total_variance() == pytest.approx(found.value)
                separate = DatacubeRelease(workload, strategy, claim, "optimal").total_variance()
                assert found.value <= separate * (1.0 + 1e-6)
                assert (found.lower_bound >= (1.0 - 2e-6) * found.value) if order == 2 else found.lower_bound == 0.0


@settings(max_examples=20)
@given(SEEDS)
def test_no_budgets_beat_the_lower_bound_of_joint_ones(seed):
    rng = np.random.default_rng(seed)
    workload = all_and_half(Domain([2, 3, 2]), 1)
    strategy = workload_itself(workload)
    bound = joint_budgets(strategy, workload, 2).lower_bound
    budgets = rng.exponential(size=strategy.groups)
    budgets /= norm(budgets, 2)
    release = DatacubeRelease(workload, strategy, GaussianDP(1.0), budgets)
    assert release.total_variance() >= bound
