"""Laplace mechanisms with a planted fault."""

import math
from typing import Any, ClassVar

import numpy as np

from dpaudit.errors import UsageError
from dpaudit_mechanisms.faulty.broken import Broken
from dpaudit_mechanisms.laplace import Laplace


class LaplaceTooLittleNoise(Broken, Laplace):
    """Laplace noise whose scale is 1.2 times too small; parameters as in `Laplace`.

    Examples
    --------
    >>> round(LaplaceTooLittleNoise(epsilon=1.0).privacy_loss(0.0, 1.0), 6)
    1.2
    """

    what = "the scale is 1.2 times too small"
    changes: ClassVar[Any] = {"scale": lambda self, scale: scale / 1.2}


class LaplaceForgetsACoordinate(Broken, Laplace):
    """Laplace noise for vectors, calibrated to the l1 sensitivity of all coordinates but the last.

    Parameters as in `Laplace`, with at least two coordinates (`UsageError` otherwise).

    Examples
    --------
    >>> mechanism = LaplaceForgetsACoordinate(epsilon=1.0, coordinate_sensitivity=(1.0, 1.0))
    >>> mechanism.privacy_loss([0.0, 0.0], [1.0, 1.0])
    2.0
    """

    what = "the last coordinate's sensitivity is ignored"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dimension is None or self.dimension < 2:
            raise UsageError(
                f"coordinate_sensitivity must have at least two coordinates, got {self.coordinate_sensitivity!r}."
            )

    @property
    def scale(self) -> float:
        return math.fsum(np.atleast_1d(self.coordinate_sensitivity)[:-1].tolist()) / self.epsilon
