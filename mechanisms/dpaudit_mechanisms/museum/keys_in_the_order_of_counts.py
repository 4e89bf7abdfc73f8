"""Noise is added to counts whose keys come in the order of the true counts."""

from dpaudit.domains import DatasetDomain

KEYS = ("a", "b", "c")


def _released(order, data, size, rng):
    noise = rng.laplace(size=(size, len(KEYS)))
    counts = [list(data).count(key) for key in order]
    return [[(key, value) for key, value in zip(order, row, strict=True)] for row in (counts + noise).tolist()]


def faulty(data, size, rng):
    return _released(sorted(KEYS, key=lambda key: (-list(data).count(key), key)), data, size, rng)


def mended(data, size, rng):
    return _released(KEYS, data, size, rng)


EXHIBIT = dict(
    kind="post-processing",
    source="pandas documentation of Series.value_counts (descending order), used as value_counts() + noise",
    wrong="value_counts sorts by the true counts, and the noise is added afterwards: the order of the keys is exact.",
    claim="eps=1",
    domain=DatasetDomain(values=KEYS, largest=8),
    pair=(["a", "b"], ["a", "b", "b"]),
)
