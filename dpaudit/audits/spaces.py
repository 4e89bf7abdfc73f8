"""Pairs of a domain, made and moved for the search for sensitivities (`dpaudit.audits.climbing`).

Inputs with rows have one form: rows, and a record that is replaced or inserted at a place (`Rows`). Vectors of which
every number may change, or one goes up where another one goes down, have a base and a change (`Vectors`). What is
neither (tables with users, lists of inputs) is moved by its domain (`Space`).

A size is in (0, 1], 1 for the whole range: of a value, of the number of rows, of the places.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dpaudit.privacy.adjacency import typed_rows
from dpaudit.privacy.claims import FloatArray
from dpaudit.privacy.metrics import is_same
from dpaudit.subjects.domains import DatasetDomain, Domain, NumberDomain, TableDomain, VectorDomain
from dpaudit.subjects.domains.domain import Inputs, Start, is_number, spread


@dataclasses.dataclass(frozen=True)
class Grid:
    """Grid of inputs to try first. A band of 1 / sweep of a range is met, a jump of the number of rows in any case."""

    levels: int = 9  # of a range of numbers
    tried: int = 13  # values of a record at full size
    bases: int = 12  # inputs any two of which are looked at for a walk
    sweep: int = 48  # further ones of one level each, each looked at with the next
    of_base: int = 6  # values that a record of a base is changed to
    smallest_block: float = 1e-2  # the last size of moves of several records
    listed: int = 40  # records of a domain that lists them


GRID = Grid()


@dataclasses.dataclass(frozen=True)
class Way:
    """A way from one input to another in some steps, each between neighbours; `at` a part in [0, 1] of it an input."""

    x: Any
    x_prime: Any
    steps: int
    at: Callable[[float], Any]


@dataclasses.dataclass(frozen=True)
class Space:
    """Pairs that only their domain can move: no walks, no starts of their own."""

    domain: Domain

    def ways(self) -> Iterator[Way]:
        """Ways to walk."""
        return iter(())

    def starts(self) -> Iterator[Start]:
        """Pairs to begin with, beside those of the domain: (family, x, x_prime)."""
        return iter(())

    def near(self, x: Any, x_prime: Any, size: float, rng: np.random.Generator) -> Iterator[Inputs]:
        """Pairs that differ from this one by a move of this size."""
        yield from self.domain.moves(x, x_prime, rng)
        yield from (self.domain.random(rng) for _ in range(2))


def space_of(domain: Domain) -> Space:
    """Space that makes and moves pairs of a domain."""
    if isinstance(domain, VectorDomain) and domain.adjacency != "one":
        return Vectors(domain)
    if isinstance(domain, NumberDomain | VectorDomain):
        return _rows_of_numbers(domain)
    if isinstance(domain, DatasetDomain):
        return _rows_of_dataset(domain)
    if isinstance(domain, TableDomain) and domain.user is None:
        rows = _rows_of_dataset(domain._rows_domain)
        return dataclasses.replace(rows, domain=domain, make=domain._table, read=domain._rows_of)
    return Space(domain)


def _rows_of_numbers(domain: NumberDomain | VectorDomain) -> Rows:
    ends = (float(domain.low), float(domain.high))
    length = domain.length if isinstance(domain, VectorDomain) else 1

    def make(rows: list[Any]) -> Any:
        if isinstance(domain, VectorDomain):
            return _vector(np.asarray(rows, dtype=float), domain)
        return (int if domain.integer else float)(rows[0]) if is_number(rows[0]) else rows[0]

    return Rows(
        domain,
        (*_levels(ends, domain.integer), *domain.special),
        ends,
        (length, length),
        False,
        make,
        list if isinstance(domain, VectorDomain) else lambda x: [x],
        domain.change,
        domain.integer,
    )


def _rows_of_dataset(domain: DatasetDomain) -> Rows:
    values = (*spread(domain.values, GRID.listed), *(() if domain.ends is None else _levels(domain.ends, False)))
    like, inserts = next(iter(domain.examples), None), domain.adjacency == "add_remove"

    def make(rows: list[Any]) -> Any:
        return list(rows) if like is None else typed_rows(like, rows)

    return Rows(domain, values, domain.ends, (domain.smallest, domain.largest), inserts, make, list)


@dataclasses.dataclass(frozen=True)
class Rows(Space):
    """Pairs of rows of which one is replaced, by at most `change` where they are numbers, or inserted.

    `values` are records to try, the telling ones first; any number between `ends` is one too (whole if `is_whole`).
    `sizes` are the fewest and the most rows. `make` and `read` take rows to an input of the domain, and back.
    """

    values: Sequence[Any]
    ends: tuple[float, float] | None
    sizes: tuple[int, int]
    inserts: bool
    make: Callable[[list[Any]], Any]
    read: Callable[[Any], list[Any]]
    change: float = math.inf
    is_whole: bool = False

    @property
    def most(self) -> int:
        """The most rows of the smaller input."""
        return self.sizes[1] - self.inserts

    def ways(self) -> Iterator[Way]:
        """Between any two of the first bases; then from level to level of all rows."""
        inputs = [self.make(rows) for rows in self._bases()]
        if self.ends is not None:
            levels = np.linspace(*self.ends, GRID.sweep + 2)[1:-1]
            inputs[GRID.bases :] = [self.make([self._number(level)] * self.most) for level in levels]
        few = inputs[: GRID.bases]
        for a, b in itertools.chain(itertools.combinations(few, 2), itertools.pairwise(inputs[len(few) - 1 :])):
            one, other = self.read(a), self.read(b)
            if steps := self._steps(one, other):
                yield Way(a, b, steps, functools.partial(self._on_way, one, other))

    def _steps(self, one: list[Any], other: list[Any]) -> int:
        """The number of steps between two inputs; 0 where no way is known."""
        if self.inserts:
            return abs(len(one) - len(other)) if one[: len(other)] == other[: len(one)] else 0
        hops = 1
        if self.ends is not None and math.isfinite(self.change):
            hops = max(1, math.ceil((self.ends[1] - self.ends[0]) / self.change - 1e-9))
        return len(one) * hops if len(one) == len(other) else 0

    def _on_way(self, one: list[Any], other: list[Any], part: float) -> Any:
        if self.inserts:
            return self.make(max(one, other, key=len)[: round(len(one) + part * (len(other) - len(one)))])
        done = min(int(part * len(one) + 1e-9), len(one))
        rows, rest = [*other[:done], *one[done:]], part * len(one) - done
        if done < len(one) and rest > 1e-9 and self.ends is not None:
            rows[done] = self._number(one[done] + rest * (other[done] - one[done]))
        return self.make(rows)

    def starts(self) -> Iterator[Start]:
        """Every base with each value at three places: all bases with one before any with the next."""
        for turn in itertools.zip_longest(*map(self._of_base, self._bases())):
            yield from ((f"base {base}", *pair) for base, pair in enumerate(turn) if pair is not None)

    def near(self, x: Any, x_prime: Any, size: float, rng: np.random.Generator) -> Iterator[Inputs]:
        """The record moved in value and place, blocks of the others set to a value or moved, fewer and more rows."""
        first, second = sorted((self.read(x), self.read(x_prime)), key=len)
        place = next((k for k in range(len(first)) if not is_same(first[k], second[k])), len(first))
        if place >= len(second):
            return
        value = second[place]
        found = [self._edited(first, place, other) for other in self._values_near(value, size, rng)]
        if not self.inserts:
            found += [self._edited(second, place, other) for other in self._values_near(first[place], size, rng)]
        if size >= GRID.smallest_block:
            found += self._elsewhere(first, place, value, size)
            found += self._beside(first, place, value, size, rng)
            found += self._longer(first, place, value, size)
        yield from (pair for pair in found if pair is not None)

    def _elsewhere(self, rows: list[Any], place: int, value: Any, size: float) -> Iterator[Inputs | None]:
        """The record at another place, where it changes places with the one that is there."""
        step, last = max(1, round(size * len(rows) / 2)), len(rows) - (not self.inserts)
        for to in dict.fromkeys(min(max(k, 0), last) for k in (place + step, place - step)):
            moved = list(rows)
            if not self.inserts:
                moved[place], moved[to] = moved[to], moved[place]
            yield self._edited(moved, to, value)

    def _beside(
        self, rows: list[Any], place: int, value: Any, size: float, rng: np.random.Generator
    ) -> Iterator[Inputs | None]:
        """A block of the others, beside the place and anywhere, set to each value; every second one to the record."""
        others = [k for k in range(len(rows)) if self.inserts or k != place]
        if not others:
            return
        length = max(1, round(size * len(others)))
        beside = max(0, min(place - length // 2, len(others) - length))
        for at in dict.fromkeys((beside, int(rng.integers(len(others) - length + 1)))):
            block = others[at : at + length]
            for other in [*self._values_near(rows[block[0]], size, rng), value]:
                yield self._edited(_with(rows, block, other), place, value)
        if length > 1:
            yield self._edited(_with(rows, others[::2], value), place, value)

    def _longer(self, rows: list[Any], place: int, value: Any, size: float) -> Iterator[Inputs | None]:
        """Fewer and more of the others."""
        count, step = len(rows), max(1, round(size * len(rows)))
        for total in dict.fromkeys(min(max(k, self.sizes[0]), self.most) for k in (count + step, count - step)):
            if total != count:
                more = [rows[-1] if rows else value] * (total - count)
                yield self._edited([*rows[:total], *more], min(place, total), value)

    def _values_near(self, value: Any, size: float, rng: np.random.Generator) -> list[Any]:
        """Values to try in the place of one: many at full size, then numbers nearer and nearer to it."""
        if self.ends is None or not is_number(value):
            known = list(self.values)
            return known if len(known) <= GRID.tried else [known[k] for k in rng.permutation(len(known))[: GRID.tried]]
        if size >= 1.0:
            return [self._number(level) if is_number(level) else level for level in self.values[: GRID.tried]]
        step = size * (self.ends[1] - self.ends[0])
        return [self._number(value + step), self._number(value - step)]

    def _edited(self, rows: list[Any], place: int, value: Any) -> Inputs | None:
        """The rows, and the same with the value at a place; a number as near to it as `change` lets it be."""
        if self.inserts:
            is_of_size = self.sizes[0] <= len(rows) < self.sizes[1]
            return (self.make(rows), self.make([*rows[:place], value, *rows[place:]])) if is_of_size else None
        if not 0 <= place < len(rows):
            return None
        old = rows[place]
        if math.isfinite(self.change) and is_number(old) and is_number(value):
            value = self._number(min(max(value, old - self.change), old + self.change))
        return None if is_same(old, value) else (self.make(rows), self.make(_with(rows, [place], value)))

    def _number(self, value: float) -> Any:
        if self.ends is None:
            return value
        inside = min(max(float(value), self.ends[0]), self.ends[1])
        return float(round(inside)) if self.is_whole else inside

    @property
    def _plain(self) -> list[Any]:
        """The values without special numbers."""
        return [value for value in self.values if self.ends is None or is_number(value)]

    def _of_base(self, rows: list[Any]) -> Iterator[Inputs]:
        places = dict.fromkeys((len(rows) // 2, 0, len(rows) - (not self.inserts)))
        pairs = (self._edited(rows, place, v) for v, place in itertools.product(self._plain[: GRID.of_base], places))
        return (pair for pair in pairs if pair is not None)

    def _bases(self) -> list[list[Any]]:
        """Rows of one value, of two halves, rising, alternating, one apart; of several sizes."""
        least, most, plain = self.sizes[0], self.most, self._plain
        low, high = plain[0], plain[min(1, len(plain) - 1)]
        found: list[list[Any]] = []
        for count in dict.fromkeys([most, *(k for k in (1, 3, most // 2, least) if least <= k <= most)]):
            levels = plain[: 5 if count == most else 2] if count else plain[:1]
            found += [[value] * count for value in levels]
            if count >= 2:
                ramp = None if self.ends is None else np.linspace(*self.ends, count)
                found.append([low] * (count // 2) + [high] * (count - count // 2))
                found.append([(low, high)[k % 2] for k in range(count)])
                found.append([plain[k % len(plain)] if ramp is None else self._number(ramp[k]) for k in range(count)])
                found.append([low] * (count - 1) + [high])
        return found


@dataclasses.dataclass(frozen=True)
class Vectors(Space):
    """Vectors of which every number may change, or one goes up and another one down: a base and a change."""

    domain: VectorDomain

    def ways(self) -> Iterator[Way]:
        """Between any two of five bases, where every number may change."""
        if self.domain.adjacency != "each":
            return
        n, ends = self.domain.length, (self.domain.low, self.domain.high)
        half = np.where(np.arange(n) < n // 2, *ends)
        bases = [*(np.full(n, level) for level in (*ends, 0.5 * sum(ends))), half, np.linspace(*ends, n)]
        for a, b in itertools.combinations([_vector(base, self.domain) for base in bases], 2):
            first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
            gap = float(np.abs(first - second).max())
            steps = max(1, math.ceil(gap / self.domain.change - 1e-9))
            if gap > 0.0:
                yield Way(a, b, steps, functools.partial(self._on_way, first, second))

    def _on_way(self, first: FloatArray, second: FloatArray, part: float) -> Any:
        return _vector(first + part * (second - first), self.domain)

    def near(self, x: Any, x_prime: Any, size: float, rng: np.random.Generator) -> Iterator[Inputs]:
        """The base moved or set in a block, the change turned, dropped or resized there, shifted and reordered."""
        domain, n = self.domain, self.domain.length
        base = np.asarray(x, dtype=float)
        change = np.asarray(x_prime, dtype=float) - base
        step, width = min(domain.change, domain.high - domain.low), size * (domain.high - domain.low)
        length = max(1, round(size * n))
        at = int(rng.integers(n - length + 1))
        found: list[tuple[Any, Any]] = []
        for ends in dict.fromkeys(((0, n), (at, at + length), (0, length), (n - length, n))):
            block = slice(*ends)
            for to in (domain.low, domain.high, base[block] + width, base[block] - width):
                found.append((_with(base, block, to), change))
            if domain.adjacency == "each":
                found += [(base, _with(change, block, factor * step)) for factor in (1.0, -1.0, 0.0)]
        largest = float(np.abs(change).max()) or 1.0
        found += [(base, change * min(step / largest, factor)) for factor in (1.0 + size, 1.0 - size)]
        found += [(base, -change), (base, np.roll(change, max(1, length // 2))), (base, np.roll(change, -1))]
        if domain.adjacency == "moved":
            order = rng.permutation(n)
            found += [(base, change[order]), (base[order], change[order])]
        pairs = ((_vector(place, domain), _vector(place + shift, domain)) for place, shift in found)
        yield from (pair for pair in pairs if domain.is_pair(*pair))


def _with(rows: Any, places: Any, value: Any) -> Any:
    """A copy of rows (or of a vector) with a value at some places."""
    changed = rows.copy()
    if isinstance(changed, np.ndarray):
        changed[places] = value
    else:
        for place in places:
            changed[place] = value
    return changed


def _vector(values: Any, domain: VectorDomain) -> Any:
    special = ~np.isfinite(values)
    inside = np.clip(np.round(values) if domain.integer else values, domain.low, domain.high)
    array = np.where(special, values, inside)
    if domain.integer and not special.any():
        array = array.astype(np.int64)
    return array.tolist() if domain.as_list else array


def _levels(ends: tuple[float, float], is_whole: bool) -> list[Any]:
    """The ends, the middle, zero, and numbers evenly between, the most telling first."""
    low, high = ends
    zero = [0.0] if low < 0.0 < high else []
    found = [low, high, 0.5 * (low + high), *zero, *np.linspace(low, high, GRID.levels)[1:-1].tolist()]
    return list(dict.fromkeys(float(round(value)) if is_whole else value for value in found))
