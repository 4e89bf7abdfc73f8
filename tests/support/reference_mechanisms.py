"""The reference mechanisms that tests walk: with a faulty twin of the same claim, and with a bound of their error.

`tests/mechanisms/test_listed.py` names a mechanism of the package that stands in neither list.
"""

import numpy as np

from dpaudit.privacy.claims import ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP
from dpaudit_mechanisms.constrained.affine import Affine
from dpaudit_mechanisms.constrained.algorithm_1 import GeometricOnHierarchy
from dpaudit_mechanisms.constrained.boxes import ConditionedLaplace, ImagedLaplace
from dpaudit_mechanisms.constrained.equalities import GaussianOnEqualities, LaplaceOnEqualities
from dpaudit_mechanisms.constrained.hierarchy import Hierarchy, HierarchyConditioned, HierarchyImaged, TopDown
from dpaudit_mechanisms.constrained.imaging import Imaged
from dpaudit_mechanisms.constrained.metropolis import HierarchyMetropolis
from dpaudit_mechanisms.constrained.mixture import Mixture
from dpaudit_mechanisms.constrained.polyhedron import Polyhedron
from dpaudit_mechanisms.datacubes import Domain, FourierStrategy, all_marginals, base_counts, workload_itself
from dpaudit_mechanisms.datacubes.counts import CountsRelease
from dpaudit_mechanisms.datacubes.release import DatacubeRelease, StrategyRelease
from dpaudit_mechanisms.distances import (
    EmbeddedDistances,
    FixedQueries,
    InteractiveDistances,
    MetricDistances,
    OfflineDistances,
    RandomProjection,
    SlopeSeeker,
    practical,
)
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
from dpaudit_mechanisms.learning.marginals import ChainGenerator
from dpaudit_mechanisms.learning.pate import NoisyVotes
from dpaudit_mechanisms.mwem import MWEM
from dpaudit_mechanisms.planar_laplace import PlanarLaplace
from dpaudit_mechanisms.problems import FIGURE_1, HEAVY, RUNGS, SHELLS, STEPS, WIDTHS
from dpaudit_mechanisms.randomised_response import RandomisedResponse
from dpaudit_mechanisms.small_db import SmallDB
from dpaudit_mechanisms.statistical_queries import StatisticalLaplace
from dpaudit_mechanisms.two_metrics import (
    GlobalSensitivity,
    ImportantOnTheLine,
    KNorm,
    Ladder,
    OnTheLine,
    PrivacyFirst,
    Staircase,
    WidenedPrivacyFirst,
    WidenedStaircase,
    staircase_profile,
)

METRIC = [[0.0, 1.0, 4.0], [1.0, 0.0, 3.0], [4.0, 3.0, 0.0]]
QUERIES = [[0.0, 1.0, 0.5], [1.0, 0.0, 0.0]]
EQUAL = [[0.0, 1.0], [1.0, 0.0]]
SCORES = [[1.0] + [0.0] * 20, [0.0] + [1.0] * 20]
SUM = Affine([[1.0, 1.0, 1.0]], [6.0])
CROSSED = Affine([[1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 2.0, 1.0]], [3.0, 4.0])  # no closed form: chains
TREE = Hierarchy.of_sizes([2, 3])
MARGINALS = workload_itself(FIGURE_1)
CUBE = Domain.binary(3)
RECORDS = 10_000
TUNED = practical(RECORDS, [1.0], 1.0, queries=3, beta=0.05)
PLACES = FixedQueries([[0.0], [0.5], [1.0]])


def one_good_outcome(x):
    return np.concatenate([x[:, :1], np.repeat(x[:, 1:], 8, axis=1)], axis=1)


def on_a_circle():
    """Two databases of the ball that differ in a point."""
    angles = np.linspace(0.0, 6.0, RECORDS)
    circle = 0.5 * np.column_stack([np.cos(angles), np.sin(angles)])
    return [(circle, np.concatenate([[[0.0, 0.0]], circle[1:]]))]


BALL = RandomProjection(2, 4)
# Mechanism, share of its budget that misses a bound of its error, and draws that show it.
EVERY = {
    "laplace": (Laplace(1.0, (1.0, 2.0)), 0.7, 4_000),
    "gaussian": (Gaussian(GaussianDP(1.0), 1.0, 3), 0.7, 4_000),
    "geometric": (Geometric(1.0), 0.5, 4_000),
    "response": (RandomisedResponse(1.0, 4), 0.5, 4_000),
    "exponential": (Exponential(np.repeat(SCORES, 10, axis=1), 20.0), 0.1, 4_000),
    "planar": (PlanarLaplace(200.0, points=((0.0, 0.0), (200.0, 0.0))), 0.7, 4_000),
    "votes": (NoisyVotes(1.0), 0.3, 4_000),
    "chain": (ChainGenerator(1.0), 0.01, 1_000),
    # paper of linear queries
    "dx laplace": (DxLaplace(QUERIES, METRIC), 0.7, 4_000),
    "dx exponential": (DxExponential(one_good_outcome, 20.0 * np.array(EQUAL), 1), 0.1, 4_000),
    "small db": (SmallDB(np.array(EQUAL), EQUAL, 0.1, 0.01, 2_000, rescaled=True), 1e-3, 4_000),
    "statistical": (StatisticalLaplace([[0.0], [1.0]], [1.0], EQUAL, 1), 0.7, 4_000),
    # paper of distance queries
    "interactive": (InteractiveDistances(TUNED, PLACES, 3), 0.02, 1_000),
    "interactive, adaptive": (InteractiveDistances(TUNED, SlopeSeeker(1.0), 3), 0.02, 1_000),
    "interactive, normal": (
        InteractiveDistances(practical(RECORDS, [1.0], 1.0, 1e-6, queries=3, beta=0.05), PLACES, 3), 0.02, 1_000,
    ),
    "offline": (OfflineDistances(RECORDS, [1.0], 3.0, intervals=4), 0.02, 1_000),
    "metric": (MetricDistances(BALL, [[0.0, 0.0]], RECORDS, 100.0, databases=on_a_circle()), 0.01, 200),
    "embedded": (
        EmbeddedDistances(
            BALL, practical(RECORDS, BALL.widths, 100.0, queries=2, beta=0.05), FixedQueries([[0.0, 0.0], [0.5, 0.0]]),
            2, on_a_circle(),
        ), 0.01, 1_000,
    ),
    # paper of two metrics
    "staircase": (Staircase(HEAVY, 4.0), 0.1, 4_000),
    "global sensitivity": (GlobalSensitivity(HEAVY, 4.0), 0.1, 4_000),
    "ladder": (Ladder(RUNGS, 0.5), 0.3, 4_000),
    "privacy first": (PrivacyFirst(STEPS, 0.7), 0.3, 4_000),
    "widened privacy first": (WidenedPrivacyFirst(SHELLS, 1.0, WIDTHS), 0.1, 20_000),
    "widened staircase": (WidenedStaircase(HEAVY, 4.0, 0.0, [False, False], 2.0), 0.1, 4_000),
    "line": (OnTheLine(staircase_profile(1.0), 0.5), 0.7, 4_000),
    "important": (ImportantOnTheLine(staircase_profile(1.0), 1.0, [[0.0, 10.0]], 1.0), 0.3, 4_000),
    "k-norm": (KNorm([[1.0, 0.5, 0.0], [0.0, 1.0, 2.0]], 1.0), 0.7, 4_000),
    "k-norm, discrete": (KNorm([[1.0, 0.5, 0.0], [0.0, 1.0, 2.0]], 1.0, discrete=True), 0.6, 4_000),
    # paper of invariants
    "conditioned box": (ConditionedLaplace(1.0, [0.0, 0.0], [3.0, np.inf]), 0.7, 4_000),
    "imaged box": (ImagedLaplace(1.0, [0.0, 0.0], [3.0, np.inf]), 0.7, 4_000),
    "normal on a sum": (
        GaussianOnEqualities(Gaussian(ApproxDP(1.0, 1e-5), 1.0, 3), SUM), 0.7, 4_000,
    ),
    "laplace on a sum": (LaplaceOnEqualities(1.0, SUM), 0.7, 4_000),
    "laplace on equalities": (LaplaceOnEqualities(1.0, CROSSED), 0.7, 2_000),
    "imaged onto a sum": (Imaged(Laplace(1.0, (0.5, 0.5, 0.5)), SUM), 0.7, 4_000),
    "imaged onto an orthant": (Imaged(Laplace(1.0, (0.5, 0.5)), Polyhedron(np.eye(2), [0.0, 0.0])), 0.3, 1_000),
    "mixture": (Mixture([Laplace(1.0), Laplace(1.0, 2.0)], [0.5, 0.5]), 0.7, 4_000),
    "tree, conditioned": (HierarchyConditioned(1.0, TREE), 0.7, 4_000),
    "tree, imaged": (HierarchyImaged(1.0, TREE), 0.7, 4_000),
    "tree, top down": (TopDown(1.0, TREE), 0.7, 4_000),
    "tree, top down, no negative counts": (TopDown(1.0, TREE, non_negative=True), 0.02, 2_000),
    "tree, chains": (HierarchyMetropolis(1.0, TREE), 0.7, 1_000),
    "tree, chains, no negative counts": (HierarchyMetropolis(1.0, TREE, non_negative=True), 0.2, 1_000),
    "tree, whole": (GeometricOnHierarchy(1.0, TREE), 0.6, 1_000),
    # paper of datacubes
    "strategy": (StrategyRelease(FIGURE_1, MARGINALS, PureDP(1.0)), 0.7, 4_000),
    "strategy, normal": (StrategyRelease(FIGURE_1, FourierStrategy(FIGURE_1), GaussianDP(1.0)), 0.7, 4_000),
    **{
        f"datacube, {recovery}": (
            DatacubeRelease(FIGURE_1, MARGINALS, PureDP(1.0), recovery=recovery), share, draws,
        )
        for recovery, share, draws in [("least_squares", 0.6, 1_000), ("initial", 0.6, 1_000),
                                       ("consistent_2", 0.6, 1_000), ("consistent_1", 0.02, 60),
                                       ("consistent_inf", 0.02, 60)]  # a linear program each draw
    },
    "counts": (CountsRelease(all_marginals(CUBE, 1), base_counts(CUBE), PureDP(1.0)), 0.02, 1_000),
}  # fmt: skip


def twins(draws, sound, twin, *arguments, **options):
    """A mechanism, its faulty twin, and labelled draws of a pair within which each of 20 seeds finds the twin."""
    return sound(*arguments, **options), twin(*arguments, **options), draws


TWO_POINTS = [[0.0, 0.5], [0.5, 0.0]]
# One query whose error grows and several whose errors shrink where a record moves from 0 to 1 (see test_mwem.py).
ONE_AGAINST_FOUR = [[0.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 0.9], [0.0, 1.0, 1.1], [0.0, 1.0, 1.05]]
NEARLY_EQUAL = [[0.0, 1.0, 1.2], [1.0, 0.0, 1.1], [1.2, 1.1, 0.0]]
LINE, MATRIX = staircase_profile(1.0), [[1.0, 0.5, 0.0], [0.0, 1.0, 2.0]]
# Draws are twice the most that any of the seeds took, rounded up, or less where an earlier engine needed less.
TWINS = [
    twins(11_000, Laplace, LaplaceTooLittleNoise, 1.0),
    twins(1_700, Laplace, LaplaceForgetsACoordinate, 1.0, (1.0, 1.0)),
    twins(None, Laplace, LaplaceForgetsACoordinate, 1.0, (1.0, 2.0)),
    twins(150_000, Gaussian, GaussianTooLittleNoise, ApproxDP(1.0, 0.01)),
    twins(23_500, Gaussian, GaussianTooLittleNoise, GaussianDP(1.0)),
    twins(25_000, Gaussian, GaussianTooLittleNoise, ZeroConcentratedDP(0.5)),
    twins(None, Gaussian, GaussianTooLittleNoise, GaussianDP(1.0), 1.0, 3),
    twins(9_300, Geometric, GeometricTooLittleNoise, 1.0),
    twins(2_100, Geometric, GeometricCountsZeroTwice, 1.0),
    twins(None, Geometric, GeometricCountsZeroTwice, 1.0, 1, (0, 5)),
    twins(660, RandomisedResponse, RandomisedResponseWrongNormaliser, 1.0, 4),
    twins(8_000, Exponential, ExponentialWithoutTheTwo, SCORES, 1.0),
    twins(34_000, DxLaplace, DxLaplaceTooLittleNoise, [0.0, 1.0], TWO_POINTS, "single"),
    twins(None, DxLaplace, DxLaplaceTooLittleNoise, QUERIES[0], METRIC, "single"),
    twins(None, DxLaplace, DxLaplaceTooLittleNoise, QUERIES, METRIC, "S2"),
    twins(6_400, DxLaplace, DxLaplaceForgetsAQuery, [[0.0, 1.0], [0.0, 1.0]], TWO_POINTS),
    twins(None, DxLaplace, DxLaplaceForgetsAQuery, QUERIES, METRIC, "S2"),
    twins(48_000, DxLaplace, DxLaplaceEuclidean, [[0.0, 3.0], [0.0, 4.0]], TWO_POINTS),
    twins(None, DxLaplace, DxLaplaceEuclidean, QUERIES, METRIC, "S2"),
    twins(6_400, DxLaplace, DxLaplaceUnsharedBudget, [[0.0, 1.0], [0.0, 2.0]], TWO_POINTS, "PSA"),
    twins(None, DxLaplace, DxLaplaceUnsharedBudget, QUERIES, METRIC, "PSA"),
    twins(5_100, DxExponential, DxExponentialWithoutTheTwo, one_good_outcome, EQUAL, 1),
    twins(47_000, SmallDB, SmallDBWithoutTheTwo, EQUAL, EQUAL, 1.0, 0.5, 3),
    twins(None, MWEM, MWEMHalfTheNoise, ONE_AGAINST_FOUR, NEARLY_EQUAL, 1.0, 1, 6, release="transcript"),
    twins(1_100, StatisticalLaplace, StatisticalHalfTheNoise, [[0.0], [1.0]], [1.0], EQUAL, 1),
    twins(7_900, Staircase, StaircaseOfHalfTheSensitivity, HEAVY, 0.5),
    twins(38_000, GlobalSensitivity, GlobalSensitivityTooSteep, HEAVY, 0.5),
    twins(25_000, PrivacyFirst, PrivacyFirstSquared, STEPS, 0.7),
    twins(30_000, WidenedPrivacyFirst, WidenedPrivacyFirstLastShell, SHELLS, 1.0, WIDTHS),
    twins(2_100, WidenedStaircase, WidenedStaircaseSparesTheTruth, HEAVY, 0.5, 0.0, [False, False], 2.0),
    twins(5_100, Ladder, LadderOfEqualRungs, RUNGS, 0.5),
    twins(16_000, OnTheLine, OnTheLineTooNarrow, LINE, 0.5),
    twins(4_000, KNorm, KNormOneDegreeShort, MATRIX, 1.0),
    twins(59_000, ConditionedLaplace, ConditionedLaplaceForgetsTheMass, 1.0, [0.0], [np.inf]),
    twins(None, ConditionedLaplace, ConditionedLaplaceForgetsTheMass, 1.0, [0.0, 0.0], [3.0, np.inf]),
    twins(1_000, HierarchyConditioned, HierarchyForgetsTheLevels, 1.0, Hierarchy.of_sizes([1, 2])),
    twins(2_600, StrategyRelease, DatacubeUnsharedBudget, FIGURE_1, MARGINALS, PureDP(1.0), "uniform"),
    twins(None, StrategyRelease, DatacubeUnsharedBudget, FIGURE_1, MARGINALS, PureDP(1.0)),
    twins(13_000, StrategyRelease, DatacubeEuclideanBudgets, FIGURE_1, MARGINALS, PureDP(1.0)),
    twins(23_000, StrategyRelease, DatacubeForgetsTheTwo, FIGURE_1, MARGINALS, PureDP(0.5), adjacency="replace_one"),
    twins(None, StrategyRelease, DatacubeForgetsTheTwo, FIGURE_1, MARGINALS, PureDP(1.0), adjacency="replace_one"),
]
