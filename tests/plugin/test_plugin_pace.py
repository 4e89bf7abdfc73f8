"""Long audits in a session: progress, the limit of time, and what an interrupt keeps."""

import pytest

from dpaudit.pytest_plugin import pace

SLOW = """
    import time

    def slow(data, rng):
        time.sleep(0.005)
        return data + rng.laplace()
"""
COUNTED = """
    import pathlib

    def counted(data, rng):
        calls = pathlib.Path("calls")
        count = len(calls.read_text()) if calls.exists() else 0
        calls.write_text("x" * (count + 1))
        if count == 700 and not pathlib.Path("stopped").exists():
            pathlib.Path("stopped").touch()
            raise KeyboardInterrupt
        return data + rng.laplace(scale=SCALE)

    SCALE = 1.0

    def test_counted(dp_audit):
        found = dp_audit(counted, claim="eps=1", pairs=[(0.0, 1.0)], mode="fixed", floating_point=False, **SIZE)
        with open("found", "a") as file: print(found.epsilon_lower, found.samples, file=file)

    SIZE = {"samples": 1_000}
"""  # the bounds are compared with each other, bit by bit: chance has no part in it


@pytest.fixture
def impatient(monkeypatch):
    """Every state is told."""
    monkeypatch.setattr(pace, "SECONDS", 0.0)


def test_a_long_audit_says_where_it_stands_and_once_what_takes_less(pytester, write, impatient):
    write("""
        def test_long(dp_audit):
            told = []
            dp_audit(sound, **PLAIN, samples=2_000, floating_point=False, on_progress=told.append)
            assert told
    """)
    said = pytester.runpytest().stdout.str()
    assert said.count("test_long: ") > 1 and said.count("--dp-seconds 60 takes") == 1


def test_a_limit_of_time_cuts_the_samples_and_says_so(pytester, write):
    result = write(
        SLOW
        + """
    @pytest.mark.filterwarnings("ignore::dpaudit.DpauditInconclusiveWarning")
    @pytest.mark.parametrize("stated", [{}, {"seconds": 1.0}])
    def test_slow(dp_audit, stated):
        assert dp_audit(slow, claim="eps=1", pairs=[(0.0, 1.0)], floating_point=False, **stated).samples < 700
    """
    ).run("--dp-seconds", "2", passed=2)
    result.stdout.fnmatch_lines(["dpaudit:   cut to fit into its time: 2 tests (*); pytest -v has the details"])
    result = pytester.runpytest("--dp-seconds", "2", "-v", "-k", "stated0")
    result.stdout.fnmatch_lines(["dpaudit:   cut to fit into its time: *stated0*: cut to * of 100,000 samples, *"])


def test_a_cut_audit_is_repeated_by_its_samples(pytester, write, replay_line):
    write(
        SLOW
        + """
    def test_broken(dp_audit):
        dp_audit(lambda x, rng: slow(20 * x, rng), claim="eps=1", pairs=[(0.0, 1.0)], seconds=2.0)
    """
    )  # noise of scale 1 over a distance of 20: missed with probability below e^-10 a draw
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    assert "--dp-samples" in replay_line(result) and "--dp-seconds" not in replay_line(result)


def test_an_interrupted_audit_goes_on_where_it_was(pytester, write):
    write(COUNTED)
    first = pytester.runpytest(no_reraise_ctrlc=True)
    first.stdout.fnmatch_lines(["dpaudit: test_it.py::test_counted: what was drawn is kept; the next run *"])
    assert list(pytester.path.glob(".dpaudit/interrupted/*.checkpoint"))
    (pytester.path / "calls").unlink()
    second = pytester.runpytest()
    second.stdout.fnmatch_lines(["dpaudit: Going on from *"])
    second.assert_outcomes(passed=1, warnings=1)
    some = len((pytester.path / "calls").read_text())
    assert not list(pytester.path.glob(".dpaudit/interrupted/*.checkpoint"))
    (pytester.path / "calls").unlink()
    pytester.runpytest().assert_outcomes(passed=1, warnings=1)
    found = (pytester.path / "found").read_text().split("\n")
    assert found[0] == found[1] and some < len((pytester.path / "calls").read_text())


def test_what_another_audit_left_is_not_gone_on_from(pytester, write):
    write(COUNTED)
    pytester.runpytest(no_reraise_ctrlc=True)
    result = write(COUNTED.replace("1_000", "900")).run(passed=1, warnings=1)
    result.stdout.no_fnmatch_line("*Going on from*")
    assert not list(pytester.path.glob(".dpaudit/interrupted/*.checkpoint"))
