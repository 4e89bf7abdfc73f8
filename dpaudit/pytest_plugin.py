"""The pytest plugin: the fixture `dp_audit`, which audits a mechanism inside a test.

    def test_release(dp_audit):
        dp_audit(my_release, claim=PureDP(1.0), pairs=[(0.0, 1.0)])

* A violation fails the test, and so does an audit that broke; an inconclusive one warns, and fails with `--dp-strict`.
* Low bits that leak (`AuditResult.floating_point`, a finding apart from the verdict) warn, and fail with `--dp-strict`.
  `floating_point=False` turns that check off, for one call or in `[tool.dpaudit]`.
* **Confidence is per call of `dp_audit`.** There is no error budget of the session: of a hundred sound mechanisms that
  are audited at confidence 0.95, one a test, up to five may fail.
* An option comes from the call, else from the command line (`--dp-samples`), else from pytest's ini file
  (`dp_samples`), else from `[tool.dpaudit]` of pyproject.toml, else it is `dpaudit.audit`'s default.
* The seed of a call is derived from the test's node id and from the number of the call within the test, so that a run
  repeats itself, and tests have different streams. `--dp-seed` gives one seed to every call instead.
* The verdicts of a test are entries `dpaudit` of its `user_properties`: they reach JUnit files and the summary line,
  also from the workers of pytest-xdist. In a worker the default of `jobs` is 1.

Nothing but pytest is imported until an audit runs.
"""

from __future__ import annotations

import hashlib
import shlex
import warnings
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from dpaudit.errors import DpauditFloatingPointWarning, DpauditInconclusiveWarning, SubjectError, UsageError

if TYPE_CHECKING:
    from dpaudit.config import Config
    from dpaudit.results import AuditResult

    DpAudit = Callable[..., AuditResult]

PROPERTY = "dpaudit"  # the name of the verdicts among a test's user_properties
FLOATING_POINT_PROPERTY = "dpaudit_floating_point"  # there, of each audit whose low bits leak
PROJECT: pytest.StashKey[Config] = pytest.StashKey()
BROKEN_SHOWN = 5  # messages of pairs that broke
ORDER = ("violated", "error", "inconclusive", "not_refuted")
OPTIONS: dict[str, tuple[type, str]] = {
    "samples": (int, "runs on each input of a pair, about and at most, for each dp_audit"),
    "seed": (int, "seed of each dp_audit, instead of one derived from the test's node id"),
    "confidence": (float, "confidence of each dp_audit, in (0, 1)"),
    "mode": (str, "sequential (stop as soon as the evidence is there), adaptive (draw more where it grows) or fixed"),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options `--dp-*`, and ini keys of the same names."""
    group = parser.getgroup("dpaudit", "differential privacy audits (dpaudit)")
    for name, (kind, text) in OPTIONS.items():
        group.addoption(f"--dp-{name}", dest=f"dp_{name}", type=kind, default=None, help=text)
        parser.addini(f"dp_{name}", text)
    strict = "fail a test whose audit is inconclusive, or whose low bits leak, instead of warning"
    group.addoption("--dp-strict", dest="dp_strict", action="store_true", default=None, help=strict)
    parser.addini("dp_strict", strict)


@pytest.fixture
def dp_audit(request: pytest.FixtureRequest) -> DpAudit:
    """Audit a mechanism: `dp_audit(mechanism, claim=..., pairs=..., **options)`, with the options of `dpaudit.audit`.

    Returns the `AuditResult`, if it is not refuted, or inconclusive without `--dp-strict`; fails the test otherwise,
    and with `--dp-strict` also where the low bits of the outputs leak.
    The confidence is that of the one call.
    """
    calls = 0

    def run(mechanism: Any, claim: Any = None, pairs: Any = None, **options: Any) -> AuditResult:
        __tracebackhide__ = True
        from dpaudit.auditing import audit

        nonlocal calls
        calls += 1
        project = _project(request.config)
        given = {**_stated(request.config), **{name: value for name, value in options.items() if value is not None}}
        if "seed" not in given and project.seed is None:
            given["seed"] = _seed(request.node.nodeid, calls)
        if "jobs" not in given and hasattr(request.config, "workerinput"):
            given["jobs"] = 1
        try:
            result = audit(mechanism, claim, pairs, **project.audit_options(given))
        except UsageError as error:  # without the traceback, which leads through dpaudit only
            raise project.located(error, given).with_traceback(None) from _cause(error)
        except SubjectError as error:
            request.node.user_properties.append((PROPERTY, "error"))
            raise error.with_traceback(None) from _cause(error)
        request.node.user_properties.append((PROPERTY, result.verdict))
        leaks = result.floating_point is not None and result.floating_point.verdict == "leaks"
        if leaks:
            request.node.user_properties.append((FLOATING_POINT_PROPERTY, "leaks"))
        if result.verdict == "inconclusive" and not _is_strict(request.config, project):
            warnings.warn(weakness_text(result), DpauditInconclusiveWarning, stacklevel=2)
        elif result.verdict != "not_refuted":
            pytest.fail(failure_text(result, _replay_line(request, result.seed)), pytrace=False)
        if leaks:
            text = floating_point_text(result)
            if _is_strict(request.config, project):
                pytest.fail(f"{text}\n  replay   {_replay_line(request, result.seed)}", pytrace=False)
            warnings.warn(text, DpauditFloatingPointWarning, stacklevel=2)
        return result

    return run


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line with the number of audits per verdict, if there were any."""
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    verdicts: dict[str, list[str]] = {}
    leaking: dict[str, int] = {}
    for report in reports:
        if isinstance(report, pytest.TestReport):
            found = [str(value) for name, value in report.user_properties if name == PROPERTY]
            # Each phase reports what the phases before it found, so the longest list of a test is the whole.
            verdicts[report.nodeid] = max(verdicts.get(report.nodeid, []), found, key=len)
            leaks = sum(name == FLOATING_POINT_PROPERTY for name, _ in report.user_properties)
            if leaks:
                leaking[report.nodeid] = max(leaking.get(report.nodeid, 0), leaks)
    counts = Counter(verdict for found in verdicts.values() for verdict in found)
    if counts:
        parts = [f"{counts[verdict]} {verdict.replace('_', ' ')}" for verdict in ORDER if counts[verdict]]
        audits = f"{counts.total()} audit" + ("" if counts.total() == 1 else "s")
        text = f"; floating point: {sum(leaking.values())} with a leak" if leaking else ""
        terminalreporter.write_line(f"dpaudit: {audits}: {', '.join(parts)}{text}")


def failure_text(result: AuditResult, replay_line: str) -> str:
    """Why an audit fails its test, with the line that repeats it."""
    from dpaudit.reports import terminal, wording

    if result.violated:
        return terminal.violation_text(result, replay=replay_line).plain
    if result.verdict == "inconclusive":
        return f"{weakness_text(result)}\n  replay   {replay_line}"
    subject, claim = wording.subject_name(result), wording.clean(result.claim, 200)
    lines = [f"{wording.headline(result)}: {subject}, claim {claim}, seed {result.seed}."]
    broken = [finding for finding in result.findings if finding.verdict == "error"]
    for finding in broken[:BROKEN_SHOWN]:
        lines.append(f"  {wording.clean(finding.id)}: {wording.clean(finding.message, 400)}")
    if len(broken) > BROKEN_SHOWN:
        lines.append(f"  and {wording.plural(len(broken) - BROKEN_SHOWN, 'more pair')}")
    return "\n".join([*lines, f"  replay   {replay_line}"])


def weakness_text(result: AuditResult) -> str:
    """What an inconclusive audit could have found, and what to do about it."""
    from dpaudit.reports import wording

    subject = f"{wording.subject_name(result)}, claim {wording.clean(result.claim, 200)}, seed {result.seed}"
    if not result.findings:
        return f"{wording.headline(result)}: {subject}."
    return f"{wording.headline(result)}: {subject}. {wording.power_sentence(result)} Take more samples."


def floating_point_text(result: AuditResult) -> str:
    """What the low bits of the outputs give away, and what to do about it."""
    from dpaudit.reports import terminal, wording

    subject = f"{wording.subject_name(result)}, claim {wording.clean(result.claim, 200)}, seed {result.seed}"
    text = terminal.floating_point_text(result)
    return f"{subject}: {text.plain}" if text is not None else subject


def _stated(config: pytest.Config) -> dict[str, Any]:
    """The options that the command line states, or else pytest's ini file."""
    stated: dict[str, Any] = {}
    for name, (kind, _) in OPTIONS.items():
        value = config.getoption(f"dp_{name}")
        text = str(config.getini(f"dp_{name}") or "").strip()
        if value is None and text:
            try:
                value = kind(text)
            except ValueError as error:
                raise UsageError(f"dp_{name} must be of type {kind.__name__}, got {text!r} in the ini file.") from error
        if value is not None:
            stated[name] = value
    return stated


def _is_strict(config: pytest.Config, project: Config) -> bool:
    if config.getoption("dp_strict"):
        return True
    text = str(config.getini("dp_strict") or "").strip().lower()
    if text not in ("", "0", "1", "false", "no", "true", "yes"):
        raise UsageError(f"dp_strict must be true or false, got {text!r} in the ini file.")
    return text in ("1", "true", "yes") if text else bool(project.strict)


def _project(config: pytest.Config) -> Config:
    """`[tool.dpaudit]` of the nearest pyproject.toml above pytest's root, read once a session."""
    if PROJECT not in config.stash:
        from dpaudit.config import read_config

        config.stash[PROJECT] = read_config(config.rootpath)
    return config.stash[PROJECT]


def _cause(error: BaseException) -> BaseException | None:
    """The exception of the user's code that led to `error`, if there is one."""
    return None if isinstance(error.__cause__, UsageError) else error.__cause__


def _seed(node_id: str, call: int) -> int:
    """A seed in [0, 2**32) for one call in one test: the same on every machine, and others for other tests."""
    return int.from_bytes(hashlib.sha256(f"{node_id}\n{call}".encode("utf-8", "replace")).digest()[:4], "big")


def _replay_line(request: pytest.FixtureRequest, seed: int) -> str:
    """The command that repeats the test with the same draws; with another seed it takes fresh ones."""
    options = {name: request.config.getoption(f"dp_{name}") for name in OPTIONS} | {"seed": seed}
    stated = [f"--dp-{name} {value}" for name, value in options.items() if value is not None]
    return " ".join(["pytest", shlex.quote(request.node.nodeid), *stated])
