"""The two-sided optimum: the best fixed guess of a problem, and the exact test on labels that is told it.

The guess is Neyman and Pearson's: x where the loss is high, x_prime where it is low, no guess between. A guessing rule
turns a labelled draw (fair label, output) into correct, wrong or abstained, with probabilities (c, w, 1 - c - w). A
claim's line (epsilon, delta) allows c - e^epsilon w <= delta * n / 2, where n (`n_events`) is the number of guessing
events that are not empty. Both functions below choose the two thresholds for their task, on the law itself: this is
what no auditor can do, so they are the yardstick of the bench and never a part of an audit.

* delta = 0: given the number of guesses, the correct ones are binomial; the exact one-sided test against
  e^epsilon / (1 + e^epsilon).
* delta > 0: the score test of c - e^epsilon w - delta * n / 2, its variance taken on the null at the observed
  number of guesses, and only where that number is within 4 standard deviations of its expectation. Its critical value
  is set on the largest size over points of the null's boundary in that reach, so that the size holds at all of them.
  For large samples no test of these counts has more power: it attains the divergence of (c, w) from its projection on
  the null. (The likelihood ratio against the projection itself, one point, does not keep its size elsewhere on the
  boundary: 13% at nominal 5%, at a quarter of its guesses.)

Conventions: draws are draws a side, half the labelled draws. Sums over outcomes are exact up to 2,000 values of the
number of guesses; beyond, over every k-th value (error of a power below 1e-3).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dpaudit.bench.problem import Law
from dpaudit.privacy.claims import Claim, FloatArray

LEVELS = 100  # thresholds tried on each side before the search goes on around the best
GUESSES = 2_000  # values of the number of guesses in one sum
SPREAD = 7.0  # standard deviations of that number that a sum covers: what is left out is below 1e-11
REACH = 4.0  # standard deviations of that number within which the test for delta > 0 may reject: costs 6e-5 of power
CANDIDATES = 25  # guesses whose draws are computed exactly, no two of them nearly alike
MAX_DRAWS = 1e10  # a side; what needs more is not found
BOUNDARY = (-6.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 6.0)  # points of the null: guesses off by so many deviations
SIMULATIONS = 4_000  # of the counts behind a bound's median and standard error: 1.6% of the standard error off
SEED = 20_261_101  # of these simulations
ANCHORS = 32  # lines tried for a claim that leaves the line free


Score = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]  # of (correct, wrong, n_events); the least is best
Lower = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], FloatArray]  # of counts, mass and n_events: a bound
Value = Callable[[FloatArray], FloatArray]  # a bound, in the claim's parameter


@dataclasses.dataclass(frozen=True)
class Guess:
    """A fixed guess: its probabilities of being correct and wrong, and how many of its two events are not empty."""

    correct: float
    wrong: float
    n_events: int

    @property
    def mass(self) -> float:
        """Probability that it guesses at all."""
        return self.correct + self.wrong


@dataclasses.dataclass(frozen=True)
class Optimum:
    """The least draws a side at which the best fixed test finds the problem, its guess, and its line's epsilon."""

    draws: float
    guess: Guess | None
    epsilon: float
    delta: float


@dataclasses.dataclass(frozen=True)
class BestBound:
    """Median and standard error (standard deviation over draws) of the best fixed lower bound, and its guess."""

    median: float
    standard_error: float
    guess: Guess | None


def draws_to_detection(law: Law, claim: Claim, confidence: float = 0.95, power: float = 0.9) -> Optimum | None:
    """The least draws a side at which the best fixed test of the claim rejects with probability `power`.

    A claim that leaves its line free (Gaussian, profile) is tested on its best line. `draws` is inf where the claim is
    kept (or not found with 1e10 draws a side). None for Renyi claims: they are not characterised by lines, so the test
    above is not their optimum.

    Examples
    --------
    >>> from dpaudit.bench.problem import finite_law
    >>> from dpaudit.privacy.claims import PureDP
    >>> truth = 1.0 / (1.0 + math.exp(-2.0))
    >>> draws_to_detection(finite_law([truth, 1 - truth], [1 - truth, truth]), PureDP(1.0)).draws
    30.0
    """
    if claim.family != "hockey-stick":
        return None
    table = _Tails(law)
    ranked: list[tuple[float, float, float, int, int]] = []
    for epsilon, delta in _lines(claim):
        high, low, scores = table.best(functools.partial(_less_divergence, epsilon=epsilon, delta=delta))
        found = zip(scores.tolist(), high.tolist(), low.tolist(), strict=True)
        ranked += [(score, epsilon, delta, i, j) for score, i, j in found]
    ranked = sorted(entry for entry in ranked if entry[0] < -1.0 / MAX_DRAWS)
    alpha = 1.0 - confidence
    normal = 0.5 * (stats.norm.isf(alpha) + stats.norm.ppf(power)) ** 2
    best = Optimum(math.inf, None, *_lines(claim)[0])
    tried: list[FloatArray] = []
    for score, epsilon, delta, i, j in ranked:
        guess = table.guess(i, j)
        place = np.array([math.log(guess.mass), math.log((guess.correct + 1e-9) / (guess.wrong + 1e-9)), epsilon])
        # The divergence ranks guesses for large samples; where few guesses decide, another one may need fewer draws.
        if any(np.abs(place - other).max() < 0.02 for other in tried):
            continue
        tried.append(place)
        draws = _least_draws(guess, epsilon, delta, alpha, power, 0.5 * normal / -score, best.draws)
        if draws < best.draws:
            best = Optimum(draws, guess, epsilon, delta)
        if len(tried) == CANDIDATES:
            break
    return best


def bound(law: Law, delta: float, draws_per_side: int = 100_000, confidence: float = 0.95) -> BestBound:
    """Median and standard error of the best fixed lower bound on epsilon at `delta`.

    The guess is the one with the largest bound on its expected counts; its bound knows the mass of the guess.

    Examples
    --------
    >>> from dpaudit.bench.problem import finite_law
    >>> truth = 1.0 / (1.0 + math.exp(-1.0))
    >>> round(bound(finite_law([truth, 1 - truth], [1 - truth, truth]), 0.0).median, 2)
    0.99
    """
    lower = functools.partial(_lower, delta=delta, alpha=1.0 - confidence)
    return _best_bound(law, [(lower, lambda found: np.maximum(0.0, found))], draws_per_side)


def parameter_bound(
    law: Law, claim: Claim, draws_per_side: int = 100_000, confidence: float = 0.95
) -> BestBound | None:
    """Median and standard error of the best fixed lower bound on the claim's own parameter.

    As `bound` for a claim on epsilon. For a claim that leaves its line free the guess bounds delta at one epsilon, and
    the parameter is the value whose profile has that delta there; the line is chosen too. None for Renyi claims.
    """
    if claim.family != "hockey-stick":
        return None
    if not claim.anchored:
        return bound(law, claim.delta, draws_per_side, confidence)
    values, lines = np.geomspace(1e-3, 50.0, 2_000), []
    for epsilon, _ in _lines(claim):
        lower = functools.partial(_delta_lower, epsilon=epsilon, alpha=1.0 - confidence)
        lines.append((lower, functools.partial(_value_of, values=values, deltas=claim.lines(values, epsilon)[1])))
    return _best_bound(law, lines, draws_per_side)


def _best_bound(law: Law, lines: Sequence[tuple[Lower, Value]], draws_per_side: int) -> BestBound:
    """The best of some bounds by its expected counts, and its median and standard error over draws."""
    labelled, table = 2 * draws_per_side, _Tails(law)
    best: tuple[float, Lower, Value, Guess] | None = None
    for lower, value_of in lines:

        def expected(correct: FloatArray, wrong: FloatArray, n_events: FloatArray, lower: Lower = lower) -> FloatArray:
            return -lower(labelled * correct, labelled * wrong, correct + wrong, n_events)

        i, j, score = table.best(expected)
        value = float(value_of(-score[:1])[0])
        if value > (best[0] if best is not None else 0.0):
            best = value, lower, value_of, table.guess(int(i[0]), int(j[0]))
    if best is None:
        return BestBound(0.0, 0.0, None)
    _, lower, value_of, guess = best
    correct, wrong = _simulated(guess, labelled)
    mass, n_events = np.full(SIMULATIONS, guess.mass), np.full(SIMULATIONS, float(guess.n_events))
    bounds = value_of(lower(correct, wrong, mass, n_events))
    return BestBound(float(np.median(bounds)), float(bounds.std()), guess)


class LineTest:
    """The optimum's test of one line for a number of labelled draws; see the module's docstring."""

    def __init__(self, guess: Guess, epsilon: float, delta: float, labelled: int, alpha: float) -> None:
        self.labelled, self.factor, self.alpha = labelled, math.exp(epsilon), alpha
        self.cost = 0.5 * delta * guess.n_events
        self.pure = 1.0 / (1.0 + math.exp(-epsilon)) if delta == 0.0 else math.nan
        mean, deviation = self._moments(guess.mass)
        self.reach = (mean - REACH * deviation, mean + REACH * deviation) if delta > 0.0 else (0.0, math.inf)
        self.critical = 0.0
        if delta > 0.0:
            points = self.boundary()
            low, high = 0.0, 12.0
            while high - low > 1e-3:
                self.critical = 0.5 * (low + high)
                size = max(self.rejection(correct, wrong) for correct, wrong in points)
                low, high = (low, self.critical) if size <= alpha else (self.critical, high)
            self.critical = high

    def boundary(self) -> list[tuple[float, float]]:
        """Points (correct, wrong) of the null's boundary that the test can reach, and the two ends next to them."""
        middle = 0.5 * sum(self.reach) / self.labelled
        deviation = (self.reach[1] - self.reach[0]) / (2.0 * REACH) / self.labelled
        masses = np.clip(middle + deviation * np.array(BOUNDARY), self.cost, 1.0)
        wrong = (np.unique(masses) - self.cost) / (1.0 + self.factor)
        return [(self.factor * w + self.cost, w) for w in wrong.tolist()]

    def rejection(self, correct: float, wrong: float) -> float:
        """Probability of a rejection where the guess is correct and wrong with these probabilities."""
        mass = min(1.0, correct + wrong)
        mean, deviation = self._moments(mass)
        least = math.floor(max(0.0, self.reach[0], mean - SPREAD * deviation))
        most = math.ceil(min(self.labelled, self.reach[1], mean + SPREAD * deviation))
        if least > most or mass <= 0.0:
            return 0.0
        stride = max(1, (most - least) // GUESSES)
        guesses = np.arange(least, most + 1, stride, dtype=float)
        needed = self._needed(guesses)
        share = min(1.0, correct / mass)
        chances = np.where(needed > guesses, 0.0, stats.binom.sf(np.maximum(needed, 0.0) - 1.0, guesses, share))
        return min(1.0, float(stride * (stats.binom.pmf(guesses, self.labelled, mass) * chances).sum()))

    def _needed(self, guesses: FloatArray) -> FloatArray:
        """The least number of correct guesses at which the test rejects, for each number of guesses."""
        if not math.isnan(self.pure):
            needed = stats.binom.isf(self.alpha, guesses, self.pure) + 1.0
            # isf may be one too high where a tail is exactly alpha up to rounding.
            least: FloatArray = needed - (stats.binom.sf(needed - 2.0, guesses, self.pure) <= self.alpha)
            return least
        mass = np.maximum(guesses / self.labelled, self.cost)
        wrong = (mass - self.cost) / (1.0 + self.factor)
        variance = self.factor * wrong + self.cost + self.factor**2 * wrong - self.cost**2
        excess = self.critical * np.sqrt(self.labelled * variance)
        return np.ceil((self.factor * guesses + self.labelled * self.cost + excess) / (1.0 + self.factor) - 1e-9)

    def _moments(self, mass: float) -> tuple[float, float]:
        mean = self.labelled * min(1.0, mass)
        return mean, math.sqrt(max(1.0, mean * (1.0 - min(1.0, mass))))


class _Tails:
    """Masses of both tails of a law, and a search over pairs of thresholds."""

    def __init__(self, law: Law) -> None:
        self.cells = len(law.p)
        self.low_p, self.low_q = _cumulative(law.p), _cumulative(law.q)
        self.high_p, self.high_q = _cumulative(law.p[::-1]), _cumulative(law.q[::-1])

    def guess(self, high: int, low: int) -> Guess:
        """The guess of x on the `high` last cells and of x_prime on the `low` first."""
        correct, wrong, n_events = self._masses(np.array([high]), np.array([low]))
        return Guess(float(correct[0]), float(wrong[0]), int(n_events[0]))

    def best(self, score: Score) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]:
        """Pairs of thresholds in increasing order of `score(correct, wrong, n_events)`: a grid, then around it."""
        high, low = self._levels(self.high_p + self.high_q), self._levels(self.low_p + self.low_q)
        i, j, scores = self._scored(score, high, low)
        for _ in range(4):
            a, b = int(i[0]), int(j[0])
            finer_high, finer_low = _between(high, a), _between(low, b)
            if len(finer_high) * len(finer_low) <= 9 and len(finer_high) <= 3 and len(finer_low) <= 3:
                break
            more = self._scored(score, finer_high, finer_low)
            i, j = np.concatenate([i, more[0]]), np.concatenate([j, more[1]])
            scores = np.concatenate([scores, more[2]])
            order = np.argsort(scores, kind="stable")
            i, j, scores = i[order], j[order], scores[order]
            high, low = finer_high, finer_low
        _, first = np.unique(np.column_stack([i, j]), axis=0, return_index=True)
        first.sort()
        return i[first], j[first], scores[first]

    def _masses(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> tuple[FloatArray, FloatArray, FloatArray]:
        correct = 0.5 * (self.high_p[i] + self.low_q[j])
        wrong = 0.5 * (self.high_q[i] + self.low_p[j])
        return correct, wrong, (i > 0).astype(float) + (j > 0)

    def _scored(
        self, score: Score, high: NDArray[np.int64], low: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]:
        i, j = (grid.ravel() for grid in np.meshgrid(high, low, indexing="ij"))
        fits = (i + j <= self.cells) & (i + j > 0)
        i, j = i[fits], j[fits]
        scores = np.asarray(score(*self._masses(i, j)), dtype=float)
        order = np.argsort(scores, kind="stable")
        return i[order], j[order], scores[order]

    def _levels(self, masses: FloatArray) -> NDArray[np.int64]:
        if self.cells < 2 * LEVELS:
            return np.arange(self.cells + 1)
        even = np.linspace(0, self.cells, LEVELS // 2).astype(int)
        by_mass = np.searchsorted(masses, np.linspace(0.0, masses[-1], LEVELS // 4))
        tail = np.searchsorted(masses, masses[-1] * np.geomspace(1e-7, 1.0, LEVELS // 4))
        return np.unique(np.clip(np.concatenate([even, by_mass, tail]), 0, self.cells))


def _between(levels: NDArray[np.int64], at: int) -> NDArray[np.int64]:
    """Up to 24 whole numbers from the level below `at` to the one above it."""
    position = int(np.searchsorted(levels, at))
    start, end = levels[max(0, position - 1)], levels[min(len(levels) - 1, position + 1)]
    return np.unique(np.concatenate([np.linspace(start, end, 24).astype(int), [at]]))


def _cumulative(masses: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(masses)])


def _lines(claim: Claim) -> list[tuple[float, float]]:
    """The (epsilon, delta) lines of a claim: its own, or a range of them where it leaves the line free."""
    if not claim.anchored:
        return [(claim.value, claim.delta)]
    anchors = [0.0, *np.geomspace(0.02, 12.0, ANCHORS - 1).tolist()]
    lines = [(anchor, claim.profile(anchor)) for anchor in anchors]
    return [line for line in lines if line[1] > 1e-12 or line[0] == 0.0]


def _less_divergence(
    correct: FloatArray, wrong: FloatArray, n_events: FloatArray, epsilon: float, delta: float
) -> FloatArray:
    """Minus the least Kullback-Leibler divergence of a guess from the null of a line; 0 where it keeps the line.

    On the boundary, where the mass of correct guesses is e^epsilon w + cost, the divergence is convex in the mass w of
    wrong ones and its slope is 0 at the positive root of a quadratic.
    """
    factor, cost = math.exp(epsilon), 0.5 * delta * n_events
    rest = np.maximum(0.0, 1.0 - correct - wrong)
    a = factor * (1.0 + factor)
    b = (1.0 + factor) * cost * (rest + wrong) - (1.0 - cost) * factor * (correct + wrong)
    c = -(1.0 - cost) * wrong * cost
    root = np.sqrt(np.maximum(0.0, b * b - 4.0 * a * c))
    with np.errstate(divide="ignore", invalid="ignore"):
        closest = np.where(b <= 0.0, (root - b) / (2.0 * a), np.where(root + b > 0.0, -2.0 * c / (root + b), 0.0))
    total = np.zeros_like(rest)
    null = (factor * closest + cost, closest, 1.0 - cost - (1.0 + factor) * closest)
    for mass, other in zip((correct, wrong, rest), null, strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            total += np.where(mass > 1e-15, mass * np.log(mass / np.maximum(other, 1e-300)), 0.0)
    return np.where(correct - factor * wrong > cost * (1.0 + 1e-9) + 1e-15, -np.maximum(total, 0.0), 0.0)


def _lower(
    correct: FloatArray, wrong: FloatArray, mass: FloatArray, n_events: FloatArray, delta: float, alpha: float
) -> FloatArray:
    """Lower bound on epsilon from counts and the known mass of the guess; -inf where nothing can be said."""
    cost = 0.5 * delta * n_events
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = np.where(correct > 0.0, stats.beta.ppf(alpha, np.maximum(correct, 1e-9), wrong + 1.0), 0.0)
        gain = accuracy * mass - cost
        return np.where(gain > 0.0, np.log(np.maximum(gain, 1e-300) / ((1.0 - accuracy) * mass)), -np.inf)


def _delta_lower(
    correct: FloatArray, wrong: FloatArray, mass: FloatArray, n_events: FloatArray, epsilon: float, alpha: float
) -> FloatArray:
    """Lower bound on delta at one epsilon, from counts and the known mass of the guess."""
    accuracy = np.where(correct > 0.0, stats.beta.ppf(alpha, np.maximum(correct, 1e-9), wrong + 1.0), 0.0)
    return np.asarray(2.0 * mass * (accuracy - math.exp(epsilon) * (1.0 - accuracy)) / n_events)


def _value_of(delta: FloatArray, values: FloatArray, deltas: FloatArray) -> FloatArray:
    """The largest of the parameter's values that a lower bound on delta rules out; 0 if there is none."""
    return np.where(delta > deltas[0], np.interp(delta, deltas, values), 0.0)


def _simulated(guess: Guess, labelled: int) -> tuple[FloatArray, FloatArray]:
    """Counts of correct and wrong guesses in so many labelled draws, shape (simulations,) each."""
    rng = np.random.default_rng(SEED)
    guesses = rng.binomial(labelled, min(1.0, guess.mass), SIMULATIONS)
    correct = rng.binomial(guesses, min(1.0, guess.correct / guess.mass))
    return correct.astype(float), (guesses - correct).astype(float)


def _least_draws(
    guess: Guess, epsilon: float, delta: float, alpha: float, power: float, expected: float, enough: float
) -> float:
    """Least draws a side at which the test finds the guess with probability `power`; inf if not below `enough`."""

    def found(draws: int) -> bool:
        return LineTest(guess, epsilon, delta, 2 * draws, alpha).rejection(guess.correct, guess.wrong) >= power

    if math.isfinite(enough):
        high = int(enough) - 1
        if high < 1 or not found(high):
            return math.inf
        low = min(high, max(1, int(0.7 * expected)))
    else:
        low = high = max(1, int(expected))
        while not found(high):
            low, high = high, math.ceil(1.25 * high)
            if high > MAX_DRAWS:
                return math.inf
    while low > 0 and found(low):
        low, high = math.floor(0.8 * low), low
    while high - low > max(1, high // 5_000):
        middle = (low + high) // 2
        low, high = (low, middle) if found(middle) else (middle, high)
    # The power of a discrete test is not monotone: a few draws less may do.
    if high <= 300:
        high = next((draws for draws in range(max(1, int(0.8 * high)), high) if found(draws)), high)
    return float(high)
