"""Scores are differences of two errors, and the sensitivity is that of one."""

import functools

import numpy as np

from dpaudit.domains import VectorDomain

EPSILON = 1.0


def _select(data, size, rng, sensitivity):
    return np.argmax(np.asarray(data) * EPSILON / (2.0 * sensitivity) + rng.gumbel(size=(size, len(data))), axis=1)


faulty = functools.partial(_select, sensitivity=2.0)
mended = functools.partial(_select, sensitivity=4.0)

EXHIBIT = dict(
    kind="selection",
    source="ryan112358/mbi#65",
    wrong="JAM selects by model error minus public error, both of which may move by 2, with sensitivity 2 "
    "instead of 4.",
    claim="eps=1",
    domain=VectorDomain(5, -10.0, 10.0, change=4.0),
    pair=(np.zeros(5), np.array([4.0, -4.0, -4.0, -4.0, -4.0])),
)
