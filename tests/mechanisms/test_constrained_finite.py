"""Finite laws as mechanisms: what makes no sense is refused. That they are the paper's is tested beside the ledger."""

import math

import numpy as np
import pytest
from support.refusals import refusals

from dpaudit_mechanisms.constrained.finite import FiniteLaw, conditioned, imaged

LAW = [[0.75, 0.25], [0.25, 0.75]]


test_what_makes_no_sense_is_refused = refusals(
    (lambda: FiniteLaw([[0.7, 0.2], [0.5, 0.5]]), "law must"),
    (lambda: FiniteLaw([[0.5, math.nan]]), "law must"),
    (lambda: FiniteLaw([[1.0, 0.0], [0.0, 1.0]]).given([True, False]), "positive probability .* got 0 on input 1"),
    (lambda: conditioned(LAW, [True]), "event must"),
    (lambda: imaged(LAW, [0, 2]), "nearest must"),
    (lambda: imaged(LAW, [0.0, 0.5]), "nearest must"),
    (lambda: FiniteLaw(LAW).sample(2, 1, np.random.default_rng(0)), "data must"),
)


def test_what_is_no_world_is_impossible():
    assert FiniteLaw(LAW).log_density(0, [0, 1, -1, 2, 0.5, math.nan]) == pytest.approx(
        [math.log(0.75), math.log(0.25), -math.inf, -math.inf, -math.inf, -math.inf]
    )
