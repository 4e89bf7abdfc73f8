"""A d_X metric given as a matrix: the inputs are positions, the entries are budgets.

Only what a privacy guarantee rests on is checked (symmetric, zero diagonal, non-negative); the triangle inequality is
not: each pair keeps its own budget without it. Source: DX-D2; conventions on 0 and infinity: DX section 3, (b) and (c).
"""

import dataclasses
from typing import Annotated, Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit_mechanisms.inputs import ArrayLike, Checked, FloatArray, position, table


def budget_matrix(metric: ArrayLike, inputs: int | None = None) -> FloatArray:
    """A read-only copy of a matrix of budgets, shape (inputs, inputs), checked as `IndexMetric` says."""
    budgets = table("metric", metric, (inputs, inputs))
    if budgets.shape[0] != budgets.shape[1]:
        raise UsageError(f"metric must be a square matrix, got shape {budgets.shape}.")
    for is_bad, condition in (
        (budgets < 0.0, "at least 0"),
        (np.diag(np.diag(budgets) != 0.0), "0 on the diagonal"),
        (budgets != budgets.T, "symmetric"),
    ):
        if is_bad.any():
            i, j = np.argwhere(is_bad)[0].tolist()
            raise UsageError(f"metric must be {condition}, got {budgets[i, j]} at ({i}, {j}).")
    budgets.setflags(write=False)
    return budgets


Budgets = Annotated[FloatArray, lambda name, value: budget_matrix(value)]


@dataclasses.dataclass(frozen=True, eq=False)
class IndexMetric(Checked):
    """Budget of two positions, read from a matrix.

    Parameters
    ----------
    budgets : array_like of float, shape (inputs, inputs)
        In nats, in [0, inf]; symmetric, 0 on the diagonal. Copied and made read-only.
    name : str, optional
        How a claim prints the metric.

    Raises
    ------
    UsageError
        If the matrix is not square and symmetric, or has a negative or NaN entry or a diagonal entry other than 0.

    Examples
    --------
    >>> IndexMetric([[0.0, 2.0], [2.0, 0.0]])(0, 1)
    2.0
    """

    budgets: Budgets = dataclasses.field(repr=False)
    name: str = "matrix"

    def __call__(self, x: Any, x_prime: Any) -> float:
        count = len(self.budgets)
        return float(self.budgets[position(x, count), position(x_prime, count)])
