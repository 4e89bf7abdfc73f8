"""Theorem 2 on d_X-private Laplace noise, and what the paper says about the shape of its optimisation problem."""

import inspect
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit_mechanisms import distortion, statistical_queries
from dpaudit_mechanisms.histograms import all_histograms

SEEDS = st.integers(0, 2**32)


@st.composite
def instances(draw):
    """Q and Q' of shape (k, N), scales c (k,), and a number of records."""
    rng = np.random.default_rng(draw(SEEDS))
    k, elements, records = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    c = rng.uniform(0.1, 3.0, size=k)
    queries = rng.normal(size=(k, elements))
    noise = draw(st.sampled_from([0.0, 0.1, 1.0])) * rng.normal(size=(k, elements))
    return queries, (queries + noise) / c[:, None], c, records


def biases(instance):
    """(c Q' - Q) x for every histogram x, and the matrix c Q' - Q."""
    queries, distorted, c, records = instance
    difference = c[:, None] * distorted - queries
    return [difference @ x for x in all_histograms(queries.shape[1], records)], difference


@pytest.mark.claim("DX-T2", "DX-T2.2")
@given(instances())
def test_the_expected_error_keeps_its_bound_in_every_norm(instance):
    """p = 1 in closed form; p = 2 and infinity draw by draw, where |b + Y| <= |b| + |Y| and |b| is bounded."""
    c, n = instance[2], instance[3]
    found, difference = biases(instance)
    noise = np.random.default_rng(1).laplace(size=(200, len(c))) * c
    for b in found:
        exact = float((np.abs(b) + c * np.exp(-np.abs(b) / c)).sum())
        assert exact <= n * np.abs(difference).sum() + c.sum() + 1e-9
        for p, entrywise in ((2, math.sqrt((difference**2).sum())), (np.inf, np.abs(difference).max())):
            assert np.linalg.norm(b, ord=p) <= n * entrywise + 1e-9
            errors, plain = (np.linalg.norm(values, ord=p, axis=1) for values in (b + noise, noise))
            assert (errors <= n * entrywise + plain + 1e-9).all()


@pytest.mark.claim("DX-S1")
@pytest.mark.parametrize("elements", [1, 2, 4])
def test_the_euclidean_norm_of_a_histogram_is_at_most_its_total(elements):
    for x in all_histograms(elements, 5):
        assert np.linalg.norm(x) <= np.abs(x).sum() + 1e-12 == 5.0 + 1e-12


# ---- the problem ----------------------------------------------------------------------------------------------------


def objective(q, w, c, n):
    """n^2 |c q' - q|^2 + 2 c^2 for one query, in (q', c)."""
    return n**2 * float(((c * w - q) ** 2).sum()) + 2.0 * c**2


@pytest.mark.claim("DX-C8", "DX-C9")
def test_the_problem_is_not_jointly_convex():
    """The Hessian of (c q' - 10)^2 + 2 c^2 in (q', c) at (0, 0) is [[0, -20], [-20, 4]]."""
    q, n, step = np.array([10.0, 0.0]), 1, 1e-3

    def f(a, c):
        return objective(q, np.array([a, 0.0]), c, n)

    in_q = f(step, 0.0) - 2.0 * f(0.0, 0.0) + f(-step, 0.0)
    in_c = f(0.0, step) - 2.0 * f(0.0, 0.0) + f(0.0, -step)
    mixed = (f(step, step) - f(step, -step) - f(-step, step) + f(-step, -step)) / 4.0
    hessian = np.array([[in_q, mixed], [mixed, in_c]]) / step**2
    assert hessian == pytest.approx(np.array([[0.0, -20.0], [-20.0, 4.0]]), abs=1e-4)
    assert np.linalg.eigvalsh(hessian)[0] < -10.0
    # And within the constraints, c >= 0 and |q'_1 - q'_2| <= d = 10: c q' = q at both ends, and not between them.
    one, other = (np.array([5.0, 0.0]), 2.0), (np.array([10.0, 0.0]), 1.0)
    middle = objective(q, (one[0] + other[0]) / 2.0, (one[1] + other[1]) / 2.0, 10)
    assert middle > (objective(q, *one, 10) + objective(q, *other, 10)) / 2.0


@pytest.mark.claim("DX-C9")
@given(SEEDS, st.integers(1, 3), st.integers(1, 4), st.integers(1, 50))
def test_each_block_of_the_squared_problem_is_convex_and_smooth(seed, k, elements, n):
    """Second differences along random lines: of a quadratic, they are its curvature, whatever the step."""
    rng = np.random.default_rng(seed)
    queries, distorted, direction = rng.normal(size=(3, k, elements))
    c, c_direction = rng.normal(size=(2, k))

    def f(q_prime, scales):
        return n**2 * float(((scales[:, None] * q_prime - queries) ** 2).sum()) + 2.0 * float((scales**2).sum())

    here = f(distorted, c)
    curvatures = []
    for step in (0.5, 1.0):
        in_q = (f(distorted + step * direction, c) - 2.0 * here + f(distorted - step * direction, c)) / step**2
        in_c = (f(distorted, c + step * c_direction) - 2.0 * here + f(distorted, c - step * c_direction)) / step**2
        assert in_q >= -1e-6 * (1.0 + abs(here)) and in_c >= -1e-6 * (1.0 + abs(here))
        curvatures.append((in_q, in_c))
    assert curvatures[0] == pytest.approx(curvatures[1], rel=1e-6, abs=1e-6 * (1.0 + abs(here)))


@pytest.mark.claim("DX-C9")
def test_the_max_norm_objective_is_neither_smooth_nor_convex():
    def f(q_prime, c):  # n max |c q' - q| + c for one coefficient, q = 1, n = 1
        return abs(c * q_prime - 1.0) + c

    left, right = ((f(1.0 + s * 1e-6, 1.0) - f(1.0, 1.0)) / (s * 1e-6) for s in (-1.0, 1.0))
    assert (left, right) == pytest.approx((-1.0, 1.0), abs=1e-5)  # a kink at q' = 1
    one, other = (0.25, 4.0), (4.0, 0.25)
    assert f(2.125, 2.125) > (f(*one) + f(*other)) / 2.0  # both ends have c q' = 1


@pytest.mark.claim("DX-C5")
def test_no_function_of_the_optimisation_sees_the_data():
    """What they are given are queries, the metric, n and a cost; a histogram has no place among their parameters."""
    solvers = [distortion.best_distortion, distortion.least_distortion, statistical_queries.best_marginal]
    names = {name for solver in solvers for name in inspect.signature(solver).parameters}
    assert names == {"queries", "metric", "cost", "c", "values", "records"}
