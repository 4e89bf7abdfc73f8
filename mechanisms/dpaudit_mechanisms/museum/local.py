"""Bugs of local and federated releases: what a client sends, or a server adds up."""

import numpy as np

from dpaudit.domains import DatasetDomain, ListedDomain, NumberDomain, VectorDomain
from dpaudit_mechanisms.museum.bugs import Bugs
from dpaudit_mechanisms.museum.releases import published

bug = Bugs("local and federated")


@bug(
    "DiffPriv 1.0.3, diff.randresponse (found by this museum)",
    "The loop runs over the answers and writes at the place that the answer names: all answers from the third on are "
    "released as they are.",
    "eps=1.1",  # of two coins: ln 3; no other claim with a finite epsilon is kept
    DatasetDomain(values=(0, 1), largest=6, smallest=2, adjacency="replace_one"),
    ([1, 0, 0], [1, 0, 1]),
    releases=(published("diffpriv_response", "DiffPriv.diff.randresponse(answers)"),),
)
def answers_index_the_list(data, size, rng, mended):
    """Randomised response whose loop takes the answers for places in the list."""
    answers = np.asarray(data, dtype=int)
    if mended:
        return np.where(rng.random((size, len(answers))) < 0.25, 1 - answers, answers)
    said = np.tile(answers, (size, 1))
    for place in sorted({int(answer) for answer in data}):  # 0 and 1 only: all other answers stay as they are
        said[:, place] = (rng.random(size) < 0.25).astype(int)
    return said


@bug(
    "raptor7197/caamas#36 (server)",
    "The global norm of the aggregated parameters is clipped, with noise as if each client had been.",
    "mu=1",
    DatasetDomain(values=(-8.0, -1.0, 0.0, 1.0, 8.0), largest=4, smallest=4, adjacency="replace_one"),
    ([8.0, -8.0, 0.0, 0.0], [-8.0, -8.0, 0.0, 0.0]),
)
def clipped_after_aggregation(data, size, rng, mended):
    """The server clips the average of the clients, not each client."""
    clients = 4  # public
    if mended:  # a replaced client moves it by 2 / clients
        return np.mean(np.clip(data, -1.0, 1.0)) + rng.normal(scale=2.0 / clients, size=size)
    return np.clip(np.mean(data), -1.0, 1.0) + rng.normal(scale=1.0 / clients, size=size)


@bug(
    "APPFL/APPFL#151",
    "clip_norm bounds the gradient of a step; the weights that are sent move by that in each local step.",
    "eps=1",
    NumberDomain(-3.0, 3.0, change=float("inf")),
    (-1.0, 1.0),
)
def clipped_step_by_step(data, size, rng, mended):
    """Each local step is clipped, and the sum of the steps is sent."""
    steps = 5
    update = steps * np.clip(data, -1.0, 1.0)
    if mended:
        update = np.clip(steps * data, -1.0, 1.0)
    return update + rng.laplace(scale=2.0, size=size)


@bug(
    "arXiv:1709.02753",
    "The stated epsilon is per datum; a device sends several a day, and the loss of a day is their sum.",
    "eps=1",
    ListedDomain((0, 1)),
    (0, 1),
    faulty=1.0,
    mended=1.0 / 4,
)
def each_contribution_its_epsilon(data, size, rng, epsilon):
    """The epsilon of a day is that of one submission, and there are several."""
    truth = rng.random((size, 4)) < 1.0 / (1.0 + np.exp(-epsilon))  # of 4 submissions
    return np.where(truth, data, 1 - data)


@bug(
    "fedbiomed/fedbiomed#1443",
    "Central privacy clips each parameter to the norm that the whole update may have.",
    "mu=1",
    VectorDomain(4, -3.0, 3.0, change=float("inf")),
    (np.full(4, -1.0), np.full(4, 1.0)),
)
def each_tensor_by_itself(data, size, rng, mended):
    """Each tensor of an update is clipped by itself, with noise for the whole update."""
    update = np.asarray(data, dtype=float)
    clipped = np.clip(update, -1.0, 1.0)
    if mended:
        clipped = 0.5 * update / max(1.0, float(np.linalg.norm(update)))
    return clipped + rng.normal(size=(size, len(update)))


@bug(
    "opendp/opendp#480",
    "The answer is the truth with p + (1 - p) p instead of p, as the lie is drawn from all values.",
    "eps=1",
    ListedDomain((0, 1)),
    (0, 1),
)
def lie_that_may_be_true(data, size, rng, mended):
    """Randomised response whose lie may be the truth, with the epsilon of one that never is."""
    p = np.exp(1.0) / (1.0 + np.exp(1.0))
    lie = 1 - data
    if not mended:
        lie = ((rng.random(size) < p) == data).astype(int)
    return np.where(rng.random(size) < p, data, lie)


@bug(
    "NVIDIA/NVFlare#343",
    "SVTPrivacy chooses some of the accepted weights; the others are sent clipped, without noise.",
    "eps=1",
    VectorDomain(6, -2.0, 2.0, change=float("inf")),
    (np.zeros(6), np.full(6, 0.5)),
)
def neither_accepted_nor_zeroed(data, size, rng, mended):
    """Weights that are neither accepted nor candidates leave the client as they are."""
    weights, accepted = 6, 3
    chosen = rng.random((size, weights)).argsort(axis=1)[:, :accepted]
    rest = clipped = np.clip(data, -1.0, 1.0)
    if mended:
        rest = 0.0
    noisy = np.clip(clipped + rng.laplace(scale=2.0 * accepted, size=(size, weights)), -1.0, 1.0)
    mask = np.zeros((size, weights), dtype=bool)
    np.put_along_axis(mask, chosen, True, axis=1)
    return np.where(mask, noisy, rest)


@bug(
    "pure-ldp 1.2.0, RAPPORClient.privatise (found by this museum)",
    "A bit is set to one with the probability of its report, and otherwise left alone: a one stays a one.",
    "eps=2.2",
    ListedDomain(tuple(range(4))),
    (0, 1),
    faulty=1.0,
    mended=1.0 - 0.5 / 2.0,
    releases=(
        published("pure_ldp_rappor", "RAPPORClient(f=0.5, m=4, one hash function, one cohort).privatise(value)"),
    ),
)
def ones_are_never_flipped(data, size, rng, kept):
    """RAPPOR that never turns a one into a zero."""
    probability = np.full(4, 0.5 / 2.0)  # epsilon = 2 ln((1 - f/2) / (f/2)) = 2 ln 3 with one hash function
    probability[data] = kept
    return (rng.random((size, 4)) < probability).astype(int)


@bug(
    "londonaicentre/FLIP#1146",
    "A client's update goes through a filter that zeroes the components of least magnitude and truncates the others, "
    "and adds no noise.",
    "eps=1",
    VectorDomain(6, -1.0, 1.0, change=0.5),
    (np.zeros(6), np.full(6, 0.5)),
)
def percentile_without_noise(data, size, rng, mended):
    """Small components are set to zero and large ones truncated, which is called privacy; there is no noise."""
    weights = np.tile(np.asarray(data, dtype=float), (size, 1))
    if mended:
        weights += rng.laplace(scale=6 * 0.5, size=(size, 6))
    limit = np.percentile(np.abs(weights), 50, axis=-1, keepdims=True)
    return np.where(np.abs(weights) >= limit, np.clip(weights, -0.5, 0.5), 0.0)


@bug(
    "Samuel-Maddock/pure-LDP#11",
    "The client of unary encoding perturbs the bit of the true value with another probability than p.",
    "eps=0.5",
    ListedDomain(tuple(range(4))),
    (0, 1),
    faulty=0.5 + 0.5 / (np.exp(0.5) + 1.0),  # kept with 1/2, else drawn like every other bit
    mended=0.5,
    releases=(
        published("pure_ldp_unary", "UEClient(epsilon=0.5, d=4, use_oue=True).privatise(value)"),
        published("pure_ldp_unary", "UEClient(epsilon=0.5, d=4, use_oue=True).privatise(value)", "1.2.0", mended=True),
    ),
)
def true_bit_not_kept(data, size, rng, p):
    """Unary encoding that does not keep the bit of the true value with its probability."""
    keep = np.full(4, 1.0 / (np.exp(0.5) + 1.0))  # optimal unary encoding: p = 1/2
    keep[data] = p
    return (rng.random((size, 4)) < keep).astype(int)


@bug(
    "privateAB 0.0.2, client.release_private('disclapu') (found by this museum)",
    "The indicator is multiplied by an irrational root and gets integer noise: the coordinate with a fractional part "
    "is the category.",
    "eps=1",
    ListedDomain(tuple(range(3))),
    (0, 1),
    releases=(published("privateab_disclapu", "client().release_private('disclapu', category, 3, privacy_level=1)"),),
)
def whole_noise_on_a_root(data, size, rng, mended):
    """Integer noise on an indicator that is scaled by the root of the number of categories."""

    def geometric(zeta):
        return rng.geometric(1.0 - zeta, size=(size, 3)) - rng.geometric(1.0 - zeta, size=(size, 3))

    root, indicator = np.sqrt(3), np.eye(3)[data]
    if mended:
        return root * (indicator + geometric(np.exp(-0.5)))
    return root * indicator + geometric(np.exp(-1.0 / (2.0 * root)))
