"""The sampling rate is that of a physical batch, and several of them make one step."""

import functools

import numpy as np

from dpaudit.domains import DatasetDomain

RATE, STEPS_ACCUMULATED, SIGMA = 0.1, 8, 0.2


def _step(data, size, rng, rate):
    gradients = np.clip(data, 0.0, 1.0)
    sampled = rng.random((size, len(gradients))) < rate
    return (sampled * gradients).sum(axis=1) + rng.normal(scale=SIGMA, size=size)


faulty = functools.partial(_step, rate=RATE * STEPS_ACCUMULATED)
mended = functools.partial(_step, rate=RATE)  # delta is at most the rate, at any epsilon

EXHIBIT = dict(
    kind="accounting",
    source="google-deepmind/jax_privacy#287",
    wrong="The check of a noise multiplier uses batch_size / n and leaves out the steps of gradient accumulation.",
    claim="eps=0.5,delta=0.1",
    domain=DatasetDomain.between(0.0, 1.0, largest=6),
    pair=([], [1.0]),
)
