"""The epsilon of a day is that of one submission, and there are several."""

import functools

import numpy as np

from dpaudit.domains import ListedDomain

EPSILON, SUBMISSIONS = 1.0, 4


def _answers(data, size, rng, epsilon):
    truth = rng.random((size, SUBMISSIONS)) < 1.0 / (1.0 + np.exp(-epsilon))
    return np.where(truth, data, 1 - data)


faulty = functools.partial(_answers, epsilon=EPSILON)
mended = functools.partial(_answers, epsilon=EPSILON / SUBMISSIONS)

EXHIBIT = dict(
    kind="local and federated",
    source="arXiv:1709.02753",
    wrong="The stated epsilon is per datum; a device sends several a day, and the loss of a day is their sum.",
    claim="eps=1",
    domain=ListedDomain((0, 1)),
    pair=(0, 1),
)
