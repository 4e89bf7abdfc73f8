"""Arrays of symbols: what numpy does with them goes through the symbols, or is refused.

A plain object array would let numpy raise a `TypeError` of its own, or hand out the addresses of the symbols. A
`SymbolArray` says that its numbers are doubles (or integers), as those that the program would have got, and all that it
holds are numpy's own (`Symbol`). Of numpy's functions it knows those that are comparisons, sums and selections. For any
other one, whole numbers become numbers, and a uniform number is refused.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy import asarray  # which stays numpy's own while `conversions` replaces it

from dpaudit.symbolic.tracing import NUMPYS, PYTHONS, Symbol, Tracer
from dpaudit.symbolic.uniform_numbers import UniformNumber, is_nan
from dpaudit.symbolic.whole_numbers import WholeNumber


def _least(a: Any, b: Any) -> Any:
    return a if is_nan(a) or (not is_nan(b) and a <= b) else b


def _largest(a: Any, b: Any) -> Any:
    return a if is_nan(a) or (not is_nan(b) and a >= b) else b


def _clipped(a: Any, low: Any, high: Any) -> Any:
    return _least(_largest(a, low), high)


def _floor(a: Any) -> Any:
    return float(np.floor(a)) if type(a) not in SYMBOLS else float(a.__floor__())


def _rint(a: Any) -> Any:
    whole = _floor(a + 0.5)  # ties have probability 0
    return whole if whole or a >= 0 else -0.0


COMPARISONS: Mapping[Any, Callable[..., Any]] = {
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
}
UNIFORM_ONLY: Mapping[Any, Callable[..., Any]] = {
    np.floor_divide: operator.floordiv,
    np.remainder: operator.mod,
    np.divide: operator.truediv,
    np.floor: _floor,
    np.ceil: lambda a: -_floor(-a),
    np.trunc: lambda a: _floor(a) if a >= 0 else -_floor(-a),
    np.rint: _rint,
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
KNOWN_FUNCTIONS = frozenset(  # of numpy, made of the ufuncs above, of comparisons of elements and of selections
    {np.where, np.clip, np.searchsorted, np.argmax, np.argmin, np.max, np.min, np.amax, np.amin, np.sum, np.atleast_1d}
    | {np.concatenate, np.stack, np.hstack, np.vstack, np.ravel, np.reshape, np.argsort, np.sort, np.squeeze, np.copy}
    | {np.transpose, np.take, np.ndim, np.shape, np.size, np.expand_dims, np.broadcast_to, np.array_split, np.split}
)
SYMBOLS = frozenset({UniformNumber, WholeNumber})


class SymbolArray(np.ndarray[Any, Any]):
    """An object array with symbols; made by `guarded`."""

    tracer: Tracer | None
    holds_floats: bool

    def __array_finalize__(self, other: Any) -> None:
        self.tracer = getattr(other, "tracer", None)
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
        return call_ufunc(self.tracer, ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in KNOWN_FUNCTIONS:
            found = function._implementation(*args, **kwargs)
            if not isinstance(found, np.ndarray) or not _is_object(found):
                return found
            dtype = function(*_stand_in(args), **_stand_in(kwargs)).dtype
            if dtype in (np.float64, np.int64, object):
                return guarded(found, dtype)
        return function(*_told(args, function), **dict(zip(kwargs, _told(kwargs.values(), function), strict=True)))

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Any:
        """Numbers of another type: whole numbers keep their symbols as integers, and become numbers otherwise."""
        kind = np.dtype(dtype).type
        if kind in (self._kind, np.object_):
            return self.copy()
        if kind in PYTHONS and not args and not options:
            return guarded(filled([_converted(item, kind) for item in asarray(self).flat], self.shape))
        return asarray(_number_array(self, "astype"), dtype=self.dtype).astype(dtype, *args, **options)

    def _numbers(self, name: str, *args: Any, **options: Any) -> Any:
        return getattr(_number_array(self, name), name)(*args, **options)

    def __reduce__(self) -> Any:
        return _number_array(self, "pickle").__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _number_array(self, "pickle").__reduce_ex__(protocol)

    def __deepcopy__(self, _: Any) -> Any:
        return self.copy()


def _by_numbers(name: str) -> Callable[..., Any]:
    def method(self: SymbolArray, *args: Any, **options: Any) -> Any:
        return self._numbers(name, *args, **options)

    return method


for _name in ("tobytes", "tofile", "dump", "dumps", "byteswap", "getfield", "round", "dot", "trace", "cumprod"):
    setattr(SymbolArray, _name, _by_numbers(_name))
for _name in ("mean", "std", "var", "prod", "partition", "argpartition", "choose", "nonzero", "__repr__", "__str__"):
    setattr(SymbolArray, _name, _by_numbers(_name))


def _is_object(array: np.ndarray[Any, Any]) -> bool:
    return bool(asarray(array).dtype.kind == "O")  # not the one that a `SymbolArray` says


def guarded(array: Any, dtype: Any = None) -> Any:
    """An object array as a `SymbolArray` where it has symbols; else as numpy would have made it of its numbers.

    Its type is `dtype`, or what numpy makes of such numbers. `np.maximum(draws, 0.5)` has doubles, whichever are left.
    """
    plain = asarray(array)
    if not _is_object(plain):
        return array
    symbols = [item for item in plain.flat if type(item) in SYMBOLS]
    if not symbols:
        return np.array(plain.tolist(), dtype=dtype).reshape(plain.shape)
    if not all(isinstance(item, bool | int | float | np.bool_ | np.integer | np.floating) for item in plain.flat):
        return plain  # of objects in the program, too
    holds_floats = dtype == np.float64 or any(isinstance(item, float | np.floating) for item in plain.flat)
    kind = np.float64 if holds_floats else np.int64
    result = filled([_converted(item, kind) for item in plain.flat], plain.shape).view(SymbolArray)
    result.tracer, result.holds_floats = tracer_of(symbols), holds_floats
    return result


def filled(items: Sequence[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An object array of some items."""
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array.reshape(shape)


def _converted(item: Any, kind: Any) -> Any:
    """A number, which may be a symbol, as an array of doubles (or of integers) holds it."""
    if type(item) is UniformNumber and kind is np.int64:
        return np.int64(int(item))
    return item.as_class(kind) if type(item) in SYMBOLS else kind(item)


def _as_pythons(value: Any) -> Any:
    """Numbers of an array, in lists where it has axes, as Python's."""
    if isinstance(value, list):
        return [_as_pythons(item) for item in value]
    if type(value) in SYMBOLS:
        return value.as_class(PYTHONS[value._kind])
    return value.item() if isinstance(value, np.generic) else value


def tracer_of(symbols: Iterable[Any]) -> Tracer | None:
    """The tracer of the run that symbols belong to."""
    for item in symbols:
        if type(item) is UniformNumber:
            return item._source.tracer
        if type(item) is WholeNumber:
            return item._tracer
    return None


def call_ufunc(
    tracer: Tracer | None, function: Any, method: str, inputs: Sequence[Any], options: Mapping[str, Any]
) -> Any:
    """What a ufunc gives on symbols."""
    target = options.get("out")
    if target is not None and any(isinstance(array, SymbolArray) for array in target):
        rest = {key: value for key, value in options.items() if key != "out"}
        return _written(tracer, target, call_ufunc(tracer, function, method, inputs, rest))
    arrays = [_objects(value) for value in inputs]
    uniforms = any(type(item) is UniformNumber for array in arrays for item in array.flat)
    options = {key: value for key, value in options.items() if value is not None and value != (None,)}
    known = COMPARISONS.get(function) or OPERATIONS.get(function)
    if function.__name__ == "clip":  # the ufunc behind `numpy.clip`, which has no public name
        known = _clipped
    if known is None and uniforms:
        if function is np.isfinite or function is np.isnan:
            return np.full(np.broadcast(*arrays).shape, function is np.isfinite)[()]
        known = UNIFORM_ONLY.get(function)
    if not all(map(_is_double_or_integer, inputs)):
        if uniforms and tracer is not None:
            tracer.refuse("a uniform number is computed with numbers of numpy's that are neither doubles nor integers")
        known = None
    if known is not None and method == "__call__" and not options:
        shape = np.broadcast(*arrays).shape
        result = np.empty(shape, dtype=object)
        spread = [np.broadcast_to(array, shape) for array in arrays]
        for index in np.ndindex(shape):
            items = [array[index] for array in spread]
            operation = known if any(type(item) in SYMBOLS for item in items) else function
            result[index] = operation(*map(_operand, items))
        if function in COMPARISONS:
            return result.astype(bool)[()]
        with np.errstate(all="ignore"):
            return guarded(result, function(*_stand_in(inputs)).dtype)[()]
    if function is np.add and method == "reduce" and not uniforms and _is_whole_sum(arrays[0], options):
        return functools.reduce(operator.add, map(_operand, arrays[0].flat), 0)
    if function in (np.maximum, np.minimum) and method == "reduce" and _is_whole_sum(arrays[0], options):
        return functools.reduce(_largest if function is np.maximum else _least, arrays[0].flat)
    shown = [_number_array(array, function.__name__) if _has_symbols(array) else value
             for array, value in zip(arrays, inputs, strict=True)]  # fmt: skip
    return getattr(function, method)(*shown, **options)


def _stand_in(value: Any) -> Any:
    """Arguments with ones in the places of symbols: what numpy makes of them has the type that its result has."""
    if isinstance(value, list | tuple):
        return type(value)(map(_stand_in, value))
    if isinstance(value, dict):
        return {key: _stand_in(item) for key, item in value.items()}
    value = guarded(value) if isinstance(value, np.ndarray) else value
    if isinstance(value, SymbolArray):
        return np.ones(value.shape, value.dtype)
    return value._kind(1) if type(value) in SYMBOLS else value


def _written(tracer: Tracer | None, target: Sequence[Any], found: Any) -> Any:
    """What an operation in place leaves: its result, in the array that it was asked to write to."""
    (array,) = target
    is_float = PYTHONS.get(found._kind if isinstance(found, Symbol) else found.dtype.type) is float
    if tracer is not None and is_float and array.dtype != float:
        tracer.refuse("doubles are written into an array of integers")
    array[...] = found
    return array


def _is_double_or_integer(value: Any) -> bool:
    """Whether numpy computes with a value in doubles or 64-bit integers."""
    kind = type(value)
    if isinstance(value, np.ndarray | np.generic) and kind not in SYMBOLS:
        return value.dtype in (np.dtype(float), np.dtype(np.int64), np.dtype(bool), np.dtype(object))
    return True


def _operand(item: Any) -> Any:
    """An element as an operator takes it: a symbol as numpy's own, so that the answer is; a number as Python's."""
    if type(item) in SYMBOLS:
        return item.as_class(NUMPYS[item._kind])
    return item.item() if isinstance(item, np.generic) else item


def _is_whole_sum(array: np.ndarray[Any, Any], options: Mapping[str, Any]) -> bool:
    """Whether a reduction runs over all of an array, with nothing else asked."""
    axis = options.get("axis", 0)
    rest = {key: value for key, value in options.items() if key != "axis" and value not in (None, True, False)}
    is_kept = options.get("keepdims", False)
    return (axis is None or (axis in (0, -1) and array.ndim == 1)) and not is_kept and not rest and array.size > 0


def _objects(value: Any) -> np.ndarray[Any, Any]:
    if type(value) in SYMBOLS:
        return filled([_operand(value)], ())
    array = asarray(value)
    return array if _is_object(array) else array.astype(object)


def _has_symbols(array: np.ndarray[Any, Any]) -> bool:
    return any(type(item) in SYMBOLS for item in array.flat)


def _number_array(array: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    """The numbers of an array; refused where one is uniform."""
    plain = asarray(array)
    shown = np.empty(plain.shape, dtype=object)
    for index in np.ndindex(plain.shape):
        item: Any = plain[index]
        if type(item) is UniformNumber:
            item._refuse(f"a uniform number is used as a number ({name})")
        shown[index] = item.number() if type(item) is WholeNumber else item
    return np.array(shown.tolist()).reshape(plain.shape)


def _told(values: Iterable[Any], function: Any) -> list[Any]:
    """Arguments of a function of numpy without symbols."""
    return [_told_one(value, function) for value in values]


def _told_one(value: Any, function: Any) -> Any:
    if isinstance(value, SymbolArray):
        return _number_array(value, getattr(function, "__name__", "numpy"))
    if type(value) is UniformNumber:
        value._refuse(f"a uniform number is used as a number ({getattr(function, '__name__', 'numpy')})")
    if type(value) is WholeNumber:
        return value.number()
    if type(value) in (list, tuple):
        return type(value)(_told_one(item, function) for item in value)
    return value
