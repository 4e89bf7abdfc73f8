"""The contract of `dpaudit.inference.protocols.Test`: a conformance suite for every row of `implementations.TESTS`.

Checks know a test by its public face alone. Level and wealth are exact sums over all records of a few draws of laws
that keep the claim and reach it, so nothing here is left to chance unless a docstring says how much. At the end twins
break the contract, each in one place, and the check that is named beside a twin must fail it.
"""

import copy
import functools
import inspect
import itertools
import json
import math
from unittest.mock import patch

import numpy as np
import pytest
from faulty_tests import (
    BetsAgain,
    BetterOfTwo,
    DoublesItsLevel,
    FollowsTheCounts,
    Forgets,
    Hasty,
    LeavesOutItsCharge,
    NeverSays,
    RaisesItsBound,
    Sinks,
    Twin,
)
from implementations import CLAIMS, FITS, TESTS, Law, Prepared, laws_on, learn_once, prepared, records

from dpaudit.features.outcomes import join, read_outputs
from dpaudit.inference.betting import Betting
from dpaudit.inference.exact import ExactTest
from dpaudit.inference.learning_state import LearningState
from dpaudit.inference.protocols import Test as TestOfAClaim
from dpaudit.inference.protocols import Training
from dpaudit.inference.tables import N_BINS
from dpaudit.privacy.claims import ApproxDP, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP

LEVEL = 0.05
DRAWS = 4_000
FEW = 4  # draws of an exact sum
ROUNDING = 1e-9  # of sums of a few hundred doubles, and of laws that are on their claim to 9 digits
TRAININGS = {
    "of a large leak": lambda law: law.beyond().training(300, 1),
    "of the leak the other way": lambda law: law.beyond().mirrored.training(300, 2),
    "of few draws": lambda law: law.training(40, 3),
}


@pytest.fixture(autouse=True)
def _fits(monkeypatch):
    """Draws that several checks learn from are learned from once."""
    monkeypatch.setattr(LearningState, "learn", learn_once)


def outputs(shift, size, seed):
    """Laplace noise of scale 1, moved."""
    return read_outputs(shift + np.random.default_rng(seed).laplace(size=size), size)


def anew(make, claim, shift):
    """A test that learned from draws of a shift, and was started."""
    return prepared(make, claim, Training(outputs(shift, 600, 1), outputs(0.0, 600, 2)), LEVEL, DRAWS)


kept = functools.cache(anew)


def trained(make, claim, shift):
    """A copy of the same: each is made once."""
    return copy.deepcopy(kept(make, claim, shift))


def counted(test, shift, size=DRAWS // 2, seed=3):
    first, second = outputs(shift, size, seed), outputs(0.0, size, seed + 1)
    test.add(test.statistic.count(first), test.statistic.count(second))
    test.update()
    return test


def bets(test):
    return test.log_wealth is not None


def standing(test):
    """All that a test says of its record, for a comparison to rounding."""
    evidence = test.log_wealth if bets(test) else test.p_value
    return pytest.approx([evidence, test.lower, *test.counts], rel=1e-6, abs=ROUNDING)


def reached(test):
    """The smallest level at which the test would reject its budget."""
    return math.exp(-test.log_wealth) if bets(test) else float(test.p_value)


def on_claim(claim):
    """A law on the claim that is asked where one is enough."""
    return next(iter(laws_on(claim).values()))


# --- predictable ---


def what_is_counted_is_fixed_before_it_is_counted(make, claim):
    test = trained(make, claim, 3.0)
    before, fresh = test.statistic, outputs(1.0, 100, 9)
    counts = before.count(fresh)
    counted(test, 3.0)
    np.testing.assert_array_equal(before.count(fresh), counts)
    np.testing.assert_array_equal(test.statistic.count(fresh), counts)


def equal_draws_and_coins_give_an_equal_test(make, claim):
    first = kept(make, claim, 3.0)
    with patch.dict(FITS, clear=True):
        second = anew(make, claim, 3.0)
    fresh = outputs(1.0, 100, 9)
    np.testing.assert_array_equal(first.statistic.count(fresh), second.statistic.count(fresh))
    known = standing(counted(trained(make, claim, 3.0), 3.0, 200))
    counted(second, 3.0, 200)
    assert [second.log_wealth if bets(second) else second.p_value, second.lower, *second.counts] == known


def a_later_fit_leaves_what_was_won(make, claim):
    """Bets on draws that were counted are over: no later training can make them again, though it sees these draws."""
    test = trained(make, claim, 3.0)
    counted(test, 3.0, size=300)
    before = test.log_wealth, test.lower
    test.prepare(Training(join([outputs(3.0, 600, 1), outputs(3.0, 300, 3)]), outputs(0.0, 900, 2)), LEVEL)
    test.update()
    assert (test.log_wealth, test.lower) == pytest.approx(before, rel=1e-9)
    test.prepare_on_counts()
    test.update()
    assert (test.log_wealth, test.lower) == pytest.approx(before, rel=1e-9)


def one_draw_more_does_not_raise_the_expected_wealth(make, claim):
    """The mean over label and outcome of one more draw, given each of several pasts, also behind a fit on them."""
    for law in laws_on(claim).values():
        training = TRAININGS["of a large leak"](law)
        asked = Prepared(prepared(make, claim, training, LEVEL, 200), law)
        common = np.round(30 * law.beyond().p).astype(int), np.round(30 * law.beyond().q).astype(int)
        against = common[::-1]
        for past in (None, common, against):
            before = asked.after(past) if past else asked.test
            for is_fitted in (False, True) if past else (False,):
                if is_fitted:
                    sides = [
                        join([side, read_outputs(np.repeat(np.arange(len(counts), dtype=float), counts), sum(counts))])
                        for side, counts in zip((training.first, training.second), past, strict=True)
                    ]
                    before.prepare(Training(*sides), LEVEL)
                now = Prepared(before, law)
                logs = [(chance, now.after(record).log_wealth) for chance, record in records(law, 1)]
                mean = sum(chance * math.exp(log - before.log_wealth) for chance, log in logs)
                assert mean <= 1.0 + ROUNDING
                # Something is staked, unless the past has spoken against all that was bet.
                assert past is against or np.ptp([log for _, log in logs]) > 0.001


# --- level ---


def the_mean_of_the_wealth_of_a_law_on_the_claim_is_at_most_1(make, claim):
    """Over all records of a few draws, whatever the bets were fitted on: of the wealth over that before the draws.

    Wealth begins at most at 1: a part of it may be meant for other values than the budget.
    """
    for law, training in itertools.product(laws_on(claim).values(), TRAININGS.values()):
        asked = Prepared(prepared(make, claim, training(law), LEVEL, 200), law)
        first = asked.test.log_wealth
        mean = sum(chance * math.exp(asked.after(record).log_wealth - first) for chance, record in records(law, FEW))
        assert first <= 0.0 and mean <= 1.0 + ROUNDING


def the_law_of_an_exact_p_value_is_at_most_its_level(make, claim):
    """At every level at once: P(p-value <= p) <= p, over all records of a few draws."""
    for law, training in itertools.product(laws_on(claim).values(), TRAININGS.values()):
        asked = Prepared(prepared(make, claim, training(law), 0.2, FEW), law)
        found = sorted((asked.counted(record).p_value, chance) for chance, record in records(law, FEW))
        values, chances = np.array(found).T
        last_of_equals = np.append(np.diff(values) > ROUNDING, True)
        assert np.all(np.cumsum(chances)[last_of_equals] <= values[last_of_equals] + ROUNDING)


def a_bound_is_above_the_truth_with_a_chance_of_at_most_the_level(make, claim):
    """The truth is half of the budget, where the bound is no verdict; at the budget it is one, and has its level.

    At a level of 1/2 a few draws are enough for bounds that err.
    """
    truth = 0.5 * claim.value
    for law in [*laws_on(claim.with_value(truth)).values()][:1]:
        asked = Prepared(prepared(make, claim, TRAININGS["of a large leak"](law), 0.5, FEW), law)
        looked = [(chance, asked.after(record).lower) for chance, record in records(law, FEW)]
        assert sum(chance for chance, lower in looked if lower > truth * (1.0 + 1e-8)) <= 0.5


def a_bound_is_above_the_truth_at_some_look_with_a_chance_of_at_most_the_level(make, claim):
    """Two looks, at three draws and at one more, of a test that bets: the bound keeps what it was at the first."""
    law = on_claim(claim)
    asked = Prepared(prepared(make, claim, TRAININGS["of a large leak"](law), 0.4, FEW), law)
    then, total = copy.copy(asked), 0.0
    for chance, record in records(law, FEW - 1):
        then.test = asked.after(record)
        known = then.test.lower
        for other, last in records(law, 1):
            lower = then.after(last).lower
            assert lower >= known
            total += chance * other * (lower > claim.value)
    assert total <= 0.4


def the_record_that_a_law_on_the_claim_foretells_is_no_violation(make, claim):
    """A million draws just as the law has them, where no chance is left: a charge that is too low shows at once.

    At a level below 1/2 a valid bound of a record that is its own expectation is at most the truth.
    """
    size = 1_000_000
    for law, training in itertools.product(laws_on(claim).values(), TRAININGS.values()):
        asked = Prepared(prepared(make, claim, training(law), LEVEL, size), law)
        test = asked.after([np.round(0.5 * size * side).astype(int) for side in (law.p, law.q)])
        assert test.lower <= claim.value and not test.is_rejected


def a_law_beyond_the_claim_is_told(make, claim):
    """What makes the sums above mean something: bets are made, and win what the other law gives."""
    law = on_claim(claim).beyond()
    asked = Prepared(prepared(make, claim, law.training(300, 1), LEVEL, 200), law)
    past = np.round(100 * law.p).astype(int), np.round(100 * law.q).astype(int)
    test = asked.after(past)
    assert test.lower > claim.value
    assert test.log_wealth > 3.0 if bets(test) else test.p_value < LEVEL


def the_level_is_what_decides(make, claim):
    """Neither doubled nor shared once more: levels just above, just below and far below what the draws reach."""
    for size, factor in itertools.product((10, 25, 200), (1.02, 0.98, 0.6)):
        asked = min(reached(counted(trained(make, claim, 2.5), 2.5, size)) * factor, 0.999)
        test = trained(make, claim, 2.5)
        test.start(asked)  # nothing is counted yet
        assert test.level == asked
        counted(test, 2.5, size)
        at_first = test.is_rejected
        assert at_first == (reached(test) <= asked)
        lower = test.lower  # may look closer, but not so far
        assert test.is_rejected == (lower > claim.value) and (factor > 0.9 or test.is_rejected == at_first)
        assert test.level == asked


# --- one object ---


def the_verdict_is_the_bound_above_the_budget(make, claim):
    """Over all records of a few draws, and more and more draws of a large leak and of a law on the claim.

    A bound may be computed when it is asked for: a verdict before may be too mild, and never the other way.
    """
    seen = set()
    for law in laws_on(claim).values():
        asked = Prepared(prepared(make, claim, TRAININGS["of a large leak"](law), 0.5, 500), law)
        longer = [[np.round(size * side).astype(int) for side in (one.p, one.q)]
                  for one, sizes in ((law.beyond(), (8, 16, 32)), (law, (64, 256))) for size in sizes]  # fmt: skip
        for record in [*(record for _, record in records(law, FEW - 1)), *longer]:
            test = asked.after(record)
            early, lower = test.is_rejected, test.lower
            assert test.is_rejected or not early
            assert test.is_rejected == (lower > claim.value)
            assert lower >= test.known_lower >= 0.0 and lower == test.lower
            if bets(test):
                assert test.is_rejected or reached(test) > 0.5 * (1.0 - ROUNDING)
            else:
                assert test.is_rejected == (reached(test) <= 0.5)
            seen.add(test.is_rejected)
    assert seen == {True, False}


def a_bound_never_falls(make, claim):
    """A leak, and then its opposite, three times as often: what was shown at a look stays shown."""
    test = trained(make, claim, 3.0)
    bounds, verdicts = [], []
    for shift in (3.0, 3.0, -3.0, -3.0, -3.0, -3.0, -3.0, -3.0):
        counted(test, shift, 150)
        bounds.append(test.lower)
        verdicts.append(test.is_rejected)
    assert bounds == sorted(bounds) and verdicts == sorted(verdicts)
    assert bounds[-1] > 0.0


def parts_may_be_added_in_any_order(make, claim):
    test = trained(make, claim, 3.0)
    sides = [(outputs(shift, 240, seed), int(shift > 0.0)) for shift, seed in ((3.0, 5), (0.0, 6))]
    nothing = test.statistic.zeros()
    parts = []
    for outcomes, label in sides:
        for start in range(0, 240, 80):
            counts = test.statistic.count(outcomes.rows(slice(start, start + 80)))
            parts.append((counts, nothing) if label else (nothing, counts))
    one, *others = (copy.deepcopy(test) for _ in range(4))
    one.add(*(sum(side[1:], start=side[0]) for side in zip(*parts, strict=True)))
    one.update()
    known = standing(one)
    for other, order in zip(others, ([0, 1, 2, 3, 4, 5], [5, 0, 3, 2, 4, 1], [3, 4, 5, 2, 1, 0]), strict=True):
        for k in order:
            other.add(*parts[k])
        other.add(nothing, nothing)
        other.update()
        assert [other.log_wealth if bets(other) else other.p_value, other.lower, *other.counts] == known


# --- what is told, and what goes on ---


def the_witness_is_told_and_its_counts_are_the_draws(make, claim):
    test = counted(trained(make, claim, 6.0), 6.0)  # nats, far beyond every claim here
    assert sum(test.counts) == DRAWS
    assert test.describe("x", "x'")
    assert test.rule_record()["game"]
    assert set(test.line)


def evidence_goes_on(make, claim):
    test = counted(trained(make, claim, 3.0), 3.0, size=500)
    state = test.saved("a session")
    other = make(claim, DRAWS)
    other.start(LEVEL)
    other.restore(json.loads(json.dumps(state, allow_nan=False)), "another session")
    assert other.log_wealth == pytest.approx(test.log_wealth, rel=1e-9)
    assert other.lower == pytest.approx(test.lower, rel=1e-9)
    more = counted(other, 3.0, size=300, seed=11).log_wealth, counted(test, 3.0, size=300, seed=11).log_wealth
    assert more[0] == pytest.approx(more[1], rel=1e-9)


def the_power_is_a_loss_above_the_budget(make, claim):
    test = trained(make, claim, 3.0)
    detectable, at_budget = test.power(0.8, 0.9)
    assert at_budget > 0.0
    assert detectable > at_budget


def nothing_of_the_contract_is_left_out(make, claim):
    test = counted(trained(make, claim, 3.0), 3.0, 100)
    assert not inspect.isabstract(type(test))
    assert isinstance(test, TestOfAClaim)
    assert test.can_be_sure or not test.is_sure
    assert (test.log_wealth is None) != (test.p_value is None)


OF_ALL = [
    what_is_counted_is_fixed_before_it_is_counted,
    equal_draws_and_coins_give_an_equal_test,
    a_bound_is_above_the_truth_with_a_chance_of_at_most_the_level,
    the_record_that_a_law_on_the_claim_foretells_is_no_violation,
    a_law_beyond_the_claim_is_told,
    the_level_is_what_decides,
    the_verdict_is_the_bound_above_the_budget,
    parts_may_be_added_in_any_order,
    the_witness_is_told_and_its_counts_are_the_draws,
    the_power_is_a_loss_above_the_budget,
    nothing_of_the_contract_is_left_out,
]
OF_BETS = [
    a_later_fit_leaves_what_was_won,
    one_draw_more_does_not_raise_the_expected_wealth,
    the_mean_of_the_wealth_of_a_law_on_the_claim_is_at_most_1,
    a_bound_is_above_the_truth_at_some_look_with_a_chance_of_at_most_the_level,
    a_bound_never_falls,
    evidence_goes_on,
]
OF_EXACT = [the_law_of_an_exact_p_value_is_at_most_its_level]


def table():
    """Each check with each row and each claim that it is about."""
    for (name, row), (kind, claim) in itertools.product(TESTS.items(), CLAIMS.items()):
        for holds in [*OF_ALL, *(OF_BETS if row.bets_on(claim) else OF_EXACT)]:
            yield pytest.param(holds, row.make, claim, id=f"{holds.__name__}-{name}-{kind}")


@pytest.mark.parametrize(("holds", "make", "claim"), list(table()))
def test_the_contract_of_tests(holds, make, claim):
    holds(make, claim)


ENDS = [PureDP(0.0), PureDP(50.0), PureDP(1e6), ApproxDP(0.0, 0.2), ApproxDP(1.0, 0.999), GaussianDP(0.0),
        GaussianDP(30.0), ZeroConcentratedDP(0.0), ZeroConcentratedDP(100.0), RenyiDP(1.0001, 1e-6)]  # fmt: skip


@pytest.mark.parametrize("claim", ENDS, ids=str)
@pytest.mark.parametrize("row", TESTS.values(), ids=TESTS)
def test_claims_at_the_ends_have_figures_and_no_alarm_where_nothing_leaks(row, claim):
    """The same outputs on either side: they speak for neither, whatever the budget."""
    test = trained(row.make, claim, 0.0)
    same = test.statistic.count(outputs(0.0, 500, 7))
    test.add(same, same)
    test.update()
    evidence = test.log_wealth if bets(test) else test.p_value
    assert not math.isnan(evidence)
    assert evidence < -math.log(LEVEL) if bets(test) else evidence > LEVEL
    assert 0.0 <= test.lower <= claim.value and not test.is_rejected


# --- twins: what each does is said where it stands, and here who has to catch it ---


OF_ANY = [
    (FollowsTheCounts, what_is_counted_is_fixed_before_it_is_counted),
    (Hasty, equal_draws_and_coins_give_an_equal_test),
    (DoublesItsLevel, the_level_is_what_decides),
    (LeavesOutItsCharge, None),
    (RaisesItsBound, the_verdict_is_the_bound_above_the_budget),
    (Forgets, parts_may_be_added_in_any_order),
    (NeverSays, a_law_beyond_the_claim_is_told),
    (NeverSays, the_verdict_is_the_bound_above_the_budget),
]
OF_EXACT_ONES = [(BetterOfTwo, the_law_of_an_exact_p_value_is_at_most_its_level)]
OF_BETTORS = [
    (BetterOfTwo, one_draw_more_does_not_raise_the_expected_wealth),
    (LeavesOutItsCharge, one_draw_more_does_not_raise_the_expected_wealth),
    (BetsAgain, a_later_fit_leaves_what_was_won),
    (Sinks, a_bound_never_falls),
]


@pytest.mark.parametrize("kind", ["eps", "mu", "rho"])
@pytest.mark.parametrize("name", TESTS)
def test_a_twin_that_breaks_the_contract_is_caught(name, kind):
    row, claim = TESTS[name], CLAIMS[kind]
    means = (
        the_mean_of_the_wealth_of_a_law_on_the_claim_is_at_most_1
        if row.bets_on(claim)
        else the_law_of_an_exact_p_value_is_at_most_its_level
    )
    own = (
        OF_BETTORS if row.bets_on(claim) else OF_EXACT_ONES if kind == "eps" else []
    )  # with a delta few draws say little
    for twin, broken in [*OF_ANY, *own]:
        with pytest.raises(AssertionError):
            (broken or means)(lambda claim, draws, twin=twin: twin(row.make, claim, draws), claim)
            raise RuntimeError(f"{twin.__name__} was not caught by {(broken or means).__name__}")


@pytest.mark.parametrize("name", TESTS)
def test_a_twin_that_changes_nothing_keeps_the_contract(name):
    """What catches the others is what they do, not how they are made."""
    row, claim = TESTS[name], CLAIMS["eps"]
    caught = {broken for _, broken in [*OF_ANY, *OF_BETTORS] if broken}
    for holds in [check for check in [*OF_ALL, *(OF_BETS if row.bets_on(claim) else [])] if check in caught]:
        holds(lambda claim, draws: Twin(row.make, claim, draws), claim)


def test_laws_of_the_table_keep_their_claims_and_reach_them():
    for claim in CLAIMS.values():
        for law in laws_on(claim).values():
            for side in (law.p, law.q):
                assert side.sum() == pytest.approx(1.0) and side.min() >= 0.0
            assert is_kept(claim.with_value(1.00001 * claim.value), law)
        assert any(not is_kept(claim.with_value(0.99 * claim.value), law) for law in laws_on(claim).values())
        assert is_kept(claim.with_value(1.00001 * claim.value), on_claim(claim).mirrored) == claim.is_symmetric


def is_kept(claim, law):
    """Whether a law on a few outcomes keeps a claim: every event at many lines, or every order."""
    for reverse, one in ((False, law), (True, law.mirrored)):
        own = claim.in_order(reverse)
        if claim.family == "renyi":
            at = np.array([claim.value])
            for order in claim.orders:
                moment = np.sum(one.p**order * one.q ** (1.0 - order))
                if math.log(moment) / (order - 1.0) > own.renyi_epsilons(at, order)[0]:
                    return False
        for anchor in np.linspace(0.0, 4.0, 81) if claim.anchored else [0.0]:
            if claim.family == "renyi":
                break
            epsilon, delta = (float(side[0]) for side in own.lines(np.array([claim.value]), anchor))
            if np.maximum(one.p - math.exp(epsilon) * one.q, 0.0).sum() > delta + 1e-12:
                return False
    return True


def test_a_law_far_beyond_is_not_on_the_claim():
    assert not is_kept(PureDP(1.0), Law(np.array([0.8, 0.2]), np.array([0.2, 0.8])))
    assert is_kept(PureDP(1.4), Law(np.array([0.8, 0.2]), np.array([0.2, 0.8])))


@pytest.mark.parametrize("kind", [ExactTest, Betting])
def test_what_two_tests_read_is_counted_once(kind):
    first = kind(PureDP(1.0), 100)
    second = kind(PureDP(1.0), 100, first)
    with pytest.raises(AssertionError):
        second.add(np.ones(N_BINS, dtype=np.int64), np.ones(N_BINS, dtype=np.int64))
