"""Calibration: noise, number of updates and threshold, as printed and in a practical form of the same guarantee.

A `Calibration` holds the numbers that the interactive mechanism runs with. What it costs is computed from them and from
exact sensitivities (`privacy`), whatever formula they come from; what it promises of the error is `alpha`.

One epoch is: draw a threshold's noise Lap(b1); compare |F - hypothesis| + Lap(b2) at each query with threshold + noise;
at the first query above it release F_i(y_i) and w_i F_i'(y_i) of all coordinates with noise of scale b3, update, and
start the next epoch. With D = diameter / n an epoch costs

* D / b1 + 2 D / b2 + 3 D / b3 nats with Laplace releases: the error has sensitivity D; values and w times slopes have
  l1 sensitivity D + 2 D. m epochs cost m times that (pure);
* (D / b1 + 2 D / b2)^2 / 2 + (D^2 + 4 sum of w_i^2 / n^2) / (2 b3^2) of zCDP with Gaussian releases; m epochs m times
  that, and rho = (sqrt(L + epsilon) - sqrt(L))^2 with L = log(1 / delta) gives (epsilon, delta).

Accuracy. Let gamma bound every |Lap(b2) - Lap(b1)|, and eta / l the noise of value and w times slope together of every
coordinate of every release, with probability 1 - beta in all. With threshold = gamma + eta + gap, an update means an
error above eta + gap, which no overestimate reaches; so the gap of the learner is above `gap`, and
`most_updates(gap)` epochs are enough. Every answer is within alpha = 2 gamma + eta + gap.

* `printed`: alpha solves c alpha = 3000 sqrt(|S| m(alpha)) log(4 / delta) log(k / beta) / (n epsilon), and without
  square root and delta where pure (MQ-L3), |S| = 2 l, c = 1 / (4 l), m(alpha) = 3 l sqrt(2 l / alpha) (MQ-L4 at half of
  alpha / l, MQ-L5, MQ-L6). It is larger than the diameter at any practical n. Threshold 3 alpha / 4, and noise from the
  same exact accounting: the paper leaves both to its references.
* `practical`: alpha is the least of the formula above over m and over the split of the budget. The same guarantee,
  (epsilon, delta) and (alpha, beta), proven by the argument above, with constants of order 10 in place of 3000 x 24.

Sources: MQ-L3, MQ-T1, MQ-T2.
"""

import dataclasses
import math
from typing import Annotated, Literal, Self

import numpy as np
from scipy import optimize, stats

from dpaudit_mechanisms.distances.averages import Widths, box_widths
from dpaudit_mechanisms.distances.learner import gap_of_updates
from dpaudit_mechanisms.inputs import (
    ArrayLike,
    Checked,
    Count,
    FloatArray,
    Positive,
    Probability,
    fixed,
    positive,
    whole_number,
    within,
)
from dpaudit_mechanisms.protocol import ApproxDP, Claim, PureDP, UsageError, number

Noise = Literal["laplace", "gaussian"]
MAX_UPDATES = 100_000
PRINTED_CONSTANT = 3000.0

delta_share = within("in [0, 1)", lambda v: 0.0 <= v < 1.0)
fraction = within("in (0, 1)", lambda v: 0.0 < v < 1.0)
Alpha = Annotated[float, within("at least 0", lambda v: v >= 0.0)]


@dataclasses.dataclass(frozen=True, eq=False)
class Calibration(Checked):
    """The numbers of one interactive mechanism; see the module for the letters.

    Parameters
    ----------
    records : int
        n.
    widths : array_like of float, shape (l,)
        Of the box.
    updates : int
        m, the number of epochs.
    threshold, threshold_scale, query_scale, release_scale : float
        The threshold and b1, b2, b3, in units of the distance; b3 is a standard deviation with Gaussian releases.
    noise : {"laplace", "gaussian"}
        Of the releases.
    delta : float
        At which Gaussian releases are accounted, in (0, 1); 0 with Laplace ones.
    alpha, beta : float
        The promised bound on the error of each answer, and the probability with which some answer may miss it; alpha is
        inf where nothing is promised.

    Examples
    --------
    >>> Calibration(2, [1.0], 1, 0.5, 2.0, 4.0, 3.0).epsilon
    1.0
    """

    records: Count
    widths: Widths
    updates: Count
    threshold: Annotated[float, within("finite", math.isfinite)]
    threshold_scale: Positive
    query_scale: Positive
    release_scale: Positive
    noise: Noise = "laplace"
    delta: float = 0.0
    alpha: Alpha = math.inf
    beta: Probability = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        inside = "in (0, 1) with Gaussian noise, 0 with Laplace noise"
        fixed(self, delta=number("delta", self.delta, inside, lambda v: (0.0 < v < 1.0) == (self.noise == "gaussian")))

    @property
    def diameter(self) -> float:
        """The sum of the widths."""
        return float(self.widths.sum())

    @property
    def comparison_epsilon(self) -> float:
        """Privacy loss of the comparisons of one epoch, in nats."""
        sensitivity = self.diameter / self.records
        return sensitivity / self.threshold_scale + 2.0 * sensitivity / self.query_scale

    @property
    def release_epsilon(self) -> float:
        """Privacy loss of the releases of one epoch, in nats; inf where they are Gaussian."""
        if self.noise == "gaussian":
            return math.inf
        return 3.0 * self.diameter / self.records / self.release_scale

    @property
    def rho(self) -> float:
        """The zCDP of the whole."""
        if self.noise == "laplace":
            return 0.5 * self.updates * (self.comparison_epsilon + self.release_epsilon) ** 2
        release = _l2_sensitivity(self.widths, self.records) ** 2 / (2.0 * self.release_scale**2)
        return self.updates * (0.5 * self.comparison_epsilon**2 + release)

    @property
    def epsilon(self) -> float:
        """The accounted privacy loss of the whole, in nats, at delta."""
        if self.noise == "laplace":
            return self.updates * (self.comparison_epsilon + self.release_epsilon)
        return self.rho + 2.0 * math.sqrt(self.rho * -math.log(self.delta))

    def with_budget(self, factor: float) -> Self:
        """Noise for `factor` times the epsilon, and the same of everything else; alpha is stated as before."""
        scale = factor
        if self.noise == "gaussian":
            scale = math.sqrt(largest_rho(factor * self.epsilon, self.delta) / self.rho)
        names = ("threshold_scale", "query_scale", "release_scale")
        return dataclasses.replace(self, **{name: getattr(self, name) / scale for name in names})

    @property
    def claim(self) -> Claim:
        """`PureDP` or `ApproxDP`, from the numbers."""
        return PureDP(self.epsilon) if self.noise == "laplace" else ApproxDP(self.epsilon, self.delta)


def practical(
    records: int,
    widths: ArrayLike,
    epsilon: float,
    delta: float = 0.0,
    *,
    queries: int,
    beta: float,
    updates: int | None = None,
) -> Calibration:
    """The calibration of least alpha for `queries` queries; `updates` fixes m in place of the best one.

    Examples
    --------
    >>> found = practical(10**6, [1.0], 1.0, queries=1000, beta=0.05)
    >>> found.updates, round(found.alpha, 4), round(found.epsilon, 9)
    (25, 0.0095, 1.0)
    """
    widths = box_widths(widths)
    n, k = whole_number("records", records, 1), whole_number("queries", queries, 1)
    epsilon, delta, beta = positive("epsilon", epsilon), delta_share("delta", delta), fraction("beta", beta)
    if updates is None:
        counts = np.arange(len(widths), MAX_UPDATES + len(widths))
    elif (chosen := whole_number("updates", updates, 1)) >= len(widths):
        counts = np.array([chosen])
    else:
        raise UsageError(f"updates must be at least the number of coordinates, {len(widths)}, got {updates}.")
    while True:  # the best m is rarely above a few hundred: look at more of them only where the best is the last
        some = counts[: min(len(counts), 4096)]
        rows = _scales(n, widths, epsilon, delta, k, beta, some.astype(float))
        best = int(np.argmin(rows["alpha"]))
        if best < len(some) - 1 or len(some) == len(counts):
            break
        counts = counts[best:]
    found = {name: float(values[best]) for name, values in rows.items()}
    return _made(n, widths, int(some[best]), found, delta, beta)


def printed(
    records: int, widths: ArrayLike, epsilon: float, delta: float = 0.0, *, queries: int, beta: float
) -> Calibration:
    """The calibration with the paper's alpha and number of updates, and noise by exact accounting for them.

    Examples
    --------
    >>> round(printed(10**6, [1.0], 1.0, queries=1000, beta=0.05).alpha, 2)
    1.01
    """
    widths = box_widths(widths)
    records, queries = whole_number("records", records, 1), whole_number("queries", queries, 1)
    epsilon, delta, beta = positive("epsilon", epsilon), delta_share("delta", delta), fraction("beta", beta)
    alpha = printed_alpha(records, len(widths), epsilon, delta, queries=queries, beta=beta)
    updates = min(MAX_UPDATES, math.ceil(printed_mistakes(alpha, len(widths))))
    updates = max(updates, len(widths))
    rows = _scales(records, widths, epsilon, delta, queries, beta, np.array([float(updates)]))
    found = {name: float(values[0]) for name, values in rows.items()} | {"threshold": 0.75 * alpha, "alpha": alpha}
    return _made(records, widths, updates, found, delta, beta)


def _made(n: int, widths: FloatArray, updates: int, found: dict[str, float], delta: float, beta: float) -> Calibration:
    noise: Noise = "gaussian" if delta > 0.0 else "laplace"
    scales = found["b1"], found["b2"], found["b3"]
    return Calibration(n, widths, updates, found["threshold"], *scales, noise, delta, found["alpha"], beta)


def printed_mistakes(alpha: float, dimension: int) -> float:
    """m(alpha) of MQ-L6 with the constants of MQ-L4 and MQ-L5: l * 3 / sqrt(alpha / (2 l))."""
    return dimension * 3.0 / math.sqrt(alpha / (2.0 * dimension))


def printed_alpha(
    records: int, dimension: int, epsilon: float, delta: float = 0.0, *, queries: int, beta: float
) -> float:
    """The alpha of MQ-L3 for the learner of MQ-L6, a fixed point, by bisection; pure where delta is 0."""
    logs = math.log(queries / fraction("beta", beta))
    if logs <= 0.0:
        return 0.0
    logs *= math.log(4.0 / delta) if delta > 0.0 else 1.0

    def excess(log_alpha: float) -> float:
        work = 2.0 * dimension * printed_mistakes(math.exp(log_alpha), dimension)
        noise = PRINTED_CONSTANT * (math.sqrt(work) if delta > 0.0 else work) * logs / (records * epsilon)
        return log_alpha - math.log(4.0 * dimension * noise)  # increasing in alpha

    return math.exp(float(optimize.brentq(excess, -200.0, 200.0, xtol=1e-13)))


def largest_rho(epsilon: float, delta: float) -> float:
    """The zCDP that implies (epsilon, delta) by rho + 2 sqrt(rho log(1 / delta)) = epsilon."""
    log = -math.log(delta)
    # Validity: the difference of the roots as a quotient. Taken as a difference it loses its digits for small epsilon,
    # and what is left may be over the budget.
    return (epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))) ** 2


def _scales(
    n: int, widths: FloatArray, epsilon: float, delta: float, k: int, beta: float, counts: FloatArray
) -> dict[str, FloatArray]:
    """The best split of the budget for each number of updates, arrays of its shape."""
    unit, dimension = float(widths.sum()) / n, len(widths)
    # Each of the three kinds of noise misses its bound with probability at most beta / 3, over all its draws.
    of_thresholds, of_queries = np.log(3.0 * counts / beta), math.log(3.0 * k / beta)
    cost1, cost2 = 2.0 * of_thresholds * unit, np.full(counts.shape, 4.0 * of_queries * unit)  # of alpha, times epsilon
    gap = gap_of_updates(counts, widths)
    if delta == 0.0:
        # Validity: the maximum of each coordinate may be at the line of another update, so the sum over coordinates of
        # one release is not enough: |value| + |w slope| of every coordinate of every release is bounded, times l.
        of_releases = dimension * stats.gamma.isf(beta / (3.0 * counts * dimension), 2.0)
        cost3 = of_releases * 3.0 * unit
        roots = np.sqrt(cost1), np.sqrt(cost2), np.sqrt(cost3)
        total = roots[0] + roots[1] + roots[2]
        e1, e2, e3 = (epsilon / counts * root / total for root in roots)
        b3 = 3.0 * unit / e3
    else:
        # |N(0, 1)| + |N'(0, 1)| is at most sqrt(2) times their root sum of squares.
        of_releases = dimension * math.sqrt(2.0) * stats.chi.isf(beta / (3.0 * counts * dimension), 2.0)
        sensitivity = _l2_sensitivity(widths, n)
        cost3 = of_releases * sensitivity
        both = (np.sqrt(cost1) + np.sqrt(cost2)) ** 2
        radius = np.sqrt(2.0 * largest_rho(epsilon, delta) / counts)
        ratio = np.cbrt(both), np.cbrt(cost3)
        norm = np.hypot(*ratio)
        e0, b3 = radius * ratio[0] / norm, sensitivity * norm / (radius * ratio[1])
        share = np.sqrt(cost1) / (np.sqrt(cost1) + np.sqrt(cost2))
        e1, e2 = e0 * share, e0 * (1.0 - share)
    b1, b2 = unit / e1, 2.0 * unit / e2
    gamma, eta = of_thresholds * b1 + of_queries * b2, of_releases * b3
    return {"b1": b1, "b2": b2, "b3": b3, "threshold": gamma + eta + gap, "alpha": 2.0 * gamma + eta + gap}


def _l2_sensitivity(widths: FloatArray, n: int) -> float:
    """Of values and widths times slopes: values change by at most the diameter over n in l1, so in l2."""
    return math.sqrt(float(widths.sum()) ** 2 + 4.0 * float((widths**2).sum())) / n
