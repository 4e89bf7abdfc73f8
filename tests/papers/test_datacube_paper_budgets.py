"""The paper on datacubes, section 3.1: groupings, optimal noise budgets, and when equal budgets in a group are optimal.

`datacube_literal` has the printed constructions. Counterexamples come from the ledger. Optimality is proved by weak
duality (`dual_bound`), and compared with a general solver.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from datacube_literal import (
    column_budget,
    dual_bound,
    fourier_recovery,
    fourier_rows,
    grouped_budgets,
    grouping_number,
    groupings,
    identity,
    is_grouping,
    loss,
    marginal,
    objective,
    recovery_weights,
    stacked,
    ways,
)
from scipy.optimize import linprog

from dpaudit_mechanisms.datacubes import greedy_grouping
from dpaudit_mechanisms.ledger import entry


def grouped_value(strategy, grouping, weights, epsilon=1.0):
    return objective(weights, grouped_budgets(strategy, grouping, weights, epsilon))


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


@pytest.mark.claim("DC-S5")
def test_a_row_alone_needs_equal_magnitudes_and_no_zero():
    """Necessary as printed; not enough: a row with a zero breaks (b) as well."""
    assert [grouping_number([row]) for row in ([1, 1], [1, -1], [1, 2], [1, 0])] == [1, 1, None, None]


@pytest.mark.claim("DC-G7")
def test_the_greedy_rule_misses_groupings_that_exist():
    data = entry("DC-G7").counterexample
    assert is_grouping(data["strategy"], data["grouping"])
    assert not is_grouping(data["strategy"], data["greedy"])
    assert greedy_grouping(np.array(data["strategy"])) is None


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
