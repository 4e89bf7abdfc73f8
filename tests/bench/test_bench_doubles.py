"""The floating-point measurement of the bench: what it says of naive noise and of sound noise.

Naive Laplace noise leaks at this size with a probability of a miss below 1e-30; sound noise is accused with probability
at most 1e-3 an audit, here in at most six, with fixed seeds.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from dpaudit.bench import doubles
from dpaudit.bench.design import QUICK

DESIGN = dataclasses.replace(QUICK, seeds=2, alarm_audits=2)


def test_naive_noise_is_found_out_and_sound_noise_is_not_accused():
    record = doubles.floating_point(DESIGN)
    assert record["met"] and record["leaking"] == 2 and record["bound"] > 5.0
    assert (record["sound_audits"], set(record["accused"].values())) == (6, {0})
    assert record == {**doubles.floating_point(DESIGN), "seconds": record["seconds"]}


def test_noise_that_is_called_sound_and_leaks_is_not_met(monkeypatch):
    monkeypatch.setattr(doubles, "SOUND", {"naive": doubles.naive})
    record = doubles.floating_point(DESIGN)
    assert not record["met"] and record["accused"] == {"naive": 2} and record["p_value"] <= 1e-5


def test_a_check_that_finds_nothing_is_not_met(monkeypatch):
    monkeypatch.setattr(doubles, "naive", doubles.of_nothing)
    monkeypatch.setattr(doubles, "SOUND", {"of nothing": doubles.of_nothing})
    assert not doubles.floating_point(DESIGN)["met"]


def test_the_sound_samplers_keep_their_promise_on_the_doubles():
    rng = np.random.default_rng(20_261_121)
    on_grid, of_integers = (np.asarray(sampler(1.0, 1_000, rng)) for sampler in (doubles.on_grid, doubles.of_integers))
    # all doubles of one fixed grid, whatever the input
    assert np.all(on_grid * 1024.0 == np.rint(on_grid * 1024.0))
    assert np.all(np.rint(of_integers * 10.0) / 10.0 == of_integers)
    # discrete Laplace noise, exactly e^(-epsilon |k|) up to a factor: its mean is the input, in tenths
    assert abs(float(np.mean(doubles.of_integers(1.0, 200_000, rng))) - 0.1) < 6.0 * 1.42 / np.sqrt(200_000.0)
