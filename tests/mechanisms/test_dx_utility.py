"""The error bounds of the d_X-Laplace mechanism: exact on every small histogram, and by runs with known error rates."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from dpaudit_mechanisms.dx_laplace import DxLaplace
from dpaudit_mechanisms.dx_utility import (
    exceedance,
    l1_error,
    largest_error_bound,
    mean_noise,
    norm_error_bound,
    squared_error,
    squared_error_bound,
)
from dpaudit_mechanisms.faulty.dx_laplace import DxLaplaceTooMuchNoise
from dpaudit_mechanisms.preprocessing import preprocess

FIXED = settings(derandomize=True, deadline=None, max_examples=60)
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


def histograms(elements, records):
    """All histograms of `records` records, shape (histograms, elements)."""
    every = itertools.combinations_with_replacement(range(elements), records)
    return np.array([np.bincount(rows, minlength=elements) for rows in every])


@pytest.mark.claim("DX-T2.1", "DX-D7")
@FIXED
@given(biases())
def test_the_squared_error_is_within_its_bound_on_every_histogram(instance):
    bias, c, records = instance
    worst = max(float(((bias @ x) ** 2).sum()) for x in histograms(bias.shape[1], records)) + 2.0 * (c**2).sum()
    assert squared_error(bias, c, records) == pytest.approx(worst, rel=1e-12)  # enumeration against the formula
    # Printed with a factor 2 in front of both terms, which is never needed:
    assert squared_error(bias, c, records) <= squared_error_bound(bias, c, records) / 2.0 * (1.0 + 1e-12)


@pytest.mark.claim("DX-T2.2")
@FIXED
@given(biases())
def test_the_l1_error_is_within_its_bound_on_every_histogram(instance):
    bias, c, records = instance
    bound = norm_error_bound(bias, c, records, "l1")
    for x in histograms(bias.shape[1], records):
        assert l1_error(bias, c, x) <= bound * (1.0 + 1e-12)


@pytest.mark.claim("DX-T2.2", "DX-T2.2a")
@pytest.mark.parametrize("c", [(1.0,), (2.0, 0.5), (1.0, 1.0, 0.25), (3.0, 0.0)])
def test_the_mean_size_of_the_noise_is_what_sampling_says(c):
    rng = np.random.default_rng(20_261_201)
    draws = 400_000
    y = np.abs(rng.laplace(size=(draws, len(c))) * c)
    samples = {"l1": y.sum(axis=1), "l2": np.sqrt((y**2).sum(axis=1)), "linf": y.max(axis=1)}
    assert mean_noise(c, "l1") == sum(c)
    for norm, values in samples.items():
        # E|Y|_p^2 <= 2 K max c^2 (K of them for l1 by the variance), so this is 7 standard errors: 2.6e-12 a value
        slack = 7.0 * max(c) * math.sqrt(2.0 * len(c) / draws)  # 7 standard errors, as said above
        assert values.mean() == pytest.approx(mean_noise(c, norm), abs=slack)
        assert abs(values.mean() - 1.1 * mean_noise(c, norm)) > slack  # 10% off would be seen
    if len(c) == 2 and c[1] == 0.5:  # E max = a + b - 1 / (1 / a + 1 / b)
        assert mean_noise(c, "linf") == pytest.approx(2.5 - 1.0 / (0.5 + 2.0), rel=1e-12)


@pytest.mark.claim("DX-T2.2")
def test_the_mean_euclidean_size_of_the_noise_is_that_of_polar_coordinates():
    # E |Y|_2 of two exponentials with means a, b: over the angle t, the integral of r^2 exp(-r k) is 2 / k^3.
    assert mean_noise([3.0], "l2") == pytest.approx(3.0, rel=1e-7)
    for a, b in ((1.0, 1.0), (2.0, 0.5), (1.0, 0.01)):
        exact = integrate.quad(
            lambda t, a=a, b=b: 2.0 / (math.cos(t) / a + math.sin(t) / b) ** 3 / (a * b), 0.0, math.pi / 2.0,
            points=[b / a], epsabs=1e-12,
        )[0]  # fmt: skip
        assert mean_noise([a, b], "l2") == pytest.approx(exact, rel=1e-7)


@pytest.mark.claim("DX-T2.2")
def test_the_norm_of_the_bound_is_over_all_entries():
    # ||A||_2 is entrywise (Frobenius), not spectral; the spectral one would hold as well (|A x|_2 <= ||A|| |x|_2), so
    # the printed bound is the weaker of the two. They agree for rank one, and differ for the identity.
    bias = np.array([[1.0, 1.0], [1.0, 1.0]])
    assert norm_error_bound(bias, [0.0, 0.0], 1, "l2") == 2.0 == np.linalg.norm(bias, 2)
    bias = np.eye(2)
    assert norm_error_bound(bias, [0.0, 0.0], 1, "l2") == pytest.approx(math.sqrt(2.0)) != np.linalg.norm(bias, 2)
    assert norm_error_bound(-2 * bias, [0.0, 0.0], 3, "linf") == 6.0  # the largest entry in absolute value


@pytest.mark.claim("DX-T2.3")
@FIXED
@given(biases(), st.floats(1e-6, 1.0))
def test_the_largest_error_exceeds_its_bound_with_probability_at_most_delta(instance, delta):
    bias, c, records = instance
    limit = largest_error_bound(bias, c, records, delta)
    for x in histograms(bias.shape[1], records):
        assert exceedance(bias, c, x, limit) <= delta * (1.0 + 1e-9)


@pytest.mark.claim("DX-D8", "DX-T2.3")
def test_the_bound_of_one_query_without_bias_is_exact():
    assert exceedance([[0.0]], [2.0], [1.0], largest_error_bound([[0.0]], [2.0], 1, 0.01)) == pytest.approx(0.01)


@pytest.mark.claim("DX-S1")
def test_the_steps_of_the_proof():
    for scale in (0.5, 3.0):
        law = stats.laplace(scale=scale)
        assert law.moment(2) == pytest.approx(2.0 * scale**2, rel=1e-12)
        assert mean_noise([scale], "l1") == pytest.approx(law.expect(abs), rel=1e-6)
        for t in (0.0, 0.3, 2.0):
            assert 2.0 * law.sf(t * scale) == pytest.approx(math.exp(-t), rel=1e-12)
    for x in histograms(4, 4):
        assert math.sqrt((x**2).sum()) <= x.sum()


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
    bound = largest_error_bound(bias, sound.required_c, RECORDS, delta)
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


@pytest.mark.claim("DX-T2.2")
@pytest.mark.parametrize("case", [0, 1], ids=["asked", "flatter"])
def test_the_mean_of_runs_keeps_the_l1_bound_and_too_much_noise_does_not(case):
    # |b + Y|_1 <= |b|_1 + |Y|_1 pointwise, and with one scale c for both queries the sum of |Y|_1 over the runs is c
    # times a Gamma(2 runs). The limit is its 1 - 1e-9 quantile: false alarm rate at most 1e-9 a case, and it at b = 0.
    draws = 5_000
    queries = QUERIES if case == 0 else 0.5 * QUERIES + 0.25
    c = DxLaplace(queries, METRIC, "S2").c
    bias = queries - QUERIES
    bound = norm_error_bound(bias, c, RECORDS, "l1")
    limit = bound - c.sum() + c[0] * stats.gamma.isf(1e-9, 2 * draws) / draws
    truth = QUERIES @ np.array([1.0, 1.0, 1.0])
    for kind, factor in ((DxLaplace, 1.0), (DxLaplaceTooMuchNoise, 1.5)):
        mechanism = kind(queries, METRIC, base_histogram=[1.0, 1.0, 0.0], scales=c)
        outputs = mechanism.sample(2, draws, np.random.default_rng(20_261_205 + case))
        mean = np.abs(outputs - truth).sum(axis=1).mean()
        if factor == 1.0:
            assert mean <= limit
        else:
            exact = l1_error(bias, mechanism.c, [1.0, 1.0, 1.0])
            # standard error at most sqrt(2) 1.5 c / sqrt(runs); the twin's mean is seen where it is 8 of them above
            error = math.sqrt(2.0) * mechanism.c[0] / math.sqrt(draws)
            assert mean == pytest.approx(exact, abs=7.0 * error)
            assert (mean > limit) == (exact > limit)
            if case == 0:
                assert exact > limit + 8.0 * error


@pytest.mark.claim("DX-T2.2")
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_the_mean_of_runs_keeps_the_other_bounds_and_too_much_noise_does_not(norm):
    # Without bias the bound is E|Y|_p, and reached. The standard error is at most sqrt(2) |c|_2 / sqrt(runs); the sound
    # mechanism is rejected at 7 of them: normal tail 1.3e-12 a norm. The twin's mean is 50% above: 30 of them at least.
    draws, order = 40_000, {"l2": 2, "linf": np.inf}[norm]
    sound = DxLaplace(QUERIES, METRIC, "PSA", base_histogram=[1.0, 1.0, 0.0])
    twin = DxLaplaceTooMuchNoise(QUERIES, METRIC, "PSA", base_histogram=[1.0, 1.0, 0.0])
    bound = norm_error_bound(0.0 * QUERIES, sound.c, RECORDS, norm)
    slack = 7.0 * math.sqrt(2.0 * float((sound.c**2).sum()) / draws)  # 7 standard errors, as said above
    assert 0.5 * bound > 30.0 / 7.0 * slack
    truth = QUERIES @ np.array([1.0, 1.0, 1.0])
    for mechanism, is_kept in ((sound, True), (twin, False)):
        outputs = mechanism.sample(2, draws, np.random.default_rng(20_261_208))
        assert (np.linalg.norm(outputs - truth, ord=order, axis=1).mean() <= bound + slack) == is_kept


@pytest.mark.claim("DX-T2.1")
def test_the_mean_square_of_runs_is_within_half_of_the_printed_bound_and_too_much_noise_is_not():
    # Without bias |Y|^2 = sum c^2 E^2 with E ~ Exp(1): mean 2 |c|^2, half of the printed 4 |c|^2. E is cut off at 12,
    # which only lowers the mean (by less than 1e-3), so that Bernstein's inequality applies: range 144, variance at
    # most 20; false alarm rate 2e-9 for two queries.
    draws = 40_000
    slack = math.sqrt(2.0 * 20.0 * math.log(1e9) / draws) + 144.0 * math.log(1e9) / (3.0 * draws)
    assert slack < 0.2
    for kind, factor in ((DxLaplace, 1.0), (DxLaplaceTooMuchNoise, 1.5)):
        mechanism = kind(QUERIES, METRIC, "PSA")
        noise = (mechanism.sample(1, draws, np.random.default_rng(20_261_207)) - QUERIES[:, 1]) / mechanism.required_c
        means = np.minimum(np.abs(noise), 12.0) ** 2
        # The twin's mean is 2.25 times 2 = 4.5 (cut off 4.45): above even the printed 4 |c|^2
        assert (means.mean(axis=0) <= 2.0 + slack).all() == (factor == 1.0)
        assert (means.mean(axis=0) <= 4.0 + slack).all() == (factor == 1.0)
