"""Statements such as `a += noise` on an array of floats, which cannot keep symbols.

One that gives the only name of the array to its result may have another array as that. References to it are counted
against those of a probe.
"""

from __future__ import annotations

import sys
from opcode import opmap
from typing import Any

import numpy as np

_FIRST_IN_PLACE = 13  # of the numbers that BINARY_OP has for operators: 13 is +=
_PROBED: dict[str, Any] = {}


def is_rebound(array: Any, frame: Any) -> bool:
    """Tell whether a statement such as `a += noise` gives the only name of an array to what it results in.

    Called by `symbols.call_ufunc`, which `__array_ufunc__` called; `frame` is that of the statement.
    """
    code, place = frame.f_code.co_code, frame.f_lasti
    if not 0 <= place < len(code) - 1 or code[place] != opmap["BINARY_OP"] or code[place + 1] < _FIRST_IN_PLACE:
        return False
    references = sys.getrefcount(array)
    if array is _PROBED.get("array"):
        _PROBED["references"] = references
    return array.base is None and references <= _PROBED.get("references", 0)


def probe(kind: type) -> None:
    """Count the references to an array with one name while an array of symbols is added to it."""
    array = np.zeros(1)
    _PROBED["array"] = array
    array += np.zeros(1, dtype=object).view(kind)
    _PROBED.clear() if "references" not in _PROBED else _PROBED.pop("array")
    if _PROBED:
        _PROBED["references"] -= 1  # that of the probe itself
