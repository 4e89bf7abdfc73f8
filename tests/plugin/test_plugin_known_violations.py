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


def test_a_known_violation_is_expected(pytester, write):
    write(known())
    result = pytester.runpytest("-rx")
    result.assert_outcomes(xfailed=1)
    result.stdout.fnmatch_lines([f"XFAIL test_it.py::test_release - *issue 12 (known until {LATER})"])
    result.stdout.fnmatch_lines(["dpaudit: 1 audit: 1 violated; 1 of them known"])
    assert not (pytester.path / ".dpaudit").exists()


def test_it_fails_where_expected_failures_are_run(pytester, write):
    write(known())
    pytester.runpytest("--runxfail").assert_outcomes(failed=1)


def test_it_fails_when_it_has_vanished(pytester, write):
    write(known("sound", samples=3000, factor=100))
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["The known violation (issue 12) was not found: * Remove it from the mark dp_known_violation."]
    )


def test_too_little_evidence_is_not_taken_for_its_absence(pytester, write):
    write(known("sound", samples=20))
    pytester.runpytest().assert_outcomes(passed=1, warnings=1)
    pytester.runpytest("--dp-strict").assert_outcomes(failed=1)


@pytest.mark.parametrize("mechanism", ["leaky", "sound"])
def test_it_fails_from_its_date_on(pytester, write, mechanism):
    write(known(mechanism, date=datetime.date.today().isoformat()))
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["The known violation (issue 12) expired on *. Repair the mechanism, or state a *"])


def test_pairs_that_are_not_listed_fail(pytester, write):
    write(known(more=", pairs=['0.0|1.0']"))
    pytester.runpytest().assert_outcomes(xfailed=1)
    write(known(more=", pairs=['0.0|2.0']"))
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["Violated: the promise is broken for 1 of 1 pair"])


def test_an_audit_that_breaks_fails(pytester, write):
    write(known("broken"))
    pytester.runpytest().assert_outcomes(failed=1)


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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("expires='2999-01-01'", "*reason must be a text, got None in the mark dp_known_violation."),
        ("reason='x'", "*expires must be a date such as '2027-01-31', got None in the mark dp_known_violation."),
        ("'x', '2999-13-01'", "*expires must be a date such as '2027-01-31', got '2999-13-01' in the mark*"),
        ("'x', '2999-01-01', 'a'", "*pairs must be a list of ids of pairs, got 'a' in the mark*"),
        ("'x', '2999-01-01', pair='a'", "*the mark dp_known_violation must have a reason, *, got 'pair'."),
    ],
)
def test_what_makes_no_sense_is_told(pytester, write, arguments, words):
    write(f"""
        @pytest.mark.dp_known_violation({arguments})
        def test_release(dp_audit):
            dp_audit(leaky, samples=300, **SURE)
    """)
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([words])


def test_a_table_without_a_reason_is_told(pytester, write):
    write("    def test_it(dp_audit): dp_audit(sound, samples=20, **PLAIN)\n")
    pytester.makepyprojecttoml("[[tool.dpaudit.known_violations]]\ntest = 'a'\n")
    result = pytester.runpytest()
    result.stdout.fnmatch_lines(["*UsageError: known_violations must be a list of tables with test, reason and *"])


def test_it_fails_from_its_date_on_where_nothing_is_audited_any_more(pytester, write):
    write("""
        @pytest.mark.dp_known_violation(reason="old", expires="2020-02-02")
        def test_release():
            pass

        @pytest.mark.dp_known_violation(reason="still there", expires="9999-12-31")
        def test_other():
            pass
    """)
    result = pytester.runpytest()
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["*The known violation (old) expired on 2020-02-02.*"])
