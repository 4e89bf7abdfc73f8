"""Groups of rows that may share a budget without loss (DC-D3.1), found for any matrix.

A grouping has (a) no column with two non-zero entries of one group and (b) in each group the same largest absolute
value C_r in every column. So the rows of a group have the same size of non-zero entries, and their supports are a
partition of the columns. Hence every grouping of a matrix has the same number of groups, rows of zeros aside: for each
size C, the number of entries of that size in a column, which is the same for all columns.

A grouping alone does not make equal budgets within groups optimal, even if the costs are equal within groups (DC-L3.2.b
and DC-T3.4 say so): that needs weights of the columns with which all rows of a group have the same share of the total,
`fair_column_weights`. Uniform weights will do where the supports in a group are of one size, as they are for marginals,
levels of a binary tree and wavelets. For the rows 100, 011; 110, 001; 101, 010 there are no such weights: all costs
being equal, equal budgets have a total variance of 54 (in units of that of one row with the whole budget), and the
optimum is 51.97: more for the single cells, less for the pairs.

Greedy placement (each row into the first group that it fits) can fail where a grouping exists, as for the rows 100,
001, 110, 011: the first two go together, and neither is then completed. `find_grouping` searches.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy import optimize

from dpaudit.errors import UsageError
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, IntArray, table

SAME = 1e-9  # relative: entries of one size
MAX_STEPS = 100_000  # of the search


def group_constants(matrix: ArrayLike, groups: ArrayLike) -> FloatArray | None:
    """C_r of each group if `groups` is a grouping of the rows of a matrix, shape (g,), and None if it is not.

    Parameters
    ----------
    matrix : array_like of float, shape (m, N)
    groups : array_like of int, shape (m,)
        The group of each row, from 0 to g - 1, none empty.

    Examples
    --------
    >>> figure_1 = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    >>> group_constants(figure_1, [0, 0, 1, 1, 1, 1]).tolist()
    [1.0, 1.0]
    >>> group_constants([[1, 2]], [0]) is None
    True
    """
    sizes = np.abs(table("matrix", matrix, (None, None)))
    labels = np.asarray(groups, dtype=np.int64)
    if labels.shape != (len(sizes),) or sorted(set(labels.tolist())) != list(range(int(labels.max()) + 1)):
        raise UsageError(f"groups must be {len(sizes)} numbers from 0 without a gap, got {labels.tolist()}.")
    found = []
    for group in range(int(labels.max()) + 1):
        rows = sizes[labels == group]
        largest = rows.max(axis=0)
        if ((rows > 0.0).sum(axis=0) > 1).any() or np.ptp(largest) > SAME * largest.max():
            return None
        found.append(float(largest.max()))
    return np.array(found)


def greedy_grouping(matrix: ArrayLike) -> IntArray | None:
    """The group of each row, each row being put into the first group that it fits; None if that is no grouping.

    Examples
    --------
    >>> greedy_grouping([[1, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 1]]).tolist()
    [0, 1, 0, 1]
    >>> greedy_grouping([[1, 0, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1]]) is None
    True
    """
    rows = _Rows(matrix)
    labels = np.zeros(len(rows.masks), dtype=np.int64)
    covered: list[int] = []
    kinds: list[int] = []
    for i, mask in enumerate(rows.masks):
        for group, taken in enumerate(covered):
            if not taken & mask and kinds[group] == rows.kinds[i]:
                labels[i], covered[group] = group, taken | mask
                break
        else:
            labels[i] = len(covered)
            covered.append(mask)
            kinds.append(rows.kinds[i])
    return labels if group_constants(matrix, labels) is not None else None


def find_grouping(matrix: ArrayLike) -> IntArray | None:
    """A grouping of the rows of a matrix, shape (m,), if it has one: greedy first, and then by search.

    Rows of zeros go to the first group. None also where the search takes more than 100,000 steps.

    Examples
    --------
    >>> find_grouping([[1, 0, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1]]).tolist()
    [0, 1, 1, 0]
    >>> find_grouping([[1, 2]]) is None
    True
    """
    easy = greedy_grouping(matrix)
    if easy is not None:
        return easy
    rows = _Rows(matrix)
    labels, groups = np.zeros(len(rows.masks), dtype=np.int64), 0
    entries = np.asarray(matrix) != 0
    for kind in sorted(set(rows.kinds) - {-1}):
        chosen = [i for i, k in enumerate(rows.kinds) if k == kind]
        if np.ptp(entries[chosen].sum(axis=0)):  # each group has one entry in each column
            return None
        partition = _partitioned([rows.masks[i] for i in chosen], rows.full)
        if partition is None:
            return None
        for part in partition:
            labels[[chosen[i] for i in part]] = groups
            groups += 1
    return labels if groups and group_constants(matrix, labels) is not None else None


def fair_column_weights(matrix: ArrayLike, groups: ArrayLike) -> FloatArray | None:
    """A distribution of columns with which the rows of each group have equal shares, shape (N,); None if there is none.

    If there is one, and the costs are equal within groups, then budgets in closed form by groups (DC-EQ4) are optimal
    among all budgets: it is the dual solution of `convex_budgets`.

    Parameters
    ----------
    matrix, groups : array_like
        As in `group_constants`; a grouping.

    Examples
    --------
    >>> fair_column_weights([[1, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 1]], [0, 1, 0, 1]).round(9).tolist()
    [0.5, 0.0, 0.5]
    >>> rows = [[1, 0, 0], [0, 1, 1], [1, 1, 0], [0, 0, 1], [1, 0, 1], [0, 1, 0]]
    >>> fair_column_weights(rows, [0, 0, 1, 1, 2, 2]) is None
    True
    """
    supports = table("matrix", matrix, (None, None)) != 0.0
    labels = np.asarray(groups, dtype=np.int64)
    shares = 1.0 / np.bincount(labels)[labels]
    if np.ptp(supports.sum(axis=1) / shares) <= SAME * supports.shape[1]:
        return np.full(supports.shape[1], 1.0 / supports.shape[1])
    found, residual = optimize.nnls(supports.astype(float), shares)
    return np.asarray(found / found.sum()) if residual <= SAME else None


class _Rows:
    """Supports of rows as bits, and which size of entries each has: -1 for a row of zeros, -2 - i for one of
    several."""

    def __init__(self, matrix: ArrayLike) -> None:
        sizes = np.abs(table("matrix", matrix, (None, None)))
        self.full = (1 << sizes.shape[1]) - 1
        self.masks = [sum(1 << j for j in np.flatnonzero(row).tolist()) for row in sizes]
        known: list[float] = []
        self.kinds: list[int] = []
        for i, row in enumerate(sizes):
            entries = row[row > 0.0]
            if not entries.size:
                self.kinds.append(-1)
            elif np.ptp(entries) > SAME * entries.max():
                self.kinds.append(-2 - i)  # such a row fits nowhere
            else:
                same = [k for k, size in enumerate(known) if abs(size - entries[0]) <= SAME * size]
                self.kinds.append(same[0] if same else len(known))
                if not same:
                    known.append(float(entries[0]))


def _partitioned(masks: Sequence[int], full: int) -> list[list[int]] | None:
    """All supports distributed over parts that each cover every column once, by backtracking."""
    steps = 0

    def covers(taken: int, part: list[int], free: list[int]) -> Iterator[list[int]]:
        nonlocal steps
        steps += 1
        if taken == full:
            yield part
            return
        lowest = ~taken & (taken + 1)  # the first column that is not covered
        for i in free:
            if masks[i] & lowest and not masks[i] & taken and steps <= MAX_STEPS:
                yield from covers(taken | masks[i], [*part, i], [j for j in free if j != i])

    def parts(free: list[int]) -> list[list[int]] | None:
        if not free:
            return []
        for part in covers(masks[free[0]], [free[0]], free[1:]):
            rest = parts([i for i in free if i not in part])
            if rest is not None:
                return [part, *rest]
        return None

    return parts(list(range(len(masks))))
