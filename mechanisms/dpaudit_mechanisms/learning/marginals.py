"""Synthetic data from noisy marginals, on a small domain: measure, fit a chain, sample (in the manner of MST).

Records have three binary attributes. Measured are the marginals (a, b) and (b, c), each with Gaussian noise; the
synthetic records are drawn from the chain p(a, b) p(c | b) that the noisy marginals give (McKenna, Miklau and Sheldon
2021, arXiv:2108.04978, with the tree fixed beforehand). Adding or removing one record changes one cell of each marginal
by 1: the l2 sensitivity of both together is sqrt(2), so noise of standard deviation sigma keeps mu-Gaussian DP with mu
= sqrt(2) / sigma. Fitting and sampling are post-processing. The number of records drawn is fixed.
"""

import dataclasses
import itertools
import math
from typing import Any, Literal

import numpy as np

from dpaudit_mechanisms.inputs import Checked, FloatArray, IntArray, NDArray, Positive
from dpaudit_mechanisms.protocol import GaussianDP, Pair, UtilityBound

DRAWN = 400  # synthetic records
FLOOR = 1e-3  # of a noisy count, so that every share is defined


@dataclasses.dataclass(frozen=True)
class ChainGenerator(Checked):
    """Synthetic records of three binary attributes.

    Parameters
    ----------
    mu : float
        Promised, above 0.
    fault : {"none", "noise_for_one_marginal", "structural_zeros"}
        "noise_for_one_marginal": the noise is spent as if one marginal had been measured, at a fifth of sigma.
        "structural_zeros": cells that are empty in the data stay empty, without noise.
    """

    mu: Positive
    fault: Literal["none", "noise_for_one_marginal", "structural_zeros"] = "none"

    @property
    def claim(self) -> GaussianDP:
        """Claim for adding or removing one record."""
        return GaussianDP(self.mu)

    def pairs(self) -> list[Pair]:
        """A thousand records in all cells, one of which is left out."""
        cells = np.array(list(itertools.product((0, 1), repeat=3)))
        records = np.repeat(cells, [300, 100, 50, 50, 100, 100, 100, 200], axis=0)
        return [Pair(records, records[1:], "one record")]

    def utility_bounds(self) -> list[UtilityBound]:
        """Of the shares of (a, b): E |drawn - true|_1 <= sqrt(3 / `DRAWN`) + 8 (sqrt(2 / pi) sigma + `FLOOR`) / n.

        Drawing errs by at most the sum of sqrt(p (1 - p) / `DRAWN`). A noisy cell errs by |noise|, or by its floor: to
        raise what is negative brings it nearer to its count. Dividing by the noisy sum at most doubles the errors.
        """

        def shares(counts: NDArray[Any]) -> FloatArray:
            return np.asarray(counts / counts.sum(axis=-1, keepdims=True))

        def loss(data: IntArray, outputs: IntArray) -> FloatArray:
            true = shares(np.histogram2d(*data.T[:2], bins=(2, 2), range=((-0.5, 1.5),) * 2)[0].reshape(4))
            return np.asarray(np.abs(shares(np.asarray(outputs).sum(axis=3).reshape(-1, 4)) - true).sum(axis=1))

        def limit(data: IntArray) -> float:
            noise = 8.0 * math.sqrt(2.0 / math.pi) * math.sqrt(2.0) / self.mu
            return math.sqrt(3.0 / DRAWN) + (noise + 8.0 * FLOOR) / len(data)

        return [UtilityBound("error of a marginal", loss, limit, largest_loss=2.0, source="above")]

    def sample(self, data: IntArray, size: int, rng: np.random.Generator) -> IntArray:
        """Counts of the synthetic records in the eight cells, for `size` releases; shape (size, 2, 2, 2).

        Parameters
        ----------
        data : ndarray of int, shape (records, 3)
            Each 0 or 1.
        """
        first = np.histogramdd(data[:, :2], bins=(2, 2), range=((-0.5, 1.5),) * 2)[0]
        second = np.histogramdd(data[:, 1:], bins=(2, 2), range=((-0.5, 1.5),) * 2)[0]
        sigma = 2.0**0.5 / self.mu
        if self.fault == "noise_for_one_marginal":
            sigma /= 5.0
        left, right = (self._measured(marginal, sigma, size, rng) for marginal in (first, second))
        joint = left / left.sum(axis=(1, 2), keepdims=True)  # p(a, b)
        given = right / right.sum(axis=2, keepdims=True)  # p(c | b)
        cells = (joint[:, :, :, None] * given[:, None, :, :]).reshape(size, 8)
        cells = cells / cells.sum(axis=1, keepdims=True)
        return np.asarray(rng.multinomial(DRAWN, cells).reshape(size, 2, 2, 2))

    def _measured(self, marginal: FloatArray, sigma: float, size: int, rng: np.random.Generator) -> FloatArray:
        noisy = marginal + sigma * rng.standard_normal((size, 2, 2))
        if self.fault == "structural_zeros":
            noisy = np.where(marginal == 0.0, 0.0, noisy)
            return np.maximum(noisy, 0.0) + 1e-12
        return np.maximum(noisy, FLOOR)


def membership_scores(mechanism: ChainGenerator, runs: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Scores of runs with and without a canary record (1, 1, 1) beside 12 others that are all (0, 0, 0).

    The score is the number of synthetic records in the canary's cells of both marginals.
    """
    others = np.zeros((12, 3), dtype=np.int64)
    sides = []
    for data in (np.vstack([others, np.ones((1, 3), dtype=np.int64)]), others):
        drawn = mechanism.sample(data, runs, rng)
        sides.append((drawn[:, 1, 1, :].sum(axis=1) + drawn[:, :, 1, 1].sum(axis=1)).astype(float))
    return sides[0], sides[1]
