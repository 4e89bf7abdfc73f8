"""Geometric noise is drawn within the bounds of the query, and the answer is not clamped to them."""

import numpy as np

from dpaudit.domains import NumberDomain

MAX_NOISE = 6
NOISE = np.arange(-MAX_NOISE, MAX_NOISE + 1)
WEIGHTS = np.exp(-np.abs(NOISE).astype(float))


def faulty(data, size, rng):
    return int(data) + rng.choice(NOISE, size=size, p=WEIGHTS / WEIGHTS.sum())


def mended(data, size, rng):
    noise = rng.geometric(1.0 - np.exp(-1.0), size=(2, size))
    return np.clip(int(data) + noise[0] - noise[1], 0, MAX_NOISE)


EXHIBIT = dict(
    kind="noise",
    source="opendp/smartnoise-core#319",
    wrong="The simple geometric mechanism draws noise within its sampling bounds and does not clamp to them, so that "
    "answers at the ends of the range are possible on one input alone.",
    claim="eps=1",
    domain=NumberDomain(0, MAX_NOISE, change=1, integer=True),
    pair=(0, 1),
)
