"""The table of all pairs: valid on mechanisms exactly on their budgets, and strong enough to find what is not."""

import dataclasses
import functools

import numpy as np
import pytest
from scipy import stats
from support.samplers import laplace

import dpaudit
from dpaudit.campaign.all_pairs import AllPairsGame
from dpaudit.inference.order import COLUMNS
from dpaudit.inference.pair_lines import PairLines, detectable_losses
from dpaudit.privacy.pair_budgets import PairBudgets
from dpaudit.running.streams import stream
from dpaudit.running.worker_pool import WorkerPool
from dpaudit.subjects.callables import as_subject

ROOT_SEED = 20_261_121
INPUTS = 12
LEVEL = 1e-9  # of each exact binomial test below on counts over audits


@functools.cache
def lines_of_all(promise, pairs):
    return PairLines(PairBudgets.same(promise, pairs))


def play(mechanism, data, promise, samples=400, error_rate=0.05, seed=0):
    """The table of all pairs, of a claim or with a budget for each pair."""
    first, second = np.triu_indices(len(data), 1)
    if not isinstance(promise, dpaudit.Claim):
        budgets = PairBudgets.same(dpaudit.PureDP(1.0), len(first))
        lines = PairLines(dataclasses.replace(budgets, values=np.broadcast_to(np.asarray(promise, float), first.shape)))
    else:
        lines = lines_of_all(promise, len(first))
    game = AllPairsGame(
        first,
        second,
        lines,
        inputs=len(data),
        samples=samples,
        error_rate=error_rate,
        draw=WorkerPool().drawer(as_subject(mechanism), data, seed, 8),
        coin=lambda: stream(seed, 9),
    )
    game.start()
    game.play()
    return game


def response(data, size, rng):
    """12-ary randomised response at epsilon = 1: every pair of inputs loses exactly 1."""
    told = rng.random(size) < np.e / (np.e + INPUTS - 1)
    other = (data + rng.integers(1, INPUTS, size=size)) % INPUTS
    return np.where(told, data, other)


def revealing(data, size, rng):
    """Reveals the input with probability 0.02 and is `response` otherwise: exactly (1, 0.02)-DP on every pair."""
    return np.where(rng.random(size) < 0.02, data + 100, response(data, size, rng))


def binary(data, size, rng):
    """Binary randomised response at epsilon = 1: the one rule there is sits exactly on the budget."""
    return np.where(rng.random(size) < np.e / (np.e + 1.0), data, 1 - data)


def tail(data, size, rng):
    """Whether Gaussian noise and a shift of 1 a step lie beyond 0.5: of 0 and 1 all that mu = 1 allows at epsilon 0."""
    return (data + rng.normal(size=size) > 0.5).astype(int)


def far_tail(data, size, rng):
    """The same beyond 1.5, where its line at an epsilon of about 1 is the one that is reached."""
    return (data + rng.normal(size=size) > 1.5).astype(int)


def divergence(order):
    """The Renyi divergence of `response` on any two inputs."""
    p, q, rest = np.e / (np.e + INPUTS - 1), 1.0 / (np.e + INPUTS - 1), (INPUTS - 2) / (np.e + INPUTS - 1)
    return float(np.log(p**order * q ** (1 - order) + q**order * p ** (1 - order) + rest) / (order - 1))


def told_of_response(rate):
    """The trade-off function of `response`: straight pieces, of the odds e, 1 and 1/e."""
    q = 1.0 / (np.e + INPUTS - 1)
    return np.interp(rate, [0.0, q, 1.0 - np.e * q, 1.0], [1.0, 1.0 - np.e * q, q, 0.0])


RHO = max(divergence(order) / order for order in dpaudit.ZeroConcentratedDP(1.0).orders)
POINTS = np.linspace(0.0, 2.0, INPUTS).tolist()
DISTANCES = np.subtract.outer(POINTS, POINTS)[np.triu_indices(INPUTS, 1)] * -1.0
ON_BUDGET = {
    "laplace": (laplace, POINTS, DISTANCES),
    "response": (response, list(range(INPUTS)), 1.0),
    "revealing": (revealing, list(range(INPUTS)), dpaudit.ApproxDP(1.0, 0.02)),
    "binary": (binary, [0, 1], 1.0),
    "gaussian": (tail, [0, 1], dpaudit.GaussianDP(1.0)),
    "gaussian, far out": (far_tail, [0, 1], dpaudit.GaussianDP(1.0)),
    "trade-off": (response, list(range(INPUTS)), dpaudit.FDP(told_of_response)),
    "renyi": (response, list(range(INPUTS)), dpaudit.RenyiDP(2.0, divergence(2.0))),
    "zcdp": (response, list(range(INPUTS)), dpaudit.ZeroConcentratedDP(RHO)),
}
AUDITS = {"trade-off": 200, "renyi": 200, "zcdp": 200}  # and 600 of the others


# Under the claim each count is at most binomial(audits, rate), so each of the 9 x 3 assertions fails with probability
# at most 1e-9: false-positive rate of this test below 3e-8. What it can see at 600 audits: a familywise rate of 13%, or
# a pair's rate of 13% at nominal 5%, is missed with probability below 0.02 (binomial sums).
@pytest.mark.long
@pytest.mark.parametrize("name", sorted(ON_BUDGET))
def test_a_table_on_its_budgets_raises_no_more_alarms_than_promised(name):
    mechanism, data, promise = ON_BUDGET[name]
    audits = AUDITS.get(name, 600)
    alarms = above = of_one_pair = 0
    for audit in range(audits):
        seed = int(np.random.SeedSequence(ROOT_SEED, spawn_key=(audit,)).generate_state(1)[0])
        game = play(mechanism, data, promise, samples=200, seed=seed)
        alarms += bool(game.violated.any())
        above += bool((game.lower > game.lines.budget).any())
        # The union bound over 66 pairs hides a fault of one test: its own p-value must keep its level as well.
        of_one_pair += bool(game.log_p[0] <= np.log(0.05))
    for count in (alarms, above, of_one_pair):
        assert stats.binom.sf(count - 1, audits, 0.05) >= LEVEL, (alarms, above, of_one_pair)


def test_labels_of_a_pair_are_as_many_as_planned_and_every_input_is_drawn_about_as_often_as_asked():
    game = play(response, list(range(INPUTS)), 1.0, samples=2_000)
    assert np.all(game.correct + game.wrong <= game.labelled)
    # N is within 6 deviations of its mean but for a probability of 2e-9
    assert abs(game.runs / INPUTS - 2_000) < 6 * np.sqrt(game.labelled) / 2.0 + 100


def test_counts_of_the_record_are_those_of_the_rule_on_the_first_draws():
    # The rule of one pair, run again on the same streams and in the game's order, gives the record of the table.
    seed, data = 5, POINTS
    game = play(laplace, data, DISTANCES, samples=1_000, seed=seed)
    ones = int(stream(seed, 9).binomial(game.labelled, 0.5))
    zeros = game.labelled - ones
    pair = 30
    i, j = int(game.first[pair]), int(game.second[pair])
    from dpaudit.features.outcomes import Outcomes

    counts = []
    for k, quota in ((i, ones), (j, zeros)):
        rng = stream(seed, 8, k, game.draws.round - 1, 0)
        drawn = laplace(data[k], max(ones, zeros), rng)[:quota]
        scores = game.rule(pair)(Outcomes(drawn[:, None]))
        counts.append([np.count_nonzero(scores < 0.0), np.count_nonzero(scores > 0.0)])
    assert counts[0][1] + counts[1][0] == game.correct[pair]
    assert counts[0][0] + counts[1][1] == game.wrong[pair]


# Expected at a true loss of 3 against 1 on every pair and 1,000 draws a side: right guesses of 95%, at most 73%
# allowed. Chernoff: a miss of one pair has probability below 1e-50.
def test_too_little_noise_is_found_on_every_pair():
    def loud(data, size, rng):
        return np.where(rng.random(size) < np.exp(3.0) / (np.exp(3.0) + 1.0), data, 1 - data)

    game = play(loud, [0, 1], [1.0], samples=2_000)
    assert game.violated.all()
    assert 1.0 < game.lower[0] <= 3.0


def test_a_vector_whose_signal_sits_in_one_of_many_coordinates_is_found():
    def hidden(data, size, rng):
        values = rng.normal(size=(size, 60))
        values[:, 41] += 2.0 * data
        return values

    # Claim 0.5; the shift of two deviations between neighbours has events with log odds above 3.
    game = play(hidden, list(range(6)), 0.5, samples=3_000)
    assert game.violated.all()


def test_pairs_whose_calls_all_raise_on_both_sides_are_broken_and_others_are_not():
    def failing(data, rng):
        if data < 2:
            raise ValueError("no data")
        return float(rng.laplace())

    game = play(failing, [0, 1, 2, 3], 1.0, samples=200)
    # Two of the inputs raise: only their own pair is broken; against the others raising always is a plain leak.
    assert game.broken.tolist() == [True, False, False, False, False, False]
    assert not game.violated[5]
    text = game.game(0, dpaudit.PureDP(1.0)).failure.text
    calls = int(game.runs / 2)  # those on two of the four inputs
    assert text.startswith("ValueError: no data in failing (") and text.endswith(f"from all {calls} calls")


def test_a_pair_is_not_broken_where_a_call_behind_the_first_ones_returns():
    """Of a mechanism that raises 95 times in 100, 136 pairs of 2,080 were called broken after 70 calls."""

    def mostly(data, rng):
        if rng.random() < 0.95:
            raise KeyError("c")
        return 1

    game = play(mostly, list(range(40)), 1.0, samples=400)
    assert not game.broken.any() and not game.violated.any()
    rarer = play(lambda data, rng: mostly(data, rng) if data < 20 else {}["c"], list(range(40)), 1.0, samples=400)
    both = np.minimum(rarer.first, rarer.second) >= 20
    assert np.array_equal(rarer.broken, both)


def test_the_detectable_loss_never_understates_that_of_a_budget_on_the_grid_or_off_it():
    game = play(laplace, POINTS, DISTANCES, samples=3_000)
    budget = game.lines.budget
    exact = detectable_losses(budget, np.zeros_like(budget), game.labelled, float(game.level.min()), 0.1, 0.9, 0.0)
    found = game.losses(np.full(len(budget), 0.1), 0.9)
    assert np.all(found >= exact - 1e-12)
    assert np.all(found <= exact + 0.1)


def test_of_long_outputs_the_columns_are_kept_that_the_order_test_reads():
    """Of 64 inputs with 200 columns the first ones were 32 MB, now under 3 MB."""
    game = play(lambda data, size, rng: data + rng.laplace(size=(size, 200)), POINTS, 9.0)
    parts = [part for i, kept in game.draws.kept.items() for part in (*kept, *game.draws.later[i].parts)]
    assert parts and {part.numbers.shape[1] for part in parts} == {COLUMNS}
    assert all(part.numbers.base is None or part.numbers.base.nbytes < 10 * part.numbers.nbytes for part in parts)
    assert not game.changes


def test_long_outputs_that_are_objects_later_show_no_change():
    """None comes so rarely that most batches are numbers: what is kept of those has to read as that of the others."""

    def rarely(data, size, rng):
        return [None if refuses else [0.0] * 10 for refuses in rng.random(size) < 0.002]

    game = play(rarely, POINTS, 9.0, samples=2_000)
    forms = {part.tokens is None for i, kept in game.draws.kept.items() for part in (*kept, *game.draws.later[i].parts)}
    assert forms == {True, False} and not game.changes
