"""Paths: a loss level for each cell in the order of a score, and how likely each path is beforehand.

Which cells speak for x is not known, so bets are averaged over paths. Most paths are hopeless; what is known of privacy
losses before any draw says which are not. A partition has one of three *orders*:

* free: levels tend to persist from cell to cell, and may change anywhere. What leaks may be a band, an exact value, or
  both ends of the scale.
* monotone: along the score, levels as a rule only rise, or only fall. So does the loss of a number with noise of
  log-concave density, which is moved; and that of any pair along a score that orders the outputs by it.
* mirrored: cells at the same distance from a centre have opposite levels, and above it levels as a rule only rise, or
  only fall. So it is where a reflection swaps the two laws, as with symmetric noise that is added, or with randomised
  response: two cells then say together what either would say alone, and need half as many draws to say it.

A prior is a hidden Markov chain, so that the sum over all paths takes one small matrix product a cell. Mirrored cells
are one cell of the chain; cells without a mirror stand alone, and so does a middle one. NaN's cell, the last one, is
like the others: where a chain does not suit it, the twin with free paths does.

Validity: none rests on the prior. Whatever it is, it is fixed before the draws that are bet on, and the sum over paths
is an average of bets. Where the centre is, and whether levels rise or fall, is read off the training draws.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray

Order = Literal["free", "monotone", "mirrored"]
ORDERS: tuple[Order, ...] = get_args(Order)
LEVELS = 5  # of a cell: as many as there are shares in FIRST_LEVELS
# Prior probability of each of the two extreme levels in a free cell that does not follow its neighbour.
END_SHARE = 0.35
SWITCHES = {"free": 8.0, "monotone": 5.0, "mirrored": 3.0}  # expected number of cells that do not follow a neighbour
LARGEST_SWITCH, LARGEST_RISE = 0.8, 0.6  # probabilities that a cell does not: of free and rough, of rising levels
# Of levels that only rise: those of the first cell, and the next ones after each, if the next cell does not follow it.
FIRST_LEVELS = {"monotone": (0.5, 0.2, 0.2, 0.05, 0.05), "mirrored": (0.02, 0.02, 0.3, 0.3, 0.36)}
NEXT_LEVELS = (
    (0.0, 0.5, 0.2, 0.15, 0.15),
    (0.0, 0.0, 0.6, 0.2, 0.2),
    (0.0, 0.0, 0.0, 0.6, 0.4),
    (0.0, 0.0, 0.0, 0.0, 1.0),
    (0.0, 0.0, 0.0, 0.0, 1.0),
)
ASTRAY = 0.02  # share of these next levels that is spread evenly: no labels are impossible
# Cells after which the sum over paths is scaled, and the largest log of a weight: from both ends together, less than
# the 709 that a number holds.
RESCALED, LARGEST_LOG = 8, 40.0


@dataclasses.dataclass(frozen=True)
class PathPriors:
    """The priors of several partitions, each array of shape (partitions,).

    Attributes
    ----------
    switch : ndarray of float
        The probability that a cell does not follow its neighbour.
    rises : ndarray of int
        1 where levels only rise (of mirrored cells: above the centre), -1 where they only fall, 0 where they are free.
    centre : ndarray of int
        The sum of the positions of two cells that mirror each other, at most twice that of the last cell; -1 where none
        do.
    """

    switch: FloatArray
    rises: NDArray[np.intp]
    centre: NDArray[np.intp]

    @classmethod
    def free(cls, switch: Sequence[float] | FloatArray) -> PathPriors:
        """Free ones of these switches."""
        switch = np.asarray(switch, dtype=float)
        return cls(switch, np.zeros(len(switch), dtype=np.intp), np.full(len(switch), -1, dtype=np.intp))

    @classmethod
    def of_counts(cls, counts: Sequence[NDArray[Any]], orders: Sequence[Order], is_rough: Sequence[bool]) -> PathPriors:
        """Those of partitions with such training counts, each of shape (2, cells); the last cell is NaN's.

        A free partition is rough where neighbouring cells have little to say about each other.
        """
        made = [_prior_of(*about) for about in zip(counts, orders, is_rough, strict=True)]
        switch, rises, centre = zip(*made, strict=True)
        return cls(np.array(switch, dtype=float), np.array(rises, dtype=np.intp), np.array(centre, dtype=np.intp))

    @staticmethod
    def concatenated(several: Sequence[PathPriors]) -> PathPriors:
        """Those of several sets of partitions, one after the other."""
        parts = zip(*((priors.switch, priors.rises, priors.centre) for priors in several), strict=True)
        return PathPriors(*(np.concatenate(part) for part in parts))

    def __len__(self) -> int:
        return len(self.switch)

    def only(self, positions: NDArray[np.intp] | slice) -> PathPriors:
        """Those of some of the partitions."""
        return PathPriors(self.switch[positions], self.rises[positions], self.centre[positions])

    def emissions(self, logs: FloatArray) -> Emissions:
        """What log probabilities say of each level of each cell, for sums over paths.

        Parameters
        ----------
        logs : ndarray of float, shape (cells, LEVELS, partitions, components)
            0 in cells beyond a partition's own: they change nothing.
        """
        return Emissions.of(self.in_chain(np.swapaxes(logs, 1, 2)))

    def lengths(self, sizes: NDArray[np.intp]) -> NDArray[np.intp]:
        """The cells of each partition's chain, where it has so many of its own: mirrored ones are one."""
        return np.where(self.centre < 0, sizes, np.maximum(sizes - (self.centre + 1) // 2, self.centre // 2 + 1))

    def in_chain(self, levels: FloatArray) -> FloatArray:
        """What is added up over cells, in the order of the chain: mirrored cells are one, falling levels are turned.

        Parameters
        ----------
        levels : ndarray, shape (cells, partitions, levels, any)
            Of levels that are opposite to each other from both ends: all, or the two extreme ones.
        """
        if not np.any(self.rises):
            return levels
        result = levels.copy()
        for k in np.flatnonzero((self.rises != 0) & (self.centre >= 0)).tolist():
            result[:, k] = _folded(levels[:, k], int(self.centre[k]))
        falling = np.flatnonzero(self.rises < 0)
        if len(falling):
            result[:, falling] = result[:, falling, ::-1]
        return result

    def log_sum(self, emissions: Emissions, extremes: FloatArray | None = None) -> FloatArray:
        """Log of the sum over all paths of prior probability times exp(emission), shape (partitions, components).

        Parameters
        ----------
        emissions : Emissions
        extremes : ndarray of float, shape (partitions, cells, 2, components), optional
            What is added to those of the two extreme levels, in the order of the chain.
        """
        total, weights = emissions.weights(extremes)
        matrices, state = self._chain
        # From both ends at once, which takes half as many steps: (directions, partitions, levels, components), for
        # products with one matrix a direction and partition.
        cells = len(weights)
        state = np.repeat(state, weights.shape[-1], axis=-1)
        for cell in range((cells + 1) // 2):
            both = slice(cell, cells - cell, max(cells - 1 - 2 * cell, 1))  # or they meet in the middle cell
            state[: 1 + (2 * cell + 1 < cells)] *= weights[both]
            if cell % RESCALED == RESCALED - 1:  # in between it cannot vanish: every level is reached with some chance
                mass = state.sum(axis=2)
                total += np.log(mass).sum(axis=0)
                state /= mass[:, :, None]
            if 2 * (cell + 1) < cells:
                state = np.matmul(matrices, state)
        met = state[0] if cells % 2 else np.matmul(matrices[0], state[0])
        return np.asarray(total + np.log((met * state[1]).sum(axis=1)))

    @functools.cached_property
    def _chain(self) -> tuple[FloatArray, FloatArray]:
        """Matrices and weights to begin with, of either end; (2, partitions, LEVELS, LEVELS or 1).

        Of the first end, from one cell to the next one and of the first cell's levels; from the last one back.
        """
        kinds = np.where(self.rises == 0, 0, np.where(self.centre < 0, 1, 2))  # the positions in ORDERS
        start, jump = (np.stack(part) for part in zip(*(_chain_of(order, END_SHARE) for order in ORDERS), strict=True))
        back = np.eye(LEVELS) + self.switch[:, None, None] * (jump[kinds] - np.eye(LEVELS))
        begun = np.stack([start[kinds], np.ones((len(self), LEVELS))])
        return np.stack([np.swapaxes(back, -1, -2), back]), begun[..., None]


@dataclasses.dataclass(frozen=True)
class Emissions:
    """What is known of each level of each cell, in the order of the chains of several partitions.

    Bets add to the two extreme levels alone, again and again, so that the others are kept as numbers.

    Attributes
    ----------
    extremes : ndarray of float, shape (cells, partitions, 2, components)
        Logs of the lowest and of the highest level, over that of the likeliest level between.
    between : ndarray of float, shape (cells, partitions, LEVELS - 2, components)
        The levels between, over the likeliest.
    total : ndarray of float, shape (partitions, components)
        Logs of the likeliest ones, of all cells together.
    columns : ndarray of int, optional
        Where several components share what is known: the place of each one's along the last axes above. `only` gives
        emissions that sums over paths take.
    """

    extremes: FloatArray
    between: FloatArray
    total: FloatArray
    columns: NDArray[np.intp] | None = None

    @classmethod
    def of(cls, logs: FloatArray) -> Emissions:
        """Those of logs in the order of the chain, shape (cells, partitions, LEVELS, components)."""
        between = logs[:, :, 1:-1]
        top = functools.reduce(np.maximum, (between[:, :, k] for k in range(LEVELS - 2)))
        shared = top[:, :, None]
        return cls(logs[:, :, :: LEVELS - 1] - shared, np.exp(between - shared), top.sum(axis=0))

    @classmethod
    def blank(cls, cells: int, partitions: int, components: int) -> Emissions:
        """Those of cells of which nothing is known."""
        shape = (cells, partitions, LEVELS - 2, components)
        return cls(np.zeros((cells, partitions, 2, components)), np.ones(shape), np.zeros((partitions, components)))

    def put(self, at: int, other: Emissions, k: int, cells: int) -> None:
        """Fill in the first cells of a partition: those of one of another set."""
        columns = slice(None) if other.columns is None else other.columns
        self.extremes[:cells, at] = other.extremes[:cells, k][..., columns]
        self.between[:cells, at] = other.between[:cells, k][..., columns]
        self.total[at] = other.total[k, columns]

    def only(self, components: NDArray[np.intp] | slice) -> Emissions:
        """Those of some of the components, each for itself."""
        columns = components if self.columns is None else self.columns[components]
        return Emissions(self.extremes[..., columns], self.between[..., columns], self.total[:, columns])

    def for_partitions(self, positions: NDArray[np.intp], cells: int) -> Emissions:
        """Those of some of the partitions, of so many cells at most."""
        extremes, between = self.extremes[:cells, positions], self.between[:cells, positions]
        return Emissions(extremes, between, self.total[positions], self.columns)

    def weights(self, added: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """All levels of each cell over the likeliest one between, as numbers: see `PathPriors.log_sum`.

        `added` to the extreme ones is of shape (partitions, cells, 2, components). The logs of the likeliest ones of
        all cells together, and the levels, (cells, partitions, LEVELS, components). Where an extreme one exceeds
        e^`LARGEST_LOG`, all of its cell are less by as much, and the logs more.
        """
        extremes = self.extremes.copy() if added is None else self.extremes + np.swapaxes(added, 0, 1)
        cells, partitions, _, components = extremes.shape
        total, levels = self.total.copy(), np.empty((cells, partitions, LEVELS, components))
        levels[:, :, 1:-1] = self.between
        high = np.flatnonzero(extremes.max(axis=(1, 2, 3)) > LARGEST_LOG)
        if len(high):
            over = np.maximum(extremes[high].max(axis=2) - LARGEST_LOG, 0.0)
            extremes[high] -= over[:, :, None]
            total += over.sum(axis=0)
            levels[high, :, 1:-1] *= np.exp(-over)[:, :, None]
        levels[:, :, :: LEVELS - 1] = np.exp(extremes, out=extremes)
        return total, levels


def _folded(emission: FloatArray, centre: int) -> FloatArray:
    """Emissions (cells, levels, any) from the centre outwards, mirrored cells as one; 0 behind them."""
    first = (centre + 1) // 2  # position of the first cell that is not below the centre
    result = np.zeros_like(emission)
    result[: len(emission) - first] = emission[first:]
    own = 1 - centre % 2  # the middle cell is its own mirror
    below = emission[: centre // 2 + 1 - own][::-1, ::-1]
    result[own : own + len(below)] += below
    return result


def _prior_of(counts: NDArray[Any], order: Order, is_rough: bool) -> tuple[float, int, int]:
    """Switch, rise and centre of a partition with such training counts; see `PathPriors`."""
    cells = counts.shape[1]
    if order == "free":
        return (LARGEST_SWITCH if is_rough else min(SWITCHES[order] / cells, LARGEST_SWITCH)), 0, -1
    known = np.asarray(counts[:, :-1], dtype=float)
    pooled = known.sum(axis=0)
    above = np.sign(np.cumsum(pooled) - 0.5 * pooled - 0.5 * pooled.sum())  # 1 above the median, -1 below it
    rises = -1 if float(np.sum(above * (known[1] - known[0]))) < 0.0 else 1
    centre = _centre(pooled) if order == "mirrored" else -1
    chain = cells if centre < 0 else max(cells - (centre + 1) // 2, centre // 2 + 1)
    return min(SWITCHES[order] / chain, LARGEST_RISE), rises, centre


def _centre(pooled: FloatArray) -> int:
    """The sum of the positions of two cells that mirror each other: twice the mean position of a draw, rounded."""
    total = float(pooled.sum())
    return round(2.0 * float(np.arange(len(pooled)) @ pooled) / total) if total > 0.0 else len(pooled) - 1


@functools.cache
def _chain_of(order: Order, end_share: float) -> tuple[FloatArray, FloatArray]:
    """Probabilities of the first cell's levels, and of those of a cell that does not follow its neighbour."""
    if order != "free":
        return np.array(FIRST_LEVELS[order]), (1.0 - ASTRAY) * np.array(NEXT_LEVELS) + ASTRAY / LEVELS
    start = np.full(LEVELS, (1.0 - 2.0 * end_share) / (LEVELS - 2))
    start[[0, -1]] = end_share
    # Half of them move to a level next to the neighbour's, the others are those of a first cell.
    beside = np.eye(LEVELS, k=1) + np.eye(LEVELS, k=-1)
    return start, 0.5 * beside / beside.sum(axis=1, keepdims=True) + 0.5 * start
