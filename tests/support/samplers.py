"""Mechanisms of a line or two that many tests audit."""

import math

import numpy as np


def laplace(data, size, rng):
    return data + rng.laplace(size=size)


def normal(data, size, rng):
    return data + rng.normal(size=size)


def one_by_one(data, rng):
    return float(data + rng.laplace())


def one_at_a_time(data, size, rng):
    """Raises for batches."""
    if size > 1:
        raise ValueError("one at a time")
    return data + rng.laplace(size=size)


class KeepsItsNoise:
    """One draw of Laplace noise for each input, kept: one call a draw as a function, or in batches."""

    def __init__(self):
        self.known = {}

    def __call__(self, data, rng):
        if data not in self.known:
            self.known[data] = one_by_one(data, rng)
        return self.known[data]

    def sample(self, data, size, rng):
        return np.full(size, self(data, rng))


def released(data, size, rng):
    """Return the input itself."""
    return np.full(size, float(data))


def response(data, size, rng):
    """Randomised response of loss 0.9."""
    return np.where(rng.random(size) < 1.0 / (1.0 + math.exp(-0.9)), data, 1 - data)
