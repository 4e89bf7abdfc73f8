"""Conformance checks of a session reach its files and its summary, whether or not anything was audited."""

import json
import xml.etree.ElementTree

from dpaudit.conformance.registry import CHECKS
from dpaudit.reports.reading import read_any, read_dossier

# A release that changes its input in place fails `input_unchanged`, without chance: no error rate.
CHECKED = """
    class Release:
        claim = "eps=1"
        pairs = [([0.0], [1.0])]

        def __call__(self, data, size, rng):
            data[0] += 1.0
            return rng.laplace(size=size)

    @dpaudit.parametrize_with_checks([Release()], samples=1_000, expected_failures={"KEY": "known | so"})
    def test_release(check):
        if check.name in ("input_unchanged", "global_generators_unchanged", "seeded_determinism"):
            check()
"""


def test_checks_that_fail_are_in_every_file_of_a_session_without_an_audit(pytester, write):
    result = write(CHECKED.replace(', expected_failures={"KEY": "known | so"}', "")).run(
        "--dp-report", "json,junit,sarif,md", "--dp-out", "out", passed=len(CHECKS) - 1, failed=1
    )
    out = pytester.path / "out"
    result.stdout.fnmatch_lines(
        ["dpaudit: * checks of 1 mechanism: 1 failed, *", f"dpaudit: written {out / 'session.json'}"]
    )
    session = json.loads((out / "session.json").read_text())
    (failed,) = [one for one in session["checks"] if one["status"] == "violated"]
    assert (failed["check"], failed["mechanism"], failed["file"]) == ("input_unchanged", "Release", "test_it.py")
    assert failed["message"] and session["audits"] == []
    # A check that its test never calls is not said to have been passed.
    passed = {one["check"] for one in session["checks"] if one["status"] == "not_refuted"}
    assert passed == {"global_generators_unchanged", "seeded_determinism"}
    uncalled = [one for one in session["checks"] if one["status"] == "skipped"]
    assert len(uncalled) == len(CHECKS) - 3 and {one["message"] for one in uncalled} == {
        "The test did not call the check."
    }
    folder = out / failed["folder"]
    saved = read_any(str(folder / "check.json"))[0][0].result
    assert saved.verdict == "violated" and len(saved.records) == len(CHECKS)
    assert "Release" in (folder / "check.md").read_text()
    suite = xml.etree.ElementTree.parse(folder / "check.junit.xml").getroot()
    assert suite.get("failures") == "1"
    text = (out / "session.md").read_text()
    assert "| failed check | mechanism |" in text and "input\\_unchanged" in text
    (ran,) = json.loads((out / "session.sarif").read_text())["runs"]
    assert [one["level"] for one in ran["results"]].count("error") == 1
    dossier = read_dossier([out])  # the session as a whole
    assert dossier.verdict == "violated" and len(dossier.checks) == 1


def test_a_known_failure_of_a_check_is_one_in_the_files_and_an_outdated_one_an_error(pytester, write):
    write(CHECKED.replace("KEY", "input_unchanged")).run(
        "--dp-report", "json", "--dp-out", "out", passed=len(CHECKS) - 1, xfailed=1
    )
    session = json.loads((pytester.path / "out" / "session.json").read_text())
    assert [(one["check"], one["reason"]) for one in session["checks"] if one["status"] == "xfail"] == [
        ("input_unchanged", "known | so")
    ]
    assert "Failed checks" not in (pytester.path / "out" / "session.md").read_text()
    write(CHECKED.replace("KEY", "seeded_determinism")).run(
        "--dp-report", "json", "--dp-out", "out", passed=len(CHECKS) - 2, failed=2
    )
    session = json.loads((pytester.path / "out" / "session.json").read_text())
    (outdated,) = [one for one in session["checks"] if one["status"] == "error"]
    assert outdated["check"] == "seeded_determinism" and "Remove it." in outdated["message"]


def test_a_mechanism_that_cannot_be_checked_is_an_error_in_the_files(pytester, write):
    write(CHECKED.replace(', expected_failures={"KEY": "known | so"}', "").replace("eps=1", "epsi=1")).run(
        "--dp-report", "json", "--dp-out", "out", "-k", "claim_audit or input_unchanged"
    )
    session = json.loads((pytester.path / "out" / "session.json").read_text())
    assert {one["check"]: one["status"] for one in session["checks"]} == {
        "input_unchanged": "error", "claim_audit": "skipped",
    }  # fmt: skip
    (folder,) = {one["folder"] for one in session["checks"]}
    saved = read_any(str(pytester.path / "out" / folder / "check.json"))[0][0].result
    assert saved.mechanisms[0]["name"] == "Release" and saved.mechanisms[0]["claim"] is None
