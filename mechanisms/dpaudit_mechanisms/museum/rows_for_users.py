"""The noise hides one row, and a user has several."""

import numpy as np

from dpaudit.domains import DatasetDomain

MAX_ROWS = 2  # rows of a user that the mended version counts


def faulty(data, size, rng):
    return sum(len(rows) for rows in data) + rng.laplace(size=size)


def mended(data, size, rng):
    return np.sum([min(len(rows), MAX_ROWS) for rows in data]) + rng.laplace(scale=MAX_ROWS, size=size)


EXHIBIT = dict(
    kind="neighbours",
    source="arXiv:1909.01917",
    wrong="COUNT(*) is noised as if each user owned one row; the promise is for a user with all rows.",
    claim="eps=1",
    domain=DatasetDomain(values=(("a",), ("a", "b"), ("a",) * 5, ())),
    pair=([], [("a",) * 5]),
)
