"""The floating-point measurement of the bench: what it says of naive noise and of sound noise.

Naive Laplace noise leaks at this size with a probability of a miss below 1e-30; sound noise is accused with probability
at most 1e-3 an audit, here in at most six, with fixed seeds.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from dpaudit.bench import floating_point
from dpaudit.bench.design import QUICK

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


def test_a_check_that_finds_nothing_is_not_met(monkeypatch):
    monkeypatch.setattr(floating_point, "naive", floating_point.of_nothing)
    monkeypatch.setattr(floating_point, "SOUND", {"of nothing": floating_point.of_nothing})
    assert not floating_point.floating_point(DESIGN)["met"]


def test_the_sound_samplers_keep_their_promise_on_the_doubles():
    rng = np.random.default_rng(20_261_121)
    samplers = floating_point.on_grid, floating_point.of_integers
    on_grid, of_integers = (np.asarray(sampler(1.0, 1_000, rng)) for sampler in samplers)
    # all doubles of one fixed grid, whatever the input
    assert np.all(on_grid * 1024.0 == np.rint(on_grid * 1024.0))
    assert np.all(np.rint(of_integers * 10.0) / 10.0 == of_integers)
    # discrete Laplace noise, exactly e^(-epsilon |k|) up to a factor: its mean is the input, in tenths
    assert abs(float(np.mean(floating_point.of_integers(1.0, 200_000, rng))) - 0.1) < 6.0 * 1.42 / np.sqrt(200_000.0)
