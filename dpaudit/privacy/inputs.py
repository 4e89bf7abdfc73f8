"""The different inputs of pairs: which of them no mechanism can tell apart, so that they are drawn once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.privacy.differences import frame_key, is_frame
from dpaudit.privacy.pairs import AllPairs, Pair


@dataclasses.dataclass(frozen=True)
class Inputs:
    """The inputs of the pairs, in order of appearance: values, names, and for each pair the positions of its two."""

    data: Sequence[Any]
    ids: tuple[str, ...]
    first: NDArray[np.int64]
    second: NDArray[np.int64]


def inputs_of(pairs: Sequence[Pair]) -> Inputs:
    """The inputs of the pairs; those that no mechanism can tell apart are one, which is drawn once for all its pairs.

    A pair has two different positions: one of an input with itself gets two independent streams. Those of
    `AllPairs` are its inputs as they are.
    """
    if isinstance(pairs, AllPairs):
        return Inputs(pairs.inputs, pairs.ids, *np.triu_indices(len(pairs.inputs), 1))
    data: list[Any] = []
    names: list[str] = []
    known: dict[Any, int] = {}
    by_object: dict[tuple[int, int], int] = {}  # pairs keep their inputs alive, so an address names one of them

    def position(value: Any, name: str, copy: int) -> int:
        found = by_object.get((id(value), copy))
        if found is None:
            found = known.setdefault((identity_of(value), copy), len(data))
            by_object[id(value), copy] = found
            if found == len(data):
                data.append(value)
                names.append(name)
        return found

    first, second = np.empty((2, len(pairs)), dtype=np.int64)
    for k, pair in enumerate(pairs):
        first[k], second[k] = position(pair.x, pair.x_id, 0), position(pair.x_prime, pair.x_prime_id, 0)
        if first[k] == second[k]:
            second[k] = position(pair.x_prime, pair.x_prime_id, 1)
    return Inputs(data, tuple(names), first, second)


def distinct_inputs(pairs: Sequence[Pair]) -> tuple[list[Any], list[tuple[int, int]]]:
    """The different inputs of the pairs, and for each pair the positions of its two: `inputs_of` a few."""
    inputs = inputs_of(pairs)
    return list(inputs.data), list(zip(inputs.first.tolist(), inputs.second.tolist(), strict=True))


def inputs_apart(pairs: Sequence[Pair]) -> tuple[list[Any], list[tuple[int, int]]]:
    """Both inputs of each pair, and their positions: no two pairs have an input in common, so they share no draws."""
    return [x for pair in pairs for x in (pair.x, pair.x_prime)], [(2 * k, 2 * k + 1) for k in range(len(pairs))]


def repeated_pairs(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """The pairs of the same two inputs, in whatever order, together: those that are there more than once.

    Examples
    --------
    >>> from dpaudit.privacy.pairs import as_pairs
    >>> [[pair.id for pair in same] for same in repeated_pairs(as_pairs([(0, 1), (1, 2), (1, 0)]))]
    [['0|1', '1|0']]
    """
    if isinstance(pairs, AllPairs):
        return []
    inputs, found = inputs_of(pairs), dict[tuple[int, int], list[Pair]]()
    for pair, i, j in zip(pairs, inputs.first.tolist(), inputs.second.tolist(), strict=True):
        found.setdefault((min(i, j), max(i, j)), []).append(pair)
    return [same for same in found.values() if len(same) > 1]


def is_same_input(pair: Pair) -> bool:
    """Tell whether the two inputs of a pair are one: no mechanism can tell them apart, so there is nothing to find."""
    return pair.x is pair.x_prime or bool(identity_of(pair.x) == identity_of(pair.x_prime))


def identity_of(value: Any) -> Any:
    """A hashable key that two inputs share only if no mechanism can tell them apart: types, shapes and bits.

    An object of any other kind is equal to itself alone, and so is one that holds itself.
    """
    try:
        return _identity(value)
    except RecursionError:
        return (type(value), id(value))


def _identity(value: Any) -> Any:
    kind = type(value)
    if kind in (list, tuple):
        return (kind, tuple(_identity(item) for item in value))
    if kind is dict:
        return (kind, tuple((_identity(key), _identity(item)) for key, item in value.items()))
    if kind is np.ndarray and value.dtype.kind in "biufcUSmM":
        return (kind, value.dtype.str, value.shape, value.strides, value.tobytes())
    if kind is float or isinstance(value, np.generic):
        return (kind, np.asarray(value).tobytes())
    if kind in (int, Fraction):  # hashes of integers collide: those of -1 and -2 are one
        return (kind, hex(value.numerator), hex(value.denominator))
    if value is None or kind in (bool, str, bytes):
        return (kind, value)
    if is_frame(value):
        return (kind, frame_key(value))
    return (kind, id(value))
