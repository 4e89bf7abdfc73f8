"""Shares of a session's error rate: sums that are known exactly, and what of a call's share reaches whom."""

import itertools
import math
from types import SimpleNamespace

import pytest
from support.spies import Reached, spied

from dpaudit.errors import UsageError
from dpaudit.pytest_plugin import calls
from dpaudit.pytest_plugin.budget import AUDIT, LOW_BITS, MIN_SHARE, REPLAY, TestBudget, confidence_of, split


def test_tests_share_evenly_what_lists_leave():
    budget = split(0.05, [0.001] * 5, [], 9)
    assert budget.test_error == pytest.approx(0.005, rel=1e-12)
    assert (budget.list_factor, budget.stated_list_error) == (1.0, pytest.approx(0.005))
    assert budget.total == pytest.approx(0.05, rel=1e-12)


def test_lists_beyond_half_of_the_error_rate_are_scaled_down_to_it():
    budget = split(0.05, [0.001] * 100, [], 10)
    assert budget.list_factor == pytest.approx(0.25)
    assert budget.stated_list_error * budget.list_factor == pytest.approx(0.025)
    assert budget.test_error == pytest.approx(0.0025)


def test_tests_with_a_confidence_of_their_own_take_it_from_the_rest():
    budget = split(0.05, [], [("a", 0.01), ("b", 0.005)], 7)
    assert (budget.reserved, budget.reserving) == (pytest.approx(0.015), 2)
    assert budget.test_error == pytest.approx(0.005)
    assert split(0.05, [], [("a", 0.05)], 0).total == pytest.approx(0.05)


@pytest.mark.parametrize("error", [0.5, 0.05, 1e-9])
@pytest.mark.parametrize("lists", [0, 1, 1000])
@pytest.mark.parametrize("reserving", [0, 3])
@pytest.mark.parametrize("tests", [0, 1, 10_000])
def test_no_session_spends_more_than_its_error_rate(error, lists, reserving, tests):
    budget = split(error, [0.001] * lists, [("a", error / 20)] * reserving, tests)
    assert budget.total <= error * (1 + 1e-12)  # rounding of some 10 operations


def test_a_line_that_replays_may_have_its_share_and_no_more():
    assert split(0.05, [], [], 1, test_error=0.005).test_error == 0.005
    with pytest.raises(UsageError, match=r"dp_test_error must be at most 0.005 for 10 tests, got 0.006"):
        split(0.05, [], [], 10, test_error=0.006)


def test_calls_of_a_test_sum_to_its_share_however_many_there_are():
    # sum over k = 2..n of 1 / (4 k (k - 1)) is (1 - 1 / n) / 4
    budget = TestBudget(0.04)
    shares = [budget.next() for _ in range(1_000)]
    assert shares[:3] == pytest.approx([0.03, 0.005, 0.04 / 24])
    assert math.fsum(shares) == pytest.approx(0.04 * (0.75 + 0.25 * (1 - 1 / 1_000)), rel=1e-12)


def test_a_stated_number_of_calls_shares_evenly_and_has_no_more():
    budget = TestBudget(0.03, calls=3)
    assert [budget.next() for _ in range(3)] == pytest.approx([0.01] * 3)
    with pytest.raises(UsageError, match="calls must be how often the test calls dp_audit, got 3, and one more"):
        budget.next()


@pytest.mark.parametrize("own", list(itertools.product([False, True], repeat=4)))
@pytest.mark.parametrize("calls", [None, 4])
def test_calls_with_a_confidence_of_their_own_never_overdraw(own, calls):
    budget, spent = TestBudget(0.01, calls), 0.0
    for states_confidence in own:
        spent += budget.take(0.9999) if states_confidence else budget.next()
    assert spent <= 0.01 * (1 + 1e-12)


@pytest.mark.parametrize("confidence", [0.99, 0.999, 0.9999])
def test_a_call_that_states_its_confidence_pays_for_its_replay_and_low_bits_too(confidence):
    # Of a call's share 80% are the audit's and 10% each the replay's and the low bits': all come out of the test's.
    budget = TestBudget(0.1)
    share = budget.take(confidence)
    assert share * AUDIT == pytest.approx(1.0 - confidence, rel=1e-12)
    assert (1.0 - confidence) + share * (REPLAY + LOW_BITS) == pytest.approx(0.1 - budget.left, rel=1e-9)
    assert AUDIT + REPLAY + LOW_BITS <= 1.0


def test_a_confidence_that_the_test_cannot_pay_for_is_refused():
    budget = TestBudget(0.001)
    budget.next()
    with pytest.raises(UsageError, match=r"confidence must be at least 0.9998, since the test has 0.00025 left"):
        budget.take(0.95)


def test_a_share_too_small_for_an_audit_is_refused():
    with pytest.raises(UsageError, match=r"dp_audit must have a share .* of at least 1e-12, got 7.5e-13 in call 1"):
        TestBudget(1e-12).next()


@pytest.mark.parametrize("error", [0.05, 0.03, 1 / 3, 1e-4 / 7, 1e-9 / 3])
def test_a_confidence_never_stands_for_more_than_its_error_rate(error):
    assert 1.0 - confidence_of(error) <= error
    assert 1.0 - confidence_of(error) == pytest.approx(error, abs=2.3e-16)  # a unit in the last place below 1


def test_the_smallest_share_is_given_and_no_smaller_one() -> None:
    assert TestBudget(MIN_SHARE, calls=1).next() == MIN_SHARE


def test_only_tests_that_take_too_much_are_refused() -> None:
    # Half of 5% may be taken beside other tests. One alone takes too much; the other two may stay.
    alone = split(0.05, [], [("a", 0.001), ("b", 0.04), ("c", 0.002)], 2)
    assert (
        set(alone.refused) == {"b"}
        and "at most 0.025 of" in alone.refused["b"]
        and "got 0.04 in b" in alone.refused["b"]
    )
    assert (alone.reserved, alone.reserving, alone.total) == pytest.approx((0.003, 2, 0.05), rel=1e-12)
    # Each may have its share, and not all together: all that are left are refused, whoever took too much alone.
    together = split(0.05, [], [("a", 0.02), ("b", 0.04), ("c", 0.02)], 2)
    assert set(together.refused) == {"a", "b", "c"} and "got 0.04 in 2 tests (a, c)" in together.refused["a"]
    assert (together.reserved, together.reserving, together.test_error) == (0.0, 0, 0.025)
    assert split(0.05, [], [("a", 0.025)], 2).refused == {}
    assert set(split(0.05, [], [("a", 0.025), ("b", 1e-6)], 2).refused) == {"a", "b"}
    assert set(split(0.05, [], [("a", 0.06)], 0).refused) == {"a"}


# --- what a call does with its share ---


def test_a_saved_witness_is_replayed_at_its_part_of_the_calls_share(monkeypatch):
    asked = spied(monkeypatch, calls.witnesses, "replay_saved")
    monkeypatch.setattr(calls.witnesses, "saved", lambda *_: SimpleNamespace(asked_of=lambda *_: "a pair", result=None))
    one = SimpleNamespace(
        settings=SimpleNamespace(cache="folder"),
        repeats=False,
        number=0,
        claim="eps=1",
        state=SimpleNamespace(known=None, runs=1),
        item=SimpleNamespace(nodeid="test"),
        spent=SimpleNamespace(share=0.01),
        options={"seed": 1},
        subject=None,
        pairs=(),
        samples=9,
    )
    one._saved = lambda: calls._Call._saved(one)  # fmt: skip
    with pytest.raises(Reached):
        calls._Call.replay(one)
    assert 1.0 - asked[0]["confidence"] == pytest.approx(0.001, rel=1e-9)


def test_low_bits_fail_a_test_at_their_part_divided_over_the_pairs_as_the_check_does():
    def leaks(p_value, verdict="leaks"):
        pair = SimpleNamespace(verdict=verdict, p_value=p_value, error_share=1e-3 / 4.0)
        return calls._leak_at(SimpleNamespace(floating_point=SimpleNamespace(error_rate=1e-3, pairs=(pair,))), 1e-4)

    assert leaks(0.999e-4 / 4.0) and not leaks(1.001e-4 / 4.0) and not leaks(0.0, "nothing_found")


def test_low_bits_are_asked_at_their_part_of_the_calls_share(monkeypatch):
    asked = spied(monkeypatch, calls, "_leak_at")
    low_bits = SimpleNamespace(verdict="leaks", error_rate=1e-3, pairs=())
    result = SimpleNamespace(floating_point=low_bits, side_findings=(), seed=1, confidence=0.95, epsilon_lower=0.0,
                             ratio_lower=0.0, verdict="not_refuted")  # fmt: skip
    monkeypatch.setattr("dpaudit.audits.auditing.audit", lambda *_, **__: result)
    monkeypatch.setattr(calls, "notes_text", lambda result: "")
    monkeypatch.setattr(calls, "floating_point_text", lambda result: "")
    settings, spent = SimpleNamespace(cache=None, strict=True, formats=()), SimpleNamespace(share=0.01)
    long = SimpleNamespace(begin=lambda *_: None, run=lambda call, options: call(**options))
    one = SimpleNamespace(settings=settings, spent=spent, options={"seed": 1}, subject=None, claim=None, pairs=(),
                          record={}, confirmed=None, samples=1, long=long, _reports=False,
                          _check_repeated=lambda result: None, _report=lambda verdict: None,
                          _settle=lambda result: None)  # fmt: skip
    with pytest.raises(Reached):
        calls._Call.audit(one)
    assert asked[0]["share"] == pytest.approx(0.001, rel=1e-9)
