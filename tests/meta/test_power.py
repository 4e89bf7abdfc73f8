"""Each planted fault is found within a stated number of draws, for every one of 20 seeds.

The stated numbers are twice the most that any of the 20 seeds took when they were measured (labelled draws of the pair
that took longest, all broken pairs of a twin to be found), rounded up, or less where an earlier engine needed less: an
engine that needs twice the draws fails here. They are a property of these seeds, which are fixed, so there is no
false-positive rate to state; `rates.py` holds the auditor to its error rate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit_mechanisms.constrained.hierarchy import Hierarchy
from dpaudit_mechanisms.datacubes import base_counts, workload_itself
from dpaudit_mechanisms.distances import Calibration, FixedQueries, SubsetDistances
from dpaudit_mechanisms.faulty.constrained import ConditionedLaplaceForgetsTheMass, HierarchyForgetsTheLevels
from dpaudit_mechanisms.faulty.datacubes import (
    CountsKeepTrueZeros,
    DatacubeEuclideanBudgets,
    DatacubeForgetsTheTwo,
    DatacubeUnsharedBudget,
)
from dpaudit_mechanisms.faulty.distances import (
    EmbeddingLooksAtTheData,
    LearnerReadsWithoutMistakes,
    SparseVectorNotRefreshed,
    on_the_line,
    worst_pair,
)
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
from dpaudit_mechanisms.laplace import Laplace
from dpaudit_mechanisms.problems import FIGURE_1, HEAVY, RUNGS, SHELLS, STEPS, WIDTHS
from dpaudit_mechanisms.two_metrics import staircase_profile

SEEDS = range(20)
ONE_GOOD_OUTCOME = [[1.0] + [0.0] * 20, [0.0] + [1.0] * 20]
TWO_POINTS = [[0.0, 0.5], [0.5, 0.0]]
EQUAL = [[0.0, 1.0], [1.0, 0.0]]
MARGINALS = workload_itself(FIGURE_1)
SPARSE = Calibration(1, [1.0], 1, 0.5, 2.0, 4.0, 6.0)
ENDS = FixedQueries([[0.0], [1.0], [0.0], [1.0]])
OF_SUBSETS = SubsetDistances(on_the_line, np.zeros((20, 1)), 1, seed=2)
OF_IMAGES = Calibration(20, OF_SUBSETS.widths, 1, 0.3, 0.1, 0.2, 0.3)


def one_good_and_eight_poor(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x[:, :1], np.repeat(x[:, 1:], 8, axis=1)], axis=1)


# (mechanism, labelled draws a pair within which every seed finds it)
FAULTS = [
    (LaplaceTooLittleNoise(1.0), 11_000),
    (LaplaceForgetsACoordinate(1.0, (1.0, 1.0)), 1_700),
    (GaussianTooLittleNoise(dpaudit.ApproxDP(1.0, 0.01)), 150_000),
    (GaussianTooLittleNoise(dpaudit.GaussianDP(1.0)), 23_500),
    (GaussianTooLittleNoise(dpaudit.ZeroConcentratedDP(0.5)), 25_000),
    (GeometricTooLittleNoise(1.0), 9_300),
    (GeometricCountsZeroTwice(1.0), 2_100),
    (RandomisedResponseWrongNormaliser(1.0, 4), 660),
    (ExponentialWithoutTheTwo(ONE_GOOD_OUTCOME, metric=1.0), 8_000),
    (DxLaplaceTooLittleNoise([0.0, 1.0], TWO_POINTS, rule="single"), 34_000),
    (DxLaplaceForgetsAQuery([[0.0, 1.0], [0.0, 1.0]], TWO_POINTS), 6_400),
    (DxLaplaceEuclidean([[0.0, 3.0], [0.0, 4.0]], TWO_POINTS), 48_000),
    (DxLaplaceUnsharedBudget([[0.0, 1.0], [0.0, 2.0]], TWO_POINTS, rule="PSA"), 6_400),
    (DxExponentialWithoutTheTwo(one_good_and_eight_poor, EQUAL, 1), 5_100),
    (SmallDBWithoutTheTwo(EQUAL, EQUAL, 1.0, 0.5, 3), 47_000),
    (StatisticalHalfTheNoise([[0.0], [1.0]], [1.0], EQUAL, 1), 1_100),
    (StaircaseOfHalfTheSensitivity(HEAVY, 0.5), 7_900),
    (GlobalSensitivityTooSteep(HEAVY, 0.5), 38_000),
    (PrivacyFirstSquared(STEPS, 0.7), 25_000),
    (WidenedPrivacyFirstLastShell(SHELLS, 1.0, WIDTHS), 30_000),
    (WidenedStaircaseSparesTheTruth(HEAVY, 0.5, 0.0, [False, False], 2.0), 2_100),
    (LadderOfEqualRungs(RUNGS, 0.5), 5_100),
    (OnTheLineTooNarrow(staircase_profile(1.0), 0.5), 16_000),
    (KNormOneDegreeShort([[1.0, 0.5, 0.0], [0.0, 1.0, 2.0]], 1.0), 4_000),
    (ConditionedLaplaceForgetsTheMass(1.0, [0.0], [np.inf]), 59_000),
    (HierarchyForgetsTheLevels(1.0, Hierarchy.of_sizes([1, 2])), 1_000),
    (DatacubeUnsharedBudget(FIGURE_1, MARGINALS, dpaudit.PureDP(1.0), "uniform"), 2_600),
    (DatacubeForgetsTheTwo(FIGURE_1, MARGINALS, dpaudit.PureDP(0.5), adjacency="replace_one"), 23_000),
    (DatacubeEuclideanBudgets(FIGURE_1, MARGINALS, dpaudit.PureDP(1.0)), 13_000),
    (CountsKeepTrueZeros(FIGURE_1, base_counts(FIGURE_1.domain), dpaudit.PureDP(1.0)), 1_100),
    (SparseVectorNotRefreshed(SPARSE, ENDS, 4), 16_000),
    (LearnerReadsWithoutMistakes(SPARSE, ENDS, 4), 900),
    (EmbeddingLooksAtTheData(OF_SUBSETS, OF_IMAGES, ENDS, 3, [worst_pair(20)]), 6_400),
]


@pytest.mark.parametrize(("mechanism", "labelled"), FAULTS, ids=[f"{type(m).__name__}-{m.claim}" for m, _ in FAULTS])
@pytest.mark.parametrize(
    "seeds",
    [pytest.param(SEEDS[:1], marks=pytest.mark.slow), pytest.param(SEEDS, marks=pytest.mark.long)],
    ids=["one seed", "all seeds"],
)
def test_every_seed_finds_the_planted_fault_within_the_stated_draws(
    mechanism: Any, labelled: int, seeds: range
) -> None:
    for seed in seeds:
        result = dpaudit.audit(mechanism, samples=labelled // 2, seed=seed)
        assert result.verdict == "violated", (mechanism.fault, seed)


def test_the_sound_mechanism_is_not_found_by_the_same_audit() -> None:
    # The control: at the size that finds the twin, the sound one is called violated in at most 5% of seeds; here in
    # none of five fixed ones (chance of any under the promise: below 0.23; measured far below, see rates.py).
    results = [dpaudit.audit(Laplace(1.0), samples=15_500, seed=seed) for seed in range(5)]
    assert [result.verdict for result in results] == ["not_refuted"] * 5


@pytest.mark.slow
def test_fixed_audits_of_a_laplace_at_its_budget_reach_a_bound_of_0_98_in_the_median() -> None:
    # The best fixed test that knows the events reaches 0.990 at this size (binomial quantiles).
    bounds = sorted(
        dpaudit.audit(_release(1.0), "eps=1", [(0.0, 1.0)], samples=100_000, mode="fixed", seed=seed).epsilon_lower
        for seed in SEEDS
    )
    assert 0.5 * (bounds[9] + bounds[10]) >= 0.98


@pytest.mark.slow
def test_sequential_audits_stop_within_150_draws_a_side_in_the_median_where_the_loss_is_twice_the_claim() -> None:
    draws = sorted(
        dpaudit.audit(_release(2.0), "eps=1", [(0.0, 1.0)], seed=seed).findings[0].samples / 2 for seed in SEEDS
    )
    assert 0.5 * (draws[9] + draws[10]) <= 150


def _release(epsilon: float) -> Any:
    return lambda data, size, rng: data + rng.laplace(scale=1.0 / epsilon, size=size)
