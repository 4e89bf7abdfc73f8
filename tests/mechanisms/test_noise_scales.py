"""The rules for noise scales: PSA against its printed steps in rationals, the optimum against its dual, and limits."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.rational_psa import psa_exact

from dpaudit.errors import UsageError
from dpaudit.privacy import check_metric
from dpaudit_mechanisms.dx_laplace import DxLaplace
from dpaudit_mechanisms.noise_scales import RULES, improvement_factor, noise_scales
from dpaudit_mechanisms.optimal_scales import SCALE_LOSSES, _dual, optimal_scales, scale_loss
from dpaudit_mechanisms.psa import psa

FIXED = settings(max_examples=80)
ROUNDING = 1e-11  # relative: at most 4 passes of sums of 4 ratios each


@st.composite
def rational_instances(draw):
    """Queries (K, N) of small integers and budgets (N, N) of small integers or infinity, as lists."""
    rows, elements = draw(st.integers(1, 4)), draw(st.integers(2, 6))
    largest = draw(st.sampled_from([1, 3, 10]))
    queries = [[draw(st.integers(0, largest)) for _ in range(elements)] for _ in range(rows)]
    budget = st.one_of(st.integers(1, 12), st.just(math.inf)) if draw(st.booleans()) else st.integers(1, 12)
    metric = [[0] * elements for _ in range(elements)]
    for i, j in itertools.combinations(range(elements), 2):
        metric[i][j] = metric[j][i] = draw(budget)
    return queries, metric


def spent(queries, metric, scales, i, j):
    """sum over k of |Q[k, i] - Q[k, j]| / c[k] in the arithmetic of its arguments."""
    gaps = [abs(row[i] - row[j]) for row in queries]
    return sum(gap / c for gap, c in zip(gaps, scales, strict=True) if gap)


@pytest.mark.claim("DX-A3", "DX-C12", "DX-L4")
@FIXED
@given(rational_instances())
def test_psa_ends_within_k_passes_is_feasible_and_below_strategy_1(instance):
    queries, metric = instance
    run = psa_exact(queries, metric)
    assert len(run.passes) <= len(queries)
    pairs = [p for p in itertools.combinations(range(len(metric)), 2) if metric[p[0]][p[1]] != math.inf]
    for i, j in pairs:
        assert spent(queries, metric, run.scales, i, j) <= metric[i][j]  # DX-C12, exactly
    rates = [Fraction(0)] * len(queries)
    finished = set()
    for step in run.passes:
        rates = [rate + more for rate, more in zip(rates, step, strict=True)]
        tight = [p for p in pairs if sum(r * abs(q[p[0]] - q[p[1]]) for r, q in zip(rates, queries, strict=True))
                 == metric[p[0]][p[1]]]  # fmt: skip
        now = {k for k, q in enumerate(queries) if any(q[i] != q[j] for i, j in tight)}
        assert finished < now  # a pass finishes at least one more query
        finished = now
    varying = [k for k, q in enumerate(queries) if any(q[i] != q[j] for i, j in pairs)]
    assert sorted(finished) == varying  # at the end nobody can have less noise without another having more
    for k in varying:
        s1 = max(Fraction(len(queries) * abs(queries[k][i] - queries[k][j]), metric[i][j]) for i, j in pairs)
        assert run.scales[k] <= s1


@pytest.mark.claim("DX-A3")
@FIXED
@given(rational_instances())
def test_psa_in_floating_point_is_psa_in_rationals(instance):
    queries, metric = instance
    exact = [float(c) for c in psa_exact(queries, metric).scales]
    assert psa(queries, metric) == pytest.approx(exact, rel=ROUNDING)


def test_psa_keeps_its_input_and_names_what_it_cannot_answer():
    metric = np.array([[0.0, 0.0, 2.0], [0.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    queries = [[0.0, 1.0, 1.0], [0.0, 0.0, 1.0], [3.0, 3.0, 3.0]]
    before = metric.copy()
    assert psa(queries, metric).tolist() == [math.inf, 1.0, 0.0]  # (d): told apart at distance 0; (c): constant
    assert (metric == before).all()
    for rule in ("PSA", "S1", "S2", "optimal"):
        with pytest.raises(UsageError, match="metric must be positive where answers differ, got 0"):
            noise_scales(queries, metric, rule)
    assert psa([[0.0, 1.0]], [[0.0, math.inf], [math.inf, 0.0]]).tolist() == [0.0]
    with pytest.raises(UsageError, match="queries must be finite, got inf"):
        psa([[math.inf, 0.0]], [[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize("rule", ["S1", "S2", "PSA", "optimal"])
@pytest.mark.parametrize(("gap", "budget"), [(1e-310, 1.0), (1e-200, 1e200)], ids=["subnormal", "underflow"])
def test_a_difference_that_vanishes_beside_its_budget_is_not_answered_without_noise(rule, gap, budget):
    mechanism = DxLaplace([[0.0, gap], [0.0, 1.0]], [[0.0, budget], [budget, 0.0]], rule)
    assert (mechanism.c > 0.0).all()
    assert mechanism.privacy_loss(0, 1) <= budget * (1.0 + 1e-13)


def test_a_pass_may_leave_budget_for_a_second_one_at_a_quotient_without_a_finite_binary_form():
    # Rounding leaves 1e-16 of the pair (0, 2) after the first pass; a query that read it as budget would never end.
    queries, metric = [[0, 1, 3], [0, 1, 1], [0, 0, 7]], [[0, 3, 10], [3, 0, 7], [10, 7, 0]]
    run = psa_exact(queries, metric)
    assert psa(queries, metric) == pytest.approx([float(c) for c in run.scales], rel=ROUNDING)


@pytest.mark.claim("DX-L6", "DX-O5")
@FIXED
@given(rational_instances(), st.sampled_from(SCALE_LOSSES))
def test_the_optimal_scales_are_feasible_and_within_their_proved_gap(instance, loss):
    queries, metric = instance
    best = optimal_scales(queries, metric, loss)
    losses = DxLaplace(queries, metric, scales=best.scales).losses()
    assert (losses <= np.array(metric) * (1.0 + 1e-12)).all()
    on = best.scales > 0.0
    if not on.any():
        assert best.loss == 0.0
        return
    size = 1.0 if loss == "improvement" else best.loss
    assert best.loss - best.lower_bound <= 1e-7 * size
    for rule in ("S1", "S2", "PSA"):
        other = scale_loss(noise_scales(queries, metric, rule)[on], loss)
        assert other >= best.lower_bound - 1e-9 * max(1.0, abs(best.lower_bound))


@pytest.mark.claim("DX-L6")
@pytest.mark.parametrize(
    ("loss", "price", "optimum"), [("squared", 2.0, 1.0), ("l1", 1.0, 1.0), ("improvement", 1.0, 0.0)]
)
def test_the_dual_bound_is_below_the_optimum_and_reached_at_the_right_price(loss, price, optimum):
    # One query and one pair: the least w / y^2, w / y or -log y over y <= 1 is at y = 1, for w = 1.
    duals = {p: _dual(np.ones(1), loss, np.array([p]), p) for p in (0.1, 0.9 * price, price, 1.1 * price, 5.0)}
    assert duals[price] == pytest.approx(optimum, abs=1e-15)
    assert all(dual < optimum for p, dual in duals.items() if p != price)


@pytest.mark.claim("DX-L2")
@FIXED
@given(rational_instances())
def test_for_one_query_every_rule_is_the_smallest_feasible_scale(instance):
    queries, metric = instance
    scales = [noise_scales(queries[:1], metric, rule)[0] for rule in RULES]
    assert scales == pytest.approx([scales[0]] * len(RULES), rel=1e-9)


WORSE = [
    {"measure": "loss", "queries": [[0.0, 1.0], [0.0, 2.0]], "metric": [[0.0, 1.0], [1.0, 0.0]], "psa": [2.0, 4.0],
     "s2": [3.0, 3.0], "psa_value": 20.0, "s2_value": 18.0},
    {"measure": "improvement", "queries": [[0.0, 0.0, 1.0], [0.0, 2.0, 1.0]], "psa": [1.5, 3.0], "s2": [2.0, 2.0],
     "metric": [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]], "psa_value": 0.9428090415820634, "s2_value": 1.0},
]  # fmt: skip


@pytest.mark.claim("DX-C13", "DX-O5")
@pytest.mark.parametrize("position", [0, 1], ids=["loss", "improvement"])
def test_strategy_3_may_be_worse_than_strategy_2_and_than_the_ordinary_mechanism(position):
    """The smallest counterexamples to "Strategy 3 outperforms the other two" for every matrix; of means it is true.

    For the loss of DX-O5, the sum of c_k^2, two elements are enough. For the improvement factor they are not: there
    PSA's c_k = K |gap_k| have the product K^K prod gap <= (sum gap)^K, that of S2, by the inequality of the means. With
    three elements at d = 1, S2 is the ordinary mechanism (IF 1), and PSA improves by less than 1.
    """
    data = WORSE[position]
    queries, metric = data["queries"], data["metric"]
    check_metric(np.array(metric))
    by_hand = psa_exact([[Fraction(q) for q in row] for row in queries], metric).scales
    assert by_hand == tuple(Fraction(c) for c in data["psa"]) and psa(queries, metric).tolist() == data["psa"]
    assert noise_scales(queries, metric, "S2").tolist() == data["s2"]
    if data["measure"] == "loss":
        values = [sum(c**2 for c in data[rule]) for rule in ("psa", "s2")]
        assert values == [data["psa_value"], data["s2_value"]] and values[0] > values[1]
        assert optimal_scales(queries, metric).lower_bound < values[1] - 0.1  # the optimum is below both
    else:
        values = [improvement_factor(queries, metric, data[rule]) for rule in ("psa", "s2")]
        assert values == pytest.approx([data["psa_value"], data["s2_value"]], rel=1e-12)
        assert values[0] < values[1] == 1.0
