"""Preprocessing of linear queries: what to answer instead of what is asked, and with which noise (DX-O1, DX-O2).

The mechanism releases B x + Lap(c) where B = c x Q' may differ from the asked Q: a little bias for less noise. The
choice depends on the queries, the metric and the public number of records n, never on the data (DX-C5).

    minimise  loss(B - Q, c; n)   subject to  sum over k of |B[k, i] - B[k, j]| / c[k] <= d(i, j) for all i < j,  c >= 0

Losses (bounds of DX-T2 on the error, with norms over all entries):

* "squared"  n^2 ||B - Q||_2^2 + 2 ||c||_2^2 (eq. (6); the factor 2 that DX-T2.1 has in front of both is not needed)
* "l1"       n ||B - Q||_1 + ||c||_1
* "linf"     n ||B - Q||_inf + E max |Y_k|
* "tail"     n ||B - Q||_inf + ln(K / delta) ||c||_inf: holds with probability 1 - delta

In (Q', c) this is not convex (DX-C8). In (B, c) it is for one query, and for "tail" (only the largest scale costs, so
one scale for all is enough): those are solved as they are. For several queries it is convex as soon as it is fixed how
they share the budget of each pair: |B[k, i] - B[k, j]| <= c[k] share[k, i, j]. Three blocks take turns, each a convex
program: (B, c) at the shares that the last point left, c alone, and B alone. The starts are the best closed form (B = Q
with the scales of PSA, S2 or the optimal ones), the same with some queries answered by constants, and for "linf" the
best point with one scale. A turn that does not gain is taken back; so the result is never worse than the closed form.

How far above the optimum it can be is proved by a lower bound: `dpaudit_mechanisms.preprocessing.bounds`.

Letters: Q, B queries (K, N), d metric (N, N) in nats, c scales (K,), n records.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from dpaudit.errors import DpauditError, UsageError
from dpaudit_mechanisms.dx_laplace import DxLaplace
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, whole_number
from dpaudit_mechanisms.noise_scales import Rule, noise_scales
from dpaudit_mechanisms.optimal_scales import ScaleLoss, optimal_scales
from dpaudit_mechanisms.preprocessing.bounds import lower_bound
from dpaudit_mechanisms.preprocessing.problem import Loss, Point, Problem, better, flattened, merged
from dpaudit_mechanisms.preprocessing.program import answers_alone, joint, one_scale

SMALL = 100  # K N: up to here a descent from every start
TURNS = 12  # of the blocks, at most
SLOW = 0.01  # relative gain of a turn below which the expensive block is tried too
MIN_GAIN = 1e-5  # relative gain of a turn: one that gains less is the last


@dataclasses.dataclass(frozen=True, eq=False)
class Preprocessed:
    """Transformed queries, and the scales of their noise.

    Attributes
    ----------
    answered : numpy.ndarray of float, shape (K, N)
        B = c x Q'. A row with c = 0 is constant wherever the metric is finite, and is released exactly.
    c : numpy.ndarray of float, shape (K,)
        Scales of the noise.
    loss, records, delta
        Of the problem.
    value : float
        The loss there. At most `closed_form`.
    closed_form : float
        The least loss of the closed forms (B = Q).
    lower_bound : float
        No feasible point has a loss below this (up to 1e-7 of it, the tolerance of the convex solver).
    """

    answered: FloatArray = dataclasses.field(repr=False)
    c: FloatArray
    loss: Loss
    records: int
    delta: float | None
    value: float
    closed_form: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """Largest distance of the loss above the optimum, as a share of the loss: in [0, 1]."""
        return max(0.0, 1.0 - self.lower_bound / self.value) if self.value > 0.0 else 0.0

    def mechanism(self, metric: ArrayLike, **options: Any) -> DxLaplace:
        """The d_X-Laplace mechanism that answers `answered` with these scales; options as of `DxLaplace`."""
        return DxLaplace(self.answered, np.asarray(metric), scales=self.c, **options)


def preprocess(
    queries: ArrayLike,
    metric: ArrayLike,
    records: int,
    loss: Loss = "squared",
    delta: float = 0.05,
    nodes: int = 1,
) -> Preprocessed:
    """Solve the preprocessing optimisation by block coordinate descent.

    Parameters
    ----------
    queries : array_like of float, shape (K, N), or (N,)
        Asked queries, finite.
    metric : array_like of float, shape (N, N)
        d(i, j) in nats, in [0, inf]; symmetric.
    records : int
        n, the public number of records; at least 1.
    loss : {"squared", "l1", "linf", "tail"}, optional
    delta : float, optional
        For "tail": the probability with which the bound may fail, in (0, 1].
    nodes : int, optional
        Boxes of scales that the lower bound may be computed on; 1 by default.

    Returns
    -------
    Preprocessed
        Feasible to 1e-9 of each budget.

    Raises
    ------
    UsageError
        If an argument is out of range, or clarabel is not installed.

    Notes
    -----
    A program has about 2 K N^2 rows: for N = 50 and K = 5 a call takes 0.2 s ("l1", "tail"), 2 s ("squared"), 5 to 7 s
    ("linf"); not meant for universes of more than a few hundred elements.

    Examples
    --------
    With few records it pays to answer something flatter with less noise:

    >>> found = preprocess([0.0, 1.0], [[0.0, 0.1], [0.1, 0.0]], records=2, loss="l1")
    >>> round(found.closed_form, 3), round(found.value, 3), found.gap < 1e-6  # 10 of noise, or the bias of a constant
    (10.0, 2.0, True)
    """
    problem = Problem.of(queries, metric, records, loss, delta)
    boxes = whole_number("nodes", nodes, 1)
    closed, closed_form = _closed_form(problem)
    if loss == "tail":
        found, lower = _attempt(one_scale, problem)
        best = better(problem, closed, found)
        lower = min(problem.value(*best), max(lower, 0.0))
    else:
        starts = sorted(_starts(problem, closed), key=lambda point: problem.value(*point))
        if problem.queries.size > SMALL:
            starts = starts[:1]
        best = min((_descended(problem, start) for start in starts), key=lambda point: problem.value(*point))
        lower = lower_bound(problem, best, boxes)
    stated = problem.delta if loss == "tail" else None
    return Preprocessed(best[0], best[1], loss, problem.records, stated, problem.value(*best), closed_form, lower)


def _starts(problem: Problem, closed: Point) -> list[Point]:
    """Feasible points to descend from: the closed form, and what a descent does not find from there."""
    found = [closed]
    if len(problem.queries) == 1:
        return found  # convex
    found += _thinned(problem, closed)
    if problem.loss == "linf":
        # With one scale c for all, E max |Y_k| is c times a harmonic number: the "tail" problem of a suitable delta.
        count = len(problem.queries)
        harmonic = sum(1.0 / k for k in range(1, count + 1))
        alike = dataclasses.replace(problem, loss="tail", delta=count * math.exp(-harmonic))
        found.append(better(problem, closed, _attempt(one_scale, alike)[0]))
    return found


def _thinned(problem: Problem, start: Point) -> list[Point]:
    """The point with some queries answered by a constant, which needs no noise: one more at a time while that gains.

    A descent does not get there: on the way the loss has a barrier, since noise and bias trade off concavely. Nor does
    it come back, so that every number of them is a start.
    """
    path, best, given_up = [], start, np.zeros(len(start[1]), dtype=bool)
    while not given_up.all():
        tried = []
        for k in np.flatnonzero(~given_up):
            answered = best[0].copy()
            answered[k] = flattened(problem, problem.queries[k])
            if (point := _scales_alone(problem, (answered, best[1]))) is not None:
                tried.append((problem.value(*point), int(k), point))
        if not tried or min(tried, key=lambda t: t[0])[0] >= problem.value(*best):
            break
        _, gone, best = min(tried, key=lambda t: t[0])
        given_up[gone] = True
        path.append(better(problem, start, best))
    return path


def _descended(problem: Problem, best: Point) -> Point:
    """Block coordinate descent from a feasible point."""
    several = len(problem.queries) > 1
    for _ in range(TURNS if several else 1):
        before = problem.value(*best)
        best = better(problem, best, _attempt(joint, problem, best)[0])
        if several:
            best = better(problem, best, _scales_alone(problem, best))
            if problem.value(*best) > (1.0 - SLOW) * before:  # the expensive block, where the cheap ones gain little
                best = better(problem, best, _attempt(answers_alone, problem, best)[0])
        if problem.value(*best) >= (1.0 - MIN_GAIN) * before:
            break
    return best


def _attempt(block: Any, *arguments: Any) -> tuple[Point | None, float]:
    """A block's point and lower bound; no point and -inf where the solver gave up."""
    try:
        return block(*arguments) or (None, -math.inf)
    except UsageError:
        raise
    except DpauditError:
        return None, -math.inf


def _closed_form(problem: Problem) -> tuple[Point, float]:
    """The best closed form as a start, and its loss; without one (different answers at distance 0) inf."""
    same = merged(problem, problem.queries)
    start = min(((same, c) for c in _closed_scales(problem, same)), key=lambda point: problem.value(*point))
    return start, problem.value(*start) if (same == problem.queries).all() else math.inf


def _closed_scales(problem: Problem, answered: FloatArray) -> list[FloatArray]:
    """Scales c for these answers by every rule that may be best for the loss."""
    losses: tuple[ScaleLoss, ...] = {"squared": ("squared",), "l1": ("l1",), "linf": ("squared", "l1"), "tail": ()}[
        problem.loss
    ]
    rules: tuple[Rule, ...] = ("PSA", "S2")
    found = [noise_scales(answered, problem.metric, rule) for rule in rules]
    return found + [optimal_scales(answered, problem.metric, loss).scales for loss in losses]


def _scales_alone(problem: Problem, point: Point) -> Point | None:
    """c at fixed B: the optimal scales of DX-O5, or the best of several rules for the mean of the largest noise."""
    try:
        if problem.loss == "linf":
            candidates = [(point[0], c) for c in _closed_scales(problem, point[0])]
            return min(candidates, key=lambda candidate: problem.value(*candidate))
        return point[0], optimal_scales(point[0], problem.metric, "l1" if problem.loss == "l1" else "squared").scales
    except UsageError:  # rounding left a difference at distance 0
        return None
