"""Appendix C: statistical queries on a transformed universe: privacy, utility, optimisation, and the twin."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampler_checks import DRAWS, is_drawn_from
from scipy import optimize, stats
from support.refusals import refusals

from dpaudit.errors import UsageError
from dpaudit.exact import privacy_losses
from dpaudit_mechanisms.faulty.statistical_queries import StatisticalTooMuchNoise
from dpaudit_mechanisms.ledger import entry
from dpaudit_mechanisms.statistical_queries import (
    StatisticalLaplace,
    best_marginal,
    sensitivities,
    undistorted,
)

ROUNDING = 1e-9


@st.composite
def instances(draw):
    """A mechanism with a random map of the universe and random scales, and the values q(u) that it answers."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    elements, k, records = draw(st.integers(2, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    values = rng.uniform(-1.0, 1.0, size=(elements, k))
    metric = rng.uniform(0.5, 1.0, size=(elements, elements))
    metric = np.triu(metric, 1) + np.triu(metric, 1).T
    transformed = values + 0.3 * rng.normal(size=values.shape)
    ratio = (sensitivities(transformed, records)[metric > 0.0] / metric[metric > 0.0]).max()
    transformed = transformed / ratio * draw(st.sampled_from([1.0, 0.5]))
    c = ratio * rng.uniform(0.5, 2.0, size=k)
    return StatisticalLaplace(transformed, c, metric, records), values


def all_data(mechanism):
    return list(itertools.product(range(len(mechanism.metric)), repeat=mechanism.records))


@pytest.mark.claim("DX-D10", "DX-C21")
@given(instances())
def test_sensitivities_are_the_maxima_of_the_definition(instance):
    mechanism, values = instance
    n, elements = mechanism.records, len(values)
    stated = sensitivities(values, n)
    for u, v in itertools.permutations(range(elements), 2):
        largest = 0.0
        for place in range(n):
            for rest in itertools.product(range(elements), repeat=n - 1):
                x, x_prime = ((*rest[:place], w, *rest[place:]) for w in (u, v))
                largest = max(largest, np.abs(values[list(x)].mean(axis=0) - values[list(x_prime)].mean(axis=0)).sum())
        assert stated[u, v] == pytest.approx(largest, abs=1e-14)


@pytest.mark.claim("DX-D11", "DX-T10")
@given(instances())
def test_no_record_loses_more_than_its_budget(instance):
    mechanism, _ = instance
    data = all_data(mechanism)
    for x, x_prime in itertools.combinations(data, 2):
        differs = [(u, v) for u, v in zip(x, x_prime, strict=True) if u != v]
        if len(differs) == 1:
            budget = mechanism.metric[differs[0]]
            assert mechanism.privacy_loss(x, x_prime) <= budget * (1.0 + ROUNDING)
            assert mechanism.claim.for_pair(x, x_prime).value == budget
    shift = mechanism.means(data[0]) - mechanism.means(data[1])
    assert mechanism.privacy_loss(data[0], data[1]) == pytest.approx(np.sum(np.abs(shift) / mechanism.c), abs=1e-12)


@pytest.mark.claim("DX-T10")
@given(instances(), st.floats(1.01, 3.0))
def test_a_map_that_breaks_the_condition_is_refused_and_would_break_the_budget(instance, factor):
    mechanism, _ = instance
    tight = undistorted(mechanism.transformed, mechanism.metric, mechanism.records)
    with pytest.raises(UsageError, match=r"transformed must change by at most n d\(u, v\), got 1\."):
        StatisticalLaplace(tight.transformed * 1.01, tight.c, tight.metric, tight.records)
    first = tight.pairs()[0]
    budget = tight.claim.for_pair(first.x, first.x_prime).value
    assert tight.privacy_loss(first.x, first.x_prime) == pytest.approx(budget)
    gap = tight.c * (tight.transformed[first.x[0]] - tight.transformed[first.x_prime[0]]) / tight.records
    assert np.sum(np.abs(factor * gap) / tight.c) > budget


@pytest.mark.claim("DX-A4")
def test_the_sampler_draws_the_law_of_the_definition():
    mechanism = StatisticalLaplace([[0.0, 1.0], [0.5, 0.0], [1.0, 0.0]], [2.0, 0.5], 1.5 * (1.0 - np.eye(3)), records=3)
    data = (0, 2, 2)
    means = np.array([2.0 * (0.0 + 1.0 + 1.0) / 3.0, 0.5 * 1.0 / 3.0])
    samples = mechanism.sample(data, DRAWS, np.random.default_rng(20_261_129))
    for k, scale in enumerate([2.0, 0.5]):
        assert is_drawn_from(samples[:, k], stats.laplace(means[k], scale).cdf)  # false alarm rate 1e-10
        assert not is_drawn_from(samples[:, k], stats.laplace(means[k], scale / 2.0).cdf)  # the control
    expected = stats.laplace(means, [2.0, 0.5]).logpdf(samples[:5]).sum(axis=1)
    assert mechanism.log_density(data, samples[:5]) == pytest.approx(expected, rel=1e-12)
    assert mechanism.log_density(data, [[np.nan, 0.0], [np.inf, 0.0]]).tolist() == [-math.inf] * 2


@pytest.mark.claim("DX-T11")
@given(instances(), st.sampled_from([0.01, 0.2, 1.0]))
def test_the_errors_keep_their_bounds(instance, delta):
    """All three parts in closed form, for every list of records: with b the bias, |b + Y| for Laplace noise Y."""
    mechanism, values = instance
    c = mechanism.c
    worst_bias = np.abs(c * mechanism.transformed - values)
    for x in all_data(mechanism):
        b = mechanism.means(x) - values[list(x)].mean(axis=0)
        squared = float((b**2).sum() + 2.0 * (c**2).sum())  # part 1
        assert squared <= mechanism.squared_error_bound(values)
        absolute = float((np.abs(b) + c * np.exp(-np.abs(b) / c)).sum())  # part 2, l1: E|b + Y| = |b| + c e^(-|b|/c)
        assert absolute <= worst_bias.sum(axis=1).max() + c.sum() + 1e-12
        t = mechanism.error_bound(values, delta)  # part 3
        inside = stats.laplace.cdf(t, b, c) - stats.laplace.cdf(-t, b, c)
        assert np.prod(inside) >= 1.0 - delta - 1e-12


@pytest.mark.claim("DX-T11")
@pytest.mark.parametrize("delta", [0.5, 0.01])
def test_a_little_more_noise_breaks_the_bound_with_its_probability(delta):
    """Without bias and for one query the third bound is reached: P(|Y| > c log(1 / delta)) = delta, exactly."""
    sound = undistorted([[0.0], [1.0]], 1.0 - np.eye(2), records=2)
    twin = StatisticalTooMuchNoise(sound.transformed, sound.c, sound.metric, 2)
    for mechanism, is_kept in ((sound, True), (twin, False)):
        t = mechanism.error_bound([[0.0], [1.0]], delta)
        exceeded = 2.0 * stats.laplace(scale=mechanism.noise_scales[0]).sf(t)
        assert (exceeded <= delta * (1.0 + 1e-12)) == is_kept
        outputs = mechanism.sample((0, 1), DRAWS, np.random.default_rng(20_261_131))[:, 0] - 0.5
        # An exact binomial test of P(error > t) <= delta: it rejects the sound mechanism with probability 1e-9.
        failures = int((np.abs(outputs) > t).sum())
        assert (stats.binom.sf(failures - 1, DRAWS, delta) > 1e-9) == is_kept


@pytest.mark.claim("DX-C22")
@given(st.integers(2, 3), st.integers(1, 2), st.integers(0, 2**32), st.floats(0.1, 2.0))
def test_equal_budgets_of_records_are_ordinary_differential_privacy(elements, records, seed, epsilon):
    """A random finite mechanism keeps one exactly when it keeps the other, at budgets around its own loss."""
    data = list(itertools.product(range(elements), repeat=records))
    law = np.random.default_rng(seed).dirichlet(np.ones(3) * 5.0, size=len(data))
    losses = privacy_losses(law / law.sum(axis=1, keepdims=True))
    near = [
        (a, b) for a, b in itertools.combinations(range(len(data)), 2) if sum(map(int.__ne__, data[a], data[b])) == 1
    ]
    worst = max(losses[a, b] for a, b in near)
    for promised in (epsilon, worst, worst * 0.999):
        budgets = promised * (1.0 - np.eye(elements))
        is_dx = all(
            losses[a, b] <= next(budgets[u, v] for u, v in zip(data[a], data[b], strict=True) if u != v)
            for a, b in near
        )
        assert is_dx == (worst <= promised)


@pytest.mark.claim("DX-C22")
def test_the_smaller_of_two_personal_budgets_is_no_metric():
    data = entry("DX-C22").counterexample
    personal = np.array(data["epsilon"])
    budgets = np.minimum(personal[:, None], personal) * (1.0 - np.eye(3))
    u, w, v = data["u"], data["w"], data["v"]
    assert budgets[u, v] == data["d_uv"] > budgets[u, w] + budgets[w, v] == data["detour"]


@pytest.mark.claim("DX-C22")
@given(st.lists(st.floats(0.01, 5.0), min_size=2, max_size=6))
def test_the_corrected_personal_budgets_are_the_closure(personal):
    budgets = np.minimum.outer(personal, personal) * (1.0 - np.eye(len(personal)))
    closure = budgets.copy()
    for k in range(len(personal)):
        closure = np.minimum(closure, closure[:, k, None] + closure[k])
    least = min(personal)
    for u, v in itertools.permutations(range(len(personal)), 2):
        others = [e for w, e in enumerate(personal) if w not in (u, v)]
        detour = min((min(personal[u], e) + min(e, personal[v]) for e in others), default=math.inf)
        assert closure[u, v] == pytest.approx(min(personal[u], personal[v], detour))
        assert closure[u, v] <= min(personal[u], personal[v], 2.0 * least) + 1e-15


@pytest.mark.claim("DX-C24")
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_budgets_by_coordinate_make_the_marginal_private(seed, records):
    """X = X_1 x X_2 with d(u, v) = d_1(u_1, v_1) + d_2(u_2, v_2): maps of the coordinates that keep n d_i each."""
    rng = np.random.default_rng(seed)
    sides = [rng.uniform(-1.0, 1.0, size=int(rng.integers(2, 4))) for _ in range(2)]
    metrics, maps = [], []
    for side in sides:
        positions = np.sort(rng.uniform(size=len(side)))
        metrics.append(np.abs(positions[:, None] - positions))
        maps.append(records * positions * rng.choice([1.0, 0.7]))  # |u' - v'| <= n d_i
    universe = list(itertools.product(*(range(len(side)) for side in sides)))
    metric = np.array(
        [[sum(m[a, b] for m, a, b in zip(metrics, u, v, strict=True)) for v in universe] for u in universe]
    )
    metric = (metric + metric.T) / 2.0
    transformed = [[m[a] for m, a in zip(maps, u, strict=True)] for u in universe]
    mechanism = StatisticalLaplace(transformed, rng.uniform(0.5, 2.0, size=2), metric, records)  # else refused
    for pair in mechanism.pairs():
        assert mechanism.privacy_loss(pair.x, pair.x_prime) <= metric[pair.x[0], pair.x_prime[0]] * (1.0 + ROUNDING)


def separable(universe, sides, maps, c):
    """Both sides of the identity DX-C25 without the noise: max over u of the sum, and the sum of maxima."""
    errors = [{value: abs(c[i] * maps[i][value] - value) for value in side} for i, side in enumerate(sides)]
    joint = max(sum(errors[i][value] for i, value in enumerate(u)) for u in universe)
    return joint, sum(max(found.values()) for found in errors)


@pytest.mark.claim("DX-C25")
@given(st.integers(1, 3), st.integers(0, 2**32))
def test_the_objective_separates_on_a_product(k, seed):
    rng = np.random.default_rng(seed)
    sides = [np.unique(np.round(rng.uniform(-1.0, 1.0, size=3), 2)).tolist() for _ in range(k)]
    maps = [{value: float(rng.normal()) for value in side} for side in sides]
    joint, apart = separable(list(itertools.product(*sides)), sides, maps, rng.uniform(0.0, 2.0, size=k))
    assert joint == pytest.approx(apart)


@pytest.mark.claim("DX-C25")
def test_the_objective_does_not_separate_on_other_universes():
    data = entry("DX-C25").counterexample
    universe = [tuple(u) for u in data["universe"]]
    sides = [sorted({u[i] for u in universe}) for i in range(2)]
    maps = [{value: data["map"][str(int(value))] for value in side} for side in sides]
    joint, apart = separable(universe, sides, maps, [data["c"]] * 2)
    assert (joint, apart) == (data["joint"], data["separate"])
    assert joint < apart  # "at most" is what remains


@pytest.mark.claim("DX-C23")
def test_the_marginal_query_saves_no_variables():
    data = entry("DX-C23").counterexample
    universe = np.array(list(itertools.product((-1.0, 1.0), repeat=data["dimension"])))
    marginal = universe @ np.eye(data["k"])  # q(u) = u
    assert len(universe) == data["elements"]
    assert (marginal.size, universe.size) == (data["query_variables"], data["universe_variables"])
    assert marginal.size / universe.size == 1.0 != data["k"]


@pytest.mark.claim("DX-O7")
@given(st.integers(2, 4), st.integers(0, 2**32), st.integers(1, 5))
def test_the_optimum_is_that_of_a_linear_program(count, seed, records):
    """In w = c u' the problem is linear: min t + c with |w - u| <= t and |w_u - w_v| <= c n d(u, v)."""
    rng = np.random.default_rng(seed)
    values, positions = rng.uniform(-1.0, 1.0, size=count), np.cumsum(rng.uniform(0.1, 1.0, size=count))
    metric = np.abs(positions[:, None] - positions)
    rows, limits = [], []
    for i in range(count):
        for sign in (1.0, -1.0):
            rows.append([*(sign * np.eye(count)[i]), -1.0, 0.0])
            limits.append(sign * values[i])
        for j in range(count):
            if i != j:
                rows.append([*(np.eye(count)[i] - np.eye(count)[j]), 0.0, -records * metric[i, j]])
                limits.append(0.0)
    bounds = [(None, None)] * count + [(0.0, None)] * 2
    solution = optimize.linprog([0.0] * count + [1.0, 1.0], A_ub=rows, b_ub=limits, bounds=bounds)
    assert best_marginal(values, metric, records).cost == pytest.approx(solution.fun, abs=1e-8)


@pytest.mark.claim("DX-O6")
@given(instances())
def test_the_printed_objective_is_half_of_the_squared_bound(instance):
    mechanism, values = instance
    objective = ((mechanism.c * mechanism.transformed - values) ** 2).sum(axis=1).max() + 2.0 * (mechanism.c**2).sum()
    assert 2.0 * objective == pytest.approx(mechanism.squared_error_bound(values))
    plain = undistorted(values, mechanism.metric, mechanism.records)  # feasible, without bias: 2 k c^2
    assert np.abs(plain.c * plain.transformed - values).max() < 1e-12
    assert plain.squared_error_bound(values) == pytest.approx(4.0 * (plain.c**2).sum())


test_what_makes_no_sense_is_refused = refusals(
    (lambda: StatisticalLaplace([[0.0], [1.0]], [0.0], 1.0 - np.eye(2), 1), "c must"),
    (lambda: StatisticalLaplace([[0.0], [math.inf]], [1.0], 1.0 - np.eye(2), 1), "transformed must"),
    (lambda: undistorted([[1.0], [1.0]], 1.0 - np.eye(2), 1), "values must"),
    (lambda: undistorted([[0.0], [1.0]], 1.0 - np.eye(2), 2).means((0,)), "data must"),
    (lambda: undistorted([[0.0], [1.0]], 1.0 - np.eye(2), 2).means((0, 2)), "data must"),
)
