"""A sign in the calibration of the analytic Gaussian mechanism."""

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from dpaudit.domains import DatasetDomain

EPSILON, DELTA = 1.0, 0.05


def _sigma(sign):
    def excess(sigma):
        a, b = 0.5 / sigma, EPSILON * sigma
        return norm.cdf(a - b) - np.exp(EPSILON) * norm.cdf(-a - sign * b) - DELTA

    return float(brentq(excess, 0.2, 20.0))


RIGHT, WRONG = _sigma(1.0), _sigma(-1.0)


def faulty(data, size, rng):
    return len(data) + rng.normal(scale=WRONG, size=size)


def mended(data, size, rng):
    return len(data) + rng.normal(scale=RIGHT, size=size)


EXHIBIT = dict(
    kind="delta and conversions",
    source="opendp/smartnoise-core#316 (analytic Gaussian)",
    wrong="A sign in the calibration of the analytic Gaussian is not set correctly, which reduces sigma.",
    claim="eps=1,delta=0.05",
    domain=DatasetDomain(values=(0, 1), largest=6),
    pair=([], [1]),
)
