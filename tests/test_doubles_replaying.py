"""Replay of a floating-point witness, and the check on the pairs of an all-pairs table.

Statistical assertions. Naive Laplace noise on (0, 1) at epsilon = 1: the plainest event has probability 0.2 and more
under x and 0 under x_prime, so at 1,000 draws a side a leak is missed with probability below 1e-30. Sound noise (on a
grid, or of one law for all inputs) is "leaks" or "confirmed" with probability at most 1e-3 a check, the error rate that
is stated; the seeds of these are fixed, and there are six.
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
from dpaudit.audits.findings import STAGE_PAIRS, STAGE_RATE
from dpaudit.cli import main


def one_by_one(data, rng):
    return data + rng.laplace()


def on_grid(data, size, rng):
    return np.round((data + rng.laplace(size=size)) * 1024.0) / 1024.0


def in_dictionaries(data, rng):
    return {"mean": [0, data + rng.laplace()]}


def audited(mechanism=laplace, pairs=((0.0, 1.0),), claim="eps=1", **options):
    return dpaudit.audit(mechanism, claim, list(pairs), **{"samples": 4_000, "seed": 3, **options})


@pytest.fixture(scope="module")
def leaking():
    return audited()


# --- the replay ---


@pytest.mark.parametrize("mechanism", [laplace, one_by_one, in_dictionaries], ids=["vectorised", "single", "nested"])
def test_a_leak_is_confirmed_on_fresh_draws_after_it_was_saved(mechanism, tmp_path):
    result = audited(mechanism)
    result.save(tmp_path / "audit.json")
    found = result.floating_point.pairs[0]
    replay = dpaudit.replay_floating_point(dpaudit.load(tmp_path / "audit.json"), mechanism, seed=4)
    assert replay.confirmed and replay.epsilon_lower > replay.budget.epsilon == 1.0
    assert replay.correct + replay.wrong + replay.abstained == found.correct + found.wrong + found.abstained
    assert (replay.pair, replay.confidence) == (found.id, 1.0 - STAGE_RATE)


def test_the_rule_of_a_leak_does_not_accuse_sound_noise(leaking):
    assert not dpaudit.replay_floating_point(leaking, on_grid, seed=4).confirmed
    assert not dpaudit.replay_floating_point(leaking, lambda data, size, rng: rng.laplace(size=size), seed=4).confirmed


def test_a_replay_is_the_same_for_one_seed_and_no_draw_of_it_was_seen_before(leaking):
    first, second = (dpaudit.replay_floating_point(leaking, laplace, seed=4, samples=1_000) for _ in range(2))
    assert first == second and first.correct + first.wrong + first.abstained == 2_000
    assert first != dpaudit.replay_floating_point(leaking, laplace, seed=5, samples=1_000)
    seen = []

    def watched(data, size, rng):
        noise = rng.laplace(size=size)
        seen.extend(noise.tolist())
        return data + noise

    result = audited(watched, samples=2_000)
    dpaudit.replay_floating_point(result, watched, seed=3)  # the seed of the audit
    assert len(set(seen)) == len(seen) > result.samples + result.floating_point.samples


def test_only_leaks_keep_their_rule(leaking):
    assert leaking.floating_point.pairs[0].rule is not None
    assert [pair.rule for pair in audited(on_grid).floating_point.pairs] == [None]


def test_results_without_a_witness_are_refused(leaking):
    for result in (audited(on_grid), audited(floating_point=False)):
        with pytest.raises(
            UsageError, match="result must hold a floating-point witness, got one whose low bits do not"
        ):
            dpaudit.replay_floating_point(result, laplace)
    finding = leaking.floating_point
    old = dataclasses.replace(finding, pairs=tuple(dataclasses.replace(pair, rule=None) for pair in finding.pairs))
    with pytest.raises(UsageError, match="of a version that saved none"):
        dpaudit.replay_floating_point(dataclasses.replace(leaking, floating_point=old), laplace)
    no_tables = {**finding.pairs[0].rule, "tables": []}
    bad = dataclasses.replace(finding, pairs=(dataclasses.replace(finding.pairs[0], rule=no_tables),))
    with pytest.raises(UsageError, match="witness must be one that this version can read"):
        dpaudit.replay_floating_point(dataclasses.replace(leaking, floating_point=bad), laplace)
    with pytest.raises(UsageError, match=r"inputs of '0.0\|1.0' must be given"):
        dpaudit.replay_floating_point(dataclasses.replace(leaking, findings=()), laplace)


def test_a_rule_of_an_earlier_version_is_refused_with_a_way_forward(leaking):
    finding = leaking.floating_point
    rule = {"tables": [{"path": [], "feature": {"kind": "lowest_bit"}}], "high": "0x1p+0", "low": "-0x1p+0"}
    old = dataclasses.replace(finding, pairs=(dataclasses.replace(finding.pairs[0], rule=rule),))
    message = "must be a rule on low bits of version 2, got one of version 1. Run the audit again"
    with pytest.raises(UsageError, match=message):
        dpaudit.replay_floating_point(dataclasses.replace(leaking, floating_point=old), laplace)


def test_a_file_without_rules_is_still_read(leaking, tmp_path):
    record = leaking.to_dict()
    for pair in record["floating_point"]["pairs"]:
        del pair["rule"]
    (tmp_path / "audit.json").write_text(json.dumps(record))
    assert dpaudit.load(tmp_path / "audit.json").floating_point.pairs[0].rule is None


# --- the command line ---


@pytest.fixture
def run(project):
    """Run the command line in a project with a module `m.py`."""
    (project / "m.py").write_text(
        "import numpy as np\n"
        "def leaky(data, size, rng): return data + rng.laplace(size=size)\n"
        "def on_grid(data, size, rng): return np.round(leaky(data, size, rng) * 1024.0) / 1024.0\n"
    )

    def invoke(*arguments):
        result = CliRunner(env={"COLUMNS": "80"}).invoke(main, arguments)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return invoke


AUDIT = ("audit", "m.py:leaky", "--claim", "eps=1", "--pairs", "0.0,1.0", "--samples", "4000", "--seed", "3", "-q")


def test_the_printed_line_replays_the_leak(run):
    text = run(*AUDIT, "--out", "o", "--report", "json").stdout
    line = " ".join(text.replace("\\\n", " ").split())
    assert "replay dpaudit replay o/audit.json --pair '0.0|1.0' --target m.py:leaky --floating-point" in line
    assert "--floating-point" not in run(*AUDIT).stdout  # nothing was saved that could be replayed
    result = run("replay", "o/audit.json", "--trust-file", "--pair", "0.0|1.0", "--floating-point", "--seed", "4")
    assert result.exit_code == 1 and result.stdout.startswith("Confirmed: the low bits break the promise")
    assert "99.9% confidence" in " ".join(result.stdout.split())
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_a_leak_that_is_gone_is_not_confirmed_and_a_mistake_is_one_message(run):
    run(*AUDIT, "--out", "o", "--report", "json")
    result = run("replay", "o/audit.json", "--floating-point", "--target", "m.py:on_grid", "--seed", "4")
    assert result.exit_code == 0 and result.stdout.startswith("Not confirmed:")
    for arguments, words in (
        (["--pair", "nope"], "pair must be the id of a pair whose low bits leak"),
        (["--claim", "eps=1"], "claim must not be given with --floating-point, got 'eps=1'"),
    ):
        result = run("replay", "o/audit.json", "--floating-point", "--target", "m.py:leaky", *arguments)
        assert result.exit_code == 2 and words in result.stderr and result.stdout == ""


# --- all-pairs tables ---

INPUTS = [0.25 * k for k in range(65)]  # 2,080 pairs
METRIC = dpaudit.MetricDP(lambda x, y: abs(x - y))


def all_pairs(mechanism, **options):
    # "fixed": the check is the same in both modes, and the depth of the all-pairs table takes less time
    stated = {"samples": 2_000, "seed": 3, "mode": "fixed", **options}
    return dpaudit.audit(mechanism, METRIC, dpaudit.all_pairs(INPUTS), **stated)


def test_a_table_of_all_pairs_is_examined_on_its_pairs_with_the_least_budgets(tmp_path):
    result = all_pairs(laplace)
    finding = result.floating_point
    assert finding.verdict == "leaks" and result.verdict != "violated"
    assert len(finding.pairs) == STAGE_PAIRS and finding.omitted == 2_080 - STAGE_PAIRS
    assert {pair.budget.epsilon for pair in finding.pairs} == {0.25}
    result.save(tmp_path / "audit.json")
    loaded = dpaudit.load(tmp_path / "audit.json")
    assert loaded.floating_point == finding
    by_id = {pair.id: pair for pair in dpaudit.all_pairs(INPUTS)}
    worst = finding.pairs[0].id
    assert dpaudit.replay_floating_point(loaded, laplace, inputs=by_id[worst], seed=4).confirmed


def test_the_check_changes_nothing_else_of_a_table_and_can_be_turned_off():
    with_check, without = (all_pairs(laplace, samples=1_000, floating_point=on) for on in (True, False))
    assert without.floating_point is None and with_check.samples == without.samples
    assert with_check.findings == without.findings
    assert with_check.universe.epsilon_lower.tobytes() == without.universe.epsilon_lower.tobytes()


def test_sound_and_small_tables_are_not_accused():
    assert all_pairs(on_grid, samples=1_000).floating_point.verdict == "nothing_found"
    small = all_pairs(laplace, samples=500).floating_point
    assert small.verdict == "not_applicable" and small.omitted == 2_080
