"""The mechanisms of the family between finite spaces: anchors, costs and covers of each (see `levels`).

| mechanism | anchors | cost, in steps | covers | source |
| --- | --- | --- | --- | --- |
| `Staircase` | values | d(f(x), v) / Delta f, less the offset, rounded up | itself | UP-T1, UP-X9 |
| `GlobalSensitivity` | values | d(f(x), v) / Delta f | itself | UP-X8 |
| `Ladder` | values | rungs of growing local sensitivities | itself | UP-X10 |
| `PrivacyFirst` | datasets | dbar(x, y), rounded up | f(y) | UP-T2 |
| `WidenedPrivacyFirst` | datasets | dbar(x, y), rounded up | r with d(f(y), r) <= width | UP-T3, UP-T6 |
| `WidenedStaircase` | values | d(f(x), v) / Delta f, rounded up | values of datasets within a width | UP-T4, UP-T5 |

The widened ones are in `widened`. `Ladder` places f(x) itself on level 0, which the printed sets leave out (UP-X10).
"""

import dataclasses
import functools
import math
from abc import abstractmethod
from typing import Annotated, Any

import numpy as np

from dpaudit_mechanisms.finite_choice import FiniteChoice, loss_of
from dpaudit_mechanisms.inputs import Checked, FloatArray, fixed, output_positions, position, within
from dpaudit_mechanisms.protocol import Pair, UsageError, UtilityBound, number
from dpaudit_mechanisms.two_metrics.levels import PartitionAndWeight, covered_levels, log_probabilities
from dpaudit_mechanisms.two_metrics.spaces import ROUNDING, BoolArray, FiniteSpaces, IntArray, whole_steps

MAX_PAIRS = 20

Epsilon = Annotated[float, within("in [0, inf]", lambda v: v >= 0.0)]


@dataclasses.dataclass(frozen=True, eq=False)
class LevelMechanism(Checked, PartitionAndWeight, FiniteChoice):
    """Base of the mechanisms between finite spaces; a subclass states `costs` and `covers`.

    Parameters
    ----------
    spaces : FiniteSpaces
        Datasets, values, the query and both metrics. Inputs are positions of datasets, outputs positions of values.
    epsilon : float
        Weight of one level, in nats, in [0, inf]. The claim is 2 epsilon; `epsilon_exact` is the true loss.
    """

    spaces: FiniteSpaces
    epsilon: Epsilon

    # ---- what a member of the family states ----

    @abstractmethod
    def costs(self) -> FloatArray:
        """Steps from each dataset to each anchor, shape (datasets, anchors)."""

    def covers(self) -> BoolArray:
        """Tell whether an anchor covers a value, shape (anchors, outcomes)."""
        return np.eye(self.spaces.outcomes, dtype=bool)

    def penalties(self) -> FloatArray:
        """Steps that are added to each value's level on every dataset, shape (outcomes,)."""
        return np.zeros(self.spaces.outcomes)

    # ---- what follows ----

    @functools.cached_property
    def levels(self) -> FloatArray:
        """The level of every value on every dataset, as it is drawn, shape (datasets, outcomes)."""
        return covered_levels(self.costs(), self.covers()) + self.penalties()

    @functools.cached_property
    def log_laws(self) -> FloatArray:
        """Natural log of the probability of every value on every dataset, shape (datasets, outcomes)."""
        return log_probabilities(self.levels, self.spaces.measure, self.epsilon)

    @property
    def outcomes(self) -> IntArray:
        """All outputs in increasing order, shape (outcomes,)."""
        return np.arange(self.spaces.outcomes)

    def log_law(self, data: Any) -> FloatArray:
        return np.asarray(self.log_laws[position(data, self.spaces.datasets)])

    def level_at(self, data: Any, outputs: Any) -> FloatArray:
        """The level of each output on one dataset, shape (size,); infinity where it is no position of a value."""
        is_value, values = output_positions(outputs, self.spaces.outcomes)
        return np.where(is_value, self.levels[position(data, self.spaces.datasets)][values], np.inf)

    def lowest_level(self, data: Any) -> float:
        """The lowest level of a value on one dataset."""
        return float(self.levels[position(data, self.spaces.datasets)].min())

    def log_measure_at(self, outputs: Any) -> FloatArray:
        """Natural log of mu of each output, shape (size,); 0 where it is no position of a value."""
        is_value, values = output_positions(outputs, self.spaces.outcomes)
        return np.where(is_value, np.log(self.spaces.measure)[values], 0.0)

    def log_alpha_of(self, data: Any) -> float:
        """Natural log of the sum of mu exp(-epsilon level), levels counted from the lowest one."""
        return float(self._log_alphas[position(data, self.spaces.datasets)])

    @functools.cached_property
    def _log_alphas(self) -> FloatArray:
        """`log_alpha_of` every dataset, shape (datasets,): the weight of a value of the lowest level is 1."""
        lowest = self.levels.argmin(axis=1)
        return np.log(self.spaces.measure)[lowest] - self.log_laws[np.arange(len(lowest)), lowest]

    @functools.cached_property
    def epsilon_exact(self) -> float:
        """The largest exact loss over neighbours, in nats; 0 without neighbours. At most 2 epsilon if sound."""
        pairs = self.spaces.neighbour_pairs
        return max((loss_of(*self.log_laws[pair]) for pair in pairs), default=0.0)

    def pairs(self) -> list[Pair]:
        """The neighbours of the largest losses, at most 20."""
        found = self.spaces.neighbour_pairs
        if not len(found):
            raise UsageError("spaces must have neighbours for pairs, got none.")
        losses = np.array([loss_of(*self.log_laws[pair]) for pair in found])
        order = np.argsort(-np.round(losses, 9), kind="stable")[:MAX_PAIRS]
        return [Pair(int(x), int(y)) for x, y in found[order]]

    def utility_bounds(self) -> list[UtilityBound]:
        """E d(output, f(x)) and 1 - P_0 of section 5, on each dataset, of the law as it is stated: with equality."""

        def distance(data: Any, outputs: Any) -> FloatArray:
            return self.spaces.distances[position(data, self.spaces.datasets)][np.asarray(outputs, dtype=int)]

        def is_off(data: Any, outputs: Any) -> FloatArray:
            return (distance(data, outputs) > 0.0).astype(float)

        error, missed = self.expected_error(), np.clip(1.0 - self.accuracy(0.0), 0.0, 1.0)
        mean, off = (lambda data, at=at: float(at[position(data, len(at))]) for at in (error, missed))
        bounds = [UtilityBound("distance", distance, mean, source="UP-S13"),
                  UtilityBound("false value", is_off, off, largest_loss=1.0, source="UP-S2")]  # fmt: skip
        return (
            bounds if np.isfinite(error).all() else bounds[1:]
        )  # a chain may join values that are infinitely far apart

    def accuracy(self, within: float) -> FloatArray:
        """P_T^x: the probability that the output is within T of the true value, shape (datasets,) (UP-S2)."""
        limit = number("within", within, "in [0, inf]", lambda v: v >= 0.0)
        return (np.exp(self.log_laws) * (self.spaces.distances <= limit)).sum(axis=1)

    def expected_error(self) -> FloatArray:
        """E d(output, f(x)) in units of d, shape (datasets,) (UP-S2, UP-S13); inf where such values are possible."""
        laws = np.exp(self.log_laws)
        return np.where(laws > 0.0, laws * np.where(laws > 0.0, self.spaces.distances, 0.0), 0.0).sum(axis=1)


def finite_sensitivity(spaces: FiniteSpaces) -> float:
    """Delta f, refused where it is infinite: levels of an infinite step would hide what is infinitely far apart."""
    if math.isinf(spaces.sensitivity):
        raise UsageError("spaces must have a finite sensitivity, got inf.")
    return spaces.sensitivity


@dataclasses.dataclass(frozen=True, eq=False)
class GlobalSensitivity(LevelMechanism):
    """Example 8 of Wu, Xia and He (2017), arXiv:1702.02721.

    Weights exp(-epsilon d(f(x), r) / Delta f): the level is not rounded (UP-X8, its continuous relative).

    A query of sensitivity 0 is released exactly (level infinity for all other values). Parameters as `LevelMechanism`.
    """

    def costs(self) -> FloatArray:
        return self.scaled_distances()

    def scaled_distances(self) -> FloatArray:
        """d(f(x), v) / Delta f, shape (datasets, values)."""
        unit = self.sensitivity_used()
        if unit == 0.0:
            return np.where(self.spaces.distances == 0.0, 0.0, np.inf)
        return self.spaces.distances / unit

    def sensitivity_used(self) -> float:
        """Delta f as it is used, in units of d."""
        return finite_sensitivity(self.spaces)


@dataclasses.dataclass(frozen=True, eq=False)
class Staircase(GlobalSensitivity):
    """Theorem 1 and example 9 of Wu, Xia and He (2017), arXiv:1702.02721.

    Weights exp(-i epsilon) where (i - 1) Delta f + offset < d(f(x), r) <= i Delta f + offset (UP-T1, UP-X9).

    Parameters
    ----------
    spaces, epsilon
        As in `LevelMechanism`.
    offset : float
        The paper's gamma, in units of d, in [0, Delta f); 0 is UP-T1. Must be 0 where Delta f is 0.

    Examples
    --------
    >>> path = np.abs(np.subtract.outer(range(4), range(4)))
    >>> mechanism = Staircase(FiniteSpaces(path, range(4), path), epsilon=1.0)
    >>> mechanism.levels[0].tolist()
    [0.0, 1.0, 2.0, 3.0]
    >>> round(mechanism.epsilon_exact, 4), mechanism.claim.value
    (1.1863, 2.0)
    """

    offset: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        top = self.spaces.sensitivity
        offset = number("offset", self.offset, f"in [0, {top:g})", lambda v: 0.0 <= v < top or v == top == 0.0)
        fixed(self, offset=offset)

    def costs(self) -> FloatArray:
        unit = self.sensitivity_used()
        scaled = self.scaled_distances()
        below = 0.0 if unit == 0.0 else self.offset / unit
        return whole_steps(np.maximum(scaled - below, 0.0))


@dataclasses.dataclass(frozen=True, eq=False)
class Ladder(LevelMechanism):
    """Example 10 of Wu, Xia and He (2017), arXiv:1702.02721.

    Level i >= 1 where the sum of i - 1 local sensitivities < d(f(x), r) <= the sum of i of them (UP-X10).

    The sum of i of them is Delta_0^x + ... + Delta_(i - 1)^x; level 0 is f(x) alone, as in the ladder mechanism's own
    paper. The sets printed in UP-X10 are one level lower and leave f(x) out. A step of 0 gives an empty level.

    Examples
    --------
    >>> path, line = (np.abs(np.subtract.outer(p, p)) for p in (np.arange(4), np.array([0.0, 1.0, 3.0])))
    >>> Ladder(FiniteSpaces(path, [0, 0, 1, 2], line), epsilon=1.0).levels[0].tolist()  # steps 0, 1, 2, 2, ...
    [0.0, 2.0, 3.0]
    """

    def costs(self) -> FloatArray:
        distances, shells = self.spaces.distances, self.spaces.shells
        levels = np.where(distances == 0.0, 0.0, np.inf)
        finite_sensitivity(self.spaces)
        reached = np.zeros((self.spaces.datasets, 1))
        # Rungs are alike from one distance of datasets to the next: counted, not climbed, so far values cost nothing.
        starts = np.unique(shells[np.isfinite(shells)])
        for start, rungs in zip(starts, np.append(np.diff(starts), np.inf), strict=True):
            step = self.steps(int(start))[:, None]
            left = np.where(step > 0.0, distances * (1.0 - ROUNDING) - reached, np.inf)
            climbed = np.maximum(np.ceil(left / np.where(step > 0.0, step, 1.0)), 1.0)
            levels = np.where(np.isinf(levels) & (climbed <= rungs), start + climbed, levels)
            if math.isfinite(rungs):
                reached = reached + rungs * step
        return levels

    def steps(self, distance: int) -> FloatArray:
        """The height of the rung above that many rungs, shape (datasets,): Delta_i^x."""
        return self.spaces.local_sensitivities(distance)


@dataclasses.dataclass(frozen=True, eq=False)
class PrivacyFirst(LevelMechanism):
    """Theorem 2 of Wu, Xia and He (2017), arXiv:1702.02721.

    The level of r is the least dbar(x, y), rounded up, of a dataset with f(y) = r (UP-T2); d plays no part.

    Examples
    --------
    >>> path = np.abs(np.subtract.outer(range(3), range(3)))
    >>> mechanism = PrivacyFirst(FiniteSpaces(path, [0, 1, 0], [[0.0, 9.0], [9.0, 0.0]]), epsilon=1.0)
    >>> mechanism.levels.tolist()
    [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    >>> mechanism.epsilon_exact
    1.0
    """

    def costs(self) -> FloatArray:
        return self.spaces.shells

    def covers(self) -> BoolArray:
        return self.spaces.values_of
