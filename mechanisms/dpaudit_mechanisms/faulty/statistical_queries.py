"""Statistical-query mechanisms with a planted fault: one breaks its privacy, one its accuracy."""

from typing import Any, ClassVar

from dpaudit_mechanisms.faulty.broken import Broken, Twin
from dpaudit_mechanisms.statistical_queries import StatisticalLaplace


class StatisticalHalfTheNoise(Broken, StatisticalLaplace):
    """Laplace noise of half the scales; parameters as in `StatisticalLaplace`.

    Examples
    --------
    >>> twin = StatisticalHalfTheNoise([[0.0], [1.0]], c=[1.0], metric=[[0.0, 0.5], [0.5, 0.0]], records=2)
    >>> twin.fault
    'the noise has half its scale: loss 1 nats on the pair (0, 0)|(1, 0), promised 0.5'
    """

    what = "the noise has half its scale"
    changes: ClassVar[Any] = {"noise_scales": lambda self, scales: scales / 2.0}


class StatisticalTooMuchNoise(Twin, StatisticalLaplace):
    """Laplace noise of 1.2 times the scales: private, and not as accurate as DX-T11 says; parameters as above."""

    fault = "the noise has 1.2 times its scale: the bound on the largest error fails where there is no bias"
    changes: ClassVar[Any] = {"noise_scales": lambda self, scales: 1.2 * scales}
