"""Targets of the paper on d_X-privacy: losses of neighbours over their budgets, errors over their bounds."""

from __future__ import annotations

import itertools

import numpy as np

from counterexamples.instances import Targets, over, pick, target
from dpaudit_mechanisms.histograms import all_histograms
from dpaudit_mechanisms.inputs import FloatArray

TARGETS: Targets = {}
HISTOGRAMS = np.asarray(all_histograms(3, 2))  # (6, 3): two records over three elements


def _moves() -> list[tuple[int, int, int, int]]:
    """x, x', i, j: neighbours by position, of which one record moves from i to j."""
    rows = [tuple(row) for row in HISTOGRAMS.astype(int).tolist()]
    found = []
    for x, (i, j) in itertools.product(range(len(rows)), itertools.permutations(range(3), 2)):
        if rows[x][i]:
            moved = list(rows[x])
            moved[i], moved[j] = moved[i] - 1, moved[j] + 1
            found.append((x, rows.index(tuple(moved)), i, j))
    return found


MOVES = _moves()


def _over_sensitivities(found: list[FloatArray], changes: list[FloatArray]) -> FloatArray:
    """The largest of each move's loss over the largest change by a move of the same two elements."""
    largest: dict[tuple[int, int], FloatArray] = {}
    for (_, _, i, j), change in zip(MOVES, changes, strict=True):
        key = (min(i, j), max(i, j))
        largest[key] = np.maximum(largest.get(key, np.zeros_like(change)), change)
    quotients = [over(loss, largest[min(i, j), max(i, j)]) for (_, _, i, j), loss in zip(MOVES, found, strict=True)]
    return np.asarray(np.max(quotients, axis=0))


@target(TARGETS, "DX-T1", "a table of 2 queries on the 6 histograms of 2 records over 3 elements, an output: "
        "loss over the sensitivity of the two elements", 16)  # fmt: skip
def _dx_laplace(v: FloatArray) -> FloatArray:
    table, c, z = v[:, :12].reshape(-1, 6, 2) - 0.5, 0.1 + 3.0 * v[:, 12:14], 60.0 * (v[:, 14:16] - 0.5)
    away = (np.abs(z[:, None] - c[:, None] * table) / c[:, None]).sum(axis=2)
    return _over_sensitivities([np.abs(away[:, x] - away[:, y]) for x, y, _, _ in MOVES],
                               [np.abs(table[:, x] - table[:, y]).sum(axis=1) for x, y, _, _ in MOVES])  # fmt: skip


@target(
    TARGETS, "DX-T1.1", "3 linear queries on 4 elements, 2 records, an output: loss over the distance of columns", 22
)
def _dx_columns(v: FloatArray) -> FloatArray:
    """The other record is of the element that `v` picks."""
    queries, c, z = v[:, :12].reshape(-1, 3, 4) - 0.5, 0.1 + 3.0 * v[:, 12:15], 60.0 * (v[:, 15:18] - 0.5)
    other = np.take_along_axis(queries, pick(v[:, [21]], 4)[:, None], axis=2)
    away = (np.abs(z[:, :, None] - c[:, :, None] * (queries + other)) / c[:, :, None]).sum(axis=1)
    pairs = itertools.combinations(range(4), 2)
    found = [over(np.abs(away[:, i] - away[:, j]), np.abs(queries[:, :, i] - queries[:, :, j]).sum(axis=1))
             for i, j in pairs]  # fmt: skip
    return np.asarray(np.max(found, axis=0))


@target(TARGETS, "DX-T3", "4 outcomes, scores of the 6 histograms of 2 records over 3 elements: loss of the "
        "exponential mechanism over sensitivity / c", 25)  # fmt: skip
def _dx_exponential(v: FloatArray) -> FloatArray:
    scores, c = 20.0 * v[:, :24].reshape(-1, 6, 4), 0.1 + v[:, 24]
    logs = _log_laws(scores / (2.0 * c[:, None, None]))
    return _over_sensitivities([np.abs(logs[:, x] - logs[:, y]).max(axis=1) * c for x, y, _, _ in MOVES],
                               [np.abs(scores[:, x] - scores[:, y]).max(axis=1) for x, y, _, _ in MOVES])  # fmt: skip


def _log_laws(logs: FloatArray) -> FloatArray:
    """Normalised on the last axis."""
    shifted = logs - logs.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


@target(TARGETS, "DX-T5", "SmallDB: 2 queries on 3 elements, 2 records, m = 1 to 4: loss over the largest "
        "|q_i - q_j|", 7)  # fmt: skip
def _small_db(v: FloatArray) -> FloatArray:
    queries, chosen = 8.0 * (v[:, :6].reshape(-1, 2, 3) - 0.5), pick(v[:, 6], 4)
    answers = np.einsum("ikn,hn->ihk", queries, HISTOGRAMS)  # (instances, histograms, queries)
    found = np.zeros(len(v))
    for m in range(1, 5):
        mine = chosen == m - 1
        released = np.einsum("ikn,hn->ihk", queries[mine], np.asarray(all_histograms(3, m)) * (2.0 / m))
        # The scores are for total 2 here: c = 1, and histograms of m records stand for those of 2.
        logs = _log_laws(-np.abs(released[:, None] - answers[mine][:, :, None]).max(axis=3) / 2.0)
        worst = np.zeros(int(mine.sum()))
        for x, y, i, j in MOVES:
            budget = np.abs(queries[mine][:, :, i] - queries[mine][:, :, j]).max(axis=1)
            worst = np.maximum(worst, over(np.abs(logs[:, x] - logs[:, y]).max(axis=1), budget))
        found[mine] = worst
    return found


@target(TARGETS, "DX-T7", "one round of MWEM: choice among 3 queries, a measurement, 3 elements, 3 records: "
        "loss over d / T", 16)  # fmt: skip
def _mwem_round(v: FloatArray) -> FloatArray:
    """T = 1: a choice with scores c |q(y) - q(x)| at scale 4 c, Laplace noise of scale 2 c: half of d each.

    Three elements: with two of them all scores fall or rise together, and the choice alone cannot lose its half.
    """
    queries, m, row = 8.0 * (v[:, :9].reshape(-1, 3, 3) - 0.5), 60.0 * (v[:, 9] - 0.5), np.arange(len(v))
    weights = 1e-9 + v[:, 10:13]
    y, chosen = 3.0 * weights / weights.sum(axis=1, keepdims=True), pick(v[:, 13], 3)
    others = np.eye(3)[pick(v[:, 14:16], 3)].sum(axis=1)  # the two records that stay
    logs, away = [], []
    for i in range(3):
        x = others + np.eye(3)[i]
        logs.append(_log_laws(np.abs(np.einsum("ikn,in->ik", queries, y - x)) / 4.0)[row, chosen])
        away.append(np.abs(m - (queries[row, chosen] * x).sum(axis=1)) / 2.0)
    found = [
        over(np.abs(logs[i] - logs[j] - away[i] + away[j]), np.abs(queries[:, :, i] - queries[:, :, j]).max(axis=1))
        for i, j in itertools.combinations(range(3), 2)
    ]
    return np.asarray(np.max(found, axis=0))


def _linear(v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """c Q' - Q of 2 queries on 3 elements, scales, a histogram, and delta in [1e-6, 1]."""
    return (4.0 * (v[:, :6].reshape(-1, 2, 3) - 0.5), 0.01 + 2.0 * v[:, 6:8], np.round(4.0 * v[:, 8:11]),
            np.maximum(1e-6, v[:, 11] ** 3))  # fmt: skip


def _squares(bias: FloatArray, c: FloatArray, most: FloatArray) -> FloatArray:
    """The expected squared error over 2 most^2 + 4 |c|^2."""
    return over((bias**2).sum(axis=1) + 2.0 * (c**2).sum(axis=1), 2.0 * most**2 + 4.0 * (c**2).sum(axis=1))


def _sums(bias: FloatArray, c: FloatArray, most: FloatArray) -> FloatArray:
    """The expected l1 error of biased Laplace noise, in closed form, over most + E|Y|_1."""
    b = np.abs(bias)
    return over((b + c * np.exp(-b / c)).sum(axis=1), most + c.sum(axis=1))


def _tails(bias: FloatArray, c: FloatArray, most: FloatArray, delta: FloatArray) -> FloatArray:
    """The probability of an error above most + ln(k / delta) |c|_inf, over delta."""
    t, b = (most + np.log(c.shape[1] / delta) * c.max(axis=1))[:, None], np.abs(bias)
    outside = 0.5 * np.exp(-(t - b) / c) + 0.5 * np.exp(-(t + b) / c)
    return over(-np.expm1(np.log1p(-outside).sum(axis=1)), delta)


@target(TARGETS, "DX-T2.1", "2 queries on 3 elements, up to 12 records: expected squared error over its bound", 11)
def _squared_error(v: FloatArray) -> FloatArray:
    difference, c, x, _ = _linear(np.concatenate([v, v[:, :1]], axis=1))
    most = x.sum(axis=1) * np.sqrt((difference**2).sum(axis=(1, 2)))
    return _squares(np.einsum("ikn,in->ik", difference, x), c, most)


@target(TARGETS, "DX-T2.2", "the same: expected l1 error over its bound", 11)
def _l1_error(v: FloatArray) -> FloatArray:
    difference, c, x, _ = _linear(np.concatenate([v, v[:, :1]], axis=1))
    # The largest sum of a column: below the entrywise norm of the ledger's reading, and so harder to keep.
    most = x.sum(axis=1) * np.abs(difference).sum(axis=1).max(axis=1)
    return _sums(np.einsum("ikn,in->ik", difference, x), c, most)


@target(TARGETS, "DX-T2.3", "the same: probability of a larger error over delta", 12)
def _tail(v: FloatArray) -> FloatArray:
    difference, c, x, delta = _linear(v)
    return _tails(np.einsum("ikn,in->ik", difference, x), c, x.sum(axis=1) * np.abs(difference).max(axis=(1, 2)), delta)


@target(TARGETS, "DX-T2", "the largest of the three quotients of its parts", 12)
def _all_errors(v: FloatArray) -> FloatArray:
    return np.asarray(np.max([_squared_error(v[:, :11]), _l1_error(v[:, :11]), _tail(v)], axis=0))


@target(TARGETS, "DX-T10", "lists of 3 rows of 4 values, 2 queries, an output: loss over |q(u') - q(v')|_1 / n", 16)
def _lists(v: FloatArray) -> FloatArray:
    mapped, c, z = v[:, :8].reshape(-1, 2, 4) - 0.5, 0.1 + 3.0 * v[:, 8:10], 60.0 * (v[:, 10:12] - 0.5)
    others = np.take_along_axis(mapped, pick(v[:, 12:14], 4)[:, None], axis=2).sum(axis=2, keepdims=True)
    away = (np.abs(z[:, :, None] - c[:, :, None] * (others + mapped) / 3.0) / c[:, :, None]).sum(axis=1)
    pairs = itertools.combinations(range(4), 2)
    found = [over(np.abs(away[:, i] - away[:, j]), np.abs(mapped[:, :, i] - mapped[:, :, j]).sum(axis=1) / 3.0)
             for i, j in pairs]  # fmt: skip
    return np.asarray(np.max(found, axis=0))


@target(TARGETS, "DX-T11", "lists of 3 rows of 3 values, 2 queries: the largest of squared error, l1 error and tail "
        "over their bounds", 12)  # fmt: skip
def _lists_error(v: FloatArray) -> FloatArray:
    biases, c, rows = 4.0 * (v[:, :6].reshape(-1, 3, 2) - 0.5), 0.01 + 2.0 * v[:, 6:8], pick(v[:, 8:11], 3)
    mean, delta = np.take_along_axis(biases, rows[:, :, None], axis=1).mean(axis=1), np.maximum(1e-6, v[:, 11] ** 3)
    most = [np.sqrt((biases**2).sum(axis=2)).max(axis=1), np.abs(biases).sum(axis=2).max(axis=1),
            np.abs(biases).max(axis=(1, 2))]  # fmt: skip
    return np.asarray(np.max([_squares(mean, c, most[0]), _sums(mean, c, most[1]), _tails(mean, c, most[2], delta)],
                             axis=0))  # fmt: skip
