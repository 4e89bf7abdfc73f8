"""Bets on cells: how much to stake where, learned from earlier draws, and what the bets have won since.

The game. Each labelled draw falls into a cell of a partition fixed beforehand; its label is a fair coin (1: drawn from
x, 0: from x_prime). The line P(S) <= e^epsilon Q(S) + delta for every event S, in both directions, gives for disjoint
sets A and B of cells and stakes g, h >= 0

    g (P(A) - e^epsilon Q(A)) <= delta g,        h (Q(B) - e^epsilon P(B)) <= delta h,

so a bettor who stakes g on label 1 in A and h on label 0 in B has, given everything before, the factor

    1 + g (1{A, label 1} - e^epsilon 1{A, label 0}) + h (1{B, label 0} - e^epsilon 1{B, label 1}) - charge,
    charge = delta (g + h) / 2

of mean at most 1, and it is non-negative where max(g, h) e^epsilon + charge <= 1. Products over successive draws are
supermartingales, and so is any average of such products with weights fixed beforehand; by Ville's inequality it
reaches 1/a with probability at most a, ever. With the stakes held fixed a factor decreases in epsilon and in delta,
hence wealth decreases in the claim's parameter, and the rejected parameters are an interval from 0. (Where a stake is
no longer legal its part of the average counts as 0.)

The weights. Which cells speak for x is not known, so the average runs over *paths*: one of a few loss levels a cell, in
the order of the score; the cells of the two extreme levels are bet on. A path's weight is its posterior probability
given the training draws, in a model where the label in a cell of level l is 1 with log-odds l and levels tend to
persist from cell to cell. The sum over paths is that of a hidden Markov chain, one small matrix product a cell. What
the model needs beside the path, a *component*, is averaged over as well: the highest level, with the stake that is best
for it; and, where the line has a delta, smaller stakes and bets in one direction only.

Nothing is selected, so nothing that was lucky on few draws is followed for long: the model may be wrong, which costs
draws and never validity, since weights see training draws only.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit.privacy.claims import FloatArray

MIDDLE_LEVEL, LEAST_MIDDLE = 0.6, 0.1  # in units of the highest level
SPREAD_LEVELS = (0.15, 0.3, 0.45, 0.6, 0.75, 0.9)  # in the same units
HIGH_SHARE = 0.5  # of the largest stake, from which on a level is taken for far above epsilon
END_SHARE = 0.35  # prior probability of each of the two extreme levels in a cell that does not follow its neighbour
SWITCHES = 8.0  # expected number of cells that do not follow their neighbour
LARGEST_SWITCH = 0.8
MULTIPLES = (1.0, 0.3)  # of the stake that is best for the level, where the line has a delta
RESCALED = 8  # cells after which the sum over paths is scaled
EVEN = 0.5  # share of the weights of components that the labels do not decide
FLOOR = 0.1  # share of the weights that is spread evenly, whatever was learned


@dataclasses.dataclass(frozen=True)
class Book:
    """Counts of labelled draws in the cells of partitions, padded to the largest one.

    Attributes
    ----------
    train, live : ndarray of float, shape (2, cells, partitions)
        Draws that weights are fitted on, and draws that are bet on; row 0 is label 0 (x_prime).
    switch : ndarray of float, shape (partitions,)
        The probability that a cell does not follow its neighbour. Cells beyond a partition's own are padding.
    """

    train: FloatArray
    live: FloatArray
    switch: FloatArray


@dataclasses.dataclass(frozen=True)
class Components:
    """What is averaged over beside the paths; all of shape (partitions or 1, components).

    Attributes
    ----------
    anchor : ndarray of float
        Which line of the family each bets against.
    up, down : ndarray of float
        Stakes on label 1 in cells of the highest level, and on label 0 in cells of the lowest.
    highest, middle : ndarray of float
        The highest level, and the one between it and 0, in log-odds. NaN in `middle`: each cell between has a level of
        its own, any of `SPREAD_LEVELS`.
    """

    anchor: FloatArray
    up: FloatArray
    down: FloatArray
    highest: FloatArray
    middle: FloatArray

    def only(self, positions: NDArray[np.intp]) -> Components:
        """Some of them."""
        return Components(*(part[:, positions] for part in self._parts))

    def repeated(self, partitions: int) -> Components:
        """The same for each of several partitions."""
        return Components(*(np.repeat(part, partitions, axis=0) for part in self._parts))

    @staticmethod
    def concatenated(several: Sequence[Components], axis: int) -> Components:
        """Those of several partitions (axis 0), or several sets for the same partitions (axis 1)."""
        parts = zip(*(components._parts for components in several), strict=True)
        return Components(*(np.concatenate(part, axis=axis) for part in parts))

    @property
    def _parts(self) -> tuple[FloatArray, ...]:
        return self.anchor, self.up, self.down, self.highest, self.middle


@dataclasses.dataclass(frozen=True)
class Bets:
    """Components with their weights in each partition, and what the model makes of the training labels.

    Attributes
    ----------
    components : Components
    model : ndarray of float, shape (cells, levels, partitions, components)
        Log probability of the training labels in each cell at each level.
    evidence : ndarray of float, shape (partitions, components)
        Log probability of all training labels.
    switch : ndarray of float, shape (partitions, 1)
        The probability that a cell does not follow its neighbour.
    log_weights : ndarray of float, shape (partitions, components)
        They sum to 1 over the components and the partitions of an epoch.
    """

    components: Components
    model: FloatArray
    evidence: FloatArray
    switch: FloatArray
    log_weights: FloatArray

    def log_wealth(self, counts: FloatArray, epsilon: FloatArray, delta: FloatArray) -> FloatArray:
        """Log wealth of labelled draws against a line, shape (partitions, components); -inf where it is illegal.

        Parameters
        ----------
        counts : ndarray of float, shape (2, cells, partitions)
        epsilon, delta : ndarray of float, shape (partitions or 1, components)
            Each component's line.
        """
        up, down = self.components.up, self.components.down
        charge = 0.5 * delta * (up + down)
        risk = np.exp(np.minimum(epsilon, 700.0))
        legal = np.maximum(up, down) * risk + charge < 1.0
        payoffs = (up - charge, -up * risk - charge, down - charge, -down * risk - charge, -charge)
        gain1, loss1, gain0, loss0, idle = (np.log1p(np.where(legal, payoff, 0.0)) for payoff in payoffs)
        label0, label1 = counts[..., None]  # (cells, partitions, 1)
        emission = self.model.copy()
        emission[:, -1] += label1 * gain1 + label0 * loss1
        emission[:, 0] += label0 * gain0 + label1 * loss0
        if np.any(idle):
            emission[:, 1:-1] += ((label0 + label1) * idle)[:, None]
        return np.where(legal, path_log_sum(emission, self.switch) - self.evidence, -math.inf)

    def only(self, positions: NDArray[np.intp]) -> Bets:
        """Bets on some of the components, with weights that sum to 1 again."""
        weights = self.log_weights[:, positions]
        weights = weights - log_sum(weights)
        model, evidence = self.model[..., positions], self.evidence[:, positions]
        return Bets(self.components.only(positions), model, evidence, self.switch, weights)

    def for_partitions(self, positions: NDArray[np.intp], cells: int) -> Bets:
        """Bets on some of the partitions, of so many cells at most, with weights that sum to 1 again."""
        weights = self.log_weights[positions]
        return Bets(
            self.components,
            self.model[:cells, :, positions],
            self.evidence[positions],
            self.switch[positions],
            weights - log_sum(weights),
        )


def fit_bets(
    book: Book,
    components: Components,
    history: FloatArray,
    epochs: Sequence[int],
    lines: tuple[FloatArray, FloatArray] | None = None,
) -> Bets:
    """Bets meant to beat a line, from the training draws of a book (its live draws are not looked at).

    Parameters
    ----------
    book : Book
    components : Components
    history : ndarray of float, shape (partitions, components)
        Log prior weights: of what each partition's kind and each component won earlier.
    epochs : sequence of int
        How many of the partitions belong to each epoch, in their order.
    lines : (ndarray, ndarray), optional
        Epsilon and delta of each component's line, shape (1, components). Then components are also weighed by what
        their bets would have won on the training draws: the labels alone speak for the component that describes most
        of them best, and what wins may be a few draws in a tail. Between lines of a family the labels have no say: the
        less likely they are by chance, the better they speak for a high level, whatever the stake there.
    """
    model = _model(book.train, components)
    switch = book.switch[:, None]
    evidence = path_log_sum(model, switch)
    shares = _normalised(evidence)
    if lines is not None:
        won = Bets(components, model, evidence, switch, shares).log_wealth(book.train, *lines)
        for anchor in np.unique(components.anchor).tolist():
            of_anchor = components.anchor[0] == anchor
            likely = _normalised(evidence[:, of_anchor])
            likely = np.logaddexp(math.log1p(-EVEN) + likely, math.log(EVEN / likely.shape[1]))
            shares[:, of_anchor] = likely + won[:, of_anchor]
        shares = _normalised(shares)
    weights = np.concatenate([_floored(part) for part in np.split(history + shares, np.cumsum(epochs)[:-1])])
    return Bets(components, model, evidence, switch, weights)


def _model(train: FloatArray, components: Components) -> FloatArray:
    """Log probability of the training labels in each cell at each level, shape (cells, levels, partitions, components).

    Where a component's middle levels are spread out, what lies between the extremes has no say in which highest level
    is the likeliest: else one that describes the many cells below epsilon well would be bet on, whatever lies above.
    """
    highest, middle = components.highest, components.middle
    is_spread = np.isnan(middle)
    middle = np.where(is_spread, MIDDLE_LEVEL * highest, middle)
    levels = np.stack([-highest, -middle, np.zeros_like(highest), middle, highest])
    label0, label1 = train[:, :, None, :, None]
    model = label1 * special.log_expit(levels) + label0 * special.log_expit(-levels)
    if np.any(is_spread):
        spread = np.multiply.outer(SPREAD_LEVELS, highest)
        for position, own in ((1, -spread), (3, spread)):
            logs = label1 * special.log_expit(own) + label0 * special.log_expit(-own)
            average = log_sum(logs, axis=1) - math.log(len(SPREAD_LEVELS))
            model[:, position] = np.where(is_spread, average, model[:, position])
    return np.asarray(model)


def components_for(
    epsilon: float, delta: float, fraction: FloatArray, anchor: float = 0.0, may_have_delta: bool = False
) -> Components:
    """Components that bet against one line, each with the stake that is best for its highest level.

    Parameters
    ----------
    epsilon, delta : float
        The line.
    fraction : ndarray of float, shape (fractions,)
        In (0, 1): shares of the largest legal stake.
    anchor : float
        Which line of its family it is.
    may_have_delta : bool
        Whether lines of the family have a delta: then smaller stakes and single directions are components as well.
    """
    # A stake of share f is best where wrong guesses are 1 - f times as frequent as the line allows.
    wrong = (1.0 - fraction) * special.expit(-epsilon)
    highest = np.log1p(-wrong) - np.log1p(-fraction) + np.logaddexp(0.0, epsilon)  # (fractions,)
    # Where that is far above epsilon, cells just at epsilon would be taken for the highest level: a lower one as well.
    high = fraction >= HIGH_SHARE
    lower = np.minimum(MIDDLE_LEVEL * highest, np.maximum(epsilon, LEAST_MIDDLE * highest))[high]
    # Where lines have a delta there are many components already, and rare cells at the highest level are what counts.
    spread = np.full(0 if may_have_delta else len(fraction), math.nan)
    middle = np.concatenate([MIDDLE_LEVEL * highest, lower, spread])
    share, highest = (np.concatenate([part, part[high], part[: len(spread)]]) for part in (fraction, highest))
    largest = 1.0 / (math.exp(min(epsilon, 700.0)) + delta)
    up = down = largest * share
    if may_have_delta:
        shares = largest * np.multiply.outer(MULTIPLES, share).ravel()
        up, down = (np.multiply.outer(side, shares).ravel() for side in ([1.0, 1.0, 0.0], [1.0, 0.0, 1.0]))
        highest, middle = (np.tile(part, 3 * len(MULTIPLES)) for part in (highest, middle))
    return Components(*(part[None] for part in (np.full(len(up), anchor), up, down, highest, middle)))


def log_sum(logs: FloatArray, axis: int | None = None, keepdims: bool = False) -> FloatArray:
    """Logarithm of a sum of exponentials, as `scipy.special.logsumexp`, whose own checks cost far more than the sum."""
    top = np.max(logs, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):  # the logarithm of nothing
        total = np.log(np.sum(np.exp(logs - top), axis=axis, keepdims=True)) + top
    return np.asarray(total if keepdims else np.squeeze(total, axis=axis))


def _normalised(logs: FloatArray) -> FloatArray:
    """Log weights along the last axis."""
    return np.asarray(logs - log_sum(logs, axis=-1, keepdims=True))


def _floored(logs: FloatArray) -> FloatArray:
    """Log weights in proportion to exp(logs), with `FLOOR` of them spread evenly."""
    logs = logs - log_sum(logs)
    return np.asarray(np.logaddexp(math.log1p(-FLOOR) + logs, math.log(FLOOR / logs.size)))


def stacked(books: Sequence[Book]) -> Book:
    """Several epochs' books as one, their partitions one after the other."""
    cells = max(book.train.shape[1] for book in books)

    def padded(part: FloatArray) -> FloatArray:
        return np.pad(part, ((0, 0), (0, cells - part.shape[1]), (0, 0)))

    train = np.concatenate([padded(book.train) for book in books], axis=2)
    live = np.concatenate([padded(book.live) for book in books], axis=2)
    return Book(train, live, np.concatenate([book.switch for book in books]))


def stacked_bets(several: Sequence[Bets], cells: int) -> Bets:
    """Several epochs' bets as one, for books of so many cells."""

    def padded(model: FloatArray) -> FloatArray:
        return np.pad(model, ((0, cells - len(model)), (0, 0), (0, 0), (0, 0)))

    components = [
        bets.components if len(bets.components.up) > 1 else bets.components.repeated(len(bets.switch))
        for bets in several
    ]
    return Bets(
        Components.concatenated(components, axis=0),
        np.concatenate([padded(bets.model) for bets in several], axis=2),
        *(np.concatenate([getattr(bets, name) for bets in several]) for name in ("evidence", "switch", "log_weights")),
    )


def path_log_sum(emission: FloatArray, switch: FloatArray) -> FloatArray:
    """Log of the sum over all paths of prior probability times exp(emission), shape (...).

    Parameters
    ----------
    emission : ndarray, shape (cells, levels, ...)
    switch : ndarray, broadcastable to (...)
        The probability that a cell does not follow its neighbour. Then its level is drawn anew: with probability 1/2
        from the levels next to the neighbour's, else from the prior of a first cell.
    """
    start, jump = _prior(emission.shape[1])
    top = emission.max(axis=1, keepdims=True)
    # Levels last: (cells, ..., components, levels), for products with one matrix a partition.
    weights = np.exp(np.moveaxis(emission - top, 1, -1))
    total = top[:, 0].sum(axis=0)
    switch = np.broadcast_to(switch, (*emission.shape[2:-1], 1))[..., None]
    matrix = (1.0 - switch) * np.eye(len(start)) + switch * jump
    state = start * weights[0]
    for cell in range(1, len(weights)):
        state = (state @ matrix) * weights[cell]
        if cell % RESCALED == 0:  # in between it cannot vanish: every level is reached with some probability
            mass = state.sum(axis=-1)
            total += np.log(mass)
            state /= mass[..., None]
    return np.asarray(total + np.log(state.sum(axis=-1)))


def _prior(levels: int) -> tuple[FloatArray, FloatArray]:
    """Probabilities of the first cell's levels, and of those of a cell that does not follow its neighbour."""
    start = np.full(levels, (1.0 - 2.0 * END_SHARE) / (levels - 2))
    start[[0, -1]] = END_SHARE
    beside = np.eye(levels, k=1) + np.eye(levels, k=-1)
    return start, 0.5 * beside / beside.sum(axis=1, keepdims=True) + 0.5 * start
