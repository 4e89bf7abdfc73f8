"""Targets of the paper on metric queries: updates of the learner, and embeddings by distances to random sets."""

from __future__ import annotations

import itertools

import numpy as np

from counterexamples.instances import Targets, gap, laws, over, pick, shortest, symmetric, target
from dpaudit_mechanisms.inputs import FloatArray

TARGETS: Targets = {}
PIECES = 7
GRID = np.linspace(0.0, 1.0, 65)
PATTERNS = np.array([hit for hit in itertools.product([False, True], repeat=5) if any(hit)])  # (31, 5)


def convex(v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Convex 1-Lipschitz functions into [0, 1] of 14 numbers each: kinks, heights at them, slopes between."""
    zeros = np.zeros((len(v), 1))
    ends = np.sort(np.concatenate([zeros, zeros + 1.0, v[:, : PIECES - 1]], axis=1), axis=1)
    slopes = np.sort(2.0 * v[:, PIECES - 1 : 2 * PIECES - 1] - 1.0, axis=1)
    heights = np.concatenate([zeros, np.cumsum(slopes * np.diff(ends, axis=1), axis=1)], axis=1)
    heights -= heights.min(axis=1, keepdims=True)
    return ends, heights + v[:, [13]] * (1.0 - heights.max(axis=1, keepdims=True)), slopes


def mistakes(v: FloatArray, alpha: FloatArray, noise: float) -> FloatArray:
    """Updates that one of four adversaries forces, the oracle being off by `noise` alpha in a value and a slope."""
    ends, heights, slopes = convex(v)
    places = np.sort(np.concatenate([ends, np.broadcast_to(GRID, (len(v), len(GRID)))], axis=1), axis=1)
    at = np.clip((ends[:, None, 1:-1] <= places[:, :, None]).sum(axis=2), 0, PIECES - 1)
    lines = np.take_along_axis(slopes, at, axis=1)
    values = np.take_along_axis(heights, at, axis=1) + lines * (places - np.take_along_axis(ends, at, axis=1))
    signs, kind, row = np.round(2.0 * v[:, 15:17] - 1.0) * noise * alpha[:, None], pick(v[:, 14], 4), np.arange(len(v))
    known, count = np.zeros_like(places), np.zeros(len(v))
    while True:
        errors = np.abs(known - values)
        wrong = errors > alpha[:, None] * (1.0 + 1e-9)
        playing = wrong.any(axis=1)
        if not playing.any():
            return count
        least, most = np.where(wrong, errors, np.inf).argmin(axis=1), np.where(wrong, errors, -1.0).argmax(axis=1)
        last = wrong.shape[1] - 1 - wrong[:, ::-1].argmax(axis=1)
        j = np.choose(kind, [least, most, wrong.argmax(axis=1), last])
        line = (values[row, j] + signs[:, 0])[:, None] + (lines[row, j] + signs[:, 1])[:, None] * (
            places - places[row, j][:, None]
        )
        known = np.where(playing[:, None], np.maximum(known, line), known)
        count += playing


def _tolerance(v: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-7.0 * v) * 0.9)


@target(TARGETS, "MQ-L4", "a convex function of 7 pieces, four adversaries: updates over 3 / sqrt(alpha_1)", 18)
def _tangents(v: FloatArray) -> FloatArray:
    alpha = _tolerance(v[:, 17])
    return over(mistakes(v, alpha, 0.0), 3.0 / np.sqrt(alpha))


@target(TARGETS, "MQ-L5", "the same, an oracle off by alpha_1 / 4: updates over sqrt(4 / alpha_1) + 1", 18)
def _noisy_tangents(v: FloatArray) -> FloatArray:
    alpha = _tolerance(v[:, 17])
    return over(mistakes(v, alpha, 0.25), np.sqrt(4.0 / alpha) + 1.0)


@target(TARGETS, "MQ-L6", "two such functions: updates of both over 3 l^(3/2) / sqrt(alpha)", 35)
def _two_coordinates(v: FloatArray) -> FloatArray:
    alpha = _tolerance(v[:, 17])
    total = mistakes(v[:, :17], alpha / 2.0, 0.25) + mistakes(v[:, 18:35], alpha / 2.0, 0.25)
    return over(total, 3.0 * 2.0**1.5 / np.sqrt(alpha))


@target(TARGETS, "MQ-T8", "a map of 4 points to 3 images, a mechanism of 3 outcomes on lists of 2 images: the loss of "
        "neighbours over that between lists of images", 31)  # fmt: skip
def _embedded(v: FloatArray) -> FloatArray:
    table, image = np.log(laws(v[:, :27], 9)).reshape(-1, 3, 3, 3), pick(v[:, 27:31], 3)
    row = np.arange(len(v))
    promised, found = np.zeros(len(v)), np.zeros(len(v))
    for (a, b), kept, last in itertools.product(itertools.combinations(range(3), 2), range(3), (True, False)):
        one, two = (table[:, kept, a], table[:, kept, b]) if last else (table[:, a, kept], table[:, b, kept])
        promised = np.maximum(promised, np.abs(one - two).max(axis=1))
    for (a, b), kept, last in itertools.product(itertools.combinations(range(4), 2), range(4), (True, False)):
        first, second, third = image[:, a], image[:, b], image[:, kept]
        one, two = (table[row, third, first], table[row, third, second]) if last else (
            table[row, first, third], table[row, second, third])  # fmt: skip
        found = np.maximum(found, np.abs(one - two).max(axis=1))
    return over(found, promised)


@target(TARGETS, "MQ-L12", "x, y, five clusters of query points: 1/32 of the gap over the mean of the terms", 12)
def _subsets(v: FloatArray) -> FloatArray:
    """Means over the random sets: K is so large that the sum of K terms is near its mean."""
    logs = 2 + pick(v[:, 0], 5)
    sizes = np.maximum(1.0, np.round(2.0 ** logs[:, None] * v[:, 1:5] ** 3))
    sizes = np.concatenate([np.maximum(1.0, 2.0**logs - sizes.sum(axis=1))[:, None], sizes], axis=1)  # y's own first
    to_x = np.concatenate([np.ones((len(v), 1)), 1.2 * v[:, 5:9]], axis=1)
    low, high = np.abs(1.0 - to_x), 1.0 + to_x
    to_y = low + (high - low) * np.concatenate([np.zeros((len(v), 1)), v[:, 9:12], v[:, :1]], axis=1)
    to_y[:, 0] = 0.0
    scales = np.floor(np.log2(sizes.sum(axis=1)) + 1e-12).astype(int)
    radii = np.zeros((len(v), int(scales.max()) + 1))
    for i in range(1, radii.shape[1]):
        for side in (to_x, to_y):
            order = np.argsort(side, axis=1)
            reached = np.cumsum(np.take_along_axis(sizes, order, axis=1), axis=1)
            place = np.minimum((reached < 2.0 ** (i - 1)).sum(axis=1), 4)
            radii[:, i] = np.maximum(radii[:, i], np.take_along_axis(side, order, axis=1)[np.arange(len(v)), place])
    index = np.arange(1, radii.shape[1])
    inside = (radii[:, 1:] + radii[:, :-1] <= 1.0 + 1e-9) & (index <= scales[:, None])
    last = np.where(inside, index, 0).max(axis=1)
    row = np.flatnonzero(last)
    radii[row, last[row]] = 1.0 - radii[row, last[row] - 1]
    nearest = [np.where(PATTERNS, side[:, None], np.inf).min(axis=2) for side in (to_x, to_y)]  # (instances, 31)
    worst = np.zeros(len(v))
    for i in range(2, radii.shape[1]):
        step, missed = radii[:, i] - radii[:, i - 1], (1.0 - 0.5 ** (i - 1)) ** sizes[:, None]
        chances = np.where(PATTERNS, 1.0 - missed, missed).prod(axis=2)
        mean = (chances * np.minimum(step[:, None], np.abs(nearest[0] - nearest[1]))).sum(axis=1)
        counts = (i <= last) & (step > 1e-6)
        worst = np.maximum(worst, np.where(counts, over(np.where(counts, step, 0.0) / 32.0, mean), 0.0))
    return worst


@target(TARGETS, "MQ-L13", "a metric of x, y and 5 queries, y being one: the gap to r*_1 / log k", 21)
def _first_scale(v: FloatArray) -> FloatArray:
    """r_1 and r'_1 are the radii of the least closed balls around x and y with at least one query point."""
    d = shortest(symmetric(0.05 + np.round(8.0 * v[:, :15]) / 4.0, 6))  # x is 0, the queries are 1 to 5, y is query 1
    to_x, to_y = d[:, 0, 1:], d[:, 1, 1:]
    radius = np.maximum(np.sort(to_x, axis=1)[:, 0], np.sort(to_y, axis=1)[:, 0])
    copies = np.round(1.0 + 9.0 * v[:, [15]])  # K: the terms are divided by K log k, and there are K of them
    terms = np.abs(to_x.min(axis=1) - to_y.min(axis=1))[:, None] / (copies * np.log2(5.0))
    return gap(terms * copies, radius[:, None] / np.log2(5.0))
