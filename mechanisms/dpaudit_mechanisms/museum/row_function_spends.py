"""A function of one row can spend budget, and what is left of it is public."""

from dpaudit.domains import DatasetDomain


def _answers(data, left, size, rng):
    return [(count, left) for count in len(data) + rng.laplace(size=size)]


def faulty(data, size, rng):
    left = 10.0 - 1.0 - sum(record == "target" for record in data)  # a query inside of the row's function
    return _answers(data, left, size, rng)


def mended(data, size, rng):
    return _answers(data, 10.0 - 1.0, size, rng)


EXHIBIT = dict(
    kind="accounting",
    source="Differential Privacy Under Fire, USENIX Security 2011 (privacy budget attack)",
    wrong="A row's function may issue queries of its own: the remaining budget then counts the rows that did.",
    claim="eps=1",
    domain=DatasetDomain(values=("a", "b", "target"), largest=8),
    pair=(["a"], ["a", "target"]),
)
