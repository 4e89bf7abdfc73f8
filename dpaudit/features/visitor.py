"""Visitor: the numbers and tokens that outputs hold, by their paths, many outputs at a time.

A value is looked at by a function of its type (`decoder`), which names its parts; parts are visited in turn. Values at
one path are visited together, so that the cost of a step is shared.

Conventions
-----------
* A column is named by (path, what): the path is written as Python would (`['a'][3]`), `what` says what is read there
  ("" for the value itself). No two parts of one output have the same path.
* Missing is NaN. Numbers are equal by value, and inside containers their class is read beside them.
* An output that is a number, or equally shaped numbers, is read as the nested list of doubles that a batch of its kind
  is held as: there its class is not read.

Validity: reading is post-processing of single outputs. What a column holds of an output is a function of this output
and of the wanted columns: every decision here looks at one value, never at the values beside it.
"""

from __future__ import annotations

import functools
import itertools
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.extensions import working_extensions
from dpaudit.features import shapes
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.identity import class_name, class_names
from dpaudit.reading.outcomes import canonical, number_of, plain, single_numbers
from dpaudit.reading.unread import LIMITS
from dpaudit.subjects.call_outcomes import Failed, Noted, Opaque

Rows = NDArray[np.intp]
Key = tuple[str, str]


GROUP = "dpaudit.decoders"
NUMBERS = (float, int, bool, np.floating, np.integer, np.bool_)
CLASS, COUNT, MEMBERSHIP, BLOCK, TEXT = "class", "count", "membership", "block", "text"
Decoder = Callable[[Any], Mapping[str, Any]]
DECODERS: list[tuple[type | tuple[type, ...], Decoder]] = []


def decoder(*types: type) -> Callable[[Decoder], Decoder]:
    """Register a function that names the parts of one value of some types; the last one registered is asked first.

    Parts are plain data again, or `Text` to be read as text. What outputs hold is plain data already
    (`dpaudit.subjects.plain`): so the types are Python's, numpy's, `Failed` and `Opaque`.
    """

    def register(function: Decoder) -> Decoder:
        DECODERS.insert(0, (types, function))
        return function

    return register


@functools.cache
def decoders_of_packages() -> list[tuple[str, Decoder]]:
    """Entry points of the group "dpaudit.decoders": functions of an `Opaque`, under the name of its class."""
    return list(working_extensions(GROUP))


class Text(str):
    """A text that is read as text only: nothing in it is decoded again."""

    __slots__ = ()


class Cell(Text):
    """A short text of many, such as the cell of a table: which one it is, and the numbers in it."""

    __slots__ = ()


def token(value: Any) -> float:
    """A number for a value that is no number: equal canonical forms have equal ones.

    Examples
    --------
    >>> token("a") == token("a"), token("a") == token("b"), token({1, 2}) == token({2, 1})
    (True, False, True)
    """
    text = value if isinstance(value, str) else canonical(value)
    return float(zlib.crc32(text.encode("utf-8", "surrogatepass")))


def code(value: Any) -> float:
    """A number of an item of a mixed sequence: its own, or one in the order of texts; equal items have equal ones.

    Texts are ordered by their first five bytes; those that share these differ by chance, 1 of 8,192 pairs not at all.
    """
    if isinstance(value, NUMBERS):
        return number_of(value)
    return _code_of_text(str(value) if isinstance(value, str) else canonical(value))


@functools.lru_cache(maxsize=1 << 14)
def _code_of_text(text: str) -> float:
    written = text.encode("utf-8", "surrogatepass")
    return float(int.from_bytes(written[:5].ljust(5, b"\0")) << 13 | zlib.crc32(written) & 0x1FFF)


class Sink:
    """What a visit finds: columns of numbers, blocks of several columns, and members to look for.

    Parameters
    ----------
    wanted : set of (path, what), optional
        Columns that are read; all by default.
    paths : set of str, optional
        Paths that are visited; all by default, up to `max_paths`. Paths that lead to them are among them.
    """

    max_paths = 2_000  # a bound on the time that one look at everything takes

    def __init__(self, wanted: frozenset[Key] | None = None, paths: frozenset[str] | None = None) -> None:
        self.wanted = wanted
        self.paths = paths
        self.numbers: dict[Key, list[tuple[Rows, FloatArray]]] = {}
        self.blocks: dict[str, list[tuple[Rows, FloatArray]]] = {}
        self.members: dict[Key, list[tuple[Rows, Sequence[Iterable[str]]]]] = {}
        self.texts: dict[str, list[tuple[Rows, Sequence[str]]]] = {}
        self.parents: dict[str, str] = {"": ""}
        self.tokens: dict[float, str] = {}

    def token(self, value: Any) -> float:
        """`token` of a value; its text is kept where everything is read."""
        number = token(value)
        if self.paths is None:
            self.tokens.setdefault(number, str(value))
        return number

    def opens(self, path: str, parent: str) -> bool:
        """Whether a part is visited; notes where it is."""
        if self.paths is not None:
            return path in self.paths
        if path not in self.parents and len(self.parents) >= self.max_paths:
            return False
        self.parents.setdefault(path, parent)
        return True

    def asks(self, path: str, what: str) -> bool:
        """Whether a column is read."""
        return self.wanted is None or (path, what) in self.wanted

    def put(self, path: str, what: str, rows: Rows, numbers: Any) -> None:
        """Note a number of each of these rows."""
        if len(rows) and (self.wanted is None or (path, what) in self.wanted):
            self.numbers.setdefault((path, what), []).append((rows, np.asarray(numbers, dtype=float)))

    def put_block(self, path: str, rows: Rows, numbers: FloatArray) -> None:
        """Note several numbers of each of these rows, which have places of their own."""
        if numbers.size and self.asks(path, BLOCK):
            self.blocks.setdefault(path, []).append((rows, numbers[:, : LIMITS.max_places]))


def read_outputs_into(sink: Sink, outputs: Sequence[Any]) -> None:
    """Put what outputs hold into the sink."""
    usual = {dict, str, type(None)}  # never numbers
    kinds = set(map(type, outputs))
    if not kinds <= usual:
        outputs = [output if type(output) in usual else _as_held(output) for output in outputs]
    visit(sink, outputs, np.arange(len(outputs)))


def _as_held(output: Any) -> Any:
    """An output that a batch of its kind holds as numbers as these; else as it is."""
    numbers = single_numbers(output)
    return output if numbers is None else numbers[0].astype(float).tolist()


def visit(sink: Sink, values: Sequence[Any], rows: Rows, path: str = "", depth: int = 0) -> None:
    """Put what values hold, which stand at one path of the outputs with these row numbers, into the sink."""
    if depth > LIMITS.max_depth or not len(values):
        return
    kinds = set(map(type, values))
    if len(kinds) == 1:
        VISITS[_form(next(iter(kinds)))](sink, values, rows, path, depth)
        return
    forms = {_form(kind) for kind in kinds}
    if len(forms) == 1:
        VISITS[forms.pop()](sink, values, rows, path, depth)
        return
    groups: dict[str, list[int]] = {}
    of_kind: dict[Any, str] = {kind: _form(kind) for kind in kinds}
    for place, value in enumerate(values):
        groups.setdefault(of_kind[type(value)], []).append(place)
    for form, places in groups.items():
        VISITS[form](sink, [values[k] for k in places], rows[places], path, depth)


@functools.cache
def _form(kind: type) -> str:
    """How values of a type are visited."""
    if issubclass(kind, NUMBERS):
        return "number"
    if issubclass(kind, np.generic):
        return "scalar"
    forms: tuple[tuple[Any, str], ...] = (
        (Mapping, "mapping"), (str, "text"), (np.ndarray, "array"), ((list, tuple), "sequence"), (type(None), "none"),
    )  # fmt: skip
    return next((form for own, form in forms if issubclass(kind, own)), "other")


def put_kind(sink: Sink, rows: Rows, path: str, name: str) -> None:
    if sink.asks(path, "kind"):
        sink.put(path, "kind", rows, np.full(len(rows), sink.token(name)))


def _nones(sink: Sink, values: Sequence[Any], rows: Rows, path: str, depth: int) -> None:
    put_kind(sink, rows, path, "none")


def _scalars(sink: Sink, values: Sequence[Any], rows: Rows, path: str, depth: int) -> None:
    """Numpy's texts, complex numbers, dates and durations as Python's own."""
    own = [value.item() if isinstance(value, np.character | np.complexfloating) else plain(value) for value in values]
    visit(sink, own, rows, path, depth)


def _others(sink: Sink, values: Sequence[Any], rows: Rows, path: str, depth: int) -> None:
    for kind in dict.fromkeys(map(type, values)):
        places = [k for k, value in enumerate(values) if type(value) is kind]
        some, own = [values[k] for k in places], rows[places]
        is_set = issubclass(kind, set | frozenset)
        put_kind(sink, own, path, "set" if is_set else kind.__name__)
        if is_set and depth:
            sink.put(path, CLASS, own, np.full(len(own), sink.token(kind.__name__)))
        if issubclass(kind, Opaque | Failed):
            names = [value.token if isinstance(value, Failed) else value.kind for value in some]
            sink.put(path, CLASS, own, [sink.token(one) for one in names])
        parts = [parts_of(value) for value in some]
        if is_set:
            put_members(sink, path, MEMBERSHIP, own, [part.pop("members") for part in parts])
        _mappings_into(sink, parts, own, path, depth, is_decoded=True)


def put_members(sink: Sink, path: str, what: str, rows: Rows, members: Sequence[Iterable[str]]) -> None:
    if sink.asks(path, what):
        sink.members.setdefault((path, what), []).append((rows, members))


def parts_of(value: Any) -> dict[str, Any]:
    """The parts of a value that is neither a number, text, mapping, sequence nor array, by the decoder of its type."""
    if isinstance(value, Opaque):
        for name, function in decoders_of_packages():
            if name == value.kind:
                return dict(function(value))
    for types, function in DECODERS:
        if isinstance(value, types):
            return dict(function(value))
    return {"text": Text(canonical(value))}


def _numbers(sink: Sink, values: Sequence[Any], rows: Rows, path: str, depth: int) -> None:
    try:
        numbers = np.array(values, dtype=float)
    except OverflowError:
        numbers = np.array([number_of(value) for value in values])
    sink.put(path, "", rows, numbers)
    undefined = np.isnan(numbers)
    if undefined.any() and sink.asks(path, "NaN"):  # NaN is missing elsewhere
        sink.put(path, "NaN", rows[undefined], np.ones(int(undefined.sum())))
    kinds = set(map(type, values))
    if kinds == {float}:
        return
    if depth and sink.asks(path, CLASS):
        names = list(map(class_name, values))
        other = [k for k, name in enumerate(names) if name != "float"]
        sink.put(path, CLASS, rows[other], [sink.token(names[k]) for k in other])
    if np.any(np.abs(numbers) >= LIMITS.whole) and sink.asks(path, "remainder"):
        long = [k for k, value in enumerate(values) if _is_long(value)]
        sink.put(path, "remainder", rows[long], [float(int(values[k]) % LIMITS.modulus) for k in long])
    if np.longdouble in kinds:
        longer = [k for k, value in enumerate(values) if isinstance(value, np.longdouble) and value != float(value)]
        sink.put(path, "beyond a double", rows[longer], [float(values[k] - float(values[k])) for k in longer])


def _is_long(value: Any) -> bool:
    return isinstance(value, int | np.integer) and abs(int(value)) >= LIMITS.whole


def step_of(key: Any) -> str:
    """How a path writes the step to a key: keys that are equal as outputs are have the same one.

    Examples
    --------
    >>> step_of("a"), step_of(1) == step_of(True) == step_of(1.0), step_of("1") == step_of(1)
    ("['a']", True, False)
    """
    if type(key) is str:
        return f"[{key!r}]"
    return f"[{canonical(key).removesuffix('.0')}]"


def _mappings(sink: Sink, values: Sequence[Mapping[Any, Any]], rows: Rows, path: str, depth: int) -> None:
    put_kind(sink, rows, path, "mapping")
    sink.put(path, "length", rows, list(map(len, values)))
    visit_beside(sink, values, rows, path, depth)
    _mappings_into(sink, values, rows, path, depth)


def _mappings_into(
    sink: Sink, values: Sequence[Mapping[Any, Any]], rows: Rows, path: str, depth: int, *, is_decoded: bool = False
) -> None:
    """Put the items of mappings into the sink, key by key; the parts that a decoder names have no order."""
    forms: dict[tuple[Any, ...], list[int]] = {}
    for place, value in enumerate(values):
        forms.setdefault(tuple(value), []).append(place)
    found: dict[str, tuple[list[Any], list[Rows], list[FloatArray]]] = {}
    with_numbers: list[int] = []
    for keys, places in forms.items():
        own = rows if len(forms) == 1 else rows[places]
        some = values if len(forms) == 1 else [values[k] for k in places]
        read: set[str] = set()
        for at, key in enumerate(keys[: LIMITS.max_keys]):
            inside = f"{path} {key}" if is_decoded else path + step_of(key)
            if inside in read:  # of keys that look the same the first is read
                continue
            read.add(inside)
            items, where, order = found.setdefault(inside, ([], [], []))
            items += [value[key] for value in some]
            where.append(own)
            order.append(np.full(len(own), float(at)))
        if not is_decoded and any(type(key) is not str for key in keys):
            with_numbers += places
    for inside, (items, where, order) in found.items():
        if sink.opens(inside, path):
            own = where[0] if len(where) == 1 else np.concatenate(where)
            if not is_decoded and sink.asks(inside, "place"):
                sink.put(inside, "place", own, order[0] if len(order) == 1 else np.concatenate(order))
            visit(sink, items, own, inside, depth + 1)
    keys_path = f"{path}.keys()"
    if with_numbers and sink.opens(keys_path, path):
        several = [list(map(_bare_key, values[k]))[: LIMITS.max_keys] for k in with_numbers]
        visit(sink, several, rows[with_numbers], keys_path, depth + 1)


def _bare_key(key: Any) -> Any:
    """A key without its class: 1, 1.0 and True are one key."""
    return key if not isinstance(key, NUMBERS) or _is_long(key) else number_of(key)


def visit_beside(sink: Sink, values: Sequence[Any], rows: Rows, path: str, depth: int) -> None:
    """Visit what stands beside values that carry notes."""
    if all(type(value) in _WITHOUT_NOTES for value in values):
        return
    noted = [k for k, value in enumerate(values) if isinstance(value, Noted) and value.beside]
    inside = f"{path} beside"
    if noted and sink.opens(inside, path):
        _mappings_into(sink, [values[k].beside for k in noted], rows[noted], inside, depth + 1)


_WITHOUT_NOTES = frozenset({dict, list, tuple, str})


def _arrays(sink: Sink, values: Sequence[NDArray[Any]], rows: Rows, path: str, depth: int) -> None:
    forms: dict[tuple[Any, ...], list[int]] = {}
    for place, value in enumerate(values):
        is_block = value.dtype.kind in "bf" or (value.dtype.kind in "iu" and not _is_long_array(value))
        forms.setdefault((is_block, value.shape, value.dtype.str if value.ndim and value.size else ""), []).append(
            place
        )
    for (is_block, shape, dtype), places in forms.items():
        own, some = rows[places], [values[k] for k in places]
        if not is_block or not shape or not some[0].size:
            own_values = [plain(one) for one in some]
            visit(sink, own_values, own, path, depth + 1)
        else:
            put_kind(sink, own, path, "sequence")
            sink.put(path, "length", own, np.full(len(own), float(shape[0])))
            if len(shape) > 1:
                sink.put(path, "shape", own, np.full(len(own), sink.token(shape)))
            sink.put_block(path, own, np.stack([one.ravel() for one in some]).astype(float))
        if dtype:
            sink.put(path, "dtype", own, np.full(len(own), sink.token(dtype)))


def _is_long_array(value: NDArray[Any]) -> bool:
    return value.dtype.itemsize >= 8 and bool(np.any(np.abs(value.astype(float)) >= LIMITS.whole))


def _sequences(sink: Sink, values: Sequence[Sequence[Any]], rows: Rows, path: str, depth: int) -> None:
    put_kind(sink, rows, path, "sequence")
    sink.put(path, "length", rows, list(map(len, values)))
    visit_beside(sink, values, rows, path, depth)
    if sink.asks(path, CLASS):
        named = [(k, name) for k, value in enumerate(values) if (name := _class_of(value))]
        sink.put(path, CLASS, rows[[k for k, _ in named]], [sink.token(name) for _, name in named])
    others = _put_blocks(sink, values, rows, path)
    if others:
        _items(sink, [values[k] for k in others], rows[others], path, depth)


def _class_of(value: Sequence[Any]) -> str:
    """The class of a sequence and those of its items; "" for a list of floats, and where there is no item."""
    kinds = set(map(type, value))
    if not kinds or (kinds == {float} and isinstance(value, list)):
        return ""
    name = "list" if isinstance(value, list) else "tuple"
    return f"{name} of {class_names(value[: LIMITS.max_places])}"


@functools.cache
def _are_numbers(kinds: frozenset[type]) -> bool:
    return all(kind is type(None) or issubclass(kind, NUMBERS) for kind in kinds)


def _put_blocks(sink: Sink, values: Sequence[Sequence[Any]], rows: Rows, path: str) -> list[int]:
    """Put the sequences of numbers, of which some may be None, as blocks; the positions of those that hold more."""
    others: list[int] = []
    of_length: dict[int, list[int]] = {}
    for place, value in enumerate(values):
        if not _are_numbers(frozenset(map(type, value))):
            others.append(place)
        elif len(value):
            of_length.setdefault(len(value), []).append(place)
    for places in of_length.values():
        some = [values[k][: LIMITS.max_places] for k in places]
        try:
            block = np.array(some, dtype=float)
            large = np.any(np.abs(block) >= LIMITS.whole, axis=1)
        except OverflowError:  # an integer beyond all doubles
            large, block = np.ones(len(some), dtype=bool), np.zeros((len(some), 1))
        if large.any():
            is_long = [bool(large[k]) and any(map(_is_long, some[k])) for k in range(len(some))]
            others += [place for place, long in zip(places, is_long, strict=True) if long]
            keep = [k for k, long in enumerate(is_long) if not long]
            if keep:
                sink.put_block(path, rows[[places[k] for k in keep]], np.array([some[k] for k in keep], dtype=float))
        else:
            sink.put_block(path, rows[places], block)
    return sorted(others)


def _items(sink: Sink, values: Sequence[Sequence[Any]], rows: Rows, path: str, depth: int) -> None:
    """Sequences that hold more than numbers: items one by one, records column by column, and what occurs how often."""
    values, rows = _rectangles(sink, values, rows, path)
    if not values:
        return
    for at in range(min(max(map(len, values)), LIMITS.max_items)):
        inside = f"{path}[{at}]"
        if sink.opens(inside, path):
            has = [k for k, value in enumerate(values) if len(value) > at]
            visit(sink, [values[k][at] for k in has], rows[has], inside, depth + 1)
    inside = f"{path}[:]"
    if not sink.opens(inside, path):
        return
    columns: list[dict[str, list[Any]] | None] = [_columns_of(value) for value in values]
    tables = [k for k, one in enumerate(columns) if one is not None]
    of_step: dict[str, tuple[list[int], list[list[Any]]]] = {}
    for k in tables:
        for step, cells in (columns[k] or {}).items():
            where, several = of_step.setdefault(step, ([], []))
            where.append(k)
            several.append(cells)
    for step, (where, several) in of_step.items():
        if sink.opens(inside + step, inside):
            _wholes(sink, several, rows[where], inside + step)
    rest = [k for k, one in enumerate(columns) if one is None and _is_series(values[k])]
    if rest:
        _wholes(sink, [values[k] for k in rest], rows[rest], inside)
    if tables:
        shapes.read_edges(sink, [values[k] for k in tables], rows[tables], path)


def _columns_of(value: Sequence[Any]) -> dict[str, list[Any]] | None:
    """The columns of a sequence of mappings, or of sequences, by their steps; None of other ones, and of one row."""
    forms = {_form(kind) for kind in set(map(type, value))}
    if len(value) < 2 or len(forms) > 1:
        return None
    if forms == {"mapping"}:
        names = list(dict.fromkeys(key for row in value for key in row))[: LIMITS.max_columns]
        return {step_of(name): [row.get(name) for row in value] for name in names}
    if forms == {"sequence"}:
        width = min(max(map(len, value)), LIMITS.max_columns)
        return {f"[{k}]": [row[k] if k < len(row) else None for row in value] for k in range(width)}
    return None


def _is_series(value: Sequence[Any]) -> bool:
    """Whether items are of one form, None aside, or too many for the fields of a record."""
    return len(value) > 1 and (
        len({_form(kind) for kind in set(map(type, value))} - {"none"}) == 1 or len(value) > LIMITS.max_columns
    )


def _wholes(sink: Sink, values: Sequence[Sequence[Any]], rows: Rows, path: str) -> None:
    """Sequences as a whole: numbers as a block; of others a code of each item, and how often each occurs."""
    others = _put_blocks(sink, values, rows, path)
    if others:
        some, own = [values[k][: LIMITS.max_places] for k in others], rows[others]
        if sink.asks(path, COUNT):
            names = [[item if isinstance(item, str) else canonical(item) for item in value] for value in some]
            put_members(sink, path, COUNT, own, names)
        if sink.asks(path, BLOCK):
            for length in dict.fromkeys(map(len, some)):
                places = [k for k, value in enumerate(some) if len(value) == length]
                sink.put_block(path, own[places], np.array([list(map(code, some[k])) for k in places]))


def _rectangles(
    sink: Sink, values: Sequence[Sequence[Any]], rows: Rows, path: str
) -> tuple[Sequence[Sequence[Any]], Rows]:
    """Put rectangles of numbers as one block each; the other sequences with their rows."""
    found: dict[tuple[int, ...], tuple[list[int], list[FloatArray]]] = {}
    rest, names = [], []
    for k, value in enumerate(values):
        rectangle = _rectangle(value)
        if rectangle is None:
            rest.append(k)
        else:
            names.append((k, rectangle[1]))
            places, blocks = found.setdefault(rectangle[0].shape, ([], []))
            places.append(k)
            blocks.append(rectangle[0])
    for shape, (places, blocks) in found.items():
        own, block = rows[places], np.stack(blocks)
        sink.put(path, "shape", own, np.full(len(own), sink.token(shape)))
        sink.put_block(path, own, block.reshape(len(own), -1))
        if len(shape) == 2:
            shapes.read_points(sink, block, own, path)
            shapes.read_edges(sink, [values[k] for k in places], own, path)
    inner = [(k, name) for k, name in names if name]
    sink.put(path, "classes inside", rows[[k for k, _ in inner]], [sink.token(name) for _, name in inner])
    return ([values[k] for k in rest], rows[rest]) if found else (values, rows)


def _rectangle(value: Sequence[Any]) -> tuple[FloatArray, str] | None:
    """Nested sequences of equally many numbers, and the classes in them ("" for lists of floats); None of others."""
    level: list[Any] = list(value)
    shape, names = [len(level)], []
    while level and type(level[0]) in (list, tuple) and set(map(type, level)) <= {list, tuple}:
        lengths = set(map(len, level))
        if len(lengths) > 1 or 0 in lengths:
            return None
        shape.append(lengths.pop())
        level = list(itertools.chain.from_iterable(level))
        kinds = set(map(type, level))
        if kinds != {float} and kinds != {list}:
            names.append(class_names(level))
    if len(shape) < 2 or not _are_numbers(frozenset(map(type, level))):
        return None
    try:
        block = np.array(level, dtype=float)
    except OverflowError:
        return None
    if np.any(np.abs(block) >= LIMITS.whole) and any(map(_is_long, level)):
        return None
    return block.reshape(shape), "; ".join(names)


Visit = Callable[[Sink, Sequence[Any], Rows, str, int], None]
VISITS: dict[str, Visit] = {  # "text" is added by `dpaudit.features.texts`, whose decoders visit
    "number": _numbers, "scalar": _scalars, "mapping": _mappings, "array": _arrays,
    "sequence": _sequences, "none": _nones, "other": _others,
}  # fmt: skip
