"""The Haar wavelet strategy over the cells in lexicographic order.

Rows: all ones, and for each level t and block of N / 2^t cells the first half minus the second half; entries 1, -1 and
0, one non-zero entry of each level a column. S is invertible, so the recovery is Q S^-1 and consistent. N must be a
power of two, and each number of values as well (use `Domain.encoded`); then a row meets a marginal in closed form, bit
by bit.
"""

import numpy as np

from dpaudit.errors import UsageError
from dpaudit_mechanisms.datacubes.domains import Domain, Marginal
from dpaudit_mechanisms.datacubes.strategies import Strategy
from dpaudit_mechanisms.datacubes.transforms import haar, inverse_haar
from dpaudit_mechanisms.datacubes.workloads import Workload
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray


class HaarStrategy(Strategy):
    """The unnormalised Haar wavelets of the data vector; the total and each level are a group, of constant 1.

    Parameters
    ----------
    domain : Domain
        All numbers of values powers of two.

    Raises
    ------
    UsageError
        If one is not.

    Examples
    --------
    >>> HaarStrategy(Domain.binary(2)).matrix().astype(int).tolist()
    [[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 0, 0], [0, 0, 1, -1]]
    """

    is_determined = True

    def __init__(self, domain: Domain) -> None:
        if any(size & (size - 1) for size in domain.sizes):
            raise UsageError(f"domain must have powers of two as sizes, got {tuple(domain.sizes)}. Use encoded().")
        self.domain = domain
        self.levels = domain.cells.bit_length() - 1
        self.group_sizes = np.array([1, *(1 << t for t in range(self.levels))], dtype=np.int64)

    def answers(self, data: ArrayLike) -> FloatArray:
        return haar(data)

    def _replaced(self, budgets: FloatArray, order: int) -> float:
        # Two cells that part on level s: one row of level s changes by 2, and two rows of each finer level by 1.
        levels = budgets[1:]
        if order == 1:
            return 2.0 * float(levels.sum())
        finer = np.cumsum(levels[::-1] ** 2)[::-1] - levels**2
        return float(np.sqrt((4.0 * levels**2 + 2.0 * finer).max(initial=0.0)))

    def _squares(self, marginal: Marginal) -> FloatArray:
        """Sum of R[j, i]^2 over the rows i of each group, shape (g,), the same for all cells j of a marginal."""
        bits = self.domain.bits
        inside = np.zeros(self.levels)
        inside[[bit for a in marginal for bit in bits[a]]] = 1.0
        t, before = np.arange(self.levels), np.cumsum(inside) - inside
        after = inside.sum() - before - inside
        # A level whose bit is summed over cancels. Else the rows whose block has the cell's earlier bits, 2^(t -
        # before) of them, have 2^(later bits summed over) in the query, of a squared length of 2^(levels - t).
        logs = (t - before) + 2.0 * (self.levels - 1 - t - after) - 2.0 * (self.levels - t)
        return np.concatenate([[4.0 ** -inside.sum()], np.where(inside > 0.0, 2.0**logs, 0.0)])

    def costs(self, workload: Workload) -> FloatArray:
        self._check(workload)
        found = np.zeros(self.groups)
        for marginal, count, weight in zip(workload.sets, workload.counts, np.asarray(workload.weights), strict=True):
            found += weight * count * self._squares(marginal)
        return found

    def initial(self, noisy: FloatArray, workload: Workload) -> FloatArray:
        self._check(workload)
        return workload.answers(inverse_haar(noisy))

    def initial_variances(self, variances: FloatArray, workload: Workload) -> FloatArray:
        self._check(workload)
        each = []
        for marginal in workload.sets:
            squares = self._squares(marginal)
            used = squares > 0.0  # a group that is not measured may have a variance of inf
            each.append(float(squares[used] @ np.asarray(variances)[used]))
        return np.repeat(each, workload.counts)
