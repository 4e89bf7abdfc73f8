"""Reading the inputs of mechanisms: answers as finite numbers or vectors, positions in a list, tables of numbers.

The parameters of a mechanism are read by their types: `Checked`.
"""

import functools
import importlib
import inspect
import math
import operator
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit_mechanisms.protocol import UsageError, check_among, number

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def whole_number(name: str, value: Any, smallest: int) -> int:
    """`value` as an int of at least `smallest`, or a `UsageError` that names the argument."""
    return int(number(name, value, f"an integer of at least {smallest}", lambda v: v >= smallest and v % 1 == 0))


def positive(name: str, value: Any) -> float:
    """`value` as a float in (0, inf), or a `UsageError` that names the argument."""
    return number(name, value, "in (0, inf)", lambda v: 0.0 < v < math.inf)


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> Any:
    """`value` if it is one of some texts, or a `UsageError` that names the argument."""
    check_among(name, value, allowed)
    return value


def instance(name: str, value: Any, kind: type) -> Any:
    """`value` if it is of a class, or a `UsageError` that names the argument."""
    if not isinstance(value, kind):
        raise UsageError(f"{name} must be of class {kind.__name__}, got {value!r:.80}.")
    return value


Check = Callable[[str, Any], Any]  # from the name of an argument and its value to what is kept


def within(condition: str, is_good: Callable[[float], bool]) -> Check:
    """Check of a number."""
    return lambda name, value: number(name, value, condition, is_good)


def at_least(smallest: int) -> Check:
    """Check of an integer."""
    return lambda name, value: whole_number(name, value, smallest)


Positive = Annotated[float, positive]
probability = within("in (0, 1]", lambda v: 0.0 < v <= 1.0)
NonNegative = Annotated[float, within("in [0, inf)", lambda v: 0.0 <= v < math.inf)]
Probability = Annotated[float, probability]
Count = Annotated[int, at_least(1)]


class Checked:
    """A frozen dataclass that reads its fields as their types say, in their order.

    That is `Annotated` by a check, then `Literal`, then classes of this package that are no protocols.

    Examples
    --------
    >>> from dpaudit_mechanisms.laplace import Laplace
    >>> Laplace(2)
    Laplace(epsilon=2.0, coordinate_sensitivity=1.0)
    >>> Laplace(0.0)
    Traceback (most recent call last):
    ...
    dpaudit.errors.UsageError: epsilon must be in (0, inf), got 0.0.
    """

    _checks: ClassVar[Sequence[tuple[str, Check]]] = ()  # of the fields that have one

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        hints = {name: hint for one in cls.__mro__[::-1] for name, hint in inspect.get_annotations(one).items()}
        found = [(name, hint.__metadata__[0]) for name, hint in hints.items() if hasattr(hint, "__metadata__")]
        # Validity of proofs: `typing` remembers types of the whole process, so that none of its names may stand here.
        chosen = [(name, getattr(hint, "__args__", ())) for name, hint in hints.items()]
        chosen = [(name, texts) for name, texts in chosen if texts and all(isinstance(one, str) for one in texts)]
        kinds = [(name, kind) for name, kind in hints.items() if isinstance(kind, type)]
        own = [(name, kind) for name, kind in kinds if kind.__module__.startswith(__package__)]
        found += [(name, functools.partial(one_of, allowed=allowed)) for name, allowed in chosen]
        found += [
            (name, functools.partial(instance, kind=k)) for name, k in own if not getattr(k, "_is_protocol", False)
        ]
        cls._checks = tuple(found)

    def __post_init__(self) -> None:
        # Fields that are not there yet are worked out of the others.
        fixed(self, **{name: check(name, getattr(self, name)) for name, check in self._checks if hasattr(self, name)})


def fixed(thing: Any, **values: Any) -> None:
    """Set fields of a frozen dataclass; arrays among them become read-only."""
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        object.__setattr__(thing, name, value)


def installed(module: str, extra: str) -> Any:
    """A module of an optional library, or a `UsageError` that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.split(".")[0]
        raise UsageError(f"{name} must be installed. Use: pip install 'dpaudit[{extra}]'") from error


def answer(data: Any, dimension: int | None) -> FloatArray:
    """A true answer as a new array: shape () where `dimension` is None, else (dimension,); finite."""
    if dimension is None:
        return np.array(number("data", data, "a finite number", math.isfinite))
    return table("data", data, (dimension,), finite=True)


def position(data: Any, count: int) -> int:
    """An input that is a position in a list of `count` things, as an int in 0..count - 1."""
    try:
        index = operator.index(data)
    except TypeError:
        raise UsageError(f"data must be an integer from 0 to {count - 1}, got {data!r}.") from None
    if isinstance(data, bool) or not 0 <= index < count:
        raise UsageError(f"data must be an integer from 0 to {count - 1}, got {data!r}.")
    return index


def numbers(name: str, values: Any) -> FloatArray:
    """`values` as an array of floats, of any shape and not copied where it is one; refused where there is none."""
    try:
        return np.asarray(values, dtype=float)
    except OverflowError:
        raise UsageError(f"{name} must be an array of numbers, got one above the largest double.") from None
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name} must be an array of numbers, got {values!r}.") from error


RANGES: dict[str, Callable[[FloatArray], Any]] = {  # of the entries of an array, beside being finite
    "in (0, inf)": lambda array: array > 0.0,
    "in [0, inf)": lambda array: array >= 0.0,
}


def table(
    name: str, values: ArrayLike, shape: tuple[int | None, ...], finite: bool = False, within: str = ""
) -> FloatArray:
    """A new array of floats without NaN, or of finite ones; None in `shape` leaves that axis free, but not empty.

    `within` is one of `RANGES`.
    """
    array = np.array(numbers(name, values))
    expected = _shown(["any" if length is None else str(length) for length in shape])
    fits = array.ndim == len(shape) and array.size > 0
    if not fits or any(want not in (None, have) for want, have in zip(shape, array.shape, strict=True)):
        raise UsageError(f"{name} must be of shape {expected}, got shape {array.shape}.")
    if np.isnan(array).any():
        where = tuple(np.argwhere(np.isnan(array))[0].tolist())
        raise UsageError(f"{name} must be numbers, got nan at position {where}.")
    if finite and not np.isfinite(array).all():
        raise UsageError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}.")
    if within and not (good := RANGES[within](array) & np.isfinite(array)).all():
        raise UsageError(f"{name} must be {within}, got {array[~good][0]}.")
    return array


def output_batch(outputs: Any, shape: tuple[int, ...]) -> FloatArray:
    """Outputs as floats of shape (size, *shape); NaN and infinities pass: they are outcomes too."""
    array = numbers("outputs", outputs)
    if array.ndim != 1 + len(shape) or array.shape[1:] != shape:
        raise UsageError(f"outputs must be of shape {_shown(['size', *map(str, shape)])}, got shape {array.shape}.")
    return array


def output_positions(outputs: Any, count: int) -> tuple[BoolArray, IntArray]:
    """Tell whether each output is a position in a list of `count` things, and that position (0 where it is none)."""
    given = output_batch(outputs, ())
    is_position = (given >= 0.0) & (given < count) & (given == np.floor(given))
    return is_position, np.where(is_position, given, 0.0).astype(np.int64)


def _shown(lengths: list[str]) -> str:
    """A shape as Python prints it: '(size,)', '(2, any)'."""
    return "(" + ", ".join(lengths) + (",)" if len(lengths) == 1 else ")")
