"""Whether numbers are integers, or doubles of a size at which all doubles are whole."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

MIN_BITS = 30.0  # 2^-30 is 1e-9: the probability, at most, that real numbers are called integers


def are_integers(numbers: ArrayLike) -> bool:
    """Whether all numbers are whole, and not only for the size of doubles: NaN and infinities are no integers.

    A real number that is rounded to doubles 2^-k apart is whole with probability 2^-k. So different values, all whole,
    are evidence of integers by the sum of their k, for spacings below 1: at least `MIN_BITS` are asked for. Above 2^52
    all doubles are whole, which is evidence of nothing: noise in a small unit, say 1e18 of it, has no parity. (Python's
    and numpy's integers from 2^53 on are no doubles here, but objects.)

    Examples
    --------
    >>> are_integers([3.0, 5.0]), are_integers([3.0, 5.5]), are_integers([3e18, 5e18])
    (True, False, False)
    """
    values = np.unique(np.asarray(numbers, dtype=float))
    if not len(values) or not np.all(np.isfinite(values)) or np.any(values != np.rint(values)):
        return False
    return float(np.sum(np.maximum(-np.log2(np.spacing(np.maximum(np.abs(values), 1.0))), 0.0))) >= MIN_BITS
