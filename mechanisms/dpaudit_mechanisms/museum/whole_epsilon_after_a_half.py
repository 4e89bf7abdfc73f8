"""Half of epsilon is spent on the structure of a network, and all of it once more on its tables."""

import functools

import numpy as np

from dpaudit.domains import DatasetDomain

EPSILON = 1.0
RECORDS = ((0, 0), (0, 1), (1, 0), (1, 1))


def _network(data, size, rng, epsilon_of_tables):
    pairs = np.array(data, dtype=int).reshape(-1, 2)
    # Whether the two attributes are linked: by how far they agree, of which a record changes 1, against a constant.
    score = abs(2 * np.count_nonzero(pairs[:, 0] == pairs[:, 1]) - len(pairs))
    weights = np.exp(0.5 * EPSILON * np.array([score, 1.0]) / 2.0)
    is_linked = rng.random(size) < weights[0] / weights.sum()
    table = np.bincount(2 * pairs[:, 0] + pairs[:, 1], minlength=4)
    noisy = table + rng.laplace(scale=1.0 / epsilon_of_tables, size=(size, 4))
    return np.column_stack([is_linked, noisy])


faulty = functools.partial(_network, epsilon_of_tables=EPSILON)
mended = functools.partial(_network, epsilon_of_tables=0.5 * EPSILON)

EXHIBIT = dict(
    kind="accounting",
    source="ryan112358/mbi#11",
    wrong="The PrivBayes example measures marginals with all of epsilon after half of it was spent on choosing them.",
    claim="eps=1",
    domain=DatasetDomain(values=RECORDS, largest=8),
    pair=([(0, 0)], [(0, 0), (0, 0)]),
)
