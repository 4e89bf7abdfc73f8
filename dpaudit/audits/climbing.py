"""Sensitivity found: the pair of a domain on which the noise-free difference is largest, without sampling.

The objective is `NoiseFree.distance`, a number that is the same each time: two runs a pair, one where a side is known.
So nothing here is noisy, and each step is small enough to be undone.

1. *Starts*: the pairs that the domain begins with.
2. *Walks*: between two inputs that are far apart a path of neighbours is halved towards the larger difference. A jump
   (a threshold, a median, a count) is met after log2(length) runs, wherever it is.
3. *Climbs*: from the best of these, moves of the domain, and of the value of the changed record, by sizes that are
   halved where none is better.

How inputs are walked and pairs are moved `dpaudit.audits.spaces` says. A hypothesis strategy is searched by hypothesis,
which shrinks its best pair too.

The moves depend on the seed and on what the runs show, and on nothing that an audit draws.
"""

from __future__ import annotations

import dataclasses
import math
import random
import time
from typing import Any

import numpy as np

from dpaudit.audits.exploring import explore_pairs, settings_of
from dpaudit.audits.noise_free import NoiseFree
from dpaudit.audits.spaces import Space, Walk, space_of
from dpaudit.privacy.inputs import identity_of
from dpaudit.running.streams import SEARCH_CHOICES, stream
from dpaudit.subjects.domains import Domain

CLIMBS = 90  # the position of the stream of choices, behind those of the rounds of a search


@dataclasses.dataclass(frozen=True)
class Limits:
    """Sizes of a climb. 1,000 runs reach the sensitivity of all functions of the bank (docs/measurements/judge.md)."""

    runs: int = 1_000  # of the mechanism, two a pair at most
    seconds: float = 10.0  # of a slow function, 10 ms a run: a search with draws still has its time
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


@dataclasses.dataclass(frozen=True)
class Climb:
    """Pairs that a climb found, and what it took.

    Attributes
    ----------
    best : tuple of Climbed
        The farthest pairs, at most `Limits.chosen`, of different families where there are such.
    others : tuple of Climbed
        The farthest of other families, at most `Limits.others`: where the noise decides, not the farthest is the worst.
    tried, lost : int
        Pairs of which the distance is known, and those of which it is not, as a run could not be followed.
    runs : int
    seconds : float
    problem : str
        Why the last of those was lost.
    """

    best: tuple[Climbed, ...]
    others: tuple[Climbed, ...]
    tried: int
    lost: int
    runs: int
    seconds: float
    problem: str


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
    search = _Climbing(noise_free, stream(seed, SEARCH_CHOICES, CLIMBS), limits)
    if isinstance(domain, Domain):
        search.in_domain(domain)
    else:
        search.in_strategy(domain, seed)
    return search.result()


class _Climbing:
    """One climb; see the module."""

    def __init__(self, noise_free: NoiseFree, rng: np.random.Generator, limits: Limits) -> None:
        self.noise_free, self.rng, self.limits = noise_free, rng, limits
        self.started, self.first_runs = time.perf_counter(), noise_free.runs
        self.found: list[Climbed] = []
        self.seen: set[Any] = set()
        self.lost = 0

    @property
    def runs(self) -> int:
        return self.noise_free.runs - self.first_runs

    def is_over(self, share: float = 1.0) -> bool:
        """True where a share of the runs or of the time is spent."""
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
        best = self._best(1)
        if best:
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

    def _best(self, count: int) -> list[Climbed]:
        """The farthest pairs, of each family one before a second of any."""
        ranked = sorted(self.found, key=lambda one: -one.distance)  # of those as far the first one first
        first: dict[str, Climbed] = {}
        for one in ranked:
            first.setdefault(one.family, one)
        leading = list(first.values())[:count]
        known = {id(one) for one in leading}
        return [*leading, *(one for one in ranked if id(one) not in known)][:count]

    def result(self) -> Climb:
        ranked = self._best(self.limits.chosen + self.limits.others)
        best = [one for one in ranked[: self.limits.chosen] if one.distance > 0.0]
        others, seconds = tuple(ranked[len(best) :]), time.perf_counter() - self.started
        return Climb(tuple(best), others, len(self.found), self.lost, self.runs, seconds, self.noise_free.problem)
