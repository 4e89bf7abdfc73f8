"""Bugs of learning: clipping, and noise that does not fit it."""

import numpy as np

from dpaudit.domains import DatasetDomain
from dpaudit_mechanisms.museum.bugs import Bugs

bug = Bugs("learning")
GRADIENTS = (-4.0, -1.0, 0.0, 1.0, 4.0)


@bug(
    "ooples/AiDotNet#1318",
    "The aggregated gradient is clipped once per tensor; one example can turn it from one end to the other.",
    "mu=1",
    DatasetDomain(values=GRADIENTS),
    ([-2.0, 1.0], [-2.0, 1.0, 4.0]),
)
def batch_gradient_clipped(data, size, rng, mended):
    """The gradient of a batch is clipped, not that of an example."""
    gradient = np.clip(np.sum(data), -1.0, 1.0)
    if mended:
        gradient = np.clip(data, -1.0, 1.0).sum()
    return gradient + rng.normal(size=size)


@bug(
    "greenelab/SPRINT_gan#5",
    "The optimizer's noise has the standard deviation noise * clipnorm ** 2, which is too little for every clipping "
    "norm below 1.",
    "mu=1",
    DatasetDomain.between(-1.0, 1.0, largest=8),
    ([], [1.0]),
    faulty=0.5**2,
    mended=0.5,
)
def clip_norm_twice(data, size, rng, sigma):
    """Noise is scaled by the square of the clipping norm: a standard deviation is taken for a variance."""
    return np.clip(data, -0.5, 0.5).sum() + rng.normal(scale=sigma, size=size)


@bug(
    "meta-pytorch/opacus#664",
    "Fast gradient clipping does not use the max_grad_norm of the engine, by which the noise is scaled.",
    "mu=1",
    DatasetDomain.between(-2.0, 2.0),
    ([], [1.0]),
    faulty=1.0,
    mended=0.1,
)
def clipping_norm_not_passed(data, size, rng, norm):
    """The clipping norm that was asked for never reaches the clipping."""
    return np.clip(data, -norm, norm).sum() + rng.normal(scale=0.1, size=size)


@bug(
    "tensorflow/privacy#620",
    "compute_dp_sgd_privacy does not account for the doubled sensitivity of microbatches.",
    "mu=1",
    DatasetDomain(values=GRADIENTS, largest=4, smallest=4, adjacency="replace_one"),  # two microbatches of two
    ([4.0, 0.0, 0.0, 0.0], [-4.0, 0.0, 0.0, 0.0]),
    faulty=1.0,
    mended=2.0,
)
def microbatch_moves_twice(data, size, rng, sigma):
    """A microbatch whose average is clipped moves by twice the clipping norm."""
    averages = np.reshape(data, (-1, 2)).mean(axis=1)
    return np.clip(averages, -1.0, 1.0).sum() + rng.normal(scale=sigma, size=size)


@bug(
    "dayu11/Differentially-Private-Deep-Learning#7",
    "backward() accumulates the average gradient into p.grad, where the clipped sum is accumulated too.",
    "mu=1",
    DatasetDomain(values=GRADIENTS, largest=8),
    ([], [4.0]),
)
def plain_gradient_added(data, size, rng, mended):
    """The plain gradient of the batch is added to the private one."""
    gradient = np.clip(data, -1.0, 1.0).sum()
    if not mended:
        gradient += np.sum(data) / max(len(data), 1)
    return gradient + rng.normal(size=size)


@bug(
    "arXiv:2202.12219",
    "An implementation of backpropagation clipping has the sensitivity of a gradient wrong by the size of the batch.",
    "mu=1",
    DatasetDomain.between(-1.0, 1.0, largest=8),
    ([], [1.0]),
    faulty=1.0 / 4,
    mended=1.0,
)
def sensitivity_by_the_batch(data, size, rng, sigma):
    """The sensitivity of a layer's gradient is divided by the batch size once too often."""
    return np.clip(data, -1.0, 1.0).sum() + rng.normal(scale=sigma, size=size)


@bug(
    "vanderschaarlab/synthcity#275",
    "PATE-GAN's teachers sample a new subset of all data in each round, so that one record moves all votes.",
    "eps=1",
    DatasetDomain(values=(0, 1), largest=9),
    ([0, 1], [0, 1, 1]),
)
def teachers_share_the_data(data, size, rng, mended):
    """Teachers that all see the whole data, with noise for one vote."""
    teachers = 5
    ones = teachers if 2 * sum(data) > len(data) else 0  # the same for all: each draws from all records
    if mended:
        # Each record belongs to one teacher by a key of its own, here its value: so at most one vote moves.
        ones = min(sum(data), teachers)
    return np.array([teachers - ones, ones]) + rng.laplace(scale=2.0, size=(size, 2))


@bug(
    "civisanalytics/dpwgan#2",
    "The discriminator's weights are clipped 'for privacy guarantees', which bounds no gradient.",
    "mu=1",
    DatasetDomain(values=GRADIENTS),
    ([], [4.0]),
)
def weights_clipped_not_gradients(data, size, rng, mended):
    """Weights are clipped, and gradients are not."""
    gradient = np.sum(data)
    if mended:
        gradient = np.clip(data, -1.0, 1.0).sum()
    return np.clip(-0.25 * (gradient + rng.normal(size=size)), -1.0, 1.0)
