"""The floating-point check of a whole audit: apart from the verdict, replayed, of tables, on the command line.

Statistical assertions. Naive Laplace noise on (0, 1) at epsilon = 1: the plainest event has probability 0.2 and more
under x and 0 under x_prime, so at 1,000 draws a side a leak is missed with probability below 1e-30. Sound noise (on a
grid, or of one law for all inputs) is "leaks" or "confirmed" with probability at most 1e-3 a check, the error rate that
is stated; the seeds of these are fixed, and there are six.
"""

import dataclasses
import json

import numpy as np
import pytest
from click.testing import CliRunner
from support.samplers import laplace, one_at_a_time, one_by_one

import dpaudit
from dpaudit import UsageError
from dpaudit.audits import low_bits
from dpaudit.audits.findings import STAGE_PAIRS, STAGE_RATE
from dpaudit.cli import main


def on_grid(data, size, rng):
    return np.round((data + rng.laplace(size=size)) * 1024.0) / 1024.0


def in_dictionaries(data, rng):
    return {"mean": [0, data + rng.laplace()]}


def audited(mechanism=laplace, pairs=((0.0, 1.0),), **options):
    return dpaudit.audit(mechanism, "eps=1", list(pairs), **{"samples": 2_000, "seed": 3, **options})


@pytest.fixture(scope="module")
def leaking():
    return audited()


@pytest.mark.parametrize("mode", ["sequential", "fixed"])
def test_the_check_changes_nothing_else_of_a_result(mode):
    with_check, without = audited(mode=mode), audited(mode=mode, floating_point=False)
    assert with_check.floating_point.verdict == "leaks" and without.floating_point is None
    for name in ("verdict", "exit_status", "epsilon_lower", "ratio_lower", "samples", "findings"):
        assert getattr(with_check, name) == getattr(without, name)
    assert with_check.verdict != "violated" and with_check.exit_status in (0, 5)


def test_the_finding_is_the_same_for_one_seed_and_any_number_of_workers():
    first, second = (audited(samples=120_000, jobs=jobs).floating_point for jobs in (1, 2))
    assert first == second and first.verdict == "leaks"
    assert audited(seed=4).floating_point != audited(seed=5).floating_point


def test_a_small_audit_is_not_examined_and_says_so():
    finding = audited(samples=low_bits.SIZES.min_samples - 1).floating_point
    assert finding.verdict == "not_applicable" and "samples must be at least 1,000" in finding.message
    assert (finding.samples, finding.pairs, finding.omitted) == (0, (), 1)
    assert finding.error_rate == STAGE_RATE


def test_the_cost_is_at_most_the_samples_of_the_audit():
    assert audited(samples=1_500).floating_point.samples == pytest.approx(2_000, rel=0.1)
    assert audited(samples=50_000).floating_point.samples == pytest.approx(40_000, rel=0.1)
    slow = audited(one_by_one, samples=8_000).floating_point
    assert slow.verdict == "leaks" and slow.samples == pytest.approx(4_000, rel=0.1)


def test_slow_calls_are_made_where_nothing_is_violated(monkeypatch):
    monkeypatch.setattr(low_bits, "SIZES", dataclasses.replace(low_bits.SIZES, slow_call=0.0))
    assert audited(one_by_one).floating_point.samples > 1_900


def test_a_subject_that_breaks_during_the_check_leaves_the_audit_as_it_is():
    calls = []

    def tired(data, size, rng):
        calls.append(size)
        if size == 128:  # the check's first call
            raise ValueError("tired")
        return data + rng.laplace(size=size)

    result = audited(tired, mode="fixed", samples=2_000)
    assert result.verdict != "error" and "tired" in result.floating_point.message


def test_a_vectorised_subject_that_raises_is_examined_one_call_a_draw():
    finding = audited(one_at_a_time, samples=4_000).floating_point
    assert finding.verdict == "leaks" and finding.samples == pytest.approx(2_000, rel=0.1)


def test_each_pair_is_examined_and_the_worst_comes_first():
    # 1,000,000 + Laplace(1) has some 2^34 doubles a unit, all of which both sides can be: nothing is found there.
    result = audited(pairs=[(1e6, 1e6 + 1.0), (0.0, 1.0)], samples=10_000)
    first, second = result.floating_point.pairs
    assert (first.id, first.verdict) == ("0.0|1.0", "leaks")
    assert (second.id, second.verdict) == ("1000000.0|1000001.0", "nothing_found")


@pytest.mark.parametrize(
    ("place", "value"), [("verdict", "nothing_found"), ("verdict", "safe"), ("pairs", []), ("error_rate", "much")]
)
def test_a_file_that_contradicts_itself_is_refused(tmp_path, place, value):
    record = audited().to_dict()
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


def test_the_command_line_says_it_apart_and_keeps_its_exit_status(run):
    arguments = ["5000" if word == "4000" else word for word in AUDIT]  # samples that settle it
    result, without = run(*arguments), run(*arguments, "--no-floating-point")
    assert result.exit_code == without.exit_code == 0
    said = " ".join(result.stdout.split())
    assert "Floating point: found." in said and "The low bits break the promise for 1 of 1 examined pair." in said
    assert "99.9% confidence" in said
    assert "Floating point:" not in without.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


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
