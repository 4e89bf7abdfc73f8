"""The budgets of many pairs at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import TOLERANCE, Claim, FloatArray, MetricDP
from dpaudit.privacy.inputs import Inputs
from dpaudit.privacy.metrics import Metric
from dpaudit.privacy.pairs import Pair

CHECKED = 5_000  # pairs at which a metric is asked in both orders


def budgets_of(promise: Claim, pairs: Sequence[Pair], inputs: Inputs) -> FloatArray:
    """What every pair is promised of the claim's parameter, shape (pairs,).

    Of a metric it is read from its matrix where that is cheaper than one by one.

    Whether a metric is symmetric is checked at 5,000 pairs, evenly spaced in the list, and at all of a matrix: to call
    a function twice for each pair may take as long as the audit.

    Raises
    ------
    UsageError
        If the metric is not symmetric where it is checked, or gives no budget.
    """
    if not isinstance(promise, MetricDP):
        return np.full(len(pairs), promise.value)
    checked = np.unique(np.linspace(0, len(pairs) - 1, min(len(pairs), CHECKED)).astype(np.int64))
    for k in checked.tolist():
        promise.for_pair(pairs[k].x, pairs[k].x_prime)  # says what is wrong with it
    is_dense = len(inputs.data) ** 2 <= 8 * len(pairs)
    if isinstance(promise.metric, Metric) and promise.on == "inputs" and is_dense:
        matrix = promise.metric.matrix(inputs.data)
        budgets = matrix[inputs.first, inputs.second]
        for k in np.flatnonzero(~(budgets >= 0.0))[:1].tolist():
            promise.for_pair(pairs[k].x, pairs[k].x_prime)  # says what is wrong with the first one
            raise UsageError(f"metric must give budgets in [0, inf] nats, got {budgets[k]} for {pairs[k].id}.")
        back = matrix[inputs.second, inputs.first]
        is_close = np.isclose(budgets, back, rtol=TOLERANCE, atol=1e-12)
        for k in np.flatnonzero(~is_close)[:1].tolist():
            promise.for_pair(pairs[k].x, pairs[k].x_prime)
            raise UsageError(
                f"metric must have a symmetric matrix, got {budgets[k]} and {back[k]} for {pairs[k].id}."
            )
        return np.asarray(budgets, dtype=float)
    return np.array([promise.distance(pair.x, pair.x_prime) for pair in pairs])
