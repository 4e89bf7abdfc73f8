"""Strategies that are marginals: base counts, the workload itself, clusters, hierarchies.

Generalised least squares is in closed form here. In the coefficients of `dpaudit_mechanisms.datacubes.coefficients`
every (C^B)^T C^B is diagonal, with s_B^2 where the support is in B and 0 elsewhere; so each coefficient is the mean
of its estimates from all marginals that contain its support, weighted by s_B^2 over the variance. No system is
solved, and only the coefficients that the workload needs are looked at.
"""

import math
from collections.abc import Iterable

import numpy as np

from dpaudit.errors import UsageError
from dpaudit_mechanisms.datacubes.budgets import norm
from dpaudit_mechanisms.datacubes.coefficients import scale
from dpaudit_mechanisms.datacubes.domains import Domain, Marginal
from dpaudit_mechanisms.datacubes.strategies import Strategy
from dpaudit_mechanisms.datacubes.transforms import forward
from dpaudit_mechanisms.datacubes.workloads import Workload
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray


class MarginalStrategy(Strategy):
    """The cells of some marginals; each marginal is a group, of constant 1.

    The initial recovery answers each marginal of a workload by sums of the cells of one strategy marginal: the one with
    the fewest cells of those that contain it (the first of them).

    Parameters
    ----------
    domain : Domain
    marginals : iterable of sets of attributes
        At least one; one may occur twice, and is measured twice then.

    Examples
    --------
    >>> figure_1 = Workload(Domain.binary(3), [(0,), (0, 1)])
    >>> strategy = MarginalStrategy(figure_1.domain, [(0, 1)])
    >>> strategy.matrix().astype(int).tolist()[:2]
    [[1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0, 0, 0]]
    >>> strategy.initial(strategy.answers([1, 2, 0, 1, 0, 0, 1, 0]), figure_1).tolist()
    [4.0, 1.0, 3.0, 1.0, 0.0, 1.0]
    """

    def __init__(self, domain: Domain, marginals: Iterable[Iterable[int]]) -> None:
        self.domain = domain
        self.marginals: tuple[Marginal, ...] = tuple(domain.marginal(marginal) for marginal in marginals)
        if not self.marginals:
            raise UsageError("marginals must be at least one, got none.")
        self.is_determined = len(self.marginals) == 1
        self.group_sizes = np.array([math.prod(domain.shape(marginal)) for marginal in self.marginals], dtype=np.int64)

    def answers(self, data: ArrayLike) -> FloatArray:
        values = np.asarray(data, dtype=float)
        return np.concatenate([self.domain.sum_to(values, marginal) for marginal in self.marginals], axis=-1)

    def _replaced(self, budgets: FloatArray, order: int) -> float:
        # Two cells that differ in every attribute with two values or more change two cells of each marginal by 1; a
        # marginal without such an attribute is the total, which does not change.
        varies = [any(size > 1 for size in self.domain.shape(marginal)) for marginal in self.marginals]
        return float(2.0 ** (1.0 / order)) * norm(budgets * np.array(varies), order)

    def assigned(self, workload: Workload) -> list[int]:
        """For each marginal of a workload the strategy marginal that the initial recovery reads it from.

        Raises
        ------
        UsageError
            If one is in no strategy marginal.
        """
        self._check(workload)
        contained = [(int(size), i, set(marginal)) for i, (size, marginal) in
                     enumerate(zip(self.group_sizes, self.marginals, strict=True))]  # fmt: skip
        contained.sort(key=lambda entry: entry[:2])
        found = []
        for marginal in workload.sets:
            wanted = {a for a in marginal if self.domain.sizes[a] > 1}  # one value: the same cells without it
            position = next((i for _, i, have in contained if wanted <= have), None)
            if position is None:
                raise UsageError(f"workload must be of marginals that are in one of the strategy, got {marginal}.")
            found.append(position)
        return found

    def costs(self, workload: Workload) -> FloatArray:
        found = np.zeros(self.groups)
        np.add.at(found, self.assigned(workload), np.asarray(workload.weights))
        return found * self.group_sizes

    def initial(self, noisy: FloatArray, workload: Workload) -> FloatArray:
        parts = self._split(noisy)
        return np.concatenate(
            [
                self.domain.sum_to(parts[i], marginal, self.marginals[i])
                for marginal, i in zip(workload.sets, self.assigned(workload), strict=True)
            ],
            axis=-1,
        )

    def initial_variances(self, variances: FloatArray, workload: Workload) -> FloatArray:
        counts, assigned = np.array(workload.counts), self.assigned(workload)
        each = np.asarray(variances)[assigned] * self.group_sizes[assigned] / counts
        return np.repeat(each, counts)

    def least_squares(self, noisy: FloatArray, variances: FloatArray, workload: Workload) -> FloatArray:
        used = np.flatnonzero(np.isfinite(variances))
        parts = self._split(noisy)
        if len(used) == 1:  # the only recovery there is
            only = int(used[0])
            MarginalStrategy(self.domain, [self.marginals[only]]).assigned(workload)
            sums = [self.domain.sum_to(parts[only], marginal, self.marginals[only]) for marginal in workload.sets]
            return np.concatenate(sums, axis=-1)
        coefficients, precisions = workload.coefficients, self._precisions(variances, workload)
        total = np.zeros((*np.shape(noisy)[:-1], len(coefficients)))
        for i in used:
            marginal = self.marginals[i]
            which, local = coefficients.within(marginal)
            estimates = forward(parts[i], self.domain.shape(marginal))[..., local]
            total[..., which] += estimates * (scale(self.domain, marginal) / variances[i])
        total /= precisions
        return coefficients.to_marginals(total, workload.sets)

    def least_squares_variances(self, variances: FloatArray, workload: Workload) -> FloatArray:
        return workload.coefficients.variances(1.0 / self._precisions(variances, workload), workload.sets)

    def _precisions(self, variances: FloatArray, workload: Workload) -> FloatArray:
        """One over the variance of each coefficient of the workload, shape (coefficients,)."""
        self._check(workload)
        coefficients = workload.coefficients
        found = np.zeros(len(coefficients))
        for marginal, variance in zip(self.marginals, variances, strict=True):
            if np.isfinite(variance):
                found[coefficients.within(marginal)[0]] += scale(self.domain, marginal) ** 2 / variance
        if not found.all():
            raise UsageError("workload must be of marginals that are in one of the strategy that has a budget.")
        return found

    def _split(self, noisy: FloatArray) -> list[FloatArray]:
        return np.split(noisy, np.cumsum(self.group_sizes)[:-1], axis=-1)


def base_counts(domain: Domain) -> MarginalStrategy:
    """S = I: every cell of the domain.

    Examples
    --------
    >>> base_counts(Domain.binary(2)).matrix().astype(int).tolist()
    [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    """
    return MarginalStrategy(domain, [range(domain.attributes)])


def workload_itself(workload: Workload) -> MarginalStrategy:
    """S = Q: a group for each marginal of the workload, in its order; R = I is the initial recovery.

    But for a marginal that occurs twice (attributes of one value aside): each copy is measured, and the initial
    recovery reads both answers from the first one, so that optimal budgets leave the second one out. That is the better
    choice: one budget of weight 2 has a quarter of the variance of two budgets under Laplace noise, and half under
    normal noise, were there nothing else.
    `least_squares` and consistency use whatever is measured.
    """
    return MarginalStrategy(workload.domain, workload.sets)


def hierarchy(domain: Domain, root: bool = True) -> MarginalStrategy:
    """The tree over the cells in lexicographic order whose levels are the values of the first attributes.

    Over a binary domain this is the binary tree over x, and a marginal of its first t attributes on level t. With
    `root`, the total is level 0. Trees of another shape: `dpaudit_mechanisms.datacubes.matrices.MatrixStrategy`.

    Examples
    --------
    >>> hierarchy(Domain.binary(1)).matrix().astype(int).tolist()
    [[1, 1], [1, 0], [0, 1]]
    """
    first = 0 if root else 1
    return MarginalStrategy(domain, [range(t) for t in range(first, domain.attributes + 1)])
