"""Sparse sketches: the cells hashed into buckets, several times, with or without random signs.

S has one non-zero entry a column and repetition, 1 or -1: each repetition is a group, of constant 1. It is a sparse
matrix; recovery is by least squares, directly on small domains and by conjugate gradients on larger ones. The hash
functions are public and drawn once, from a seed; a workload can be answered without bias only if its queries are in the
span of the rows, which takes more buckets in all than cells, or luck.
"""

import functools
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

from dpaudit.errors import DpauditError, UsageError
from dpaudit_mechanisms.datacubes.budgets import norm
from dpaudit_mechanisms.datacubes.domains import Domain
from dpaudit_mechanisms.datacubes.matrices import MatrixStrategy
from dpaudit_mechanisms.datacubes.strategies import Strategy
from dpaudit_mechanisms.datacubes.workloads import Workload
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, whole_number

MAX_DENSE = 1024  # cells up to which everything is exact and written out
PRECISION = 1e-4  # of iterations: what they leave is about that share of the noise
MAX_STEPS = 2000
RANK_CHECK = 1e-5  # relative: how well a random data vector has to come back


class SketchStrategy(Strategy):
    """`repetitions` partitions of the cells into `buckets` buckets, at random.

    Costs and variances are exact and need at most 1024 cells; beyond, use uniform budgets. `sensitivity` under
    "replace_one" is exact up to 1024 cells, and a bound beyond.

    Parameters
    ----------
    domain : Domain
    buckets, repetitions : int
        At least 1. Buckets that no cell falls into stay, and are released as noise.
    seed : int
        Of the hash functions, which are public.
    signed : bool, optional
        Whether cells get random signs.

    Examples
    --------
    >>> sketch = SketchStrategy(Domain.binary(2), buckets=2, repetitions=3, seed=1)
    >>> sketch.matrix().shape, np.abs(sketch.matrix()).sum(axis=0).tolist()
    ((6, 4), [3.0, 3.0, 3.0, 3.0])
    """

    def __init__(self, domain: Domain, buckets: int, repetitions: int, seed: int, signed: bool = True) -> None:
        self.domain = domain
        self.buckets = whole_number("buckets", buckets, 1)
        self.repetitions = whole_number("repetitions", repetitions, 1)
        self.signed = signed
        rng = np.random.default_rng(whole_number("seed", seed, 0))
        places = rng.integers(self.buckets, size=(self.repetitions, domain.cells))
        signs = rng.choice([-1.0, 1.0], size=places.shape) if signed else np.ones(places.shape)
        rows = places + self.buckets * np.arange(self.repetitions)[:, None]
        columns = np.broadcast_to(np.arange(domain.cells), rows.shape)
        shape = (self.buckets * self.repetitions, domain.cells)
        entries = (signs.reshape(-1), (rows.reshape(-1), columns.reshape(-1)))
        self.sparse: Any = sparse.csr_matrix(entries, shape=shape)
        self.group_sizes = np.full(self.repetitions, self.buckets, dtype=np.int64)

    def answers(self, data: ArrayLike) -> FloatArray:
        values = np.asarray(data, dtype=float)
        found = self.sparse @ values.reshape(-1, self.domain.cells).T
        return np.asarray(found.T).reshape(*values.shape[:-1], -1)

    def _replaced(self, budgets: FloatArray, order: int) -> float:
        if self.domain.cells <= MAX_DENSE:
            columns = (self.sparse.multiply(self.spread(budgets)[:, None])).toarray()
            worst = [(np.abs(columns - column[:, None]) ** order).sum(axis=0).max() for column in columns.T]
            return float(max(worst) ** (1.0 / order))
        # two entries of 1, or one of 2 where the cells are in one bucket with opposite signs
        return (2.0 if order == 1 or self.signed else 2.0**0.5) * norm(budgets, order)

    @functools.cached_property
    def _dense(self) -> MatrixStrategy:
        """The rows that are not zero, written out."""
        if self.domain.cells > MAX_DENSE:
            raise UsageError(f"domain must have at most {MAX_DENSE} cells for exact costs, got {self.domain.cells}.")
        return MatrixStrategy(self.domain, self.sparse[self._used].toarray())

    @functools.cached_property
    def _used(self) -> Any:
        return np.flatnonzero(np.diff(self.sparse.indptr))

    def costs(self, workload: Workload) -> FloatArray:
        each = np.zeros(self.rows)
        each[self._used] = self._dense.costs(workload)
        return np.asarray(each.reshape(self.repetitions, self.buckets).sum(axis=1))

    def initial(self, noisy: FloatArray, workload: Workload) -> FloatArray:
        return self.least_squares(noisy, np.ones(self.groups), workload)

    def initial_variances(self, variances: FloatArray, workload: Workload) -> FloatArray:
        return self._dense.initial_variances(self.spread(variances)[self._used], workload)

    def least_squares(self, noisy: FloatArray, variances: FloatArray, workload: Workload) -> FloatArray:
        self._check(workload)
        if self.domain.cells <= MAX_DENSE:
            return self._dense.least_squares(noisy[..., self._used], self.spread(variances)[self._used], workload)
        weights = 1.0 / np.sqrt(self.spread(variances))
        if not self._has_full_rank:
            raise UsageError(f"strategy must have full column rank beyond {MAX_DENSE} cells. Use more buckets.")
        scaled = sparse.csr_matrix(sparse.diags_array(weights) @ self.sparse)  # rows of noise of variance 1
        batch = noisy.reshape(-1, self.rows) * weights
        found = np.stack([_conjugate_gradients(scaled, row, PRECISION) for row in batch])
        return workload.answers(found).reshape(*noisy.shape[:-1], -1)

    @functools.cached_property
    def _has_full_rank(self) -> bool:
        """Tell whether a random data vector is the only one with its answers (a second one is found almost surely)."""
        probe = np.random.default_rng(0).normal(size=self.domain.cells)
        found = _conjugate_gradients(self.sparse, self.sparse @ probe, 0.1 * RANK_CHECK)
        return bool(np.abs(found - probe).max() <= RANK_CHECK * np.abs(probe).max())

    def least_squares_variances(self, variances: FloatArray, workload: Workload) -> FloatArray:
        return self._dense.least_squares_variances(self.spread(variances)[self._used], workload)


def _conjugate_gradients(matrix: Any, target: FloatArray, precision: float) -> FloatArray:
    """The least squares solution of matrix x = target, for noise of variance 1 in the target, up to a share of it.

    The error of x is (A^T A)^-1 g for the gradient g = A^T (target - A x), and the noise in x is (A^T A)^-1 A^T noise:
    it stops where |g| is that share of the expected |A^T noise|, the Frobenius norm of A.
    """
    transposed = matrix.T.tocsr()
    found, residual = np.zeros(matrix.shape[1]), np.array(target)
    gradient = transposed @ residual
    step, square = gradient, float(gradient @ gradient)
    limit = (precision * linalg.norm(matrix)) ** 2
    for _ in range(MAX_STEPS):
        if square <= limit:
            return found
        moved = matrix @ step
        length = square / float(moved @ moved)
        found = found + length * step
        residual = residual - length * moved
        gradient = transposed @ residual
        before, square = square, float(gradient @ gradient)
        step = gradient + square / before * step
    raise DpauditError(f"the least squares must converge in {MAX_STEPS} steps. Use more buckets.")
