"""Copies: a call gets its input as it was given, whatever earlier calls did to theirs.

A mechanism may add its noise to the array that it was given, and then the next call is asked about another input. So
calls work on copies of what they could change (see `Subject.sample`). Whether a mechanism changes its input is a check
of its own, `input_unchanged`. What is kept of outputs is plain data of its own too: see `dpaudit.subjects.plain.seen`.

What is copied: numpy arrays, lists, tuples, dictionaries, sets, byte arrays, those of `collections` and `array`, pandas
tables and series, and whatever they hold of these, but for what is in the cells of tables and in fields of records.
Other inputs are passed on as they are, since what a copy of theirs
would be is their own affair; so are very large arrays.
"""

from __future__ import annotations

import array
import collections
import copy as copy_module
import operator
import sys
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.subjects.call_outcomes import Opaque
from dpaudit.subjects.foreign import attributes_of
from dpaudit.subjects.plain import seen

FIXED = frozenset({type(None), bool, int, float, complex, str, bytes, type(Ellipsis), range, frozenset})
MAPPINGS = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)
FLAT = (set, bytearray, array.array)  # of what cannot change, as far as it is looked at
LARGEST = 1 << 26  # bytes of an array that is copied
DEEPEST = 100  # levels of nesting that are copied


def copied(value: Any) -> Any:
    """The value, or a copy of it with whatever it holds, where a call might change it.

    Examples
    --------
    >>> given = ([1, 2], "text")
    >>> copied(given) == given, copied(given) is given, copied(given)[1] is given[1]
    (True, False, True)
    """
    return _copied(value, {}, 0)


def _copied(value: Any, known: dict[int, Any], depth: int) -> Any:
    """`known` are the copies so far, by the identity of what they are of: a value may hold itself."""
    kind = type(value)
    if kind in FIXED or depth > DEEPEST:
        return value
    if id(value) in known:
        return known[id(value)]
    inner = depth + 1
    copy: Any = value
    if kind is np.ndarray:
        if _may_change(value):
            copy = known[id(value)] = value.copy(order="K")
            if value.dtype.hasobject:
                for place, item in enumerate(value.flat):  # one by one: of a list numpy would take the parts apart
                    copy[np.unravel_index(place, value.shape)] = _copied(item, known, inner)
    elif kind is tuple:
        parts = [_copied(item, known, inner) for item in value]
        if not all(map(operator.is_, parts, value)):
            copy = known[id(value)] = tuple(parts)
    elif kind is list or kind is collections.deque:
        copy = known[id(value)] = value.copy()
        if not all(type(item) in FIXED for item in value):
            for place, item in enumerate(value):
                copy[place] = _copied(item, known, inner)
    elif kind in MAPPINGS:
        copy = known[id(value)] = value.copy()
        for key, item in value.items():
            if type(item) not in FIXED:
                copy[key] = _copied(item, known, inner)
    elif kind in FLAT:
        copy = known[id(value)] = value[:] if kind is array.array else value.copy()
    elif _is_of_pandas(value):
        copy = known[id(value)] = value.copy()
    return copy


def copied_output(output: Any) -> Any:
    """An output for whoever needs the object itself: as `copied`, and what else it holds copied deeply.

    A copy that an object makes of itself may leave something out; where it shows anything else, or where there is none,
    the output stays as it is.
    """
    known = copied(output)
    is_flat = known is not output and isinstance(output, list | tuple) and all(type(item) in FIXED for item in output)
    is_numbers = type(output) is np.ndarray and not output.dtype.hasobject
    is_number = isinstance(output, np.generic) and not isinstance(output, np.void)
    if type(output) in FIXED or is_flat or is_numbers or is_number:
        return known
    if not isinstance(output, Collection | np.generic) and attributes_of(output) is None:
        return output  # a mark, which may be told by what it is
    try:
        deep = copy_module.deepcopy(output)
        return deep if are_same(seen(deep), seen(output)) else known
    except Exception:
        return known


def are_same(first: Any, second: Any) -> bool:
    """Whether a value and a copy of it, that calls have worked on, are the same; of what is not copied, always."""
    return _are_same(first, second, set())


def _are_same(first: Any, second: Any, asked: set[tuple[int, int]]) -> bool:
    kind, pair = type(first), (id(first), id(second))
    if first is second or kind is not type(second):
        return first is second
    if kind is Opaque:  # of plain data
        return first.kind == second.kind and first.text == second.text and _are_same(first.state, second.state, asked)
    if pair in asked:  # it is being answered
        return True
    if kind is np.ndarray and not first.dtype.hasobject:
        return first.shape == second.shape and first.dtype == second.dtype and _have_same_bits(first, second)
    if kind in MAPPINGS:
        asked.add(pair)
        same = list(first) == list(second)
        return same and all(_are_same(*both, asked) for both in zip(first.values(), second.values(), strict=True))
    if kind is np.ndarray:
        first, second = list(first.flat), list(second.flat)
    elif kind is array.array:
        return bool(first.typecode == second.typecode and first.tobytes() == second.tobytes())
    elif kind not in (list, tuple, collections.deque):
        return bool(first.equals(second)) if _is_of_pandas(first) else bool(first == second)
    elif all(type(item) in FIXED for item in first):
        return bool(first == second)
    asked.add(pair)
    return len(first) == len(second) and all(_are_same(*both, asked) for both in zip(first, second, strict=True))


def _have_same_bits(first: NDArray[Any], second: NDArray[Any]) -> bool:
    if first.nbytes == 0:
        return True
    unit = np.uint64 if first.nbytes % 8 == 0 else np.uint8
    one, other = (np.ascontiguousarray(side).reshape(-1).view(np.uint8).view(unit) for side in (first, second))
    return bool(np.array_equal(one, other))


def _may_change(value: NDArray[Any]) -> bool:
    """Whether an array is copied: its numbers, or those that it is a view of, can be written, and are not too many."""
    if value.nbytes > LARGEST or (value.dtype.hasobject and value.dtype.names is not None):
        return False
    owner: Any = value
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable or owner.dtype.hasobject:
            return True
        owner = owner.base
    return not isinstance(owner, bytes | None)


def _is_of_pandas(value: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame | pandas.Series)
