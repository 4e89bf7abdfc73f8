"""Bets on cells: how much to stake where, learned from earlier draws, and what the bets have won since.

The game. Each labelled draw falls into a cell of a partition fixed beforehand; its label is a fair coin (1: drawn from
x, 0: from x_prime). The line P(S) <= e^epsilon Q(S) + delta for every event S, in both directions, gives for functions
g, h >= 0 of the cell (each is a mixture of the events on which it is large)

    E_P[g] - e^epsilon E_Q[g] <= delta max g,        E_Q[h] - e^epsilon E_P[h] <= delta max h,

so a bettor who stakes g on label 1 and h on label 0 has, given everything before, the factor

    1 + g (1{label 1} - e^epsilon 1{label 0}) + h (1{label 0} - e^epsilon 1{label 1}) - charge,
    charge = delta (max g + max h) / 2

of mean at most 1, and it is non-negative where max(g, h) e^epsilon + charge <= 1 and no cell has both. Products over
successive draws are supermartingales, and so is any average of such products with weights fixed beforehand; by Ville's
inequality it reaches 1/a with probability at most a, ever. With the stakes held fixed a factor decreases in epsilon and
in delta, hence wealth decreases in the claim's parameter, and the rejected parameters are an interval from 0. (Where a
component's largest stake is no longer legal it counts as 0.)

The weights. Which cells speak for x is not known, so the average runs over *paths*: one of a few loss levels a cell, in
the order of the score; levels above epsilon are staked on. A path's weight is its posterior probability given the
training draws, in a model where the label in a cell of level l is 1 with log-odds l and levels tend to persist from
cell to cell. The sum over paths is that of a hidden Markov chain, one small matrix product a cell. What the model needs
beside the path, a *component*, is averaged over as well: how often levels change, and

* without a delta, the highest level. A cell of level l > epsilon has the stake that is best for l. (Levels relative to
  the highest one: what is bet on is told from what is not by the gap between them, not by which side of epsilon it is.)
* with a delta, from which level on to bet, in which direction, and a stake for all cells, the best one on the training
  draws (losses far above epsilon are common there, and the charge makes small bets in wide events worthless).

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

RELATIVE_LEVELS = (-1.0, -0.6, 0.0, 0.6, 1.0)  # of a cell, in units of the highest level
EXCESSES = (0.35, 0.8, 1.6, 3.5)  # of a cell's level over epsilon, where the line has a delta
MULTIPLES = (0.4, 1.0)  # of the stake that is best on the training draws, where the line has a delta
END_SHARE = 0.35  # prior probability of each of the two extreme levels in a cell that does not follow its neighbour
SWITCHES = (1.5, 8.0)  # expected number of cells that do not follow their neighbour
LARGEST_SWITCH = 0.8
FLOOR = 0.1  # share of the weights that is spread evenly over the components, whatever the training draws say
GROWTH_TEMPER = 0.5  # of the growth on the training draws, as the log weight of a component with a fitted stake
STAKES = 16  # tried, where they are fitted


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


@dataclasses.dataclass(frozen=True)
class Bets:
    """What is staked, for each target (a line it is meant to beat), partition, and component.

    Attributes
    ----------
    levels, stakes : ndarray, shape (levels, targets, partitions, components)
        Log-odds of label 1 in a cell of each level, and the stake there: on label 1 in the upper half of the levels, on
        label 0 in the lower half.
    switch : ndarray, shape (1, partitions, components)
        The probability that a cell does not follow its neighbour.
    log_weights : ndarray, shape (targets, partitions, components)
        Of partitions and components; sums to 1 over both.
    evidence : ndarray, shape (targets, partitions, components)
        Log probability of the training labels.
    growth : ndarray, shape (targets, partitions, components)
        Expected log wealth a draw on the training draws; 0 where the stakes were not fitted (no delta).
    """

    levels: FloatArray
    stakes: FloatArray
    switch: FloatArray
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
        half = len(self.stakes) // 2
        stakes = self.stakes[:, None]  # (levels, 1, targets, partitions, components)
        charge = 0.5 * delta * (stakes[:half].max(axis=0) + stakes[half + 1 :].max(axis=0))
        at_risk = stakes * np.exp(np.minimum(epsilon, 700.0)) + charge
        legal = np.all(at_risk < 1.0, axis=0)
        right = np.log1p(np.where(legal, stakes - charge, 0.0))
        wrong = np.log1p(np.where(legal, -at_risk, 0.0))
        is_upper = np.arange(len(stakes)).reshape(-1, *[1] * 4) > half
        if_one, if_zero = np.where(is_upper, right, wrong), np.where(is_upper, wrong, right)
        idle = np.log1p(np.where(legal, -charge, 0.0))
        if_one[half] = if_zero[half] = idle
        label0, label1 = _by_cell(book.live)  # (cells, 1, 1, 1, partitions, 1)
        emission = _label_evidence(book.train, self.levels)[:, :, None] + label1 * if_one + label0 * if_zero
        won = path_log_sum(emission, self.switch) - self.evidence + self.log_weights
        return np.asarray(special.logsumexp(np.where(legal, won, -math.inf), axis=-1))


def _by_cell(counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Counts (partitions, 2, cells) of label 0 and of label 1, with axes (cells, 1, 1, 1, partitions, 1)."""
    return counts[:, 0].T[:, None, None, None, :, None], counts[:, 1].T[:, None, None, None, :, None]


def _label_evidence(train: FloatArray, levels: FloatArray) -> FloatArray:
    """Log probability of the labels counted in `train` (partitions, 2, cells) at each of the levels.

    Shape (cells, levels, targets, partitions, components).
    """
    label0, label1 = (part[:, :, 0] for part in _by_cell(train))
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


def level_probabilities(emission: FloatArray, switch: FloatArray) -> FloatArray:
    """Posterior probability of each level in each cell, shape (cells, levels, ...); see `path_log_sum`."""
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
    return np.asarray(both / both.sum(axis=1, keepdims=True))


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
    names = [field.name for field in dataclasses.fields(Bets)]
    joined = {name: np.concatenate([getattr(part, name) for part in bets], axis=-2) for name in names}
    return Book(train, live, np.concatenate([book.sizes for book in books])), Bets(**joined)


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
    fit = _fitted_stakes if has_delta else _stakes_by_level
    levels, stakes, switch, evidence, growth = fit(book, line, fraction)
    score = growth * counted_on[:, None] * GROWTH_TEMPER if has_delta else evidence
    score = score - special.logsumexp(score, axis=-1, keepdims=True)
    score = np.logaddexp(math.log1p(-FLOOR) + score, math.log(FLOOR) - math.log(score.shape[-1]))
    per_draw = special.logsumexp(evidence, axis=-1) / np.maximum(counted_on, 1.0)
    of_partitions = per_draw * float(counted_on.min())
    of_partitions = of_partitions - special.logsumexp(of_partitions, axis=-1, keepdims=True)
    return Bets(levels, stakes, switch, of_partitions[..., None] + score, evidence, growth)


def _switch(book: Book, components: int) -> FloatArray:
    """Shape (1, partitions, len(SWITCHES) * components): the components at each of the rates."""
    rates = np.array(SWITCHES) / np.maximum(book.sizes, 1)[:, None]
    return np.repeat(np.minimum(LARGEST_SWITCH, rates), components, axis=1)[None]


def _stakes_by_level(book: Book, line: Line, fraction: FloatArray) -> tuple[FloatArray, ...]:
    """Levels, stakes, switch, evidence and growth without a delta: one component for each highest level and rate."""
    epsilon = line.epsilon[:, None]
    # A stake of share f is best where wrong guesses are 1 - f times as frequent as the line allows.
    wrong = (1.0 - fraction) * special.expit(-epsilon)
    highest = np.log1p(-wrong) - np.log1p(-fraction) + np.logaddexp(0.0, epsilon)  # (targets, fractions)
    switch = _switch(book, len(fraction))
    highest = np.tile(highest, len(SWITCHES))[:, None, :]
    shape = (len(RELATIVE_LEVELS), len(epsilon), *switch.shape[1:])
    levels = np.broadcast_to(np.multiply.outer(RELATIVE_LEVELS, highest), shape)
    # 1 - share = P(wrong at the level) / P(wrong on the line)
    excess = special.log_expit(-np.abs(levels)) - special.log_expit(-epsilon)[:, :, None]
    stakes = np.maximum(0.0, -np.expm1(excess)) * np.exp(-np.minimum(epsilon, 700.0))[:, :, None]
    evidence = path_log_sum(_label_evidence(book.train, levels), switch)
    return levels, stakes, switch, evidence, np.zeros_like(evidence)


def _fitted_stakes(book: Book, line: Line, fraction: FloatArray) -> tuple[FloatArray, ...]:
    """The same with a delta: one component for each least level, direction, multiple of the best stake, and rate."""
    epsilon, delta = line.epsilon[:, None, None], line.delta[:, None, None]
    upper = np.concatenate([0.5 * line.epsilon[None], line.epsilon + np.array(EXCESSES)[:, None]])  # (levels, targets)
    levels = np.concatenate([-upper[::-1], np.zeros((1, len(line.epsilon))), upper])
    half = len(levels) // 2
    # Which levels each choice of (least level, direction) bets on.
    on = np.zeros((len(levels), 3 * len(EXCESSES)))
    for k in range(len(EXCESSES)):
        on[half + 2 + k :, 3 * k : 3 * k + 2] = 1.0  # both directions, and label 1 alone
        on[: half - 1 - k, 3 * k] = on[: half - 1 - k, 3 * k + 2] = 1.0
    switch = _switch(book, 1)  # (1, partitions, rates)
    shape = (len(levels), len(line.epsilon), *switch.shape[1:])
    training = _label_evidence(book.train, np.broadcast_to(levels[:, :, None, None], shape))
    evidence = path_log_sum(training, switch)  # (targets, partitions, rates)
    found = level_probabilities(training, switch)  # (cells, levels, targets, partitions, rates)
    label0, label1 = (part[:, :, 0] for part in _by_cell(book.train))
    draws = np.maximum(book.train.sum(axis=(1, 2)), 1.0)[:, None, None]
    ones, zeros = (found * label1).sum(axis=0), (found * label0).sum(axis=0)  # (levels, targets, partitions, rates)
    right = np.concatenate([zeros[:half], 0.0 * ones[half : half + 1], ones[half + 1 :]])
    wrong = np.concatenate([ones[:half], 0.0 * ones[half : half + 1], zeros[half + 1 :]])
    correct = np.moveaxis(np.tensordot(on, right, axes=(0, 0)), 0, -1) / draws  # (targets, partitions, rates, choices)
    error = (np.moveaxis(np.tensordot(on, wrong, axes=(0, 0)), 0, -1) + 1.0) / draws  # one wrong guess is added
    directions = np.tile([2.0, 1.0, 1.0], len(EXCESSES))
    cost = 0.5 * delta[..., None] * directions
    largest = np.exp(np.minimum(epsilon, 700.0))[..., None] + cost  # (targets, 1, 1, choices)
    shares = np.geomspace(fraction[0], fraction[-1], STAKES).reshape(-1, *[1] * 4)

    def growth_of(share: FloatArray) -> FloatArray:
        stake = share / largest
        idle = np.maximum(0.0, 1.0 - correct - error)
        grown = correct * np.log1p(stake * (1.0 - cost)) + error * np.log1p(-share) + idle * np.log1p(-stake * cost)
        return np.asarray(grown)

    best = np.argmax(growth_of(shares), axis=0)
    chosen = np.minimum(shares.ravel()[best][..., None] * np.array(MULTIPLES), fraction[-1])
    growth = np.stack([growth_of(chosen[..., k]) for k in range(len(MULTIPLES))], axis=-1)
    stakes = chosen / largest[..., None]  # (targets, partitions, rates, choices, multiples)
    components = (*evidence.shape[:2], -1)
    of_levels = on.reshape(len(levels), 1, 1, 1, on.shape[1], 1) * stakes
    each = len(MULTIPLES) * on.shape[1]
    all_switch = np.repeat(switch, each, axis=-1)
    return (
        np.broadcast_to(levels[:, :, None, None], (len(levels), *evidence.shape[:2], all_switch.shape[-1])),
        of_levels.reshape(len(levels), *components),
        all_switch,
        np.repeat(evidence, each, axis=-1),
        np.maximum(growth, -1.0).reshape(components),
    )
