"""Where games of their own end and one table begins: what decides it, and that both sides give the same things.

Most audits here are made small by a lower limit of cost, so that a few pairs are an all-pairs table.
"""

import dataclasses
import math

import numpy as np
import pytest
from support.samplers import KeepsItsNoise, laplace, one_at_a_time, one_by_one

import dpaudit
from dpaudit.audits import many_pairs
from dpaudit.audits.many_pairs import MAX_GAMES, game_plan
from dpaudit.privacy.metrics import AbsoluteMetric
from dpaudit.reports.wording import notes
from dpaudit.subjects.callables import as_subject

METRIC = dpaudit.MetricDP(AbsoluteMetric(1.0))
POINTS = [0.5 * k for k in range(6)]  # 15 pairs
MOVED = POINTS[3]


def moved(data, size, rng):
    """The law of one input stands half a nat to the right: its pairs with all on its left break their budgets."""
    return data + (0.5 if data == MOVED else 0.0) + rng.laplace(size=size)


def response(data, size, rng):
    """Randomised response of loss 1, exactly on its budget: on inputs 2 k and 2 k + 1."""
    kept = rng.random(size) < 1.0 / (1.0 + math.exp(-1.0))
    return np.where(kept, data % 2, 1 - data % 2)


def audited(mechanism, claim=METRIC, pairs=None, **options):
    options = {"samples": 4_000, "seed": 1, "mode": "fixed", "floating_point": False, "severity": False, **options}
    return dpaudit.audit(mechanism, claim, dpaudit.all_pairs(POINTS) if pairs is None else pairs, **options)


def neighbours(count):
    return [(2 * k, 2 * k + 1) for k in range(count)]


@pytest.fixture
def cheap(monkeypatch):
    """All-pairs tables of more than two pairs, with a depth of four pairs."""
    monkeypatch.setattr(many_pairs, "MAX_GAMES", dict.fromkeys(MAX_GAMES, 2))
    monkeypatch.setattr(many_pairs, "DEPTH_GAMES", 4)


# --- what decides ---


class ByPair(dpaudit.GaussianDP):
    """A claim of the user's own, with a budget for each pair."""

    def for_pair(self, x, x_prime):
        return dpaudit.GaussianDP(self.mu * abs(x - x_prime))


class Either(ByPair):
    """Far pairs are promised another parameter."""

    def for_pair(self, x, x_prime):
        return super().for_pair(x, x_prime) if abs(x - x_prime) < 20.0 else dpaudit.PureDP(20.0)


CLAIMS = (dpaudit.GaussianDP(1.0), dpaudit.FDP([(0.0, 0.5), (0.5, 0.0), (1.0, 0.0)]), dpaudit.RenyiDP(2.0, 0.5),
          dpaudit.ZeroConcentratedDP(0.5), dpaudit.ApproxDP(1.0, 0.01), METRIC, ByPair(1.0))  # fmt: skip


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_every_claim_has_one_look_and_one_table(claim):
    subject, pairs = as_subject(laplace), dpaudit.AllPairs([float(k) for k in range(64)])
    for count, played in ((20, "sequential mode"), (21, "fixed mode"), (151, "one table"), (2_016, "one table")):
        assert str(game_plan(subject, claim, pairs[:count], "sequential", 1_000)) == played


def test_pairs_that_are_promised_different_parameters_have_games_up_to_two_thousand():
    subject, pairs = as_subject(laplace), dpaudit.AllPairs([float(k) for k in range(64)])
    assert str(game_plan(subject, Either(1.0), pairs[:501], "sequential", 1_000)) == "sequential mode"
    with pytest.raises(dpaudit.UsageError, match=r"one parameter for a table of all pairs, got mu and, for .* epsilon"):
        dpaudit.audit(laplace, Either(1.0), pairs, samples=100, seed=1)


# --- what a user gets ---


def test_every_pair_has_a_finding_on_either_side(cheap, monkeypatch):
    """Miss rate: (1.0, 1.5) has a loss of twice its budget; on 4,000 draws it was named in 20 of 20 seeds."""
    table = audited(moved)
    monkeypatch.setattr(many_pairs, "MAX_GAMES", MAX_GAMES)
    games = audited(moved)
    assert table.universe is not None and games.universe is None
    assert [one.id for one in table.findings] == [one.id for one in games.findings]
    for one, row in zip(table.findings, range(15), strict=True):
        verdict = dpaudit.results.model.VERDICTS[int(table.universe.verdict[row])]
        assert (one.verdict, one.epsilon_lower) == (verdict, table.universe.epsilon_lower[row])
        assert one.p_value is not None and one.power is not None and one.witness is not None
    broken = {pair.id for pair in dpaudit.all_pairs(POINTS) if MOVED in (pair.x, pair.x_prime)}
    for result in (table, games):
        assert result.violated and {one.id for one in result.violated} <= broken  # false alarms: at most 5%, fixed
    assert table.options["selected"] == 4
    assert sum(one.error_share for one in table.findings) <= 0.05


def test_many_pairs_of_a_sequential_audit_have_the_games_of_fixed_mode(monkeypatch):
    """To the bit; what was asked for is said."""
    monkeypatch.setattr(many_pairs, "MAX_GAMES", {"sequential": 1, "fixed": 7})
    pairs = dpaudit.all_pairs(POINTS[:4])
    asked, fixed = (audited(moved, pairs=pairs, samples=1_000, mode=mode) for mode in ("sequential", "fixed"))
    assert asked.mode == "fixed" and asked.universe is None
    assert asked.options == {**fixed.options, "asked_mode": "sequential"}
    records = [[one.to_dict() for one in result.findings] for result in (asked, fixed)]
    assert records[0] == records[1]
    assert any("tested once, after all its draws (fixed mode)" in line for line in notes(asked)) and not notes(fixed)
    few = audited(moved, pairs=pairs[:1], samples=1_000, mode="sequential")
    assert few.mode == "sequential" and "asked_mode" not in few.options
    modes = ("sequential", "fixed")
    one, other = (dpaudit.plan(moved, METRIC, pairs, samples=1_000, mode=mode, seed=1) for mode in modes)
    known = [[power.known for budget in planned.budgets for power in budget.powers] for planned in (one, other)]
    assert one.mode == "fixed" and known[0] == known[1]


def test_jobs_and_a_checkpoint_change_no_bit(cheap, tmp_path):
    def evidence(result):
        return dataclasses.replace(result, seconds=0.0, environment={}).to_dict()

    class Stop(Exception):
        pass

    def stops(progress):
        if progress.draws > 0:
            raise Stop

    alone, place = evidence(audited(moved)), tmp_path / "audit.checkpoint"
    assert evidence(audited(moved, jobs=2)) == alone
    with pytest.raises(Stop):
        audited(moved, checkpoint=place, on_progress=stops)
    resumed = evidence(audited(moved, checkpoint=place, resume=True))
    assert resumed.pop("options") | {"resumed": None} == alone.pop("options") | {"resumed": None}
    assert resumed == alone


def test_a_store_a_band_and_pools_play_games(cheap, tmp_path):
    class Family:
        translation_family = True

        def sample(self, data, size, rng):
            return data + rng.laplace(size=size)

    pairs = dpaudit.all_pairs(POINTS[:3])
    options = {"pairs": pairs, "samples": 400, "mode": "sequential"}
    kept = audited(laplace, **options, store=tmp_path / "evidence.db")
    assert kept.mode == "sequential" and kept.universe is None
    assert kept.options["night"] == 1 and len(kept.findings) == 3
    band = audited(laplace, **options, band=True)
    assert band.mode == "sequential" and band.universe is None and band.trade_off is not None
    pooled = audited(Family(), **options, pool=True)
    assert pooled.mode == "sequential" and pooled.universe is None and pooled.options["pools"] == 1
    assert audited(laplace, **options).universe is not None


def test_isolated_calls_play_games_and_isolated_batches_that_raise_too(cheap):
    for subject in (one_by_one, one_at_a_time):
        result = audited(subject, pairs=dpaudit.all_pairs(POINTS[:4]), samples=200, isolation="seconds=60,timing=0")
        assert result.universe is None and len(result.findings) == 6
        assert result.verdict in ("not_refuted", "inconclusive")
    whole = audited(laplace, pairs=dpaudit.all_pairs(POINTS[:4]), samples=200, isolation="seconds=60,timing=0")
    assert whole.universe is not None


# --- what is withheld on both sides ---


def test_a_mechanism_that_keeps_its_noise_is_not_called_violated(cheap):
    result = audited(KeepsItsNoise())
    assert result.universe is not None and result.verdict == "inconclusive"
    assert len(result.findings) == 15 and not result.universe.epsilon_lower.any()
    for one in result.findings:
        assert "Noise is kept" in one.notes[0]
        assert one.epsilon_lower == 0.0 and one.power is None and one.witness is None


def test_a_mechanism_without_noise_is_violated_in_every_pair(cheap):
    result = audited(lambda data, size, rng: np.full(size, data))
    assert {one.verdict for one in result.findings} == {"violated"} and len(result.findings) == 15


def test_draws_that_depend_on_each_other_are_noted_of_every_pair(cheap):
    result = audited(lambda data, size, rng: np.full(size, data + rng.laplace()))
    assert result.verdict == "inconclusive" and result.side_findings and len(result.findings) == 15
    for one in result.findings:
        assert "Draws depend on each other" in one.notes[0] and one.epsilon_lower == 0.0 and one.power is None


# --- error rates and power ---


# 8 pairs at their budgets, where any larger loss would be a violation: P(an audit alarms) <= 5%, so that more than 37
# of 400 has a probability of 1.4e-4 at most. 400 audits of 16 inputs, 600 draws each.
@pytest.mark.long
def test_sound_pairs_at_their_budgets_alarm_in_at_most_5_percent_of_audits(cheap, monkeypatch):
    monkeypatch.setattr(many_pairs, "DEPTH_GAMES", 2)
    alarms = 0
    for seed in range(400):
        result = audited(response, "eps=1", neighbours(8), samples=600, seed=seed)
        assert result.universe is not None
        alarms += result.verdict == "violated"
    assert alarms <= 37
