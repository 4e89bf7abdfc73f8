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
given the training draws, in a model where the label in a cell of level l is 1 with log-odds l; how likely paths are
beforehand, and how the sum over them is taken, is in `dpaudit.learning.paths`. What the model needs beside the path, a
*component*, is averaged over as well: the highest level, with the stake that is best for it; and, where the line has a
delta, smaller stakes and bets in one direction only.

Twins are partitions of the same cells whose paths have other priors. In bets for the budget the training labels say
which prior describes them better, and so, beside what each has won, how the weight of all twins together is split.

Nothing is selected, so nothing that was lucky on few draws is followed for long: the model may be wrong, which costs
draws and never validity, since weights see training draws only.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.learning.paths import LEVELS, Emissions, PathPriors
from dpaudit.privacy.claims import FloatArray

MIDDLE_LEVEL, LEAST_MIDDLE = 0.6, 0.1  # in units of the highest level
SPREAD_LEVELS = (0.15, 0.3, 0.45, 0.6, 0.75, 0.9)  # in the same units
HIGH_SHARE = 0.5  # of the largest stake, from which on a level is taken for far above epsilon
MULTIPLES = (1.0, 0.3)  # of the stake that is best for the level, where the line has a delta
EVEN = 0.5  # share of the weights of components that the labels do not decide
EVEN_TWINS = 0.2  # share of the weights of twins that the labels do not decide
AT_ONCE = 1 << 17  # numbers of a sum over paths, for some of the components: they stay in the processor's cache
FLOOR = 0.05  # share of the weights that is spread evenly, whatever was learned


@dataclasses.dataclass(frozen=True)
class Book:
    """Counts of labelled draws in the cells of partitions, padded to the largest one.

    Attributes
    ----------
    train, live : ndarray of float, shape (2, cells, partitions)
        Draws that weights are fitted on, and draws that are bet on; row 0 is label 0 (x_prime).
    paths : PathPriors
        How likely paths are beforehand, in each partition. Cells beyond a partition's own are padding.
    """

    train: FloatArray
    live: FloatArray
    paths: PathPriors

    def for_partitions(self, positions: NDArray[np.intp]) -> Book:
        """Some of the partitions, padded as they are."""
        return Book(self.train[:, :, positions], self.live[:, :, positions], self.paths.only(positions))


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

    def growth(self, epsilon: FloatArray) -> FloatArray:
        """Nats that a guess wins against epsilon at the best stake, if it is right with the log-odds `highest`.

        The relative entropy of that accuracy from the one that epsilon allows; a delta of the line is left out.
        """
        wrong, allowed = scipy.special.expit(-self.highest), scipy.special.expit(-epsilon)
        log_expit = scipy.special.log_expit
        log_ratio = log_expit(-self.highest) - log_expit(-epsilon)  # of wrong guesses to the allowed
        spared = -allowed * np.expm1(log_ratio)
        return np.asarray(wrong * log_ratio + (1.0 - wrong) * np.log1p(spared / (1.0 - allowed)))

    @staticmethod
    def concatenated(several: Sequence[Components], axis: int) -> Components:
        """Those of several partitions (axis 0), or several sets for the same partitions (axis 1)."""
        parts = zip(*(components._parts for components in several), strict=True)
        return Components(*(np.concatenate(part, axis=axis) for part in parts))

    @staticmethod
    def stacked(several: Sequence[Components]) -> Components:
        """Those of several partitions, one each: one for all where they are the same."""
        different = {components._bytes: components for components in several}
        together = Components.concatenated(list(different.values()), axis=0)
        if len(different) == 1:
            return together
        place = {key: at for at, key in enumerate(different)}
        rows = np.array([place[components._bytes] for components in several])
        return Components(*(part[rows] for part in together._parts))

    @functools.cached_property
    def models(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The first component of each model of the labels, and each component's model: several differ in the stakes."""
        places: dict[bytes, int] = {}
        levels = np.concatenate([self.highest, self.middle]).T
        columns = np.array([places.setdefault(own.tobytes(), len(places)) for own in levels], dtype=np.intp)
        return np.unique(columns, return_index=True)[1], columns

    @functools.cached_property
    def _bytes(self) -> bytes:
        return b"".join(part.tobytes() for part in self._parts)

    @property
    def _parts(self) -> tuple[FloatArray, ...]:
        return self.anchor, self.up, self.down, self.highest, self.middle


@dataclasses.dataclass(frozen=True)
class Gains:
    """Log factors of a draw that is bet on, against one line a component.

    `on_extremes`, shape (partitions or 1, 4, components), are over `idle`, which is that of a draw in any other cell:
    of labels 1 and 0 in cells of the highest level, and of labels 0 and 1 in those of the lowest. `legal` and `idle`
    are of shape (partitions or 1, components). Where a stake is not legal all are 0.
    """

    legal: NDArray[np.bool_]
    on_extremes: FloatArray
    idle: FloatArray
    has_idle: bool


def gains(components: Components, epsilon: FloatArray, delta: FloatArray) -> Gains:
    """What each component gains or loses with a draw; epsilon and delta of its line, shape (partitions or 1, same)."""
    up, down = components.up, components.down
    charge = 0.5 * delta * (up + down)
    risk = np.exp(np.minimum(epsilon, 700.0))
    legal = np.maximum(up, down) * risk + charge < 1.0
    payoffs = np.stack([up - charge, -up * risk - charge, down - charge, -down * risk - charge], axis=1)
    idle = np.log1p(np.where(legal, -charge, 0.0))
    on_extremes = np.log1p(np.where(legal[:, None], payoffs, 0.0)) - idle[:, None]
    return Gains(legal, on_extremes, idle, bool(np.any(idle)))


def stakes_of(counts: FloatArray, paths: PathPriors) -> FloatArray:
    """The counts that each gain of `Gains.on_extremes` is for, in the order of the chain.

    Parameters
    ----------
    counts : ndarray of float, shape (2, cells, partitions)
    paths : PathPriors

    Returns
    -------
    ndarray of float, shape (partitions, cells, 2, 4)
        At the lowest and at the highest level of each cell. Cells that mirror each other have opposite levels.
    """
    label0, label1 = counts
    stakes = np.zeros((*label0.shape, 2, 4))
    stakes[:, :, 1, 0] = stakes[:, :, 0, 3] = label1
    stakes[:, :, 1, 1] = stakes[:, :, 0, 2] = label0
    return np.ascontiguousarray(np.swapaxes(paths.in_chain(stakes), 0, 1))


@dataclasses.dataclass(frozen=True)
class Bets:
    """Components with their weights in each partition, and what the model makes of the training labels.

    Attributes
    ----------
    components : Components
    model : Emissions
        Log probability of the training labels in each cell at each level.
    evidence : ndarray of float, shape (partitions, components)
        Log probability of all training labels.
    paths : PathPriors
        How likely paths are beforehand, in each partition.
    log_weights : ndarray of float, shape (partitions, components)
        They sum to 1 over the components and the partitions of an epoch.
    """

    components: Components
    model: Emissions
    evidence: FloatArray
    paths: PathPriors
    log_weights: FloatArray

    def log_wealth(self, counts: FloatArray, epsilon: FloatArray, delta: FloatArray) -> FloatArray:
        """Log wealth of labelled draws against a line, shape (partitions, components); -inf where it is illegal.

        Parameters
        ----------
        counts : ndarray of float, shape (2, cells, partitions)
        epsilon, delta : ndarray of float, shape (partitions or 1, components)
            Each component's line.
        """
        return self.log_wealth_of(stakes_of(counts, self.paths), gains(self.components, epsilon, delta))

    def log_wealth_of(self, stakes: FloatArray, line: Gains) -> FloatArray:
        """The same with what is worth keeping where it serves several times: `stakes_of` counts, and the gains."""
        partitions, cells = stakes.shape[:2]
        counts = stakes.reshape(partitions, 2 * cells, 4)
        logs = np.empty_like(self.evidence)
        step = max(AT_ONCE // (LEVELS * partitions * cells), 1)
        for start in range(0, self.evidence.shape[1], step):
            part = slice(start, start + step)
            won = np.matmul(counts, line.on_extremes[..., part]).reshape(partitions, cells, 2, -1)
            logs[:, part] = self.paths.log_sum(self.model.only(part), won)
        logs -= self.evidence
        if line.has_idle:
            logs += stakes[:, :, 1].sum(axis=(1, 2))[:, None] * line.idle  # of every draw, at one of the levels
        return np.where(line.legal, logs, -math.inf)

    def only(self, positions: NDArray[np.intp]) -> Bets:
        """Bets on some of the components, with weights that sum to 1 again."""
        weights = self.log_weights[:, positions]
        weights = weights - log_sum(weights)
        model, evidence = self.model.only(positions), self.evidence[:, positions]
        return Bets(self.components.only(positions), model, evidence, self.paths, weights)

    def for_partitions(self, positions: NDArray[np.intp], cells: int) -> Bets:
        """Bets on some of the partitions, of so many cells at most, with weights that sum to 1 again."""
        weights = self.log_weights[positions]
        return Bets(
            self.components,
            self.model.for_partitions(positions, cells),
            self.evidence[positions],
            self.paths.only(positions),
            weights - log_sum(weights),
        )


def fit_bets(
    book: Book,
    components: Components,
    history: FloatArray,
    epochs: Sequence[int],
    lines: tuple[FloatArray, FloatArray] | None = None,
    twins: Sequence[int] | None = None,
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
    twins : sequence of int, optional
        One number a partition, the same for twins; none by default.
    """
    model, evidence = evidence_of(book.train, components, book.paths)
    shares = _normalised(evidence)
    if lines is not None:
        won = Bets(components, model, evidence, book.paths, shares).log_wealth(book.train, *lines)
        for anchor in np.unique(components.anchor).tolist():
            of_anchor = components.anchor[0] == anchor
            likely = _normalised(evidence[:, of_anchor])
            likely = np.logaddexp(math.log1p(-EVEN) + likely, math.log(EVEN / likely.shape[1]))
            shares[:, of_anchor] = likely + won[:, of_anchor]
        shares = _normalised(shares)
    if twins is not None:
        shares += _among_twins(evidence, np.asarray(twins))[:, None]
    return Bets(components, model, evidence, book.paths, _weighed(history + shares, epochs))


def evidence_of(train: FloatArray, components: Components, paths: PathPriors) -> tuple[Emissions, FloatArray]:
    """What the model makes of training labels, (2, cells, partitions): `Bets.model` and `Bets.evidence`."""
    first, columns = components.models
    if len(first) == len(columns):
        model = Emissions.of(paths.in_chain(_model(train, components)))
        return model, paths.log_sum(model)
    model = Emissions.of(paths.in_chain(_model(train, components.only(first))))
    return dataclasses.replace(model, columns=columns), paths.log_sum(model)[:, columns]


def weights_of(evidence: FloatArray, epochs: Sequence[int]) -> FloatArray:
    """Log weights by the evidence alone, shape (partitions, components); so many partitions belong to each epoch."""
    return _weighed(_normalised(evidence), epochs)


def _weighed(logs: FloatArray, epochs: Sequence[int]) -> FloatArray:
    """Log weights in proportion to exp(logs) over the partitions and components of each epoch."""
    return np.concatenate([_floored(part) for part in np.split(logs, np.cumsum(epochs)[:-1])])


def _among_twins(evidence: FloatArray, twins: NDArray[np.intp]) -> FloatArray:
    """Log shares of each partition among its twins, times their number, by the evidence; shape (partitions,)."""
    of_partitions = log_sum(evidence, axis=1)
    result = np.zeros(len(twins))
    for twin in np.unique(twins).tolist():
        same = np.flatnonzero(twins == twin)
        likely = _normalised(of_partitions[same])
        result[same] = np.logaddexp(math.log1p(-EVEN_TWINS) + likely + math.log(len(same)), math.log(EVEN_TWINS))
    return result


def _model(train: FloatArray, components: Components) -> FloatArray:
    """Log probability of the training labels in each cell at each level, shape (cells, partitions, levels, components).

    Where a component's middle levels are spread out, what lies between the extremes has no say in which highest level
    is the likeliest: else one that describes the many cells below epsilon well would be bet on, whatever lies above.
    """
    highest, middle = components.highest, components.middle
    is_spread = np.isnan(middle)
    middle = np.where(is_spread, MIDDLE_LEVEL * highest, middle)
    of_1 = scipy.special.log_expit(np.stack([-highest, -middle, np.zeros_like(highest), middle, highest], axis=1))
    of_0 = np.ascontiguousarray(of_1[:, ::-1])
    label0, label1 = train[..., None, None]
    model = label1 * of_1
    model += label0 * of_0
    positions = np.flatnonzero(np.any(is_spread, axis=0))
    if len(positions):
        is_spread = is_spread[:, positions]
        spread = np.multiply.outer(SPREAD_LEVELS, highest[:, None, positions])  # (spread levels, partitions, 1, those)
        right, wrong = (np.swapaxes(scipy.special.log_expit(part), 1, 2) for part in (spread, -spread))
        label0, label1 = train[..., None]
        for position, of_1, of_0 in ((1, wrong, right), (3, right, wrong)):
            logs = label1 * of_1  # (spread levels, cells, partitions, those); the largest array of all: kept in place
            logs += label0 * of_0
            top = logs.max(axis=0)
            logs -= top
            average = np.log(np.exp(logs, out=logs).sum(axis=0)) + (top - math.log(len(SPREAD_LEVELS)))
            at = model[:, :, position]
            at[..., positions] = np.where(is_spread, average, at[..., positions])
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
    wrong = (1.0 - fraction) * scipy.special.expit(-epsilon)
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
