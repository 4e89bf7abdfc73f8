"""Forms: in which class and type a value is held, where its contents do not say.

Inside containers a form is read like anything else (`dpaudit.features.visitor`). Of an output that is a number, or a
list or array of numbers, it is not: a batch of such outputs is held as doubles, and many a sound mechanism gives an
integer where it clamps and a float elsewhere. There the report names it as not read.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from dpaudit.subjects.call_outcomes import Noted
from dpaudit.subjects.foreign import STANDARD

NUMBERS = (int, float, np.number, np.bool_)


def class_names(items: Iterable[Any]) -> str:
    """The classes of some items, in their order, those that repeat with their number."""
    names = map(class_name, items)
    runs = [(name, len(list(group))) for name, group in itertools.groupby(names)]
    return " ".join([f"{count} {name}" if count > 1 else name for name, count in runs])


def class_name(item: Any) -> str:
    """The class of an item; numpy's integers and floats of 64 bits, and its booleans, count as Python's.

    Examples
    --------
    >>> class_name(np.int64(1)), class_name(np.float32(1)), class_name(1.5), class_name(np.arange(2))
    ('int', 'float32', 'float', 'ndarray')
    """
    kind: Any = type(item)
    if issubclass(kind, Noted):
        return str(item.beside.get("class", kind.__mro__[1].__name__))
    if issubclass(kind, np.generic) and not issubclass(kind, np.float64):
        return type(item.item()).__name__ if item.dtype in STANDARD else str(item.dtype)
    return "float" if kind is np.float64 else kind.__name__


def form_of(value: Any) -> str:
    """In which form an output holds its numbers: classes and types of which an audit reads nothing; "" for no numbers.

    Examples
    --------
    >>> form_of(1), form_of(np.arange(2.0)), form_of([1, 2.5]), form_of((1, 2)), form_of("a")
    ('int', 'array of float64', 'list of int float', 'tuple of int', '')
    """
    if isinstance(value, np.ndarray):
        found = f"array of {value.dtype if value.dtype.isnative else value.dtype.str}"
    elif isinstance(value, NUMBERS):
        found = class_name(value)
    elif isinstance(value, list | tuple) and value and all(isinstance(item, NUMBERS) for item in value):
        names = set(map(class_name, value))
        found = f"{class_name(value)} of {class_names(value) if len(names) > 1 else names.pop()}"
    else:
        return ""
    beside = ", ".join(f"{name} {part}" for name, part in value.beside.items()) if isinstance(value, Noted) else ""
    return f"{found} ({beside})" if beside else found
