"""A count of no rows ends the server."""

from dpaudit.domains import DatasetDomain


def faulty(data, size, rng):
    matching = [record for record in data if record == 2]
    if not matching:
        raise ConnectionError("server closed the connection unexpectedly")
    return len(matching) + rng.laplace(size=size)


def mended(data, size, rng):
    return len([record for record in data if record == 2]) + rng.laplace(size=size)


EXHIBIT = dict(
    kind="exceptions and sizes",
    source="google/differential-privacy#5",
    wrong="ANON_COUNT over a subquery without rows crashes the database: the crash says that nobody matches.",
    claim="eps=1",
    domain=DatasetDomain(values=(0, 1, 2), largest=8),
    pair=([0], [0, 2]),
)
