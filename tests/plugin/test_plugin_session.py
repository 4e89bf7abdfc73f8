"""The session's confidence in real sessions: who gets which share, and what is refused.

Mechanisms are audited with 20 to 200 draws, so that nothing is found but what breaks its claim in every draw; a test
asserts shares, which do not depend on draws.
"""

import re

import pytest

SHARES = """
    @pytest.mark.parametrize("n", range(4))
    def test_share(dp_audit, n):
        warnings.simplefilter("ignore")
        print(f"share {1 - dp_audit(sound, samples=20, **PLAIN).confidence:.6g}")
"""


def shares(result):
    return [float(share) for line in result.outlines for share in re.findall(r"share (\S+)", line)]


def test_tests_that_can_audit_share_the_confidence_of_the_session(write):
    result = write(SHARES + "    def test_nothing(): pass\n").run("-s", "--dp-confidence", "0.9")
    assert shares(result) == pytest.approx([0.1 / 4 * 0.75 * 0.8] * 4)
    result.stdout.fnmatch_lines(
        [
            "dpaudit: 4 audits: 4 inconclusive",
            "dpaudit: 0.9 confidence for the session: a false alarm, in whichever audit, replay or check, in at most "
            "0.1 of sessions (4 tests with 0.025 each); profile default, fixed seeds",
        ]
    )


def test_deselected_tests_have_no_share_and_a_stop_changes_none(pytester, write):
    write(SHARES + '    @pytest.mark.parametrize("n", range(9))\n    def test_z_fails(dp_audit, n): assert False\n')
    assert shares(pytester.runpytest("-s", "-k", "share")) == pytest.approx([0.05 / 4 * 0.6] * 4, rel=1e-4)
    assert shares(pytester.runpytest("-s", "-x")) == pytest.approx([0.05 / 13 * 0.6] * 4, rel=1e-4)


def test_a_share_is_the_same_whatever_other_tests_find(pytester, write):
    write(SHARES + "    def test_z_leaky(dp_audit): dp_audit(leaky, samples=200, **PLAIN)\n")
    before = shares(pytester.runpytest("-s"))
    write(SHARES + "    def test_a_leaky(dp_audit): dp_audit(sound, samples=200, **PLAIN)\n")
    assert before == shares(pytester.runpytest("-s")) == pytest.approx([0.05 / 5 * 0.6] * 4)


def test_each_further_call_of_a_test_has_less(pytester, write):
    write("""
        def test_share(dp_audit):
            warnings.simplefilter("ignore")
            for _ in range(4):
                print(f"share {1 - dp_audit(sound, samples=20, **PLAIN).confidence:.6g}")
    """)
    expected = [0.05 * 0.8 * weight for weight in (3 / 4, 1 / 8, 1 / 24, 1 / 48)]
    assert shares(pytester.runpytest("-s")) == pytest.approx(expected, rel=1e-4)


def test_a_mark_says_options_calls_and_the_confidence_of_the_test(write):
    result = write("""
        pytestmark = pytest.mark.dp_audit(samples=20, mode="fixed")

        @pytest.mark.dp_audit(confidence=0.99, calls=2)
        def test_own(dp_audit):
            warnings.simplefilter("ignore")
            for _ in range(2):
                result = dp_audit(sound, **PLAIN)
                assert (result.options["samples"], result.mode) == (20, "fixed")
                print(f"share {1 - result.confidence:.6g}")
            with pytest.raises(UsageError, match="calls must be how often the test calls dp_audit, got 2"):
                dp_audit(sound, **PLAIN)

        @pytest.mark.dp_audit(samples=30)
        def test_rest(dp_audit):
            warnings.simplefilter("ignore")
            result = dp_audit(sound, **PLAIN)
            assert result.options["samples"] == 30
            print(f"share {1 - result.confidence:.6g}")
    """).run("-s", passed=2)
    assert shares(result) == pytest.approx([0.004, 0.004, 0.04 * 0.6])
    result.stdout.fnmatch_lines(["*(1 test with 0.04 each, 1 test with a confidence of its own, 0.01 in all)*"])


def test_a_confidence_may_be_any_real_number(write):
    result = write("""
        import fractions

        import numpy as np

        @pytest.mark.dp_audit(confidence=fractions.Fraction(99, 100))
        def test_marked(dp_audit):
            assert type(dp_audit(sound, samples=20, **PLAIN).confidence) is float

        @pytest.mark.parametrize("stated", [fractions.Fraction(999, 1000), np.float32(0.999)])
        def test_called(dp_audit, stated):
            dp_audit(leaky, samples=300, confidence=stated, **PLAIN)
    """).run("-W", "ignore", "--dp-report", "json", passed=1, failed=2)
    result.stdout.no_fnmatch_line("*TypeError*")
    result.stdout.fnmatch_lines(["dpaudit: written *session.json"])


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("sample=3", "*UsageError: option of the mark dp_audit must be *, got 'sample'. Did you mean 'samples'?"),
        ("confidence=1", "*UsageError: confidence must be in (0, 1), got 1 in a mark dp_audit."),
        ("calls=0", "*UsageError: calls must be a positive integer, got 0 in a mark dp_audit."),
        ("samples=-5", "*UsageError: samples must be an integer of at least 10, got -5 in a mark dp_audit."),
        ("mode='quick'", "*UsageError: mode must be 'sequential', *, got 'quick' in a mark dp_audit."),
        ("3", "*UsageError: dp_audit must have named arguments only, got 3 in a mark."),
        ("confidence=0.9", "*UsageError: confidence of the mark dp_audit *, got 0.1 in test_it.py::test_it. *"),
    ],
)
def test_a_mark_that_makes_no_sense_fails_its_test(write, mark, words):
    result = write(f"""
        @pytest.mark.dp_audit({mark})
        def test_it(dp_audit):
            dp_audit(sound, samples=20, **PLAIN)
    """).run(failed=1)
    result.stdout.fnmatch_lines([words.replace("[", "[[]")])
    result.stdout.no_fnmatch_line("*dpaudit/pytest_plugin*")


def test_a_mark_that_takes_too_much_fails_its_own_test_alone(write):
    result = write("""
        @pytest.mark.dp_audit(confidence=0.2)
        def test_greedy(dp_audit):
            dp_audit(sound, samples=20, **PLAIN)

        @pytest.mark.dp_audit(confidence=0.99, calls=1)
        def test_own(dp_audit):
            warnings.simplefilter("ignore")
            print(f"share {1 - dp_audit(sound, samples=20, **PLAIN).confidence:.6g}")

        def test_rest(dp_audit):
            warnings.simplefilter("ignore")
            print(f"share {1 - dp_audit(sound, samples=20, **PLAIN).confidence:.6g}")
    """).run("-s", failed=1, passed=2)
    result.stdout.fnmatch_lines(["*mark dp_audit must take at most 0.025 of *, got 0.8 in test_it.py::test_greedy. *"])
    assert shares(result) == pytest.approx([0.008, 0.04 * 0.6])


def test_an_error_rate_of_tests_that_the_session_does_not_have_stops_it(write):
    result = write(
        "    def test_it(dp_audit): dp_audit(sound, samples=20, **PLAIN)\n    def test_other(dp_audit): pass\n"
    ).run("--dp-test-error", "0.03")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: dp_test_error must be at most 0.025 for 2 tests, got 0.03."])
    result.stdout.no_fnmatch_line("*dpaudit: *")


def test_a_confidence_of_a_call_is_its_own_and_paid_for(write):
    write("""
        def test_own(dp_audit):
            warnings.simplefilter("ignore")
            assert dp_audit(sound, samples=20, **{**PLAIN, "confidence": 0.99}).confidence == 0.99
            with pytest.raises(UsageError, match="confidence must be at least 0.97, since the test has 0.0375 left"):
                dp_audit(sound, samples=20, **{**PLAIN, "confidence": 0.95})
            with pytest.raises(UsageError, match=r"confidence must be in .0, 1., got 2"):
                dp_audit(sound, samples=20, **{**PLAIN, "confidence": 2})
    """).run(passed=1)


def test_lists_of_checks_are_part_of_the_session(write):
    result = write("""
        class Response:
            claim = dpaudit.PureDP(1.0)
            def sample(self, data, size, rng):
                return (rng.random(size) < 0.25) ^ bool(data)
            def pairs(self):
                return [(0, 1)]

        @dpaudit.parametrize_with_checks([Response(), Response()], error_rate=0.04)
        def test_conformance(check):
            print(check.name, f"share {check.subjects.case.level * 34:.6g}")

        def test_audit(dp_audit):
            warnings.simplefilter("ignore")
            print(f"share {1 - dp_audit(sound, samples=20, **PLAIN).confidence:.6g}")
    """).run("-s", "-k", "pickling or claim_audit or test_audit")
    # 0.08 is stated where half of 0.05 may be spent, 0.0125 each.
    assert shares(result) == pytest.approx([0.0125] * 4 + [0.025 * 0.6])
    result.stdout.fnmatch_lines(["*(1 test with 0.025 each, 2 lists of checks with 0.025 in all (scaled down *"])


def test_lists_alone_say_what_they_promise(pytester, write):
    result = write("""
        def release(data, size, rng):
            return data + rng.laplace(size=size)

        @dpaudit.parametrize_with_checks([release])
        def test_conformance(check):
            check()

        @pytest.mark.parametrize("again", range(2))  # of randomness of its own a mechanism draws anew each time
        @dpaudit.parametrize_with_checks([release])
        def test_repeated(check, again):
            check()
    """).run("-k", "test_conformance and (pickling or claim_audit)")
    result.stdout.fnmatch_lines(["dpaudit: 0.95 confidence *(1 list of checks with 0.001 in all); profile default*"])
    result = pytester.runpytest("-k", "claim_audit")
    result.stdout.fnmatch_lines(["dpaudit: 0.95 confidence *(3 lists of checks with 0.003 in all); profile default*"])


def test_a_fixture_that_no_test_names_is_refused(write):
    result = write("""
        def test_late(request):
            request.getfixturevalue("dp_audit")(sound, samples=20, **PLAIN)

        @pytest.mark.dp_audit
        def test_marked(request):
            warnings.simplefilter("ignore")
            request.getfixturevalue("dp_audit")(sound, samples=20, **PLAIN)
    """).run(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*UsageError: dp_audit must be known when tests are collected, got a test that *"])


def test_the_line_that_replays_keeps_the_share_of_its_test(pytester, write, replay_line):
    first = write(SHARES + "    def test_leaky(dp_audit):\n        dp_audit(leaky, samples=200, **PLAIN)\n").run(
        "--dp-confidence", "0.98"
    )
    line = replay_line(first)
    assert "--dp-confidence 0.98" in line and "--dp-test-error 0.004" in line
    again = pytester.runpytest(*line.removeprefix("replay pytest ").replace("'", "").split())
    # One session has five tests, and the other one: the words on the share differ, and not the share.
    failure, same = (
        re.sub("split over.*this one", "", " ".join(text.strip() for text in one.outlines if text.startswith("  ")))
        for one in (first, again)
    )
    assert failure == same


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--dp-profile", "night"), "ERROR: dp_profile must be one of default, quick, *, got 'night' at --dp-profile."),
        (("--dp-session-seed", "-1"), "ERROR: session_seed must be a non-*, got -1 at --dp-session-seed."),
        (("--dp-samples", "-5"), "ERROR: samples must be an integer of at least 10, got -5 at --dp-samples."),
        (("--dp-seed", "-1"), "ERROR: seed must be a non-negative integer, got -1 at --dp-seed."),
        (("--dp-mode", "quick"), "ERROR: mode must be *, got 'quick' at --dp-mode."),
        (("--dp-confidence", "1.5"), "ERROR: confidence must be in (0, 1), got 1.5 at --dp-confidence."),
        (("--dp-confidence", "nan"), "ERROR: confidence must be in (0, 1), got nan at --dp-confidence."),
        (("--dp-test-error", "0"), "ERROR: test_error must be in (0, 1), got 0.0 at --dp-test-error."),
        (("--dp-test-error", "0.9"), "ERROR: test_error must be at most 0.05, *, got 0.9 at --dp-test-error."),
        (("--dp-report", "json,x"), "*dp_report must name formats among *json*, got 'x'*"),
    ],
)
def test_options_that_make_no_sense_stop_the_session(write, option, words):
    result = write(SHARES).run(*option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([words])
    result.stdout.no_fnmatch_line("*collected*")


def test_what_workers_send_is_plain_data(write):
    # execnet, which xdist sends reports by, takes no numpy numbers and no lone surrogates.
    write("""
        import numpy as np

        class Odd:
            name = "odd \\ud800 name"
            def sample(self, data, size, rng):
                return data + rng.laplace(size=size)

        def test_it(dp_audit, request):
            warnings.simplefilter("ignore")
            dp_audit(Odd(), samples=20, seed=np.int64(3), **{**PLAIN, "confidence": np.float64(0.999)})
            (record,) = request.node.stash[STATE].records
            assert {type(value) for value in record.values()} <= {int, float, str, bool, list}
            for value in record.values():
                str(value).encode("utf-8")

        from dpaudit.pytest_plugin.planning import STATE
    """).run(passed=1)


def test_a_pair_of_an_input_with_itself_asks_for_another_pair_not_for_more_samples(pytester, write):
    write("def test_it(dp_audit): dp_audit(sound, 'eps=1', [(0.0, 0.0)], samples=300, floating_point=False)")
    shown = pytester.runpytest().stdout.str()
    assert "A pair of two different inputs would settle it." in shown and "Take more samples" not in shown


def test_each_row_of_a_failure_is_as_wide_as_a_terminal(pytester, write):
    write("    def test_leaky(dp_audit):\n        dp_audit(leaky, samples=200, **PLAIN)\n")
    rows = [line for line in pytester.runpytest().outlines if line.startswith("  ")]
    assert any(row.startswith("  share") for row in rows) and max(map(len, rows)) <= 80
