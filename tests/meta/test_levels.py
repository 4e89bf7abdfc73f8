"""Every error rate, and how it is split: the level that reaches each exact test, asserted on the objects.

No rate of false alarms sees a doubled level behind a bound that is loose, and tests of rates take long. So every place
where a rate is shared out is asked here what it gives to whom: the shares sum to the rate, each test receives its own
share, and the bound of a record is the one that `scipy.stats` gives at that share. Nothing here is left to chance.
"""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from support.bounds import line_bound
from support.spies import Reached, spied

import dpaudit
from dpaudit.audits import all_pairs_auditing, findings, one_audit, planning, replaying, severity, side_channels
from dpaudit.audits.all_pairs_auditing import AllPairsAudit
from dpaudit.audits.audit_run import AuditRun
from dpaudit.audits.many_pairs import TABLE_SHARE, GamePlan
from dpaudit.audits.options import Options
from dpaudit.audits.planning import least_share
from dpaudit.campaign.all_pairs import AllPairsGame
from dpaudit.campaign.campaign import shares_by_rank
from dpaudit.campaign.label_game import LabelGame
from dpaudit.conformance import noise, processes, promises, registry, running
from dpaudit.conformance.case import Case
from dpaudit.conformance.outcomes import CheckFailed
from dpaudit.conformance.registry import statistical_count
from dpaudit.features.outcomes import read_outputs
from dpaudit.inference import independence, order, pair_lines
from dpaudit.inference.bound_search import just_above
from dpaudit.inference.guess_rules import GuessRule
from dpaudit.inference.order import ENDS, RATE
from dpaudit.inference.pair_game import PairGame
from dpaudit.inference.saved import FORMAT, at_level, pair_state, restored
from dpaudit.privacy.claims import ApproxDP, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.privacy.pair_budgets import PairBudgets
from dpaudit.privacy.pairs import Pair
from dpaudit.running.accumulating import AccumulatingAudit
from dpaudit.running.store import Identity, SavedPair, Store, share_of
from dpaudit.running.worker_pool import WorkerPool
from dpaudit.scores.order import order_p_value
from dpaudit.search import shrinking
from dpaudit.subjects.callables import as_subject

LEVEL = 0.05
PAIR = Pair(0.0, 1.0, "pair")


def response(data, size, rng):
    """Randomised response: right with probability 0.9 on either input."""
    return np.where(rng.random(size) < 0.9, data, 1.0 - data)


# --- an audit: pairs, bands, stages, tables and depths ---


@pytest.mark.parametrize("mode", ["fixed", "sequential", "adaptive"])
@pytest.mark.parametrize("band", [False, True])
def test_the_pairs_of_an_audit_and_its_band_share_one_rate(mode, band):
    result = dpaudit.audit(
        response, "eps=1", [(0.0, 1.0), (0.0, 0.5)], samples=10, seed=1, mode=mode, band=band, floating_point=False
    )
    shares = [finding.error_share for finding in result.findings]
    assert min(shares) > 0.0
    assert sum(shares) == pytest.approx(LEVEL * (0.8 if band else 1.0), rel=1e-9)
    if band:
        assert result.trade_off.error_rate == pytest.approx(LEVEL * 0.2, rel=1e-9)


@pytest.mark.parametrize("band", [False, True])
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_the_bound_of_a_fixed_audit_is_that_of_its_record_at_its_share(delta, band):
    """Rules of one or two guessing events: which, the witness says."""
    options = {"samples": 400, "seed": 3, "mode": "fixed", "band": band, "floating_point": False}
    result = dpaudit.audit(response, ApproxDP(1.0, delta) if delta else PureDP(1.0), [(0.0, 1.0)], **options)
    (finding,) = result.findings
    witness, level = finding.witness, LEVEL * (0.8 if band else 1.0)
    sides = sum(GuessRule.from_dict(witness.rule["rule"]).directions)
    expected = line_bound(witness.correct, witness.wrong, witness.correct + witness.wrong + witness.abstained,
                          delta * sides / 2.0, level)  # fmt: skip
    assert witness.wrong > 20
    assert finding.parameter_lower == pytest.approx(expected, rel=1e-5)


def test_a_pool_is_tested_at_the_largest_of_its_budgets(monkeypatch):
    class Shifted:
        translation_family = True

        def sample(self, data, size, rng):
            return data + rng.laplace(size=size)

    claim = dpaudit.MetricDP(lambda x, y: abs(x - y) * (1.0 + 1e-10 * min(x, y)), on="inputs")
    asked = spied(monkeypatch, one_audit, "game_on")
    with pytest.raises(Reached):
        dpaudit.audit(Shifted(), claim, [(1.0, 2.0), (0.0, 1.0)], samples=10, seed=1, floating_point=False)
    assert [one.value for one in asked[0]["claims"]] == [1.0 + 1e-10]


CLAIMS = [PureDP(1.0), ApproxDP(1.0, 0.01), GaussianDP(1.0), RenyiDP(2.0, 1.0), ZeroConcentratedDP(0.5)]


@pytest.mark.parametrize("sequential", [True, False])
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_the_uses_of_a_pair_share_its_level(claim, sequential):
    pair = PairGame(claim, (0, 1), sequential, 1_000)
    pair.start(LEVEL)
    levels = [game.level for _, game in pair.uses]
    assert sum(levels) == pytest.approx(LEVEL, rel=1e-12)
    assert pair.main.level == pytest.approx(LEVEL * (0.8 if len(levels) > 1 else 1.0), rel=1e-12)
    assert (len(levels) > 1) == (claim.anchored or claim.family == "renyi")


def test_a_pair_that_goes_on_has_the_levels_that_it_had():
    pair = PairGame(GaussianDP(1.0), (0, 1), True, 400)
    pair.fit(*(read_outputs(np.arange(40.0) + k, 40) for k in (0, 1)), LEVEL)
    pair.start(0.03)
    again = restored(pair_state(pair, "1/0"), PairGame(GaussianDP(1.0), (0, 1), True, 400))
    levels = [game.level for _, game in again.uses]
    assert levels == [game.level for _, game in pair.uses] == pytest.approx([0.024, 0.006]) and again.level == 0.03


def test_the_pairs_of_a_label_game_have_the_rate_by_rank():
    def draw(tasks):
        outputs = [read_outputs(response(float(t.input % 2), t.size, np.random.default_rng(t.input)), t.size)
                   for t in tasks]  # fmt: skip
        return [task.result_on(one) for task, one in zip(tasks, outputs, strict=True)]

    game = LabelGame([PureDP(1.0)] * 3, [(0, 1), (0, 2), (0, 3)], samples=40, error_rate=LEVEL, mode="sequential",
                     draw=draw, coin=lambda *key: np.random.default_rng(key))  # fmt: skip
    game.start()
    levels = sorted(pair.level for pair in game.pairs)
    assert sum(levels) == pytest.approx(LEVEL, rel=1e-12)
    harmonic = 1.0 + 1.0 / 2.0 + 1.0 / 3.0
    assert levels == pytest.approx([LEVEL * (1.0 / 6.0 + 0.5 / rank / harmonic) for rank in (3, 2, 1)], rel=1e-12)


@pytest.mark.parametrize("pairs", [1, 2, 10, 1_000])
def test_a_plan_counts_with_the_share_that_every_pair_has(pairs):
    shares = shares_by_rank(np.arange(pairs, dtype=float))
    assert shares.sum() == pytest.approx(1.0, rel=1e-12)
    assert least_share(pairs) == pytest.approx(shares.min(), rel=1e-12)


@pytest.mark.parametrize(("is_table", "share"), [(False, 1.0), (True, TABLE_SHARE)])
def test_a_plan_counts_with_the_share_of_a_table(is_table, share):
    pairs = [Pair(k, k + 1) for k in range(50)]
    games = GamePlan("fixed", is_table)
    planned = planning._Planned(as_subject(response), PureDP(1.0), pairs, games, 0.97, 0.9)
    assert planned.level == pytest.approx(0.03 * share * least_share(50), rel=1e-9)


def test_the_table_of_all_pairs_and_its_depth_share_one_rate(monkeypatch):
    """They are looked at in one call, and a pair has the larger one of its two bounds."""
    spent = []
    table = all_pairs_auditing.AllPairsGame

    def noted(*arguments, **options):
        spent.append(options["error_rate"])
        game = table(*arguments, **options)
        assert game.level.sum() == pytest.approx(options["error_rate"], rel=1e-12)
        return game

    monkeypatch.setattr(all_pairs_auditing, "AllPairsGame", noted)
    depth = spied(monkeypatch, all_pairs_auditing, "game_on")
    pairs = [Pair(float(i), float(j), f"{i}{j}") for i, j in ((0, 1), (1, 2), (0, 2))]
    options = Options(100, "fixed", 0.97, 1, 0.1, 2.0, None, None)
    with pytest.raises(Reached):
        AllPairsAudit(AuditRun(as_subject(response), PureDP(1.0), pairs, options, 1, WorkerPool())).play(0)
    (one,) = depth
    assert spent == pytest.approx([TABLE_SHARE * 0.03]) and spent[0] + one["error_rate"] == pytest.approx(0.03)


class Stage:
    """A stage of a violated pair whose bound is known."""

    lower, asked = 0.0, None

    def __init__(self, claims, inputs, **options):
        Stage.asked = options
        self.pairs = [SimpleNamespace(main=SimpleNamespace(lower=self.lower), hint=1.0, change=None, is_broken=False)]
        self.runs = 200

    def start_after(self, shown):
        pass

    def play(self):
        pass

    def labelled(self, pair):
        return 400


@pytest.mark.parametrize(("of_stage", "reported"), [(2.0, 2.0), (0.5, just_above(1.0))])
def test_a_violated_pair_has_the_bound_of_its_stage_at_its_own_level_never_the_larger_of_two(
    monkeypatch, of_stage, reported
):
    """The audit's own bound is 5, above that of the stage: to take the larger one would be a second chance to err."""
    monkeypatch.setattr(severity, "LabelGame", Stage)
    monkeypatch.setattr(Stage, "lower", of_stage)
    game = PairGame(PureDP(1.0), (0, 1), True, 1_000)
    game.start(0.0123)
    game.main._lower = 5.0
    run = AuditRun(as_subject(response), game.claim, [PAIR], None, 1, WorkerPool(), pairs=[PAIR], claims=[game.claim],
                   groups=[(0,)], games=[game], shown=lambda game: (None, None))  # fmt: skip
    found, runs = severity.examine(run, 0, 200)
    assert Stage.asked["error_rate"] == 0.0123 and Stage.asked["mode"] == "fixed" and runs == 200
    assert game.change is None
    assert found.parameter_lower == reported
    (finding,) = dpaudit.audit(response, "eps=1", [(0.0, 1.0)], samples=10, seed=1, mode="fixed",
                               floating_point=False).findings  # fmt: skip
    finding = dataclasses.replace(finding, verdict="violated", epsilon_lower=5.0, parameter_lower=5.0, ratio_lower=5.0)
    for stage, expected in ((found, reported), (None, just_above(1.0))):  # without a stage it is just above its budget
        one = findings.with_severity(finding, stage, game)
        assert one.parameter_lower == one.epsilon_lower == expected
        assert one.ratio_lower == pytest.approx(expected)


def test_a_side_finding_on_the_order_of_calls_states_the_rate_of_all_that_were_asked():
    # Of two sessions, three inputs, and of one of them small batches and, where these hint, more of them.
    change = order.Change("outcomes are in order", 1e-12)
    (fixed,) = findings.order_finding([change], 3, True, 2)
    (other,) = findings.order_finding([change], 3, False, 2)
    assert fixed.error_rate == pytest.approx(10.0 * RATE) and other.error_rate == pytest.approx(10.0 * RATE * ENDS)


def test_two_runs_are_held_against_each_other_on_both_sides():
    first, second = (np.arange(40) < k for k in (15, 12))
    law = stats.hypergeom(40, 15, 12)
    assert independence.dependence(first, second) == pytest.approx(2.0 * law.sf(11), rel=1e-9, abs=0.0)
    assert independence.dependence(first, second[::-1]) == pytest.approx(2.0 * law.cdf(0), rel=1e-9, abs=0.0)
    assert order_p_value(np.arange(4.0), np.random.default_rng(0)) == pytest.approx(4.0 / 24.0)  # two tests, two sides


def test_a_pair_of_a_table_pays_for_each_event_that_it_guesses_on():
    ends = np.array([0, 0, 0]), np.array([1, 2, 3])
    options = {"inputs": 4, "samples": 100, "error_rate": LEVEL, "draw": None, "coin": None}
    table = AllPairsGame(*ends, pair_lines.PairLines(PairBudgets.same(ApproxDP(1.0, 0.01), 3)), **options)
    table.way = np.array([0, 2, 1])
    table.correct[:], table.wrong[:] = 30, 2
    lower, _ = table.lines.bounds(table.record)
    expected = [line_bound(30, 2, table.labelled, 0.01 * sides / 2.0, LEVEL / 3.0) for sides in (2, 1, 1)]
    assert lower == pytest.approx(expected, rel=1e-6) and lower[0] < lower[1]


def test_the_tests_of_an_order_share_its_rate(monkeypatch):
    """The features of one column, and its repeats: at the rate over their number a change is said, above it none."""
    asked = []

    def tests(p_value):
        def of_feature(flags, batches):
            asked.append(1)
            yield p_value, "it"

        return of_feature

    def of_pairs(flags, known, sizes):
        asked.append(1)
        yield 1.0, "pairs"

    values = read_outputs(np.random.default_rng(1).integers(0, 3, 200), 200)
    for factor in (0.99, 1.01):
        asked.clear()
        monkeypatch.setattr(order, "_tests", tests(factor * RATE / 5.0))
        monkeypatch.setattr(order, "pair_tests", of_pairs)
        change = order.change_of(values, [100, 100])
        assert len(asked) == 4  # of two features, alone and in pairs, and one test more, of repeats
        assert (change is not None) == (factor < 1.0)
        assert change is None or change.p_value == pytest.approx(factor * RATE)


# --- a store: one rate for all sessions ---


def test_the_generations_of_a_subject_share_its_rate():
    later = [share_of(k) for k in range(1, 1_001)]
    assert share_of(0) == 0.95
    # The rest of the series lies between the integrals from 1,001 and from 1,000 on.
    scale = later[0]
    assert math.fsum(later) + scale / 1_001.0 < 0.05 <= math.fsum(later) + scale / 1_000.0
    assert later == pytest.approx([scale / k**2 for k in range(1, 1_001)], rel=1e-12)


IDENTITY = Identity("f" * 16, "response", None, "eps=1")


def saved_pair(key, generation, level, now=0.0):
    wealths = [[0.5, 50.0], [just_above(1.0), now]]
    use = {"now": now, "lower": 0.4, "wealths": wealths, "offsets": [], "level_share": 1.0, "table": {"rounds": []}}
    state = {"format": FORMAT, "claim": "c", "labelled": 0, "uses": [use], "violated": True, "level": level}
    return SavedPair(key, key, "0", "1", "epsilon", 1.0, generation, level, state)


@pytest.mark.parametrize("generation", [0, 1, 3])
def test_the_new_pairs_of_a_session_share_their_generation(monkeypatch, tmp_path, generation):
    from dpaudit.running import label_games

    asked = spied(monkeypatch, label_games, "LabelGame")
    subject = as_subject(response)
    with Store.at(tmp_path / "e.db") as store:
        identity = Identity(subject.fingerprint, subject.name, subject.target, "eps=1")
        session = store.begin(identity, 0.97, 1, 100)
        for k in range(generation):
            store.admit(session, [saved_pair(f"pair {k}", k, 1e-3)])
        options = {"samples": 100, "confidence": 0.97, "seed": 1, "worker_pool": WorkerPool()}
        pairs = [PAIR, Pair(1.0, 0.0, "other")]
        audit = AccumulatingAudit(store, subject, PureDP(1.0), [PureDP(1.0)] * 2, pairs, **options)
        with pytest.raises(Reached):
            audit.play()
    assert asked[0]["error_rate"] == pytest.approx(0.03 * share_of(generation), rel=1e-9)


def test_pairs_that_are_new_in_a_merge_share_the_next_generation_and_begin_without_bounds(tmp_path):
    with Store.at(tmp_path / "own.db") as own, Store.at(tmp_path / "other.db") as other:
        session = own.begin(IDENTITY, 0.95, 1, 100)
        own.admit(session, [saved_pair("a", 0, 0.05 * share_of(0))])
        theirs = other.begin(IDENTITY, 0.95, 2, 100)
        won = {"b": 0.0, "c": 40.0, "d": 0.0}
        other.admit(theirs, [saved_pair(key, 0, 0.05 * share_of(0) / 3.0, now) for key, now in won.items()])
        own.merge(other)
        pairs = own.pairs_of(session)
    levels = [pairs[key].level for key in "bcd"]
    assert levels == pytest.approx([0.05 * share_of(1) / 3.0] * 3) and [pairs[k].generation for k in "bcd"] == [1] * 3
    assert all(pairs[key].state["level"] == pairs[key].level for key in "bcd")
    assert sum(pair.level for pair in pairs.values()) < 0.05
    assert pairs["b"].lower == 0.5 and not pairs["b"].is_violated  # its bound was made at another level
    assert pairs["c"].is_violated and pairs["c"].lower == just_above(1.0)  # a wealth of e^40 is enough at any


@pytest.mark.parametrize("level_share", [1.0, 0.8])
@pytest.mark.parametrize("factor", [0.999, 1.001])
def test_merged_wealth_rejects_at_the_share_of_its_level(factor, level_share):
    state = saved_pair("a", 0, LEVEL, math.log(factor / (LEVEL * level_share))).state
    state["uses"][0]["level_share"] = level_share
    found = at_level(state, LEVEL, keeps_bounds=False)
    assert found["violated"] == (factor > 1.0)
    assert found["uses"][0]["lower"] == (just_above(1.0) if factor > 1.0 else 0.5)


def test_merged_wealth_that_is_no_number_rejects_nothing():
    state = saved_pair("a", 0, LEVEL, math.nan).state
    found = at_level(state, LEVEL, keeps_bounds=False)
    assert not found["violated"] and found["uses"][0]["lower"] == 0.5


# --- what is found beside ---


class Timed:
    """An isolated subject that takes no time."""

    has_lost_calls = False

    def together(self, parts):
        pass

    def recycle(self):
        pass

    def sample(self, data, size, rng):
        return [0.0] * size

    def in_random_order(self, parts):
        calls = sum(size for _, size, _ in parts)
        return np.zeros(calls, dtype=int), None, np.ones(calls)


@pytest.mark.parametrize("pairs", [1, 3, 20])
def test_timed_pairs_share_the_rate_of_timing(monkeypatch, pairs):
    asked = spied(monkeypatch, side_channels, "timing_test", lambda given: record)
    some = [Pair(float(k), k + 1.0, f"pair {k}") for k in range(pairs)]
    timed, rate = min(pairs, findings.STAGE_PAIRS), findings.STAGE_RATE
    for factor in (0.999, 1.001):
        asked.clear()
        record = {"p_value": factor * rate / timed, "epsilon_lower": 0.0, "correct": 1, "guesses": 1}
        found = side_channels.timing_finding(Timed(), some, 20, seed=1)
        assert [one["level"] for one in asked] == pytest.approx([rate / timed] * timed)
        assert found.error_rate == rate and found.status == ("found" if factor < 1.0 else "nothing_found")


@pytest.mark.parametrize("tests", [1, 7])
def test_the_tests_of_shared_noise_share_its_rate(monkeypatch, tests):
    rate = findings.STAGE_RATE
    for factor in (0.999, 1.001):
        p_values = [(factor * rate / tests, "least"), *[(0.5, "other")] * (tests - 1)]
        monkeypatch.setattr(side_channels, "independence_tests", lambda calls, pilot, p=p_values: p)
        found = side_channels.independence_finding(Timed(), PAIR, seed=1)
        assert found.error_rate == rate and found.status == ("found" if factor < 1.0 else "nothing_found")


def test_the_bound_on_the_loss_of_times_is_that_of_its_record():
    rng = np.random.default_rng(4)
    labels = rng.random(400) < 0.5
    found = side_channels.timing_test(labels, 1.0 + labels * (rng.random(400) < 0.8) + rng.random(400), 1e-3)
    correct, guesses = found["correct"], found["guesses"]
    assert 0 < correct < guesses <= 280
    assert found["p_value"] == pytest.approx(stats.binom.sf(correct - 1, guesses, 0.5), rel=1e-9, abs=0.0)
    assert found["epsilon_lower"] == pytest.approx(line_bound(correct, guesses - correct, 280, 0.0, 1e-3), rel=1e-9)


# --- replays, small pairs, utility ---


@pytest.fixture(scope="module")
def broken():
    """An audit with a witness, and one whose low bits leak."""
    released = dpaudit.audit(lambda data, size, rng: np.full(size, data), "eps=1", [(0.0, 1.0)], samples=60, seed=1,
                             mode="fixed", confidence=0.97, floating_point=False)  # fmt: skip
    assert released.verdict == "violated"
    return released


def test_a_replay_asks_its_one_pair_at_the_whole_rate(monkeypatch, broken):
    asked = spied(monkeypatch, replaying, "Asked")
    with pytest.raises(Reached):
        dpaudit.replay(broken, response, PureDP(1.0), seed=1)
    assert asked[0]["level"] == pytest.approx(0.03) and asked[0]["labelled"] >= 20


def test_a_replay_of_low_bits_is_at_the_rate_of_their_check(monkeypatch):
    asked = spied(monkeypatch, replaying, "Asked")
    monkeypatch.setattr(replaying, "LowBitTest", lambda *_: None)
    monkeypatch.setattr(replaying.LowBitRule, "from_dict", lambda *_: None)
    monkeypatch.setattr(replaying, "subject_again", lambda *_: as_subject(response))
    pair = SimpleNamespace(id="pair", verdict="leaks", rule={"version": 2}, correct=5, wrong=0, abstained=5, x_id="0",
                           x_prime_id="1", budget=PureDP(1.0).budget)  # fmt: skip
    low_bits = SimpleNamespace(error_rate=1e-3, pairs=(pair,))
    result = SimpleNamespace(findings=(), confidence=0.5, floating_point=low_bits)
    with pytest.raises(Reached):
        replaying.replay_floating_point(result, response, inputs=PAIR, seed=1)
    assert asked[0]["level"] == 1e-3


def test_an_audit_and_that_of_its_small_pair_share_one_rate(monkeypatch, broken):
    rates, seeds = [], []

    def audited(*_, confidence, seed, **options):
        rates.append(1.0 - confidence)
        seeds.append(seed)
        return broken

    monkeypatch.setattr(shrinking, "audit", audited)
    monkeypatch.setattr(shrinking, "shrink", lambda *_, **__: SimpleNamespace(pair=PAIR, runs=0))
    said = spied(monkeypatch, shrinking, "side_finding")
    with pytest.raises(Reached):
        domain = SimpleNamespace(domain_for=lambda claim: None)
        shrinking.audit_and_shrink(response, "eps=1", domain, confidence=0.97, seed=5)
    assert sum(rates) == pytest.approx(0.03, rel=1e-9) and rates[1] == pytest.approx(0.003, rel=1e-9)
    assert said[0]["error_rate"] == pytest.approx(rates[1], rel=1e-9) and len({*seeds}) == 2


# --- the conformance suite ---


class Steady:
    """A mechanism with all that a check may ask of it."""

    def sample(self, data, size, rng):
        return data + rng.laplace(size=size)

    def pairs(self):
        return [PAIR]


@pytest.fixture
def case():
    return Case(Steady(), PureDP(1.0), [PAIR], 1, 1_000, 0.001)


def test_the_checks_of_a_list_share_its_rate(case, monkeypatch):
    from dpaudit.conformance import case as case_module

    assert case.level * statistical_count() == pytest.approx(0.001, rel=1e-12)
    assert statistical_count() == sum(spec.is_statistical for spec in registry.all_checks()) > 20
    for is_statistical, share in ((True, case.level), (False, 0.0)):
        spec = registry.CheckSpec("own", "does it", "m:f", is_statistical)
        bound = SimpleNamespace(remark=lambda: None, expected_failure="", mechanism_name="m", name="own", spec=spec)
        assert running._run(bound, 0.001).error_share == pytest.approx(share, rel=1e-12)
    asked = spied(monkeypatch, case_module, "audit", lambda given: None)
    assert case.audit is None
    case.audited(Steady(), PureDP(1.0), [PAIR], "law", 100)
    rates = [1.0 - one["confidence"] for one in asked]
    assert rates == pytest.approx([case.level] * 2, rel=1e-9) and asked[0]["seed"] != asked[1]["seed"]


def test_what_a_check_hands_on_is_its_share(case, monkeypatch):
    of_doubles = spied(monkeypatch, promises.doubles, "examine")
    of_utility = spied(monkeypatch, promises, "audit_utility")
    case.mechanism.utility_bounds = lambda: [1]
    for name, asked, rate in (("floating_point", of_doubles, lambda one: one["error_rate"]),
                              ("utility_bounds", of_utility, lambda one: 1.0 - one["confidence"])):  # fmt: skip
        with pytest.raises(Reached):
            getattr(promises, name)(case)
        assert rate(asked[0]) == pytest.approx(case.level, rel=1e-9)


@pytest.mark.parametrize("factor", [0.999, 1.001])
def test_the_tests_of_a_check_share_its_level(case, monkeypatch, factor):
    p_value = factor * case.level / 5.0
    tests = [(p_value, "it"), *[(0.7, "other")] * 4]
    if factor < 1.0:
        with pytest.raises(CheckFailed):
            noise._judge(case, tests, "here in {}")
    else:
        assert noise._judge(case, tests, "here in {}") is None
    # Two features of the batch law, of which each is asked on either side.
    monkeypatch.setattr(noise, "fisher", lambda *_: (factor * case.level / 4.0, 1.0))
    if factor < 1.0:
        with pytest.raises(CheckFailed):
            noise.batch_law(case)
    else:
        assert noise.batch_law(case) is None


def test_a_sign_test_of_errors_is_at_the_share_of_its_check(case, monkeypatch):
    """10 of 10 errors are larger: 2^-10 by the binomial law, on either side of the level."""
    few, many = np.zeros(10), np.ones(10)
    monkeypatch.setattr(type(case), "with_budget", lambda self, factor: Steady(), raising=False)
    monkeypatch.setattr(promises, "_errors", lambda c, subject, data, k, stated: (few, many)[k])
    case.mechanism.utility_bounds = lambda: [1]
    case.level = 1.001 * 2.0**-10
    with pytest.raises(CheckFailed):
        promises.more_budget_less_error(case)
    case.level = 0.999 * 2.0**-10
    assert promises.more_budget_less_error(case).startswith("less error in 0, more in 10")


def test_the_two_parts_of_the_test_of_processes_share_its_level(case, monkeypatch):
    """Half for how often two outputs are equal, half for so many that are all equal."""
    limits = spied(monkeypatch, processes, "binomial_upper", lambda given: 0.9)
    drawn = []
    monkeypatch.setattr(processes, "in_a_child", lambda work: drawn.append(len(work())) or [str(len(drawn))])
    monkeypatch.setattr(processes, "tokens", lambda outcomes: [str((k + 1) // 2) for k in range(len(outcomes))])
    assert processes.independent_processes(case) is None
    assert [one["level"] for one in limits] == pytest.approx([0.5 * case.level])
    # Each output of the pilot is in one pair: the first and the second are not equal, the second and the third are.
    assert [(one["successes"], one["trials"]) for one in limits] == [(0, processes.PILOT // 2)]
    (size,) = {*drawn}
    assert 0.9**size <= 0.5 * case.level < 0.9 ** (size - 1)
