"""f-differential privacy: a trade-off function of the user's own as a claim.

The trade-off function T(P, Q) gives, for each false-positive rate, the smallest false-negative rate of any test of P
against Q. `FDP(f)` promises T(P, Q) >= f and T(Q, P) >= f. `FDP(f, ordered=True)` promises T(P, Q) >= f alone, and
`FDP(add=f, remove=g)` promises T(P, Q) >= f and T(Q, P) >= g where x' is x and one more record.

From f to lines. A test that says "Q" on the event S has the false-positive rate P(S) and the false-negative rate
1 - Q(S). T(P, Q) >= f says that 1 - Q(S) >= f(P(S)) for every S. With a = P(S) this bounds one order of the pair:

    Q(S) - e^epsilon P(S) <= sup over a in [0, 1] of 1 - f(a) - e^epsilon a.

The same inequality bounds the other order. A test that says "P" on S has a = 1 - P(S) and says Q(S) >= f(a):

    P(S) - e^epsilon Q(S) <= sup over a in [0, 1] of 1 - a - e^epsilon f(a).

So one trade-off function gives a line of *each* order at each epsilon >= 0. These lines are all of the promise (Dong,
Roth and Su 2019, arXiv:1905.02383, propositions 5 and 6). Of two functions each order keeps the smaller delta. `FDP(f)`
promises the smaller supremum in both orders; the two are equal where f is its own inverse.

Rounding. A profile that is too small would refute sound mechanisms, so it is rounded up: f is replaced by a function of
straight pieces that is nowhere above it. Between two points of a grid a convex function lies above the chords of the
points to the left and to the right, drawn on; where they meet is the lowest place that f may have. The supremum over
straight pieces is the largest of their corners.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.errors import UsageError
from dpaudit.files import read_rows
from dpaudit.privacy.claims import LARGEST_EPSILON, TOLERANCE, DirectedProfile, FloatArray, ProfileClaim, number_text
from dpaudit.privacy.neighbours import records_added
from dpaudit.privacy.pairs import short_form

ROUNDING = 1e-12  # relative and absolute, added to every delta: more than the error of its arithmetic
MAX_TABLE = 100_000  # points in a file
_TAIL = np.concatenate([np.geomspace(1e-300, 1e-16, 150), np.geomspace(1e-16, 0.5, 900)])
GRID = np.unique(np.concatenate([[0.0, 1.0], _TAIL, 1.0 - _TAIL[_TAIL > 1e-14], np.linspace(1e-3, 1.0 - 1e-3, 999)]))
Curve = Callable[[float], float] | ArrayLike
_OPTION = re.compile(r"(.*),\s*(ordered|remove)\s*=(.*)", re.DOTALL)


@dataclasses.dataclass(frozen=True, eq=False)
class TradeOffProfile:
    """A trade-off function f of straight pieces, and the profiles that T(P, Q) >= f promises; above 700 nats as at 700.

    Attributes
    ----------
    false_positive, false_negative : ndarray of float, shape (corners,)
        The corners, both in [0, 1].
    """

    false_positive: FloatArray
    false_negative: FloatArray

    def first(self, epsilon: float) -> float:
        """The bound of P(S) - e^epsilon Q(S)."""
        return _rounded_up(1.0 - self.false_positive - math.exp(min(epsilon, LARGEST_EPSILON)) * self.false_negative)

    def second(self, epsilon: float) -> float:
        """The bound of Q(S) - e^epsilon P(S)."""
        return _rounded_up(1.0 - self.false_negative - math.exp(min(epsilon, LARGEST_EPSILON)) * self.false_positive)

    def at(self, false_positive: ArrayLike) -> FloatArray:
        """The function at false-positive rates in [0, 1]."""
        rates = np.asarray(false_positive, dtype=float)
        return np.asarray(np.interp(rates, self.false_positive, self.false_negative), dtype=float)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TradeOffProfile):
            return NotImplemented
        return np.array_equal(self.false_positive, other.false_positive) and np.array_equal(
            self.false_negative, other.false_negative
        )

    def __hash__(self) -> int:
        return hash((self.false_positive.tobytes(), self.false_negative.tobytes()))


@dataclasses.dataclass(frozen=True)
class OrderProfile:
    """The privacy profile of one order: the bound of P(S) - e^epsilon Q(S) from what trade-off functions promise.

    Attributes
    ----------
    there, back : TradeOffProfile or None
        What T(P, Q) and T(Q, P) are at least; at least one of them is given.
    """

    there: TradeOffProfile | None
    back: TradeOffProfile | None

    def __call__(self, epsilon: float) -> float:
        there = 1.0 if self.there is None else self.there.first(epsilon)
        return there if self.back is None else min(there, self.back.second(epsilon))


@dataclasses.dataclass(frozen=True)
class AddRemoveProfile(DirectedProfile):
    """The profiles of two datasets of which the second one has one more record, whichever is x."""


class FDP(ProfileClaim):
    """f-DP: for every event the false-negative rate is at least f of the false-positive rate.

    `FDP(f)` promises this in both orders: 1 - Q(S) >= f(P(S)) and 1 - P(S) >= f(Q(S)) for every event S.

    `FDP(f, ordered=True)` promises the first inequality alone, T(M(x), M(x')) >= f for the pair (x, x') as it is given.

    `FDP(add=f, remove=g)` promises f of adding a record and g of removing one: T(M(d), M(d + record)) >= f and
    T(M(d + record), M(d)) >= g. Every pair is held to both. `for_pair` tells which of its inputs has the record; inputs
    are read as `dpaudit.privacy.neighbours` reads them. Without `add` or `remove` that order is promised nothing.

    The parameter is that of `ProfileClaim`: a *scale* on epsilon, of which 1 is the promise itself.

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
    ordered : bool, optional
        Whether `trade_off` is promised of (x, x') alone.
    add, remove : callable or array_like of float, shape (points, 2), optional
        As `trade_off`, and instead of it.

    Raises
    ------
    UsageError
        If a function raises, returns what is no number of [0, 1], or does not have this shape; or at a pair whose
        inputs are not known to differ by one record, where `add` or `remove` is given.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> claim = FDP(lambda rate: norm.cdf(norm.isf(rate) - 1.0), name="f of mu = 1")
    >>> round(claim.profile(1.0), 5)  # GaussianDP(1.0).profile(1.0) is 0.126937
    0.12694
    >>> claim = FDP([(0.0, 0.9), (0.9, 0.0), (1.0, 0.0)])
    >>> round(claim.profile(0.0), 9)  # nobody is right by more than 0.1 over a coin's luck
    0.1
    >>> claim = FDP([(0.0, 0.9), (0.5, 0.0), (1.0, 0.0)], ordered=True)
    >>> [round(claim.in_order(reverse).profile(1.0), 3) for reverse in (False, True)]
    [0.5, 0.1]
    """

    def __init__(
        self,
        trade_off: Curve | None = None,
        name: str | None = None,
        scale: float = 1.0,
        *,
        ordered: bool = False,
        add: Curve | None = None,
        remove: Curve | None = None,
    ) -> None:
        has_two = add is not None or remove is not None
        if not isinstance(ordered, bool):
            raise UsageError(f"ordered must be True or False, got {ordered!r:.80}.")
        if (trade_off is not None) == has_two or (ordered and has_two):
            given = [*(["trade_off"] if trade_off is not None else []), *(["ordered"] if ordered else [])]
            given += [key for key, one in (("add", add), ("remove", remove)) if one is not None]
            raise UsageError(
                "f-DP must be given trade_off, which may be ordered, or add and remove, got "
                f"{' and '.join(given) or 'none'}."
            )
        function: Callable[[float], float]
        if has_two:
            added, removed = _curve("add", add), _curve("remove", remove)
            function = AddRemoveProfile(OrderProfile(added, removed), OrderProfile(removed, added))
            name = name or "add/remove f-DP"
        elif ordered:
            curve = _curve("trade_off", trade_off)
            function = DirectedProfile(OrderProfile(curve, None), OrderProfile(None, curve))
            name = name or "ordered f-DP"
        else:
            curve = _curve("trade_off", trade_off)
            function = OrderProfile(curve, curve)
        super().__init__(function, name or "f-DP", scale)

    def with_value(self, value: float) -> FDP:
        return self._with(self.function, value)

    def _with(self, function: Callable[[float], float], scale: float) -> FDP:
        changed = object.__new__(FDP)
        ProfileClaim.__init__(changed, function, self.name, scale)
        return changed

    @property
    def depends_on_pair(self) -> bool:
        return isinstance(self.function, AddRemoveProfile)

    def for_pair(self, x: Any, x_prime: Any) -> FDP:
        """The claim for one pair: itself, or of `add` and `remove` the one for the pair in its order."""
        if not isinstance(self.function, AddRemoveProfile):
            return self
        added = records_added(x, x_prime)
        if added not in (-1, 1):
            raise UsageError(
                f"inputs must be two datasets of which one has one more record, for {self}, got {short_form(x)} and "
                f"{short_form(x_prime)}. Promise other pairs FDP(f, ordered=True), each in its order."
            )
        profiles = self.function.forward, self.function.backward
        return self._with(DirectedProfile(*profiles[::added]), self.scale)

    @property
    def curves(self) -> tuple[TradeOffProfile | None, TradeOffProfile | None]:
        """The least T(P, Q) and T(Q, P) at scale 1; None where nothing is promised. Of `add` and `remove`: these."""
        function = self.function.forward if isinstance(self.function, DirectedProfile) else self.function
        forward = cast("OrderProfile", function)
        return forward.there, forward.back

    def trade_off(self, false_positive: ArrayLike) -> FloatArray:
        """Trade-off function at false-positive rates in [0, 1]: the smallest false-negative rates promised, at scale 1.

        The function that was given (as `trade_off` or `add`; as `remove` of a pair that removes a record), rounded down
        by at most what is lost between the points of the grid.
        """
        promised = self.curves[0]
        return np.zeros(np.shape(false_positive)) if promised is None else promised.at(false_positive)


def claim_of_table(text: str) -> FDP:
    """The claim of `tradeoff=FILE` on the command line: a CSV file of two columns, with or without a line of names.

    Behind the file, `,ordered=yes` says that it is promised of (x, x') alone; `,remove=FILE` that it is promised of
    adding a record, and that of another file of removing one.
    """
    name = f"tradeoff={text}"
    stated = _OPTION.fullmatch(text)
    path, key, option = (part.strip() for part in stated.groups()) if stated else (text, "", "")
    if key == "remove":
        return FDP(add=_table(path), remove=_table(option), name=name)
    if key == "ordered" and option != "yes":
        raise UsageError(f"ordered must be yes, got {option!r}.")
    return FDP(_table(path), name=name, ordered=key == "ordered")


def _table(text: str) -> list[tuple[float, float]]:
    """The pairs of rates that a file holds."""
    rows = read_rows("tradeoff", text)
    if rows and not is_number_text(rows[0][0]):
        del rows[0]
    if len(rows) > MAX_TABLE:
        raise UsageError(f"tradeoff must have at most {MAX_TABLE:,} points, got more at {text!r}.")
    for place, row in enumerate(rows, start=1):
        if len(row) != 2 or not all(is_number_text(cell) for cell in row):
            raise UsageError(f"tradeoff must have two numbers a line, got {','.join(row)[:60]!r} at point {place}.")
    return [(float(first), float(second)) for first, second in rows]


def is_number_text(text: str) -> bool:
    """Tell whether a cell of a table reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _curve(name: str, given: Curve | None) -> TradeOffProfile | None:
    """The function that an argument gives, rounded down; None stays None."""
    if given is None:
        return None
    try:
        return TradeOffProfile(*(_below(given) if callable(given) else _listed(given)))
    except UsageError as error:
        raise error if name == "trade_off" else UsageError(f"{error} This is `{name}`.") from error


def _rounded_up(corners: FloatArray) -> float:
    """A delta from its values at corners, never below their supremum."""
    delta = max(0.0, float(np.max(corners)))
    return min(1.0, delta + ROUNDING * (1.0 + delta)) if delta > 0.0 else 0.0


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
    return rates[order], np.clip(np.minimum.accumulate(lows[order] - TOLERANCE * 1e-3), 0.0, 1.0)


def _value(function: Callable[[float], float], rate: float) -> float:
    try:
        value = float(function(rate))
    except (ArithmeticError, TypeError, ValueError) as error:
        raise UsageError(f"trade_off must be a number at every rate in [0, 1], got {error!r} at {rate:g}.") from error
    if not -TOLERANCE <= value <= 1.0 + TOLERANCE:  # False for NaN
        raise UsageError(f"trade_off must be in [0, 1], got {number_text(value)} at {rate:g}.")
    return value


def _check_shape(rates: FloatArray, values: FloatArray) -> None:
    """Refuse what is no trade-off function, with the first place where it is none."""
    refused: Sequence[tuple[str, Any]] = (
        ("be in [0, 1]", ~((values >= -TOLERANCE) & (values <= 1.0 + TOLERANCE))),
        ("be at most 1 minus the rate", values > 1.0 - rates + TOLERANCE),
        ("not increase", np.concatenate([[False], np.diff(values) > TOLERANCE])),
        ("be convex", _bends_down(rates, values)),
    )
    for what, wrong in refused:
        if np.any(wrong):
            k = int(np.argmax(wrong))
            raise UsageError(f"trade_off must {what}, got {values[k]:.10g} at {rates[k]:.10g}.")


def _bends_down(rates: FloatArray, values: FloatArray) -> Any:
    """Mask of the points that lie above the chord of their neighbours by more than the slack."""
    inner = np.zeros(len(rates), dtype=bool)
    share = np.diff(rates)[:-1] / (rates[2:] - rates[:-2])
    inner[1:-1] = values[1:-1] > (1.0 - share) * values[:-2] + share * values[2:] + TOLERANCE
    return inner


def _shown(rates: FloatArray) -> str:
    return f"{rates[:3].tolist()} … {rates[-1]:g}"
