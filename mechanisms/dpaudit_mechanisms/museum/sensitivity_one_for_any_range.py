"""The largest value is released with a sensitivity of one, whatever the range."""

from dpaudit.domains import DatasetDomain
from dpaudit.exhibits.exhibit import Release
from dpaudit_mechanisms.museum.releases import program

LOW, HIGH = 1.0, 100.0


def _largest(scale, data, size, rng):
    return max(data) + rng.laplace(scale=scale, size=size)


def faulty(data, size, rng):
    return _largest(1.0, data, size, rng)


def mended(data, size, rng):
    return _largest(HIGH - LOW, data, size, rng)


EXHIBIT = dict(
    kind="sensitivity",
    source="diff-priv-laplace-python 1.0.5, DiffPrivStatistics.max, min and median (found by this museum)",
    wrong="Minimum, maximum and median have the sensitivity 1; the documented examples take values from 1 to 100.",
    claim="eps=1",
    domain=DatasetDomain.between(LOW, HIGH, largest=8, smallest=1, adjacency="replace_one"),
    pair=([LOW, LOW], [LOW, HIGH]),
    releases=(
        Release(
            "diff-priv-laplace-python",
            "1.0.5",
            program=program("diff_priv_laplace_max"),
            needs=("numpy",),
            called="DiffPrivStatistics.max(values, epsilon=1)",
        ),
    ),
)
