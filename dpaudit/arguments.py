"""Checks of arguments: numbers, and the options of an audit. Importing this imports nothing heavy.

An option comes from a call, a mark, a command line, an ini file or pyproject.toml. Its range is checked here (types in
`config`, flags in `audits.options`), with one message, so that a session of tests can refuse it before any import.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import numbers
import os
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from dpaudit.errors import UnknownOptionError, UsageError

if TYPE_CHECKING:
    import numpy as np

    RngLike: TypeAlias = int | np.random.Generator | np.random.SeedSequence | None
else:
    RngLike = object

# Names that the command line, other functions and other libraries have for options.
OTHER_NAMES: Mapping[str, Sequence[str]] = {
    "generator": ("face",), "search": ("domain", "pairs"), "epsilon": ("claim",), "delta": ("claim",),
    "timeout": ("seconds",), "random_state": ("seed",), "data": ("examples", "pairs"),
}  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])

MODES = ("sequential", "adaptive", "fixed")
EFFORTS = ("off", "quick", "full")  # of planted power
MAX_WORKERS = 32  # a processor: one starts in 0.33 seconds and takes 44 MB before it has drawn anything (measured)
MONOTONE = ("density", "value")  # numbers of an output that a likelihood ratio may be monotone in


def number(name: str, value: Any, condition: str, is_good: Callable[[float], bool]) -> float:
    """`value` as a float, or one clear `UsageError` that names the argument, the condition and what was given."""
    if not isinstance(value, numbers.Real) and getattr(value, "shape", None) == ():
        value = value.item()  # an array without axes, as numpy.where gives of a number
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    try:
        result = float(value) + 0.0 if is_number else 0.0  # -0.0 becomes 0.0, so that equal claims print alike
    except OverflowError:
        raise UsageError(f"{name} must be {condition}, got a number above the largest double.") from None
    if not (is_number and is_good(result)):
        raise UsageError(f"{name} must be {condition}, got {value!r}.")
    return result


def whole_number(name: str, value: Any, condition: str, least: int) -> int:
    """`value` as an integer of at least `least`, or one clear `UsageError`."""
    number(name, value, condition, lambda found: isinstance(value, numbers.Integral) and found >= least)
    return int(value)


def check_among(name: str, value: Any, known: Sequence[str]) -> None:
    """One clear `UsageError` where `value` is none of some texts."""
    if value not in known:
        *others, last = map(repr, known)
        raise UsageError(f"{name} must be {', '.join(others)} or {last}, got {value!r}.")


def check_options(**stated: Any) -> None:
    """`UsageError` if one of these options of an audit is out of its range; those without a range are passed over.

    Examples
    --------
    >>> check_options(samples=20_000, mode="fixed", floating_point=True)
    """
    for name, check in _CHECKS.items():
        if name in stated:
            check(name, stated[name])


def did_you_mean(name: Any, known: Iterable[str]) -> str:
    """Name that a misspelt one may have meant, as a sentence with a space in front; "" where nothing is near.

    Examples
    --------
    >>> did_you_mean("sample", ["mode", "samples"]), did_you_mean("generator", ["seconds", "face"])
    (" Did you mean 'samples'?", " Did you mean 'face'?")
    """
    names = list(known)
    elsewhere = [one for one in OTHER_NAMES.get(str(name), ()) if one in names]
    near = elsewhere or difflib.get_close_matches(str(name), names, 1)
    return f" Did you mean {near[0]!r}?" if near else ""


def seed_from(seed: int | None, rng: RngLike) -> int | None:
    """The seed that a caller states, as a number or by `rng` (SPEC 7 of Scientific Python); None for neither.

    A generator gives another seed each time, a seed sequence the same one.

    Examples
    --------
    >>> import numpy as np
    >>> seed_from(None, 7), seed_from(7, None), seed_from(None, np.random.default_rng(7))
    (7, 7, 4058335883)
    """
    if rng is None:
        return seed
    if seed is not None:
        raise UsageError(f"seed must be given without rng, got {seed!r} and {rng!r}.")
    import numpy as np

    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**32))
    if isinstance(rng, np.random.SeedSequence):
        return int(rng.generate_state(1)[0])
    return whole_number("rng", rng, "None, a non-negative integer, a numpy Generator or a SeedSequence", 0)


def unknown_option(function: str, name: str, known: Iterable[str]) -> UnknownOptionError:
    """The error of an option that a function does not have, with the nearest of those that it has."""
    names = list(known)
    return UnknownOptionError(
        f"option of {function} must be one that it has, got {name!r}.{did_you_mean(name, names)} "
        f"They are {', '.join(names)}."
    )


def check_names(function: str, options: Iterable[str], known: Iterable[str]) -> None:
    """Raise `unknown_option` for the first of some options that a function does not have."""
    names = list(known)
    if unknown := [name for name in options if name not in names]:
        raise unknown_option(function, unknown[0], names)


def with_near_names(function: F) -> F:
    """A function that answers a misspelt option with the nearest name, where Python would only say that it is unknown.

    Examples
    --------
    >>> @with_near_names
    ... def two(size=1):
    ...     return 2 * size
    >>> two(sizes=3)
    Traceback (most recent call last):
    ...
    dpaudit.errors.UnknownOptionError: option of two must be one that it has, got 'sizes'. Did you mean 'size'? ...
    """
    known = list(inspect.signature(function).parameters)
    check = check_names

    def checked(*args: Any, **options: Any) -> Any:
        check(function.__name__, options, known)
        return function(*args, **options)

    # With the function's own globals it is of its module for tools that read modules, such as doctest.
    own = types.FunctionType(checked.__code__, function.__globals__, function.__name__, None, checked.__closure__)
    return cast(F, functools.update_wrapper(own, function))


def _seed(name: str, value: Any) -> None:
    if value is not None:
        whole_number(name, value, "a non-negative integer", 0)


def _jobs(name: str, value: Any) -> None:
    if value != -1 or isinstance(value, bool):
        whole_number(name, value, "a positive integer, or -1 for all processors", 1)
        if value > (most := MAX_WORKERS * (os.cpu_count() or 1)):
            where = f"on this machine, {MAX_WORKERS} for each processor"
            raise UsageError(f"{name} must be at most {most} {where}, got {value}. -1 takes all processors.")


_CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    "samples": lambda name, value: whole_number(name, value, "an integer of at least 10", 10),
    "mode": functools.partial(check_among, known=MODES),
    "seconds": lambda name, value: number(name, value, "a finite number above 0", lambda v: 0.0 < v < float("inf")),
    "confidence": lambda name, value: number(name, value, "in (0, 1)", lambda v: 0.0 < v < 1.0),
    "seed": _seed,
    "power": functools.partial(check_among, known=EFFORTS),
    "monotone": functools.partial(check_among, known=MONOTONE),
    "jobs": _jobs,
    "event_mass": lambda name, value: number(name, value, "in (0, 1]", lambda v: 0.0 < v <= 1.0),
    "inconclusive_factor": lambda name, value: number(name, value, "at least 1", lambda v: v >= 1.0),
}
