"""Domains of datasets: lists of records, of which one is added, removed or replaced."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dpaudit.arguments import check_among
from dpaudit.errors import UsageError
from dpaudit.privacy.adjacency import typed_rows
from dpaudit.privacy.claims import whole_number
from dpaudit.privacy.differences import row_key
from dpaudit.privacy.metrics import is_same
from dpaudit.privacy.pairs import short_form
from dpaudit.subjects.domains.domain import (
    MOVES,
    RELATIONS,
    SHARE,
    SWEEP,
    Domain,
    Inputs,
    Relation,
    Start,
    check_ends,
    distinct,
    is_number,
    spread,
)

MAX_TRIED = 24  # values, sizes, and rows of an example to remove or replace that starts try; any at random
MAX_COPIED = 40_000  # records in all, up to which starts remove or replace more rows than that: each of 200
MAX_EXAMPLES = 8  # that starts take; any at random
INTERIOR = 16  # numbers between the ends that starts try


@dataclasses.dataclass(frozen=True)
class DatasetDomain(Domain):
    """Lists of records; two of them are adjacent if one record is added, removed or replaced.

    Parameters
    ----------
    values : sequence
        Records that a dataset may have, at least two different ones: all of them, or the telling ones (the ends of a
        range and a few between: `DatasetDomain.between`).
    largest : int
        Records in the largest dataset, at least 1.
    adjacency : {"add_remove", "replace_one"}
    smallest : int
        Records in the smallest; 0 asks for the empty one.
    examples : sequence of datasets
        Datasets of the user's to start from, each a list, tuple or array of records; the neighbours are of their type.
    ends : (float, float), optional
        The ends of a range, any number of which is a record too; `values` are then the telling ones.

    Examples
    --------
    >>> domain = DatasetDomain(values=(0, 1), largest=5)
    >>> [(family, x, y) for family, x, y in domain.starts()][:2]
    [('empty', [], [0]), ('empty', [], [1])]
    """

    values: tuple[Any, ...]
    largest: int = 20
    adjacency: Relation = "add_remove"
    smallest: int = 0
    examples: tuple[Any, ...] = ()
    ends: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(distinct(self.values)))
        object.__setattr__(self, "examples", tuple(self.examples))
        if self.ends is not None:
            check_ends(*self.ends)
        if len(self.values) < 2:
            raise UsageError(f"values must be at least two different records, got {len(self.values)}.")
        whole_number("largest", self.largest, "a positive integer", 1)
        whole_number("smallest", self.smallest, "an integer of at least 0", 0)
        check_among("adjacency", self.adjacency, RELATIONS)
        if self.smallest > self.largest:
            raise UsageError(f"smallest must be at most largest ({self.largest}), got {self.smallest}.")
        if self.smallest == self.largest and self._grows:
            raise UsageError(f"smallest must be below largest ({self.largest}) for add_remove, got {self.smallest}.")

    @classmethod
    def between(
        cls,
        low: float,
        high: float,
        largest: int = 20,
        special: Sequence[Any] = (),
        adjacency: Relation = "add_remove",
        smallest: int = 0,
        examples: Sequence[Any] = (),
    ) -> DatasetDomain:
        """Datasets of numbers between two ends, these, the middle, zero and the special ones more often than others."""
        check_ends(low, high)
        middle = 0.5 * (low + high)
        telling = [low, high, middle, *([0.0] if low < 0.0 < high else []), low + 1e-3 * (high - low), *special]
        return cls(tuple(telling), largest, adjacency, smallest, tuple(examples), (low, high))

    @classmethod
    def of_examples(cls, examples: Iterable[Any], adjacency: Relation = "add_remove") -> DatasetDomain:
        """Datasets like these: their records, and their sizes down to none."""
        known = list(examples)
        for position, example in enumerate(known):
            is_array = isinstance(example, np.ndarray) and example.ndim > 0
            if not (isinstance(example, list | tuple) or is_array):
                raise UsageError(
                    f"examples must be datasets, each a list, tuple or array of records, "
                    f"got {short_form(example)} at position {position}."
                )
        seen = distinct(_telling([record for example in known for record in example]))
        grows = adjacency == "add_remove"
        largest = max((len(example) for example in known), default=0) + (1 if grows else 0)
        return cls(tuple(seen), max(largest, 1), adjacency, 0 if grows else 1, tuple(known))

    def starts(self) -> Iterator[Start]:
        """Small sizes, single records, duplicates, extremes, the largest, all values; then neighbours of examples."""
        telling, listed = self.values[:4], self._listed()
        # Beside as many equal records as there can be, one that differs: what is scaled by the others' mean or spread
        # moves most there. So add_remove grows from one record below the largest size, where any can be added.
        full = self.largest - self._grows
        for size in dict.fromkeys([0, 1, 2, 3, full // 2, full]):
            if self.smallest <= size <= full:
                family = {0: "empty", 1: "single record"}.get(size, "duplicates" if size < full else "largest")
                for base in telling if size else telling[:1]:
                    yield from self._beside(family, [base] * size, telling)
        if self._grows:  # thresholds on the true size show between two small ones, and ties
            for size in range(self.smallest, min(self.largest, self.smallest + MAX_TRIED)):
                for value in self.values[:3]:
                    yield from self._beside("size", [value] * size, [value])
        size = min(full, max(len(self.values), 4, self.smallest))
        mixed = [self.values[k % len(self.values)] for k in range(size)]
        yield from self._beside("all different", mixed, listed)
        # Beside all values a record that is like none of the first: the last ones are seldom the usual ones.
        few = [self.values[0]] * min(max(self.smallest, 1), size)
        yield from self._beside("further value", few, listed[len(telling) :])
        # Every other value once, and then the one that was not there, the last ones first.
        for value in reversed(listed):
            others = [other for other in listed if other is not value]
            rows = others[: self.largest - 1]
            rows += [others[0]] * (self.smallest - len(rows))
            if len(rows) <= full:
                yield from self._beside("newcomer", rows, [value], len(rows) - (not self._grows))
        if self.ends is not None:  # a function may change only inside of the range
            yield from self._beside("interior", mixed, np.linspace(*self.ends, INTERIOR + 2)[1:-1].tolist())
        # Not at the end: the order of records matters to codes by appearance and to sums in floating point.
        for value in listed:
            for family, place in list(_places(len(mixed) - (not self._grows)).items())[: 3 - self._grows]:
                yield from self._beside(family, mixed, [value], place)
        yield from in_turn([self._of_example(example) for example in spread(self.examples, MAX_EXAMPLES)])

    def _listed(self) -> list[Any]:
        """The values that starts try one by one: the first four, and some of all others."""
        return [*self.values[:4], *spread(self.values[4:], MAX_TRIED - 4)]

    @property
    def _grows(self) -> bool:
        return self.adjacency == "add_remove"

    def _edited(self, rows: list[Any], place: int, value: Any) -> list[Any]:
        """The rows with a record put in at a place, or in the place of the one that is there."""
        return [*rows[:place], value, *rows[place + (not self._grows) :]]

    def _beside(self, family: str, rows: list[Any], values: Sequence[Any], place: int | None = None) -> Iterator[Start]:
        """A dataset against those with each of the values, at a place: by default the end, or in the first row's."""
        at = (len(rows) if self._grows else 0) if place is None else place
        for value in values:
            if self._grows or (rows and not is_same(rows[at], value)):
                yield family, self._typed(rows), self._typed(self._edited(rows, at, value))

    def random(self, rng: np.random.Generator) -> Inputs:
        """An example, or any size, small ones as often as large ones, and records at random or nearly all the same."""
        if self.examples and rng.random() < 0.5:
            example = self.examples[int(rng.integers(len(self.examples)))]
            return self.changed(list(example), rng, example)
        lowest = max(self.smallest, int(not self._grows))
        spread = math.log1p(self.largest) - math.log1p(lowest)
        size = round(math.expm1(math.log1p(lowest) + float(rng.random()) * spread))
        few = self.values if rng.random() < 0.5 else [self._record([], rng) for _ in range(2)]
        rows = [few[k] for k in rng.integers(len(few), size=size)]
        return self.changed(rows, rng)

    def moves(self, x: Any, x_prime: Any, rng: np.random.Generator) -> list[Inputs]:
        """Fewer or more of the other records, another value for some, and another record that differs."""
        rows = list(x)
        found: list[list[Any]] = []
        if len(rows) > self.smallest:
            place = int(rng.integers(len(rows)))
            found.append([*rows[:place], *rows[place + 1 :]])
            found.append(rows[: max(self.smallest, len(rows) // 2)])
        if rows and len(rows) < self.largest:
            found.append([*rows, rows[int(rng.integers(len(rows)))]])
        if rows:
            place = int(rng.integers(len(rows)))
            found.append([*rows[:place], self._record(rows, rng), *rows[place + 1 :]])
            found.append([rows[place]] * len(rows))
        return [self.changed(base, rng) for base in [*found, rows]][:MOVES]

    def sized(self, x: Any, x_prime: Any, size: float) -> Iterator[Inputs]:
        if self.ends is None:
            return
        low, high = self.ends
        first, second = sorted((list(x), list(x_prime)), key=len)
        place = next((k for k in range(len(first)) if not is_same(first[k], second[k])), len(first))
        for rows, other in ((first, second),) if self._grows else ((first, second), (second, first)):
            if place < len(other) and is_number(other[place]):
                for step in (size * (high - low), -size * (high - low)):
                    value = min(max(float(other[place] + step), low), high)
                    yield self._typed(rows), self._typed(self._edited(rows, place, value))

    def steps(self, x: Any, x_prime: Any) -> int:
        one, other = list(x), list(x_prime)
        if self._grows:
            return abs(len(one) - len(other)) if one[: len(other)] == other[: len(one)] else 0
        return len(one) if len(one) == len(other) else 0

    def on_way(self, x: Any, x_prime: Any, step: int) -> Any:
        one, other = list(x), list(x_prime)
        if not self._grows:
            return self._typed([*other[:step], *one[step:]])
        return self._typed(other[: len(one) + step] if len(one) < len(other) else one[: len(one) - step])

    def sweep(self) -> list[Any]:
        levels = [] if self.ends is None else np.linspace(*self.ends, SWEEP).tolist()
        return [self._typed([level] * (self.largest - self._grows)) for level in levels]

    def to_dict(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in ("largest", "smallest", "adjacency")}
        record = {"kind": "dataset", "values": [short_form(v) for v in self.values[:20]], **kept}
        if self.ends is not None:
            record["ends"] = list(self.ends)
        if self.examples:
            known = {row_key(row) for example in self.examples for row in spread(example, 200)}
            beyond = any(row_key(value) not in known for value in self.values)
            record |= {"examples": len(self.examples), "beyond": beyond}
        return record

    def all_inputs(self, most: int) -> Iterable[Any] | None:
        if self.ends is not None or self.examples:
            return None
        sizes = range(self.smallest, self.largest + 1)
        return (list(rows) for size in sizes for rows in itertools.product(self.values, repeat=size))

    def is_pair(self, x: Any, x_prime: Any) -> bool:
        if not all(self.smallest <= len(side) <= self.largest for side in (x, x_prime)):
            return False
        shorter, longer = sorted((list(x), list(x_prime)), key=len)
        same = list(map(is_same, shorter, longer))
        if not self._grows:
            return len(shorter) == len(longer) and same.count(False) <= 1
        first = same.index(False) if False in same else len(shorter)
        return len(longer) == len(shorter) + 1 and all(map(is_same, shorter[first:], longer[first + 1 :]))

    def _of_example(self, example: Any) -> Iterator[Start]:
        """An example with records removed, doubled, added in front, in the middle and at the end, or replaced."""
        rows, values = list(example), self._listed()
        few, most = rows[: max(self.smallest, 1)], max(MAX_TRIED, MAX_COPIED // max(len(rows), 1))
        places = [("telling", place) for place in telling_places(rows)]
        places += [("any", place) for place in spread(range(len(rows)), most)]
        found: list[tuple[str, list[Any], list[Any]]] = []
        if not self._grows:
            for turn in (1, 2):  # a family has a row once
                for k, (which, place) in enumerate(places):
                    value = values[(k + turn) % len(values)]
                    found.append((f"{which} row replaced, {turn}", rows, self._edited(rows, place, value)))
            found += [("part of an example", few, self._edited(few, 0, value)) for value in values if few]
        else:
            for which, place in places:
                found.append((f"{which} row removed", rows, [*rows[:place], *rows[place + 1 :]]))
                found.append(("row doubled", rows, self._edited(rows, place, rows[place])))
            for value in values:
                for where, place in _places(len(rows)).items():
                    found.append((f"row added {where}", rows, self._edited(rows, place, value)))
                found.append(("part of an example", few, [*few, value]))
        for family, x, x_prime in found:
            if self.smallest <= len(x_prime) <= self.largest:
                yield family, typed_rows(example, x), typed_rows(example, x_prime)

    def changed(self, rows: list[Any], rng: np.random.Generator, like: Any = None) -> Inputs:
        """The rows, of the type of `like`, and the same with a record added anywhere, removed or replaced."""
        value = self._record(rows, rng)
        place = int(rng.integers(len(rows))) if rows else 0
        if not self._grows:
            other = self._edited(rows, place, value) if rows else rows
        else:
            removes = len(rows) > self.smallest and (len(rows) >= self.largest or rng.random() < 0.5)
            at = (0, int(rng.integers(len(rows) + 1)), len(rows))[int(rng.integers(3))]  # order may matter
            other = [*rows[:place], *rows[place + 1 :]] if removes else self._edited(rows, at, value)
        return self._typed(rows, like), self._typed(other, like)

    def _record(self, rows: Sequence[Any], rng: np.random.Generator) -> Any:
        """A record: one of the rows, a number between the ends where there are such, or a telling value."""
        kind = float(rng.random())
        if len(rows) and kind < SHARE:
            return rows[int(rng.integers(len(rows)))]
        if self.ends is not None and kind < 2 * SHARE:
            return float(rng.uniform(*self.ends))
        return self.values[int(rng.integers(len(self.values)))]

    def _typed(self, rows: list[Any], like: Any = None) -> Any:
        """The rows as the type of `like`, by default of the first example; a list where there is none."""
        like = like if like is not None else next(iter(self.examples), rows)
        return typed_rows(like, rows)


def telling_places(rows: Sequence[Any]) -> list[int]:
    """Places of rows to remove or replace: extremes and values that occur once, of each column, and some of all.

    Examples
    --------
    >>> telling_places([3, 9, 1])
    [2, 1, 0]
    """
    found: list[int] = []
    for cells in zip(*(row if isinstance(row, tuple) else (row,) for row in rows), strict=False):
        numbers = [(cell, at) for at, cell in enumerate(cells) if is_number(cell)]
        if numbers:
            found += [min(numbers)[1], max(numbers)[1]]
        else:
            texts = list(map(repr, cells))
            counts = collections.Counter(texts)
            found += spread([at for at, text in enumerate(texts) if counts[text] == 1], 2)
    found = spread(list(dict.fromkeys(found)), MAX_TRIED // 2)
    return list(dict.fromkeys([*found, *spread(range(len(rows)), MAX_TRIED // 2)]))


def _places(last: int) -> dict[str, int]:
    return {"in front": 0, "in the middle": (last + 1) // 2, "at the end": last}


def in_turn(lists: Sequence[Iterable[Any]]) -> Iterator[Any]:
    """The first of each, then the second of each, and so on."""
    for turn in itertools.zip_longest(*lists):
        yield from (one for one in turn if one is not None)


def _telling(records: list[Any]) -> list[Any]:
    """The records, the extremes first where they are numbers; at most 200 of them, from the first to the last."""
    if records and all(isinstance(record, int | float | np.number) for record in records):
        known = sorted(records)
        return [known[0], known[-1], known[len(known) // 2], *spread(known, 197)]
    return spread(records, 200)
