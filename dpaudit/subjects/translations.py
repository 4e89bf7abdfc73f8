"""Translation families: mechanisms whose output law on x is one fixed law moved by the location of x.

A mechanism says so by the attribute `translation_family = True` (`dpaudit.subjects.protocol`). What it
says lets an audit pool pairs of one shift (`dpaudit.inference.pools`); no verdict's error rate rests on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST_LOCATION = 2.0**53  # integers are doubles below it


def says_so(mechanism: Any) -> bool:
    """Whether a mechanism states that it is a translation family."""
    return getattr(mechanism, "translation_family", False) is True


def location_of(mechanism: Any, data: Any) -> NDArray[np.float64] | None:
    """Where the law of a translation family on `data` lies, as an array of the shape of one output.

    The mechanism's `location(data)`, or the input itself where it has no such method. None where that is not a number
    or an array of numbers, finite and below 2^53, or the mechanism refuses the input.

    Examples
    --------
    >>> location_of(object(), [1, 2]).tolist(), location_of(object(), "a") is None
    ([1.0, 2.0], True)
    """
    function = getattr(mechanism, "location", None)
    try:
        where = np.asarray(function(data) if callable(function) else data)
    except Exception:  # ragged, or refused: such an input is drawn as any other, and pooled with none
        return None
    if where.dtype.kind not in "iuf" or where.size == 0:
        return None
    location = where.astype(float)
    return location if bool(np.all(np.abs(location) < LARGEST_LOCATION)) else None
