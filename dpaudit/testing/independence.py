"""Are two runs independent of each other? Exact tests of yes-or-no features that were fixed on other draws.

Two runs that share noise share features: being above the median of a column, far from it, equal to the most common
output. Of outputs that are no numbers the columns are leaves, such as the number under a key. Fisher's exact test asks
whether a feature of the first tells anything of the same feature of the second: given the margins, the number of pairs
that have both is hypergeometric if they are independent.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.outcomes import Outcomes, Reading
from dpaudit.testing.leaf_columns import LeafColumns, leaf_columns

COLUMNS = 16  # of an output that are looked at: the first numbers, or leaves
Flags = NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class Feature:
    """A yes-or-no question about one output: of the number in a column, or of its token.

    `place` says in words what the column is; features of different pilots ask the same where their kinds and places
    are equal.

    Validity: `reading` is fixed on the pilot, so that the answer never depends on the other outputs of a batch (a None
    among numbers makes objects of all of them).
    """

    kind: str  # "above", "far" or "token"
    reading: Reading | LeafColumns
    column: int = 0
    place: str = ""
    centre: float = 0.0
    spread: float = 0.0
    token: str = ""

    def of(self, outcomes: Outcomes) -> Flags:
        """The answer for each outcome, shape (draws,)."""
        if self.kind == "token":
            found = outcomes.as_objects().tokens
            return np.array([token == self.token for token in (found if found is not None else [])], dtype=bool)
        values = _numbers(self.reading, outcomes)[:, self.column]
        with np.errstate(invalid="ignore"):
            chosen = values > self.centre if self.kind == "above" else np.abs(values - self.centre) > self.spread
        return np.asarray(chosen, dtype=bool)

    def __str__(self) -> str:
        names = {"above": "being above the median", "far": "the distance from the median", "token": "the common value"}
        return names[self.kind] + (f" in {self.place}" if self.place else "")

    def asks_as(self, other: Feature) -> bool:
        """Whether another feature, of another pilot, is of the same kind and place."""
        return (self.kind, self.place) == (other.kind, other.place)


def features(pilot: Outcomes) -> list[Feature]:
    """Features of the outputs of one input, fixed on pilot draws: those that some of these have and some have not."""
    found = []
    for reading, column, place in _columns(pilot):
        values = _numbers(reading, pilot)[:, column]
        values = values[np.isfinite(values)]
        if values.size:
            centre = float(np.median(values))
            spread = float(np.median(np.abs(values - centre)))
            found += [Feature(kind, reading, column, place, centre, spread) for kind in ("above", "far")]
    listed = pilot.as_objects().tokens
    common = Counter(listed.tolist()).most_common(1) if listed is not None else []
    if common and common[0][1] > 1:
        found.append(Feature("token", Reading(0), token=common[0][0]))
    return [feature for feature in found if 0 < feature.of(pilot).sum() < len(pilot)]


def _columns(pilot: Outcomes) -> list[tuple[Reading | LeafColumns, int, str]]:
    """The columns of pilot outputs that are looked at, with what reads them and what they are in words."""
    columns = pilot.numbers.shape[1]
    if pilot.tokens is None:
        reading = Reading(columns)
        return [(reading, k, f"column {k}" * (columns > 1)) for k in range(min(COLUMNS, columns))]
    leaves = leaf_columns(pilot, COLUMNS, categories=False)
    return [] if leaves is None else [(leaves, k, place) for k, place in enumerate(leaves.places)]


def _numbers(reading: Reading | LeafColumns, outcomes: Outcomes) -> FloatArray:
    return reading(outcomes) if isinstance(reading, LeafColumns) else reading(outcomes).numbers


def fisher(both: int, first: int, second: int, total: int) -> tuple[float, float]:
    """p-values of more and of fewer pairs that have both than independence gives, given the margins.

    Examples
    --------
    >>> more, fewer = fisher(5, 5, 5, 10)
    >>> round(more, 6), round(fewer, 6)  # 1 / binomial(10, 5)
    (0.003968, 1.0)
    """
    values = np.arange(max(0, first + second - total), min(first, second) + 1)

    def log_binomial(n: Any, k: Any) -> Any:
        return scipy.special.gammaln(n + 1) - scipy.special.gammaln(k + 1) - scipy.special.gammaln(n - k + 1)

    logs = log_binomial(first, values) + log_binomial(total - first, second - values) - log_binomial(total, second)
    masses = np.exp(logs)
    return min(1.0, float(masses[values >= both].sum())), min(1.0, float(masses[values <= both].sum()))


def dependence(first: Flags, second: Flags) -> float:
    """Two-sided p-value of Fisher's exact test of independence of two flags of the same pairs."""
    return min(1.0, 2.0 * min(fisher(int((first & second).sum()), int(first.sum()), int(second.sum()), len(first))))


def more_equal(within: Flags, across: Flags) -> float:
    """One-sided p-value: are the pairs `within` equal more often than independent pairs `across`?"""
    total = len(within) + len(across)
    return fisher(int(within.sum()), int(within.sum() + across.sum()), len(within), total)[0]


def equal_pairs(first: Outcomes, second: Outcomes) -> tuple[Flags, Flags]:
    """Whether runs are equal: of the first half of the pairs with their own partner, of the rest with the next one's.

    Each run enters one comparison, so that the flags are independent.
    """
    a, b = first.as_objects().tokens, second.as_objects().tokens
    if a is None or b is None:
        return np.zeros(0, bool), np.zeros(0, bool)
    half = len(a) // 2
    within = np.array([x == y for x, y in zip(a[:half], b[:half], strict=True)], dtype=bool)
    across = np.array([x == y for x, y in zip(a[half:-1:2], b[half + 1 :: 2], strict=False)], dtype=bool)
    return within, across
