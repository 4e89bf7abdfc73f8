"""Test of independence: do canaries that are near each other in the files score alike?

If canaries are answered independently, and their order in the files says nothing of them, then the scores of one side
are exchangeable: every order is equally likely, given the scores. Blocks of 2, 4, 8, ... neighbours show components
that they share. Two columns are looked at: ranks, and squared distances of ranks from the middle (answers that are
more confident in some blocks than in others). The energy of a block size is the sum over blocks of the squared sum of
a column. Each energy is centred and scaled by its mean and deviation over the orders drawn and the observed one, and
the statistic is the largest over sizes, columns and sides together.

Validity. Drawn orders and the observed one are exchangeable under the assumption, and the statistic treats all alike,
so that the rank of the observed one is uniform: the p-value holds at any number of canaries (Barnard 1963).

The verdict that supposes independence rests on the bound without it where this test refutes it. Under the assumption
the order is independent of everything that the two bounds are made of, so that the choice between them is made by an
independent draw, and the error rate of the verdict is still that of either bound.

What it cannot see. A mechanism that tosses one coin for all canaries is, given the coin, a mechanism that answers each
by itself. A run shows one toss. No test of one run tells it from a mechanism with the larger loss; that is why the
bound without the assumption stands beside."""

from __future__ import annotations

import numpy as np

from dpaudit.privacy.claims import FloatArray
from dpaudit.scores.order import below_all, is_sorted

ORDERS = 99  # drawn; the least p-value is 1 / 100
CELLS = 8_192  # of a side at most: neighbours are added up first, which costs the smallest block sizes of long files
MIN_SCORES = 16  # of a side: with fewer there are less than three block sizes


def dependence_p_value(groups: tuple[FloatArray, ...], rng: np.random.Generator) -> float | None:
    """The p-value of exchangeable scores on each side; None where a side is sorted, so that its order is lost.

    Sides are in the order of canaries; NaN counts as below everything.

    Examples
    --------
    >>> scores = np.random.default_rng(0).normal(size=400) + np.repeat([0.0, 1.0], 200)
    >>> dependence_p_value((scores,), np.random.default_rng(1))
    0.01
    """
    columns = []
    for side in groups:
        kept = below_all(side)
        if is_sorted(kept):
            return None
        if len(kept) >= MIN_SCORES:
            columns.append(_columns(kept, rng))
    if not columns:
        return None
    sizes = min(found.shape[1] for found in columns).bit_length() - 2
    together = _standardised(np.sum([_standardised(_energies(found, sizes, rng)) for found in columns], axis=0))
    largest = together.max(axis=1)
    return float(np.mean(largest >= largest[0]))


def _columns(scores: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Ranks and their squared distances from the middle, centred, neighbours added up; shape (2, cells)."""
    ranks = np.empty(len(scores))
    ranks[np.lexsort((rng.random(len(scores)), scores))] = np.linspace(-1.0, 1.0, len(scores))
    both = np.stack([ranks, ranks**2 - np.mean(ranks**2)])
    width = -(-len(scores) // CELLS)
    return np.asarray(both[:, : len(scores) // width * width].reshape(2, -1, width).sum(axis=2))


def _energies(columns: FloatArray, sizes: int, rng: np.random.Generator) -> FloatArray:
    """Energies in the observed order (first) and in drawn ones; shape (1 + orders, columns * sizes)."""
    cells = columns.shape[1]
    places = np.stack([np.arange(cells), *(rng.permutation(cells) for _ in range(ORDERS))])
    sums, found = np.take(columns.astype(np.float32), places, axis=1), []  # (columns, 1 + orders, cells)
    for _ in range(sizes):
        sums = sums[:, :, 0 : sums.shape[2] // 2 * 2 : 2] + sums[:, :, 1::2]
        found.append(np.einsum("coj,coj->co", sums, sums))
    return np.asarray(np.concatenate(found).T, dtype=np.float64)


def _standardised(energies: FloatArray) -> FloatArray:
    spread = energies.std(axis=0)
    return np.asarray((energies - energies.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0))
