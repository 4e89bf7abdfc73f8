"""An output as a skeleton and its numbers: what is fixed once the program has run, and what may be noisy.

The skeleton has types, lengths, keys and texts; the leaves are numbers, plain or `Noisy`. In a skeleton lists, tuples
and arrays are told apart from one another, numbers of different types are not. What tells more outputs apart than these
is the `token`: the identity of the output (`dpaudit.features.identity`), as certificates and audits have it, with a
mark in the place of each noise. Proofs that a claim is broken may merge outputs, and rest on skeletons; that one is
kept is only said where outputs with one skeleton have one token.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpaudit.features.identity import identity, without_notes
from dpaudit.subjects.call_outcomes import noted
from dpaudit.subjects.foreign import own
from dpaudit.subjects.plain import seen
from dpaudit.symbolic.leaves import MARKS
from dpaudit.symbolic.noisy_numbers import Noisy
from dpaudit.symbolic.symbols import PYTHONS, SymbolArray, filled, number_of, symbols_of
from dpaudit.symbolic.tape import Unsupported

DEEPEST = 20


@dataclasses.dataclass(frozen=True)
class Laid:
    """An output: its skeleton, its leaves, the name of each ("[0]", "['total']", "" of a number alone), its token."""

    skeleton: tuple[Any, ...]
    leaves: tuple[float | Noisy, ...]
    names: tuple[str, ...]
    token: str = ""

    def values(self) -> list[float]:
        """The numbers of the output in this run."""
        return [leaf.value if isinstance(leaf, Noisy) else leaf for leaf in self.leaves]

    @property
    def is_noisy(self) -> bool:
        """Tell whether noise is part of it."""
        return any(isinstance(leaf, Noisy) for leaf in self.leaves)


def _form(value: Any) -> str:
    """A text, key or member in words: the same for values that are equal, whatever their types."""
    return without_notes(identity(seen(number_of(value, "a key, or a member of a set"))))


def _without_noise(table: Any) -> dict[str, Any]:
    """A table or a series of pandas beside its noise: with zeros in the columns that have some."""
    plain, name = (table.to_frame(), table.name) if table.ndim == 1 else (table.copy(), None)
    for k in range(plain.shape[1]):
        if any(isinstance(item, Noisy) for item in plain.iloc[:, k].tolist()):
            plain.isetitem(k, 0.0)
    return {"table": seen(plain), "name": seen(name)}


def laid_out(output: Any) -> Laid:
    """The skeleton and the leaves of an output; `Unsupported` where it has a part of a kind that is not known here.

    Examples
    --------
    >>> laid_out({"n": 2, "note": "all"}).skeleton, laid_out({"n": 2}).leaves
    (('dict', "'n'", 'number', "'note'", "'all'"), (2.0,))
    """
    skeleton: list[Any] = []
    leaves: list[float | Noisy] = []
    names: list[str] = []
    noisy: list[Noisy] = []  # among the leaves

    def several(values: Sequence[Any], labels: Sequence[Any], name: str, depth: int) -> list[Any]:
        return [visit(item, f"{name}[{label}]", depth + 1) for item, label in zip(values, labels, strict=True)]

    def visit(value: Any, name: str, depth: int) -> Any:
        """Plain data of a part, with marks in the places of noise."""
        if depth > DEEPEST:
            raise Unsupported("its output is nested too deeply to be recorded.")
        before = len(noisy)
        if isinstance(value, Noisy | bool | int | float | np.number | np.bool_):
            if isinstance(value, complex | np.complexfloating):
                raise Unsupported("its output has complex numbers, which are not recorded.")
            skeleton.append("number")
            names.append(name)
            leaves.append(value if isinstance(value, Noisy) else float(value))
            if not isinstance(value, Noisy):
                return seen(value)
            noisy.append(value)
            by = f"{value.function} of " * (value.by is not None)
            # Validity: 0 times noise is a zero with the sign of the noise, which no other run need have.
            zero = f"about {value.signal!r}" if value.width or value.signal else f"a zero of {id(value.tape)}"
            text = f"{by}noise" if value.terms else zero
            return MARKS[PYTHONS[value._kind]](value._kind.__name__, text=text)
        if value is None or isinstance(value, str | bytes):
            skeleton.append(_form(value))
            return seen(value)
        shown: Any
        if isinstance(value, np.ndarray):
            if type(value) not in (np.ndarray, SymbolArray):  # a mask, names: more than its numbers
                raise Unsupported(f"its output has a {type(value).__name__}, which is not recorded.")
            if value.dtype.kind not in "biufOUS":
                raise Unsupported(f"its output has an array of {value.dtype}, which is not recorded.")
            skeleton.append(f"array {value.shape}")
            labels = [", ".join(map(str, place)) for place in np.ndindex(value.shape)]
            shown = filled(several(value.ravel().tolist(), labels, name, depth), value.shape)
            if type(value) is SymbolArray:
                shown = shown.view(SymbolArray)
                shown.holds_floats = value.holds_floats
            return shown if symbols_of(value) else seen(value)
        if isinstance(value, list | tuple):
            base: type = tuple if isinstance(value, tuple) else list
            skeleton.append(f"{base.__name__} of {len(value)}")
            shown = base(several(value, range(len(value)), name, depth))
        elif isinstance(value, dict):
            base = dict
            skeleton.append("dict")
            found = {}
            for key in sorted(value, key=_form):
                skeleton.append(_form(key))
                found[key] = visit(value[key], f"{name}[{key!r}]", depth + 1)
            shown = {number_of(key, "a key"): found[key] for key in value}
        elif isinstance(value, set | frozenset):
            skeleton.append(f"set {sorted(map(_form, value))}")
            return seen(type(value)(number_of(item, "a member of a set") for item in value))
        elif isinstance(base := own(value), dict | list):  # a table, as audits read it
            skeleton.append(type(value).__name__)
            shown = visit(base, name, depth + 1)
            if before < len(noisy):
                return noted(shown, _without_noise(value))
            return seen(value)
        else:
            raise Unsupported(f"its output has a {type(value).__name__}, which is not recorded.")
        if before == len(noisy):
            return seen(value)
        if type(value) is not base and getattr(value, "__dict__", None):
            raise Unsupported(f"its output has a {type(value).__name__} with attributes, which are not recorded.")
        return shown

    shown = visit(output, "", 0)
    # Of noise that cancelled nothing is left but rounding errors, which are not judged.
    kept = tuple(leaf.signal if isinstance(leaf, Noisy) and not leaf.terms else leaf for leaf in leaves)
    return Laid(tuple(skeleton), kept, tuple(names), identity(shown))
