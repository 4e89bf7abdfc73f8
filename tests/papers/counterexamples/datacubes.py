"""Targets of the paper on datacubes: losses over budgets, optimal recoveries and budgets over others, identities."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
from scipy.special import gammaln

from counterexamples.instances import Targets, gap, over, pick, target
from dpaudit_mechanisms.inputs import FloatArray

TARGETS: Targets = {}
BITS, CELLS = 4, 16
MAX_BITS = 120
SIGNS = np.array([[(-1.0) ** (a & b).bit_count() for b in range(CELLS)] for a in range(CELLS)])


@target(TARGETS, "DC-T2.1", "2 answers to 3 databases, an output: loss over epsilon", 8)
def _laplace(v: FloatArray) -> FloatArray:
    answers, z = 4.0 * v[:, :6].reshape(-1, 3, 2), 60.0 * (v[:, 6:8] - 0.5)
    away, pairs = np.abs(z[:, None] - answers).sum(axis=2), list(itertools.combinations(range(3), 2))
    sensitivity = np.max([np.abs(answers[:, i] - answers[:, j]).sum(axis=1) for i, j in pairs], axis=0)
    return over(np.max([np.abs(away[:, i] - away[:, j]) for i, j in pairs], axis=0), sensitivity)


@target(TARGETS, "DC-P3.1.i", "a strategy of 4 rows over 4 cells with budgets, one person added or replaced: loss "
        "over alpha", 20)  # fmt: skip
def _budgets(v: FloatArray) -> FloatArray:
    strategy, budgets = np.round(6.0 * (v[:, :16].reshape(-1, 4, 4) - 0.5)), v[:, 16:, None]
    weighted = strategy * budgets
    promised = 2.0 * np.abs(weighted).sum(axis=1).max(axis=1)
    pairs = itertools.combinations(range(4), 2)
    replaced = [np.abs(weighted[:, :, i] - weighted[:, :, j]).sum(axis=1) for i, j in pairs]
    return over(np.max([*replaced, promised / 2.0], axis=0), promised)


@target(TARGETS, "DC-L3.2.a", "3 groups over 5 cells with random rows, signs and magnitudes, equal budgets within: "
        "the gap of conditions (2)", 36)  # fmt: skip
def _grouping(v: FloatArray) -> FloatArray:
    """Each cell's entry in a group is in one of the group's two rows, with the group's magnitude."""
    row, sign = pick(v[:, :15].reshape(-1, 3, 5), 2), np.where(v[:, 15:30].reshape(-1, 3, 5) < 0.5, -1.0, 1.0)
    magnitude, budgets = 1.0 + pick(v[:, 30:33], 3), 0.01 + v[:, 33:36]
    entries = magnitude[:, :, None, None] * sign[:, :, None] * (row[:, :, None] == np.arange(2)[:, None])
    conditions = (np.abs(entries) * budgets[:, :, None, None]).sum(axis=(1, 2))  # (instances, cells)
    return gap(conditions, (magnitude * budgets).sum(axis=1, keepdims=True))


@target(TARGETS, "DC-C3.3.L", "3 groups, C and epsilon: the closed form over the value at other budgets", 8)
def _group_budgets(v: FloatArray) -> FloatArray:
    s, other, c, epsilon = 0.01 + v[:, :3], 0.01 + v[:, 3:6], 1.0 + pick(v[:, 6], 3), 0.1 + v[:, 7]
    other = other / (c * other.sum(axis=1) / epsilon)[:, None]
    closed = (c / epsilon) ** 2 * (s ** (1.0 / 3.0)).sum(axis=1) ** 3
    return over(closed, (s / other**2).sum(axis=1))


@target(
    TARGETS, "DC-L3.5", "S of 5 rows and 3 columns, another unbiased recovery: least squares' variance over its", 28
)
def _recovery(v: FloatArray) -> FloatArray:
    strategy, precision = 4.0 * (v[:, :15].reshape(-1, 5, 3) - 0.5), 0.05 + v[:, 15:20]
    extra, query = 4.0 * (v[:, 20:25] - 0.5), v[:, 25:28] - 0.5
    gram = np.einsum("irc,ir,ird->icd", strategy, precision, strategy)
    usable = np.linalg.cond(gram) < 1e6
    gram = np.where(usable[:, None, None], gram, np.eye(3))
    left = np.linalg.solve(gram, strategy.transpose(0, 2, 1) * precision[:, None])  # (instances, 3, 5)
    best = np.einsum("ic,icr->ir", query, left)
    other = best + extra - np.einsum("ir,irc,ics->is", extra, strategy, left)
    found = over((best**2 / precision).sum(axis=1), (other**2 / precision).sum(axis=1))
    return np.where(usable, found, 0.0)


def _marginal(alpha: int) -> FloatArray:
    """C^alpha over 4 bits, shape (marginal's cells, cells)."""
    cells = sorted({b & alpha for b in range(CELLS)})
    return np.array([[float(b & alpha == g) for b in range(CELLS)] for g in cells])


@target(TARGETS, "DC-T4.1.1", "4 bits, alpha, beta: the gap between summed axes of f^beta and the printed sum", 2)
def _fourier_entries(v: FloatArray) -> FloatArray:
    return _entries()[pick(v[:, 0], CELLS), pick(v[:, 1], CELLS)]


@functools.cache
def _entries() -> FloatArray:
    """The gap for every alpha and beta: all instances there are at 4 bits."""
    found = np.zeros((CELLS, CELLS))
    for alpha, beta in itertools.product(range(CELLS), repeat=2):
        summed = tuple(axis for axis in range(BITS) if not alpha >> (BITS - 1 - axis) & 1)
        cube = (SIGNS[beta] / 4.0).reshape((2,) * BITS)
        cells = sorted({b & alpha for b in range(CELLS)})
        printed = [sum((-1.0) ** (beta & eta).bit_count() for eta in range(CELLS) if eta & alpha == g) / 4.0
                   for g in cells]  # fmt: skip
        found[alpha, beta] = gap(cube.sum(axis=summed).reshape(1, -1), np.array([printed]))[0]
    return found


@target(TARGETS, "DC-T4.1.2", "4 bits, alpha, counts: the gap between a marginal and the sum over its coefficients", 17)
def _fourier(v: FloatArray) -> FloatArray:
    chosen, x, found = pick(v[:, 16], CELLS), v[:, :16], np.zeros(len(v))
    for alpha in range(CELLS):
        mine, marginal = chosen == alpha, _marginal(alpha)
        if mine.any():
            below = [b for b in range(CELLS) if b & alpha == b]
            coefficients = x[mine] @ (SIGNS[below].T / 4.0)
            found[mine] = gap(x[mine] @ marginal.T, coefficients @ (SIGNS[below] / 4.0 @ marginal.T))
    return found


@functools.cache
def _tables() -> FloatArray:
    """Exact noise over the bounds of lemma 4.2 with its constants, shape (2, d, k); 0 where k >= d / 2."""
    found = np.zeros((2, MAX_BITS + 1, MAX_BITS // 2 + 1))
    for d in range(3, MAX_BITS + 1):
        for k in range(1, (d + 1) // 2):
            needed, per_one = (np.array([math.log(f(i)) for i in range(k + 1)]) for f in (
                lambda i, d=d: math.comb(d, i), lambda i, d=d, k=k: math.comb(d - i, k - i)))  # fmt: skip
            unit, wide = 2.0 ** (1 - k) / (2.0**k * math.comb(d, k)), math.comb(d + k, k)
            pure = 2.0**k * math.sqrt(unit * np.exp(needed + per_one / 3.0).sum() ** 3)
            approximate = 2.0**k * math.sqrt(unit * np.exp(needed + per_one / 2.0).sum() ** 2)
            found[0, d, k] = pure / (math.sqrt(8.0) * k * math.sqrt(math.comb(d, k) * wide))
            found[1, d, k] = approximate / (2.0 * math.sqrt(k * wide))
    return found


def _size(v: FloatArray, which: int) -> FloatArray:
    d = 3 + pick(v[:, 0], MAX_BITS - 2)
    k = 1 + np.minimum((v[:, 1] * ((d - 1) // 2)).astype(int), (d - 1) // 2 - 1)
    return np.asarray(_tables()[which, d, k])


@target(TARGETS, "DC-L4.2.1", "d to 120, k < d / 2: exact noise over 2 sqrt(2) times the bound", 2)
def _table_pure(v: FloatArray) -> FloatArray:
    return _size(v, 0)


@target(TARGETS, "DC-L4.2.2", "d to 120, k < d / 2: exact noise over twice the bound", 2)
def _table_approximate(v: FloatArray) -> FloatArray:
    return _size(v, 1)


@target(TARGETS, "DC-TB1.1", "|alpha| to 40, either adjacency: E|sum of 2^|alpha| Laplace numbers| over its bound", 2)
def _uniform_fourier(v: FloatArray) -> FloatArray:
    """A sum of m of them is the difference of two Gamma(m): E = 2 Gamma(m + 1/2) / (sqrt(pi) Gamma(m)); |B| cancels."""
    m, factor = 2.0 ** pick(v[:, 0], 41), 1.0 + pick(v[:, 1], 2)
    mean = 2.0 * np.exp(gammaln(m + 0.5) - gammaln(m)) / math.sqrt(math.pi)
    return over(factor * mean, np.sqrt(8.0 * m))
