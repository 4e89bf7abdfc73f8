"""Runs a mechanism on one input through all outcomes of its draws, the heaviest open path first.

At any time the masses of the leaves that were reached are exact, and the rest of 1 lies on open paths: so the
probability of an event is between the mass of its leaves and that mass plus what is left. Where nothing is left the
law is exact.
"""

from __future__ import annotations

import dataclasses
import math
import time
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.subjects.callables import Subject
from dpaudit.subjects.parameters import ROLES
from dpaudit.symbolic.choices import Frontier, OpenPath
from dpaudit.symbolic.dependence import Dependence
from dpaudit.symbolic.exact_draws import ExactDraws
from dpaudit.symbolic.generators import NumpyRng, PythonRng
from dpaudit.symbolic.leaves import Leaf, NeedsNumbers, form, held, read_output, readable
from dpaudit.symbolic.tracing import Suspended, Tracer, Untraceable
from dpaudit.symbolic.watching import watched

MAX_OPEN = 1_000_000  # open paths of one input, beyond which it is not explored further
REPEATED = 64  # paths of an input that are run again

LIBRARIES = ("numpy", "random")


@dataclasses.dataclass(frozen=True)
class Ended:
    """End of one run: a leaf, or None where it was put back; and the paths that it left open."""

    leaf: Leaf | None
    path: OpenPath
    opened: list[OpenPath]


class Runner:
    """Makes traced runs of one subject, called once a draw, with a generator of one `library`, numpy or random.

    `depends` is what it can reach, as it was before all runs, by default as it is now; `lazy` says whether geometric
    draws may stay symbols.
    """

    def __init__(self, subject: Subject, library: str, depends: Dependence | None = None, lazy: bool = True) -> None:
        self.subject, self.library, self.lazy = subject, library, lazy
        self.stream = np.random.PCG64(0)
        self.depends = depends or Dependence(subject.mechanism)
        self.before = self.stream.state
        self.runs = 0
        self.ended = ""  # where a symbol without an end first became a number

    def run(self, x: Any, path: OpenPath, heaviest_other: float = 0.0, deadline: float = math.inf) -> Ended:
        """One run along a path; `Untraceable` if it cannot be traced, `NeedsNumbers` if it has to be run on numbers."""
        self.runs += 1
        tracer = Tracer(path, heaviest_other, self.lazy, deadline, self.depends)
        draws = ExactDraws(tracer)
        try:
            output = self._output(x, tracer, draws)
            if tracer.refusal:
                raise Untraceable(tracer.refusal)
            leaf = None if tracer.is_suspended else read_output(tracer, output)
        except Suspended:
            leaf = None
        self.ended = self.ended or tracer.ended
        if not tracer.refusal and (changed := self.depends.changed()):
            raise Untraceable(changed[:1].upper() + changed[1:] + ".")
        if tracer.refusal:  # it may have been caught
            raise Untraceable(tracer.refusal)
        if not tracer.is_replayed and not tracer.is_suspended:
            raise Untraceable("A run on the same draws made fewer draws: something is kept between runs.")
        if leaf is not None and (tracer.has_uniforms or tracer.has_wholes):
            reason = self._unlike_numbers(x, leaf, draws.numbers(), deadline)
            if reason and tracer.has_wholes:
                raise NeedsNumbers(reason)
            if reason:
                raise Untraceable(f"{reason[:1].upper()}{reason[1:]}.")
        return Ended(leaf, OpenPath(tracer.mass, tracer.last), tracer.opened)

    def _output(self, x: Any, tracer: Tracer, draws: ExactDraws) -> Any:
        rng = NumpyRng(draws, self.stream) if self.library == "numpy" else PythonRng(draws)
        with watched(tracer):
            return self.subject.held_output(x, rng, lambda value: value)

    def _unlike_numbers(self, x: Any, leaf: Leaf, numbers: list[Any] | None, deadline: float) -> str:
        """Difference of a path with symbols from a run with numbers that are on it, which may seldom show; or empty."""
        # Validity: an error that the symbols led to would be an outcome of every input, and look perfectly private.
        if numbers is None:
            is_shown = leaf.token[0] in "-'0123456789"  # a number or a text
            return "what is no number is given or raised where rounding decides" * (not is_shown)
        tracer = Tracer(OpenPath(Fraction(1)), deadline=deadline)
        try:
            output = self._output(x, tracer, ExactDraws(tracer, numbers))
            found = read_output(tracer, output).token
            self.depends.note_form(leaf.token, form(output) if leaf.tails else (*held(output),))
        except Suspended:
            return ""
        if tracer.refusal:
            raise Untraceable(tracer.refusal)
        is_unlike = not tracer.is_suspended and found != leaf.at(1)  # a program may have caught the suspension
        return f"with numbers in the place of its draws a run gives {readable(found)[:80]}" * is_unlike

    def check(self) -> None:
        """Refuse the runs so far, as `Untraceable`, if they used other generators."""
        if self.stream.state != self.before:
            raise Untraceable("Compiled code took random bits from the generator itself, past its methods.")
        if self.depends.moved():
            raise Untraceable("A generator other than the one that is given is used.")


class Exploration:
    """Known part of the output law on one input: the mass of each leaf that was reached, and that of open paths."""

    def __init__(self, runner: Runner, x: Any) -> None:
        self.runner, self.x = runner, x
        self.law: dict[Leaf, Fraction] = {}
        self.left = Fraction(1)
        self.open = Frontier([OpenPath(Fraction(1))])
        self.kept: list[tuple[OpenPath, Leaf]] = []  # some of the runs, for `repeat`

    @property
    def is_open(self) -> bool:
        """Tell whether there is more to explore, and room for it."""
        return 0 < len(self.open) < MAX_OPEN

    def step(self, deadline: float = math.inf) -> None:
        """One more run, along the heaviest open path."""
        ended = self.runner.run(self.x, self.open.pop(), self.open.heaviest, deadline)
        self.open.add(ended.opened)
        if ended.leaf is not None:
            mass = ended.path.mass
            assert isinstance(mass, Fraction)
            self.law[ended.leaf] = self.law.get(ended.leaf, Fraction(0)) + mass
            self.left -= mass
            count = len(self.kept)
            if count < REPEATED or (self.runner.runs & (self.runner.runs - 1)) == 0:
                self.kept.append((ended.path, ended.leaf))

    def repeat(self, deadline: float = math.inf) -> None:
        """Run some of the paths once more, the latest first: each must end where it ended, else `Untraceable`.

        One is run whatever the time is, the others before the deadline (`time.monotonic`).
        """
        for number, (path, leaf) in enumerate(reversed(self.kept)):
            if number and time.monotonic() > deadline:
                return
            again = self.runner.run(self.x, path)
            if again.leaf != leaf or again.path.last is not path.last:
                raise Untraceable(
                    "A run on the same draws gave another output: something is kept between runs, or other randomness "
                    "is used."
                )


def untraced_randomness(subject: Subject, library: str) -> str:
    """Name, as a clause, the randomness of a subject beside this library's generator; empty where there is none."""
    own = "random" if library == "random" else "generator"
    others = [role for _, role in subject.keywords if role not in ("size", own)]
    if others:
        return "takes a seed" if "seed" in others else f"takes {ROLES[others[0]][1]}"
    return "" if "rng" in subject.interface else "takes no generator"


def with_generators(subject: Subject, library: str) -> Subject:
    """The subject with one kind of generator for all its parameters that take one: that of a library."""
    own = "random" if library == "random" else "generator"
    keywords = tuple((name, role if role in ("size", "seed") else own) for name, role in subject.keywords)
    return dataclasses.replace(subject, keywords=keywords)
