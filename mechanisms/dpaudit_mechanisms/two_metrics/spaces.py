"""A query between two finite metric spaces: datasets with what is to be hidden, values with what is to be kept.

Letters: x, y datasets; r, v values; dbar the metric on datasets ("privacy metric", neighbours are at most 1 apart);
d the metric on values ("utility metric"); f the query, mu the measure on values. Datasets and values are positions
0..n - 1 and 0..m - 1; every value is the value of some dataset. Source: UP-D4, UP-D5, UP-D12.

An extended metric is accepted (infinity between parts that no chain of neighbours joins): what is infinitely far away
gets level infinity, that is probability 0. Two datasets at distance 0 are neighbours like any others, and each sees the
other's value on level 0.
"""

import dataclasses
import functools
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.privacy.finite_metrics import check_metric
from dpaudit_mechanisms.index_metric import budget_matrix
from dpaudit_mechanisms.inputs import ArrayLike, BoolArray, FloatArray, IntArray, fixed, table

BoolArray = BoolArray
# Relative slack of "at most k units": a distance that was computed in double precision counts as k where it is k. The
# privacy of an instance does not rest on it: `privacy_loss` is computed from the levels that came out.
ROUNDING = 1e-12


def whole_steps(distances: ArrayLike, unit: float = 1.0) -> FloatArray:
    """The index i >= 0 with (i - 1) unit < distance <= i unit: distance / unit rounded up, infinity kept.

    Distances are at least 0, `unit` is in (0, inf). A distance within 1e-12 (relative) above i units counts as i units.

    Examples
    --------
    >>> whole_steps([0.0, 0.2, 1.0, 1.5, np.inf, 0.1 + 0.2], unit=0.1).tolist()  # 0.1 + 0.2 is above 0.3
    [0.0, 2.0, 10.0, 15.0, inf, 3.0]
    """
    return np.ceil(np.asarray(distances, dtype=float) / unit * (1.0 - ROUNDING))


@dataclasses.dataclass(frozen=True, eq=False)
class FiniteSpaces:
    """A query f between a finite space of datasets and a finite space of values.

    Parameters
    ----------
    privacy_metric : array_like of float, shape (datasets, datasets)
        dbar; in [0, inf], symmetric, 0 on the diagonal, with the triangle inequality. Neighbours: at most 1 apart.
    values : array_like of int, shape (datasets,)
        f: the position of the value of each dataset. Every position 0..m - 1 must occur.
    utility_metric : array_like of float, shape (m, m)
        d; as `privacy_metric`.
    measure : array_like of float, shape (m,), optional
        mu, in (0, inf) for every value; the counting measure by default.
    check_triangle : bool
        False where the triangle inequalities are known to hold: the check takes a second for 1,000 datasets.

    Raises
    ------
    UsageError
        If a shape or value is out of range, a metric breaks an axiom, or a value is of no dataset.

    Examples
    --------
    >>> path = np.abs(np.subtract.outer(range(3), range(3)))
    >>> spaces = FiniteSpaces(path, [0, 1, 0], [[0.0, 2.0], [2.0, 0.0]])
    >>> spaces.sensitivity, spaces.local_sensitivities(0).tolist(), spaces.neighbour_pairs.tolist()
    (2.0, [2.0, 2.0, 2.0], [[0, 1], [1, 2]])
    """

    privacy_metric: FloatArray = dataclasses.field(repr=False)
    values: IntArray = dataclasses.field(repr=False)
    utility_metric: FloatArray = dataclasses.field(repr=False)
    measure: FloatArray | None = dataclasses.field(default=None, repr=False)
    check_triangle: bool = dataclasses.field(default=True, repr=False)

    def __post_init__(self) -> None:
        hidden, kept = budget_matrix(self.privacy_metric), budget_matrix(self.utility_metric)
        if self.check_triangle:
            check_metric(hidden)
            check_metric(kept)
        given = table("values", self.values, (len(hidden),))
        if not np.array_equal(np.unique(given), np.arange(len(kept))):
            raise UsageError(f"values must be the positions 0 to {len(kept) - 1}, each of a dataset, got {given}.")
        measure = np.ones(len(kept)) if self.measure is None else self.measure
        measure = table("measure", measure, (len(kept),), within="in (0, inf)")
        fixed(self, privacy_metric=hidden, utility_metric=kept, values=given.astype(np.int64), measure=measure)

    @property
    def datasets(self) -> int:
        """Number of datasets."""
        return len(self.privacy_metric)

    @property
    def outcomes(self) -> int:
        """Number of values."""
        return len(self.utility_metric)

    @functools.cached_property
    def distances(self) -> FloatArray:
        """d(f(x), r), shape (datasets, outcomes)."""
        return self.utility_metric[self.values]

    @functools.cached_property
    def shells(self) -> FloatArray:
        """The i with i - 1 < dbar(x, y) <= i (y is in the shell N_i^x), shape (datasets, datasets)."""
        return whole_steps(self.privacy_metric)

    @functools.cached_property
    def neighbour_pairs(self) -> IntArray:
        """Every x < y with dbar(x, y) <= 1, shape (pairs, 2); those of distance 0, which must be told apart least."""
        return np.argwhere(np.triu(self.shells <= 1.0, 1))

    @functools.cached_property
    def values_of(self) -> BoolArray:
        """Tell whether f(y) = r, shape (datasets, outcomes)."""
        return self.values[:, None] == np.arange(self.outcomes)

    @functools.cached_property
    def sensitivity(self) -> float:
        """Delta f: the largest d(f(x), f(x')) over neighbours, in units of d; 0 without neighbours (UP-D12)."""
        return float(self.local_sensitivities(0).max())

    @functools.cached_property
    def _at_neighbours(self) -> FloatArray:
        """Largest d(f(x), f(x')) over the neighbours of each dataset."""
        return np.array([
            self.distances[x, self.values[self.shells[x] <= 1.0]].max() for x in range(self.datasets)
        ])  # fmt: skip

    def local_sensitivities(self, distance: int) -> FloatArray:
        """Delta_i^x at distance i: the largest local sensitivity of datasets at most i away, shape (datasets,).

        Examples
        --------
        >>> path = np.abs(np.subtract.outer(range(4), range(4)))
        >>> line = np.abs(np.subtract.outer([0.0, 1.0, 3.0], [0.0, 1.0, 3.0]))
        >>> spaces = FiniteSpaces(path, [0, 0, 1, 2], line)
        >>> [spaces.local_sensitivities(i).tolist() for i in range(3)]
        [[0.0, 1.0, 2.0, 2.0], [1.0, 2.0, 2.0, 2.0], [2.0, 2.0, 2.0, 2.0]]
        """
        return np.where(self.shells <= distance, self._at_neighbours, -np.inf).max(axis=1)

    def nearby_values(self, widths: ArrayLike) -> BoolArray:
        """Tell whether some dataset with value v has one with value r within widths[v], shape (m, m).

        Row v is the set T_0 of the datasets with value v (UP-D-T): it depends on the value alone (eq. 16).
        """
        reach = widths_of("widths", widths, self.outcomes)
        near = self.privacy_metric <= reach[self.values][:, None] * (1.0 + ROUNDING)  # (z, y): dbar(z, y) <= width
        pairs = np.zeros((self.outcomes, self.outcomes), dtype=bool)
        z, y = np.nonzero(near)
        pairs[self.values[z], self.values[y]] = True
        return pairs


def widths_of(name: str, widths: ArrayLike, count: int) -> FloatArray:
    """One width for all, or one each, as an array of shape (count,) in [0, inf]."""
    given: Any = [widths] * count if np.ndim(widths) == 0 else widths
    found = table(name, given, (count,))
    if (found < 0.0).any():
        raise UsageError(f"{name} must be at least 0, got {found.min()}.")
    return found
