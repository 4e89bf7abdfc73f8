"""Parameters of a mechanism: which of them takes a size, and which kind of randomness each of the others takes.

A parameter is recognised by its name. Its annotation, or else the type of its default, chooses the kind of randomness;
without either, the name does:

    rng            a `numpy.random.Generator`      role "generator"
    random_state   a `numpy.random.RandomState`    role "random_state"
    seed           an integer below 2^32           role "seed"
                   a `random.Random`               role "random", by an annotation or a default alone

All kinds read the stream of the call: equal streams give equal randomness. (2^32, as `RandomState` and `numpy.random`
refuse larger seeds.)
"""

from __future__ import annotations

import functools
import inspect
import random
import re
import types
import typing
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.errors import UsageError

SIZE_NAMES = ("size", "n")
ROLE_OF_NAME = {"rng": "generator", "random_state": "random_state", "seed": "seed"}
ROLES: dict[str, tuple[type, str]] = {  # by role: what may be annotated, and what is passed
    "generator": (np.random.Generator, "a numpy.random.Generator"),
    "random_state": (np.random.RandomState, "a numpy.random.RandomState"),
    "random": (random.Random, "a random.Random"),
    "seed": (int, "an int"),
}
MAX_SEED = 2**32
# The kinds, in their order, in an annotation that cannot be evaluated: its names are imported for type checkers alone.
_NAMED = re.compile(
    r"(?<![\w.])(?:(?:np|numpy)\.random\.|numpy\.|random\.)?(?:(Generator)|(RandomState)|(Random)|(int))\b(?!\.)"
)


def legacy_state(rng: np.random.Generator) -> np.random.RandomState:
    """A `RandomState` that reads the bits of a generator: what older libraries take as `random_state`.

    Successive uses of one generator go on where the last one stopped, so draws are independent and can be repeated.
    """
    return np.random.RandomState(rng.bit_generator)


def given_as(role: str, rng: np.random.Generator) -> Any:
    """Value for a parameter of this role, from the stream of a call."""
    if role == "random_state":
        return legacy_state(rng)
    if role == "random":
        return random.Random(int(rng.integers(2**63)))
    return int(rng.integers(MAX_SEED)) if role == "seed" else rng


def passed_text(keywords: tuple[tuple[str, str], ...], message: str) -> str:
    """Sentence on what was passed as randomness; empty where a message speaks of no such class, and of no seed.

    Examples
    --------
    >>> passed_text((("rng", "generator"),), "AttributeError: 'Generator' object has no attribute 'rand'")
    'dpaudit passed rng as a numpy.random.Generator: annotate the parameter to be given another kind.'
    """
    named = [(name, ROLES[role]) for name, role in keywords if role in ROLES]
    found = [f"{name} as {text}" for name, (kind, text) in named if re.search(rf"\b({kind.__name__}|seed)\b", message)]
    return f"dpaudit passed {', '.join(found)}: annotate the parameter to be given another kind." if found else ""


def role_of(parameter: inspect.Parameter, function: Any) -> str:
    """The role of a parameter; empty where its name is none that is recognised."""
    if parameter.name in SIZE_NAMES:
        return "size"
    usual = ROLE_OF_NAME.get(parameter.name, "")
    if not usual:
        return ""
    if parameter.annotation is not parameter.empty:
        roles = _roles(parameter.annotation, function)
    else:
        roles = _roles(type(parameter.default), function)
    return usual if usual in roles or not roles else roles[0]


def recognised(function: Callable[..., Any], name: str) -> tuple[tuple[str, str], ...]:
    """The recognised parameters of a function behind its first, as (name, role).

    `UsageError` if it takes no data, or needs a parameter that is not recognised.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return ()  # a builtin without a signature: called with the data alone
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    if not positional:
        why = ""
        if isinstance(function, functools.partial) and function.keywords:
            why = " A partial that gives a parameter by its name makes those behind it keyword-only: use a lambda."
        raise UsageError(f"{name} must take the data as its first parameter, got no positional parameter.{why}")
    found: list[tuple[str, str]] = []
    for parameter in parameters[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        role = role_of(parameter, function)
        if role and parameter.kind is not parameter.POSITIONAL_ONLY:
            found.append((parameter.name, role))
        elif parameter.default is parameter.empty:
            known = ", ".join((*SIZE_NAMES, *ROLE_OF_NAME))
            raise UsageError(
                f"parameters of {name} behind the data must be named {known} or have a default, "
                f"got {parameter.name!r}. Wrap it in a function of the data."
            )
    return tuple(found)


def role_in_sample(sample: Callable[..., Any]) -> tuple[tuple[str, str], ...]:
    """The third parameter of `sample(data, size, rng)` with its role, where that is not a numpy generator."""
    try:
        parameter = list(inspect.signature(sample).parameters.values())[2]
    except (TypeError, ValueError, IndexError):
        return ()
    known = parameter.name in ROLE_OF_NAME  # its place says what it is, whatever its name
    role = role_of(parameter if known else parameter.replace(name="rng"), sample)
    return () if role == "generator" else ((parameter.name, role),)


def _roles(annotation: Any, function: Any) -> list[str]:
    """The roles whose kinds an annotation allows, in its order."""
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, _globals_of(function))  # as `typing.get_type_hints` does
        except Exception:
            return [role for found in _NAMED.findall(annotation) for role, one in zip(ROLES, found, strict=True) if one]
    if isinstance(annotation, type) and typing.get_origin(annotation) is None:
        return [role for role, (kind, _) in ROLES.items() if issubclass(annotation, kind) and annotation is not bool]
    for name in ("__value__", "__supertype__", "__bound__"):  # an alias, a new type, a type variable
        if (inner := getattr(annotation, name, None)) is not None:
            return _roles(inner, function)
    if typing.get_origin(annotation) is typing.Annotated:
        return _roles(typing.get_args(annotation)[0], function)
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    return [role for part in typing.get_args(annotation) for role in _roles(part, function)] if is_union else []


def _globals_of(function: Any) -> dict[str, Any]:
    """The names that annotations of a function may use."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if not hasattr(function, "__globals__"):
        function = type(function).__call__
    return getattr(inspect.unwrap(function), "__globals__", {})
