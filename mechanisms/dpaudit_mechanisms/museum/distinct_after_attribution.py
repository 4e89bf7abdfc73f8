"""Distinct values are attributed to one user each before the contributions of a user are bounded."""

from dpaudit.domains import DatasetDomain


def _noisy(count, size, rng):
    return count + rng.laplace(scale=1.0, size=size)


def faulty(data, size, rng):
    owner = {value: user for user, values in enumerate(data) for value in values}  # the last user of a value has it
    return _noisy(len(set(owner.values())), size, rng)  # each user keeps one value


def mended(data, size, rng):
    return _noisy(len({values[0] for values in data}), size, rng)  # each user keeps one, then they are made distinct


EXHIBIT = dict(
    kind="sensitivity",
    source="google/differential-privacy#84",
    wrong="A count of distinct values gives each shared value to one user and bounds users afterwards: an "
    "outlier who has all values takes those of the others away.",
    claim="eps=1",
    domain=DatasetDomain(values=(("a",), ("b",), ("c",), ("d",), ("a", "b", "c", "d")), largest=8),
    pair=([("a",), ("b",), ("c",), ("d",)], [("a",), ("b",), ("c",), ("d",), ("a", "b", "c", "d")]),
)
