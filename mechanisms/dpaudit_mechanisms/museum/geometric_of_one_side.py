"""Geometric noise of one side: no output is below the true count."""

import numpy as np

from dpaudit.domains import NumberDomain
from dpaudit.exhibits.exhibit import Release
from dpaudit_mechanisms.museum.releases import published

P = -np.expm1(-1.0)


def faulty(data, size, rng):
    return data + rng.geometric(P, size=size) - 1


def mended(data, size, rng):
    return data + rng.geometric(P, size=size) - rng.geometric(P, size=size)


def _geometric():
    from pydp.ml.mechanisms.geometric import Geometric

    mechanism = Geometric().set_epsilon(1.0).set_sensitivity(1).set_probability(0.5)

    def release(data):
        return int(mechanism.randomise(int(data)))

    return release


EXHIBIT = dict(
    kind="noise",
    source="python-dp 1.1.5, pydp.ml.mechanisms.geometric (reports/libraries of this project)",
    wrong="The sampler gives one side of the two-sided geometric distribution: the least output is the true count.",
    claim="eps=1",
    domain=NumberDomain(0, 20, change=1, integer=True),
    pair=(0, 1),
    releases=(
        Release("python-dp", "1.1.5", _geometric),
        published("diffpriv_pure_count", "private_count(count, epsilon=1)"),
    ),
)
