"""A mechanism that ends pytest's process fails the session, whatever status it chose."""

import pytest

SUITE = """
    import os

    def ends(data, rng):
        os._exit({status})

{test}

    def test_something_else():
        assert False
"""
TESTS = {
    "an audit": "    def test_it(dp_audit): dp_audit(ends, samples=100, **PLAIN)",
    "a check": "    @dpaudit.parametrize_with_checks([ends], **PLAIN)\n    def test_it(check): check()",
}


@pytest.mark.parametrize("kind", TESTS)
@pytest.mark.parametrize("status", [0, 7])
def test_a_mechanism_that_ends_the_process_fails_the_session_and_is_named(pytester, write, kind, status):
    write(SUITE.format(status=status, test=TESTS[kind]))
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert done.ret == (status or int(pytest.ExitCode.INTERNAL_ERROR))
    done.stderr.fnmatch_lines([f"dpaudit: FAILED: *::test_it* ended the process of pytest with os._exit({status}).*"])


def test_a_child_that_ends_itself_is_left_alone_and_nothing_stays_changed(pytester, write):
    write("""
        import os

        def test_it(dp_audit):
            child = os.fork()
            if child == 0:
                os._exit(5)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5

        def test_after():
            assert os._exit.__module__ == "posix"
    """)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)


def test_a_session_can_isolate_its_mechanisms(pytester, write):
    """The mechanism leaves a list behind in its own process: in that of pytest it stays empty only where isolated."""
    write("""
        CALLS = []

        def counting(data, size, rng):
            CALLS.append(size)
            return data + rng.laplace(size=size)

        def test_it(dp_audit):
            warnings.simplefilter("ignore")
            dp_audit(counting, samples=100, floating_point=False, **PLAIN)
            assert CALLS == []
        """).run("--dp-isolation", "seconds=60", "--dp-cache", "none", passed=1)
    pytester.runpytest("--dp-cache", "none").assert_outcomes(failed=1)
    pytester.runpytest("--dp-isolation", "off", "--dp-cache", "none").assert_outcomes(failed=1)
    result = pytester.runpytest("--dp-isolation", "second=60")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*second*at --dp-isolation.*"])


@pytest.mark.parametrize(
    "then", ["pass", "pytest.skip('no')", "pytest.xfail('known')", "pytest.exit('done', returncode=0)"]
)
def test_a_test_that_swallows_a_failure_and_leaves_fails_all_the_same(pytester, write, then):
    write(f"""
        import contextlib

        def test_swallows(dp_audit):
            with contextlib.suppress(BaseException):
                dp_audit(leaky, samples=200, **PLAIN)
            {then}
    """)
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    if "exit" not in then:
        done.stdout.fnmatch_lines(["*dp_audit failed this test, which went on and passed.*"])


def test_a_mark_that_expects_a_failure_lets_it_through(write):
    write("""
        @pytest.mark.xfail
        def test_known(dp_audit):
            dp_audit(leaky, samples=200, **PLAIN)
    """).run("-p", "no:cacheprovider", xfailed=1)
