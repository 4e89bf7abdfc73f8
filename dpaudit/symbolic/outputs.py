"""An output as a skeleton and its numbers: what is fixed once the program has run, and what may be noisy.

The skeleton has types, lengths, keys and texts; the leaves are numbers, plain or `Noisy`. Lists, tuples and arrays are
told apart from one another, numbers of different types are not.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from dpaudit.symbolic.noisy_numbers import Noisy
from dpaudit.symbolic.symbols import SymbolArray
from dpaudit.symbolic.tape import Unsupported

DEEPEST = 20


@dataclasses.dataclass(frozen=True)
class Laid:
    """An output: its skeleton, its leaves, and the name of each leaf ("[0]", "['total']", "" for a number alone)."""

    skeleton: tuple[Any, ...]
    leaves: tuple[float | Noisy, ...]
    names: tuple[str, ...]
    key_order: tuple[str, ...] = ()  # of all dictionaries: proofs do not rest on it, and it may tell outputs apart

    def values(self) -> list[float]:
        """The leaves in this run."""
        return [leaf.value if isinstance(leaf, Noisy) else leaf for leaf in self.leaves]


def _form(value: Any) -> str:
    """A text, key or member in words: the same for values that are equal, whatever their types."""
    if isinstance(value, str | bytes):
        plain: Any = str.__str__(value) if isinstance(value, str) else bytes(value)
        return f"text {plain!r}"
    if value is None:
        return "None"
    if isinstance(value, bool | int | np.integer | np.bool_):
        return repr(int(value))
    if isinstance(value, float | np.floating):
        return repr(int(value)) if math.isfinite(value) and value == int(value) else repr(float(value))
    if isinstance(value, tuple | frozenset):
        parts = [_form(item) for item in value]
        return f"tuple ({', '.join(parts)})" if isinstance(value, tuple) else f"set {sorted(parts)}"
    raise Unsupported(f"its output has a key or member of the type {type(value).__name__}, which is not recorded.")


def laid_out(output: Any) -> Laid:
    """The skeleton and the leaves of an output.

    Raises
    ------
    Unsupported
        Where it has a part of a kind that is not known here.

    Examples
    --------
    >>> laid_out({"n": 2, "note": "all"}).skeleton, laid_out({"n": 2}).leaves
    (('dict', "text 'n'", 'number', "text 'note'", "text 'all'"), (2.0,))
    """
    skeleton: list[Any] = []
    leaves: list[float | Noisy] = []
    names: list[str] = []
    key_order: list[str] = []

    def visit(value: Any, name: str, depth: int) -> None:
        if depth > DEEPEST:
            raise Unsupported("its output is nested too deeply to be recorded.")
        if isinstance(value, Noisy | bool | int | float | np.number | np.bool_):
            if isinstance(value, complex | np.complexfloating):
                raise Unsupported("its output has complex numbers, which are not recorded.")
            skeleton.append("number")
            leaves.append(value if isinstance(value, Noisy) else float(value))
            names.append(name)
        elif value is None or isinstance(value, str | bytes):
            skeleton.append(_form(value))
        elif isinstance(value, np.ndarray):
            if type(value) not in (np.ndarray, SymbolArray):  # a mask, names: more than its numbers
                raise Unsupported(f"its output has a {type(value).__name__}, which is not recorded.")
            if value.dtype.kind not in "biufOUS":
                raise Unsupported(f"its output has an array of {value.dtype}, which is not recorded.")
            skeleton.append(f"array {value.shape}")
            for place, item in zip(np.ndindex(value.shape), value.ravel().tolist(), strict=True):
                visit(item, f"{name}[{', '.join(map(str, place))}]", depth + 1)
        elif isinstance(value, list | tuple):
            skeleton.append(f"{'tuple' if isinstance(value, tuple) else 'list'} of {len(value)}")
            for number, item in enumerate(value):
                visit(item, f"{name}[{number}]", depth + 1)
        elif isinstance(value, dict):
            skeleton.append("dict")
            key_order.extend(map(_form, value))
            for key in sorted(value, key=_form):
                skeleton.append(_form(key))
                visit(value[key], f"{name}[{key!r}]", depth + 1)
        elif isinstance(value, set | frozenset):
            skeleton.append(f"set {sorted(map(_form, value))}")
        else:
            raise Unsupported(f"its output has a {type(value).__name__}, which is not recorded.")

    visit(output, "", 0)
    return Laid(tuple(skeleton), tuple(leaves), tuple(names), tuple(key_order))
