"""Runs that several laws look at: outputs of a mechanism that is called once a draw, kept for the next law.

Every law of a list is audited on draws of the mechanism's outputs, and what it makes of them costs nothing. Where one
call is one draw, the calls are what takes time. So all laws look at the same runs.

Validity: each law has a share of the error rate of its own, and the union of the shares needs no independence between
laws. Within one law every run is seen once, in the order in which it was made: to it they are fresh draws. A mechanism
that gives batches is never recorded, since runs of one batch may depend on each other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.privacy.inputs import identity_of
from dpaudit.subjects.callables import Subject, as_subject
from dpaudit.subjects.plain import packed

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
        """The subject from its first run on: new runs are made where no more are kept."""
        found = as_subject(_Runs(self), self.subject.target, self.subject.name)
        return _Replayed(**{field.name: getattr(found, field.name) for field in dataclasses.fields(found)})

    def _more(self, data: Any, size: int) -> list[Any]:
        key = identity_of(data)
        if key not in self._streams:  # with the input, so that what is known by its address stays alive
            self._streams[key] = (data, self._stream(data))
        outputs: list[Any] = self.subject.observe(data, size, self._streams[key][1])
        return outputs

    def take(self, data: Any, start: int, size: int) -> list[Any]:
        """Runs `start` to `start + size` on an input, in order; those that are no longer kept are drawn anew."""
        kept = self._runs.setdefault(identity_of(data), [])
        found = kept[start : start + size]
        if len(found) < size:
            more = self._more(data, size - len(found))
            found = found + more
            bytes_more = _bytes_of(more)
            if start <= len(kept) and bytes_more <= self._left:
                self._left -= bytes_more
                kept += more
        return found


def _bytes_of(outputs: list[Any]) -> int:
    """About how much memory outputs take, by some that are evenly spread over them."""
    some = outputs[:: -(-len(outputs) // MEASURED)]
    return IN_MEMORY * sum(len(packed(output)) for output in some) * len(outputs) // len(some)


class _Runs:
    """A mechanism of batches that are made of recorded runs, each of which it gives once."""

    replayable = False  # the same generator does not give the same runs again

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        self._given: dict[Any, int] = {}

    def __repr__(self) -> str:
        return f"recorded runs of {self._recorded.subject.fingerprint}"

    def __getattr__(self, name: str) -> Any:
        """Whatever else the mechanism offers: pairs, a claim, a log density, a distribution."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._recorded.subject.mechanism, name)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> list[Any]:
        """The next `size` runs on an input; their randomness is not the generator's."""
        del rng
        key = identity_of(data)
        start = self._given.get(key, 0)
        self._given[key] = start + size
        return self._recorded.take(data, start, size)


class _Replayed(Subject):
    """Gives what was seen of runs, which is plain data, as it is: laws copy what they draw (`derived.draw`)."""

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> list[Any]:
        runs: list[Any] = self.mechanism.sample(data, size, rng)
        return runs
