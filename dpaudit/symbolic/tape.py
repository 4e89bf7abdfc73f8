"""The tape of one run: what was drawn, with which parameters and where, and each time the program looked at its noise.

The argument
------------
A tracked noise is no number but a symbol (`dpaudit.symbolic.noisy_numbers`), and a program can get at its value only by
asking the tape. Additions and multiplications by constants ask nothing. So

* a program that asks nothing runs the same way for every value of its noise: its output is exactly an affine function
  of the noise, for every draw and not only for the one that was run;
* a comparison of one noise with a constant or with another noise, a choice among given probabilities, or the place of
  the largest of independent noisy numbers is a *decision*: its probabilities are known, each outcome can be told to the
  tape (its path), and all outcomes together are all runs of the program;
* any other look takes the value that was drawn (`is_opaque`). Then the structure is that of the runs that were made,
  and nothing is proved from it.

On x_prime a tape can be `frozen` to the tape of x: looks and numbers that are not tracked are then those of x.
"""

from __future__ import annotations

import dataclasses
import math
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from dpaudit.errors import DpauditError
from dpaudit.running.streams import RECORDED
from dpaudit.symbolic.choices import Choices, OpenPath, place_of_call
from dpaudit.symbolic.dependence import Dependence
from dpaudit.symbolic.enclosures import Node
from dpaudit.symbolic.generators import Event
from dpaudit.symbolic.laws import Law
from dpaudit.symbolic.orders import Component, connected, mass_of, needed
from dpaudit.symbolic.piecewise import Comparison, Enclosure
from dpaudit.symbolic.watching import unheard

_PCG64, _SEED_SEQUENCE = np.random.PCG64, np.random.SeedSequence  # as they are outside of recorded runs
MAX_EVENTS = 20_000
MAX_NOISES = 50_000
MAX_LOOKS = 100_000
MAX_OFFSET = 2.0**20  # of a number beside its noise, as of a uniform one (`uniform_numbers`)
MAX_RELATIVE_ERROR = 2.0**-30  # about the probability of a run that is to be exact
WHOLE = OpenPath(1.0)
FREE = (-math.inf, math.inf)  # an interval of which nothing is known


class TooLong(BaseException):
    """A run that drew or looked more often than can be recorded; not for the mechanism to catch."""


class Unsupported(DpauditError):
    """Something that tracked noise cannot stand for: the run is made again with numbers."""


@dataclasses.dataclass(frozen=True)
class Noise:
    """One number of a tracked event: its law, its value in this run, and its event."""

    law: Law
    value: float
    event: int


@dataclasses.dataclass(frozen=True)
class Decision:
    """A look whose outcomes have known probabilities."""

    outcome: int
    probabilities: tuple[float, ...]
    place: str
    what: str


class Tape(Choices):
    """Record of one run; see the module, and `Choices`.

    Number k of a run takes the stream `(RECORDED, run, k)` of the seed, whatever came before it; another `salt` gives
    another seed to a mechanism that takes one, on the same stream. A tape may be `frozen` to that of the other input.
    With `is_plain` it gives numbers, and no symbols: those of a run with symbols (`replayed`) if there is one.
    `is_quick` says that probabilities that only rank inputs do, of some digits.
    """

    def __init__(
        self,
        seed: int,
        run: int,
        path: OpenPath = WHOLE,
        frozen: Tape | None = None,
        is_plain: bool = False,
        salt: int = 0,
        replayed: Tape | None = None,
        is_quick: bool = False,
        depends: Dependence | None = None,
        deadline: float = math.inf,
    ) -> None:
        super().__init__(path, depends, deadline)
        self.seed, self.run, self.frozen, self.is_plain = seed, run, frozen, is_plain
        self.salt, self.replayed, self.is_quick = salt, replayed, is_quick
        self.events: list[Event] = []
        self.noises: list[Noise] = []
        self.decisions: list[Decision] = []
        self.looks: list[float] = []
        self.others: dict[int, Any] = {}  # numbers that are not followed, by their event
        self.intervals: dict[int, tuple[float, float]] = {}  # in which a noise is known to lie
        self.reaches: dict[int, float] = {}  # the largest number that an end of it was computed from
        self.comparisons: list[Comparison] = []  # of multiples of two noises
        self.units: dict[int, Fraction] = {}  # these multiples, of all noises that were compared with others
        self.picked = 1.0  # probability of the choices
        self.factor: Fraction | None = Fraction(1)  # what of it is a fraction; None where it is not known exactly
        self.rounding = 0.0  # a bound on the relative error of that
        self.outcomes: dict[int, int] = {}
        self.opaque_at = self.opaque_what = self.unseen = ""
        self.handed: set[int] = set()  # seeds
        self.fixed_seeds: list[str] = []
        self.seeds: list[str] = []
        self.ended = ""
        self.is_late = False

    @property
    def is_opaque(self) -> bool:
        """Tell whether the program got at a value that is not accounted for."""
        return bool(self.opaque_at)

    def stream(self, *more: int) -> np.random.Generator:
        """The stream of the next event, or one beside it."""
        key = (RECORDED, self.run, len(self.events), *more)
        return np.random.Generator(_PCG64(_SEED_SEQUENCE(self.seed, spawn_key=key)))

    def add(self, primitive: str, parameters: Sequence[tuple[str, Any]], shape: tuple[int, ...]) -> int:
        """Note an event, and give its number."""
        if len(self.events) >= MAX_EVENTS:
            self.end(f"more than {MAX_EVENTS:,} calls of primitives in one run")
        self.events.append(Event(primitive, tuple(parameters), shape, line_of_call()))
        return len(self.events) - 1

    def other(self, primitive: str, parameters: Sequence[tuple[str, Any]], draw: Callable[[Any], Any]) -> Any:
        """Numbers that are not followed: drawn, noted, and those of the other input where that run is frozen."""
        stream, number, frozen = self.stream(), len(self.events), self.frozen
        if frozen is not None and number in frozen.others and frozen.events[number].primitive == primitive:
            known = frozen.others[number]
            value = known.copy() if isinstance(known, np.ndarray) else known
        else:
            value = draw(stream)
        self.add(primitive, parameters, np.shape(value) if isinstance(value, np.ndarray) else ())
        self.others[number] = value.copy() if isinstance(value, np.ndarray) else value
        self.mark_opaque()
        return value

    def new_noise(self, law: Law, value: float, event: int) -> int:
        """A new number of an event, and its index."""
        if len(self.noises) >= MAX_NOISES:
            self.end(f"more than {MAX_NOISES:,} numbers in one run")
        self.noises.append(Noise(law, value, event))
        return len(self.noises) - 1

    def place_of(self, index: int) -> str:
        """The line of the call that gave a number."""
        return self.events[self.noises[index].event].place

    def mark_opaque(self, what: str = "looks at the value of its noise") -> None:
        """Note that a value was looked at in a way that has no known probabilities; `what` goes on from "it"."""
        if not self.opaque_at:
            self.opaque_at, self.opaque_what = line_of_call() or "?", what

    @property
    def is_over(self) -> bool:
        """Tell whether nothing more is asked of the run: it gets at something unseen, or its time is up."""
        return bool(self.unseen) or self.is_late

    def suspend(self) -> None:
        """End the run by `TooLong`, as its time is up."""
        self.is_late = True
        self.end("a run with its noise as symbols takes more time than is left.")

    def end(self, reason: str) -> NoReturn:
        """End the run by `TooLong`; `ended` keeps the reason where the program catches that."""
        self.ended = reason
        raise TooLong(reason)

    def lose(self, reason: str) -> None:
        """Note that symbols were lost: what goes on is of this run alone."""
        self.mark_opaque()

    def mark_unseen(self, reason: str) -> None:
        """Note that the program got at something that no recorded draw accounts for."""
        self.mark_opaque()
        if not self.unseen:
            place = line_of_call()
            self.unseen = f"{reason} (line {place})" if place else reason

    def look(self, value: float, use: str = "") -> float:
        """The value of a noisy number, for whatever the program does with it; `use` says what in words."""
        if len(self.looks) >= MAX_LOOKS:
            self.end(f"more than {MAX_LOOKS:,} looks at noise in one run")
        if self.frozen is not None and len(self.looks) < len(self.frozen.looks):
            value = self.frozen.looks[len(self.looks)]
        self.mark_opaque(f"looks at the value of its noise{f' for {use}' if use else ''}")
        self.looks.append(value)
        return value

    def decide(self, probabilities: Sequence[float], actual: int, what: str) -> int:
        """The outcome of a decision: the script's, or else the one that was drawn."""
        if len(self.decisions) >= MAX_EVENTS:
            self.end(f"more than {MAX_EVENTS:,} decisions in one run")
        step = self.next_step()
        outcome = self.take(probabilities, actual) if step is None else step.taken
        if not 0 <= outcome < len(probabilities):
            raise Unsupported("another number of outcomes than on the other input")
        self.decisions.append(Decision(outcome, tuple(probabilities), line_of_call(), what))
        return outcome

    def is_below(self, index: int, threshold: float) -> bool:
        """Tell whether a noise is at most a threshold: a decision, unless that is known."""
        noise = self.noises[index]
        low, high = self.intervals.get(index, FREE)
        if noise.law.is_discrete:
            nearest = round(threshold) if math.isfinite(threshold) else threshold
            if 0.0 < abs(threshold - nearest) <= 1e-9 * (1.0 + self.reaches.get(index, 0.0)):
                self.mark_opaque()  # rounding decides on which side of the whole number it is
            threshold = math.floor(threshold) if math.isfinite(threshold) else threshold
        below = noise.law.mass(low, min(threshold, high))
        above = noise.law.mass(max(threshold, low), high)
        if not below + above > 0.0:  # a run of probability 0, or of less than doubles tell
            self.factor = None
            return low < threshold
        if below == 0.0 or above == 0.0:
            if not noise.law.is_discrete and max(low, noise.law.support[0]) < threshold < min(
                high, noise.law.support[1]
            ):
                self.factor = None  # it is not 0, but less than doubles tell
            return above == 0.0
        ends = (low, min(threshold, high)), (max(threshold, low), high)
        if index in self.units:
            outcome = self._holding([((), {index: end}) for end in ends], abs(threshold), "comparison")
            if outcome is None:
                return self.look(noise.value) <= threshold
            return outcome == 0
        total = below + above
        outcome = self.decide((below / total, above / total), int(noise.value > threshold), "comparison")
        self.intervals[index] = ends[outcome]
        if (noise.value > threshold) != bool(outcome):
            share = 1.0 - self.stream(len(self.decisions)).random()
            self.noises[index] = dataclasses.replace(noise, value=noise.law.within(*self.intervals[index], share))
        return outcome == 0

    def order(
        self, options: Sequence[Sequence[Comparison]], units: Mapping[int, Fraction], reach: float, what: str
    ) -> int | None:
        """Decide which of some orders of multiples of noises holds, of which just one does.

        None where the probabilities are not known (`dpaudit.symbolic.orders`), or a noise was compared as another
        multiple. `reach` is the largest number behind a gap.
        """
        if any(self.units.get(node, unit) != unit for node, unit in units.items()):
            return None
        before = dict(self.units)
        self.units.update(units)
        found = self._holding([(tuple(option), {}) for option in options], reach, what)
        if found is None:
            self.units = before
        return found

    def _holding(
        self, options: Sequence[tuple[Sequence[Comparison], Mapping[int, tuple[float, float]]]], reach: float, what: str
    ) -> int | None:
        """Decide which of some sets of comparisons and intervals holds: exactly one of them does."""
        asked = {one for pairs, ends in options for one in (*ends, *(k for p in pairs for k in (p.lower, p.upper)))}
        nodes = connected(asked, [*self.comparisons, *(pair for pairs, _ in options for pair in pairs)])
        laws = {node: self.noises[node].law for node in sorted(nodes)}
        tried = [self._component(nodes, pairs, ends) for pairs, ends in options]
        masses = []
        for one in tried:
            with unheard():
                masses.append(mass_of(one, self.is_quick))
            if time.monotonic() > self.deadline:
                self.suspend()
        chances = [mass for mass, _ in masses]
        whole = math.fsum(chances)
        if min(chances) < 0.0 or not whole > 0.0:
            return None
        holds = [one.holds({node: self.noises[node].value for node in nodes}) for one in tried]
        actual = holds.index(True) if True in holds else 0
        scale = min(law.scale * float(abs(self.units[node])) for node, law in laws.items())
        ends_of = [abs(end) for one in tried for _, node in one.nodes for end in (node.low, node.high)]
        behind = [reach, *(self.reaches.get(node, 0.0) for node in laws), *filter(math.isfinite, ends_of)]
        far = max((abs(float(pair.gap)) for pairs, _ in options for pair in pairs), default=0.0) + max(behind)
        if far > MAX_OFFSET * scale:
            self.factor = None
        outcome = self.decide([chance / whole for chance in chances], actual, what)
        # Validity: the gaps are rounded. Where it is not known how fast the logarithm of the probability grows, the
        # probability itself does by at most 1 / scale, as all densities are at most that.
        growth = tried[outcome].growth()
        share = max(chances[outcome], sys.float_info.min)
        self.rounding += 16.0 * sys.float_info.epsilon * (len(nodes) + far * min(growth, 1.0 / scale / share))
        self.rounding += max(error for _, error in masses) / share
        pairs, ends = options[outcome]
        self.comparisons += pairs
        self.intervals.update(ends)
        if not holds[outcome]:
            with unheard():
                values = tried[outcome].example()
            if values is None:
                self.mark_opaque()
            for node, value in (values or {}).items():
                self.noises[node] = dataclasses.replace(self.noises[node], value=value)
        return outcome

    def _component(
        self,
        nodes: Collection[int],
        pairs: Sequence[Comparison] = (),
        ends: Mapping[int, tuple[float, float]] = MappingProxyType({}),
    ) -> Component:
        """Component of some noises, with further comparisons and intervals of them."""
        made = []
        for node in sorted(nodes):
            interval = ends.get(node, self.intervals.get(node, FREE))
            made.append((node, Node(self.noises[node].law, self.units.get(node, Fraction(1)), *interval)))
        return Component(tuple(made), needed([*(pair for pair in self.comparisons if pair.lower in nodes), *pairs]))

    def choose(
        self, probabilities: Sequence[float], actual: int, what: str, exact: Sequence[Fraction] | None = None
    ) -> int:
        """A choice with given probabilities; `exact` are the same probabilities as fractions, if known."""
        outcome = self.decide(probabilities, actual, what)
        self.picked *= self.decisions[-1].probabilities[outcome]
        self.factor = None if exact is None or self.factor is None else self.factor * exact[outcome]
        return outcome

    def _components(self) -> Iterator[set[int]]:
        """The noises of which something is known, those that were compared with each other together."""
        left = self.intervals.keys() | self.units.keys()
        while left:
            nodes = connected({min(left)}, self.comparisons)
            left -= nodes
            yield nodes

    def exact_mass(self) -> Enclosure | None:
        """The probability of the run, between bounds; None where that is not known.

        Of its choices it is a fraction, of noises that were compared with constants that of an interval, of noises that
        were compared with each other an integral.
        """
        # Validity: the program adds doubles. A large number absorbs digits of noise, and a narrow interval is one of
        # rounding errors.
        reaches = (self.reaches.get(index, 0.0) / self.noises[index].law.scale for index in self.intervals)
        if self.factor is None or max(reaches, default=0.0) > MAX_OFFSET or self.relative_error() > MAX_RELATIVE_ERROR:
            return None
        found = Enclosure.of(self.factor)
        for nodes in self._components():
            mass = self._component(nodes).mass()
            if mass is None:
                return None
            found = found * mass
        return found

    def probability(self, without: Collection[int] = ()) -> float:
        """The probability of the run's decisions, but for what was asked of the noises `without`."""
        found = self.picked
        for nodes in self._components():
            if nodes.isdisjoint(without):
                alone = nodes - self.units.keys()
                found *= math.prod(self.noises[node].law.mass(*self.intervals[node]) for node in alone)
                mass = 1.0 if alone else mass_of(self._component(nodes), self.is_quick)[0]
                assert mass >= 0.0  # it was known when its last comparison was decided
                found *= mass
        return found

    def relative_error(self, without: Collection[int] = ()) -> float:
        """A bound on the relative error of `probability`: an interval has ends that are rounded themselves.

        An end is off by some roundings of the largest number it was computed from (`reaches`). That share of a narrow
        interval is uncertain; of one that is open on a side, a share of the scale, by which tails fall off.
        """
        found = self.rounding
        for index, (low, high) in self.intervals.items():
            if index in self.units or index in without:
                continue
            scale = self.noises[index].law.scale
            ends = [abs(end) for end in (low, high) if math.isfinite(end)]
            reach = sum(ends) + scale + 1.0 + self.reaches.get(index, 0.0)
            width = min(high - low, scale if not self.noises[index].law.is_discrete else 1.0)
            found += 16.0 * sys.float_info.epsilon * reach / width if width > 0.0 else 1.0
        return min(found, 1.0)


def line_of_call() -> str:
    """The line of the call, as "file:line"."""
    file, line = place_of_call()
    return f"{os.path.basename(file)}:{line}" if file else ""
