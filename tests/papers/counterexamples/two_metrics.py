"""Targets of the paper on utility and privacy first: losses of level mechanisms on six datasets, over 2 epsilon.

Levels are computed from the definitions here, and not by the mechanisms, which a test compares with them.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterexamples.instances import (
    Targets,
    laws,
    losses,
    over,
    pick,
    shortest,
    symmetric,
    target,
)
from dpaudit_mechanisms.inputs import FloatArray

TARGETS: Targets = {}
DATASETS = 6
EPSILONS = np.array([0.1, 1.0, 5.0])
SPACES = "6 datasets, masses over five orders of magnitude"


class Spaces(NamedTuple):
    """Distances of datasets and of the six names of values (i, 6, 6), values (i, 6), masses (i, 6), Delta f (i,)."""

    dbar: FloatArray
    d: FloatArray
    values: NDArray[np.intp]
    masses: FloatArray  # 0 where no dataset has the value
    sensitivity: FloatArray


def spaces(v: FloatArray) -> Spaces:
    """Finite spaces of 42 numbers each."""
    dbar = shortest(symmetric(np.maximum(0.25, np.round(4.0 * v[:, :15]) / 2.0), DATASETS))
    d = shortest(symmetric(0.1 + np.round(6.0 * v[:, 15:30]) / 2.0, DATASETS))
    values = pick(v[:, 30:36], DATASETS)
    has = (values[:, :, None] == np.arange(DATASETS)).any(axis=1)
    near = (dbar <= 1.0 + 1e-12) & ~np.eye(DATASETS, dtype=bool)
    moved = between(d, values)
    return Spaces(dbar, d, values, np.exp(12.0 * v[:, 36:42]) * has, np.where(near, moved, 0.0).max(axis=(1, 2)))


def between(d: FloatArray, values: NDArray[np.intp]) -> FloatArray:
    """Distances of the values of datasets, shape (instances, datasets, datasets)."""
    return d[np.arange(len(d))[:, None, None], values[:, :, None], values[:, None, :]]


def steps(distances: FloatArray) -> FloatArray:
    """The index i with i - 1 < distance <= i."""
    return np.ceil(distances * (1.0 - 1e-12))


def staircase_levels(s: Spaces) -> FloatArray:
    """(instances, datasets, values); where Delta f is 0 only the true value has a finite level."""
    unit = s.sensitivity[:, None, None]
    away = s.d[np.arange(len(s.d))[:, None], s.values]
    return np.where(unit > 0.0, steps(away / np.where(unit > 0.0, unit, 1.0)), np.where(away > 0.0, np.inf, 0.0))


def privacy_first_levels(s: Spaces) -> FloatArray:
    """The least step of a dataset that has the value, infinity where none has."""
    has = s.values[:, None, :, None] == np.arange(DATASETS)  # (instances, 1, datasets, values)
    return np.asarray(np.where(has, steps(s.dbar)[:, :, :, None], np.inf).min(axis=2))


def widened_staircase_levels(s: Spaces, widths: FloatArray) -> FloatArray:
    """The least staircase level of a value that covers r: some dataset of it has one with value r within its width."""
    has = (s.values[:, :, None] == np.arange(DATASETS)).astype(float)
    covers = np.zeros((len(s.d), DATASETS, DATASETS), dtype=bool)  # (instances, v, r)
    for y, z in itertools.product(range(DATASETS), repeat=2):
        within = s.dbar[:, y, z, None] <= np.take_along_axis(widths, s.values[:, [y]], axis=1) * (1.0 + 1e-12)
        covers |= (has[:, y, :, None] * has[:, z, None, :] > 0.0) & within[:, :, None]
    levels = staircase_levels(s)  # (instances, x, v)
    return np.asarray(np.where(covers[:, None], levels[:, :, :, None], np.inf).min(axis=2))


def loss_over_promise(s: Spaces, levels: FloatArray, epsilon: FloatArray) -> FloatArray:
    """The largest loss of two neighbours over 2 epsilon; 0 where nothing is near or Delta f is 0."""
    present = s.masses > 0.0
    logs = np.where(present[:, None], np.log(np.where(present, s.masses, 1.0))[:, None], -np.inf)
    # Where Delta f is 0 levels are infinite, and the answer is exact; 0 stands for them until the end.
    counted = present[:, None] & (s.sensitivity > 0.0)[:, None, None]
    weights = logs - epsilon[:, None, None] * np.where(counted, levels, 0.0)
    top = weights.max(axis=2, keepdims=True)
    log_laws = weights - top - np.log(np.exp(weights - top).sum(axis=2, keepdims=True))
    near, worst = s.dbar <= 1.0 + 1e-12, np.zeros(len(s.d))
    for x, y in itertools.combinations(range(DATASETS), 2):
        found = np.zeros((len(s.d), DATASETS))
        found[present] = np.abs(log_laws[:, x][present] - log_laws[:, y][present])
        worst = np.maximum(worst, np.where(near[:, x, y], found.max(axis=1), 0.0))
    return np.where(s.sensitivity > 0.0, worst / (2.0 * epsilon), 0.0)


@target(TARGETS, "UP-T1", f"{SPACES}: the staircase's loss over 2 epsilon", 43)
def _staircase(v: FloatArray) -> FloatArray:
    s = spaces(v)
    return loss_over_promise(s, staircase_levels(s), EPSILONS[pick(v[:, 42], 3)])


@target(TARGETS, "UP-T2", f"{SPACES}: the privacy-first mechanism's loss over 2 epsilon", 43)
def _privacy_first(v: FloatArray) -> FloatArray:
    s = spaces(v)
    return loss_over_promise(s, privacy_first_levels(s), EPSILONS[pick(v[:, 42], 3)])


@target(TARGETS, "UP-T4", f"{SPACES}, widths 0 to 3: the widened staircase's loss over 2 epsilon", 49)
def _widened(v: FloatArray) -> FloatArray:
    s = spaces(v)
    return loss_over_promise(s, widened_staircase_levels(s, 3.0 * v[:, 43:49]), EPSILONS[pick(v[:, 42], 3)])


@target(TARGETS, "UP-T5", f"{SPACES}, widths 0 to 3, E and t in [0, 3]: the loss over 2 epsilon", 56)
def _important(v: FloatArray) -> FloatArray:
    s = spaces(v)
    levels = widened_staircase_levels(s, 3.0 * v[:, 43:49])
    levels = levels + (3.0 * v[:, 55, None] * (v[:, 49:55] <= 0.5))[:, None]
    return loss_over_promise(s, levels, EPSILONS[pick(v[:, 42], 3)])


@target(TARGETS, "UP-L1", "6 datasets: the change of a value's level between neighbours, over 1", 43)
def _level_change(v: FloatArray) -> FloatArray:
    s = spaces(v)
    levels = np.where(s.masses[:, None] > 0.0, privacy_first_levels(s), 0.0)
    changes = np.abs(levels[:, :, None] - levels[:, None]).max(axis=3)
    return np.asarray(np.where(s.dbar <= 1.0 + 1e-12, changes, 0.0).max(axis=(1, 2)))


@target(TARGETS, "UP-P1", "two mechanisms of 3 outcomes on 2 inputs: the loss of both over the sum", 12)
def _product(v: FloatArray) -> FloatArray:
    first, second = laws(v[:, :6], 2), laws(v[:, 6:], 2)
    joint = (first[:, :, :, None] * second[:, :, None, :]).reshape(len(v), 2, -1)
    return over(losses(joint), losses(first) + losses(second))


@target(TARGETS, "UP-P2", "5 datasets in a row, 3 outcomes: loss at distance i over i times that of neighbours", 15)
def _group(v: FloatArray) -> FloatArray:
    table = laws(v, 5)
    epsilon = np.max([losses(table[:, i : i + 2]) for i in range(4)], axis=0)
    pairs = itertools.combinations(range(5), 2)
    return np.asarray(np.max([over(losses(table[:, [i, j]]), (j - i) * epsilon) for i, j in pairs], axis=0))
