"""Reruns of a test, as pytest-rerunfailures makes them: the same bits are free, everything else pays as a call."""

import re

import pytest

RERUN = """
    from _pytest.runner import runtestprotocol

    def pytest_runtest_protocol(item, nextitem):
        # What pytest-rerunfailures does: a failed test is set up and run again, as the same item.
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for run in range(3):
            reports = runtestprotocol(item, nextitem=nextitem, log=False)
            failed = any(report.failed for report in reports)
            for report in reports:
                if failed and run < 2 and report.when == "call":
                    report.outcome = "rerun"
                item.ihook.pytest_runtest_logreport(report=report)
            if not failed:
                break
            item._initrequest()
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_report_teststatus(report):
        return ("rerun", "R", "RERUN") if report.outcome == "rerun" else None
"""
RUNS = """
    runs = []

    def other(data, size, rng):
        return data + rng.laplace(size=size) + 1

    def own(data, size):
        import numpy as np
        return data + np.random.default_rng().laplace(size=size)

    def hidden(data, size, rng):
        return data + rng.laplace(size=size) * (1 + runs.count("hidden"))

    def audits(dp_audit, *mechanisms):
        warnings.simplefilter("ignore")
        for mechanism in mechanisms:
            result = dp_audit(mechanism, samples=60, **PLAIN)
            print(f"drawn {result.seed} {1 - result.confidence:.6g}")
"""


@pytest.fixture
def drawn(pytester, write):
    """The seed and the error rate of each audit, run by run."""
    pytester.makeconftest(RERUN)

    def drawn(code):
        result = write(RUNS + code).run("-s", "--dp-cache", "none")
        return [re.search(r"drawn (\d+) (\S+)", line).groups() for line in result.outlines if "drawn " in line], result

    return drawn


def test_a_rerun_that_audits_the_same_has_the_same_draws_and_pays_nothing(drawn):
    found, result = drawn("""
    def test_it(dp_audit):
        audits(dp_audit, sound, other)
        raise ValueError
    """)
    assert found[:2] * 3 == found
    assert float(found[0][1]) == pytest.approx(0.05 * 0.6)
    result.stdout.fnmatch_lines(["dpaudit: 2 audits: 2 inconclusive"])


def test_a_rerun_that_audits_something_else_pays_for_another_look(drawn):
    found, result = drawn("""
    def test_it(dp_audit):
        runs.append(1)
        audits(dp_audit, sound if len(runs) == 1 else other)
        assert len(runs) > 1
    """)
    assert len({seed for seed, _ in found}) == 2
    assert [float(share) for _, share in found] == pytest.approx([0.05 * 0.8 * 3 / 4, 0.05 * 0.8 / 8])
    result.stdout.fnmatch_lines(["dpaudit: 2 audits: 2 inconclusive"])


def test_a_mechanism_with_randomness_of_its_own_pays_in_every_run(drawn):
    found, _ = drawn("""
    def test_it(dp_audit):
        audits(dp_audit, own)
        raise ValueError
    """)
    expected = [0.05 * 0.8 * weight for weight in (3 / 4, 1 / 8, 1 / 24)]
    assert [float(share) for _, share in found] == pytest.approx(expected, rel=1e-4)


def test_a_mechanism_that_draws_differently_in_secret_is_refused_a_second_look(drawn):
    found, result = drawn("""
    def test_it(dp_audit):
        audits(dp_audit, hidden)
        runs.append("hidden")
        raise ValueError
    """)
    assert len(found) == 1
    result.stdout.fnmatch_lines(["*UsageError: mechanism must draw the same in a rerun of the test, got other*"])


def test_a_violation_is_not_rerun_away(drawn):
    _, result = drawn("""
    def test_it(dp_audit):
        dp_audit(leaky, samples=200, **PLAIN)
    """)
    result.stdout.fnmatch_lines(["*1 failed*"])
    result.stdout.fnmatch_lines(["dpaudit: 1 audit: 1 violated"])
