"""Sensitivity found: the pair of a domain on which the noise-free difference is largest, without sampling.

The objective is `NoiseFree.distance`, a number that is the same each time: two runs a pair, one where a side is known.
So nothing here is noisy, and each step is small enough to be undone.

1. *Starts*: the pairs that the domain begins with.
2. *Walks*: between two inputs that are far apart a path of neighbours is halved towards the larger difference. A jump
   (a threshold, a median, a count) is met after log2(length) runs, wherever it is.
3. *Climbs*: from the best of these, moves of the domain, and of the value of the changed record, by sizes that are
   halved where none is better.

A `Space` says how inputs are walked, and how pairs are moved beyond what their domain says (`Domain.moves`): rows of
which a record is replaced or inserted (`Rows`), straight lines of vectors of which every number may change (`Lines`),
or none, as of tables with users and lists of inputs. A hypothesis strategy is searched by hypothesis, which shrinks its
best pair too.

The moves depend on the seed and on what the runs show, and on nothing that an audit draws.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpaudit.audits.exploring import explore_pairs, settings_of
from dpaudit.audits.noise_free import NoiseFree
from dpaudit.privacy.adjacency import typed_rows
from dpaudit.privacy.claims import FloatArray
from dpaudit.privacy.inputs import identity_of
from dpaudit.privacy.metrics import is_same
from dpaudit.running.streams import SEARCH_CHOICES, stream
from dpaudit.subjects.call_limits import end_of_time
from dpaudit.subjects.domains import DatasetDomain, Domain, NumberDomain, TableDomain, VectorDomain
from dpaudit.subjects.domains.domain import Inputs, is_number

CLIMBS = 90  # the position of the stream of choices, behind those of the rounds of a search
MAX_ENDS = 24  # inputs of the domain's starts, between any two of which a way is tried
SWEEP = 48  # inputs of one level each, each on the way to the next: a band of 1 / SWEEP of a range is met


@dataclasses.dataclass(frozen=True)
class Limits:
    """Sizes of a climb. 1,000 runs reach the sensitivity of all functions of the bank (docs/measurements/judge.md)."""

    runs: int = 1_000  # of the mechanism, two a pair at most
    kept: int = 6  # ways that are walked, and pairs that are climbed from, each of another family where there are such
    first_share: float = 0.4  # of the runs, for starts and walks
    smallest: float = 1e-7  # of the range: the last size of a move
    same: float = 1e-9  # relative: what is no better
    chosen: int = 3  # pairs that are told
    others: int = 21  # further ones, each of a family of its own as far as there are such


LIMITS = Limits()


@dataclasses.dataclass(frozen=True)
class Climbed:
    """A pair that was found: its family, inputs and distance."""

    family: str
    x: Any
    x_prime: Any
    distance: float


def climb(noise_free: NoiseFree, domain: Any, seed: int, limits: Limits = LIMITS) -> Climb:
    """Look for the pair of a domain, or of a hypothesis strategy of pairs, whose noise-free difference is largest.

    Examples
    --------
    >>> from dpaudit import PureDP, as_subject
    >>> from dpaudit.domains import VectorDomain
    >>> def spread_out(x, rng):  # noise for a sensitivity of 1/4; that of the sum is 1/2
    ...     return sum(abs(v - 0.5) for v in x) + rng.laplace(scale=0.25)
    >>> noise_free = NoiseFree(as_subject(spread_out), PureDP(1.0), 1)
    >>> round(climb(noise_free, VectorDomain(4, 0.0, 1.0, adjacency="one"), 1).best[0].distance, 9)
    2.0
    """
    found = Climb(noise_free, stream(seed, SEARCH_CHOICES, CLIMBS), limits)
    if isinstance(domain, Domain):
        found.in_domain(domain)
    else:
        found.in_strategy(domain, seed)
    found.finish()
    return found


class Climb:
    """One climb, and what it took; see the module.

    `best` are the farthest pairs, at most `Limits.chosen`, of different families where there are such; `others` are the
    farthest of other families: where the noise decides, not the farthest is the worst. Of the pairs that were `tried`
    the distance is known, of those that were `lost` it is not, as a run could not be followed; `problem` is the last.
    It ends by a count of runs, so that it is the same on any machine; `is_cut` says that a limit of time that the
    caller set (`dpaudit.subjects.call_limits.within`) ended it before.
    """

    def __init__(self, noise_free: NoiseFree, rng: np.random.Generator, limits: Limits) -> None:
        self.noise_free, self.rng, self.limits = noise_free, rng, limits
        self.started, self.first_runs = time.monotonic(), noise_free.runs
        self.time, self.is_cut = end_of_time() - self.started, False
        self.found: list[Climbed] = []
        self.seen: set[Any] = set()
        self.lost = 0

    def finish(self) -> None:
        """Rank what was found."""
        ranked = self._ranked(self.limits.chosen + self.limits.others)
        self.best = [one for one in ranked[: self.limits.chosen] if one.distance > 0.0]
        self.others, self.tried, self.problem = ranked[len(self.best) :], len(self.found), self.noise_free.problem
        self.runs, self.seconds = self.noise_free.runs - self.first_runs, time.monotonic() - self.started

    def is_over(self, share: float = 1.0) -> bool:
        """True where a share of the runs or of the caller's time is spent."""
        is_late = time.monotonic() - self.started >= share * self.time
        self.is_cut |= is_late
        return is_late or self.noise_free.runs - self.first_runs >= share * self.limits.runs

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
        self.found.append(Climbed(family, x, x_prime, distance))
        return self.found[-1]

    def in_domain(self, domain: Domain) -> None:
        """Starts, walks, then climbs from the best."""
        space = space_of(domain)
        for family, x, x_prime in domain.starts():
            if self.is_over(0.5 * self.limits.first_share):
                break
            self.look(family, x, x_prime)
        self._walk(space)
        best = self._ranked(self.limits.kept)
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
        walks: list[tuple[float, Walk]] = []
        for walk in space.walks():
            if self.is_over(self.limits.first_share):
                break
            distance = self.noise_free.apart(walk.x, walk.x_prime)
            if distance is not None and distance > 0.0:
                walks.append((distance / walk.steps, walk))
        walks.sort(key=lambda ranked: -ranked[0])
        for _, walk in walks[: self.limits.kept]:
            low, high = 0, walk.steps
            while high - low > 1 and not self.is_over():
                middle = (low + high) // 2
                here = walk.at(middle / walk.steps)
                before = self.noise_free.apart(walk.at(low / walk.steps), here)
                behind = self.noise_free.apart(here, walk.at(high / walk.steps))
                is_before = (before or 0.0) / (middle - low) >= (behind or 0.0) / (high - middle)
                low, high = (low, middle) if is_before else (middle, high)
            if high - low == 1:  # what the time ended on its way is no pair of neighbours
                self.look("walk", walk.at(low / walk.steps), walk.at(high / walk.steps))

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

        def look(x: Any, x_prime: Any) -> float | None:
            found = None if self.is_over() else self.look("strategy", x, x_prime)
            return None if found is None else min(found.distance, 1e6)

        explore_pairs(strategy, look, examples=self.limits.runs // 3, seed=seed)
        if best := self._ranked(1):
            least = best[0].distance * (1.0 - self.limits.same)
            settings = settings_of(self.limits.runs // 3)

            def is_as_far(pair: Any) -> bool:
                found = None if self.is_over(2.0) else self.noise_free.distance(*pair)
                return found is not None and found >= least

            try:
                small = hypothesis.find(strategy, is_as_far, settings=settings, random=random.Random(seed))
            except hypothesis.errors.NoSuchExample:
                return
            if (distance := self.noise_free.distance(*small)) is not None:
                # The small one goes before others that are as far.
                self.found.append(Climbed("made small", small[0], small[1], distance * (1.0 + 1e-9)))

    def _ranked(self, count: int) -> list[Climbed]:
        """The farthest pairs, of each family one before a second of any."""
        ranked = sorted(self.found, key=lambda one: -one.distance)  # of those as far the first one first
        first: dict[str, Climbed] = {}
        for one in ranked:
            first.setdefault(one.family, one)
        leading = list(first.values())[:count]
        known = {id(one) for one in leading}
        return [*leading, *(one for one in ranked if id(one) not in known)][:count]


@dataclasses.dataclass(frozen=True)
class Walk:
    """A way from one input to another in some steps, each between neighbours; `at` a part in [0, 1] of it an input."""

    x: Any
    x_prime: Any
    steps: int
    at: Callable[[float], Any]


@dataclasses.dataclass(frozen=True)
class Space:
    """Pairs that only their domain can move."""

    domain: Domain

    def walks(self) -> Iterator[Walk]:
        """Walks between inputs of the domain."""
        return iter(())

    def near(self, x: Any, x_prime: Any, size: float, rng: np.random.Generator) -> Iterator[Inputs]:
        """Pairs that differ from this one by a move; of numbers of a range by this part of it."""
        yield from self.domain.moves(x, x_prime, rng)
        yield from (self.domain.random(rng) for _ in range(2))

    def _ends(self) -> list[Any]:
        """The first inputs that the domain begins with."""
        found: dict[Any, Any] = {}
        for _, x, _ in self.domain.starts():
            if len(found) == MAX_ENDS:
                break
            found.setdefault(identity_of(x), x)
        return list(found.values())


def space_of(domain: Domain) -> Space:
    """Space of a domain."""
    if isinstance(domain, VectorDomain) and domain.adjacency != "one":
        return Lines(domain) if domain.adjacency == "each" else Space(domain)
    if isinstance(domain, NumberDomain):
        kind = int if domain.integer else float
        return Rows(
            domain, (domain.low, domain.high), False, 1, lambda rows: kind(rows[0]), lambda x: [x], domain.change, kind
        )
    if isinstance(domain, VectorDomain):
        return Rows(
            domain, (domain.low, domain.high), False, domain.length,
            functools.partial(_vector, domain), list, domain.change, int if domain.integer else float,
        )  # fmt: skip
    if isinstance(domain, DatasetDomain):
        return _rows_of(domain)
    if isinstance(domain, TableDomain) and domain.user is None:
        rows = _rows_of(domain._rows_domain)
        return dataclasses.replace(rows, domain=domain, make=domain._table, read=domain._rows_of)
    return Space(domain)


def _rows_of(domain: DatasetDomain) -> Rows:
    inserts = domain.adjacency == "add_remove"
    like: Any = next(iter(domain.examples), [])

    def make(rows: list[Any]) -> Any:
        return typed_rows(like, list(rows))

    return Rows(domain, domain.ends, inserts, domain.largest - inserts, make, list)


@dataclasses.dataclass(frozen=True)
class Rows(Space):
    """Pairs of rows of which one is replaced, by at most `change` where they are numbers, or inserted.

    Any number of this `kind` between `ends` is a record; `most` are the rows of the smaller input, at most. `make` and
    `read` take rows to an input of the domain, and back.
    """

    ends: tuple[float, float] | None
    inserts: bool
    most: int
    make: Callable[[list[Any]], Any]
    read: Callable[[Any], list[Any]]
    change: float = math.inf
    kind: Callable[[float], Any] = float

    def walks(self) -> Iterator[Walk]:
        """Between any two inputs that the domain begins with; then from level to level of all rows."""
        levels = [] if self.ends is None else np.linspace(*self.ends, SWEEP).tolist()
        sweep = [self.make([self._number(level)] * self.most) for level in levels]
        for a, b in itertools.chain(itertools.combinations(self._ends(), 2), itertools.pairwise(sweep)):
            one, other = self.read(a), self.read(b)
            if steps := self._steps(one, other):
                yield Walk(a, b, steps, functools.partial(self._on_walk, one, other))

    def near(self, x: Any, x_prime: Any, size: float, rng: np.random.Generator) -> Iterator[Inputs]:
        """The record that differs moved by this part of the range, then moves of the domain."""
        first, second = sorted((self.read(x), self.read(x_prime)), key=len)
        place = next((k for k in range(len(first)) if not is_same(first[k], second[k])), len(first))
        for rows, other in ((first, second),) if self.inserts else ((first, second), (second, first)):
            if self.ends is None or place >= len(other) or not is_number(other[place]):
                continue
            for step in (size * (self.ends[1] - self.ends[0]), -size * (self.ends[1] - self.ends[0])):
                value, behind = other[place] + step, place + (not self.inserts)
                if not self.inserts and is_number(rows[place]):
                    value = min(max(value, rows[place] - self.change), rows[place] + self.change)
                yield self.make(rows), self.make([*rows[:place], self._number(value), *rows[behind:]])
        yield from super().near(x, x_prime, size, rng)

    def _steps(self, one: list[Any], other: list[Any]) -> int:
        """The number of steps between two inputs; 0 where no way is known."""
        if self.inserts:
            return abs(len(one) - len(other)) if one[: len(other)] == other[: len(one)] else 0
        hops = 1
        if self.ends is not None and math.isfinite(self.change):
            hops = max(1, math.ceil((self.ends[1] - self.ends[0]) / self.change - 1e-9))
        return len(one) * hops if len(one) == len(other) else 0

    def _on_walk(self, one: list[Any], other: list[Any], part: float) -> Any:
        if self.inserts:
            return self.make(max(one, other, key=len)[: round(len(one) + part * (len(other) - len(one)))])
        done = min(int(part * len(one) + 1e-9), len(one))
        rows, rest = [*other[:done], *one[done:]], part * len(one) - done
        if done < len(one) and rest > 1e-9 and self.ends is not None:
            rows[done] = self._number(one[done] + rest * (other[done] - one[done]))
        return self.make(rows)

    def _number(self, value: float) -> Any:
        assert self.ends is not None
        inside = min(max(float(value), self.ends[0]), self.ends[1])
        return float(round(inside)) if self.kind is int else inside


@dataclasses.dataclass(frozen=True)
class Lines(Space):
    """Vectors of which every number may change: a way is a straight line."""

    domain: VectorDomain

    def walks(self) -> Iterator[Walk]:
        """Between any two inputs that the domain begins with."""
        for a, b in itertools.combinations(self._ends(), 2):
            first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
            if (gap := float(np.abs(second - first).max())) > 0.0:
                steps = max(1, math.ceil(gap / self.domain.change - 1e-9))
                yield Walk(a, b, steps, functools.partial(self._on_walk, first, second))

    def _on_walk(self, first: FloatArray, second: FloatArray, part: float) -> Any:
        return self.domain.vector(first + part * (second - first))


def _vector(domain: VectorDomain, rows: list[Any]) -> Any:
    """The vector of these numbers, of which some may be special."""
    values = np.asarray(rows, dtype=float)
    return domain.vector(values) if np.isfinite(values).all() else values.tolist() if domain.as_list else values
