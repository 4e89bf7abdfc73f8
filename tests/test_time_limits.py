"""A subject that is too slow for its time gets a plan: how many draws, what power; nothing is audited."""

import copy
import dataclasses
import json
import os
import pickle
import time
import types

import numpy as np
import pytest
from click.testing import CliRunner
from support.samplers import laplace

import dpaudit
from dpaudit.audits import planning, stages, time_limits
from dpaudit.cli import main
from dpaudit.errors import OutOfTimeError, UsageError
from dpaudit.inference.bound_search import just_above
from dpaudit.running.store import Store, StoreError
from dpaudit.subjects import call_limits

SLOW = "import time\ndef slow(data, rng):\n    time.sleep(0.004)\n    return data + rng.laplace()\n"


def slow(data, rng):
    time.sleep(0.004)
    return data + rng.laplace()


def test_a_plan_for_a_time_has_the_samples_that_fit_into_it(monkeypatch):
    now = [0.0]  # a clock that only the subject moves, so that it does not matter how busy the machine is
    monkeypatch.setattr(planning, "time", types.SimpleNamespace(perf_counter=lambda: now[0]))

    def slow(data, rng):
        now[0] += 0.004
        return data + rng.laplace()

    planned = dpaudit.plan(slow, "eps=1", [(0.0, 1.0)], samples=100_000, seconds=8.0, event_masses=[0.1], seed=1)
    assert planned.samples_wanted == 100_000 and planned.time_limit == 8.0
    # Two inputs at 4 ms a run; as long as fewer than 1,000 samples no floating-point check is added.
    assert 900 <= planned.samples <= 8.0 / (2 * 0.004)
    assert planned.seconds <= 8.0 and planned.runs == 2 * planned.samples
    known = {power.event_mass: power.known for power in planned.budgets[0].powers}
    assert known[0.1] > 1.0
    assert f"8 s are enough for {planned.samples:,} samples, not for 100,000." in " ".join(str(planned).split())
    short = dpaudit.plan(slow, "eps=1", [(0.0, 1.0)], samples=1_000, seconds=0.05, event_masses=[0.1], seed=1)
    assert "0.05 s are not enough for 10 samples, the fewest of an audit." in " ".join(str(short).split())


def test_a_plan_knows_what_a_call_takes_however_few_outputs_it_gives(monkeypatch):
    """Before, 20 ms a call were spread over the outputs of the largest batch: .4 s were planned, and 2.8 were taken."""
    now, calls = [0.0], []
    monkeypatch.setattr(planning, "time", types.SimpleNamespace(perf_counter=lambda: now[0]))

    def starts_slowly(data, size, rng):
        now[0] += 0.02 + 1e-5 * size
        calls.append(size)
        return np.round(data + rng.laplace(size=size), 2)

    for mode in ("sequential", "fixed"):
        options = {"samples": 1_000, "mode": mode, "seed": 1}
        planned = dpaudit.plan(starts_slowly, "eps=1", [(0.0, 1.0)], event_masses=[0.1], **options)
        assert planned.seconds_a_call == pytest.approx(0.02, rel=0.01)
        assert planned.seconds == pytest.approx(0.02 * planned.calls + 1e-5 * planned.runs, rel=0.01)
        text = " ".join(str(planned).split())
        assert f"up to {planned.calls} calls of 20 ms each" in text
        # Calls for one output each, and those for a bound, were not named: up to 30 seconds more.
        assert "the fitting of rules, what follows a violation and what is looked at beside the claim apart" in text
        calls.clear()
        dpaudit.audit(starts_slowly, "eps=1", [(0.0, 1.0)], floating_point=False, **options)
        assert len(calls) <= planned.calls <= 10 * len(calls)
    waits = dpaudit.plan(starts_slowly, "eps=1", [(0.0, 1.0)], seconds=2.0, event_masses=[0.1], seed=1)
    assert waits.samples < 300 and waits.seconds <= 2.0
    named = dpaudit.plan(slow, "eps=1", [(0.0, 1.0)], samples=100, event_masses=[0.1], seed=1)
    assert named.calls == 0 and "however few outputs" not in str(named)


def test_a_plan_of_wide_outputs_ends_and_counts_calls_by_what_fits_into_one(monkeypatch):
    """Before, outputs of more than 8,192 numbers were timed for ever: no batch of them was large enough."""
    now, calls = [0.0], []
    monkeypatch.setattr(planning, "time", types.SimpleNamespace(perf_counter=lambda: now[0]))

    def wide(data, size, rng):
        if len(calls) > 200:
            pytest.fail("is timed for ever")
        now[0] += 0.1
        calls.append(size)
        return data + np.broadcast_to(rng.laplace(size=(size, 1)), (size, 10_000))

    options = {"samples": 1_000, "mode": "fixed", "seed": 1}
    planned = dpaudit.plan(wide, "eps=1", [(0.0, 1.0)], event_masses=[0.1], **options)
    assert max(calls) == 64  # at most, of so many numbers
    calls.clear()
    dpaudit.audit(wide, "eps=1", [(0.0, 1.0)], floating_point=False, power="off", **options)
    assert len([size for size in calls if size > 1]) <= planned.calls


def test_a_plan_that_fits_keeps_its_samples():
    planned = dpaudit.plan(laplace, "eps=1", [(0.0, 1.0)], samples=2_000, seconds=600.0, event_masses=[0.1], seed=1)
    assert planned.samples == 2_000 and planned.samples_wanted is None and planned.time_limit == 600.0


def test_an_audit_that_fits_is_the_same_audit_and_one_that_does_not_is_a_plan():
    options = {"samples": 1_000, "seed": 3, "floating_point": False, "mode": "adaptive"}
    within = dpaudit.audit_within(600.0, laplace, "eps=1", iter([(0.0, 1.0)]), **options)  # read once
    assert within.findings == dpaudit.audit(laplace, "eps=1", [(0.0, 1.0)], **options).findings
    with pytest.raises(
        dpaudit.TooSlowError, match=r"seconds must be enough for 50,000 samples, got 60: .* Take samples="
    ) as caught:
        dpaudit.audit_within(60.0, slow, "eps=1", [(0.0, 1.0)], samples=50_000, seed=1)
    assert isinstance(caught.value, UsageError) and caught.value.plan.samples < 50_000
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(copy.copy(caught.value)) == str(caught.value)


def test_a_subject_that_is_to_be_contained_is_contained_while_it_is_timed(tmp_path):
    def leaves_its_process(data, rng):
        (tmp_path / str(os.getpid())).touch()
        return data + rng.laplace()

    options = {"samples": 20, "seed": 3, "floating_point": False, "isolation": "seconds=5"}
    dpaudit.audit_within(600.0, leaves_its_process, "eps=1", [(0.0, 1.0)], **options)
    left = {path.name for path in tmp_path.iterdir()}
    assert left and str(os.getpid()) not in left


def test_the_command_line_audits_within_the_time_and_says_what_was_cut(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow_release.py").write_text(SLOW)
    planned = dpaudit.plan(slow, "eps=1", [(0.0, 1.0)], seconds=60.0, event_masses=[0.1], seed=1)
    planned = dataclasses.replace(planned, samples=200, seconds=2.0)  # whatever else the machine is doing

    def too_slow(*arguments, **options):
        raise dpaudit.TooSlowError(planned)

    monkeypatch.setattr("dpaudit.audits.time_limits.check_time", too_slow)
    command = ["audit", "slow_release.py:slow", "--claim", "eps=1", "--pairs", "0,1", "--seconds", "60", "--out", "x"]
    outcome = CliRunner().invoke(main, command)
    assert outcome.exit_code in (0, 5), outcome.output
    said = "slow_release.py:slow: cut to 200 of 100,000 samples, which fit into 60 s at"
    assert said in outcome.stderr and "in an event of mass 0.1" in outcome.stderr
    assert json.loads((tmp_path / "x" / "audit.json").read_text())["options"]["samples"] == 200
    if outcome.exit_code == 5:  # before, more samples alone, which the limit cut again
        text = " ".join(outcome.stdout.split())
        assert "The limit of 60 s may have to be longer for them." in text
        assert "Take more samples with --samples, and more time with --seconds." in text
    quiet = CliRunner().invoke(main, [*command, "-q"])
    assert quiet.exit_code in (0, 5) and not quiet.stderr


class Slowing:
    """A mechanism whose calls take 1 ms each up to a time, and then far longer, by a clock that it moves alone."""

    def __init__(self, monkeypatch, shift=0.0, at=2.0, then=1_000.0):
        self.now, self.calls, self.shift, self.at, self.then = 0.0, 0, shift, at, then
        monkeypatch.setattr(call_limits, "_clock", lambda: self.now)
        clock = types.SimpleNamespace(perf_counter=lambda: self.now, monotonic=lambda: self.now)
        monkeypatch.setattr(planning, "time", clock)
        monkeypatch.setattr(time_limits, "time", clock)

    def __repr__(self):  # what its fingerprint shows
        return "Slowing()"

    def __call__(self, data, rng):
        self.calls += 1
        self.now += 0.001 if self.now < self.at else self.then
        return data * (1 + self.shift) + rng.laplace()


def time_limit_of(result):
    return next((one.summary for one in result.side_findings if one.kind == "time_limit"), None)


def test_a_mechanism_that_turns_slow_is_stopped_with_the_call_that_is_made_and_what_was_found_stands(monkeypatch):
    slowing = Slowing(monkeypatch)
    result = dpaudit.audit_within(6.0, slowing, "eps=1", [(0.0, 1.0)], samples=1_900, seed=1, floating_point=False)
    assert slowing.now < 2.0 + 2 * slowing.then  # one call of the slow ones, and not thousands
    assert result.verdict in ("inconclusive", "not_refuted") and "1 of 1 pairs" in time_limit_of(result)
    assert "how bad" not in time_limit_of(result)  # before: as if there were a violation
    finding = result.findings[0]
    assert 0 < finding.samples < 2 * 1_900
    broken = Slowing(monkeypatch, shift=9.0)
    result = dpaudit.audit_within(6.0, broken, "eps=1", [(0.0, 1.0)], samples=1_900, seed=1)
    assert result.verdict == "violated" and "how bad" in time_limit_of(result)
    assert time_limit_of(dpaudit.audit(laplace, "eps=1", [(0.0, 1.0)], samples=1_000, seed=1)) is None


def test_a_session_of_a_store_that_was_cut_says_so_and_the_next_one_goes_on(monkeypatch, tmp_path):
    options = {"samples": 400, "seed": 1, "store": tmp_path / "evidence.db", "floating_point": False}

    def session(at=0.2):
        with call_limits.within(6.0):
            return dpaudit.audit(Slowing(monkeypatch, at=at), "eps=1", [(0.0, 1.0)], **options)

    cut = session()
    assert "draws of 1 of 1 pairs, after" in time_limit_of(cut)
    save = Store.save

    def is_full(self, *given):
        if call_limits.is_time_over():
            raise StoreError("no room")
        return save(self, *given)

    with monkeypatch.context() as patch, pytest.raises(StoreError, match="no room"):
        patch.setattr(Store, "save", is_full)
        session()
    again = session(at=1e9)  # neither of the two has broken the evidence
    assert time_limit_of(again) is None and again.findings[0].samples > cut.findings[0].samples > 0


def test_what_has_no_time_is_listed_and_a_violation_without_its_stage_has_no_bound_of_its_own(monkeypatch):
    """Validity: the audit's own bound, where the stage had no time, would be a second chance to be wrong."""
    with call_limits.within(6.0):
        sound = dpaudit.audit(Slowing(monkeypatch, at=2.3), "eps=1", [(0.0, 1.0)], samples=1_000, seed=1)
    assert sound.floating_point.message == stages.OUT_OF_TIME and "out: the low bits." in time_limit_of(sound)
    monkeypatch.setattr(stages, "is_time_over", lambda: True)
    broken = dpaudit.audit(Slowing(monkeypatch, shift=9.0), "eps=1", [(0.0, 1.0)], samples=1_900, seed=1)
    assert broken.findings[0].parameter_lower == just_above(1.0) and "how bad" in time_limit_of(broken)


def test_an_audit_in_fixed_mode_is_planned_with_a_margin_and_says_when_it_could_not_end(monkeypatch):
    slowing = Slowing(monkeypatch, at=1e9)
    options = {"samples": 100_000, "mode": "fixed", "seed": 1, "floating_point": False}
    with pytest.raises(dpaudit.TooSlowError) as caught:
        dpaudit.audit_within(10.0, slowing, "eps=1", [(0.0, 1.0)], **options)
    assert caught.value.plan.seconds <= 8.0
    with pytest.raises(OutOfTimeError, match=r"got 10 s, which were over .* sequential mode looks after") as late:
        dpaudit.audit_within(10.0, Slowing(monkeypatch), "eps=1", [(0.0, 1.0)], **{**options, "samples": 2_000})
    for error in (caught.value, late.value):
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize("options", [{"isolation": True}, {"jobs": 2}], ids=str)
def test_workers_stop_too(options):
    started = time.monotonic()

    def slowing(data, rng):
        time.sleep(0.001 if time.monotonic() - started < 2.0 else 0.25)
        return data + rng.laplace()

    with call_limits.within(4.0):
        result = dpaudit.audit(slowing, "eps=1", [(0.0, 1.0)], samples=20_000, seed=1, **options)
    assert time.monotonic() - started < 12.0  # of more than an hour
    assert result.verdict != "violated" and time_limit_of(result)


def test_an_audit_that_was_cut_can_be_gone_on_from(monkeypatch, tmp_path):
    options = {"samples": 2_000, "seed": 1, "floating_point": False}
    whole = dpaudit.audit(Slowing(monkeypatch, at=1e9), "eps=1", [(0.0, 1.0)], **options)
    slowing = Slowing(monkeypatch)
    with call_limits.within(6.0):
        cut = dpaudit.audit(slowing, "eps=1", [(0.0, 1.0)], checkpoint=tmp_path / "c", **options)
    assert time_limit_of(cut) and (tmp_path / "c").exists()
    again = dpaudit.audit(slowing, "eps=1", [(0.0, 1.0)], checkpoint=tmp_path / "c", resume=True, **options)
    assert [one.to_dict() for one in again.findings] == [one.to_dict() for one in whole.findings]


def test_a_subject_that_turns_slow_while_it_is_timed_is_not_waited_for():
    calls = [0]

    def turns_slow(data, rng):
        calls[0] += 1
        time.sleep(1.0 if calls[0] > 300 else 0.0)
        return data + rng.laplace()

    began = time.monotonic()
    dpaudit.plan(turns_slow, "eps=1", [(0.0, 1.0)], samples=100_000, seconds=3.0, event_masses=[0.1], seed=1)
    assert time.monotonic() - began < 60.0  # the batch that was begun would have taken minutes
