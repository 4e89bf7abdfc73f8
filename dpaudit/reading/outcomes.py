"""Outputs of a mechanism as the bettor reads them: numbers where they are numbers, canonical tokens for anything else.

Validity: every output is read by itself. A batch is held as numbers where all its outputs are numbers, and as objects
otherwise, but what a rule sees of an output must not depend on the others in its batch: then a mechanism that mixes
numbers and text would be told from itself by how its batches fell. So both forms give the same numbers (`as_numbers`)
and the same tokens (`as_objects`) for the same output, and reading is post-processing of single outputs, which cannot
make a sound mechanism look unsound.

Conventions
-----------
* `Outcomes.numbers` has shape (draws, columns): the output itself for numeric arrays (booleans and integers included,
  flattened behind the batch axis), and a few numeric features otherwise (see `OBJECT_COLUMNS`).
* `Outcomes.tokens` has shape (draws,): canonical strings, one per output, or None for numeric arrays, where they are
  made on demand. Numbers are equal by value (1, 1.0 and True are one token; 0.0 and -0.0 are two; NaN is one), lists,
  tuples and arrays by their contents, sets and dictionaries without order. An object's address never enters.
* What another library made is read by what it holds, as `dpaudit.subjects.foreign` says.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import itertools
import math
import numbers
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import SubjectError
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.whole_numbers import WHOLE_FROM, are_integers
from dpaudit.subjects.call_outcomes import Failed, Noted, Opaque
from dpaudit.subjects.foreign import OWN, attributes_of, own
from dpaudit.subjects.plain import ADDRESS, Seen, seen

OBJECT_COLUMNS = ("value of a number", "length", "first number", "last number")
EXACT = (float, int, bool)  # the types that most numbers come in
NO_NUMBERS = (str, dict, list, tuple, type(None))  # those of most that are none
AS_IT_IS = OWN - {np.ndarray, np.float64}  # Python's own
DEEPEST = 40  # levels of nesting that a token shows
ALWAYS_EXACT = frozenset({float, np.float64, bool, np.bool_})  # whose values all are doubles; and dtypes of such
ALWAYS_EXACT_ARRAYS = frozenset(map(np.dtype, ("f8", "f4", "f2", "?", "i4", "u4", "i2", "u2", "i1", "u1")))
# Of an object's parts: what works for it. (A class of one's own by such a name is not looked for.)
HELPERS = frozenset(
    {"function", "method", "builtin_function_or_method", "module", "lock", "RLock", "Generator", "RandomState"}
    | {"PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"}
)
MOST_SCORED = 2  # scores whose values are kept with a batch: a bound on memory
LONGEST_ALIKE = 256  # parts of sequences that are read together, place by place
FEWEST_ALIKE = 4  # dictionaries with the same keys, on average, that are read key by key
MAXIMUM_TOKEN = 2_000  # characters; a longer token keeps its start, its length and a digest of all of it


@dataclasses.dataclass(frozen=True)
class Outcomes:
    """A batch of outputs: `numbers` (draws, columns) and, for outputs that are not plain numbers, `tokens` (draws,).

    `shape` is the shape of one output and `is_integer` whether it came as integers, for numeric arrays; `raw` are the
    outputs as they came, otherwise.
    """

    numbers: FloatArray
    tokens: NDArray[np.object_] | None = None
    shape: tuple[int, ...] = ()
    is_integer: bool = False
    raw: tuple[Any, ...] = ()
    # What the last scores that cost much made of this batch, with the scores; parts of it have their part.
    _scored: dict[int, tuple[Any, FloatArray]] = dataclasses.field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.numbers)

    def rows(self, index: slice) -> Outcomes:
        """The outcomes of a slice of the batch."""
        tokens = None if self.tokens is None else self.tokens[index]
        part = Outcomes(self.numbers[index], tokens, self.shape, self.is_integer, self.raw[index])
        part._scored.update((key, (score, values[index])) for key, (score, values) in self._scored.items())
        return part

    def kept(self) -> Outcomes:
        """The same outcomes, copied: the subject may write later ones where these stand. (`raw` is plain data.)"""
        tokens = None if self.tokens is None else self.tokens.copy()
        return Outcomes(self.numbers.copy(), tokens, self.shape, self.is_integer, self.raw)

    def narrowed(self, columns: int) -> Outcomes:
        """The same outcomes, where those of more than so many numbers are cut to the first ones, and copied.

        What becomes of an output is a function of it, whatever the form of its batch: so parts may be joined.
        """
        if self.tokens is None:
            if self.numbers.shape[1] <= columns:
                return self
            return Outcomes(self.numbers[:, :columns].copy(), None, (columns,), self.is_integer)
        cut = [_narrowed(output, columns) for output in self.raw]
        return self if all(a is b for a, b in zip(cut, self.raw, strict=True)) else from_objects(cut)

    def scored_by(self, score: Any, values: Callable[[], FloatArray]) -> FloatArray:
        """What `values` gives, the scores of these outcomes: worked out once, for parts that are cut afterwards too."""
        found = self._scored.pop(id(score), None)
        if found is None or found[0] is not score:
            found = score, values()
        while len(self._scored) >= MOST_SCORED:
            del self._scored[next(iter(self._scored))]
        self._scored[id(score)] = found
        return found[1]

    def moved(self, by: FloatArray | None) -> Outcomes:
        """Each output less `by`; an output that is not numbers of the shape of `by` stays as it is. None moves nothing.

        Validity: what becomes of an output is a function of it and of `by`, whatever the form of its batch.
        """
        if by is None or (self.tokens is None and self.shape != by.shape):
            return self
        with np.errstate(over="ignore"):
            if self.tokens is None:
                is_integer = self.is_integer and bool(np.all(by == np.floor(by)))
                return Outcomes(self.numbers - by.ravel(), None, self.shape, is_integer)
            return from_objects([_moved(output, by) for output in self.raw])

    def as_objects(self) -> Outcomes:
        """The same outcomes with tokens: where some output of the pair is not plain numbers."""
        if self.tokens is not None:
            return self
        return from_objects(self.numbers.reshape(len(self), *self.shape).tolist())

    def as_numbers(self, columns: int) -> FloatArray:
        """Each output as `columns` numbers, shape (draws, columns); NaN for an output that is not so many numbers."""
        if self.tokens is None:
            return self.numbers if self.numbers.shape[1] == columns else np.full((len(self), columns), math.nan)
        result = np.full((len(self), columns), math.nan)
        for row, output in zip(result, self.raw, strict=True):
            array = single_numbers(output)
            if array is not None and array.size == columns:
                row[:] = array.ravel()
        return result


def join(parts: Sequence[Outcomes]) -> Outcomes:
    """The outcomes of several batches, one after the other; as objects if the batches have different forms."""
    if len({(part.tokens is None, part.numbers.shape[1]) for part in parts}) > 1:
        parts = [part.as_objects() for part in parts]
    numbers = np.concatenate([part.numbers for part in parts])
    if parts[0].tokens is None:
        joined = Outcomes(numbers, None, parts[0].shape, all(part.is_integer for part in parts))
        for key, (score, _) in parts[0]._scored.items():
            if all(key in part._scored for part in parts):
                joined._scored[key] = score, np.concatenate([part._scored[key][1] for part in parts])
        return joined
    tokens = np.concatenate([part.tokens for part in parts if part.tokens is not None])
    raw = tuple(itertools.chain.from_iterable(part.raw for part in parts))
    return Outcomes(numbers, tokens, raw=raw)


@dataclasses.dataclass(frozen=True)
class Reading:
    """How a rule reads outputs: as objects (`columns` 0), or as that many numbers."""

    columns: int

    def __call__(self, outcomes: Outcomes) -> Outcomes:
        if self.columns == 0:
            return outcomes.as_objects()
        if outcomes.tokens is None and outcomes.numbers.shape[1] == self.columns:
            return outcomes
        return Outcomes(outcomes.as_numbers(self.columns))


def read_outputs(outputs: Any, size: int) -> Outcomes:
    """The outcomes of one call that was asked for `size` outputs.

    Parameters
    ----------
    outputs : array_like or sequence
        Batch axis first: an array of shape (size, ...), or a sequence of `size` outputs of any kind.
    size : int
        The number of outputs that was asked for.

    Raises
    ------
    SubjectError
        If there are not `size` outputs.
    """
    array: NDArray[Any] | None
    if isinstance(outputs, np.ma.MaskedArray):
        outputs = _unmasked(outputs)
    if isinstance(outputs, np.ndarray):
        array = outputs
    else:
        if isinstance(outputs, str | bytes | Mapping) or not isinstance(outputs, Sequence):
            outputs = _as_list(outputs, size)
        if not isinstance(outputs, Seen):
            outputs = [seen(output) for output in outputs]
        array = _as_array(outputs)
    length = len(array) if array is not None and array.ndim > 0 else (1 if array is not None else len(outputs))
    if length != size or (array is not None and array.ndim == 0):
        shape = f"an array of shape {array.shape}" if array is not None else f"{length} outputs"
        raise SubjectError(f"sample(data, size={size}, rng) must return {size} outputs, batch axis first, got {shape}.")
    if array is not None and array.dtype.kind in "cmM" and array.ndim > 0:
        array = _as_real(array)
    if array is not None and array.dtype.kind in "biuf" and array.size > 0 and array.dtype.itemsize <= 8:
        # Validity: (draws, columns), each row in one piece. Along the columns of an array in the other order numpy adds
        # in another sequence than along a single row, and the last bits of a sum would show the batch.
        flat = np.ascontiguousarray(array.reshape(size, -1))
        if array.dtype.kind in "bf" or array.dtype.itemsize < 8 or np.all(np.abs(flat.astype(float)) < WHOLE_FROM):
            return Outcomes(flat.astype(float, copy=False), None, array.shape[1:], array.dtype.kind in "biu")
    return from_objects(list(outputs) if array is None else [seen(item) for item in array])


def from_objects(outputs: Sequence[Any]) -> Outcomes:
    """Outcomes of arbitrary objects: canonical tokens, and the features of `OBJECT_COLUMNS` (NaN where absent)."""
    tokens = np.empty(len(outputs), dtype=object)
    tokens[:] = [token if len(token) <= MAXIMUM_TOKEN else shortened(token) for token in _canonicals(outputs)]
    if set(map(type, outputs)) == {dict}:  # a usual case, faster
        numbers = np.full((len(outputs), len(OBJECT_COLUMNS)), math.nan)
        numbers[:, 1] = list(map(len, outputs))
    else:
        numbers = np.array([_features(output) for output in outputs], dtype=float).reshape(-1, len(OBJECT_COLUMNS))
    return Outcomes(numbers, tokens, raw=tuple(outputs))


def _canonicals(outputs: Sequence[Any]) -> Iterable[str]:
    """The canonical form of each output; of dictionaries with texts as keys, those with the same ones together.

    Validity: what is read of an output is what `canonical` reads of it alone.
    """
    if not _have_texts_as_keys(outputs):
        return _canonical_items(outputs, 0)
    of_keys: dict[tuple[Any, ...], list[int]] = {}
    for position, output in enumerate(outputs):
        of_keys.setdefault(tuple(output), []).append(position)
    if len(of_keys) == 1:
        return _canonicals_of(tuple(outputs[0]), outputs, 1)
    if FEWEST_ALIKE * len(of_keys) > len(outputs):
        return [canonical(output) for output in outputs]
    found = [""] * len(outputs)
    for keys, positions in of_keys.items():
        alike = [outputs[position] for position in positions]
        for position, token in zip(positions, _canonicals_of(keys, alike, 1), strict=True):
            found[position] = token
    return found


def _have_texts_as_keys(values: Sequence[Any]) -> bool:
    """Whether all are dictionaries, and all of their keys texts."""
    return set(map(type, values)) == {dict} and set(map(type, itertools.chain.from_iterable(values))) <= {str}


def _canonicals_of(keys: tuple[str, ...], outputs: Sequence[Mapping[str, Any]], depth: int) -> Iterable[str]:
    """The canonical forms of dictionaries with these texts as keys, key by key; `depth` is that of their items."""
    if not keys:
        return ["{}"] * len(outputs)
    # The printed form of a text is never the start of another one's: so keys alone say in which order items stand.
    printed = sorted((repr(key), key) for key in keys)
    form = "{" + ",".join(text.replace("%", "%%") + ":%s" for text, _ in printed) + "}"
    columns = [_canonical_items(list(map(operator.itemgetter(key), outputs)), depth) for _, key in printed]
    return map(form.__mod__, zip(*columns, strict=True))


def _canonical_items(values: Sequence[Any], depth: int) -> Iterable[str]:
    """The canonical forms of the items of one place, at a depth: all at once where they are alike, down to their parts.

    Alike are floats, texts and small integers, dictionaries with the same texts as keys, and sequences of one length.
    """
    kinds = set(map(type, values))
    if depth > DEEPEST or len(values) < FEWEST_ALIKE:
        return [canonical(value, depth) for value in values]
    if kinds <= {float, str}:
        return map(repr, values)
    if kinds <= {float, int, bool} and (
        int not in kinds or all(-WHOLE_FROM < value < WHOLE_FROM for value in values if type(value) is int)
    ):
        return map(repr, map(float, values))
    if kinds == {dict} and depth < DEEPEST:  # where `canonical` leaves out what keys are called
        keys = tuple(values[0])
        if all(tuple(value) == keys for value in values) and _have_texts_as_keys(values):
            return _canonicals_of(keys, values, depth + 1)
    elif kinds <= {list, tuple}:
        lengths = set(map(len, values))
        if lengths == {0}:
            return ["[]"] * len(values)
        if len(lengths) == 1 and max(lengths) <= LONGEST_ALIKE:
            parts = [_canonical_items(part, depth + 1) for part in zip(*values, strict=True)]
            return [f"[{','.join(of_one)}]" for of_one in zip(*parts, strict=True)]
    return [canonical(value, depth) for value in values]


def shortened(token: str) -> str:
    """A token of at most `MAXIMUM_TOKEN` characters and a few, which longer ones share only if they are equal.

    Examples
    --------
    >>> shortened("abc"), len({shortened("x" * 5_000 + end) for end in "abc"})
    ('abc', 3)
    """
    if len(token) <= MAXIMUM_TOKEN:
        return token
    digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{token[:MAXIMUM_TOKEN]}…{len(token)}:{digest}"


def canonical(value: Any, depth: int = 0) -> str:
    """A string that is equal for equal outputs, whatever their order in sets and dictionaries; never an address.

    Examples
    --------
    >>> canonical({"b": 1, "a": float("nan")}) == canonical({"a": float("nan"), "b": 1})
    True
    >>> canonical([1.0, None]), canonical((1, True))
    ('[1.0,None]', '[1.0,1.0]')
    """
    if depth > DEEPEST:
        return value.kind if isinstance(value, Opaque) else type(value).__qualname__
    kind, inner = type(value), depth + 1
    if kind is str or kind is float:  # the usual cases, faster
        return repr(value)
    if kind is int and -WHOLE_FROM < value < WHOLE_FROM:
        return repr(float(value))
    if kind not in (dict, list, tuple):
        value = plain(value)
        if isinstance(value, bool | int | float | np.floating):
            return _number_token(value)
        if value is None or isinstance(value, str | bytes):
            return repr(value)
        if isinstance(value, Fraction):
            return f"Fraction({_digits(value.numerator)}, {_digits(value.denominator)})"
        if isinstance(value, enum.Enum):
            return f"{type(value).__qualname__}.{value.name}"
        if isinstance(value, type):
            return value.__qualname__
        if isinstance(value, Failed):
            return value.token
        if isinstance(value, Opaque) and value.state is None:
            return value.text if value.text is not None else value.kind
    if kind is list or kind is tuple:
        return "[" + ",".join([canonical(item, inner) for item in value]) + "]"
    if kind is dict or isinstance(value, Mapping):
        items = [f"{canonical(key, inner)}:{canonical(item, inner)}" for key, item in value.items()]
        return "{" + ",".join(sorted(items)) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ",".join(sorted([canonical(item, inner) for item in value])) + "}"
    if isinstance(value, Sequence):
        return "[" + ",".join([canonical(item, inner) for item in value]) + "]"
    state = state_of(value)
    if state is not None:
        name = value.kind if isinstance(value, Opaque) else type(value).__qualname__
        return f"{name}{canonical(state, inner)}"
    text = _printed(value)
    return type(value).__qualname__ if ADDRESS in text else text


def state_of(value: Any) -> Mapping[str, Any] | None:
    """The attributes of an object by their names; None where it has none."""
    if isinstance(value, enum.Enum | type | Failed):
        return None
    if isinstance(value, Opaque):
        return value.state
    return attributes_of(value)


def is_one_value(outcomes: Outcomes) -> bool:
    """Whether there are several outcomes, numbers that are not all integers, and all of them are equal."""
    numbers = outcomes.numbers
    if outcomes.tokens is not None or len(numbers) < 2 or outcomes.is_integer:
        return False
    return bool(np.all(numbers == numbers[0])) and not are_integers(numbers[0])


def unseen(outputs: Iterable[Any]) -> str:
    """The name of a class of which nothing is seen but that, among the outputs and their parts; empty for none.

    Such an object has neither attributes nor items, and its printed form is an address. A rule cannot tell two of them
    apart, whatever they hold. A plain `object()` holds nothing; and `HELPERS` beside something else are no answers.
    """
    return next((kind for output in outputs if (kind := _unseen(output, 0))), "")


def _unseen(value: Any, depth: int) -> str:
    value = plain(value)
    if isinstance(value, bool | int | float | str | bytes | enum.Enum | type | Failed | None):
        return ""
    if depth > DEEPEST:  # what contains itself
        return ""
    if isinstance(value, Opaque) and value.state is None:
        return "" if value.text is not None else _unless_helper(value.kind, depth)
    parts: Iterable[Any]
    inner = depth + 1
    if isinstance(value, Mapping):
        parts = itertools.chain(value.keys(), value.values())
    elif isinstance(value, set | frozenset | Sequence):
        parts = value
    elif (state := state_of(value)) is not None:
        parts, inner = state.values(), depth + 2  # as deep as they are in plain data
    else:
        return _unless_helper(type(value).__qualname__, depth) if ADDRESS in _printed(value) else ""
    return next((kind for part in parts if (kind := _unseen(part, inner))), "")


def _unless_helper(kind: str, depth: int) -> str:
    return "" if kind == "object" or (depth > 0 and kind in HELPERS) else kind


def is_number(value: Any) -> bool:
    """Whether a value is a real number of any kind, booleans included."""
    kind = type(value)
    if kind in EXACT or kind in NO_NUMBERS:  # the usual cases, faster
        return kind in EXACT
    return isinstance(value, numbers.Real | Decimal | np.floating | np.bool_)


def _unmasked(outputs: np.ma.MaskedArray[Any, Any]) -> Any:
    """A masked array as nested lists, None where it is masked; as a plain array where nothing is."""
    if outputs.dtype.names is not None:  # masked field by field
        return outputs.tolist()
    if not np.ma.getmaskarray(outputs).any():
        return np.asarray(outputs.data)
    if outputs.ndim > 1:
        return list(outputs)  # each row with what is under its mask
    plain = np.empty(outputs.shape, dtype=object)
    plain[...] = outputs.data
    plain[np.ma.getmaskarray(outputs)] = None
    return plain.tolist()


def _as_real(array: NDArray[Any]) -> NDArray[Any]:
    """Complex numbers as pairs of numbers behind the other axes; dates and durations as integers of their unit."""
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], axis=-1)
    return array.astype(np.int64)


def plain(value: Any) -> Any:
    """Numpy's, and other libraries', values as Python numbers and nested lists: how a numeric batch reads the same."""
    if type(value) in AS_IT_IS:
        return value
    if isinstance(value, np.ndarray):
        return _as_real(value).tolist() if value.dtype.kind in "cmM" else value.tolist()
    if isinstance(value, np.datetime64 | np.timedelta64):
        return int(value.astype(np.int64))
    if isinstance(value, complex | np.complexfloating):
        return [float(value.real), float(value.imag)]
    if isinstance(value, np.generic):
        return value.item()
    known = own(value)
    return value if known is value else plain(known)


def _number_token(value: Any) -> str:
    """The token of a number, by its value: the double it is equal to, or the integer where no double is."""
    try:
        double = float(value)
    except OverflowError:
        return _digits(value)
    if math.isnan(double):
        return "nan"
    return repr(double) if double == value else _digits(value)


def _digits(value: Any) -> str:
    """The printed form of a number; of an integer too long for Python's limit on decimal digits the hexadecimal one."""
    try:
        return repr(value)
    except ValueError:
        return hex(value)


def _printed(value: Any) -> str:
    """The printed form of an object; its class where that holds an integer too long to be printed."""
    try:
        return repr(value)
    except ValueError:
        return type(value).__qualname__


def single_numbers(output: Any) -> NDArray[Any] | None:
    """One output as the numbers that a batch of its kind holds, behind an axis of one; None for any other output."""
    output = own(output)
    if isinstance(output, np.ndarray) and output.dtype.kind in "cmM":
        output = _as_real(output)
    return _as_array([plain(output) if isinstance(output, complex | np.generic) else output])


def _narrowed(output: Any, columns: int) -> Any:
    """The first so many numbers of one object, if it is more numbers; else the object itself."""
    if isinstance(output, str | bytes | Mapping | Failed | None):  # the usual cases, faster
        return output
    array = single_numbers(output)
    return output if array is None or array.size <= columns else array.ravel()[:columns].tolist()


def _moved(output: Any, by: FloatArray) -> Any:
    """One object less `by`, as Python numbers, if it is numbers of that shape; else the object itself."""
    array = single_numbers(output)
    return output if array is None or array.shape[1:] != by.shape else (array[0].astype(float) - by).tolist()


def _as_list(outputs: Any, size: int) -> list[Any]:
    if isinstance(outputs, str | bytes | Mapping) or not hasattr(outputs, "__iter__"):
        raise SubjectError(
            f"sample(data, size={size}, rng) must return {size} outputs, batch axis first, "
            f"got {type(outputs).__name__}."
        )
    return list(outputs)


def _as_array(outputs: Sequence[Any]) -> NDArray[Any] | None:
    """A numeric array of the outputs if they are numbers, or equally shaped arrays of numbers; else None.

    Lists that mix booleans with numbers, or numbers with text, stay objects: numpy would cast one into the other.
    """
    first = outputs[0] if len(outputs) else 0.0
    kinds = set(map(type, outputs)) if type(first) in (float, int) else set()
    if kinds == {float} or (kinds == {int} and -WHOLE_FROM < min(outputs) <= max(outputs) < WHOLE_FROM):
        return np.array(outputs)  # the usual cases, faster
    if isinstance(first, float | int | np.number) and not isinstance(first, bool):
        same = all(isinstance(item, float | int | np.number) and not isinstance(item, bool) for item in outputs)
    elif isinstance(first, bool | np.bool_):
        same = all(isinstance(item, bool | np.bool_) for item in outputs)
    elif isinstance(first, np.ndarray):
        same = all(isinstance(item, np.ndarray) and item.shape == first.shape for item in outputs)
    elif isinstance(first, Noted):
        same = False  # the notes would be lost
    elif isinstance(first, tuple | list):
        same = all(type(item) is type(first) and len(item) == len(first) for item in outputs)
        kinds = set(map(type, itertools.chain.from_iterable(outputs))) if same else set()
        same = same and (kinds <= {float, int, np.float64, np.int64} or kinds <= {bool, np.bool_})
    else:
        same = False
    if not same or not _is_exact(outputs):
        return None
    try:
        array = np.asarray(outputs)
    except (ValueError, OverflowError):
        return None
    return array if array.dtype.kind in "biuf" and array.size > 0 else None


def _is_exact(outputs: Sequence[Any]) -> bool:
    """Whether every number is the double it would become: no integer too large for that, no longer float."""
    kinds = set(map(type, outputs))
    if kinds <= {list, tuple}:
        kinds = set(map(type, itertools.chain.from_iterable(outputs)))
    if kinds <= ALWAYS_EXACT:
        return True
    if kinds == {np.ndarray} and all(dtype in ALWAYS_EXACT_ARRAYS for dtype in {output.dtype for output in outputs}):
        return True
    for output in outputs:
        if isinstance(output, np.ndarray):
            values = output.ravel().tolist()
        else:
            values = [plain(item) for item in output] if isinstance(output, list | tuple) else [plain(output)]
        for value in values:
            if not isinstance(value, bool | int | float) or (isinstance(value, int) and abs(value) >= WHOLE_FROM):
                return False
    return True


def _features(output: Any) -> tuple[float, float, float, float]:
    """Numeric features of one object, in the order of `OBJECT_COLUMNS`; NaN where an object has no such feature."""
    if type(output) is dict or type(output) is str:
        return (math.nan, float(len(output)), math.nan, math.nan)
    output = plain(output)
    if isinstance(output, numbers.Real | Decimal):
        return (number_of(output), math.nan, math.nan, math.nan)
    if isinstance(output, str | bytes | Mapping | set | frozenset):
        return (math.nan, float(len(output)), math.nan, math.nan)
    if isinstance(output, Sequence):
        items = list(output)
        ends = (number_of(items[0]), number_of(items[-1])) if items else (math.nan, math.nan)
        return (math.nan, float(len(items)), *ends)
    return (math.nan, math.nan, math.nan, math.nan)


def number_of(value: Any) -> float:
    """The double of a number (an infinity where it is too large for one); NaN for anything else."""
    if type(value) in EXACT and (type(value) is not int or -WHOLE_FROM < value < WHOLE_FROM):
        return float(value)  # the usual case, much faster
    if isinstance(value, numbers.Real | Decimal | np.number) and not isinstance(value, complex | np.complexfloating):
        try:
            return float(value)
        except (OverflowError, ValueError):  # too large a number; a signalling NaN
            if isinstance(value, Decimal) and value.is_nan():
                return math.nan
            return math.copysign(math.inf, -1 if _is_negative(value) else 1)
    return math.nan


def _is_negative(value: Any) -> bool:
    """The sign of a number that is too large for a double; of another one (a signalling NaN) by its printed form."""
    if isinstance(value, int | Fraction):
        return value < 0
    return str(value)[0] == "-"
