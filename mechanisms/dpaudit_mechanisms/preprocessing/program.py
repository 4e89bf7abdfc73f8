"""The convex programs of the preprocessing: one block of variables at a time, and relaxations of them all.

Lengths are in units of `Problem.unit`; the bias is (B - Q) n / unit, so that all variables are of one size.
"""

import math
from typing import Any

import numpy as np

from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, IntArray
from dpaudit_mechanisms.preprocessing.conic import Rows, solve
from dpaudit_mechanisms.preprocessing.problem import Point, Problem, mean_largest_noise

CUTS = 30  # cutting planes of E max |Y_k|, at most
CUT_GAP = 1e-5  # relative: where they are good enough


class Program:
    """Variables and objective common to all blocks: bias (B - Q) n / unit, scales c / unit, and what bounds them."""

    def __init__(self, problem: Problem, fixed_c: FloatArray | None = None) -> None:
        self.problem, self.fixed_c = problem, fixed_c
        self.unit = problem.unit
        queries, elements = problem.queries.shape
        self.size = queries * elements
        self.bias = np.arange(self.size).reshape(queries, elements)
        self.equal, self.at_most = Rows(), Rows()
        self.quadratic: list[FloatArray] = [np.full(self.size, 2.0 if problem.loss == "squared" else 0.0)]
        self.linear: list[FloatArray] = [np.zeros(self.size)]
        if fixed_c is None:
            self.c = self.more(queries, 4.0 if problem.loss == "squared" else 0.0, float(problem.loss == "l1"))
            self.at_most.add([(self.c, -1.0)], 0.0)
        if problem.loss == "l1":
            size = self.more(self.size, 0.0, 1.0)
            self._bound_bias(size)
        elif problem.loss != "squared":
            largest = self.more(1, 0.0, 1.0)
            self._bound_bias(np.broadcast_to(largest, self.size))
            if fixed_c is None:
                weight = math.log(queries / problem.delta) if problem.loss == "tail" else 1.0
                self.noise = self.more(1, 0.0, weight)
                # E max |Y_k| >= max E |Y_k|; cuts add the rest
                self.at_most.add([(self.c, 1.0), (np.broadcast_to(self.noise, queries), -1.0)], 0.0)
                for gradient in problem.cuts if problem.loss == "linf" else ():
                    self._cut(gradient)

    def more(self, count: int, quadratic: float, linear: float) -> IntArray:
        """New variables."""
        start = sum(map(len, self.linear))
        self.quadratic.append(np.full(count, quadratic))
        self.linear.append(np.full(count, linear))
        return start + np.arange(count)

    def _cut(self, gradient: FloatArray) -> None:
        """E max |Y_k| is convex and homogeneous: it is at least gradient * c everywhere."""
        terms = [(self.c[k : k + 1], gradient[k]) for k in range(len(gradient))]
        self.at_most.add([*terms, (self.noise, -1.0)], 0.0)

    def _bound_bias(self, size: Any) -> None:
        flat = self.bias.ravel()
        self.at_most.add([(flat, 1.0), (size, -1.0)], 0.0)
        self.at_most.add([(flat, -1.0), (size, -1.0)], 0.0)

    def bound_gaps(self, k: int, scale: FloatArray, *bounds: tuple[list[tuple[Any, ArrayLike]], ArrayLike]) -> None:
        """|B[k, i] - B[k, j]| / (unit scale) + terms <= bound: for each pair, and all terms with their bounds."""
        for sign in (1.0, -1.0):
            gap, constant = self.gap_terms(k, sign, scale)
            for terms, bound in bounds:
                self.at_most.add([*gap, *terms], bound - constant)

    def gap_terms(self, k: int, sign: float, scale: FloatArray) -> tuple[list[tuple[Any, ArrayLike]], FloatArray]:
        """sign (B[k, i] - B[k, j]) / (unit scale) as terms in the bias, and the constant that moves to the right."""
        problem = self.problem
        i, j = problem.first, problem.second
        factor = sign / (problem.records * scale)
        constant = sign * (problem.queries[k, i] - problem.queries[k, j]) / (self.unit * scale)
        return [(self.bias[k, i], factor), (self.bias[k, j], -factor)], constant

    def answered(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.problem.queries + x[self.bias] * self.unit / self.problem.records)

    def solve(self) -> tuple[Point, float]:
        """The minimiser and a lower bound of the minimum, in units of the loss.

        Raises
        ------
        DpauditError
            If the solver ends without a solution.
        """
        weight, lower = self.unit ** (2 if self.problem.loss == "squared" else 1), -math.inf
        for _ in range(CUTS):
            found = solve(np.concatenate(self.quadratic), np.concatenate(self.linear), self.equal, self.at_most)
            lower = max(lower, found.lower_bound * weight)
            c = self.fixed_c if self.fixed_c is not None else np.maximum(found.x[self.c], 0.0) * self.unit
            if self.problem.loss != "linf" or self.fixed_c is not None:
                break
            mean, gradient = mean_largest_noise(c)
            if mean - found.x[self.noise][0] * self.unit <= CUT_GAP * abs(found.value) * weight:
                break
            self.problem.cuts.append(gradient)
            self._cut(gradient)
        return (self.answered(found.x), np.asarray(c, dtype=float)), lower


def joint(problem: Problem, point: Point) -> tuple[Point, float]:
    """(B, c) at fixed shares: |B[k, i] - B[k, j]| <= c[k] share[k, i, j]; minimiser and a lower bound.

    The shares are what the point uses of each budget, with what it leaves divided equally; so the point is feasible.
    For one query the share is all of d, and this is the whole problem.
    """
    answered, c = point
    gaps = problem.gaps(answered)
    used = np.where(c[:, None] > 0.0, gaps / np.where(c > 0.0, c, 1.0)[:, None], 0.0)
    share = used + np.maximum(problem.limits - used.sum(axis=0), 0.0) / len(c)
    program = Program(problem)
    for k in range(len(c)):
        closed = share[k] <= 1e-12 * problem.limits
        # |b| <= c share, divided by the share where there is one
        terms = [(np.full(len(closed), program.c[k]), -(~closed).astype(float))]
        program.bound_gaps(k, np.where(closed, 1.0, share[k]), (terms, 0.0))
    return program.solve()


def answers_alone(problem: Problem, point: Point) -> tuple[Point, float] | None:
    """B at fixed scales: t[k, i, j] >= |B[k, i] - B[k, j]| / c[k], whose sum over k is at most d."""
    c = point[1]
    if (c <= 0.0).any():
        return None
    program = Program(problem, fixed_c=c)
    pairs = len(problem.limits)
    t = program.more(len(c) * pairs, 0.0, 0.0).reshape(len(c), pairs)
    for k in range(len(c)):
        program.bound_gaps(k, np.full(pairs, c[k] / program.unit), ([(t[k], -1.0)], 0.0))
    program.at_most.add([(row, 1.0) for row in t], problem.limits)
    return program.solve()


def one_scale(problem: Problem) -> tuple[Point, float]:
    """(B, c) with one scale for all queries: the l1 distance of columns is at most c d. For "tail" the whole problem.

    Only the largest scale costs there, and scales that are raised to it stay feasible.
    """
    program = Program(problem)
    queries, pairs = len(problem.queries), len(problem.limits)
    positive = problem.limits > 0.0
    t = program.more(queries * pairs, 0.0, 0.0).reshape(queries, pairs)
    for k in range(queries):
        program.bound_gaps(k, np.where(positive, problem.limits, 1.0), ([(t[k], -1.0)], 0.0))
        if k:
            program.equal.add([(program.c[k : k + 1], 1.0), (program.c[:1], -1.0)], 0.0)
    program.at_most.add([*[(row, 1.0) for row in t], (np.full(pairs, program.c[0]), -positive.astype(float))], 0.0)
    return program.solve()
