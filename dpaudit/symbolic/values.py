"""Values that a proved program has, and functions of libraries that it may call with them.

One rule stands for lists of what is harmful. **Compiled code and libraries get and give numbers, texts, arrays of
these, and containers of these** (`is_plain`). Which functions may be called is listed here, and nothing else is.
"""

from __future__ import annotations

import bisect
import builtins
import cmath
import collections
import contextlib
import dataclasses
import decimal
import enum
import fractions
import functools
import heapq
import itertools
import json
import math
import operator
import random
import statistics
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from dpaudit.symbolic.generators import TracedRng
from dpaudit.symbolic.instrumenting import KNOWN
from dpaudit.symbolic.known_names import DUNDERS, is_of_process, is_own
from dpaudit.symbolic.symbols import Symbol, SymbolArray, guarded, symbols_of

NUMBERS = (  # also the types of arrays; a long double has bytes that nobody wrote
    bool, int, float, complex, np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32,
    np.uint64, np.float16, np.float32, np.float64, np.complex64, np.complex128, np.longlong, np.ulonglong,
)  # fmt: skip
ATOMS = frozenset({
    *NUMBERS, type(None), str, bytes, range, slice, type(...), type(NotImplemented), np.str_, np.bytes_,
    fractions.Fraction, decimal.Decimal,
})  # fmt: skip
CHANGEABLE = frozenset({
    list, dict, collections.deque, collections.Counter, collections.defaultdict, collections.OrderedDict, bytearray,
})  # fmt: skip
_EMPTY: dict[Any, Any] = {}
VIEWS = tuple(type(view) for view in (_EMPTY.keys(), _EMPTY.values(), _EMPTY.items()))
CONTAINERS = CHANGEABLE - {bytearray} | {tuple, set, frozenset, types.MappingProxyType, *VIEWS}
CLASSES = frozenset({*NUMBERS, str, bytes, np.number, np.integer, np.floating, np.generic, np.signedinteger})
BASES = (ATOMS | CONTAINERS | {object, bytearray, types.SimpleNamespace}) - {set, frozenset, collections.defaultdict}
BASES |= {one for one in vars(builtins).values() if isinstance(one, type) and issubclass(one, BaseException)}
OF_BASES = frozenset({"abc", "enum", "typing", "collections.abc", "numbers", "contextlib"})  # written in Python
FOLLOWED = (Symbol, SymbolArray)
GENERATORS = (TracedRng, np.random.Generator, np.random.RandomState, random.Random)  # whose states are looked at
_ITERABLES: tuple[Any, ...] = ((), [], {}, set(), "", b"", range(0), range(2**70), *map(dict.values, ({},)), {}.items())
ITERATORS = frozenset({
    *(one for one in vars(itertools).values() if isinstance(one, type)), map, filter, zip, enumerate, reversed,
    *(type(iter(one)) for one in _ITERABLES), type(reversed([])), type(reversed({})), types.GeneratorType,
})  # fmt: skip
GIVEN = (*ITERATORS, *GENERATORS, np.errstate, np.finfo, np.iinfo, bytearray)  # by functions of plain values, too


def is_plain(value: Any) -> bool:
    """Tell whether a value is a number, a text, an array of these, or a container of these."""
    kind = type(value)
    if kind in ATOMS:
        return kind is not slice or is_plain([value.start, value.stop, value.step])
    if issubclass(kind, FOLLOWED):
        return True
    if kind is np.ndarray and value.dtype == object:  # of symbols, it stands for one of numbers
        items = value.ravel().tolist()
        return any(issubclass(type(one), Symbol) for one in items) and all(map(is_plain, items))
    if kind in (np.ndarray, np.void) or issubclass(kind, np.dtype):
        return is_plain_type(value if issubclass(kind, np.dtype) else value.dtype)
    if kind is collections.defaultdict and not isinstance(value.default_factory, type | None):
        return False  # its text has that of the function
    if kind in CONTAINERS:
        return all(map(is_plain, value.items() if hasattr(kind, "items") else value))
    if issubclass(kind, type):
        return value in CLASSES
    if issubclass(kind, enum.Enum):
        return is_plain(value.value)
    return issubclass(kind, tuple) and is_own_class(kind) and all(map(is_plain, tuple.__iter__(value)))


def is_plain_type(dtype: Any) -> bool:
    """Tell whether arrays of a type hold numbers and texts, and no bytes that nobody wrote."""
    if dtype.fields is not None:
        parts = [(part, range(offset, offset + part.itemsize)) for part, offset, *_ in dtype.fields.values()]
        is_full = len(set[int]().union(*(places for _, places in parts))) == dtype.itemsize
        return is_full and all(is_plain_type(part) for part, _ in parts)
    return dtype.type in NUMBERS or dtype.kind in "US"


_OWN: dict[Any, bool] = {}


def is_own_class(kind: type) -> bool:
    """Tell whether a class is the program's own."""
    if kind not in _OWN:
        _OWN[kind] = is_own(kind.__module__)
    return _OWN[kind]


def calls_nothing(kind: type) -> bool:
    """Tell whether an own class adds to classes that hold values, and has no compiled code that reads or calls."""
    mro = type.__dict__["__mro__"].__get__(kind)
    return all(is_own_class(one) or one in BASES or one.__module__ in OF_BASES for one in mro)


def is_followed(value: Any) -> bool:
    """Tell whether a value is a function of instrumented code."""
    inner = value.__func__ if type(value) is types.MethodType else value
    return type(inner) is types.FunctionType and id(inner.__code__) in KNOWN


def is_shown(value: Any) -> bool:
    """Tell whether the text of a value is made of plain values and by the program's own functions."""
    kind = type(value)
    if is_plain(value) or issubclass(kind, type):
        return True
    if kind in CONTAINERS - {collections.defaultdict}:
        return all(map(is_shown, value.items() if hasattr(kind, "items") else value))
    if issubclass(kind, BaseException):
        return all(is_shown(one) and not (type(one) is str and is_of_process(one)) for one in value.args)
    if issubclass(kind, enum.Enum):
        return is_shown(value.value)
    if not is_own_class(kind):
        return False
    if dataclasses.is_dataclass(kind) and type(kind.__repr__) is types.FunctionType:
        return all(is_shown(getattr(value, one.name, None)) for one in dataclasses.fields(kind))
    return all(map(is_shown, tuple.__iter__(value))) if issubclass(kind, tuple) else is_followed(kind.__repr__)


# Functions of numpy that make arrays.

BEFORE_DTYPE = {"array": 1, "asarray": 1, "full": 2, "repeat": 3, "tile": 2}  # arguments that a type may stand behind


def _keeping(name: str) -> Callable[..., Any]:
    """A function of numpy that makes arrays, which keeps symbols in them."""
    function, before_dtype = getattr(np, name), BEFORE_DTYPE[name]

    def guard(*arguments: Any, **options: Any) -> Any:
        typed = [*arguments[before_dtype:], *(options[key] for key in ("dtype",) if key in options)]
        if typed and any(map(_has_symbols, arguments)):
            rest = {key: value for key, value in options.items() if key != "dtype"}
            return guarded(function(*arguments[:before_dtype], dtype=object, **rest)).astype(typed[0], copy=False)
        found = function(*arguments, **options)
        is_held = type(found) is np.ndarray and found.dtype == object and not typed and bool(symbols_of(found))
        return guarded(found) if is_held else found

    return guard


def _has_symbols(value: Any, depth: int = 3) -> bool:
    if isinstance(value, Symbol | SymbolArray):
        return isinstance(value, Symbol) or type(value) is SymbolArray
    return depth > 0 and type(value) in (list, tuple) and any(_has_symbols(item, depth - 1) for item in value[:1000])


KEEPING = {id(getattr(np, name)): _keeping(name) for name in BEFORE_DTYPE}
REAL = {id(one): getattr(np, name) for name, one in zip(BEFORE_DTYPE, KEEPING.values(), strict=True)}


def real(function: Any) -> Any:
    """The function or class itself, where libraries have another meanwhile: a program never sees that."""
    return REAL.get(id(function), function)


# Functions.


def _of(module: Any, names: str) -> Iterator[Any]:
    return (getattr(module, name) for name in names.split() if hasattr(module, name))


HANDED: tuple[tuple[Any, ...], ...] = (  # what calls a function that it is given, by the place of that argument
    (map, filter, iter, functools.reduce, functools.cmp_to_key,
     *_of(itertools, "dropwhile filterfalse starmap takewhile")),
    (itertools.accumulate, itertools.groupby), (heapq.nlargest, heapq.nsmallest),
)  # fmt: skip
KEYED = (sorted, min, max, heapq.merge, *_of(bisect, "bisect bisect_left bisect_right insort insort_left insort_right"))
CALLING_GIVEN = frozenset([*KEYED, *itertools.chain(*HANDED)])
NAMED_FUNCTIONS = frozenset({"key", "func", "mycmp"})  # arguments by name that are called
STRUCTURAL = (  # which move values about, compare them or ask for their class
    *_of(builtins, "len list tuple dict sum any all range next isinstance issubclass callable abs round divmod pow int "
         "float complex bool slice super type object property staticmethod classmethod set frozenset"),
    *_of(heapq, "heappush heappop heapify heappushpop heapreplace"),
    *_of(operator, "add sub mul truediv floordiv neg pos abs lt le eq ne ge gt not_ truth and_ or_ xor invert lshift "
         "rshift pow getitem contains countOf indexOf itemgetter matmul iadd index concat"),
    *CALLING_GIVEN, *ITERATORS, *_of(functools, "lru_cache cache wraps update_wrapper partial"), types.SimpleNamespace,
    *_of(collections, "deque OrderedDict Counter defaultdict"), contextlib.suppress, types.MappingProxyType,
)  # fmt: skip
SHOWING = (str, repr, format, ascii, print, bytes, json.dumps)
OF_DATACLASSES = (dataclasses.asdict, dataclasses.astuple, dataclasses.replace)
_LINEAR = "norm inv solve det slogdet eig eigh eigvals eigvalsh svd qr cholesky lstsq pinv matrix_rank expm"
PURE: Mapping[str, str] = {  # of plain values
    "numpy":
        "all allclose amax amin angle any append apply_along_axis arange argmax argmin argpartition argsort argwhere "
        "around array array_equal array_equiv array_split asarray ascontiguousarray atleast_1d atleast_2d atleast_3d "
        "average bincount broadcast_arrays broadcast_to choose clip column_stack compress concatenate convolve "
        "copy copyto corrcoef correlate count_nonzero cov cross cumprod cumsum delete diag diagonal diff digitize dot "
        "dsplit dstack dtype ediff1d einsum errstate expand_dims extract eye fill_diagonal finfo fix flatnonzero flip "
        "fliplr flipud frombuffer full full_like geomspace gradient histogram histogram2d histogram_bin_edges hsplit "
        "hstack i0 identity iinfo imag indices inner insert interp intersect1d isclose iscomplexobj isin isrealobj "
        "isscalar issubdtype ix_ kron lexsort linspace logspace max mean median meshgrid min min_scalar_type moveaxis "
        "nan_to_num nanargmax nanargmin nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile "
        "nanstd nansum nanvar ndenumerate ndim ndindex nonzero ones ones_like outer packbits partition percentile "
        "piecewise place polyfit polyval prod promote_types ptp put putmask quantile ravel ravel_multi_index real "
        "repeat reshape resize result_type roll rollaxis rot90 round round_ row_stack searchsorted select setdiff1d "
        "setxor1d shape sinc size sort split squeeze stack std sum swapaxes take take_along_axis tensordot tile trace "
        "transpose trapezoid trapz tri tril tril_indices trim_zeros triu triu_indices union1d unique unpackbits "
        "unravel_index unwrap vander var vdot vsplit vstack where zeros zeros_like",
    "numpy.linalg": _LINEAR, "scipy.linalg": _LINEAR, "numpy.fft": "fft ifft rfft irfft fftfreq fft2",
    "scipy.special": "logsumexp softmax log_softmax comb perm factorial factorial2 multigammaln",
    "scipy.optimize": "brentq brenth bisect ridder newton", "scipy.stats": "rankdata iqr zscore trim_mean",
    "numpy.random": "default_rng RandomState", "random": "Random", "builtins": "ord chr bin oct bytearray",
    "json": "loads", "copy": "copy deepcopy", "fractions": "Fraction", "decimal": "Decimal",
    "dataclasses": "asdict astuple replace is_dataclass",
}  # fmt: skip
CALLING = frozenset({"apply_along_axis", "brentq", "brenth", "bisect", "ridder", "newton"})  # functions of a program
CALLED = (types.BuiltinFunctionType, types.FunctionType)
WHOLE = (math, cmath, statistics)  # all functions of which are of plain values
_LAWS = "cdf sf pdf pmf logpdf logpmf logcdf logsf ppf isf mean var std median support interval"
LAWS = frozenset(_LAWS.split())  # methods of distributions
RAISED = (MemoryError, RecursionError, OSError, SystemError, Warning)  # of the process


@functools.lru_cache(maxsize=1)
def known_functions(count: int) -> tuple[dict[int, Any], ...]:
    """The functions that move values about, those of plain values, and those that show them, by their numbers.

    `count` modules are loaded; those that are not are no reason to load them.
    """
    plain: list[Any] = [
        *NUMBERS,
        *(one for module in WHOLE for one in vars(module).values() if isinstance(one, CALLED)),
    ]
    for name, functions in PURE.items():
        module = sys.modules.get(name, types)
        plain += [*_of(module, functions), *(one for one in vars(module).values() if type(one) is np.ufunc)]
    own = [one for one in map(real, plain) if not isinstance(one, types.FunctionType) or not is_own(one.__module__)]
    return tuple({id(one): one for one in several} for several in (STRUCTURAL, own, SHOWING))


# Attributes.

# As they are here and now, but for what asks the values for their attributes.
OF_CLASSES = {kind: frozenset(dir(kind)) - {"format_map"} for kind in (*ATOMS, *CONTAINERS, bytearray)}
_OF_ARRAYS = (
    "T all any argmax argmin argpartition argsort astype choose clip compress conj conjugate copy cumprod cumsum "
    "diagonal dot dtype fill flatten imag item itemsize max mean min nbytes ndim nonzero partition prod ptp put ravel "
    "real repeat reshape round searchsorted shape size sort squeeze std sum swapaxes take tolist trace transpose var "
    "is_integer tobytes"
)
OF_OTHERS: Mapping[type, str] = {
    types.GeneratorType: "send throw close __next__ __iter__", np.ufunc: "reduce accumulate outer at",
    property: "fget fset setter getter", np.finfo: "eps max min tiny resolution bits", np.iinfo: "max min bits",
}  # fmt: skip


@functools.lru_cache(maxsize=4_096)
def attributes_of(kind: Any) -> frozenset[str]:
    """The attributes of the values of a class that show no frame, address, buffer, base or hash."""
    if kind in OF_CLASSES:
        return OF_CLASSES[kind]
    if issubclass(kind, (*FOLLOWED, np.ndarray, np.generic)):
        return DUNDERS.union(_OF_ARRAYS.split(), OF_CLASSES[str] if issubclass(kind, str) else ())
    if issubclass(kind, np.dtype):
        return frozenset(["kind", "name", "itemsize", "type", "char", "names"])
    if issubclass(kind, GENERATORS):
        hidden = ("bit_generator", "get_state", "getstate")  # which show what earlier calls have drawn
        return frozenset(one for one in dir(kind) if not one.startswith("_") and one not in hidden)
    if issubclass(kind, enum.Enum) or kind in (object, type) or kind.__module__ in ("abc", "enum", "typing"):
        return DUNDERS | {"name", "value", "_value_", "_name_"}
    if issubclass(kind, BaseException):
        return DUNDERS | {"args"}
    return LAWS if is_law(kind) else frozenset(OF_OTHERS.get(kind, "").split())


def is_law(kind: type) -> bool:
    """Tell whether values of a class are univariate distributions of scipy."""
    names = (one.__name__ for one in type.__dict__["__mro__"].__get__(kind) if one.__module__.startswith("scipy.stats"))
    return any(name in ("rv_generic", "rv_frozen") for name in names)
