"""Scores of vectors: weighted sums, quadratic forms of a few coordinates, and summaries of all of them.

Conventions: see `dpaudit.learning.scores`. Every sum over the columns of a row is taken by `sum(axis=1)` of an array in
row order, never by a matrix product: that rounds a row differently in different batches, and a rule may cut in between.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy  # whose rooms are imported when they are used
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.log_ratios import DECIMALS
from dpaudit.reading.outcomes import Outcomes
from dpaudit.reading.threads import in_one_thread

TAIL = 0.02  # share of the draws that is clipped at either end of a column
SPREAD_DRAWS = 1_024  # draws that the centre, the spread and the tails of a column are taken from
LARGEST_WORK = 1e9  # multiplications that a matrix of covariances may cost
LARGEST_SCALED = 1e100  # numbers from here on count as infinite where a column is scaled: their squares overflow
LARGEST_DEVIATION = 1e6  # standard deviations, in place of infinity
MOST_PAIRED = 6  # coordinates of a quadratic form
QUADRATIC_ROWS = ("low", "high", "centre", "spread", "vector")
SUMMARIES = (
    "sum",
    "sum of sizes",
    "sum of squares",
    "largest",
    "smallest",
    "position of the largest",
    "gap between the largest two",
    "number that are not 0",
    "number above their centres",
)
STANDARDISED = (*SUMMARIES[:5], SUMMARIES[8])
STEPS_CORRELATION = 0.4  # of neighbouring columns, on average, from which on their differences are looked at
ALIKE = 1.5  # largest over smallest spread, up to which columns have one in common


@dataclasses.dataclass(frozen=True)
class Linear:
    """A weighted sum of the columns, each clipped to [low, high] (outliers of heavy-tailed noise say little).

    A NaN counts as `fill` of its column.
    """

    weights: FloatArray
    low: FloatArray
    high: FloatArray
    fill: FloatArray

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        terms = np.clip(outcomes.numbers, self.low, self.high) * self.weights
        total = np.asarray(terms.sum(axis=1))
        rows = np.flatnonzero(np.isnan(total))
        if len(rows):
            total[rows] = np.where(np.isnan(terms[rows]), self.fill * self.weights, terms[rows]).sum(axis=1)
        return total

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "linear", **{name: _hexes(getattr(self, name)) for name in ("weights", "low", "high", "fill")}}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Linear:
        return cls(*(floats(record[name]) for name in ("weights", "low", "high", "fill")))

    def describe(self) -> str:
        return f"a weighted sum of the {len(self.weights)} coordinates of the output"


@dataclasses.dataclass(frozen=True)
class Nearness:
    """How much nearer a vector is to x than to x_prime: where noise is added to the input, this needs no learning.

    With d = x - x_prime, order 1 is the sum of |y - x_prime| - |y - x| over the sum of |d|, in [-1, 1]: the log density
    ratio of Laplace noise, or of randomised response on bits, up to its scale. Order 2 is the sum of
    d (2 y - x - x_prime) over the sum of d^2, that of normal noise. Both are rounded to `DECIMALS` decimals:
    the last bits of a sum tell which doubles an input can give. An output with a NaN or an infinity may score NaN.
    """

    x: FloatArray
    x_prime: FloatArray
    shape: tuple[int, ...]
    order: int

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        outputs, difference = outcomes.numbers, self.x - self.x_prime
        with np.errstate(invalid="ignore", over="ignore"):  # of infinite outputs
            if self.order == 1:
                terms, whole = np.abs(outputs - self.x_prime) - np.abs(outputs - self.x), np.abs(difference).sum()
            else:
                terms, whole = difference * (2.0 * outputs - self.x - self.x_prime), np.square(difference).sum()
            return np.asarray(np.round(terms.sum(axis=1) / whole, DECIMALS))

    @classmethod
    def between(cls, x: Any, x_prime: Any, shape: tuple[int, ...]) -> tuple[Nearness, ...]:
        """Those of two inputs that are finite real numbers of this shape, and differ; else none."""
        first, second = as_numbers(x, shape), as_numbers(x_prime, shape)
        if first is None or second is None:
            return ()
        with np.errstate(over="ignore"):
            squares = float(np.square(first - second).sum())
        return tuple(cls(first, second, shape, order) for order in (1, 2)) if 0.0 < squares < math.inf else ()

    def to_dict(self) -> dict[str, Any]:
        """Without the inputs, which may be records: whoever replays has them."""
        return {"kind": "nearness", "order": self.order, "shape": list(self.shape)}

    def describe(self) -> str:
        what = "the l1 distances" if self.order == 1 else "the squared distances"
        return f"how much nearer the output is to x than to x', by {what}"


def as_numbers(value: Any, shape: tuple[int, ...]) -> FloatArray | None:
    """An input as finite real numbers of this shape, flat; None if it is anything else."""
    if not isinstance(value, list | tuple | np.ndarray):
        return None
    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        return None
    if array.dtype.kind not in "biuf" or array.shape != shape or not np.all(np.isfinite(array)):
        return None
    return array.astype(float).ravel()


@dataclasses.dataclass(frozen=True)
class Quadratic:
    """The log density ratio of two normal laws of a few standardised and clipped coordinates.

    With z = (clip(y, low, high) - centre) / spread over `columns` (shape (m,), NaN counts as 0), the score is
    sum_ij matrix[i, j] z_i z_j + sum_i vector[i] z_i: it sees correlations, spreads and means.
    """

    columns: tuple[int, ...]
    low: FloatArray
    high: FloatArray
    centre: FloatArray
    spread: FloatArray
    matrix: FloatArray
    vector: FloatArray
    width: int

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        z = (np.clip(outcomes.numbers[:, list(self.columns)], self.low, self.high) - self.centre) / self.spread
        z = np.where(np.isnan(z), 0.0, z).T
        total = np.zeros(len(outcomes))
        for i in range(len(z)):
            inner = np.full(len(outcomes), self.vector[i])
            for j in range(len(z)):
                inner += self.matrix[i, j] * z[j]
            total += inner * z[i]
        return total

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "quadratic",
            "columns": list(self.columns),
            **{name: _hexes(getattr(self, name)) for name in QUADRATIC_ROWS},
            "matrix": [_hexes(row) for row in self.matrix],
            "width": self.width,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Quadratic:
        low, high, centre, spread, vector = (floats(record[name]) for name in QUADRATIC_ROWS)
        matrix = np.array([floats(row) for row in record["matrix"]])
        if matrix.shape != (len(vector), len(vector)):
            raise ValueError(f"matrix must have a row and a column a coordinate, got {matrix.shape}.")
        return cls(tuple(record["columns"]), low, high, centre, spread, matrix, vector, int(record["width"]))

    def describe(self) -> str:
        return f"a quadratic form of coordinates {', '.join(map(str, self.columns))} of the output"


@dataclasses.dataclass(frozen=True)
class Summary:
    """A view: some of `SUMMARIES` of each row, as columns.

    The sums, the largest, the smallest and the number above their centres are those of the standardised coordinates
    (NaN counts as 0); position, gap and number that are not 0 are those of the coordinates as they are (NaN is never
    the largest).
    """

    names: tuple[str, ...]
    centre: FloatArray
    spread: FloatArray

    def __call__(self, outcomes: Outcomes) -> Outcomes:
        raw = outcomes.numbers
        z = np.empty((0, 0))
        if set(self.names) & set(STANDARDISED):
            z = self._standardised(raw)
        columns = [self._column(name, raw, z) for name in self.names]
        return Outcomes(np.stack(columns, axis=1) if len(outcomes) else np.empty((0, len(columns))))

    def _column(self, name: str, raw: FloatArray, z: FloatArray) -> FloatArray:
        if name == "sum":
            # To nine decimals of a spread: where coordinates have a given sum nothing but rounding is left of it, and
            # what rounding gives away is the floating-point check's to say (see `scores` on the density ratio).
            return np.asarray(np.round(z.sum(axis=1), DECIMALS))
        if name == "sum of sizes":
            return np.asarray(np.abs(z).sum(axis=1))
        if name == "sum of squares":
            return np.asarray((z * z).sum(axis=1))
        if name == "largest":
            return np.asarray(z.max(axis=1))
        if name == "smallest":
            return np.asarray(z.min(axis=1))
        if name == "number above their centres":
            return np.asarray(np.count_nonzero(z > 0.0, axis=1), dtype=float)
        if name == "number that are not 0":
            return np.asarray(np.count_nonzero(raw, axis=1), dtype=float)
        known = np.where(np.isnan(raw), -math.inf, raw)
        if name == "position of the largest":
            return np.asarray(known.argmax(axis=1), dtype=float)
        two = np.partition(known, -2, axis=1)[:, -2:]
        with np.errstate(invalid="ignore", over="ignore"):  # inf - inf: no gap to speak of
            return np.asarray(two[:, 1] - two[:, 0])

    def _standardised(self, raw: FloatArray) -> FloatArray:
        """The standardised coordinates, where NaN counts as 0."""
        with np.errstate(over="ignore"):  # clipped next
            z = np.clip((raw - self.centre) / self.spread, -LARGEST_DEVIATION, LARGEST_DEVIATION)
        return np.where(np.isnan(z), 0.0, z) if np.isnan(z).any() else np.asarray(z)

    def standardised_variances(self, outcomes: Outcomes) -> FloatArray:
        """Variances of the standardised coordinates, where NaN counts as 0; shape (coordinates,)."""
        return self._standardised(outcomes.numbers).var(axis=0) if len(outcomes) else np.zeros(len(self.centre))

    def only(self, name: str) -> Summary:
        """The view of one of its columns."""
        return Summary((name,), self.centre, self.spread)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "summary",
            "names": list(self.names),
            "centre": _hexes(self.centre),
            "spread": _hexes(self.spread),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Summary:
        if not set(record["names"]) <= set(SUMMARIES):
            raise ValueError(f"summary must be one of {', '.join(SUMMARIES)}, got {record['names']!r}.")
        return cls(tuple(record["names"]), floats(record["centre"]), floats(record["spread"]))

    def name_of(self, column: int) -> str:
        return f"the {self.names[column]} of the {len(self.centre)} coordinates of the output"

    def values_of(self, column: int) -> None:
        return None

    @property
    def of_columns(self) -> str:
        """What a column is."""
        return f"a summary of the {len(self.centre)} coordinates"


@dataclasses.dataclass(frozen=True)
class Steps:
    """A view: the first coordinate, and the difference of each one to the one before; for running sums and paths.

    Differences are rounded to `DECIMALS` decimals of `spread`, the size of the columns (shape (columns,)): the
    last bits of a difference tell which doubles an input can give. inf - inf is NaN.
    """

    spread: FloatArray

    def __call__(self, outcomes: Outcomes) -> Outcomes:
        numbers = outcomes.numbers
        with np.errstate(invalid="ignore", over="ignore"):  # of infinite outputs
            steps = np.diff(numbers, axis=1)
            steps = np.round(steps / self.spread[1:], DECIMALS) * self.spread[1:]
        return Outcomes(np.concatenate([numbers[:, :1], steps], axis=1))

    @classmethod
    def between(cls, first: Outcomes, second: Outcomes) -> Steps | None:
        """The view, if neighbouring columns of these outcomes are alike enough for their differences to say more."""
        if first.numbers.shape[1] < 3:
            return None
        scales = Scales.of(first.numbers, second.numbers)
        some = slice(0, SPREAD_DRAWS)
        z = scales.standardised(np.concatenate([first.numbers[some], second.numbers[some]]))
        alike = float(np.mean(z[:, 1:] * z[:, :-1]))
        return cls(scales.divisor) if alike >= STEPS_CORRELATION else None

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "steps", "spread": _hexes(self.spread)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Steps:
        return cls(floats(record["spread"]))

    def name_of(self, column: int) -> str:
        return f"coordinate {column} of the output" + (f" less coordinate {column - 1}" if column else "")

    def values_of(self, column: int) -> None:
        return None

    @property
    def of_columns(self) -> str:
        """What a column is."""
        return "a number less the one before"


def quantile_of_known(numbers: FloatArray, share: float) -> FloatArray:
    """A quantile of each column, shape (draws, columns), NaN left out; each has a number.

    The same as numpy's `nanquantile`, which goes through columns one by one.
    """
    ordered = np.sort(numbers, axis=0)  # NaN comes last
    place = share * (np.count_nonzero(~np.isnan(ordered), axis=0) - 1)
    below = np.floor(place).astype(np.intp)
    columns = np.arange(numbers.shape[1])
    low, high = ordered[below, columns], ordered[np.ceil(place).astype(np.intp), columns]
    part, gap = place - below, high - low
    return np.asarray(np.where(part < 0.5, low + gap * part, high - gap * (1.0 - part)))


@dataclasses.dataclass(frozen=True)
class Scales:
    """Of every column of two samples: the clips, the centre and the spread of what is clipped; (columns,) each.

    `spread` is 0 where nothing varies. From every so many draws, about `SPREAD_DRAWS` in all: scales only standardise.
    """

    low: FloatArray
    high: FloatArray
    centre: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, first: FloatArray, second: FloatArray) -> Scales:
        step = max(1, (len(first) + len(second)) // SPREAD_DRAWS)
        both = np.concatenate([first[::step], second[::step]])
        finite = np.where(np.abs(both) < LARGEST_SCALED, both, np.nan)
        if np.isnan(finite).any():
            bare = np.isnan(finite).all(axis=0)
            finite[:, bare] = 0.0
            low, high = (quantile_of_known(finite, share) for share in (TAIL, 1.0 - TAIL))
        else:
            low, high = np.quantile(finite, [TAIL, 1.0 - TAIL], axis=0)
        clipped = np.clip(finite, low, high)
        return cls(low, high, np.nanmean(clipped, axis=0), np.nanstd(clipped, axis=0))

    def standardised(self, numbers: FloatArray) -> FloatArray:
        """Clipped, centred, over the spread; 0 for NaN and where nothing varies."""
        z = (np.clip(numbers, self.low, self.high) - self.centre) / self.divisor
        return np.asarray(np.where(np.isnan(z) | (self.spread == 0.0), 0.0, z))

    @property
    def divisor(self) -> FloatArray:
        """The spread, 1 where it is 0."""
        return np.asarray(np.where(self.spread > 0.0, self.spread, 1.0))


@in_one_thread
def fit_linear(first: Outcomes, second: Outcomes, diagonal: bool = False) -> Linear | None:
    """Fisher's linear discriminant on clipped columns, with a ridge; None if nothing varies.

    `diagonal` takes the columns as uncorrelated: the better form where the draws are too few to tell correlations, and
    the only one where a matrix of them would cost more than `LARGEST_WORK`.
    """
    scales = Scales.of(first.numbers, second.numbers)
    if not np.any(scales.spread > 0.0):
        return None
    a, b = scales.standardised(first.numbers), scales.standardised(second.numbers)
    draws, columns = len(a) + len(b), a.shape[1]
    difference = a.mean(axis=0) - b.mean(axis=0)
    if diagonal or not is_affordable(draws, columns):
        weights = difference / (0.5 * (a.var(axis=0) + b.var(axis=0)) + 1e-3)
    else:
        within = (np.cov(a.T) + np.cov(b.T)).reshape(columns, columns) / 2.0
        ridge = 1e-3 + columns / draws  # shrinks the correlations that so few draws cannot tell from none
        weights = scipy.linalg.solve(within + ridge * np.eye(columns), difference, assume_a="pos")
    weights = np.where(scales.spread > 0.0, weights / scales.divisor, 0.0)
    return Linear(weights, scales.low, scales.high, scales.centre)


def fit_even(first: Outcomes, second: Outcomes) -> Linear | None:
    """The sum of the columns that differ most in their means, each with its sign; None if it is one column or none.

    Where many columns say as much as each other, weights that are all learned are noise. As many columns are taken as
    make the sum differ most, by standard errors, if chance gave each of them one. Columns count in units of their
    spreads, or of the spread that they have about in common.
    """
    scales = Scales.of(first.numbers, second.numbers)
    deviations = _shifts(scales.standardised(first.numbers), scales.standardised(second.numbers))
    order = np.argsort(-np.abs(deviations), kind="stable")
    sums = np.cumsum(np.abs(deviations[order]) - 1.0) / np.sqrt(np.arange(1, len(order) + 1))
    chosen = order[: int(np.argmax(sums)) + 1]
    if len(chosen) < 2 or sums.max() <= 0.0:
        return None
    spread = scales.divisor
    if spread[chosen].max() < ALIKE * spread[chosen].min():
        spread = np.full(len(spread), float(np.median(spread[chosen])))
    weights = np.zeros(len(spread))
    weights[chosen] = np.sign(deviations[chosen]) / spread[chosen]
    return Linear(weights, scales.low, scales.high, scales.centre)


def is_affordable(draws: int, columns: int) -> bool:
    """Whether the covariances of so many columns are worth their cost, and there are draws to tell them."""
    return draws * columns**2 <= LARGEST_WORK and (columns <= 64 or draws >= columns)


@in_one_thread
def fit_quadratic(first: Outcomes, second: Outcomes) -> Quadratic | None:
    """A `Quadratic` of the pairs of coordinates whose correlation differs most; None if none differs clearly.

    Clearly: by more than the largest of so many differences would by chance.
    """
    scales = Scales.of(first.numbers, second.numbers)
    varying = np.flatnonzero(scales.spread > 0.0)
    draws = len(first) + len(second)
    if len(varying) < 2 or not draws * len(varying) ** 2 <= 4.0 * LARGEST_WORK:
        return None
    a, b = (scales.standardised(part.numbers)[:, varying] for part in (first, second))
    columns = _paired(a, b)
    if not columns:
        return None
    laws = []
    for side in (a[:, columns], b[:, columns]):
        covariance = np.cov(side.T) + (0.02 + 2.0 / len(side)) * np.eye(len(columns))
        inverse = scipy.linalg.inv(covariance)
        laws.append((inverse, inverse @ side.mean(axis=0)))
    chosen = varying[columns]
    low, high, centre, spread = scales.low[chosen], scales.high[chosen], scales.centre[chosen], scales.spread[chosen]
    matrix, vector = -0.5 * (laws[0][0] - laws[1][0]), laws[0][1] - laws[1][1]
    return Quadratic(tuple(chosen.tolist()), low, high, centre, spread, matrix, vector, first.numbers.shape[1])


def _paired(a: FloatArray, b: FloatArray) -> list[int]:
    """The columns of the pairs whose correlations differ clearly between two standardised samples, the clearest first.

    Products of the coordinates are compared by their means and standard errors.
    """
    count = a.shape[1]
    # Squares of products need no array of their own: (z_i z_j)^2 = z_i^2 z_j^2.
    means = [side.T @ side / len(side) for side in (a, b)]
    squares = [(side**2).T @ (side**2) / len(side) for side in (a, b)]
    errors = sum(
        np.maximum(square - mean**2, 0.05) / len(side)
        for mean, square, side in zip(means, squares, (a, b), strict=True)
    )
    deviations = np.triu(np.abs(means[0] - means[1]) / np.sqrt(errors), k=1)
    best = np.argsort(-deviations, axis=None, kind="stable")[:MOST_PAIRED]
    limit = math.sqrt(2.0 * math.log(max(count * (count - 1) / 2, 1.0))) + 1.5
    chosen: list[int] = []
    for flat in best.tolist():
        pair = divmod(flat, count)
        new = [k for k in pair if k not in chosen]
        if deviations[pair] < limit or len(chosen) + len(new) > MOST_PAIRED:
            break
        chosen += new
    return chosen


def screened(first: FloatArray, second: FloatArray, most: int) -> NDArray[np.int_]:
    """The columns, at most `most`, whose means, sizes or most frequent value differ most; increasing.

    A look that costs a few passes over the numbers, for vectors too long to make a histogram of every coordinate.
    """
    columns = first.shape[1]
    if columns <= most:
        return np.arange(columns)
    scales = Scales.of(first, second)
    a, b = scales.standardised(first), scales.standardised(second)
    deviations = np.maximum(_deviations(a, b), _deviations(np.abs(a), np.abs(b)))
    both = np.concatenate([first[: len(second)], second[: len(first)]])
    repeats = both[1:] == both[:-1]  # neighbours are as good as any two draws
    with_atom = np.flatnonzero(repeats.any(axis=0))
    if len(with_atom):
        value = both[repeats[:, with_atom].argmax(axis=0), with_atom]
        a, b = ((part[:, with_atom] == value).astype(float) for part in (first, second))
        deviations[with_atom] = np.maximum(deviations[with_atom], _deviations(a, b))
    absent_a, absent_b = np.isnan(first), np.isnan(second)
    if absent_a.any() or absent_b.any():
        deviations = np.maximum(deviations, _deviations(absent_a.astype(float), absent_b.astype(float)))
    return np.sort(np.argsort(-deviations, kind="stable")[:most])


def _deviations(a: FloatArray, b: FloatArray) -> FloatArray:
    """How many standard errors the columns' means differ by."""
    return np.abs(_shifts(a, b))


def _shifts(a: FloatArray, b: FloatArray) -> FloatArray:
    """Standard errors by which the means of the columns of `a` are above those of `b`."""
    error = np.sqrt((a.var(axis=0) + 0.01) / len(a) + (b.var(axis=0) + 0.01) / len(b))
    return np.asarray((a.mean(axis=0) - b.mean(axis=0)) / error)


def _hexes(values: FloatArray) -> list[str]:
    return [float(value).hex() for value in values]


def floats(values: list[str]) -> FloatArray:
    """The numbers that were written as hexadecimal texts."""
    return np.array([float.fromhex(value) for value in values])
