"""Mechanisms between two metric spaces with a planted fault each: all but one break their privacy."""

import dataclasses
import functools
import math
from typing import Any, ClassVar

import numpy as np
from scipy import special

from dpaudit_mechanisms import two_metrics
from dpaudit_mechanisms.faulty.broken import Broken, Twin
from dpaudit_mechanisms.inputs import FloatArray, answer, output_batch


class StaircaseOfHalfTheSensitivity(Broken, two_metrics.Staircase):
    """Steps of Delta f / 2: a neighbour changes a level by up to 2.

    Examples
    --------
    >>> from dpaudit_mechanisms.two_metrics import FiniteSpaces
    >>> heavy = FiniteSpaces([[0, 1], [1, 0]], [0, 1], [[0, 1], [1, 0]], measure=[50.0, 1.0])
    >>> StaircaseOfHalfTheSensitivity(heavy, epsilon=0.5).fault
    'the steps are half the sensitivity: loss 1.95439 nats on the pair 0|1, promised 1'
    """

    what = "the steps are half the sensitivity"

    def sensitivity_used(self) -> float:
        return super().sensitivity_used() / 2.0


class GlobalSensitivityTooSteep(Broken, two_metrics.GlobalSensitivity):
    """Weights exp(-1.5 epsilon d / Delta f): the sensitivity is taken 1.5 times too small."""

    what = "the sensitivity is 1.5 times too small"

    def sensitivity_used(self) -> float:
        return super().sensitivity_used() / 1.5


class PrivacyFirstSquared(Broken, two_metrics.PrivacyFirst):
    """Levels are squared distances of datasets: from the second step on they change by more than 1."""

    what = "the distances of datasets are squared"

    def costs(self) -> FloatArray:
        return super().costs() ** 2


class WidenedPrivacyFirstLastShell(Broken, two_metrics.WidenedPrivacyFirst):
    """The sets as printed (UP-D-R), which subtract the last shell alone: a value of several sets takes its last one.

    Every value is in some set, so the law exists. Parameters as in `WidenedPrivacyFirst`.
    """

    what = "only the last shell is subtracted"

    @functools.cached_property
    def levels(self) -> FloatArray:
        shells, covers = self.costs(), self.covers()
        found = np.zeros((self.spaces.datasets, self.spaces.outcomes))
        before = np.zeros(found.shape, dtype=bool)
        for i in range(int(shells[np.isfinite(shells)].max()) + 1):
            covered = (shells == i).astype(float) @ covers > 0.0  # (datasets, outcomes)
            found[covered & ~before] = i
            before = covered
        return found + self.penalties()


class WidenedStaircaseSparesTheTruth(Broken, two_metrics.WidenedStaircase):
    """The penalty of unimportant values is waived for the true value: it depends on the dataset."""

    what = "the true value has no penalty"

    @functools.cached_property
    def levels(self) -> FloatArray:
        return two_metrics.WidenedStaircase(self.spaces, self.epsilon, self.widths).levels + np.where(
            self.spaces.values_of, 0.0, self.penalties()
        )


class LadderOfEqualRungs(Broken, two_metrics.Ladder):
    """Every rung has the height of the first one: neighbours with other local sensitivities are forgotten."""

    what = "all rungs are as high as the first"

    def steps(self, distance: int) -> FloatArray:
        return super().steps(0)


class OnTheLineTooNarrow(Broken, two_metrics.OnTheLine):
    """Cells 1.2 times too narrow: the change of a neighbour crosses two levels.

    Examples
    --------
    >>> from dpaudit_mechanisms.two_metrics import staircase_profile
    >>> OnTheLineTooNarrow(staircase_profile(1.0), epsilon=0.5).fault
    'the cells are 1.2 times too narrow: loss 1 nats on the pair 0.0|1.0, promised 0.5'
    """

    what = "the cells are 1.2 times too narrow"
    changes: ClassVar[Any] = {
        "drawn": lambda self, sound: dataclasses.replace(sound, edges=sound.edges / 1.2, width=sound.width / 1.2)
    }


class KNormOneDegreeShort(Broken, two_metrics.KNorm):
    """Outputs F x + rho v with v uniform in K and rho from Gamma(rank) in place of Gamma(rank + 1).

    A classic slip: the density is then epsilon^rank E_1(epsilon b) / (vol(K) (rank - 1)!) at gauge b, infinite at F x.
    Parameters as in `KNorm`, without `discrete`.
    """

    what = "the radius has one degree of freedom too few"

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        rank = self.basis.shape[1]
        radii = rng.gamma(rank, 1.0 / self.epsilon, size=size)
        noise = (self.body.uniform(size, rng) * radii[:, None]) @ self.basis.T
        return self.queries @ answer(data, self.queries.shape[1]) + noise

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        values, rank = output_batch(outputs, (len(self.queries),)), self.basis.shape[1]
        gauges = self.gauge(values - self.queries @ answer(data, self.queries.shape[1]))
        constant = rank * math.log(self.epsilon) - math.log(self.body.volume) - special.gammaln(rank)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(special.exp1(self.epsilon * gauges)) + constant)

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        count = self.queries.shape[1]
        return math.inf if (self.queries @ (answer(x, count) - answer(x_prime, count))).any() else 0.0


class PrivacyFirstTooFlat(Twin, two_metrics.PrivacyFirst):
    """Every level counts three quarters: private, and less accurate than the law that it states to have."""

    fault = "levels are a quarter too low: private, with a larger expected error"
    changes: ClassVar[Any] = {"levels": lambda self, levels: 0.75 * levels}


class ImportantByTheData(Broken, two_metrics.ImportantOnTheLine):
    """The important values move with the answer: a value may lose its penalty and a level with one neighbour.

    Examples
    --------
    >>> from dpaudit_mechanisms.two_metrics import staircase_profile
    >>> ImportantByTheData(staircase_profile(1.0), 1.0, [[-0.5, 0.5]], 3.0).fault
    'the important values move with the answer: loss 4 nats on the pair -0.5|-1.5, promised 2'
    """

    what = "the important values move with the answer"

    def important_values(self, data: Any) -> FloatArray:
        return self.important + float(answer(data, None))

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Of the middles of all pieces of both densities, which is exact: both are constant on them."""
        a, b = float(answer(x, None)), float(answer(x_prime, None))
        reach = self.profile.edges[-1] + abs(a - b) + 3.0 * self.profile.width
        half = np.append(self.profile.edges, np.arange(self.profile.edges[-1], reach, self.profile.width))
        own = np.concatenate([half, -half, self.important.ravel()])
        cuts = np.unique(np.concatenate([own + a, own + b]))
        middles = ((cuts[1:] + cuts[:-1]) / 2.0)[np.diff(cuts) > 1e-9 * self.profile.width]
        return float(np.abs(self.log_density(x, middles) - self.log_density(x_prime, middles)).max())
