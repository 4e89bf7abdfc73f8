"""Copies: a call gets its input as it was given, and its output is kept as it was when the call ended.

A mechanism may add its noise to the array that it was given, and then the next call is asked about another input; or it
may write every output into one buffer, and then all outputs that are kept are the last one. Either way the draws are
not those of the pair, and a sound mechanism looks unsound (measured: 12 of 12 audits at 5% nominal, of Laplace noise
within its claim that is written into one array), or an unsound one sound. So calls work on copies of what they could
change (see `Subject.sample`), and what is kept is a copy. Whether a mechanism changes its input is a check of its own,
`input_unchanged`.

What is copied: numpy arrays, lists, tuples, dictionaries, sets and byte arrays, and whatever they hold of these; of
outputs, also objects by their attributes. Other inputs are passed on as they are, and so are very large arrays.
"""

from __future__ import annotations

import copy
import enum
import operator
import types
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.subjects.call_outcomes import Failed, Opaque
from dpaudit.subjects.foreign import attributes_of

FIXED = frozenset({type(None), bool, int, float, complex, str, bytes, type(Ellipsis), range, frozenset})
LARGEST = 1 << 26  # bytes of an array that is copied for each call
Unchanging = type | enum.Enum | types.FunctionType | types.MethodType | types.ModuleType | Failed | Opaque


def copied(value: Any) -> Any:
    """The value, or a copy of it with whatever it holds, where a call might change it.

    Examples
    --------
    >>> given = ([1, 2], "text")
    >>> copied(given) == given, copied(given) is given, copied(given)[1] is given[1]
    (True, False, True)
    """
    kind = type(value)
    if kind in FIXED:
        return value
    if kind is np.ndarray:
        return value.copy(order="K") if _may_change(value) else value
    if kind is tuple:
        parts = [copied(item) for item in value]
        return value if all(map(operator.is_, parts, value)) else tuple(parts)
    if kind is list:
        return value[:] if all(type(item) in FIXED for item in value) else [copied(item) for item in value]
    if kind is dict:
        return {key: copied(item) for key, item in value.items()}
    return value.copy() if kind is set or kind is bytearray else value


def kept(output: Any) -> Any:
    """An output as it is now, whatever later calls do: as `copied`, and objects by their attributes."""
    known = copied(output)
    is_copied = known is not output or type(output) in FIXED or isinstance(output, np.ndarray | np.generic)
    if is_copied or isinstance(output, Unchanging) or attributes_of(output) is None:
        return known
    try:
        return copy.deepcopy(output)
    except Exception:  # what cannot be copied is what it is
        return output


def are_same(first: Any, second: Any) -> bool:
    """Whether a value and a copy of it, that calls have worked on, are the same; of what is not copied, always."""
    kind = type(first)
    if first is second or kind is not type(second):
        return first is second
    if kind is np.ndarray:
        return first.shape == second.shape and first.dtype == second.dtype and _have_same_bits(first, second)
    if kind is dict:
        return list(first) == list(second) and are_same(list(first.values()), list(second.values()))
    if kind in (list, tuple) and not all(type(item) in FIXED for item in first):
        return len(first) == len(second) and all(map(are_same, first, second))
    return bool(first == second)


def _have_same_bits(first: NDArray[Any], second: NDArray[Any]) -> bool:
    if first.nbytes == 0:
        return True
    unit = np.uint64 if first.nbytes % 8 == 0 else np.uint8
    one, other = (np.ascontiguousarray(array).reshape(-1).view(np.uint8).view(unit) for array in (first, second))
    return bool(np.array_equal(one, other))


def _may_change(array: NDArray[Any]) -> bool:
    return bool(array.flags.writeable) and not array.dtype.hasobject and array.nbytes <= LARGEST
