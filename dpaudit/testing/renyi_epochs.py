"""Epochs of the Renyi game: what one fit bets on, in each direction, and the counts since."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.cells import Cells
from dpaudit.privacy.claims import FloatArray, RenyiInequality

SMALLEST_LOSS = 1e-6  # the least that a bet may lose is taken to be at least this


@dataclasses.dataclass
class Epoch:
    """What one fit bets on, and its counts: g per cell and order for each direction; counts (labels, cells).

    Row 0 of `g`, `orders` and of the payoffs is the direction (P, Q), row 1 is (Q, P).
    """

    cells: Cells
    g: FloatArray  # (2, cells)
    orders: tuple[float, float]
    counts: NDArray[np.int64]  # (2, cells): row 0 label 0 (x_prime), row 1 label 1 (x)
    saved: dict[str, Any] = dataclasses.field(default_factory=dict)  # all but the counts, once it was saved

    def log_factors(self, direction: int, bound: float, fraction: FloatArray) -> FloatArray:
        """Log of the wealth that this epoch's draws give each fraction, shape (fractions, ...)."""
        order, g = self.orders[direction], self.g[direction]
        paid, charged, least = payoffs(g, order)
        numerator, denominator = self.counts[1 - direction], self.counts[direction]
        half = 0.5 * bound
        worst = max(least + half, SMALLEST_LOSS)
        gains = np.log1p(fraction[:, None] * (paid - half) / worst)  # (fractions, cells)
        losses = np.log1p(-fraction[:, None] * (charged + half) / worst)
        return np.asarray(gains @ numerator + losses @ denominator)


def payoffs(g: FloatArray, order: float) -> tuple[FloatArray, FloatArray, float]:
    """a - k, b - k and m of `renyi_game`, for one g per cell: shapes (cells,), (cells,) and a number."""
    paid, charged = RenyiInequality(order, 0.0).terms(g)
    middle = 0.25 * float(paid.min() + paid.max() + charged.min() + charged.max())
    return paid - middle, charged - middle, float(max(middle - paid.min(), charged.max() - middle))
