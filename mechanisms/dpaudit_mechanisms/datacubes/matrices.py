"""Any matrix as a strategy, written out: for small domains, and to hold the implicit strategies against.

Each row has a budget of its own. Where the rows have a grouping (DC-D3.1) with fair column weights, and the initial
recovery has equal costs within groups (DC-D3.2), the optimal budgets are in closed form by groups; elsewhere they come
from a convex program.
"""

import functools

import numpy as np

from dpaudit.errors import UsageError
from dpaudit_mechanisms.datacubes.budgets import optimal_budgets
from dpaudit_mechanisms.datacubes.convex import convex_budgets
from dpaudit_mechanisms.datacubes.domains import Domain
from dpaudit_mechanisms.datacubes.grouping import fair_column_weights, find_grouping, group_constants
from dpaudit_mechanisms.datacubes.strategies import Adjacency, Strategy
from dpaudit_mechanisms.datacubes.workloads import Workload
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, IntArray, table, whole_number

EXACT = 1e-8  # relative: how well R S has to be Q
MAX_PAIRS = 1 << 24  # entries of the differences of all columns


def tree_rows(leaves: int, fan_out: int = 2, root: bool = True) -> FloatArray:
    """The node sums of a tree over any number of cells, level by level, shape (nodes, leaves).

    Each level has blocks of `fan_out` blocks of the next one, counted from the first cell, so that the last block of a
    level may be shorter; levels end with single cells. Such a tree has a grouping by levels in every case.

    Examples
    --------
    >>> tree_rows(3).astype(int).tolist()
    [[1, 1, 1], [1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    """
    cells, width = whole_number("leaves", leaves, 1), 1
    ratio = whole_number("fan_out", fan_out, 2)
    levels = [np.eye(cells)]
    while width < cells:
        width *= ratio
        starts = range(0, cells, width)
        levels.append(np.array([[float(s <= j < s + width) for j in range(cells)] for s in starts]))
    kept = levels if root or len(levels) == 1 else levels[:-1]
    return np.vstack(kept[::-1])


class MatrixStrategy(Strategy):
    """The rows of a matrix, each with a budget of its own.

    Parameters
    ----------
    domain : Domain
    rows : array_like of float, shape (m, N)
        No row of zeros.
    recovery : array_like of float, shape (q, m), optional
        The initial recovery R, with R S = Q for the workload that it will be used with; Q times the pseudo-inverse of S
        by default.

    Examples
    --------
    >>> tree = MatrixStrategy(Domain([3]), [[1, 1, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0], [0, 0, 1]])
    >>> tree.grouping is None  # the last two rows cover two of three columns
    True
    """

    def __init__(self, domain: Domain, rows: ArrayLike, recovery: ArrayLike | None = None) -> None:
        self.domain = domain
        self.entries = table("rows", rows, (None, domain.cells))
        if not np.isfinite(self.entries).all() or not self.entries.any(axis=1).all():
            raise UsageError("rows must be finite and none of zeros alone.")
        self.entries.setflags(write=False)
        self.group_sizes = np.ones(len(self.entries), dtype=np.int64)
        self.recovery = None if recovery is None else table("recovery", recovery, (None, len(self.entries)))

    @functools.cached_property
    def grouping(self) -> IntArray | None:
        """The group of each row, shape (m,), if the rows have a grouping."""
        return find_grouping(self.entries)

    @functools.cached_property
    def column_weights(self) -> FloatArray | None:
        """Fair weights of the columns for `grouping`, shape (N,), if it has any."""
        return None if self.grouping is None else fair_column_weights(self.entries, self.grouping)

    def answers(self, data: ArrayLike) -> FloatArray:
        return np.asarray(np.asarray(data, dtype=float) @ self.entries.T)

    def constants(self, order: int) -> FloatArray:
        """The largest entry of each row; their norm bounds what is kept private, and `sensitivity` is exact."""
        return np.asarray(np.abs(self.entries).max(axis=1))

    def sensitivity(self, budgets: ArrayLike, order: int, adjacency: Adjacency = "add_remove") -> float:
        """Exact, from all columns, or differences of two columns."""
        super().sensitivity(budgets, order, adjacency)  # refuses unknown names
        columns = self.changes(adjacency) * np.asarray(budgets, dtype=float)[:, None]
        return float(((np.abs(columns) ** order).sum(axis=0) ** (1.0 / order)).max(initial=0.0))

    def _replaced(self, budgets: FloatArray, order: int) -> float:
        return 0.0  # `sensitivity` looks at the columns themselves

    def changes(self, adjacency: Adjacency) -> FloatArray:
        """Changes of S x between neighbours, up to the sign, shape (m, changes)."""
        if adjacency == "add_remove":
            return self.entries
        first, second = np.triu_indices(self.domain.cells, 1)
        if self.entries.shape[0] * len(first) > MAX_PAIRS:
            raise UsageError(f"domain must be smaller to replace records in, got {self.domain.cells} cells.")
        return np.asarray(self.entries[:, first] - self.entries[:, second])

    def initial_matrix(self, workload: Workload) -> FloatArray:
        """The initial recovery R, shape (q, m).

        Raises
        ------
        UsageError
            If R S is not Q.
        """
        self._check(workload)
        wanted = workload.matrix()
        found = wanted @ np.linalg.pinv(self.entries) if self.recovery is None else self.recovery
        if len(found) != len(wanted) or np.abs(found @ self.entries - wanted).max() > EXACT * np.abs(wanted).max():
            raise UsageError("workload must be in the span of the strategy's rows, got queries that are not.")
        return np.asarray(found)

    def costs(self, workload: Workload) -> FloatArray:
        return np.asarray(workload.query_weights @ self.initial_matrix(workload) ** 2)

    def optimal(self, workload: Workload, order: int, adjacency: Adjacency = "add_remove") -> FloatArray:
        costs = self.costs(workload)
        if self.grouping is not None and adjacency == "add_remove":
            constants = group_constants(self.entries, self.grouping)
            sums = np.bincount(self.grouping, weights=costs)
            means = (sums / np.bincount(self.grouping))[self.grouping]
            even = np.abs(costs - means).max() <= EXACT * costs.max()
            if constants is not None and even and self.column_weights is not None:
                return optimal_budgets(sums, constants, order)[self.grouping]
        changes = self.changes(adjacency)
        unused = costs <= 1e-15 * costs.max()  # rounding of rows that the recovery does not use
        free = ~changes.any(axis=1)  # no neighbour changes such a row, as the total where records are replaced
        if (unused | free).all():
            return np.ones(self.rows)
        budgets = convex_budgets(np.where(unused | free, 0.0, costs), changes, order).budgets
        return np.where(free & ~unused, budgets.max(), budgets)

    def initial(self, noisy: FloatArray, workload: Workload) -> FloatArray:
        return np.asarray(noisy @ self.initial_matrix(workload).T)

    def initial_variances(self, variances: FloatArray, workload: Workload) -> FloatArray:
        squares = self.initial_matrix(workload) ** 2
        used = squares.max(axis=0) > EXACT**2
        return np.asarray(squares[:, used] @ np.asarray(variances)[used])

    def least_squares_matrix(self, variances: FloatArray, workload: Workload) -> FloatArray:
        """The recovery of least variance for noise of these variances, shape (q, m) (DC-EQ7, DC-L3.5).

        Where S has not full column rank the pseudo-inverse takes the inverse's place.
        """
        self._check(workload)
        weights = 1.0 / np.sqrt(np.asarray(variances, dtype=float))  # 0 for rows that are not measured
        wanted = workload.matrix()
        found = wanted @ np.linalg.pinv(self.entries * weights[:, None]) * weights
        if np.abs(found @ self.entries - wanted).max() > EXACT * np.abs(wanted).max():
            raise UsageError("workload must be in the span of the rows that have a budget, got queries that are not.")
        return np.asarray(found)

    def least_squares(self, noisy: FloatArray, variances: FloatArray, workload: Workload) -> FloatArray:
        return np.asarray(noisy @ self.least_squares_matrix(variances, workload).T)

    def least_squares_variances(self, variances: FloatArray, workload: Workload) -> FloatArray:
        squares = self.least_squares_matrix(variances, workload) ** 2
        finite = np.isfinite(variances)
        return np.asarray(squares[:, finite] @ np.asarray(variances)[finite])
