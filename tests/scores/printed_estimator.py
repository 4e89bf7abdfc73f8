"""The one-run f-DP estimator that jax_privacy documents, re-implemented from its description as a reference.

Guesses are "in" for the scores from a threshold on; every threshold is tried, each at significance / thresholds on the
convex frontier of the counts; Gaussian claims are rejected by the recursion of Mahloujifar, Melis and Chaudhuri
(arXiv:2410.22235). Its own test states 2.164749, 4.7218075 and 9.133752 for the quantiles of N(0, 1) and N(shift, 1),
shift 1, 2 and 4, 10,000 each, at 0.05 and delta 1e-6. (The number of guesses depends on the scores, for which its
theorem makes no provision.)
"""

import numpy as np
from scipy import special

from dpaudit.privacy.claims import GaussianDP
from dpaudit.scores.auditing import order_of_one_run, records_lower, records_of
from dpaudit.scores.guesses import RankedLabels, Record
from dpaudit.scores.one_run import gaussian_is_rejected
from dpaudit.scores.profile_bounds import ProfileBound

LEVEL = 0.05


def frontier(scores_in, scores_out):
    """Right and wrong guesses at each threshold whose point lies on the concave frontier."""
    thresholds = np.append(np.union1d(scores_in, scores_out), np.inf)
    missed = np.searchsorted(np.sort(scores_in), thresholds)
    silent = np.searchsorted(np.sort(scores_out), thresholds)
    hull = []
    for point in zip(missed.tolist(), silent.tolist(), strict=True):
        while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (point[0] - hull[-2][0]) <= (point[1] - hull[-2][1]) * (
            hull[-1][0] - hull[-2][0]
        ):
            hull.pop()
        hull.append(point)
    missed, silent = np.array(hull).T
    return len(scores_in) - missed, len(scores_out) - silent


def recursion_rejects(mu, guesses, correct, canaries, level):
    """Theirs."""
    return gaussian_is_rejected(np.array([mu]), guesses, correct, canaries, level)[0]


def printed_lower(scores_in, scores_out, precision=1e-4):
    """The largest mu that some threshold rejects."""
    right, wrong = frontier(scores_in, scores_out)
    level, canaries = LEVEL / len(right), len(scores_in) + len(scores_out)
    best = 0.0
    accuracy = right / np.maximum(right + wrong, 1)
    for place in np.argsort(-special.betaincinv(np.maximum(right, 1), wrong + 1.0, LEVEL)):
        guesses, correct = int(right[place] + wrong[place]), int(right[place])
        if (
            correct == 0
            or accuracy[place] <= 0.5
            or not recursion_rejects(best + precision, guesses, correct, canaries, level)
        ):
            continue
        low, high = best + precision, max(1.0, 2.0 * best)
        while recursion_rejects(high, guesses, correct, canaries, level):
            low, high = high, 2.0 * high
        while high - low > precision:
            middle = 0.5 * (low + high)
            low, high = (
                (middle, high) if recursion_rejects(middle, guesses, correct, canaries, level) else (low, middle)
            )
        best = low
    return best


def ours_lower(scores_in, scores_out, seed):
    claim = GaussianDP(1.0)
    records = records_of(order_of_one_run(scores_in, scores_out, np.random.default_rng(seed)), LEVEL)
    return records_lower(claim, records, ProfileBound(tuple(record.delta for record in records)))


def informed_lower(scores_in, scores_out, fractions):
    """The bounds of rules stated beforehand: the best one knows the law of the scores."""
    scores = np.concatenate([scores_in, scores_out])
    labels = np.concatenate([np.ones(len(scores_in), int), np.zeros(len(scores_out), int)])
    found = RankedLabels(labels[np.argsort(-scores)], in_pairs=False)
    claim = GaussianDP(1.0)
    bounds = {}
    for rule in found.rules(fractions):
        record = Record(rule, found.correct(rule), len(scores), LEVEL)
        bounds[rule] = records_lower(claim, [record], ProfileBound((record.delta,)))
    return bounds


def canaries(count, mu, rng):
    is_in = rng.integers(0, 2, count) == 1
    scores = rng.normal(size=count) + mu * is_in
    return scores[is_in], scores[~is_in]


FRACTIONS = (1.0, 0.8, 0.6, 0.45, 0.3, 0.2, 0.14, 0.1, 0.07, 0.05, 0.035, 0.02, 0.01)  # of numbers of guesses


def compare(mu, count, repeats, seed):
    """Bounds on the same draws of scores: theirs and ours, one a draw, and the mean of the best rule for the law."""
    theirs, ours, informed = [], [], {}
    for k in range(repeats):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(k, count)))
        scores = canaries(count, mu, rng)
        theirs.append(printed_lower(*scores))
        ours.append(ours_lower(*scores, seed=k))
        for rule, bound in informed_lower(*scores, FRACTIONS).items():
            informed.setdefault(rule, []).append(bound)
    return np.array(theirs), np.array(ours), max(np.mean(bounds) for bounds in informed.values())
