"""The fixture `dp_audit`, in tests that pytest runs inside these tests.

No outcome here is left to chance: a mechanism that keeps its claim is audited at a confidence of 1 - 1e-9, so that it
is refuted in at most one of 10**9 choices of a seed; a mechanism that breaks its claim returns its input, so that a
rule that was fitted on both labels is always right: 100 right guesses in a row have a probability of at most
0.7311**100 < 1e-13 under eps = 1, and 200 samples a side leave more than that after any pilot.
"""

import pytest


def test_a_violation_fails_with_all_that_is_needed_to_repeat_it(write):
    result = write("""
        def test_leaky(dp_audit):
            dp_audit(leaky, samples=300, seed=11, **SURE)
    """).run(failed=1)
    result.stdout.fnmatch_lines(
        [
            "Violated: the promise is broken for 1 of 1 pair",
            "  claim    eps=1",
            "  pair     0.0|1.0",
            "  rule     *guess*",
            "  counts   The rule was right in *",
            "  bound    ε ≥ *",
            "  draws    *",
            "  seed     11",
            "  replay   pytest test_it.py::test_leaky --dp-seed 11",
            "dpaudit: 1 audit: 1 violated",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*dpaudit/audits/auditing.py*")


def test_the_printed_line_repeats_the_failure(pytester, write):
    first = write("""
        @pytest.mark.parametrize("n", [1, 2])
        def test_leaky(dp_audit, n):
            dp_audit(leaky, samples=200 + n, **SURE)
    """).run("-k", "2")
    line = next(line for line in first.outlines if line.startswith("  replay   pytest "))
    assert "'test_it.py::test_leaky[2]'" in line
    again = pytester.runpytest(*line.removeprefix("  replay   pytest ").replace("'", "").split())
    failure = [text for text in first.outlines if text.startswith("  ")]
    assert failure == [text for text in again.outlines if text.startswith("  ")]


def test_a_mechanism_that_raises_on_every_call_fails(write):
    result = write("""
        def test_broken(dp_audit):
            dp_audit(broken, samples=300, **SURE)
    """).run(failed=1)
    result.stdout.fnmatch_lines(["Error: the audit broke for 1 of 1 pair: broken, claim eps=1, seed *."])
    result.stdout.fnmatch_lines(["  0.0|1.0: broken must return outputs, got ValueError*"])
    result.stdout.fnmatch_lines(["dpaudit: 1 audit: 1 error"])


def test_mistakes_are_exceptions_that_point_at_the_test(write):
    result = write("""
        def test_subject(dp_audit):
            with pytest.raises(SubjectError, match="must return 12 outputs"):
                dp_audit(short, samples=300, **SURE)

        def test_claim(dp_audit):
            dp_audit(sound, claim="eps=-1", pairs=[(0.0, 1.0)])
    """).run(passed=1, failed=1)
    result.stdout.fnmatch_lines(["E*UsageError: epsilon must be in [[]0, inf], got -1.0 at claim 'eps=-1'."])
    result.stdout.no_fnmatch_line("*dpaudit/privacy/parsing.py*")
    result.stdout.fnmatch_lines(["dpaudit: 1 audit: 1 error"])


WEAK = """
    def test_weak(dp_audit):
        assert dp_audit(sound, samples=20, **SURE).verdict == "inconclusive"
"""


def test_an_inconclusive_audit_warns(pytester, write):
    result = write(WEAK).run(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*DpauditInconclusiveWarning: Inconclusive: nothing was found*pytest -v*"])
    result.stdout.fnmatch_lines(["dpaudit: 1 audit: 1 inconclusive"])
    result = pytester.runpytest("-v")
    result.stdout.fnmatch_lines(["*test_it.py:*DpauditInconclusiveWarning: Inconclusive*Take more samples."])


def test_what_concerns_many_tests_is_warned_of_in_one_line(pytester, write):
    write("""
        @pytest.mark.parametrize("k", range(5))
        def test_weak(dp_audit, k):
            dp_audit(sound, samples=1_000, **SURE)
    """)  # low bits of naive Laplace noise leak in each of them: tests/test_floating_point_audits.py
    result = pytester.runpytest()
    result.assert_outcomes(passed=5, warnings=10)
    text = result.stdout.str()
    assert text.count("DpauditInconclusiveWarning") == text.count("DpauditFloatingPointWarning") == 1
    assert text.count("low bits leak") == 1
    assert "<dpaudit>:1: DpauditFloatingPointWarning" in text and "#!" not in text  # no line of a file of that name
    result.stdout.fnmatch_lines(["dpaudit:   low bits leak: 5 tests (*test_weak[[]0[]], *and 2 more); pytest -v has*"])
    text = pytester.runpytest("-v").stdout.str()
    assert text.count("DpauditInconclusiveWarning") == text.count("low bits leak: test_it.py") == 5


def test_a_factory_makes_a_fresh_object_for_each_call(write):
    write("""
        class Once:
            left = 1

            def __call__(self, x, rng):
                self.left -= 1
                return x + rng.laplace() if self.left >= 0 else None

        def test_fresh(dp_audit):
            result = dp_audit(Once, claim="eps=1", pairs=[(0.0, 1.0)], samples=200, fresh=True)
            assert result.verdict == "inconclusive" and "fresh object" in result.subject["interface"]
    """).run("-W", "ignore", passed=1)


def test_an_audit_whose_draws_depend_on_each_other_fails(write):
    """It would pass with a warning that more samples would not mend: noise that is drawn once a batch."""
    result = write("""
        def test_shared(dp_audit):
            def shares(x, size, rng): return x + rng.laplace() + 0.1 * rng.laplace(size=size)
            dp_audit(shares, claim="eps=1", pairs=[(0.0, 1.0)], samples=4_000, floating_point=False)
    """).run(failed=1)
    result.stdout.fnmatch_lines(["*Inconclusive: draws depend on each other*", "*note     0.0|1.0: Draws depend on*"])
    result.stdout.fnmatch_lines(["dpaudit: *1 side finding (call order), of which a call order alone fails its*"])


def test_an_audit_of_kept_noise_fails_too(pytester, write):
    """Before, it passed with a warning, against the manual, and a saved witness was dropped by its silence."""
    write("""
        class Keeps:
            noise = None

            def __call__(self, x, rng):
                self.noise = rng.laplace() if self.noise is None else self.noise
                return x + self.noise

        def test_kept(dp_audit):
            dp_audit(Keeps(), claim="eps=1", pairs=[(0.0, 1.0)], samples=200, floating_point=False)
    """)
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*Inconclusive: draws depend on each other*", "*note     0.0|1.0: Noise is kept*"])


FORGETS = """
    def test_forgets(dp_audit):
        def forgets(x, rng): x + rng.laplace()
        for _ in range(2):
            dp_audit(forgets, claim="eps=1", pairs=[(0.0, 1.0)], samples=4_000, floating_point=False)

    def test_returns(dp_audit):
        dp_audit(lambda x, rng: 0.5 * rng.integers(2), samples=20_000, floating_point=False, **SURE)
"""  # neither looks at its input: where all outputs are one no alarm is possible, with SURE its rate is below 1e-9
NOTE = "0.0|1.0: All 8,000 outputs that were looked at, on both inputs, read as None: does the mechanism *"


def test_a_note_warns_and_the_summary_repeats_it_once(write):
    result = write(FORGETS).run(passed=2, warnings=2)
    result.stdout.fnmatch_lines([f"*test_it.py:*DpauditNoteWarning: *forgets, claim eps=1, seed *: {NOTE}"])
    result.stdout.fnmatch_lines([f"dpaudit:   note (a mistake of the test?): test_it.py::test_forgets: {NOTE}"])
    assert result.stdout.str().count("test_forgets: 0.0|1.0: ") == 1


def test_a_note_fails_a_test_where_its_warning_is_an_error_and_not_with_strict(pytester, write):
    write(FORGETS).run("--dp-strict", passed=2, warnings=2)
    pytester.runpytest("-W", "error::dpaudit.DpauditNoteWarning").assert_outcomes(passed=1, failed=1)


def test_a_failing_test_has_its_notes_and_the_traceback_in_its_text(write):
    result = write("""
        def test_constant(dp_audit):
            def raising(x, rng):
                if x == 1.0: raise KeyError("one")
                return 0.5
            dp_audit(raising, claim="eps=1", pairs=[(0.0, 1.0)], samples=2_000)

        def test_raises(dp_audit):
            dp_audit(lambda x, rng: {}["column"], claim="eps=1", pairs=[(0.0, 1.0)], samples=2_000)
    """).run(failed=2, warnings=0)
    result.stdout.fnmatch_lines(["Violated: *", "  note     0.0|1.0: Of the * outcomes *", "* raised KeyError*"])
    result.stdout.fnmatch_lines(["*got KeyError: 'column' in <lambda> (test_it.py, line *", "  Traceback *"])
    assert all(len(line) <= 80 for line in result.outlines if line.startswith("  note"))
    result.stdout.no_fnmatch_line("*note (*")


LEAKY_BITS = """
    def test_bits(dp_audit):
        result = dp_audit(sound, samples=5000, inconclusive_factor=100, **SURE)
        assert result.verdict == "not_refuted" and result.floating_point.verdict == "leaks"
"""  # naive Laplace noise: found with probability above 1 - 1e-30 (tests/test_floating_point_audits.py)


def test_low_bits_that_leak_warn(pytester, write):
    result = write(LEAKY_BITS).run(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*DpauditFloatingPointWarning: Low bits of the outputs break the promise*"])
    result.stdout.fnmatch_lines(["dpaudit: 1 audit: 1 not refuted; floating point: 1 with a leak"])
    result = pytester.runpytest("-v")
    result.stdout.fnmatch_lines(["*DpauditFloatingPointWarning: sound, claim eps=1*low bits break the promise*"])


def test_low_bits_that_leak_fail_where_strict_is_asked_for(write):
    result = write(LEAKY_BITS).run("--dp-strict", failed=1)
    result.stdout.fnmatch_lines(["*low bits break the promise*Pair 0.0|1.0: *", "  replay   pytest test_it.py*"])


@pytest.mark.parametrize("place", ["command line", "ini", "pyproject"])
def test_an_inconclusive_audit_fails_where_strict_is_asked_for(pytester, write, place):
    write(WEAK)
    if place == "ini":
        pytester.makeini("[pytest]\ndp_strict = true\n")
    if place == "pyproject":
        pytester.makepyprojecttoml("[tool.dpaudit]\nstrict = true\n")
    result = pytester.runpytest(*(["--dp-strict"] if place == "command line" else []))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["Inconclusive: * pair: sound*", "  replay   pytest test_it.py::test_weak --dp*"])


PRINTED = """
    def test_options(dp_audit):
        warnings.simplefilter("ignore")
        result = dp_audit(sound, claim="eps=1", pairs=[(0.0, 1.0)])
        print("options", result.options["samples"], result.seed, result.confidence, result.mode)
"""


def test_options_come_from_the_command_line_then_the_ini_file_then_the_project(pytester, write):
    write(PRINTED)
    pytester.makepyprojecttoml("[tool.dpaudit]\nsamples = 11\nseed = 1\nconfidence = 0.999999991\nmode = 'fixed'\n")
    pytester.makeini("[pytest]\ndp_samples = 12\ndp_seed = 2\ndp_confidence = 0.999999992\n")
    result = pytester.runpytest("-s", "--dp-samples", "13", "--dp-seed", "3")
    # One test, its first call: 3/4 of the session's error rate, 80% of it for the audit: 8e-9 * 0.6.
    result.stdout.fnmatch_lines(["*options 13 3 0.9999999952 fixed"])


def test_the_seed_is_that_of_the_test_and_of_the_call(pytester, write):
    write("""
        @pytest.mark.parametrize("case", ["a", "b"])
        def test_seed(dp_audit, case):
            warnings.simplefilter("ignore")
            for _ in range(2):
                print("seed", dp_audit(sound, samples=20, **SURE).seed)
    """)
    runs = [pytester.runpytest("-s", *order).outlines for order in ([], ["-k", "b"])]
    whole, second = ([line.split()[-1] for line in lines if "seed " in line] for lines in runs)
    assert len(set(whole)) == 4
    assert second == whole[2:]


def test_workers_of_xdist_report_their_verdicts(pytester, write):
    write("""
        def test_sound(dp_audit):
            dp_audit(sound, samples=20_000, **SURE)

        @pytest.mark.parametrize("n", range(3))
        def test_leaky(dp_audit, n):
            dp_audit(leaky, samples=300, **SURE)

        def test_weak(dp_audit):
            dp_audit(sound, samples=20, **SURE)
    """)
    pytester.makepyprojecttoml("[tool.dpaudit]\njobs = 2\ninconclusive_factor = 100\n")
    result = pytester.runpytest_subprocess("-n", "2")
    # Two warnings: the weak audit is inconclusive, and the large one sees that numpy's noise leaks in its low bits.
    result.assert_outcomes(passed=2, failed=3, warnings=2)
    result.stdout.fnmatch_lines(["dpaudit: 5 audits: 3 violated, 1 inconclusive, 1 not refuted; floating point: 1 *"])
    result.stdout.fnmatch_lines(["  replay   pytest 'test_it.py::test_leaky[[]*]' *", "* --dp-seed *"])


def test_an_audit_in_a_fixture_is_counted_once(write):
    write("""
        @pytest.fixture
        def audited(dp_audit):
            warnings.simplefilter("ignore")
            return dp_audit(sound, samples=20, **SURE)

        def test_it(audited):
            pass
    """).run().stdout.fnmatch_lines(["dpaudit: 1 audit: 1 inconclusive"])


def test_nothing_is_imported_and_nothing_is_said_when_no_audit_runs(pytester):
    pytester.makepyfile("""
        import sys

        def test_light(dp_audit):
            heavy = {"numpy", "scipy", "click", "rich", "jinja2", "joblib", "tomllib", "dpaudit.config"}
            heavy |= {"dpaudit.audits.auditing", "dpaudit.results.model", "dpaudit.pytest_plugin.calls"}
            assert "dpaudit.pytest_plugin" in sys.modules
            assert not heavy & set(sys.modules)
    """)
    result = pytester.runpytest_subprocess("-p", "no:hypothesispytest")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*dpaudit:*audit*")
