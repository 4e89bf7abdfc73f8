"""Mechanisms of a line or two that many tests audit."""

import math

import numpy as np


def laplace(data, size, rng):
    return data + rng.laplace(size=size)


def normal(data, size, rng):
    return data + rng.normal(size=size)


def released(data, size, rng):
    """Return the input itself."""
    return np.full(size, float(data))


def response(data, size, rng):
    """Randomised response of loss 0.9."""
    return np.where(rng.random(size) < 1.0 / (1.0 + math.exp(-0.9)), data, 1 - data)
