"""What an evidence store holds: subjects, nights and pairs, and how the error rate is shared."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from typing import Any

import numpy as np

from dpaudit.inference.saved import State
from dpaudit.running.streams import EVIDENCE

FIRST_SHARE = 0.95  # of a subject's error rate, for the pairs of its first night
FAILED = "failed"  # of a night in which a call raised for a whole batch


@dataclasses.dataclass(frozen=True)
class Identity:
    """What evidence is about: a mechanism's fingerprint, with its name and target, and a claim."""

    fingerprint: str
    name: str
    target: str | None
    claim: str

    @property
    def digest(self) -> str:
        """64 hexadecimal digits; the name and the target do not count."""
        return hashlib.sha256(f"{self.fingerprint}\n{self.claim}".encode("utf-8", "surrogatepass")).hexdigest()


@dataclasses.dataclass(frozen=True)
class Night:
    """One audit in a store: its subject's row, its own, the subject's life, the seed and number of its stream."""

    subject: int
    id: int
    life: int
    seed: int
    number: int
    digest: str
    ordinal: int

    @property
    def origin(self) -> str:
        """Names its streams."""
        return f"{self.seed}/{self.number}"

    @property
    def stream_seed(self) -> int:
        """The seed of its streams, 128 bits from the seed of the call, the subject, and the number of the night."""
        words = [int(self.digest[start : start + 8], 16) for start in range(0, 64, 8)]
        sequence = np.random.SeedSequence(self.seed, spawn_key=(EVIDENCE, *words, self.number))
        return int.from_bytes(sequence.generate_state(4, np.uint32).tobytes(), "little")


@dataclasses.dataclass(frozen=True)
class SavedPair:
    """What the store holds of one pair. `revision` counts the writes."""

    key: str
    name: str
    x: str
    x_prime: str
    parameter: str
    budget: float
    generation: int
    level: float
    state: State
    revision: int = 0

    @property
    def labelled(self) -> int:
        """Labelled draws that were bet on."""
        return int(self.state["labelled"])

    @property
    def log_wealth(self) -> float | None:
        """Log e-value against the budget; None where it was not known when it was saved."""
        use = self.state["uses"][0]
        return None if use["now"] is None else float(use["now"]) + math.log(float(use.get("share", 1.0)))

    @property
    def lower(self) -> float:
        """The lower bound on the claim's parameter."""
        return float(self.state["uses"][0]["lower"])

    @property
    def is_violated(self) -> bool:
        return bool(self.state["violated"])


def share_of(generation: int) -> float:
    """The share of a subject's error rate for the pairs that came in together, as the `generation`-th of its life.

    The pairs of the first night have 95%; those that come later share what is left, in a series that sums to 5%.

    Examples
    --------
    >>> share_of(0), round(share_of(1), 4), sum(share_of(g) for g in range(10_000)) <= 1.0
    (0.95, 0.0304, True)
    """
    return FIRST_SHARE if generation == 0 else (1.0 - FIRST_SHARE) * 6.0 / (math.pi * generation) ** 2


def failed_night(execute: Any, subject: int, life: int, besides: int | None = None) -> int | None:
    """Which night of this life, from 1 on, had a call that raised for a whole batch, besides one of this row; or None.

    Validity: the batch was dropped for what it would have shown, so no product goes on behind it.
    """
    query = "select id from nights where subject = ? and life = ? and status = ? and id is not ? order by id"
    found = execute(query, (subject, life, FAILED, besides)).fetchone()
    if found is None:
        return None
    query = "select count(*) from nights where subject = ? and life = ? and id <= ?"
    return int(execute(query, (subject, life, found[0])).fetchone()[0])
