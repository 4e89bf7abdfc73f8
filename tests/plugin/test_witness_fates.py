"""Fates of a saved witness that was not confirmed: the table of cases, on objects; sessions around it."""

import dataclasses
import json
import math

import pytest

import dpaudit
from dpaudit.pytest_plugin import witnesses
from dpaudit.pytest_plugin.texts import witness_text
from dpaudit.pytest_plugin.witnesses import Power, Saved, fate

FOUND = Power(100_000, 0.01, "sequential")
SAME, QUICK = FOUND, dataclasses.replace(FOUND, samples=5_000)
NIGHTLY = dataclasses.replace(FOUND, samples=500_000)
SESSIONS = dataclasses.replace(FOUND, stored=90_000)


def saved(power=FOUND, **record):
    result = dpaudit.audit(lambda data: data, "eps=1", [(0, 1)], samples=100, seed=1, floating_point=False)
    return Saved(dataclasses.replace(result, **record), "2026-01-02", power)


WITNESS = saved()


@pytest.mark.parametrize(
    ("then", "now", "is_same_code", "verdict", "expected"),
    [
        (FOUND, QUICK, True, "not_refuted", "kept"),
        (FOUND, SAME, True, "not_refuted", "dropped: power"),
        (FOUND, NIGHTLY, True, "not_refuted", "dropped: power"),
        (NIGHTLY, SAME, True, "not_refuted", "kept"),  # found at session, a pull request's run stays silent
        (FOUND, QUICK, False, "not_refuted", "dropped: code"),
        (None, NIGHTLY, True, "not_refuted", "kept"),  # of an older version, which did not say its power
        (None, QUICK, False, "not_refuted", "dropped: code"),
        (FOUND, QUICK, False, "inconclusive", "kept"),  # says nothing of the new code either
        (FOUND, QUICK, True, "inconclusive", "kept"),
        (FOUND, SAME, True, "inconclusive", "dropped: power"),  # no weaker than the run that found it
        (FOUND, SAME, False, "error", "kept"),
        (FOUND, SAME, True, "violated", "kept"),
        (FOUND, None, False, "not_refuted", "not asked"),  # another claim, or without the pair
        (FOUND, dataclasses.replace(FOUND, mode="fixed"), True, "not_refuted", "kept"),
        (FOUND, dataclasses.replace(FOUND, mode="sequential, pooled"), True, "not_refuted", "kept"),
        (FOUND, dataclasses.replace(FOUND, error=0.005), True, "not_refuted", "kept"),  # a test was added
        (FOUND, dataclasses.replace(FOUND, error=0.005, samples=116_000), True, "not_refuted", "dropped: power"),
        (FOUND, dataclasses.replace(QUICK, error=0.9), True, "not_refuted", "kept"),  # a larger share buys no samples
        (SESSIONS, SAME, True, "not_refuted", "kept"),  # found in the evidence of many sessions
        (SESSIONS, dataclasses.replace(FOUND, stored=5_000), True, "not_refuted", "kept"),  # the store begins anew
        (SESSIONS, SESSIONS, True, "not_refuted", "dropped: power"),
    ],
)
def test_a_witness_is_dropped_by_changed_code_or_by_silence_of_the_power_that_found_it(
    then, now, is_same_code, verdict, expected
):
    witness = dataclasses.replace(WITNESS, power=then)
    assert fate(witness, now, is_same_code, verdict) == expected
    kept = expected if expected == "not asked" else "kept"
    assert fate(witness, now, is_same_code, verdict, is_dependent=True) == kept
    if now is not None:
        text = witness_text(witness, expected, now, "release")
        assert "\n" not in text and text.startswith("a witness of 2026-01-02 ")
        is_weaker = then is None or not now.reaches(then)
        assert ("was not confirmed at this size; kept" in text) == (expected == "kept" and is_weaker)
        assert ("gave no answer; kept" in text) == (expected == "kept" and not is_weaker)


def test_the_samples_that_settle_a_kept_witness_do():
    weaker = dataclasses.replace(FOUND, samples=5_000, error=0.004)
    needed = FOUND.samples_at(weaker.error)
    assert f"{needed:,} samples settle it" in witness_text(WITNESS, "kept", weaker, "release")
    assert dataclasses.replace(weaker, samples=needed).reaches(FOUND)
    assert not dataclasses.replace(weaker, samples=needed - 1).reaches(FOUND)
    assert needed == math.ceil(100_000 * math.log(0.004) / math.log(0.01))  # log(1 / error) over growth, of the wealth


def test_a_weaker_run_that_finds_another_violation_leaves_the_power_that_silence_needs(tmp_path):
    violated = WITNESS.result
    witnesses.save(tmp_path, "t", 1, violated, 100_000)
    witnesses.save(tmp_path, "t", 1, violated, 5_000)
    assert witnesses.saved(tmp_path, "t", 1).power.samples == 100_000
    mended = dataclasses.replace(violated, subject=violated.subject | {"fingerprint": "other"})
    witnesses.save(tmp_path, "t", 1, mended, 5_000)
    assert witnesses.saved(tmp_path, "t", 1).power.samples == 5_000


@pytest.mark.parametrize("found", [None, [], {}, {"date": "x"}, {"date": "2026-01-02", "samples": "many"}, "damaged"])
def test_a_file_that_does_not_say_its_power_is_read_and_has_none(tmp_path, found):
    witnesses.save(tmp_path, "t", 1, WITNESS.result, 100)
    (file,) = (tmp_path / witnesses.FOLDER).iterdir()
    record = json.loads(file.read_text())
    if found == "damaged":
        found = record["found"] | {"error": 2.0}
    file.write_text(json.dumps({**record, "found": found} if found is not None else
                               {name: value for name, value in record.items() if name != "found"}))  # fmt: skip
    read = witnesses.saved(tmp_path, "t", 1)
    assert read.power is None and read.result.findings and len(read.date) == 10


SESSIONS = """
    import mended

    def release(data, size, rng):
        return data + rng.laplace(scale=mended.SCALE, size=size)

    def test_release(dp_audit):
        dp_audit(release, floating_point=False, **PLAIN)

    @pytest.mark.dp_known_violation(reason="issue 12", expires="9999-12-31")
    def test_known(dp_audit):
        dp_audit(release, samples=mended.SAMPLES, floating_point=False, inconclusive_factor=100, **PLAIN)
"""
STRICT = ("-W", "error", "-W", "ignore::dpaudit.DpauditInconclusiveWarning", "-p", "no:cacheprovider")


def test_a_session_of_fewer_samples_passes_and_keeps_the_witness_and_says_so_once(pytester, write):
    write(SESSIONS)
    pytester.makepyfile(mended="SCALE, SAMPLES = 0.1, 4_000")
    pytester.runpytest("--dp-samples", "300").assert_outcomes(failed=1, xfailed=1)
    folder = pytester.path / ".dpaudit" / "witnesses"
    kept = sorted(folder.iterdir())
    assert len(kept) == 2
    pytester.makepyfile(mended="SCALE, SAMPLES = 1.00, 3_000")  # what the function reads: its own code is the same
    quick = pytester.runpytest("--dp-samples", "200", *STRICT)
    quick.assert_outcomes(passed=2)  # a known violation that a weaker run does not see has not vanished
    text = "a witness of 20*-*-* was not confirmed at this size; kept"
    known, own = (f"dpaudit:   saved witness: test_it.py::{name}: {text}" for name in ("test_known", "test_release"))
    quick.stdout.fnmatch_lines([
        f"{known} (3,000 samples; found with 4,000). 4,000 samples settle it",
        f"{own} (200 samples; found with 300). 300 samples settle it",
    ])  # fmt: skip
    assert quick.stdout.str().count("a witness of") == 2 and sorted(folder.iterdir()) == kept
    full = pytester.runpytest("--dp-samples", "300", "--deselect", "test_it.py::test_known", *STRICT)
    full.assert_outcomes(passed=1, deselected=1)
    full.stdout.fnmatch_lines(["dpaudit: *test_release: a witness of * is dropped: a run as strong as the one *"])
    assert len(list(folder.iterdir())) == 1
