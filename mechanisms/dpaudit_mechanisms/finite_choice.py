"""Base of mechanisms that choose one of finitely many outcomes: what follows from the log probabilities of them all."""

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from dpaudit_mechanisms.accuracy import SHARE
from dpaudit_mechanisms.inputs import FloatArray, IntArray, output_positions
from dpaudit_mechanisms.protocol import UtilityBound


class FiniteChoice(ABC):
    """A mechanism whose outputs are positions in a list of outcomes, the same list for all inputs."""

    @abstractmethod
    def log_law(self, data: Any) -> FloatArray:
        """Natural log of the probability of every outcome on one input, shape (outcomes,)."""

    def distribution(self, data: Any) -> FloatArray:
        """Probabilities of all outcomes on one input, shape (outcomes,)."""
        return np.exp(self.log_law(data))

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> IntArray:
        """`size` positions of outcomes on one input, shape (size,)."""
        probabilities = self.distribution(data)
        return rng.choice(len(probabilities), size=size, p=probabilities)

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Natural log of the probability of each output, shape (size,); -inf where it is impossible."""
        logs = self.log_law(data)
        is_possible, places = output_positions(outputs, len(logs))
        return np.where(is_possible, logs[places], -np.inf)

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Exact privacy loss of two inputs in nats, a maximum over outcomes."""
        return loss_of(self.log_law(x), self.log_law(x_prime))


class ChoiceByScores(FiniteChoice):
    """The exponential mechanism: a choice with probabilities proportional to exp(score / (2 c)).

    Attributes
    ----------
    c : float
        Units of the score per nat.
    """

    c: float | None
    outcomes: IntArray

    @abstractmethod
    def scores_on(self, data: Any) -> FloatArray:
        """The scores of all outcomes on one input, shape (outcomes,)."""

    @property
    def divisor(self) -> float:
        """Divisor of the scores in the exponent, as it is drawn: 2 c."""
        return 2.0 * float(self.c or 0.0)

    def utility_bounds(self) -> list[UtilityBound]:
        """DX-T4.2 with e^-t = `SHARE`: how far the score of the choice is below the best one, with K outcomes.

        P(regret > 2 c (log K + t)) <= e^-t: a poor outcome has a weight of at most e^-t / K beside the best one.
        """

        def regret(data: Any, outputs: Any) -> FloatArray:
            scores = self.scores_on(data)
            return scores.max() - scores[np.asarray(outputs, dtype=int)]

        limit = 2.0 * float(self.c or 0.0) * math.log(len(self.outcomes) / SHARE)
        return [UtilityBound("regret", regret, limit, failure_probability=SHARE, source="DX-T4.2")]


def loss_of(p: FloatArray, q: FloatArray) -> float:
    """Exact privacy loss of two laws from their log probabilities: max |log p - log q|, in nats, in [0, inf]."""
    possible = np.isfinite(p) | np.isfinite(q)
    return float(np.abs(p[possible] - q[possible]).max())
