"""Scores: functions of the output that order outcomes by how much they speak for x.

A score only suggests where to guess. It is fitted on earlier draws, so validity never rests on it; a poor score costs
draws, not error rate. Each is plain data (`to_dict` / `score_from_dict`), so that a witness can be saved and replayed.

Conventions: `score(outcomes)` has shape (draws,); larger speaks for x (label 1), except for `Coordinate`, whose
direction is left to the rule. NaN means that the score has nothing to say (an outcome of another form, a NaN output).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from dpaudit.evidence.outcomes import Outcomes, canonical
from dpaudit.privacy.claims import FloatArray

LARGEST_LOG_RATIO = 12.0
RATIO_DECIMALS = 9
SINGLES = 4  # outputs of a batch on which a log density is tried alone


class Score(Protocol):
    """A function of the output, as data."""

    def __call__(self, outcomes: Outcomes) -> FloatArray: ...

    def to_dict(self) -> dict[str, Any]: ...

    def describe(self) -> str: ...


@dataclasses.dataclass(frozen=True)
class Coordinate:
    """One column of the numbers, as it is."""

    column: int
    columns: int

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        return outcomes.numbers[:, self.column]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "coordinate", "column": self.column, "columns": self.columns}

    def describe(self) -> str:
        return "the output" if self.columns == 1 else f"coordinate {self.column} of the output"


@dataclasses.dataclass(frozen=True)
class Histogram:
    """A piecewise constant log ratio of x to x_prime over one column, summed over the columns that carry one.

    `edges[k]` (increasing) cut column `columns[k]` into len(edges[k]) + 1 bins, with the log ratio `values[k]`; a bin
    holds its lower edge. NaN falls into a bin of its own, `values[k][-1]`. With one column this is a histogram, with
    several the log ratio of a product law (its coordinates taken as independent).
    """

    columns: tuple[int, ...]
    edges: tuple[FloatArray, ...]
    values: tuple[FloatArray, ...]
    width: int

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        total = np.zeros(len(outcomes))
        for column, edges, values in zip(self.columns, self.edges, self.values, strict=True):
            total += values[bin_of(outcomes.numbers[:, column], edges)]
        return total

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "histogram",
            "columns": list(self.columns),
            "edges": [[float(edge).hex() for edge in edges] for edges in self.edges],
            "values": [[float(value).hex() for value in values] for values in self.values],
            "width": self.width,
        }

    def describe(self) -> str:
        if len(self.columns) == 1:
            where = "the output" if self.width == 1 else f"coordinate {self.columns[0]} of the output"
            return f"the log ratio of {where} in {len(self.edges[0]) + 1} bins"
        return f"the summed log ratios of {len(self.columns)} coordinates"


@dataclasses.dataclass(frozen=True)
class Table:
    """The log ratio of each outcome seen before, by its canonical token; 0 for an outcome never seen.

    `shared` collects what was seen too rarely to have a ratio of its own: the log ratio of a new or rare outcome.
    """

    values: Mapping[str, float]
    shared: float = 0.0

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        tokens = tokens_of(outcomes)
        return np.fromiter((self.values.get(token, self.shared) for token in tokens), dtype=float, count=len(tokens))

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "table",
            "values": {key: float(value).hex() for key, value in self.values.items()},
            "shared": float(self.shared).hex(),
        }

    def describe(self) -> str:
        return f"the log ratio of the outcome in a table of {len(self.values)} outcomes"


@dataclasses.dataclass(frozen=True)
class Linear:
    """A weighted sum of the columns, each clipped to [low, high] (outliers of heavy-tailed noise say little)."""

    weights: FloatArray
    low: FloatArray
    high: FloatArray

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        # Not `@`: a matrix product rounds a row differently in different batches, and a rule may cut in between.
        return np.asarray((np.clip(outcomes.numbers, self.low, self.high) * self.weights).sum(axis=1))

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "linear",
            "weights": [float(weight).hex() for weight in self.weights],
            "low": [float(value).hex() for value in self.low],
            "high": [float(value).hex() for value in self.high],
        }

    def describe(self) -> str:
        return f"a weighted sum of the {len(self.weights)} coordinates of the output"


LogDensity = Callable[[Any, Any], NDArray[np.float64] | None]


@dataclasses.dataclass(frozen=True)
class LogRatio:
    """The mechanism's own log density on x minus that on x_prime, to `RATIO_DECIMALS` decimals.

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
        known = np.asarray(np.isfinite(outcomes.numbers).all(axis=1)) | (not self.is_integer)
        outputs = np.where(known[:, None], outcomes.numbers, 0.0).reshape(len(outcomes), *self.shape)
        outputs = outputs.astype(np.int64) if self.is_integer else outputs
        first, second = self._one_side(self.x, outputs), self._one_side(self.x_prime, outputs)
        with np.errstate(invalid="ignore"):  # impossible on both sides: says nothing
            ratio = np.clip(first - second, -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO)
        return np.where(known, np.round(ratio, RATIO_DECIMALS), math.nan)

    def _one_side(self, data: Any, outputs: NDArray[Any]) -> FloatArray:
        """The log density of each output, as it is for the output alone; NaN where the call fails.

        Validity: a value that depended on the rest of the batch would tell a mechanism from itself. The batch is only a
        shortcut: where the call fails on it, or a few outputs spread over it have another value alone, all are asked
        one by one.
        """

        def alone(k: int) -> float:
            value = self.log_density(data, outputs[k : k + 1])
            return math.nan if value is None else float(value[0])

        values = self.log_density(data, outputs)
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
    """The score that `to_dict` wrote; `log_density` and the inputs serve a `LogRatio`.

    Raises
    ------
    ValueError
        If the kind is unknown, or it is a log ratio and the subject has no log density.
    """
    kind = record["kind"]
    if kind == "coordinate":
        return Coordinate(int(record["column"]), int(record["columns"]))
    if kind == "histogram":
        edges = tuple(np.array([float.fromhex(edge) for edge in row]) for row in record["edges"])
        values = tuple(np.array([float.fromhex(value) for value in row]) for row in record["values"])
        return Histogram(tuple(record["columns"]), edges, values, int(record["width"]))
    if kind == "table":
        values_of = {key: float.fromhex(value) for key, value in record["values"].items()}
        return Table(values_of, float.fromhex(record["shared"]))
    if kind == "linear":
        rows = (np.array([float.fromhex(value) for value in record[name]]) for name in ("weights", "low", "high"))
        return Linear(*rows)
    if kind == "log_ratio" and log_density is not None:
        return LogRatio(log_density, x, x_prime, tuple(record["shape"]), bool(record["is_integer"]))
    if kind == "cells":
        from dpaudit.evidence.partition import cell_score_from_dict

        return cell_score_from_dict(record)
    raise ValueError(f"score must be of a known kind, got {kind!r}.")


def bin_of(column: FloatArray, edges: FloatArray) -> NDArray[np.intp]:
    """The bin of each value: how many edges are at most it; NaN gets the last index, len(edges) + 1."""
    index = np.searchsorted(edges, column, side="right")
    index[np.isnan(column)] = len(edges) + 1
    return index


def tokens_of(outcomes: Outcomes) -> list[str]:
    """The canonical tokens of outcomes: of the objects, or of the row of numbers that an output is."""
    if outcomes.tokens is not None:
        return [str(token) for token in outcomes.tokens]
    return [canonical(row) for row in outcomes.numbers.tolist()]  # flat, whatever the shape of one output


def histogram_edges(column: FloatArray, bins: int) -> FloatArray:
    """Edges that cut a sample into about `bins` bins of equal mass, with every frequent value (atom) in its own bin.

    A value that holds more than half of a bin's mass gets the edges (value, next double after it), so that what leaks
    by an exact value is seen as such.
    """
    finite = np.sort(column[~np.isnan(column)])
    if len(finite) == 0:
        return np.empty(0)
    levels = np.linspace(0.0, 1.0, bins + 1)[1:-1]
    edges = finite[np.minimum((levels * len(finite)).astype(int), len(finite) - 1)]
    values, counts = np.unique(finite, return_counts=True)
    atoms = values[counts > max(2.0, 0.5 * len(finite) / bins)]
    # A value cannot start a bin at -inf: nothing lies below it, and the bin up to the next double holds it already.
    edges = np.concatenate([edges, atoms, np.nextafter(atoms, math.inf)])
    return np.unique(edges[edges > -math.inf])


def shrunk_log_ratio(first: FloatArray, second: FloatArray, pseudo_count: float = 1.0) -> FloatArray:
    """Log ratio of two vectors of counts as shares of their sums, shrunk towards 0 by pseudo counts."""
    a, b = first + pseudo_count, second + pseudo_count
    ratio = np.log(a / (first.sum() + pseudo_count)) - np.log(b / (second.sum() + pseudo_count))
    return np.asarray(np.clip(ratio, -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO))


def fit_histogram(first: Outcomes, second: Outcomes, columns: tuple[int, ...], bins: int) -> Histogram:
    """A `Histogram` over the given columns from outcomes under x (`first`) and x_prime (`second`)."""
    all_edges, all_values = [], []
    for column in columns:
        a, b = first.numbers[:, column], second.numbers[:, column]
        edges = histogram_edges(np.concatenate([a, b]), bins)
        first_counts, second_counts = (
            np.bincount(bin_of(part, edges), minlength=len(edges) + 2).astype(float) for part in (a, b)
        )
        all_edges.append(edges)
        all_values.append(shrunk_log_ratio(first_counts, second_counts))
    return Histogram(columns, tuple(all_edges), tuple(all_values), first.numbers.shape[1])


def fit_table(first: Outcomes, second: Outcomes, largest: int) -> Table | None:
    """A `Table` of the outcomes seen at least twice; None if more than `largest` different ones are.

    What was seen once is pooled: its share under x and x_prime gives the ratio of a new or rare outcome.
    """
    counts: dict[str, list[float]] = {}
    for side, outcomes in enumerate((first, second)):
        for token in tokens_of(outcomes):
            counts.setdefault(token, [0.0, 0.0])[side] += 1.0
    frequent = {token: pair for token, pair in counts.items() if sum(pair) >= 2.0}
    if len(frequent) > largest or not frequent:
        return None
    rare = np.array([pair for pair in counts.values() if sum(pair) < 2.0]).reshape(-1, 2).sum(axis=0)
    table = np.array([*frequent.values(), rare.tolist()])
    ratios = shrunk_log_ratio(table[:, 0], table[:, 1])
    return Table(dict(zip(frequent, ratios[:-1].tolist(), strict=True)), float(ratios[-1]))


def fit_linear(first: Outcomes, second: Outcomes) -> Linear | None:
    """Fisher's linear discriminant on clipped columns, with a ridge; None if nothing varies or a value is NaN."""
    both = np.concatenate([first.numbers, second.numbers])  # (draws, columns)
    finite = np.where(np.isfinite(both), both, np.nan)
    if np.isnan(finite).any():
        return None
    low, high = np.quantile(finite, [0.02, 0.98], axis=0)
    clipped = np.clip(both, low, high)
    spread = clipped.std(axis=0)
    if not np.any(spread > 0.0):
        return None
    scaled = np.where(spread > 0.0, (clipped - clipped.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0), 0.0)
    a, b = scaled[: len(first)], scaled[len(first) :]
    within = (np.cov(a.T) + np.cov(b.T)).reshape(both.shape[1], both.shape[1]) / 2.0
    ridge = 1e-3 + both.shape[1] / len(both)  # shrinks the correlations that so few draws cannot tell from none
    weights = linalg.solve(within + ridge * np.eye(len(within)), a.mean(axis=0) - b.mean(axis=0), assume_a="pos")
    return Linear(np.where(spread > 0.0, weights / np.where(spread > 0.0, spread, 1.0), 0.0), low, high)
