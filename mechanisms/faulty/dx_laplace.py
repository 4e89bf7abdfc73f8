"""A d_X-private Laplace mechanism with a planted fault."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from mechanisms.dx_laplace import DxLaplace
from mechanisms.inputs import FloatArray


@dataclasses.dataclass(frozen=True, eq=False)
class DxLaplaceTooLittleNoise(DxLaplace):
    """Laplace noise whose scales are 1.2 times too small; parameters as in `DxLaplace`.

    Only pairs whose sound loss is above 1/1.2 of their budget break the claim: under "single" and "S2" there always is
    one (unless c = 0), under "S1" there may be none.

    Examples
    --------
    >>> mechanism = DxLaplaceTooLittleNoise([0.0, 1.0], [[0.0, 0.5], [0.5, 0.0]], rule="single")
    >>> mechanism.fault
    'the scales are 1.2 times too small: loss 0.6 nats on the pair 0|1, promised 0.5'
    """

    factor: ClassVar[float] = 1.2

    @property
    def c(self) -> FloatArray:
        return super().c / self.factor

    @property
    def fault(self) -> str:
        """What is wrong, and the true exact loss of the tightest pair."""
        head = f"the scales are {self.factor:g} times too small"
        tight = self.pairs()
        if not tight:
            return head
        exact, promised = self.privacy_loss(tight[0].x, tight[0].x_prime), self.metric[tight[0].x, tight[0].x_prime]
        return head + f": loss {exact:.6g} nats on the pair {tight[0].id}, promised {promised:g}"
