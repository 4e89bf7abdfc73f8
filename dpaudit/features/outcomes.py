"""Outputs of a mechanism as the bettor reads them: numbers where they are numbers, canonical tokens for anything else.

Validity: every output is read by itself. A batch is held as numbers where all its outputs are numbers, and as objects
otherwise, but what a rule sees of an output must not depend on the others in its batch: then a mechanism that mixes
numbers and text would be told from itself by how its batches fell. So both forms give the same numbers (`as_numbers`)
and the same tokens (`as_objects`) for the same output, and reading is post-processing of single outputs, which cannot
make a sound mechanism look unsound.

Conventions
-----------
* `Outcomes.numbers` has shape (draws, columns): the output itself for numeric arrays (booleans and integers included,
  flattened behind the batch axis), and one column of NaN otherwise.
* `Outcomes.tokens` has shape (draws,): canonical strings, one per output, or None for numeric arrays, where they are
  made on demand. Numbers are equal by value (1, 1.0 and True are one token; 0.0 and -0.0 are two; NaN is one), lists,
  tuples and arrays by their contents, sets and dictionaries without order. An object's address never enters.
* What another library made is read by what it holds, as `dpaudit.subjects.foreign` says.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import itertools
import math
import numbers
import sys
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import SubjectError
from dpaudit.features.forms import form_of
from dpaudit.features.unread import LIMITS
from dpaudit.features.whole_numbers import WHOLE_FROM, are_integers
from dpaudit.privacy.claims import FloatArray
from dpaudit.subjects.call_outcomes import Failed, Noted, Opaque
from dpaudit.subjects.foreign import AS_THEY_ARE, OWN, attributes_of, own
from dpaudit.subjects.plain import AT_ADDRESS, Seen, seen

AS_IT_IS = OWN - {np.ndarray, np.float64}  # Python's own
DEEPEST = LIMITS.max_depth
NO_NUMBERS = (str, dict, bytes, set, frozenset, Failed, type(None))
ALWAYS_EXACT = frozenset({float, np.float64, bool, np.bool_})  # whose values all are doubles
# Of an object's parts: what works for it. (A class of one's own by such a name is not looked for.)
HELPERS = frozenset(
    {"function", "method", "builtin_function_or_method", "module", "lock", "RLock", "Generator", "RandomState"}
    | {"PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"}
)
MAX_FORMS = 64  # outputs of a batch whose form is noted, as many as `unread` is asked of: a bound on time
MAXIMUM_TOKEN = 2_000  # characters; a longer token keeps its start, its length and a digest of all of it


@dataclasses.dataclass(frozen=True)
class Outcomes:
    """A batch of outputs: `numbers` (draws, columns) and, for outputs that are not plain numbers, `tokens` (draws,).

    `shape` is the shape of one output and `is_integer` whether it came as integers, for numeric arrays; `raw` are the
    outputs as they came, otherwise. `forms` are the classes and types that numbers came in, of which nothing is read.
    """

    numbers: FloatArray
    tokens: NDArray[np.object_] | None = None
    shape: tuple[int, ...] = ()
    is_integer: bool = False
    raw: tuple[Any, ...] = ()
    forms: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.numbers)

    @functools.cached_property
    def nbytes(self) -> int:
        """Bytes of memory that they take, about."""
        tokens = () if self.tokens is None else self.tokens.tolist()
        return self.numbers.nbytes + sum(map(sys.getsizeof, tokens)) + sum(map(size_of, self.raw))

    def within(self, most: int) -> Outcomes:
        """The first of them, as many as take so many bytes; all of them where they do."""
        if self.nbytes <= most:
            return self
        taken = np.cumsum([size_of(output) + MAXIMUM_TOKEN + 8 * self.numbers.shape[1] for output in self.raw])
        each = 8 * max(self.numbers.shape[1], 1)
        return self.rows(slice(0, int(np.searchsorted(taken, most)) if self.raw else most // each))

    def rows(self, index: slice | NDArray[np.intp]) -> Outcomes:
        """The outcomes of a slice of the batch, or of some places in it."""
        tokens = None if self.tokens is None else self.tokens[index]
        raw = self.raw[index] if isinstance(index, slice) else tuple(self.raw[k] for k in index.tolist() if self.raw)
        return Outcomes(self.numbers[index], tokens, self.shape, self.is_integer, raw, self.forms)

    def kept(self) -> Outcomes:
        """The same outcomes, copied: the subject may write later ones where these stand. (`raw` is plain data.)"""
        return dataclasses.replace(self, numbers=self.numbers.copy())

    def narrowed(self, columns: int) -> Outcomes:
        """The same outcomes, where those of more than so many numbers are cut to the first ones, and copied.

        What becomes of an output is a function of it, whatever the form of its batch: so parts may be joined.
        """
        if self.tokens is not None:
            return self._changed(lambda array: array.ravel()[:columns] if array.size > columns else None)
        if self.numbers.shape[1] <= columns:
            return self
        return Outcomes(self.numbers[:, :columns].copy(), None, (columns,), self.is_integer, forms=self.forms)

    def moved(self, by: FloatArray | None) -> Outcomes:
        """Each output less `by`; an output that is not numbers of the shape of `by` stays as it is. None moves nothing.

        Validity: what becomes of an output is a function of it and of `by`, whatever the form of its batch.
        """
        if by is None or (self.tokens is None and self.shape != by.shape):
            return self
        with np.errstate(over="ignore"):
            if self.tokens is not None:
                return self._changed(lambda array: array.astype(float) - by if array.shape == by.shape else None)
            is_integer = self.is_integer and bool(np.all(by == np.floor(by)))
            return Outcomes(self.numbers - by.ravel(), None, self.shape, is_integer)

    def _changed(self, change: Callable[[NDArray[Any]], NDArray[Any] | None]) -> Outcomes:
        """Objects that are numbers changed one by one; as they are where the change is None."""
        changed = [None if (array := single_numbers(output)) is None else change(array[0]) for output in self.raw]
        if all(array is None for array in changed):
            return self
        several = zip(changed, self.raw, strict=True)
        return from_objects([output if array is None else array.tolist() for array, output in several])

    def as_objects(self) -> Outcomes:
        """The same outcomes with tokens: where some output of the pair is not plain numbers."""
        if self.tokens is not None:
            return self
        return dataclasses.replace(
            from_objects(self.numbers.reshape(len(self), *self.shape).tolist()), forms=self.forms
        )

    def as_numbers(self, columns: int) -> FloatArray:
        """Each output as `columns` numbers, shape (draws, columns); NaN for an output that is not so many numbers."""
        if self.tokens is None and self.numbers.shape[1] == columns:
            return self.numbers
        result = np.full((len(self), columns), math.nan)
        for row, output in zip(result, self.raw, strict=False):
            array = single_numbers(output)
            if array is not None and array.size == columns:
                row[:] = array.ravel()
        return result

    def read_as(self, columns: int) -> Outcomes:
        """The same outcomes as objects (`columns` 0), or as that many numbers."""
        if columns == 0:
            return self.as_objects()
        is_same = self.tokens is None and self.numbers.shape[1] == columns
        return self if is_same else Outcomes(self.as_numbers(columns))


def size_of(value: Any) -> int:
    """Bytes of memory that plain data take, about."""
    total, left = 0, [value]
    while left:
        one = left.pop()
        total += one.nbytes + 112 if isinstance(one, np.ndarray) else sys.getsizeof(one)
        parts: Collection[Any] = [*one.keys(), *one.values()] if isinstance(one, dict) else ()
        if isinstance(one, list | tuple | set | frozenset):
            parts = one
        elif isinstance(one, Opaque | Failed):
            parts = (one.text, one.state) if isinstance(one, Opaque) else (one.message, one.traceback)
        if AS_THEY_ARE.issuperset(map(type, parts)):  # the usual case, faster
            total += sum(map(sys.getsizeof, parts))
        else:
            left += parts
    return total


def join(parts: Sequence[Outcomes]) -> Outcomes:
    """The outcomes of several batches, one after the other; as objects if the batches have different forms."""
    if len({(part.tokens is None, part.numbers.shape[1], part.shape) for part in parts}) > 1:
        parts = [part.as_objects() for part in parts]
    joined = np.concatenate([part.numbers for part in parts])
    forms = frozenset().union(*(part.forms for part in parts))
    if parts[0].tokens is None:
        return Outcomes(joined, None, parts[0].shape, all(part.is_integer for part in parts), forms=forms)
    tokens = np.concatenate([part.tokens for part in parts if part.tokens is not None])
    return Outcomes(joined, tokens, raw=tuple(itertools.chain.from_iterable(part.raw for part in parts)), forms=forms)


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
    what = "an array or a list of 1 output, as of any other size" if size == 1 else f"{size} outputs, batch axis first"
    asked = f"sample(data, size={size}, rng) must return {what}, got "
    if isinstance(outputs, np.ma.MaskedArray):
        outputs = _unmasked(outputs)
    if isinstance(outputs, np.ndarray):
        array: NDArray[Any] | None = outputs
    else:
        if isinstance(outputs, str | bytes | Mapping) or not hasattr(outputs, "__iter__"):
            raise SubjectError(f"{asked}{type(outputs).__name__}.")
        if not isinstance(outputs, Seen):
            outputs = [seen(output) for output in outputs]
        array = _as_array(outputs)
    if array is None and len(outputs) != size:
        raise SubjectError(f"{asked}{len(outputs)} outputs.")
    if array is None:
        return from_objects(outputs)
    if array.ndim == 0 or len(array) != size:
        raise SubjectError(f"{asked}an array of shape {array.shape}.")
    forms = frozenset(map(form_of, outputs[: 1 if outputs is array else MAX_FORMS]))
    array = _as_real(array)
    if array.dtype.kind in "biuf" and array.size > 0 and array.dtype.itemsize <= 8:
        # Validity: (draws, columns), each row in one piece. Along the columns of an array in the other order numpy adds
        # in another sequence than along a single row, and the last bits of a sum would show the batch.
        flat = np.ascontiguousarray(array.reshape(size, -1))
        if _are_doubles(array.dtype) or np.all(np.abs(flat.astype(float)) < WHOLE_FROM):
            is_integer = array.dtype.kind in "biu"
            return Outcomes(flat.astype(float, copy=False), None, array.shape[1:], is_integer, forms=forms)
    return from_objects([seen(item) for item in array])


def from_objects(outputs: Sequence[Any]) -> Outcomes:
    """Outcomes of arbitrary objects, which are plain data: canonical tokens, and one number that is missing."""
    tokens = np.empty(len(outputs), dtype=object)
    tokens[:] = [shortened(canonical(output)) for output in outputs]
    return Outcomes(np.full((len(outputs), 1), math.nan), tokens, raw=tuple(outputs))


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
    kind = type(value)
    if (kind is str or kind is float) and depth <= DEEPEST:  # the usual cases, faster
        return repr(value)
    return written(value, depth, canonical)


def written(value: Any, depth: int, inside: Callable[[Any, int], str]) -> str:
    """The canonical form of a value whose items are written by `inside`, of an item and its depth."""
    if depth > DEEPEST:
        return value.kind if isinstance(value, Opaque) else type(value).__qualname__
    kind, inner = type(value), depth + 1
    if kind is int and -WHOLE_FROM < value < WHOLE_FROM:  # a usual case, faster
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
    if isinstance(value, Mapping):
        # Keys are unique, so that they alone say in which order items stand.
        items = sorted([(canonical(key, inner), inside(item, inner)) for key, item in value.items()])
        return "{" + ",".join([f"{key}:{item}" for key, item in items]) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ",".join(sorted([canonical(item, inner) for item in value])) + "}"
    if isinstance(value, Sequence):
        return "[" + ",".join([inside(item, inner) for item in value]) + "]"
    state = state_of(value)
    if state is not None:
        return f"{value.kind if isinstance(value, Opaque) else type(value).__qualname__}{inside(state, inner)}"
    text = _printed(value)
    return type(value).__qualname__ if AT_ADDRESS in text else text


def state_of(value: Any) -> Mapping[str, Any] | None:
    """The attributes of an object by their names; None where it has none."""
    if isinstance(value, Opaque):
        return value.state
    return None if isinstance(value, enum.Enum | type | Failed) else attributes_of(value)


def repeats_one_real_value(outcomes: Outcomes) -> bool:
    """Tell whether all outcomes, of which there are several, are one and the same number that is no integer."""
    numbers = outcomes.numbers
    if outcomes.tokens is not None or len(numbers) < 2 or outcomes.is_integer:
        return False
    return bool(np.all(numbers == numbers[0])) and not are_integers(numbers[0])


def unseen(outputs: Iterable[Any], helpers: Container[str] = HELPERS) -> str:
    """The name of a class of which nothing is seen but that, among the outputs and their parts; empty for none.

    Such an object has neither attributes nor items, and its printed form is an address. A rule cannot tell two of them
    apart, whatever they hold. A plain `object()` holds nothing; and `helpers` beside something else are no answers.
    """
    return next((kind for output in outputs if (kind := _unseen(output, 0, helpers))), "")


def _unseen(value: Any, depth: int, helpers: Container[str]) -> str:
    value = plain(value)
    if depth > DEEPEST or isinstance(value, bool | int | float | str | bytes | enum.Enum | type | Failed | None):
        return ""  # what contains itself is deep
    parts: Iterable[Any]
    if isinstance(value, Mapping):
        parts, inner = itertools.chain(value.keys(), value.values()), depth + 1
    elif isinstance(value, set | frozenset | Sequence):
        parts, inner = value, depth + 1
    elif (state := state_of(value)) is not None:
        parts, inner = state.values(), depth + 2  # as deep as they are in plain data
    else:
        kind = value.kind if isinstance(value, Opaque) else type(value).__qualname__
        is_seen = _is_seen(value) if isinstance(value, Opaque) else AT_ADDRESS not in _printed(value)
        return "" if is_seen or kind == "object" or (depth > 0 and kind in helpers) else kind
    return next((kind for part in parts if (kind := _unseen(part, inner, helpers))), "")


def _is_seen(value: Opaque) -> bool:
    """Tell whether something of an object is seen: its printed form, or what it hands to pickle."""
    rest = value.beside.get("state")
    return value.text is not None or (_is_seen(rest) if isinstance(rest, Opaque) else rest is not None)


def is_number(value: Any) -> bool:
    """Tell whether a value is a real number of any kind, booleans included."""
    kind = type(value)
    return kind is float or kind is int or isinstance(value, numbers.Real | Decimal | np.floating | np.bool_)


def _unmasked(outputs: np.ma.MaskedArray[Any, Any]) -> Any:
    """A masked array as nested lists, None where it is masked; as a plain array where nothing is."""
    if outputs.dtype.names is not None:  # masked field by field
        return outputs.tolist()
    if outputs.ndim > 1:
        return list(outputs)  # each row with what is under its mask
    return outputs.tolist() if np.ma.getmaskarray(outputs).any() else np.asarray(outputs.data)


def _as_real(array: NDArray[Any]) -> NDArray[Any]:
    """Complex numbers as pairs of numbers behind the other axes; dates and durations as integers of their unit."""
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], axis=-1)
    return array.astype(np.int64) if array.dtype.kind in "mM" else array


def plain(value: Any) -> Any:
    """Numpy's, and other libraries', values as Python numbers and nested lists: how a numeric batch reads the same."""
    if type(value) in AS_IT_IS:
        return value
    if isinstance(value, np.ndarray):
        return _as_real(value).tolist()
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
    if isinstance(output, NO_NUMBERS) or (isinstance(output, Noted) and output.is_more):
        return None
    output = own(output)
    if isinstance(output, np.ndarray):
        return _as_array([_as_real(output)])
    return _as_array([plain(output) if isinstance(output, complex | np.generic) else output])


def _as_array(outputs: Sequence[Any]) -> NDArray[Any] | None:
    """A numeric array of the outputs if they are numbers, or equally shaped arrays of numbers; else None.

    Lists that mix booleans with numbers, or numbers with text, stay objects: numpy would cast one into the other. So
    do numbers that no double is equal to: large integers, and longer floats.
    """
    kinds = set(map(type, outputs))
    if kinds == {float}:  # the usual case, faster
        return np.array(outputs)
    if any(issubclass(kind, Noted) for kind in kinds):
        if any(isinstance(output, Noted) and output.is_more for output in outputs):
            return None
        outputs = [output.bare if isinstance(output, Noted) else output for output in outputs]
        kinds = set(map(type, outputs))
    leaves: Sequence[Any] = outputs
    if kinds and all(issubclass(kind, np.ndarray) for kind in kinds):
        if len({output.shape for output in outputs}) > 1:
            return None
        if all(_are_doubles(output.dtype) for output in outputs):
            return _numeric(outputs)
        leaves = list(itertools.chain.from_iterable(output.ravel().tolist() for output in outputs))
        kinds = set(map(type, leaves))
    elif all(issubclass(kind, list | tuple) for kind in kinds):
        leaves = list(itertools.chain.from_iterable(outputs))
        kinds = set(map(type, leaves))
        if len(set(map(len, outputs))) > 1 or not kinds <= {float, int, bool, np.float64, np.int64, np.bool_}:
            return None
    are_bools = [issubclass(kind, bool | np.bool_) for kind in kinds]
    if any(are_bools) and not all(are_bools):
        return None
    if not kinds <= ALWAYS_EXACT and not all(map(_is_exact, leaves)):
        return None
    return _numeric(outputs)


def _numeric(outputs: Sequence[Any]) -> NDArray[Any] | None:
    array = np.asarray(outputs)
    return array if array.dtype.kind in "biuf" and array.size > 0 else None


def _are_doubles(dtype: np.dtype[Any]) -> bool:
    """Tell whether all numbers of a type are doubles."""
    return dtype.kind in "biuf" and (dtype.itemsize < 8 or dtype == np.float64)


def _is_exact(value: Any) -> bool:
    """Tell whether a value is a number, and equal to the double that it would become."""
    if isinstance(value, np.generic):
        value = plain(value)
    return isinstance(value, float) or (isinstance(value, int) and -WHOLE_FROM < value < WHOLE_FROM)


def number_of(value: Any) -> float:
    """The double of a number (an infinity where it is too large for one); NaN for anything else."""
    if type(value) is float or (type(value) is int and -WHOLE_FROM < value < WHOLE_FROM):  # the usual cases, faster
        return float(value)
    if not isinstance(value, numbers.Real | Decimal | np.number) or isinstance(value, complex | np.complexfloating):
        return math.nan
    try:
        return float(value)
    except (OverflowError, ValueError):  # too large a number; a signalling NaN
        if isinstance(value, Decimal) and value.is_nan():
            return math.nan
        is_negative = value < 0 if isinstance(value, int | Fraction) else str(value)[0] == "-"
        return -math.inf if is_negative else math.inf
