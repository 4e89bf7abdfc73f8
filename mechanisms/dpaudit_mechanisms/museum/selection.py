"""Bugs of selection: exponential mechanisms, noisy maxima and sparse vectors."""

import numpy as np

from dpaudit.domains import VectorDomain
from dpaudit_mechanisms.museum.bugs import Bugs
from dpaudit_mechanisms.museum.releases import published

bug = Bugs("selection")


@bug(
    "sarus-tech/dp-xgboost#3",
    "The exponential mechanism chooses among candidates that a search without noise proposed for each feature.",
    "eps=1",
    VectorDomain(6, 0.0, 10.0, change=1.0),  # 2 features with 3 points each
    (np.array([5.0, 4.5, 0, 0, 0, 0]), np.array([4.5, 5.0, 0, 0, 0, 0])),
)
def best_split_before_the_draw(data, size, rng, mended):
    """The best split of each feature is found without noise, and a private draw is made among these."""
    scores = np.asarray(data, dtype=float)
    if mended:
        return np.argmax(scores / 2.0 + rng.gumbel(size=(size, 6)), axis=1)
    scores = scores.reshape(2, 3)
    best = scores.argmax(axis=1)
    drawn = np.argmax(scores.max(axis=1) / 2.0 + rng.gumbel(size=(size, 2)), axis=1)
    return drawn * 3 + best[drawn]


@bug(
    "arXiv:1805.10277",
    "The proof is for the index of the largest noisy answer; the value itself leaks with the number of answers.",
    "eps=1",
    VectorDomain(6, 0.0, 5.0, change=1.0),
    (np.zeros(6), np.ones(6)),
    faulty="max",
    mended="argmax",
)
def noisy_max_returns_the_value(data, size, rng, returned):
    """Report noisy max that returns the largest value instead of its place."""
    return getattr(np, returned)(np.asarray(data) + rng.laplace(scale=2.0, size=(size, len(data))), axis=1)


@bug(
    "opendp/opendp#2911",
    "Noisy max runs permute-and-flip, which is not of bounded range, and reports rho = epsilon**2 / 8.",
    "rho=0.5",  # of scale 1 and two changes of 1: epsilon = 2
    VectorDomain(2, -2, 2, change=1, integer=True),
    (np.array([0, 0]), np.array([1, -1])),
    faulty="exponential",
    mended="gumbel",
    releases=(published("opendp_noisy_max", "make_noisy_max(..., zero_concentrated_divergence(), scale=1)"),),
)
def permute_and_flip_as_exponential(data, size, rng, law):
    """Permute-and-flip with the concentrated budget of the exponential mechanism."""
    return np.argmax(np.asarray(data) + getattr(rng, law)(scale=1.0, size=(size, len(data))), axis=1)


@bug(
    "ryan112358/mbi#65",
    "JAM selects by model error minus public error, both of which may move by 2, with sensitivity 2 instead of 4.",
    "eps=1",
    VectorDomain(5, -10.0, 10.0, change=4.0),
    (np.zeros(5), np.array([4.0, -4.0, -4.0, -4.0, -4.0])),
    faulty=2.0,
    mended=4.0,
)
def score_of_two_errors(data, size, rng, sensitivity):
    """Scores are differences of two errors, and the sensitivity is that of one."""
    return np.argmax(np.asarray(data) / (2.0 * sensitivity) + rng.gumbel(size=(size, len(data))), axis=1)


@bug(
    "arXiv:1603.01699 (Algorithm 5)",
    "Neither the answers have noise nor is there a cutoff: answers of one order never come out in another.",
    "eps=1",
    VectorDomain(4, -2.0, 2.0, change=1.0),
    (np.array([0.0, 1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0])),
)
def svt_answers_without_noise(data, size, rng, mended):
    """A sparse vector that adds noise to the threshold alone."""
    answers, thresholds = np.asarray(data), rng.laplace(scale=2.0, size=(size, 1))
    if mended:  # as many may pass as there are
        answers = answers + rng.laplace(scale=4.0 * len(data), size=(size, len(data)))
    return (answers >= thresholds).astype(int)


@bug(
    "arXiv:1603.01699 (Algorithm 4)",
    "The noise of the answers lacks the factor 2c for c answers that pass: (1 + 6c) / 4 times epsilon in truth.",
    "eps=1",
    VectorDomain(8, -2.0, 2.0, change=1.0),
    (np.array([1.0] * 4 + [0.0] * 4) - 0.5, np.array([0.0] * 4 + [1.0] * 4) - 0.5),
    faulty=(4.0, 4.0 / 3.0),
    mended=(2.0, 4.0 * 4),
)
def svt_cutoff_left_out(data, size, rng, scales):
    """A sparse vector whose noise does not know how many answers may pass."""
    thresholds = rng.laplace(scale=scales[0], size=(size, 1))
    above = np.asarray(data) + rng.laplace(scale=scales[1], size=(size, len(data))) >= thresholds
    passed = np.cumsum(above, axis=1) - above  # before this one
    return np.where(passed >= 4, -1, above.astype(int))  # 4 may pass


@bug(
    "arXiv:1603.01699 (Algorithm 6)",
    "However many answers pass, the noise stays that of one: the loss grows with their number.",
    "eps=1",
    VectorDomain(10, -2.0, 2.0, change=1.0),
    (np.array([1.0] * 5 + [0.0] * 5) - 0.5, np.array([0.0] * 5 + [1.0] * 5) - 0.5),
    faulty=2.0,
    mended=4.0 * 10,
)
def svt_never_stops(data, size, rng, scale):
    """A sparse vector without a cutoff."""
    thresholds = rng.laplace(scale=2.0, size=(size, 1))
    return (np.asarray(data) + rng.laplace(scale=scale, size=(size, len(data))) >= thresholds).astype(int)


@bug(
    "arXiv:1603.01699 (Algorithm 3)",
    "The variant outputs the noisy answer itself when it passes the threshold, with noise for one answer: no finite "
    "epsilon for all.",
    "eps=1",
    VectorDomain(8, 0.0, 2.0, change=1.0),
    (np.zeros(8), np.array([1.0] * 7 + [0.0])),
)
def svt_releases_the_answer(data, size, rng, mended):
    """A sparse vector that releases the noisy answer that passed the threshold."""
    scale = 2.0
    if mended:
        scale = 4.0
    thresholds = rng.laplace(scale=2.0, size=(size, 1))
    shown = noisy = np.asarray(data) + rng.laplace(scale=scale, size=(size, len(data)))
    if mended:
        shown = np.zeros_like(noisy)
    above = noisy >= thresholds
    first, found = np.argmax(above, axis=1), above.any(axis=1)
    return np.stack([np.where(found, first, -1), np.where(found, shown[np.arange(size), first], 0.0)], axis=1)
