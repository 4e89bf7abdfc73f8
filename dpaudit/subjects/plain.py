"""Outputs as plain data: what is kept of them, or crosses from a worker to the auditor, and nothing that runs there.

An output of a foreign subject may be of any class, with methods that misbehave. In the worker it becomes a tree of
Python's own numbers, texts and containers, arrays of numbers, `Failed`, and `Opaque` for everything else: an object's
attributes, or its printed form, under the name of its class. All that looks at the object's own methods happens in the
worker, within the limits of the call. The auditor reads the tree with an unpickler that knows no other class.

Validity: an output is read by itself, by a fixed function; it is post-processing of single outputs. Nearly all give the
same tokens as the object itself would (`dpaudit.features.outcomes.canonical`); all outputs of an audit are read so.
"""

from __future__ import annotations

import enum
import io
import itertools
import math
import numbers
import pickle
import reprlib
import sys
import threading
import types
from collections.abc import Callable, ItemsView, KeysView, Mapping, Sequence, Set, ValuesView
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import SubjectError
from dpaudit.privacy.pairs import ADDRESS
from dpaudit.subjects.call_outcomes import NOTED, Ended, Failed, Noted, Opaque, noted
from dpaudit.subjects.foreign import AS_THEY_ARE, STANDARD, attributes_of, own
from dpaudit.subjects.residual import KEPT_KINDS, MOMENTS, Forms, Known, held, is_clock_time, is_named, leaves, speaks
from dpaudit.subjects.tracebacks import is_of_output

DEEPEST = 42  # levels of nesting that are kept; `canonical` shows 40
IN_A_DICTIONARY = AS_THEY_ARE - {np.float64}
CODE = (type, types.BuiltinFunctionType, types.FunctionType)
OF_HEAP = 1 << 9  # a flag of classes that are made at run time: objects of others may hold more than attributes
CONTAINERS = frozenset({dict, list, tuple, set, frozenset})
PYTHONS = frozenset({int, bytes, complex, Decimal, Fraction})
# Read by what they hold, within a residual too: there other objects are what they hand to pickle.
CONTENTS = (Mapping, Sequence, Set, int, float, str, bytes, complex, Decimal, Fraction, io.IOBase, *MOMENTS)
MAX_PIECES = 1_000  # objects of one residual, a bound on time: a table of pandas has 15
MAX_RESIDUALS = 12  # residuals within one another: a level of an index that does not occur stands 8 deep in pandas
# By Python's own methods, which a class cannot replace: the class, how many bytes it takes, and what is read of it.
READ_AS: tuple[tuple[type, Callable[[Any], int], Callable[[Any], Any]], ...] = (
    (int, lambda value: int.bit_length(value) // 8, int.__pos__),
    (float, lambda value: 0, float.__pos__),
    (str, lambda value: 4 * str.__len__(value), str.__str__),
    (bytes, bytes.__len__, lambda value: bytes(memoryview(value))),
    (complex, lambda value: 0, complex.__pos__),
    (Decimal, lambda value: 0, Decimal),
    (Fraction, lambda value: 0, Fraction),
)
AT_ADDRESS = " at 0x"  # in the printed form of an object that shows no more
MAX_TEXT = 4_000  # characters of the printed form of an object
MAX_LED = 3  # exceptions in a row that led to one: each may be led to by two


class TooLarge(Exception):
    """An output is larger than a call may return."""


def array_from(dtype: str, shape: tuple[int, ...], content: bytes) -> NDArray[Any]:
    """The array of numbers that these bytes are."""
    if np.dtype(dtype).kind not in KEPT_KINDS:
        raise ValueError(f"dtype must be of numbers, got {dtype!r}.")
    return np.frombuffer(content, dtype=dtype).reshape(shape).copy()


def scalar_from(dtype: str, content: bytes) -> Any:
    """The number of numpy's that these bytes are."""
    return array_from(dtype, (), content)[()]


def fraction_from(numerator: int, denominator: int) -> Fraction:
    """The fraction of two integers: its constructor would read a text of a few characters as a number of any size."""
    if type(numerator) is not int or type(denominator) is not int:
        raise ValueError("a fraction must be of two integers")
    return Fraction(numerator, denominator)


class _Writer(pickle.Pickler):
    """Writes arrays, numbers of numpy's and fractions as calls of functions that make them of plain parts."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Noted) and isinstance(value, np.ndarray):
            return noted, (value.bare, value.beside)
        if type(value) is Fraction:
            return fraction_from, (value.numerator, value.denominator)
        if not isinstance(value, np.ndarray | np.generic):
            return NotImplemented
        content = np.ascontiguousarray(value).tobytes()
        if isinstance(value, np.generic):
            return scalar_from, (value.dtype.str, content)
        return array_from, (value.dtype.str, value.shape, content)


class _Traversal(threading.local):
    """Objects that are being looked into, of each thread."""

    def __init__(self) -> None:
        self.objects: set[int] = set()  # ids of those that are gone through now
        self.level = 0  # residuals within one another
        self.seen: dict[int, Any] = {}  # of this residual, by id, handed over once; as long as held, ids stay theirs
        self.is_whole = True  # whether pickle writes all that is read of this residual
        self.forms = Forms()


TRAVERSAL = _Traversal()


class PlainWriter:
    """Makes plain data of outputs, up to `limit` bytes in all: about what they take when they cross."""

    def __init__(self, limit: float) -> None:
        self.left = limit

    def spend(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise TooLarge

    def spend_instead(self, left: float, value: Any) -> None:
        """Spend what plain data take, of what was left before they were made of more."""
        self.left = left
        if left < math.inf:
            self.spend(sum(8 + getattr(leaf, "nbytes", 0) for leaf in leaves(value)))

    def plain(self, value: Any, depth: int = 0) -> Any:
        """`value` as plain data.

        `TooLarge` if it is larger than what is left of the limit. `Exception` whatever the value's own methods raise.
        """
        kind: Any = type(value)
        self.spend(8)
        if kind in (float, bool) or value is None:
            return value
        if depth > DEEPEST:
            return Opaque(kind.__qualname__)
        if kind is str:
            self.spend(4 * len(value))
            return value
        if kind in CONTAINERS:
            return self._contents(value, depth + 1)
        if isinstance(value, Noted):
            TRAVERSAL.is_whole = False
            inner = {self.plain(key, depth + 1): self.plain(item, depth + 1) for key, item in value.beside.items()}
            return noted(self.plain(value.bare, depth), inner)
        if kind in PYTHONS:
            self.spend(sys.getsizeof(value))
            return value
        if isinstance(value, np.ndarray | np.generic):
            return self._numpy(value, depth)
        if kind is Opaque:
            return value
        if kind in (Failed, Ended):
            return kind(*(str.__str__(text) for text in (value.kind, value.message, value.place, value.traceback)))
        if isinstance(value, CODE):
            if isinstance(value, types.FunctionType) or not is_named(value, value.__qualname__):
                return Opaque(kind.__qualname__)
            return Opaque(kind.__qualname__, text=value.__qualname__, beside={"state": value.__module__})
        if isinstance(value, enum.Enum):
            TRAVERSAL.is_whole = False  # its value is read, and pickle writes its name
            if isinstance(value, int | float | str):
                return noted(self._read(value, depth), {"class": f"{kind.__qualname__}.{value.name}"})
            beside = {"state": self.plain(value.value, depth + 1)}
            return Opaque(kind.__qualname__, text=f"{kind.__qualname__}.{value.name}", beside=beside)
        if isinstance(value, MOMENTS) and self.left == math.inf and not TRAVERSAL.level and is_clock_time(value):
            where = type(self), depth
            return TRAVERSAL.forms.moment(value, where, lambda: self._looked_into(value, depth))
        return self._looked_into(value, depth)

    def _looked_into(self, value: Any, depth: int) -> Any:
        """Plain data of an object whose class is not known."""
        kind: Any = type(value)
        if id(value) in TRAVERSAL.objects:  # else what refers to itself twice would be gone through 2^40 times
            return Opaque(kind.__qualname__, text=f"{kind.__qualname__} that it is in", beside={"state": None})
        if id(value) in TRAVERSAL.seen:
            return None
        TRAVERSAL.objects.add(id(value))
        try:
            is_handed_over = speaks(kind) and not isinstance(value, CONTENTS)
            TRAVERSAL.is_whole &= is_handed_over and not isinstance(value, BaseException)
            is_piece = TRAVERSAL.level and is_handed_over
            read = Opaque(kind.__qualname__) if is_piece else self._read(value, depth)
            return self._with_residual(read, value, depth, is_handed_over)
        finally:
            TRAVERSAL.objects.remove(id(value))

    def _read(self, value: Any, depth: int) -> Any:
        """Read a value of a class that is not Python's own."""
        for kind, size, made in READ_AS:
            if isinstance(value, kind):
                self.spend(size(value))
                return made(value)
        if isinstance(value, numbers.Real) and float(value) == value:  # of another library
            return float(value)
        known = own(value)
        return self._contents(value, depth + 1) if known is value else self.plain(known, depth)

    def _with_residual(self, found: Any, value: Any, depth: int, is_handed_over: bool) -> Any:
        """Value as it was read, with its class and its residual as notes."""
        kind: Any = type(value)
        is_object = isinstance(found, Opaque)
        beside: dict[str, Any] = {} if is_object else {"class": kind.__qualname__}
        is_whole = is_object and found.state is not None and not speaks(kind)
        is_whole = is_whole and all(one is object or one.__flags__ & OF_HEAP for one in kind.__mro__)
        rest = None
        if TRAVERSAL.level:
            TRAVERSAL.seen[id(value)] = value
            rest = None if is_whole else self._held(value, depth)
        elif is_handed_over and self.left == math.inf and len(TRAVERSAL.objects) == 1:
            where = type(self), depth
            rest = TRAVERSAL.forms.residual(value, Known(found), where, lambda: self._told(value, depth))
        elif not is_whole:
            left = self.left
            rest = Known(found).less(self._held(value, depth))  # what was known does not cross
            self.spend_instead(left, rest)
        if rest is not None or (is_object and found.text is not None):
            beside["state"] = rest
        return noted(found, beside)

    def _told(self, value: Any, depth: int) -> tuple[Any, bool]:
        """Residual of an object, not less what is known, and whether all of it is what pickle writes."""
        TRAVERSAL.is_whole = not isinstance(value, BaseException)
        return self._held(value, depth), TRAVERSAL.is_whole

    def _held(self, value: Any, depth: int) -> Any:
        """Residual of an object as plain data, not less what is known."""
        rest = held(value)
        if rest is None:
            return None
        if TRAVERSAL.level >= MAX_RESIDUALS or len(TRAVERSAL.seen) > MAX_PIECES:
            rest = Opaque(type(value).__qualname__)
        TRAVERSAL.level += 1
        try:
            return self.plain(rest, depth + 1)
        finally:
            TRAVERSAL.level -= 1
            if not TRAVERSAL.level:
                TRAVERSAL.seen.clear()

    def _numpy(self, value: Any, depth: int) -> Any:
        if isinstance(value, np.ma.MaskedArray):
            TRAVERSAL.is_whole = False
            return self._masked(value, depth)
        array = np.asarray(value)
        if isinstance(value, np.ndarray):
            TRAVERSAL.is_whole &= type(value) is np.ndarray
            beside = self._form(value, depth)
            if array.dtype.kind in KEPT_KINDS:
                self.spend(array.nbytes)
                return noted(array.copy(), beside)
            return noted(self.plain(array.tolist(), depth), {"type": str(array.dtype), **beside})
        if array.dtype.kind in KEPT_KINDS and array.dtype not in STANDARD:
            return value
        item = array.tolist()
        if isinstance(item, np.generic):  # a number that is no Python number: a longer float
            return float(item) if float(item) == item or item != item else Opaque("longdouble", text=repr(item))
        return noted(self.plain(item, depth), {"type": str(array.dtype)} if isinstance(value, np.void) else {})

    def _form(self, array: NDArray[Any], depth: int) -> dict[str, Any]:
        """Notes on an array: all that is not its numbers, type and shape."""
        attributes = None if isinstance(array, np.ma.MaskedArray) else attributes_of(array)
        found = {
            "class": type(array).__qualname__ if type(array) is not np.ndarray else None,
            "order": "F" if array.flags.fnc else None,
            "read-only": None if array.flags.writeable or isinstance(array, np.ma.MaskedArray) else True,
            "state": self.plain(dict(attributes), depth + 1) if attributes else None,
        }
        return {name: part for name, part in found.items() if part is not None}

    def _masked(self, value: np.ma.MaskedArray[Any, Any], depth: int) -> Any:
        """Nested lists with None where a value is masked; as notes what is under the mask, and how it is filled."""
        mask, beside = np.ma.getmask(value), self._form(value, depth)
        if value.ndim and np.asarray(mask).view("?").any():
            beside["under the mask"] = self.plain(np.asarray(value.data), depth + 1)
        if mask is np.ma.nomask:
            beside["mask"] = "none"
        fill = vars(value).get("_fill_value")  # what is asked for by its public name is set by that
        if fill is not None:
            beside["fill value"] = self.plain(np.asarray(fill).tolist(), depth + 1)
        if value.hardmask:
            beside["hard mask"] = True
        beside["type"] = str(value.dtype)
        if value.dtype.names is not None:  # masked field by field
            return noted(self.plain(value.tolist(), depth), beside)
        if value is np.ma.masked:
            return None
        masked = np.empty(value.shape, dtype=object)
        masked[...] = value.data
        masked[np.ma.getmaskarray(value)] = None
        return noted(self.plain(masked.tolist(), depth), beside)

    def _contents(self, value: Any, inner: int) -> Any:
        if isinstance(value, Mapping):
            pairs = [(self.plain(key, inner), self.plain(item, inner)) for key, item in value.items()]
            return noted({_hashable(key): item for key, item in pairs}, _names_of([key for key, _ in pairs]))
        if isinstance(value, Set) and not isinstance(value, KeysView | ItemsView):
            keys = [self.plain(item, inner) for item in value]
            own = frozenset(map(_hashable, keys)) if isinstance(value, frozenset) else set(map(_hashable, keys))
            return noted(own, {name: sorted(set(names)) for name, names in _names_of(keys).items()})
        if isinstance(value, tuple):
            return tuple(self.plain(item, inner) for item in value)
        if isinstance(value, Sequence | KeysView | ValuesView | ItemsView):
            return [self.plain(item, inner) for item in itertools.islice(value, len(value))]  # it may go on
        name = type(value).__qualname__
        if (attributes := attributes_of(value)) is not None:
            state = {self.plain(key, inner): self.plain(item, inner + 1) for key, item in attributes.items()}
            return Opaque(name, state=state)
        text = self.text(value)
        self.spend(4 * len(text))
        return Opaque(name) if AT_ADDRESS in text else Opaque(name, text=text)

    def text(self, value: Any) -> str:
        """The printed form of an object."""
        return str.__str__(repr(value))


def _names_of(keys: Sequence[Any]) -> dict[str, list[str]]:
    """A note of the classes of keys or members, which are told apart by their contents: of those that are not plain."""
    names = [str(key.beside.get("class", "")) for key in keys if isinstance(key, Noted)]
    return {"classes": names} if names else {}


def _hashable(value: Any) -> Any:
    """Plain data as a key, or a member of a set: what had a hash before may be a list now, which reads as a tuple.

    Notes are left out: keys are told apart by their contents.
    """
    if isinstance(value, Noted):
        value = value.bare
    if isinstance(value, list | tuple):
        return tuple(map(_hashable, value))
    if isinstance(value, set):
        return frozenset(value)
    return Opaque("dict", state=value) if isinstance(value, dict) else value


class _Seer(PlainWriter):
    """Makes plain data that stay in the process."""

    def plain(self, value: Any, depth: int = 0) -> Any:
        kind = type(value)
        if depth <= DEEPEST:  # the usual cases, faster: what is made of them is the same
            if kind in IN_A_DICTIONARY:
                return value
            if kind is list or kind is tuple:
                if IN_A_DICTIONARY.issuperset(map(type, value)) and depth < DEEPEST:
                    return value[:]
                items = [self.plain(item, depth + 1) for item in value]
                return items if kind is list else tuple(items)
            if kind is dict and set(map(type, value)) <= {str} and depth < DEEPEST:
                if IN_A_DICTIONARY.issuperset(map(type, value.values())):
                    return value.copy()
                return {key: self.plain(item, depth + 1) for key, item in value.items()}
        return super().plain(value, depth)

    def text(self, value: Any) -> str:
        try:
            return super().text(value)
        except Exception:  # of this part nothing is seen; of the others there may be more
            return AT_ADDRESS

    def _numpy(self, value: Any, depth: int) -> Any:
        # Numpy's own numbers do not change, a record of several does; a longer float would lose its digits elsewhere.
        is_fixed = isinstance(value, np.generic) and not isinstance(value, np.flexible)
        return value if is_fixed else super()._numpy(value, depth)


SEER = _Seer(math.inf)


class Seen(list[Any]):
    """Outputs of single calls, each of which is what was `seen` of it: nobody needs to look again."""


def seen(output: Any) -> Any:
    """Snapshot of an output as it is seen now, as plain data that no later call changes.

    A mechanism may write every output into one buffer, and then all outputs that are kept are the last one: the draws
    are not those of the pair, and a sound mechanism looks unsound (measured: 12 of 12 audits at 5% nominal, of Laplace
    noise within its claim that is written into one array), or an unsound one sound. No method of the output's own
    copies it: that could leave out what the output shows.

    `SubjectError` if looking at it raises: that is no outcome of the mechanism's.

    Examples
    --------
    >>> seen((0.5, {"a": np.arange(2)}))
    (0.5, {'a': array([0, 1])})
    """
    kind: Any = type(output)
    if kind in AS_THEY_ARE:
        return output
    if (kind is list or kind is tuple) and AS_THEY_ARE.issuperset(map(type, output)):
        return output[:]
    if kind is np.ndarray and output.dtype.kind in KEPT_KINDS and output.flags.carray:
        return output.copy()
    try:
        return SEER.plain(output)
    except BaseException as error:  # what an output raises is the mechanism's, as in a call
        if not is_of_output(error):
            raise
        raise SubjectError(
            f"an output must be readable, got {type(error).__qualname__} from looking at {kind.__qualname__}. "
            "Return what it holds, for example a dictionary."
        ) from error


KEPT_CLASSES: tuple[Any, ...] = (
    array_from, scalar_from, fraction_from, noted, Opaque, Failed, Ended, Decimal, *NOTED.values()
)  # fmt: skip


class _Reader(pickle.Unpickler):
    """Knows the few classes of plain data."""

    KNOWN = {(home.__module__, home.__qualname__): home for home in KEPT_CLASSES} | {
        ("builtins", "complex"): complex,
        ("builtins", "set"): set,
        ("builtins", "frozenset"): frozenset,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.KNOWN:
            raise pickle.UnpicklingError(f"plain data must have known classes only, got {module}.{name}.")
        return self.KNOWN[module, name]


def packed(value: Any) -> bytes:
    """Plain data as bytes."""
    content = io.BytesIO()
    _Writer(content, protocol=5).dump(value)
    return content.getvalue()


def unpacked(content: bytes) -> Any:
    """Plain data from bytes.

    `ValueError` if they are none.
    """
    try:
        return _Reader(io.BytesIO(content)).load()
    except Exception as error:
        raise ValueError(f"plain data must be readable, got {type(error).__name__}.") from error


def brief(error: BaseException, depth: int = 0) -> Failed:
    """The outcome of a call that raised `error`, without addresses; an exception may misbehave when it is printed."""
    kind = str.__str__(type.__getattribute__(type(error), "__qualname__"))[:200]
    try:
        text = str.__str__(str(error))
    except BaseException:
        text = ""
    shown = ADDRESS.sub("", text[:MAX_TEXT])
    chain = {id(one): one for one in (error.__cause__, error.__context__) if isinstance(one, Exception)}  # else our own
    led = [brief(one, depth + 1) for one in chain.values()] if depth < MAX_LED else []
    is_whole = shown == text and not _holds_more(error) and len(led) == len(chain) and all(one.is_whole for one in led)
    return Failed(kind, shown, held=(type(error), *((one.message, one.held) for one in led)), is_whole=is_whole)


def _holds_more(error: BaseException) -> bool:
    """Tell whether an exception may hold more than its text and others: notes, attributes, or what is not printed."""
    kinds = type(error).__mro__
    is_plain = next(one for one in kinds if one.__module__ == "builtins").__basicsize__ == BaseException.__basicsize__
    parts = (part for one in kinds if one.__module__ != "builtins" for part in vars(one).values())
    is_plain &= not any(isinstance(part, types.MemberDescriptorType) for part in parts)  # a slot
    is_key, args = type(error).__str__ is KeyError.__str__, error.args
    is_printed = is_key or type(error).__str__ is BaseException.__str__
    is_printed &= all(type(item) in (str, int, float, bool, type(None)) and item == item for item in args)
    # Other arguments would be printed as a single number is, as no text at all, or as the text of a tuple.
    is_printed &= is_key or len(args) != 1 or (type(args[0]) is str and args[0][:1] not in ("", "("))
    return not is_plain or not is_printed or bool(vars(error))


def shown(value: Any) -> str:
    """A short printed form that cannot raise."""
    try:
        return str.__str__(reprlib.repr(value))[:80]
    except BaseException:
        return type(value).__name__
