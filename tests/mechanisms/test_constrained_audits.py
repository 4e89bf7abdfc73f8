"""Audits of the constrained mechanisms and of their faulty twins.

Every audit has confidence 1 - 1e-6: a sound mechanism is called violated with probability at most 1e-6, for any seed.
The twins are caught for the fixed seed below; where their true losses are finite, they are exact.
"""

import math

import numpy as np
import pytest

import dpaudit
from dpaudit_mechanisms.constrained.affine import Affine
from dpaudit_mechanisms.constrained.algorithm_1 import GeometricOnHierarchy
from dpaudit_mechanisms.constrained.boxes import ConditionedLaplace, ImagedLaplace
from dpaudit_mechanisms.constrained.equalities import GaussianOnEqualities, LaplaceOnEqualities
from dpaudit_mechanisms.constrained.finite import FiniteLaw
from dpaudit_mechanisms.constrained.hierarchy import Hierarchy, HierarchyConditioned, HierarchyImaged, TopDown
from dpaudit_mechanisms.constrained.imaging import Imaged
from dpaudit_mechanisms.constrained.metropolis import HierarchyMetropolis
from dpaudit_mechanisms.constrained.mixture import Mixture
from dpaudit_mechanisms.constrained.polyhedron import Polyhedron
from dpaudit_mechanisms.constrained.rejection import Rejected
from dpaudit_mechanisms.faulty.constrained import (
    ConditionedLaplaceForgetsTheMass,
    GeometricForgetsTheProposal,
    HierarchyForgetsTheLevels,
    ImagedOntoTheData,
    LaplaceOnAnyTotal,
    MetropolisStartsAtTheTruth,
    MixtureByTheData,
    RejectedGivesUp,
)
from dpaudit_mechanisms.gaussian import Gaussian
from dpaudit_mechanisms.laplace import Laplace

CONFIDENCE = 1.0 - 1e-6
SEED = 20_261_551
DRAWS, FEWER = 30_000, 5_000  # runs on an input, at most: of twins, and of sound mechanisms
INF = math.inf
TREE = Hierarchy.of_sizes([1, 2])
SUM = Affine([[1.0, 1.0, 1.0]], [6.0])
ORTHANT = Polyhedron(np.eye(2), np.zeros(2))
WIDE_AND_NARROW = [Laplace(1.0), Laplace(1.0, 3.0)]


def audited(mechanism, samples, **options):
    return dpaudit.audit(mechanism, samples=samples, confidence=CONFIDENCE, seed=SEED, floating_point=False, **options)


def is_positive(outputs):
    return outputs >= 0.0


SOUND = [
    ConditionedLaplace(1.0, [0.0, -1.0], [3.0, INF]),
    ImagedLaplace(1.0, [0.0], [3.0]),
    Imaged(Laplace(1.0, (0.5, 0.5)), Affine([[1.0, 1.0]], [3.0])),
    Imaged(Laplace(1.0, (0.5, 0.5)), ORTHANT),
    LaplaceOnEqualities(1.0, SUM),
    LaplaceOnEqualities(1.0, Affine([[1.0, 2.0, 3.0]], [6.0]), sweeps=10),
    GaussianOnEqualities(Gaussian(dpaudit.GaussianDP(1.0), 1.0, 3), SUM),
    # Once refuted by the last bits of the sum, after 140 and 2,020 draws: an answer's own rounding showed in them.
    GaussianOnEqualities(Gaussian(dpaudit.GaussianDP(1.0), 1.0, 2), Affine([[1.0, 1.0]], [3.0])),
    LaplaceOnEqualities(0.5, Affine([[1.0, 2.0]], [3.0])),
    HierarchyConditioned(1.0, TREE),
    HierarchyImaged(1.0, TREE),
    TopDown(1.0, TREE, non_negative=True),
    HierarchyMetropolis(1.0, TREE, sweeps=20),
    HierarchyMetropolis(1.0, TREE, non_negative=True, sweeps=40),
    GeometricOnHierarchy(1.0, TREE, steps=60),
    Mixture(WIDE_AND_NARROW, [0.9, 0.1]),
    FiniteLaw([[0.2, 0.3, 0.5], [0.3, 0.3, 0.4]]).given([True, True, False]),
    FiniteLaw([[0.2, 0.3, 0.5], [0.3, 0.3, 0.4]]).moved([0, 1, 1]),
]


@pytest.mark.slow
@pytest.mark.claim("CD-L3.7")
@pytest.mark.claim("CD-S7")
@pytest.mark.claim("CD-L3.3")
@pytest.mark.parametrize("mechanism", SOUND, ids=[f"{type(m).__name__}-{i}" for i, m in enumerate(SOUND)])
def test_a_constrained_mechanism_is_not_refuted_and_its_bound_is_below_its_loss(mechanism):
    result = audited(mechanism, FEWER)
    assert result.verdict != "violated"
    if hasattr(mechanism, "privacy_loss"):
        for finding, pair in zip(result.findings, mechanism.pairs(), strict=True):
            assert finding.epsilon_lower <= mechanism.privacy_loss(pair.x, pair.x_prime)


TWINS = [
    ConditionedLaplaceForgetsTheMass(1.0, [0.0], [INF]),
    LaplaceOnAnyTotal(1.0, 0.0),
    HierarchyForgetsTheLevels(1.0, TREE),
    ImagedOntoTheData(1.0, [-INF], [INF]),
    MixtureByTheData(WIDE_AND_NARROW, [0.9, 0.1]),
    MetropolisStartsAtTheTruth(1.0, TREE),
    GeometricForgetsTheProposal(1.0, TREE, steps=40),
]


@pytest.mark.claim("CD-S7")
@pytest.mark.claim("CD-L3.3")
@pytest.mark.claim("CD-S11")
@pytest.mark.claim("CD-T3.9.2")
@pytest.mark.claim("CD-N1")
@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: type(twin).__name__)
def test_a_twin_is_caught(twin):
    assert "promised" in twin.fault
    result = audited(twin, DRAWS)
    assert result.verdict == "violated"
    if hasattr(twin, "privacy_loss"):
        for finding, (x, x_prime) in zip(result.findings, sides(twin), strict=True):
            assert finding.epsilon_lower <= twin.privacy_loss(x, x_prime)


def sides(mechanism):
    return [pair if isinstance(pair, tuple) else (pair.x, pair.x_prime) for pair in mechanism.pairs()]


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


@pytest.mark.claim("CD-T3.5.2")
def test_a_union_of_two_events_is_refuted_where_each_of_them_says_nothing():
    """Laplace noise, answers 0 and 1, given the half-lines below 0 and above 1: the loss is 1, and 0 given either."""
    pairs = [(0.0, 1.0)]

    def given(event):
        return Rejected(Laplace(1.0), event)

    each = [given(lambda y: y <= 0.0), given(lambda y: y >= 1.0)]
    for one in each:
        assert audited(one, FEWER, claim=dpaudit.PureDP(0.5), pairs=pairs).verdict != "violated"
    union = given(lambda y: (y <= 0.0) | (y >= 1.0))
    result = audited(union, DRAWS, claim=dpaudit.PureDP(0.5), pairs=pairs)
    assert result.verdict == "violated" and 0.5 < result.epsilon_lower <= 1.0
