"""Scores that count: one coordinate as it is, log ratios in bins of coordinates, log ratios in a table of outcomes.

Conventions: see `dpaudit.learning.scores`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.edge_counts import BLOCK, EdgeCounter
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.log_ratios import shrunk_log_ratio
from dpaudit.reading.outcomes import Outcomes, canonical
from dpaudit.reading.outlines import WHOLE, outlines

TAIL_DRAWS = 16  # in the rarest bin of a histogram with fine tails, at least
MOST_RARE_ATOMS = 8  # values of less than half a bin's mass that get a bin all the same


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
class Remainder:
    """What is left of a single number modulo `modulus`, in [0, modulus]; NaN where the number is not finite.

    Exact of numbers from 0 on; of a negative one it is rounded, to `modulus` itself where that is nearest.
    """

    modulus: float

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        numbers = outcomes.numbers[:, 0]
        with np.errstate(invalid="ignore"):  # of an infinity
            if self.modulus != 2.0:
                return np.asarray(np.mod(numbers, self.modulus))
            # Several times as fast. Halves and doubles are exact, so it is the same number rounded once, except of
            # the negative number next to 0, whose half is rounded to 0.
            left = np.empty(len(numbers))
            for start in range(0, len(numbers), BLOCK):
                block, own = numbers[start : start + BLOCK], left[start : start + BLOCK]
                np.floor(np.multiply(block, 0.5, out=own), out=own)
                own *= -2.0
                own += block
                own[own < 0.0] = 2.0
            return left

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "remainder", "modulus": self.modulus.hex()}

    def describe(self) -> str:
        return f"the output modulo {self.modulus:g}"


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
        for k, column in enumerate(self.columns):
            total += self.values_of(outcomes.numbers[:, column], k)
        return total

    def values_of(self, numbers: FloatArray, k: int = 0) -> FloatArray:
        """The log ratios of numbers of its k-th column, shape (numbers,)."""
        return np.asarray(self.values[k][self._counters[k].index(numbers)])

    def counts(self, outcomes: Outcomes) -> NDArray[np.int64]:
        """How many outcomes fall into each bin of the first column, and NaN; of the shape of its values."""
        return self._counters[0].count(outcomes.numbers[:, self.columns[0]])

    @functools.cached_property
    def _counters(self) -> tuple[EdgeCounter, ...]:
        """Of each column."""
        return tuple(EdgeCounter(edges) for edges in self.edges)

    def only(self, positions: list[int]) -> Histogram:
        """The same over some of its columns, given by their positions among `columns`."""
        parts = ([row[k] for k in positions] for row in (self.edges, self.values))
        edges, values = (tuple(part) for part in parts)
        return Histogram(tuple(self.columns[k] for k in positions), edges, values, self.width)

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
    `outline` says what of an outcome is looked up: all of it, or one of its outlines (see `dpaudit.reading.outlines`).
    """

    values: Mapping[str, float]
    shared: float = 0.0
    outline: str = WHOLE

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        values: Mapping[Any, float] = self.values
        if outcomes.tokens is None and self.outline == WHOLE:
            values = self._by_bytes
            keys: list[Any] = bytes_of(outcomes.numbers)
        else:
            keys = tokens_of(outcomes, self.outline)
        return np.fromiter((values.get(key, self.shared) for key in keys), dtype=float, count=len(keys))

    @functools.cached_property
    def _by_bytes(self) -> dict[bytes, float]:
        """The values by the bytes of a row of numbers, for the tokens that are such rows: one token, one row."""
        result = {}
        for token, value in self.values.items():
            try:
                row = np.array([float(number) for number in token[1:-1].split(",")])
            except ValueError:  # the token of another object
                continue
            if canonical(row) == token:
                result[bytes_of(row[None, :])[0]] = value
        return result

    def to_dict(self) -> dict[str, Any]:
        record = {
            "kind": "table",
            "values": {key: float(value).hex() for key, value in self.values.items()},
            "shared": float(self.shared).hex(),
        }
        return record if self.outline == WHOLE else {**record, "outline": self.outline}

    def describe(self) -> str:
        what = "outcome" if self.outline == WHOLE else f"outcome's {self.outline}"
        return f"the log ratio of the {what} in a table of {len(self.values)}" + (
            " outcomes" if self.outline == WHOLE else ""
        )


def tokens_of(outcomes: Outcomes, outline: str = WHOLE) -> list[str]:
    """The canonical tokens of outcomes, or of their outlines: of the objects, or of the row of numbers that one is."""
    if outline != WHOLE:
        return outlines(outcomes, outline)
    if outcomes.tokens is not None:
        return [str(token) for token in outcomes.tokens]
    return [canonical(row) for row in outcomes.numbers.tolist()]  # flat, whatever the shape of one output


def bytes_of(numbers: FloatArray) -> list[bytes]:
    """Each row of numbers as bytes: equal for equal canonical tokens (all NaN are one), and different for others."""
    rows = np.array(numbers, order="C")
    rows[np.isnan(rows)] = math.nan
    size = rows.shape[1] * rows.itemsize
    whole = rows.tobytes()
    return [whole[start : start + size] for start in range(0, len(rows) * size, size)]


def histogram_edges(column: FloatArray, bins: int, tails: bool = False) -> FloatArray:
    """Edges that cut a sample into about `bins` bins of equal mass, with every frequent value (atom) in its own bin.

    With `tails` the outermost bins are halved again and again, as far as there are `TAIL_DRAWS` draws.

    A value that holds more than half of a bin's mass gets the edges (value, next double after it), so that what leaks
    by an exact value is seen as such.
    """
    finite = np.sort(column[~np.isnan(column)])
    if len(finite) == 0:
        return np.empty(0)
    levels = mass_levels(len(finite), bins, tails)
    edges = finite[np.minimum((levels * len(finite)).astype(int), len(finite) - 1)]
    # The first of each run of equal values (sorted already), and how long the run is.
    starts = np.flatnonzero(np.concatenate([[True], finite[1:] != finite[:-1]]))
    counts = np.diff(np.concatenate([starts, [len(finite)]]))
    is_atom = counts > max(2.0, 0.5 * len(finite) / bins)
    # Rarer ones too, where a value hardly ever occurs twice.
    often = np.flatnonzero(counts >= max(4.0, 4.0 * float(np.median(counts))))
    is_atom[often[np.argsort(-counts[often], kind="stable")[:MOST_RARE_ATOMS]]] = True
    atoms = finite[starts[is_atom]]
    # A value cannot start a bin at -inf: nothing lies below it, and the bin up to the next double holds it already.
    with np.errstate(over="ignore"):  # infinity follows the largest double
        edges = np.concatenate([edges, atoms, np.nextafter(atoms, math.inf)])
    return np.unique(edges[edges > -math.inf])


def mass_levels(draws: int, bins: int, tails: bool) -> FloatArray:
    """Shares of so many draws below the edges of bins of equal mass; `tails` as for `histogram_edges`."""
    levels = np.linspace(0.0, 1.0, bins + 1)[1:-1]
    if not tails:
        return levels
    rare = 0.5 ** np.arange(1.0, 1.0 + max(0.0, math.log2(max(draws, 1) / (bins * TAIL_DRAWS)))) / bins
    return np.concatenate([rare[::-1], levels, 1.0 - rare])


def fit_histogram(first: Outcomes, second: Outcomes, columns: tuple[int, ...], bins: int) -> Histogram:
    """A `Histogram` over columns, fine in both tails, from outcomes under x (`first`) and x_prime (`second`)."""
    return weighed_histogram(first, second, columns, bins, tails=True)[0]


def weighed_histogram(
    first: Outcomes,
    second: Outcomes,
    columns: tuple[int, ...],
    bins: int,
    own_edges: FloatArray | None = None,
    tails: bool = False,
) -> tuple[Histogram, FloatArray, FloatArray]:
    """`fit_histogram`, the information in each column, and by how many deviations it exceeds that of mere noise.

    The information is the difference of the fitted log ratio's means on the two sides, less what bins as many would
    show between two samples of one law: there it is about (1/n + 1/m) times a chi-square of (bins - 1) degrees.
    Where `own_edges` are given, every column is cut there; `tails` as for `histogram_edges`.
    """
    all_edges, all_values = [], []
    information, deviations = np.zeros(len(columns)), np.zeros(len(columns))
    scale = 1.0 / max(len(first), 1) + 1.0 / max(len(second), 1)
    for k, column in enumerate(columns):
        a, b = first.numbers[:, column], second.numbers[:, column]
        edges = histogram_edges(np.concatenate([a, b]), bins, tails) if own_edges is None else own_edges
        counter = EdgeCounter(edges)
        p, q = (counter.count(part).astype(float) for part in (a, b))
        values = shrunk_log_ratio(p, q)
        all_edges.append(edges)
        all_values.append(values)
        degrees = max(int(np.count_nonzero(p + q)) - 1, 1)
        raw = float(values @ (p / max(len(a), 1) - q / max(len(b), 1)))
        information[k] = raw - scale * degrees
        deviations[k] = (raw / scale - degrees) / math.sqrt(2.0 * degrees)
    return Histogram(columns, tuple(all_edges), tuple(all_values), first.numbers.shape[1]), information, deviations


def _all_differ(rows: FloatArray) -> bool:
    """Whether no two rows are equal, as far as single columns tell: in one of them no number comes twice."""
    return any(
        np.count_nonzero(np.isnan(ordered)) < 2 and not np.any(ordered[1:] == ordered[:-1])
        for ordered in map(np.sort, rows.T)
    )


def fit_table(first: Outcomes, second: Outcomes, largest: int, outline: str = WHOLE) -> Table | None:
    """A `Table` of the outcomes seen at least twice; None if more than `largest` different ones are, or none is.

    What was seen once is pooled: its share under x and x_prime gives the ratio of a new or rare outcome.
    """
    as_bytes = first.tokens is None and second.tokens is None and outline == WHOLE
    if as_bytes and _all_differ(np.concatenate([first.numbers, second.numbers])):
        return None
    counts: dict[Any, list[float]] = {}
    for side, outcomes in enumerate((first, second)):
        for key in bytes_of(outcomes.numbers) if as_bytes else tokens_of(outcomes, outline):
            counts.setdefault(key, [0.0, 0.0])[side] += 1.0
    frequent = {key: pair for key, pair in counts.items() if sum(pair) >= 2.0}
    if len(frequent) > largest or not frequent:
        return None
    rare = np.array([pair for pair in counts.values() if sum(pair) < 2.0]).reshape(-1, 2).sum(axis=0)
    table = np.array([*frequent.values(), rare.tolist()])
    ratios = shrunk_log_ratio(table[:, 0], table[:, 1])
    keys = [canonical(np.frombuffer(key)) for key in frequent] if as_bytes else list(frequent)
    return Table(dict(zip(keys, ratios[:-1].tolist(), strict=True)), float(ratios[-1]), outline)
