"""A microbatch whose average is clipped moves by twice the clipping norm."""

import numpy as np

from dpaudit.domains import DatasetDomain

CLIP, EXAMPLES = 1.0, 4  # two microbatches of two


def _total(data):
    return np.clip(np.reshape(data, (-1, 2)).mean(axis=1), -CLIP, CLIP).sum()


def faulty(data, size, rng):
    return _total(data) + rng.normal(scale=CLIP, size=size)


def mended(data, size, rng):
    return _total(data) + rng.normal(scale=2.0 * CLIP, size=size)


EXHIBIT = dict(
    kind="learning",
    source="tensorflow/privacy#620",
    wrong="compute_dp_sgd_privacy does not account for the doubled sensitivity of microbatches.",
    claim="mu=1",
    domain=DatasetDomain(
        values=(-4.0, -1.0, 0.0, 1.0, 4.0), largest=EXAMPLES, smallest=EXAMPLES, adjacency="replace_one"
    ),
    pair=([4.0, 0.0, 0.0, 0.0], [-4.0, 0.0, 0.0, 0.0]),
)
