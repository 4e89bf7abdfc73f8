"""Pairs of inputs: the two sides of one label game.

x is label 1 and x_prime is label 0. A symmetric claim is asked of a pair in both directions; a one-directional claim
(`Claim.is_symmetric` is False) depends on the order.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np

from dpaudit.errors import DpauditNoteWarning, UsageError
from dpaudit.privacy.differences import difference, frame_name, is_frame

MANY_PAIRS = 2_000  # above which pairs are made when they are looked at, and no option gives them games of their own
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # as object.__repr__ writes it, alone or inside a container
# Numbers of numpy as they are shown in a container: np.float64(0.5), np.True_.
_SCALAR = re.compile(r"\bnp\.(?:(?:bool|int|uint|float|complex|str)\w*\(([^()]*)\)|(True|False)_)")


@dataclasses.dataclass(frozen=True, eq=False)
class Pair:
    """Two inputs and the name of the pair.

    Parameters
    ----------
    x, x_prime : object
        Two inputs of the mechanism.
    id : str
        Names the pair in reports; unique within one audit.
    x_id, x_prime_id : str, optional
        Names of the inputs, for the rows and columns of a report; their short form by default.
    """

    x: Any
    x_prime: Any
    id: str = ""
    x_id: str = ""
    x_prime_id: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "x_id", self.x_id or short_form(self.x))
        are_frames = is_frame(self.x) and is_frame(self.x_prime)
        if not self.x_prime_id and (are_frames or short_form(self.x_prime) == self.x_id):  # names that tell nothing
            object.__setattr__(self, "x_prime_id", difference(self.x, self.x_prime))
        object.__setattr__(self, "x_prime_id", self.x_prime_id or short_form(self.x_prime))
        object.__setattr__(self, "id", self.id or _default_id(self))

    @property
    def said(self) -> tuple[str, str]:
        """Names of the two inputs in sentences: their own, or x and x′ where these are shortened or the same.

        Examples
        --------
        >>> Pair(0, 1).said, Pair([0] * 20, [0] * 19 + [1]).said
        (('0', '1'), ('x', 'x′'))
        """
        differ = self.x_id != self.x_prime_id and not self.x_id.endswith("…") and not self.x_prime_id.endswith("…")
        return (self.x_id, self.x_prime_id) if differ else ("x", "x′")


def short_form(value: Any, width: int = 40) -> str:
    """A one-line name of an input, at most `width` characters: never an object's address."""
    if is_frame(value):
        text = frame_name(value)
    elif isinstance(value, np.ndarray) and value.ndim and not np.ma.is_masked(value):  # of a mask it says inf
        text = np.array2string(value, threshold=6, precision=6, separator=",")
    else:
        text = repr(value.tolist() if isinstance(value, np.generic | np.ndarray) else value)
    text = " ".join(_SCALAR.sub(r"\1\2", ADDRESS.sub("", text)).split())
    return text if len(text) <= width else text[: width - 1] + "…"


def as_pairs(pairs: Iterable[Any]) -> list[Pair]:
    """A list of `Pair` from an iterable of pairs or of 2-tuples (x, x_prime), each with a unique id.

    Raises
    ------
    UsageError
        If there is no pair, an entry is not a pair, or two entries that were given an id share it.

    Warns
    -----
    DpauditNoteWarning
        For a tuple of two lists of two: one pair of lists may have been meant.

    Examples
    --------
    >>> [pair.id for pair in as_pairs([(0.0, 1.0), (0.0, 1.0)])]
    ['0.0|1.0', '0.0|1.0#2']
    """
    if isinstance(pairs, str):
        raise UsageError(
            f"pairs must be a list of (x, x_prime), got the text {short_form(pairs)}. Write pairs=[(0, 1)]."
        )
    try:
        entries = list(pairs)
    except TypeError:
        raise UsageError(f"pairs must be a list of (x, x_prime), got {short_form(pairs)}.") from None
    if not entries:
        raise UsageError("pairs must name at least one pair of inputs, got none.")
    result = [_as_pair(entry, position) for position, entry in enumerate(entries)]
    if isinstance(pairs, tuple) and len(entries) == 2 and all(isinstance(entry, list) for entry in entries):
        names = " and ".join(_default_id(pair) for pair in result)
        text = f"pairs were read as the 2 pairs {names}. For one pair of two lists write pairs=[(x, x_prime)]."
        warnings.warn(text, DpauditNoteWarning, stacklevel=2)
    given: dict[str, int] = {}
    for position, pair in enumerate(result):
        if pair.id != _default_id(pair) and given.setdefault(pair.id, position) != position:
            raise UsageError(
                f"pairs must have unique ids, got {pair.id!r} at positions {given[pair.id]} and {position}."
            )
    own = [position for position, pair in enumerate(result) if pair.id not in given]
    for position, name in zip(own, numbered([result[k].id for k in own], given), strict=True):
        if result[position].id != name:
            result[position] = dataclasses.replace(result[position], id=name)
    return result


def _default_id(pair: Pair) -> str:
    return f"{pair.x_id}|{pair.x_prime_id}"


def _as_pair(entry: Any, position: int) -> Pair:
    if isinstance(entry, Pair):
        return entry
    is_sequence = isinstance(entry, Sequence) or (isinstance(entry, np.ndarray) and entry.ndim > 0)
    if not is_sequence or isinstance(entry, str | bytes) or len(entry) != 2:
        one = "" if is_sequence else " One pair is a list of one: pairs=[(0, 1)]."
        raise UsageError(f"pairs must be a list of (x, x_prime), got {short_form(entry)} at position {position}.{one}")
    return Pair(entry[0], entry[1])


def input_names(inputs: Sequence[Any], ids: Sequence[str] | None) -> list[str]:
    """The names of two inputs or more: `ids`, which must be unique, or their short forms."""
    if len(inputs) < 2:
        raise UsageError(f"inputs must be at least two, got {len(inputs)}.")
    names = list(ids) if ids is not None else [short_form(value) for value in inputs]
    if len(names) != len(inputs):
        raise UsageError(f"ids must be as many as inputs, got {len(names)} ids for {len(inputs)} inputs.")
    if ids is not None and (repeated := [name for name, count in Counter(names).items() if count > 1]):
        raise UsageError(f"ids must be unique, got {repeated[0]!r} twice.")
    return names


class AllPairs(Sequence[Pair]):
    """Every unordered pair of different positions of `inputs`, made when it is looked at: O(inputs) memory.

    Parameters
    ----------
    inputs : sequence
        At least two inputs.
    ids : sequence of str, optional
        A unique name for each input; their short form by default.

    Examples
    --------
    >>> pairs = AllPairs([0, 1, 2], ids=["a", "b", "c"])
    >>> len(pairs), pairs[1].id, [pair.x_prime for pair in pairs]
    (3, 'a|c', [1, 2, 2])
    """

    def __init__(self, inputs: Sequence[Any], ids: Sequence[str] | None = None) -> None:
        names = input_names(inputs, ids)
        if ids is None:  # short forms may coincide: the later ones get a number
            names = numbered(names)
        self.inputs, self.ids = tuple(inputs), tuple(names)

    def __len__(self) -> int:
        return len(self.inputs) * (len(self.inputs) - 1) // 2

    @overload
    def __getitem__(self, index: int) -> Pair: ...

    @overload
    def __getitem__(self, index: slice) -> list[Pair]: ...

    def __getitem__(self, index: int | slice) -> Pair | list[Pair]:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        k = index + len(self) if index < 0 else index
        if not 0 <= k < len(self):
            raise IndexError(f"index must be below {len(self)}, got {index}.")
        row = 0
        while k >= len(self.inputs) - 1 - row:
            k -= len(self.inputs) - 1 - row
            row += 1
        return self.pair(row, row + 1 + k)

    def __iter__(self) -> Iterator[Pair]:
        return (self.pair(i, j) for i, j in itertools.combinations(range(len(self.inputs)), 2))

    def pair(self, i: int, j: int) -> Pair:
        """The pair of two positions."""
        return Pair(self.inputs[i], self.inputs[j], x_id=self.ids[i], x_prime_id=self.ids[j])


def numbered(names: Sequence[str], given: Collection[str] = ()) -> list[str]:
    """The names, each later duplicate with its number: 'a', 'a#2'; none is one of `given`."""
    taken = set(names)
    result, used = [], set(given)
    for name in names:
        unique, count = name, 1
        while unique in used or (count > 1 and unique in taken):
            count += 1
            unique = f"{name}#{count}"
        used.add(unique)
        result.append(unique)
    return result


def all_pairs(inputs: Sequence[Any], ids: Sequence[str] | None = None) -> Sequence[Pair]:
    """Every unordered pair of different positions of `inputs`: n (n - 1) / 2 pairs; more than 2,000 as `AllPairs`.

    Parameters
    ----------
    inputs, ids
        As for `AllPairs`.

    Examples
    --------
    >>> [pair.id for pair in all_pairs([0, 1, 2], ids=["a", "b", "c"])]
    ['a|b', 'a|c', 'b|c']
    """
    pairs = AllPairs(inputs, ids)
    return pairs if len(pairs) > MANY_PAIRS else as_pairs(pairs)


def counted_pairs(count: int) -> str:
    """So many pairs, in words: "1 pair", "2,000 pairs"."""
    return f"{count:,} pair{'' if count == 1 else 's'}"


def differing_pairs(count: int, total: int) -> str:
    """Clause that so many of all pairs differ.

    Examples
    --------
    >>> differing_pairs(1, 1), differing_pairs(1, 3), differing_pairs(2, 3)
    ('the only pair differs', '1 of 3 pairs differs', '2 of 3 pairs differ')
    """
    if total == 1:
        return "the only pair differs"
    return f"{count:,} of {counted_pairs(total)} differ{'s' if count == 1 else ''}"
