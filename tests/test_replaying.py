"""Replay: the saved witness, unchanged, on fresh draws.

Statistical assertions: a mechanism that releases its input is confirmed on every draw; one that hides it is "confirmed"
with probability at most 1 - confidence, here 1e-9 (2 assertions).
"""

import dataclasses
import math
from typing import NamedTuple

import numpy as np
import pytest
from support.samplers import KeepsItsNoise, laplace, released

import dpaudit
from dpaudit import ApproxDP, GaussianDP, MetricDP, Pair, PureDP, RenyiDP, SubjectError, UsageError, ZeroConcentratedDP
from dpaudit.reports.brief import replay_blocks
from dpaudit.reports.dossier import Dossier, Source
from dpaudit.reports.redaction import redacted

CLAIMS = [PureDP(1.0), ApproxDP(1.0, 0.05), GaussianDP(1.0), RenyiDP(2.0, 0.5), ZeroConcentratedDP(0.5)]


def hidden(data, size, rng):
    return rng.normal(size=size)


class Densities:
    """Laplace noise with its density."""

    def sample(self, data, size, rng):
        return laplace(data, size, rng)

    def log_density(self, data, outputs):
        return -np.abs(outputs - data)


def audited(mechanism, claim=CLAIMS[0], pairs=((0.0, 1.0),), **options):
    return dpaudit.audit(mechanism, claim, list(pairs), **{"samples": 500, "seed": 1, **options})


def saved_and_loaded(result, folder):
    result.save(folder / "audit.json")
    return dpaudit.load(folder / "audit.json")


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize("mode", ["sequential", "fixed"])
def test_a_violation_is_confirmed_on_fresh_draws_after_it_was_saved(claim, mode, tmp_path):
    result = saved_and_loaded(audited(released, claim, mode=mode), tmp_path)
    assert result.verdict == "violated"
    replay = dpaudit.replay(result, released, claim, seed=2)
    assert replay.confirmed and replay.parameter_lower > claim.value
    assert (replay.wrong, replay.parameter, replay.parameter_budget) == (0, claim.parameter, claim.value)
    assert replay.description == result.findings[0].witness.description


@pytest.mark.parametrize("claim", [PureDP(0.1), RenyiDP(2.0, 0.1)], ids=str)
def test_a_witness_confirms_nothing_of_a_mechanism_that_was_repaired(claim):
    result = dataclasses.replace(audited(released, claim), confidence=1.0 - 1e-9)
    replay = dpaudit.replay(result, hidden, claim, seed=2)
    assert not replay.confirmed and replay.parameter_lower <= claim.value


@pytest.mark.parametrize("mechanism", [laplace, Densities()], ids=["laplace", "with its density"])
@pytest.mark.parametrize("mode", ["sequential", "fixed"])
def test_the_witness_that_is_read_back_guesses_as_the_saved_one_did(mechanism, mode, tmp_path):
    result = audited(mechanism, PureDP(0.1), mode=mode)
    from_memory = dpaudit.replay(result, mechanism, PureDP(0.1), seed=3, samples=5_000)
    from_file = dpaudit.replay(saved_and_loaded(result, tmp_path), mechanism, PureDP(0.1), seed=3, samples=5_000)
    assert from_memory == from_file
    assert from_file.correct + from_file.wrong > 0


def test_the_same_seed_replays_the_same_bits_and_another_seed_others():
    result = audited(laplace, PureDP(0.1))
    first, again, other = (dpaudit.replay(result, laplace, PureDP(0.1), seed=s) for s in (4, 4, 5))
    assert first == again
    assert (first.correct, first.wrong, first.abstained) != (other.correct, other.wrong, other.abstained)


def test_no_seed_draws_one_and_says_which():
    result = audited(laplace, PureDP(0.1))
    replay = dpaudit.replay(result, laplace, PureDP(0.1))
    assert dpaudit.replay(result, laplace, PureDP(0.1), seed=replay.seed) == replay


def test_the_worst_pair_is_replayed_unless_another_is_named():
    pairs = [Pair(0.0, 0.0, id="same"), Pair(0.0, 9.0, id="far")]
    result = audited(released, pairs=pairs)
    assert dpaudit.replay(result, released, PureDP(1.0), seed=2).pair == "far"
    assert dpaudit.replay(result, released, PureDP(1.0), pair="same", seed=2).pair == "same"


def test_the_budget_of_a_metric_claim_is_that_of_the_pair():
    claim = MetricDP(lambda x, y: 0.5 * abs(x - y))
    replay = dpaudit.replay(audited(released, claim, [(0.0, 3.0)]), released, claim, seed=2)
    assert replay.parameter_budget == 1.5 and replay.confirmed


def test_a_subject_that_was_audited_one_call_a_draw_is_replayed_so():
    def raising(data, size, rng):
        if data:
            raise ValueError("always")
        return rng.normal(size=size)

    result = audited(raising)
    assert result.subject["interface"].endswith("one call a draw") and result.verdict == "violated"
    assert dpaudit.replay(result, raising, PureDP(1.0), seed=2).confirmed


def test_a_subject_that_now_always_raises_is_an_error():
    def broken(data, rng):
        raise ValueError("gone")

    with pytest.raises(SubjectError, match="broken must return outputs, got ValueError"):
        dpaudit.replay(audited(lambda data, rng: float(data)), broken, PureDP(1.0), seed=2)


def test_a_result_without_a_witness_cannot_be_replayed():
    nothing = audited(hidden, PureDP(math.inf))
    with pytest.raises(UsageError, match="result must hold a finding with a witness, got none"):
        dpaudit.replay(nothing, hidden, PureDP(1.0))


EARLIER = [
    {"game": "guess", "anchor": 0.0, "score": {"kind": "coordinate", "column": 0}, "sign": 1, "low": "-inf"},
    {"game": "renyi", "cells": {}, "g": [], "orders": [2.0, 2.0]},
]


@pytest.mark.parametrize("rule", EARLIER, ids=["guesses", "bets"])
def test_a_witness_of_an_earlier_version_is_refused_with_a_way_forward(rule):
    result = audited(released)
    witness = dataclasses.replace(result.findings[0].witness, rule=rule)
    result = dataclasses.replace(result, findings=(dataclasses.replace(result.findings[0], witness=witness),))
    with pytest.raises(UsageError, match="made by another version of dpaudit; run the audit again"):
        dpaudit.replay(result, released, PureDP(1.0))


@pytest.mark.parametrize(
    "change",
    [
        {"rule": {"first_up": 10, "end_down": 50, "anchor": 0, "expected": 1.0}},  # some bins would be guessed twice
        {"rule": {"first_up": 10, "end_down": 5, "anchor": 99, "expected": 1.0}},
        {"predicted": {"q": [0.5, 2.0], "mass": [0.5, 0.5]}},
        {"mixture": {}},
    ],
    ids=["twice", "anchor", "predicted", "mixture"],
)
def test_a_witness_that_is_no_rule_is_refused_whoever_wrote_it(change):
    result = audited(laplace, PureDP(0.1), mode="fixed")
    rule = {**result.findings[0].witness.rule, **change}
    witness = dataclasses.replace(result.findings[0].witness, rule=rule)
    result = dataclasses.replace(result, findings=(dataclasses.replace(result.findings[0], witness=witness),))
    with pytest.raises(UsageError, match="witness must be one that this version can read"):
        dpaudit.replay(result, laplace, PureDP(0.1), seed=2)


def test_inputs_that_were_saved_as_a_digest_must_be_given():
    long = [0.0] * 10_000
    subject_pairs = [Pair(long, [*long[:-1], 1.0], id="long")]

    def total(data, size, rng):
        return np.full(size, float(sum(data)))

    result = audited(total, pairs=subject_pairs)
    loaded = dpaudit.AuditResult.from_dict(result.to_dict())
    with pytest.raises(UsageError, match=r"inputs of 'long' must be given, .*of x it keeps only the digest"):
        dpaudit.replay(loaded, total, PureDP(1.0))
    assert dpaudit.replay(loaded, total, PureDP(1.0), inputs=subject_pairs[0], seed=2).confirmed


class Table:
    """An input that JSON does not have; its printed form has another length than its rows."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __repr__(self):
        return f"Table of {self.rows}"


class Record(NamedTuple):
    name: str
    age: int


def lengths(data, size, rng):
    return np.full(size, float(len(data)))


@pytest.mark.parametrize(
    "inputs",
    [
        (Table([1, 2, 3]), Table([1, 2])),
        ([Table([1])], [Table([1]), Table([2])]),
        ({1: "a"}, {1: "a", 2: "b"}),
        ({"bins": {(0, 1): 2}}, {"bins": {}, "more": 1}),
        ([Record("a", 1)], [Record("a", 1)] * 2),
        (range(2), range(3)),
        (np.array(["2026-01-01"], dtype="M8[D]"), np.array([], dtype="M8[D]")),
        (b"ab", b"abc"),
    ],
    ids=str,
)
def test_inputs_that_a_file_keeps_by_their_printed_form_must_be_given(inputs, tmp_path):
    # On the printed form the mechanism runs as well, and the answer would be about a text.
    pair = Pair(*inputs, id="one")
    fresh = audited(lengths, pairs=[pair])
    assert dpaudit.replay(fresh, lengths, PureDP(1.0), seed=2).confirmed  # the inputs are still at hand
    loaded = saved_and_loaded(fresh, tmp_path)
    with pytest.raises(UsageError, match=r"inputs of 'one' must be given.*printed form.*--pairs.*inputs=Pair"):
        dpaudit.replay(loaded, lengths, PureDP(1.0), seed=2)
    assert dpaudit.replay(loaded, lengths, PureDP(1.0), inputs=pair, seed=2).confirmed
    again = dpaudit.AuditResult.from_dict(loaded.to_dict())  # saved once more it says so still
    assert again.findings[0].printed == loaded.findings[0].printed != ()


@pytest.mark.parametrize(
    "inputs", [([1, 2, 3], [1, 2]), ("abc", "ab"), ({"a": 1}, {"a": 1, "b": 2}), ((1.0,), (1.0, 2.0))], ids=str
)
@pytest.mark.parametrize("is_old", [False, True], ids=["with the mark", "of an older version"])
def test_inputs_that_json_has_are_replayed_from_the_file(inputs, is_old):
    record = audited(lengths, pairs=[Pair(*inputs)]).to_dict()
    assert record["pairs"][0]["printed"] == []
    if is_old:
        del record["pairs"][0]["printed"]
    loaded = dpaudit.AuditResult.from_dict(record)
    assert dpaudit.replay(loaded, lengths, PureDP(1.0), seed=2).confirmed


@pytest.mark.parametrize("replay", [dpaudit.replay, dpaudit.replay_floating_point])
def test_a_redacted_result_is_refused(replay):
    source = redacted(Dossier((Source("audit.json", "", audited(released)),))).sources[0]
    claim = (PureDP(1.0),) if replay is dpaudit.replay else ()
    with pytest.raises(UsageError, match="result must hold its rules and inputs, got a redacted one"):
        replay(source.result, released, *claim)


class Refusing:
    """Sound noise, for so many calls; then there is no answer."""

    def __init__(self, calls):
        self.left = calls

    def __call__(self, data, rng):
        self.left -= 1
        return data + rng.laplace() if self.left >= 0 else None


def test_nothing_is_confirmed_where_noise_is_kept():
    # All guesses are right where the two draws are in their order, on either side of a threshold.
    broken = dpaudit.audit(laplace, claim="eps=0.4", pairs=[(0.0, 1.0)], samples=3_000, seed=1, floating_point=False)
    again = [
        dpaudit.replay(broken, KeepsItsNoise().__call__, dpaudit.PureDP(1.0), samples=200, seed=seed)
        for seed in range(12)
    ]
    assert not any(one.confirmed or one.parameter_lower for one in again)
    assert all(one.dependence.startswith("Noise is kept") for one in again)


def shared_noise(data, size, rng):
    return data + rng.laplace() + 0.1 * rng.laplace(size=size)


@pytest.mark.parametrize("make", [lambda: Refusing(5_000), lambda: shared_noise], ids=["refuses", "once a batch"])
def test_nothing_is_confirmed_on_draws_that_depend_on_each_other(make):
    """A rule that guesses x for one sign, and x′ for the other; or where nothing is returned."""
    broken = dpaudit.audit(
        lambda data, rng: None if rng.random() < 0.5 * data else data + rng.laplace(scale=0.4),
        claim="eps=1", pairs=[(0.0, 1.0)], samples=3_000, seed=1, floating_point=False,
    )  # fmt: skip
    assert broken.verdict == "violated"
    again = dpaudit.replay(broken, make(), dpaudit.PureDP(1.0), samples=8_000, seed=2)
    assert not again.confirmed and again.parameter_lower == 0.0 and "depend on each other" in again.dependence
    text = "\n".join(line.text for line in replay_blocks(again))
    assert text.startswith("Not confirmed: the draws depend on each other.") and "No bound is given" in text
