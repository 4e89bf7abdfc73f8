"""Visitor: the numbers and tokens that outputs hold, by their paths, many outputs at a time.

A value is looked at by a function of its type (`decoder`), which names its parts; parts are visited in turn. Values at
one path are visited together, so that the cost of a step is shared, but what is read of a value is a function of the
value alone.

Conventions
-----------
* A column is named by (path, what): the path is written as Python would (`['a'][3]`), `what` says what is read there
  ("" for the value itself).
* Missing is NaN. Numbers are equal by value: 1, 1.0 and True are one number.

Validity: reading is post-processing of single outputs. What a column holds of an output must not depend on the other
outputs of its batch.
"""

from __future__ import annotations

import dataclasses
import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray
from dpaudit.subjects.call_outcomes import Failed, Opaque

Rows = NDArray[np.intp]
Key = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Limits:
    """How far outputs are read. Each bounds the time or the memory that one output takes.

    The report names what lies beyond (`dpaudit.reading.unread`).
    """

    max_depth: int = 40  # levels of nesting, as far as equality of outputs looks
    max_places: int = 3_000  # numbers of one sequence that have columns of their own: a small image
    max_items: int = 64  # items of one sequence that are visited one by one
    max_keys: int = 256  # keys of one mapping
    max_letters: int = 256  # characters of a text that have columns of their own
    max_text: int = 20_000  # characters of a text that are parsed
    max_numbers: int = 24  # numbers of one text
    whole: float = 2.0**53  # from here on an integer is no double, and its remainder is read beside it
    modulus: int = 2**6 * 3**3 * 5**2 * 7**2 * 11 * 13 * 17 * 19 * 23 * 29  # has all remainders by small numbers


LIMITS = Limits()
NUMBERS = (float, int, bool, np.floating, np.integer, np.bool_)
DECODERS: list[tuple[type | tuple[type, ...], Callable[[Any], Mapping[str, Any]]]] = []


def decoder(*types: type) -> Callable[[Callable[[Any], Mapping[str, Any]]], Callable[[Any], Mapping[str, Any]]]:
    """Register a function that names the parts of one value of some types; the last one registered is asked first.

    Parts are plain data again, or `Text` to be read as text. Packages add theirs by the entry-point group
    "dpaudit.decoders".
    """

    def register(function: Callable[[Any], Mapping[str, Any]]) -> Callable[[Any], Mapping[str, Any]]:
        DECODERS.insert(0, (types, function))
        return function

    return register


def token(value: Any) -> float:
    """A number for a value that is no number: equal printed forms have equal ones.

    Examples
    --------
    >>> token("a") == token("a"), token("a") == token("b")
    (True, False)
    """
    text = value if type(value) is str else repr(value)
    return float(zlib.crc32(text.encode("utf-8", "surrogatepass")))


class Sink:
    """What a visit finds: columns of numbers, blocks of several columns, and members to look for.

    Parameters
    ----------
    wanted : set of str, optional
        Paths that are read; all by default. Paths that lead to them are among them.
    """

    def __init__(self, wanted: frozenset[str] | None = None) -> None:
        self.wanted = wanted
        self.numbers: dict[Key, list[tuple[Rows, FloatArray]]] = {}
        self.blocks: dict[str, list[tuple[Rows, FloatArray]]] = {}
        self.members: dict[Key, list[tuple[Rows, Sequence[Iterable[str]]]]] = {}
        self.texts: dict[str, list[tuple[Rows, Sequence[str]]]] = {}
        self.parents: dict[str, str] = {}
        self.tokens: dict[float, str] = {}

    def token(self, value: Any) -> float:
        """The number of a value that is no number, whose text is kept where everything is read."""
        number = token(value)
        if self.wanted is None:
            self.tokens.setdefault(number, str(value))
        return number

    def opens(self, path: str, parent: str) -> bool:
        """Whether a part is visited; notes where it is."""
        if self.wanted is not None:
            return path in self.wanted
        self.parents.setdefault(path, parent)
        return True

    def put(self, path: str, what: str, rows: Rows, numbers: Any) -> None:
        """Note a number of each of these rows."""
        self.numbers.setdefault((path, what), []).append((rows, np.asarray(numbers, dtype=float)))


def visit(sink: Sink, values: Sequence[Any], rows: Rows, path: str = "", depth: int = 0) -> None:
    """Put what values hold, which stand at one path of the outputs with these row numbers, into the sink."""
    if depth > LIMITS.max_depth or not len(values):
        return
    kinds = set(map(type, values))
    if kinds <= _PLAIN_NUMBERS:
        return _numbers(sink, values, rows, path, int in kinds)
    if len(kinds) == 1:
        return _of_kind(next(iter(kinds)), sink, values, rows, path, depth)
    groups: dict[Any, list[int]] = {}
    for place, value in enumerate(values):
        groups.setdefault(float if isinstance(value, NUMBERS) else type(value), []).append(place)
    for kind, places in groups.items():
        some, own = [values[k] for k in places], rows[places]
        if kind is float:
            _numbers(sink, some, own, path, True)
        else:
            _of_kind(kind, sink, some, own, path, depth)


_PLAIN_NUMBERS = frozenset({float, int, bool})


def _of_kind(kind: type, sink: Sink, values: Sequence[Any], rows: Rows, path: str, depth: int) -> None:
    if issubclass(kind, NUMBERS):
        return _numbers(sink, values, rows, path, True)
    name = "none" if kind is type(None) else "list" if kind in (list, tuple) else kind.__name__
    sink.put(path, "kind", rows, np.full(len(rows), sink.token(name)))
    if kind is type(None):
        return None
    if issubclass(kind, Mapping):
        return _mappings(sink, values, rows, path, depth)
    if issubclass(kind, str):
        return _texts(sink, values, rows, path, depth)
    if issubclass(kind, np.ndarray):
        return _arrays(sink, values, rows, path, depth)
    if issubclass(kind, list | tuple):
        return _sequences(sink, values, rows, path, depth)
    if issubclass(kind, Opaque | Failed):
        names = [value.token if isinstance(value, Failed) else value.kind for value in values]
        sink.put(path, "class", rows, [sink.token(one) for one in names])
    parts = [parts_of(value) for value in values]
    if issubclass(kind, set | frozenset):
        sink.members.setdefault((path, "membership"), []).append((rows, [set(part.pop("members")) for part in parts]))
    return _mappings(sink, parts, rows, path, depth, is_decoded=True)


def parts_of(value: Any) -> dict[str, Any]:
    """The parts of a value that is neither a number, text, mapping, sequence nor array, by the decoder of its type."""
    for types, function in DECODERS:
        if isinstance(value, types):
            return dict(function(value))
    return {"text": str(value)}


def _numbers(sink: Sink, values: Sequence[Any], rows: Rows, path: str, has_integers: bool) -> None:
    try:
        numbers = np.array(values, dtype=float)
    except OverflowError:
        numbers = np.array([_double(value) for value in values])
    sink.put(path, "", rows, numbers)
    if has_integers and np.any(np.abs(numbers) >= LIMITS.whole):
        long = [k for k, value in enumerate(values) if isinstance(value, int) and abs(value) >= LIMITS.whole]
        if long:
            sink.put(path, "remainder", rows[long], [float(values[k] % LIMITS.modulus) for k in long])


def _double(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _mappings(
    sink: Sink, values: Sequence[Mapping[Any, Any]], rows: Rows, path: str, depth: int, *, is_decoded: bool = False
) -> None:
    if not is_decoded:
        sink.put(path, "length", rows, list(map(len, values)))
    forms: dict[tuple[Any, ...], list[int]] = {}
    for place, value in enumerate(values):
        forms.setdefault(tuple(value), []).append(place)
    of_key: dict[Any, tuple[list[Any], list[NDArray[np.intp]], list[FloatArray]]] = {}
    for keys, places in forms.items():
        own = rows if len(forms) == 1 else rows[places]
        some = values if len(forms) == 1 else [values[k] for k in places]
        for at, key in enumerate(keys[: LIMITS.max_keys]):
            items, where, order = of_key.setdefault(key, ([], [], []))
            items += [value[key] for value in some]
            where.append(own)
            order.append(np.full(len(own), float(at)))
    for key, (items, where, order) in of_key.items():
        inside = f"{path} {key}" if is_decoded else f"{path}[{key!r}]"
        if sink.opens(inside, path):
            own = where[0] if len(where) == 1 else np.concatenate(where)
            if not is_decoded:
                sink.put(inside, "place", own, order[0] if len(order) == 1 else np.concatenate(order))
            visit(sink, items, own, inside, depth + 1)
    keys_path = f"{path}.keys()"
    if not is_decoded and any(type(key) is not str for key in of_key) and sink.opens(keys_path, path):
        visit(sink, [list(value)[: LIMITS.max_keys] for value in values], rows, keys_path, depth + 1)


def _arrays(sink: Sink, values: Sequence[NDArray[Any]], rows: Rows, path: str, depth: int) -> None:
    forms: dict[tuple[Any, ...], list[int]] = {}
    for place, value in enumerate(values):
        forms.setdefault((value.dtype.kind in "biuf", value.shape), []).append(place)
    for (is_number, shape), places in forms.items():
        own, some = rows[places], [values[k] for k in places]
        sink.put(path, "shape", own, np.full(len(own), sink.token(shape)))
        if is_number and all(one.dtype.kind != "u" and one.dtype.kind != "i" or one.dtype.itemsize < 8 for one in some):
            _block(sink, np.stack([one.ravel() for one in some]).astype(float), own, path)
        else:
            visit(sink, [one.tolist() for one in some], own, path, depth + 1)


def _block(sink: Sink, numbers: FloatArray, rows: Rows, path: str) -> None:
    sink.blocks.setdefault(path, []).append((rows, numbers[:, : LIMITS.max_places]))


def _sequences(sink: Sink, values: Sequence[Sequence[Any]], rows: Rows, path: str, depth: int) -> None:
    sink.put(path, "length", rows, list(map(len, values)))
    of_length: dict[int, list[int]] = {}
    for place, value in enumerate(values):
        of_length.setdefault(len(value), []).append(place)
    others: list[int] = []
    for length, places in of_length.items():
        if length == 0:
            continue
        some = [values[k][: LIMITS.max_places] for k in places]
        numbers = _as_block(some)
        if numbers is not None:
            _block(sink, numbers, rows[places], path)
        else:
            others += places
    if others:
        _items(sink, [values[k] for k in others], rows[others], path, depth)


def _as_block(values: Sequence[Sequence[Any]]) -> FloatArray | None:
    """Equally long sequences of numbers as a block; None where something in them is none, or no double."""
    kinds: set[type] = set()
    for value in values:
        kinds.update(map(type, value))
    if not all(issubclass(kind, NUMBERS) for kind in kinds):
        return None
    try:
        block = np.array(values, dtype=float)
    except (OverflowError, ValueError):
        return None
    is_long = any(issubclass(kind, int) for kind in kinds) and np.any(np.abs(block) >= LIMITS.whole)
    return None if is_long else block.reshape(len(values), -1)


def _items(sink: Sink, values: Sequence[Sequence[Any]], rows: Rows, path: str, depth: int) -> None:
    """Sequences that hold more than numbers: items one by one, records column by column, and what occurs how often."""
    flat: list[int] = []
    for place, value in enumerate(values):  # rectangles of numbers are one block each
        if isinstance(value[0], list | tuple | np.ndarray):
            flat.append(place)
    if flat:
        rectangles = [_rectangle(values[k]) for k in flat]
        of_size: dict[int, list[int]] = {}
        for k, rectangle in enumerate(rectangles):
            if rectangle is not None:
                of_size.setdefault(rectangle.size, []).append(k)
        for same in of_size.values():
            own = rows[[flat[k] for k in same]]
            sink.put(path, "shape", own, [sink.token(rectangles[k].shape) for k in same])  # type: ignore[union-attr]
            _block(sink, np.stack([rectangles[k].ravel() for k in same]), own, path)  # type: ignore[union-attr]
        done = {flat[k] for same in of_size.values() for k in same}
        keep = [k for k in range(len(values)) if k not in done]
        values, rows = [values[k] for k in keep], rows[keep]
        if not values:
            return
    longest = min(max(map(len, values)), LIMITS.max_items)
    for at in range(longest):
        inside = f"{path}[{at}]"
        if sink.opens(inside, path):
            has = [k for k, value in enumerate(values) if len(value) > at]
            visit(sink, [values[k][at] for k in has], rows[has], inside, depth + 1)
    records = [k for k, value in enumerate(values) if len(value) > 1 and all(isinstance(v, Mapping) for v in value)]
    inside = f"{path}[:]"
    if records and sink.opens(inside, path):
        columns = []
        for k in records:
            names = dict.fromkeys(key for item in values[k] for key in item)
            columns.append({str(key): [item.get(key) for item in values[k]] for key in names})
        _mappings(sink, columns, rows[records], inside, depth + 1, is_decoded=True)
    lists = [
        k for k, value in enumerate(values) if len(value) > 1 and all(isinstance(v, list | tuple) for v in value)
    ]
    if lists and sink.opens(inside, path):
        columns = []
        for k in lists:
            width = min(max(map(len, values[k])), 16)
            columns.append({f"{c}": [v[c] if c < len(v) else None for v in values[k]] for c in range(width)})
        _mappings(sink, columns, rows[lists], inside, depth + 1, is_decoded=True)
    rest = [k for k in range(len(values)) if k not in set(records) | set(lists)]
    if rest:
        names = [[str(item)[:40] for item in values[k]] for k in rest]
        sink.members.setdefault((path, "count"), []).append((rows[rest], names))
        numbers = [[_double(v) if isinstance(v, NUMBERS) else token(v) for v in values[k]] for k in rest]
        codes = f"{path} as codes"
        if sink.opens(codes, path):
            _sequences(sink, numbers, rows[rest], codes, depth + 1)


def _rectangle(value: Sequence[Any]) -> FloatArray | None:
    try:
        array = np.array(value)
    except (ValueError, OverflowError):
        return None
    is_double = array.dtype.kind in "bf" or (array.dtype.kind in "iu" and np.all(np.abs(array) < LIMITS.whole))
    return array.astype(float) if is_double and array.ndim > 1 and array.size else None


class Text(str):
    """A text that is read as text only: nothing in it is decoded again."""

    __slots__ = ()


def _texts(sink: Sink, values: Sequence[str], rows: Rows, path: str, depth: int) -> None:
    from dpaudit.features import texts  # texts have decoders that visit

    texts.read_texts(sink, values, rows, path, depth)
