"""Sensitivity found: the pair of a domain on which the noise-free difference is largest, without sampling.

The objective is `NoiseFree.distance`, a number that is the same each time: two runs a pair, one where a side is known.
So nothing here is noisy, and each step is small enough to be undone.

1. *Starts*: inputs of one level, of two halves, ramps, alternating and at random, of several sizes, with one record
   changed at the start, in the middle and at the end to every level; and the starts of the domain.
2. *Walks*: between two inputs that are far apart a path of neighbours is halved towards the larger difference. A jump
   (a threshold, a median, a count) is met after log2(length) runs, wherever it is.
3. *Climbs*: from the best starts, moves of the changed record, its value, and blocks of the others, by sizes that are
   halved where none is better.

Inputs with rows have one form, `Edit`: rows, and a record that is replaced or inserted at a place. Vectors of which
every number may change, and one goes up where another one goes down, have a base and a change. What is neither (tables
with users, lists of inputs) is moved by its domain, and a hypothesis strategy by hypothesis, which shrinks
its best pair too.

The moves depend on the seed and on what the runs show, and on nothing that an audit draws.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from dpaudit.audits.exploring import explore
from dpaudit.audits.noise_free import NoiseFree
from dpaudit.errors import UsageError
from dpaudit.privacy.adjacency import typed_rows
from dpaudit.privacy.inputs import identity_of
from dpaudit.privacy.pairs import short_form
from dpaudit.running.streams import SEARCH_CHOICES, stream
from dpaudit.subjects.domains import DatasetDomain, Domain, NumberDomain, TableDomain, VectorDomain
from dpaudit.subjects.domains.domain import spread

Inputs = tuple[Any, Any]
CLIMBS = 90  # the position of the stream of choices, behind those of the rounds of a search


@dataclasses.dataclass(frozen=True)
class Limits:
    """Sizes of a climb. 1,000 runs reach the sensitivity of all functions of the bank (docs/measurements/judge.md)."""

    runs: int = 1_000
    seconds: float = 10.0
    kept: int = 6  # pairs that are climbed from, each of another family where there are so many
    first_share: float = 0.4  # of the runs, for starts and walks
    walks: int = 6
    bases: int = 12  # inputs any two of which are looked at for a walk
    smallest: float = 1e-7  # of the range: the last size of a move of one number
    smallest_block: float = 1e-2  # and of one of several
    sweep: int = 48  # inputs of one level each, between which to walk: a band of 1/48 of the range is met
    same: float = 1e-9  # relative: what is no better
    levels: int = 9  # of a range of numbers
    chosen: int = 3  # pairs that are told
    others: int = 21  # further ones, each of a family of its own as far as there are such


LIMITS = Limits()


@dataclasses.dataclass(frozen=True)
class Climbed:
    """A pair that was found: its family, inputs and distance, and how many pairs had been tried by then."""

    family: str
    x: Any
    x_prime: Any
    distance: float
    tried: int


@dataclasses.dataclass(frozen=True)
class Climb:
    """What a climb found.

    Attributes
    ----------
    best : tuple of Climbed
        The farthest pairs, at most `Limits.chosen`, of different families where there are such.
    tried : int
        Pairs of which the distance is known.
    lost : int
        Pairs of which it is not, as a run could not be followed.
    runs : int
    seconds : float
    problem : str
        Why the last of those was lost.
    others : tuple of Climbed
        The farthest of other families, at most `Limits.others`: where the noise decides, not the farthest is the worst.
    """

    best: tuple[Climbed, ...]
    tried: int
    lost: int
    runs: int
    seconds: float
    problem: str = ""
    others: tuple[Climbed, ...] = ()


def climb(noise_free: NoiseFree, domain: Any, seed: int, limits: Limits = LIMITS) -> Climb:
    """Look for the pair of a domain, or of a hypothesis strategy of pairs, whose noise-free difference is largest.

    Examples
    --------
    >>> from dpaudit import PureDP, as_subject
    >>> from dpaudit.domains import VectorDomain
    >>> def spread_out(x, rng):  # noise for a sensitivity of 1/4; that of the sum is 1/2
    ...     return sum(abs(v - 0.5) for v in x) + rng.laplace(scale=0.25)
    >>> noise_free = NoiseFree(as_subject(spread_out), PureDP(1.0), 1)
    >>> climb(noise_free, VectorDomain(4, 0.0, 1.0, adjacency="one"), 1).best[0].distance
    2.0
    """
    search = _Climbing(noise_free, stream(seed, SEARCH_CHOICES, CLIMBS), limits)
    if isinstance(domain, Domain):
        search.in_domain(domain)
    else:
        search.in_strategy(domain, seed)
    return search.result()


class Space(Protocol):
    """How pairs of a domain are made and moved."""

    def inputs(self) -> list[Any]:
        """Inputs between which to walk."""

    def path(self, a: Any, b: Any, part: float) -> Any:
        """The input at a part in [0, 1] of the way, in steps that are neighbours; `length` has their number."""

    def length(self, a: Any, b: Any) -> int:
        """The number of steps; 0 where no way is known."""

    def starts(self) -> Iterator[tuple[str, Any, Any]]:
        """Pairs to begin with: (family, x, x_prime)."""

    def near(self, x: Any, x_prime: Any, size: float, rng: np.random.Generator) -> Iterator[Inputs]:
        """Pairs that differ from this one by a move of this size, 1 for the whole range."""


class _Climbing:
    """One climb; see the module."""

    def __init__(self, noise_free: NoiseFree, rng: np.random.Generator, limits: Limits) -> None:
        self.noise_free, self.rng, self.limits = noise_free, rng, limits
        self.started, self.first_runs = time.perf_counter(), noise_free.runs
        self.found: list[Climbed] = []
        self.seen: set[Any] = set()
        self.tried = self.lost = 0

    @property
    def runs(self) -> int:
        return self.noise_free.runs - self.first_runs

    def is_over(self, share: float = 1.0) -> bool:
        """Whether a share of the runs or of the time is spent."""
        is_late = time.perf_counter() - self.started >= share * self.limits.seconds
        return is_late or self.runs >= share * self.limits.runs

    def look(self, family: str, x: Any, x_prime: Any) -> Climbed | None:
        """The pair with its distance; None where it was seen, is no pair, or cannot be followed."""
        first, second = identity_of(x), identity_of(x_prime)
        key = frozenset((first, second))
        if first == second or key in self.seen:
            return None
        self.seen.add(key)
        distance = self.noise_free.distance(x, x_prime)
        if distance is None or math.isnan(distance):
            self.lost += bool(self.noise_free.problem)
            return None
        self.tried += 1
        found = Climbed(family, x, x_prime, distance, self.tried)
        self.found.append(found)
        return found

    def in_domain(self, domain: Domain) -> None:
        """Starts, walks, then climbs from the best."""
        space = space_of(domain)
        own = ((family, x, y) for family, x, y in domain.starts())
        for family, x, x_prime in _in_turn(space.starts(), own):
            if self.is_over(0.5 * self.limits.first_share):
                break
            self.look(family, x, x_prime)
        self._walk(space)
        best = self._best(self.limits.kept)
        top, in_vain = best[0].distance if best else 0.0, 0
        for start in best:
            if self.is_over() or math.isinf(top):
                break
            reached = self._climb(space, start)
            # Several climbs that end at one height have found what there is to be found by moves of this kind.
            in_vain = 0 if reached.distance > top * (1.0 + self.limits.same) else in_vain + 1
            top = max(top, reached.distance)
            if in_vain >= 3:
                break

    def _walk(self, space: Space) -> None:
        """Halve the ways between the inputs that are the farthest apart, a step of the way on average."""
        ways = []
        inputs = space.inputs()
        few = inputs[: self.limits.bases]
        for a, b in itertools.chain(itertools.combinations(few, 2), itertools.pairwise(inputs[len(few) - 1 :])):
            if self.is_over(self.limits.first_share):
                break
            steps = space.length(a, b)
            distance = self.noise_free.apart(a, b) if steps else None
            if distance is not None and distance > 0.0:
                ways.append((distance / steps, steps, a, b))
        ways.sort(key=lambda way: -way[0])
        for _, steps, a, b in ways[: self.limits.walks]:
            low, high = 0, steps
            while high - low > 1 and not self.is_over():
                middle = (low + high) // 2
                here = space.path(a, b, middle / steps)
                before = self.noise_free.apart(space.path(a, b, low / steps), here)
                behind = self.noise_free.apart(here, space.path(a, b, high / steps))
                is_before = (before or 0.0) / (middle - low) >= (behind or 0.0) / (high - middle)
                low, high = (low, middle) if is_before else (middle, high)
            self.look("walk", space.path(a, b, low / steps), space.path(a, b, high / steps))

    def _climb(self, space: Space, start: Climbed) -> Climbed:
        here, size = start, 1.0
        while size >= self.limits.smallest and not self.is_over():
            better = None
            for x, x_prime in space.near(here.x, here.x_prime, size, self.rng):
                if self.is_over():
                    break
                found = self.look(start.family, x, x_prime)
                if found is not None and found.distance > here.distance * (1.0 + self.limits.same):
                    better = found
                    break
            if better is None:
                size *= 0.5
            else:
                here = better
        return here

    def in_strategy(self, strategy: Any, seed: int) -> None:
        """Pairs of a hypothesis strategy, steered towards large distances; then the smallest that is as far."""
        import hypothesis

        def look(pair: Any) -> float | None:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise UsageError(f"domain must be a strategy of pairs (x, x_prime), got {short_form(pair)}.")
            found = None if self.is_over() else self.look("strategy", *pair)
            return None if found is None else min(found.distance, 1e6)

        none = "domain must yield pairs, got none from the strategy."
        explore("domain", strategy, look, examples=self.limits.runs // 3, seed=seed, none=none)
        best = self._best(1)
        if best:
            least = best[0].distance * (1.0 - self.limits.same)
            settings = hypothesis.settings(
                max_examples=self.limits.runs // 3,
                database=None,
                deadline=None,
                suppress_health_check=list(hypothesis.HealthCheck),
            )

            def is_as_far(pair: Any) -> bool:
                found = None if self.is_over(2.0) else self.noise_free.distance(*pair)
                return found is not None and found >= least

            try:
                small = hypothesis.find(strategy, is_as_far, settings=settings, random=random.Random(seed))
            except hypothesis.errors.NoSuchExample:
                return
            if (distance := self.noise_free.distance(*small)) is not None:
                self.tried += 1
                # The small one goes before others that are as far.
                self.found.append(Climbed("made small", small[0], small[1], distance * (1.0 + 1e-9), self.tried))

    def _best(self, count: int) -> list[Climbed]:
        """The farthest pairs, of each family one before a second of any."""
        ranked = sorted(self.found, key=lambda one: (-one.distance, one.tried))
        first: dict[str, Climbed] = {}
        for one in ranked:
            first.setdefault(one.family, one)
        leading = sorted(first.values(), key=lambda one: (-one.distance, one.tried))[:count]
        known = {id(one) for one in leading}
        return [*leading, *(one for one in ranked if id(one) not in known)][:count]

    def result(self) -> Climb:
        ranked = self._best(self.limits.chosen + self.limits.others)
        best = [one for one in ranked[: self.limits.chosen] if one.distance > 0.0]
        seconds = time.perf_counter() - self.started
        others, problem = tuple(ranked[len(best) :]), self.noise_free.problem
        return Climb(tuple(best), self.tried, self.lost, self.runs, seconds, problem, others)


def _in_turn(*lists: Iterator[Any]) -> Iterator[Any]:
    """The first of each, then the second of each, and so on."""
    for turn in itertools.zip_longest(*lists):
        yield from (one for one in turn if one is not None)


def space_of(domain: Domain) -> Space:
    """How pairs of a domain are made and moved."""
    if isinstance(domain, NumberDomain):
        return Rows.of_number(domain)
    if isinstance(domain, VectorDomain):
        return Rows.of_vector(domain) if domain.adjacency == "one" else Vectors(domain)
    if isinstance(domain, DatasetDomain):
        return Rows.of_dataset(domain)
    if isinstance(domain, TableDomain) and domain.user is None:
        return Rows.of_table(domain)
    return Anything(domain)


@dataclasses.dataclass(frozen=True)
class Anything:
    """Pairs that only their domain can move."""

    domain: Domain

    def inputs(self) -> list[Any]:
        return []

    def path(self, a: Any, b: Any, part: float) -> Any:
        raise NotImplementedError

    def length(self, a: Any, b: Any) -> int:
        return 0

    def starts(self) -> Iterator[tuple[str, Any, Any]]:
        return iter(())

    def near(self, x: Any, x_prime: Any, size: float, rng: np.random.Generator) -> Iterator[Inputs]:
        yield from self.domain.moves(x, x_prime, rng)
        yield from (self.domain.random(rng) for _ in range(2))


@dataclasses.dataclass(frozen=True)
class Rows:
    """Pairs of rows of which one is replaced, by at most `change` where they are numbers, or inserted.

    Parameters
    ----------
    values : sequence
        Records to try, the telling ones first.
    ends : tuple of float, optional
        Between which any number is a record.
    sizes : tuple of int
        The fewest and the most rows.
    inserts : bool
    make, read : callable
        Rows to an input of the domain, and back.
    change : float
    is_whole : bool
        Whether numbers are whole.
    """

    values: Sequence[Any]
    ends: tuple[float, float] | None
    sizes: tuple[int, int]
    inserts: bool
    make: Callable[[list[Any]], Any]
    read: Callable[[Any], list[Any]]
    change: float = math.inf
    is_whole: bool = False

    @classmethod
    def of_number(cls, domain: NumberDomain) -> Rows:
        ends = (float(domain.low), float(domain.high))
        kind: Callable[[Any], Any] = int if domain.integer else float
        values = [*_levels(ends, domain.integer), *domain.special]
        return cls(
            values,
            ends,
            (1, 1),
            False,
            lambda rows: kind(rows[0]) if _is_finite(rows[0]) else rows[0],
            lambda x: [x],
            domain.change,
            domain.integer,
        )

    @classmethod
    def of_vector(cls, domain: VectorDomain) -> Rows:
        ends = (float(domain.low), float(domain.high))
        values = [*_levels(ends, domain.integer), *domain.special]
        return cls(
            values,
            ends,
            (domain.length, domain.length),
            False,
            lambda rows: _vector(np.asarray(rows, dtype=float), domain),
            list,
            domain.change,
            domain.integer,
        )

    @classmethod
    def of_dataset(cls, domain: DatasetDomain) -> Rows:
        listed = spread(domain.values, 40)
        if domain.ends is not None:
            listed = [*listed, *_levels(domain.ends, False)]
        like = next(iter(domain.examples), None)
        return cls(
            listed,
            domain.ends,
            (domain.smallest, domain.largest),
            domain.adjacency == "add_remove",
            lambda rows: list(rows) if like is None else typed_rows(like, rows),
            list,
        )

    @classmethod
    def of_table(cls, domain: TableDomain) -> Rows:
        rows = cls.of_dataset(domain._rows_domain)
        return dataclasses.replace(rows, make=domain._table, read=domain._rows_of)

    def inputs(self) -> list[Any]:
        found = [self.make(rows) for rows in self._bases()]
        if self.ends is None:
            return found
        most = self.sizes[1] - (1 if self.inserts else 0)
        levels = np.linspace(*self.ends, LIMITS.sweep + 2)[1:-1]
        return [*found[: LIMITS.bases], *(self.make([self._number(level)] * most) for level in levels)]

    def length(self, a: Any, b: Any) -> int:
        one, other = self.read(a), self.read(b)
        if not self.inserts:
            hops = 1
            if self.ends is not None and math.isfinite(self.change):
                hops = max(1, math.ceil((self.ends[1] - self.ends[0]) / self.change - 1e-9))
            return len(one) * hops if len(one) == len(other) else 0
        return abs(len(one) - len(other)) if one[: len(other)] == other[: len(one)] else 0

    def path(self, a: Any, b: Any, part: float) -> Any:
        one, other = self.read(a), self.read(b)
        if self.inserts:
            longer = max(one, other, key=len)
            return self.make(longer[: round(len(one) + part * (len(other) - len(one)))])
        place = part * len(one)
        done = min(int(place + 1e-9), len(one))
        rows = [*other[:done], *one[done:]]
        rest = place - done
        if done < len(one) and rest > 1e-9 and self.ends is not None:
            rows[done] = self._number(one[done] + rest * (other[done] - one[done]))
        return self.make(rows)

    def starts(self) -> Iterator[tuple[str, Any, Any]]:
        """Every base with each value at three places: all bases with one before any with the next."""
        values = [value for value in self.values if self.ends is None or _is_finite(value)]
        found = [self._of_base(rows, values) for rows in self._bases()]
        for turn in itertools.zip_longest(*found):
            for base, one in enumerate(turn):
                if one is not None:
                    yield f"base {base}", *one

    def _of_base(self, rows: list[Any], values: Sequence[Any]) -> Iterator[Inputs]:
        count = len(rows)
        places = dict.fromkeys((count // 2, 0, count if self.inserts else count - 1))
        for value, place in itertools.product(values[:6], places):
            pair = self._edited(rows, place, value)
            if pair is not None:
                yield pair

    def near(self, x: Any, x_prime: Any, size: float, rng: np.random.Generator) -> Iterator[Inputs]:
        """The record moved in value and place, blocks of the others set to a value or moved, fewer and more rows."""
        first, second = self.read(x), self.read(x_prime)
        if len(first) > len(second):
            first, second = second, first
        place = next((k for k in range(len(first)) if not _is_equal(first[k], second[k])), len(first))
        if place >= len(second):
            return
        value, count = second[place], len(first)
        others = [k for k in range(count) if self.inserts or k != place]
        # The record that differs.
        for other in self._values_near(value, size, rng):
            yield from self._kept(self._edited(first, place, other))
        if not self.inserts:
            for other in self._values_near(first[place], size, rng):
                yield from self._kept(self._edited(second, place, other))
        if size < LIMITS.smallest_block:
            return
        step = max(1, round(size * count / 2))
        ends = (0, count) if self.inserts else (0, count - 1)
        for to in dict.fromkeys(min(max(k, ends[0]), ends[1]) for k in (place + step, place - step)):
            if self.inserts:
                yield from self._kept(self._edited(first, to, value))
            elif to != place:
                rows = list(first)
                rows[place], rows[to] = rows[to], rows[place]
                yield from self._kept(self._edited(rows, to, value))
        # The others: a block of them, beside the place and anywhere.
        if others:
            length = max(1, round(size * len(others)))
            near = max(0, min(place - length // 2, len(others) - length))
            for at in dict.fromkeys((near, int(rng.integers(len(others) - length + 1)))):
                block = others[at : at + length]
                for other in [*self._values_near(first[block[0]], size, rng), value]:
                    rows = list(first)
                    for k in block:
                        rows[k] = other
                    yield from self._kept(self._edited(rows, place, value))
            if length > 1:  # every second one
                rows = list(first)
                for k in others[::2]:
                    rows[k] = value
                yield from self._kept(self._edited(rows, place, value))
        # The number of rows.
        if self.sizes[0] < self.sizes[1]:
            most = self.sizes[1] - (1 if self.inserts else 0)
            step = max(1, round(size * count))
            for total in dict.fromkeys(min(max(k, self.sizes[0]), most) for k in (count + step, count - step)):
                if total < count:
                    yield from self._kept(self._edited(first[:total], min(place, total), value))
                elif total > count:
                    filler = first[-1] if first else value
                    yield from self._kept(self._edited([*first, *[filler] * (total - count)], place, value))

    def _values_near(self, value: Any, size: float, rng: np.random.Generator) -> list[Any]:
        """Values to try in the place of one: all at full size, then numbers nearer and nearer to it."""
        if self.ends is None or not _is_finite(value):
            known = list(self.values)
            return known if len(known) <= 12 else [known[k] for k in rng.permutation(len(known))[:12]]
        if size >= 1.0:
            return [self._number(level) if _is_finite(level) else level for level in self.values[: LIMITS.levels + 4]]
        step = size * (self.ends[1] - self.ends[0])
        return [self._number(value + step), self._number(value - step)]

    def _edited(self, rows: list[Any], place: int, value: Any) -> Inputs | None:
        """The rows, and the same with the value at a place; a number as near to it as `change` lets it be."""
        if self.inserts:
            if not self.sizes[0] <= len(rows) < self.sizes[1]:
                return None
            return self.make(rows), self.make([*rows[:place], value, *rows[place:]])
        if not 0 <= place < len(rows):
            return None
        old = rows[place]
        if math.isfinite(self.change) and _is_finite(old) and _is_finite(value):
            value = self._number(min(max(value, old - self.change), old + self.change))
        if _is_equal(old, value):
            return None
        return self.make(rows), self.make([*rows[:place], value, *rows[place + 1 :]])

    def _kept(self, pair: Inputs | None) -> Iterator[Inputs]:
        if pair is not None:
            yield pair

    def _number(self, value: float) -> Any:
        if self.ends is None:
            return value
        inside = min(max(float(value), self.ends[0]), self.ends[1])
        return float(round(inside)) if self.is_whole else inside

    def _bases(self) -> list[list[Any]]:
        """Rows of one value, of two halves, rising, alternating, one apart; of several sizes."""
        least, most = self.sizes
        most = most - 1 if self.inserts else most
        counts = dict.fromkeys([most, *(k for k in (1, 3, most // 2, least) if least <= k <= most)])
        found: list[list[Any]] = []
        plain = [value for value in self.values if self.ends is None or _is_finite(value)]
        for count in counts:
            levels = plain[: 5 if count == most else 2]
            found += [[value] * count for value in (levels if count else levels[:1])]
            if count >= 2:
                low, high = plain[0], plain[min(1, len(plain) - 1)]
                found.append([low] * (count // 2) + [high] * (count - count // 2))
                found.append([(low, high)[k % 2] for k in range(count)])
                if self.ends is not None:
                    ramp = np.linspace(self.ends[0], self.ends[1], count)
                    found.append([self._number(v) for v in ramp])
                else:
                    found.append([plain[k % len(plain)] for k in range(count)])
                found.append([low] * (count - 1) + [high])
        return found


@dataclasses.dataclass(frozen=True)
class Vectors:
    """Vectors of which every number may change, or one goes up and another one down: a base and a change."""

    domain: VectorDomain

    def inputs(self) -> list[Any]:
        n, ends = self.domain.length, (self.domain.low, self.domain.high)
        half = np.where(np.arange(n) < n // 2, ends[0], ends[1])
        bases = [*(np.full(n, level) for level in (*ends, 0.5 * sum(ends))), half, np.linspace(*ends, n)]
        return [_vector(base, self.domain) for base in bases] if self.domain.adjacency == "each" else []

    def length(self, a: Any, b: Any) -> int:
        gap = float(np.abs(np.asarray(a, dtype=float) - np.asarray(b, dtype=float)).max())
        return max(1, math.ceil(gap / self.domain.change - 1e-9)) if gap > 0.0 else 0

    def path(self, a: Any, b: Any, part: float) -> Any:
        first, second = (np.asarray(side, dtype=float) for side in (a, b))
        return _vector(first + part * (second - first), self.domain)

    def starts(self) -> Iterator[tuple[str, Any, Any]]:
        return iter(())

    def near(self, x: Any, x_prime: Any, size: float, rng: np.random.Generator) -> Iterator[Inputs]:
        domain, n = self.domain, self.domain.length
        base = np.asarray(x, dtype=float)
        change = np.asarray(x_prime, dtype=float) - base
        step = min(domain.change, domain.high - domain.low)
        width, length = size * (domain.high - domain.low), max(1, round(size * n))
        found: list[tuple[Any, Any]] = []
        at = int(rng.integers(n - length + 1))
        for ends in dict.fromkeys(((0, n), (at, at + length), (0, length), (n - length, n))):
            block = slice(*ends)
            for other in (domain.low, domain.high, "up", "down"):
                moved = base.copy()
                moved[block] = (
                    (moved[block] + (width if other == "up" else -width)) if isinstance(other, str) else other
                )
                found.append((moved, change))
            for factor in (1.0, -1.0, 0.0):
                if domain.adjacency == "each":
                    shifted = change.copy()
                    shifted[block] = factor * step
                    found.append((base, shifted))
        largest = float(np.abs(change).max()) or 1.0
        found += [(base, change * min(step / largest, factor)) for factor in (1.0 + size, 1.0 - size)]
        found += [(base, -change), (base, np.roll(change, max(1, length // 2))), (base, np.roll(change, -1))]
        if domain.adjacency == "moved":
            order = rng.permutation(n)
            found += [(base, change[order]), (base[order], change[order])]
        for place, shift in found:
            pair = _vector(place, domain), _vector(place + shift, domain)
            if domain.is_pair(*pair):
                yield pair


def _vector(values: Any, domain: VectorDomain) -> Any:
    special = ~np.isfinite(values)
    inside = np.clip(np.round(values) if domain.integer else values, domain.low, domain.high)
    array = np.where(special, values, inside)
    if domain.integer and not special.any():
        array = array.astype(int)
    return array.tolist() if domain.as_list else array


def _levels(ends: tuple[float, float], is_whole: bool) -> list[Any]:
    """The ends, zero, the middle, and numbers evenly between, the most telling first."""
    low, high = ends
    middle = 0.5 * (low + high)
    zero = [0.0] if low < 0.0 < high else []
    found = [low, high, middle, *zero, *np.linspace(low, high, LIMITS.levels)[1:-1].tolist()]
    return list(dict.fromkeys(float(round(value)) if is_whole else value for value in found))


def _is_finite(value: Any) -> bool:
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return is_number and math.isfinite(value)


def _is_equal(a: Any, b: Any) -> bool:
    try:
        return bool(a == b) or (a != a and b != b)
    except ValueError:  # arrays
        return bool(np.array_equal(a, b))
