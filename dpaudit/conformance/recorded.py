"""Runs that several laws look at: outputs of a mechanism that is called once a draw, kept for the next law.

Every law of a list is audited on draws of the mechanism's outputs, and what it makes of them costs nothing. Where one
call is one draw, the calls are what takes time. So all laws look at the runs that the audit of the claim has made, and
at the same further ones.

Validity: the claim and each law have a share of the error rate of their own, and the union of the shares needs no
independence between them. Within one law every run is seen once, in the order in which it was made: to it they are
fresh draws. How many are kept of the audit's is a stopping time, so that with further ones they are independent draws
of one law. A mechanism that gives batches is never recorded, since runs of one batch may depend on each other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.privacy.inputs import identity_of
from dpaudit.subjects.callables import Subject
from dpaudit.subjects.plain import packed, seen

MAX_BYTES = 1 << 28  # of memory that all kept outputs take, about; later ones are drawn anew for each law
MEASURED = 32  # outputs of a batch of calls that its size is estimated from: a bound on time
IN_MEMORY = 8  # times as many bytes as they take when pickled; dictionaries of numbers take about 5 (in its test)


class Recorded:
    """The runs of a subject that is called once a draw, on each input and in order.

    `stream(input)` is the generator of all runs on one input.
    """

    def __init__(self, subject: Subject, stream: Callable[[Any], np.random.Generator]) -> None:
        if subject.is_vectorised:
            raise UsageError(f"{subject.name} must be called once a draw to be recorded, got one that gives batches.")
        self.subject, self._stream = subject, stream
        self._runs: dict[Any, list[Any]] = {}
        self._streams: dict[Any, tuple[Any, np.random.Generator]] = {}
        self._left = MAX_BYTES

    def replayed(self) -> Subject:
        """The subject from its first run on, in batches: new runs are made where no more are kept."""
        return self._as(_Replayed, replayable=False)  # the same generator does not give the same runs again

    def noted(self) -> Subject:
        """The subject, whose runs are kept as they are made."""
        return self._as(_Noted)

    def _as(self, kind: type[_WithRuns], **changes: Any) -> Subject:
        fields = {field.name: getattr(self.subject, field.name) for field in dataclasses.fields(self.subject)}
        return kind(**{**fields, **changes}, runs=self)

    def take(self, data: Any, start: int, size: int) -> list[Any]:
        """Runs `start` to `start + size` on an input, in order; those that are no longer kept are drawn anew."""
        key = identity_of(data)
        kept = self._runs.get(key, [])
        found = kept[start : start + size]
        if len(found) < size:
            if key not in self._streams:  # with the input, so that what is known by its address stays alive
                self._streams[key] = (data, self._stream(data))
            more = self.subject.observe(data, size - len(found), self._streams[key][1])
            found = found + more
            if start <= len(kept):
                self.keep(data, more)
        return found

    def keep(self, data: Any, more: list[Any]) -> None:
        """Keep further runs on an input, while there is room."""
        if self._left > 0:  # Validity: not by their own size, which would leave out large ones
            some = more[:: -(-len(more) // MEASURED)]  # evenly spread
            self._left -= IN_MEMORY * sum(len(packed(output)) for output in some) * len(more) // len(some)
            self._runs.setdefault(identity_of(data), []).extend(more)


@dataclasses.dataclass(frozen=True)
class _WithRuns(Subject):
    runs: Recorded | None = dataclasses.field(default=None, compare=False, repr=False)
    given: dict[Any, int] = dataclasses.field(default_factory=dict, compare=False, repr=False)  # of each input


class _Noted(_WithRuns):
    """Keeps what was seen of its runs, in the order of the calls on each input."""

    def _outcomes(self, data: Any, size: int, rng: np.random.Generator, hold: Callable[[Any], Any]) -> Iterator[Any]:
        runs: list[Any] = []
        for outcome in super()._outcomes(data, size, rng, hold):
            runs.append(outcome)
            if len(runs) == size and hold is seen and self.runs is not None:
                self.runs.keep(data, runs)
            yield outcome


class _Replayed(_WithRuns):
    """Gives batches of what was seen of runs, each once; it is plain data, which laws copy (`derived.draw`)."""

    is_vectorised = True

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> list[Any]:
        """The next `size` runs on an input; their randomness is not the generator's."""
        del rng
        assert self.runs is not None
        key = identity_of(data)
        start = self.given.get(key, 0)
        self.given[key] = start + size
        return self.runs.take(data, start, size)

    observe = sample  # what was seen is plain data already
