"""A mechanism with finitely many inputs and outcomes, given by its matrix of probabilities, as a subject."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import UsageError
from dpaudit.exact.finite import FloatArray, privacy_losses
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.pairs import Pair, all_pairs


@dataclasses.dataclass(frozen=True, eq=False)
class FiniteMechanism:
    """Input i (a row number) has outcome o (a column number) with probability matrix[i, o].

    Parameters
    ----------
    matrix : array_like of float, shape (inputs, outcomes)
        Non-negative, each row summing to 1 within 1e-12.
    claim : Claim, optional
        What it promises; none by default.

    Raises
    ------
    UsageError
        If the matrix is not row-stochastic.

    Examples
    --------
    >>> mechanism = FiniteMechanism([[0.75, 0.25], [0.25, 0.75]])
    >>> mechanism.sample(0, 5, np.random.default_rng(1)).tolist()
    [0, 1, 0, 1, 0]
    >>> mechanism.distribution(1).tolist(), len(mechanism.pairs())
    ([0.25, 0.75], 1)
    """

    matrix: Any
    claim: Claim | None = None

    def __post_init__(self) -> None:
        rows = np.array(self.matrix, dtype=float)
        privacy_losses(rows)  # the same check, with the same messages
        rows.flags.writeable = False
        object.__setattr__(self, "matrix", rows)

    @property
    def outcomes(self) -> NDArray[np.int64]:
        """All outcomes, shape (outcomes,)."""
        return np.arange(self.matrix.shape[1])

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """`size` outcomes on one input, shape (size,)."""
        row = self.distribution(data)
        return rng.choice(len(row), size=size, p=row / row.sum())

    def distribution(self, data: Any) -> FloatArray:
        """Probabilities of the outcomes on one input, shape (outcomes,)."""
        inputs = len(self.matrix)
        is_whole = isinstance(data, int | np.integer) and not isinstance(data, bool) and 0 <= data < inputs
        if not is_whole:
            raise UsageError(f"data must be a row number in [0, {inputs}), got {data!r}.")
        return np.asarray(self.matrix[data], dtype=float)

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Natural log of the probability of each output, shape (size,); -inf for what is no outcome."""
        row, values = self.distribution(data), np.asarray(outputs, dtype=float)
        is_outcome = (values >= 0) & (values < len(row)) & (values == np.floor(values))
        with np.errstate(divide="ignore"):
            return np.where(is_outcome, np.log(row)[np.where(is_outcome, values, 0).astype(int)], -np.inf)

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Exact privacy loss in nats, both directions."""
        rows = np.stack([self.distribution(x), self.distribution(x_prime)])
        return float(privacy_losses(rows)[0, 1])

    def pairs(self) -> list[Pair]:
        """Every two inputs."""
        if len(self.matrix) < 2:
            return []
        return list(all_pairs(list(range(len(self.matrix)))))
