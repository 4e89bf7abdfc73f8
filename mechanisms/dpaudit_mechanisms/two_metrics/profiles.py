"""Profiles: which level each deviation |r - f(x)| on the real line has, and the ones of the paper's mechanisms.

A `Profile` is finitely many cells, then a tail of cells of one width whose levels grow by 1 each. `staircase_profile`
makes that of the staircase mechanism (UP-S7, UP-X9), `query_profile` that of the privacy-first and of the widened
privacy-first mechanism for a linear query (UP-T2, UP-T3, UP-C1), from the changes of the answer that a neighbour can
make.
"""

import dataclasses
import math
from typing import Annotated, Any

import numpy as np

from dpaudit_mechanisms.inputs import ArrayLike, Checked, FloatArray, NonNegative, Positive, fixed, positive, table
from dpaudit_mechanisms.protocol import UsageError, number
from dpaudit_mechanisms.two_metrics.intervals import NOTHING, difference, length, minkowski, union, unions

MAX_SHELLS = 20_000  # that are computed before a query is given up as one whose shells never fill the line
MAX_INTERVALS = 5_000_000  # of all shells together, before that too: some seconds
SPARE = 1e-9  # relative to the sensitivity: gaps below it are rounding of sums of shells


@dataclasses.dataclass(frozen=True, eq=False)
class Profile(Checked):
    """The level of each deviation |r - f(x)|; levels of f(x) itself and of ends of cells have measure 0.

    Parameters
    ----------
    edges : array_like of float, shape (cells + 1,)
        Increasing from 0, finite, in units of the answer.
    levels : array_like of float, shape (cells,)
        The level between two edges, in [0, inf).
    width : float
        Width of the cells beyond the last edge, in (0, inf).
    first : float
        The level of the first of them; each further cell is one level up.
    steps : array of float, shape (intervals, 2)
        What a neighbour can change the answer by.

    Examples
    --------
    >>> profile = Profile([0.0, 0.5], [0.0], width=1.0, first=1.0, steps=[[-1.0, 1.0]])
    >>> profile.level([0.2, 0.7, 1.6, 2.6]).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """

    edges: FloatArray = dataclasses.field(repr=False)
    levels: FloatArray = dataclasses.field(repr=False)
    width: Positive
    first: NonNegative
    steps: Annotated[FloatArray, unions] = dataclasses.field(repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        edges = table("edges", self.edges, (None,))
        count = len(edges) - 1
        levels = table("levels", self.levels, (count,), within="in [0, inf)") if count else np.zeros(0)
        if edges[0] != 0.0 or not np.isfinite(edges).all() or (np.diff(edges) <= 0.0).any():
            raise UsageError(f"edges must be finite and increase from 0, got {edges.tolist()}.")
        fixed(self, edges=edges, levels=levels)

    def level(self, deviations: ArrayLike) -> FloatArray:
        """The level of deviations r - f(x) of either sign, of their shape; infinity for those that are not finite."""
        away = np.abs(np.asarray(deviations, dtype=float))
        place = np.clip(np.searchsorted(self.edges, away, side="left") - 1, 0, None)
        with np.errstate(invalid="ignore"):
            beyond = self.first + np.maximum(np.ceil((away - self.edges[-1]) / self.width) - 1.0, 0.0)
        head = self.levels[np.minimum(place, len(self.levels) - 1)] if len(self.levels) else 0.0
        return np.where(np.isfinite(away), np.where(away > self.edges[-1], beyond, head), np.inf)

    @property
    def lowest(self) -> float:
        """The lowest level of a cell: 1 where level 0 is the true answer alone."""
        return float(self.levels.min(initial=self.first))

    def cells(self, epsilon: float) -> tuple[FloatArray, FloatArray]:
        """Integral over r of exp(-epsilon (level - lowest)), and of that times |r - f(x)|, cell by cell; last the tail.

        Levels are counted from the lowest one, so that not all weights underflow where epsilon is large.
        """
        low, high = self.edges[:-1], self.edges[1:]
        weights = 2.0 * np.exp(-epsilon * (self.levels - self.lowest))
        ratio = math.exp(-epsilon)
        top = 2.0 * math.exp(-epsilon * (self.first - self.lowest)) * self.width / -math.expm1(-epsilon)
        # sum over j >= 0 of e^(-j epsilon) (edge + (j + 1/2) width), over sum of e^(-j epsilon)
        middle = self.edges[-1] + self.width * (0.5 + ratio / -math.expm1(-epsilon))
        return (
            np.append(weights * (high - low), top),
            np.append(weights * (high - low) * (high + low) / 2.0, top * middle),
        )


def staircase_profile(sensitivity: float, offset: float = 0.0) -> Profile:
    """Level i where (i - 1) sensitivity + offset < |r - f(x)| <= i sensitivity + offset (UP-S7, UP-X9).

    `sensitivity` is in (0, inf), `offset` in [0, sensitivity); both in units of the answer.

    Examples
    --------
    >>> staircase_profile(2.0, 0.5).level([0.3, 1.0, 2.5, 2.6]).tolist()
    [0.0, 1.0, 1.0, 2.0]
    """
    top = positive("sensitivity", sensitivity)
    start = number("offset", offset, f"in [0, {top:g})", lambda v: 0.0 <= v < top)
    edges, levels = ([0.0, start], [0.0]) if start else ([0.0], [])
    return Profile(np.array(edges), np.array(levels), top, 1.0, np.array([[-top, top]]))


def best_offset(sensitivity: float, epsilon: float) -> float:
    """The offset of the staircase of least E |r - f(x)|: sensitivity / (1 + e^(epsilon / 2)), Geng and Viswanath."""
    return positive("sensitivity", sensitivity) / (1.0 + math.exp(positive("epsilon", epsilon) / 2.0))


def query_shells(neighbouring_set: ArrayLike, *, symmetric: bool = True) -> Any:
    """Yields A_0, A_1, ... of UP-T2 for a linear query with f(x) = 0: what chains of i neighbours can answer.

    Parameters
    ----------
    neighbouring_set : array_like of float, shape (intervals, 2)
        V_f: what one neighbour can change the answer by.
    symmetric : bool
        Whether -V_f belongs to it, as it does for every metric on datasets (UP-D9); False takes the set as printed.
    """
    given = union(neighbouring_set)
    moves = union(np.concatenate([given, -given[:, ::-1], [[0.0, 0.0]]] if symmetric else [given, [[0.0, 0.0]]]))
    reached = union([[0.0, 0.0]])
    while True:
        yield reached
        reached = minkowski(reached, moves)


def query_profile(neighbouring_set: ArrayLike, width: float = 0.0) -> Profile:
    """Levels of the privacy-first mechanism for one linear query, widened by the same `width` everywhere.

    Level i is what i neighbours can answer, give or take `width`, and i - 1 cannot. From the first i on at which
    nothing is missing up to i Delta f (UP-D13, UP-P3) each further level has width Delta f.

    Parameters
    ----------
    neighbouring_set : array_like of float, shape (intervals, 2)
        V_f without its negative, which belongs to it; some interval must make the shells fill the line.
    width : float
        delta in units of the answer, in [0, inf).

    Raises
    ------
    UsageError
        If after 20,000 levels (or 5,000,000 intervals of levels) the answers do not fill an interval, or a parameter is
        out of range.

    Examples
    --------
    >>> profile = query_profile([[0.0, 1.0], [2.0, 3.0]])
    >>> profile.level([0.5, 1.5, 2.5, 3.5]).tolist()
    [1.0, 2.0, 1.0, 2.0]
    """
    delta = number("width", width, "in [0, inf)", lambda v: 0.0 <= v < math.inf)
    given = unions("neighbouring_set", neighbouring_set)
    top = float(np.abs(given).max())
    positive("neighbouring_set", top)
    around = np.array([[-delta, delta]])
    cells: list[FloatArray] = []
    levels: list[FloatArray] = []
    before, intervals = NOTHING, 0
    for i, reached in enumerate(query_shells(given)):
        covered = minkowski(reached, around)
        intervals += len(reached)
        new = difference(covered, before)
        half = np.clip(new, 0.0, None)
        half = half[half[:, 1] - half[:, 0] > SPARE * top]
        cells.append(half)
        levels.append(np.full(len(half), float(i)))
        is_filled = length(covered) >= 2.0 * (i * top + delta) * (1.0 - SPARE)
        if is_filled and i > 0:  # then so is the next one, which has this one moved by Delta f either way
            return profile_of(np.concatenate(cells), np.concatenate(levels), i + 1.0, top, given)
        is_endless = i == MAX_SHELLS or intervals > MAX_INTERVALS
        if is_endless or (i == 64 and delta == 0.0 and length(reached) == 0.0):
            raise UsageError(f"neighbouring_set must make levels that fill the line, got {given.tolist()}.")
        before = covered
    raise AssertionError("shells never end")


def profile_of(cells: FloatArray, levels: FloatArray, first: float, top: float, given: FloatArray) -> Profile:
    """The profile of disjoint cells that fill an interval from 0 on, for the changes `given` and their negatives."""
    order = np.argsort(cells[:, 0])
    edges = np.concatenate([[0.0], cells[order, 1]])
    return Profile(edges, levels[order], top, first, np.concatenate([given, -given[:, ::-1]]))
