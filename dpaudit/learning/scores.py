"""Scores: functions of the output that order outcomes by how much they speak for x.

A score only suggests where to guess. It is fitted on earlier draws, so validity never rests on it; a poor score costs
draws, not error rate. Each is plain data (`to_dict` / `score_from_dict`), so that a witness can be saved and replayed.

Conventions: `score(outcomes)` has shape (draws,); larger speaks for x (label 1), except for `Coordinate`, whose
direction is left to the rule. NaN means that the score has nothing to say (an outcome of another form, a NaN output).

Validity: the score of an output is a function of that output alone, to the last bit.

Here are the protocol, the scores that rest on others, and the way back from data. The others, by what they look at:
`histograms` (a coordinate, bins, a table of outcomes), `predicted` (what learners propose), `distances` (of a number
from a centre), `vectors` (sums and forms of coordinates), `trees`; `leaves`, `tallies` and `vectors.Summary` are views,
which make columns of what an output holds.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.boosted_trees import Trees
from dpaudit.learning.histograms import (
    Coordinate,
    Histogram,
    Remainder,
    Table,
)
from dpaudit.learning.predicted import Binned, Reduced
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.distances import Distance
from dpaudit.reading.expanded import ExpandedLayout
from dpaudit.reading.log_ratios import DECIMALS, LARGEST_LOG_RATIO
from dpaudit.reading.nested import Layout
from dpaudit.reading.outcomes import Outcomes
from dpaudit.reading.outlines import FORM, STRUCTURE, WHOLE
from dpaudit.reading.tallies import Tally
from dpaudit.reading.vectors import Linear, Nearness, Quadratic, Steps, Summary, floats

__all__ = [
    "LARGEST_LOG_RATIO",
    "Binned",
    "Coordinate",
    "Distance",
    "Histogram",
    "Linear",
    "LogDensity",
    "LogRatio",
    "Nearness",
    "Quadratic",
    "Reduced",
    "Remainder",
    "Score",
    "Table",
    "Trees",
    "View",
    "Viewed",
    "score_from_dict",
]

SINGLES = 4  # outputs of a batch on which a log density is tried alone


class Score(Protocol):
    """A function of the output, as data."""

    def __call__(self, outcomes: Outcomes) -> FloatArray: ...

    def to_dict(self) -> dict[str, Any]: ...

    def describe(self) -> str: ...


class View(Protocol):
    """Outcomes as columns of numbers, each output read by itself; as data."""

    def __call__(self, outcomes: Outcomes) -> Outcomes: ...

    def to_dict(self) -> dict[str, Any]: ...

    def name_of(self, column: int) -> str: ...

    def values_of(self, column: int) -> Mapping[float, str] | None:
        """The values that a column may have, with their names, where they stand for something; else None."""
        ...

    @property
    def of_columns(self) -> str:
        """What a column is."""
        ...


@dataclasses.dataclass(frozen=True)
class Viewed:
    """A score of numbers, on what a view shows of the outcomes. Scores with one view share what it shows."""

    view: View
    score: Score

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        return self.score(outcomes.seen_by(self.view))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "viewed", "view": self.view.to_dict(), "score": self.score.to_dict()}

    def describe(self) -> str:
        if isinstance(self.score, Coordinate):
            return self.view.name_of(self.score.column)
        if isinstance(self.score, Histogram) and len(self.score.columns) == 1:
            bins = len(self.score.edges[0]) + 1
            return f"the log ratio, in {bins} bins, of {self.view.name_of(self.score.columns[0])}"
        return f"{self.score.describe()} (a coordinate is {self.view.of_columns})"


LogDensity = Callable[[Any, Any], NDArray[np.float64] | None]


@dataclasses.dataclass(frozen=True)
class LogRatio:
    """The mechanism's own log density on x minus that on x_prime, to `DECIMALS` decimals.

    The rounding keeps the last bits out: where the exact ratio is constant, the computed one varies by rounding, and
    that depends on which doubles an input can give. What doubles leak is a question of its own, not one that a witness
    for the law on the real line should answer by accident.
    """

    log_density: LogDensity
    x: Any
    x_prime: Any
    shape: tuple[int, ...] = ()
    is_integer: bool = False

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        return outcomes.scored_by(self, functools.partial(self._of, outcomes))

    def _of(self, outcomes: Outcomes) -> FloatArray:
        outputs: NDArray[Any] = outcomes.numbers
        known: NDArray[np.bool_] | None = None
        if self.is_integer:  # a number that is none says nothing
            known = np.isfinite(outputs).all(axis=1)
            outputs = np.where(known[:, None], outputs, 0.0).astype(np.int64)
        outputs = outputs.reshape(len(outcomes), *self.shape)
        first, second = self._one_side(self.x, outputs), self._one_side(self.x_prime, outputs)
        with np.errstate(invalid="ignore"):  # impossible on both sides: says nothing
            ratio = np.clip(first - second, -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO).round(DECIMALS)
        return ratio if known is None else np.where(known, ratio, math.nan)

    def _one_side(self, data: Any, outputs: NDArray[Any]) -> FloatArray:
        """The log density of each output, as it is for the output alone; NaN where the call fails.

        Validity: a value that depended on the rest of the batch would tell a mechanism from itself. The batch is only a
        shortcut: where the call fails on it, or a few outputs spread over it have another value alone, all are asked
        one by one.
        """

        def alone(k: int) -> float:
            value = self.log_density(data, outputs[k : k + 1].copy())
            return math.nan if value is None else float(value[0])

        values = self.log_density(data, outputs.copy())  # it may write where it reads
        if values is not None and len(outputs) > 1:
            tried = np.unique(np.linspace(0, len(outputs) - 1, SINGLES).astype(int))
            singles = [alone(int(k)) for k in tried]
            # 1e-9: vectorised logarithms may differ from single ones in the last bits
            if not np.allclose(values[tried], singles, rtol=1e-9, atol=1e-9, equal_nan=True):
                values = None
        return values if values is not None else np.array([alone(k) for k in range(len(outputs))])

    def fitting(self, first: Outcomes, second: Outcomes) -> LogRatio:
        """The same ratio for outputs of the shape and kind of these."""
        is_integer = first.is_integer and second.is_integer
        if (self.shape, self.is_integer) == (first.shape, is_integer):
            return self  # the same object: rules that share a score share its evaluation
        return dataclasses.replace(self, shape=first.shape, is_integer=is_integer)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "log_ratio", "shape": list(self.shape), "is_integer": self.is_integer}

    def describe(self) -> str:
        return "the mechanism's own log density ratio"


def score_from_dict(record: Mapping[str, Any], log_density: LogDensity | None, x: Any, x_prime: Any) -> Score:
    """The score that `to_dict` wrote; `log_density` and the inputs serve a `LogRatio`, the inputs a `Nearness`.

    Raises
    ------
    ValueError
        If the kind is unknown, it is a log ratio and the subject has no log density, or it is a nearness and the inputs
        are of another shape.
    """
    kind = record["kind"]
    if kind == "coordinate":
        return Coordinate(int(record["column"]), int(record["columns"]))
    if kind == "distance":
        return Distance.from_dict(record)
    if kind == "histogram":
        edges, values = (tuple(floats(row) for row in record[name]) for name in ("edges", "values"))
        return Histogram(tuple(record["columns"]), edges, values, int(record["width"]))
    if kind == "table":
        values_of = {key: float.fromhex(value) for key, value in record["values"].items()}
        outline = record.get("outline", WHOLE)
        if outline not in (WHOLE, FORM, STRUCTURE):
            raise ValueError(f"outline must be {WHOLE}, {FORM} or {STRUCTURE}, got {outline!r}.")
        return Table(values_of, float.fromhex(record["shared"]), outline)
    if kind == "linear":
        return Linear.from_dict(record)
    if kind == "quadratic":
        return Quadratic.from_dict(record)
    if kind == "trees":
        return Trees.from_dict(record)
    if kind == "viewed":
        shown = record["view"]
        return Viewed(_view_from_dict(shown), score_from_dict(record["score"], log_density, x, x_prime))
    if kind == "log_ratio" and log_density is not None:
        return LogRatio(log_density, x, x_prime, tuple(record["shape"]), bool(record["is_integer"]))
    if kind == "remainder":
        return Remainder(float.fromhex(record["modulus"]))
    if kind == "nearness":
        if record["order"] not in (1, 2):
            raise ValueError(f"order must be 1 or 2, got {record['order']!r}.")
        near = Nearness.between(x, x_prime, tuple(record["shape"]))
        if not near:
            raise ValueError(f"inputs must be numbers of shape {tuple(record['shape'])}, got others.")
        return near[int(record["order"]) - 1]
    if kind == "reduced":
        return Reduced.from_dict(record, x, x_prime)
    if kind == "binned":
        return Binned.from_dict(record, x, x_prime)
    if kind == "cells":
        from dpaudit.learning.partition import cell_score_from_dict

        return cell_score_from_dict(record)
    raise ValueError(f"score must be of a known kind, got {kind!r}.")


def _view_from_dict(record: Mapping[str, Any]) -> View:
    if record["kind"] == "layout":
        return Layout.from_dict(record)
    if record["kind"] == "expanded":
        return ExpandedLayout.from_dict(record)
    if record["kind"] == "tally":
        return Tally.from_dict(record)
    return Steps.from_dict(record) if record["kind"] == "steps" else Summary.from_dict(record)
