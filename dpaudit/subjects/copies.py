"""Copies: a call gets its input as it was given, whatever earlier calls did to theirs.

A mechanism may add its noise to the array that it was given, and then the next call is asked about another input. So
calls work on copies of what they could change (see `Subject.sample`). Whether a mechanism changes its input is a check
of its own, `input_unchanged`. What is kept of outputs is plain data of its own too: see `dpaudit.subjects.plain.seen`.

What is copied: numpy arrays, lists, tuples, dictionaries, sets, byte arrays, those of `collections` and `array`, pandas
tables and series, and whatever they hold of these, but for what is in the cells of tables and in fields of records.
Other inputs are passed on as they are, since what a copy of theirs would be is their own affair; so are very large
arrays.
"""

from __future__ import annotations

import array
import collections
import copy as copy_module
import inspect
import math
import operator
import sys
import weakref
from collections.abc import Callable, Collection, Set
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.privacy.inputs import identity_of
from dpaudit.subjects.call_outcomes import Opaque
from dpaudit.subjects.foreign import attributes_of
from dpaudit.subjects.plain import seen

FIXED = frozenset({type(None), bool, int, float, complex, str, bytes, type(Ellipsis), range, frozenset})
MAPPINGS = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)
FLAT = (set, bytearray, array.array)  # of what cannot change, as far as it is looked at
CONTAINERS = frozenset({*MAPPINGS, *FLAT, list, tuple, collections.deque})
MAX_BYTES = 1 << 26  # bytes of an array that is copied
DEEPEST = 100  # levels of nesting that are copied
MAX_COMPARED = 1 << 16  # bytes of an input that is compared with its copy after each call
BYTES_KEPT = 1 << 28  # of copies that are kept for calls to work on, about; the last one is kept whatever it takes
BYTES_OF_ITEM = 256  # of a container: as many of an array are compared in the time of one


def copied(value: Any) -> Any:
    """The value, or a copy of it with whatever it holds, where a call might change it.

    Examples
    --------
    >>> given = ([1, 2], "text")
    >>> copied(given) == given, copied(given) is given, copied(given)[1] is given[1]
    (True, False, True)
    """
    return _copied(value, {}, 0)


def replaced(value: Any) -> Set[int]:
    """The identities of those parts of a value in whose place a copy of it holds others."""
    known: dict[int, Any] = {}
    _copied(value, known, 0)
    return known.keys()


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
        if not FIXED.issuperset(map(type, value)):
            for place, item in enumerate(value):
                copy[place] = _copied(item, known, inner)
    elif kind in MAPPINGS:
        copy = known[id(value)] = value.copy()
        if not FIXED.issuperset(map(type, value.values())):
            for key, item in value.items():
                if type(item) not in FIXED:
                    copy[key] = _copied(item, known, inner)
    elif kind in FLAT:
        copy = known[id(value)] = value[:] if kind is array.array else value.copy()
    elif _is_of_pandas(value):
        copy = known[id(value)] = value.copy()
    return copy


class WorkingCopies:
    """The copies that calls work on, one of each input as long as calls leave it as it is.

    Validity: a mechanism may remember what it computed of an input by its address. A copy that is gone leaves its
    address to the next one, which is of another input as a rule, and the calls on that would be answered for this one.
    Beyond `BYTES_KEPT` copies go, the oldest first.
    """

    def __init__(self) -> None:
        # By the identity of the value: the value, its copy, and how many bytes that takes.
        self._known: dict[int, tuple[Any, Any, int]] = {}
        self._bytes = 0
        self.handlers: frozenset[Any] | None = None  # of signals, from before the first call

    def of(self, value: Any) -> Any:
        """The copy of a value that calls work on, equal to it; the value itself where no call can change it."""
        if type(value) in FIXED:
            return value
        known, copy, _ = self._known.get(id(value), (None, None, 0))
        if known is value and are_same(value, copy):
            return copy
        copy = copied(value)
        if copy is not value:
            size = _bytes_of(copy)
            self._let_go(id(value))
            while self._known and self._bytes + size > BYTES_KEPT:
                self._let_go(next(iter(self._known)))
            self._known[id(value)] = value, copy, size
            self._bytes += size
        return copy

    def _let_go(self, place: int) -> None:
        self._bytes -= self._known.pop(place, (None, None, 0))[2]

    def __reduce__(self) -> tuple[Any, ...]:
        return (WorkingCopies, ())


class CallHistory:
    """History of the calls on one mechanism in this process: the inputs on which one took randomness, as hashes.

    An object, or a function, has one as long as it lives: its noise may have been drawn in an earlier audit.
    """

    _known: ClassVar[dict[int, CallHistory]] = {}  # by the identity of a mechanism that lives

    def __init__(self) -> None:
        self.keeps_noise = False  # whether noise was seen to be kept, on any input
        self._moved: set[int] = set()

    @classmethod
    def of(cls, mechanism: Any) -> CallHistory:
        """The history of a mechanism; of a method that of its object; a new one where its end cannot be noticed."""
        owner = mechanism.__self__ if inspect.ismethod(mechanism) else mechanism
        if id(owner) not in cls._known:
            try:
                weakref.finalize(owner, cls._known.pop, id(owner), None)
            except TypeError:
                return cls()
            cls._known[id(owner)] = cls()
        return cls._known[id(owner)]

    def note_moved(self, value: Any) -> None:
        """Note that a call on an input has taken randomness."""
        identity = identity_of(value)
        key = hash(identity)
        if key not in self._moved and identity == (type(value), id(value)):
            try:  # another input may get its address
                weakref.finalize(value, self._moved.discard, key)
            except TypeError:
                return
        self._moved.add(key)

    def has_moved(self, value: Any) -> bool:
        """Tell whether a call on an input has taken randomness."""
        return bool(self._moved) and hash(identity_of(value)) in self._moved

    def __reduce__(self) -> tuple[Any, ...]:
        return (CallHistory, ())


def copied_output(output: Any) -> Any:
    """An output for whoever needs the object itself: as `copied`, and what else it holds copied deeply.

    A copy that an object makes of itself may leave something out; where it shows anything else, or where there is none,
    the output stays as it is.
    """
    known = copied(output)
    is_flat = known is not output and isinstance(output, list | tuple) and FIXED.issuperset(map(type, output))
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


def is_small(value: Any) -> bool:
    """Tell whether to compare a value with its copy takes no longer than a call, about."""
    return _bytes_of(value, MAX_COMPARED) <= MAX_COMPARED


def _bytes_of(value: Any, most: float = math.inf) -> int:
    """About how many bytes a copy takes; of one that takes more than `most`, that it does.

    A part that a value holds many times is counted once.
    """
    found, waiting, known = 0, [value], set[int]()
    while waiting and found <= most:
        part = waiting.pop()
        kind = type(part)
        if kind is np.ndarray:
            found += int(part.size * BYTES_OF_ITEM if part.dtype.hasobject else part.nbytes)
        elif _is_of_pandas(part):
            found += int(part.size) * 8
        elif kind in CONTAINERS and id(part) not in known:
            known.add(id(part))
            found += BYTES_OF_ITEM * (1 + len(part))
            if kind not in FLAT and found <= most:
                items = part.values() if kind in MAPPINGS else part
                waiting += [item for item in items if type(item) not in FIXED]
    return found


def are_same(first: Any, second: Any) -> bool:
    """Tell whether a value and a copy of it, that calls have worked on, are the same; of what is not copied, always."""
    return _are_same(first, second, set())


def watched(value: Any) -> Callable[[], bool]:
    """Tells whether a value is surely as it is now, in a fraction of the time that `are_same` takes, if it can tell.

    A list that holds the same objects, none of which can change, is the same; and so is an array of the same bytes.
    """
    if type(value) is list and FIXED.issuperset(map(type, value)):
        items = tuple(value)
        return lambda: len(value) == len(items) and all(map(operator.is_, value, items))
    if type(value) is np.ndarray and not value.dtype.hasobject and value.dtype.names is None:
        content, shape, dtype = value.tobytes(), value.shape, value.dtype
        return lambda: value.dtype is dtype and value.shape == shape and value.tobytes() == content
    return lambda: False


def _are_same(first: Any, second: Any, asked: set[tuple[int, int]]) -> bool:
    kind, pair = type(first), (id(first), id(second))
    if first is second or kind is not type(second):
        return first is second
    if kind is Opaque:  # of plain data
        return first.kind == second.kind and first.text == second.text and _are_same(first.state, second.state, asked)
    if pair in asked:  # it is being answered
        return True
    if kind is float and first == second:
        return math.copysign(1.0, first) == math.copysign(1.0, second)
    if kind is np.ndarray and not first.dtype.hasobject:
        return first.shape == second.shape and first.dtype == second.dtype and _have_same_bytes(first, second)
    if kind in MAPPINGS:
        same = list(first) == list(second)
        if same and _are_same_values(list(first.values()), list(second.values())):
            return True
        asked.add(pair)
        return same and all(_are_same(*both, asked) for both in zip(first.values(), second.values(), strict=True))
    if kind is np.ndarray:
        first, second = list(first.flat), list(second.flat)
    elif kind is array.array:
        return bool(first.typecode == second.typecode and first.tobytes() == second.tobytes())
    elif kind not in (list, tuple, collections.deque):
        if _is_of_pandas(first):
            return bool(first.equals(second))
        # A NaN is no other value; sets that hold some are compared as they are printed.
        return bool(first == second) or bool(first != first and second != second) or _are_same_sets(first, second)
    elif _are_same_values(first, second):
        return True
    asked.add(pair)
    return len(first) == len(second) and all(_are_same(*both, asked) for both in zip(first, second, strict=True))


def _have_same_bytes(first: np.ndarray, second: np.ndarray) -> bool:
    width = min(first.itemsize & -first.itemsize, 8)  # of unsigned integers: copies of large arrays take far longer
    words = [np.ascontiguousarray(one).reshape(-1).view(f"u{width or 1}") for one in (first, second) if width]
    return not words or bool(np.array_equal(words[0], words[1]))


def _are_same_values(first: Any, second: Any) -> bool:
    """Tell whether lists of values that cannot change are surely the same; 1, 1.0 and True are not."""
    kinds = list(map(type, first))
    if not FIXED.issuperset(kinds) or kinds != list(map(type, second)) or first != second:
        return False
    return float not in kinds or 0.0 not in first


def _are_same_sets(first: Any, second: Any) -> bool:
    """Tell whether sets of numbers and texts, some of them NaN, are the same."""
    if not isinstance(first, set | frozenset) or not all(type(item) in FIXED for item in first | second):
        return False
    return sorted(map(repr, first)) == sorted(map(repr, second))


def _may_change(value: NDArray[Any]) -> bool:
    """Tell if an array is copied: its numbers, or those that it is a view of, can be written, and are not too many."""
    if value.nbytes > MAX_BYTES or (value.dtype.hasobject and value.dtype.names is not None):
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
