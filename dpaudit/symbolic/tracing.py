"""One traced run: a mechanism's draws as choices among finitely many outcomes, each with its exact probability.

After the choices of its path (`dpaudit.symbolic.choices`) a run takes the likeliest outcome of every further choice.

Validity: a certificate rests on a mechanism being a function of its input and of its draws. Each replayed choice must
ask for the same probabilities as before, else the run is refused. A draw that cannot be traced ends the run with
`Untraceable`, which is no `Exception`, so that a mechanism does not catch it; and the refusal is remembered in case it
catches it all the same.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Sequence
from fractions import Fraction

from dpaudit.symbolic.choices import Choices, OpenPath, place_of_call
from dpaudit.symbolic.dependence import Dependence

MAX_STRAIGHT = 256  # new choices of one run, beyond which it is put back if another path has more mass
WIDEST = 256  # outcomes of one choice; more are halved into groups first
ONE = Fraction(1)
OF_REAL_LAW = "draws a number from infinitely many that a certificate cannot list"


class Untraceable(BaseException):
    """A run met something that cannot be traced; the text says what, and the line of the call."""


class Suspended(BaseException):
    """A run stopped on a path that is to be continued later; no outcome is known of it yet."""


class Tracer(Choices):
    """The choices of one run; see `Choices`.

    A long run gives way to an open path that is heavier than it (`heaviest_other`). With `lazy`, geometric draws may
    stay symbols (`dpaudit.symbolic.whole_numbers`).
    """

    def __init__(
        self,
        path: OpenPath,
        heaviest_other: float = 0.0,
        lazy: bool = True,
        deadline: float = math.inf,
        depends: Dependence | None = None,
    ) -> None:
        super().__init__(path, depends, deadline)
        self.lazy, self.heaviest_other = lazy, heaviest_other
        self.refusal = ""
        self.ended = ""  # where a symbol without an end first became a number
        self.is_suspended = False
        self.has_uniforms = False  # symbols that the run was given
        self.has_wholes = False

    def choose(self, probabilities: Sequence[Fraction]) -> int:
        """The outcome of one choice: of the path where it is replayed, else the likeliest one."""
        if self.refusal:
            raise Untraceable(self.refusal)
        if self.is_suspended:
            raise Suspended
        weights = tuple(probabilities)
        for sure, weight in enumerate(weights):
            if weight.numerator == weight.denominator:
                return sure
        step = self.next_step()
        if step is not None:
            if step.weights is not weights and step.weights != weights:
                self.refuse("a run on the same draws makes other draws: something is kept between runs")
            return step.taken
        if self.depth > len(self.steps) + MAX_STRAIGHT and (
            self.heaviest_other > self.mass or time.monotonic() > self.deadline
        ):
            self.suspend()
        before = len(self.opened)
        # In doubles: which outcome comes first only orders the runs.
        taken = self.take(weights, max(range(len(weights)), key=lambda outcome: float(weights[outcome])))
        self.heaviest_other = max([self.heaviest_other, *(float(path.mass) for path in self.opened[before:])])
        return taken

    def suspend(self) -> None:
        """End the run where it is, by `Suspended`; its path is to be continued later."""
        if not self.is_suspended:
            self.opened.append(OpenPath(self.mass, self.last))
            self.is_suspended = True
        raise Suspended

    def uniform_integer(self, count: int) -> int:
        """A uniform integer in [0, count); many outcomes are first chosen in groups."""
        low, high = 0, count
        while high - low > 1:
            size = high - low
            if size <= WIDEST:
                return low + self.choose(_equal_parts(size))
            step = -(-size // WIDEST)
            starts = list(range(low, high, step))
            group = self.choose([Fraction(min(step, high - start), size) for start in starts])
            low, high = starts[group], min(starts[group] + step, high)
        return low

    def note_end(self, use: str) -> None:
        """Note the line where a draw without an end is needed as a number."""
        if not self.ended:
            self.ended = f"a geometric draw is used as a number ({use}, {_place()})"

    @property
    def is_over(self) -> bool:
        """Tell whether the run was refused or put back."""
        return self.is_suspended or bool(self.refusal)

    def lose(self, reason: str) -> None:
        self.refuse(reason)

    mark_unseen = lose

    def refuse(self, reason: str) -> None:
        """End the run, by `Untraceable`: `reason` and the line of the user's code that led to it."""
        if not self.refusal:
            self.refusal = f"{reason} ({_place()})."
        raise Untraceable(self.refusal)


@functools.lru_cache(maxsize=1024)
def _equal_parts(count: int) -> tuple[Fraction, ...]:
    return (Fraction(1, count),) * count


def _place() -> str:
    file, line = place_of_call()
    return f"line {line} of {file}" if file else "in a library"
