"""A function of one row raises, and the whole query with it."""

from dpaudit.domains import DatasetDomain


def _bit(record):
    if record == "target":
        raise ValueError("found")
    return 1.0


def _guarded(record):
    try:
        return _bit(record)
    except ValueError:
        return 0.0


def faulty(data, size, rng):
    return sum(_bit(record) for record in data) + rng.laplace(size=size)


def mended(data, size, rng):
    return sum(_guarded(record) for record in data) + rng.laplace(size=size)


EXHIBIT = dict(
    kind="exceptions and sizes",
    source="Differential Privacy Under Fire, USENIX Security 2011 (state and abort attacks)",
    wrong="An analyst's function of a row may fail on one record and abort the query, which the analyst sees.",
    claim="eps=1",
    domain=DatasetDomain(values=("a", "b", "target"), largest=8),
    pair=(["a"], ["a", "target"]),
)
