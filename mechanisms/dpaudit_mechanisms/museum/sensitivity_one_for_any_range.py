"""The largest value is released with a sensitivity of one, whatever the range."""

import functools

from dpaudit.domains import DatasetDomain
from dpaudit_mechanisms.museum.releases import published

LOW, HIGH = 1.0, 100.0


def _largest(data, size, rng, scale):
    return max(data) + rng.laplace(scale=scale, size=size)


faulty = functools.partial(_largest, scale=1.0)
mended = functools.partial(_largest, scale=HIGH - LOW)

EXHIBIT = dict(
    kind="sensitivity",
    source="diff-priv-laplace-python 1.0.5, DiffPrivStatistics.max, min and median (found by this museum)",
    wrong="Minimum, maximum and median have the sensitivity 1; the documented examples take values from 1 to 100.",
    claim="eps=1",
    domain=DatasetDomain.between(LOW, HIGH, largest=8, smallest=1, adjacency="replace_one"),
    pair=([LOW, LOW], [LOW, HIGH]),
    releases=(published("diff_priv_laplace_max", "DiffPrivStatistics.max(values, epsilon=1)"),),
)
