"""Agreements: whether two or three columns go together, by their parities or by the side of their middles.

Each column alone may say nothing of the label, and so may their sum: an exclusive or of two bits, the sign of a
product. Products of signs are compared between the labels. One is proposed that stands out by far more than the best
of so many would by chance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.predictors import Predictor
from dpaudit.learning.reductions import Above, Reduction, Residue, Weighted
from dpaudit.learning.training import Training
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.whole_numbers import WHOLE_FROM, are_integers

FEWEST = 32  # draws, below which nothing is looked for
MOST_DRAWS = 4_000  # that are looked at: a bound on time
MOST_PAIRED = 96  # columns of which pairs are looked at
MOST_IN_THREES = 16  # columns of which all threes are looked at: a bound on time
BEYOND = 2.5  # deviations, over what the best of so many has by chance
MOST = 2  # proposals: the best of those that stand out
EDGES = np.array([0.25])  # between a product of signs, or parities, of 0 and of 1


def propose(training: Training) -> Iterable[Predictor]:
    """Pairs and threes of columns whose signs, multiplied, tell the label."""
    if not 2 <= training.columns <= MOST_PAIRED or len(training.labels) < FEWEST:
        return
    every = max(1, len(training.labels) // MOST_DRAWS)
    numbers, labels = training.numbers[::every], training.labels[::every]
    known = np.isfinite(numbers) & (np.abs(numbers) < WHOLE_FROM)
    numbers = np.where(known, numbers, 0.0)
    if not 0 < labels.sum() < len(labels):
        return
    found = list(_by_parity(numbers, known, labels)) + list(_by_side(numbers, known, labels))
    for merit, reduction in sorted(found, key=lambda one: -one[0])[:MOST]:
        yield Predictor(f"agreement: {reduction.name}", reduction, EDGES, merit)


def _by_parity(
    numbers: FloatArray, known: NDArray[np.bool_], labels: NDArray[np.bool_]
) -> Iterator[tuple[float, Reduction]]:
    are_whole = np.array([are_integers(column[own]) for column, own in zip(numbers.T, known.T, strict=True)])
    signs = np.where(known & are_whole, 1.0 - 2.0 * np.mod(numbers, 2.0) * are_whole, 0.0)
    for merit, columns in _standing_out(signs, labels):
        yield merit, Residue(Weighted(columns, (1,) * len(columns), 1.0), 2.0)


def _by_side(
    numbers: FloatArray, known: NDArray[np.bool_], labels: NDArray[np.bool_]
) -> Iterator[tuple[float, Reduction]]:
    middle = np.median(numbers, axis=0)
    for limits in (np.zeros(len(middle)), middle):
        signs = np.where(known, np.where(numbers > limits, 1.0, -1.0), 0.0)
        for merit, columns in _standing_out(signs, labels):
            yield merit, Residue(Above(columns, tuple(limits[list(columns)].tolist())), 2.0)


def _standing_out(signs: FloatArray, labels: NDArray[np.bool_]) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Pairs and threes of columns, with the deviations of the mean product of their signs between the labels."""
    varying = np.flatnonzero(np.abs(signs.mean(axis=0)) < 0.98)
    signs = signs[:, varying]
    a, b = signs[labels], signs[~labels]
    count = len(varying)
    scale = math.sqrt(1.0 / len(a) + 1.0 / len(b))
    if count >= 2:
        # Of what each column says alone nothing is an agreement.
        means = [side.mean(axis=0) for side in (a, b)]
        joint = [side.T @ side / len(side) - np.outer(mean, mean) for side, mean in zip((a, b), means, strict=True)]
        z = np.triu(np.abs(joint[0] - joint[1]) / scale, k=1)
        yield from _best(
            z.ravel(), [tuple(divmod(k, count)) for k in range(count * count)], varying, count * (count - 1) / 2
        )
    if 3 <= count <= MOST_IN_THREES:
        threes = list(itertools.combinations(range(count), 3))
        products = np.stack([signs[:, i] * signs[:, j] * signs[:, k] for i, j, k in threes], axis=1)
        z = np.abs(products[labels].mean(axis=0) - products[~labels].mean(axis=0)) / scale
        alone = np.abs(a.mean(axis=0) - b.mean(axis=0)).max() / scale
        yield from _best(z - alone, threes, varying, len(threes))


def _best(
    z: FloatArray, several: Sequence[tuple[int, ...]], varying: NDArray[np.intp], tried: float
) -> Iterator[tuple[float, tuple[int, ...]]]:
    least = math.sqrt(2.0 * math.log(max(tried, 2.0))) + BEYOND
    best = int(np.argmax(z))
    if z[best] > least:
        yield float(z[best]), tuple(int(varying[k]) for k in several[best])
