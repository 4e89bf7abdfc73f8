"""What every mechanism says of its error: kept on its draws, never empty, and missed by a twin that spends less.

Each sound mechanism and its twin, which draws with a share of the budget and is as private, are audited at confidence
1 - 1e-9: by the union bound a sound one is refuted with probability at most 1e-9 a call, below 1e-7 for the file. The
shares are such that a twin's error is far above its bound at the number of draws.
"""

import itertools
import math

import numpy as np
import pytest

import dpaudit
from dpaudit.privacy.claims import ApproxDP, GaussianDP, PureDP
from dpaudit_mechanisms.accuracy import with_budget
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
from dpaudit_mechanisms.faulty.another_budget import SpendsAnotherBudget
from dpaudit_mechanisms.gaussian import Gaussian
from dpaudit_mechanisms.geometric import Geometric
from dpaudit_mechanisms.laplace import Laplace
from dpaudit_mechanisms.learning.marginals import ChainGenerator
from dpaudit_mechanisms.learning.pate import NoisyVotes
from dpaudit_mechanisms.planar_laplace import PlanarLaplace
from dpaudit_mechanisms.problems import FIGURE_1, HEAVY, RUNGS, SHELLS, STEPS, WIDTHS
from dpaudit_mechanisms.randomised_response import RandomisedResponse
from dpaudit_mechanisms.small_db import SmallDB
from dpaudit_mechanisms.sparse_vector import SparseVector
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

SURE = 1.0 - 1e-9
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
# Mechanism, share of the twin, draws.
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


@pytest.mark.parametrize("name", EVERY)
def test_a_bound_is_kept_says_something_and_is_missed_by_a_twin_of_less_budget(name):
    mechanism, share, draws = EVERY[name]
    sound = dpaudit.audit_utility(mechanism, samples=draws, confidence=SURE, seed=1)
    assert sound.verdict != "violated" and not [f for f in sound.findings if f.verdict == "error"], sound.worst
    assert not [finding.bound for finding in sound.findings if finding.says_nothing]
    twin = SpendsAnotherBudget(mechanism, share)
    assert dpaudit.audit_utility(twin, samples=draws, confidence=SURE, seed=1).verdict == "violated"


def test_a_sparse_vector_keeps_its_error_bound_and_misses_it_with_less_budget():
    mechanism, counts = SparseVector(1.0, 50.0, most=2), list(range(8))
    found = [
        dpaudit.audit_utility(
            dpaudit.as_sessions(drawn, counts), mechanism.utility_bounds(), samples=3_000, confidence=SURE, seed=1
        )
        for drawn in (mechanism, with_budget(mechanism, 0.3))
    ]
    assert [result.verdict for result in found] == ["not_refuted", "violated"]
    assert not any(finding.says_nothing for result in found for finding in result.findings)
    own = dpaudit.audit_utility(dpaudit.as_sessions(mechanism, counts), samples=3_000, confidence=SURE, seed=1)
    assert own.verdict == "not_refuted"  # a session states the bounds of its mechanism


def test_an_imaged_mechanism_of_other_noise_states_no_bound():
    """The noise of a planar mechanism has the variance 3 scale^2 in each coordinate, and is not independent."""
    assert Imaged(PlanarLaplace(1.0, points=((0.0, 0.0), (1.0, 0.0))), SUM).utility_bounds() == []


@pytest.mark.parametrize("name", EVERY)
def test_the_twin_keeps_the_claim(name):
    mechanism, share, _ = EVERY[name]
    if not hasattr(mechanism, "privacy_loss"):
        pytest.skip("no exact loss: it follows from the mechanism inside")
    poorer = with_budget(mechanism, share)
    for pair in list(mechanism.pairs())[:5]:
        promised = mechanism.privacy_loss(pair.x, pair.x_prime)
        assert poorer.privacy_loss(pair.x, pair.x_prime) <= promised * (1.0 + 1e-9) or math.isinf(promised)


@pytest.mark.parametrize("name", EVERY)
def test_another_budget_promises_that_many_times_as_much(name):
    mechanism = EVERY[name][0]
    for factor, pair in itertools.product((0.3, 2.5), list(mechanism.pairs())[:3]):
        claims = (one.claim.for_pair(pair.x, pair.x_prime) for one in (mechanism, with_budget(mechanism, factor)))
        before, after = (claim.value for claim in claims)
        assert after == pytest.approx(factor * before, rel=1e-6)


@pytest.mark.parametrize("name", [name for name in EVERY if not name.startswith(("datacube, consistent", "metric"))])
def test_the_checks_of_errors_run_on_every_mechanism(name):
    checks = ["utility_bounds", "more_budget_less_error"]
    result = dpaudit.check(EVERY[name][0], only=checks, samples=1_000, error_rate=1e-9, seed=1)
    assert {record.status for record in result.records} <= {"not_refuted", "inconclusive"}, result.records
    assert "says nothing" not in "".join(record.message for record in result.records)
