"""Partition and weight: the one construction behind every mechanism of this family, `PartitionAndWeight`.

Letters: x dataset, r value, a anchor, i level, mu measure on values.

1. *Partition.* Each dataset x sees *anchors* (datasets, or values) at a cost in steps; each anchor covers some values.
   The level of r is the least cost of an anchor that covers it: level^x(r) = min over a with r in cover(a) of
   cost^x(a). So {r: level^x(r) = i} is what the anchors of cost i cover and no cheaper one does: a partition of the
   values, as every set sequence of the paper is meant to be.
2. *Weight.* p^x(r) = exp(-epsilon level^x(r)) / alpha^x with respect to mu; alpha^x makes it a law.

One proof for all: if no anchor's cost differs by more than 1 between neighbours, then no level does. So the weights of
neighbours have ratios of at most e^epsilon, their totals alpha too, and the mechanism keeps 2 epsilon. Where alpha is
the same for all datasets it keeps epsilon.

Between finite spaces the anchors are listed, and `covered_levels` finds the levels. On the line and in R^d the anchors
are chains of neighbours (or the true value), and the level is a function of r - f(x).
"""

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from scipy import special

from dpaudit_mechanisms.inputs import BoolArray, FloatArray
from dpaudit_mechanisms.protocol import Claim, PureDP, UsageError


class PartitionAndWeight(ABC):
    """A mechanism with density exp(-epsilon level) / alpha: a member states its levels, their measure, and alpha.

    Attributes
    ----------
    epsilon : float
        Weight of one level, in nats.
    has_one_total : bool
        Whether alpha is the same for all inputs; then a level costs epsilon, else 2 epsilon.
    """

    epsilon: float
    has_one_total: ClassVar[bool] = False

    @abstractmethod
    def level_at(self, data: Any, outputs: Any) -> FloatArray:
        """The level of each output on one input, in [0, inf], shape (size,); infinity where it is impossible."""

    @abstractmethod
    def log_alpha_of(self, data: Any) -> float:
        """Natural log of alpha, on one input, for levels that are counted from `lowest_level`."""

    def lowest_level(self, data: Any) -> float:
        """The level from which weights are counted on one input: only epsilon = inf needs more than 0."""
        return 0.0

    def log_measure_at(self, outputs: Any) -> FloatArray | float:
        """Natural log of the measure of each output, where outputs are discrete; 0 where they have a density."""
        return 0.0

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Natural log of the density (of the probability, where outputs are discrete) of each output, shape (size,)."""
        above = self.level_at(data, outputs) - self.lowest_level(data)
        return log_weights(above, self.epsilon) + self.log_measure_at(outputs) - self.log_alpha_of(data)

    @property
    def claim(self) -> Claim:
        """`PureDP` between neighbours: of epsilon where alpha is the same for all inputs, else of 2 epsilon."""
        return PureDP(self.epsilon if self.has_one_total else 2.0 * self.epsilon)


def log_weights(above: FloatArray, epsilon: float) -> FloatArray:
    """-epsilon times the levels above the lowest one: 0 on it and -inf at infinity, whatever epsilon in [0, inf] is."""
    with np.errstate(invalid="ignore"):  # inf * 0
        return np.where(above == 0.0, 0.0, np.where(np.isinf(above), -np.inf, -epsilon * above))


def covered_levels(costs: FloatArray, covers: BoolArray) -> FloatArray:
    """The least cost of an anchor that covers each value, shape (inputs, outcomes); infinity where none does.

    Parameters
    ----------
    costs : array of float, shape (inputs, anchors)
        In steps, in [0, inf].
    covers : array of bool, shape (anchors, outcomes)
        Whether an anchor covers a value.

    Examples
    --------
    >>> covers = np.array([[True, True, False], [False, True, True]])
    >>> covered_levels(np.array([[0.0, 1.0], [1.0, 0.0]]), covers).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    return np.stack([
        costs[:, covering].min(axis=1, initial=math.inf) for covering in np.asarray(covers, dtype=bool).T
    ], axis=1)  # fmt: skip


def log_probabilities(levels: FloatArray, measure: FloatArray, epsilon: float) -> FloatArray:
    """Natural log of the probability of each value, shape (inputs, outcomes).

    epsilon = 0 gives the measure, normalised, on the values of finite level; epsilon = inf gives it on the lowest level
    that is not empty.

    Raises
    ------
    UsageError
        If some input has no value of finite level: there is nothing to choose from.
    """
    lowest = levels.min(axis=1, keepdims=True)
    if not np.isfinite(lowest).all():
        raise UsageError(f"levels must be finite somewhere on each input, got inf on {np.argmax(lowest)}.")
    weights = log_weights(levels - lowest, epsilon) + np.log(measure)
    return np.asarray(weights - special.logsumexp(weights, axis=1, keepdims=True))
