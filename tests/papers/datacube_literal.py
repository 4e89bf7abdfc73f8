"""The paper on datacubes, word by word, on small domains: dense matrices in rationals, no shared code.

Cells and marginals are integers whose bits are the attributes, the first attribute being the highest bit, so that the
order of cells is lexicographic. Matrices are lists of rows, of fractions or integers; what needs a root is in floats.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog
from scipy.stats import norm

FIG_Q = [[int(c) for c in row] for row in
         ("11110000", "00001111", "11000000", "00110000", "00001100", "00000011")]  # fmt: skip
FIG_S = FIG_Q[2:]
FIG_R = [[int(c) for c in row] for row in ("1100", "0011", "1000", "0100", "0010", "0001")]


def product(left, right):
    return [[sum(row[k] * right[k][j] for k in range(len(right))) for j in range(len(right[0]))] for row in left]


def applied(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def transposed(matrix):
    return [list(column) for column in zip(*matrix, strict=True)]


def identity(n):
    return [[int(i == j) for j in range(n)] for i in range(n)]


# ---- marginals and the Fourier basis (Section 4) --------------------------------------------------------------------


def below(alpha, bits):
    """The beta with beta <= alpha, in order."""
    return [beta for beta in range(2**bits) if beta & alpha == beta]


def ways(bits, k):
    """The marginals of k attributes, in the order of their cells."""
    return [alpha for alpha in range(2**bits) if alpha.bit_count() == k]


def marginal(alpha, bits):
    """C^alpha as a matrix: a row for each beta <= alpha."""
    return [[int(cell & alpha == beta) for cell in range(2**bits)] for beta in below(alpha, bits)]


def workload(alphas, bits):
    return [row for alpha in alphas for row in marginal(alpha, bits)]


def sign(alpha, beta):
    return -1 if (alpha & beta).bit_count() % 2 else 1


def fourier_rows(alphas, bits):
    """The coefficients that marginals need: the union of what is below them."""
    return sorted({beta for alpha in alphas for beta in below(alpha, bits)})


def fourier(betas, bits):
    """The rows f^beta times 2^(d/2): signs, so that they stay exact."""
    return [[sign(beta, cell) for cell in range(2**bits)] for beta in betas]


def fourier_recovery(alphas, bits):
    """R times 2^(-d/2): (C^alpha f^beta)_gamma summed as the theorem prints it, in rationals."""
    betas = fourier_rows(alphas, bits)
    return [
        [
            Fraction(sum(sign(beta, cell) for cell in range(2**bits) if cell & alpha == gamma), 2**bits)
            if beta & alpha == beta else Fraction(0)
            for beta in betas
        ]
        for alpha in alphas for gamma in below(alpha, bits)
    ]  # fmt: skip


def stacked(groups):
    """The rows of all groups, and the group of each."""
    return [row for group in groups for row in group], [g for g, group in enumerate(groups) for _ in group]


# ---- grouping (Definition 3.1) --------------------------------------------------------------------------------------


def group_maximum(strategy, rows):
    """C_r of a group of rows, or None if the group breaks condition (a) or (b)."""
    columns = range(len(strategy[0]))
    if any(strategy[i][j] * strategy[k][j] for i, k in itertools.combinations(rows, 2) for j in columns):
        return None
    top = {max(abs(strategy[i][j]) for i in rows) for j in columns}
    return top.pop() if len(top) == 1 else None


def groups_of(grouping):
    return [[i for i, g in enumerate(grouping) if g == r] for r in sorted(set(grouping))]


def is_grouping(strategy, grouping):
    return all(group_maximum(strategy, rows) is not None for rows in groups_of(grouping))


def groupings(strategy):
    """All groupings, by brute force over partitions."""

    def partitions(m):
        if m == 0:
            yield []
            return
        for rest in partitions(m - 1):
            for g in range(max(rest, default=-1) + 2):
                yield [*rest, g]

    return [found for found in partitions(len(strategy)) if is_grouping(strategy, found)]


def grouping_number(strategy):
    return min((max(found) + 1 for found in groupings(strategy)), default=None)


# ---- privacy and error ----------------------------------------------------------------------------------------------


def changes(strategy, adjacency):
    """What one person can change in S x: a column, or the difference of two."""
    columns = transposed(strategy)
    if adjacency == "add_remove":
        return columns
    return [[a - b for a, b in zip(p, q, strict=True)] for p, q in itertools.permutations(columns, 2)]


def loss(strategy, budgets, adjacency):
    """The exact loss of Laplace noise of scale 1 / budget in each row."""
    return max((sum(abs(s) * e for s, e in zip(d, budgets, strict=True)) for d in changes(strategy, adjacency)),
               default=0)  # fmt: skip


def column_budget(strategy, budgets):
    """The left side of (2): the largest column."""
    return max(sum(abs(s) * e for s, e in zip(c, budgets, strict=True)) for c in transposed(strategy))


def gaussian_delta(epsilon, ratio):
    """The exact delta of normal noise whose sensitivity is `ratio` standard deviations; 0 for no change."""
    if ratio == 0:
        return 0.0
    first = norm.logcdf(ratio / 2 - epsilon / ratio)
    second = epsilon + norm.logcdf(-ratio / 2 - epsilon / ratio)
    return float(np.exp(first) * -np.expm1(min(second - first, 0.0)))


def recovery_weights(recovery, weights=None):
    """b of DC-EQ0: 2 sum_j a_j R_ji^2 for each row of the strategy."""
    weights = weights or [1] * len(recovery)
    return [2 * sum(a * row[i] ** 2 for a, row in zip(weights, recovery, strict=True)) for i in range(len(recovery[0]))]


def objective(weights, budgets):
    return sum(b / e**2 for b, e in zip(weights, budgets, strict=True) if b)


def grouped_budgets(strategy, grouping, weights, epsilon=1.0):
    """DC-EQ4 with its multiplier as printed."""
    groups = groups_of(grouping)
    tops = [float(group_maximum(strategy, rows)) for rows in groups]
    sums = [float(sum(weights[i] for i in rows)) for rows in groups]
    multiplier = 2 / epsilon**3 * sum((c**2 * s) ** (1 / 3) for c, s in zip(tops, sums, strict=True)) ** 3
    eta = [(2 / (multiplier * c) * s) ** (1 / 3) for c, s in zip(tops, sums, strict=True)]
    return [eta[sorted(set(grouping)).index(g)] for g in grouping]


def dual_bound(strategy, weights, prices, epsilon=1.0):
    """A lower bound of (1) to (3) for any prices >= 0 of the cells, by weak duality.

    The least b / e^2 + p e over e is 3 (b p^2 / 4)^(1/3), with p = sum_j |S_ij| price_j; the best multiple of the
    prices gives (sum_i (b_i p_i^2)^(1/3))^3 / (sum of prices)^2 / epsilon^2.
    """
    total = sum(
        (float(b) * float(sum(abs(s) * p for s, p in zip(row, prices, strict=True))) ** 2) ** (1 / 3)
        for b, row in zip(weights, strategy, strict=True)
    )
    return total**3 / float(sum(prices)) ** 2 / epsilon**2


def binomial_sum(d, k, power):
    """sum_i binom(d, i) binom(d - i, k - i)^power."""
    return sum(math.comb(d, i) * math.comb(d - i, k - i) ** power for i in range(k + 1))


def nearest(matrix, target, p):
    """min ||M v - target||_p and a minimiser, as the linear programs and the least squares of the paper."""
    m, y = np.array(matrix, dtype=float), np.array(target, dtype=float)
    rows, columns = m.shape
    if p == 2:
        v = np.linalg.lstsq(m, y, rcond=None)[0]
    else:
        slack = np.ones((rows, 1)) if p == np.inf else np.eye(rows)
        found = linprog(
            np.concatenate([np.zeros(columns), np.ones(slack.shape[1])]),
            A_ub=np.block([[m, -slack], [-m, -slack]]), b_ub=np.concatenate([y, -y]),
            bounds=[(None, None)] * columns + [(0, None)] * slack.shape[1], method="highs",
        )  # fmt: skip
        v = found.x[:columns]
    return float(np.linalg.norm(m @ v - y, p)), m @ v
