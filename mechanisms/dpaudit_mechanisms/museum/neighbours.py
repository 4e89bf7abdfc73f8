"""Bugs of neighbours: what one record changes is more than was thought."""

import numpy as np

from dpaudit.domains import DatasetDomain
from dpaudit_mechanisms.museum.bugs import Bugs
from dpaudit_mechanisms.museum.releases import published

bug = Bugs("neighbours")


@bug(
    "meta-pytorch/opacus#571",
    "The noisy sum is divided by floor(rate * n): the scale of all coordinates tells whether n is odd (also #819).",
    "mu=1",
    DatasetDomain.between(0.0, 1.0, largest=8, smallest=2),
    ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]),
)
def batch_divided_by_n(data, size, rng, mended):
    """A gradient sum is divided by the sampling rate times the number of records, rounded down."""
    dimension, batch = 8, max(int(0.5 * len(data)), 1)
    if mended:
        batch = 4.0  # a public expected batch
    gradient = np.full(dimension, np.clip(data, 0.0, 1.0).sum() / np.sqrt(dimension))  # l2 sensitivity 1
    return (gradient + rng.normal(size=(size, dimension))) / batch


@bug(
    "google/differential-privacy#464",
    "The accountant takes noise over the clipping norm for noise over the sensitivity under replace-one adjacency, "
    "where two clipped records differ by twice the norm.",
    "mu=1",
    DatasetDomain.between(-1.0, 1.0, largest=6, smallest=1, adjacency="replace_one"),
    ([-1.0], [1.0]),
    faulty=1.0,
    mended=2.0,
)
def clip_norm_for_a_replaced_record(data, size, rng, sigma):
    """One record is replaced, and the noise is that of a record which is added: the clipping norm, once."""
    return np.clip(data, -1.0, 1.0).sum() + rng.normal(scale=sigma, size=size)


@bug(
    "google/dpsynth#34",
    "Quantiles are private, but the exact minimum and maximum they start from are returned in the descriptor.",
    "eps=1",
    DatasetDomain.between(0.0, 10.0, smallest=1),
    ([5.0, 5.0], [5.0, 5.0, 10.0]),
    releases=(published("datasynthesizer_range", "describe_dataset_in_independent_attribute_mode(file, epsilon=1)"),),
)
def exact_range_in_metadata(data, size, rng, mended):
    """The exact least and largest value are written into the description of the release."""
    low, high = float(np.min(data)), float(np.max(data))
    if mended:
        low, high = 0.0, 10.0
    return [(low, high, count) for count in len(data) + rng.laplace(size=size)]


@bug(
    "sassoftware/dpmm#18",
    "Where no domain is given it is inferred as max + 1 of each column, so that the shape of the release tells the "
    "largest value.",
    "eps=1",
    DatasetDomain(values=tuple(range(6))),
    ([0], [0, 5]),
)
def largest_value_plus_one(data, size, rng, mended):
    """The domain of a histogram is the largest value in the data, plus one."""
    cells = max(data, default=0) + 1
    if mended:
        cells = 6
    return list(np.bincount(np.asarray(data, dtype=int), minlength=cells)[:cells] + rng.laplace(size=(size, cells)))


@bug(
    "opendp/smartnoise-core#356",
    "The sensitivity of the mean under add/remove is taken over neighbours of this dataset alone, (U - L) / n, so the "
    "scale of the noise tells n.",
    "eps=1",
    DatasetDomain.between(0.0, 1.0),
    ([0.0], [0.0, 1.0]),
)
def mean_with_private_n(data, size, rng, mended):
    """The mean under addition and removal, with the private number of records in its sensitivity."""
    total, n = np.clip(data, 0.0, 1.0).sum(), max(len(data), 1)
    if mended:
        noise = rng.laplace(scale=2.0, size=(2, size))
        return np.stack([total + noise[0], len(data) + noise[1]], axis=1)  # (size, 2)
    return total / n + rng.laplace(scale=1.0 / n, size=size)


@bug(
    "trasgoDP 2.1.0, dp_randomized_response_kary_array (found by this museum)",
    "The categories are read from the answers that are to be protected: one that nobody gave never comes out.",
    "eps=1",
    DatasetDomain(values=("a", "b", "c", "d"), largest=8, smallest=3, adjacency="replace_one"),
    (["a", "b", "c", "a"], ["a", "b", "c", "d"]),
    releases=(published("trasgodp_response", "dp_randomized_response_kary_array(answers, epsilon=1)"),),
)
def response_among_values_present(data, size, rng, mended):
    """k-ary randomised response whose categories are those that occur in the data."""
    categories = sorted(set(data))
    if mended:
        categories = ["a", "b", "c", "d"]
    k = len(categories)
    if k < 3:
        raise ValueError("Three or more categories are required.")
    places = np.array([categories.index(value) for value in data])
    replaced = rng.random((size, len(data))) < k / (np.e + k - 1.0)
    others = rng.integers(k, size=(size, len(data)))
    return np.array(categories)[np.where(replaced, others, places)]


@bug(
    "arXiv:1909.01917",
    "COUNT(*) is noised as if each user owned one row; the promise is for a user with all rows.",
    "eps=1",
    DatasetDomain(values=(("a",), ("a", "b"), ("a",) * 5, ())),
    ([], [("a",) * 5]),
)
def rows_for_users(data, size, rng, mended):
    """The noise hides one row, and a user has several."""
    if mended:  # two rows of a user count
        return np.sum([min(len(rows), 2) for rows in data]) + rng.laplace(scale=2, size=size)
    return sum(len(rows) for rows in data) + rng.laplace(size=size)
