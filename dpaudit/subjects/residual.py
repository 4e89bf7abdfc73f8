"""Residuals: what an output holds beyond the plain data that is read of it, by one rule.

A class tells pickle what its objects hold. That, less what was read already, stands beside the plain data of an object
as a note, under the name of its class: a leak in the type of an array, in attributes, in the length that a queue may
have or in levels that do not occur has a column of its own. An object that pickle does not carry is named as not read.

Validity: an output is read by itself, by a fixed function. Nothing of a residual depends on an address or on the order
of hashes: what a class of Python's sets hands to pickle is left out, and their members are read as a set.

The bytes of a state are the same numbers in another form, in which the low bits of noise would show: those that repeat
what was read are left out, and of others nothing is read; the report names them.
"""

from __future__ import annotations

import copyreg
import dataclasses
import datetime
import functools
import io
import operator
import pickle
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.subjects.call_outcomes import Noted, Opaque, noted
from dpaudit.subjects.foreign import attributes_of

# What an object's class may have of Python's own, and then hands over nothing but contents and attributes.
REDUCTIONS = frozenset({object.__reduce__, set.__reduce__, frozenset.__reduce__})
EMPTIES = (tuple, list, dict, str)  # without contents they are nothing
SCALARS = frozenset({bool, int, float, str, type(None)})
RANDOM = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, np.random.SeedSequence)
ARROWS: set[type] = set()  # classes of pyarrow that were met
KEPT_KINDS = "biufcmM"  # kinds of arrays that are plain data as they are
PROTOCOL = 2  # of pickle
# Forms that are remembered, and bytes of each and of the leaves that were looked for in it: 32 MB in all.
MAX_FORMS, MAX_FORM = 1_000, 1 << 14
# Packages whose classes hand over the same state to pickle each time, and hold nothing that it does not write.
TRUSTED = frozenset({"_codecs", "builtins", "datetime", "numpy", "pandas", "pyarrow"})
MOMENTS = (datetime.date, datetime.time, datetime.datetime, datetime.timedelta)  # pickled as bytes


def held(value: Any) -> Any:
    """Return what a class says that its object holds, beside its items, in pieces that are no plain data yet.

    The arguments and the state that pickle would write; the attributes where the class says nothing of its own. None
    where that is nothing; an `Opaque` without contents where pickle refuses.

    Examples
    --------
    >>> import collections
    >>> held(collections.deque([1, 2], maxlen=3)), held(collections.OrderedDict(a=1))
    ({'arguments': ((), 3)}, None)
    """
    kind: Any = type(value)
    if isinstance(value, RANDOM):
        return Opaque(kind.__qualname__)
    if kind in MOMENTS:
        return _some({"zone": getattr(value, "tzinfo", None), "fold": getattr(value, "fold", 0) or None})
    if isinstance(value, np.dtype):
        return _some({"name": str(value), "metadata": dict(value.metadata or {})})
    if (
        kind.__module__.partition(".")[0] == "pyarrow" and hasattr(value, "to_pylist") and hasattr(value, "type")
    ):  # its bytes are those of these
        ARROWS.add(kind)
        return {"type": str(value.type), "items": value.to_pylist()}
    try:
        made = copyreg.dispatch_table.get(kind)
        reduced = made(value) if made else value.__reduce_ex__(PROTOCOL)
    except Exception:
        return Opaque(kind.__qualname__)
    if not speaks(kind):
        return attributes_of(value) or None
    if not isinstance(reduced, tuple):
        return reduced if is_named(value, reduced) else Opaque(kind.__qualname__)
    _, arguments, state = (*reduced, None)[:3]
    found = {"arguments": tuple(one for one in arguments if one is not kind), "state": state}
    if isinstance(value, BaseException):
        found |= {"cause": value.__cause__, "context": value.__context__}
    return _some(found)


def is_named(value: Any, name: str) -> bool:
    """Tell whether an object is what pickle would find by its name: nothing else is to be read of it then."""
    try:
        return operator.attrgetter(name)(sys.modules[pickle.whichmodule(value, name)]) is value  # type: ignore[attr-defined]
    except (AttributeError, KeyError):
        return False


def _some(pieces: dict[str, Any]) -> dict[str, Any] | None:
    """The pieces that are something; None where there are none."""
    found = {name: part for name, part in pieces.items() if part is not None}
    return {name: part for name, part in found.items() if type(part) not in EMPTIES or part} or None


@functools.cache
def speaks(kind: Any) -> bool:
    """Say whether a class tells by itself what pickle carries; or is one of C, whose state no attribute shows."""
    if kind in copyreg.dispatch_table:
        return True
    own = kind.__reduce_ex__ is object.__reduce_ex__ and kind.__reduce__ in REDUCTIONS
    return not own or getattr(kind, "__getstate__", None) is not getattr(object, "__getstate__", None)


def is_clock_time(value: Any) -> bool:
    """Tell whether a moment or duration is of pandas and has no zone: its bytes hold all that is read of it."""
    return type(value).__module__.partition(".")[0] == "pandas" and getattr(value, "tzinfo", None) is None


class Known:
    """Record of what was read of an object: numbers, texts and bytes at any depth, by value.

    `asked` are the leaves that were looked for, and the names of dictionaries.
    """

    def __init__(self, read: Any) -> None:
        self.read = read
        self.asked: set[Any] = set()

    @functools.cached_property
    def leaves(self) -> set[Any]:
        """The leaves; NaN as None. With them the names of the dictionary that was read, as a set."""
        contents = self.read, getattr(self.read, "state", None)
        found: set[Any] = {frozenset(one) for one in contents if isinstance(one, dict)}
        for leaf in leaves(self.read):
            if isinstance(leaf, np.ndarray):
                found.add(leaf.tobytes())
                found.update(map(_key, leaf.ravel().tolist()))
            else:
                found.add(_key(leaf))
        return found

    def less(self, rest: Any) -> Any:
        """Plain data without what is known; None in the place of it.

        Of numbers, those that are not whole; of several numbers or texts in a row, all where all are known.
        """
        kind = type(rest)
        if kind is int or kind is bool or rest is None:
            return rest
        if kind is str:
            return None if len(rest) > 1 and self._has(rest) else rest
        if kind is float:
            return None if rest % 1.0 != 0.0 and self._has(_key(rest)) else rest
        if kind is Opaque:
            if rest.state is None and not rest.beside:
                return rest
            state = None if rest.state is None else self.less(rest.state)
            return dataclasses.replace(rest, state=state, beside=self._less_of_all(rest.beside))
        if issubclass(kind, Noted):
            return noted(self.less(rest.bare), self._less_of_all(rest.beside))
        if kind is bytes:
            return None if self._has(rest) else Opaque("bytes")
        if kind is np.ndarray:
            is_known = rest.size > (rest.dtype.kind != "f") and self.leaves.issuperset(map(_key, rest.ravel().tolist()))
            return [rest.dtype.str, list(rest.shape)] if is_known else rest
        if kind is dict:
            if rest:
                self.asked.add(frozenset(rest))
                if any(_equal(rest, one) for one in (self.read, getattr(self.read, "state", None))):
                    return None
            return _unless_none(self._less_of_all(rest))
        if kind is list or kind is tuple:
            if len(rest) > 1 and SCALARS.issuperset(map(type, rest)) and self._has(*map(_key, rest)):
                return len(rest)
            return _unless_none([self.less(part) for part in rest])
        return rest

    def array(self, array: NDArray[Any]) -> tuple[Any, ...]:
        """Reduction of an array to what its residual shows of it."""
        if array.dtype.kind in KEPT_KINDS:
            is_known = self.less(array) is not array
            items = None if is_known else array.tobytes()
        else:
            items = self._in_a_row(array.tolist(), array.ravel().tolist())
        return tuple, (array.dtype, array.shape, array.flags.fnc, array.flags.writeable, items)

    def arrow(self, array: Any) -> tuple[Any, ...]:
        """Reduction of an array of pyarrow."""
        items = array.to_pylist()
        return tuple, (type(array), str(array.type), self._in_a_row(items, items))

    def _in_a_row(self, items: list[Any], row: list[Any]) -> Any:
        return self.less(items) if SCALARS.issuperset(map(type, row)) else items

    def _has(self, *some: Any) -> bool:
        self.asked.update(some)
        return self.leaves.issuperset(some)

    def _less_of_all(self, parts: dict[Any, Any]) -> dict[Any, Any]:
        return {name: self.less(part) for name, part in parts.items()}


class Forms:
    """Memory of residuals: two objects of one class that pickle to the same bytes hold the same beside what was read.

    In these bytes, the form of an object, arrays whose numbers all were read stand without them: so tables with the
    same names and types are of one form. A residual is worked out once for each form, and for which of the leaves that
    were looked for in it were read. (Where a dictionary in it has the names of the one that was read it is not kept.)

    Validity: what is remembered is a function of the form, so that no output shows in what is read of another. Objects
    are not remembered where more than pickle's own bytes was looked at, such as the items of a class that makes them,
    nor where a class of another package than `TRUSTED` is met, which may hand over something else the next time.
    """

    def __init__(self) -> None:
        self.asked: dict[Any, frozenset[Any]] = {}  # by form, the leaves that were looked for
        self.known: dict[Any, Any] = {}

    def moment(self, value: Any, where: Any, work_out: Callable[[], Any]) -> Any:
        """Reading of a moment, which its bytes hold all of: a table may have the same dates each time."""
        key = where, type(value), pickle.dumps(value, PROTOCOL)
        return self.known[key] if key in self.known else self._remembered(key, work_out())

    def residual(self, value: Any, known: Known, where: Any, work_out: Callable[[], tuple[Any, bool]]) -> Any:
        """Residual of an object of which this is known, less that; `work_out` says too if pickle writes all of it."""
        form = where, type(value), (content := form_of(value, known))
        if form in self.asked and (key := (form, self.asked[form] & known.leaves)) in self.known:
            return self.known[key]
        known.asked.clear()
        rest, is_whole = work_out()
        rest = known.less(rest)
        asked = self.asked.get(form, frozenset(known.asked))
        answers = asked & known.leaves
        is_small = content is not None and len(content) + sum(map(sys.getsizeof, asked)) <= 2 * MAX_FORM
        if is_small and is_whole and not any(type(one) is frozenset for one in answers):
            self._remembered((form, answers), rest)
            self.asked[form] = asked
        return rest

    def _remembered(self, key: Any, found: Any) -> Any:
        if len(self.known) >= MAX_FORMS:
            self.asked.clear()
            self.known.clear()
        self.known[key] = found
        return found


class _FormWriter(pickle.Pickler):
    """Pickler of objects of trusted classes alone."""

    def reducer_override(self, value: Any) -> Any:
        is_code = isinstance(value, type | types.FunctionType | types.BuiltinFunctionType)
        own = value if is_code or type(value).__module__.startswith("_cython_") else type(value)
        if str(own.__module__).partition(".")[0] not in TRUSTED:
            raise pickle.PicklingError
        return NotImplemented


def form_of(value: Any, known: Known) -> bytes | None:
    """The bytes that pickle writes of an object, in which arrays of known numbers stand without them.

    None where pickle refuses it, and where it holds anything of a class that is not trusted: that is not asked.
    """
    content = io.BytesIO()
    writer = _FormWriter(content, PROTOCOL, fix_imports=False)
    writer.dispatch_table = {**copyreg.dispatch_table, np.ndarray: known.array, **dict.fromkeys(ARROWS, known.arrow)}
    try:
        writer.dump(value)
    except Exception:
        return None
    return content.getvalue()


def _unless_none(found: Any) -> Any:
    parts = found.values() if isinstance(found, dict) else found
    return None if found and all(part is None for part in parts) else found


def leaves(read: Any) -> Iterator[Any]:
    """The numbers, texts, bytes and arrays that plain data hold, at any depth."""
    waiting = [read]
    while waiting:
        value = waiting.pop()
        if type(value) in SCALARS:  # the usual case, faster
            yield value
            continue
        if isinstance(value, Noted) and value.beside:
            waiting.append(value.beside)
        if isinstance(value, Opaque):
            waiting += [value.state, value.text, value.beside]
        elif isinstance(value, Mapping):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple | set | frozenset):
            waiting += value
        elif not isinstance(value, np.generic) or isinstance(value, float | str | bytes):
            yield value


def _key(leaf: Any) -> Any:
    return None if leaf != leaf else leaf


def _equal(rest: Any, read: Any) -> bool:
    try:
        return bool(type(rest) is type(read) and rest == read)
    except Exception:  # arrays within
        return False
