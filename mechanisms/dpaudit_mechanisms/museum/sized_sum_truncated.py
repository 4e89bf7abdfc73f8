"""A sensitivity of one and a half is computed in whole numbers."""

import numpy as np

from dpaudit.domains import DatasetDomain
from dpaudit_mechanisms.museum.releases import published

LOW, HIGH = 0, 3


def _geometric(scale, size, rng):
    """Two-sided geometric noise: P(k) proportional to exp(-|k| / scale)."""
    p = -np.expm1(-1.0 / scale)
    return rng.geometric(p, size=size) - rng.geometric(p, size=size)


def faulty(data, size, rng):
    sensitivity = 2 * ((HIGH - LOW) // 2)  # a replacement is a removal and an addition, each half of the range
    return int(np.clip(data, LOW, HIGH).sum()) + _geometric(sensitivity, size, rng)


def mended(data, size, rng):
    return int(np.clip(data, LOW, HIGH).sum()) + _geometric(HIGH - LOW, size, rng)


EXHIBIT = dict(
    kind="sensitivity",
    source="opendp/opendp#314",
    wrong="The sensitivity of a sum of known size is half an odd range, and integer division rounds it down.",
    claim="eps=1",
    domain=DatasetDomain(values=(0, 1, 2, 3), largest=5, smallest=1, adjacency="replace_one"),
    pair=([0], [3]),
    releases=(published("opendp_sized_sum", "make_sized_bounded_sum(size, (0, 3)) >> make_base_geometric(scale=2)"),),
)
