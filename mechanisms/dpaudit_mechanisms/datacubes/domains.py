"""Domains of records with categorical attributes, their cells, and their binary encoding.

Conventions: attributes are numbered from 0; a cell is one value of every attribute, and cells are in lexicographic
order (the last attribute changes fastest), so that a data vector of N counts is an array of shape `sizes` in C order.
An attribute with n values is encoded by ceil(log2 n) binary attributes, most significant bit first; codes beyond n - 1
are cells that no record falls into.
"""

import dataclasses
import itertools
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, IntArray, fixed, numbers, table, whole_number

Marginal = tuple[int, ...]  # attributes in increasing order
MAX_ATTRIBUTES = 62  # their sets are bits of an int64


@dataclasses.dataclass(frozen=True)
class Domain:
    """The product of finitely many attributes.

    Parameters
    ----------
    sizes : sequence of int
        Number of values of each attribute, at least 1; at most 62 attributes.
    names : sequence of str, optional
        Names of the attributes, all different; their numbers by default.

    Examples
    --------
    >>> Domain([9, 16]).cells, Domain.binary(3).cells
    (144, 8)
    >>> Domain([2, 2]).histogram([[0, 1], [1, 1], [0, 1]]).tolist()
    [0.0, 2.0, 0.0, 1.0]
    """

    sizes: Sequence[int]
    names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        sizes = tuple(whole_number("sizes", size, 1) for size in self.sizes)
        if not 1 <= len(sizes) <= MAX_ATTRIBUTES:
            raise UsageError(f"sizes must be of 1 to {MAX_ATTRIBUTES} attributes, got {len(sizes)}.")
        if math.prod(sizes) > 2**62:
            raise UsageError(f"sizes must have a product of at most 2**62, got {math.prod(sizes)}.")
        names = tuple(map(str, range(len(sizes)))) if self.names is None else tuple(self.names)
        if len(names) != len(sizes) or len(set(names)) != len(names):
            raise UsageError(f"names must be {len(sizes)} different ones, got {list(names)}.")
        fixed(self, sizes=sizes, names=names)

    @classmethod
    def binary(cls, attributes: int) -> "Domain":
        """`attributes` attributes of two values each."""
        return cls((2,) * whole_number("attributes", attributes, 1))

    @property
    def attributes(self) -> int:
        """Number of attributes."""
        return len(self.sizes)

    @property
    def cells(self) -> int:
        """Number of cells, N."""
        return math.prod(self.sizes)

    @property
    def bits(self) -> tuple[tuple[int, ...], ...]:
        """For each attribute, its binary attributes in `encoded()`."""
        ends = np.cumsum([0, *((size - 1).bit_length() for size in self.sizes)]).tolist()
        return tuple(tuple(range(start, end)) for start, end in itertools.pairwise(ends))

    def encoded(self) -> "Domain":
        """The binary domain, with ceil(log2 n) attributes for one of n values.

        Raises
        ------
        UsageError
            If every attribute has one value.

        Examples
        --------
        >>> Domain([9, 16, 7, 15, 6, 5, 2, 2]).encoded().attributes
        23
        """
        named = zip(self.names or (), self.bits, strict=True)
        names = [f"{name}.{i}" for name, bits in named for i in range(len(bits))]
        return Domain((2,) * len(names), names)

    def encode(self, data: ArrayLike) -> FloatArray:
        """A data vector of this domain as one of `encoded()`, zero in the cells that do not exist here."""
        vector = self.vector(data)
        padded = np.zeros([1 << len(bits) for bits in self.bits])
        padded[tuple(slice(size) for size in self.sizes)] = vector.reshape(self.sizes)
        return padded.reshape(-1)

    def vector(self, data: ArrayLike) -> FloatArray:
        """`data` as a vector of N finite numbers, shape (N,); not copied where it is one.

        Raises
        ------
        UsageError
            If it is not.
        """
        vector = numbers("data", data)
        if vector.shape != (self.cells,):
            raise UsageError(f"data must be of shape ({self.cells},), got shape {vector.shape}.")
        if not np.isfinite(vector).all():
            raise UsageError("data must be finite, got an infinite or undefined count.")
        return vector

    def histogram(self, records: ArrayLike) -> FloatArray:
        """Counts of the cells, shape (N,), from records of shape (records, attributes) coded from 0.

        Raises
        ------
        UsageError
            If a value is outside of its attribute.
        """
        if np.size(records) == 0:
            return np.zeros(self.cells)
        rows = table("records", records, (None, None))
        if rows.ndim != 2 or rows.shape[1] != self.attributes:
            raise UsageError(f"records must be of shape (any, {self.attributes}), got shape {rows.shape}.")
        codes = np.clip(rows, -1.0, 2.0**62).astype(np.int64)  # infinities are no integers
        if (codes != rows).any() or (codes < 0).any() or (codes >= np.array(self.sizes)).any():
            raise UsageError("records must be coded from 0 to sizes - 1, got a value outside.")
        return np.bincount(codes @ self.strides, minlength=self.cells).astype(float)

    @property
    def strides(self) -> IntArray:
        """Distance between cells that differ by 1 in an attribute, shape (attributes,)."""
        return np.cumprod([1, *self.sizes[::-1]])[-2::-1].astype(np.int64)

    def marginal(self, attributes: Iterable[int]) -> Marginal:
        """A set of attributes as a marginal: increasing, each once.

        Raises
        ------
        UsageError
            If one is repeated or does not exist.
        """
        try:
            found = tuple(sorted(map(operator.index, attributes)))
        except TypeError:
            limits = f"0 to {self.attributes - 1}"
            raise UsageError(f"marginals must be sets of attributes {limits}, got {attributes!r}.") from None
        if len(set(found)) != len(found) or any(not 0 <= a < self.attributes for a in found):
            raise UsageError(f"marginals must be sets of attributes 0 to {self.attributes - 1}, got {found}.")
        return found

    def shape(self, marginal: Marginal) -> tuple[int, ...]:
        """Numbers of values of the attributes of a marginal."""
        return tuple(self.sizes[a] for a in marginal)

    def sum_to(self, values: Any, marginal: Marginal, kept: Marginal | None = None) -> FloatArray:
        """Sums over all attributes but those of `marginal`: shape (..., N) -> (..., cells of the marginal).

        With `kept`, `values` are not over the domain but over the cells of that marginal, which contains `marginal`.
        """
        within = tuple(range(self.attributes)) if kept is None else kept
        wanted = set(marginal)
        runs: list[tuple[int, bool]] = []  # neighbours that are both kept, or both summed over, are one axis
        for a in within:
            if runs and runs[-1][1] == (a in wanted):
                runs[-1] = (runs[-1][0] * self.sizes[a], runs[-1][1])
            else:
                runs.append((self.sizes[a], a in wanted))
        array = np.asarray(values, dtype=float)
        batch = array.shape[:-1]
        array = array.reshape(-1, array.shape[-1])
        before, after = len(array), array.shape[1]
        for size, keep in runs:  # array is (before * size * after) numbers here
            after //= size
            if keep:
                before *= size
            elif after == 1:
                array = array.reshape(before, size).sum(axis=1)
            else:
                array = array.reshape(before, size, after).sum(axis=1)
        return np.asarray(array).reshape(*batch, math.prod(self.shape(marginal)))


def bit_set(marginal: Iterable[int]) -> int:
    """A set of attributes as the bits of an integer."""
    return sum(1 << a for a in marginal)
