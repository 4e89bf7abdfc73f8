"""A mean that promises to clamp clamps its answer, not the values."""

import numpy as np

from dpaudit.domains import DatasetDomain
from dpaudit_mechanisms.museum.releases import published


def _mean(values, size, rng):
    return np.clip((values.sum() + rng.laplace(size=size)) / len(values), 0.0, 1.0)


def faulty(data, size, rng):
    return _mean(np.asarray(data, dtype=float), size, rng)


def mended(data, size, rng):
    return _mean(np.clip(np.asarray(data, dtype=float), 0.0, 1.0), size, rng)


EXHIBIT = dict(
    kind="sensitivity",
    source="eeprivacy 0.0.5, PrivateClampedMean (found by this museum)",
    wrong="The mean that bounds sensitivity with clamping clamps the noisy answer; one value far beyond the bounds "
    "moves it from end to end.",
    claim="eps=1",
    domain=DatasetDomain(values=(0.0, 1.0, 0.5, 100.0, -100.0), largest=6, smallest=1, adjacency="replace_one"),
    pair=([0.0, 0.0], [0.0, 100.0]),
    releases=(
        published(
            "eeprivacy_clamped_mean", "PrivateClampedMean(lower_bound=0, upper_bound=1).execute(values, epsilon=1)"
        ),
    ),
)
