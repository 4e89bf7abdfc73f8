"""Mechanism as the auditor sees it: one method, and some that help where they exist.

Beside `sample` a mechanism may have

    claim                         what it promises, used where the caller states no claim
    pairs()                       pairs of inputs to audit, used where the caller gives none: each a `Pair` or
                                  (x, x_prime)
    log_density(data, outputs)    natural log of the density (or probability) of each output, shape (size,), -inf where
                                  an output is impossible: it makes the likelihood ratio the witness, and only a witness
    utility_bounds()              what it says about its own error (`dpaudit.audits.utility`)
    translation_family            True where the output law on x is one law, the same for every x, moved by where x lies
    location(data)                where x lies, a number or an array of the shape of one output; x itself without it

A mechanism that has more than `sample` is audited with fewer draws or without flags, never with less suspicion: the
validity of a verdict rests on `sample` alone.

Additive noise is a translation family, and the location of linear queries is their exact answers; noise whose scale
depends on the data is none, nor is an output that is clamped or rounded to a grid. What a mechanism says of it lets an
audit pool pairs of one shift (`dpaudit.inference.pools`); no verdict's error rate rests on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

WHOLE_DOUBLES = 2**53  # below it every whole number is a double


@runtime_checkable
class Mechanism(Protocol):
    """A randomised map from an input to an output.

    `sample(data, size, rng)` returns `size` independent outputs on the input `data`, batch axis first: an array of
    shape (size,) or (size, ...), or a list of `size` outputs of any kind. Randomness comes from `rng` alone
    (`numpy.random.Generator`). The input is left unchanged.
    """

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Any: ...


class SessionEnded(Exception):
    """Raised by `answer` of a session that answers no more queries: the transcript ends before this query."""


@runtime_checkable
class InteractiveMechanism(Protocol):
    """A mechanism that answers the queries of an analyst, who sees every answer before the next query.

    `start(data, rng)` begins a session on the input `data`, which keeps what it remembers between queries:
    `answer(query)` returns the answer to one, and raises `SessionEnded` once there are no more answers. All its
    randomness comes from `rng`, also later on. What is promised is promised of the whole session, for every analyst.
    `dpaudit.as_sessions` makes a subject of it.
    """

    def start(self, data: Any, rng: np.random.Generator) -> Any: ...


@runtime_checkable
class Analyst(Protocol):
    """Chooses queries: `next_query(transcript, rng)` is the next one, or None to stop.

    `transcript` holds (query, answer) of the session so far. Randomness comes from `rng` alone, and nothing is
    remembered between calls: what an analyst knows is in the transcript.
    """

    def next_query(self, transcript: Sequence[tuple[Any, Any]], rng: np.random.Generator) -> Any: ...


def says_so(mechanism: Any) -> bool:
    """Tell whether a mechanism states that it is a translation family."""
    return getattr(mechanism, "translation_family", False) is True


def location_of(mechanism: Any, data: Any) -> NDArray[np.float64] | None:
    """Location of the law of a translation family on `data`, as an array of the shape of one output.

    The mechanism's `location(data)`, or the input itself where it has no such method. None where that is not a number
    or an array of numbers, finite and below 2^53, or the mechanism refuses the input.

    Examples
    --------
    >>> location_of(object(), [1, 2]).tolist(), location_of(object(), "a") is None
    ([1.0, 2.0], True)
    """
    function = getattr(mechanism, "location", None)
    try:
        where = np.asarray(function(data) if callable(function) else data)
    except Exception:  # ragged, or refused: such an input is drawn as any other, and pooled with none
        return None
    if where.dtype.kind not in "iuf" or where.size == 0:
        return None
    location = where.astype(float)
    return location if bool(np.all(np.abs(location) < WHOLE_DOUBLES)) else None
