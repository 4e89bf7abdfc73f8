"""Domains of datasets: lists of records, of which one is added, removed or replaced."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.privacy.adjacency import add_remove, replace_one
from dpaudit.privacy.claims import whole_number
from dpaudit.privacy.metrics import is_same
from dpaudit.privacy.pairs import short_form
from dpaudit.subjects.domains.domain import MOVES, RELATIONS, Domain, Inputs, Relation, Start, check_ends, distinct

MOST_VALUES = 24  # of a domain that starts try one by one
MOST_SIZES = 24


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(distinct(self.values)))
        object.__setattr__(self, "examples", tuple(self.examples))
        if len(self.values) < 2:
            raise UsageError(f"values must be at least two different records, got {len(self.values)}.")
        whole_number("largest", self.largest, "a positive integer", 1)
        whole_number("smallest", self.smallest, "an integer of at least 0", 0)
        if self.adjacency not in RELATIONS:
            raise UsageError(f"adjacency must be one of {', '.join(RELATIONS)}, got {self.adjacency!r}.")
        if self.smallest > self.largest:
            raise UsageError(f"smallest must be at most largest ({self.largest}), got {self.smallest}.")
        if self.smallest == self.largest and self.adjacency == "add_remove":
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
        """Datasets of numbers between two ends: these, the middle, zero if it lies between, and the special ones."""
        check_ends(low, high)
        middle = 0.5 * (low + high)
        telling = [low, high, middle, *([0.0] if low < 0.0 < high else []), low + 1e-3 * (high - low), *special]
        return cls(tuple(telling), largest, adjacency, smallest, tuple(examples))

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
        telling = self.values[:4]
        # Beside as many equal records as there can be, one that differs: what is scaled by the others' mean or spread
        # moves most there. So add_remove grows from one record below the largest size, where any can be added.
        full = self.largest - 1 if self.adjacency == "add_remove" else self.largest
        for size in dict.fromkeys([0, 1, 2, 3, full // 2, full]):
            if not self.smallest <= size <= full:
                continue
            family = {0: "empty", 1: "single record"}.get(size, "duplicates" if size < full else "largest")
            for base in telling if size else telling[:1]:
                rows = [base] * size
                yield from self._neighbours(family, rows, telling)
        yield from self._sizes()
        size = min(self.largest, max(len(self.values), 4, self.smallest))
        mixed = [self.values[k % len(self.values)] for k in range(size)]
        yield from self._neighbours("all different", mixed, self.values[:MOST_VALUES])
        # Beside all values a record that is like none of the first: the last ones are seldom the usual ones.
        for value in self.values[len(telling) : MOST_VALUES]:
            yield from self._neighbours("further value", [self.values[0]] * min(max(self.smallest, 1), size), [value])
        yield from self._newcomers()
        if self.adjacency == "add_remove" and self.smallest < size < self.largest:
            yield from (("in front", self._typed(mixed), self._typed([value, *mixed])) for value in telling)
        for example in self.examples:
            yield from self._of_example(example, telling)

    def _sizes(self) -> Iterator[Start]:
        """A record more at every small size: thresholds on the true size show between two of them."""
        if self.adjacency == "add_remove":
            for size in range(self.smallest, min(self.largest, self.smallest + MOST_SIZES)):
                rows = [self.values[0]] * size
                yield "size", self._typed(rows), self._typed([*rows, self.values[0]])

    def _newcomers(self) -> Iterator[Start]:
        """Every other value once, and then the one that was not there, the last ones first."""
        for value in reversed(self.values[:MOST_VALUES]):
            others = [other for other in self.values[:MOST_VALUES] if other is not value]
            rows = others[: self.largest - 1]
            rows += [others[0]] * (self.smallest - len(rows))
            if self.adjacency == "add_remove":
                if len(rows) < self.largest:
                    yield "newcomer", self._typed(rows), self._typed([*rows, value])
            else:
                yield "newcomer", self._typed(rows), self._typed([*rows[:-1], value])

    def random(self, rng: np.random.Generator) -> Inputs:
        """Any size, small ones as often as large ones; records at random or nearly all the same."""
        lowest = max(self.smallest, 1 if self.adjacency == "replace_one" else 0)
        spread = math.log1p(self.largest) - math.log1p(lowest)
        size = round(math.expm1(math.log1p(lowest) + float(rng.random()) * spread))
        few = self.values if rng.random() < 0.5 else [self.values[k] for k in rng.integers(len(self.values), size=2)]
        rows = [few[k] for k in rng.integers(len(few), size=size)]
        return self._changed(rows, rng)

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
            place, value = int(rng.integers(len(rows))), self.values[int(rng.integers(len(self.values)))]
            found.append([*rows[:place], value, *rows[place + 1 :]])
            found.append([rows[place]] * len(rows))
        return [self._changed(base, rng) for base in [*found, rows]][:MOVES]

    def to_dict(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in ("largest", "smallest", "adjacency")}
        return {"kind": "dataset", "values": [short_form(v) for v in self.values[:20]], **kept} | (
            {"examples": len(self.examples)} if self.examples else {}
        )

    def _neighbours(self, family: str, rows: list[Any], telling: Sequence[Any]) -> Iterator[Start]:
        """A dataset against those that have another record, the telling values first."""
        for value in telling:
            other: list[Any] | None = None
            if self.adjacency == "add_remove":
                if len(rows) < self.largest:
                    other = [*rows, value]
                elif rows and is_same(rows[-1], value) and len(rows) > self.smallest:
                    other = rows[:-1]
            elif rows and not is_same(rows[0], value):
                other = [value, *rows[1:]]
            if other is not None:
                yield family, self._typed(rows), self._typed(other)

    def _of_example(self, example: Any, telling: Sequence[Any]) -> Iterator[Start]:
        """An example and the single records of it, against their neighbours."""
        few = example[: max(self.smallest, 1)]
        for family, base in (("example", example), ("part of an example", few)):
            rows = list(base)
            domain = [*telling, *(row for row in distinct(rows) if not any(is_same(row, v) for v in telling))]
            if self.adjacency == "add_remove":
                pairs = add_remove(base, domain)
                sizes = range(self.smallest, self.largest + 1)
                pairs = [pair for pair in pairs if len(pair.x_prime) in sizes][: len(telling) + 8]
            elif rows:
                pairs = replace_one(base, domain)[: 2 * len(telling) + 8]
            else:
                pairs = []
            for pair in pairs:
                yield family, pair.x, pair.x_prime

    def _changed(self, rows: list[Any], rng: np.random.Generator) -> Inputs:
        value = self.values[int(rng.integers(len(self.values)))]
        place = int(rng.integers(len(rows))) if rows else 0
        if self.adjacency == "replace_one":
            other = [*rows[:place], value, *rows[place + 1 :]] if rows else rows
        else:
            removes = len(rows) > self.smallest and (len(rows) >= self.largest or rng.random() < 0.5)
            at = int(rng.integers(len(rows) + 1)) if rng.random() < 0.5 else len(rows)  # order may matter
            other = [*rows[:place], *rows[place + 1 :]] if removes else [*rows[:at], value, *rows[at:]]
        return self._typed(rows), self._typed(other)

    def _typed(self, rows: list[Any]) -> Any:
        """The rows as the type of the first example; a list where there is none."""
        like = self.examples[0] if self.examples else rows
        if isinstance(like, np.ndarray):
            return np.array(rows, dtype=like.dtype) if rows else like[:0].copy()
        return tuple(rows) if isinstance(like, tuple) else rows


def _telling(records: list[Any]) -> list[Any]:
    """The records, the extremes first where they are numbers; at most 200 of them."""
    if records and all(isinstance(record, int | float | np.number) for record in records):
        known = sorted(records)
        records = [known[0], known[-1], known[len(known) // 2], *records]
    return records[:200]
