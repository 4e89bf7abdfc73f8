"""The measurements of speed: that they measure what their lines say, and what is written of them."""

import dataclasses
import statistics

import numpy as np
import pytest

import dpaudit
from dpaudit.bench import comparisons as published
from dpaudit.bench.design import Design


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
