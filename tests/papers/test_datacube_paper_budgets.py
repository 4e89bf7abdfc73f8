"""The paper on datacubes, section 3.1: groupings, optimal noise budgets, and when equal budgets in a group are optimal.

`datacube_literal` has the printed constructions. Counterexamples come from the ledger. Optimality is proved by weak
duality (`dual_bound`), and compared with a general solver.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from datacube_literal import (
    FIG_Q,
    FIG_S,
    below,
    column_budget,
    dual_bound,
    fourier,
    fourier_recovery,
    fourier_rows,
    greedy,
    group_maximum,
    grouped_budgets,
    grouping_number,
    groupings,
    groups_of,
    haar,
    identity,
    is_grouping,
    loss,
    marginal,
    objective,
    product,
    recovery_weights,
    sketch,
    solved_budgets,
    stacked,
    transposed,
    tree,
    ways,
    workload,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from dpaudit_mechanisms.ledger import entry

FIXED = settings(derandomize=True, deadline=None, max_examples=40)
SEEDS = st.integers(0, 2**32)
SOLVER = 1e-5  # relative: SLSQP's end against a proved bound; it stops at 1e-6 or so


def grouped_value(strategy, grouping, weights, epsilon=1.0):
    return objective(weights, grouped_budgets(strategy, grouping, weights, epsilon))


def random_groups(rng, cells, groups):
    """Rows of 0 and 1: each group a random partition of the cells, so that supports differ in size."""
    found = []
    for _ in range(groups):
        places = rng.integers(int(rng.integers(1, 4)), size=cells)
        found.append([[int(places[j] == b) for j in range(cells)] for b in sorted(set(places.tolist()))])
    return stacked(found)


def balanced_prices_exist(strategy, grouping):
    """Whether prices of the cells give all rows of a group one sum: what equal budgets within groups need (KKT).

    At the optimum over groups the sum of a row is 2 b / eta^3, with the b and the budget of its group.
    """
    weights = [2] * len(strategy)
    budgets = grouped_budgets(strategy, grouping, weights)
    matrix = [[abs(v) for v in row] for row in strategy]
    wanted = [2 * w / e**3 for w, e in zip(weights, budgets, strict=True)]
    found = linprog(np.zeros(len(strategy[0])), A_eq=np.array(matrix, dtype=float), b_eq=wanted, method="highs")
    return found.status == 0


# ---- groupings ------------------------------------------------------------------------------------------------------


@pytest.mark.claim("DC-X7", "DC-D3.1")
def test_the_groupings_of_the_figure():
    assert grouping_number(FIG_S) == 1 and group_maximum(FIG_S, range(4)) == 1
    # A half of A may be taken together with the quarters of the other half.
    assert groupings(FIG_Q) == [[0, 0, 1, 1, 1, 1], [0, 1, 1, 1, 0, 0]] and grouping_number(FIG_Q) == 2
    assert [group_maximum(FIG_Q, rows) for rows in ([0, 1], [2, 3, 4, 5])] == [1, 1]
    assert FIG_Q[0][0] * FIG_Q[2][0] == 1


@pytest.mark.claim("DC-D3.1", "DC-S5")
@FIXED
@given(SEEDS)
def test_each_column_has_one_value_from_each_group_of_equal_magnitude(seed):
    rng = np.random.default_rng(seed)
    strategy = [[int(v) for v in row] for row in rng.integers(-1, 2, size=(int(rng.integers(1, 5)), 3))]
    for grouping in groupings(strategy):
        for rows in groups_of(grouping):
            for column in transposed([strategy[i] for i in rows]):
                values = [abs(v) for v in column if v]
                assert values in ([], [group_maximum(strategy, rows)])


@pytest.mark.claim("DC-S5")
def test_a_row_alone_needs_equal_magnitudes_and_no_zero():
    """Necessary as printed; not enough: a row with a zero breaks (b) as well."""
    assert [grouping_number([row]) for row in ([1, 1], [1, -1], [1, 2], [1, 0])] == [1, 1, None, None]


@pytest.mark.claim("DC-G1", "DC-S18")
@pytest.mark.parametrize("n", [2, 3, 5])
def test_base_counts_are_one_group_and_always_uniform(n):
    assert grouping_number(identity(n)) == 1 and group_maximum(identity(n), range(n)) == 1
    # Whatever the weights: each column has one row, so that each budget is epsilon on its own.
    rng = np.random.default_rng(n)
    weights = rng.integers(1, 9, size=n).tolist()
    prices = weights  # for b = p the bound is tight
    assert dual_bound(identity(n), weights, prices) == pytest.approx(objective(weights, [1] * n))
    assert grouped_budgets(identity(n), [0] * n, weights, 3.0) == pytest.approx([3.0] * n)


@pytest.mark.claim("DC-G2")
@FIXED
@given(SEEDS)
def test_the_rows_of_a_marginal_are_a_group(seed):
    rng = np.random.default_rng(seed)
    alphas = rng.choice(8, size=int(rng.integers(1, 4))).tolist()
    rows, grouping = stacked([marginal(alpha, 3) for alpha in alphas])
    assert is_grouping(rows, grouping)
    assert all(group_maximum(rows, group) == 1 for group in groups_of(grouping))
    # None with fewer groups: every column has one entry from each marginal.
    assert {sum(1 for v in column if v) for column in transposed(rows)} == {len(alphas)}


@pytest.mark.claim("DC-G3")
def test_a_binary_tree_has_a_group_more_than_printed_unless_its_root_is_left_out():
    rows, grouping = stacked(tree(2))
    assert rows == [[1, 1], [1, 0], [0, 1]] and is_grouping(rows, grouping)
    assert grouping_number(rows) == 2 == math.ceil(math.log2(2)) + 1
    for n in (2, 4, 8):
        for root in (True, False):
            rows, grouping = stacked(tree(n, root=root))
            assert is_grouping(rows, grouping) and all(group_maximum(rows, g) == 1 for g in groups_of(grouping))
            assert {sum(column) for column in transposed(rows)} == {int(math.log2(n)) + root}  # so none with fewer
    for n in (3, 5):  # leaves on different levels: kept where they are, columns have different numbers of entries
        rows, _ = stacked(tree(n, keep=True))
        assert len({sum(column) for column in transposed(rows)}) > 1
        assert n > 3 or grouping_number(rows) is None
        rows, grouping = stacked(tree(n))  # repeated on the levels below: again a group more than printed
        assert is_grouping(rows, grouping) and max(grouping) + 1 == math.ceil(math.log2(n)) + 1
        rows, grouping = stacked(tree(n, root=False))  # and as printed without the root
        assert is_grouping(rows, grouping) and max(grouping) + 1 == math.ceil(math.log2(n))


@pytest.mark.claim("DC-G4")
@pytest.mark.parametrize("n", [2, 4, 8])
def test_the_haar_wavelet_has_one_group_a_level_and_exponentially_many_in_more_dimensions(n):
    levels = haar(n)
    rows, grouping = stacked(levels)
    assert abs(round(np.linalg.det(np.array(rows)))) > 0
    assert is_grouping(rows, grouping) and max(grouping) + 1 == math.log2(n) + 1
    assert {sum(1 for v in column if v) for column in transposed(rows)} == {int(math.log2(n)) + 1}
    tensor = levels
    for dimensions in (2, 3):
        if n**dimensions > 16:
            break
        pairs = list(itertools.product(tensor, levels))
        tensor = [[np.kron(a, b).tolist() for a in first for b in second] for first, second in pairs]
        rows, grouping = stacked(tensor)
        assert is_grouping(rows, grouping) and max(grouping) + 1 == (math.log2(n) + 1) ** dimensions
        assert {sum(1 for v in column if v) for column in transposed(rows)} == {(int(math.log2(n)) + 1) ** dimensions}


@pytest.mark.claim("DC-G5")
@pytest.mark.parametrize("bits", [1, 2])
def test_every_fourier_row_is_a_group_of_its_own(bits):
    rows = fourier(range(2**bits), bits)
    assert {abs(v) for row in rows for v in row} == {1}  # times 2^(-d/2)
    assert groupings(rows) == [list(range(2**bits))]


@pytest.mark.claim("DC-G6")
@FIXED
@given(SEEDS)
def test_every_repetition_of_a_sketch_is_a_group(seed):
    rng = np.random.default_rng(seed)
    repetitions = int(rng.integers(1, 4))
    rows, grouping = stacked(sketch(rng, 6, 3, repetitions))
    assert is_grouping(rows, grouping) and all(group_maximum(rows, group) == 1 for group in groups_of(grouping))
    assert {sum(abs(v) for v in column) for column in transposed(rows)} == {repetitions}


@pytest.mark.claim("DC-G7")
def test_the_greedy_rule_misses_groupings_that_exist():
    data = entry("DC-G7").counterexample
    assert is_grouping(data["strategy"], data["grouping"])
    assert greedy(data["strategy"]) == data["greedy"] and not is_grouping(data["strategy"], data["greedy"])


@pytest.mark.claim("DC-G7")
def test_there_is_no_smaller_one_and_all_groupings_have_the_same_number_of_groups():
    """All multisets of up to 4 non-zero rows of 0 and 1 over 3 cells, in every order; up to 3 rows over 4 cells."""
    failing = set()
    for cells, most in ((2, 4), (3, 4), (4, 3)):
        nonzero = [[(v >> j) & 1 for j in range(cells)] for v in range(1, 2**cells)]
        for m in range(1, most + 1):
            for rows in itertools.combinations_with_replacement(nonzero, m):
                strategy = [list(row) for row in rows]
                found = groupings(strategy)
                # One entry of a column from each group, so the number is that of a column's entries.
                assert {max(g) + 1 for g in found} <= {sum(transposed(strategy)[0])}
                if found:
                    orders = {tuple(map(tuple, order)) for order in itertools.permutations(strategy)}
                    if not all(is_grouping(order, greedy(order)) for order in orders):
                        failing.add((cells, m))
    assert failing == {(3, 4)}


# ---- recovery consistent with a grouping ----------------------------------------------------------------------------


@pytest.mark.claim("DC-D3.2", "DC-S6")
@FIXED
@given(SEEDS)
def test_the_recovery_of_marginals_has_equal_weights_in_every_group(seed):
    rng = np.random.default_rng(seed)
    bits = int(rng.integers(1, 5))
    alphas = rng.choice(2**bits, size=int(rng.integers(1, 5))).tolist()
    queries = workload(alphas, bits)
    assert recovery_weights(queries) == [2 * len(alphas)] * 2**bits  # S = I, R = Q
    assert set(recovery_weights(identity(len(queries)))) == {2}  # S = Q, R = I
    # Clusters: a random union of attributes above each query marginal; R adds up the centroid's rows.
    centroids = [alpha | int(rng.choice(2**bits)) for alpha in alphas]
    for centroid in set(centroids):
        assigned = [alpha for alpha, c in zip(alphas, centroids, strict=True) if c == centroid]
        recovery = [[int(gamma & alpha == beta) for gamma in below(centroid, bits)]
                    for alpha in assigned for beta in below(alpha, bits)]  # fmt: skip
        assert product(recovery, marginal(centroid, bits)) == workload(assigned, bits)
        assert recovery_weights(recovery) == [2 * len(assigned)] * len(below(centroid, bits))
    # Fourier: singleton groups, so nothing to check but that it is a recovery.
    betas = fourier_rows(alphas, bits)
    assert product(fourier_recovery(alphas, bits), fourier(betas, bits)) == queries


# ---- optimal budgets ------------------------------------------------------------------------------------------------


@pytest.mark.claim("DC-EQ1")
def test_the_constraint_of_the_program_is_half_of_what_its_proposition_promises():
    """Prop. 3.1 makes budgets with column sums epsilon 2 epsilon-DP, and replacing a person reaches it."""
    data = entry("DC-EQ1").counterexample
    strategy, budgets = data["strategy"], data["budgets"]
    assert column_budget(strategy, budgets) == data["epsilon"]
    assert loss(strategy, budgets, "replace_one") == data["loss"] == 2 * data["epsilon"]
    assert loss(strategy, budgets, "add_remove") == data["epsilon"]
    # And where persons are replaced (2) is not the constraint: a total that nobody changes may be had without noise.
    assert loss([[1, 1]], [10**6], "replace_one") == 0


@pytest.mark.claim("DC-EQ1")
@FIXED
@given(SEEDS)
def test_when_a_person_is_added_the_program_is_convex_and_its_solution_has_the_exact_loss_epsilon(seed):
    rng = np.random.default_rng(seed)
    strategy = [[int(v) for v in row] for row in rng.integers(-2, 3, size=(4, 4))]
    strategy = [row for row in strategy if any(row)] or [[1, 1, 1, 1]]
    weights = rng.integers(1, 9, size=len(strategy)).tolist()
    budgets = solved_budgets(strategy, weights, 2.0)
    assert loss(strategy, budgets, "add_remove") == pytest.approx(2.0)
    other = rng.uniform(0.2, 2.0, size=(2, len(strategy))) / 20
    middle = objective(weights, other.mean(axis=0))
    assert middle <= (objective(weights, other[0]) + objective(weights, other[1])) / 2 * (1 + 1e-12)
    # No direction in the feasible set improves: random feasible budgets are no better.
    for _ in range(20):
        trial = np.array(budgets) * rng.uniform(0.7, 1.3, size=len(budgets))
        trial = 2.0 * trial / column_budget(strategy, trial)
        assert objective(weights, trial) >= objective(weights, budgets) * (1 - 1e-5)


@pytest.mark.claim("DC-EQ4", "DC-C3.3.L", "DC-L3.2.a")
@FIXED
@given(SEEDS)
def test_the_closed_form_of_equal_budgets_in_groups(seed):
    rng = np.random.default_rng(seed)
    strategy, grouping = random_groups(rng, 5, int(rng.integers(1, 4)))
    tops = rng.integers(1, 4, size=max(grouping) + 1)
    strategy = [[int(tops[g]) * v for v in row] for row, g in zip(strategy, grouping, strict=True)]
    weights = rng.integers(1, 9, size=len(strategy)).tolist()
    budgets = grouped_budgets(strategy, grouping, weights, 1.5)
    # Every column has one and the same sum, and it is epsilon (DC-L3.2.a).
    sums = [sum(abs(s) * e for s, e in zip(column, budgets, strict=True)) for column in transposed(strategy)]
    assert sums == pytest.approx([1.5] * 5)
    # The one constraint sum C_r eta_r = epsilon is one column of group rows: its dual bound is reached.
    one_column = [[int(c)] for c in tops]
    per_group = [sum(weights[i] for i in rows) for rows in groups_of(grouping)]
    value = objective(weights, budgets)
    assert value == pytest.approx(dual_bound(one_column, per_group, [1.0], 1.5))
    if len(set(tops.tolist())) == 1:
        closed = float(tops[0]) ** 2 / 1.5**2 * sum(s ** (1 / 3) for s in per_group) ** 3
        assert value == pytest.approx(closed)


@pytest.mark.claim("DC-L3.2.b", "DC-T3.4")
def test_equal_budgets_in_a_group_are_not_always_optimal():
    for name in ("DC-L3.2.b", "DC-T3.4"):
        data = entry(name).counterexample
        strategy, grouping, budgets = data["strategy"], data["grouping"], data["better"]
        weights = recovery_weights(identity(len(strategy)))
        assert is_grouping(strategy, grouping) and set(weights) == {2}  # R = I is consistent with any grouping
        assert column_budget(strategy, budgets) <= 1
        assert grouping in groupings(strategy)
        better, grouped = objective(weights, budgets), grouped_value(strategy, grouping, weights)
        assert better == pytest.approx(data["better_value"], rel=1e-4) and better < 0.992 * grouped
        assert grouped == pytest.approx(data["grouped_value"], rel=1e-4)
        assert not balanced_prices_exist(strategy, grouping)


@pytest.mark.claim("DC-L3.2.b")
def test_four_rows_without_zero_rows_are_too_few_for_a_counterexample():
    """All groupable strategies of 0 and 1 with up to 4 non-zero rows over up to 3 cells, R = I: prices exist."""
    checked = 0
    for cells in (1, 2, 3):
        nonzero = [[(v >> j) & 1 for j in range(cells)] for v in range(1, 2**cells)]
        for m in range(1, 5):
            for rows in itertools.combinations_with_replacement(nonzero, m):
                for grouping in groupings([list(row) for row in rows]):
                    assert balanced_prices_exist(rows, grouping)
                    checked += 1
    assert checked > 30


@pytest.mark.claim("DC-L3.2.b", "DC-T3.4")
@FIXED
@given(SEEDS)
def test_they_are_optimal_where_the_rows_of_a_group_have_equally_many_cells(seed):
    """Equal prices of all cells prove it: marginals, wavelets, whole trees, base counts, Fourier."""
    rng = np.random.default_rng(seed)
    alphas = rng.choice(8, size=int(rng.integers(1, 4))).tolist()
    for groups in (
        [marginal(alpha, 3) for alpha in alphas], haar(8), tree(8), tree(8, root=False), [identity(8)],
        [[row] for row in fourier(range(8), 3)],
    ):  # fmt: skip
        strategy, grouping = stacked(groups)
        by_group = rng.integers(1, 9, size=max(grouping) + 1)
        weights = [int(by_group[g]) for g in grouping]
        value = grouped_value(strategy, grouping, weights)
        assert value == pytest.approx(dual_bound(strategy, weights, [1.0] * 8))
        if len(strategy) <= 8:
            assert objective(weights, solved_budgets(strategy, weights)) == pytest.approx(value, rel=SOLVER)


@pytest.mark.claim("DC-L3.2.b")
def test_random_groups_with_unequal_supports_lose_against_the_solver():
    """40 random groupable strategies: never better than the solver, and worse for some, as for sketches."""
    rng, worst = np.random.default_rng(11), 1.0
    for _ in range(40):
        strategy, grouping = random_groups(rng, 5, int(rng.integers(1, 4)))
        weights = [2] * len(strategy)
        solved = objective(weights, solved_budgets(strategy, weights))
        ratio = solved / grouped_value(strategy, grouping, weights)
        assert ratio <= 1 + SOLVER
        worst = min(worst, ratio)
        assert balanced_prices_exist(strategy, grouping) == (ratio > 1 - 1e-5)
    assert worst < 0.99


@pytest.mark.claim("DC-C3.3.G")
def test_the_gaussian_optimum_counts_the_factor_two_of_b_twice():
    data = entry("DC-C3.3.G").counterexample
    strategy, recovery, delta = data["strategy"], data["recovery"], data["delta"]
    weights = recovery_weights(recovery)
    assert weights == [data["s"]]
    printed = 2 * math.log(2 / delta) * math.sqrt(weights[0]) ** 2
    actual = sum(r**2 * 2 * math.log(2 / delta) for row in recovery for r in row)  # a'Var(y) at budget 1
    assert strategy == [[1]] and printed == pytest.approx(data["printed"], rel=1e-4)
    assert actual == pytest.approx(data["variance"], rel=1e-4) and printed == pytest.approx(2 * actual)


@pytest.mark.claim("DC-C3.3.G")
@FIXED
@given(SEEDS)
def test_the_gaussian_program_is_solved_and_half_its_value_is_the_variance(seed):
    rng = np.random.default_rng(seed)
    _, grouping = stacked([marginal(alpha, 3) for alpha in rng.choice(8, size=3).tolist()])
    tops = rng.uniform(0.5, 2.0, size=3)
    recovery = rng.normal(size=3)  # one weight for each group: R diagonal
    b = [2 * float(recovery[g]) ** 2 for g in grouping]
    s = [sum(b[i] for i in rows) for rows in groups_of(grouping)]
    epsilon, logarithm = 0.7, math.log(2 / 1e-6)
    total = sum(c * math.sqrt(v) for c, v in zip(tops, s, strict=True))
    squares = [epsilon**2 / c * math.sqrt(v) / total for c, v in zip(tops, s, strict=True)]
    assert sum(c**2 * e for c, e in zip(tops, squares, strict=True)) == pytest.approx(epsilon**2)
    value = 2 * logarithm * sum(v / e for v, e in zip(s, squares, strict=True))
    assert value == pytest.approx(2 * logarithm / epsilon**2 * total**2)
    for _ in range(10):  # Cauchy: no other budgets on the constraint do better
        other = np.array(squares) * rng.uniform(0.5, 2.0, size=3)
        other *= epsilon**2 / float((tops**2 * other).sum())
        assert 2 * logarithm * sum(v / e for v, e in zip(s, other, strict=True)) >= value * (1 - 1e-12)
    variance = sum(float(recovery[g]) ** 2 * 2 * logarithm / squares[g] for g in grouping)
    assert variance == pytest.approx(value / 2)


# ---- uniform against optimal ----------------------------------------------------------------------------------------


def fourier_values(bits, alphas):
    """b of the Fourier rows; the factor C^2 = 2^-d is left out of both values."""
    weights = [float(b) for b in recovery_weights(fourier_recovery(alphas, bits))]
    return sum(weights) * len(weights) ** 2, sum(b ** (1 / 3) for b in weights) ** 3


def marginal_values(alphas):
    sums = [2.0 * 2 ** alpha.bit_count() for alpha in alphas]
    return sum(sums) * len(sums) ** 2, sum(s ** (1 / 3) for s in sums) ** 3


@pytest.mark.claim("DC-S19")
def test_the_optimum_is_no_strict_improvement_where_all_marginals_are_of_one_size():
    data = entry("DC-S19").counterexample
    alphas = ways(data["bits"], data["way"])
    uniform, optimal = marginal_values(alphas)
    assert uniform == pytest.approx(optimal, rel=1e-14) and optimal == pytest.approx(data["variance"])
    strategy, grouping = stacked([marginal(alpha, data["bits"]) for alpha in alphas])
    assert dual_bound(strategy, [2] * len(strategy), [1.0] * 2 ** data["bits"]) == pytest.approx(optimal)
    assert is_grouping(strategy, grouping)


@pytest.mark.claim("DC-S19")
@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6])
def test_it_never_hurts_and_is_strict_exactly_where_the_weights_of_groups_differ(bits):
    for alphas in (ways(bits, 1), ways(bits, 1) + ways(bits, 2)[: math.comb(bits, 2) // 2], ways(bits, 2)):
        sizes = {alpha.bit_count() for alpha in alphas}
        uniform, optimal = marginal_values(alphas)
        assert (optimal < uniform * (1 - 1e-12)) == (len(sizes) > 1) and optimal <= uniform * (1 + 1e-12)
        uniform, optimal = fourier_values(bits, alphas)
        needs = {sum(1 for alpha in alphas if beta & alpha == beta) for beta in fourier_rows(alphas, bits)}
        assert (optimal < uniform * (1 - 1e-12)) == (len(needs) > 1) and optimal <= uniform * (1 + 1e-12)


@pytest.mark.claim("DC-S7")
def test_the_costs_of_budgets_count_as_printed():
    """Operations, counted: q m products for b, one term a row for the objective; the groups' sums are a pass over b."""

    class Counted(Fraction):
        count = 0

        def __pow__(self, power):
            Counted.count += 1
            return Fraction(self) ** power

    for q, m in ((3, 4), (6, 4), (6, 8)):
        Counted.count = 0
        weights = recovery_weights([[Counted(1)] * m for _ in range(q)])
        assert Counted.count == q * m
        Counted.count = 0
        objective(weights, [Counted(1)] * m)
        assert Counted.count == m
