"""Error bounds in the forms that mechanisms state, and a mechanism with a part of its budget.

`truth(data)` is what outputs estimate on one input: an array of the shape of one output. A bound is a
`dpaudit.UtilityBound`; mechanisms return theirs from `utility_bounds()`.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, output_batch
from dpaudit_mechanisms.protocol import UsageError, UtilityBound

Truth = Callable[[Any], FloatArray]
SHARE = 0.05  # of draws that may miss the error of a tail bound, where the mechanism has no share of its own


def deviations(truth: Truth, data: Any, outputs: Any) -> FloatArray:
    """|output - truth|, shape (size, coordinates)."""
    centre = np.asarray(truth(data), dtype=float)
    return np.abs(output_batch(outputs, centre.shape) - centre).reshape(-1, centre.size)


def log_noise(deviations: FloatArray, scales: ArrayLike, order: int = 1) -> FloatArray:
    """Natural log of the density of independent noise at deviations (size, ...), summed over coordinates: (size,).

    Laplace noise of these scales (order 1), or normal noise of these standard deviations (order 2). A coordinate of
    scale 0 adds 0 where it does not deviate, and -inf elsewhere: its density is with respect to the counting measure.
    """
    sizes, gaps = np.asarray(scales, dtype=float), np.abs(deviations)
    safe = np.where(sizes > 0.0, sizes, 1.0)
    if order == 1:
        noisy = -gaps / safe - np.log(2.0 * safe)
    else:
        noisy = -0.5 * (gaps / safe) ** 2 - (np.log(safe) + 0.5 * math.log(2.0 * math.pi))
    each = np.where(sizes > 0.0, noisy, np.where(gaps == 0.0, 0.0, -np.inf))
    return np.asarray(np.where(np.isnan(each), -np.inf, each).sum(axis=tuple(range(1, gaps.ndim))))


def _of_deviations(
    name: str, truth: Truth, loss: Callable[[FloatArray], FloatArray], bound: Any, **options: Any
) -> Any:
    return UtilityBound(name, lambda data, outputs: loss(deviations(truth, data, outputs)), bound, **options)


def largest_error(truth: Truth, limit: float, failures: float = SHARE, source: str = "") -> UtilityBound:
    """P(largest coordinate of |output - truth| > limit) <= failures.

    Examples
    --------
    >>> str(largest_error(lambda data: data, 3.0))
    'largest error: P(loss > 3) <= 0.05'
    """
    options = {"failure_probability": failures, "source": source}
    return _of_deviations("largest error", truth, lambda found: found.max(axis=1), limit, **options)


def sum_of_errors(
    truth: Truth, bound: float | Callable[[Any], float], source: str = "", deviation: float | None = None
) -> UtilityBound:
    """E |output - truth|_1 <= bound; `deviation` is that of the sum, where it is known."""
    options = {"standard_deviation": deviation, "source": source}
    return _of_deviations("sum of errors", truth, lambda found: found.sum(axis=1), bound, **options)


def squared_error(truth: Truth, bound: float, source: str = "", deviation: float | None = None) -> UtilityBound:
    """E |output - truth|_2^2 <= bound."""
    options = {"standard_deviation": deviation, "source": source}
    return _of_deviations("squared error", truth, lambda found: (found**2).sum(axis=1), bound, **options)


def with_budget(mechanism: Any, factor: float) -> Any:
    """The mechanism with `factor` times its budget: its own `with_budget`, or by its epsilon, metric, mu or claim.

    Examples
    --------
    >>> from dpaudit_mechanisms.laplace import Laplace
    >>> with_budget(Laplace(1.0), 0.5).scale
    2.0
    """
    if callable(getattr(mechanism, "with_budget", None)):
        return mechanism.with_budget(factor)
    fields = getattr(mechanism, "__dataclass_fields__", {})
    for name in ("epsilon", "metric", "mu"):
        if name in fields:
            return dataclasses.replace(mechanism, **{name: getattr(mechanism, name) * factor})
    if "claim" in fields:
        return dataclasses.replace(mechanism, claim=mechanism.claim.with_value(mechanism.claim.value * factor))
    raise UsageError(f"mechanism must have a budget to change, got {type(mechanism).__name__}.")
