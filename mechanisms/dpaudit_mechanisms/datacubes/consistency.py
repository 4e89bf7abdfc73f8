"""Fast consistency: the nearest answers to a workload that some data vector has, in the space of coefficients.

The variables are the coefficients that the workload depends on, never the N cells (DC-S10, DC-S15). For p = 2 the
program is diagonal in them, and no system is solved; for p = 1 and infinity it is a linear program. What is printed is
unweighted, and so is this; a marginal that occurs twice counts twice.

The answers lie on a subspace that the truth lies in, and so are at most twice as far from it, in the same norm, as what
they were made from (DC-S11).
"""

from typing import Any

import numpy as np
from scipy import optimize, sparse

from dpaudit.errors import DpauditError, UsageError
from dpaudit_mechanisms.datacubes.coefficients import scale
from dpaudit_mechanisms.datacubes.marginal_strategies import MarginalStrategy, workload_itself
from dpaudit_mechanisms.datacubes.strategies import Strategy
from dpaudit_mechanisms.datacubes.transforms import inverse
from dpaudit_mechanisms.datacubes.workloads import Workload
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, numbers

NORMS = (1, 2, np.inf)


def consistent(workload: Workload, answers: ArrayLike, order: float = 2) -> FloatArray:
    """The consistent answers that are nearest in the l1, l2 or largest-entry norm.

    Where the minimum is not unique (1 and infinity), any is returned: the one that HiGHS ends at, the same on every
    run.

    Parameters
    ----------
    workload : Workload
    answers : array_like of float, shape (q,) or (size, q)
        Finite. Each row is one linear program for orders 1 and infinity.
    order : {1, 2, inf}

    Raises
    ------
    UsageError
        If the order is another one, or the answers do not fit the workload or are not finite.

    Examples
    --------
    >>> from dpaudit_mechanisms.datacubes.domains import Domain
    >>> one_way = Workload(Domain.binary(2), [(0,), (1,)])
    >>> consistent(one_way, [3.0, 1.0, 2.0, 0.0]).round(9).tolist()  # totals 4 and 2 become 3
    [2.5, 0.5, 2.5, 0.5]
    """
    values = numbers("answers", answers)
    if values.ndim not in (1, 2) or values.shape[-1] != workload.queries:
        raise UsageError(f"answers must be of shape (any, {workload.queries}), got shape {values.shape}.")
    if not np.isfinite(values).all():
        raise UsageError("answers must be finite, got an infinite or undefined one.")
    if order not in NORMS:
        raise UsageError(f"order must be 1, 2 or inf, got {order!r}.")
    strategy = workload_itself(workload)
    squares = strategy.least_squares(values, np.ones(strategy.groups), workload)
    if order == 2:
        return squares
    # What is left is of the size of the noise, however large the counts are: so is what the solver may be off.
    matrix, gaps = coefficient_matrix(workload), np.atleast_2d(values - squares)
    each = [matrix @ _nearest(matrix, row, float(order)) for row in gaps]
    return np.asarray(squares + np.array(each).reshape(values.shape))


def consistent_variances(strategy: Strategy, variances: FloatArray, workload: Workload) -> FloatArray:
    """Exact variance of each answer of `consistent` with order 2, shape (q,), a linear recovery.

    Parameters
    ----------
    strategy : Strategy
        The workload itself, in any order, without a marginal twice; or one whose initial answers are consistent
        already: base counts, Fourier, wavelets.
    variances : numpy.ndarray of float, shape (groups,)
        Of the noise of a row of each group.

    Raises
    ------
    UsageError
        If the strategy is another one.

    Examples
    --------
    >>> from dpaudit_mechanisms.datacubes.domains import Domain
    >>> one_way = Workload(Domain.binary(2), [(0,), (1,)])
    >>> consistent_variances(workload_itself(one_way), np.array([2.0, 2.0]), one_way).round(9).tolist()
    [1.5, 1.5, 1.5, 1.5]
    """
    if strategy.is_determined:
        return strategy.initial_variances(variances, workload)
    read = strategy.assigned(workload) if isinstance(strategy, MarginalStrategy) else []
    # Answers are uncorrelated where each marginal is read from itself; copies of one would be read from one group.
    if (
        isinstance(strategy, MarginalStrategy)
        and len(set(read)) == len(workload.sets)
        and all(strategy.marginals[i] == marginal for i, marginal in zip(read, workload.sets, strict=True))
    ):
        coefficients = workload.coefficients
        weights, errors = np.zeros(len(coefficients)), np.zeros(len(coefficients))
        for marginal, variance in zip(workload.sets, np.asarray(variances)[read], strict=True):
            which, _ = coefficients.within(marginal)
            weights[which] += scale(workload.domain, marginal) ** 2
            errors[which] += scale(workload.domain, marginal) ** 2 * variance
        return coefficients.variances(errors / weights**2, workload.sets)
    raise UsageError("strategy must be the workload itself, or give consistent answers, for exact variances.")


def coefficient_matrix(workload: Workload) -> Any:
    """R: answers from coefficients, sparse, shape (q, coefficients); each coefficient is sqrt(N) <f^b, x>."""
    unit = workload.domain.cells**-0.5
    rows, columns, values, start = [], [], [], 0
    for marginal, count in zip(workload.sets, workload.counts, strict=True):
        which, _ = workload.coefficients.within(marginal)
        block = inverse(np.eye(count), workload.domain.shape(marginal)) * (unit * scale(workload.domain, marginal))
        rows.append(np.tile(start + np.arange(count), count))  # block is (coefficients, cells)
        columns.append(np.repeat(which, count))
        values.append(block.reshape(-1))
        start += count
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return sparse.csr_matrix(entries, shape=(start, len(workload.coefficients)))


def _nearest(matrix: Any, target: FloatArray, order: float) -> FloatArray:
    """Coefficients f that minimise |R f - target|; the unit of the program is the largest entry of the target."""
    count, free = matrix.shape
    slack = sparse.identity(count, format="csr") if order == 1 else sparse.csr_matrix(np.ones((count, 1)))
    left = sparse.vstack([sparse.hstack([matrix, -slack]), sparse.hstack([-matrix, -slack])], format="csr")
    unit = max(float(np.abs(target).max()), 1e-300)
    right = np.concatenate([target, -target]) / unit
    objective = np.concatenate([np.zeros(free), np.ones(slack.shape[1])])
    bounds = [(None, None)] * free + [(0.0, None)] * slack.shape[1]
    found = optimize.linprog(objective, A_ub=left, b_ub=right, bounds=bounds, method="highs")
    if found.status != 0:
        raise DpauditError(f"the linear program must have a solution, got: {found.message}")
    return np.asarray(found.x[:free]) * unit
