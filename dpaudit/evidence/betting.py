"""Bets on cells: how much to stake where, learned from earlier draws, and what the bets have won since.

The game. Each labelled draw falls into a cell of a partition fixed beforehand; its label is a fair coin (1: drawn from
x, 0: from x_prime). Under the line P(S) <= e^epsilon Q(S) + delta, asked in both directions, a rule that guesses 1 on
one set of cells, 0 on a disjoint one and abstains elsewhere has

    P(correct) - e^epsilon P(wrong) <= cost,      cost = delta * (guessing events that are not empty) / 2

given everything before, so for a stake with stake * (e^epsilon + cost) < 1 the factor

    1 + stake * (1{correct} - e^epsilon 1{wrong} - cost)

is non-negative and of mean at most 1. Products over successive draws are supermartingales, and so is any average of
such products with weights fixed beforehand; by Ville's inequality it reaches 1/a with probability at most a, ever. A
factor with the stake held fixed decreases in epsilon and in delta, hence wealth decreases in the claim's parameter, and
the rejected parameters are an interval from 0. (Where stake * (e^epsilon + cost) >= 1 the component counts as 0.)

The weights. Which cells speak for x is not known, so the average runs over *paths*: one of a few loss levels a cell, in
the order of the score, the highest of which are bet on. A path's weight is its posterior probability given the
training draws, in a model where the label in a cell of level l is 1 with log-odds l and levels tend to persist from
cell to cell. The sum over paths is that of a hidden Markov chain, one small matrix product a cell. The highest level
itself is averaged over a grid, each with the stake that is best for it. Nothing is selected, so nothing that was lucky
on few draws is followed for long: the model may be wrong, which costs draws and never validity, since weights see
training draws only.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit.privacy.claims import FloatArray

# Loss levels of a cell in units of the highest one, for lines without and with a delta; the two ends are bet on.
LEVELS = (-1.0, -0.6, 0.0, 0.6, 1.0)
LEVELS_WITH_DELTA = (-1.0, -0.6, -0.3, 0.0, 0.3, 0.6, 1.0)
END_SHARE = 0.35  # prior probability of each end in a cell that does not follow its neighbour
SWITCHES = 8.0  # expected number of cells that do not follow their neighbour
LARGEST_SWITCH = 0.8
FLOOR = 0.1  # share of the weights that is spread evenly over the highest levels, whatever the training draws say
TEMPER_WITH_DELTA = 0.5  # of the model's evidence for a highest level, where the line has a delta and stakes are fitted
STAKES = 16  # tried for each highest level where the line has a delta


@dataclasses.dataclass(frozen=True)
class Line:
    """Hockey-stick lines at several parameter values: epsilon and delta, shape (values,) or (values, partitions)."""

    epsilon: FloatArray
    delta: FloatArray


@dataclasses.dataclass(frozen=True)
class Book:
    """Counts of labelled draws in the cells of one or several partitions, padded to the largest one.

    Attributes
    ----------
    train, live : ndarray of float, shape (partitions, 2, cells)
        Draws that weights are fitted on, and draws that are bet on; row 0 of the middle axis is label 0 (x_prime).
    sizes : ndarray of int, shape (partitions,)
        How many cells each partition has; the rest is padding.
    """

    train: FloatArray
    live: FloatArray
    sizes: NDArray[np.int64]

    @property
    def switch(self) -> FloatArray:
        """The probability that a cell does not follow its neighbour, for each partition."""
        return np.minimum(LARGEST_SWITCH, SWITCHES / np.maximum(self.sizes, 1))


@dataclasses.dataclass(frozen=True)
class Bets:
    """What is staked, for each target (a line it is meant to beat), partition, and component (a highest level).

    Attributes
    ----------
    levels : ndarray, shape (targets, partitions, components, levels)
        Log-odds of label 1 in a cell.
    bets_on : ndarray of bool, shape (components, 2)
        Whether a component guesses 1 at the upper end (column 0) and 0 at the lower end (column 1).
    stakes : ndarray, shape (targets, partitions, components)
    log_weights : ndarray, shape (targets, partitions, components)
        Of partitions and components; sums to 1 over both.
    evidence : ndarray, shape (targets, partitions, components)
        Log probability of the training labels.
    growth : ndarray, shape (targets, partitions, components)
        Expected log wealth a draw on the training draws; 0 where the stakes were not fitted (no delta).
    """

    levels: FloatArray
    bets_on: NDArray[np.bool_]
    stakes: FloatArray
    log_weights: FloatArray
    evidence: FloatArray
    growth: FloatArray

    def log_wealth(self, book: Book, line: Line) -> FloatArray:
        """Log wealth of the live draws against each line, for each target and partition.

        Parameters
        ----------
        book : Book
            The one that the bets were fitted on, with its live draws.
        line : Line
            Of shape (values,), or (values, partitions) where partitions have lines of their own.

        Returns
        -------
        ndarray, shape (values, targets, partitions)
            Weighted with the partitions' weights: their sum over partitions (in logarithms) is the wealth.
        """
        # (values, 1, partitions or 1, 1)
        epsilon, delta = (np.reshape(part, (len(part), 1, -1, 1)) for part in (line.epsilon, line.delta))
        cost = 0.5 * delta * self.bets_on.sum(axis=1)  # (values, 1, partitions or 1, components)
        stakes = self.stakes[None]
        at_risk = stakes * (np.exp(np.minimum(epsilon, 700.0)) + cost)
        legal = at_risk < 1.0
        gain = np.log1p(stakes * (1.0 - cost))
        loss = np.log1p(-np.where(legal, at_risk, 0.0))
        idle = np.log1p(-np.where(legal, stakes * cost, 0.0))
        label0, label1 = book.live[:, 0].T[:, None, :, None], book.live[:, 1].T[:, None, :, None]
        # From here on the axes are (cells, levels, values, targets, partitions, components).
        rest = np.where(idle == 0.0, 0.0, idle * (label0 + label1)[:, None])
        emission = _label_evidence(book.train, self.levels)[:, :, None] + rest[:, None]
        for end, of1, of0, side in ((-1, label1, label0, 0), (0, label0, label1, 1)):
            bet = gain * of1[:, None] + loss * of0[:, None]
            emission[:, end] += np.where(self.bets_on[:, side], bet - rest, 0.0)
        won = path_log_sum(emission, book.switch[:, None]) - self.evidence + self.log_weights
        return np.asarray(special.logsumexp(np.where(legal, won, -math.inf), axis=-1))


def _label_evidence(train: FloatArray, levels: FloatArray) -> FloatArray:
    """Log probability of the labels counted in `train` (partitions, 2, cells) at each of the levels.

    Shape (cells, levels, targets, partitions, components).
    """
    levels = np.moveaxis(levels, -1, 0)  # (levels, targets, partitions, components)
    label0, label1 = train[:, 0].T[:, None, None, :, None], train[:, 1].T[:, None, None, :, None]
    return np.asarray(label1 * special.log_expit(levels) + label0 * special.log_expit(-levels))


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
    weights = np.exp(emission - top)
    total = top[:, 0].sum(axis=0)
    stay = 1.0 - switch
    state = start.reshape(-1, *[1] * (emission.ndim - 2)) * weights[0]
    for cell in range(len(emission)):
        if cell:
            state = (stay * state + switch * _moved(jump.T, state)) * weights[cell]
        mass = state.sum(axis=0)
        total += np.log(mass)
        state /= mass
    return np.asarray(total)


def _moved(matrix: FloatArray, state: FloatArray) -> FloatArray:
    """A matrix (levels, levels) applied to states of shape (levels, ...)."""
    return np.asarray((matrix @ state.reshape(len(state), -1)).reshape(state.shape))


def end_probabilities(emission: FloatArray, switch: FloatArray) -> FloatArray:
    """Posterior probability of the lowest and of the highest level in each cell, shape (2, cells, ...).

    `emission` and `switch` are as for `path_log_sum`.
    """
    start, jump = _prior(emission.shape[1])
    weights = np.exp(emission - emission.max(axis=1, keepdims=True))
    stay = 1.0 - switch
    forward, backward = np.empty_like(weights), np.ones_like(weights)
    state = start.reshape(-1, *[1] * (emission.ndim - 2)) * weights[0]
    forward[0] = state / state.sum(axis=0)
    for cell in range(1, len(weights)):
        before = forward[cell - 1]
        state = (stay * before + switch * _moved(jump.T, before)) * weights[cell]
        forward[cell] = state / state.sum(axis=0)
    for cell in range(len(weights) - 2, -1, -1):
        after = backward[cell + 1] * weights[cell + 1]
        state = stay * after + switch * _moved(jump, after)
        backward[cell] = state / state.sum(axis=0)
    both = forward * backward
    both /= both.sum(axis=1, keepdims=True)
    return np.stack([both[:, 0], both[:, -1]])


def _prior(levels: int) -> tuple[FloatArray, FloatArray]:
    """Probabilities of the first cell's levels, and of those of a cell that does not follow its neighbour."""
    start = np.full(levels, (1.0 - 2.0 * END_SHARE) / (levels - 2))
    start[[0, -1]] = END_SHARE
    beside = np.eye(levels, k=1) + np.eye(levels, k=-1)
    return start, 0.5 * beside / beside.sum(axis=1, keepdims=True) + 0.5 * start


def stack(books: Sequence[Book], bets: Sequence[Bets]) -> tuple[Book, Bets]:
    """Several epochs as one, their partitions one after the other."""
    cells = max(book.train.shape[-1] for book in books)

    def padded(part: FloatArray) -> FloatArray:
        return np.pad(part, ((0, 0), (0, 0), (0, cells - part.shape[-1])))

    train, live = (np.concatenate([padded(getattr(book, name)) for book in books]) for name in ("train", "live"))
    names = [field.name for field in dataclasses.fields(Bets) if field.name != "bets_on"]
    joined = {name: np.concatenate([getattr(part, name) for part in bets], axis=1) for name in names}
    return Book(train, live, np.concatenate([book.sizes for book in books])), Bets(bets_on=bets[0].bets_on, **joined)


def fit_bets(book: Book, line: Line, fraction: FloatArray, counted_on: FloatArray, has_delta: bool) -> Bets:
    """Bets meant to beat each line, from the training draws of a book.

    Parameters
    ----------
    book : Book
        Its live draws are not looked at.
    line : Line
        The targets, shape (targets,).
    fraction : ndarray of float, shape (fractions,)
        In (0, 1): shares of the largest legal stake. Without a delta each stands for the highest level at which it is
        the best stake, which exceeds epsilon.
    counted_on : ndarray, shape (partitions,)
        Training draws of each partition: partitions are weighed by the evidence for as many draws as all of them have.
    has_delta : bool
        Whether lines of the family may have a delta.
    """
    epsilon, delta = line.epsilon, line.delta
    # A stake of share f is best where wrong guesses are 1 - f times as frequent as the line allows.
    wrong = (1.0 - fraction) * special.expit(-epsilon)[:, None]
    highest = np.log1p(-wrong) - np.log1p(-fraction) + np.logaddexp(0.0, epsilon)[:, None]  # (targets, fractions)
    relative = np.array(LEVELS_WITH_DELTA if has_delta else LEVELS)
    bets_on = np.array([[True, True], [True, False], [False, True]] if has_delta else [[True, True]])
    bets_on = np.repeat(bets_on, len(fraction), axis=0)
    highest = np.tile(highest, (1, len(bets_on) // len(fraction)))  # (targets, components)
    shape = (len(epsilon), len(book.sizes), len(bets_on))
    levels = np.broadcast_to((highest[:, :, None] * relative)[:, None], (*shape, len(relative)))
    training = _label_evidence(book.train, levels)
    evidence = path_log_sum(training, book.switch[:, None])
    largest = np.exp(np.minimum(epsilon, 700.0))[:, None] + 0.5 * delta[:, None] * bets_on.sum(axis=1)
    if has_delta:
        stakes, growth = _best_stakes(book, training, largest, delta, bets_on, fraction)
    else:
        stakes, growth = np.broadcast_to((fraction / largest)[:, None, :], shape), np.zeros(shape)
    tempered = evidence * (TEMPER_WITH_DELTA if has_delta else 1.0)
    of_components = tempered - special.logsumexp(tempered, axis=-1, keepdims=True)
    even = -math.log(evidence.shape[-1])
    of_components = np.logaddexp(math.log1p(-FLOOR) + of_components, math.log(FLOOR) + even)
    per_draw = special.logsumexp(evidence, axis=-1) / np.maximum(counted_on, 1.0)
    of_partitions = per_draw * float(counted_on.min())
    of_partitions = of_partitions - special.logsumexp(of_partitions, axis=-1, keepdims=True)
    return Bets(levels, bets_on, np.asarray(stakes), of_partitions[..., None] + of_components, evidence, growth)


def _best_stakes(
    book: Book,
    training: FloatArray,
    largest: FloatArray,
    delta: FloatArray,
    bets_on: NDArray[np.bool_],
    fraction: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """The stakes of the fastest growth on the training draws, and that growth; one wrong guess is added to each record.

    Where nothing grows, the smallest stake is taken.
    """
    low, high = end_probabilities(training, book.switch[:, None])  # each (cells, targets, partitions, components)
    low, high = low * bets_on[:, 1], high * bets_on[:, 0]
    label0, label1 = book.train[:, 0].T[:, None, :, None], book.train[:, 1].T[:, None, :, None]
    draws = np.maximum(book.train.sum(axis=(1, 2)), 1.0)[None, :, None]
    correct = (high * label1 + low * label0).sum(axis=0) / draws
    wrong = ((high * label0 + low * label1).sum(axis=0) + 1.0) / draws
    cost = (0.5 * delta[:, None] * bets_on.sum(axis=1))[:, None, :, None]
    shares = np.geomspace(fraction[0], fraction[-1], STAKES)
    stakes = shares / largest[:, None, :, None]
    idle = np.maximum(0.0, 1.0 - correct - wrong)[..., None]
    growth = correct[..., None] * np.log1p(stakes * (1.0 - cost)) + wrong[..., None] * np.log1p(-shares)
    growth = growth + idle * np.log1p(-stakes * cost)  # (targets, partitions, components, STAKES)
    best = growth.argmax(axis=-1)
    fitted = np.take_along_axis(np.broadcast_to(stakes, growth.shape), best[..., None], axis=-1)[..., 0]
    most = growth.max(axis=-1)
    smallest = np.broadcast_to(shares[0] / largest[:, None, :], fitted.shape)
    return np.where(most > 0.0, fitted, smallest), np.maximum(most, 0.0)
