"""Bugs of post-processing: what follows the noise looks at the data once more."""

import numpy as np

from dpaudit.domains import DatasetDomain, NumberDomain
from dpaudit.exhibits.exhibit import Release
from dpaudit_mechanisms.museum.bugs import Bugs, two_sided_geometric

bug = Bugs("post-processing")


def _naive_bayes():
    from diffprivlib.models import GaussianNB

    def counted(data, rng):
        labels = [0, *data]  # one public record, so that there is something to fit
        model = GaussianNB(epsilon=1.0, bounds=([0.0], [1.0]), random_state=int(rng.integers(2**31)))
        model.partial_fit(np.zeros((len(labels), 1)), labels, classes=[0, 1])
        return tuple(float(count) for count in model.class_count_)

    return counted


@bug(
    "diffprivlib 0.6.6, models.GaussianNB.partial_fit (reports/libraries of this project)",
    "The noisy count of a class is raised to 1 if the class occurs in the data, and is exactly 0 if it does not.",
    "eps=1",
    DatasetDomain(values=(0, 1), largest=8),
    ([], [1]),
    releases=(Release("diffprivlib", "0.6.6", _naive_bayes),),
)
def at_least_one_if_it_occurs(data, size, rng, mended):
    """A noisy count that is at least 1 for a class that occurs, and 0 for one that does not."""
    counts = np.bincount(np.asarray(data, dtype=int), minlength=2)
    noisy = np.maximum(counts + two_sided_geometric(1.0, (size, 2), rng), 1)
    if mended:
        return noisy
    return np.where(counts > 0, noisy, 0)


@bug(
    "google/differential-privacy, common_docs/Secure_Noise_Generation.pdf (the input has to be on the noise's grid)",
    "The noise is a multiple of a grain that is coarser than the data, and the sum is not rounded to it.",
    "eps=1",
    DatasetDomain(values=(0, 1_000, 500, 1, 437)),
    ([], [437]),
)
def cents_pass_through(data, size, rng, mended):
    """Amounts in cents, and noise in whole dollars: the last two digits pass through."""
    grain, bound = 100, 1_000  # cents
    total = int(np.clip(data, 0, bound).sum())
    if mended:  # rounding down may move it by one dollar more
        return grain * (total // grain + two_sided_geometric(bound / grain + 1.0, size, rng))
    return total + grain * two_sided_geometric(bound / grain, size, rng)


@bug(
    "pandas documentation of Series.value_counts (descending order), used as value_counts() + noise",
    "value_counts sorts by the true counts, and the noise is added afterwards: the order of the keys is exact.",
    "eps=1",
    DatasetDomain(values=("a", "b", "c"), largest=8),
    (["a", "b"], ["a", "b", "b"]),
)
def keys_in_the_order_of_counts(data, size, rng, mended):
    """Noise is added to counts whose keys come in the order of the true counts."""
    order = sorted(("a", "b", "c"), key=lambda key: (-list(data).count(key), key))
    if mended:
        order = ["a", "b", "c"]
    noise = rng.laplace(size=(size, len(order)))
    counts = [list(data).count(key) for key in order]
    return [[(key, value) for key, value in zip(order, row, strict=True)] for row in (counts + noise).tolist()]


@bug(
    "google/differential-privacy#256",
    "Rejection normalises by the mass inside of the range, which depends on the true answer.",
    "eps=1",
    NumberDomain(0.0, 2.0, change=1.0),
    (0.0, 1.0),
)
def resampled_into_the_range(data, size, rng, mended):
    """Noise is drawn again until the answer is in its range."""
    if mended:
        return np.clip(data + rng.laplace(size=size), 0.0, 2.0)
    answers = np.full(size, np.nan)
    while (left := np.isnan(answers)).any():
        drawn = data + rng.laplace(size=int(left.sum()))
        answers[left] = np.where((drawn < 0.0) | (drawn > 2.0), np.nan, drawn)
    return answers


@bug(
    "world-federation-of-advertisers/cross-media-measurement#2767",
    "The k-anonymity threshold compares the raw number of impressions, so that a zero is certain below it.",
    "eps=1",
    DatasetDomain(values=(0, 1), largest=12),
    ([0] * 4, [0] * 5),
)
def suppressed_by_the_true_count(data, size, rng, mended):
    """A minimum size is asked of the true count, and the noisy one is returned."""
    asked, noisy = len(data), len(data) + rng.laplace(size=size)
    if mended:
        asked = noisy
    return np.where(asked < 5, 0.0, noisy)


@bug(
    "arXiv:1911.00602",
    "Truncating the noise to the valid range and normalising depends on the true answer, and costs up to twice "
    "epsilon.",
    "eps=0.5",
    DatasetDomain(values=(0, 1), largest=6),
    ([], [1]),
)
def truncated_and_normalised(data, size, rng, mended):
    """A Laplace distribution cut off at the range of the answer, and normalised."""
    scale, most = 2.0, 3
    centre = float(min(len(data), most))
    if mended:
        return np.clip(centre + rng.laplace(scale=scale, size=size), 0.0, most)

    def below(value):
        shifted = (value - centre) / scale
        return 0.5 * np.exp(shifted) if shifted < 0.0 else 1.0 - 0.5 * np.exp(-shifted)

    u = rng.uniform(below(0.0), below(float(most)), size=size)  # of the inverse distribution function
    return centre + np.where(u < 0.5, scale * np.log(2.0 * u), -scale * np.log(2.0 * (1.0 - u)))
