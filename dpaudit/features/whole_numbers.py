"""Tell whether numbers are integers, or doubles of a size at which all doubles are whole."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.privacy.claims import FloatArray

MIN_BITS = 30.0  # 2^-30 is 1e-9: the probability, at most, that real numbers are called integers
WHOLE_FROM = 2**52  # doubles from here on are whole, whatever they are of: integers of that size stay objects
MIN_SHARE_OF_SIZE = 1e-11  # of a step, by the largest number: 2^15 times the spacing of doubles there


def are_integers(numbers: ArrayLike) -> bool:
    """Tell whether all numbers are integers, and not whole for their size alone; NaN and infinities are none.

    A real number that is rounded to doubles 2^-k apart is whole with probability 2^-k. Different numbers that are all
    whole are evidence of integers by the sum of their k, which must be `MIN_BITS` or more; 0 adds nothing, as it is
    whole in any unit. From 2^52 on all doubles are whole, from 2^53 on even: noise in a small unit, say 1e18 of it,
    has no parity. (Integers of Python and numpy are objects there, not doubles.)

    Examples
    --------
    >>> are_integers([0.0, 3.0]), are_integers([3.0, 5.5]), are_integers([0.0, 3e18, 5e18])
    (True, False, False)
    """
    values = np.asarray(numbers, dtype=float)
    if not values.size or not np.all((values == np.rint(values)) & (np.abs(values) < WHOLE_FROM)):
        return False
    least, largest = np.min(np.abs(values), where=values != 0.0, initial=np.inf), float(np.max(np.abs(values)))
    if largest == 0.0 or least < 2.0 ** (52 - MIN_BITS):  # one such number is evidence enough
        return True
    different = np.unique(values[values != 0.0])
    return float(np.sum(np.maximum(-np.log2(np.spacing(np.abs(different))), 0.0))) >= MIN_BITS


def are_above_rounding(numbers: ArrayLike, step: float) -> bool:
    """Tell whether what numbers leave modulo a step says more than how they are rounded: of integers always.

    Examples
    --------
    >>> are_above_rounding([0.5, 1e6], 2.0), are_above_rounding([0.5, 1e18], 2.0)
    (True, False)
    """
    values = np.asarray(numbers, dtype=float)
    largest = float(np.max(np.abs(values), where=np.isfinite(values), initial=0.0))
    return step > MIN_SHARE_OF_SIZE * largest or are_integers(values)


BITS_SET = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)  # of each byte


def bits_set(numbers: FloatArray) -> FloatArray:
    """Number of bits set of each number, in the same shape; NaN where it is no whole number from 0 on.

    Examples
    --------
    >>> bits_set(np.array([0.0, 5.0, 255.0, -1.0, 0.5])).tolist()
    [0.0, 2.0, 8.0, nan, nan]
    """
    is_whole = (numbers >= 0.0) & (numbers < WHOLE_FROM) & (numbers == np.rint(numbers))
    of_bytes = np.where(is_whole, numbers, 0.0).astype(np.int64)[..., None].view(np.uint8)
    return np.where(is_whole, BITS_SET[of_bytes].sum(axis=-1, dtype=np.uint8), np.nan)
