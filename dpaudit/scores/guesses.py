"""Guesses of one run: which canaries to guess on, chosen without a second look at the labels that are then counted.

Canaries are ordered by score, highest first (NaN below everything; equal scores in a random order, so that the place of
a canary in a file says nothing). A rule guesses on a fixed number r of them: "in" on the highest and "out" on the
lowest. In pairs, of which a fair coin put one member into the training set, the pairs with the largest differences are
guessed on: the higher score is "in".

How many guesses is open. Two ways keep the error rate:

* `stated`: the caller has said so before looking;
* `simultaneous`: every rule of a short list fixed beforehand is used on all canaries, each at its share of the level.

A pilot of some canaries must not choose the number: their scores come from the same output, so the number would depend
on it, and the theorem of `dpaudit.scores.one_run` is for a fixed one. With delta > 0 an audit could then err more often
than stated.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray
from dpaudit.scores.one_run import delta_lower, gaussian_is_rejected
from dpaudit.scores.order import below_all

IntArray = NDArray[np.int64]

SIMULTANEOUS = (0.7, 0.25, 0.08, 0.02)
COMPARED = 40  # numbers of guesses that a stated one is compared with: the best by chance in 2% of audits
MIN_GUESSES = 5  # with fewer, even perfect ones are worth less than 2.2 nats at 95%


@dataclasses.dataclass(frozen=True)
class Rule:
    """Canaries that are guessed on: a fixed number of them, or of pairs."""

    guesses: int
    in_pairs: bool = False

    def describe(self) -> str:
        """The rule in words."""
        if self.in_pairs:
            return f'"in" for the higher score of the {self.guesses:,} pairs that differ most'
        top = self.guesses - self.guesses // 2
        return f'"in" for the {top:,} highest scores, "out" for the {self.guesses // 2:,} lowest'


@dataclasses.dataclass(frozen=True)
class Record:
    """Result of a rule: `correct` of `rule.guesses` guesses on `canaries` canaries, tested at `level`."""

    rule: Rule
    correct: int
    canaries: int
    level: float

    def delta(self, epsilon: FloatArray) -> FloatArray:
        """Lower bound on delta at each epsilon."""
        return delta_lower(epsilon, self.rule.guesses, self.correct, self.canaries, self.level)

    def gaussian_rejected(self, mu: FloatArray) -> NDArray[np.bool_]:
        """Tell whether each mu-Gaussian DP is rejected by the recursion over thresholds."""
        return gaussian_is_rejected(mu, self.rule.guesses, self.correct, self.canaries, self.level)

    def perfect(self) -> Record:
        """Guesses on all canaries, every one correct: more than they cannot show at this level."""
        return Record(Rule(self.canaries, self.rule.in_pairs), self.canaries, self.canaries, self.level)


@dataclasses.dataclass(frozen=True)
class RankedLabels:
    """Labels of canaries (or pairs) in the order of their scores (or differences), highest first.

    `labels` of shape (canaries,) are 1 for "in"; of pairs, 1 where the higher score is that of the member in the set.
    """

    labels: IntArray
    in_pairs: bool

    def __len__(self) -> int:
        return len(self.labels)

    def correct(self, rule: Rule) -> int:
        """Correct guesses of a rule."""
        top = rule.guesses if rule.in_pairs else rule.guesses - rule.guesses // 2
        bottom = rule.guesses - top
        return int(self.labels[:top].sum()) + bottom - int(self.labels[len(self.labels) - bottom :].sum())

    def records(self, rules: Sequence[Rule], level: float) -> list[Record]:
        """The records of rules that share a level evenly."""
        return [Record(rule, self.correct(rule), len(self), level / len(rules)) for rule in rules]

    def rules(self, fractions: tuple[float, ...] = SIMULTANEOUS) -> list[Rule]:
        """Rules that guess these fractions of the canaries, `MIN_GUESSES` at least; else one rule, of the largest."""
        counts = sorted({math.ceil(fraction * len(self)) for fraction in fractions})
        return [Rule(n, self.in_pairs) for n in counts if n >= MIN_GUESSES] or [Rule(counts[-1], self.in_pairs)]


def looks_chosen(found: RankedLabels, rule: Rule) -> bool:
    """Tell whether a stated number of guesses bounds the accuracy better than a range of others: by chance, rarely.

    A number that was chosen for what it shows is a second look at the labels, and the audit's error rate is lost.
    """
    counts = np.unique(np.ceil(np.linspace(0.0, 1.0, COMPARED + 1)[1:] * len(found)).astype(np.int64)).tolist()
    others = [count for count in counts if abs(count - rule.guesses) > 0.5 * len(found) / COMPARED]
    limits = []
    for count in (rule.guesses, *others):
        right = found.correct(dataclasses.replace(rule, guesses=count))
        limits.append(float(scipy.special.betaincinv(right, count - right + 1.0, 0.05)) if right else 0.0)
    return len(others) >= COMPARED // 2 and limits[0] > max(limits[1:])


def ordered(scores: FloatArray, labels: IntArray, rng: np.random.Generator) -> RankedLabels:
    """Canaries by score, highest first; ties, and NaN among themselves, in a random order.

    Validity: the order among equal scores must not depend on the labels, so it is drawn.
    """
    shuffled = rng.permutation(len(scores))
    order = np.lexsort((np.isnan(scores[shuffled]), -below_all(scores[shuffled])))
    return RankedLabels(labels[shuffled][order], in_pairs=False)


def ordered_pairs(scores_in: FloatArray, scores_out: FloatArray, rng: np.random.Generator) -> RankedLabels:
    """Pairs by how much their scores differ, most first; two equal scores are a toss-up, drawn by a coin.

    NaN is below everything. A difference of infinities of the same sign is 0, any other with one is the largest.
    """
    is_higher = _above(scores_in, scores_out)
    is_lower = _above(scores_out, scores_in)
    with np.errstate(invalid="ignore"):
        size = np.abs(scores_in - scores_out)
    size = np.where(is_higher | is_lower, np.where(np.isnan(size), np.inf, size), 0.0)
    coins = rng.integers(0, 2, len(size))
    labels = np.where(is_higher, 1, np.where(is_lower, 0, coins))
    shuffled = rng.permutation(len(size))
    order = np.argsort(-size[shuffled], kind="stable")
    return RankedLabels(labels[shuffled][order], in_pairs=True)


def _above(first: FloatArray, second: FloatArray) -> NDArray[np.bool_]:
    return np.asarray((first > second) | (np.isnan(second) & ~np.isnan(first)))
