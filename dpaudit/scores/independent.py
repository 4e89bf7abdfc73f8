"""The bound of one run if canaries are answered independently: exact, at any number of canaries.

Assumed: each canary's coin and score, as a pair, is independent of all other canaries' pairs. The laws may differ from
canary to canary. Each law keeps the claim, whose trade-off function f is symmetric.

Setting. Canaries are put in an order of confidence that depends on the scores alone (and on draws for equal scores),
and an attack guesses the coins of the first r in this order. W is the number of right guesses. Let (Q0, Q1) be a pair
of laws with trade-off function f, Z ~ Q_b with a fair coin b, and a(Z) >= 0 the absolute log-likelihood ratio of Z.
Then sigmoid(a) is the probability that the better guess on b is right.

Theorem. P(W >= v) is at most P(W* >= v), where n independent canaries draw Z and W* is the number of right guesses
among the r canaries whose a is largest, each guessed the better way.

Proof. By Blackwell's theorem each canary's score is a randomised function of a Z_i with law Q_(b_i): f is at most the
trade-off function of its pair of laws. By assumption the Z_i are independent, and coins are independent given all Z_i
and all scores, with P(b_i = 1 | ...) that of Z_i alone. So given these, right guesses are independent, and the guess
in place j is right with probability at most s_j = sigmoid(a) of the canary in that place. Let two neighbours in the
order have s_1 < s_2. Exchanging them moves probability s_2 (1 - s_1) - s_1 (1 - s_2) > 0 from "only the second is
right" to "only the first is right", and leaves all else. So no prefix count falls: W gets stochastically larger until
the order is that of a, and that is W*. (The same shows it for every increasing function of all prefix counts at once.)

The law of W*. Write a = G(U) with G decreasing and U uniform. The r-th smallest U is Beta(r, n - r + 1). Given that it
is u, the other r - 1 guesses are right with the mean A(u) of sigmoid(G) on (0, u), independently, and the last one no
more often: W* is at most Binomial(r, A(u)). A decreases, so that on each cell of a partition of u its value at the
lower end gives an upper bound: a finite sum, rounded outwards (`Guesses.tail`).

The choice of r. For a Gaussian claim r is a function of the value of mu that is tested (`GAUSSIAN_SHARES`), never of
scores. Let values be cut into intervals with a stated r each. The bound is the end of the interval of rejected values
that starts at 0; it is above the truth only if the truth itself is rejected, by the one test that is stated for it. So
several r cost nothing here. Beside it some short lists of the most confident guesses share the rest of the error rate,
for attacks that know few canaries well. For other claims the stated numbers of guesses share it evenly, as in the
bound without the assumption. For a fixed r a larger claim has a larger W* (the theorem again), so rejected values form
an interval.

All bounds of one r hold together, since their rejection regions {W >= v} are nested. Epsilon at delta uses the numbers
of guesses whose level is theirs at every tested value.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.privacy.claims import ApproxDP, Claim, GaussianDP
from dpaudit.scores.guesses import SIMULTANEOUS, Ordered, Rule
from dpaudit.scores.profile_bounds import GRID, RENYI_DELTAS, largest_value
from dpaudit.scores.result import IndependentBound

FloatArray = NDArray[np.float64]
Accuracy = Callable[[FloatArray], FloatArray]  # from shares u of all canaries to (an upper bound on) A(u)

# Up to this mu, this share of the canaries is guessed on. Against the best share for each mu, the standard error of mu
# is at most 2% larger below 2.2, and at most 11% above.
GAUSSIAN_SHARES = ((1.25, 0.57), (2.2, 0.77), (float("inf"), 1.0))
GAUSSIAN_PART = 0.95  # of the error rate, for these; short lists have the rest. It costs less than 1% of mu
CELLS = 64  # of the law of the r-th order statistic; with 1,024 bounds on mu grow by 0.1 to 0.2%
ROUNDING = 1e-9  # relative, of sums of incomplete beta functions
TABLE = 512  # points of the Gaussian law; A is bounded by tangents there, so that fewer points only widen it


@dataclasses.dataclass(frozen=True)
class Guesses:
    """`correct` of the `guesses` most confident guesses on `canaries` canaries, tested at `level`."""

    guesses: int
    correct: int
    canaries: int
    level: float

    def tail(self, accuracy: Accuracy) -> float:
        """An upper bound on the probability of so many right guesses, by the mean accuracy of the top share."""
        if self.correct <= 0:
            return 1.0
        shares, masses = order_cells(self.guesses, self.canaries, self.level)
        means = np.clip(accuracy(shares), 0.5, 1.0)
        tails = scipy.special.betainc(self.correct, self.guesses - self.correct + 1.0, means)
        return float(masses[1:] @ tails + masses[0]) * (1.0 + ROUNDING)

    def rejects(self, accuracy: Accuracy) -> bool:
        """Whether a claim with these accuracies is rejected."""
        return self.tail(accuracy) <= self.level


@functools.lru_cache(maxsize=64)
def order_cells(guesses: int, canaries: int, level: float) -> tuple[FloatArray, FloatArray]:
    """Lower ends of cells of the r-th of n uniforms; the probability below them all, then that of each cell."""
    if guesses == canaries:
        return np.ones(1), np.array([0.0, 1.0])  # all are guessed on: A(1) is their accuracy
    edge = -float(scipy.special.ndtri(1e-4 * level))
    below = scipy.special.ndtr(np.linspace(-edge, edge, CELLS))
    shares = scipy.special.betaincinv(guesses, canaries - guesses + 1.0, below)
    return shares, np.diff(np.concatenate([[0.0], below, [1.0]]))


def gaussian_accuracy(mu: float) -> Accuracy:
    """A(u) of mu-Gaussian DP, from above.

    Z is normal around mu / 2 or -mu / 2, and a = mu |Z|. R(u) = u A(u) is concave with slope sigmoid(a), so a tangent
    at any point is above it.

    Examples
    --------
    >>> float(gaussian_accuracy(1.0)(np.ones(1))[0].round(6)) == round(float(scipy.special.ndtr(0.5)), 6)
    True
    """
    z = np.linspace(0.5 * mu + 8.0, 0.0, TABLE)
    right = scipy.special.ndtr(0.5 * mu - z)
    share = right + scipy.special.ndtr(-0.5 * mu - z)

    def accuracy(u: FloatArray) -> FloatArray:
        at = np.clip(np.searchsorted(share, u), 0, TABLE - 1)
        tangents = [right[k] + (u - share[k]) * scipy.special.expit(mu * z[k]) for k in (at, np.maximum(at - 1, 0))]
        return np.asarray(np.minimum(*tangents) / u)

    return accuracy


def lines_accuracy(epsilons: FloatArray, deltas: FloatArray) -> Accuracy:
    """A(u) of a mechanism that keeps lines (epsilon, delta), each in both directions.

    As a function of x = e^epsilon, delta is convex and does not increase, so that the lower hull of the lines' points
    bounds it. Where the hull's slope changes by m at x, the extremal pair has log-likelihood ratio epsilon with
    probability m under one law and m x under the other, in each direction; it tells the coin for sure with probability
    the last delta.

    Examples
    --------
    >>> lines_accuracy(np.array([0.0]), np.array([0.1]))(np.array([0.1, 0.2, 1.0])).round(3).tolist()
    [1.0, 0.75, 0.55]
    """
    x, y = np.exp(np.minimum(epsilons, 700.0)), np.minimum(deltas, 1.0)
    # The total variation that each line allows: the two trade-off lines of (epsilon, delta) meet on the diagonal.
    hull = [(1.0, float(np.min((x - 1.0 + 2.0 * y) / (x + 1.0))))]
    for point in sorted(zip(x.tolist(), y.tolist(), strict=True)):
        if point[1] >= hull[-1][1] or point[0] <= hull[-1][0]:
            continue
        while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (point[0] - hull[-1][0]) >= (point[1] - hull[-1][1]) * (
            hull[-1][0] - hull[-2][0]
        ):
            hull.pop()
        hull.append(point)
    corners = np.array(hull)
    slopes = np.append(-np.diff(corners[:, 1]) / np.diff(corners[:, 0]), 0.0)
    changes = np.append([0.0], slopes[:-1] - slopes[1:])  # the rest, at x = 1, tells nothing
    masses = (1.0 + corners[:, 0]) * changes
    shares = np.concatenate([[0.0], np.cumsum(np.concatenate([[corners[-1, 1]], masses[:0:-1]]))])
    sure = np.concatenate([[1.0], (corners[:, 0] / (1.0 + corners[:, 0]))[:0:-1]])
    right = np.concatenate([[0.0], np.cumsum(np.diff(shares) * sure)])
    if shares[-1] < 1.0:
        shares, right = np.append(shares, 1.0), np.append(right, right[-1] + 0.5 * (1.0 - shares[-1]))
    return lambda u: np.asarray(np.interp(u, shares, right) / u)


def claimed_accuracy(claim: Claim, value: float) -> Accuracy:
    """A(u) of the claim with another value of its parameter, from above."""
    if isinstance(claim, GaussianDP):
        return gaussian_accuracy(value)
    if claim.family == "hockey-stick":
        lines = [claim.lines(np.array([value]), at) for at in (GRID.tolist() if claim.anchored else [0.0])]
        return lines_accuracy(*(np.array([float(line[side][0]) for line in lines]) for side in (0, 1)))
    epsilons = np.array([claim.with_value(value).epsilon_at(delta) for delta in RENYI_DELTAS.tolist()])
    return lines_accuracy(epsilons, RENYI_DELTAS)


def values_are_rejected(
    claim: Claim, by_value: Sequence[Guesses], always: Sequence[Guesses], values: FloatArray
) -> NDArray[np.bool_]:
    """Whether each value of the claim's parameter is rejected together with all smaller ones."""

    def rejects_up_to(value: float) -> bool:
        for (end, _), guesses in zip(GAUSSIAN_SHARES, by_value, strict=False):
            if not guesses.rejects(claimed_accuracy(claim, min(end, value))):
                return False
            if value <= end:
                return True
        return False

    return np.array(
        [rejects_up_to(value) or _any_rejects(always, claimed_accuracy(claim, value)) for value in values.tolist()]
    )


def _any_rejects(guesses: Sequence[Guesses], accuracy: Accuracy) -> bool:
    return any(one.rejects(accuracy) for one in guesses)


def independent_bound(
    found: Ordered, claim: Claim, level: float, p_value: float | None, stated: int | None = None
) -> IndependentBound:
    """The bounds of one run, or of pairs, if canaries are answered independently.

    Parameters
    ----------
    found : Ordered
        Labels in the order of scores.
    claim : Claim
    level : float
        In (0, 1), for all bounds together.
    p_value : float or None
        Of the assumption, to be kept with the bounds.
    stated : int, optional
        The number of guesses, if it was stated beforehand.
    """
    by_value, always = guesses_of(found, claim, level, stated)
    epsilon, parameter = bounds_of(claim, by_value, always)
    perfect = [[dataclasses.replace(one, correct=one.guesses) for one in part] for part in (by_value, always)]
    return IndependentBound(epsilon, parameter, *bounds_of(claim, *perfect), p_value)


def guesses_of(
    found: Ordered, claim: Claim, level: float, stated: int | None = None
) -> tuple[list[Guesses], list[Guesses]]:
    """Guesses for the intervals of a Gaussian claim's values (of which one counts), and those for every value.

    One of the former and all of the latter have levels that sum to `level`.
    """

    def guessed(rules: Sequence[Rule], each: float) -> list[Guesses]:
        return [Guesses(rule.guesses, found.correct(rule), len(found), each) for rule in rules]

    if stated is not None:
        return [], guessed([dataclasses.replace(found.rules()[0], guesses=stated)], level)
    if not isinstance(claim, GaussianDP):
        rules = found.rules()
        return [], guessed(rules, level / len(rules))
    rules = found.rules(SIMULTANEOUS[1:])
    by_value = [found.rules((share,))[0] for _, share in GAUSSIAN_SHARES]
    return guessed(by_value, GAUSSIAN_PART * level), guessed(rules, (1.0 - GAUSSIAN_PART) * level / len(rules))


def bounds_of(claim: Claim, by_value: Sequence[Guesses], always: Sequence[Guesses]) -> tuple[float, float]:
    """The bounds on epsilon at the claim's delta, and on its parameter."""
    parameter = largest_value(lambda values: values_are_rejected(claim, by_value, always, values), claim.value)
    if isinstance(claim, ApproxDP):
        return parameter, parameter
    at = ApproxDP(1.0, claim.report_delta)
    return largest_value(lambda values: values_are_rejected(at, (), always, values), at.value), parameter
