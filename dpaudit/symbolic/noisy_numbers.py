"""Noisy numbers as symbols: a noise-free part plus multiples of recorded noises.

`Noisy` is no float, and arrays of it hold objects: whatever a program does with a noisy number goes through a method
here. Sums and multiples give another symbol. A comparison asks the tape for a decision where one noise alone decides
it. All else (a logarithm, a rounding, `float`, a product of two noisy numbers) is a look at the value.
"""

from __future__ import annotations

import dataclasses
import math
import operator
import sys
from collections.abc import Callable, Iterable
from opcode import opmap
from typing import Any

import numpy as np

from dpaudit.symbolic.laws import probabilities_of_largest
from dpaudit.symbolic.tape import Tape, Unsupported

LINEAR = frozenset(
    {np.add, np.subtract, np.multiply, np.true_divide, np.negative, np.positive, np.matmul, np.maximum, np.minimum}
    | {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal, np.absolute, np.fmax, np.fmin}
)
_FIRST_IN_PLACE = 13  # of the numbers that BINARY_OP has for operators: 13 is +=
_PROBED: dict[str, Any] = {}
BY_SIGNAL = frozenset({np.isnan, np.isfinite, np.isinf})


class Noisy:
    """A noisy number: `signal` plus the sum of `terms` (index of a noise: its coefficient) of a tape.

    `reach` is the largest noise-free part on the way: the rounding errors of `signal` are some 2^-53 of it each.
    """

    __slots__ = ("reach", "signal", "tape", "terms")
    __array_priority__ = 1000.0

    def __init__(self, tape: Tape, signal: float, terms: dict[int, float], reach: float = 0.0) -> None:
        self.tape, self.signal, self.terms = tape, signal, terms
        self.reach = max(reach, abs(signal)) if math.isfinite(signal) else reach

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """A float, for programs that ask `isinstance`: a branch on it must be that of a run with numbers."""
        return float

    @property
    def value(self) -> float:
        """Its value in this run: not for the program."""
        return self.signal + sum(factor * self.tape.noises[index].value for index, factor in self.terms.items())

    def _look(self) -> float:
        return self.tape.look(self.value)

    # Sums and multiples.

    def _plus(self, other: Any, sign: float, own: float = 1.0) -> Any:
        if isinstance(other, Noisy):
            terms = {index: own * factor for index, factor in self.terms.items()}
            for index, factor in other.terms.items():
                terms[index] = terms.get(index, 0.0) + sign * factor
            return _made(self.tape, own * self.signal + sign * other.signal, terms, max(self.reach, other.reach))
        number = _number(other)
        if number is None:
            return NotImplemented
        terms = {index: own * factor for index, factor in self.terms.items()}
        return _made(self.tape, own * self.signal + sign * number, terms, max(self.reach, abs(number)))

    def __add__(self, other: Any) -> Any:
        return self._plus(other, 1.0)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._plus(other, -1.0)

    def __rsub__(self, other: Any) -> Any:
        return self._plus(other, 1.0, -1.0)

    def __neg__(self) -> Any:
        return self._plus(0.0, 1.0, -1.0)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0.0 else -self

    def _times(self, other: Any, divide: bool) -> Any:
        if isinstance(other, Noisy):
            first, second = self._look(), other._look()
            return first / second if divide else first * second
        number = _number(other)
        if number is None:
            return NotImplemented
        if divide and number == 0.0:
            return self._look() / other
        apply = operator.truediv if divide else operator.mul
        terms = {index: apply(factor, number) for index, factor in self.terms.items()}
        return _made(self.tape, apply(self.signal, number), terms, abs(apply(self.reach, number)))

    def __mul__(self, other: Any) -> Any:
        return self._times(other, False)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self._times(other, True)

    def __rtruediv__(self, other: Any) -> Any:
        number = _number(other)
        return NotImplemented if number is None else other / self._look()

    # Comparisons.

    def _is_at_most(self, other: Any) -> Any:
        """Whether self - other <= 0, None where the other is no number; equality has probability 0 or is discrete."""
        gap = self._plus(other, -1.0)
        if gap is NotImplemented:
            return None
        if not isinstance(gap, Noisy):
            return gap <= 0.0
        if len(gap.terms) == 1 and math.isfinite(gap.signal):
            ((index, factor),) = gap.terms.items()
            if index not in self.tape.spent:
                self.tape.reaches[index] = max(self.tape.reaches.get(index, 0.0), gap.reach / abs(factor))
                if factor > 0.0:
                    return self.tape.is_below(index, -gap.signal / factor)
                threshold = -gap.signal / factor  # factor * z <= -signal: z >= threshold
                if self.tape.noises[index].law.is_discrete:
                    threshold = math.ceil(threshold) - 1
                return not self.tape.is_below(index, threshold)
        return gap._look() <= 0.0

    def __le__(self, other: Any) -> Any:
        found = self._is_at_most(other)
        return NotImplemented if found is None else found

    def __gt__(self, other: Any) -> Any:
        found = self._is_at_most(other)
        return NotImplemented if found is None else not found

    def __ge__(self, other: Any) -> Any:
        if _number(other) is None and not isinstance(other, Noisy):
            return NotImplemented
        return (-self)._is_at_most(-other)

    def __lt__(self, other: Any) -> Any:
        found = self.__ge__(other)
        return found if found is NotImplemented else not found

    def __eq__(self, other: object) -> Any:
        if _number(other) is None and not isinstance(other, Noisy):
            return NotImplemented
        gap = self - other
        if isinstance(gap, Noisy):
            return gap._look() == 0.0
        return gap == 0.0

    def __hash__(self) -> int:
        return hash(self._look())

    # Looks.

    def __float__(self) -> float:
        return float(self._look())

    def __int__(self) -> int:
        return int(self._look())

    def __trunc__(self) -> int:
        return math.trunc(self._look())

    def __floor__(self) -> int:
        return math.floor(self._look())

    def __ceil__(self) -> int:
        return math.ceil(self._look())

    def __round__(self, digits: int | None = None) -> Any:
        return round(self._look(), digits)

    def __bool__(self) -> bool:
        return bool(self._look())

    def __repr__(self) -> str:
        return repr(self._look())

    __str__ = __repr__

    def __format__(self, form: str) -> str:
        return format(self._look(), form)

    def __pow__(self, other: Any) -> Any:
        return self._look() ** (other._look() if isinstance(other, Noisy) else other)

    def __rpow__(self, other: Any) -> Any:
        return other ** self._look()

    def __floordiv__(self, other: Any) -> Any:
        return self._look() // (other._look() if isinstance(other, Noisy) else other)

    def __rfloordiv__(self, other: Any) -> Any:
        return other // self._look()

    def __mod__(self, other: Any) -> Any:
        return self._look() % (other._look() if isinstance(other, Noisy) else other)

    def __rmod__(self, other: Any) -> Any:
        return other % self._look()

    def is_integer(self) -> bool:
        """As of a float."""
        return float(self._look()).is_integer()

    # As numbers of numpy have them.

    def item(self) -> Noisy:
        """As of a number of numpy."""
        return self

    def astype(self, kind: Any, **_: Any) -> Any:
        """As of a number of numpy: a double stays tracked."""
        return self if _is_double(kind) else np.dtype(kind).type(self._look())

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        return apply_ufunc(ufunc, method, inputs, keywords)


class NoisyArray(np.ndarray):
    """An array of objects, some of them `Noisy`."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        return apply_ufunc(ufunc, method, inputs, keywords)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in _FUNCTIONS:
            return _FUNCTIONS[func](*args, **kwargs)
        inner = super().__array_function__(
            func, tuple(np.ndarray if t is NoisyArray else t for t in types), args, kwargs
        )
        return wrapped(inner)

    def astype(self, dtype: Any, *args: Any, **keywords: Any) -> Any:
        """Doubles stay tracked; anything else, shorter floats too, is a look at all of it."""
        if _is_double(dtype):
            return self.copy()
        if np.dtype(dtype).kind == "O":
            return self
        return numbers_of(self).astype(dtype, *args, **keywords)

    def argmax(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
        """The place of the largest: a decision where its probabilities are known."""
        return np.argmax(self, axis, out, keepdims=keepdims) if keepdims else np.argmax(self, axis, out)

    def argmin(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
        """The place of the smallest."""
        return np.argmin(self, axis, out, keepdims=keepdims) if keepdims else np.argmin(self, axis, out)

    def clip(self, min: Any = None, max: Any = None, out: Any = None, **keywords: Any) -> Any:
        """As `numpy.clip`: decisions, not looks."""
        return _clip(self, min, max, out, **keywords)

    def round(self, decimals: Any = 0, out: Any = None) -> Any:
        """A look at all of it."""
        return numbers_of(self).round(decimals, out)


def _is_double(kind: Any) -> bool:
    return bool(np.dtype(kind).kind == "f" and np.dtype(kind).itemsize >= 8)


def wrapped(value: Any) -> Any:
    """An array of objects as a `NoisyArray`, also inside lists and tuples; anything else as it is."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return value.view(NoisyArray) if value.ndim else value.item()
    if isinstance(value, list | tuple) and any(isinstance(item, np.ndarray) for item in value):
        return type(value)(wrapped(item) for item in value)
    return value


def numbers_of(array: Any) -> Any:
    """The values of an array, as floats: a look at all of it."""
    plain = np.asarray(array).view(np.ndarray)
    if plain.dtype != object:
        return plain
    flat = [item._look() if isinstance(item, Noisy) else item for item in plain.ravel().tolist()]
    return np.array(flat, dtype=float).reshape(plain.shape)


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """What a function of numpy gives on arrays of which some are noisy."""
    out = keywords.pop("out", None)
    # Validity: an array of floats cannot keep symbols, and whoever goes on with it would see no noise.
    is_lost = bool(out) and not all(isinstance(array, np.ndarray) and array.dtype == object for array in out)
    if is_lost and (len(out) > 1 or not _is_rebound(out[0], sys._getframe(2))):
        _mark(inputs)
    if ufunc in BY_SIGNAL:
        return getattr(ufunc, method)(*(_signals(item) for item in inputs), **keywords)
    kind = keywords.get("dtype")
    is_cast = kind is not None and np.dtype(kind).kind != "O" and not _is_double(kind)
    if ufunc not in LINEAR or (ufunc is np.matmul and method != "__call__") or "where" in keywords or is_cast:
        return getattr(ufunc, method)(*(plain(item) for item in inputs), **keywords, **({"out": out} if out else {}))
    given = [_objects(item) for item in inputs]
    keywords.pop("dtype", None)
    found = wrapped(getattr(ufunc, method)(*given, **keywords))
    if out and isinstance(out[0], np.ndarray) and out[0].dtype == object:
        out[0][...] = found
        return out[0]
    return found


def _is_rebound(array: Any, frame: Any) -> bool:
    """Whether a statement such as `a += noise` gives the only name of an array to what it results in.

    Called by `apply_ufunc`, which `__array_ufunc__` called; `frame` is that of the statement.
    """
    code, place = frame.f_code.co_code, frame.f_lasti
    if not 0 <= place < len(code) - 1 or code[place] != opmap["BINARY_OP"] or code[place + 1] < _FIRST_IN_PLACE:
        return False
    references = sys.getrefcount(array)
    if array is _PROBED.get("array"):
        _PROBED["references"] = references
    return array.base is None and references <= _PROBED.get("references", 0)


def _probe() -> None:
    """Count the references to an array with one name while it is added to."""
    array = np.zeros(1)
    _PROBED["array"] = array
    array += np.zeros(1, dtype=object).view(NoisyArray)
    _PROBED.clear() if "references" not in _PROBED else _PROBED.pop("array")
    if _PROBED:
        _PROBED["references"] -= 1  # that of the probe itself


def _mark(items: Iterable[Any]) -> None:
    """Mark the tape of the first symbol as opaque."""
    for item in items:
        listed = np.asarray(item).view(np.ndarray).ravel().tolist() if isinstance(item, NoisyArray) else [item]
        for entry in listed:
            if isinstance(entry, Noisy):
                entry.tape.mark_opaque()
                return


def _objects(item: Any) -> Any:
    if isinstance(item, Noisy):
        box = np.empty((), dtype=object)
        box[()] = item
        return box
    return item.view(np.ndarray) if isinstance(item, NoisyArray) else item


def plain(item: Any) -> Any:
    return item._look() if isinstance(item, Noisy) else numbers_of(item) if isinstance(item, NoisyArray) else item


def _signals(item: Any) -> Any:
    if isinstance(item, Noisy):
        return item.signal
    if not isinstance(item, NoisyArray):
        return item
    plain = item.view(np.ndarray)
    flat = [entry.signal if isinstance(entry, Noisy) else entry for entry in plain.ravel().tolist()]
    return np.array(flat, dtype=float).reshape(plain.shape)


def _made(tape: Tape, signal: float, terms: dict[int, float], reach: float) -> Any:
    left = {index: factor for index, factor in terms.items() if factor != 0.0}
    return Noisy(tape, signal, left, reach if math.isfinite(reach) else 0.0) if left else signal


def _number(value: Any) -> float | None:
    if isinstance(value, float | int | np.floating | np.integer | np.bool_):
        return float(value)
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "fiub":
        return float(value)
    return None


def _places(array: Any, axis: Any, sign: float) -> Any:
    plain = np.asarray(array).view(np.ndarray)
    if axis is None:
        return _place(plain.ravel().tolist(), sign)
    moved = np.moveaxis(plain, axis, -1)
    places = [_place(row.tolist(), sign) for row in moved.reshape(-1, moved.shape[-1])]
    found = np.array(places, dtype=np.intp).reshape(moved.shape[:-1])
    return found if found.ndim else found[()]


def _place(row: list[Any], sign: float) -> np.intp:
    """The place of the largest of sign * numbers; a decision where they have independent noise of one law."""
    noisy = [item for item in row if isinstance(item, Noisy)]
    if noisy and len(noisy) == len(row) and all(len(item.terms) == 1 for item in noisy):
        tape = noisy[0].tape
        indices = [next(iter(item.terms)) for item in noisy]
        fresh = not tape.spent.intersection(indices) and not any(index in tape.intervals for index in indices)
        laws = {tape.noises[index].law for index in indices}
        if fresh and len(set(indices)) == len(indices) and len(laws) == 1:
            signals = [sign * item.signal for item in noisy]
            factors = [sign * item.terms[index] for item, index in zip(noisy, indices, strict=True)]
            chances = probabilities_of_largest(signals, factors, laws.pop())
            if chances is not None:
                actual = int(np.argmax([sign * item.value for item in noisy]))
                tape.spent.update(indices)
                place = tape.choose(chances, actual, "place of the largest")
                if place != actual:  # numbers with which it is, for a run with numbers
                    rest = max(sign * item.value for k, item in enumerate(noisy) if k != place)
                    _raise(tape, indices[place], (rest - signals[place]) / factors[place], factors[place])
                return np.intp(place)
    values = [item._look() if isinstance(item, Noisy) else item for item in row]
    return np.argmax(sign * np.array(values, dtype=float))


def _raise(tape: Tape, index: int, bound: float, factor: float) -> None:
    """Give a noise a value beyond a bound, on the side of the factor's sign."""
    noise = tape.noises[index]
    value = bound + math.copysign(noise.law.scale, factor)
    value = max(value, noise.law.scale) if noise.law.family == "exponential" else value
    tape.noises[index] = dataclasses.replace(noise, value=value)


def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **keywords: Any) -> Any:
    low = keywords.pop("min", a_min)
    high = keywords.pop("max", a_max)
    if out is not None or keywords:
        return np.clip(plain(a), plain(low), plain(high), out=_whole(out), **keywords)
    found = a if low is None else np.maximum(a, low)
    return found if high is None else np.minimum(found, high)


def _whole(out: Any) -> Any:
    """An array for numbers; symbols cannot be written there any more, which a run with numbers does not know."""
    if isinstance(out, NoisyArray):
        raise Unsupported("numbers are written into an array of noisy numbers.")
    return out


def _extreme(function: Any, ufunc: np.ufunc) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, out: Any = None, **options: Any) -> Any:
        if out is not None or set(options) - {"keepdims"}:
            return function(plain(a), axis=axis, out=_whole(out), **{k: plain(v) for k, v in options.items()})
        return ufunc.reduce(a, axis=axis, **options)

    return call


def _place_of(function: Any, sign: float) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, out: Any = None, **options: Any) -> Any:
        if out is not None or options:
            return function(plain(a), axis=axis, out=_whole(out), **options)
        return _places(a, axis, sign)

    return call


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.clip: _clip,
    np.argmax: _place_of(np.argmax, 1.0),
    np.argmin: _place_of(np.argmin, -1.0),
    np.round: lambda a, decimals=0, out=None: np.round(plain(a), decimals, _whole(out)),
    np.max: _extreme(np.max, np.maximum),
    np.min: _extreme(np.min, np.minimum),
}
_probe()
