"""Fast orthonormal transforms of arrays over a product of attributes, and of vectors.

Each attribute with n values has an orthonormal basis of R^n whose first function is constant: the Hadamard basis where
n is a power of two, so that the tensor product over binary attributes is f^b_c = 2^(-d/2) (-1)^<b, c>, and the Helmert
basis elsewhere. No matrix larger than 64 x 64 is built for sizes up to 64: neighbouring small attributes are
transformed together, by matrix products.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import linalg

from dpaudit.errors import UsageError
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray

TOGETHER = 64  # largest product of neighbouring sizes that are transformed by one matrix


@functools.cache
def basis(size: int) -> FloatArray:
    """The orthonormal basis of an attribute, shape (size, size), rows functions; the first is constant, and positive.

    Examples
    --------
    >>> basis(2).round(4).tolist()
    [[0.7071, 0.7071], [0.7071, -0.7071]]
    >>> bool(np.allclose(basis(3) @ basis(3).T, np.eye(3)))
    True
    """
    if size & (size - 1) == 0:
        matrix: FloatArray = linalg.hadamard(size) / math.sqrt(size)
    else:
        matrix = linalg.helmert(size, full=True)
    matrix.setflags(write=False)
    return matrix


@functools.lru_cache(maxsize=4096)
def _blocks(sizes: tuple[int, ...], squared: bool) -> tuple[FloatArray, ...]:
    """Matrices of runs of neighbouring attributes; `squared` has the squares of their entries."""
    runs: list[list[int]] = []
    for size in sizes:
        if runs and math.prod(runs[-1]) * size <= TOGETHER:
            runs[-1].append(size)
        else:
            runs.append([size])
    found = []
    for run in runs:
        matrix = np.ones((1, 1))
        for size in run:
            matrix = np.asarray(np.kron(matrix, basis(size)))
        found.append(np.ascontiguousarray(matrix**2 if squared else matrix))
    return tuple(found)


def forward(values: ArrayLike, sizes: Sequence[int]) -> FloatArray:
    """Coefficients of arrays over a product of attributes, shape (..., cells) to (..., cells), in the same order."""
    return _along(values, _blocks(tuple(sizes), False), transposed=False)


def inverse(coefficients: ArrayLike, sizes: Sequence[int]) -> FloatArray:
    """The arrays with these coefficients: `inverse(forward(v)) = v`."""
    return _along(coefficients, _blocks(tuple(sizes), False), transposed=True)


def inverse_variances(variances: ArrayLike, sizes: Sequence[int]) -> FloatArray:
    """Variances of `inverse(c)`, cell by cell, for uncorrelated coefficients c of these variances."""
    return _along(variances, _blocks(tuple(sizes), True), transposed=True)


def _along(values: ArrayLike, matrices: tuple[FloatArray, ...], transposed: bool) -> FloatArray:
    array = np.asarray(values, dtype=float)
    shape = array.shape
    before, after = math.prod(shape[:-1]), shape[-1]
    for matrix in matrices:
        size = len(matrix)
        after //= size
        if after == 1:
            array = array.reshape(before, size) @ (matrix if transposed else matrix.T)
        else:
            array = np.matmul(matrix.T if transposed else matrix, array.reshape(before, size, after))
        before *= size
    return array.reshape(shape)


def walsh_hadamard(values: ArrayLike) -> FloatArray:
    """The orthonormal Walsh-Hadamard transform along the last axis, whose length is a power of two; its own inverse.

    Raises
    ------
    UsageError
        If the length is no power of two.

    Examples
    --------
    >>> walsh_hadamard([1.0, 0.0, 0.0, 0.0]).round(9).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    array = np.asarray(values, dtype=float)
    return forward(array, (2,) * _exponent(array))


def haar(values: Any) -> FloatArray:
    """The unnormalised Haar transform along the last axis, of length 2^n: rows of 1, and of 1, -1 and 0.

    The total comes first, then level by level the difference of the two halves of each block, coarsest level first.

    Examples
    --------
    >>> haar([4.0, 1.0, 2.0, 0.0]).tolist()
    [7.0, 3.0, 3.0, 2.0]
    """
    sums = np.asarray(values, dtype=float)
    _exponent(sums)
    differences = []
    while sums.shape[-1] > 1:
        pairs = sums.reshape(*sums.shape[:-1], -1, 2)
        differences.append(pairs[..., 0] - pairs[..., 1])
        sums = pairs.sum(axis=-1)
    return np.concatenate([sums, *differences[::-1]], axis=-1)


def inverse_haar(coefficients: Any) -> FloatArray:
    """The vectors with these unnormalised Haar coefficients."""
    array = np.asarray(coefficients, dtype=float)
    levels = _exponent(array)
    sums = array[..., :1]
    for level in range(levels):
        differences = array[..., 1 << level : 2 << level]
        halves = np.stack([sums + differences, sums - differences], axis=-1) / 2.0
        sums = halves.reshape(*array.shape[:-1], -1)
    return sums


def _exponent(array: FloatArray) -> int:
    length = array.shape[-1] if array.ndim else 0
    if length < 1 or length & (length - 1):
        raise UsageError(f"values must be of a length that is a power of two, got {length}.")
    return length.bit_length() - 1
