"""Visitor: the numbers and tokens that outputs hold, by their paths, many outputs at a time.

A value is looked at by a function of its type (`dpaudit.features.decoders`, `dpaudit.features.texts`), which names its
parts; parts are visited in turn. Values at one path are visited together, so that the cost of a step is shared.

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
import io
import itertools
import pickle
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.features import shapes, texts
from dpaudit.features.decoders import NUMBERS, Cell, code, parts_of, token
from dpaudit.features.forms import class_name, class_names
from dpaudit.features.outcomes import canonical, number_of, plain, single_numbers
from dpaudit.features.unread import LIMITS
from dpaudit.features.whole_numbers import WHOLE_FROM
from dpaudit.privacy.claims import FloatArray
from dpaudit.subjects.call_outcomes import Failed, Noted, Opaque

Rows = NDArray[np.intp]
Key = tuple[str, str]
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

INTEGERS = (int, np.integer)
WITHOUT_INTEGERS, NESTED = {float, bool, type(None)}, {list, tuple}
OFTEN, MAX_SELDOM = 16, 16  # of names of parts: see `_usual`
LETTERS_AT_ONCE = 1 << 20  # characters that are looked at together: each takes 40 bytes
CLASS, BLOCK, COUNT, MEMBERSHIP, WORD = "class", "block", "count", "membership", "word"
MEMBERS = (COUNT, MEMBERSHIP, WORD)


def apart(values: Sequence[T], rows: Rows, keys: Iterable[K]) -> Iterator[tuple[K, Sequence[T], Rows]]:
    """Values with their rows, those of one key together, in the order in which keys come first."""
    keys = list(keys)
    if len(set(keys)) == 1:  # the usual case, faster
        yield keys[0], values, rows
        return
    places: dict[K, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    for key, some in places.items():
        yield key, [values[k] for k in some], rows[some]


class Sink:
    """Findings of a visit, by path and what is read there: with the rows that each is of.

    Of most a number of each row; of `BLOCK` several numbers, which have places of their own; of `MEMBERS` an iterable
    of texts to look for.

    Parameters
    ----------
    wanted : set of (path, what), optional
        Columns that are read; all by default.
    paths : set of str, optional
        Paths that are visited, with all their parents; all paths by default, up to `max_paths`.
    """

    max_paths = 2_000  # a bound on the time that one look at everything takes

    def __init__(self, wanted: frozenset[Key] | None = None, paths: frozenset[str] | None = None) -> None:
        self.wanted = wanted
        self.paths = paths
        self.found: dict[Key, list[tuple[Rows, Any]]] = {}
        self.parents: dict[str, str] = {"": ""}
        self.tokens: dict[float, str] = {}

    def token(self, value: Any) -> float:
        """`token` of a value; its text is kept where everything is read."""
        number = token(value)
        if self.paths is None:
            self.tokens.setdefault(number, str(value))
        return number

    def opens(self, path: str, parent: str) -> bool:
        """Tell whether a part is visited; notes where it is."""
        if self.paths is not None:
            return path in self.paths
        if path not in self.parents and len(self.parents) >= self.max_paths:
            return False
        self.parents.setdefault(path, parent)
        return True

    def asks(self, path: str, what: str) -> bool:
        """Tell whether a column is read."""
        return self.wanted is None or (path, what) in self.wanted

    def put(self, path: str, what: str, rows: Rows, values: Any) -> None:
        """Note what is read of each of these rows; one number may be that of all."""
        if len(rows) and self.asks(path, what):
            if what not in MEMBERS:
                values = np.broadcast_to(np.asarray(values, dtype=float), len(rows))
            self.found.setdefault((path, what), []).append((rows, values))

    def put_block(self, path: str, rows: Rows, numbers: FloatArray) -> None:
        """Note several numbers of each of these rows, which have places of their own."""
        if numbers.size and self.asks(path, BLOCK):
            self.found.setdefault((path, BLOCK), []).append((rows, numbers[:, : LIMITS.max_places]))

    def put_names(self, path: str, what: str, rows: Rows, names: Any) -> None:
        """Note the tokens of a list with the name of each of these rows, or of the one name of all."""
        if len(rows) and self.asks(path, what):
            self.put(path, what, rows, list(map(self.token, names)) if type(names) is list else self.token(names))


def read_outputs_into(sink: Sink, outputs: Sequence[Any]) -> None:
    """Put what outputs hold into the sink; those that a batch of their kind holds as numbers are read as these."""
    if not {dict, str} >= set(map(type, outputs)):  # these never are numbers: the usual case, faster
        several = zip(outputs, map(single_numbers, outputs), strict=True)
        outputs = [one if numbers is None else numbers[0].astype(float).tolist() for one, numbers in several]
    visit(sink, outputs, np.arange(len(outputs)))


def visit(sink: Sink, values: Sequence[Any], rows: Rows, path: str = "", depth: int = 0) -> None:
    """Put what values hold, which stand at one path of the outputs with these row numbers, into the sink."""
    if depth <= LIMITS.max_depth:
        for form, some, own in apart(values, rows, map(_form, map(type, values))):
            VISITS[form](sink, some, own, path, depth)


@functools.cache
def _form(kind: Any) -> str:
    """Form in which values of a type are visited."""
    forms: tuple[tuple[Any, str], ...] = (
        (NUMBERS, "number"), (np.generic, "scalar"), (Mapping, "mapping"), (str, "text"), (np.ndarray, "array"),
        ((list, tuple), "sequence"), (type(None), "none"),
    )  # fmt: skip
    return next((form for own, form in forms if issubclass(kind, own)), "other")


def _scalars(sink: Sink, values: Sequence[Any], rows: Rows, path: str, depth: int) -> None:
    """Numpy's texts, complex numbers, dates and durations as Python's own."""
    if depth:
        sink.put_names(path, "type", rows, list(map(class_name, values)))
    own = [value.item() if isinstance(value, np.character | np.complexfloating) else plain(value) for value in values]
    visit(sink, own, rows, path, depth)


def _others(sink: Sink, values: Sequence[Any], rows: Rows, path: str, depth: int) -> None:
    visit_beside(sink, values, rows, path, depth)
    for kind, some, own in apart(values, rows, map(type, values)):
        is_set = issubclass(kind, set | frozenset)
        sink.put_names(path, "kind", own, "set" if is_set else kind.__name__.removeprefix("Noted").lower())
        if is_set:
            sink.put_names(path, CLASS, own, "frozenset" if issubclass(kind, frozenset) else "set")
        if issubclass(kind, Opaque | Failed):
            names = [value.token if isinstance(value, Failed) else value.kind for value in some]
            sink.put_names(path, CLASS, own, names)
        parts = [parts_of(value) for value in some]
        if is_set:
            members = [part.pop("members") for part in parts]
            sink.put(path, MEMBERSHIP, own, members)
            often = Counter(itertools.chain.from_iterable(members))
            inside = f"{path} sorted"
            if len(_usual(sink, often, len(own))) < len(often) and sink.opens(inside, path):
                ordered = [sorted(item for item in value if isinstance(item, str)) for value in some]
                visit(sink, ordered, own, inside, depth + 1)
        _items_of_mappings(sink, parts, own, path, depth, is_decoded=True)


def _numbers(sink: Sink, values: Sequence[Any], rows: Rows, path: str, depth: int) -> None:
    try:
        numbers = np.array(values, dtype=float)
    except OverflowError:
        numbers = np.array([number_of(value) for value in values])
    sink.put(path, "", rows, numbers)
    sink.put(path, "NaN", rows[np.isnan(numbers)], 1.0)  # NaN is missing elsewhere
    sink.put(path, "-0.0", rows[(numbers == 0.0) & np.signbit(numbers)], 1.0)  # which equals 0.0
    kinds = set(map(type, values))
    if kinds == {float}:
        return
    visit_beside(sink, values, rows, path, depth)
    if depth and sink.asks(path, CLASS):
        names = list(map(class_name, values))
        other = [k for k, name in enumerate(names) if name != "float"]
        sink.put_names(path, CLASS, rows[other], [names[k] for k in other])
    if np.any(np.abs(numbers) >= WHOLE_FROM):
        long = [k for k, value in enumerate(values) if _is_long(value)]
        sink.put(path, "remainder", rows[long], [float(int(values[k]) % LIMITS.modulus) for k in long])
    if np.longdouble in kinds:
        longer = [k for k, value in enumerate(values) if isinstance(value, np.longdouble) and value != float(value)]
        sink.put(path, "beyond a double", rows[longer], [float(values[k] - float(values[k])) for k in longer])


def _is_more(value: Any) -> bool:
    """Tell whether a number is more than a double with the name of a class."""
    return _is_long(value) or (isinstance(value, Noted) and value.is_more)


def _is_long(value: Any) -> bool:
    if type(value) is int:  # the usual case, faster
        return not -WHOLE_FROM < value < WHOLE_FROM
    return isinstance(value, INTEGERS) and abs(int(value)) >= WHOLE_FROM


def step_of(key: Any) -> str:
    """Step to a key as a path writes it: keys that are equal as outputs are have the same one.

    Examples
    --------
    >>> step_of("a"), step_of(1) == step_of(True) == step_of(1.0), step_of("1") == step_of(1)
    ("['a']", True, False)
    """
    return f"[{key!r}]" if type(key) is str else f"[{canonical(key).removesuffix('.0')}]"


def _mappings(sink: Sink, values: Sequence[Mapping[Any, Any]], rows: Rows, path: str, depth: int) -> None:
    sink.put_names(path, "kind", rows, "mapping")
    sink.put(path, "length", rows, list(map(len, values)))
    visit_beside(sink, values, rows, path, depth)
    _items_of_mappings(sink, values, rows, path, depth)


def _items_of_mappings(
    sink: Sink, values: Sequence[Mapping[Any, Any]], rows: Rows, path: str, depth: int, *, is_decoded: bool = False
) -> None:
    """Put the items of mappings into the sink, key by key; the parts that a decoder names have no order."""
    found: dict[str, list[tuple[list[Any], Rows, int]]] = {}
    numbered: list[tuple[Sequence[Mapping[Any, Any]], Rows]] = []
    for keys, some, own in apart(values, rows, map(tuple, values)):
        read: dict[str, tuple[int, Any]] = {}  # of keys that look the same the first is read
        for at, key in enumerate(keys[: LIMITS.max_parts]):
            read.setdefault(f"{path} {key}" if is_decoded else path + step_of(key), (at, key))
        for inside, (at, key) in read.items():
            found.setdefault(inside, []).append(([value[key] for value in some], own, at))
        if not is_decoded and not all(type(key) is str for key in keys):
            numbered.append((some, own))
    often = {inside: sum(len(own) for _, own, _ in parts) for inside, parts in found.items()}
    usual = set(found) if is_decoded else _usual(sink, often, len(rows))
    opened = [inside for inside in found if inside in usual and sink.opens(inside, path)]
    for inside in opened:
        parts = found[inside]
        own = np.concatenate([where for _, where, _ in parts])
        if not is_decoded:
            sink.put(inside, "place", own, np.repeat([at for *_, at in parts], [len(one) for one, *_ in parts]))
        visit(sink, list(itertools.chain.from_iterable(items for items, *_ in parts)), own, inside, depth + 1)
    inside = f"{path}.items()"
    changing = [k for k, value in enumerate(values) if isinstance(value, dict)] if len(usual) < len(found) else []
    if changing and sink.opens(inside, path):
        several = [[[_bare_key(key), item] for key, item in values[k].items()] for k in changing]
        visit(sink, several, rows[changing], inside, depth + 1)
    inside = f"{path}.keys()"
    if numbered and sink.opens(inside, path):
        several = [
            [_bare_key(key) for key in itertools.islice(value, LIMITS.max_parts)]
            for some, _ in numbered
            for value in some
        ]
        visit(sink, several, np.concatenate([own for _, own in numbered]), inside, depth + 1)


def _usual(sink: Sink, often: Mapping[str, int], size: int) -> set[str]:
    """Names under which parts are read, of those that so many outputs have: the rest change from output to output.

    Where everything is read, these are the names of 1 in `OFTEN` outputs, and the `MAX_SELDOM` that come next. What is
    read later are those that were found then.
    """
    if sink.paths is not None:
        return set(often) & sink.paths
    seldom = [name for name, count in often.items() if count * OFTEN < size]
    seldom.sort(key=lambda name: -often[name])
    return set(often) - set(seldom[MAX_SELDOM:]) - {name for name in seldom if often[name] < 2}


def _bare_key(key: Any) -> Any:
    """A key without its class: 1, 1.0 and True are one key."""
    return key if not isinstance(key, NUMBERS) or _is_long(key) else number_of(key)


def visit_beside(sink: Sink, values: Sequence[Any], rows: Rows, path: str, depth: int) -> None:
    """Visit what stands beside values that carry notes; where all have the same nothing is there to choose from."""
    noted = [k for k, value in enumerate(values) if isinstance(value, Noted | Opaque) and value.beside]
    inside = f"{path} beside"
    if noted and sink.opens(inside, path):
        beside = [values[k].beside for k in noted]
        if sink.paths is None and 1 < len(noted) == len(values) and len(set(map(_bytes_of, beside))) == 1:
            return
        _items_of_mappings(sink, beside, rows[noted], inside, depth + 1)


def _bytes_of(beside: Mapping[str, Any]) -> bytes:
    """Bytes that equal notes share, whether or not their parts are one object: those of a worker are copies."""
    content = io.BytesIO()
    writer = pickle.Pickler(content)
    writer.fast = True
    writer.dump(beside)
    return content.getvalue()


def _arrays(sink: Sink, values: Sequence[NDArray[Any]], rows: Rows, path: str, depth: int) -> None:
    visit_beside(sink, values, rows, path, depth)
    keys = [(_is_block(value), value.shape, value.dtype.str if value.size else "") for value in values]
    for (is_block, shape, dtype), some, own in apart(values, rows, keys):
        if not is_block:
            visit(sink, [plain(one) for one in some], own, path, depth + 1)
        else:
            sink.put_names(path, "kind", own, "sequence")
            sink.put(path, "length", own, shape[0])
            if len(shape) > 1:
                sink.put_names(path, "shape", own, shape)
            sink.put_block(path, own, np.stack([one.ravel() for one in some]).astype(float))
        if dtype:
            sink.put_names(path, "dtype", own, dtype if shape else f"{dtype} of no dimension")


def _is_block(value: NDArray[Any]) -> bool:
    """Tell whether an array is one of numbers that are doubles."""
    is_short = value.dtype.kind in "bf" or (value.dtype.kind in "iu" and value.dtype.itemsize < 8)
    is_short = is_short or (value.dtype.kind in "iu" and not np.any(np.abs(value.astype(float)) >= WHOLE_FROM))
    return bool(value.ndim and value.size and is_short)


def _sequences(sink: Sink, values: Sequence[Sequence[Any]], rows: Rows, path: str, depth: int) -> None:
    sink.put_names(path, "kind", rows, "sequence")
    sink.put(path, "length", rows, list(map(len, values)))
    visit_beside(sink, values, rows, path, depth)
    if sink.asks(path, CLASS):
        named = [(k, name) for k, value in enumerate(values) if (name := _class_of(value))]
        sink.put_names(path, CLASS, rows[[k for k, _ in named]], [name for _, name in named])
    values, rows = _put_blocks(sink, values, rows, path)
    if len(values):
        _items(sink, values, rows, path, depth)


def _class_of(value: Sequence[Any]) -> str:
    """The class of a sequence and those of its items; "" for a list of floats, and where there is no item."""
    kinds = set(map(type, value))
    if not kinds or (kinds == {float} and isinstance(value, list)):
        return ""
    return f"{'list' if isinstance(value, list) else 'tuple'} of {class_names(value[: LIMITS.max_places])}"


def _put_blocks(
    sink: Sink, values: Sequence[Sequence[Any]], rows: Rows, path: str, *, are_flat: bool = False
) -> tuple[Sequence[Any], Rows]:
    """Put sequences of numbers, and rectangles of them, as a block each; the other sequences with their rows."""
    with_classes = sink.asks(path, "classes inside")
    flat = [_flattened(value, are_flat, with_classes) for value in values]
    rest: tuple[Sequence[Any], Rows] = [], rows[:0]
    for shape, places, own in apart(range(len(values)), rows, [one and one[0] for one in flat]):
        sequences = [values[k] for k in places]
        if shape is None:
            rest = sequences, own
            continue
        _, levels, names = zip(*[one for k in places if (one := flat[k])], strict=True)
        sink.put_block(path, own, block := np.array(levels, dtype=float))
        if len(shape) > 1:
            sink.put_names(path, "shape", own, shape)
            named = [k for k, name in enumerate(names) if name]
            sink.put_names(path, "classes inside", own[named], [names[k] for k in named])
        if len(shape) == 2:
            shapes.read_points(sink, block.reshape(-1, *shape), own, path)
            shapes.read_edges(sink, sequences, own, path)
    return rest


def _flattened(
    value: Sequence[Any], is_flat: bool, with_classes: bool
) -> tuple[tuple[int, ...], Sequence[Any], str] | None:
    """Numbers, of which some may be None, or nested sequences of equally many, in one list with their shape.

    Behind them the classes inside, "" for lists of floats. None for what holds more, integers that are no doubles too.
    """
    level = value[: LIMITS.max_places]
    kinds = frozenset(map(type, level))
    shape: tuple[int, ...] = (len(level),)
    names: list[str] = []
    while not is_flat and kinds and kinds <= NESTED:
        lengths = set(map(len, level))
        if len(lengths) > 1 or 0 in lengths:
            return None
        shape += (lengths.pop(),)
        level = list(itertools.chain.from_iterable(level))
        kinds = frozenset(map(type, level))
        if with_classes and kinds != {float} and kinds != {list}:
            names.append(class_names(level))
    if not _are_numbers(kinds) or (not kinds <= WITHOUT_INTEGERS and any(map(_is_more, level))):
        return None
    return shape, level, "; ".join(names)


@functools.cache
def _are_numbers(kinds: frozenset[type]) -> bool:
    return all(kind is type(None) or issubclass(kind, NUMBERS) for kind in kinds)


def _items(sink: Sink, values: Sequence[Sequence[Any]], rows: Rows, path: str, depth: int) -> None:
    """Sequences that hold more than numbers: items one by one, records column by column, and what occurs how often."""
    for at in range(min(max(map(len, values)), LIMITS.max_items)):
        inside = f"{path}[{at}]"
        if sink.opens(inside, path):
            has = [k for k, value in enumerate(values) if len(value) > at]
            visit(sink, [values[k][at] for k in has], rows[has], inside, depth + 1)
    inside = f"{path}[:]"
    if not sink.opens(inside, path):
        return
    columns: list[dict[str, list[Any]]] = [_columns_of(value) for value in values]
    often = Counter(inside + step for one in columns for step in one)
    usual = _usual(sink, often, len(values))
    for step in dict.fromkeys(itertools.chain.from_iterable(columns)):
        if inside + step in usual and sink.opens(inside + step, inside):
            has = [k for k, one in enumerate(columns) if step in one]
            _wholes(sink, [columns[k][step] for k in has], rows[has], inside + step)
    _by_names(sink, map(_named, columns), np.arange(len(values)), rows, path, depth)
    rest = [k for k, one in enumerate(columns) if not one and _is_series(values[k])]
    _wholes(sink, [values[k] for k in rest], rows[rest], inside)
    tables = [k for k, one in enumerate(columns) if one]
    if tables:
        shapes.read_edges(sink, [values[k] for k in tables], rows[tables], path)


def _columns_of(value: Sequence[Any]) -> dict[str, list[Any]]:
    """The columns of a sequence of mappings, or of sequences, by their steps; none of other ones, and of one row."""
    forms = set(map(_form, map(type, value)))
    if len(value) < 2 or len(forms) > 1:
        return {}
    if forms == {"mapping"}:
        names = list(dict.fromkeys(key for row in value for key in row))[: LIMITS.max_columns]
        return {step_of(name): [row.get(name) for row in value] for name in names}
    if forms == {"sequence"}:
        width = min(max(map(len, value)), LIMITS.max_columns)
        return {f"[{k}]": [row[k] if k < len(row) else None for row in value] for k in range(width)}
    return {}


def _named(columns: Mapping[str, list[Any]]) -> dict[Any, Any] | None:
    """The rows of a table by their names, where its first column has a name of each."""
    first, *others = columns.values() or [[]]
    if not others or not all(type(name) in (str, int) for name in first) or len(set(first)) < len(first):
        return None
    return dict(zip(first, others[0] if len(others) == 1 else zip(*others, strict=True), strict=True))


def _by_names(
    sink: Sink, named: Iterable[dict[Any, Any] | None], which: NDArray[np.intp], rows: Rows, path: str, depth: int
) -> None:
    """Visit what stands behind names as mappings, where the names are not always the same in one order."""
    inside = f"{path} by name"
    if sink.paths is None or inside in sink.paths:
        found = [MappingProxyType(one) if one else None for one in named]
        if (sink.paths is not None or len({tuple(one) for one in found if one}) > 1) and sink.opens(inside, path):
            _visit_some(sink, found, which, rows, inside, depth)


def _is_series(value: Sequence[Any]) -> bool:
    """Tell whether items are of one form, None aside, or too many for the fields of a record."""
    forms = set(map(_form, map(type, value))) - {"none"}
    return len(value) > 1 and (len(forms) == 1 or len(value) > LIMITS.max_columns)


def _wholes(sink: Sink, values: Sequence[Sequence[Any]], rows: Rows, path: str) -> None:
    """Sequences as a whole: numbers as a block; of others a code of each item, and how often each occurs."""
    values, rows = _put_blocks(sink, values, rows, path, are_flat=True)
    values = [value[: LIMITS.max_places] for value in values]
    if sink.asks(path, MEMBERSHIP) or sink.asks(path, COUNT):
        names = [[item if isinstance(item, str) else canonical(item) for item in value] for value in values]
        sink.put(path, MEMBERSHIP, rows, list(map(set, names)))
        sink.put(path, COUNT, rows, names)
    if sink.asks(path, BLOCK):
        for _, some, own in apart(values, rows, map(len, values)):
            sink.put_block(path, own, np.array([list(map(code, value)) for value in some]))


def _texts(sink: Sink, values: Sequence[str], rows: Rows, path: str, depth: int) -> None:
    """Texts, each distinct one of which is looked at once: what is read of it is a function of the text alone."""
    sink.put_names(path, "kind", rows, "text")
    visit_beside(sink, values, rows, path, depth)
    known: dict[tuple[type, str], int] = {}
    which = np.array([known.setdefault((type(value), value), len(known)) for value in values], dtype=np.intp)
    ours = [texts.without_bits(value) for _, value in known]
    sink.put(path, "length", rows, np.array(list(map(len, ours)), dtype=float)[which])
    if sink.asks(path, "category"):
        sink.put(path, "category", rows, np.array(list(map(sink.token, ours)))[which])
    if sink.asks(path, "form"):  # a text without its numbers, where it has any
        forms = [texts.NUMBER.sub("#", one[: LIMITS.max_text]) for one in ours]
        has = np.array([form != one and not isinstance(one, Cell) for form, one in zip(forms, ours, strict=True)])
        sink.put(path, "form", rows[has[which]], np.array(list(map(sink.token, forms)))[which[has[which]]])
    inside = f"{path}, number"
    if sink.opens(inside, path):
        found = [list(map(float, texts.NUMBER.findall(one[: LIMITS.max_text]))) or None for one in ours]
        _visit_some(sink, found, which, rows, inside, depth)
    rich = np.array([len(one) > 1 and not isinstance(one, Cell) for one in ours])  # one letter is its category
    if not rich.any():
        return
    rows, which = rows[rich[which]], (np.cumsum(rich) - 1)[which[rich[which]]]
    ours = [one for one, is_rich in zip(ours, rich.tolist(), strict=True) if is_rich]
    if sink.asks(path, WORD) or sink.asks(path, COUNT):
        words = [texts.LETTERS.findall(one[: LIMITS.max_text]) for one in ours]
        sink.put(path, WORD, rows, [set(words[k]) for k in which.tolist()])
        sink.put(path, COUNT, rows, [words[k] for k in which.tolist()])
    _letters(sink, ours, which, rows, path)
    _by_names(sink, map(texts.named_numbers, ours), which, rows, path, depth)
    decoded: dict[str, list[Any]] = {}
    if sink.paths is not None and not any(f"{path} as {name}" in sink.paths for name in texts.TEXTS):
        return
    for k, one in enumerate(ours):
        name, value = texts.decoded(one)
        if name and sink.opens(f"{path} as {name}", path):
            decoded.setdefault(name, [None] * len(ours))[k] = value
    for name, parts in decoded.items():
        _visit_some(sink, parts, which, rows, f"{path} as {name}", depth)


def _visit_some(sink: Sink, parts: Sequence[Any], which: NDArray[np.intp], rows: Rows, inside: str, depth: int) -> None:
    has = np.array([part is not None for part in parts])[which]
    if has.any():
        visit(sink, [parts[k] for k in which[has].tolist()], rows[has], inside, depth + 1)


def _letters(sink: Sink, ours: Sequence[str], which: NDArray[np.intp], rows: Rows, path: str) -> None:
    """Put the first characters of texts, each at its place, and how many are of each kind."""
    first, counted = f"{path}, character", f"{path}, characters of a kind"
    asked = [inside for inside in (first, counted) if sink.opens(inside, path) and sink.asks(inside, BLOCK)]
    if not asked:
        return
    width = min(max(map(len, ours)), LIMITS.max_parts)
    chunk = max(1, LETTERS_AT_ONCE // LIMITS.max_text)
    parts = [_letters_of(ours[k : k + chunk], width) for k in range(0, len(ours), chunk)]
    letters, counts = (np.concatenate(each) for each in zip(*parts, strict=True))
    if first in asked:
        sink.put_block(first, rows, letters[which])
    if counted in asked:
        sink.put_block(counted, rows, counts[which])


def _letters_of(ours: Sequence[str], width: int) -> tuple[FloatArray, FloatArray]:
    """The first characters of texts, shape (texts, width), NaN behind the last; how many are of each kind."""
    starts = [one[: LIMITS.max_text] for one in ours]
    lengths = np.array(list(map(len, starts)))
    codes = np.frombuffer("".join(starts).encode("utf-32-le", "surrogatepass"), "<u4")
    begins = np.cumsum(lengths) - lengths
    places = begins[:, None] + np.arange(width)
    known = np.arange(width) < lengths[:, None]
    letters = np.where(known, codes[np.minimum(places, len(codes) - 1)], np.nan)
    kinds = texts.kinds_of_characters()[np.minimum(codes, 0xFFFF)]
    return letters, np.add.reduceat(kinds, begins, axis=0)


Visit = Callable[[Sink, Sequence[Any], Rows, str, int], None]
VISITS: dict[str, Visit] = {
    "number": _numbers, "scalar": _scalars, "mapping": _mappings, "text": _texts, "array": _arrays,
    "sequence": _sequences, "other": _others,
    "none": lambda sink, _, rows, path, __: sink.put_names(path, "kind", rows, "none"),
}  # fmt: skip
