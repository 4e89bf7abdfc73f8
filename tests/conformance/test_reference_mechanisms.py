"""Every reference mechanism passes the whole list, as a third party's would: users run what we run.

The error rate is 1e-7 a mechanism (the union bound over its list): below 2e-6 for this file. Noise of numpy.random that
is added to doubles leaks in their low bits, which is known, and a strict xfail: the check must find it.
"""

import numpy as np
import pytest

import dpaudit
from dpaudit.privacy.claims import ApproxDP
from dpaudit_mechanisms.dx_exponential import DxExponential
from dpaudit_mechanisms.dx_laplace import DxLaplace
from dpaudit_mechanisms.exponential import Exponential
from dpaudit_mechanisms.gaussian import Gaussian
from dpaudit_mechanisms.geometric import Geometric
from dpaudit_mechanisms.laplace import Laplace
from dpaudit_mechanisms.mwem import MWEM
from dpaudit_mechanisms.planar_laplace import PlanarLaplace
from dpaudit_mechanisms.randomised_response import RandomisedResponse
from dpaudit_mechanisms.small_db import SmallDB
from dpaudit_mechanisms.statistical_queries import StatisticalLaplace

ERROR_RATE = 1e-7
METRIC = [[0.0, 1.0, 1.6], [1.0, 0.0, 1.2], [1.6, 1.2, 0.0]]
QUERIES = [[0.0, 1.0, 0.5], [1.0, 0.0, 0.0]]
EQUAL = [[0.0, 1.0], [1.0, 0.0]]
SCORES = [[1.0] + [0.0] * 20, [0.0] + [1.0] * 20]
ONE_AGAINST_FOUR = [[0.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 0.9], [0.0, 1.0, 1.1], [0.0, 1.0, 1.05]]
NEARLY_EQUAL = [[0.0, 1.0, 1.2], [1.0, 0.0, 1.1], [1.2, 1.1, 0.0]]
FLOATS = (Laplace, Gaussian, DxLaplace, MWEM, PlanarLaplace, StatisticalLaplace)


def one_good_outcome(x):
    return np.concatenate([x[:, :1], np.repeat(x[:, 1:], 8, axis=1)], axis=1)


def known(mechanism):
    if isinstance(mechanism, FLOATS):
        return {"floating_point": "noise of numpy.random is added to doubles; the claim is of the real line"}
    return {}


QUICK = [Laplace(1.0), Geometric(1.0), RandomisedResponse(1.0, 4), DxLaplace(QUERIES[0], METRIC, "single")]
LONGER = [
    Laplace(1.0, (1.0, 2.0)),
    Gaussian(ApproxDP(1.0, 1e-3)),
    Geometric(1.0, 1, (0, 5)),
    Exponential(SCORES, 1.0),
    DxLaplace(QUERIES, METRIC),
    DxExponential(one_good_outcome, EQUAL, 1),
    SmallDB(EQUAL, EQUAL, 1.0, 0.5, 3, rescaled=True),
    MWEM(ONE_AGAINST_FOUR, NEARLY_EQUAL, 1.0, 1, 6, release="transcript"),
    StatisticalLaplace([[0.0], [1.0]], [1.0], EQUAL, 1),
    PlanarLaplace(200.0, points=((0.0, 0.0), (200.0, 0.0), (100.0, 160.0))),
]


@dpaudit.parametrize_with_checks(QUICK, error_rate=ERROR_RATE, expected_failures=known)
def test_a_reference_mechanism_passes(check):
    check()


@pytest.mark.long
@dpaudit.parametrize_with_checks(LONGER, error_rate=ERROR_RATE, expected_failures=known)
def test_each_other_reference_mechanism_passes(check):
    check()
