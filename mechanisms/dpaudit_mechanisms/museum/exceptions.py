"""Bugs of exceptions and sizes: whether a call raises, and how much it returns, is part of its output."""

import numpy as np

from dpaudit.domains import DatasetDomain
from dpaudit_mechanisms.museum.bugs import Bugs

bug = Bugs("exceptions and sizes")


@bug(
    "diffix/syndiffix#31",
    "The synthetic table has as many rows as the original one; the pull request adds noise to their number.",
    "eps=1",
    DatasetDomain(values=(0, 1), largest=8),
    ([0, 1], [0, 1, 1]),
    faulty=None,
    mended=5,
)
def as_many_as_there_were(data, size, rng, rows):
    """Synthetic records, as many as there were real ones."""

    def synthetic():
        counts = np.maximum(np.bincount(np.asarray(data, dtype=int), minlength=2) + rng.laplace(size=2), 0.0) + 1e-9
        drawn = rng.choice(2, p=counts / counts.sum(), size=len(data) if rows is None else rows)
        return tuple(int(value) for value in drawn)

    return [synthetic() for _ in range(size)]


@bug(
    "google/differential-privacy#5",
    "ANON_COUNT over a subquery without rows crashes the database: the crash says that nobody matches.",
    "eps=1",
    DatasetDomain(values=(0, 1, 2), largest=8),
    ([0], [0, 2]),
)
def empty_subquery_ends_the_server(data, size, rng, mended):
    """A count of no rows ends the server."""
    matching = [record for record in data if record == 2]
    if not matching and not mended:
        raise ConnectionError("server closed the connection unexpectedly")
    return len(matching) + rng.laplace(size=size)


@bug(
    "IBM/differential-privacy-library#107",
    "Equal records make intervals of length zero where the weight is large; the others underflow, and the call raises.",
    "eps=2",
    DatasetDomain.between(0.0, 1.0, largest=12),
    ([0.5] * 7, [0.5] * 8),
)
def quantile_raises_on_ties(data, size, rng, mended):
    """A quantile that raises where many records are equal."""
    epsilon = 2.0
    cuts = np.array([0.0, *sorted(min(max(value, 0.0), 1.0) for value in data), 1.0])
    utility = -0.5 * epsilon * np.abs(np.arange(len(cuts) - 1) - len(data) / 2.0)
    if mended:
        with np.errstate(divide="ignore"):
            logs = utility + np.log(np.diff(cuts))
        weights = np.exp(logs - logs.max())
    else:
        weights = np.exp(utility - utility.max()) * np.diff(cuts)
        weights[weights < np.exp(-0.5 * epsilon * 4)] = 0.0  # what a sum of smaller numbers loses
        if not weights.sum() > 0.0:
            raise RuntimeError("Can't find a candidate to return")
    chosen = rng.choice(len(weights), p=weights / weights.sum(), size=size)
    return cuts[chosen] + rng.random(size) * np.diff(cuts)[chosen]


@bug(
    "opendp/smartnoise-sdk#75",
    "SUM and COUNT raise a TypeError on an empty database, and return a noisy number on any other one.",
    "eps=1",
    DatasetDomain.between(0.0, 1.0),
    ([], [1.0]),
)
def query_on_an_empty_table_raises(data, size, rng, mended):
    """A query raises on an empty table."""
    if mended:
        return float(np.clip(data, 0.0, 1.0).sum()) + rng.laplace(size=size)
    total = None
    for value in data:
        total = min(max(value, 0.0), 1.0) + (total or 0.0)
    return total + rng.laplace(size=size)  # None of an empty table


@bug(
    "Differential Privacy Under Fire, USENIX Security 2011 (state and abort attacks)",
    "An analyst's function of a row may fail on one record and abort the query, which the analyst sees.",
    "eps=1",
    DatasetDomain(values=("a", "b", "target"), largest=8),
    (["a"], ["a", "target"]),
)
def row_function_raises(data, size, rng, mended):
    """A function of one row raises, and the whole query with it."""

    def bit(record):
        if record == "target":
            if mended:
                return 0.0
            raise ValueError("found")
        return 1.0

    return sum(bit(record) for record in data) + rng.laplace(size=size)
