"""Missing values are imputed by the mean of the data before the private sum."""

import math

import numpy as np

from dpaudit.domains import DatasetDomain


def _total(data, fill):
    return sum(fill if math.isnan(value) else min(max(value, 0.0), 1.0) for value in data)


def faulty(data, size, rng):
    known = [value for value in data if not math.isnan(value)]
    return _total(data, float(np.mean(np.clip(known, 0.0, 1.0))) if known else 0.0) + rng.laplace(size=size)


def mended(data, size, rng):
    return _total(data, 0.5) + rng.laplace(size=size)


EXHIBIT = dict(
    kind="not a number",
    source="opendp/smartnoise-sdk#418",
    wrong="Imputation that reads the data (mean, median) moves all imputed values when one record changes.",
    claim="eps=1",
    domain=DatasetDomain(values=(0.0, 1.0, math.nan), largest=10),
    pair=([math.nan] * 6, [1.0, *[math.nan] * 6]),
)
