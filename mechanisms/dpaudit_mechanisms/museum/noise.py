"""Bugs of noise: of the wrong scale, of the wrong law, or known in advance."""

import zlib

import numpy as np

from dpaudit.domains import DatasetDomain, NumberDomain, VectorDomain
from dpaudit.exhibits.exhibit import Release
from dpaudit_mechanisms.museum.bugs import Bugs, two_sided_geometric
from dpaudit_mechanisms.museum.releases import published

bug = Bugs("noise")
SQUARE = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0))


@bug(
    "DataResponsibly/DataSynthesizer#34",
    "PrivBayes adds noise of scale 2 / (n epsilon), which is for probabilities, to the counts.",
    "eps=1",
    DatasetDomain(values=(0, 1), largest=6, smallest=6, adjacency="replace_one"),
    ([0] * 6, [1] + [0] * 5),
    faulty=2.0 / 6,
    mended=2.0,
)
def counts_for_probabilities(data, size, rng, scale):
    """Noise that is scaled for probabilities is added to counts."""
    return np.bincount(data, minlength=2) + rng.laplace(scale=scale, size=(size, 2))


@bug(
    "alan-turing-institute/tapas#101",
    "The PrivBayes generator has a seed argument with a fixed default value, which makes it deterministic.",
    "eps=1",
    DatasetDomain(values=(0, 1)),
    ([], [1]),
    releases=(published("syndp_laplace", "laplace_mechanism(count, sensitivity=1, epsilon=1)"),),
)
def default_seed(data, size, rng, mended):
    """A generator with a fixed default seed: its output is a function of the data."""
    if mended:
        return len(data) + rng.laplace(size=size)
    return np.full(size, len(data) + np.random.default_rng(0).laplace())


@bug(
    "opendp/smartnoise-sdk#472",
    "MWEM divides the scale of the noise of its measurements by the number of dimensions of the data.",
    "eps=0.5",
    DatasetDomain(values=(0, 1)),
    ([], [1]),
    faulty=2 / (0.5 * 4),  # of 4 dimensions
    mended=2 / 0.5,
)
def divided_by_dimensions(data, size, rng, scale):
    """The noise of measured queries is divided by the number of dimensions of the histogram."""
    return np.sum(data) + rng.laplace(scale=scale, size=(size, 2))  # of 2 queries


@bug(
    "wenzhu23333/Differential-Privacy-Based-Federated-Learning#21",
    "Each client's noise has scale sensitivity * epsilon / times instead of sensitivity * times / epsilon.",
    "eps=0.5",
    DatasetDomain.between(-1.0, 1.0),
    ([], [1.0]),
    faulty=1.0 * 0.5,
    mended=1.0 / 0.5,
)
def epsilon_multiplied(data, size, rng, scale):
    """The scale of Laplace noise is the sensitivity times epsilon."""
    return np.clip(data, -1.0, 1.0).sum() + rng.laplace(scale=scale, size=size)


@bug(
    "WICG/attribution-reporting-api#1329",
    "The text says that Laplace(epsilon / L1) noise gives epsilon: somebody who implements it divides the wrong way.",
    "eps=2",
    NumberDomain(0.0, 100.0, change=10.0),
    (0.0, np.float64(10.0)),
    faulty=2.0 / 10.0,
    mended=10.0 / 2.0,
)
def formula_upside_down(data, size, rng, scale):
    """The documentation of an interface has the scale of the noise upside down."""
    return data + rng.laplace(scale=scale, size=size)


@bug(
    "wenzhu23333/Differential-Privacy-Based-Federated-Learning#2",
    "The branch for Laplace noise draws normal noise of that scale, whose loss has no bound.",
    "eps=1",
    DatasetDomain.between(0.0, 1.0, largest=12),
    ([], [1.0]),
    faulty="normal",
    mended="laplace",
)
def gaussian_for_laplace(data, size, rng, law):
    """Normal noise with the scale of Laplace noise, under a pure claim."""
    return sum(data) + getattr(rng, law)(scale=1.0, size=size)


def _geometric():
    from pydp.ml.mechanisms.geometric import Geometric

    mechanism = Geometric().set_epsilon(1.0).set_sensitivity(1).set_probability(0.5)

    def release(data):
        return int(mechanism.randomise(int(data)))

    return release


@bug(
    "python-dp 1.1.5, pydp.ml.mechanisms.geometric (reports/libraries of this project)",
    "The sampler gives one side of the two-sided geometric distribution: the least output is the true count.",
    "eps=1",
    NumberDomain(0, 20, change=1, integer=True),
    (0, 1),
    releases=(
        Release("python-dp", "1.1.5", _geometric),
        published("diffpriv_pure_count", "private_count(count, epsilon=1)"),
    ),
)
def geometric_of_one_side(data, size, rng, mended):
    """Geometric noise of one side: no output is below the true count."""
    if mended:
        return data + two_sided_geometric(1.0, size, rng)
    return data + rng.geometric(-np.expm1(-1.0), size=size) - 1


@bug(
    "vanderschaarlab/mlforhealthlabpub#36",
    "PATE-GAN draws the noise of the teachers' votes with scale lambda instead of 1 / lambda.",
    "eps=1",  # two counts change by 1 each: epsilon = 2 lambda
    VectorDomain(2, 0, 10, change=1, adjacency="moved", integer=True),
    (np.array([5, 5]), np.array([6, 4])),
    faulty=0.5,
    mended=1.0 / 0.5,
)
def lambda_for_its_inverse(data, size, rng, scale):
    """Laplace noise of scale lambda, where the analysis has its inverse."""
    return np.argmax(np.asarray(data) + rng.laplace(scale=scale, size=(size, 2)), axis=1)


@bug(
    "world-federation-of-advertisers/cross-media-measurement#4387",
    "The noise is seeded by a keyless fingerprint of the data: whoever guesses the data can compute the release, and "
    "test the guess.",
    "eps=1",
    DatasetDomain(values=(0, 1)),
    ([], [1]),
)
def noise_from_fingerprint(data, size, rng, mended):
    """The seed of the noise is a fingerprint of the data, without a key."""
    if mended:
        return len(data) + rng.laplace(size=size)
    seed = zlib.crc32(repr(sorted(data)).encode())
    return np.full(size, len(data) + np.random.default_rng(seed).laplace())


@bug(
    "opendp/smartnoise-core#319",
    "The simple geometric mechanism draws noise within its sampling bounds and does not clamp to them, so that answers "
    "at the ends of the range are possible on one input alone.",
    "eps=1",
    NumberDomain(0, 6, change=1, integer=True),
    (0, 1),
)
def noise_within_the_bounds(data, size, rng, mended):
    """Geometric noise is drawn within the bounds of the query, and the answer is not clamped to them."""
    most = 6
    if mended:
        noise = rng.geometric(1.0 - np.exp(-1.0), size=(2, size))
        return np.clip(int(data) + noise[0] - noise[1], 0, most)
    noise = np.arange(-most, most + 1)
    weights = np.exp(-np.abs(noise).astype(float))
    return int(data) + rng.choice(noise, size=size, p=weights / weights.sum())


@bug(
    "jax-ml/jax#3646",
    "The example of DP-SGD draws the noise of every parameter with the same key: differences of layers have none.",
    "mu=1",
    VectorDomain(3, -1.0, 1.0, change=0.5),
    (np.zeros(3), np.array([0.5, 0.0, -0.5])),
    faulty=1,
    mended=3,
)
def one_key_for_all_layers(data, size, rng, keys):
    """One key of a pseudorandom generator for the noise of all layers."""
    return np.asarray(data) + rng.normal(size=(size, keys)) * np.ones(3)


@bug(
    "eeprivacy 0.0.5, PrivateVectorClampedMeanLaplace (found by this museum)",
    "The mechanism for a single number is given a vector: one draw of noise is added to all coordinates, and their "
    "differences are exact.",
    "eps=1",
    DatasetDomain(values=SQUARE, largest=6, smallest=1, adjacency="replace_one"),
    ([(0.0, 0.0)], [(1.0, 0.0)]),
    faulty=1,
    mended=2,
    releases=(published("eeprivacy_vector_mean", "PrivateVectorClampedMeanLaplace(...).execute(vectors, epsilon=1)"),),
)
def one_noise_for_the_vector(data, size, rng, coordinates):
    """The same draw of noise is added to every coordinate of a mean."""
    vectors = np.clip(np.asarray(data, dtype=float), 0.0, 1.0)  # (records, 2)
    return (vectors.sum(axis=0) + rng.laplace(scale=2, size=(size, coordinates))) / len(vectors)


@bug(
    "IBM/differential-privacy-library#31",
    "The same seed for several mechanisms gives the sums of all columns the same noise: their difference is exact.",
    "eps=2",
    DatasetDomain(values=SQUARE),
    ([], [(1.0, 0.0)]),
)
def one_seed_for_all_columns(data, size, rng, mended):
    """One seed for the mechanisms of all columns: their noise is the same."""
    sums = np.clip(np.reshape(data, (-1, 2)), 0.0, 1.0).sum(axis=0)
    if mended:
        return sums + rng.laplace(size=(size, 2))
    seeds = rng.integers(2**32, size=size)
    return sums + np.array([[np.random.default_rng(seed).laplace() for _ in range(2)] for seed in seeds.tolist()])


@bug(
    "privcount/privcount#400",
    "If one counter has sensitivity 0, the allocation of the budget gives every counter a sigma of 0.",
    "mu=1",
    NumberDomain(0.0, 20.0, change=1.0),
    (0.0, 1.0),
    faulty=0.0,  # the allocation fails, and is all zeros
    mended=1.0,
)
def one_zero_sensitivity(data, size, rng, sigma):
    """One counter of sensitivity zero turns the noise of all counters off."""
    return np.array([data, 7.0]) + np.array([sigma, 0.0]) * rng.normal(size=(size, 2))  # the second one is public


@bug(
    "opendp/smartnoise-core#316",
    "The standard deviation of the Gaussian mechanism is squared, which makes it smaller where it is below 1.",
    "mu=2",
    DatasetDomain.between(0.0, 1.0),
    ([], [1.0]),
    faulty=0.5**2,
    mended=0.5,
)
def sigma_squared(data, size, rng, sigma):
    """The scale of Gaussian noise is squared before it is passed on."""
    return np.clip(data, 0.0, 1.0).sum() + rng.normal(scale=sigma, size=size)
