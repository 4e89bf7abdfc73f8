"""Bugs of what is not a number: NaN, NULL and missing values."""

import math

import numpy as np

from dpaudit.domains import DatasetDomain
from dpaudit.exhibits.exhibit import Release
from dpaudit_mechanisms.museum.bugs import Bugs

bug = Bugs("not a number")


@bug(
    "opendp/smartnoise-sdk#418",
    "Imputation that reads the data (mean, median) moves all imputed values when one record changes.",
    "eps=1",
    DatasetDomain(values=(0.0, 1.0, math.nan), largest=10),
    ([math.nan] * 6, [1.0, *[math.nan] * 6]),
)
def imputed_by_the_mean(data, size, rng, mended):
    """Missing values are imputed by the mean of the data before the private sum."""
    known = [value for value in data if not math.isnan(value)]
    fill = float(np.mean(np.clip(known, 0.0, 1.0))) if known else 0.0
    if mended:
        fill = 0.5
    return sum(fill if math.isnan(value) else min(max(value, 0.0), 1.0) for value in data) + rng.laplace(size=size)


def _nanmean():
    from diffprivlib.tools import nanmean

    def release(data, rng):
        seed = int(rng.integers(2**31))
        return float(nanmean(np.array(data, dtype=float), epsilon=1.0, bounds=(0.0, 1.0), random_state=seed))

    return release


@bug(
    "diffprivlib 0.6.6, tools.nanmean (reports/libraries of this project)",
    "The sensitivity is the range over the number of all entries, the mean is over those that are no NaN.",
    "eps=1",
    DatasetDomain(values=(0.0, 1.0, math.nan), largest=8, smallest=8, adjacency="replace_one"),
    ([0.0, *[math.nan] * 7], [1.0, *[math.nan] * 7]),
    releases=(Release("diffprivlib", "0.6.6", _nanmean),),
)
def missing_counted_in_n(data, size, rng, mended):
    """The mean of the values that are there, with noise for all records, those without a value included."""
    values = np.asarray(data, dtype=float)
    known = values[~np.isnan(values)]
    if mended:
        known = np.nan_to_num(values, nan=0.5)
    mean = float(np.clip(known, 0.0, 1.0).sum()) / max(len(known), 1)
    return mean + rng.laplace(scale=1.0 / len(values), size=size)


@bug(
    "google/differential-privacy#405",
    "Comparisons with NaN are false, so ClampFloat64 returns it: one record makes the bounded sum NaN.",
    "eps=1",
    DatasetDomain.between(-1.0, 2.0, special=(math.nan,)),
    ([0.5], [0.5, math.nan]),
)
def nan_passes_the_clamp(data, size, rng, mended):
    """A clamp by two comparisons lets NaN through."""

    def clamped(value):
        if mended:
            value = 0.0 if math.isnan(value) else value
        if value > 1.0:
            return 1.0
        return 0.0 if value < 0.0 else value

    return sum(clamped(value) for value in data) + rng.laplace(size=size)


@bug(
    "opendp/opendp#2938",
    "A cast that is not strict makes nulls and keeps 'no nulls' in the domain, so the count of a frame of known length "
    "is free of charge, and exact.",
    "eps=1",
    DatasetDomain(values=(0.0, 1.0, math.nan), largest=6, smallest=6, adjacency="replace_one"),
    ([0.0] * 6, [math.nan] + [0.0] * 5),
)
def not_null_after_a_cast(data, size, rng, mended):
    """A column that cannot be null is cast, and what cannot be cast becomes null."""
    whole = [None if value != value else int(value) for value in data]
    count = sum(value is not None for value in whole)
    if mended:
        return count + rng.laplace(size=size)
    return np.full(size, count)  # of a column without nulls it is public


@bug(
    "facebookincubator/velox#14007",
    "noisy_count_gaussian returns NULL when the true count is 0, as its documentation says: no noise there.",
    "mu=1",
    DatasetDomain(values=(0, 1)),
    ([0], [1]),
)
def null_where_the_count_is_zero(data, size, rng, mended):
    """A noisy count that is NULL where the true count is zero."""
    if sum(data) == 0 and not mended:
        return np.full(size, np.nan)
    return sum(data) + rng.normal(size=size)


@bug(
    "opendp/smartnoise-sdk#92",
    "One record against none: the sum of an empty table is NULL instead of noise around 0.",
    "eps=1",
    DatasetDomain.between(0.0, 1.0),
    ([], [1.0]),
)
def sum_of_nothing_is_null(data, size, rng, mended):
    """SUM over no rows is NULL, which is passed on as it is."""
    if not len(data) and not mended:
        return np.full(size, np.nan)
    return np.clip(data, 0.0, 1.0).sum() + rng.laplace(size=size)
