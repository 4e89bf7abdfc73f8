"""Sensitivity found: the pair of a domain on which the noise-free difference is largest, without sampling.

The objective is `NoiseFree.distance`, a number that is the same each time: two runs a pair, one where a side is known.
So nothing here is noisy, and each step is small enough to be undone.

1. *Starts*: the pairs that the domain begins with.
2. *Walks*: between two inputs that are far apart a path of neighbours is halved towards the larger difference. A jump
   (a threshold, a median, a count) is met after log2(length) runs, wherever it is.
3. *Climbs*: from the best of these, moves of the domain, and of the value of the changed record, by sizes that are
   halved where none is better.

A domain says how its inputs are walked (`Domain.on_way`) and its pairs moved. A hypothesis strategy is searched by
hypothesis, which shrinks its best pair too.

The moves depend on the seed and on what the runs show, and on nothing that an audit draws.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import random
import time
from typing import Any

import numpy as np

from dpaudit.audits.exploring import explore_pairs, settings_of
from dpaudit.audits.noise_free import NoiseFree
from dpaudit.privacy.inputs import identity_of
from dpaudit.running.streams import SEARCH_CHOICES, stream
from dpaudit.subjects.call_limits import end_of_time
from dpaudit.subjects.domains import Domain

CLIMBS = 90  # the position of the stream of choices, behind those of the rounds of a search
MAX_ENDS = 24  # inputs of the domain's starts, between any two of which a way is tried


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
        self.started, self.is_cut = time.monotonic(), False
        self.time = end_of_time() - self.started
        self.found: list[Climbed] = []
        self.seen: set[Any] = set()
        self.lost = 0

    def finish(self) -> None:
        """Rank what was found."""
        ranked = self._ranked(self.limits.chosen + self.limits.others)
        self.best = [one for one in ranked[: self.limits.chosen] if one.distance > 0.0]
        self.others, self.tried, self.problem = ranked[len(self.best) :], len(self.found), self.noise_free.problem
        self.runs, self.seconds = self.noise_free.recorder.runs, time.monotonic() - self.started

    def is_over(self, share: float = 1.0) -> bool:
        """True where a share of the runs or of the caller's time is spent."""
        is_late = time.monotonic() - self.started >= share * self.time
        self.is_cut |= is_late
        return is_late or self.noise_free.recorder.runs >= share * self.limits.runs

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
        for family, x, x_prime in domain.starts():
            if self.is_over(0.5 * self.limits.first_share):
                break
            self.look(family, x, x_prime)
        self._walk(domain)
        best = self._ranked(self.limits.kept)
        top, in_vain = best[0].distance if best else 0.0, 0
        for start in best:
            if self.is_over() or math.isinf(top):
                break
            reached = self._climb(domain, start)
            # Several climbs that end at one height have found what there is to be found by moves of this kind.
            in_vain = 0 if reached.distance > top * (1.0 + self.limits.same) else in_vain + 1
            top = max(top, reached.distance)
            if in_vain >= 3:
                break

    def _walk(self, domain: Domain) -> None:
        """Halve the ways between the inputs that are the farthest apart, a step of the way on average."""
        first: dict[Any, Any] = {}
        for _, x, _ in domain.starts():
            if len(first) == MAX_ENDS:
                break
            first.setdefault(identity_of(x), x)
        walks: list[tuple[float, int, Any, Any]] = []
        for x, x_prime in itertools.chain(
            itertools.combinations(first.values(), 2), itertools.pairwise(domain.sweep())
        ):
            if not (steps := domain.steps(x, x_prime)):
                continue
            if self.is_over(self.limits.first_share):
                break
            distance = self.noise_free.apart(x, x_prime)
            if distance is not None and distance > 0.0:
                walks.append((distance / steps, steps, x, x_prime))
        walks.sort(key=lambda ranked: -ranked[0])
        for _, steps, x, x_prime in walks[: self.limits.kept]:
            low, high = 0, steps
            at = functools.partial(domain.on_way, x, x_prime)
            while high - low > 1 and not self.is_over():
                middle = (low + high) // 2
                before, behind = (self.noise_free.apart(at(end), at(middle)) or 0.0 for end in (low, high))
                is_before = before / (middle - low) >= behind / (high - middle)
                low, high = (low, middle) if is_before else (middle, high)
            if high - low == 1:  # what the time ended on its way is no pair of neighbours
                self.look("walk", at(low), at(high))

    def _climb(self, domain: Domain, start: Climbed) -> Climbed:
        here, size = start, 1.0
        while size >= self.limits.smallest and not self.is_over():
            moves = domain.sized(here.x, here.x_prime, size), domain.moves(here.x, here.x_prime, self.rng)
            for x, x_prime in itertools.chain(*moves, (domain.random(self.rng) for _ in range(2))):
                found = None if self.is_over() else self.look(start.family, x, x_prime)
                if found is not None and found.distance > here.distance * (1.0 + self.limits.same):
                    here = found
                    break
            else:
                size *= 0.5
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
