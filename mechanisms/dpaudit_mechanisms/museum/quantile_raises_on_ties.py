"""A quantile that raises where many records are equal."""

import numpy as np

from dpaudit.domains import DatasetDomain

EPSILON = 2.0


def _intervals(data):
    cuts = np.array([0.0, *sorted(min(max(value, 0.0), 1.0) for value in data), 1.0])
    ranks = np.arange(len(cuts) - 1)
    return cuts, -0.5 * EPSILON * np.abs(ranks - len(data) / 2.0)


def faulty(data, size, rng):
    cuts, utility = _intervals(data)
    weights = np.exp(utility - utility.max()) * np.diff(cuts)
    weights[weights < np.exp(-0.5 * EPSILON * 4)] = 0.0  # what a sum of smaller numbers loses
    if not weights.sum() > 0.0:
        raise RuntimeError("Can't find a candidate to return")
    chosen = rng.choice(len(weights), p=weights / weights.sum(), size=size)
    return cuts[chosen] + rng.random(size) * np.diff(cuts)[chosen]


def mended(data, size, rng):
    cuts, utility = _intervals(data)
    with np.errstate(divide="ignore"):
        logs = utility + np.log(np.diff(cuts))
    weights = np.exp(logs - logs.max())
    chosen = rng.choice(len(weights), p=weights / weights.sum(), size=size)
    return cuts[chosen] + rng.random(size) * np.diff(cuts)[chosen]


EXHIBIT = dict(
    kind="exceptions and sizes",
    source="IBM/differential-privacy-library#107",
    wrong="Equal records make intervals of length zero where the weight is large; the others underflow, and the "
    "call raises.",
    claim="eps=2",
    domain=DatasetDomain.between(0.0, 1.0, largest=12),
    pair=([0.5] * 7, [0.5] * 8),
)
