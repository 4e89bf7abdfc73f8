"""Tests that pytest runs inside these tests: a file below these mechanisms, in a project of its own."""

import textwrap
import types

# Loaded here, because pytester forgets what a run inside a test loads: numpy cannot be loaded twice in one process,
# classes of reports that are loaded again are others than those of later tests, and hypothesis, whose plugin loads it
# at the end of every run, is slow.
import hypothesis  # noqa: F401
import numpy.fft  # noqa: F401 (numpy itself loads it where it is first used)
import pytest

import dpaudit.audits.auditing
import dpaudit.audits.replaying
import dpaudit.config
import dpaudit.conformance.running
import dpaudit.reports.compliance
import dpaudit.reports.dossier_json
import dpaudit.reports.html
import dpaudit.reports.intoto
import dpaudit.reports.junit
import dpaudit.reports.markdown
import dpaudit.reports.sarif
import dpaudit.reports.terminal  # noqa: F401

MECHANISMS = """
    import warnings

    import pytest

    import dpaudit
    from dpaudit.errors import DpauditInconclusiveWarning, SubjectError, UsageError

    PLAIN = {"claim": "eps=1", "pairs": [(0.0, 1.0)]}
    SURE = {"claim": "eps=1", "pairs": [(0.0, 1.0)], "confidence": 1 - 1e-9}

    def sound(data, size, rng):
        return data + rng.laplace(size=size)

    def leaky(data, rng):
        return data

    def broken(data, rng):
        raise ValueError("the database is gone")

    def short(data, size, rng):
        return rng.random(size - 1)
"""


@pytest.fixture(autouse=True)
def at_a_desk(monkeypatch):
    """Run as a person does: with one of these variables pytest shows each failure's message twice."""
    for name in ("CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def write(pytester):
    """Write a test file below the mechanisms, which `run` runs; the project has an empty pyproject.toml."""
    pytester.makepyprojecttoml("")

    def run(*options, **outcomes):
        result = pytester.runpytest(*options)
        if outcomes:
            result.assert_outcomes(**outcomes)
        return result

    def write(code, name="test_it"):
        pytester.makepyfile(**{name: textwrap.dedent(MECHANISMS) + textwrap.dedent(code)})
        return types.SimpleNamespace(run=run)

    return write


@pytest.fixture
def replay_line():
    """The one command of a run that replays its failure, in one line: long ones go on behind a backslash."""

    def joined(result):
        start = next(k for k, line in enumerate(result.outlines) if line.strip().startswith("replay "))
        parts = [result.outlines[start]]
        while parts[-1].endswith("\\"):
            parts.append(result.outlines[start + len(parts)])
        words = " ".join(part.rstrip("\\").strip() for part in parts).split()
        return " ".join(words)

    return joined
