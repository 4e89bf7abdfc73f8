"""Simulated audits whose truth is known: how often some bound lies above it.

`learning_measurements.py` beside it makes the table of docs/measurements from 10,000 audits of each case.

A case draws the scores of one audit; an audit errs if the claim's parameter, or the profile anywhere on a grid of
epsilons (which epsilon at delta and the trade-off function are read from), is bounded above its true value. Beside ours
stand estimators that print bounds without paying for what they look at.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable

import numpy as np
from scipy import special, stats

from dpaudit.inference.bound_search import just_above
from dpaudit.privacy.claims import ApproxDP, Claim, GaussianDP, PureDP
from dpaudit.scores import guesses
from dpaudit.scores.auditing import order_of_one_run, records_of, records_reject
from dpaudit.scores.bands import Bands, anytime_bands, band
from dpaudit.scores.bets import ScoreBets, labelled
from dpaudit.scores.designs import BETTED
from dpaudit.scores.profile_bounds import ProfileBound, values_rejected

LEVEL = 0.05
EPSILONS = np.linspace(0.0, 6.0, 61)
SIDE = 50  # runs a side; a sequential band looks at 32 and 48


def gaussian_profile(mu, epsilon=EPSILONS):
    return special.ndtr(-epsilon / mu + mu / 2) - np.exp(epsilon) * special.ndtr(-epsilon / mu - mu / 2)


def pure_profile(budget, epsilon=EPSILONS):
    """Randomised response: the largest profile of a pure claim."""
    return np.maximum(0.0, np.exp(budget) - np.exp(epsilon)) / (1.0 + np.exp(budget))


@dataclasses.dataclass(frozen=True)
class Case:
    """A mechanism of known loss: scores of one audit by `draw(rng)`, its true claim, its profile on `EPSILONS`."""

    name: str
    draw: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]
    claim: Claim
    profile: np.ndarray
    design: str = "one-run"
    guesses: int | None = None


def coins(canaries, score):
    def draw(rng):
        is_in = rng.integers(0, 2, canaries) == 1
        scores = score(is_in, rng)
        return scores[is_in], scores[~is_in]

    return draw


def gaussian(mu):
    return lambda is_in, rng: rng.normal(size=len(is_in)) + mu * is_in


def laplace(epsilon):
    return lambda is_in, rng: rng.laplace(size=len(is_in)) + epsilon * is_in


def response(epsilon):
    def score(is_in, rng):
        kept = rng.random(len(is_in)) < special.expit(epsilon)
        return np.where(kept, is_in, ~is_in).astype(float)

    return score


def extremal(canaries, epsilon, level=LEVEL):
    """The mechanism that attains the one-run bound: (delta, the number of right guesses that it aims at, scores)."""
    binomial = stats.binom.pmf(np.arange(canaries + 1), canaries, special.expit(epsilon))
    correct = int(stats.binom.isf(level / 2.0, canaries, special.expit(epsilon))) + 1
    tail = binomial[correct:].sum()
    weight = (level - tail) / (1.0 - tail)
    delta = weight * correct * binomial[correct] / (tail * canaries)
    high = np.where(np.arange(canaries + 1) >= correct, binomial / tail, 0.0)
    law = np.cumsum((1.0 - weight) * binomial + weight * high)

    def score(is_in, rng):
        right = int(np.searchsorted(law, rng.random() * law[-1]))
        is_right = rng.permutation(canaries) < right
        return np.where(is_right, is_in, ~is_in) + 0.0

    return delta, score


def halves(size, first, second):
    return lambda rng: (first(size, rng), second(size, rng))


def cases():
    """Exactly at the truth: Gaussian, Laplace, randomised response, the extremal law; one run and many."""
    found = [
        Case(f"one run, Gaussian mu {mu:g}, {m} canaries", coins(m, gaussian(mu)), GaussianDP(mu), gaussian_profile(mu))
        for mu, m in ((0.5, 100), (1.0, 1_000), (2.0, 300))
    ]
    found += [
        Case(
            f"one run, Laplace {epsilon:g}, {m} canaries",
            coins(m, laplace(epsilon)),
            PureDP(epsilon),
            np.maximum(0.0, 1.0 - np.exp((EPSILONS - epsilon) / 2.0)),
        )
        for epsilon, m in ((1.0, 200), (2.0, 60))
    ]
    found.append(
        Case(
            "one run, randomised response 1, 200 canaries",
            coins(200, response(1.0)),
            PureDP(1.0),
            pure_profile(1.0),
        )
    )
    found.append(
        Case(
            "one run, the same, all 200 guessed on",
            coins(200, response(1.0)),
            PureDP(1.0),
            pure_profile(1.0),
            "one-run",
            200,
        )
    )
    delta, score = extremal(101, 1.0)
    found.append(
        Case(
            "paired, extremal law at epsilon 1, 101 pairs",
            lambda rng: _pairs_of(score(np.ones(101, bool), rng)),
            ApproxDP(1.0, delta),
            np.full(len(EPSILONS), np.inf),  # its profile elsewhere is not needed: the claim is what it sits on
            "paired",
            101,
        )
    )
    found += [
        Case(
            f"{design.replace('-', ' ')}, Gaussian mu 1, {SIDE} a side",
            halves(SIDE, lambda k, rng: rng.normal(1.0, 1.0, k), lambda k, rng: rng.normal(0.0, 1.0, k)),
            GaussianDP(1.0),
            gaussian_profile(1.0),
            design,
        )
        for design in BETTED
    ]
    found.append(
        Case(
            f"many runs, Laplace 1, {SIDE} a side",
            halves(SIDE, lambda k, rng: rng.laplace(1.0, 1.0, k), lambda k, rng: rng.laplace(0.0, 1.0, k)),
            PureDP(1.0),
            np.maximum(0.0, 1.0 - np.exp((EPSILONS - 1.0) / 2.0)),
            "many-runs",
        )
    )
    return found


def _pairs_of(is_right):
    return is_right, 1.0 - is_right


def parameter_rejected(claim, bound, values):
    if isinstance(claim, ApproxDP):
        return bound.epsilon(claim.delta) >= values[0]
    return values_rejected(claim, bound, values)[0]


def band_of_all(scores_in, scores_out, error_rate):
    return Bands((band(scores_in, scores_out, error_rate),))


def errs(case, rng):
    """Whether some bound of one audit lies above the truth."""
    scores_in, scores_out = case.draw(rng)
    true = np.array([just_above(case.claim.value)])
    if case.design in BETTED:
        # the bound of the bets exceeds the truth only if the one grid value just above it is rejected
        bets = ScoreBets(*labelled(scores_in, scores_out, rng), case.claim)
        limits = anytime_bands if case.design == "sequential" else band_of_all
        bound = limits(scores_in, scores_out, 0.2 * LEVEL).profile_bound()
        above = bets.rejects(float(true[0]), 0.8 * LEVEL) or parameter_rejected(case.claim, bound, true)
    else:
        in_pairs = case.design == "paired"
        records = records_of(order_of_one_run(scores_in, scores_out, rng, in_pairs), LEVEL, case.guesses)
        bound = ProfileBound(tuple(record.delta for record in records))
        if isinstance(case.claim, ApproxDP):  # its bound is above epsilon where the profile's is above delta there
            above = bound.delta(true)[0] > case.claim.delta
        else:
            above = records_reject(case.claim, records, true)[0]
    return bool(above or np.any(bound.delta(EPSILONS) > case.profile + 1e-9))


def error_rates(audits, seed, part=""):
    """(name, audits with a bound above the truth) for each case whose name has `part`, each on a stream of its own."""
    with remembering():
        for number, case in enumerate(cases()):
            if part in case.name:
                rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
                yield case.name, sum(errs(case, rng) for _ in range(audits))


# --- estimators that print invalid bounds -----------------------------------------------------------------------------


def second_look(rng):
    """One run, randomised response 1: the largest bound over all numbers of guesses, each at the whole level."""
    labels = rng.random(200) < special.expit(1.0)  # right guesses, in an order that says nothing
    right, guesses = np.cumsum(labels), np.arange(1, 201)
    accuracy = special.betaincinv(np.maximum(right, 1), guesses - right + 1.0, LEVEL)
    return bool(np.any(special.logit(accuracy[right > 0]) > 1.0))


def many_attacks(rng):
    """Many runs, randomised response 1: the best of 40 attacks, each with Clopper-Pearson limits at the whole level."""
    hits, alarms = rng.binomial(150, special.expit(1.0), 40), rng.binomial(150, special.expit(-1.0), 40)
    lower = special.betaincinv(hits, 151.0 - hits, LEVEL / 2)
    upper = special.betaincinv(alarms + 1.0, 150.0 - alarms, 1.0 - LEVEL / 2)
    return bool(np.any(lower > np.e * upper))


def gaussian_alone(rng):
    """Many runs, Laplace 1: a limit of mu from the means, turned into epsilon at 1e-5 as if scores were Gaussian."""
    kept_in, kept_out = rng.laplace(1.0, 1.0, 150), rng.laplace(0.0, 1.0, 150)
    spread = np.sqrt(0.5 * (kept_in.var() + kept_out.var()))
    mu = (kept_in.mean() - kept_out.mean()) / spread - stats.norm.isf(LEVEL) * np.sqrt(2.0 / 150)
    return bool(mu > 0.0 and GaussianDP(mu).epsilon_at(1e-5) > 1.0)


def absolute_value(rng):
    """Many runs, two equal laws: the absolute value of a signed limit."""
    difference = rng.normal(size=150).mean() - rng.normal(size=150).mean()
    return bool(abs(difference - stats.norm.isf(LEVEL) * np.sqrt(2.0 / 150)) > 0.0)


INVALID = {
    "one run: best of all numbers of guesses, no correction": second_look,
    "many runs: best of 40 attacks, no correction": many_attacks,
    "many runs: Gaussian conversion on Laplace scores": gaussian_alone,
    "many runs: absolute value of a signed limit, truth 0": absolute_value,
}


def remembered(function):
    """Audits of one case come to the same counts again and again: what a count proves is computed once.

    Arrays that are constants of their modules stand for their values, single values for themselves; all else is
    computed.
    """
    known = {}
    constants = {id(EPSILONS)}

    def called(at, *counts, **options):
        if len(at) > 1 and id(at) not in constants:
            return function(at, *counts, **options)
        key = (float(at[0]) if len(at) == 1 else id(at), counts, tuple(options.values()))
        if key not in known:
            known[key] = function(at, *counts, **options)
        return known[key]

    return called


@contextlib.contextmanager
def remembering():
    """Inside, the two functions that guesses are judged by are `remembered`."""
    kept = guesses.delta_lower, guesses.gaussian_is_rejected
    guesses.delta_lower, guesses.gaussian_is_rejected = map(remembered, kept)
    try:
        yield
    finally:
        guesses.delta_lower, guesses.gaussian_is_rejected = kept
