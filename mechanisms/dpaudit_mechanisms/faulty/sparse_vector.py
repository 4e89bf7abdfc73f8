"""Sparse vectors with a fault each, as they were published: none keeps its epsilon for a whole session.

Lyu, Su and Li (2017), section 3, has them with their origins.
"""

from typing import Any, ClassVar

import numpy as np

from dpaudit_mechanisms.faulty.broken import Twin
from dpaudit_mechanisms.sparse_vector import SparseVector, SparseVectorSession


class SparseVectorWithoutQueryNoise(Twin, SparseVector):
    """Comparisons without noise: two counts that change places make an answer impossible; loss inf."""

    fault = "comparisons have no noise: loss inf nats where two counts change places"
    changes: ClassVar[Any] = {"query_scale": lambda self, scale: 0.0}


class SparseVectorWithoutEnd(Twin, SparseVector):
    """Does not stop after `most` queries above, nor draw the threshold anew: the loss grows with the queries."""

    fault = "the session has no end, and its threshold no fresh noise: the loss grows with the queries"

    def start(self, data: Any, rng: np.random.Generator) -> SparseVectorSession:
        return _Endless(self, np.asarray(data, dtype=float), rng)


class _Endless(SparseVectorSession):
    def answer(self, query: int) -> bool:
        noise = float(self.rng.laplace(scale=self.mechanism.query_scale))
        return bool(self.counts[query] + noise >= self.noisy_threshold)
