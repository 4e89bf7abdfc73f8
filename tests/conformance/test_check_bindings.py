"""The faces of the suite in Python and pytest: what is imported, ids, skips, known failures, warnings, and mistakes.

What runs inside these tests is decided without chance: exact comparisons, or a claim that is broken so much that each
seed shows it (the output is the input).
"""

import textwrap

# Loaded here, because pytester forgets what a run inside a test loads, and numpy cannot be loaded twice in one process.
import hypothesis  # noqa: F401
import pytest
from support.refusals import refusals

import dpaudit
import dpaudit.conformance.calls
import dpaudit.conformance.promises
import dpaudit.conformance.refusals
from dpaudit.conformance import BoundCheck, CheckFailed, CheckSkipped, check_names, conformance_checks

CODE = """
    import numpy as np
    import pytest

    import dpaudit

    class Response:
        claim = dpaudit.PureDP(1.0)
        input_kind = "position"
        epsilon = 1.0

        def pairs(self):
            return [(0, 1)]

        def sample(self, data, size, rng):
            if type(data) is not int or data not in (0, 1):
                raise ValueError("data")
            return np.where(rng.random(size) < 1 / (1 + np.exp(-self.epsilon)), data, 1 - data)

    class Careless(Response):
        def sample(self, data, size, rng):
            return np.where(rng.random(size) < 1 / (1 + np.exp(-self.epsilon)), data, 0)

    class Weak(Response):
        claim = dpaudit.PureDP(0.001)
        epsilon = 0.0005
"""
SELECT = "refuses_nan or pickling or input_unchanged or seeded_determinism"


@pytest.fixture
def run(pytester):
    """Run the checks that tests on these mechanisms ask for, with options of pytest."""

    def run(text, *options):
        pytester.makepyfile(textwrap.dedent(CODE) + textwrap.dedent(text))
        return pytester.runpytest(*options, "-p", "no:cacheprovider")

    return run


def of(mechanisms, more=""):
    """A test of these mechanisms."""
    return f"@dpaudit.parametrize_with_checks([{mechanisms}]{more})\ndef test_conformance(check):\n    check()\n"


def test_checks_have_ids_of_mechanism_and_check_and_skip_with_a_reason(run):
    text = of("Response(), Response(), Careless")
    listed = run(text, "--collect-only", "-q")
    ids = [line.split("[")[1].rstrip("]") for line in listed.outlines if "[" in line]
    expected = [f"{name}-{check}" for name in ("Response", "Response#2", "Careless") for check in check_names()]
    assert ids == expected
    result = run(text, "-k", f"({SELECT}) and not Careless", "-rs")
    result.assert_outcomes(passed=6, skipped=2, deselected=3 * len(check_names()) - 8)
    result.stdout.fnmatch_lines(["*the inputs cannot be changed*"])


def test_a_failure_fails_its_test_with_one_line(run, pytester):
    result = run(of("Careless()"), "-k", SELECT, "--junitxml", "junit.xml")
    result.assert_outcomes(passed=3, failed=1, deselected=len(check_names()) - 4)
    result.stdout.fnmatch_lines(
        [
            "_* test_conformance[[]Careless-refuses_nan] _*",
            "Careless fails refuses_nan: data must be refused where it makes no sense, got *",
            "FAILED *::test_conformance[[]Careless-refuses_nan]*",
        ]
    )
    # (The summary has the exception's name, where its lines are not cut to the width of the terminal.)
    for words in ("*CheckSpec*", "*check()*", "E *CheckFailed*"):
        result.stdout.no_fnmatch_line(words)
    assert "CheckFailed: Careless fails refuses_nan: " in (pytester.path / "junit.xml").read_text()


def test_a_mechanism_that_cannot_be_checked_fails_with_one_line(run):
    result = run('class Odd(Response):\n    claim = "epsi=1"\n\n' + of("Odd()"), "-k", "claim_audit")
    result.assert_outcomes(failed=1, deselected=len(check_names()) - 1)
    wanted = "Odd cannot be checked: claim must be *, got 'epsi=1'. Did you mean 'eps=1'? This is what Odd *"
    result.stdout.fnmatch_lines([wanted])
    result.stdout.no_fnmatch_line("*dpaudit/conformance*")


def test_a_known_failure_is_a_strict_xfail(run):
    known = """
        def known(mechanism):
            return {"refuses_nan": "asks nothing"} if isinstance(mechanism, Careless) else {"pickling": "never tried"}
    """
    text = textwrap.dedent(known) + of("Careless(), Response()", ", expected_failures=known")
    result = run(text, "-k", SELECT, "-rxX")
    result.assert_outcomes(passed=5, skipped=1, xfailed=1, failed=1, deselected=2 * len(check_names()) - 8)
    result.stdout.fnmatch_lines(["*XPASS(strict)*never tried*"])


def test_too_little_power_warns(run):
    result = run(of("Weak()", ", samples=1_000"), "-k", "claim_audit")
    result.assert_outcomes(passed=1, warnings=1, deselected=len(check_names()) - 1)
    result.stdout.fnmatch_lines(["*DpauditInconclusiveWarning: Weak: claim_audit is inconclusive: 1 of 1 pairs*"])


def test_the_generator_yields_every_check_once_and_in_order():
    checks = list(conformance_checks(lambda data, rng: data, "eps=1", [(0.0, 1.0)]))
    assert [check.name for check in checks] == list(check_names())
    assert all(isinstance(check, BoundCheck) and "0x" not in repr(check) for check in checks)
    by_name = {check.name: check for check in checks}
    with pytest.raises(CheckFailed, match=r"<lambda> fails refuses_nan: data must be refused"):
        by_name["refuses_nan"]()
    with pytest.raises(CheckSkipped, match="a lambda, which pickle cannot name"):
        by_name["pickling"]()
    with pytest.raises(CheckFailed, match=r"pair 0.0\|1.0 must keep the claim eps=1, got epsilon of at least"):
        by_name["claim_audit"]()


test_a_mistake_gets_one_clear_line = refusals(
    (lambda: dpaudit.parametrize_with_checks([]), "mechanisms must"),
    (lambda: dpaudit.parametrize_with_checks(abs), "mechanisms must"),
    (lambda: dpaudit.parametrize_with_checks([abs], samples=1), "samples must"),
    (lambda: dpaudit.parametrize_with_checks([abs], seed=None), "seed must"),
    (lambda: dpaudit.parametrize_with_checks([abs], expected_failures={"x": "y"}), "must name checks, got 'x'"),
    (lambda: dpaudit.parametrize_with_checks([abs], expected_failures={"pickling": ""}), "must have a reason for"),
    (lambda: dpaudit.parametrize_with_checks([abs], expected_failures=["x"]), "must be a dict of check names"),
    (lambda: dpaudit.check(abs, claim=3), "claim must"),
    (lambda: dpaudit.check(abs, pairs=[(1,)]), "pairs must"),
    (lambda: dpaudit.check(abs, error_rate=0.0), "error_rate must"),
    (lambda: dpaudit.check(abs, error_rate=1e-16), "error_rate must"),
)
