"""The d_X-private Laplace mechanism for linear queries, its rules for the noise, and its faulty twin."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampler_checks import DRAWS, is_drawn_from
from scipy import stats
from support.refusals import refusals

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import MetricDP, PureDP
from dpaudit_mechanisms.dx_laplace import DxLaplace
from dpaudit_mechanisms.laplace import Laplace
from dpaudit_mechanisms.noise_scales import noise_scales

FIXED = settings(max_examples=100)
ROUNDING = 1e-12  # relative: a sum of at most four ratios
METRIC = [[0.0, 1.0, 4.0], [1.0, 0.0, 3.0], [4.0, 3.0, 0.0]]


@st.composite
def instances(draw, most_queries=4):
    """Queries (K, N), real or binary, and a matrix of positive budgets (N, N), some of them infinite."""
    rows, elements = draw(st.integers(1, most_queries)), draw(st.integers(2, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    table = rng.uniform(-1.0, 1.0, size=(rows, elements))
    if draw(st.booleans()):
        table = (table > 0.0).astype(float)
    budgets = rng.uniform(0.05, 3.0, size=(elements, elements))
    if draw(st.booleans()):
        budgets[rng.random(size=budgets.shape) < 0.2] = np.inf
    return table, np.triu(budgets, 1) + np.triu(budgets, 1).T


def test_the_rule_for_one_query_has_plain_numbers_as_outputs():
    mechanism = DxLaplace([0.0, 1.0, 1.0], METRIC, "single")  # c = 1
    samples = mechanism.sample(2, DRAWS, np.random.default_rng(20_261_113))
    assert samples.shape == (DRAWS,)
    assert is_drawn_from(samples, stats.laplace(loc=1.0).cdf)  # false alarm rate 1e-10
    assert mechanism.log_density(2, samples[:5]) == pytest.approx(stats.laplace(loc=1.0).logpdf(samples[:5]), rel=1e-13)
    several = DxLaplace([[0.0, 3.0, 0.5], [1.0, 0.0, 0.0]], METRIC, "S1")  # of two scales
    outputs = several.sample(1, 5, np.random.default_rng(1))
    expected = stats.laplace(several.answers(1), several.c).logpdf(outputs).sum(axis=1)
    assert several.log_density(1, outputs) == pytest.approx(expected, rel=1e-13)


@pytest.mark.claim("DX-C12", "DX-A-S1", "DX-A-S2")
@FIXED
@given(st.integers(1, 4), st.integers(2, 6), st.integers(0, 2**32), st.sampled_from(["S1", "S2"]))
def test_the_rules_are_the_printed_ones_and_feasible_in_rationals(rows, elements, seed, rule):
    rng = np.random.default_rng(seed)
    numerators = rng.integers(0, 20, size=(rows, elements))
    budgets = rng.integers(1, 30, size=(elements, elements))
    budgets = np.triu(budgets, 1) + np.triu(budgets, 1).T
    pairs = list(itertools.combinations(range(elements), 2))

    def gap(k, i, j):
        return abs(Fraction(int(numerators[k, i])) - int(numerators[k, j]))

    def total(i, j):
        return sum((gap(k, i, j) for k in range(rows)), Fraction(0))

    if rule == "S1":
        exact = [max(rows * gap(k, i, j) / int(budgets[i, j]) for i, j in pairs) for k in range(rows)]
    else:
        exact = [max(total(i, j) / int(budgets[i, j]) for i, j in pairs)] * rows
    assert noise_scales(numerators, budgets, rule) == pytest.approx([float(c) for c in exact], rel=ROUNDING)
    for i, j in pairs:
        assert sum(gap(k, i, j) / exact[k] for k in range(rows) if exact[k]) <= int(budgets[i, j])


@pytest.mark.claim("DX-C10")
@FIXED
@given(instances(most_queries=1))
def test_the_scale_for_one_query_is_the_smallest_that_is_feasible(instance):
    queries, metric = instance
    mechanism = DxLaplace(queries, metric, "single")
    finite = np.isfinite(metric) & (metric > 0.0)
    if mechanism.c[0] > 0.0:  # else every pair with different answers has an infinite budget
        assert np.nanmax(mechanism.tightness()) == pytest.approx(1.0, rel=ROUNDING)
        pair = mechanism.pairs()[0]
        assert mechanism.privacy_loss(pair.x, pair.x_prime) == pytest.approx(metric[pair.x, pair.x_prime], rel=ROUNDING)
    assert np.isnan(mechanism.tightness()[~finite]).all()


@pytest.mark.claim("DX-C7")
@FIXED
@given(instances(), st.floats(0.01, 10.0))
def test_equal_budgets_give_the_ordinary_laplace_mechanism(instance, epsilon):
    queries = instance[0]
    elements = queries.shape[1]
    l1_sensitivity = max(np.abs(queries[:, i] - queries[:, j]).sum() for i in range(elements) for j in range(elements))
    scales = noise_scales(queries, epsilon * (1.0 - np.eye(elements)), "S2")
    assert scales == pytest.approx(l1_sensitivity / epsilon, rel=ROUNDING)
    if l1_sensitivity > 0.0:
        assert scales == pytest.approx(Laplace(epsilon, float(l1_sensitivity)).scale, rel=ROUNDING)


def test_a_budget_of_zero_is_kept_where_answers_are_equal_and_refused_elsewhere():
    metric = [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    mechanism = DxLaplace([2.0, 2.0, 3.0], metric, "single")
    assert mechanism.privacy_loss(0, 1) == 0.0
    assert math.isnan(mechanism.tightness()[0, 1])  # report the loss, not a ratio
    assert [pair.id for pair in mechanism.pairs()] == ["0|2", "1|2"]
    with pytest.raises(UsageError, match=r"metric must be positive where answers differ, got 0\.0 at \(0, 1\), where"):
        DxLaplace([2.0, 2.5, 3.0], metric, "single")


@pytest.mark.claim("DX-D2")
@FIXED
@given(instances())
def test_the_claim_is_the_metric_over_positions(instance):
    queries, metric = instance
    claim = DxLaplace(queries, metric, metric_name="mine").claim
    assert isinstance(claim, MetricDP)
    assert str(claim) == "metric=mine"
    assert claim.for_pair(0, 1) == PureDP(metric[0, 1])


test_what_makes_no_sense_is_refused = refusals(
    (lambda: DxLaplace([0.0, 1.0, 2.0], METRIC, "S3"), "rule must"),
    (lambda: DxLaplace(np.eye(3), METRIC, "single"), "queries must"),
    (lambda: DxLaplace([0.0, 1.0], METRIC), "metric must"),
    (lambda: DxLaplace(np.zeros((1, 1, 3)), METRIC), "queries must"),
    (lambda: DxLaplace([0.0, 1.0, 2.0], METRIC, base_histogram=[1.0, 2.0]), "base_histogram must"),
    (lambda: DxLaplace([0.0, 1.0, 2.0], METRIC, base_histogram=[1.0, -2.0, 0.0]), "base_histogram must .* got -2"),
    (lambda: DxLaplace([0.0, 1.0, 2.0], METRIC, ids=("a", "b", "b")), "ids must"),
    (lambda: DxLaplace([0.0, 1.0, 2.0], METRIC).answers(3), "data must"),
    (lambda: DxLaplace([0.0, 1.0, 2.0], METRIC).log_density(0, [1.0]), "outputs must"),
    (lambda: DxLaplace([0.0, 1e300], [[0.0, 1e-300], [1e-300, 0.0]]), r"no finite noise keeps that budget\."),
)


@pytest.mark.claim("DX-T1")
@given(st.integers(0, 2**32), st.integers(2, 6), st.integers(1, 4), st.integers(1, 30))
def test_a_histogram_is_answered_and_a_position_is_a_view_of_one(seed, elements, count, records):
    rng = np.random.default_rng(seed)
    metric = rng.uniform(0.5, 1.0, size=(elements, elements))
    metric = np.triu(metric, 1) + np.triu(metric, 1).T
    queries, rest = rng.normal(size=(count, elements)), rng.multinomial(records - 1, rng.dirichlet(np.ones(elements)))
    mechanism = DxLaplace(queries, metric, base_histogram=rest)
    i, j = rng.choice(elements, size=2, replace=False).tolist()
    x, x_prime = rest + np.eye(elements)[i], rest + np.eye(elements)[j]
    for data in (x, i):
        assert mechanism.answers(data) == pytest.approx(queries @ x)
    assert mechanism.privacy_loss(x, x_prime) == pytest.approx(mechanism.privacy_loss(i, j), rel=1e-9)
    assert mechanism.privacy_loss(x, x_prime) <= metric[i, j] * (1.0 + 1e-9)
    for promised in (mechanism.claim.for_pair(x, x_prime), mechanism.claim.for_pair(i, j)):
        assert promised.value == metric[i, j]
    draws = [mechanism.sample(data, 3, np.random.default_rng(seed)) for data in (x, i)]
    assert draws[0] == pytest.approx(draws[1])
    assert mechanism.log_density(x, draws[0]) == pytest.approx(mechanism.log_density(i, draws[0]), rel=1e-9)


@pytest.mark.parametrize("data", [[1.0, -1.0], [0.5, 0.5], [1.0, 1.0, 1.0]])
def test_what_is_no_histogram_is_refused(data):
    with pytest.raises(UsageError, match="data must be"):
        DxLaplace([[0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]).sample(data, 1, np.random.default_rng(1))
