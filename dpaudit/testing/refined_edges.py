"""The fixed game where one label ends: the edges of its scores are learned during the test, and cost next to nothing.

Beyond the end of the other label's scores a guess is never wrong, but where they end is known from n of their draws
only up to 1/n of their mass: a threshold next to the last one seen is wrong now and then, and one wrong guess ruins
what a thousand right ones prove. A safe distance, or a long pilot that makes it short, loses a good part of them. Here
the thresholds are found with the test's own draws, and the exact test is one that allows for that: of the number of
correct guesses in a row.

The run. Labelled draws whose scores lie beyond one of two thresholds (`Edges`; fixed by the pilot, one for each
label, so that the two events are disjoint) are candidates; a candidate is guessed to have the label of its side. Their
labels are uncovered one after the other, in an order that may depend on the scores of all draws and on the labels
uncovered before, and each is, as fixed before it is uncovered, either *learned from* or *guessed*. R is the number of
correct guesses before the first wrong one. Under a line (epsilon, delta), with a = e^epsilon / (1 + e^epsilon), N
labelled draws and cost = delta * sides / 2,

    P(R >= r) <= E[a^(r - B)+],     B ~ Binomial(N, cost).                                                          (1)

Proof. The line says that P = P1 + P2 with densities p1 <= e^epsilon q and P2 of mass at most delta, and the same with P
and Q exchanged (P2 is the positive part of P - e^epsilon Q). Call a draw from x with output y on the side of x *paid*
with probability p2(y) / p(y), by a coin of its own; in the same way those from x_prime on its side; no other is.
Labelled draws are independent and each is paid with probability at most cost (half of the mass of P2 on the side of x,
half of that of Q2 on the other), so that the number of paid ones is stochastically at most B. Given all outputs and who
is paid, the labels of the others are independent, and each is the label of its side with probability at most a: the
odds are p1 / q at most. So each guess of a draw that is not paid is correct with probability at most a, whatever was
uncovered before, and g of them in a row are correct with probability at most a^g. Paid draws are never wrong; R is at
most their number and that of the correct guesses of others before the first wrong one: (1), since a^(r - b)+ increases
in b.

The p-value. For every z in [0, e^-epsilon], 1 / (1 + z) >= a, so that with b free of the limit at r

    P(R >= r) <= E[(1 + z)^(B - r)] = (1 + cost * z)^N / (1 + z)^r.                                                 (2)

The least of these is at z = (r - N cost) / (cost (N - r)) or, where that is beyond it, at the end e^-epsilon. It falls
in r, so it is a p-value; it increases in epsilon (fewer z) and in cost, so the rejected values of a parameter are an
interval from 0. With delta = 0 it is a^R: that of R correct guesses without a wrong one by the binomial test, whatever
was learned on the way. It holds for every line; the game is only used for claims with one (`PairGame`).

The order. Draws come in stages of sizes fixed by the pilot, and are counted in narrow cells of the score. After each
stage but the last, labels of all draws so far are learned from the inside out, until `REACH` spacings of the other
label have passed without one of its scores. Then everything that is still covered, of all stages, is guessed from the
outside in, on both sides together by the distance from the edge in spacings, until a cell holds a wrong guess. What is
lost is the pilot, some spacings a stage, and on one side what the two last edges are less well known than at the end.

A share of the level pays for the test of `FixedGame`, with the rule of the pilot on all draws: should rare scores of
the other label lie far out, a run is short, and a few wrong guesses are what that test allows for. The bound is the
larger of the two (union bound). Power is stated for that test alone, at its share: less than there is. Which tests
there are, and their levels, is decided by the pilot alone.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.learning.fitted_scores import FittedRule, FittedScore, without_nan
from dpaudit.learning.pilots import AnyFittedScore
from dpaudit.learning.rules import Rule
from dpaudit.learning.scores import Coordinate, Score
from dpaudit.privacy.claims import Claim, FloatArray
from dpaudit.reading.outcomes import Outcomes, Reading
from dpaudit.testing.fixed_game import MOST_CAUTIOUS, FixedGame
from dpaudit.testing.hockey_stick import largest_rejected

LAST_SEEN = 24  # scores of the other label from its last one inwards that tell how dense they are at their edge
TAIL, TAIL_SHARE = 96, 0.05  # of its scores on the pilot, that tell whether they end there; of all, at most
FEWEST_RIGHT = 14  # guesses beyond the edges that the pilot shows, those within a spacing of an edge not counted
# Nats by which the pilot must speak for edges: against a density that thins out without an end, and against a loss that
# is as large beyond an edge as before it. Of noise without an end (two Laplace or normal laws a unit apart, 2,000 or
# 5,000 draws a side) 0.1% to 1.3% were taken for one with edges; of noise cut off at delta = 0.005 38% and 89%.
LEAST_ENDING, LEAST_JUMP = 6.0, 6.0
SLOPES = np.linspace(0.1, 10.0, 100)  # of a density that is cut off: its rate, over the reciprocal of its width
# Of one that is not: exp(-rate u - curvature u^2 / 2), u over the mean.
RATES, CURVATURES = np.meshgrid(np.linspace(0.0, 1.0, 21), np.geomspace(1e-4, 3.0, 40))
DEVIATIONS = 3.0  # by which the correct guesses on the pilot are lowered where edges have to promise more than a rule
FINE = 64  # cells a spacing of the pilot: a cell holds about two draws of a side where the test is 100 times the pilot
OUTWARD = 24  # spacings of the pilot beyond its last score of the other label that have cells; the rest is one cell
SIZE = FINE * (LAST_SEEN + OUTWARD) + 1  # cells of an edge
REACH = 6.0  # spacings without a score of the other label beyond which labels are not learned from
GROWTH = 1.5  # labelled draws after a stage over those before it
LAST_FROM = 0.15  # of all labelled draws: once there are so many, the rest is the last stage
HOW_IT_ENDED = "(Guesses were made from the outside in up to the first wrong one; edges were learned from other draws.)"
FALLBACK = 0.01  # of the level, for the test of the pilot's rule


@functools.cache
def _log_totals() -> FloatArray:
    """Log integrals of the densities of `RATES` and `CURVATURES`."""
    totals = np.sqrt(0.5 * math.pi / CURVATURES) * scipy.special.erfcx(RATES / np.sqrt(2.0 * CURVATURES))
    return np.asarray(np.log(totals))


@dataclasses.dataclass(frozen=True)
class Edge:
    """Narrow cells of a score around the end of one label's scores.

    Attributes
    ----------
    sign : int
        +1 where the other label is guessed above the end, -1 where it is guessed below: scores are read times `sign`.
    guess : int
        The label that is guessed.
    start, width : float
        Cell j holds the scores in (start + j * width, start + (j + 1) * width], about; the last one all that are above.
    last : int
        The cell of the last score of the ending label in the pilot.
    """

    sign: int
    guess: int
    start: float
    width: float
    last: int

    def cells_of(self, scores: FloatArray) -> NDArray[np.int64]:
        """The cell of each score that has one: monotone in the score times `sign`. NaN has none."""
        read = self.sign * scores
        with np.errstate(over="ignore"):  # infinite scores, and those very far out, are in the last cell
            place = np.minimum((read[read > self.start] - self.start) / self.width, SIZE - 1)
        return place.astype(np.int64)

    def threshold(self, cell: int) -> float:
        """The score beyond which the cells after `cell` lie."""
        return self.sign * (self.start + (cell + 1) * self.width)


@dataclasses.dataclass(frozen=True)
class Edges:
    """One edge of a score, or one at each end, with different labels beyond: the events are disjoint.

    Attributes
    ----------
    score : Score
    reading : Reading
        How it reads outputs.
    sides : tuple of Edge
    right : float
        Guesses beyond the edges on the training draws, those that would lie within one spacing not counted.
    ending, jump : float
        Nats by which these draws speak for edges, against a tail that thins out, and against one loss all over.
    """

    score: Score
    reading: Reading
    sides: tuple[Edge, ...]
    right: float
    ending: float
    jump: float

    def rule(self, ends: Sequence[int]) -> Rule:
        """The rule that guesses beyond these cells; nowhere where that is the last one."""
        above = 1 if (self.sides[0].sign > 0) == (self.sides[0].guess == 1) else -1
        places = {-1: -math.inf, 1: math.inf}
        for side, end in zip(self.sides, ends, strict=True):
            if end < SIZE - 1:
                places[side.sign] = side.threshold(end)
        return Rule(self.score, places[-1], places[1], above, self.reading)


@dataclasses.dataclass(frozen=True)
class StageCounts:
    """What is counted: a rule's guesses, and the cells around each edge; shape (3 + edges * cells,)."""

    rule: Rule
    edges: Edges

    def zeros(self) -> NDArray[np.int64]:
        """The counts of no draws."""
        return np.zeros(3 + len(self.edges.sides) * SIZE, dtype=np.int64)

    def count(self, outcomes: Outcomes) -> NDArray[np.int64]:
        """The counts of the rule (`Rule.count`), and outcomes in each cell of each edge."""
        scores = self.edges.score(self.edges.reading(outcomes))
        cells = [np.bincount(side.cells_of(scores), minlength=SIZE) for side in self.edges.sides]
        return np.concatenate([self.rule.count(outcomes), *cells]).astype(np.int64)


def find_edges(fitted: FittedScore) -> list[Edges]:
    """What may be an edge of a score, or two, on the training draws that it is valued on.

    That scores of a label end, rather than thin out, is seen from how they lie (`_ending`), and from the other label,
    of which there are more beyond the last of them than between two (`jump`). Atoms are left out: their end is known
    exactly once they were seen.
    """
    by_label = fitted.second, fitted.first
    known = [without_nan(part) for part in by_label]
    if not all(len(part) for part in known):
        return []
    found: list[Edges] = []
    for sign in (1, -1):
        values = known if sign > 0 else [-part[::-1] for part in known]  # increasing
        guess = int(values[1][-1] > values[0][-1])
        own, other = values[guess], values[1 - guess]
        if other[-1] == math.inf:
            continue
        finite = other[np.isfinite(other)]
        tail = finite[-1 - TAIL :]
        if len(tail) <= TAIL or TAIL_SHARE * len(by_label[1 - guess]) < TAIL:
            continue
        start, last = float(tail[-1 - LAST_SEEN]), float(tail[-1])
        width = (last - start) / (LAST_SEEN * FINE)
        has_atoms = not np.all(np.diff(tail[-1 - LAST_SEEN :]) > 0.0)
        if has_atoms or not (math.isfinite(width) and start + width > start and last + width > last):
            continue
        after_start, after_last = (len(own) - int(np.searchsorted(own, place, side="right")) for place in (start, last))
        beyond, between = after_last, after_start - after_last
        a_spacing = max(between, 1) / LAST_SEEN
        edge = Edge(sign, guess, start, width, 0)
        edge = dataclasses.replace(edge, last=int(edge.cells_of(np.array([sign * last]))[0]))
        jump, right = beyond * math.log1p(1.0 / a_spacing), max(beyond - a_spacing, 0.0)
        found.append(Edges(fitted.score, fitted.reading, (edge,), right, _ending(tail[1:] - tail[0]), jump))
    if len(found) == 2:
        above, below = found
        first, second = above.sides[0], below.sides[0]
        if first.guess != second.guess and first.start >= -second.start:
            sums = [getattr(above, name) + getattr(below, name) for name in ("right", "ending", "jump")]
            found.append(Edges(fitted.score, fitted.reading, (first, second), *sums))
    return found


def _ending(excesses: FloatArray) -> float:
    """Nats by which these excesses over a threshold speak for a density cut off at the largest, not for a longer tail.

    A density that is cut off is uniform or falls exponentially; the other one falls as an exponential, as a Gaussian,
    or between; each with the parameters that suit best.
    """
    mean = float(excesses.mean())
    largest, square = float(excesses.max()) / mean, float(np.mean((excesses / mean) ** 2))
    cut = np.max(-SLOPES / largest - np.log(-np.expm1(-SLOPES) / SLOPES)) - math.log(largest)
    # The last one, at rate 1 without a curvature, is the exponential.
    thinning = max(np.max(-RATES - 0.5 * CURVATURES * square - _log_totals()), -1.0)
    return float(len(excesses) * (cut - thinning))


@dataclasses.dataclass(frozen=True)
class Run:
    """Correct guesses before the first wrong one, and the cell of each edge beyond which all guesses were made."""

    correct: int
    ends: tuple[int, ...]


def longest_run(edges: tuple[Edge, ...], own: NDArray[np.int64], other: NDArray[np.int64]) -> Run:
    """Uncover labels as the module says.

    Parameters
    ----------
    edges : tuple of Edge
    own, other : ndarray of int, shape (stages, edges, cells)
        Draws of each stage with the label that is guessed at the edge, and with the other one. They are looked at in
        the order in which labels are uncovered.
    """
    stages = len(own)
    margins, right, wrong = np.zeros((3, len(edges), SIZE))  # distances in spacings; draws that are covered at last
    for k, edge in enumerate(edges):
        covered = np.zeros(stages, dtype=int)  # from this cell on, in each stage
        last, seen = edge.last, LAST_SEEN
        for stage in range(stages - 1):
            while True:
                top = min(last + math.ceil(REACH * (last + 1) / seen), SIZE - 1) + 1
                fresh = np.zeros(SIZE, dtype=np.int64)
                for past in range(stage + 1):
                    fresh[covered[past] : top] += other[past, k, covered[past] : top]
                    covered[past] = max(covered[past], top)
                found = np.flatnonzero(fresh)
                if not len(found):
                    break
                last, seen = max(last, int(found[-1])), seen + int(fresh.sum())
        margins[k] = (np.arange(SIZE) - last) * seen / (last + 1)
        is_covered = np.arange(SIZE) >= covered[:, None]
        right[k], wrong[k] = (np.where(is_covered, part[:, k], 0).sum(axis=0) for part in (own, other))
    order = np.argsort(-margins.ravel(), kind="stable")
    is_wrong = wrong.ravel()[order] > 0
    guessed = order[: int(np.argmax(is_wrong)) if is_wrong.any() else len(order)]
    ends = [int(np.min(guessed[guessed // SIZE == k] % SIZE, initial=SIZE)) - 1 for k in range(len(edges))]
    return Run(int(right.ravel()[guessed].sum()), tuple(ends))


def run_p_value(correct: int, draws: int, epsilon: FloatArray, cost: FloatArray) -> FloatArray:
    """p-values of so many correct guesses before the first wrong one, among `draws` labelled draws, against lines.

    Parameters
    ----------
    correct, draws : int
    epsilon, cost : ndarray of float, shape (lines,)
        `cost` is what a line's delta pays for, a labelled draw.

    Returns
    -------
    ndarray of float, shape (lines,)
        In (0, 1].

    Examples
    --------
    >>> [float(p) for p in run_p_value(10, 100, np.array([0.0, 0.0]), np.array([0.0, 0.1])).round(6)]
    [0.000977, 1.0]
    """
    epsilon, cost = np.asarray(epsilon, dtype=float), np.asarray(cost, dtype=float)
    net = correct - draws * cost
    slope = cost * (draws - correct)
    best = np.divide(net, slope, out=np.full(net.shape, math.inf), where=slope > 0.0)
    z = np.where(net > 0.0, np.minimum(np.exp(-epsilon), best), 0.0)
    return np.asarray(np.minimum(1.0, np.exp(draws * np.log1p(cost * z) - correct * np.log1p(z))))


class RefinedGame(FixedGame):
    """A `FixedGame` that refines the edges of its rule during the test where the pilot shows that one label ends.

    For claims with one line a parameter value. Stages are counted one after the other: `stage_size` says how many
    labelled draws the next one has, and `add` takes the counts of a whole one.
    """

    fewest_sure = min(FixedGame.fewest_sure, FEWEST_RIGHT)

    def __init__(self, claim: Claim, draws: int) -> None:
        super().__init__(claim, draws)
        self._edges: Edges | None = None
        self._run_level = math.nan
        self._stages: list[NDArray[np.int64]] = []  # of each one own and other, shape (2, edges, cells)
        self._found: tuple[float, Run | None] | None = None  # at the end: p-value, and the run if it gave the bound

    def _forget(self) -> None:
        super()._forget()
        self._edges = None

    def _refine(self, scores: Sequence[AnyFittedScore], rule: FittedRule, level: float) -> None:
        """See whether edges promise a higher bound than the rule; then the pilot has shown enough.

        Only edges of single coordinates: what a fit has seen it keeps apart, and cells of a histogram have no edge. (A
        pilot that is counted in cells is long: a shorter look at it, draw by draw, came before.) A game that is sure
        anyway has no more to gain at its edges.
        """
        if self.is_sure:
            return
        highest = self._expected_bound(rule, self._anchor, self._objective(self._anchor, MOST_CAUTIOUS, level))
        drawn_ones = [score for score in scores if isinstance(score, FittedScore)]
        coordinates = [score for score in drawn_ones if isinstance(score.score, Coordinate)]
        least_ending = LEAST_ENDING + math.log(max(len(coordinates), 1))
        for score in coordinates:
            for edges in find_edges(score):
                if edges.ending >= least_ending and edges.jump >= LEAST_JUMP and edges.right >= FEWEST_RIGHT:
                    least = edges.right - DEVIATIONS * math.sqrt(edges.right)
                    correct = min(int(least * self.draws / score.draws), self.draws)
                    bound = self._bound(correct, self.draws, len(edges.sides), level)
                    if bound > highest:
                        highest, self._edges, self.is_sure = bound, edges, True

    def start(self, level: float) -> None:
        """Fix the levels: where edges are refined, most of it is for the run."""
        # Validity: the shares are a function of the pilot, and sum to the level.
        super().start(FALLBACK * level if self._edges else level)
        self._run_level = (1.0 - FALLBACK) * level

    def stage_size(self, before: int, planned: int) -> int:
        """Labelled draws of the next stage, where `before` were drawn, with the pilot, of `planned` ones."""
        is_last = not self._edges or before >= LAST_FROM * planned
        return planned if is_last else max(int((GROWTH - 1.0) * before), 1)

    @property
    def statistic(self) -> Rule | StageCounts:
        """What is counted on each side's draws."""
        return StageCounts(self.rule, self._edges) if self._edges else self.rule

    def add(self, counts_x: NDArray[np.int64], counts_x_prime: NDArray[np.int64]) -> None:
        """Add the counts of one stage."""
        super().add(counts_x[:3], counts_x_prime[:3])
        if self._edges is not None:
            sides = self._edges.sides
            cells = [part[3:].reshape(len(sides), SIZE) for part in (counts_x_prime, counts_x)]  # by label
            by_edge = [[cells[side.guess][k], cells[1 - side.guess][k]] for k, side in enumerate(sides)]
            self._stages.append(np.stack(by_edge, axis=1))

    def update(self) -> None:
        """Look at the record, once, at the end: the lower bound is the larger one of the two tests'."""
        if self._found is not None:
            return
        super().update()
        if self._edges is None:
            return
        stages = np.stack(self._stages)
        run = longest_run(self._edges.sides, stages[:, 0], stages[:, 1])
        draws, sides = sum(self.counts), len(self._edges.sides)
        lower = self._bound(run.correct, draws, sides, self._run_level)
        line = self._line_at_budget(0.0)
        cost = np.array([line["delta"] * sides / 2.0])
        by_run = float(run_p_value(run.correct, draws, np.array([line["epsilon"]]), cost)[0])
        by_rule = super().p_value
        assert by_rule is not None
        p_value = min(by_rule / FALLBACK, by_run / (1.0 - FALLBACK), 1.0)
        self._found = p_value, run if lower > self._lower else None
        if lower > self._lower:
            self._lower, self._rule = lower, self._edges.rule(run.ends)

    def _bound(self, correct: int, draws: int, sides: int, level: float) -> float:
        """The lower bound on the parameter from so many correct guesses in a row."""

        def rejected(values: FloatArray) -> NDArray[np.bool_]:
            line = self._line(values, 0.0)
            return np.asarray(run_p_value(correct, draws, line.epsilon, line.delta * sides / 2.0) <= level)

        return largest_rejected(rejected, 0.0, self.claim.value)

    @property
    def p_value(self) -> float | None:
        """Of the exact tests against the budget: of two, each is divided by its share of the level."""
        if self._found is None:
            return super().p_value if self._edges is None else None  # of draws that are not all there
        return self._found[0]

    @property
    def counts(self) -> tuple[int, int, int]:
        """As of `FixedGame`; where the run gives the bound, its guesses, and the draws that none of them was on."""
        if self._found is None or self._found[1] is None:
            return super().counts
        correct = self._found[1].correct
        return correct, 0, sum(super().counts) - correct

    def rule_record(self) -> dict[str, Any]:
        """As of `FixedGame`; `run` is there where the counts are those of a run, whose end the draws decided."""
        record = super().rule_record()
        return record if self._found is None or self._found[1] is None else {**record, "run": True}

    def describe(self, x: str, x_prime: str) -> str:
        """The witness in words."""
        words = super().describe(x, x_prime)
        return words if self._found is None or self._found[1] is None else f"{words} {HOW_IT_ENDED}"
