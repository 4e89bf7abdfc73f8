"""A search for counterexamples to the theorems and lemmas of the papers that are verified and have finite instances.

Every target has a draw of an instance, numbers in an array, and a quotient: what the statement bounds, over its bound
(for an identity: the gap of both sides over 1e-9 of their size). Above 1 by more than rounding the instance is a
counterexample. A third of the instances are drawn afresh, the others move the numbers of the closest call so far, so
that random search and hill climbing share the work. The log says, claim by claim, how many instances were tried and how
close the closest call was: a quotient near 1 is a bound that is reached, one far below a bound with room.

    python -m dpaudit_mechanisms.counterexamples --minutes 10 --seed 1 --out reports/counterexamples.json
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable
from typing import Any

import click
import numpy as np

from dpaudit_mechanisms.inputs import FloatArray

ROUNDING = 1e-7
SHARE_FRESH = 1.0 / 3.0
Draw = Callable[[np.random.Generator], FloatArray]
Quotient = Callable[[FloatArray], float]
TARGETS: dict[str, tuple[str, Draw, Quotient]] = {}


def target(claim: str, what: str, draw: Draw) -> Callable[[Quotient], Quotient]:
    """Registers a quotient under the id of its claim."""

    def register(quotient: Quotient) -> Quotient:
        TARGETS[claim] = (what, draw, quotient)
        return quotient

    return register


def cube(size: int) -> Draw:
    """Numbers in [0, 1), a quarter of them 0 or 1: corners are where bounds are reached."""

    def draw(rng: np.random.Generator) -> FloatArray:
        values = rng.random(size)
        return np.where(rng.random(size) < 0.25, np.round(values), values)

    return draw


def laws(values: FloatArray, inputs: int) -> FloatArray:
    """Row-stochastic table of positive numbers from numbers of [0, 1], over four orders of magnitude."""
    weights = np.exp(9.0 * values.reshape(inputs, -1))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def loss(table: FloatArray, pairs: Any = None) -> float:
    """The largest |log p - log q| over pairs of rows."""
    logs = np.log(table)
    chosen = itertools.combinations(range(len(table)), 2) if pairs is None else pairs
    return max(float(np.abs(logs[i] - logs[j]).max()) for i, j in chosen)


def delta_of(p: FloatArray, q: FloatArray, factor: float) -> float:
    """The larger hockey-stick divergence of two laws at e^epsilon = factor."""
    return max(float(np.maximum(p - factor * q, 0.0).sum()), float(np.maximum(q - factor * p, 0.0).sum()))


def over(value: float, bound: float) -> float:
    """A quotient; 0 / 0 is 0, as nothing is close there, and a bound of 0 that is exceeded infinite."""
    if bound <= 1e-12:
        return 0.0 if value <= 1e-9 else math.inf
    return value / bound


def gap(first: Any, second: Any) -> float:
    """How far an identity is from holding, in units of 1e-9 of its size."""
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    return float(np.abs(a - b).max() / (1e-9 * (1.0 + np.abs(a).max())))


def pick(value: float, count: int) -> int:
    """A position from a number of [0, 1]."""
    return min(int(value * count), count - 1)


# ---- constrained privacy --------------------------------------------------------------------------------------------


@target("CD-L3.4.1", "4 worlds, a map to 3, an event, e^epsilon in [1, 4]", cube(13))
def _post_processing(v: FloatArray) -> float:
    table, event = laws(v[:8], 2), v[8] * np.ones(4) > np.array([0.0, 0.3, 0.5, 0.8])
    event[0] = True
    given = table * event
    given /= given.sum(axis=1, keepdims=True)
    h = [pick(u, 3) for u in (v[9], v[10], v[11], v[8])]
    after = np.stack([given[:, [w for w in range(4) if h[w] == k]].sum(axis=1) for k in range(3)], axis=1)
    factor = 1.0 + 3.0 * v[12]
    return over(delta_of(*after, factor), delta_of(*given, factor))


@target("CD-L3.7", "5 worlds, any map for the nearest one, e^epsilon in [1, 4]", cube(16))
def _imaging(v: FloatArray) -> float:
    table, nearest, factor = laws(v[:10], 2), [pick(u, 5) for u in v[10:15]], 1.0 + 3.0 * v[15]
    moved = np.zeros_like(table)
    for w, to in enumerate(nearest):
        moved[:, to] += table[:, w]
    return over(delta_of(*moved, factor), delta_of(*table, factor))


@target("CD-T3.9.2", "two mechanisms on 4 worlds, weights, e^epsilon in [1, 4]", cube(18))
def _mixture(v: FloatArray) -> float:
    first, second, a, factor = laws(v[:8], 2), laws(v[8:16], 2), v[16], 1.0 + 3.0 * v[17]
    mixed = a * first + (1.0 - a) * second
    return over(delta_of(*mixed, factor), max(delta_of(*first, factor), delta_of(*second, factor)))


@target("CD-T3.9.1", "two laws on 4 worlds, weights and a map", cube(13))
def _mixture_law(v: FloatArray) -> float:
    table, a, nearest = laws(v[:8], 2), v[8], [pick(u, 4) for u in v[9:13]]
    image = np.eye(4)[nearest]
    return gap((a * table[0] + (1 - a) * table[1]) @ image, a * (table[0] @ image) + (1 - a) * (table[1] @ image))


@target("CD-P2.1", "5 worlds, an event, a law within it that keeps no ratio but the conditional one's", cube(15))
def _conditioning(v: FloatArray) -> float:
    p, event = laws(v[:5], 1)[0], np.append(True, v[5:9] > 0.5)
    conditional = p * event / (p * event).sum()
    other = laws(v[9:14], 1)[0] * event
    other /= other.sum()
    inside = np.flatnonzero(event)
    ratios = max(abs(math.log(other[b] * p[c] / (other[c] * p[b]))) for b, c in itertools.product(inside, repeat=2))
    apart = float(np.abs(np.log(other[inside] / conditional[inside])).max())
    return over(apart, ratios)  # a law that keeps all ratios is the conditional one; apart <= the worst ratio


@target("CD-P2.2", "5 worlds, two disjoint events", cube(10))
def _union(v: FloatArray) -> float:
    p, places = laws(v[:5], 1)[0], np.array([pick(u, 3) for u in v[5:]])
    first, second = places == 1, places == 2
    if not first.any() or not second.any():
        return 0.0
    weight = p[first].sum() / (p[first].sum() + p[second].sum())
    mixed = weight * p * first / p[first].sum() + (1.0 - weight) * p * second / p[second].sum()
    both = first | second
    return gap(p * both / p[both].sum(), mixed)


TARGETS["CD-T3.5.1"] = ("as CD-P2.2, for the law on one input", cube(10), _union)


@target("CD-P2.7.1", "a shift and an output in three coordinates", cube(7))
def _laplace_shift(v: FloatArray) -> float:
    shift, output = v[:3] - 0.5, 40.0 * (v[3:6] - 0.5)
    scale = np.abs(shift).sum() / (0.01 + v[6])
    return over(float((np.abs(output) - np.abs(output - shift)).sum() / scale) if scale else 0.0, 0.01 + v[6])


# ---- two metric spaces ----------------------------------------------------------------------------------------------


def _space(v: FloatArray) -> Any:
    """6 datasets with shortest-path distances, values, a metric on them, and masses; None without sensitivity."""
    from dpaudit_mechanisms.two_metrics import FiniteSpaces

    n = 6
    lengths = np.zeros((n, n))
    lengths[np.triu_indices(n, 1)] = np.maximum(0.25, np.round(4.0 * v[:15]) / 2.0)
    lengths += lengths.T
    kept = np.zeros((n, n))
    kept[np.triu_indices(n, 1)] = 0.1 + np.round(6.0 * v[15:30]) / 2.0
    kept += kept.T
    for d, j in itertools.product((lengths, kept), range(n)):
        np.minimum(d, d[:, [j]] + d[[j]], out=d)
    names, f = np.unique([pick(u, n) for u in v[30:36]], return_inverse=True)
    spaces = FiniteSpaces(lengths, f, kept[np.ix_(names, names)], measure=np.exp(12.0 * v[36 : 36 + len(names)]))
    return spaces if spaces.sensitivity > 0.0 else None


def _levels(kind: str) -> Quotient:
    def quotient(v: FloatArray) -> float:
        from dpaudit_mechanisms import two_metrics

        spaces = _space(v)
        if spaces is None:
            return 0.0
        epsilon = (0.1, 1.0, 5.0)[pick(v[42], 3)]
        if kind in ("Staircase", "PrivacyFirst"):
            mechanism = getattr(two_metrics, kind)(spaces, epsilon)
        else:
            widths = 3.0 * v[43 : 43 + spaces.outcomes]
            options = (v[49 : 49 + spaces.outcomes] > 0.5, 3.0 * v[55]) if kind == "penalty" else ()
            mechanism = two_metrics.WidenedStaircase(spaces, epsilon, widths, *options)
        return over(float(mechanism.epsilon_exact), 2.0 * epsilon)

    return quotient


for _claim, _kind in (("UP-T1", "Staircase"), ("UP-T2", "PrivacyFirst"), ("UP-T4", "widened"), ("UP-T5", "penalty")):
    _what = "6 datasets, masses over five orders of magnitude: loss over 2 epsilon"
    TARGETS[_claim] = (_what, cube(56), _levels(_kind))


@target("UP-L1", "6 datasets: the change of a level between neighbours", cube(56))
def _level_change(v: FloatArray) -> float:
    from dpaudit_mechanisms.two_metrics import PrivacyFirst

    spaces = _space(v)
    if spaces is None:
        return 0.0
    levels, near = PrivacyFirst(spaces, 1.0).levels, np.argwhere(np.asarray(spaces.privacy_metric) <= 1.0)
    return max(float(np.abs(levels[i] - levels[j]).max()) for i, j in near)


@target("UP-P1", "two mechanisms of 3 outcomes on 2 inputs", cube(12))
def _product(v: FloatArray) -> float:
    first, second = laws(v[:6], 2), laws(v[6:], 2)
    joint = np.stack([np.outer(a, b).ravel() for a, b in zip(first, second, strict=True)])
    return over(loss(joint), loss(first) + loss(second))


@target("UP-P2", "5 datasets in a row, 3 outcomes: loss at distance i over i times that of neighbours", cube(15))
def _group(v: FloatArray) -> float:
    table = laws(v, 5)
    epsilon = loss(table, [(i, i + 1) for i in range(4)])
    return max(over(loss(table, [(i, j)]), (j - i) * epsilon) for i, j in itertools.combinations(range(5), 2))


# ---- d_X ------------------------------------------------------------------------------------------------------------


@target("DX-T1", "3 queries on 4 elements, an output: loss of a pair over its sensitivity", cube(27))
def _dx_laplace(v: FloatArray) -> float:
    distorted, c, z = v[:12].reshape(3, 4) - 0.5, 0.1 + 3.0 * v[12:15], 60.0 * (v[15:27].reshape(3, 4)[:, :1].T - 0.5)
    worst = 0.0
    for i, j in itertools.combinations(range(4), 2):
        a, b = c * distorted[:, i], c * distorted[:, j]
        found = float(((np.abs(z - b) - np.abs(z - a)) / c).sum())
        worst = max(worst, over(abs(found), float(np.abs(distorted[:, i] - distorted[:, j]).sum())))
    return worst


TARGETS["DX-T1.1"] = TARGETS["DX-T1"]


@target("DX-T3", "4 outcomes, two inputs: loss of the exponential mechanism over max |change| / c", cube(9))
def _dx_exponential(v: FloatArray) -> float:
    scores, c = 20.0 * v[:8].reshape(2, 4), 0.1 + v[8]
    logs = scores / (2.0 * c)
    logs -= np.log(np.exp(logs - logs.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)) + logs.max(
        axis=1, keepdims=True
    )
    return over(float(np.abs(logs[0] - logs[1]).max()), float(np.abs(scores[0] - scores[1]).max()) / c)


@target("DX-T5", "SmallDB: 3 elements, 2 queries, 3 records, m = 1 to 4: loss over the largest |q_i - q_j|", cube(8))
def _small_db(v: FloatArray) -> float:
    from dpaudit_mechanisms.histograms import all_histograms

    queries, m = 8.0 * (v[:6].reshape(2, 3) - 0.5), 1 + pick(v[6], 4)
    ys = all_histograms(3, m) @ queries.T
    x = np.array([1, 1, 1]) if v[7] < 0.5 else np.array([0, 0, 3])
    worst = 0.0
    for i, j in itertools.permutations(range(3), 2):
        if x[i] == 0:
            continue
        moved = x.copy()
        moved[i] -= 1
        moved[j] += 1
        logs = [-np.abs(ys - queries @ one).max(axis=1) / 2.0 for one in (x, moved)]
        logs = [u - u.max() - math.log(np.exp(u - u.max()).sum()) for u in logs]
        found, budget = np.abs(logs[0] - logs[1]).max(), np.abs(queries[:, i] - queries[:, j]).max()
        worst = max(worst, over(float(found), float(budget)))
    return worst


@target("DX-T7", "one round of MWEM: choice among 3 queries, then a measurement, 2 elements: loss over d / T", cube(9))
def _mwem_round(v: FloatArray) -> float:
    """T = 1: a choice with scores c |q(y) - q(x)| at scale 4 c, Laplace noise of scale 2 c: half of d each."""
    queries, share, m = 8.0 * (v[:6].reshape(3, 2) - 0.5), v[6], 60.0 * (v[7] - 0.5)
    y, x, moved = 3.0 * np.array([share, 1.0 - share]), np.array([3.0, 0.0]), np.array([2.0, 1.0])
    logs = [np.abs(queries @ (y - one)) / 4.0 for one in (x, moved)]
    logs = [u - u.max() - math.log(np.exp(u - u.max()).sum()) for u in logs]
    chosen = pick(v[8], 3)
    noise = (abs(m - queries[chosen] @ moved) - abs(m - queries[chosen] @ x)) / 2.0
    budget = float(np.abs(queries[:, 0] - queries[:, 1]).max())
    return over(abs(float(logs[0][chosen] - logs[1][chosen]) + noise), budget)


@target("DX-T2.1", "2 queries, 3 elements, 4 records: expected squared error over its bound", cube(18))
def _dx_error(v: FloatArray) -> float:
    difference, c, x = 4.0 * (v[:6].reshape(2, 3) - 0.5), 2.0 * v[6:8], np.round(4.0 * v[8:11])
    n = x.sum()
    return over(
        float(((difference @ x) ** 2).sum() + 2.0 * (c**2).sum()),
        float(2.0 * n**2 * (difference**2).sum() + 4.0 * (c**2).sum()),
    )


@target("DX-T2.2", "2 queries, 3 elements: expected l1 error over its bound", cube(18))
def _dx_l1(v: FloatArray) -> float:
    difference, c, x = 4.0 * (v[:6].reshape(2, 3) - 0.5), 0.01 + 2.0 * v[6:8], np.round(4.0 * v[8:11])
    b = np.abs(difference @ x)
    return over(float((b + c * np.exp(-b / c)).sum()), float(x.sum() * np.abs(difference).sum() + c.sum()))


@target("DX-T2.3", "2 queries: probability of a larger error over delta", cube(18))
def _dx_tail(v: FloatArray) -> float:
    difference, c, x = 4.0 * (v[:6].reshape(2, 3) - 0.5), 0.01 + 2.0 * v[6:8], np.round(4.0 * v[8:11])
    delta, b = max(1e-6, v[11] ** 3), difference @ x
    t = x.sum() * np.abs(difference).max() + math.log(2.0 / delta) * c.max()
    inside = 1.0 - 0.5 * np.exp(-(t - np.abs(b)) / c) - 0.5 * np.exp(-(t + np.abs(b)) / c)
    return over(float(1.0 - inside.prod()), delta)


@target("DX-T10", "lists of 3 rows of 2 values, 2 queries, an output: loss over |q(u') - q(v')|_1 / n", cube(8))
def _dx_lists(v: FloatArray) -> float:
    mapped, c, z = v[:4].reshape(2, 2) - 0.5, 0.1 + 3.0 * v[4:6], 60.0 * (v[6:8] - 0.5)
    n, rest = 3, mapped[:, 0] * 2.0
    a, b = (c * (rest + mapped[:, k]) / n for k in (0, 1))
    found = abs(float(((np.abs(z - b) - np.abs(z - a)) / c).sum()))
    return over(found, float(np.abs(mapped[:, 0] - mapped[:, 1]).sum() / n))


@target("DX-T11", "the squared error of lists: over its bound", cube(12))
def _dx_lists_error(v: FloatArray) -> float:
    biases, c, rows = 4.0 * (v[:6].reshape(3, 2) - 0.5), 2.0 * v[6:8], [pick(u, 3) for u in v[8:11]]
    mean = biases[rows].mean(axis=0)
    bound = 2.0 * (float((biases**2).sum(axis=1).max()) + 2.0 * float((c**2).sum()))
    return over(float((mean**2).sum() + 2.0 * (c**2).sum()), bound)


# ---- datacubes ------------------------------------------------------------------------------------------------------


@target("DC-P3.1.i", "a strategy of 4 rows over 4 cells, one person replaced: loss over alpha", cube(20))
def _budgets(v: FloatArray) -> float:
    strategy, budgets = np.round(6.0 * (v[:16].reshape(4, 4) - 0.5)), v[16:]
    promised = 2.0 * float((np.abs(strategy) * budgets[:, None]).sum(axis=0).max())
    return max(
        over(float((np.abs(strategy[:, i] - strategy[:, j]) * budgets).sum()), promised)
        for i, j in itertools.combinations(range(4), 2)
    )


@target("DC-T2.1", "2 answers to 3 databases, an output: loss over epsilon = 1", cube(8))
def _dc_laplace(v: FloatArray) -> float:
    answers, z = 4.0 * v[:6].reshape(3, 2), 60.0 * (v[6:8] - 0.5)
    pairs = list(itertools.combinations(range(3), 2))
    sensitivity = max(float(np.abs(answers[i] - answers[j]).sum()) for i, j in pairs)
    if sensitivity <= 1e-9:
        return 0.0
    return max(float(np.abs((np.abs(z - answers[i]) - np.abs(z - answers[j])).sum())) / sensitivity for i, j in pairs)


@target("DC-L3.5", "S of 5 rows and 3 columns, another recovery: least squares' variance over its", cube(28))
def _recovery(v: FloatArray) -> float:
    strategy, precision, extra = 4.0 * (v[:15].reshape(5, 3) - 0.5), 0.05 + v[15:20], 4.0 * (v[20:25] - 0.5)
    query = v[25:28] - 0.5
    gram = strategy.T @ (precision[:, None] * strategy)
    if np.linalg.cond(gram) > 1e6:
        return 0.0
    left = np.linalg.solve(gram, strategy.T * precision)
    best = query @ left
    other = best + extra @ (np.eye(5) - strategy @ left)
    return over(float((best**2 / precision).sum()), float((other**2 / precision).sum()))


@target("DC-C3.3.L", "3 groups: the closed form over other budgets on the constraint", cube(6))
def _group_budgets(v: FloatArray) -> float:
    s, other = 0.01 + v[:3], 0.01 + v[3:]
    other = other / other.sum()
    return over(float((s ** (1.0 / 3.0)).sum() ** 3), float((s / other**2).sum()))


TARGETS["DC-L3.2.a"] = (
    "2 marginals of 2 bits with budgets: the sums of columns",
    cube(2),
    lambda v: gap([v[0] + v[1]] * 4, np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]]) @ v.repeat(2)),
)


@target("DC-T4.1.2", "d = 4, alpha, counts: a marginal from its coefficients", cube(17))
def _fourier(v: FloatArray) -> float:
    alpha, x = pick(v[16], 16), v[:16]
    signs = np.array([[(-1.0) ** bin(a & b).count("1") for b in range(16)] for a in range(16)]) / 4.0
    cells = sorted({b & alpha for b in range(16)})
    marginal = np.array([[float(b & alpha == g) for b in range(16)] for g in cells])
    below = [b for b in range(16) if b & alpha == b]
    return gap(marginal @ x, sum((signs[b] @ x) * (marginal @ signs[b]) for b in below))


TARGETS["DC-T4.1.1"] = TARGETS["DC-T4.1.2"]


@target("DC-L4.2.1", "d to 120, k < d / 2: exact noise over 2 sqrt(2) times the bound", cube(2))
def _table_pure(v: FloatArray) -> float:
    d, k, terms = _sizes(v)
    total = np.exp(terms[0] + (terms[1]) / 3.0).sum() ** 3 * 2.0 ** (1 - k) / (2.0**k * math.comb(d, k))
    return over(2.0**k * math.sqrt(total), math.sqrt(8.0) * k * math.sqrt(math.comb(d, k) * math.comb(d + k, k)))


@target("DC-L4.2.2", "d to 120, k < d / 2: exact noise over twice the bound", cube(2))
def _table_approximate(v: FloatArray) -> float:
    d, k, terms = _sizes(v)
    total = np.exp(terms[0] + terms[1] / 2.0).sum() ** 2 * 2.0 ** (1 - k) / (2.0**k * math.comb(d, k))
    return over(2.0**k * math.sqrt(total), 2.0 * math.sqrt(k * math.comb(d + k, k)))


def _sizes(v: FloatArray) -> tuple[int, int, FloatArray]:
    """d, k, and the logs of C(d, i) and C(d - i, k - i) for i = 0..k."""
    d = 3 + pick(v[0], 118)
    k = 1 + pick(v[1], (d - 1) // 2)
    return d, k, np.array([[math.log(math.comb(d, i)), math.log(math.comb(d - i, k - i))] for i in range(k + 1)]).T


# ---- metric queries -------------------------------------------------------------------------------------------------


def _convex(v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A convex 1-Lipschitz function into [0, 1]: kinks, heights at them, slopes between."""
    ends = np.sort(np.concatenate([[0.0, 1.0], v[:6]]))
    slopes = np.sort(2.0 * v[6:13] - 1.0)
    heights = np.concatenate([[0.0], np.cumsum(slopes * np.diff(ends))])
    heights -= heights.min()
    return ends, heights + v[13] * (1.0 - heights.max()), slopes


def _mistakes(v: FloatArray, alpha: float, noise: float) -> int:
    ends, heights, slopes = _convex(v)
    places = np.unique(np.concatenate([ends, np.linspace(0.0, 1.0, 65)]))
    values = np.interp(places, ends, heights)
    at = np.clip(np.searchsorted(ends, places, side="right"), 1, len(slopes)) - 1
    known, count = np.zeros_like(places), 0
    while True:
        errors = np.abs(known - values)
        wrong = np.flatnonzero(errors > alpha * (1.0 + 1e-9))
        if not len(wrong):
            return count
        j = wrong[np.argmin(errors[wrong])] if v[14] < 0.5 else wrong[np.argmax(errors[wrong])]
        signs = np.sign(v[15:17] - 0.5) * noise * alpha
        known = np.maximum(known, values[j] + signs[0] + (slopes[at[j]] + signs[1]) * (places - places[j]))
        count += 1


@target("MQ-L4", "a convex function of 7 pieces, greedy adversary: mistakes over 3 / sqrt(alpha_1)", cube(18))
def _tangents(v: FloatArray) -> float:
    alpha = float(np.exp(-7.0 * v[17]) * 0.9)
    return over(_mistakes(v, alpha, 0.0), 3.0 / math.sqrt(alpha))


@target("MQ-L5", "the same with an oracle off by alpha_1 / 4: mistakes over sqrt(4 / alpha_1) + 1", cube(18))
def _noisy_tangents(v: FloatArray) -> float:
    alpha = float(np.exp(-7.0 * v[17]) * 0.9)
    return over(_mistakes(v, alpha, 0.25), math.sqrt(4.0 / alpha) + 1.0)


@target("MQ-L6", "two such functions, errors added: mistakes over 3 l^(3/2) / sqrt(alpha)", cube(36))
def _two_coordinates(v: FloatArray) -> float:
    alpha = float(np.exp(-6.0 * v[17]) * 0.9)
    total = sum(_mistakes(v[18 * i : 18 * i + 17], alpha / 2.0, 0.25) for i in (0, 1))
    return over(total, 3.0 * 2.0**1.5 / math.sqrt(alpha))


@target("MQ-L12", "x, y, clusters of query points: 1/32 of the gap over the mean of the terms, K being large", cube(12))
def _subsets(v: FloatArray) -> float:
    logs = 2 + pick(v[0], 5)
    sizes = np.maximum(1, np.round(2.0**logs * v[1:5] ** 3)).astype(int)
    sizes = np.append(max(1, 2**logs - int(sizes.sum())), sizes)
    to_x = np.concatenate([[1.0], 1.2 * v[5:9]])
    low, high = np.abs(1.0 - to_x), 1.0 + to_x
    to_y = np.concatenate([[0.0], (low + (high - low) * np.concatenate([[0.0], v[9:12], v[:1]]))[1:]])
    k = int(sizes.sum())
    scales, radii = int(math.log2(k)), [0.0]
    for i in range(1, scales + 1):
        each = []
        for side in (to_x, to_y):
            order = np.argsort(side)
            each.append(float(side[order][np.searchsorted(np.cumsum(sizes[order]), 2 ** (i - 1))]))
        radii.append(max(each))
    inside = [i for i in range(1, scales + 1) if radii[i] + radii[i - 1] <= 1.0 + 1e-9]
    if not inside:
        return 0.0
    last = inside[-1]
    radii[last] = 1.0 - radii[last - 1]
    worst = 0.0
    for i in range(2, last + 1):
        step, chance, mean = radii[i] - radii[i - 1], 0.5 ** (i - 1), 0.0
        if step <= 1e-6:
            continue
        for hit in itertools.product([False, True], repeat=len(sizes)):
            if any(hit):
                h = np.array(hit)
                mean += float(np.where(h, 1.0 - (1.0 - chance) ** sizes, (1.0 - chance) ** sizes).prod()) * min(
                    step, abs(to_x[h].min() - to_y[h].min())
                )
        worst = max(worst, over(step / 32.0, mean))
    return worst


def search(claim: str, seconds: float, rng: np.random.Generator) -> dict[str, Any]:
    """Tries instances of one claim for some seconds: how many, the closest call, and its numbers."""
    what, draw, quotient = TARGETS[claim]
    quotient(draw(rng))  # imports what it needs before the clock runs
    start, tried, best, closest = time.monotonic(), 0, draw(rng), -math.inf
    while tried == 0 or time.monotonic() - start < seconds:
        if tried == 0 or rng.random() < SHARE_FRESH:
            numbers = draw(rng)
        else:
            moved = best + rng.normal(size=len(best)) * rng.choice([0.3, 0.03, 0.003])
            numbers = np.clip(np.where(rng.random(len(best)) < rng.choice([0.1, 0.5, 1.0]), moved, best), 0.0, 1.0)
        found = float(quotient(numbers))
        tried += 1
        if found > closest:
            closest, best = found, numbers
    return {
        "claim": claim, "instances": what, "tried": tried, "closest": closest,
        "is_counterexample": bool(closest > 1.0 + ROUNDING), "numbers": best.round(12).tolist(),
    }  # fmt: skip


@click.command()
@click.option("--minutes", default=10.0, show_default=True, help="For all claims together.")
@click.option("--seed", default=1, show_default=True)
@click.option("--out", default="reports/counterexamples.json", show_default=True, help="The log.")
def main(minutes: float, seed: int, out: str) -> None:
    """Search for counterexamples to what is verified, claim by claim, and write the log."""
    from dpaudit.results.saving import write_whole

    records = []
    for n, claim in enumerate(TARGETS):
        record = search(claim, 60.0 * minutes / len(TARGETS), np.random.default_rng([seed, n]))
        records.append(record)
        click.echo(f"{claim}: {record['tried']:,} instances, closest call {record['closest']:.6f}")
    write_whole(out, json.dumps({"seed": seed, "minutes": minutes, "claims": records}, indent=1) + "\n")


if __name__ == "__main__":
    main()
