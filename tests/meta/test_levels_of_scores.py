"""Error rates of audits of scores, and how each is split: the level that reaches each exact test, on the objects."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special, stats
from support.spies import spied

import dpaudit
from dpaudit.inference.bound_search import bet_grid
from dpaudit.privacy.claims import PureDP
from dpaudit.scores import auditing, bands, bets, guesses, ledger

LEVEL = 0.05
SCORES = tuple(np.random.default_rng(3).normal(size=(2, 40)))
FLAT = bands.band(np.zeros(1), np.zeros(1), 0.5)


@pytest.mark.parametrize("design", ["many-runs", "sequential"])
@pytest.mark.parametrize("factor", [0.999, 1.001])
def test_bets_on_scores_and_their_band_share_one_rate(monkeypatch, design, factor):
    """Bets whose wealth is just below, and just above, what their share of the rate calls for."""
    bets_level = 0.8 * 0.03
    log_wealth = math.log(factor / bets_level)
    course = np.array([0.0] * (39 - bets.FIRST_BETS) + [log_wealth])  # against values up to 2
    monkeypatch.setattr(bets.ScoreBets, "log_wealth", lambda _, value, *__, **___: course * (value <= 2.0))
    perfect = spied(monkeypatch, auditing, "perfect_lower", lambda given: 0.0)
    one = spied(monkeypatch, auditing, "band", lambda given: FLAT)
    each = spied(monkeypatch, auditing, "anytime_bands", lambda given: bands.Bands((FLAT,)))
    result = dpaudit.audit_scores(*SCORES, claim=PureDP(1.0), design=design, confidence=0.97)
    assert (result.verdict == "violated") == (factor > 1.0)
    assert result.decided_after == (40 if factor > 1.0 else None)
    assert result.parameter_lower == (pytest.approx(2.0, rel=1e-3) if factor > 1.0 else 0.0)
    assert [given["level"] for given in perfect] == pytest.approx([bets_level])
    asked = [given["error_rate"] for given in (one if design == "many-runs" else each)]
    assert asked == pytest.approx([0.03 - bets_level] * 2) and not (each if design == "many-runs" else one)


def test_the_bound_of_bets_is_the_last_value_below_which_all_are_rejected(monkeypatch):
    """A value that is not rejected ends it, whatever is above; between two values the bets for the upper one count."""
    grid = bet_grid(1.0, bets.BELOW)
    gap = grid[grid.index(0.85)]
    asked = []

    def course(self, value, made_for=None, enough=math.inf):
        asked.append((value, made_for))
        return np.log([19.0 if value == gap or (made_for is not None and value > 0.75) else 21.0])

    monkeypatch.setattr(bets.ScoreBets, "log_wealth", course)
    found = bets.ScoreBets(np.zeros(0), np.zeros(0, dtype=int), PureDP(1.0))
    assert found.lower(0.05) == pytest.approx(0.75, rel=2e-3) and found.lower(0.001) < 1e-4
    assert {made_for for value, made_for in asked if value not in grid} == {gap, grid[0]}
    assert found.decided_at(0.05) == bets.FIRST_BETS + 1 and found.decided_at(0.001) is None


def test_the_looks_of_an_anytime_band_share_its_rate(monkeypatch):
    """error_rate / ((k + 1) (k + 2)), the first n of which sum to error_rate n / (n + 1)."""
    asked = spied(monkeypatch, bands, "band", lambda given: FLAT)
    found = bands.anytime_bands(np.zeros(2_000_000), np.zeros(2_000_000), LEVEL)
    rates, sizes = [one["error_rate"] for one in asked], [len(one["scores_in"]) for one in asked]
    assert len(found.parts) == len(rates) > 25 and sizes == sorted(set(sizes))
    assert math.fsum(rates) == pytest.approx(LEVEL * len(rates) / (len(rates) + 1.0), rel=1e-12)
    assert rates == pytest.approx([LEVEL / (k * (k + 1.0)) for k in range(1, len(rates) + 1)], rel=1e-12)


def test_the_two_laws_of_a_band_hold_together_at_its_rate(monkeypatch):
    shares = np.linspace(0.0, 1.0, 41)
    asked = spied(monkeypatch, bands, "law_band", lambda given: bands.LawBand(shares, shares))
    bands.band(*SCORES, LEVEL)
    assert math.prod(1.0 - one["error_rate"] for one in asked) == pytest.approx(1.0 - LEVEL, rel=1e-12)
    assert len(asked) == 2


def test_a_profile_bound_takes_the_worse_end_of_each_limit():
    """An event's probability from below, the other law's from above: on either side, in either direction."""
    rng = np.random.default_rng(8)
    epsilon, first = np.array([0.0, 0.3]), set()
    for _ in range(100):
        i_low, ii_low = rng.random((2, 1))
        i_up, ii_up = i_low + 0.1 * rng.random() * (1.0 - i_low), ii_low + 0.1 * rng.random() * (1.0 - ii_low)
        sides = [(1.0 - ii_up, i_up), (1.0 - i_up, ii_up), (ii_low, 1.0 - i_low), (i_low, 1.0 - ii_low)]
        expected = np.max([np.maximum(p - np.exp(epsilon) * q, 0.0) for p, q in sides], axis=0)
        found = bands.Bands((bands.Band(i_low, i_up, ii_low, ii_up),))
        assert found.profile_bound().delta(epsilon) == pytest.approx(expected)
        first |= {int(np.argmax([p[0] - np.exp(0.3) * q[0] for p, q in sides]))} if expected[1] > 0.0 else set()
    assert first == {0, 1, 2, 3}


@pytest.mark.parametrize(("stated", "in_pairs"), [(None, False), (None, True), (17, False)])
def test_the_records_of_one_run_share_the_level(stated, in_pairs):
    rng = np.random.default_rng(1)
    sides = rng.normal(size=(2, 100))
    found = auditing.records_of(auditing.order_of_one_run(*sides, rng, in_pairs), LEVEL, stated)
    assert len(found) == (1 if stated else 3)
    assert math.fsum(record.level for record in found) == pytest.approx(LEVEL, rel=1e-12)
    assert {record.canaries for record in found} == {100 if in_pairs else 200}


@pytest.mark.parametrize("in_pairs", [False, True])
def test_a_record_of_one_run_has_the_delta_of_its_own_level(in_pairs):
    """min(1, t + m delta t (1 - t) / (v b_v)) is the level there."""
    record = guesses.Record(guesses.Rule(60, in_pairs), 55, 200, 0.0125)
    for epsilon in (0.5, 1.2):
        t, b = stats.binom.sf(54, 60, special.expit(epsilon)), stats.binom.pmf(55, 60, special.expit(epsilon))
        expected = (0.0125 - t) * 55 * b / (200 * t * (1.0 - t))
        assert 0.0 < expected < 1.0
        assert record.delta(np.array([epsilon]))[0] == pytest.approx(expected, rel=1e-6)
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guesses, "gaussian_is_rejected", lambda *given: seen.append(given[1:]))
        record.gaussian_rejected(np.array([1.0]))
    assert seen == [(60, 55, 200, 0.0125)]


def test_scores_that_repeat_are_refused_by_a_union_over_all_places():
    """Blocks so long that independent runs repeat one, in any of the places, with probability 1e-6 at most."""
    rng = np.random.default_rng(2)
    first, new = (rng.integers(0, 10, 400).astype(float) for _ in range(2))
    rate = ledger._log_equal(np.concatenate([first, new]))
    length = math.ceil((math.log(1e-6) - math.log(400.0 * 400.0)) / rate)
    assert 400.0 * 400.0 * math.exp(length * rate) <= 1e-6 < 400.0 * 400.0 * math.exp((length - 1) * rate)

    def of_ledger(scores):
        return SimpleNamespace(scores=(scores, np.empty(0)), sessions=(), life=0, current=())

    copied = np.concatenate([new[:-length], first[100 : 100 + length]])
    with pytest.raises(dpaudit.UsageError, match=f"got {length} or more in a row"):
        ledger.new_scores(of_ledger(first), copied, np.empty(0))
    copied[-length] += 0.5
    assert len(ledger.new_scores(of_ledger(first), copied, np.empty(0))[0]) == 400


def test_another_way_of_betting_is_another_ledger(monkeypatch):
    before = ledger._identity("net", PureDP(1.0))
    assert before == ledger._identity("net", PureDP(1.0)) != ledger._identity("net", PureDP(2.0))
    monkeypatch.setattr(ledger, "WAY", ledger.WAY + 1)
    assert ledger._identity("net", PureDP(1.0)) != before
