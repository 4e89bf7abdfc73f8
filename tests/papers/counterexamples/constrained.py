"""Targets of the paper on constrained privacy: conditioning, imaging, mixtures, and Laplace noise on a sum."""

from __future__ import annotations

import numpy as np

from counterexamples.instances import Targets, deltas, gap, laws, over, pick, target
from dpaudit_mechanisms.inputs import FloatArray

TARGETS: Targets = {}


@target(TARGETS, "CD-L3.4.1", "4 worlds, an event, a map to 3, e^epsilon in [1, 4]: delta after over delta before", 17)
def _post_processing(v: FloatArray) -> FloatArray:
    event = np.concatenate([np.ones((len(v), 1), dtype=bool), v[:, 8:11] > 0.5], axis=1)
    given = laws(v[:, :8], 2) * event[:, None]
    given /= given.sum(axis=2, keepdims=True)
    factor = 1.0 + 3.0 * v[:, 16]
    return over(deltas(given @ np.eye(3)[pick(v[:, 11:15], 3)], factor), deltas(given, factor))


@target(TARGETS, "CD-L3.7", "5 worlds, any map for the nearest one, e^epsilon in [1, 4]: delta after over before", 16)
def _imaging(v: FloatArray) -> FloatArray:
    before, factor = laws(v[:, :10], 2), 1.0 + 3.0 * v[:, 15]
    return over(deltas(before @ np.eye(5)[pick(v[:, 10:15], 5)], factor), deltas(before, factor))


@target(TARGETS, "CD-T3.9.2", "two mechanisms on 4 worlds, weights, e^epsilon in [1, 4]: delta over the larger one", 18)
def _mixture(v: FloatArray) -> FloatArray:
    first, second, a, factor = laws(v[:, :8], 2), laws(v[:, 8:16], 2), v[:, 16, None, None], 1.0 + 3.0 * v[:, 17]
    return over(deltas(a * first + (1.0 - a) * second, factor),
                np.maximum(deltas(first, factor), deltas(second, factor)))  # fmt: skip


@target(TARGETS, "CD-T3.9.1", "two laws on 4 worlds, weights and a map: the gap", 13)
def _mixture_law(v: FloatArray) -> FloatArray:
    both, a, image = laws(v[:, :8], 2), v[:, 8, None], np.eye(4)[pick(v[:, 9:13], 4)]
    first, second = (np.einsum("iw,iwk->ik", both[:, n], image) for n in (0, 1))
    mixed = a * both[:, 0] + (1.0 - a) * both[:, 1]
    return gap(np.einsum("iw,iwk->ik", mixed, image), a * first + (1.0 - a) * second)


@target(TARGETS, "CD-P2.1", "5 worlds, an event, a law within it: its distance from the conditional one over "
        "the worst change of a ratio", 14)  # fmt: skip
def _conditioning(v: FloatArray) -> FloatArray:
    """Both directions: no distance without a change of ratios, and a change of at most twice the distance."""
    p = laws(v[:, :5], 1)[:, 0]
    event = np.concatenate([np.ones((len(v), 1), dtype=bool), v[:, 5:9] > 0.5], axis=1)
    other = laws(v[:, 9:14], 1)[:, 0] * event
    other /= other.sum(axis=1, keepdims=True)
    conditional = p * event / (p * event).sum(axis=1, keepdims=True)
    logs = np.log(np.where(event, other, 1.0) / np.where(event, conditional, 1.0))
    changes = np.where(event, logs, -np.inf).max(axis=1) - np.where(event, logs, np.inf).min(axis=1)
    apart = np.abs(logs).max(axis=1)
    return np.maximum(over(apart, changes), over(changes, 2.0 * apart))


@target(TARGETS, "CD-P2.2", "5 worlds, two disjoint events: the gap", 10)
def _union(v: FloatArray) -> FloatArray:
    p, places = laws(v[:, :5], 1)[:, 0], pick(v[:, 5:], 3)
    one, two = ((p * (places == k)) for k in (1, 2))
    masses = [part.sum(axis=1, keepdims=True) for part in (one, two)]
    defined = (masses[0] > 0.0) & (masses[1] > 0.0)
    masses = [np.where(defined, mass, 1.0) for mass in masses]
    weight = masses[0] / (masses[0] + masses[1])
    found = gap((one + two) / (masses[0] + masses[1]), weight * one / masses[0] + (1.0 - weight) * two / masses[1])
    return np.where(defined[:, 0], found, 0.0)


@target(TARGETS, "CD-T3.5.1", "3 inputs, 5 worlds, two disjoint events, a set B: the gap, input by input", 30)
def _union_of_mechanism(v: FloatArray) -> FloatArray:
    table, places, b = laws(v[:, :15], 3), pick(v[:, 15:20], 3), v[:, 20:25] > 0.5
    masses = [(table * (places == k)[:, None]).sum(axis=2) for k in (1, 2)]
    inside = [(table * ((places == k) & b)[:, None]).sum(axis=2) for k in (1, 2)]
    defined = (masses[0] > 0.0) & (masses[1] > 0.0)
    first, second = (np.where(defined, mass, 1.0) for mass in masses)
    weight = first / (first + second)
    mixed = weight * inside[0] / first + (1.0 - weight) * inside[1] / second
    return np.where(defined[:, 0], gap((inside[0] + inside[1]) / (first + second), mixed), 0.0)


@target(TARGETS, "CD-P2.7.1", "a shift and an output in three coordinates: log ratio over epsilon", 7)
def _laplace_shift(v: FloatArray) -> FloatArray:
    shift, output, epsilon = v[:, :3] - 0.5, 40.0 * (v[:, 3:6] - 0.5), 0.01 + v[:, 6]
    scale = np.abs(shift).sum(axis=1) / epsilon
    ratio = np.abs((np.abs(output) - np.abs(output - shift)).sum(axis=1))
    return np.where(scale > 1e-12, over(ratio, scale * epsilon), 0.0)


@target(TARGETS, "CD-P4.1", "n = 1 to 30, lambda, a row of the projection on a given sum: the gap of variances", 2)
def _variance_on_a_sum(v: FloatArray) -> FloatArray:
    n, scale = 1 + pick(v[:, 0], 30), 0.01 + 10.0 * v[:, 1]
    within = np.arange(30) < n[:, None]
    projection = np.eye(30) * within[:, None] - within[:, None] * within[:, :, None] / n[:, None, None]
    variances = 2.0 * scale[:, None] ** 2 * (projection**2).sum(axis=2)
    return gap(variances * within, 2.0 * scale[:, None] ** 2 * (1.0 - 1.0 / n[:, None]) * within)


@target(TARGETS, "CD-L3.6", "two mechanisms on 3 worlds, two inputs, an event each: the loss of both over the sum", 16)
def _conditioned_side_by_side(v: FloatArray) -> FloatArray:
    parts = []
    for start in (0, 8):
        event = np.concatenate([np.ones((len(v), 1), dtype=bool), v[:, start + 6 : start + 8] > 0.5], axis=1)
        within = laws(v[:, start : start + 6], 2) * event[:, None]
        parts.append(within / within.sum(axis=2, keepdims=True))
    return _side_by_side(*parts)


@target(TARGETS, "CD-L3.10", "two mechanisms on 3 worlds, two inputs, any map for the nearest one: the loss of both "
        "over the sum", 18)  # fmt: skip
def _imaged_side_by_side(v: FloatArray) -> FloatArray:
    images = [laws(v[:, k : k + 6], 2) @ np.eye(3)[pick(v[:, k + 6 : k + 9], 3)] for k in (0, 9)]
    return _side_by_side(*images)


def _side_by_side(first: FloatArray, second: FloatArray) -> FloatArray:
    """The loss of independent draws of both over the sum of their losses, from laws of shape (batch, 2, worlds)."""
    both = (first[:, :, :, None] * second[:, :, None]).reshape(len(first), 2, -1)
    return over(_losses(both), _losses(first) + _losses(second))


def _losses(both: FloatArray) -> FloatArray:
    """The largest |log ratio| of two laws, shape (batch,); worlds that neither reaches are left out."""
    kept = both.max(axis=1) > 0.0
    logs = np.log(np.where(kept[:, None], np.maximum(both, 1e-300), 1.0))
    return np.abs(logs[:, 0] - logs[:, 1]).max(axis=1)
