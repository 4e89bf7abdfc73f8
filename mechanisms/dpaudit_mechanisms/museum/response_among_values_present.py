"""k-ary randomised response whose categories are those that occur in the data."""

import numpy as np

from dpaudit.domains import DatasetDomain
from dpaudit_mechanisms.museum.releases import published

CATEGORIES = ("a", "b", "c", "d")


def _response(categories, data, size, rng):
    k = len(categories)
    if k < 3:
        raise ValueError("Three or more categories are required.")
    places = np.array([categories.index(value) for value in data])
    replaced = rng.random((size, len(data))) < k / (np.e + k - 1.0)
    others = rng.integers(k, size=(size, len(data)))
    return np.array(categories)[np.where(replaced, others, places)]


def faulty(data, size, rng):
    return _response(sorted(set(data)), data, size, rng)


def mended(data, size, rng):
    return _response(CATEGORIES, data, size, rng)


EXHIBIT = dict(
    kind="neighbours",
    source="trasgoDP 2.1.0, dp_randomized_response_kary_array (found by this museum)",
    wrong="The categories are read from the answers that are to be protected: one that nobody gave never comes out.",
    claim="eps=1",
    domain=DatasetDomain(values=CATEGORIES, largest=8, smallest=3, adjacency="replace_one"),
    pair=(["a", "b", "c", "a"], ["a", "b", "c", "d"]),
    releases=(published("trasgodp_response", "dp_randomized_response_kary_array(answers, epsilon=1)"),),
)
