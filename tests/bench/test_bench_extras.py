"""The named measurements of the bench: they measure what their lines say, and fail where they should.

Naive Laplace noise leaks at its size with a probability of a miss below 1e-30; sound noise is accused with probability
at most 1e-3 an audit, here in at most six, with fixed seeds.
"""

import dataclasses
import statistics

import numpy as np
import pytest

import dpaudit
from dpaudit.bench import comparisons as published
from dpaudit.bench import floating_point, scaling
from dpaudit.bench import runs as measurement
from dpaudit.bench.design import QUICK, Design
from dpaudit.errors import DpauditError
from dpaudit.inference import order

# ---- speed -----------------------------------------------------------------------------------------------------------


def test_the_least_draws_are_those_that_the_game_needs():
    """Randomised response of loss 3 against 1: bets win a relative entropy, in closed form."""

    def density(data, outputs):
        of_each = (outputs != 0.0) / (len(outputs) // 2) / (outputs[1] - outputs[0])
        right = np.exp(3.0) / (1.0 + np.exp(3.0))
        return np.where((outputs > 0.0) == (data > 0.5), right, 1.0 - right) * of_each

    case = published.Comparison("", None, "eps=1", (0.0, 1.0), 1, density, 1.0, 1.0)
    right, allowed = np.exp(3.0) / (1.0 + np.exp(3.0)), np.exp(1.0) / (1.0 + np.exp(1.0))
    won = right * np.log(right / allowed) + (1.0 - right) * np.log((1.0 - right) / (1.0 - allowed))
    assert published.least_draws(case) == pytest.approx(np.log(20.0) / won, rel=1e-6)


def test_published_comparisons_count_all_runs(monkeypatch):
    case = published.COMPARISONS[2]
    monkeypatch.setattr(published, "COMPARISONS", (dataclasses.replace(case, published=10**6),))
    monkeypatch.setattr(published, "SEEDS_TIMES", 1)
    record = published.comparisons(Design(seeds=2))
    (of,) = record["cases"].values()
    assert record["met"] and of["nothing"]["found"] == 2 and of["nothing"]["runs"] >= of["nothing"]["labelled"]
    assert of["default"]["runs"] >= of["default"]["labelled"] + 100 and of["default"]["low_bits"] >= 1_000
    assert of["nothing"]["low_bits"] == 0 and of["least"] < of["nothing"]["labelled"]
    seeds = [Design().audit_seed(case.name, "comparisons", number) for number in range(2)]
    again = [
        dpaudit.audit(case.sample, case.claim, [case.pair], samples=20_000, seed=seed, **published.BEHIND["nothing"])
        for seed in seeds
    ]
    assert of["nothing"]["runs"] == statistics.median(result.samples for result in again)
    monkeypatch.setattr(published, "COMPARISONS", (dataclasses.replace(case, published=1),))
    monkeypatch.setattr(published, "SEEDS_TIMES", 3)
    record = published.comparisons(Design(seeds=1))
    assert not record["met"] and record["cases"][case.name]["nothing"]["found"] == 3


# ---- a second process ------------------------------------------------------------------------------------------------


def test_the_record_compares_pairs_of_audits_and_says_whether_the_target_is_met(monkeypatch):
    monkeypatch.setattr(scaling, "SAMPLES", 1_000)
    monkeypatch.setattr(scaling, "calibrated", lambda: scaling.Busy(1))
    record = scaling.jobs(dataclasses.replace(QUICK, overhead_repeats=1))
    for mode in scaling.TIMED_MODES:
        ((alone, together),) = record[mode]["seconds"]
        assert record[mode]["speed_up"] == alone / together > 0.0
    assert record["met"] == (min(record[mode]["speed_up"] for mode in scaling.TIMED_MODES) >= scaling.SPEED_UP)
    assert "at 10 microseconds a draw" in record["says"] and record["machine"]["speed_up"] > 0.0


def test_results_that_differ_are_an_error(monkeypatch):
    monkeypatch.setattr(scaling, "SAMPLES", 200)
    steps = iter([1, 2])
    audit = scaling.dpaudit.audit
    monkeypatch.setattr(
        scaling.dpaudit, "audit", lambda subject, *a, **k: audit(scaling.Busy(next(steps)), *a, **k), raising=False
    )
    with pytest.raises(DpauditError, match="must give the result of one"):
        scaling._pair(scaling.Busy(1), "fixed", 3)


def test_the_subject_is_slowed_down_to_about_what_is_asked_for():
    # Steps grow with the time: 100 times as long a draw is at least 5 times as many steps, on the busiest machine.
    assert scaling.calibrated(100.0).steps > 5 * scaling.calibrated(1.0).steps


# ---- runs behind a decision ------------------------------------------------------------------------------------------


def test_runs_behind_a_decision_are_counted_and_too_many_are_not_met(monkeypatch):
    monkeypatch.setattr(measurement, "CALLS_SAMPLES", 4_000)
    record = measurement.runs(Design(seeds=3))
    assert record["met"] and record["calls"]["leaking"] == record["calls"]["audits"] == 3
    assert record["calls"]["runs"] < 2_300  # 1,000 of each input, but that labels are coins
    assert all(of["decided"] > 40 for of in record["subjects"].values())
    monkeypatch.setattr(order, "SHARE_OF_DRAWN", 1_000.0)
    record = measurement.runs(Design(seeds=3))
    assert not record["met"] and record["subjects"]["0.2"]["behind"] > 512


# ---- floating point --------------------------------------------------------------------------------------------------


DESIGN = dataclasses.replace(QUICK, seeds=2, alarm_audits=2)


def test_naive_noise_is_found_out_and_sound_noise_is_not_accused():
    record = floating_point.floating_point(DESIGN)
    assert record["met"] and record["leaking"] == 2 and record["bound"] > 5.0
    assert (record["sound_audits"], set(record["accused"].values())) == (6, {0})
    assert record == {**floating_point.floating_point(DESIGN), "seconds": record["seconds"]}


def test_noise_that_is_called_sound_and_leaks_is_not_met(monkeypatch):
    monkeypatch.setattr(floating_point, "SOUND", {"naive": floating_point.naive})
    record = floating_point.floating_point(DESIGN)
    assert not record["met"] and record["accused"] == {"naive": 2} and record["p_value"] <= 1e-5


def test_the_sound_samplers_keep_their_promise_on_the_doubles():
    rng = np.random.default_rng(20_261_121)
    samplers = floating_point.on_grid, floating_point.of_integers
    on_grid, of_integers = (np.asarray(sampler(1.0, 1_000, rng)) for sampler in samplers)
    # all doubles of one fixed grid, whatever the input
    assert np.all(on_grid * 1024.0 == np.rint(on_grid * 1024.0))
    assert np.all(np.rint(of_integers * 10.0) / 10.0 == of_integers)
    # discrete Laplace noise, exactly e^(-epsilon |k|) up to a factor: its mean is the input, in tenths
    assert abs(float(np.mean(floating_point.of_integers(1.0, 200_000, rng))) - 0.1) < 6.0 * 1.42 / np.sqrt(200_000.0)
