"""The mean of the values that are there, with noise for all records, those without a value included."""

import numpy as np

from dpaudit.domains import DatasetDomain
from dpaudit.exhibits.exhibit import Release


def _mean(data):
    values = np.asarray(data, dtype=float)
    values = values[~np.isnan(values)]
    return values, float(np.clip(values, 0.0, 1.0).sum()) / max(len(values), 1)


def faulty(data, size, rng):
    return _mean(data)[1] + rng.laplace(scale=1.0 / len(data), size=size)


def mended(data, size, rng):
    values = np.nan_to_num(np.asarray(data, dtype=float), nan=0.5)
    return float(np.clip(values, 0.0, 1.0).sum()) / len(data) + rng.laplace(scale=1.0 / len(data), size=size)


def _nanmean():
    from diffprivlib.tools import nanmean

    def release(data, rng):
        seed = int(rng.integers(2**31))
        return float(nanmean(np.array(data, dtype=float), epsilon=1.0, bounds=(0.0, 1.0), random_state=seed))

    return release


EXHIBIT = dict(
    kind="not a number",
    source="diffprivlib 0.6.6, tools.nanmean (reports/libraries of this project)",
    wrong="The sensitivity is the range over the number of all entries, the mean is over those that are no NaN.",
    claim="eps=1",
    domain=DatasetDomain(values=(0.0, 1.0, float("nan")), largest=8, smallest=8, adjacency="replace_one"),
    pair=([0.0, *[float("nan")] * 7], [1.0, *[float("nan")] * 7]),
    releases=(Release("diffprivlib", "0.6.6", _nanmean),),
)
