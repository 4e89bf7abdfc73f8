"""Sessions of queries as subjects: an interactive mechanism, audited through the eyes of an analyst.

One draw is one session from its start. The analyst chooses each query from the answers so far; the transcript is the
output, and may end early. An analyst who does not know the data is post-processing between the answers, so a session
must keep the claim that is made for all of it, whatever is asked: a violation with any analyst is a violation. That
nothing was found with one says nothing of another.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpaudit.arguments import whole_number
from dpaudit.errors import UsageError
from dpaudit.subjects.callables import STATED, Subject, as_subject
from dpaudit.subjects.protocol import Analyst, InteractiveMechanism, SessionEnded

Transcript = Sequence[tuple[Any, Any]]
MAX_QUERIES = 1_000  # of one session, where the caller states no number


@dataclasses.dataclass(frozen=True)
class FixedQueries:
    """An analyst who asks a list of queries, one after the other, whatever the answers."""

    queries: tuple[Any, ...]

    def next_query(self, transcript: Transcript, rng: np.random.Generator) -> Any:
        return self.queries[len(transcript)] if len(transcript) < len(self.queries) else None


@dataclasses.dataclass(frozen=True)
class _Function:
    """An analyst from a function of the transcript, or of the transcript and a generator."""

    function: Callable[..., Any]
    takes_rng: bool

    def next_query(self, transcript: Transcript, rng: np.random.Generator) -> Any:
        return self.function(transcript, rng) if self.takes_rng else self.function(transcript)


def as_analyst(analyst: Any) -> Analyst:
    """An analyst from an object with `next_query`, a list of queries, or a function `f(transcript)` or
    `f(transcript, rng)`.

    `UsageError` if it is none of these.
    """
    if isinstance(analyst, Analyst):
        return analyst
    if isinstance(analyst, list | tuple):
        return FixedQueries(tuple(analyst))
    if callable(analyst) and not isinstance(analyst, type):
        return _Function(analyst, "rng" in inspect.signature(analyst).parameters)
    raise UsageError(f"analyst must have next_query(transcript, rng), or be a function or a list, got {analyst!r}.")


@dataclasses.dataclass(frozen=True)
class Sessions:
    """Whole sessions of an interactive mechanism with one analyst; called once a session. See `as_sessions`."""

    mechanism: InteractiveMechanism
    analyst: Analyst
    queries: int = MAX_QUERIES
    with_queries: bool = False

    def __call__(self, data: Any, rng: np.random.Generator) -> tuple[Any, ...]:
        # The analyst's randomness is apart from the mechanism's: a session may draw as much as it likes.
        own = np.random.default_rng(rng.integers(2**32, size=8))
        transcript: list[tuple[Any, Any]] = []
        session = self.mechanism.start(data, rng)
        while len(transcript) < self.queries:
            query = self.analyst.next_query(tuple(transcript), own)
            if query is None:
                break
            try:
                answer = session.answer(query)
            except SessionEnded:
                break
            transcript.append((query, answer))
        return tuple(transcript if self.with_queries else (answer for _, answer in transcript))

    def __getattr__(self, name: str) -> Any:
        if name not in STATED and name != "utility_bounds":  # what the mechanism states is of whole sessions
            raise AttributeError(f"sessions have no attribute {name!r}")
        return getattr(self.mechanism, name)


def as_sessions(
    mechanism: InteractiveMechanism,
    analyst: Any,
    *,
    queries: int = MAX_QUERIES,
    with_queries: bool = False,
    name: str | None = None,
) -> Subject:
    """A subject of whole sessions: an output is the answers of one session, in order, as a tuple.

    Parameters
    ----------
    mechanism : InteractiveMechanism
        `start(data, rng)` gives a session with `answer(query)`. Its `claim` and `pairs()`, if it has them, are of whole
        sessions; `replayable = False` says that it has randomness of its own.
    analyst : Analyst, function or list
        Who asks: an object with `next_query(transcript, rng)`, a function `f(transcript)` or `f(transcript, rng)`, or
        the list of queries. It stops by None; the session may stop by `SessionEnded`.
    queries : int
        At most so many are asked in a session.
    with_queries : bool
        Whether outputs hold (query, answer) instead of answers: where the analyst draws queries at random, which the
        answers do not tell.
    name : str, optional
        How the subject is named in results.

    Examples
    --------
    >>> class Counter:
    ...     def start(self, data, rng):
    ...         class Open:
    ...             def answer(self, query):
    ...                 return data[query] + rng.geometric(0.5) - rng.geometric(0.5)
    ...         return Open()
    >>> subject = as_sessions(Counter(), [0, 1, 0])
    >>> len(subject.sample((5, 7), 1, np.random.default_rng(1))[0])
    3
    """
    if not isinstance(mechanism, InteractiveMechanism):
        raise UsageError(f"mechanism must have start(data, rng), got {type(mechanism).__name__}.")
    most = whole_number("queries", queries, "a positive integer", 1)
    sessions = Sessions(mechanism, as_analyst(analyst), most, with_queries)
    shown = name or f"sessions of {getattr(mechanism, 'name', '') or type(mechanism).__name__}"
    # Validity: copies of randomness of its own could repeat each other in workers, which draw replayable subjects.
    replayable = bool(getattr(mechanism, "replayable", True))
    return dataclasses.replace(as_subject(sessions), name=shown, replayable=replayable)
