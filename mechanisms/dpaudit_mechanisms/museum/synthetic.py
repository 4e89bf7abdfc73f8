"""Bugs of synthetic data: the domain, the range or the frequencies come from the data."""

import numpy as np

from dpaudit.domains import DatasetDomain
from dpaudit_mechanisms.museum.bugs import Bugs

bug = Bugs("synthetic data")
HUNDRED = DatasetDomain.between(0.0, 100.0, largest=8)
CATEGORIES = ("a", "b", "c", "rare")


@bug(
    "hazy/dpart#6",
    "PrivBayes was not given the bounds of the data and took them from the data.",
    "eps=1",
    HUNDRED,
    ([10.0, 20.0], [10.0, 20.0, 100.0]),
)
def bins_between_the_extremes(data, size, rng, mended):
    """The bins of a synthesiser lie between the least and the largest value of the data."""
    low, high = min(data, default=0.0), max(data, default=0.0)
    if mended:
        low, high = 0.0, 100.0
    edges = np.linspace(low, high, 4 + 1)
    counts = np.histogram(np.clip(data, low, high), edges)[0] if high > low else np.zeros(4)
    noisy = np.maximum(counts + rng.laplace(size=(size, 4)), 0.0) + 0.1
    chosen = [rng.choice(4, p=row / row.sum()) for row in noisy]
    return (edges[chosen] + edges[np.add(chosen, 1)]) / 2.0  # one synthetic value


@bug(
    "alan-turing-institute/reprosyn#38",
    "Methods read the domain from the data set that they are given: a rare category can come out only if it went in.",
    "eps=1",
    DatasetDomain(values=CATEGORIES, largest=8),
    (["a", "b"], ["a", "b", "rare"]),
)
def categories_of_the_data(data, size, rng, mended):
    """Synthetic records take their categories from the data."""
    domain = sorted(set(data)) or ["a"]
    if mended:
        domain = CATEGORIES
    counts = np.array([list(data).count(value) for value in domain])
    noisy = np.maximum(counts + rng.laplace(size=(size, len(domain))), 0.0) + 0.05
    picks = [rng.choice(len(domain), p=row / row.sum(), size=6) for row in noisy]
    return [tuple(domain[k] for k in sorted(row.tolist())) for row in picks]


@bug(
    "opendp/smartnoise-sdk#301",
    "The DataSampler of CTGAN takes the frequencies of the data (noisy ones since pull request 426): a category that "
    "nobody has is never drawn.",
    "eps=1",
    DatasetDomain(values=(0, 1, 2), largest=8),
    ([0], [0, 1]),
)
def exact_category_frequencies(data, size, rng, mended):
    """A conditional sampler draws categories with their exact frequencies."""

    def conditions(counts, draws):
        positive = np.maximum(counts, 0.0)
        share = positive / positive.sum() if positive.sum() > 0.0 else np.full(len(positive), 1.0 / len(positive))
        return rng.choice(len(positive), p=share, size=draws)

    counts = np.bincount(data, minlength=3)
    if mended:
        return np.array([conditions(row, 1)[0] for row in counts + rng.laplace(size=(size, 3))])
    return conditions(counts.astype(float), size)


@bug(
    "arXiv:2011.07018",
    "PATE-GAN and PrivBayes implementations learn ranges and categories from the raw data: an outlier shows in the "
    "synthetic data, whatever the noise.",
    "eps=1",
    DatasetDomain(values=(0.0, 1.0, 2.0, 50.0), largest=8),
    ([1.0, 2.0], [1.0, 2.0, 50.0]),
)
def outlier_shapes_the_domain(data, size, rng, mended):
    """An outlier widens the grid on which all synthetic values lie."""
    high = max([*data, 1.0])
    if mended:
        high = 50.0
    counts = np.histogram(np.clip(data, 0.0, high), np.linspace(0.0, high, 10 + 1))[0]
    return high * np.argmax(counts + rng.laplace(size=(size, 10)), axis=1) / (10 - 1)


@bug(
    "vanderschaarlab/synthcity#278",
    "PATE-GAN extracts the minimum and maximum of each column from the data without privacy.",
    "eps=1",
    HUNDRED,
    ([10.0, 20.0], [10.0, 20.0, 100.0]),
)
def scaler_of_the_data(data, size, rng, mended):
    """A generator scales the data by their own least and largest values, and scales back."""
    low, high = min(data, default=0.0), max(data, default=1.0)
    if mended:
        low, high = 0.0, 100.0
    scaled = (np.clip(data, low, high) - low) / (high - low) if high > low else np.zeros(len(data))
    total = scaled.sum() + rng.laplace(size=size)  # what the model learns, privately
    return low + (high - low) / (1.0 + np.exp(-total))
