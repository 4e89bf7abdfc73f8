"""The best trade of a bias against a scale, compared with linear programs and grids that do not know its formula."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from support.refusals import refusals

from dpaudit_mechanisms.distortion import best_distortion, least_distortion


@st.composite
def instances(draw, most_queries=2, most_elements=4):
    """Queries (K, N) in [-1, 1], and distances of points in the plane, one of them infinite now and then."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count, elements = draw(st.integers(1, most_queries)), draw(st.integers(2, most_elements))
    points = rng.uniform(0.2, 3.0, size=(elements, 2))
    metric = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2)) + 0.1 * (1.0 - np.eye(elements))
    metric = (metric + metric.T) / 2.0
    if elements == 4 and draw(st.booleans()):
        metric[:2, 2:] = metric[2:, :2] = math.inf  # two parts that need not be told apart... or may be
    return np.round(rng.uniform(-1.0, 1.0, size=(count, elements)), draw(st.sampled_from([0, 6]))), metric


def distortion_by_linear_program(queries, metric, c):
    """min t over w and t with |w - q| <= t and |w_i - w_j| <= c d(i, j)."""
    worst = 0.0
    for row in queries:
        elements = len(row)
        rows, limits = [], []
        for i in range(elements):
            for sign in (1.0, -1.0):
                rows.append([*(sign * np.eye(elements)[i]), -1.0])
                limits.append(sign * row[i])
            for j in range(elements):
                if i != j and np.isfinite(metric[i, j]):
                    rows.append([*(np.eye(elements)[i] - np.eye(elements)[j]), 0.0])
                    limits.append(c * metric[i, j])
        bounds = [(None, None)] * elements + [(0.0, None)]
        solution = optimize.linprog([0.0] * elements + [1.0], A_ub=rows, b_ub=limits, bounds=bounds)
        worst = max(worst, solution.fun)
    return worst


@pytest.mark.claim("DX-O3")
@given(instances(), st.floats(0.0, 2.0))
def test_the_least_distortion_is_that_of_a_linear_program(instance, c):
    queries, metric = instance
    distortion, w = least_distortion(queries, metric, c)
    assert distortion == pytest.approx(
        distortion_by_linear_program(queries, metric, c), abs=1e-8
    )  # HiGHS: 1e-7 / scale
    assert np.abs(w - queries).max() <= distortion + 1e-12
    with np.errstate(invalid="ignore"):
        allowed = np.where(np.isinf(metric), np.inf, c * np.where(np.isinf(metric), 0.0, metric))
    assert (np.abs(w[:, :, None] - w[:, None, :]) <= allowed + 1e-12).all()


test_what_makes_no_sense_is_refused = refusals(
    (
        lambda: least_distortion([[0.0, 1.0, 2.0]], [[0.0, 1.0, 3.0], [1.0, 0.0, 1.0], [3.0, 1.0, 0.0]], 1.0),
        "metric violates the triangle inequality",
    ),
    (lambda: best_distortion([[0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]], lambda t, c: t + c), "metric must"),
    (lambda: least_distortion([[0.0, math.inf]], np.zeros((2, 2)), 1.0), "queries must"),
)
