"""Domains: which inputs a mechanism takes and which two of them are adjacent, as a source of pairs to try.

A domain does three things: it lists `starts`, the pairs that tend to be bad (the patterns of the literature, the
boundary, empty and tiny inputs, duplicates, extremes); it draws pairs at random; and it makes `moves`, pairs that
differ a little from a given one. Every pair it makes is adjacent in its own sense, so the sense has to be the one that
the claim speaks of: the domain is a part of the promise, said by the user.

The patterns for vectors of query answers are those of StatDP (Ding et al. 2018) and DP-Sniper (Bichsel et al. 2021);
each is tried at several levels, because most faults depend on where the answers lie.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.privacy.adjacency import add_remove, replace_one
from dpaudit.privacy.claims import FloatArray, number, whole_number
from dpaudit.privacy.metrics import is_same
from dpaudit.privacy.pairs import short_form

Inputs = tuple[Any, Any]
Start = tuple[str, Any, Any]  # the family that a pair is of, x, x_prime
Relation = Literal["add_remove", "replace_one"]
Change = Literal["each", "one", "moved"]
RELATIONS: tuple[Relation, ...] = ("add_remove", "replace_one")
CHANGES: tuple[Change, ...] = ("each", "one", "moved")
SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}  # how JSON names them
MOVES = 6  # different pairs that `moves` aims at
LISTED = 400  # pairs of a list of inputs that are all starts; of longer lists, these many at random


class Domain(ABC):
    """Where pairs come from; see the module."""

    @abstractmethod
    def starts(self) -> Iterator[Start]:
        """The pairs to begin with, the most telling first: (family, x, x_prime)."""

    @abstractmethod
    def random(self, rng: np.random.Generator) -> Inputs:
        """A pair at random."""

    @abstractmethod
    def moves(self, x: Any, x_prime: Any, rng: np.random.Generator) -> list[Inputs]:
        """Pairs that differ a little from this one, at most a handful; some may be the pair itself."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The domain as JSON values, for the record of a search."""


@dataclasses.dataclass(frozen=True)
class NumberDomain(Domain):
    """Numbers between two ends; two of them are adjacent if they differ by at most `change`.

    Parameters
    ----------
    low, high : float
        Finite, low < high.
    change : float
        Positive; infinity for any two numbers, as a metric claim has it.
    integer : bool
        Whether only whole numbers are inputs; the ends are whole then, and `change` is at least 1.
    special : tuple
        Further inputs, adjacent to every other one: for example NaN, where the mechanism says that it takes it.

    Examples
    --------
    >>> [(x, y) for _, x, y in NumberDomain(0, 10, integer=True).starts()][:3]
    [(0, 1), (10, 9), (5, 6)]
    """

    low: float
    high: float
    change: float = 1.0
    integer: bool = False
    special: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        _range(self.low, self.high, self.change, self.integer)

    def starts(self) -> Iterator[Start]:
        """The two ends, the middle and zero with their neighbours; then the special inputs."""
        middle, zero = 0.5 * (self.low + self.high), min(max(0.0, self.low), self.high)
        if self._step == self.high - self.low:  # the largest change is the whole line
            yield self._start("ends", self.low, self.high)
        yield self._start("boundary", self.low, self.low + self._step)
        yield self._start("boundary", self.high, self.high - self._step)
        yield self._start("middle", middle, middle + self._step)
        yield self._start("zero", zero, zero + self._step)
        yield self._start("zero", zero, zero - self._step)
        small = max(1.0, 1e-3 * self._step) if self.integer else 1e-3 * self._step
        for base in (self.low, middle):
            yield self._start("small change", base, base + small)
        for value in self.special:
            yield "special", value, self._value(middle)
            yield "special", self._value(self.low), value

    def random(self, rng: np.random.Generator) -> Inputs:
        """Anywhere, at the largest change half of the time."""
        base = float(rng.uniform(self.low, self.high))
        size = self._step if rng.random() < 0.5 else float(rng.uniform(0.0, self._step))
        return self._pair(base, base + size * float(rng.choice([-1.0, 1.0])))

    def moves(self, x: Any, x_prime: Any, rng: np.random.Generator) -> list[Inputs]:
        """The pair shifted, turned round, at the largest change, and halfway to each end."""
        if not all(map(_is_finite, (x, x_prime))):
            return []
        gap = x_prime - x
        sign = 1.0 if gap >= 0.0 else -1.0
        shift = self._step * float(rng.normal())
        found = [
            self._pair(x + shift, x_prime + shift),
            self._pair(x, x + sign * self._step),
            self._pair(x, x - gap),
            self._pair(0.5 * (x + self.low), 0.5 * (x + self.low) + gap),
            self._pair(0.5 * (x + self.high), 0.5 * (x + self.high) + gap),
            self._pair(x, x + gap * float(rng.uniform(0.3, 1.0))),
        ]
        return found[:MOVES]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "number", **dataclasses.asdict(self)}

    @property
    def _step(self) -> float:
        return _largest_change(self.low, self.high, self.change, self.integer)

    def _value(self, value: float) -> Any:
        inside = min(max(value, self.low), self.high)
        return math.floor(inside) if self.integer else float(inside)

    def _pair(self, x: float, x_prime: float) -> Inputs:
        first, second = self._value(x), self._value(x_prime)
        if abs(second - first) > self._step:  # rounding down may have widened it
            second = self._value(first + math.copysign(self._step, second - first))
        return first, second

    def _start(self, family: str, x: float, x_prime: float) -> Start:
        return family, *self._pair(x, x_prime)


@dataclasses.dataclass(frozen=True)
class VectorDomain(Domain):
    """Vectors of numbers: answers of several queries, or counts of a histogram, or points of a metric space.

    Parameters
    ----------
    length : int
        Numbers in a vector, at least 1.
    low, high : float
        Finite; of every number.
    change : float
        Positive: what one number may change by; infinity for any two vectors.
    adjacency : {"each", "one", "moved"}
        Every number may change by at most `change` (queries of that sensitivity), one number only (a histogram to
        which a record is added), or one goes up and another one down by at most that much (a record is replaced).
    integer : bool
        Whether the vectors are whole numbers; the ends are whole then, and `change` is at least 1.
    special : tuple
        Values that a coordinate may have too: for example NaN, where the mechanism says that it takes it.
    as_list : bool
        Whether the inputs are lists rather than arrays; so they are in the JSON form.

    Examples
    --------
    >>> domain = VectorDomain(4, 0, 8, integer=True)
    >>> next((x.tolist(), y.tolist()) for family, x, y in domain.starts() if family == "x shape")
    ([5, 5, 4, 4], [4, 4, 5, 5])
    """

    length: int
    low: float = 0.0
    high: float = 10.0
    change: float = 1.0
    adjacency: Change = "each"
    integer: bool = False
    special: tuple[Any, ...] = ()
    as_list: bool = False

    def __post_init__(self) -> None:
        whole_number("length", self.length, "a positive integer", 1)
        _range(self.low, self.high, self.change, self.integer)
        if self.adjacency not in CHANGES:
            raise UsageError(f"adjacency must be one of {', '.join(CHANGES)}, got {self.adjacency!r}.")
        if not isinstance(self.as_list, bool):
            raise UsageError(f"as_list must be True or False, got {self.as_list!r}.")
        if self.adjacency == "moved" and self.length < 2:
            raise UsageError(f"length must be at least 2 where one number goes up and another down, got {self.length}.")

    def starts(self) -> Iterator[Start]:
        """The patterns of the literature at several levels, then pairs between far corners and special values."""
        step, n = self._step, self.length
        for level in self._levels:
            base = np.full(n, level)
            for family, change in self._patterns().items():
                yield self._start(family, base, base + step * change)
            if self.adjacency == "each" and n > 1:
                half = np.where(np.arange(n) < n // 2, 1.0, 0.0)
                yield self._start("x shape", base + step * half, base + step * (1.0 - half))
        ramp = self.low + (self.high - self.low) * np.arange(n) / max(n - 1, 1)
        peak = np.where(np.arange(n) == 0, self.high, self.low)
        for family, base in (("staircase", ramp), ("one peak", peak), ("one peak at the end", peak[::-1])):
            for change in list(self._patterns().values())[:2]:
                yield self._start(family, base, base + step * change)
        middle = self._vector(np.full(n, 0.5 * (self.low + self.high)))
        for value in self.special:
            other = np.array(middle, dtype=float)
            other[0] = value
            yield "special", middle, other.tolist() if self.as_list else other

    def random(self, rng: np.random.Generator) -> Inputs:
        """Anywhere, or on few values; changed by a random pattern."""
        base = rng.uniform(self.low, self.high, size=self.length)
        if rng.random() < 0.5:
            base = rng.choice(np.array(self._levels), size=self.length)
        return self._pair(base, base + self._step * self._random_change(rng))

    def moves(self, x: Any, x_prime: Any, rng: np.random.Generator) -> list[Inputs]:
        """The change kept and the place moved (all of it, one number, a swap), or the other way round."""
        base, change = np.asarray(x, dtype=float), np.asarray(x_prime, dtype=float) - np.asarray(x, dtype=float)
        if not np.isfinite(base).all() or not np.isfinite(change).all():
            return []
        n = self.length
        moved, flipped, placed = base.copy(), change.copy(), base.copy()
        moved[rng.integers(n)] = rng.choice(np.array(self._levels))
        places = rng.permutation(n)[: max(1, n // 3)]
        flipped[places] = -flipped[places] if rng.random() < 0.5 else self._step * rng.choice([-1.0, 0.0, 1.0])
        placed[:] = base + self._step * float(rng.normal())
        order = rng.permutation(n)
        other = self._step * self._random_change(rng)
        if self.adjacency != "each":
            flipped = -change
        found = [(placed, change), (moved, change), (base, flipped), (base[order], change[order]), (base, -change)]
        return [self._pair(place, place + shift) for place, shift in [*found, (base, other)]][:MOVES]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "vector", **dataclasses.asdict(self)}

    @property
    def _step(self) -> float:
        return _largest_change(self.low, self.high, self.change, self.integer)

    @property
    def _levels(self) -> list[float]:
        """Where the answers lie: the ends, a step from them, the middle, and zero."""
        middle = 0.5 * (self.low + self.high)
        levels = [middle, self.low, min(max(0.0, self.low), self.high), self.low + self._step, self.high - self._step]
        return list(dict.fromkeys([*levels, self.high]))

    def _patterns(self) -> dict[str, FloatArray]:
        """Changes in units of the step, as the literature names them."""
        n = self.length
        first = np.where(np.arange(n) == 0, 1.0, 0.0)
        if self.adjacency == "one":
            last = first[::-1]
            return {"one above": first, "one below": -first, "last above": last, "last below": -last}
        if self.adjacency == "moved":
            return {"first to last": first[::-1] - first, "last to first": first - first[::-1]}
        half = np.where(np.arange(n) < n // 2, 1.0, 0.0)
        ones = np.ones(n)
        patterns = {
            "all above": ones,
            "all below": -ones,
            "one above": first,
            "one below": -first,
            "one above, rest below": 2.0 * first - ones,
            "one below, rest above": ones - 2.0 * first,
            "half and half": 2.0 * half - ones,
            "alternating": np.where(np.arange(n) % 2 == 0, 1.0, -1.0),
        }
        return patterns if n > 1 else {name: patterns[name] for name in ("all above", "all below")}

    def _random_change(self, rng: np.random.Generator) -> FloatArray:
        n = self.length
        if self.adjacency == "each":
            if math.isinf(self.change):
                return rng.uniform(-1.0, 1.0, size=n)
            return rng.choice([-1.0, 0.0, 1.0], size=n, p=[0.4, 0.2, 0.4])
        change, places = np.zeros(n), rng.permutation(n)
        change[places[0]] = rng.choice([-1.0, 1.0])
        if self.adjacency == "moved":
            change[places[1]] = -change[places[0]]
        return change

    def _vector(self, values: FloatArray) -> Any:
        inside = np.clip(values, self.low, self.high)
        vector = np.floor(inside).astype(np.int64) if self.integer else inside
        return vector.tolist() if self.as_list else vector

    def _pair(self, x: FloatArray, x_prime: FloatArray) -> Inputs:
        """The two vectors inside of the range: moved there together, so that the change stays what it is."""
        change = np.clip(x_prime - x, -self._step, self._step)
        if self.integer:
            change = np.trunc(change + 1e-9 * np.sign(change))  # a sum of doubles may be just below a whole number
            x = np.floor(x)
        low, high = self.low - np.minimum(change, 0.0), self.high - np.maximum(change, 0.0)
        base = np.clip(x, low, np.maximum(low, high))
        return self._vector(base), self._vector(base + change)

    def _start(self, family: str, x: FloatArray, x_prime: FloatArray) -> Start:
        return family, *self._pair(x, x_prime)


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
        object.__setattr__(self, "values", tuple(_distinct(self.values)))
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
        _ends(low, high)
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
        seen = _distinct(_telling([record for example in known for record in example]))
        grows = adjacency == "add_remove"
        largest = max((len(example) for example in known), default=0) + (1 if grows else 0)
        return cls(tuple(seen), max(largest, 1), adjacency, 0 if grows else 1, tuple(known))

    def starts(self) -> Iterator[Start]:
        """The empty dataset, single records, duplicates, extremes, the largest; then the neighbours of the examples."""
        telling = self.values[:4]
        for size in dict.fromkeys([0, 1, 2, 3, self.largest // 2, self.largest]):
            if not self.smallest <= size <= self.largest:
                continue
            family = {0: "empty", 1: "single record"}.get(size, "duplicates" if size < self.largest else "largest")
            for base in telling if size else telling[:1]:
                rows = [base] * size
                yield from self._neighbours(family, rows, telling)
        size = min(self.largest, max(len(self.values), 4, self.smallest))
        mixed = [self.values[k % len(self.values)] for k in range(size)]
        yield from self._neighbours("all different", mixed, telling)
        for example in self.examples:
            yield from self._of_example(example, telling)

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
            domain = [*telling, *(row for row in _distinct(rows) if not any(is_same(row, v) for v in telling))]
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
            other = [*rows[:place], *rows[place + 1 :]] if removes else [*rows, value]
        return self._typed(rows), self._typed(other)

    def _typed(self, rows: list[Any]) -> Any:
        """The rows as the type of the first example; a list where there is none."""
        like = self.examples[0] if self.examples else rows
        if isinstance(like, np.ndarray):
            return np.array(rows, dtype=like.dtype) if rows else like[:0].copy()
        return tuple(rows) if isinstance(like, tuple) else rows


@dataclasses.dataclass(frozen=True)
class ListedDomain(Domain):
    """Inputs that the user lists; any two of them are adjacent, or those that `adjacent` says.

    For metric claims: any two inputs have a budget of their own.

    Parameters
    ----------
    inputs : sequence
        At least two.
    adjacent : callable, optional
        (x, x_prime) to whether they are.

    Examples
    --------
    >>> [(x, y) for _, x, y in ListedDomain((0, 1, 5)).starts()]
    [(0, 1), (0, 5), (1, 5)]
    """

    inputs: tuple[Any, ...]
    adjacent: Callable[[Any, Any], bool] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", tuple(self.inputs))
        if len(self.inputs) < 2:
            raise UsageError(f"inputs must be at least two, got {len(self.inputs)}.")

    def starts(self) -> Iterator[Start]:
        """All pairs of a short list; of a longer one those of neighbours in the list and of its ends."""
        if len(self.inputs) * (len(self.inputs) - 1) // 2 <= LISTED:
            chosen: Iterable[Inputs] = itertools.combinations(self.inputs, 2)
        else:
            chosen = [(self.inputs[0], self.inputs[-1]), *itertools.pairwise(self.inputs)]
        for x, x_prime in chosen:
            if self._is_adjacent(x, x_prime):
                yield "listed", x, x_prime

    def random(self, rng: np.random.Generator) -> Inputs:
        """Two of the inputs; after 1,000 that are not adjacent, an input and itself."""
        for _ in range(1000):
            i, j = rng.choice(len(self.inputs), size=2, replace=False).tolist()
            if self._is_adjacent(self.inputs[i], self.inputs[j]):
                return self.inputs[i], self.inputs[j]
        return self.inputs[0], self.inputs[0]

    def moves(self, x: Any, x_prime: Any, rng: np.random.Generator) -> list[Inputs]:
        """One of the two stays, the other one is another input."""
        others = [self.inputs[k] for k in rng.integers(len(self.inputs), size=4)]
        found = [(x, other) if k % 2 else (other, x_prime) for k, other in enumerate(others)]
        return [pair for pair in found if self._is_adjacent(*pair)]

    def to_dict(self) -> dict[str, Any]:
        shown = [short_form(value) for value in self.inputs[:20]]
        return {"kind": "inputs", "inputs": shown, "count": len(self.inputs)}

    def _is_adjacent(self, x: Any, x_prime: Any) -> bool:
        return self.adjacent is None or bool(self.adjacent(x, x_prime))


def domain_from_dict(record: Mapping[str, Any]) -> Domain:
    """The domain of a JSON object.

    Parameters
    ----------
    record : mapping
        `kind` and the parameters of its class: "number" (`NumberDomain`), "vector" (`VectorDomain`), "dataset"
        (`DatasetDomain` with `values`, or with `low` and `high`) or "inputs" (`ListedDomain`). NaN and infinities are
        the strings "nan", "inf" and "-inf", in `special`, `values` and `change`.

    Raises
    ------
    UsageError
        If the kind is unknown, or a parameter is missing, unknown or of no use.

    Examples
    --------
    >>> domain_from_dict({"kind": "number", "low": 0, "high": 1, "change": "inf"})
    NumberDomain(low=0, high=1, change=inf, integer=False, special=())
    """
    kinds: dict[str, Callable[..., Domain]] = {
        "number": NumberDomain,
        "vector": VectorDomain,
        "dataset": DatasetDomain.between if "low" in record else DatasetDomain,
        "inputs": ListedDomain,
    }
    kind = record.get("kind") if isinstance(record, Mapping) else record
    if not isinstance(kind, str) or kind not in kinds:
        raise UsageError(f"kind of a domain must be one of {', '.join(kinds)}, got {kind!r}.")
    values = {key: value for key, value in record.items() if key != "kind"}
    _check_names(kind, kinds[kind], values)
    for name in ("special", "values", "inputs", "examples"):
        if name in values:
            if not isinstance(values[name], list | tuple):
                raise UsageError(f"{name} of a domain must be a list, got {values[name]!r}.")
            values[name] = tuple(_named(value) for value in values[name])
    if "change" in values:
        values["change"] = _named(values["change"])
    if kind == "vector":  # what JSON has, so that a saved pair is the input that was audited
        values.setdefault("as_list", True)
    return kinds[kind](**values)


def _check_names(kind: str, make: Callable[..., Domain], values: Mapping[str, Any]) -> None:
    """Check that the parameters of a JSON object are those that its kind takes, and that none is missing."""
    parameters = dict(inspect.signature(make).parameters)
    parameters.pop("adjacent", None)  # a function: JSON has none
    unknown = [name for name in values if name not in parameters]
    if unknown:
        known = ", ".join(parameters)
        raise UsageError(f"parameters of a domain of kind {kind!r} must be among {known}, got {unknown[0]!r}.")
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in values:
            given = ", ".join(values) or "nothing"
            raise UsageError(f"{name} must be given for a domain of kind {kind!r}, got {given}.")


def _named(value: Any) -> Any:
    return SPECIAL.get(value, value) if isinstance(value, str) else value


def _ends(low: Any, high: Any) -> None:
    least = number("low", low, "finite", math.isfinite)
    number("high", high, f"finite and above low ({least:g})", lambda v: least < v < math.inf)


def _range(low: Any, high: Any, change: Any, integer: Any) -> None:
    """Check the parameters of a domain of numbers."""
    _ends(low, high)
    number("change", change, "positive", lambda v: v > 0.0)
    if not isinstance(integer, bool):
        raise UsageError(f"integer must be True or False, got {integer!r}.")
    if integer:
        for name, value in (("low", low), ("high", high)):
            number(name, value, "a whole number where integer is True", lambda v: v == math.floor(v))
        number("change", change, "at least 1 where integer is True", lambda v: v >= 1.0)


def _largest_change(low: float, high: float, change: float, integer: bool) -> float:
    """The largest change that two numbers of the range can have."""
    step = min(change, high - low)
    return math.floor(step) if integer else step


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and math.isfinite(value)


def _distinct(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if not any(is_same(value, other) for other in found):
            found.append(value)
    return found


def _telling(records: list[Any]) -> list[Any]:
    """The records, the extremes first where they are numbers; at most 200 of them."""
    if records and all(isinstance(record, int | float | np.number) for record in records):
        known = sorted(records)
        records = [known[0], known[-1], known[len(known) // 2], *records]
    return records[:200]
