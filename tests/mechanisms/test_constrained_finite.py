"""Finite laws as mechanisms: what makes no sense is refused. That they are the paper's is tested beside the ledger."""

import math

import numpy as np
import pytest

from dpaudit.errors import UsageError
from dpaudit_mechanisms.constrained.finite import FiniteLaw, conditioned, gamma, imaged, nearest_worlds

LAW = [[0.75, 0.25], [0.25, 0.75]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FiniteLaw([[0.7, 0.2], [0.5, 0.5]]), r"law must have rows of probabilities, got sums \[0\.89"),
        (lambda: FiniteLaw([[1.5, -0.5]]), "law must have rows of probabilities"),
        (lambda: FiniteLaw([[0.5, math.nan]]), "law must be numbers, got nan"),
        (lambda: FiniteLaw([[1.0, 0.0], [0.0, 1.0]]).given([True, False]), "positive probability .* got 0 on input 1"),
        (lambda: conditioned(LAW, [True]), r"event must be of shape \(2,\), got shape \(1,\)"),
        (lambda: imaged(LAW, [0, 2]), "nearest must be a world for each of 2"),
        (lambda: imaged(LAW, [0.0, 0.5]), "nearest must be a world for each of 2"),
        (lambda: nearest_worlds([[0.0], [1.0]], [False, False]), "event must have a world, got none"),
        (lambda: gamma(LAW, [True, False], 0.0), r"epsilon must be in \(0, inf\), got 0\.0"),
        (lambda: FiniteLaw(LAW).sample(2, 1, np.random.default_rng(0)), "data must be an integer from 0 to 1"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(UsageError, match=message):
        make()


def test_what_is_no_world_is_impossible():
    assert FiniteLaw(LAW).log_density(0, [0, 1, -1, 2, 0.5, math.nan]) == pytest.approx(
        [math.log(0.75), math.log(0.25), -math.inf, -math.inf, -math.inf, -math.inf]
    )
