"""The label game over many pairs: what is drawn, who reads it, which levels are fixed when, and what is kept.

Every draw here is handed out by the test, so that what the game asks for and counts can be compared with what it was
given. Verdicts are asserted at confidence 1 - 1e-10 in two tests, on N(3, 1) against N(0, 1): a false alarm has
probability below 1e-10 in each; a miss needs fewer than 85% right guesses of a rule that is right on 93% of 700 draws:
below 1e-11.
"""

import dataclasses
import itertools
import math

import numpy as np
import pytest

import dpaudit
from dpaudit.campaign import label_game, schedules
from dpaudit.campaign.label_game import LabelGame
from dpaudit.features.outcomes import read_outputs
from dpaudit.inference import learning_state
from dpaudit.inference.order import LATER
from dpaudit.inference.tasks import TaskResult
from dpaudit.privacy.claims import GaussianDP, PureDP, ZeroConcentratedDP
from dpaudit.subjects.call_outcomes import PROGRAM_DIED, Ended, Failed


class Deck:
    """Outputs by (input, round, chunk), and a record of every task and of what was handed out."""

    def __init__(self, outputs):
        self.outputs, self.tasks, self.handed = outputs, [], {}

    def __call__(self, tasks):
        return [self._carry_out(task) for task in tasks]

    def _carry_out(self, task):
        rng = np.random.default_rng([task.input, task.round, task.chunk])
        batch = self.outputs(task.input, task.size, rng)
        self.tasks.append(task)
        self.handed.setdefault((task.input, task.round), []).extend(batch)
        outcomes = read_outputs(batch, task.size)
        counts = tuple(request.statistic.count(outcomes.rows(slice(0, request.quota))) for request in task.requests)
        return TaskResult(counts, outcomes.rows(slice(0, task.keep)) if task.keep else None)

    def drawn(self, i, round_):
        return len(self.handed.get((i, round_), []))

    @property
    def rounds(self):
        return sorted({task.round for task in self.tasks})


class Coins:
    """Fair coins by (round, pair), as in an audit, with a record of the labels; or a coin that is told what to show."""

    def __init__(self, ones=None):
        self.ones, self.quotas = ones, {}

    def __call__(self, round_, pair):
        rng = np.random.default_rng([round_, pair, 99])

        class Coin:
            def binomial(_, n, p):
                assert p == 0.5
                ones = int(rng.binomial(n, p)) if self.ones is None else self.ones(n)
                self.quotas[round_, pair] = (ones, n - ones)
                return ones

        return Coin()


def noise(i, size, rng):
    """The same law on every input."""
    return rng.normal(size=size).tolist()


def revealing(i, size, rng):
    """The input itself."""
    return [float(i)] * size


def leaking_third(i, size, rng):
    """Input 2 differs from all others, which are alike."""
    return (rng.normal(size=size) + 3.0 * (i == 2)).tolist()


def game_of(outputs, claims, inputs, *, samples=200, mode="sequential", confidence=0.95, coins=None):
    deck, coins = Deck(outputs), coins or Coins()
    game = LabelGame(claims, inputs, samples=samples, error_rate=1.0 - confidence, mode=mode, draw=deck, coin=coins)
    return game, deck, coins


def played(*args, **kwargs):
    game, deck, coins = game_of(*args, **kwargs)
    game.start()
    game.play()
    return game, deck, coins


MODES = pytest.mark.parametrize("mode", ["sequential", "fixed"])
TRIANGLE = [(0, 1), (1, 2), (0, 2)]


# --- how much is drawn ---


def many_pairs(count):
    return [(2 * k, 2 * k + 1) for k in range(count)]


@pytest.mark.parametrize("samples", [10, 40, 333])
@pytest.mark.parametrize("inputs", [[(0, 1)], TRIANGLE, many_pairs(12)], ids=["one pair", "triangle", "12 pairs"])
def test_an_adaptive_game_keeps_within_its_runs(samples, inputs):
    game, _, coins = played(noise, [PureDP(1.0)] * len(inputs), inputs, samples=samples, mode="adaptive")
    most = samples * len({i for pair in inputs for i in pair})
    # Less than a smallest round is left; the game has no use for it.
    assert most - schedules.MIN_ROUND < game.runs <= most
    for k, pair in enumerate(game.pairs):
        assert pair.labelled == sum(sum(quota) for (_, p), quota in coins.quotas.items() if p == k)
        assert pair.labelled + game.pilot <= schedules.ADAPTIVE_REACH * 2 * samples


def test_an_adaptive_game_draws_more_where_the_evidence_grows():
    def leaking(i, size, rng):
        return (rng.random(size) < (0.8 if i == 8 else 0.5)).astype(float).tolist()

    # The fifth of 20 pairs has a loss of log(0.5 / 0.2) = 0.92, the claim is 0.3. At this confidence it stays open.
    claims = [PureDP(0.3)] * 20
    game, *_ = played(leaking, claims, many_pairs(20), samples=200, mode="adaptive", confidence=1.0 - 1e-14)
    labelled = [pair.labelled for pair in game.pairs]
    assert max(labelled) == labelled[4] > 3 * sorted(labelled)[10]
    assert min(labelled) > 0.3 * 2 * 200  # half of all draws are spread evenly


@MODES
@pytest.mark.parametrize("samples", [10, 11, 13, 40, 333, 5_000])
@pytest.mark.parametrize("inputs", [[(0, 1)], TRIANGLE], ids=["one pair", "three pairs"])
def test_a_sound_pair_takes_all_of_its_labelled_draws_and_no_more(mode, samples, inputs):
    claims = [PureDP(1.0)] * len(inputs)
    game, deck, coins = played(noise, claims, inputs, samples=samples, mode=mode)
    pilot = min(deck.rounds), max(r for r in deck.rounds if not any(key[0] == r for key in coins.quotas))
    for k, pair in enumerate(game.pairs):
        fitted_on = sum(deck.drawn(i, r) for i in pair.inputs for r in range(pilot[0], pilot[1] + 1))
        counted = sum(sum(quota) for (_, p), quota in coins.quotas.items() if p == k)
        assert counted == pair.labelled
        assert fitted_on == game.pilot
        assert fitted_on + counted == 2 * samples


def test_a_fixed_game_looks_once():
    _, _, coins = played(noise, [PureDP(1.0)], [(0, 1)], mode="fixed", samples=1_000)
    assert len(coins.quotas) == 1


def often_telling(i, size, rng):
    """Never wrong, and right every other time: 2.0 on input 1, -2.0 on input 0; else the same law."""
    return np.where(rng.uniform(size=size) < 0.5, 4.0 * i - 2.0, -rng.uniform(size=size)).tolist()


def test_the_pilot_of_a_fixed_game_is_no_longer_than_what_is_kept(monkeypatch):
    monkeypatch.setattr(label_game, "TRAINING_NUMBERS", 800)
    game, deck, _ = played(noise, [PureDP(1.0)], [(0, 1)], mode="fixed", samples=5_000)
    assert game.pilot == 800  # of 3,500 draws that it may have
    assert game.pairs[0].labelled == 10_000 - 800 == game.pairs[0].main.draws
    assert game.runs == sum(task.size for task in deck.tasks)


def test_a_fixed_game_keeps_no_draw_of_its_test_to_fit_on():
    """But a few, for their order alone."""
    game, deck, _ = played(noise, [PureDP(1.0)], [(0, 1)], mode="fixed", samples=5_000)
    last = max(deck.rounds)
    assert [(task.keep, task.is_last) for task in deck.tasks if task.round == last] == [(LATER, True)] * 2
    assert [len(game.kept(i)) for i in (0, 1)] == [1_750, 1_750]


def test_fixed_bets_on_a_renyi_claim_are_fitted_once_on_the_whole_pilot():
    game, *_ = played(often_telling, [ZeroConcentratedDP(0.5)], [(0, 1)], mode="fixed", samples=5_000)
    assert game.pilot == 3_500
    assert [int(one.counts.sum()) for one in game.pairs[0].main.rounds] == [10_000 - 3_500]


def test_bets_go_on_learning_when_no_more_outputs_are_kept(monkeypatch):
    monkeypatch.setitem(schedules.TRAINING_DRAWS, "sequential", 100)
    sizes = dataclasses.replace(learning_state.SIZES, counted_from=100)
    monkeypatch.setattr(learning_state, "SIZES", sizes)
    game, *_ = played(noise, [PureDP(1.0)], [(0, 1)], samples=1_000)
    (pair,) = game.pairs
    assert pair.labelled + game.pilot == 2_000 and 2 * pair.trained_on <= 200
    draws = np.cumsum([int(one.counts.sum()) for one in pair.main.rounds])  # so far, as each next round is opened
    beyond = [one.predicted for one, before in zip(pair.main.rounds[1:], draws[:-1], strict=True) if before > 200]
    assert len(beyond) >= 3
    assert all(one.q.tolist() != other.q.tolist() for one, other in itertools.pairwise(beyond))


def test_no_fit_follows_one_that_saw_as_many_draws_as_a_fit_may(monkeypatch):
    """Another one would see as many; what else was drawn is learned from counts."""
    monkeypatch.setattr(learning_state, "SIZES", dataclasses.replace(learning_state.SIZES, max_numbers=200))
    fit, seen = learning_state.fit_mixture, []
    monkeypatch.setattr(learning_state, "fit_mixture", lambda *args: seen.append(len(args[2])) or fit(*args))
    played(noise, [PureDP(1.0)], [(0, 1)], samples=1_000)
    assert seen == sorted(set(seen))
    assert seen[-1] == 200


def test_fits_see_no_more_than_is_kept(monkeypatch):
    monkeypatch.setitem(schedules.TRAINING_DRAWS, "sequential", 100)
    game, *_ = played(noise, [PureDP(1.0)], [(0, 1)], samples=1_000)
    assert 100 / 1.31 < game.pairs[0].trained_on <= 100


@pytest.mark.guard
def test_a_sequential_game_looks_after_every_round_and_no_round_is_tiny():
    game, _, coins = played(noise, [PureDP(1.0)], [(0, 1)], samples=200)
    sizes = [sum(quota) for quota in coins.quotas.values()]
    assert len(sizes) == len(game.pairs[0].looks) > 5
    assert min(sizes) >= schedules.MIN_ROUND
    assert [look.draws for look in game.pairs[0].looks] == np.cumsum(sizes).tolist()


def test_a_shared_input_is_drawn_once_as_often_as_its_hungriest_reader_needs():
    game, deck, coins = game_of(noise, [PureDP(1.0)] * 3, TRIANGLE)
    game.start()
    game.round()
    round_ = max(deck.rounds)
    for i in range(3):
        quotas = [coins.quotas[round_, k][pair.index(i)] for k, pair in enumerate(TRIANGLE) if i in pair]
        assert deck.drawn(i, round_) == max(quotas)


# --- who reads what ---


@MODES
@pytest.mark.parametrize("chunk_numbers", [64, 100, 1 << 19])
def test_each_pair_counts_the_first_draws_of_its_quota_on_both_inputs(monkeypatch, mode, chunk_numbers):
    monkeypatch.setattr("dpaudit.campaign.draws.CHUNK_NUMBERS", chunk_numbers)
    game, deck, coins = game_of(leaking_third, [PureDP(1.0)] * 3, TRIANGLE, samples=600, mode=mode)
    game.start()
    counted = []
    for k, pair in enumerate(game.pairs):
        statistic, add = pair.main.statistic, pair.main.add

        def watched(first, second, k=k, statistic=statistic, add=add):
            counted.append((k, statistic, first.tolist(), second.tolist()))
            add(first, second)

        monkeypatch.setattr(pair.main, "add", watched)
    game.round()
    round_ = max(deck.rounds)
    assert [k for k, *_ in counted] == [0, 1, 2]
    for i in range(3):  # chunks follow each other
        tasks = [task for task in deck.tasks if (task.input, task.round) == (i, round_)]
        assert [task.start for task in tasks] == np.cumsum([0, *(task.size for task in tasks)]).tolist()[:-1]
    for k, statistic, *sides in counted:
        for i, quota, counts in zip(game.pairs[k].inputs, coins.quotas[round_, k], sides, strict=True):
            read = read_outputs(deck.handed[i, round_], deck.drawn(i, round_)).rows(slice(0, quota))
            assert counts == statistic.count(read).tolist()


@pytest.mark.parametrize("all_to", [0, 1])
@pytest.mark.parametrize("claim", [PureDP(1.0), ZeroConcentratedDP(0.5)])
def test_a_round_whose_coins_all_fall_on_one_side_is_counted(all_to, claim):
    # probability 2^-15 in a round of 16; the other input is then not drawn at all
    game, deck, _ = game_of(noise, [claim], [(0, 1)], coins=Coins(lambda n: n if all_to else 0))
    game.start()
    assert game.round()
    assert game.pairs[0].labelled == deck.drawn(1 - all_to, max(deck.rounds)) == schedules.MIN_ROUND
    assert deck.drawn(all_to, max(deck.rounds)) == 0
    assert sum(game.pairs[0].main.counts) <= schedules.MIN_ROUND


@pytest.mark.guard
def test_coins_are_tossed_for_each_round_and_pair_by_themselves():
    _, _, coins = played(noise, [PureDP(1.0)] * 3, TRIANGLE, samples=100)
    rounds = {r for r, _ in coins.quotas}
    assert set(coins.quotas) == set(itertools.product(rounds, range(3))) and len(rounds) > 1
    assert len({quota for (r, _), quota in coins.quotas.items() if r == max(rounds)}) > 1


def test_a_decided_pair_is_not_drawn_any_further():
    game, deck, coins = played(
        leaking_third, [PureDP(1.0)] * 4, [(0, 1), (2, 3), (2, 4), (0, 4)], samples=400, confidence=1.0 - 1e-10
    )
    assert [pair.is_violated for pair in game.pairs] == [False, True, True, False]
    last = max(deck.rounds)
    assert {k for r, k in coins.quotas if r == last} == {0, 3}
    assert deck.drawn(2, last) == deck.drawn(3, last) == 0
    assert game.pairs[1].labelled < game.pairs[0].labelled


# --- training draws ---


def test_training_numbers_are_bounded_over_all_inputs(monkeypatch):
    monkeypatch.setattr(label_game, "TRAINING_NUMBERS", 6_000)

    def vectors(i, size, rng):
        return [*rng.normal(size=(size, 10))]

    game, _, _ = played(vectors, [PureDP(1.0)] * 3, TRIANGLE, samples=2_000)
    assert sum(part.numbers.size for parts in game.draws.kept.values() for part in parts) <= 6_000


# --- exceptions ---


def test_a_pair_of_which_every_call_of_the_pilot_raises_is_broken_and_left():
    game, _, coins = played(lambda i, size, rng: [Failed("ValueError", "no")] * size, [PureDP(1.0)], [(0, 1)])
    assert game.pairs[0].is_broken and game.pairs[0].failure.text == "ValueError: no from all 200 calls"
    assert not coins.quotas


def test_a_pilot_of_calls_that_raise_is_longer_but_never_longer_than_half_of_what_was_asked_for():
    def raising(i, size, rng):
        return [Failed("ValueError", "no")] * size

    for samples, calls in [(10_000, label_game.FAILED_CALLS), (600, 300), (20, 10)]:
        game, deck, _ = played(raising, [PureDP(1.0)], [(0, 1)], samples=samples)
        assert [sum(task.size for task in deck.tasks if task.input == i) for i in (0, 1)] == [calls, calls]
        assert game.labelled(game.pairs[0]) == 2 * calls


def test_a_pilot_ends_soon_after_the_first_call_that_returns_and_none_of_it_is_counted():
    calls = [0, 0]

    def rare(i, size, rng):  # every hundredth call returns
        places = range(calls[i] + 1, calls[i] + size + 1)
        calls[i] += size
        return [float(i) if place % 100 == 0 else Failed("ValueError", "no") for place in places]

    game, deck, coins = played(rare, [PureDP(1.0)], [(0, 1)], samples=2_000, mode="fixed")
    pair = game.pairs[0]
    pilot = [sum(task.size for task in deck.tasks if task.input == 0 and not task.requests)]
    assert not pair.is_broken and pilot == [(game.pilot + pair.pilot_more) // 2]
    assert pair.labelled == sum(map(int, np.ravel(list(coins.quotas.values())))) == 4_000 - 2 * pilot[0]
    assert pair.main.draws == pair.labelled == sum(pair.main.counts)


def test_what_ends_its_process_at_every_call_is_not_called_again():
    for ended in (Failed(PROGRAM_DIED, "exit status 3"), Ended("SIGSEGV", "")):
        game, deck, _ = played(lambda i, size, rng, ended=ended: [ended] * size, [PureDP(1.0)], [(0, 1)])
        assert game.pairs[0].is_broken and sum(task.size for task in deck.tasks) == schedules.FIRST_PILOT


# 400 calls of each input all raise with probability 0.97^800 = 2.6e-11. (24 calls in all, the pilot of a pair before,
# did so with 0.48.) Of 10,000 calls of the test fewer than 150 return with probability 1e-22 (binomial); 150 guesses
# of which none is wrong have, at a loss of 1, a likelihood of 0.731^150 = 4e-21, far below what decides at 0.05.
@pytest.mark.parametrize("mode", ["sequential", "fixed"])
@pytest.mark.parametrize("seed", range(3))
def test_a_mechanism_that_mostly_raises_is_audited(mode, seed):
    def rare(x, rng):
        if rng.random() < 0.97:
            raise KeyError("too close")
        return x

    result = dpaudit.audit(rare, "eps=1", [(0.0, 1.0)], samples=10_000, mode=mode, seed=seed, floating_point=False)
    assert result.verdict == "violated"


def test_bounds_stand_for_what_was_counted_where_a_call_raises_later_on():
    game, deck, _ = game_of(revealing, [GaussianDP(1.0), PureDP(8.0)], [(0, 1), (0, 1)], samples=2_000)
    game.start()
    for _ in range(12):
        game.round()
    assert any(pair.main.known_lower == 0.0 for pair in game.pairs)  # not computed at every look
    deck.outputs = None  # every further call raises
    with pytest.raises(TypeError):
        game.play()
    for pair in game.pairs:
        assert pair.main.known_lower == pair.main.lower > 0.0 and pair.epsilon_lower > 0.0
        assert pair.looks[-1].parameter_lower == pair.main.lower
        assert pair.is_violated == (pair.main.lower > pair.claim.value)


# --- ratios ---


def test_the_ratio_of_a_pair_with_budget_zero_is_infinite_or_nothing():
    found, _, _ = played(revealing, [PureDP(0.0)], [(0, 1)])
    silent, _, _ = played(lambda i, size, rng: [1.0] * size, [PureDP(0.0)], [(0, 1)])
    assert found.pairs[0].ratio_lower == math.inf
    assert silent.pairs[0].ratio_lower is None and not silent.pairs[0].is_violated


def test_progress_counts_draws_runs_and_violated_pairs():
    seen = []
    game, _, _ = game_of(leaking_third, [PureDP(1.0)] * 3, TRIANGLE, samples=300, confidence=1.0 - 1e-10)
    game.start()
    game.play(seen.append)
    assert [p.draws for p in seen] == sorted(p.draws for p in seen)
    last = seen[-1]
    assert (last.draws, last.planned, last.pairs, last.violated, last.runs) == (600, 600, 3, 2, game.runs)
    assert last.largest_ratio > 1.0


# --- how long a round is ---


def gross(data, size, rng):
    return data + rng.laplace(scale=0.1, size=size)


def test_a_gross_fault_is_found_about_as_soon_in_an_audit_of_many_draws():
    # Fixed seeds, the means of ten: how long a round is depends on what was drawn, not on what is planned.
    found = {}
    for samples in (1_000, 10_000_000):
        options = {"samples": samples, "floating_point": False}
        results = [dpaudit.audit(gross, "eps=1", [(0.0, 1.0)], seed=seed, **options) for seed in range(10)]
        assert {result.verdict for result in results} == {"violated"}
        found[samples] = np.mean([result.findings[0].samples for result in results])
    assert found[10_000_000] <= 1.3 * found[1_000]


@pytest.mark.parametrize("claim", [PureDP(1.0), GaussianDP(1.0)])
@MODES
def test_the_verdict_is_the_bound_above_the_budget_in_every_use(claim, mode):
    """Of a leak and of none, and of one use of a pair and of two; other claims keep to the contract of tests."""
    game, _, _ = played(leaking_third, [claim] * 3, TRIANGLE, samples=100, mode=mode)
    for pair in game.pairs:
        assert pair.is_violated == (pair.main.lower > claim.value)
        assert pair.ratio_lower == pair.main.lower / claim.value
        for _, use in pair.uses:
            assert use.is_rejected == (use.lower > use.claim.value)
        if pair.looks:
            assert pair.looks[-1].parameter_lower == pair.main.lower
            assert [look.parameter_lower for look in pair.looks] == sorted(look.parameter_lower for look in pair.looks)
