"""An exponential mechanism with a planted fault."""

from typing import Any, ClassVar

from dpaudit_mechanisms.exponential import Exponential
from dpaudit_mechanisms.faulty.broken import Broken


class ExponentialWithoutTheTwo(Broken, Exponential):
    """Weights exp(score / c) in place of exp(score / (2 c)): the normaliser's change with the input is forgotten.

    Parameters as in `Exponential`. It breaks the claim only where the normaliser moves against the numerator: on a
    table with one good outcome and many poor ones, not on one whose rows are permutations of two scores.

    Examples
    --------
    >>> scores = [[1.0] + [0.0] * 20, [0.0] + [1.0] * 20]
    >>> mechanism = ExponentialWithoutTheTwo(scores, metric=1.0)
    >>> mechanism.fault
    'the factor 2 is missing: loss 1.89079 nats on the pair 0|1, promised 1'
    """

    what = "the factor 2 is missing"
    changes: ClassVar[Any] = {"divisor": lambda self, divisor: divisor / 2.0}
