"""A column that cannot be null is cast, and what cannot be cast becomes null."""

import numpy as np

from dpaudit.domains import DatasetDomain

RECORDS = 6


def _whole(value):
    return None if value != value else int(value)


def faulty(data, size, rng):
    return np.full(size, sum(_whole(value) is not None for value in data))  # of a column without nulls it is public


def mended(data, size, rng):
    return sum(_whole(value) is not None for value in data) + rng.laplace(size=size)


EXHIBIT = dict(
    kind="not a number",
    source="opendp/opendp#2938",
    wrong="A cast that is not strict makes nulls and keeps 'no nulls' in the domain, so the count of a frame of "
    "known length is free of charge, and exact.",
    claim="eps=1",
    domain=DatasetDomain(values=(0.0, 1.0, float("nan")), largest=RECORDS, smallest=RECORDS, adjacency="replace_one"),
    pair=([0.0] * RECORDS, [float("nan")] + [0.0] * (RECORDS - 1)),
)
