"""Bugs of delta and of conversions: thresholds, truncations and formulas of Gaussian noise."""

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from dpaudit.domains import DatasetDomain, NumberDomain
from dpaudit.exhibits.exhibit import Release
from dpaudit_mechanisms.museum.bugs import Bugs, two_sided_geometric
from dpaudit_mechanisms.museum.releases import published

bug = Bugs("delta and conversions")


@bug(
    "world-federation-of-advertisers/cross-media-measurement#4333",
    "The truncation bound (sensitivity / epsilon) ln(1 / delta) + 1 is below the optimal one for large epsilon and a "
    "sensitivity above 1, as the review of the pull request says.",
    "eps=4,delta=0.01",
    NumberDomain(0.0, 100.0, change=10.0),
    (0.0, 10.0),
)
def bound_below_the_optimum(data, size, rng, mended):
    """Truncated Laplace noise whose bound is too small for its sensitivity and epsilon."""
    epsilon, delta, sensitivity = 4.0, 0.01, 10.0
    scale = sensitivity / epsilon
    bound = scale * np.log(1.0 / delta) + 1.0
    if mended:
        bound = scale * np.log1p(np.expm1(epsilon) / (2.0 * delta))
    u = rng.uniform(-1.0, 1.0, size=size)
    return data - np.sign(u) * scale * np.log1p(-np.abs(u) * -np.expm1(-bound / scale))


@bug(
    "opendp/smartnoise-sdk#462",
    "sigma = sqrt(2 log(1.25 / delta)) / epsilon is used for epsilon > 1, where its proof does not hold and the "
    "statement is false for large epsilon.",
    "eps=6,delta=0.4",
    DatasetDomain(values=(0, 1), largest=6),
    ([], [1]),
    faulty=np.sqrt(2.0 * np.log(1.25 / 0.4)) / 6.0,  # 0.2516: delta is 0.587 there
    mended=0.2872,  # the least sigma is 0.28716 (Balle and Wang 2018, Theorem 8)
)
def classical_gaussian_beyond_one(data, size, rng, sigma):
    """The classical formula of the Gaussian mechanism, at an epsilon where it does not hold."""
    return len(data) + rng.normal(scale=sigma, size=size)


@bug(
    "opendp/smartnoise-sdk#204",
    "tau is computed from a Laplace formula, and the noise of the counts is Gaussian, whose mass beyond tau is larger.",
    "eps=1,delta=0.02",
    DatasetDomain(values=(0, 1), largest=6),
    ([], [1]),
    faulty=1.0 - np.log(2.0 * 0.01) / 1.0,
    mended=1.0 + 3.0 * norm.isf(0.01),
)
def laplace_threshold_gaussian_noise(data, size, rng, threshold):
    """Gaussian counts, with the threshold of Laplace ones."""
    # One half of delta is for the noise: at this sigma it is 0.0002 at epsilon = 1; one for the threshold.
    noisy = len(data) + rng.normal(scale=3.0, size=size)
    return np.where((noisy > threshold) & (len(data) > 0), noisy, -1.0)


@bug(
    "tensorflow/privacy#166",
    "get_privacy_spent returns epsilon = 0 for an order of 1 + 1e-8, because its divergence is below delta**2.",
    "eps=0,delta=0.001",
    DatasetDomain(values=(0, 1), largest=6),
    ([], [1]),
    faulty=0.05,
    mended=0.001,  # a record that is taken with probability delta costs no more than delta
)
def no_loss_for_small_orders(data, size, rng, rate):
    """A conversion that says there is no loss where the divergence of one order is small."""
    included = rng.random((size, len(data))) < rate
    return included.sum(axis=1) + rng.normal(size=size)


@bug(
    "ornl-presto 0.1.29, applyDPGaussian (found by this museum)",
    "The formula of the Gaussian mechanism has the sensitivity under the root, and the factor 2 is left out.",
    "eps=1,delta=1e-05",
    NumberDomain(0.0, 100.0, change=100.0),
    (0.0, 100.0),
    faulty=np.sqrt(100.0 * np.log(1.25 / 1e-5)),
    mended=100.0 * np.sqrt(2.0 * np.log(1.25 / 1e-5)),
    releases=(published("ornl_presto_gaussian", "applyDPGaussian([value], sensitivity=100, epsilon=1, delta=1e-5)"),),
)
def root_of_the_sensitivity(data, size, rng, sigma):
    """The standard deviation grows with the root of the sensitivity."""
    return data + rng.normal(scale=sigma, size=size)


def _analytic_sigma(sign):
    def excess(sigma):
        a, b = 0.5 / sigma, sigma  # epsilon is 1
        return norm.cdf(a - b) - np.exp(1.0) * norm.cdf(-a - sign * b) - 0.05

    return float(brentq(excess, 0.2, 20.0))


@bug(
    "opendp/smartnoise-core#316 (analytic Gaussian)",
    "A sign in the calibration of the analytic Gaussian is not set correctly, which reduces sigma.",
    "eps=1,delta=0.05",
    DatasetDomain(values=(0, 1), largest=6),
    ([], [1]),
    faulty=_analytic_sigma(-1.0),
    mended=_analytic_sigma(1.0),
)
def sign_in_the_analytic_gaussian(data, size, rng, sigma):
    """A sign in the calibration of the analytic Gaussian mechanism."""
    return len(data) + rng.normal(scale=sigma, size=size)


def _count_by():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    counts = dp.t.make_count_by(dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance())
    release = counts >> dp.m.then_laplace_threshold(scale=1.0, threshold=3)  # reports delta 0.036397

    def counted(data):
        return tuple(sorted(release(list(data)).items()))

    return counted


@bug(
    "opendp/opendp#2922",
    "Counts at the threshold are released, and the reported delta is the tail above it: e times too small here.",
    "eps=1,delta=0.0364",  # P(1 + noise >= 4) = exp(-3) / (1 + exp(-1)) = 0.03640; P(1 + noise >= 3) = 0.09893
    DatasetDomain(values=(0, 1), largest=6),
    ([], [1]),
    releases=(Release("opendp", "0.16.0", _count_by),),
)
def threshold_at_its_boundary(data, size, rng, mended):
    """A released count may equal the threshold, and delta counts those above it."""
    noisy = len(data) + two_sided_geometric(1.0, size, rng)
    passes = noisy >= 3
    if mended:
        passes = noisy > 3
    return np.where(passes & (len(data) > 0), noisy, -1)


@bug(
    "google/differential-privacy#101",
    "ThresholdedResult converts a threshold of 37.3 to the integer 37, and returns a noisy count of 37.",
    "eps=1,delta=0.0364",
    DatasetDomain(values=(0, 1), largest=6),
    ([], [1]),
    faulty=int(3.3),
    mended=int(np.ceil(3.3)),
)
def threshold_rounded_down(data, size, rng, threshold):
    """A threshold is truncated to a whole number."""
    noisy = len(data) + two_sided_geometric(1.0, size, rng)
    return np.where((noisy >= threshold) & (len(data) > 0), noisy, -1)
