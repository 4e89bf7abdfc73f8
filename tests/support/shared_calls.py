"""Sound vectorised mechanisms whose calls share something that shows in few of their outputs."""

import math

import numpy as np

TRUTH = math.e / (1.0 + math.e)  # of randomised response exactly at epsilon 1
SHOWN = 0.05  # of outputs, that tell what the call shares


def answer(x, size, rng):
    """One output in twenty gives the answer, which is drawn once a call."""
    shared = x if rng.random() < TRUTH else 1.0 - x
    return np.where(rng.random(size) < SHOWN, shared, 2.0)


def member(x, size, rng):
    """One output in twenty is a number of its own from the half that the answer of the call names."""
    shared = x if rng.random() < TRUTH else 1.0 - x
    return np.where(
        rng.random(size) < SHOWN, 10.0 * shared + rng.integers(5, size=size), 100.0 + rng.integers(9, size=size)
    )


def dither(x, size, rng):
    """Laplace noise of each output, rounded with an offset that is drawn once a call."""
    return np.floor(x + rng.laplace(size=size) + rng.random())


FORMS = {"answer": answer, "member": member, "dither": dither}
