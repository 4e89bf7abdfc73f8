"""Symbols: draws that stand for numbers of the program, and arrays of them.

Each kind of symbol knows its sums, multiples and comparisons: a uniform number (`uniform_numbers`), a whole number
(`whole_numbers`), a noisy number (`noisy_numbers`). Whatever else a program does with it asks for its `number`: found
by choices, by a look at the value of this run, or refused.

A plain object array would let numpy raise a `TypeError` of its own, or hand out the addresses of the symbols. A
`SymbolArray` says that its numbers are doubles (or integers), as those that the program would have got, and all that it
holds are numpy's own. Of numpy's functions it knows those that are comparisons, sums and selections; any other one gets
numbers. Noisy numbers go into all of them: what becomes of them there is held against runs with numbers.
"""

from __future__ import annotations

import functools
import math
import numbers
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy import asarray  # which stays numpy's own while `conversions` replaces it

from dpaudit.symbolic.choices import Choices

PYTHONS: Mapping[type, type] = {int: int, float: float, np.int64: int, np.float64: float}
NUMPYS: Mapping[type, type] = {int: np.int64, float: np.float64, np.int64: np.int64, np.float64: np.float64}
# By these, numpy's functions ask numbers to answer themselves; without them they take the ufunc, which knows symbols.
OF_FUNCTIONS = frozenset({"sum", "max", "min"})
SHAPES = frozenset({"shape", "ndim", "size"})  # of a number of numpy's, whatever it is


@functools.lru_cache(maxsize=512)
def class_of_result(operation: Any, first: type, second: type) -> type | None:
    """The class that an operation on two numbers gives, of the four that symbols have; None for another one.

    Examples
    --------
    >>> class_of_result(operator.add, float, np.int64), class_of_result(operator.add, int, np.int32)
    (<class 'numpy.float64'>, None)
    """
    try:
        found = type(operation(first(1), second(1)))
    except Exception:  # numbers of other libraries, which may not mix with these
        return None
    return found if found in PYTHONS else None


def is_nan(value: Any) -> bool:
    """Tell whether a number, which may be a symbol, is NaN."""
    return not isinstance(value, Symbol) and isinstance(value, float | np.floating | Decimal) and math.isnan(value)


def _comparing(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: self._compared(operation, other)


class Symbol:
    """A draw that stands for a number of the program.

    Its `_kind` is the class of that number: Python's `int` or `float`, or numpy's, whose comparisons, divisions and
    sums follow other rules. `rng.random()` is Python's float, and `rng.random(2)[0]` is numpy's.
    """

    __slots__ = ("_kind", "_run")
    _kind: type
    _run: Any
    FAMILY = ""  # "uniform", "whole" or "noise"
    FOLLOWED: Mapping[Any, Callable[..., Any]] = {}  # ufuncs beside sums, multiples and comparisons
    COMPARED: tuple[type, ...] = (int, np.integer, np.bool_, Fraction, Decimal)  # as rationals, whatever a sum gives

    # What each kind says of itself: the same number of another class, and the number or the end of the run, with a word
    # on what for. A kind that keeps the symbol in a sum, a multiple or a comparison says how.
    as_class: Callable[[type], Any]
    number: Callable[..., Any]

    def centre(self) -> float:
        """A number that is finite, infinite or NaN as the symbol is."""
        return 0.0

    def _is_below(self, other: Any, is_strict: bool) -> Any:
        """Tell whether the symbol is below a number or another symbol; `NotImplemented` where that cannot say."""
        number, limit = self.number("a comparison"), number_of(other, "a comparison")
        return number < limit if is_strict else number <= limit

    def _equals(self, other: Any) -> Any:
        return self.number("a comparison") == number_of(other, "a comparison")

    def _sum(self, other: Any, sign: int) -> Any:
        number, more = self.number("a sum"), number_of(other, "a sum")
        return number + more if sign > 0 else number - more

    def _product(self, other: Any) -> Any:
        return self.number("a product") * number_of(other, "a product")

    def _quotient(self, other: Any) -> Any:
        return self.number("a quotient") / number_of(other, "a quotient")

    # Comparisons.

    def _needs_number(self, other: Any) -> bool:
        """Tell whether a comparison takes the number: with a complex one, or one of numpy's in another precision."""
        if type(other) in PYTHONS or isinstance(other, (Symbol, *self.COMPARED)):
            return False
        return isinstance(other, numbers.Number | np.generic) and self._result_class(operator.add, other) is None

    def _compared(self, operation: Callable[[Any, Any], Any], other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return elements(lambda item: operation(self, item), other).astype(bool)[()]
        if self._needs_number(other):
            return operation(self.number("a comparison"), other)
        if operation in (operator.eq, operator.ne):
            answer = self._equals(other)
        else:
            answer = self._is_below(other, operation in (operator.lt, operator.ge))
        if answer is NotImplemented:
            return answer
        # a > b is not (a <= b), but for NaN.
        if operation in (operator.gt, operator.ge, operator.ne):
            answer = not answer and (operation is operator.ne or not is_nan(other))
        return np.bool_(answer) if isinstance(self, np.generic) or isinstance(other, np.generic) else bool(answer)

    __lt__, __le__, __gt__, __ge__ = map(_comparing, (operator.lt, operator.le, operator.gt, operator.ge))
    __eq__, __ne__ = map(_comparing, (operator.eq, operator.ne))

    def __bool__(self) -> bool:
        return bool(self != 0)

    # Sums and multiples.

    def _each(self, function: Callable[[Any], Any], other: Any) -> Any:
        """Result of a function for a number, or for each element of an array."""
        return guarded(elements(function, other))[()] if isinstance(other, np.ndarray) else function(other)

    def __add__(self, other: Any) -> Any:
        return self._each(lambda item: self._sum(item, 1), other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._each(lambda item: self._sum(item, -1), other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        return self._each(self._product, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self._each(self._quotient, other)

    def __neg__(self) -> Any:
        return self._product(-1)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def _result_class(self, operation: Any, other: Any) -> type | None:
        return class_of_result(operation, self._kind, other._kind if isinstance(other, Symbol) else type(other))

    # What needs the number is below (`_OF_ONE`, `_OF_TWO`).

    def __round__(self, digits: Any = None) -> Any:
        return round(self.number("round"), digits)

    def __format__(self, text: str) -> str:
        return format(self.number("a text"), text)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._kind, (self.number("a copy"),)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, _: Any) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        is_numpys = NUMPYS[self._kind] is self._kind
        if name == "item" and is_numpys:
            return self._item
        if name.startswith("__") or not hasattr(self._kind, name) or (is_numpys and name in OF_FUNCTIONS):
            raise AttributeError(f"'{self._kind.__name__}' object has no attribute {name!r}")
        return getattr(self._kind(1) if name in SHAPES else self.number(name), name)

    def _item(self) -> Any:
        return self.as_class(PYTHONS[self._kind])

    # A program that asks whether a draw is such a number must go the way that it goes with one.
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self._kind

    def __array__(self, *_: Any, **__: Any) -> Any:
        return filled([self.as_class(NUMPYS[self._kind])], ())  # in an array a number is one of numpy's

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return call_ufunc(self._run, function, method, inputs, options)

    def clip(self, low: Any = None, high: Any = None, **options: Any) -> Any:
        """Method that `numpy.clip` calls on a number."""
        if any(value is not None for value in options.values()):
            return np.clip(self.number("clip"), low, high, **options)
        value = self if low is None else np.maximum(self, low)
        return value if high is None else np.minimum(value, high)


def _by_number(use: str, operation: Callable[..., Any], is_reflected: bool = False) -> Callable[..., Any]:
    def method(self: Symbol, *others: Any) -> Any:
        shown = [number_of(other, use) for other in others]
        number = self.number(use)
        return operation(shown[0], number, *shown[1:]) if is_reflected else operation(number, *shown)

    return method


_OF_ONE: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "float": ("float", float), "complex": ("complex", complex), "int": ("int", int), "trunc": ("trunc", math.trunc),
    "floor": ("floor", math.floor), "ceil": ("ceil", math.ceil), "invert": ("~", operator.invert),
    "index": ("a position, a count or a limit", operator.index), "hash": ("a key, or a member of a set", hash),
    "repr": ("a text", repr), "str": ("a text", str),
}  # fmt: skip
_OF_TWO: Mapping[str, Callable[..., Any]] = {
    "floordiv": operator.floordiv, "mod": operator.mod, "divmod": divmod, "pow": pow, "lshift": operator.lshift,
    "rshift": operator.rshift, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
}  # fmt: skip
for _name, (_use, _operation) in _OF_ONE.items():
    setattr(Symbol, f"__{_name}__", _by_number(_use, _operation))
for _name, _operation in _OF_TWO.items():
    setattr(Symbol, f"__{_name}__", _by_number(_name, _operation))
    setattr(Symbol, f"__r{_name}__", _by_number(_name, _operation, True))
setattr(Symbol, "__rtruediv__", _by_number("truediv", operator.truediv, True))  # noqa: B010


def number_of(value: Any, use: str) -> Any:
    """A value without symbols: the number of one, the numbers of an array, of a list or of a tuple."""
    if isinstance(value, SymbolArray):
        return _number_array(value, use)
    if isinstance(value, Symbol):
        return value.number(use)
    if type(value) in (list, tuple):
        return type(value)(number_of(item, use) for item in value)
    return value


def elements(function: Callable[[Any], Any], array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Results of a function for each element, as an object array that is laid out as the array."""
    plain = asarray(array)
    found = np.empty_like(plain, dtype=object)
    for index in np.ndindex(plain.shape):
        found[index] = function(plain[index])
    return found


# Arrays.


def _least(a: Any, b: Any) -> Any:
    return a if is_nan(a) or (not is_nan(b) and a <= b) else b


def _largest(a: Any, b: Any) -> Any:
    return a if is_nan(a) or (not is_nan(b) and a >= b) else b


def _clipped(a: Any, low: Any, high: Any) -> Any:
    return _least(_largest(a, low), high)


COMPARISONS: Mapping[Any, Callable[..., Any]] = {
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
}
OPERATIONS: Mapping[Any, Callable[..., Any]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.negative: operator.neg,
    np.positive: operator.pos,
    np.absolute: abs,
    np.minimum: _least,
    np.maximum: _largest,
}
BY_CENTRE: Mapping[Any, Callable[..., Any]] = {
    function: lambda a, of=function: of(a.centre()) for function in (np.isnan, np.isfinite, np.isinf)
}
KNOWN_FUNCTIONS = frozenset(  # of numpy, made of the ufuncs above, of comparisons of elements and of selections
    {np.where, np.clip, np.searchsorted, np.argmax, np.argmin, np.max, np.min, np.amax, np.amin, np.sum, np.atleast_1d}
    | {np.concatenate, np.stack, np.hstack, np.vstack, np.ravel, np.reshape, np.argsort, np.sort, np.squeeze, np.copy}
    | {np.transpose, np.take, np.ndim, np.shape, np.size, np.expand_dims, np.broadcast_to, np.array_split, np.split}
)
QUANTILES: Mapping[Any, float] = {np.median: 1.0, np.quantile: 1.0, np.percentile: 100.0}  # what stands for 1
OF_ORDER = frozenset(
    {np.median, np.percentile, np.quantile, np.nanmedian, np.nanpercentile, np.nanquantile, np.partition}
)
FOLLOWED_OPTIONS = frozenset({"axis", "keepdims"})  # of a sum, beside the type of doubles


class SymbolArray(np.ndarray[Any, Any]):
    """An object array with symbols; made by `guarded`."""

    run: Any
    holds_floats: bool

    def __array_finalize__(self, other: Any) -> None:
        self.run = getattr(other, "run", None)
        self.holds_floats = getattr(other, "holds_floats", False)

    # What the program would have got.
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return np.ndarray

    @property
    def dtype(self) -> Any:
        return np.dtype(self._kind)

    @property
    def _kind(self) -> type:
        return np.float64 if self.holds_floats else np.int64

    def __setitem__(self, index: Any, value: Any) -> None:
        several = _objects(value)
        items = [_converted(item, self._kind) for item in several.flat]
        several = filled(items, several.shape)
        super().__setitem__(index, several if several.shape else several[()])

    def item(self, *index: Any) -> Any:
        return _as_pythons(super().item(*index))

    def tolist(self) -> Any:
        return _as_pythons(super().tolist())

    def __array_ufunc__(self, ufunc: Any, method: Any, *inputs: Any, **kwargs: Any) -> Any:
        return call_ufunc(self.run, ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        is_noise = _families(symbols_of(self)) == {"noise"}
        is_plain = self.ndim == 1 and not kwargs and len(args) == 1 + (function is not np.median)
        if is_noise and function in QUANTILES and is_plain and args[0] is self:
            return _quantiles(self, asarray((0.5, *args[1:])[-1]) / QUANTILES[function])
        if function in KNOWN_FUNCTIONS or (is_noise and function not in OF_ORDER):
            found = function._implementation(*args, **kwargs)
            if not isinstance(found, np.ndarray) or not _is_object(found):
                return found
            if function not in KNOWN_FUNCTIONS:
                return guarded(found)
            dtype = function(*_stand_in(args), **_stand_in(kwargs)).dtype
            if dtype in (np.float64, np.int64, object):
                return guarded(found, dtype)
        use = getattr(function, "__name__", "numpy")
        return function(*number_of(args, use), **{key: number_of(value, use) for key, value in kwargs.items()})

    def astype(  # type: ignore[override]
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        """Numbers of another type: as doubles and integers they stay symbols, and become numbers otherwise."""
        kind, is_plain = np.dtype(dtype).type, (order, casting, subok) == ("K", "unsafe", True)
        if is_plain and kind in (self._kind, np.object_):
            return self if kind is self._kind and not copy else self.copy("K")
        if is_plain and kind in PYTHONS:
            return guarded(elements(lambda item: _converted(item, kind), self))
        number: Any = asarray(_number_array(self, "astype"), dtype=self.dtype)
        return number.astype(dtype, order, casting, subok, copy)

    def argmax(self, axis: Any = None, out: Any = None, **options: Any) -> Any:
        return self._places("argmax", 1.0, axis, out, options)

    def argmin(self, axis: Any = None, out: Any = None, **options: Any) -> Any:
        return self._places("argmin", -1.0, axis, out, options)

    def _places(self, name: str, sign: float, axis: Any, out: Any, options: Mapping[str, Any]) -> Any:
        """Places of the largest of sign * numbers, in which symbols may know better than by comparing two at a time."""
        plain = asarray(self)
        place = next((item.place_of_largest for item in plain.flat if hasattr(type(item), "place_of_largest")), None)
        if place is None or out is not None or options.get("keepdims", False):
            return getattr(np.ndarray, name)(plain, axis, out, **options)
        if axis is None:
            return place(plain.ravel().tolist(), sign)
        moved = np.moveaxis(plain, axis, -1)
        places = [place(row.tolist(), sign) for row in moved.reshape(-1, moved.shape[-1])]
        return np.array(places, dtype=np.intp).reshape(moved.shape[:-1])[()]

    def __reduce__(self) -> Any:
        return _number_array(self, "pickle").__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _number_array(self, "pickle").__reduce_ex__(protocol)

    def __deepcopy__(self, _: Any) -> Any:
        return self.copy("K")


def _quantiles(array: Any, shares: Any) -> Any:
    """Some quantiles of noisy numbers: one of them, or between two."""
    ordered, found = sorted(asarray(array).tolist()), []
    for place in (shares * (len(ordered) - 1)).ravel().tolist():
        low, beyond = math.floor(place), place % 1.0
        found.append(ordered[low] + (ordered[low + 1] - ordered[low]) * beyond if beyond else ordered[low])
    return guarded(filled(found, shares.shape), np.float64)[()]


def _method_by_numbers(name: str) -> Callable[..., Any]:
    def method(self: SymbolArray, *args: Any, **options: Any) -> Any:
        if name in ("mean", "dot", "trace") and _families(symbols_of(self)) == {"noise"}:
            return guarded(_boxed(getattr(np.ndarray, name)(self, *args, **options)))[()]
        if name == "round" and _families(symbols_of(self)) == {"noise"}:
            return guarded(elements(lambda item: np.round(item, *args, **options), self), self.dtype)[()]
        return getattr(_number_array(self, name), name)(*args, **options)

    return method


for _name in ("tobytes", "tofile", "dump", "dumps", "byteswap", "getfield", "round", "dot", "trace", "cumprod"):
    setattr(SymbolArray, _name, _method_by_numbers(_name))
for _name in ("mean", "std", "var", "prod", "partition", "argpartition", "choose", "nonzero", "__repr__", "__str__"):
    setattr(SymbolArray, _name, _method_by_numbers(_name))


def _is_object(array: np.ndarray[Any, Any]) -> bool:
    return bool(asarray(array).dtype.kind == "O")  # not the one that a `SymbolArray` says


def symbols_of(array: Any) -> list[Any]:
    """The symbols among the elements of an array."""
    plain = asarray(array)
    return [item for item in plain.flat if isinstance(item, Symbol)] if _is_object(plain) else []


def _families(symbols: Iterable[Any]) -> set[str]:
    return {item.FAMILY for item in symbols}


def guarded(array: Any, dtype: Any = None) -> Any:
    """An object array as a `SymbolArray` where it has symbols; else as numpy would have made it of its numbers.

    Its type is `dtype`, or what numpy makes of such numbers. `np.maximum(draws, 0.5)` has doubles, whichever are left.
    """
    plain = asarray(array)
    if not _is_object(plain):
        return array
    symbols = symbols_of(plain)
    if not symbols:
        return plain.astype(np.array(plain.tolist(), dtype=dtype).dtype)
    if not all(isinstance(item, bool | int | float | np.bool_ | np.integer | np.floating) for item in plain.flat):
        return plain  # of objects in the program, too
    holds_floats = dtype == np.float64 or any(isinstance(item, float | np.floating) for item in plain.flat)
    kind = np.float64 if holds_floats else np.int64
    # Validity: what is a view in the program stays one, so that what is written to it is written to the draws.
    is_held = all((item._kind if isinstance(item, Symbol) else type(item)) is kind for item in plain.flat)
    result = (plain if is_held else elements(lambda item: _converted(item, kind), plain)).view(SymbolArray)
    result.run, result.holds_floats = symbols[0]._run, holds_floats
    return result


def filled(items: Sequence[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An object array of some items."""
    array = np.empty(len(items), dtype=object)
    for place, item in enumerate(items):  # numpy would ask each symbol of a list for an array
        array[place] = item
    return array.reshape(shape)


def _boxed(value: Any) -> Any:
    return filled([value], ()) if isinstance(value, Symbol) else value


def _converted(item: Any, kind: Any) -> Any:
    """A number, which may be a symbol, as an array of doubles (or of integers) holds it."""
    return item.as_class(kind) if isinstance(item, Symbol) else kind(item)


def _as_pythons(value: Any) -> Any:
    """Numbers of an array, in lists where it has axes, as Python's."""
    if isinstance(value, list):
        return [_as_pythons(item) for item in value]
    if isinstance(value, Symbol):
        return value.as_class(PYTHONS[value._kind])
    return value.item() if isinstance(value, np.generic) else value


def call_ufunc(
    run: Choices | None, function: Any, method: str, inputs: Sequence[Any], options: Mapping[str, Any]
) -> Any:
    """Result of a ufunc on symbols."""
    target = options.get("out")
    if target is not None:
        rest = {key: value for key, value in options.items() if key != "out"}
        is_one = len(target) == 1 and isinstance(target[0], np.ndarray)
        if is_one and (isinstance(target[0], SymbolArray) or _is_object(target[0])):
            return _written(run, target[0], call_ufunc(run, function, method, inputs, rest))
        return getattr(function, method)(*number_of(tuple(inputs), function.__name__), **options)
    arrays = [_objects(value) for value in inputs]
    families = _families(item for array in arrays for item in symbols_of(array))
    options = {
        key: value for key, value in options.items()
        if value is not None and value is not np._NoValue and (key, value) != ("where", True)
    }  # fmt: skip
    known = COMPARISONS.get(function) or OPERATIONS.get(function) or BY_CENTRE.get(function)
    if function.__name__ == "clip":  # the ufunc behind `numpy.clip`, which has no public name
        known = _clipped
    followed = (type(item).FOLLOWED.get(function) for array in arrays for item in symbols_of(array))
    known = known or next(filter(None, followed), None)
    if not all(map(_is_double_or_integer, inputs)):
        if "uniform" in families and run is not None:
            run.lose("a uniform number is computed with numbers of numpy's that are neither doubles nor integers")
        gives = _stood_in(np.add if function in COMPARISONS else function, inputs).dtype  # what numpy compares them as
        is_followed = families == {"noise"} and gives in (np.float64, np.int64)
        known = known if is_followed else None
    if known is not None and method == "__call__" and not options:
        spread, real = np.broadcast_arrays(*arrays), _stood_in(function, inputs)
        result = np.empty_like(real, dtype=object)  # laid out as numpy's would be, so that views of it are those
        for index in np.ndindex(result.shape):
            items = [array[index] for array in spread]
            operation = known if any(isinstance(item, Symbol) for item in items) else function
            result[index] = operation(*map(_operand, items))
        if function in COMPARISONS or function in BY_CENTRE:
            return result.astype(bool)[()]
        with np.errstate(all="ignore"):
            return guarded(result, real.dtype)[()]
    is_double = np.dtype(options.get("dtype", float)) == np.float64
    rest = {key: value for key, value in options.items() if key != "dtype"}
    is_sum = known is not None and method == "reduce" and rest == options and arrays[0].size > 0
    followed_by: Mapping[Any, Any] = {"noise": known or function is np.matmul, "whole": is_sum}
    if len(families) == 1 and followed_by.get(next(iter(families))) and FOLLOWED_OPTIONS.issuperset(rest) and is_double:
        found = _boxed(getattr(function, method)(*arrays, **rest))
        return guarded(found, np.float64 if families == {"noise"} else None)[()]
    # An array that is empty, or has lost its symbols, would ask here again.
    shown = [number_of(value, function.__name__) if isinstance(value, Symbol)  # Python's adapt to numpy's shorter ones
             else _number_array(array, function.__name__) if symbols_of(array) or type(value) is SymbolArray else value
             for array, value in zip(arrays, inputs, strict=True)]  # fmt: skip
    return getattr(function, method)(*shown, **options)


def _stood_in(function: Any, inputs: Sequence[Any]) -> Any:
    """Result of a ufunc for ones in the places of symbols, which has the type and the layout of that for draws."""
    with np.errstate(all="ignore"):
        return function(*map(_stand_in, inputs))


def _stand_in(value: Any) -> Any:
    """Arguments with ones in the places of symbols: what numpy makes of them has the type that its result has."""
    if isinstance(value, list | tuple):
        return type(value)(map(_stand_in, value))
    if isinstance(value, dict):
        return {key: _stand_in(item) for key, item in value.items()}
    value = guarded(value) if isinstance(value, np.ndarray) else value
    if isinstance(value, SymbolArray):
        return np.ones_like(asarray(value), dtype=value.dtype)
    return value._kind(1) if isinstance(value, Symbol) else value


def _written(run: Choices | None, array: Any, found: Any) -> Any:
    """Result of an operation in place, in the array that it was asked to write to."""
    is_float = PYTHONS.get(found._kind if isinstance(found, Symbol) else found.dtype.type) is float
    if run is not None and is_float and array.dtype == np.int64:
        run.lose("doubles are written into an array of integers")
    array[...] = found
    return array


def _is_double_or_integer(value: Any) -> bool:
    """Tell whether numpy computes with a value in doubles or 64-bit integers."""
    if isinstance(value, np.ndarray | np.generic) and not isinstance(value, Symbol):
        return value.dtype in (np.dtype(float), np.dtype(np.int64), np.dtype(bool), np.dtype(object))
    return True


def _operand(item: Any) -> Any:
    """An element as an operator takes it: a symbol as numpy's own, so that the answer is; a number as Python's."""
    if isinstance(item, Symbol):
        return item.as_class(NUMPYS[item._kind])
    return item.item() if isinstance(item, np.generic) else item


def _objects(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, Symbol):
        return filled([_operand(value)], ())
    array = asarray(value)
    return array if _is_object(array) else array.astype(object)


def _number_array(array: np.ndarray[Any, Any], use: str) -> np.ndarray[Any, Any]:
    """The numbers of an array."""
    plain = asarray(array)
    numbers = [item.number(use) if isinstance(item, Symbol) else item for item in plain.flat]
    return np.array(filled(numbers, plain.shape).tolist()).reshape(plain.shape)
