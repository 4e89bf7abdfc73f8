"""The orthonormal coefficients that determine a list of marginals (DC-T4.1, DC-S12).

The basis functions of a domain are products f^b of one function of each attribute (`transforms.basis`); b is a cell
index, and its support is the set of attributes with b_a > 0. The marginal A of f^b is 0 unless the support is in A, and
else s_A times an orthonormal function of the cells of A, where s_A is the square root of the number of cells that are
summed up in each answer. So a marginal is s_A times the inverse transform of the coefficients with support in A; and
any noise that is uncorrelated and of one variance within a marginal is uncorrelated in its coefficients.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from dpaudit.errors import UsageError
from dpaudit_mechanisms.datacubes.domains import Domain, Marginal, bit_set
from dpaudit_mechanisms.datacubes.transforms import forward, inverse, inverse_variances
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, IntArray


class Coefficients:
    """All coefficients with support in one of some marginals.

    Parameters
    ----------
    domain : Domain
    marginals : iterable of marginals

    Attributes
    ----------
    indices : numpy.ndarray of int, shape (m,)
        Their b as cell indices, increasing.
    supports : numpy.ndarray of int, shape (m,)
        The attributes with b_a > 0, as bits.

    Examples
    --------
    >>> Coefficients(Domain.binary(3), [(0,), (0, 1)]).indices.tolist()  # 000, 010, 100, 110
    [0, 2, 4, 6]
    """

    def __init__(self, domain: Domain, marginals: Iterable[Marginal]) -> None:
        self.domain = domain
        largest = maximal(marginals)
        self.indices: IntArray = np.unique(np.concatenate([_grid(domain, marginal) for marginal in largest]))
        self.supports: IntArray = np.zeros(len(self.indices), dtype=np.int64)
        for a in range(domain.attributes):
            self.supports |= (self._digits(a) > 0).astype(np.int64) << a
        self._within: dict[Marginal, tuple[IntArray, IntArray]] = {}

    def __len__(self) -> int:
        return len(self.indices)

    def _digits(self, attribute: int) -> IntArray:
        return np.asarray(self.indices // self.domain.strides[attribute] % self.domain.sizes[attribute])

    def within(self, marginal: Marginal) -> tuple[IntArray, IntArray]:
        """Coefficients that have their support in a marginal, and their positions among its cells."""
        if marginal not in self._within:
            which = np.flatnonzero((self.supports & ~bit_set(marginal)) == 0)
            local = np.zeros(len(which), dtype=np.int64)
            for a in marginal:
                local = local * self.domain.sizes[a] + self._digits(a)[which]
            order = np.argsort(local)
            self._within[marginal] = which[order], local[order]
        return self._within[marginal]

    def _all_within(self, marginal: Marginal) -> IntArray:
        which, _ = self.within(marginal)
        if len(which) != math.prod(self.domain.shape(marginal)):
            raise UsageError(f"workload must need no other coefficients than there are, got marginal {marginal}.")
        return which

    def of_data(self, data: ArrayLike, marginals: Sequence[Marginal]) -> FloatArray:
        """The coefficients <f^b, x> of a data vector, shape (..., m), read from marginals that determine them all."""
        values = np.asarray(data, dtype=float)
        found = np.zeros((*values.shape[:-1], len(self)))
        for marginal in maximal(marginals):
            which, local = self.within(marginal)
            cells = forward(self.domain.sum_to(values, marginal), self.domain.shape(marginal))
            found[..., which] = cells[..., local] / scale(self.domain, marginal)
        return found

    def to_marginal(self, coefficients: FloatArray, marginal: Marginal) -> FloatArray:
        """The cells of a marginal, shape (..., cells), from all its coefficients, shape (..., m)."""
        which = self._all_within(marginal)
        return scale(self.domain, marginal) * inverse(coefficients[..., which], self.domain.shape(marginal))

    def to_marginals(self, coefficients: FloatArray, marginals: Sequence[Marginal]) -> FloatArray:
        """The cells of several marginals one after the other, shape (..., q)."""
        return np.concatenate([self.to_marginal(coefficients, marginal) for marginal in marginals], axis=-1)

    def variances(self, variances: FloatArray, marginals: Sequence[Marginal]) -> FloatArray:
        """Variance of each cell of some marginals where the coefficients are uncorrelated, of variances (m,)."""
        each = [inverse_variances(variances[self._all_within(m)], self.domain.shape(m)) for m in marginals]
        return np.concatenate(
            [scale(self.domain, m) ** 2 * squares for m, squares in zip(marginals, each, strict=True)]
        )


def scale(domain: Domain, marginal: Marginal) -> float:
    """s_A: the square root of how many cells each cell of a marginal sums up."""
    return math.sqrt(domain.cells / math.prod(domain.shape(marginal)))


def maximal(marginals: Iterable[Marginal]) -> list[Marginal]:
    """The marginals that are in no other one, each once."""
    kept: list[Marginal] = []
    known: list[int] = []
    for marginal in sorted(set(marginals), key=lambda m: (-len(m), m)):
        bits = bit_set(marginal)
        if not any(bits & ~other == 0 for other in known):
            kept.append(marginal)
            known.append(bits)
    return kept


def _grid(domain: Domain, marginal: Marginal) -> IntArray:
    """The cells of which all attributes outside of a marginal are 0, in the marginal's order."""
    strides = domain.strides
    found = np.zeros(1, dtype=np.int64)
    for a in marginal:
        found = (found[:, None] + strides[a] * np.arange(domain.sizes[a])).reshape(-1)
    return found
