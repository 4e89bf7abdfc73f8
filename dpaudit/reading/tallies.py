"""Vectors of usual values with other numbers between them: how many coordinates have which, and where the others lie.

An answer that stops early fills what it does not say with a value of its own, a sparse one is 0 nearly everywhere. What
speaks for x is then how often the usual values come and how large the others are, wherever they stand; column by column
the same is said many times over, and is learned as many times more slowly.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy

from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.log_ratios import DECIMALS
from dpaudit.reading.outcomes import Outcomes
from dpaudit.reading.threads import in_one_thread
from dpaudit.reading.vectors import Quadratic, floats

MOST_USUAL = 4  # values that are counted
USUAL_SHARE = 0.01  # of all coordinates, from which on a value is a usual one
TALLIED_DRAWS = 4_096  # draws, about, that the usual values and the scale of the others are taken from
FEWEST_OTHERS = 20  # other numbers among these
FARTHEST = 6.0  # spreads from its centre at which a column is clipped
RIDGE = 10.0  # draws' worth of evidence, about, for each coefficient being 0
STEPS, CLOSE = 12, 1e-6  # of Newton's method: at most, and the change of a coefficient that ends them


@dataclasses.dataclass(frozen=True)
class Tally:
    """A view of vectors of `width` coordinates.

    Columns: how many coordinates have each of the usual `values` (NaN may be one of them); the mean of the others less
    `centre`, over `spread`, clipped at `FARTHEST`, and 0 where there are none; the same again where it is negative.
    """

    values: FloatArray
    centre: float
    spread: float
    width: int

    def __call__(self, outcomes: Outcomes) -> Outcomes:
        numbers = outcomes.numbers
        counts, is_usual = [], np.zeros(numbers.shape, dtype=bool)
        for value in self.values.tolist():
            has_value = np.isnan(numbers) if np.isnan(value) else numbers == value
            counts.append(np.count_nonzero(has_value, axis=1))
            is_usual |= has_value
        with np.errstate(over="ignore"):  # clipped next
            z = np.clip((numbers - self.centre) / self.spread, -FARTHEST, FARTHEST)
        z[is_usual | np.isnan(z)] = 0.0
        others = np.maximum(numbers.shape[1] - np.sum(counts, axis=0), 1)
        mean = np.round(z.sum(axis=1) / others, DECIMALS)
        return Outcomes(np.stack([*counts, mean, np.minimum(mean, 0.0)], axis=1, dtype=float))

    @classmethod
    def between(cls, first: Outcomes, second: Outcomes) -> Tally | None:
        """The view of such vectors; None if there are no usual values, or few numbers beside them."""
        width = first.numbers.shape[1]
        step = max(1, (len(first) + len(second)) // TALLIED_DRAWS)
        some = np.concatenate([first.numbers[::step], second.numbers[::step]])
        if width < 2 or not some.size:
            return None
        found, counts = np.unique(some, return_counts=True)
        usual = np.argsort(-counts, kind="stable")[:MOST_USUAL]
        values = found[usual[counts[usual] >= max(USUAL_SHARE * some.size, 2.0)]]
        others = some[~np.isin(some, values) & np.isfinite(some)]
        if not len(values) or len(others) < FEWEST_OTHERS:
            return None
        low, centre, high = np.quantile(0.5 * others, [0.16, 0.5, 0.84]).tolist()  # of halves: nothing overflows
        spread = high - low
        return cls(values, 2.0 * centre, spread, width) if spread > 0.0 else None

    def to_dict(self) -> dict[str, Any]:
        numbers = {"centre": self.centre.hex(), "spread": self.spread.hex(), "width": self.width}
        return {"kind": "tally", "values": [float(value).hex() for value in self.values], **numbers}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Tally:
        centre, spread = float.fromhex(record["centre"]), float.fromhex(record["spread"])
        if not spread > 0.0:
            raise ValueError(f"spread must be positive, got {spread}.")
        return cls(floats(record["values"]), centre, spread, int(record["width"]))

    def values_of(self, column: int) -> None:
        return None

    def name_of(self, column: int) -> str:
        if column < len(self.values):
            return f"how many of the {self.width} coordinates of the output are {self.values[column]:g}"
        usual = ", ".join(f"{value:g}" for value in self.values)
        below = "" if column == len(self.values) else f" where it is below {self.centre:.6g}"
        return f"the mean of the coordinates of the output that are none of {usual}{below}"

    @property
    def of_columns(self) -> str:
        """What a column is."""
        usual = ", ".join(f"{value:g}" for value in self.values)
        return f"how many coordinates of the output are {usual}, or the mean of the others"


@in_one_thread
def fit_logistic(first: Outcomes, second: Outcomes) -> Quadratic | None:
    """The quadratic form of all columns that tells outcomes under x from those under x_prime best; None if none varies.

    By logistic regression with a ridge: no law of the columns is assumed. Of columns that say the same the ridge takes
    a part of each.
    """
    both = np.concatenate([first.numbers, second.numbers])
    if not np.all(np.isfinite(both)):
        return None
    centre, spread = both.mean(axis=0), both.std(axis=0)
    columns = np.flatnonzero(spread > 0.0)
    if not len(columns):
        return None
    centre, spread = centre[columns], spread[columns]
    low, high = centre - FARTHEST * spread, centre + FARTHEST * spread
    z = (np.clip(both[:, columns], low, high) - centre) / spread
    rows, others = np.triu_indices(len(columns))
    terms = np.concatenate([np.ones((len(z), 1)), z, z[:, rows] * z[:, others]], axis=1)
    label = np.repeat([1.0, 0.0], [len(first), len(second)])
    weight = np.repeat([0.5 / len(first), 0.5 / len(second)], [len(first), len(second)]) * len(both)
    ridge = np.diag([0.0, *np.full(terms.shape[1] - 1, RIDGE)])
    found = np.zeros(terms.shape[1])
    for _ in range(STEPS):
        probability = scipy.special.expit(terms @ found)
        gradient = terms.T @ (weight * (label - probability)) - ridge @ found
        curvature = (terms * (weight * probability * (1.0 - probability))[:, None]).T @ terms + ridge
        change = scipy.linalg.solve(curvature + 1e-9 * np.eye(len(found)), gradient, assume_a="pos")
        found = found + change
        if not np.all(np.isfinite(found)):
            return None
        if np.max(np.abs(change)) < CLOSE:
            break
    size = len(columns)
    matrix = np.zeros((size, size))
    matrix[rows, others] = found[1 + size :]
    vector = found[1 : 1 + size]
    return Quadratic(tuple(columns.tolist()), low, high, centre, spread, matrix, vector, both.shape[1])
