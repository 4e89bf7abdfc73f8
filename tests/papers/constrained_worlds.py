"""Finite mechanisms in rationals: random ones, events, exact losses."""

import itertools
from fractions import Fraction

import numpy as np

from dpaudit_mechanisms.constrained.finite import hockey_stick, largest_ratio


def fractions(rng, inputs, worlds, zeros=False):
    """A random row-stochastic table of fractions; with `zeros` some worlds are impossible for all inputs."""
    weights = rng.integers(1, 10, size=(inputs, worlds))
    if zeros:
        weights[:, 1:] *= rng.integers(0, 2, size=worlds - 1)
    return np.array([[Fraction(int(w), int(row.sum())) for w in row] for row in weights], dtype=object)


def as_fractions(rows):
    return np.array([[Fraction(str(value)) for value in row] for row in rows], dtype=object)


def events(worlds, smallest=0):
    """All events as boolean arrays."""
    every = itertools.product((False, True), repeat=worlds)
    return [np.array(event) for event in every if sum(event) >= smallest]


def profile(law, factor):
    """The least delta that all ordered pairs of inputs keep at e^epsilon = factor."""
    return max(hockey_stick(p, q, factor) for p, q in itertools.permutations(law, 2))


def loss_ratio(law):
    """e to the exact loss over all pairs of inputs."""
    return max(largest_ratio(p, q) for p, q in itertools.combinations(law, 2))


def product(first, second):
    """Independent runs of two mechanisms: worlds are pairs, the first one varying slowest."""
    return np.array([[a * b for a in p for b in q] for p, q in zip(first, second, strict=True)], dtype=object)


def pushed(law, h, worlds):
    """The law of h(world)."""
    moved = np.array([[Fraction(0)] * worlds for _ in law], dtype=object)
    for world, to in enumerate(h):
        moved[:, to] = moved[:, to] + law[:, world]
    return moved
