"""Workloads of marginals: which sums of a data vector are wanted.

A workload is a list of marginals (one may occur twice, and counts twice). Its answers are the cells of all of them, one
marginal after the other, cells in lexicographic order. Named families, as in the experiments of the paper (claims
DC-E1, DC-E2), with the two conventions that it leaves open: "half" is the first half in lexicographic order, rounded
down, and the fixed attribute is the first one.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit_mechanisms.datacubes.coefficients import Coefficients
from dpaudit_mechanisms.datacubes.domains import Domain, Marginal
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, fixed, table, whole_number

MAX_MATRIX = 1 << 26  # entries of a matrix that is written out


@dataclasses.dataclass(frozen=True, eq=False)
class Workload:
    """Marginals over a domain, with a weight each.

    Parameters
    ----------
    domain : Domain
    marginals : sequence of iterables of int
        Sets of attributes; the empty set is the total.
    weights : array_like of float, shape (marginals,), optional
        How much the variance of each cell of a marginal counts in the total, positive; 1 by default.

    Raises
    ------
    UsageError
        If there is no marginal, an attribute does not exist, or a weight is not positive.

    Examples
    --------
    >>> workload = Workload(Domain.binary(3), [(0,), (0, 1)])  # the paper's figure 1
    >>> workload.answers([1, 2, 0, 1, 0, 0, 1, 0]).tolist()
    [4.0, 1.0, 3.0, 1.0, 0.0, 1.0]
    >>> workload.matrix().astype(int)[:2].tolist()
    [[1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1]]
    """

    domain: Domain
    marginals: Sequence[Iterable[int]]
    weights: FloatArray | None = None

    def __post_init__(self) -> None:
        marginals = tuple(self.domain.marginal(marginal) for marginal in self.marginals)
        if not marginals:
            raise UsageError("marginals must be at least one, got none.")
        given = np.ones(len(marginals)) if self.weights is None else self.weights
        weights = table("weights", given, (len(marginals),), within="in (0, inf)")
        fixed(self, marginals=marginals, weights=weights)

    @property
    def sets(self) -> tuple[Marginal, ...]:
        """The marginals, as increasing tuples of attributes."""
        return self.marginals  # type: ignore[return-value]

    @functools.cached_property
    def coefficients(self) -> Coefficients:
        """The orthonormal coefficients that determine the answers."""
        return Coefficients(self.domain, self.sets)

    @property
    def counts(self) -> list[int]:
        """Number of cells of each marginal."""
        return [math.prod(self.domain.shape(marginal)) for marginal in self.sets]

    @property
    def queries(self) -> int:
        """Number of answers, q."""
        return sum(self.counts)

    @property
    def query_weights(self) -> FloatArray:
        """The weight of each answer, shape (q,)."""
        return np.repeat(np.asarray(self.weights), self.counts)

    def split(self, answers: Any) -> list[FloatArray]:
        """Answers (..., q) cut into marginals, each (..., cells)."""
        return np.split(np.asarray(answers), np.cumsum(self.counts)[:-1], axis=-1)

    def answers(self, data: ArrayLike) -> FloatArray:
        """Exact answers Q x, shape (..., q), from data vectors (..., N), in time marginals x N."""
        values = np.asarray(data, dtype=float)
        if values.ndim == 0 or values.shape[-1] != self.domain.cells:
            raise UsageError(f"data must be of shape (..., {self.domain.cells}), got shape {values.shape}.")
        return np.concatenate([self.domain.sum_to(values, marginal) for marginal in self.sets], axis=-1)

    def matrix(self) -> FloatArray:
        """Q written out, shape (q, N); refused above 2**26 entries."""
        return written_out(self.answers, self.queries, self.domain.cells)

    def encoded(self) -> "Workload":
        """The same marginals over the binary encoding of the domain; `decoded` takes its answers back."""
        bits = self.domain.bits
        sets = [[bit for a in marginal for bit in bits[a]] for marginal in self.sets]
        return Workload(self.domain.encoded(), sets, self.weights)

    def decoded(self, answers: Any) -> FloatArray:
        """Answers (..., q') of `encoded()` without those of cells that do not exist, shape (..., q)."""
        bits, parts = self.domain.bits, []
        codes = [math.prod(1 << len(bits[a]) for a in marginal) for marginal in self.sets]
        values = np.asarray(answers, dtype=float)
        if values.ndim == 0 or values.shape[-1] != sum(codes):
            raise UsageError(f"answers must be of shape (..., {sum(codes)}), got shape {values.shape}.")
        blocks = np.split(values, np.cumsum(codes)[:-1], axis=-1)
        for marginal, block in zip(self.sets, blocks, strict=True):
            batch = block.shape[:-1]
            array = block.reshape((*batch, *(1 << len(bits[a]) for a in marginal)))
            within: tuple[Any, ...] = (..., *(slice(self.domain.sizes[a]) for a in marginal))
            real = array[within]
            parts.append(real.reshape(*batch, -1))
        return np.concatenate(parts, axis=-1)


def written_out(operator: Any, rows: int, cells: int) -> FloatArray:
    """The matrix of a linear map of data vectors, shape (rows, cells); refused above 2**26 entries."""
    if rows * cells > MAX_MATRIX or cells * cells > MAX_MATRIX:
        raise UsageError(f"a matrix that is written out must have at most {MAX_MATRIX} entries, got {rows} x {cells}.")
    return np.ascontiguousarray(np.asarray(operator(np.eye(cells))).T)


def all_marginals(domain: Domain, k: int) -> Workload:
    """Q_k: all k-way marginals.

    Examples
    --------
    >>> len(all_marginals(Domain.binary(16), 2).marginals)
    120
    """
    return Workload(domain, _ways(domain, k))


def all_and_half(domain: Domain, k: int, rng: np.random.Generator | None = None) -> Workload:
    """Q_k*: all k-way marginals and half of the (k + 1)-way ones, rounded down: the first ones, or random ones.

    Examples
    --------
    >>> len(all_and_half(Domain.binary(16), 2).marginals)
    400
    """
    more = _ways(domain, k + 1)
    half = len(more) // 2
    chosen = range(half) if rng is None else sorted(rng.permutation(len(more))[:half].tolist())
    return Workload(domain, [*_ways(domain, k), *(more[i] for i in chosen)])


def all_and_with_attribute(domain: Domain, k: int, attribute: int = 0) -> Workload:
    """Q_k^a: all k-way marginals and all (k + 1)-way ones that contain one attribute.

    Examples
    --------
    >>> len(all_and_with_attribute(Domain.binary(16), 2).marginals)
    225
    """
    domain.marginal([attribute])
    return Workload(domain, [*_ways(domain, k), *(m for m in _ways(domain, k + 1) if attribute in m)])


def _ways(domain: Domain, k: int) -> list[Marginal]:
    k = whole_number("k", k, 0)
    if k > domain.attributes:
        raise UsageError(f"k must be at most {domain.attributes}, the number of attributes, got {k}.")
    return list(itertools.combinations(range(domain.attributes), k))
