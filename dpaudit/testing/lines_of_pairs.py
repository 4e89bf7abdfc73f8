"""The lines of many pairs (`dpaudit.testing.table_lines`) by what they are promised: of one family or of several.

Every claim is served through what `Claim` says of it, so a class of the user's own is too:

* a claim that leaves the anchor free (`anchored`), or promises Renyi divergences, has `FreeLines` of its family;
* pure and approximate claims are `OwnLines` together, since their parameter is the epsilon of their line;
* any other claim has one line at each value of its parameter (`CurveLines`).

Validity. Each pair is judged by the lines of its own claim, at its own level. To put families together changes neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import LARGEST_EPSILON, Claim, FloatArray
from dpaudit.privacy.pair_budgets import PairBudgets, has_own_line
from dpaudit.testing.table_lines import (
    FreeLines,
    IntArray,
    OwnLines,
    PilotRecords,
    Record,
    TableLines,
    lines_at,
    value_grid,
)


def lines_of(budgets: PairBudgets) -> TableLines:
    """The lines of pairs with these budgets, which are all finite.

    Raises
    ------
    UsageError
        If a family has no lines, or they are none: see `table_lines.lines_at`.
    """
    is_own = np.array([has_own_line(family) for family in budgets.families])[budgets.family]
    of_family = [(k, np.flatnonzero(~is_own & (budgets.family == k))) for k in range(len(budgets.families))]
    groups = [(k, pairs) for k, pairs in [(-1, np.flatnonzero(is_own)), *of_family] if len(pairs)]
    parts: list[TableLines] = []
    for k, pairs in groups:
        values = budgets.values[pairs]
        if k < 0:
            parts.append(OwnLines(values, budgets.deltas[pairs], budgets.report_delta))
        else:
            family = budgets.families[k]
            is_free = family.anchored or family.family == "renyi"
            if family.family == "renyi" and not family.orders:
                raise UsageError(f"orders of {type(family).__name__} must be Renyi orders above 1, got none.")
            parts.append((FreeLines if is_free else CurveLines)(family, values, budgets.report_delta))
    return parts[0] if len(parts) == 1 else MixedLines(parts, [pairs for _, pairs in groups])


class CurveLines(OwnLines):
    """A family with one line at each value of a parameter that is not its epsilon: what is bounded is this parameter.

    Parameters
    ----------
    family : Claim
        Of any value.
    budget : array of float, shape (pairs,)
        In [0, inf).
    report_delta : float
        At which bounds on epsilon are reported.
    """

    def __init__(self, family: Claim, budget: FloatArray, report_delta: float) -> None:
        self._values = value_grid(np.unique(budget))
        epsilon, delta = (np.maximum.accumulate(side) for side in lines_at(family, self._values, 0.0))
        self._lines = np.minimum(epsilon, LARGEST_EPSILON), delta  # e^700 to 1 is what no test rejects
        tested = np.searchsorted(self._values, budget)
        super().__init__(self._lines[0][tested], self._lines[1][tested], report_delta, is_split=True)
        self.budget = budget

    def bounds(self, record: Record) -> tuple[FloatArray, FloatArray]:
        r_lower, s_lower, _ = self._limits(record)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = record.sides / 2.0 / s_lower
        # The last value that is rejected: the first one, which is 0, counts as such.
        low, high = np.zeros(len(share), dtype=np.int64), np.full(len(share), len(self._values))
        while np.any(high - low > 1):
            middle = (low + high) // 2
            epsilon, delta = (side[middle] for side in self._lines)
            limit = scipy.special.expit(epsilon) + self._extra(share, delta) * scipy.special.expit(-epsilon)
            low, high = np.where(r_lower > limit, middle, low), np.where(r_lower > limit, high, middle)
        return self._values[low], self._epsilon_lower(record, self.delta)


class MixedLines(TableLines):
    """Pairs of several families, each with the lines of its own.

    Parameters
    ----------
    parts : sequence of TableLines
    pairs : sequence of array of int, shape (pairs of a part,)
        Increasing positions of the pairs of each part: all of them together are every pair once.
    """

    def __init__(self, parts: Sequence[TableLines], pairs: Sequence[IntArray]) -> None:
        self._parts, self._pairs = parts, pairs
        self._part = self._joined(np.full(len(part.budget), k) for k, part in enumerate(parts))
        self.budget = self._joined(part.budget for part in parts)
        self.delta = parts[0].delta
        self.is_free = any(part.is_free for part in parts)

    def _joined(self, found: Iterable[NDArray[Any]]) -> NDArray[Any]:
        """What each part gives of its pairs, in the order of all."""
        return np.concatenate(list(found))[np.argsort(np.concatenate(self._pairs))]

    def best(self, pairs: IntArray, seen: PilotRecords) -> tuple[IntArray, FloatArray]:
        place, merit = np.zeros(len(pairs), dtype=np.int64), np.zeros(len(pairs))
        part_of = self._part[pairs]
        for k in np.unique(part_of).tolist():
            rows = np.flatnonzero(part_of == k)
            within = np.searchsorted(self._pairs[k], pairs[rows])
            place[rows], merit[rows] = self._parts[k].best(within, seen.of(rows))
        return place, merit

    def bounds(self, record: Record) -> tuple[FloatArray, FloatArray]:
        found = [part.bounds(record.of(pairs)) for part, pairs in zip(self._parts, self._pairs, strict=True)]
        return self._joined(one[0] for one in found), self._joined(one[1] for one in found)

    def log_p(self, record: Record) -> FloatArray:
        found = (part.log_p(record.of(pairs)) for part, pairs in zip(self._parts, self._pairs, strict=True))
        return self._joined(found)

    def line(self, record: Record, pair: int) -> tuple[float, float, float]:
        k = int(self._part[pair])
        return self._parts[k].line(record.of(self._pairs[k]), int(np.searchsorted(self._pairs[k], pair)))

    def losses(
        self, labelled: int, level: float, event_mass: float, probability: float, guesses_quantile: float
    ) -> FloatArray:
        options = labelled, level, event_mass, probability, guesses_quantile
        return self._joined(part.losses(*options) for part in self._parts)
