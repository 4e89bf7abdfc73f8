"""Finite mechanisms in rationals: random ones, events, exact losses."""

import itertools
import math
from fractions import Fraction

import numpy as np


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


def nearest_worlds(points, event):
    """The closest world of the event for each world, by L2 distance of points; ties go to the first one."""
    places, inside = np.asarray(points, dtype=float), np.flatnonzero(np.asarray(event, dtype=bool))
    return inside[np.linalg.norm(places[:, None] - places[inside], axis=2).argmin(axis=1)]


def mixed(laws, weights):
    """The mixture of laws with these weights, which do not depend on the input (CD-T3.9.1)."""
    return sum(weight * np.asarray(law) for weight, law in zip(weights, laws, strict=True))


def transition_matrix(target, proposal):
    """The transition matrix of Metropolis-Hastings on finitely many states (CD-S16), shape (states, states).

    `target` are weights of the law that is wanted; `proposal[i, j]` is the probability of proposing j at i.
    """
    moves = 0 * proposal
    for i, j in itertools.permutations(range(len(target)), 2):
        if proposal[i, j] != 0:
            # target[i] = 0 happens at a start only: whatever is proposed is accepted there, as the ratio is infinite
            ratio = 1 if target[i] == 0 else target[j] * proposal[j, i] / (target[i] * proposal[i, j])
            moves[i, j] = proposal[i, j] * min(1, ratio)
    moves[np.diag_indices(len(target))] = 1 - moves.sum(axis=1)
    return moves


def hockey_stick(p, q, factor):
    """The least delta with P(S) <= factor Q(S) + delta for every event S; exact on fractions."""
    return sum(max(a - factor * b, 0 * a) for a, b in zip(p, q, strict=True))


def largest_ratio(p, q):
    """The largest p(w) / q(w) and q(w) / p(w): e to the loss; inf where one is 0 alone; exact on fractions."""
    pairs = [(a, b) for a, b in zip(p, q, strict=True) if a or b]
    return max((max(a / b, b / a) if a and b else math.inf for a, b in pairs), default=1)


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
