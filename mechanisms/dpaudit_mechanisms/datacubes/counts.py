"""Non-negative and integral answers where base counts are materialised (DC-S17).

Estimated counts of all cells are moved to the nearest non-negative ones of the same total, and rounded to whole numbers
of the (rounded) total; the workload is answered from them, so its answers are consistent, non-negative and whole. This
is post-processing, at no cost in privacy, and no longer unbiased.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from dpaudit_mechanisms.accuracy import sum_of_errors
from dpaudit_mechanisms.constrained.polyhedron import project_onto_simplex
from dpaudit_mechanisms.datacubes.release import Calibrated
from dpaudit_mechanisms.datacubes.workloads import Workload
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray
from dpaudit_mechanisms.protocol import UsageError, UtilityBound


def non_negative(values: ArrayLike) -> FloatArray:
    """The nearest non-negative vectors of the same total, or of total 0 where that is negative, shape (..., cells).

    Examples
    --------
    >>> non_negative([[3.0, -1.0, 1.0]]).tolist()
    [[2.5, 0.0, 0.5]]
    """
    array, batch = _rows(values)
    return np.asarray(project_onto_simplex(batch, np.maximum(batch.sum(axis=1), 0.0))).reshape(array.shape)


def whole(values: ArrayLike) -> FloatArray:
    """Whole numbers less than 1 from each value, of the rounded total: the largest fractions are rounded up.

    Examples
    --------
    >>> whole([[2.5, 0.0, 0.6]]).tolist()
    [[2.0, 0.0, 1.0]]
    """
    array, batch = _rows(values)
    lower = np.floor(batch)
    missing = np.rint(batch.sum(axis=1) - lower.sum(axis=1)).astype(int)
    ranks = np.argsort(np.argsort(lower - batch, axis=1, kind="stable"), axis=1, kind="stable")
    return np.asarray(lower + (ranks < missing[:, None])).reshape(array.shape)


def _rows(values: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """`values` as an array, and as vectors of shape (size, cells); finite."""
    array = np.asarray(values, dtype=float)
    if array.ndim == 0 or not array.shape[-1]:
        raise UsageError(f"values must be of shape (..., cells), got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise UsageError("values must be finite, got an infinite or undefined one.")
    return array, array.reshape(-1, array.shape[-1])


@dataclasses.dataclass(frozen=True, eq=False)
class CountsRelease(Calibrated):
    """Section 6 of Cormode et al. (2013), arXiv:1207.6096.

    The workload's answers, shape (size, q), from base counts that are non-negative and whole.

    Parameters
    ----------
    is_non_negative, is_whole : bool, optional
        What is asked of the counts.
    strategy : Strategy
        As in `Calibrated`; one that determines every cell: base counts, wavelets, a hierarchy, a sketch.

    Examples
    --------
    >>> from dpaudit.privacy.claims import PureDP
    >>> from dpaudit_mechanisms.datacubes import Domain, all_marginals, base_counts
    >>> domain = Domain.binary(3)
    >>> mechanism = CountsRelease(all_marginals(domain, 1), base_counts(domain), PureDP(1.0))
    >>> draws = mechanism.sample([5.0] + [0.0] * 7, 3, np.random.default_rng(1))
    >>> bool((draws >= 0.0).all() and (draws % 1.0 == 0.0).all())
    True
    """

    is_non_negative: bool = True
    is_whole: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            self._estimates(np.zeros((1, self.strategy.rows)))
        except UsageError as error:
            message = "strategy must determine every cell with the rows that have a budget, got one that does not."
            raise UsageError(f"{message} Optimal budgets leave out what the workload does not need.") from error

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one input, shape (size, q)."""
        return self.workload.answers(self.counts(self.noisy(data, size, rng)))

    def utility_bounds(self) -> list[UtilityBound]:
        """The sum of errors: each query's is at most the sum over cells of their errors.

        Estimates of N cells have the l2 error E = sqrt(total variance) at most, on average. The nearest non-negative
        counts of their sum are at most E and the error of that sum, sqrt(N) E, away; rounding moves a cell less than 1.
        """
        domain = self.workload.domain
        cells = Workload(domain, [range(domain.attributes)])
        spread = math.sqrt(float(self.strategy.least_squares_variances(self.variances, cells).sum()))
        count = math.sqrt(domain.cells)
        far = (1.0 + count if self.is_non_negative else 1.0) * spread + (count if self.is_whole else 0.0)
        marginals = float(self.workload.answers(np.ones((1, domain.cells))).sum()) / domain.cells
        return [sum_of_errors(self._truth, marginals * count * far, "DC-S17")]

    def counts(self, noisy: FloatArray) -> FloatArray:
        """The counts of all cells, shape (size, N), from noisy strategy answers (size, m)."""
        found = self._estimates(noisy)
        if self.is_non_negative:
            found = non_negative(found)
        return whole(found) if self.is_whole else found

    def _estimates(self, noisy: FloatArray) -> FloatArray:
        cells = Workload(self.workload.domain, [range(self.workload.domain.attributes)])
        return self.strategy.least_squares(noisy, self.variances, cells)
