"""The error bounds of the d_X-Laplace mechanism: exact on every small histogram, and by runs with known error rates."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpaudit_mechanisms.dx_laplace import DxLaplace
from dpaudit_mechanisms.faulty.dx_laplace import DxLaplaceTooMuchNoise
from dpaudit_mechanisms.histograms import all_histograms
from dpaudit_mechanisms.preprocessing import loss_value, preprocess

METRIC = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.5], [2.0, 1.5, 0.0]])
QUERIES = np.array([[0.0, 1.0, 0.5], [1.0, 0.0, 1.0]])
RECORDS = 3


@st.composite
def biases(draw):
    """B - Q (K, N), scales (K,), some of them 0, and a number of records."""
    rows, elements = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    c = rng.uniform(0.0, 3.0, rows) * (rng.random(rows) < 0.8)
    return rng.normal(size=(rows, elements)), c, draw(st.integers(1, 4))


def bound_of(loss, bias, c, records, delta=0.05):
    """What a preprocessing minimises: a bound of DX-T2 on the error, of one kind."""
    return loss_value(np.zeros_like(bias), bias, c, records, loss, delta)


def exceedance(bias, c, x, limit):
    """The exact probability of |Q x - Z|_inf > limit on one histogram."""
    b, scale = np.abs(bias @ x), np.where(c > 0.0, c, 1.0)
    tails = stats.laplace.sf(limit - b, scale=scale) + stats.laplace.sf(limit + b, scale=scale)
    with np.errstate(divide="ignore"):  # a query that is certainly outside: log 0
        return -np.expm1(np.log1p(-np.where(c > 0.0, tails, b > limit)).sum())


@pytest.mark.claim("DX-T2.1", "DX-D7")
@given(biases())
def test_the_squared_error_is_within_its_bound_on_every_histogram(instance):
    bias, c, records = instance
    worst = max(float(((bias @ x) ** 2).sum()) for x in all_histograms(bias.shape[1], records)) + 2.0 * (c**2).sum()
    # Printed with a factor 2 in front of both terms, which is never needed:
    assert worst <= bound_of("squared", bias, c, records) * (1.0 + 1e-12)


@pytest.mark.claim("DX-T2.2", "DX-T2.2a", "DX-S1")
@given(biases())
def test_the_l1_error_is_within_its_bound_on_every_histogram(instance):
    bias, c, records = instance
    bound = bound_of("l1", bias, c, records)
    for x in all_histograms(bias.shape[1], records):
        b = np.abs(bias @ x)
        exact = (b + np.exp(-b / np.where(c > 0.0, c, 1.0)) * c).sum()  # E |b + Y| for Y ~ Lap(c)
        assert exact <= bound * (1.0 + 1e-12)


@pytest.mark.claim("DX-T2.3")
@given(biases(), st.floats(1e-6, 1.0))
def test_the_largest_error_exceeds_its_bound_with_probability_at_most_delta(instance, delta):
    bias, c, records = instance
    limit = bound_of("tail", bias, c, records, delta)
    for x in all_histograms(bias.shape[1], records):
        assert exceedance(bias, c, x, limit) <= delta * (1.0 + 1e-9)


@pytest.mark.claim("DX-D8", "DX-T2.3")
def test_the_bound_of_one_query_without_bias_is_exact():
    bias, c = np.zeros((1, 1)), np.array([2.0])
    assert exceedance(bias, c, [1.0], bound_of("tail", bias, c, 1, 0.01)) == pytest.approx(0.01)


def mechanisms():
    """A plain PSA mechanism and a preprocessed one, with their bias: what they answer less what is asked."""
    plain = DxLaplace(QUERIES, METRIC, "PSA", base_histogram=[1.0, 1.0, 0.0])
    found = preprocess(QUERIES, METRIC, RECORDS, "squared")
    assert np.abs(found.answered - QUERIES).max() > 0.05  # it does distort here
    return [(plain, 0.0 * QUERIES), (found.mechanism(METRIC, base_histogram=[1.0, 1.0, 0.0]), found.answered - QUERIES)]


@pytest.mark.claim("DX-T2.3")
@pytest.mark.parametrize("case", [0, 1], ids=["psa", "preprocessed"])
def test_runs_keep_the_tail_bound_and_too_much_noise_does_not(case):
    # 20,000 runs, delta = 0.02: under the bound the number of failures is at most binomial(20,000, 0.02). The limit is
    # its 1 - 1e-9 quantile: false alarm rate 1e-9 a case.
    draws, delta = 20_000, 0.02
    limit_failures = stats.binom.isf(1e-9, draws, delta)
    sound, bias = mechanisms()[case]
    bound = bound_of("tail", bias, sound.required_c, RECORDS, delta)
    truth = QUERIES @ np.array([1.0, 1.0, 1.0])  # one more record at element 2
    outputs = sound.sample(2, draws, np.random.default_rng(20_261_202 + case))
    assert (np.abs(outputs - truth).max(axis=1) > bound).sum() <= limit_failures
    # The twin has 1.5 times the noise: without bias one query alone fails with probability (delta / 2)^(2/3) = 4.6%
    twin = DxLaplaceTooMuchNoise(sound.queries, METRIC, base_histogram=[1.0, 1.0, 0.0], scales=sound.required_c)
    exact = exceedance(bias, twin.c, [1.0, 1.0, 1.0], bound)
    failures = (np.abs(twin.sample(2, draws, np.random.default_rng(20_261_204)) - truth).max(axis=1) > bound).sum()
    assert failures == pytest.approx(draws * exact, abs=7.0 * math.sqrt(draws * exact))  # 7 standard errors: 3e-12
    if case == 0:  # with bias the bound has room that the twin's noise does not fill
        assert stats.binom.cdf(limit_failures, draws, exact) < 1e-9  # miss rate
        assert failures > limit_failures
