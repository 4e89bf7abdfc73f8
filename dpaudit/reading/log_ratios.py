"""Log ratios of counts, shrunk so that rare values do not claim much."""

from __future__ import annotations

import numpy as np

from dpaudit.privacy.claims import FloatArray

LARGEST_LOG_RATIO = 12.0  # nats, beyond which training draws cannot tell one ratio from another
DECIMALS = 9  # of a number in units of its size, or of a log ratio: lower digits are the floating-point check's to read


def shrunk_log_ratio(first: FloatArray, second: FloatArray, pseudo_count: float = 1.0) -> FloatArray:
    """Log ratio of two vectors of counts as shares of their sums, shrunk towards 0 by pseudo counts.

    Examples
    --------
    >>> shrunk_log_ratio(np.array([7.0, 1.0]), np.array([3.0, 5.0])).round(3).tolist()
    [0.693, -1.099]
    """
    a, b = first + pseudo_count, second + pseudo_count
    ratio = np.log(a / (first.sum() + pseudo_count)) - np.log(b / (second.sum() + pseudo_count))
    return np.asarray(np.clip(ratio, -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO))
