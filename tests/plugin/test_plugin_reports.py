"""One report of a session, written once, also with the workers of xdist."""

import importlib.util
import json

import pytest

import dpaudit
from dpaudit import reports
from dpaudit.pytest_plugin import summary

SESSION = """
    @pytest.mark.parametrize("n", range(2))
    def test_leaky(dp_audit, n):
        dp_audit(leaky, samples=300, **PLAIN)

    def test_weak(dp_audit):
        warnings.simplefilter("ignore")
        for _ in range(2):
            dp_audit(sound, samples=20, **PLAIN)

    def test_broken(dp_audit):
        dp_audit(short, samples=300, **PLAIN)

    @pytest.mark.dp_known_violation(reason="a | b", expires="9999-12-31")
    def test_known(dp_audit):
        dp_audit(leaky, samples=300, **PLAIN)
"""

ONE = """
    def test_it(dp_audit):
        dp_audit(sound, floating_point=False, **PLAIN | {"inconclusive_factor": 1000})
"""


def read(folder):
    return json.loads((folder / "session.json").read_text())


def test_a_session_writes_one_report(pytester, write):
    result = write(SESSION).run("--dp-report", "json,html", "--dp-out", "out", passed=1, failed=3, xfailed=1)
    out = pytester.path / "out"
    result.stdout.fnmatch_lines([f"dpaudit: written {out / 'session.json'}", f"dpaudit: written {out / 'session.md'}"])
    session = read(out)
    assert session["schema"] == "dpaudit.session/1"
    assert (session["session"]["tests"], session["session"]["confidence"]) == (5, 0.95)
    audits = {(audit["test"], audit["call"]): audit for audit in session["audits"]}
    assert [audit["verdict"] for audit in audits.values()] == [
        "error", "violated", "violated", "violated", "inconclusive", "inconclusive",
    ]  # fmt: skip
    leaky = audits[("test_it.py::test_leaky[0]", 1)]
    line = (pytester.path / "test_it.py").read_text().splitlines().index('@pytest.mark.parametrize("n", range(2))') + 1
    assert (leaky["file"], leaky["line"]) == ("test_it.py", line)
    assert leaky["share"] == pytest.approx(0.05 / 5 * 0.75)
    saved = dpaudit.load(out / leaky["folder"] / "audit.json")
    assert (saved.verdict, saved.seed, saved.subject["location"]) == ("violated", leaky["seed"], f"test_it.py:{line}")
    assert (out / leaky["folder"] / "audit.html").is_file()
    assert audits[("test_it.py::test_broken", 1)]["folder"] is None
    assert len({audit["folder"] for audit in audits.values()}) == 6


def test_a_job_summary_stays_below_its_limit():
    record = {"verdict": "not_refuted", "claim": "eps=1" * 50, "seed": 1, "epsilon_lower": "inf"}
    audits = [{"test": f"test_it.py::test[{'<x>' * 60}{n:05}]", **record} for n in range(3_000)]
    audits.append({**audits[0], "test": "test_grave", "call": 2, "verdict": "violated"})
    text = summary.markdown([f"{audit['test']}: a note" for audit in audits] * 2, {"session": {}, "audits": audits})
    assert len(text.encode()) < 900_000 and "1 more sections are in the other formats" in text
    assert text.index("test\\_grave \\(call 2\\)") < text.index("test\\_it") and "2,961 more rows" in text


def test_every_format_that_is_accepted_is_written(pytester, write):
    write(ONE)
    formats = [one for one in reports.FORMATS if one != "pdf" or importlib.util.find_spec("typst")]
    result = pytester.runpytest_subprocess("--dp-report", ",".join(formats), "--dp-out", "out")  # typst is loaded once
    assert result.ret == 0
    out = pytester.path / "out"
    (audit,) = read(out)["audits"]
    written = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    of_audit = {f"{audit['folder']}/{reports.file_name('audit', one)}" for one in formats}
    assert written == {"session.json", "session.md", "session.sarif", *of_audit}


BLOCKED = """
    import pathlib

    @pytest.fixture(autouse=True, scope="session")
    def block():
        yield
        pathlib.Path("out").write_text("in the way")
"""


def test_a_session_whose_report_cannot_be_written_fails(write):
    result = write(BLOCKED + ONE).run("--dp-report", "sarif", "--dp-out", "out", passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED  # else a job would go on without its SARIF, and nobody would see


def test_a_report_replaces_an_earlier_one_or_leaves_it_as_it_was(pytester, write):
    write(ONE)
    options = ("--dp-report", "json", "--dp-out", "out")
    pytester.runpytest(*options)
    out = pytester.path / "out"
    before = read(out)
    pytester.runpytest(*options, "--dp-samples", "2000")
    after = read(out)
    assert [one["folder"] for one in after["audits"]] == [one["folder"] for one in before["audits"]]
    saved = out / after["audits"][0]["folder"] / "audit.json"
    assert dpaudit.load(saved).options["samples"] == 2000
    saved.unlink()
    saved.mkdir()
    (out / "session.json").write_text("earlier")
    result = pytester.runpytest(*options)
    assert result.ret == pytest.ExitCode.TESTS_FAILED and (out / "session.json").read_text() == "earlier"
    assert sorted(path.name for path in out.iterdir()) == sorted([saved.parent.name, "session.json", "session.md"])


def test_logs_of_audits_become_one_run_with_all_results():
    def log(results, version="1"):
        tool = {"driver": {"name": "dpaudit", "version": version}}
        return json.dumps({"version": "2.1.0", "runs": [{"tool": tool, "results": results, "properties": {"x": 1}}]})

    merged = json.loads(summary.one_log([log([{"ruleIndex": 0}]), log([]), log([{"ruleIndex": 1}])]))
    (run,) = merged["runs"]
    assert [result["ruleIndex"] for result in run["results"]] == [0, 1]
    assert "properties" not in run  # of the first audit alone
    with pytest.raises(dpaudit.UsageError, match="SARIF logs of one version"):
        summary.one_log([log([]), log([], "2")])


def test_a_session_has_one_sarif_log(pytester, write):
    write(SESSION).run("--dp-report", "sarif")
    log = json.loads((pytester.path / "dpaudit-out" / "session.sarif").read_text())
    (run,) = log["runs"]
    places = [one["physicalLocation"] for result in run["results"] for one in result["locations"]]
    assert len(places) >= 3
    assert all(place["artifactLocation"]["uri"] == "test_it.py" for place in places)


@pytest.mark.long
def test_workers_of_xdist_give_one_summary_and_one_report(pytester, write):
    write(SESSION)
    options = ["--dp-report", "json", "-W", "ignore", "--dp-profile", "nightly", "--dp-session-seed", "5"]
    alone = pytester.runpytest(*options, "--dp-out", "alone", "--dp-cache", "none")
    result = pytester.runpytest_subprocess("-n", "2", *options, "--dp-out", "together", "--dp-cache", "none")
    result.assert_outcomes(passed=1, failed=3, xfailed=1)
    for lines in (alone.outlines, result.outlines):
        assert [line for line in lines if line.startswith("dpaudit: ")][1:3] == [
            "dpaudit: 6 audits: 3 violated, 1 error, 2 inconclusive; 1 of them known",
            "dpaudit: 0.95 confidence for the session: a false alarm, in whichever audit, replay or check, in at most "
            "0.05 of sessions (5 tests with 0.01 each); profile nightly, repeated by --dp-session-seed 5",
        ]
    assert read(pytester.path / "alone") == read(pytester.path / "together")
    names = [sorted(file.relative_to(root).as_posix() for file in root.rglob("*")) for root in (
        pytester.path / "alone", pytester.path / "together")]  # fmt: skip
    assert names[0] == names[1]
