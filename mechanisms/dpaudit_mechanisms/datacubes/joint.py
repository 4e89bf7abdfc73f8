"""Budgets that are optimal for the least squares recovery that follows them, for strategies of marginals.

The two steps of the framework choose budgets for an initial recovery and then a better recovery for these budgets; what
is released has the variance of the second one. With u_B one over the variance of marginal B's noise it is
F(u) = sum over coefficients b of K_b / (sum over B that contain b of s_B^2 u_B), where K_b is the sum of a_A s_A^2 over
the workload's marginals A that contain b (`dpaudit_mechanisms.datacubes.coefficients`).

Normal noise: the sum of all u is given, and F is convex: an A-optimal design, solved by the multiplicative algorithm.
With g_B = -dF/du_B, F(u)^2 / max g (at sum 1) is a lower bound of the minimum, from F(t v) >= 2 F(u) - t max g for
every v of sum 1 and t > 0. Laplace noise: the sum of sqrt(u) is given, and F is not convex in the budgets; budgets and
recovery are optimised in turns, so that F never grows, from several starts: all marginals, and each one that answers
the whole workload alone, as few marginals with all of the budget often are best; of at most 16, each is also tried
left out. What comes out is a stationary point, the best that was found, and no bound is stated.
"""

import math

import numpy as np
from scipy import sparse

from dpaudit.errors import UsageError
from dpaudit_mechanisms.datacubes.budgets import BoundedBudgets, check_order
from dpaudit_mechanisms.datacubes.coefficients import scale
from dpaudit_mechanisms.datacubes.domains import bit_set
from dpaudit_mechanisms.datacubes.marginal_strategies import MarginalStrategy
from dpaudit_mechanisms.datacubes.workloads import Workload
from dpaudit_mechanisms.inputs import FloatArray, positive

GAP = 1e-6  # relative, at which the convex problem is solved
STILL = 1e-10  # relative: gain of a turn at which the other one ends
NEGLIGIBLE = 1e-4  # share of the budget below which a marginal is tried without
TINY = 1e-9  # share of the budget below which a marginal adds nothing that shows in the variance
MAX_TURNS = 3000
MAX_SEARCHED = 16  # groups up to which each is tried left out


def joint_budgets(strategy: MarginalStrategy, workload: Workload, order: int, total: float = 1.0) -> BoundedBudgets:
    """Budgets of marginals, shape (groups,), that are optimised together with the recovery; some may be 0.

    The value is the variance after least squares; no bound is proved for Laplace noise.

    Parameters
    ----------
    strategy : MarginalStrategy
    workload : Workload
    order : {1, 2}
        1 for Laplace noise, 2 for normal noise.
    total : float, optional
        epsilon or mu.

    Examples
    --------
    >>> from dpaudit_mechanisms.datacubes import Domain, workload_itself
    >>> figure_1 = Workload(Domain.binary(3), [(0,), (0, 1)])
    >>> found = joint_budgets(workload_itself(figure_1), figure_1, order=1)
    >>> found.budgets.tolist(), round(found.value, 6)  # the first marginal is best read from the second
    ([0.0, 1.0], 16.0)
    """
    if not isinstance(strategy, MarginalStrategy):
        raise UsageError(f"strategy must be of marginals, got {type(strategy).__name__}.")
    check_order(order)
    total = positive("total", total)
    strategy.assigned(workload)  # refuses a workload that the strategy does not contain
    problem = _Problem(strategy, workload, order)
    starts = [np.ones(strategy.groups)]  # all positive: a budget of 0 stays 0
    if order == 1:
        starts.append(strategy.optimal(workload, order))
        starts.extend(np.eye(strategy.groups)[_containing(strategy, workload)])
    best = min((problem.descend(start) for start in starts), key=problem.value)
    if order == 1 and strategy.groups <= MAX_SEARCHED:
        best = problem.without_groups(best)
    value = problem.value(best)
    bound = value**2 / float(problem.slopes(best).max()) if order == 2 else 0.0
    return BoundedBudgets(best * total, value / total**2, bound / total**2)


def _containing(strategy: MarginalStrategy, workload: Workload) -> list[int]:
    """Groups that answer the whole workload alone."""
    wanted = bit_set({a for marginal in workload.sets for a in marginal})
    return [i for i, marginal in enumerate(strategy.marginals) if not wanted & ~bit_set(marginal)]


class _Problem:
    """F and its slopes, with budgets e of norm 1: u = e^2 / 2 for Laplace noise, u = e^2 for normal noise."""

    def __init__(self, strategy: MarginalStrategy, workload: Workload, order: int) -> None:
        self.order, self.factor = order, 0.5 if order == 1 else 1.0
        supports, counts = np.unique(workload.coefficients.supports, return_counts=True)
        self.rewards = np.zeros(len(supports))  # K_b, of all coefficients of one support
        for marginal, weight in zip(workload.sets, np.asarray(workload.weights), strict=True):
            inside = (supports & ~bit_set(marginal)) == 0
            self.rewards[inside] += weight * scale(workload.domain, marginal) ** 2
        self.rewards *= counts
        rows = [
            np.where((supports & ~bit_set(marginal)) == 0, scale(workload.domain, marginal) ** 2, 0.0)
            for marginal in strategy.marginals
        ]
        self.squares = sparse.csr_matrix(np.array(rows))  # s_B^2 where B contains the support

    def value(self, budgets: FloatArray) -> float:
        precisions = self.squares.T @ (self.factor * budgets**2)
        return float((self.rewards / precisions).sum()) if precisions.all() else math.inf

    def slopes(self, budgets: FloatArray) -> FloatArray:
        """g = -dF/du, shape (groups,)."""
        precisions = self.squares.T @ (self.factor * budgets**2)
        return np.asarray(self.squares @ (self.rewards / precisions**2))

    def turn(self, budgets: FloatArray) -> FloatArray:
        """The optimal budgets for the recovery that is optimal for these budgets."""
        costs = budgets**4 * self.slopes(budgets)  # of the least squares recovery, up to a factor
        shape = np.cbrt(costs) if self.order == 1 else costs**0.25
        return np.asarray(shape / (shape.sum() if self.order == 1 else math.sqrt((shape**2).sum())))

    def descend(self, start: FloatArray) -> FloatArray:
        budgets = self.turn(start)
        value = self.value(budgets)
        for count in range(MAX_TURNS):
            after = self.turn(budgets)
            lower = self.value(after)
            if self.order == 2 and lower - lower**2 / float(self.slopes(after).max()) <= GAP * lower:
                return after
            if self.order == 1 and (count % 20 == 19 or value - lower <= STILL * value):
                without = self._without_the_least(after)
                if self.value(without) < lower:
                    after, lower = without, self.value(without)
                elif value - lower <= STILL * value and (after[after > 0.0] < TINY).any():
                    return self._without_the_tiny(after)
                elif value - lower <= STILL * value:
                    return after
            budgets, value = after, lower
        return budgets

    def _without_the_tiny(self, budgets: FloatArray) -> FloatArray:
        """Budgets that no longer count are none: noise of scale 1e100 would be drawn for them."""
        kept = np.where(budgets >= TINY, budgets, 0.0)
        return kept / kept.sum() if math.isfinite(self.value(kept)) else budgets

    def without_groups(self, budgets: FloatArray) -> FloatArray:
        """Leaves out one measured group after the other, the best one each time, as long as that lowers F."""
        while True:
            tried = [budgets]
            for i in np.flatnonzero(budgets):
                start = np.where((np.arange(len(budgets)) == i) | (budgets < TINY), 0.0, budgets)
                if math.isfinite(self.value(start)):
                    tried.append(self.descend(start))
            best = min(tried, key=self.value)
            if self.value(best) >= self.value(budgets) * (1.0 - STILL):
                return budgets
            budgets = best

    def _without_the_least(self, budgets: FloatArray) -> FloatArray:
        """Turns only approach a budget of 0, as their steps shrink with it: it is tried as it is."""
        kept = np.where(budgets >= max(NEGLIGIBLE, float(budgets[budgets > 0.0].min()) * 1.001), budgets, 0.0)
        return kept / kept.sum() if kept.any() else budgets
