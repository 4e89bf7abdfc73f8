"""Base of mechanisms that choose one of finitely many outcomes: what follows from the log probabilities of them all."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from dpaudit_mechanisms.inputs import FloatArray, IntArray, output_positions


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


def loss_of(p: FloatArray, q: FloatArray) -> float:
    """Exact privacy loss of two laws from their log probabilities: max |log p - log q|, in nats, in [0, inf]."""
    possible = np.isfinite(p) | np.isfinite(q)
    return float(np.abs(p[possible] - q[possible]).max())
