"""The Fourier strategy: the coefficients that determine a workload, in an orthonormal basis.

Over attributes of which all numbers of values are powers of two (binary ones, or any after binary encoding) this is the
Hadamard basis of the paper, every entry of size N^(-1/2). Elsewhere it is the tensor product of the bases of
`transforms.basis`, natively categorical. Coefficients of one support have the same cost in every marginal: they are a
group, of as many rows as their attributes have values beyond the first.
"""

import functools
import math

import numpy as np

from dpaudit.errors import UsageError
from dpaudit_mechanisms.datacubes.budgets import norm
from dpaudit_mechanisms.datacubes.coefficients import scale
from dpaudit_mechanisms.datacubes.domains import Domain, bit_set
from dpaudit_mechanisms.datacubes.strategies import Strategy
from dpaudit_mechanisms.datacubes.transforms import basis, walsh_hadamard
from dpaudit_mechanisms.datacubes.workloads import Workload
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, IntArray

MAX_CELLS = 1 << 24  # up to which the exact sensitivity of replacing a record is computed
MAX_PAIRS = 1 << 27  # entries of the differences of all columns, likewise
MAX_SETS = 20  # attributes, likewise


class FourierStrategy(Strategy):
    """The orthonormal coefficients that a workload needs, in groups of one support, smallest supports first.

    Recovery is unique as far as a workload needs all of them: the initial one is least squares (DC-O1).

    `sensitivity` is exact for adding and removing. For replacing it is exact under normal noise up to 20 attributes,
    and under Laplace noise where all numbers of values are powers of two and N is at most 2**24, or N^2 m at most
    2**27; elsewhere it is the bound 2 times that of adding (the total does not count).

    Parameters
    ----------
    workload : Workload
        What is to be answered; weights do not matter.

    Examples
    --------
    >>> strategy = FourierStrategy(Workload(Domain.binary(3), [(0,), (0, 1)]))
    >>> (strategy.matrix() * 8**0.5).round().astype(int).tolist()[1]  # f^100
    [1, 1, 1, 1, -1, -1, -1, -1]
    """

    is_determined = True

    def __init__(self, workload: Workload) -> None:
        self.domain: Domain = workload.domain
        self.sets = workload.sets
        self.coefficients = workload.coefficients
        supports = self.coefficients.supports
        codes, counts = np.unique(supports, return_counts=True)
        ways = np.array([int(code).bit_count() for code in codes])
        order = np.lexsort((codes, ways))
        self.supports: IntArray = codes[order]
        self.group_sizes = counts[order].astype(np.int64)
        place = np.empty(len(codes), dtype=np.int64)
        place[order] = np.arange(len(codes))
        self._group_of = place[np.searchsorted(codes, supports)]  # of each coefficient
        self._rows = np.argsort(self._group_of, kind="stable")  # the coefficient of each row

    def answers(self, data: ArrayLike) -> FloatArray:
        return self.coefficients.of_data(data, self.sets)[..., self._rows]

    def constants(self, order: int) -> FloatArray:
        # The norms of the columns are products over attributes, so one column has the largest of all groups.
        logs = np.zeros(self.groups)
        for a, size in enumerate(self.domain.sizes):
            inside = _largest_norm(size, order) if size > 1 else 1.0
            logs += np.log(np.where(self.supports >> a & 1, inside, size**-0.5))
        return np.exp(logs)

    def costs(self, workload: Workload) -> FloatArray:
        self._check(workload)
        found = np.zeros(self.groups)
        for marginal, weight in zip(workload.sets, np.asarray(workload.weights), strict=True):
            needed = (self.supports & ~bit_set(marginal)) == 0
            if self.group_sizes[needed].sum() != math.prod(self.domain.shape(marginal)):
                raise UsageError(f"workload must need no other coefficients than the strategy has, got {marginal}.")
            found[needed] += weight * scale(self.domain, marginal) ** 2
        return found * self.group_sizes

    def initial(self, noisy: FloatArray, workload: Workload) -> FloatArray:
        values = np.empty(np.shape(noisy))
        values[..., self._rows] = noisy
        self._check(workload)
        return self.coefficients.to_marginals(values, workload.sets)

    def initial_variances(self, variances: FloatArray, workload: Workload) -> FloatArray:
        self._check(workload)
        return self.coefficients.variances(np.asarray(variances, dtype=float)[self._group_of], workload.sets)

    def _replaced(self, budgets: FloatArray, order: int) -> float:
        eta = np.where(self.supports == 0, 0.0, budgets)  # the total does not change
        if self._has_signs and self.domain.cells <= MAX_CELLS:
            # Rows of entries +-N^(-1/2): cells j and k differ where the character of j xor k is -1.
            powers = np.zeros(self.domain.cells)
            powers[self.coefficients.indices] = eta[self._group_of] ** order
            odd = float((powers.sum() - math.sqrt(self.domain.cells) * walsh_hadamard(powers).min()) / 2.0)
            return 2.0 * float(self.domain.cells**-0.5 * odd ** (1.0 / order))
        if order == 2 and self.domain.attributes <= MAX_SETS:
            return self._replaced_squares(eta)
        if self.domain.cells**2 * self.rows <= MAX_PAIRS:
            columns = (self.matrix() * self.spread(eta)[:, None]).T
            worst = [(np.abs(columns - column) ** order).sum(axis=1).max() for column in columns]
            return float(max(worst) ** (1.0 / order))
        return 2.0 * norm(self.constants(order) * eta, order)

    @property
    def _has_signs(self) -> bool:
        return all(size & (size - 1) == 0 for size in self.domain.sizes)

    def _replaced_squares(self, eta: FloatArray) -> float:
        """Exact for order 2: the Gram matrix of two cells depends on which attributes they differ in alone."""
        sets = np.zeros(1 << self.domain.attributes)
        sets[self.supports] = eta**2
        for a, size in enumerate(self.domain.sizes):
            # rows: the cells agree, or differ, in a; columns: a is out of the support, or in it
            agree = np.array([[1.0, size - 1.0], [1.0, -1.0] if size > 1 else [1.0, 0.0]]) / size
            sets = np.matmul(agree, sets.reshape(-1, 2, 1 << a)).reshape(-1)
        return math.sqrt(2.0 * float(sets[0] - sets.min()))


@functools.cache
def _largest_norm(size: int, order: int) -> float:
    """The largest norm of a column of the basis of an attribute without its constant function."""
    rest = np.abs(basis(size)[1:])
    return float((rest**order).sum(axis=0).max() ** (1.0 / order))
