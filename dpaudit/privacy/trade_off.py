"""f-differential privacy: a trade-off function of the user's own as a claim.

The trade-off function of P and Q gives, for each false-positive rate, the smallest false-negative rate of any test of P
against Q. `FDP(f)` promises that it is at least f for (P, Q) and for (Q, P).

From f to lines. A test that says "Q" on the event S has the false-positive rate P(S) and the false-negative rate
1 - Q(S). That this is at least f(P(S)) for every S gives Q(S) - e^epsilon P(S) <= 1 - f(a) - e^epsilon a with a = P(S),
hence the privacy profile

    delta(epsilon) = sup over a in [0, 1] of 1 - f(a) - e^epsilon a.

The same holds with the inverse of f, since each direction of the promise is the inverse of the other: the smaller of
the two profiles is what is promised. For an f that is its own inverse both are equal, and the lines are all of the
promise (Dong, Roth and Su 2019, arXiv:1905.02383, propositions 5 and 6).

Rounding. A profile that is too small would refute sound mechanisms, so it is rounded up: f is replaced by a function of
straight pieces that is nowhere above it. Between two points of a grid a convex function lies above the chords of the
points to the left and to the right, drawn on; where they meet is the lowest place that f may have. The supremum over
straight pieces is the largest of their corners.
"""

from __future__ import annotations

import csv
import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import FloatArray, ProfileClaim, number_text

SLACK = 1e-9  # by which a function computed in doubles may leave its shape
ROUNDING = 1e-12  # relative and absolute, added to every delta: more than the error of its arithmetic
LARGEST_TABLE = 100_000  # points in a file
_TAIL = np.concatenate([np.geomspace(1e-300, 1e-16, 150), np.geomspace(1e-16, 0.5, 900)])
GRID = np.unique(np.concatenate([[0.0, 1.0], _TAIL, 1.0 - _TAIL[_TAIL > 1e-14], np.linspace(1e-3, 1.0 - 1e-3, 999)]))


@dataclasses.dataclass(frozen=True, eq=False)
class TradeOffProfile:
    """The privacy profile of a function of straight pieces; called with epsilon in [0, 700], it gives delta.

    Attributes
    ----------
    false_positive, false_negative : ndarray of float, shape (corners,)
        The corners, both in [0, 1].
    """

    false_positive: FloatArray
    false_negative: FloatArray

    def __call__(self, epsilon: float) -> float:
        factor = math.exp(epsilon)
        there = float(np.max(1.0 - self.false_negative - factor * self.false_positive))
        back = float(np.max(1.0 - self.false_positive - factor * self.false_negative))
        delta = max(0.0, min(there, back))
        return min(1.0, delta + ROUNDING * (1.0 + delta)) if delta > 0.0 else 0.0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TradeOffProfile):
            return NotImplemented
        return np.array_equal(self.false_positive, other.false_positive) and np.array_equal(
            self.false_negative, other.false_negative
        )

    def __hash__(self) -> int:
        return hash((self.false_positive.tobytes(), self.false_negative.tobytes()))


class FDP(ProfileClaim):
    """f-DP: for every event, in both directions, the false-negative rate is at least f of the false-positive rate.

    As in `ProfileClaim`, the parameter is a *scale* on epsilon: 1 is the promise itself, and a lower bound of 1.2 says
    that its privacy profile would have to be stretched by at least 1.2.

    Parameters
    ----------
    trade_off : callable or array_like of float, shape (points, 2)
        A function of the false-positive rate in [0, 1], convex, not increasing, and at most 1 minus its argument. It is
        asked at 3,000 points and rounded down between them. Or the corners of such a function, as pairs (false-positive
        rate, false-negative rate), straight in between; the first has rate 0 and the last one rate 1.
    name : str, optional
        How the claim is printed.
    scale : float, optional
        In [0, inf]; 1 by default.

    Raises
    ------
    UsageError
        If the function raises, returns what is no number of [0, 1], or does not have this shape.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> claim = FDP(lambda rate: norm.cdf(norm.isf(rate) - 1.0), name="f of mu = 1")
    >>> round(claim.profile(1.0), 5)  # GaussianDP(1.0).profile(1.0) is 0.126937
    0.12694
    >>> claim = FDP([(0.0, 0.9), (0.9, 0.0), (1.0, 0.0)])
    >>> round(claim.profile(0.0), 9)  # nobody is right by more than 0.1 over a coin's luck
    0.1
    """

    def __init__(self, trade_off: Callable[[float], float] | ArrayLike, name: str = "f-DP", scale: float = 1.0) -> None:
        corners = _below(trade_off) if callable(trade_off) else _listed(trade_off)
        super().__init__(TradeOffProfile(*corners), name, scale)

    def with_value(self, value: float) -> FDP:
        changed = object.__new__(FDP)
        ProfileClaim.__init__(changed, self.function, self.name, value)
        return changed

    def trade_off(self, false_positive: ArrayLike) -> FloatArray:
        """What the claim promises at false-positive rates in [0, 1]: the smallest false-negative rates, at scale 1.

        The function that was given, rounded down by at most what is lost between the points of the grid.
        """
        corners: Any = self.function
        rates = np.asarray(false_positive, dtype=float)
        return np.asarray(np.interp(rates, corners.false_positive, corners.false_negative), dtype=float)


def claim_of_table(text: str) -> FDP:
    """The claim of `tradeoff=FILE` on the command line: a CSV file of two columns, with or without a line of names.

    Raises
    ------
    UsageError
        If the file cannot be read, or its numbers are no trade-off function.
    """
    path = Path(text)
    try:
        with path.open(newline="", encoding="utf-8") as lines:
            rows = [row for row, _ in zip(csv.reader(lines), range(LARGEST_TABLE + 2), strict=False) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"tradeoff must be a CSV file that can be read, got {text!r} ({error}).") from error
    if rows and not _is_number(rows[0][0]):
        del rows[0]
    if len(rows) > LARGEST_TABLE:
        raise UsageError(f"tradeoff must have at most {LARGEST_TABLE:,} points, got more at {text!r}.")
    for place, row in enumerate(rows, start=1):
        if len(row) != 2 or not all(_is_number(cell) for cell in row):
            raise UsageError(f"tradeoff must have two numbers a line, got {','.join(row)[:60]!r} at point {place}.")
    return FDP([(float(first), float(second)) for first, second in rows], name=f"tradeoff={text}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _listed(points: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The corners of a function that is given by them."""
    try:
        table: NDArray[np.float64] = np.asarray(points, dtype=float)
    except (TypeError, ValueError):
        raise UsageError(f"trade_off must be a function or pairs of rates, got {points!r:.80}.") from None
    if table.ndim != 2 or table.shape[1] != 2 or len(table) < 2:
        raise UsageError(f"trade_off must have at least two pairs of rates, got an array of shape {table.shape}.")
    rates, values = table[:, 0].copy(), table[:, 1].copy()
    if not (rates[0] == 0.0 and rates[-1] == 1.0 and np.all(np.diff(rates) > 0.0)):
        raise UsageError(f"trade_off must have increasing rates from 0 to 1, got {_shown(rates)}.")
    _check_shape(rates, values)
    return rates, np.clip(values, 0.0, 1.0)


def _below(function: Callable[[float], float]) -> tuple[FloatArray, FloatArray]:
    """The corners of a function of straight pieces that is nowhere above a convex one; see the module's *Rounding*."""
    values = np.array([_value(function, rate) for rate in GRID.tolist()])
    _check_shape(GRID, values)
    slopes = np.diff(values) / np.diff(GRID)
    # Over the piece k: the chord of the piece to its left, drawn on, and that of the piece to its right.
    left = np.concatenate([[-np.inf], slopes[:-1]])
    right = np.concatenate([slopes[1:], [0.0]])  # a function that does not increase lies above its last value
    start, end, width = values[:-1], values[1:], np.diff(GRID)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        at = (end - right * width - start) / (left - right)  # from the left end of the piece
    at = np.where(np.isfinite(at) & (left < right), np.clip(at, 0.0, width), 0.0)
    lowest = np.minimum(end - right * (width - at), np.minimum(start, end - right * (width - at)))
    rates = np.concatenate([GRID, GRID[:-1] + at])
    lows = np.concatenate([values, lowest])
    order = np.lexsort((-lows, rates))
    # Where a corner is rounded to the next double its height may be off by a slope times that: take what is lower.
    return rates[order], np.clip(np.minimum.accumulate(lows[order] - SLACK * 1e-3), 0.0, 1.0)


def _value(function: Callable[[float], float], rate: float) -> float:
    try:
        value = float(function(rate))
    except (ArithmeticError, TypeError, ValueError) as error:
        raise UsageError(f"trade_off must be a number at every rate in [0, 1], got {error!r} at {rate:g}.") from error
    if not -SLACK <= value <= 1.0 + SLACK:  # False for NaN
        raise UsageError(f"trade_off must be in [0, 1], got {number_text(value)} at {rate:g}.")
    return value


def _check_shape(rates: FloatArray, values: FloatArray) -> None:
    """Refuse what is no trade-off function, with the first place where it is none."""
    refused: Sequence[tuple[str, Any]] = (
        ("be in [0, 1]", ~((values >= -SLACK) & (values <= 1.0 + SLACK))),
        ("be at most 1 minus the rate", values > 1.0 - rates + SLACK),
        ("not increase", np.concatenate([[False], np.diff(values) > SLACK])),
        ("be convex", _bends_down(rates, values)),
    )
    for what, wrong in refused:
        if np.any(wrong):
            k = int(np.argmax(wrong))
            raise UsageError(f"trade_off must {what}, got {values[k]:.10g} at {rates[k]:.10g}.")


def _bends_down(rates: FloatArray, values: FloatArray) -> Any:
    """Where a point lies above the chord of its neighbours by more than the slack."""
    inner = np.zeros(len(rates), dtype=bool)
    share = np.diff(rates)[:-1] / (rates[2:] - rates[:-2])
    inner[1:-1] = values[1:-1] > (1.0 - share) * values[:-2] + share * values[2:] + SLACK
    return inner


def _shown(rates: FloatArray) -> str:
    return f"{rates[:3].tolist()} … {rates[-1]:g}"
