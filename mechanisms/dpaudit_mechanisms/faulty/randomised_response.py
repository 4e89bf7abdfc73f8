"""Randomised response with a planted fault."""

import math
from typing import Any, ClassVar

from dpaudit.errors import UsageError
from dpaudit_mechanisms.faulty.broken import Broken
from dpaudit_mechanisms.randomised_response import RandomisedResponse


class RandomisedResponseWrongNormaliser(Broken, RandomisedResponse):
    """Tells the truth with the probability for two categories, e^epsilon / (e^epsilon + 1), whatever their number.

    Parameters as in `RandomisedResponse`, with at least three categories (`UsageError` otherwise: with two there is no
    fault).

    Examples
    --------
    >>> round(RandomisedResponseWrongNormaliser(epsilon=1.0, categories=3).privacy_loss(0, 1), 4)  # 1 + log 2
    1.6931
    """

    what = "the normaliser is that of 2 categories"
    changes: ClassVar[Any] = {"log_odds": lambda self, log_odds: log_odds + math.log(self.categories - 1)}
    categories: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.categories < 3:
            raise UsageError(f"categories must be at least 3 for a wrong normaliser, got {self.categories}.")
