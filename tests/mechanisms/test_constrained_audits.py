"""Audits of the constrained mechanisms and of their faulty twins.

Every audit has confidence 1 - 1e-6: a sound mechanism is called violated with probability at most 1e-6, for any seed.
The twins are caught for the fixed seed below; where their true losses are finite, they are exact.
"""

import math

import pytest

import dpaudit
from dpaudit_mechanisms.constrained.rejection import Rejected
from dpaudit_mechanisms.faulty.constrained import (
    RejectedGivesUp,
)
from dpaudit_mechanisms.laplace import Laplace

CONFIDENCE = 1.0 - 1e-6
SEED = 20_261_551
DRAWS, FEWER = 30_000, 5_000  # runs on an input, at most: of twins, and of sound mechanisms


def audited(mechanism, samples, **options):
    return dpaudit.audit(mechanism, samples=samples, confidence=CONFIDENCE, seed=SEED, floating_point=False, **options)


def is_positive(outputs):
    return outputs >= 0.0


@pytest.mark.claim("CD-S7")
def test_rejection_keeps_what_conditioning_costs_and_not_what_the_noise_promised():
    sound = Rejected(Laplace(1.0), is_positive)
    pairs = [(0.0, 1.0)]
    cost = 1.0 + math.log(2.0 - math.exp(-1.0))  # the exact loss of this pair, 1.49
    result = audited(sound, FEWER, claim=dpaudit.PureDP(cost), pairs=pairs)
    assert result.verdict != "violated" and result.epsilon_lower <= cost
    assert audited(sound, DRAWS, claim=dpaudit.PureDP(1.0), pairs=pairs).verdict == "violated"
    twin = RejectedGivesUp(Laplace(1.0), is_positive)
    assert "loss inf nats, promised 2" in twin.fault
    assert audited(twin, DRAWS, pairs=pairs).verdict == "violated"
