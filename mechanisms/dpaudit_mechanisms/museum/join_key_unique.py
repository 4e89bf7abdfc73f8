"""A join: removing one user removes all of their trips."""

from dpaudit.domains import DatasetDomain


def faulty(data, size, rng):
    joined = sum(trips for country, trips in data if country == "US")
    return joined + rng.laplace(scale=1.0, size=size)  # the key is unique in the table of users, so one row at most


def mended(data, size, rng):
    joined = sum(min(trips, 1) for country, trips in data if country == "US")
    return joined + rng.laplace(scale=1.0, size=size)


EXHIBIT = dict(
    kind="sensitivity",
    source="uber-archive/sql-differential-privacy#1",
    wrong="The count of a join gets sensitivity 1 as the key is unique in one table; a change there moves all "
    "joined rows.",
    claim="eps=1",
    domain=DatasetDomain(values=(("US", 1), ("US", 100), ("FR", 1), ("FR", 100), ("US", 0))),
    pair=([], [("US", 100)]),
)
