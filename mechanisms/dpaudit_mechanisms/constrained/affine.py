"""Affine sets {z : A z = b}: independent rows, the kernel, the L2 projection, and what conditioning on one means.

Which rows and which free variables describe the set makes no difference here: everything rests on the set itself. The
law of noise U "given A U = 0" is its disintegration along the linear map A (the limit of |A U| < h as h falls to 0);
any A with the same kernel gives the same. Conditioning on a set of measure 0 through another family of sets, such as
|U_1 / U_2 + 1| < h for U_1 + U_2 = 0, gives another law.
"""

import dataclasses
import functools
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit_mechanisms.inputs import ArrayLike, BoolArray, FloatArray, fixed, output_batch, table

RANK_TOLERANCE = 1e-10  # singular values below this share of the largest count as 0
POINT_TOLERANCE = 1e-9  # of A z - b, relative to |b| + |A| |z|: rounding of sums of some thousand terms


@dataclasses.dataclass(frozen=True, eq=False)
class Affine:
    """The set {z : matrix z = offsets}; rows that follow from others are dropped.

    Parameters
    ----------
    matrix : array_like of float, shape (rows, coordinates)
    offsets : array_like of float, shape (rows,), optional
        Zero by default.

    Raises
    ------
    UsageError
        If shapes do not fit, a value is not finite, or no point satisfies all rows.

    Examples
    --------
    >>> line = Affine([[1.0, 1.0], [2.0, 2.0]], [3.0, 6.0])
    >>> line.rank, line.dimension
    (1, 1)
    >>> line.project([[0.0, 0.0]]).round(9).tolist()
    [[1.5, 1.5]]
    """

    matrix: Any
    offsets: Any = None
    rank: int = dataclasses.field(init=False)
    normals: FloatArray = dataclasses.field(init=False)  # (rank, coordinates), orthonormal: normals z = levels
    levels: FloatArray = dataclasses.field(init=False)
    kernel: FloatArray = dataclasses.field(init=False)  # (dimension, coordinates), orthonormal: spans A u = 0

    def __post_init__(self) -> None:
        matrix = table("matrix", self.matrix, (None, None), finite=True)
        given = np.zeros(len(matrix)) if self.offsets is None else self.offsets
        offsets = table("offsets", given, (len(matrix),), finite=True)
        # Rows of length 1: which of them follow from others does not depend on the units of each.
        lengths = np.linalg.norm(matrix, axis=1)
        unit = np.where(lengths > 0.0, lengths, 1.0)
        left, values, right = np.linalg.svd(matrix / unit[:, None])
        largest = values[0] if values.size else 0.0
        rank = int((values > RANK_TOLERANCE * largest).sum()) if largest > 0.0 else 0
        rotated = left.T @ (offsets / unit)
        size = float(np.abs(offsets / unit).max(initial=0.0))
        if (np.abs(rotated[rank:]) > POINT_TOLERANCE * max(size, 1.0)).any():
            raise UsageError("matrix and offsets must have a point that satisfies all rows, got rows that contradict.")
        fixed(self, matrix=matrix, offsets=offsets, rank=rank, normals=right[:rank], kernel=right[rank:],
              levels=rotated[:rank] / values[:rank])  # fmt: skip

    @property
    def coordinates(self) -> int:
        """Of the space, n."""
        return int(self.matrix.shape[1])

    @property
    def dimension(self) -> int:
        """Of the set: the number of free variables, coordinates - rank."""
        return self.coordinates - self.rank

    @property
    def projector(self) -> FloatArray:
        """The orthogonal projector onto the kernel, shape (coordinates, coordinates)."""
        return np.asarray(self.kernel.T @ self.kernel)

    def contains(self, points: ArrayLike) -> BoolArray:
        """Tell whether each point satisfies all rows up to rounding, shape (size,)."""
        batch = output_batch(points, (self.coordinates,))
        with np.errstate(invalid="ignore"):
            gaps = np.abs(batch @ self.normals.T - self.levels)
            room = POINT_TOLERANCE * (1.0 + np.abs(self.levels).max(initial=0.0) + np.abs(batch).sum(axis=1))
            return np.asarray((gaps <= room[:, None]).all(axis=1))

    def project(self, points: ArrayLike) -> FloatArray:
        """The nearest point of the set in L2 for each point, shape (size, coordinates)."""
        batch = output_batch(points, (self.coordinates,))
        return np.asarray(batch - (batch @ self.normals.T - self.levels) @ self.normals)

    def free_variables(self) -> tuple[int, ...]:
        """Coordinates that parametrise the set: as many as its dimension, the others follow from them.

        Any coordinates do that leave an invertible square system for the rest; these come from a pivoted QR of the
        rows.
        """
        from scipy import linalg

        if self.rank == 0:
            return tuple(range(self.coordinates))
        _, _, order = linalg.qr(self.normals, pivoting=True, mode="economic")
        return tuple(sorted(order[self.rank :].tolist()))

    def solved(self, free: ArrayLike, variables: tuple[int, ...] | None = None) -> FloatArray:
        """Points of the parallel set {u : A u = 0} from their free variables, shape (size, coordinates).

        Raises
        ------
        UsageError
            If these variables do not determine the others.
        """
        chosen = self.free_variables() if variables is None else tuple(variables)
        others = [i for i in range(self.coordinates) if i not in chosen]
        given = output_batch(free, (self.dimension,))
        square = self.normals[:, others]
        if len(others) != self.rank or (self.rank and np.linalg.cond(square) > 1.0 / RANK_TOLERANCE):
            raise UsageError(f"variables must determine the others, got {chosen!r}.")
        points = np.empty((len(given), self.coordinates))
        points[:, list(chosen)] = given
        if self.rank:
            points[:, others] = -np.linalg.solve(square, self.normals[:, list(chosen)] @ given.T).T
        return points

    def completed(self, points: ArrayLike) -> FloatArray:
        """Points of the set with the free variables of `points`; the other coordinates follow from these alone.

        Every point by itself, to the last bit: what rounding leaves of matrix z - offsets is a function of the free
        variables, so that it tells nothing more than these do. An answer plus noise on the kernel has another residual
        for every answer, from which 2,000 draws tell two answers apart better than any epsilon of the noise allows.

        Examples
        --------
        >>> Affine([[1.0, 1.0]], [3.0]).completed([[0.0, 1.0], [9.0, 2.5]]).tolist()
        [[2.0, 1.0], [0.5, 2.5]]
        """
        found = output_batch(points, (self.coordinates,)).copy()
        free, others, slopes, start = self._completion
        if others:
            # Sums along the last axis, not a matrix product: its rounding may depend on the size of the batch.
            found[:, others] = start + (found[:, None, free] * slopes).sum(axis=2)
        return found

    @functools.cached_property
    def _completion(self) -> tuple[list[int], list[int], FloatArray, FloatArray]:
        """Free variables, the others, and the latter as slopes (others, free) and values where the former are 0."""
        free = list(self.free_variables())
        others = [i for i in range(self.coordinates) if i not in free]
        square = self.normals[:, others]
        return free, others, -np.linalg.solve(square, self.normals[:, free]), np.linalg.solve(square, self.levels)
