"""Bugs of accounting: what is spent is more than what is charged."""

import numpy as np

from dpaudit.domains import DatasetDomain
from dpaudit_mechanisms.museum.bugs import Bugs

bug = Bugs("accounting")


@bug(
    "google-deepmind/jax_privacy#287",
    "The check of a noise multiplier uses batch_size / n and leaves out the steps of gradient accumulation.",
    "eps=0.5,delta=0.1",
    DatasetDomain.between(0.0, 1.0, largest=6),
    ([], [1.0]),
    faulty=0.1 * 8,  # 8 steps are accumulated
    mended=0.1,  # delta is at most the rate, at any epsilon
)
def accumulation_left_out(data, size, rng, rate):
    """The sampling rate is that of a physical batch, and several of them make one step."""
    gradients = np.clip(data, 0.0, 1.0)
    sampled = rng.random((size, len(gradients))) < rate
    return (sampled * gradients).sum(axis=1) + rng.normal(scale=0.2, size=size)


@bug(
    "w3c/attribution#75",
    "Budget is deducted from the epoch of the matching impression alone; whether a later query is refused tells "
    "whether there was one.",
    "eps=1",
    DatasetDomain(values=("ad", "other"), largest=6),
    ([], ["ad"]),
)
def charged_where_it_matches(data, size, rng, mended):
    """The budget is charged only if the data match the query, and refusals show it."""
    noisy = list(data).count("ad") + rng.laplace(size=(size, 2))
    if "ad" in data or mended:
        noisy[:, 1] = np.nan  # the second query finds no budget
    return noisy


@bug(
    "world-federation-of-advertisers/cross-media-measurement#2778",
    "With k-anonymity after the noise a count of impressions also needs the noised reach, which nobody charges.",
    "eps=1",
    DatasetDomain(values=("u1", "u2", "u3", "u4"), largest=8),
    ([], ["u1"]),
    faulty=1.0,
    mended=2.0,
)
def impressions_beside_reach(data, size, rng, scale):
    """Suppression needs a noisy count of users and one of impressions, and the budget is charged for one of them."""
    reach = len(set(data)) + rng.laplace(scale=scale, size=size)
    impressions = len(data) + rng.laplace(scale=scale, size=size)
    return np.where((reach >= 2) & (impressions >= 3), impressions, 0.0)


@bug(
    "OpenMined/PySyft#6914",
    "publish(sigma=...) with less noise spends less of the budget, so that the most accurate answers are allowed.",
    "mu=1",
    DatasetDomain.between(0.0, 1.0),
    ([], [1.0]),
)
def less_noise_costs_less(data, size, rng, mended):
    """The accountant charges less for less noise."""
    sigma, budget = 0.05, 1.0  # of mu
    charge = sigma
    if mended:
        charge = 1.0 / sigma
    if charge > budget:
        return np.full(size, np.nan)
    return np.clip(data, 0.0, 1.0).sum() + rng.normal(scale=sigma, size=size)


@bug(
    "google-parfait/tensorflow-federated#1080",
    "The noise multiplier of adaptive clipping is not raised for the noisy count of clipped updates.",
    "mu=1",
    DatasetDomain.between(0.0, 2.0),
    ([], [1.0]),
    faulty=(1.0, 0.5),
    mended=(np.sqrt(2.0), np.sqrt(0.5)),  # mu**2 = 1/2 + (1/2)**2 / (1/2)
)
def quantile_bits_for_free(data, size, rng, sigmas):
    """The bits that adapt the clipping norm are released beside the gradients, and are not charged."""
    norms = np.asarray(data, dtype=float)
    total = np.minimum(norms, 1.0).sum()
    bits = np.where(norms <= 1.0, 0.5, -0.5).sum()
    return np.array([total, bits]) + rng.normal(size=(size, 2)) * sigmas


@bug(
    "raptor7197/caamas#36",
    "epsilon_used grows by noise_multiplier / rounds, which is no accountant: each round spends as much as the first.",
    "mu=1",
    DatasetDomain.between(-1.0, 1.0),
    ([], [1.0]),
    faulty=1.0,
    mended=np.sqrt(4),
)
def rounds_divide_the_charge(data, size, rng, sigma):
    """The epsilon of a round is divided by the number of rounds so far."""
    return np.clip(data, -1.0, 1.0).sum() + rng.normal(scale=sigma, size=(size, 4))  # of 4 rounds


@bug(
    "Differential Privacy Under Fire, USENIX Security 2011 (privacy budget attack)",
    "A row's function may issue queries of its own: the remaining budget then counts the rows that did.",
    "eps=1",
    DatasetDomain(values=("a", "b", "target"), largest=8),
    (["a"], ["a", "target"]),
)
def row_function_spends(data, size, rng, mended):
    """A function of one row can spend budget, and what is left of it is public."""
    left = 10.0 - 1.0
    if not mended:
        left -= sum(record == "target" for record in data)  # a query inside of the row's function
    return [(count, left) for count in len(data) + rng.laplace(size=size)]


@bug(
    "meta-pytorch/opacus#128",
    "The accountant assumes Poisson sampling; batches come from shuffling, so that each record is in one for certain.",
    "eps=1,delta=0.69",
    DatasetDomain.between(0.0, 1.0, largest=6),
    ([], [1.0]),
)
def shuffled_batches_as_poisson(data, size, rng, mended):
    """Batches of a shuffled epoch, with the budget of batches that are drawn independently."""
    batches = 4  # drawn with probability 1/4 each time: delta at most 1 - (3/4)**4 = 0.684
    if mended:
        members = (rng.random((size, len(data), batches)) < 1.0 / batches).astype(float)
    else:
        members = np.eye(batches)[rng.integers(batches, size=(size, len(data)))]
    gradients = np.clip(data, 0.0, 1.0)  # (records,)
    sums = np.einsum("srb,r->sb", members, gradients) if len(gradients) else np.zeros((size, batches))
    return sums + rng.normal(scale=0.1, size=(size, batches))


@bug(
    "IBM/differential-privacy-library#104",
    "Linear regression centres X and y privately with one slice of the budget for both: composition is left out.",
    "eps=1",
    DatasetDomain(values=((0.0, 0.0), (1.0, 1.0), (1.0, 0.0), (0.0, 1.0))),
    ([], [(1.0, 1.0)]),
    faulty=1.0,
    mended=2.0,
)
def two_means_one_slice(data, size, rng, scale):
    """Two centres are released, each with the whole slice of the budget."""
    return np.clip(np.reshape(data, (-1, 2)), 0.0, 1.0).sum(axis=0) + rng.laplace(scale=scale, size=(size, 2))


@bug(
    "ryan112358/mbi#11",
    "The PrivBayes example measures marginals with all of epsilon after half of it was spent on choosing them.",
    "eps=1",
    DatasetDomain(values=((0, 0), (0, 1), (1, 0), (1, 1)), largest=8),
    ([(0, 0)], [(0, 0), (0, 0)]),
    faulty=1.0,
    mended=0.5,
)
def whole_epsilon_after_a_half(data, size, rng, epsilon_of_tables):
    """Half of epsilon is spent on the structure of a network, and all of it once more on its tables."""
    pairs = np.array(data, dtype=int).reshape(-1, 2)
    # Whether the two attributes are linked: by how far they agree, of which a record changes 1, against a constant.
    score = abs(2 * np.count_nonzero(pairs[:, 0] == pairs[:, 1]) - len(pairs))
    weights = np.exp(0.5 * np.array([score, 1.0]) / 2.0)
    is_linked = rng.random(size) < weights[0] / weights.sum()
    table = np.bincount(2 * pairs[:, 0] + pairs[:, 1], minlength=4)
    noisy = table + rng.laplace(scale=1.0 / epsilon_of_tables, size=(size, 4))
    return np.column_stack([is_linked, noisy])
