"""Density: a mechanism's own log density ratio as a column of its outputs, and other hints."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.features.outcomes import Outcomes
from dpaudit.privacy.claims import FloatArray

LogDensity = Callable[[Any, Any], NDArray[np.float64] | None]


@dataclasses.dataclass(frozen=True)
class DensitySizes:
    """Range and precision of a density ratio."""

    largest: float = 700.0  # nats: what is larger is said to be this, and e to it is a double
    decimals: int = 9  # that are kept: vectorised logarithms may differ from single ones in the last bits


SIZES = DensitySizes()


@dataclasses.dataclass(frozen=True)
class LogRatio:
    """The mechanism's own log density on x minus that on x_prime, rounded.

    The rounding keeps the last bits out: where the exact ratio is constant, the computed one varies by rounding, and
    that depends on which doubles an input can give: a question of its own.
    """

    log_density: LogDensity
    x: Any
    x_prime: Any
    shape: tuple[int, ...] = ()
    is_integer: bool = False

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        """The ratio of each output in nats, shape (draws,); NaN where there is none."""
        outputs: NDArray[Any] = outcomes.numbers
        known: NDArray[np.bool_] | None = None
        if self.is_integer:  # a number that is none says nothing
            known = np.isfinite(outputs).all(axis=1)
            outputs = np.where(known[:, None], outputs, 0.0).astype(np.int64)
        outputs = outputs.reshape(len(outputs), *self.shape)
        first, second = self._one_side(self.x, outputs), self._one_side(self.x_prime, outputs)
        with np.errstate(invalid="ignore"):  # impossible on both sides: says nothing
            ratio = np.clip(first - second, -SIZES.largest, SIZES.largest).round(SIZES.decimals)
        return np.asarray(ratio if known is None else np.where(known, ratio, math.nan))

    def _one_side(self, data: Any, outputs: NDArray[Any]) -> FloatArray:
        """The log density of each output, as it is for the output alone; NaN where the call fails.

        Validity: a value that depended on the rest of the batch would tell a mechanism from itself. The batch is only a
        shortcut: where the call fails on it, or a few outputs spread over it have another value alone, all are asked
        one by one.
        """

        def alone(k: int) -> float:
            value = self.log_density(data, outputs[k : k + 1].copy())
            return math.nan if value is None else float(value[0])

        values = self.log_density(data, outputs.copy())  # it may write where it reads
        if values is not None and len(outputs) > 1:
            tried = [0, len(outputs) // 3, 2 * len(outputs) // 3, -1]
            singles = [alone(range(len(outputs))[k]) for k in tried]
            near = 10.0**-SIZES.decimals
            if not np.allclose(values[tried], singles, rtol=near, atol=near, equal_nan=True):
                values = None
        return values if values is not None else np.array([alone(k) for k in range(len(outputs))])

    def fitting(self, first: Outcomes, second: Outcomes) -> LogRatio:
        """The same ratio for outputs of the shape and kind of these."""
        is_integer = first.is_integer and second.is_integer
        if (self.shape, self.is_integer) == (first.shape, is_integer):
            return self
        return dataclasses.replace(self, shape=first.shape, is_integer=is_integer)


@dataclasses.dataclass(frozen=True)
class Hints:
    """Knowledge of a pair before the first draw: the mechanism's own log density ratio, and its inputs.

    Outputs may be near to the inputs. Validity never rests on hints.
    """

    log_ratio: LogRatio | None = None
    inputs: tuple[Any, Any] | None = None

    def fitting(self, first: Outcomes, second: Outcomes) -> Hints:
        """The same, for outputs of the shape and kind of these."""
        if self.log_ratio is None:
            return self
        return dataclasses.replace(self, log_ratio=self.log_ratio.fitting(first, second))


NO_HINTS = Hints()
