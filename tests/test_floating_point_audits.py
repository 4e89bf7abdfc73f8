"""The floating-point finding of a whole audit: apart from the verdict, replayable, saved, said on the command line.

Leaks here are of naive Laplace noise on (0, 1): its plainest event has probability 0.2 and more at epsilon = 1 under x
and 0 under x_prime, so that a check of 1,000 draws a side misses it with probability below 1e-20.
"""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from click.testing import CliRunner
from support.samplers import laplace

import dpaudit
from dpaudit import UsageError
from dpaudit.audits import low_bits
from dpaudit.audits.findings import STAGE_RATE
from dpaudit.cli import main


def one_by_one(data, rng):
    return data + rng.laplace()


def integers(data, size, rng):
    return np.rint(data + rng.laplace(size=size))


def audit(mechanism=laplace, pairs=((0.0, 1.0),), **options):
    return dpaudit.audit(mechanism, "eps=1", list(pairs), **{"samples": 2_000, "seed": 3, **options})


@pytest.mark.parametrize("mode", ["sequential", "fixed"])
def test_the_check_changes_nothing_else_of_a_result(mode):
    with_check, without = audit(mode=mode), audit(mode=mode, floating_point=False)
    assert with_check.floating_point.verdict == "leaks" and without.floating_point is None
    for name in ("verdict", "exit_status", "epsilon_lower", "ratio_lower", "samples", "findings"):
        assert getattr(with_check, name) == getattr(without, name)
    assert with_check.verdict != "violated" and with_check.exit_status in (0, 5)


def test_the_finding_is_the_same_for_one_seed_and_any_number_of_workers():
    first, second = (audit(samples=120_000, jobs=jobs).floating_point for jobs in (1, 2))
    assert first == second and first.verdict == "leaks"
    assert audit(seed=4).floating_point != audit(seed=5).floating_point


def test_a_small_audit_is_not_examined_and_says_so():
    finding = audit(samples=low_bits.SIZES.min_samples - 1).floating_point
    assert finding.verdict == "not_applicable" and "samples must be at least 1,000" in finding.message
    assert (finding.samples, finding.pairs, finding.omitted) == (0, (), 1)
    assert finding.error_rate == STAGE_RATE


def test_the_cost_is_at_most_the_samples_of_the_audit():
    assert audit(samples=1_500).floating_point.samples == pytest.approx(2_000, rel=0.1)
    assert audit(samples=50_000).floating_point.samples == pytest.approx(40_000, rel=0.1)
    slow = audit(one_by_one, samples=8_000).floating_point
    assert slow.verdict == "leaks" and slow.samples == pytest.approx(4_000, rel=0.1)


def test_slow_calls_are_made_where_nothing_is_violated(monkeypatch):
    monkeypatch.setattr(low_bits, "SIZES", dataclasses.replace(low_bits.SIZES, slow_call=0.0))
    assert audit(one_by_one).floating_point.samples > 1_900


def test_a_subject_that_breaks_during_the_check_leaves_the_audit_as_it_is():
    calls = []

    def tired(data, size, rng):
        calls.append(size)
        if size == 128:  # the check's first call
            raise ValueError("tired")
        return data + rng.laplace(size=size)

    result = audit(tired, mode="fixed", samples=2_000)
    assert result.verdict != "error" and "tired" in result.floating_point.message


def test_a_vectorised_subject_that_raises_is_examined_one_call_a_draw():
    def raising(data, size, rng):
        if size > 1:
            raise ValueError("one at a time")
        return data + rng.laplace(size=size)

    finding = audit(raising, samples=4_000).floating_point
    assert finding.verdict == "leaks" and finding.samples == pytest.approx(2_000, rel=0.1)


def test_each_pair_is_examined_and_the_worst_comes_first():
    # 1,000,000 + Laplace(1) has some 2^34 doubles a unit, all of which both sides can be: nothing is found there.
    result = audit(pairs=[(1e6, 1e6 + 1.0), (0.0, 1.0)], samples=10_000)
    first, second = result.floating_point.pairs
    assert (first.id, first.verdict) == ("0.0|1.0", "leaks")
    assert (second.id, second.verdict) == ("1000000.0|1000001.0", "nothing_found")


def test_a_result_is_saved_and_loaded_with_its_finding(tmp_path):
    for result in (audit(), audit(integers), audit(floating_point=False)):
        result.save(tmp_path / "audit.json")
        assert dpaudit.load(tmp_path / "audit.json").floating_point == result.floating_point


def test_a_file_of_an_older_version_is_loaded(tmp_path):
    record = audit().to_dict()
    del record["floating_point"]
    (tmp_path / "audit.json").write_text(json.dumps(record))
    assert dpaudit.load(tmp_path / "audit.json").floating_point is None


@pytest.mark.parametrize(
    ("place", "value"), [("verdict", "nothing_found"), ("verdict", "safe"), ("pairs", []), ("error_rate", "much")]
)
def test_a_file_that_contradicts_itself_is_refused(tmp_path, place, value):
    record = audit().to_dict()
    record["floating_point"][place] = value
    (tmp_path / "audit.json").write_text(json.dumps(record))
    with pytest.raises(UsageError):
        dpaudit.load(tmp_path / "audit.json")


def test_a_claim_with_a_delta_is_asked_at_its_report_delta():
    def gaussian(data, size, rng):
        return data + rng.normal(scale=4.0, size=size)

    claim = dpaudit.GaussianDP(0.25)
    (pair,) = dpaudit.audit(gaussian, claim, [(0.0, 1.0)], samples=10_000, seed=1).floating_point.pairs
    assert pair.budget == claim.budget and pair.verdict == "leaks"


# --- the command line ---


@pytest.fixture
def run(project):
    """Run the command line in a project with a module `m.py`."""
    (project / "m.py").write_text("def leaky(data, size, rng): return data + rng.laplace(size=size)\n")

    def invoke(*arguments):
        common = ("--claim", "eps=1", "--pairs", "0.0,1.0", "--samples", "5000", "--seed", "3", "--quiet")
        return CliRunner(env={"COLUMNS": "80"}).invoke(main, ["audit", "m.py:leaky", *common, *arguments])

    return invoke


def test_the_command_line_says_it_apart_and_keeps_its_exit_status(run):
    result, without = run(), run("--no-floating-point")
    assert result.exit_code == without.exit_code == 0
    said = " ".join(result.stdout.split())
    assert "Floating point: found." in said and "The low bits break the promise for 1 of 1 examined pair." in said
    assert "99.9% confidence" in said
    assert "Floating point:" not in without.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
