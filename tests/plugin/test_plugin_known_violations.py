"""Known violations: expected until their date, and failures when they vanish or expire."""

import datetime

import pytest

KNOWN = """
    @pytest.mark.dp_known_violation(reason="issue 12", expires="{date}"{more})
    def test_release(dp_audit):
        dp_audit({mechanism}, samples={samples}, floating_point=False, inconclusive_factor={factor}, **SURE)
"""
LATER = (datetime.date.today() + datetime.timedelta(days=2)).isoformat()


def known(mechanism="leaky", date=LATER, more="", samples=300, factor=2):
    return KNOWN.format(mechanism=mechanism, date=date, more=more, samples=samples, factor=factor)


def test_a_known_violation_is_expected(write):
    result = write(known()).run("-rx", xfailed=1)
    result.stdout.fnmatch_lines([f"XFAIL test_it.py::test_release - *issue 12 (known until {LATER})"])
    result.stdout.fnmatch_lines(["dpaudit: 1 audit: 1 violated; 1 of them known"])


def test_it_fails_when_it_has_vanished(write):
    result = write(known("sound", samples=20_000, factor=100)).run(failed=1)
    result.stdout.fnmatch_lines(
        ["The known violation (issue 12) was not found: * remove it from the mark dp_known_violation."]
    )


def test_too_little_evidence_is_not_taken_for_its_absence(pytester, write):
    write(known("sound", samples=20)).run(passed=1, warnings=1)
    pytester.runpytest("--dp-strict").assert_outcomes(failed=1)


@pytest.mark.parametrize("mechanism", ["leaky", "sound"])
def test_it_fails_from_its_date_on(write, mechanism):
    result = write(known(mechanism, date=datetime.date.today().isoformat())).run(failed=1)
    result.stdout.fnmatch_lines(["The known violation (issue 12) expired on *. Repair the mechanism, or state a *"])


def test_a_date_that_is_none_is_told_once(pytester, write):
    """pytest shows the exception that another one is raised from: the message stood there twice."""
    write(known(date="someday"))
    shown = pytester.runpytest().stdout.str()
    told = "expires must be a date such as '2027-01-31', got 'someday' in the mark dp_known_violation."
    assert shown.count(told) == 1 and "another exception" not in shown


def test_pairs_that_are_not_listed_fail(write):
    write(known(more=", pairs=['0.0|1.0']")).run(xfailed=1)
    result = write(known(more=", pairs=['0.0|2.0']")).run(failed=1)
    result.stdout.fnmatch_lines(["Violated: the promise is broken for 1 of 1 pair"])


@pytest.mark.parametrize("test", ["test_it.py::test_release", "test_it.py::test_release[1]"])
def test_the_project_lists_them_too(pytester, write, test):
    write("""
        @pytest.mark.parametrize("n", [1])
        def test_release(dp_audit, n):
            dp_audit(leaky, samples=300, **SURE)
    """)
    pytester.makepyprojecttoml(
        f"[[tool.dpaudit.known_violations]]\ntest = '{test}'\nreason = 'issue 12'\nexpires = {LATER}\n"
    )
    pytester.runpytest().assert_outcomes(xfailed=1)


def test_it_fails_from_its_date_on_where_nothing_is_audited_any_more(write):
    result = write("""
        @pytest.mark.dp_known_violation(reason="old", expires="2020-02-02")
        def test_release():
            pass

        @pytest.mark.dp_known_violation(reason="still there", expires="9999-12-31")
        def test_other():
            pass
    """).run(failed=1, passed=1)
    result.stdout.fnmatch_lines(["*The known violation (old) expired on 2020-02-02.*"])


# --- entries of no test ---

GONE = """
    [[tool.dpaudit.known_violations]]
    test = "test_it.py::test_gone"
    reason = "issue 12"
    expires = {date}
"""
LINE = "known violation of 'test_it.py::test_gone' (issue 12) belongs to no test that audits"
QUIET = "    def test_release(dp_audit): dp_audit(sound, samples=20, floating_point=False, **PLAIN)\n"
OTHER = "    def test_other(): pass\n"


def listed(pytester, write, date, code=QUIET + OTHER):
    write(code)
    pytester.makepyprojecttoml(GONE.format(date=date))


def told(result):
    return [line for line in result.outlines if "known violation of" in line]


@pytest.mark.parametrize("options", [(), ("--dp-only",), ("-x",), (".",), ("test_it.py",)], ids=str)
def test_an_entry_of_no_test_is_told(pytester, write, options):
    listed(pytester, write, LATER)
    result = pytester.runpytest(*options)
    assert result.ret == 0
    assert told(result) == [f"dpaudit: {LINE}: correct or remove it in [[tool.dpaudit.known_violations]]"]


def test_an_entry_of_no_test_fails_the_session_from_its_date_on(pytester, write):
    listed(pytester, write, "2020-02-02")
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=2, warnings=1)
    assert told(result)[0].startswith(f"dpaudit: FAILED: {LINE} and expired on 2020-02-02: correct or remove it")
    listed(pytester, write, "2020-02-02", "    def test_gone(): pass\n")  # it is there, but does not audit
    assert pytester.runpytest().ret == pytest.ExitCode.TESTS_FAILED
    listed(pytester, write, "2020-02-02", "    x = 1\n")  # no test at all
    assert pytester.runpytest().ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    "options",
    [
        ("-k", "release"),
        ("--deselect", "test_it.py::test_other"),
        ("test_it.py::test_release",),
        ("--lf",),
        ("other",),
        ("--co",),
    ],
    ids=str,
)
def test_a_session_of_some_tests_judges_no_entry(pytester, write, options):
    (pytester.path / "other").mkdir()
    (pytester.path / "other" / "test_more.py").write_text("def test_more(): pass\n")
    listed(pytester, write, "2020-02-02")
    result = pytester.runpytest(*options)
    assert result.ret == 0 and not told(result)
