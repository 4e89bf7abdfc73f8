"""Every reference mechanism offers what the protocol asks for, and every faulty twin hides behind a sound claim."""

import dataclasses

import numpy as np
import pytest

from dpaudit.privacy.claims import ApproxDP, GaussianDP, PureDP
from dpaudit.privacy.pairs import as_pairs
from dpaudit.subjects.protocol import Mechanism
from dpaudit_mechanisms.constrained.boxes import ConditionedLaplace
from dpaudit_mechanisms.constrained.hierarchy import Hierarchy, HierarchyConditioned
from dpaudit_mechanisms.datacubes import StrategyRelease, workload_itself
from dpaudit_mechanisms.dx_exponential import DxExponential
from dpaudit_mechanisms.dx_laplace import DxLaplace
from dpaudit_mechanisms.exponential import Exponential
from dpaudit_mechanisms.faulty.constrained import ConditionedLaplaceForgetsTheMass, HierarchyForgetsTheLevels
from dpaudit_mechanisms.faulty.datacubes import DatacubeEuclideanBudgets, DatacubeForgetsTheTwo, DatacubeUnsharedBudget
from dpaudit_mechanisms.faulty.dx_exponential import DxExponentialWithoutTheTwo, SmallDBWithoutTheTwo
from dpaudit_mechanisms.faulty.dx_laplace import (
    DxLaplaceEuclidean,
    DxLaplaceForgetsAQuery,
    DxLaplaceTooLittleNoise,
    DxLaplaceUnsharedBudget,
)
from dpaudit_mechanisms.faulty.exponential import ExponentialWithoutTheTwo
from dpaudit_mechanisms.faulty.gaussian import GaussianTooLittleNoise
from dpaudit_mechanisms.faulty.geometric import GeometricCountsZeroTwice, GeometricTooLittleNoise
from dpaudit_mechanisms.faulty.laplace import LaplaceForgetsACoordinate, LaplaceTooLittleNoise
from dpaudit_mechanisms.faulty.mwem import MWEMHalfTheNoise
from dpaudit_mechanisms.faulty.randomised_response import RandomisedResponseWrongNormaliser
from dpaudit_mechanisms.faulty.statistical_queries import StatisticalHalfTheNoise
from dpaudit_mechanisms.faulty.two_metrics import (
    GlobalSensitivityTooSteep,
    KNormOneDegreeShort,
    LadderOfEqualRungs,
    OnTheLineTooNarrow,
    PrivacyFirstSquared,
    StaircaseOfHalfTheSensitivity,
    WidenedPrivacyFirstLastShell,
    WidenedStaircaseSparesTheTruth,
)
from dpaudit_mechanisms.gaussian import Gaussian
from dpaudit_mechanisms.geometric import Geometric
from dpaudit_mechanisms.laplace import Laplace
from dpaudit_mechanisms.mwem import MWEM
from dpaudit_mechanisms.problems import FIGURE_1, HEAVY, RUNGS, SHELLS, STEPS, WIDTHS
from dpaudit_mechanisms.randomised_response import RandomisedResponse
from dpaudit_mechanisms.small_db import SmallDB
from dpaudit_mechanisms.statistical_queries import StatisticalLaplace
from dpaudit_mechanisms.two_metrics import (
    GlobalSensitivity,
    KNorm,
    Ladder,
    OnTheLine,
    PrivacyFirst,
    Staircase,
    WidenedPrivacyFirst,
    WidenedStaircase,
    staircase_profile,
)

SCORES = [[1.0] + [0.0] * 20, [0.0] + [1.0] * 20]
METRIC = [[0.0, 1.0, 4.0], [1.0, 0.0, 3.0], [4.0, 3.0, 0.0]]
QUERIES = [[0.0, 1.0, 0.5], [1.0, 0.0, 0.0]]
EQUAL = [[0.0, 1.0], [1.0, 0.0]]
# One query whose error grows and several whose errors shrink where a record moves from 0 to 1 (see test_mwem.py).
ONE_AGAINST_FOUR = [[0.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 0.9], [0.0, 1.0, 1.1], [0.0, 1.0, 1.05]]
NEARLY_EQUAL = [[0.0, 1.0, 1.2], [1.0, 0.0, 1.1], [1.2, 1.1, 0.0]]
MARGINALS = workload_itself(FIGURE_1)
NO_VALUE = [False, False]
LINE = staircase_profile(1.0)
MATRIX = [[1.0, 0.5, 0.0], [0.0, 1.0, 2.0]]


def one_good_outcome(x):
    return np.concatenate([x[:, :1], np.repeat(x[:, 1:], 8, axis=1)], axis=1)


TWINS = [
    (Laplace(1.0), LaplaceTooLittleNoise(1.0)),
    (Laplace(1.0, (1.0, 2.0)), LaplaceForgetsACoordinate(1.0, (1.0, 2.0))),
    (Gaussian(ApproxDP(1.0, 1e-5)), GaussianTooLittleNoise(ApproxDP(1.0, 1e-5))),
    (Gaussian(GaussianDP(1.0), 1.0, 3), GaussianTooLittleNoise(GaussianDP(1.0), 1.0, 3)),
    (Geometric(1.0), GeometricTooLittleNoise(1.0)),
    (Geometric(1.0, 1, (0, 5)), GeometricCountsZeroTwice(1.0, 1, (0, 5))),
    (RandomisedResponse(1.0, 4), RandomisedResponseWrongNormaliser(1.0, 4)),
    (Exponential(SCORES, 1.0), ExponentialWithoutTheTwo(SCORES, 1.0)),
    (DxLaplace(QUERIES[0], METRIC, "single"), DxLaplaceTooLittleNoise(QUERIES[0], METRIC, "single")),
    (DxLaplace(QUERIES, METRIC, "S2"), DxLaplaceTooLittleNoise(QUERIES, METRIC, "S2")),
    (DxExponential(one_good_outcome, EQUAL, 1), DxExponentialWithoutTheTwo(one_good_outcome, EQUAL, 1)),
    (SmallDB(EQUAL, EQUAL, 1.0, 0.5, 3), SmallDBWithoutTheTwo(EQUAL, EQUAL, 1.0, 0.5, 3)),
    (
        MWEM(ONE_AGAINST_FOUR, NEARLY_EQUAL, 1.0, 1, 6, release="transcript"),
        MWEMHalfTheNoise(ONE_AGAINST_FOUR, NEARLY_EQUAL, 1.0, 1, 6, release="transcript"),
    ),
    (StatisticalLaplace([[0.0], [1.0]], [1.0], EQUAL, 1), StatisticalHalfTheNoise([[0.0], [1.0]], [1.0], EQUAL, 1)),
    (Staircase(HEAVY, 0.5), StaircaseOfHalfTheSensitivity(HEAVY, 0.5)),
    (GlobalSensitivity(HEAVY, 0.5), GlobalSensitivityTooSteep(HEAVY, 0.5)),
    (PrivacyFirst(STEPS, 0.7), PrivacyFirstSquared(STEPS, 0.7)),
    (WidenedPrivacyFirst(SHELLS, 1.0, WIDTHS), WidenedPrivacyFirstLastShell(SHELLS, 1.0, WIDTHS)),
    (
        WidenedStaircase(HEAVY, 0.5, 0.0, NO_VALUE, 2.0),
        WidenedStaircaseSparesTheTruth(HEAVY, 0.5, 0.0, NO_VALUE, 2.0),
    ),
    (Ladder(RUNGS, 0.5), LadderOfEqualRungs(RUNGS, 0.5)),
    (OnTheLine(LINE, 0.5), OnTheLineTooNarrow(LINE, 0.5)),
    (KNorm(MATRIX, 1.0), KNormOneDegreeShort(MATRIX, 1.0)),
    (DxLaplace(QUERIES, METRIC, "S2"), DxLaplaceForgetsAQuery(QUERIES, METRIC, "S2")),
    (DxLaplace(QUERIES, METRIC, "S2"), DxLaplaceEuclidean(QUERIES, METRIC, "S2")),
    (DxLaplace(QUERIES, METRIC, "PSA"), DxLaplaceUnsharedBudget(QUERIES, METRIC, "PSA")),
    (
        ConditionedLaplace(1.0, [0.0, 0.0], [3.0, np.inf]),
        ConditionedLaplaceForgetsTheMass(1.0, [0.0, 0.0], [3.0, np.inf]),
    ),
    (
        HierarchyConditioned(1.0, Hierarchy.of_sizes([1, 2])),
        HierarchyForgetsTheLevels(1.0, Hierarchy.of_sizes([1, 2])),
    ),
    *(
        (StrategyRelease(FIGURE_1, MARGINALS, PureDP(1.0)), twin(FIGURE_1, MARGINALS, PureDP(1.0)))
        for twin in (DatacubeUnsharedBudget, DatacubeEuclideanBudgets)
    ),
    (
        StrategyRelease(FIGURE_1, MARGINALS, PureDP(1.0), adjacency="replace_one"),
        DatacubeForgetsTheTwo(FIGURE_1, MARGINALS, PureDP(1.0), adjacency="replace_one"),
    ),
]
EVERY = [mechanism for pair in TWINS for mechanism in pair]


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda mechanism: type(mechanism).__name__)
def test_a_mechanism_offers_samples_densities_a_claim_and_pairs(mechanism):
    assert isinstance(mechanism, Mechanism) and mechanism.claim is not None
    pairs = as_pairs(mechanism.pairs())
    assert len({pair.id for pair in pairs}) == len(pairs)
    for pair in pairs:
        samples = mechanism.sample(pair.x, 7, np.random.default_rng(1))
        assert len(samples) == 7
        logs = mechanism.log_density(pair.x_prime, samples)
        assert logs.shape == (7,) and np.isfinite(logs).all()
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.epsilon = 2.0


@pytest.mark.parametrize(("sound", "twin"), TWINS, ids=lambda mechanism: type(mechanism).__name__)
def test_a_twin_states_the_sound_claim_on_the_same_pairs_and_loses_more(sound, twin):
    assert str(twin.claim) == str(sound.claim)
    assert [pair.id for pair in twin.pairs()] == [pair.id for pair in sound.pairs()]
    first = sound.pairs()[0]
    promised = sound.claim.for_pair(first.x, first.x_prime)
    assert twin.claim.for_pair(first.x, first.x_prime) == promised
    if isinstance(sound, Gaussian):
        assert twin.mu(first.x, first.x_prime) > 1.19 * sound.mu(first.x, first.x_prime)
    else:
        assert sound.privacy_loss(first.x, first.x_prime) <= promised.value * (1.0 + 1e-12)
        assert twin.privacy_loss(first.x, first.x_prime) > 1.05 * promised.value
    assert "promised" in twin.fault
