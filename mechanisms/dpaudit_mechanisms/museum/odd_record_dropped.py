"""Records are paired off, and an odd one is dropped: one more record changes which one that is."""

import numpy as np

from dpaudit.domains import DatasetDomain


def _pairs(data):
    even = data[: len(data) // 2 * 2]
    return float(np.clip(np.subtract(even[1::2], even[::2]), -1.0, 1.0).sum())


def faulty(data, size, rng):
    return _pairs(data) + rng.laplace(scale=1.0, size=size)


def mended(data, size, rng):
    slot = [[record for place, record in enumerate(data) if record == kind] for kind in (0.0, 1.0)]
    return float(len(slot[1])) + rng.laplace(scale=1.0, size=size)  # no pairing: each record counts by itself


EXHIBIT = dict(
    kind="sensitivity",
    source="opendp/opendp#2950",
    wrong="Theil-Sen pairs records off and drops the last of an odd number, so that one added record can take another "
    "one's place: the stability is not 1.",
    claim="eps=1",
    domain=DatasetDomain(values=(0.0, 1.0), largest=9),
    pair=([0.0, 1.0], [1.0, 0.0, 1.0]),
)
