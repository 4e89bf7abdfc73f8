"""Lower bounds of the preprocessing problem: losses that no feasible point is below.

Two kinds, of which the larger counts:

* Relaxed on a box. With t the part of a pair's budget that a query uses, |b| <= c t is contained in its convex envelope
  over t in [0, d] and c in [low, high] (McCormick): |b| <= high t and |b| <= low t + d (c - low). Splitting the box
  makes it tighter (branch and bound). Exact for one query.
* Priced. For any prices m >= 0 of the pairs' budgets, the loss is at least the minimum over all (B, c) of

      loss(B - Q, c) + sum over pairs of m (sum over k of |b_k| / c_k - d).

  With any signs s, sum m |b_k| >= p_k - G_k e where p_k = sum m s q_k, e is the size of the bias B - Q in the loss's
  norm and G_k the dual norm of sum m s (1_i - 1_j). The minimum over c is closed, and what is left is one minimum over
  e >= 0 of a convex plus a concave function, found exactly. It is concave in m; the prices are improved by L-BFGS.
"""

import dataclasses
import heapq
import itertools
import math
from typing import Self

import numpy as np
from scipy.optimize import minimize

from dpaudit.errors import DpauditError
from dpaudit_mechanisms.inputs import FloatArray, IntArray
from dpaudit_mechanisms.preprocessing.problem import Point, Problem, mean_largest_noise
from dpaudit_mechanisms.preprocessing.program import Program

TIGHT = 0.3  # pairs that use at least this share of their budget may have a price
MAX_PRICED = 600
FOR_GIVEN_UP = 30  # pairs with a price for a query that the point answers by a constant
MAX_STEPS = 300
GOOD = 1e-6  # relative gap at which no further box is split
_counter = itertools.count()  # so that a heap never compares arrays


def lower_bound(problem: Problem, point: Point, nodes: int) -> float:
    """A loss that no feasible point is below, given a good point and the number of boxes that may be looked at."""
    value = problem.value(*point)
    if value <= 0.0:
        return 0.0
    best = max(0.0, priced_bound(problem, point))
    if best < value * (1.0 - GOOD):
        best = max(best, boxed_bound(problem, value, nodes))
    return min(best, value)


def boxed_bound(problem: Problem, value: float, nodes: int) -> float:
    """The relaxation on at most `nodes` boxes; the box with the least bound is split first."""
    queries = len(problem.queries)
    # A better point has no scale above: each loss is at least 2 c_k^2, c_k, E |Y_k| = c_k, or ln(K / delta) c_k.
    if problem.loss == "squared":
        top = math.sqrt(value / 2.0)
    elif problem.loss == "tail":
        top = value / max(math.log(queries / problem.delta), 1e-300)
    else:
        top = value
    heap = [_relaxed(problem, np.zeros(queries), np.full(queries, top))]
    looked_at = 1
    while looked_at + 2 <= nodes and queries > 1 and heap[0].bound < value * (1.0 - GOOD):
        box = heapq.heappop(heap)
        # Where the envelope is worst: far from both ends. The small term splits evenly where c is at an end.
        inside = np.minimum(box.c - box.low, box.high - box.c)
        k = int(np.argmax(inside + 1e-3 * (box.high - box.low)))
        middle = 0.5 * (box.low[k] + box.high[k])
        for end, other in ((box.low, middle), (middle, box.high)):
            low, high = box.low.copy(), box.high.copy()
            if end is box.low:
                high[k] = other
            else:
                low[k] = end
            heapq.heappush(heap, dataclasses.replace(_relaxed(problem, low, high), parent=box.bound))
        looked_at += 2
    return heap[0].bound


@dataclasses.dataclass(frozen=True, eq=False)
class _Box:
    """A box of scales, the bound on it, and the scales at which the relaxation is least."""

    own: float
    low: FloatArray
    high: FloatArray
    c: FloatArray
    parent: float = 0.0
    order: int = dataclasses.field(default_factory=lambda: next(_counter))

    @property
    def bound(self) -> float:
        return max(self.own, self.parent)

    def __lt__(self, other: Self) -> bool:
        return (self.bound, self.order) < (other.bound, other.order)


def _relaxed(problem: Problem, low: FloatArray, high: FloatArray) -> _Box:
    """The relaxation on one box. In units: |b| / d <= low share + c - low and <= high share; shares sum to 1."""
    program = Program(problem)
    pairs, count = len(problem.limits), len(low)
    positive = (problem.limits > 0.0).astype(float)  # at distance 0: b = 0
    scale = np.where(positive > 0.0, problem.limits, 1.0)
    share = program.more(count * pairs, 0.0, 0.0).reshape(count, pairs) if count > 1 else None
    for k in range(count):
        a, b = low[k] / program.unit, high[k] / program.unit
        c = np.full(pairs, program.c[k])
        if share is None:
            program.bound_gaps(k, scale, ([(c, -positive)], 0.0))
        else:
            envelope = [(share[k], -a * positive), (c, -positive)], -a * positive
            program.bound_gaps(k, scale, envelope, ([(share[k], -b * positive)], 0.0))
        program.at_most.add([(program.c[k : k + 1], -1.0)], -a)
        program.at_most.add([(program.c[k : k + 1], 1.0)], b)
    if share is not None:
        program.at_most.add([(row, 1.0) for row in share], 1.0)
        program.at_most.add([(share.ravel(), -1.0)], 0.0)
    try:
        (_, c), bound = program.solve()
    except DpauditError as error:
        if "PrimalInfeasible" in str(error):  # no point of the box is feasible
            return _Box(math.inf, low, high, high)
        return _Box(0.0, low, high, 0.5 * (low + high))
    return _Box(max(bound, 0.0), low, high, c)


def priced_bound(problem: Problem, point: Point) -> float:
    """The bound by prices of the pairs, improved from equal prices of the pairs whose budget the point uses up."""
    answered, c = point
    if problem.loss == "tail" or not problem.limits.any():
        return 0.0
    noisy = c > 0.0
    differences = answered[:, problem.first] - answered[:, problem.second]
    asked = problem.queries[:, problem.first] - problem.queries[:, problem.second]
    differences[~noisy] = asked[~noisy]  # given up at the point: the signs and pairs that it would have
    positive = problem.limits > 0.0
    used = (np.abs(differences[noisy]) / c[noisy, None]).sum(axis=0)
    ratio = np.divide(used, problem.limits, out=np.zeros_like(used), where=positive)
    chosen: IntArray = np.argsort(-ratio)[:MAX_PRICED]
    chosen = chosen[ratio[chosen] >= TIGHT]
    for k in np.flatnonzero(~noisy):
        alone = np.divide(np.abs(asked[k]), problem.limits, out=np.zeros_like(used), where=positive)
        chosen = np.union1d(chosen, np.argsort(-alone)[:FOR_GIVEN_UP])
    chosen = chosen[problem.limits[chosen] > 0.0]
    if not chosen.size:
        return 0.0
    prices = _Prices.of(problem, chosen, differences[:, chosen], c)
    # In units of value / d the best prices are of order one.
    unit = problem.value(*point) / problem.limits[chosen]

    def negative(x: FloatArray) -> tuple[float, FloatArray]:
        bound, gradient = prices.bound(x * unit)
        return -bound / unit_value, -gradient * unit / unit_value

    unit_value = problem.value(*point)
    tight = ratio[chosen] > 1.0 - 1e-6
    start = tight / tight.sum() if tight.any() else np.full(len(chosen), 1.0 / len(chosen))
    options = {"maxiter": MAX_STEPS, "maxfun": 4 * MAX_STEPS}
    found = minimize(negative, start, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * len(start), options=options)
    # Validity: the bound holds for whatever prices L-BFGS ended at; it is computed anew here.
    return max(prices.bound(np.maximum(found.x, 0.0) * unit)[0], prices.bound(start * unit)[0])


@dataclasses.dataclass(frozen=True, eq=False)
class _Prices:
    """The priced bound as a function of the prices, for fixed signs (K, pairs)."""

    problem: Problem
    limits: FloatArray
    signed_gaps: FloatArray  # s q, (K, pairs)
    directions: FloatArray  # s (1_i - 1_j), (K, pairs, N)
    weights: FloatArray  # (K,): a linear lower bound of the noise's cost in c; unused for "squared"

    @classmethod
    def of(cls, problem: Problem, chosen: IntArray, differences: FloatArray, c: FloatArray) -> Self:
        first, second = problem.first[chosen], problem.second[chosen]
        signs = np.sign(differences)  # any signs are valid; these are right at the point
        directions = np.zeros((*signs.shape, problem.queries.shape[1]))
        pairs = np.arange(len(chosen))
        directions[:, pairs, first] = signs
        directions[:, pairs, second] = -signs
        gaps = problem.queries[:, first] - problem.queries[:, second]
        weights = np.ones(len(c))
        if problem.loss == "linf":  # any gradient is a lower bound; where c is 0, that of a little noise
            weights = mean_largest_noise(np.maximum(c, 1e-3 * max(float(c.max()), problem.unit)))[1]
        return cls(problem, problem.limits[chosen], signs * gaps, directions, weights)

    def bound(self, m: FloatArray) -> tuple[float, FloatArray]:
        """The bound at prices m (pairs,), and its gradient in m."""
        n = float(self.problem.records)
        p = self.signed_gaps @ m  # (K,)
        force = np.einsum("kpi,p->ki", self.directions, m)  # (K, N)
        if self.problem.loss == "squared":
            size = np.linalg.norm(force, axis=1)
            dual = force / np.where(size > 0.0, size, 1.0)[:, None]
            e = np.array([_least_squared(n, *pair) for pair in zip(p, size, strict=True)])
        elif self.problem.loss == "l1":
            size = np.abs(force).max(axis=1)
            dual = np.zeros_like(force)
            at = np.abs(force).argmax(axis=1)
            rows = np.arange(len(p))
            dual[rows, at] = np.sign(force[rows, at])
            e = np.array([_least_linear(n, [pair], [1.0]) for pair in zip(p, size, strict=True)])
        else:
            size, dual = np.abs(force).sum(axis=1), np.sign(force)
            e = np.full(len(p), _least_linear(n, list(zip(p, size, strict=True)), self.weights))
        left = np.maximum(p - size * e, 0.0)
        slope_p = np.zeros_like(p)
        on = left > 0.0
        if self.problem.loss == "squared":
            # min over c of 2 c^2 + left / c is 3 (left^2 / 2)^(1/3)
            noise = 3.0 * np.cbrt(left**2 / 2.0)
            slope_p[on] = 2.0 * np.cbrt(0.5 / left[on])
            total = n**2 * (e**2).sum() + noise.sum()
        else:
            noise = 2.0 * np.sqrt(self.weights * left)
            slope_p[on] = np.sqrt(self.weights[on] / left[on])
            total = n * (e.sum() if self.problem.loss == "l1" else e[0]) + noise.sum()
        along = np.einsum("kpi,ki->kp", self.directions, dual)
        gradient = ((self.signed_gaps - e[:, None] * along) * slope_p[:, None]).sum(axis=0) - self.limits
        return float(total - m @ self.limits), gradient


def _least_squared(n: float, p: float, size: float) -> float:
    """The e >= 0 that minimises n^2 e^2 + 3 ((p - size e)_+^2 / 2)^(1/3)."""
    if p <= 0.0 or size <= 0.0:
        return 0.0

    def value(e: float) -> float:
        return n * n * e * e + 3.0 * float(np.cbrt(max(p - size * e, 0.0) ** 2 / 2.0))

    # Stationary where e (p - size e)^(1/3) = size / (n^2 2^(1/3)); the left side rises up to e = 3 p / (4 size), and
    # the root before it is the only local minimum inside. The other candidate is the end p / size.
    end = p / size
    low, high = 0.0, 0.75 * end
    target = size / (n * n * 2.0 ** (1.0 / 3.0))
    if high * (p - size * high) ** (1.0 / 3.0) <= target:
        return end
    for _ in range(100):
        middle = 0.5 * (low + high)
        if middle * (p - size * middle) ** (1.0 / 3.0) < target:
            low = middle
        else:
            high = middle
    inner = 0.5 * (low + high)
    return inner if value(inner) < value(end) else end


def _least_linear(n: float, pairs: list[tuple[float, float]], weights: list[float] | FloatArray) -> float:
    """The e >= 0 that minimises n e + sum 2 (weight (p - size e)_+)^(1/2): concave between the ends p / size."""

    def value(e: float) -> float:
        noise = (2.0 * math.sqrt(w * max(p - s * e, 0.0)) for (p, s), w in zip(pairs, weights, strict=True))
        return n * e + sum(noise)

    ends = [0.0, *(p / s for p, s in pairs if p > 0.0 and s > 0.0)]
    return min(ends, key=value)
