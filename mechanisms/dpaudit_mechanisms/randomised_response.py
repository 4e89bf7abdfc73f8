"""k-ary randomised response: the true answer with odds e^epsilon against each other answer; pure epsilon-DP.

Inputs and outputs are the integers 0..categories - 1; every two inputs are adjacent. It is the mechanism that uses the
whole of its budget on single outcomes, so it sits exactly on its claim. Source: Warner (1965) for two categories;
Kairouz, Oh and Viswanath (2014), arXiv:1407.1338, section 2.2 for k.
"""

import dataclasses
import math
from typing import Annotated, Any

import numpy as np

from dpaudit_mechanisms.finite_choice import FiniteChoice
from dpaudit_mechanisms.inputs import FloatArray, IntArray, at_least, output_batch, position
from dpaudit_mechanisms.protocol import Pair, UtilityBound
from dpaudit_mechanisms.pure import Pure


@dataclasses.dataclass(frozen=True)
class RandomisedResponse(Pure, FiniteChoice):
    """Tells the truth with probability e^epsilon / (e^epsilon + categories - 1), else one of the others uniformly.

    Parameters
    ----------
    epsilon : float
        In nats, in (0, inf).
    categories : int, optional
        Number of answers k, at least 2.

    Examples
    --------
    >>> mechanism = RandomisedResponse(epsilon=math.log(3.0), categories=3)
    >>> mechanism.distribution(0).round(4).tolist()
    [0.6, 0.2, 0.2]
    >>> round(mechanism.privacy_loss(0, 2), 4)
    1.0986
    """

    categories: Annotated[int, at_least(2)] = 2
    input_kind = "position"

    @property
    def outcomes(self) -> IntArray:
        """All outputs in increasing order, shape (categories,)."""
        return np.arange(self.categories)

    @property
    def log_odds(self) -> float:
        """Log of the probability of the true answer over that of one other answer, as it is drawn."""
        return self.epsilon

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> IntArray:
        """`size` integer outputs on one input, shape (size,)."""
        truth = position(data, self.categories)
        is_true = rng.random(size) < math.exp(self._log_truth)
        others = (truth + 1 + rng.integers(self.categories - 1, size=size)) % self.categories
        return np.where(is_true, truth, others)

    def log_law(self, data: Any) -> FloatArray:
        return np.asarray(self._log_truth - self.log_odds * (self.outcomes != position(data, self.categories)))

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Exact privacy loss in nats: the log odds for two different inputs, attained at either of them."""
        return 0.0 if position(x, self.categories) == position(x_prime, self.categories) else self.log_odds

    def utility_bounds(self) -> list[UtilityBound]:
        """Probability that the answer is not the truth: with equality."""

        def is_false(data: Any, outputs: Any) -> FloatArray:
            return (output_batch(outputs, ()) != position(data, self.categories)).astype(float)

        failures = -math.expm1(self._log_truth)
        return [UtilityBound("false answer", is_false, 0.0, failure_probability=failures, largest_loss=1.0)]

    def pairs(self) -> list[Pair]:
        """The first input against the second and against the last (once where these are the same); tight on both."""
        return [Pair(0, other) for other in sorted({1, self.categories - 1})]

    @property
    def _log_truth(self) -> float:
        return -math.log1p((self.categories - 1) * math.exp(-self.log_odds))
