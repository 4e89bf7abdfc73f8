"""Choices of a run, and the paths that they leave open: what is common to all that is explored.

A run follows a *path*, the list of choices that an earlier run left open, and then makes choices of its own. The
outcomes that it does not take become paths of their own. A path has a mass, the product of its probabilities: a
`Fraction` in runs that are to be exact, a double where noise is recorded. The masses of all ended runs and all open
paths sum to 1 at any time.
"""

from __future__ import annotations

import abc
import dataclasses
import heapq
import itertools
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpaudit.subjects.tracebacks import OWN_FOLDER, is_users

if TYPE_CHECKING:
    from dpaudit.symbolic.dependence import Dependence

Mass = Fraction | float


class Step:
    """One choice of a path: the step before it, the probabilities that were asked for, and the outcome taken."""

    __slots__ = ("before", "taken", "weights")

    def __init__(self, before: Step | None, weights: tuple[Mass, ...], taken: int) -> None:
        self.before, self.weights, self.taken = before, weights, taken


@dataclasses.dataclass(frozen=True)
class OpenPath:
    """Choices that lead to a part of the runs, by their last step, and its mass."""

    mass: Mass
    last: Step | None = None

    @classmethod
    def of(cls, outcomes: Iterable[int]) -> OpenPath:
        """The path of some outcomes, whatever their probabilities are."""
        last = None
        for outcome in outcomes:
            last = Step(last, (), outcome)
        return cls(1.0, last)

    def steps(self) -> list[Step]:
        """All choices, the first one first."""
        found, step = [], self.last
        while step is not None:
            found.append(step)
            step = step.before
        return found[::-1]


class Choices(abc.ABC):
    """The choices of one run: first those of a path, then new ones.

    From a deadline of `time.monotonic` on the run gives way.
    """

    def __init__(self, path: OpenPath, depends: Dependence | None = None, deadline: float = math.inf) -> None:
        self.depends, self.deadline = depends, deadline
        self.steps = path.steps()
        self.depth = 0
        self.mass = path.mass  # of the path to its end; only new choices change it
        self.last = path.last
        self.opened: list[OpenPath] = []
        self.instead: Callable[[Any, Any], Any] = lambda function, owner: None  # what is called for a function

    @property
    @abc.abstractmethod
    def is_over(self) -> bool:
        """Tell whether nothing more is asked of the run."""

    @abc.abstractmethod
    def suspend(self) -> None:
        """End the run where it is, as its time is up."""

    @abc.abstractmethod
    def mark_unseen(self, reason: str) -> None:
        """Note that the program got at something that no draw accounts for."""

    @abc.abstractmethod
    def lose(self, reason: str) -> None:
        """Note that symbols were lost."""

    @property
    def is_replayed(self) -> bool:
        """Tell whether all choices of the path were made again."""
        return self.depth >= len(self.steps)

    def next_step(self) -> Step | None:
        """The step of the path that the next choice makes again; None for a new one."""
        self.depth += 1
        return self.steps[self.depth - 1] if self.depth <= len(self.steps) else None

    def take(self, weights: Sequence[Mass], taken: int) -> int:
        """Make a new choice, which leaves its other outcomes open."""
        kept = tuple(weights)
        opened = [
            OpenPath(self.mass * weight, Step(self.last, kept, other))
            for other, weight in enumerate(kept)
            if other != taken and weight > 0
        ]
        last, mass = Step(self.last, kept, taken), self.mass * kept[taken]
        # Validity: all at once, without a call. A run may be ended in any, and its mass is then that of its path.
        self.opened += opened
        self.last, self.mass = last, mass
        return taken


class Frontier:
    """Open paths, the heaviest one first."""

    def __init__(self, paths: Iterable[OpenPath] = ()) -> None:
        self._heap: list[tuple[float, int, OpenPath]] = []
        self._count = itertools.count()
        self.add(paths)

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def heaviest(self) -> float:
        """The largest mass; 0 of none."""
        return -self._heap[0][0] if self._heap else 0.0

    def add(self, paths: Iterable[OpenPath]) -> None:
        """Add some paths."""
        for path in paths:
            heapq.heappush(self._heap, (-float(path.mass), next(self._count), path))

    def pop(self) -> OpenPath:
        """The heaviest path, which is taken away."""
        return heapq.heappop(self._heap)[2]


def weight_of(mass: Any) -> float:
    """A mass as a double, above 0 where it is: no path is lost as its mass is rounded to 0."""
    return max(float(mass), sys.float_info.min) if mass else 0.0


def is_own_code(file: str) -> bool:
    """Tell whether a file is the user's own: of no library, wherever installed, and no text that was compiled."""
    return is_users(file) and not file.startswith("<") and "site-packages" not in file and "dist-packages" not in file


def place_of_call() -> tuple[str, int]:
    """File and line of the innermost frame of the user's code in the call; of a library where there is none."""
    frame = sys._getframe(1)
    outer = ("", 0)
    while frame is not None:
        file = frame.f_code.co_filename
        if is_own_code(file):
            return file, frame.f_lineno
        if not outer[0] and not file.startswith(OWN_FOLDER):
            outer = file, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return outer
