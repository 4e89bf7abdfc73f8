"""A sum of small integers wraps around."""

import numpy as np

from dpaudit.domains import DatasetDomain

BOUND = 100


def faulty(data, size, rng):
    total = np.sum(np.clip(data, 0, BOUND).astype(np.int8), dtype=np.int8)
    return int(total) + rng.laplace(scale=BOUND, size=size)


def mended(data, size, rng):
    return int(np.sum(np.clip(data, 0, BOUND))) + rng.laplace(scale=BOUND, size=size)


EXHIBIT = dict(
    kind="floating point",
    source="arXiv:2207.10635 (overflow)",
    wrong="The sensitivity is that of a sum of integers; the sum of machine integers jumps by 2**8 where it overflows.",
    claim="eps=1",
    domain=DatasetDomain(values=(0, 100, 50, 27)),
    pair=([100], [100, 50]),
)
