"""The reference mechanisms and their faulty twins as problems of `dpaudit bench` (entry point of `dpaudit.problems`).

Each problem takes the first pair that a mechanism lists, on which a sound one is tight, with the law that follows from
what the mechanism states about itself: shifts of Laplace and normal noise, and finite distributions. `log_density` is
there for the auditor to use.
"""

import dataclasses
import functools
import math
from typing import Any

import numpy as np

from dpaudit.bench.laws import gaussian_law, geometric_law, laplace_law
from dpaudit.bench.problem import CELLS, Kind, Law, Problem, finite_law, grid_law, product_law
from dpaudit.privacy.claims import ApproxDP, GaussianDP, PureDP
from dpaudit_mechanisms import two_metrics
from dpaudit_mechanisms.constrained.affine import Affine
from dpaudit_mechanisms.constrained.boxes import ConditionedLaplace
from dpaudit_mechanisms.constrained.equalities import LaplaceOnEqualities
from dpaudit_mechanisms.constrained.hierarchy import Hierarchy, HierarchyConditioned
from dpaudit_mechanisms.datacubes import Domain, FourierStrategy, StrategyRelease, Workload, workload_itself
from dpaudit_mechanisms.distances import Calibration, FixedQueries, InteractiveDistances
from dpaudit_mechanisms.dx_laplace import DxLaplace
from dpaudit_mechanisms.exponential import Exponential
from dpaudit_mechanisms.faulty.constrained import ConditionedLaplaceForgetsTheMass, HierarchyForgetsTheLevels
from dpaudit_mechanisms.faulty.datacubes import DatacubeForgetsTheTwo, DatacubeUnsharedBudget
from dpaudit_mechanisms.faulty.distances import SparseVectorNotRefreshed
from dpaudit_mechanisms.faulty.dx_laplace import DxLaplaceTooLittleNoise
from dpaudit_mechanisms.faulty.exponential import ExponentialWithoutTheTwo
from dpaudit_mechanisms.faulty.gaussian import GaussianTooLittleNoise
from dpaudit_mechanisms.faulty.geometric import GeometricCountsZeroTwice, GeometricTooLittleNoise
from dpaudit_mechanisms.faulty.laplace import LaplaceForgetsACoordinate, LaplaceTooLittleNoise
from dpaudit_mechanisms.faulty.randomised_response import RandomisedResponseWrongNormaliser
from dpaudit_mechanisms.faulty.two_metrics import (
    LadderOfEqualRungs,
    OnTheLineTooNarrow,
    PrivacyFirstSquared,
    StaircaseOfHalfTheSensitivity,
    WidenedPrivacyFirstLastShell,
)
from dpaudit_mechanisms.gaussian import Gaussian
from dpaudit_mechanisms.geometric import Geometric
from dpaudit_mechanisms.laplace import Laplace
from dpaudit_mechanisms.randomised_response import RandomisedResponse

# One good outcome and many poor ones: where the factor 2 matters.
SCORES = np.array([[1.0] + [0.0] * 20, [0.0] + [1.0] * 20])
QUERIES = np.array([[0.0, 0.5, 3.0], [1.0, 0.0, 2.0]])
METRIC = np.array([[0.0, 1.0, 3.9], [1.0, 0.0, 3.0], [3.9, 3.0, 0.0]])
# One heavy value, which one of two neighbours has at level 0 and the other one at level 1: most of 2 epsilon is used.
HEAVY = two_metrics.FiniteSpaces([[0, 1], [1, 0]], [0, 1], [[0, 1], [1, 0]], measure=[20.0, 1.0])
STEPS = two_metrics.FiniteSpaces([[0, 1, 2], [1, 0, 1], [2, 1, 0]], [0, 1, 2], [[0, 1, 2], [1, 0, 1], [2, 1, 0]])
# A path of four datasets, widened: the sets that the paper prints put some values into several of them (UP-D-R).
SHELLS = two_metrics.FiniteSpaces([[0, 3, 2, 1], [3, 0, 1, 2], [2, 1, 0, 1], [1, 2, 1, 0]], [2, 1, 0, 3],
                      [[0, 1, 2, 1], [1, 0, 1, 1], [2, 1, 0, 1], [1, 1, 1, 0]])  # fmt: skip
WIDTHS = [1.0, 2.0, 1.0, 1.0]
# Local sensitivities 1 and 4: a rung of 1 above the first one is too low next to rungs of 4.
RUNGS = two_metrics.FiniteSpaces(
    [[0, 1, 2], [1, 0, 1], [2, 1, 0]], [0, 1, 2], [[0, 1, 5], [1, 0, 4], [5, 4, 0]], [1.0, 1.0, 50.0]
)
# Two marginals of three binary attributes, one of them a sum of the other one's cells.
FIGURE_1 = Workload(Domain.binary(3), [(0,), (0, 1)])
FAR = 60  # steps beyond both inputs at which a geometric law is cut: both tails have a constant loss by then


def problems() -> list[Problem]:
    """The reference mechanisms, each next to its faulty twin."""
    families = (_numbers, _vectors, _finite, _two_metrics, _constrained, _datacubes, _distances)
    return [problem for family in families for problem in family()]


def _problem(
    id: str, kind: Kind, mechanism: Any, dimensions: int, sound: bool, law: Any, *given: Any, tight: bool | None = None
) -> Problem:
    """A problem with the law of what is given, or of the mechanism."""
    first = mechanism.pairs()[0]
    has_delta = mechanism.claim.for_pair(first.x, first.x_prime).report_delta > 0.0
    return Problem(
        f"mechanisms: {id}",
        "reference mechanisms",
        kind,
        mechanism,
        mechanism.claim,
        (first.x, first.x_prime),
        dimensions,
        sound,
        "the reference mechanisms of this package" + ("" if sound else ", with a planted fault"),
        tight=sound if tight is None else tight,
        make_law=functools.partial(law, *(given or (mechanism,))),
        exact=None if has_delta else mechanism.privacy_loss(first.x, first.x_prime),
    )


def _numbers() -> list[Problem]:
    gaussian, faulty = Gaussian(ApproxDP(1.0, 1e-3)), GaussianTooLittleNoise(ApproxDP(1.0, 1e-3))
    free = GaussianTooLittleNoise(GaussianDP(1.0))
    return [
        _problem("laplace", "continuous", Laplace(0.5), 1, True, laplace_law, 0.5),
        _problem("laplace, too little noise", "continuous", LaplaceTooLittleNoise(0.5), 1, False, laplace_law, 0.6),
        _problem("gaussian", "continuous", gaussian, 1, True, gaussian_law, 1.0 / gaussian.sigma),
        _problem("gaussian, too little noise", "continuous", faulty, 1, False, gaussian_law, 1.0 / faulty.sigma),
        _problem("gaussian mu, too little noise", "continuous", free, 1, False, gaussian_law, 1.0 / free.sigma),
        _problem("geometric", "integer", Geometric(1.0), 1, True, geometric_law, 1.0),
        _problem("geometric, too little noise", "integer", GeometricTooLittleNoise(1.0), 1, False, geometric_law, 1.2),
        _problem("geometric, zero twice", "integer", GeometricCountsZeroTwice(1.0), 1, False, _zero_twice_law),
    ]  # fmt: skip


def _vectors() -> list[Problem]:
    both, forgetful = Laplace(1.0, (1.0, 1.0)), LaplaceForgetsACoordinate(1.0, (1.0, 1.0))
    exact, little = DxLaplace(QUERIES, METRIC), DxLaplaceTooLittleNoise(QUERIES, METRIC)
    return [
        _problem("laplace vector", "vector", both, 2, True, _shift_law, (0.5, 0.5)),
        _problem("laplace vector, forgets a coordinate", "vector", forgetful, 2, False, _shift_law, (1.0, 1.0)),
        _problem("d_X laplace", "vector", exact, 2, True, _dx_law),
        _problem("d_X laplace, too little noise", "vector", little, 2, False, _dx_law),
    ]  # fmt: skip


def _finite() -> list[Problem]:
    response, wrong = RandomisedResponse(1.0, 4), RandomisedResponseWrongNormaliser(1.0, 4)
    scores, without = Exponential(SCORES, metric=1.0), ExponentialWithoutTheTwo(SCORES, metric=1.0)
    return [
        _problem("randomised response", "category", response, 1, True, _listed_law),
        _problem("randomised response, wrong normaliser", "category", wrong, 1, False, _listed_law),
        _problem("exponential", "category", scores, 1, True, _listed_law, tight=False),
        _problem("exponential, without the two", "category", without, 1, False, _listed_law),
    ]  # fmt: skip


def _two_metrics() -> list[Problem]:
    profile = two_metrics.staircase_profile(1.0)
    steps, narrow = two_metrics.OnTheLine(profile, 0.5), OnTheLineTooNarrow(profile, 0.5)
    finite = [
        ("staircase", two_metrics.Staircase(HEAVY, 0.5), True),
        ("staircase, half the sensitivity", StaircaseOfHalfTheSensitivity(HEAVY, 0.5), False),
        ("ladder", two_metrics.Ladder(RUNGS, 0.5), True),
        ("ladder, rungs of one height", LadderOfEqualRungs(RUNGS, 0.5), False),
        ("privacy first", two_metrics.PrivacyFirst(STEPS, 0.7), True),
        ("privacy first, squared distances", PrivacyFirstSquared(STEPS, 0.7), False),
        ("widened privacy first", two_metrics.WidenedPrivacyFirst(SHELLS, 1.0, WIDTHS), True),
        ("widened privacy first, last shell only", WidenedPrivacyFirstLastShell(SHELLS, 1.0, WIDTHS), False),
    ]
    return [
        _problem("staircase on the line", "continuous", steps, 1, True, _cells_law),
        _problem("staircase on the line, too narrow", "continuous", narrow, 1, False, _cells_law),
        *(_problem(name, "category", mechanism, 1, sound, _listed_law, tight=False)
          for name, mechanism, sound in finite),
    ]  # fmt: skip


def _cells_law(mechanism: two_metrics.OnTheLine) -> Law:
    """From the masses between all edges of both inputs; beyond the cut the loss is that of the last cells."""
    pair, profile = mechanism.pairs()[0], mechanism.drawn
    reach = profile.edges[-1] + profile.width * math.ceil(30.0 / mechanism.epsilon)
    half = np.concatenate([profile.edges, np.arange(profile.edges[-1], reach, profile.width)[1:]])
    edges = np.concatenate([-half, half])
    cuts = np.unique(np.concatenate([pair.x + edges, pair.x_prime + edges]))
    middles, widths = (cuts[1:] + cuts[:-1]) / 2.0, np.diff(cuts)
    kept = widths > 1e-9  # edges of both that agree up to rounding
    p, q = (np.exp(mechanism.log_density(data, middles[kept])) * widths[kept] for data in (pair.x, pair.x_prime))
    return finite_law(p / p.sum(), q / q.sum(), "cut where a mass of 1e-13 is left")


def _constrained() -> list[Problem]:
    inside, forgetful = (kind(1.0, [0.0], [3.0]) for kind in (ConditionedLaplace, ConditionedLaplaceForgetsTheMass))
    total, tree = LaplaceOnEqualities(0.5, Affine([[1.0, 1.0]], [3.0])), Hierarchy.flat(1)
    return [
        _problem("laplace given an interval", "vector", inside, 1, True, _interval_law),
        _problem("laplace given an interval, forgets the mass", "vector", forgetful, 1, False, _interval_law),
        # Two coordinates with a given sum have one free one, with half the scale and half the shift.
        _problem("laplace given a sum", "vector", total, 2, True, laplace_law, 0.5),
        _problem("tree of two levels", "vector", HierarchyConditioned(1.0, tree), 2, True, laplace_law, 1.0),
        _problem("tree of two levels, forgets one", "vector", HierarchyForgetsTheLevels(1.0, tree), 2, False,
                 laplace_law, 2.0),
    ]  # fmt: skip


def _datacubes() -> list[Problem]:
    marginals = workload_itself(FIGURE_1)
    sound = StrategyRelease(FIGURE_1, marginals, PureDP(1.0))
    unshared = DatacubeUnsharedBudget(FIGURE_1, marginals, PureDP(1.0), "uniform")
    forgetful = DatacubeForgetsTheTwo(FIGURE_1, marginals, PureDP(0.5), adjacency="replace_one")
    fourier = StrategyRelease(FIGURE_1, FourierStrategy(FIGURE_1), ApproxDP(1.0, 1e-3))
    return [
        _problem("marginals", "vector", sound, 6, True, _rows_law),
        _problem("marginals, unshared budget", "vector", unshared, 6, False, _rows_law),
        _problem("marginals, forgets the two", "vector", forgetful, 6, False, _rows_law),
        _problem("fourier coefficients", "vector", fourier, 4, True, gaussian_law, fourier.total),
    ]


def _rows_law(mechanism: StrategyRelease) -> Law:
    pair = mechanism.pairs()[0]
    changes = np.abs(mechanism.strategy.answers(pair.x) - mechanism.strategy.answers(pair.x_prime))
    return _shift_law(tuple((changes * mechanism.strategy.spread(mechanism.eta)).tolist()))


def _distances() -> list[Problem]:
    """Sparse vectors whose output is the place where they stop, at queries whose errors swap between two databases."""
    tuned, ends = Calibration(1, [1.0], 1, 0.5, 0.5, 1.0, 6.0), FixedQueries([[0.0], [1.0], [0.0]])
    fresh, kept = (kind(tuned, ends, 3, "position") for kind in (InteractiveDistances, SparseVectorNotRefreshed))
    return [
        _problem("sparse vector", "category", fresh, 1, True, _listed_law, tight=False),
        _problem("sparse vector, noise kept", "category", kept, 1, False, _listed_law),
    ]


@dataclasses.dataclass(frozen=True)
class _Given:
    """The law of one coordinate of a conditioned mechanism on one input."""

    mechanism: ConditionedLaplace
    data: Any

    def cdf(self, values: Any) -> Any:
        return self.mechanism.tails(self.data, np.asarray(values)[:, None])[0][:, 0]

    def sf(self, values: Any) -> Any:
        return self.mechanism.tails(self.data, np.asarray(values)[:, None])[1][:, 0]


def _interval_law(mechanism: ConditionedLaplace) -> Law:
    pair = mechanism.pairs()[0]
    ends = (float(mechanism.lower[0]), float(pair.x[0]), float(pair.x_prime[0]), float(mechanism.upper[0]))
    edges = np.unique(np.concatenate([np.linspace(ends[0], ends[-1], CELLS + 1), ends]))
    note = "a grid between the ends of the interval and the two answers"
    return grid_law(_Given(mechanism, pair.x), _Given(mechanism, pair.x_prime), edges, note)


def _shift_law(losses: tuple[float, ...]) -> Law:
    """Laplace noise in several coordinates, of these losses."""
    return product_law([laplace_law(loss) for loss in losses if loss > 0.0])


def _dx_law(mechanism: DxLaplace) -> Law:
    pair = mechanism.pairs()[0]
    shifts = np.abs(mechanism.answers(pair.x) - mechanism.answers(pair.x_prime)) / mechanism.c
    return _shift_law(tuple(shifts.tolist()))


def _listed_law(mechanism: Any) -> Law:
    """From the probabilities of all outcomes."""
    pair = mechanism.pairs()[0]
    return finite_law(mechanism.distribution(pair.x), mechanism.distribution(pair.x_prime))


def _zero_twice_law(mechanism: GeometricCountsZeroTwice) -> Law:
    pair = mechanism.pairs()[0]
    steps = np.arange(-FAR, FAR + 1)
    p, q = (np.exp(mechanism.log_density(data, steps)) for data in (pair.x, pair.x_prime))
    # Beyond the cut the loss is the constant of each tail: its mass goes to the last step on either side.
    tail = math.exp(-1.0) / -math.expm1(-1.0)
    p[[0, -1]] *= 1.0 + tail
    q[[0, -1]] *= 1.0 + tail
    return finite_law(p, q)
