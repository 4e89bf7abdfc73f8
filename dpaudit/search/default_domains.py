"""Default domain of a mechanism that states none: from its defaults and type hints, or from an example.

The first of these that is there is taken: an example (a DataFrame, a list of dictionaries, a dataset, a number, an
array, or a hypothesis strategy of inputs), the default value of the mechanism's first parameter, its type hint. A guess
is no promise: it says in words what it takes for an input and for neighbours, so that the user can correct it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import inspect
import math
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, get_args, get_origin

import numpy as np

from dpaudit.audits.exploring import explore
from dpaudit.errors import UsageError
from dpaudit.privacy.differences import is_frame
from dpaudit.privacy.pairs import short_form
from dpaudit.subjects.domains import (
    DatasetDomain,
    Domain,
    ListedDomain,
    NumberDomain,
    Relation,
    TableDomain,
    VectorDomain,
)
from dpaudit.subjects.domains.tables import UNSEEN, column_values

DRAWN = 12  # inputs of a strategy
MAX_RECORDS = 20  # records of a dataset of which only a type is known
REACH = 100.0  # of numbers of which only the type is known
ADVICE = (
    "Give an input with --example FILE or module:attribute, a domain with --search, or pairs with --pairs, for example "
    "--pairs '0,1'."
)
TELLING: Mapping[type, Sequence[Any]] = {
    bool: (False, True),
    int: (0, 1, 2, -1, 100, -100),
    float: (0.0, 1.0, 0.5, -1.0, 100.0, -100.0, math.nan, math.inf),
    str: ("a", "b", "c", "", UNSEEN),
    type(None): (None,),
}
WORDS = {"add_remove": "one record is added or removed", "replace_one": "one record is replaced"}


@dataclasses.dataclass(frozen=True)
class Guess:
    """A domain, and in words where it comes from and what it takes for neighbours."""

    domain: Domain
    text: str


def guess_domain(
    mechanism: Any,
    example: Any = None,
    adjacency: Relation = "add_remove",
    user: str | None = None,
    advice: str = ADVICE,
) -> Guess:
    """A domain for a mechanism that states none.

    `example` is an input, or a hypothesis strategy of inputs; `user` is the column of a table that says whose a row is.
    `UsageError` if there is nothing to guess from: the message says what was looked at, and ends with `advice`.

    Examples
    --------
    >>> def release(ages: list[int], rng):
    ...     return len(ages) + rng.laplace()
    >>> guess_domain(release).text
    'Inputs are guessed from the type hint list[int]; neighbours: one record is added or removed.'
    """
    if example is not None:
        return _of_value(example, adjacency, user, "the example")
    parameter = _first_parameter(mechanism)
    if parameter is not None and parameter.default is not parameter.empty and parameter.default is not None:
        return _of_value(parameter.default, adjacency, user, f"the default value of {parameter.name!r}")
    hint = None if parameter is None or isinstance(parameter.annotation, str) else parameter.annotation
    hint = None if hint is inspect.Parameter.empty else hint
    if hint is not None and (found := _of_hint(hint, adjacency)) is not None:
        return _guess(found, f"the type hint {_hint_name(hint)}", adjacency)
    name = "its first parameter" if parameter is None else repr(parameter.name)
    why = "no type hint" if hint is None else f"a type hint of no known inputs ({_hint_name(hint)})"
    raise UsageError(f"pairs must be given: none can be guessed, as {name} has no default value and {why}. {advice}")


def is_table(value: Any) -> bool:
    """Tell whether a value is a DataFrame, or a list of dictionaries: then its columns say what others may hold."""
    return is_frame(value) or (isinstance(value, list | tuple) and bool(value) and isinstance(value[0], Mapping))


def _of_value(value: Any, adjacency: Relation, user: str | None, origin: str) -> Guess:
    if hasattr(value, "example") and hasattr(value, "map"):  # a hypothesis strategy
        inputs: list[Any] = []  # the same each time
        none = "example must be a strategy that yields inputs, got none."
        explore("example", value, inputs.append, examples=DRAWN, seed=0, none=none)
        are_datasets = isinstance(inputs[0], list | tuple | np.ndarray)
        drawn = DatasetDomain.of_examples(inputs, adjacency) if are_datasets else ListedDomain(tuple(inputs))
        return _guess(drawn, f"{origin}, a strategy", adjacency)
    if is_table(value):
        return _guess(TableDomain.of_example(value, adjacency, user), origin, adjacency, user)
    if user is not None:
        raise UsageError(f"user must be a column of a table, got {user!r} for {short_form(value)}.")
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, np.ndarray) and value.ndim > 1:  # rows are records
        return _guess(DatasetDomain.of_examples([value], adjacency), origin, adjacency)
    if isinstance(value, list | tuple | np.ndarray):
        records, is_array, grows = list(value), isinstance(value, np.ndarray), adjacency == "add_remove"
        kind = value.dtype.kind if isinstance(value, np.ndarray) else "O"
        values = column_values(records, kind) if records else [0, 1]
        values = [entry for entry in values if entry is not None or not is_array]
        largest = max(len(records) + (4 if grows else 0), 2)
        domain = DatasetDomain(tuple(values), largest, adjacency, 0 if grows else 1, (value,))
        return _guess(domain, origin, adjacency)
    if isinstance(value, bool):
        return _guess(ListedDomain((False, True)), origin, adjacency)
    if isinstance(value, int | float) and math.isfinite(value):
        reach = max(10.0 * abs(value), REACH)
        whole = isinstance(value, int)
        ends: tuple[Any, Any] = (-int(reach), int(reach)) if whole else (-reach, reach)
        return _guess(NumberDomain(*ends, integer=whole), origin, adjacency)
    raise UsageError(
        "example must be a DataFrame, a list, tuple or array of records, a number or a strategy of inputs, "
        f"got {short_form(value)}."
    )


def _guess(domain: Domain, origin: str, adjacency: Relation, user: str | None = None) -> Guess:
    if user is not None:
        said = f"all rows of one {user} are added or removed"
    elif isinstance(domain, DatasetDomain | TableDomain):
        said = WORDS[adjacency]
    elif isinstance(domain, NumberDomain | VectorDomain):
        said = f"numbers differ by at most {domain.change:g}"
    else:
        said = "any two inputs"
    return Guess(domain, f"Inputs are guessed from {origin}; neighbours: {said}.")


def _first_parameter(mechanism: Any) -> inspect.Parameter | None:
    """The first parameter, with a type hint as a text where a name of the signature cannot be resolved."""
    function = getattr(mechanism, "mechanism", mechanism)
    function = getattr(function, "sample", function)
    for is_resolved in (True, False):
        with contextlib.suppress(Exception):  # none that can be read
            return next(iter(inspect.signature(function, eval_str=is_resolved).parameters.values()), None)
    return None


def _hint_name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint).replace("typing.", "")


def _of_hint(hint: Any, adjacency: Relation) -> Domain | None:
    """The domain of a type; None where it says too little."""
    origin, arguments, least = get_origin(hint), get_args(hint), int(adjacency != "add_remove")
    if hint in (int, float):
        whole = hint is int
        return NumberDomain(int(-REACH) if whole else -REACH, int(REACH) if whole else REACH, integer=whole)
    if origin in (list, tuple, set, Sequence) or hint in (list, tuple):
        record = arguments[0] if arguments else float
        values = _values_of(record)
        if values is None:
            return None
        like: tuple[Any, ...] = ((),) if origin is tuple or hint is tuple else ()
        return DatasetDomain(tuple(values), MAX_RECORDS, adjacency, least, like)
    if hint is np.ndarray or origin is np.ndarray:
        return DatasetDomain(tuple(TELLING[float]), MAX_RECORDS, adjacency, least, (np.zeros(0),))
    values = _values_of(hint)
    return ListedDomain(tuple(values)) if values is not None and len(values) > 1 and hint is not str else None


def _values_of(kind: Any) -> list[Any] | None:
    """Telling values of a type: the usual, the extreme, and what it has that examples seldom show."""
    origin, arguments = get_origin(kind), get_args(kind)
    if usual := next((own for one, own in TELLING.items() if one is kind), None):  # a class need not have a hash
        return [*usual]
    if origin is typing.Literal:
        return list(arguments)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return list(kind)
    if origin in (typing.Union, types.UnionType):
        parts = [_values_of(part) for part in arguments]
        return None if any(part is None for part in parts) else [value for part in parts if part for value in part]
    if origin is tuple and arguments and Ellipsis not in arguments:
        columns = [_values_of(part) for part in arguments]
        if any(column is None for column in columns):
            return None
        known = [column for column in columns if column]
        base = tuple(column[0] for column in known)
        varied = [(*base[:k], value, *base[k + 1 :]) for k, column in enumerate(known) for value in column[1:]]
        return [base, tuple(column[min(1, len(column) - 1)] for column in known), *varied]
    return None
