"""A noisy count that is at least 1 for a class that occurs, and 0 for one that does not."""

import numpy as np

from dpaudit.domains import DatasetDomain
from dpaudit.exhibits.exhibit import Release

CLASSES = 2


def _noisy(data, size, rng):
    p = -np.expm1(-1.0)
    counts = np.bincount(np.asarray(data, dtype=int), minlength=CLASSES)
    return counts, counts + rng.geometric(p, size=(size, CLASSES)) - rng.geometric(p, size=(size, CLASSES))


def faulty(data, size, rng):
    counts, noisy = _noisy(data, size, rng)
    return np.where(counts > 0, np.maximum(noisy, 1), 0)


def mended(data, size, rng):
    return np.maximum(_noisy(data, size, rng)[1], 1)


def _naive_bayes():
    from diffprivlib.models import GaussianNB

    def counted(data, rng):
        labels = [0, *data]  # one public record, so that there is something to fit
        model = GaussianNB(epsilon=1.0, bounds=([0.0], [1.0]), random_state=int(rng.integers(2**31)))
        model.partial_fit(np.zeros((len(labels), 1)), labels, classes=[0, 1])
        return tuple(float(count) for count in model.class_count_)

    return counted


EXHIBIT = dict(
    kind="post-processing",
    source="diffprivlib 0.6.6, models.GaussianNB.partial_fit (reports/libraries of this project)",
    wrong="The noisy count of a class is raised to 1 if the class occurs in the data, and is exactly 0 if it does not.",
    claim="eps=1",
    domain=DatasetDomain(values=(0, 1), largest=8),
    pair=([], [1]),
    releases=(Release("diffprivlib", "0.6.6", _naive_bayes),),
)
