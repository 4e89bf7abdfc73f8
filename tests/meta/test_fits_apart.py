"""Draws that a fit sees are never counted: spies note what is fitted, what is counted, and the streams of both."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit
from support.audit_runs import run_of

import dpaudit
from dpaudit.audits import band, severity, side_channels
from dpaudit.audits.all_pairs_auditing import AllPairsAudit
from dpaudit.audits.audit_run import AuditRun
from dpaudit.audits.options import Options
from dpaudit.conformance import noise
from dpaudit.conformance.case import Case
from dpaudit.features.outcomes import read_outputs
from dpaudit.inference.bound_search import just_above
from dpaudit.privacy.claims import ApproxDP, PureDP
from dpaudit.privacy.pairs import Pair
from dpaudit.running import streams
from dpaudit.running.worker_pool import WorkerPool
from dpaudit.scores import auditing, bets, guesses
from dpaudit.subjects.callables import as_subject

PAIR = Pair(0.0, 1.0, "pair")


def laplace(data, size, rng):
    return data + rng.laplace(size=size)


# --- scores ---


def test_bets_on_scores_have_seen_earlier_ones_alone():
    """Of a claim that nothing tells the sides apart each label is a fair coin, whatever its score is.

    So the mean wealth over all labels of scores behind the first six, on which nothing is staked, is 1. Bets that have
    seen one of these labels would win.
    """
    scores, first = np.random.default_rng(0).normal(size=12), np.array([0, 0, 0, 1, 1, 1])
    first = first[np.argsort(np.argsort(scores[:6]))]  # the higher ones speak for 1
    won = [
        np.exp(bets.ScoreBets(scores, np.concatenate([first, last]), PureDP(0.0)).log_wealth(1e-12)[-1])
        for last in itertools.product((0, 1), repeat=6)
    ]
    assert np.mean(won) == pytest.approx(1.0, rel=1e-6)
    assert np.ptp(won) > 0.1  # something is staked


@pytest.mark.parametrize("claim", [PureDP(0.7), ApproxDP(0.7, 0.1), ApproxDP(0.0, 0.3)], ids=str)
def test_bets_on_scores_win_nothing_of_a_law_on_the_claim(claim):
    """Two scores that speak for either side as much as the claim allows: the mean over one score and its label."""
    rng = np.random.default_rng(1)
    speaks = (1.0 - claim.delta) * expit(claim.value) + claim.delta
    labels = rng.integers(0, 2, 40)
    scores = (rng.random(40) < np.where(labels == 1, 0.98, 0.02)).astype(float)
    value = just_above(claim.value)  # a hair more than the law's own: it wins less
    before = bets.ScoreBets(scores, labels, claim).log_wealth(value)[-1]
    mean = 0.0
    for label, score in itertools.product((0, 1), repeat=2):
        chance = 0.5 * (speaks if label == score else 1.0 - speaks)
        after = bets.ScoreBets(np.append(scores, score), np.append(labels, label), claim).log_wealth(value)[-1]
        mean += chance * np.exp(after - before)
        assert abs(after - before) > 0.01  # both sides are staked on
    assert mean <= 1.0 and mean == pytest.approx(1.0, abs=1e-6)


def test_the_checks_of_scores_and_the_bets_on_them_toss_coins_of_their_own(monkeypatch):
    tossed = []
    monkeypatch.setattr(auditing, "check_scores", lambda *arguments: tossed.append(arguments[3].random()))
    labelled = auditing.labelled

    def noted(scores_in, scores_out, rng):
        tossed.append(rng.random())
        return labelled(scores_in, scores_out, rng)

    monkeypatch.setattr(auditing, "labelled", noted)
    monkeypatch.setattr(auditing, "perfect_lower", lambda *arguments: 0.0)
    sides = np.random.default_rng(1).normal(size=(2, 8))
    first = dpaudit.audit_scores(*sides, claim="eps=1", design="sequential", seed=4)
    second = dpaudit.audit_scores(*sides, claim="eps=1", design="sequential", seed=4)
    assert len(tossed) == 4 and tossed[:2] == tossed[2:] and tossed[0] != tossed[1]
    assert first.log_wealth == second.log_wealth  # another look is no other attempt


def test_the_order_of_play_is_decided_by_coins_alone():
    sides = np.arange(30.0), 100.0 + np.arange(20.0)
    scores, labels = bets.labelled(*sides, np.random.default_rng(1))
    others, same = bets.labelled(sides[0] ** 2, -sides[1], np.random.default_rng(1))
    assert np.array_equal(labels, same) and len(labels) > 20
    assert np.array_equal(scores[labels == 1], sides[0][: labels.sum()])  # each once, in its order
    assert np.array_equal(others[labels == 0], -sides[1][: (1 - labels).sum()])


@pytest.mark.parametrize("design", ["many-runs", "sequential"])
def test_scores_of_runs_whose_number_was_fixed_are_played_in_a_random_order(monkeypatch, design):
    """A file may have them in an order that tells; bets that hold at any time keep that of the runs."""
    played = []
    monkeypatch.setattr(auditing, "labelled", lambda *given: played.append(given[:2]) or bets.labelled(*given))
    monkeypatch.setattr(auditing, "perfect_lower", lambda *arguments: 0.0)
    sides = np.random.default_rng(1).normal(size=(2, 20))
    dpaudit.audit_scores(*sides, claim="eps=1", design=design, seed=1)
    for side, given in zip(played[0], sides, strict=True):
        assert np.array_equal(np.sort(side), np.sort(given)) and np.array_equal(side, given) == (design == "sequential")


def test_each_look_at_a_ledger_has_the_seed_and_the_rate_of_its_first_session(monkeypatch, tmp_path):
    seen = []
    audited = auditing._audited
    monkeypatch.setattr(auditing, "_audited", lambda *given: seen.append(given[4:6]) or audited(*given))
    monkeypatch.setattr(auditing, "perfect_lower", lambda *arguments: 0.0)
    scores = np.random.default_rng(1).normal(size=(2, 60))
    options = {"claim": "eps=1", "design": "sequential", "confidence": 0.9, "store": tmp_path / "e.db", "name": "net"}
    for runs, seed in ((40, 5), (60, None)):
        dpaudit.audit_scores(*scores[:, :runs], seed=seed, **options)
    assert seen == [(0.9, 5), (0.9, 5)]


def test_equal_scores_are_ordered_by_a_draw_that_does_not_see_labels():
    places = guesses.ordered(np.zeros(50), np.arange(50), np.random.default_rng(1)).labels
    labels = np.arange(50) % 2
    assert np.array_equal(guesses.ordered(np.zeros(50), labels, np.random.default_rng(1)).labels, labels[places])
    assert not np.array_equal(places, np.sort(places))
    drawn = guesses.ordered_pairs(np.zeros(200), np.zeros(200), np.random.default_rng(1)).labels
    assert 50 < drawn.sum() < 150  # fair coins: false with probability 1e-12


# --- stages of an audit ---


def test_the_score_of_a_band_is_fitted_on_draws_that_the_band_does_not_count(monkeypatch):
    fitted, scored, counted = [], [], []

    class State:
        def learn(self, training):
            fitted.append((training.first.numbers[:, 0], training.second.numbers[:, 0]))
            self.counter = SimpleNamespace(mixture=self)

        def __call__(self, side):
            scored.append(side.numbers[:, 0])
            return expit(scored[-1])

    def band_of(first, second, level):
        counted.append((first, second, level))
        return band_at(first, second, level)

    band_at = band.band_of_bins
    monkeypatch.setattr(band, "LearningState", State)
    monkeypatch.setattr(band, "describe_score", lambda mixture: "it")
    monkeypatch.setattr(band, "band_of_bins", band_of)
    purposes = []
    drawer = WorkerPool.drawer
    monkeypatch.setattr(WorkerPool, "drawer", lambda *arguments: purposes.append(arguments[4]) or drawer(*arguments))
    found, runs = band.examine(run_of(laplace, PAIR, PureDP(1.0), 200, 1), 0, 0.03)
    (train,), ((first, second, level),) = fitted, counted
    assert purposes == [streams.BAND_DRAWS]
    assert (len(train[0]), len(scored[0])) == band.draws_of(200, True) == (50, 150) and runs == 400
    drawn = np.concatenate([*train, *scored])
    assert len(np.unique(drawn)) == len(drawn) == 400
    assert first.sum() == second.sum() == found.draws == 150  # what is scored is counted, and nothing else
    assert level == found.error_rate == 0.03


class Ended(Exception):
    """Ends what has made its drawer."""


def drawers(monkeypatch):
    """The seed and purpose of what a worker pool draws, which ends it."""
    made = []

    def noted(worker_pool, subject, data, seed, purpose, *rest):
        made.append((seed, purpose))
        raise Ended

    monkeypatch.setattr(WorkerPool, "drawer", noted)
    return made


def test_the_stages_of_two_pairs_draw_from_streams_of_their_own(monkeypatch):
    asked, tossed = [], []

    class Game:
        def __init__(self, claims, inputs, *, draw, coin, **options):
            asked.append((draw.args[0].purpose, draw.args[0].seed, *inputs))
            tossed.append(coin(4, 0).random())
            raise Ended

    monkeypatch.setattr(severity, "LabelGame", Game)
    options = Options(100, "sequential", 0.95, 9, 0.1, 2.0, None, None)
    run = AuditRun(as_subject(laplace), PureDP(1.0), [PAIR] * 4, options, 9, WorkerPool(), pairs=[PAIR] * 4,
                   claims=[PureDP(1.0)] * 4, groups=[(k,) for k in range(4)], games=[SimpleNamespace(level=0.1)] * 4,
                   shown=lambda game: (None, None))  # fmt: skip
    for place in (0, 3):
        with pytest.raises(Ended):
            severity.examine(run, place, 100)
    assert asked == [(streams.SEVERITY_DRAWS, 9, (0, 1)), (streams.SEVERITY_DRAWS, 9, (6, 7))]
    assert tossed == [streams.stream(9, streams.SEVERITY_COINS, place, 4).random() for place in (0, 3)]


def test_a_table_its_depth_and_a_replay_draw_for_purposes_of_their_own(monkeypatch):
    result = dpaudit.audit(lambda data, size, rng: np.full(size, data), "eps=1", [(0.0, 1.0)], samples=60, seed=7,
                           mode="fixed", floating_point=False)  # fmt: skip
    made = drawers(monkeypatch)
    options = Options(100, "fixed", 0.95, 7, 0.1, 2.0, None, None)
    run = AuditRun(as_subject(laplace), PureDP(1.0), [PAIR], options, 7, WorkerPool())
    for restart in (0, streams.RESTART):
        with pytest.raises(Ended):
            AllPairsAudit(run).play(restart)
    with pytest.raises(Ended):
        dpaudit.replay(result, laplace, PureDP(1.0), seed=7)
    table = [(7, streams.ALL_PAIRS_DRAWS), (7, streams.ALL_PAIRS_DRAWS + streams.RESTART)]
    assert made == [*table, (7, streams.REPLAY_DRAWS)]


# --- what is found beside ---


def test_a_rule_on_times_is_fixed_on_the_pilot_and_counted_on_the_rest():
    rng = np.random.default_rng(5)
    labels, seconds = rng.random(200) < 0.5, rng.random(200)
    seconds[:60] += labels[:60]
    found = side_channels.timing_test(labels, seconds, 1e-3)
    other = labels.copy()
    other[60:] = ~other[60:]
    changed = side_channels.timing_test(other, seconds, 1e-3)
    assert changed["rule"] == found["rule"] and changed["guesses"] == found["guesses"] <= 140
    assert changed["correct"] == found["guesses"] - found["correct"]  # none of the pilot's, which were right


def test_features_of_calls_are_fixed_on_workers_that_are_not_tested():
    rng = np.random.default_rng(6)
    calls = [rng.normal(size=60) for _ in range(3)]

    def tests(pilot_order):
        order = np.concatenate([pilot_order, np.arange(20, 60)])
        return side_channels.independence_tests([read_outputs(calls[0][order], 60),
                                                 *(read_outputs(call, 60) for call in calls[1:])], 20)  # fmt: skip

    found = tests(np.arange(20))
    assert len(found) > 3 and found == tests(rng.permutation(20))
    moved = [call.copy() for call in calls]
    for call in moved:
        call[20:] += 5.0  # features stay: of the pilot alone
    again = side_channels.independence_tests([read_outputs(call, 60) for call in moved], 20)
    assert [what for _, what in again] == [what for _, what in found]


class Steady:
    def sample(self, data, size, rng):
        return laplace(data, size, rng)

    def pairs(self):
        return [PAIR]


@pytest.mark.parametrize("name", ["independent_in_a_batch", "batch_law", "independent_calls"])
def test_the_features_of_a_check_are_of_draws_that_it_does_not_test(monkeypatch, name):
    monkeypatch.setattr(noise, "PILOT", 40)
    monkeypatch.setattr(noise, "PAIRS", 30)
    fitted, asked = [], []
    features, of = noise.features, noise.Feature.of

    def fit(pilot):
        fitted.append(pilot.numbers.ravel())
        found = features(pilot)
        asked.clear()  # of the pilot itself
        return found

    def noted(self, outcomes):
        asked.append(outcomes.numbers.ravel())
        return of(self, outcomes)

    monkeypatch.setattr(noise, "features", fit)
    monkeypatch.setattr(noise.Feature, "of", noted)
    getattr(noise, name)(Case(Steady(), PureDP(1.0), [PAIR], 1, 100, 0.05))
    assert {len(pilot) for pilot in fitted} == {40} and asked and {len(side) for side in asked} == {30}
    assert not np.isin(np.concatenate(asked), np.concatenate(fitted)).any()


def test_each_check_draws_from_streams_of_its_own():
    case = Case(Steady(), PureDP(1.0), [PAIR], 1, 100, 0.05)
    keys = itertools.product(("batch_law", "independent_calls"), ((), (0,), (0, 1)))
    drawn = [case.rng(check, *key).random() for check, key in keys]
    assert len({*drawn}) == 6 and drawn[0] == case.rng("batch_law").random()
