"""Noise is drawn again until the answer is in its range."""

import numpy as np

from dpaudit.domains import NumberDomain

LOW, HIGH = 0.0, 2.0


def faulty(data, size, rng):
    answers = np.full(size, np.nan)
    while (left := np.isnan(answers)).any():
        drawn = data + rng.laplace(size=int(left.sum()))
        answers[left] = np.where((drawn < LOW) | (drawn > HIGH), np.nan, drawn)
    return answers


def mended(data, size, rng):
    return np.clip(data + rng.laplace(size=size), LOW, HIGH)


EXHIBIT = dict(
    kind="post-processing",
    source="google/differential-privacy#256",
    wrong="Rejection normalises by the mass inside of the range, which depends on the true answer.",
    claim="eps=1",
    domain=NumberDomain(LOW, HIGH, change=1.0),
    pair=(0.0, 1.0),
)
