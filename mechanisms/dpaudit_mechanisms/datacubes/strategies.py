"""Strategies: linear queries that get noise, in groups of rows of one budget, and the way back to a workload.

The rows of a group have the same budget. Group r has a constant C_r for each order p: the largest p-norm that its rows
have in one column (for the groups of DC-D3.1, which have one non-zero entry a column, of one size, that size). For all
strategies here some column attains it in all groups at once, so that what is kept private, the largest p-norm of a
column of diag(budgets) S, is the p-norm of (C_r eta_r).

Adjacency: "add_remove" changes one cell by 1; "replace_one" moves 1 from a cell to another one. The second costs at
most twice as much; how much exactly is `sensitivity`. (For marginals: 2 times as much under Laplace noise and sqrt(2)
times under normal noise, where two different cells of each marginal change, and nothing for the total, which does not.)
"""

import abc
from typing import Any, Literal, get_args

import numpy as np

from dpaudit_mechanisms.datacubes.budgets import check_order, norm, optimal_budgets, uniform_budgets
from dpaudit_mechanisms.datacubes.domains import Domain
from dpaudit_mechanisms.datacubes.workloads import Workload, written_out
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, IntArray, table
from dpaudit_mechanisms.protocol import UsageError, check_among

Adjacency = Literal["add_remove", "replace_one"]


class Strategy(abc.ABC):
    """Rows S of shape (m, N), never written out unless asked for, in groups.

    Attributes
    ----------
    domain : Domain
    group_sizes : numpy.ndarray of int, shape (g,)
        Number of rows of each group; the rows of a group follow each other.
    """

    domain: Domain
    group_sizes: IntArray
    is_determined = False  # whether there is one recovery only: the initial answers are consistent, and least squares

    @property
    def rows(self) -> int:
        """Number of rows, m."""
        return int(self.group_sizes.sum())

    @property
    def groups(self) -> int:
        """Number of groups, g."""
        return len(self.group_sizes)

    def spread(self, values: ArrayLike) -> FloatArray:
        """One value a group as one a row, shape (m,)."""
        return np.repeat(np.asarray(values, dtype=float), self.group_sizes)

    def matrix(self) -> FloatArray:
        """S written out, shape (m, N); refused above 2**26 entries."""
        return written_out(self.answers, self.rows, self.domain.cells)

    @abc.abstractmethod
    def answers(self, data: ArrayLike) -> FloatArray:
        """S x, shape (..., m), from data vectors (..., N)."""

    def constants(self, order: int) -> FloatArray:
        """C_r of each group, shape (g,), for order 1 or 2; 1 unless the class says otherwise."""
        return np.ones(self.groups)

    @abc.abstractmethod
    def costs(self, workload: Workload) -> FloatArray:
        """s_r of each group, shape (g,): sum over its rows i of sum_j a_j R[j, i]^2 for the initial recovery R."""

    @abc.abstractmethod
    def initial(self, noisy: FloatArray, workload: Workload) -> FloatArray:
        """The answers R z by the initial recovery, shape (..., q), which the budgets are chosen for."""

    @abc.abstractmethod
    def initial_variances(self, variances: FloatArray, workload: Workload) -> FloatArray:
        """Exact variance of each answer of `initial`, shape (q,), from the variance of the noise of each group."""

    def least_squares(self, noisy: FloatArray, variances: FloatArray, workload: Workload) -> FloatArray:
        """The answers of least variance that are linear and unbiased (DC-EQ7), shape (..., q): consistent.

        Stated by every strategy that has more recoveries than the initial one.
        """
        return self.initial(noisy, workload)

    def least_squares_variances(self, variances: FloatArray, workload: Workload) -> FloatArray:
        """Exact variance of each answer of `least_squares`, shape (q,)."""
        return self.initial_variances(variances, workload)

    @abc.abstractmethod
    def _replaced(self, budgets: FloatArray, order: int) -> float:
        """`sensitivity` where a record is replaced."""

    def sensitivity(self, budgets: ArrayLike, order: int, adjacency: Adjacency = "add_remove") -> float:
        """The largest p-norm of diag(budgets) S (x - x') over neighbours x and x'.

        Exact, or an upper bound where the class says so. It is the loss in nats under Laplace noise (order 1), and
        the mu under normal noise (order 2).
        """
        check_among("adjacency", adjacency, get_args(Adjacency))
        check_order(order)
        # Validity: differences between budgets of both signs would cancel out.
        eta = table("budgets", budgets, (self.groups,), within="in [0, inf)")
        if adjacency == "replace_one":
            return self._replaced(eta, order)
        return norm(self.constants(order) * eta, order)

    def optimal(self, workload: Workload, order: int, adjacency: Adjacency = "add_remove") -> FloatArray:
        """Budgets of least total variance for the initial recovery, shape (g,), up to a factor.

        Of all that are equal within groups; and of all budgets of rows where the costs are equal within groups and the
        columns have fair weights (`grouping.fair_column_weights`), as for marginals, wavelets and signs. In closed form
        for "add_remove". Where records are replaced they are the same: optimal for marginals without the total, whose
        sensitivity is multiplied by a constant, and not always for others.
        """
        return optimal_budgets(self.costs(workload), self.constants(order), order)

    def uniform(self, order: int) -> FloatArray:
        """One budget for all rows, shape (g,), of norm 1."""
        return uniform_budgets(self.constants(order), order)

    def distance(self, difference: Any, budgets: ArrayLike, order: int) -> float:
        """The p-norm of diag(budgets) S d for a difference d of two data vectors: their exact loss, or mu."""
        return norm(self.spread(budgets) * self.answers(difference), order)

    def _check(self, workload: Workload) -> None:
        if workload.domain.sizes != self.domain.sizes:
            raise UsageError(f"workload must be over sizes {self.domain.sizes}, got {workload.domain.sizes}.")
