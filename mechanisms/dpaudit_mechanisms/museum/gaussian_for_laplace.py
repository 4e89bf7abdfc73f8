"""Normal noise with the scale of Laplace noise, under a pure claim."""

from dpaudit.domains import DatasetDomain


def faulty(data, size, rng):
    return sum(data) + rng.normal(scale=1.0, size=size)


def mended(data, size, rng):
    return sum(data) + rng.laplace(scale=1.0, size=size)


EXHIBIT = dict(
    kind="noise",
    source="wenzhu23333/Differential-Privacy-Based-Federated-Learning#2",
    wrong="The branch for Laplace noise draws normal noise of that scale, whose loss has no bound.",
    claim="eps=1",
    domain=DatasetDomain.between(0.0, 1.0, largest=12),
    pair=([], [1.0]),
)
