"""A conditional sampler draws categories with their exact frequencies."""

import numpy as np

from dpaudit.domains import DatasetDomain


def _conditions(counts, size, rng):
    positive = np.maximum(counts, 0.0)
    share = positive / positive.sum() if positive.sum() > 0.0 else np.full(len(positive), 1.0 / len(positive))
    return rng.choice(len(positive), p=share, size=size)


def faulty(data, size, rng):
    return _conditions(np.bincount(data, minlength=3).astype(float), size, rng)


def mended(data, size, rng):
    noisy = np.bincount(data, minlength=3) + rng.laplace(size=(size, 3))
    return np.array([_conditions(row, 1, rng)[0] for row in noisy])


EXHIBIT = dict(
    kind="synthetic data",
    source="opendp/smartnoise-sdk#301",
    wrong="The DataSampler of CTGAN takes the frequencies of the data (noisy ones since pull request 426): a "
    "category that nobody has is never drawn.",
    claim="eps=1",
    domain=DatasetDomain(values=(0, 1, 2), largest=8),
    pair=([0], [0, 1]),
)
