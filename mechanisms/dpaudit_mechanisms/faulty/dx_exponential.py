"""Exponential mechanisms on histograms with a planted fault: two break their privacy, one its accuracy."""

from typing import Any, ClassVar

from dpaudit_mechanisms.dx_exponential import DxExponential
from dpaudit_mechanisms.faulty.broken import Broken, Twin
from dpaudit_mechanisms.small_db import SmallDB


class _WithoutTheTwo(Broken):
    """Divides scores by c in place of 2 c."""

    what = "the factor 2 is missing"
    changes: ClassVar[Any] = {"divisor": lambda self, divisor: divisor / 2.0}


class DxExponentialWithoutTheTwo(_WithoutTheTwo, DxExponential):
    """Weights exp(u'(x, r) / c) in place of exp(u'(x, r) / (2 c)); parameters as in `DxExponential`.

    Examples
    --------
    >>> def one_good_and_three_poor(x):
    ...     return x @ [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0]]
    >>> twin = DxExponentialWithoutTheTwo(one_good_and_three_poor, metric=[[0.0, 1.0], [1.0, 0.0]], records=1)
    >>> twin.fault
    'the factor 2 is missing: loss 1.47061 nats on the pair (1, 0)|(0, 1), promised 1'
    """


class SmallDBWithoutTheTwo(_WithoutTheTwo, SmallDB):
    """SmallDB with weights exp(u'(x, y) / c); parameters as in `SmallDB`."""


class DxExponentialTooFlat(Twin, DxExponential):
    """Weights exp(u'(x, r) / (2.4 c)): private, and not as accurate as DX-T4 says; parameters as in `DxExponential`."""

    fault = "the exponent is divided by 1.2: poor outcomes are more likely than the bound on the score allows"
    changes: ClassVar[Any] = {"divisor": lambda self, divisor: 1.2 * divisor}
