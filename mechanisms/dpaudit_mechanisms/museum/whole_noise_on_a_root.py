"""Integer noise on an indicator that is scaled by the root of the number of categories."""

import numpy as np

from dpaudit.domains import ListedDomain
from dpaudit_mechanisms.museum.releases import published

CATEGORIES = 3


def _geometric(zeta, size, rng):
    shape = (size, CATEGORIES)
    return rng.geometric(1.0 - zeta, size=shape) - rng.geometric(1.0 - zeta, size=shape)


def faulty(data, size, rng):
    root = np.sqrt(CATEGORIES)
    return root * np.eye(CATEGORIES)[data] + _geometric(np.exp(-1.0 / (2.0 * root)), size, rng)


def mended(data, size, rng):
    return np.sqrt(CATEGORIES) * (np.eye(CATEGORIES)[data] + _geometric(np.exp(-0.5), size, rng))


EXHIBIT = dict(
    kind="local and federated",
    source="privateAB 0.0.2, client.release_private('disclapu') (found by this museum)",
    wrong="The indicator is multiplied by an irrational root and gets integer noise: the coordinate with a fractional "
    "part is the category.",
    claim="eps=1",
    domain=ListedDomain(tuple(range(CATEGORIES))),
    pair=(0, 1),
    releases=(published("privateab_disclapu", "client().release_private('disclapu', category, 3, privacy_level=1)"),),
)
