"""The rules of an all-pairs table: each is the best of all, by brute force over cells, thresholds and sides.

Rules are chosen on the pilot alone, so nothing here has an error rate. Seeds are fixed.
"""

import dataclasses
import math

import numpy as np
import pytest
from scipy import special
from support.samplers import laplace as noise

from dpaudit.campaign import all_pairs
from dpaudit.campaign.all_pairs import SIZES, AllPairsGame
from dpaudit.inference.pair_lines import SIZES as LINE_SIZES
from dpaudit.inference.pair_lines import PairLines
from dpaudit.privacy.claims import ApproxDP
from dpaudit.privacy.pair_budgets import PairBudgets
from dpaudit.running.streams import stream
from dpaudit.running.worker_pool import WorkerPool
from dpaudit.subjects.callables import as_subject

BOTH, ONLY_X, ONLY_X_PRIME = range(3)  # positions in `WAYS`
STEPS, SMOOTHING, STEPS_PER_NAT = SIZES.n_steps, SIZES.smoothing, SIZES.steps_per_nat
BUDGET = 0.5


def own_lines(budget, delta=0.0):
    """The lines of pairs with a budget each, of one delta."""
    budget = np.asarray(budget, dtype=float)
    return PairLines(dataclasses.replace(PairBudgets.same(ApproxDP(1.0, delta), len(budget)), values=budget))


def made(mechanism, data, delta=0.0, samples=800, error_rate=0.05, seed=4):
    first, second = np.triu_indices(len(data), 1)
    return AllPairsGame(
        first,
        second,
        own_lines(np.full(len(first), BUDGET), delta),
        inputs=len(data),
        samples=samples,
        error_rate=error_rate,
        draw=WorkerPool().drawer(as_subject(mechanism), data, seed, 8),
        coin=lambda: stream(seed, 9),
    )


def response(data, size, rng):
    """6-ary randomised response at epsilon = 2: rules guess both inputs."""
    told = rng.random(size) < np.exp(2.0) / (np.exp(2.0) + 5.0)
    return np.where(told, data, (data + rng.integers(1, 6, size=size)) % 6)


def marked(data, size, rng):
    """Says that it is an even input with probability 0.1, and nothing of odd ones: rules guess one input."""
    return np.where((rng.random(size) < 0.1) & (data % 2 == 0), data + 10, rng.integers(0, 3, size=size))


def telling(data, size, rng):
    """Says which input it is in 19 of 20 calls: ratios of several hundred, beyond the last threshold of 6 nats."""
    return np.where(rng.random(size) < 0.95, data, rng.integers(0, 6, size=size) + 10)


def with_halves(game):
    """The game with its pilot drawn, and the histograms of its two halves, shape (2, inputs, cells)."""
    seen = []
    own = game._fit_rules
    game._fit_rules = lambda halves: (seen.append(halves.astype(float)), own(halves))
    game.start()
    return seen[0]


def judged(game, delta, halves, pair, way, step):
    """The expected bound of one rule of a pair, and how far it is above the budget, in deviations."""
    i, j = int(game.first[pair]), int(game.second[pair])
    correct = wrong = 0.0
    for fit, judge in ((0, 1), (1, 0)):  # ratios of one half, counts of the other
        logs = [np.log(halves[fit, k].astype(np.float32) + np.float32(SMOOTHING)) for k in (i, j)]
        ratios = np.floor((logs[0] - logs[1]) * np.float32(STEPS_PER_NAT))
        x, x_prime = halves[judge, i], halves[judge, j]
        for guesses, own, other in (
            (ratios >= step if way != ONLY_X_PRIME else None, x, x_prime),
            (ratios < -step if way != ONLY_X else None, x_prime, x),
        ):
            if guesses is not None:
                correct, wrong = correct + own[guesses].sum(), wrong + other[guesses].sum()
    draws = 2.0 * game.pilot
    correct, wrong = correct / draws, (wrong + 1.0) / draws  # one wrong guess is added
    allowed = correct - delta * (2.0 if way == BOTH else 1.0) / 2.0
    if allowed <= 0.0:
        return -math.inf, -math.inf
    odds, variance = math.log(allowed / wrong), correct / allowed**2 + 1.0 / wrong
    level = game.error_rate / len(game.first) / 2.0  # what a pair has at least
    spread = variance * (special.ndtri(level) ** 2 / game.labelled + LINE_SIZES.pilot_deviations**2 / draws)
    return odds - math.sqrt(spread), (odds - BUDGET) / math.sqrt(variance / draws)


def chosen(game, pair):
    """The side and the threshold of a pair's rule, in steps."""
    return int(game.way[pair]), int(game.step[pair])


@pytest.mark.parametrize(
    ("mechanism", "delta", "ways"),
    [(response, 0.0, {BOTH}), (response, 0.03, {BOTH}), (marked, 0.03, {ONLY_X, ONLY_X_PRIME}), (noise, 0.03, {BOTH})],
)
def test_the_rule_of_a_pair_has_the_best_expected_bound_of_all(mechanism, delta, ways):
    game = made(mechanism, list(range(6)), delta)
    halves = with_halves(game)
    assert halves.sum(axis=(0, 2)) == pytest.approx(np.full(6, game.pilot))  # every draw of the pilot is in one
    found = set()
    for pair in range(len(game.first)):
        way, step = chosen(game, pair)
        bound, deviations = judged(game, delta, halves, pair, way, step)
        others = [
            judged(game, delta, halves, pair, w, s)[0] for w in (BOTH, ONLY_X, ONLY_X_PRIME) for s in range(STEPS)
        ]
        if max(others) > -math.inf:
            assert bound == pytest.approx(max(others), abs=1e-9)
            found.add(way)
        assert game.merit[pair] == pytest.approx(deviations, rel=1e-9)
    assert found >= ways


def test_cells_beyond_the_last_threshold_belong_to_their_own_pair():
    game = made(telling, list(range(6)), 0.03, samples=2_000)
    halves = with_halves(game)
    assert math.log(halves[:, 0].max(axis=1).min() / SMOOTHING) > STEPS / STEPS_PER_NAT
    for pair in range(len(game.first)):
        bound, deviations = judged(game, 0.03, halves, pair, *chosen(game, pair))
        others = [judged(game, 0.03, halves, pair, w, s)[0] for w in (BOTH, ONLY_X, ONLY_X_PRIME) for s in range(STEPS)]
        assert bound == pytest.approx(max(others), abs=1e-9)
        assert game.merit[pair] == pytest.approx(deviations, rel=1e-9)
    # A rule that never guesses x guesses it on no cell, however large its ratio.
    game.way[:], game.step[:] = ONLY_X_PRIME, 0
    game.play()
    zeros = game.labelled - int(stream(4, 9).binomial(game.labelled, 0.5))
    # Only guesses of x_prime: right on 95% of its draws or more, wrong on at most 5% of those of x (7 deviations each).
    assert (game.correct <= zeros).all() and (game.correct >= 0.9 * zeros).all() and (game.wrong < 0.1 * zeros).all()


@pytest.mark.parametrize("pairs_at_once", [1, 2, 3])
def test_blocks_of_pairs_change_nothing(monkeypatch, pairs_at_once):
    whole = made(response, list(range(6)), 0.03)
    whole.start()
    whole.play()
    parted = made(response, list(range(6)), 0.03)
    monkeypatch.setattr(all_pairs, "CHUNK_NUMBERS", pairs_at_once * whole.partition.size)
    parted.start()
    parted.play()
    for name in ("way", "step", "merit", "level", "correct", "wrong", "lower", "log_p"):
        assert np.array_equal(getattr(whole, name), getattr(parted, name)), name


def test_the_partition_is_fitted_on_the_first_half_of_the_pilot(monkeypatch):
    fitted, own = [], all_pairs.fit_partition
    monkeypatch.setattr(all_pairs, "fit_partition", lambda *asked: (fitted.append(asked), own(*asked))[1])
    for samples in (100, 800, 2_000):
        game = made(noise, [0, 1, 2], samples=samples)
        game.start()
        parts, draws = fitted[-1]
        assert [draws, *map(len, parts)] == [game.pilot, *[game.pilot // 2] * 3]


@pytest.mark.parametrize("samples", [10, 100, 2_000, 100_000])
def test_the_draws_of_an_input_are_about_those_that_were_asked_for(samples):
    game = made(noise, [0, 1], samples=samples)
    # Of either label three standard deviations more than half of the labelled draws.
    most = game.pilot + game.labelled / 2.0 + 3.0 * math.sqrt(game.labelled) / 2.0
    if samples >= 100:
        assert samples - 6.0 <= most <= samples + 1.0
    assert game.labelled >= 2 and game.pilot >= 4
