"""Shares of the time of a judgement, and sizes of its parts."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Shares:
    """Shares of the time, and sizes. On the museum (docs/measurements/judge.md) most parts end long before."""

    climb: float = 0.2
    record: float = 0.2
    record_more: float = 0.35  # of pairs that a certificate leaves open, where all that were recorded keep the claim
    certify: float = 0.25
    symbols: float = 0.6  # after which a run with symbols ends where it is
    shrink: float = 0.1
    search: float = 0.3  # of what is left then, for the search with draws
    most_pairs: int = 200  # of a caller's, that are recorded
    most_certified: int = 400  # pairs
    pairs: int = 3  # that a search chooses for the audit
    samples: int = 100_000  # of the audit of what is not decided
    held_samples: int = 1_000  # of the audit that what was proved is held against
    draw: float = 0.7  # of what is left, for the draws of the audit and their evidence
    seconds_a_draw: float = 1e-4  # what reading and weighing a draw takes
    least_samples: int = 60  # of an audit: as many show eps = 2 broken where each output tells its input
    over: float = 0.3  # of all of the time, beyond it, for the least audit; none is made where that is not enough
    end: float = 1.4  # of all of the time, after which a call that goes on is broken off: no audit has so long ones
    least_time: float = 3.0  # seconds, for `over` and `end` where all of the time is less: a first audit may take one
    first: int = 8  # pairs that were found without draws, with which the search with draws begins
    timed: int = 3  # calls by which draws are planned
    timed_batch: int = 100  # outputs of one call, of a function that gives many
    smallest_search: int = 1_000  # runs
    largest_search: int = 200_000


SHARES = Shares()
