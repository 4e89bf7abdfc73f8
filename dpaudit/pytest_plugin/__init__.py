"""The pytest plugin: the fixture `dp_audit`, which audits a mechanism inside a test, and the session around it.

    def test_release(dp_audit):
        dp_audit(my_release, claim=PureDP(1.0), pairs=[(0.0, 1.0)])

* A violation fails the test, and so does an audit that broke; an inconclusive one, low bits that leak and notes on the
  outputs warn. With `--dp-strict` the first two fail.
* **Confidence is that of the session** (`--dp-confidence`): all audits, replays and lists of conformance checks in it
  raise a false alarm with probability 1 - confidence at most (`budget`).
* Options come from the call, the mark, the command line, the profile, the ini file, or `[tool.dpaudit]` (`options`);
  the seed of a call from the test's node id, its number within the test and, if fresh, a printed seed of the session.
* A violation saves its witness, which the next run replays first (`witnesses`); a known one has a reason and a date
  (`marks`, `summary`); a slow audit says what it may take, and can be limited and interrupted (`pace`).
* Verdicts are entries `dpaudit` of a test's `user_properties`, so that they reach JUnit files; the summary and the
  report (`--dp-report`) are written once, also with the workers of pytest-xdist (`summary`).
* An option that makes no sense stops the session at its start, with the place that states it; one of a mark or call
  fails its test.

Nothing but pytest, this folder and what reads pyproject.toml (at the start where that file speaks of dpaudit, else at
the end) is imported until an audit runs. The manual is docs/pytest.md.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from dpaudit.errors import UsageError
from dpaudit.pytest_plugin import checks
from dpaudit.pytest_plugin.marks import LINES, known_violation
from dpaudit.pytest_plugin.options import SEED_INPUT, Settings, add_options
from dpaudit.pytest_plugin.planning import STATE, Plan, bound_check, can_audit, is_ours
from dpaudit.pytest_plugin.summary import Summary

if TYPE_CHECKING:
    from dpaudit.results.model import AuditResult
    from dpaudit.symbolic.certificate import Certificate

    DpAudit = Callable[..., AuditResult]
    DpCertify = Callable[..., Certificate]

PLAN: pytest.StashKey[Plan] = pytest.StashKey()
SUMMARY: pytest.StashKey[Summary] = pytest.StashKey()
SWALLOWED = (
    "dp_audit failed this test, which went on and passed. Call dpaudit.audit for a result to look at, or mark a "
    "violation that is known (dp_known_violation)."
)
OUTPUT = "dpaudit"  # what a worker of xdist tells the controller


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options `--dp-*`, and ini keys of the same names."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Marks, options and seeds; mistakes that can be seen now stop the session now."""
    for line in LINES:
        config.addinivalue_line("markers", line)
    settings = Settings(config)
    plan = config.stash[PLAN] = Plan(settings)
    config.pluginmanager.register(plan, "dpaudit_plan")
    if not settings.is_worker:
        summary = config.stash[SUMMARY] = Summary(settings)
        config.pluginmanager.register(summary, "dpaudit_summary")
        if config.getoption("cacheclear", False) and settings.cache is not None:
            from dpaudit.pytest_plugin import witnesses

            witnesses.clear(settings.cache)


def pytest_report_header(config: pytest.Config) -> str | None:
    """The profile, and the seed of a session that draws afresh: printed before anything can end it."""
    settings = config.stash[PLAN].settings
    if settings.session_seed is None:
        return None
    return f"dpaudit: profile {settings.profile.name}, repeated by --dp-session-seed {settings.session_seed}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what neither audits nor checks, if that is asked for."""
    if config.getoption("dp_only") and (others := [item for item in items if not is_ours(item)]):
        items[:] = filter(is_ours, items)
        plan = config.stash[PLAN]
        before = plan.is_selected
        config.hook.pytest_deselected(items=others)
        plan.is_selected = before  # none of these audits


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fix the share of every test, from the tests that will run."""
    try:
        session.config.stash[PLAN].collect(session.items)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give a list of checks its part of the session's error rate before its first check runs."""
    if bound_check(item) is not None:
        _or_fail(item.config.stash[PLAN].prepare, item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test whose known violation has expired; a mechanism that ends the process ends it with another status."""
    _fail_if_expired(item)
    if not is_ours(item):
        return (yield)
    with reports_exit(item):
        return (yield)


@pytest.fixture
def dp_audit(request: pytest.FixtureRequest) -> DpAudit:
    """Audit a mechanism: `dp_audit(mechanism, claim=..., pairs=..., **options)`, with the options of `dpaudit.audit`.

    Returns the `AuditResult`, if it is not refuted, or inconclusive without `--dp-strict`; fails the test otherwise,
    and with `--dp-strict` also where the low bits of the outputs leak. Where the session's confidence comes from, and
    how much of it the call has: see `dpaudit.pytest_plugin.budget`. A `confidence` of the call is its audit's own,
    taken from what the test has, and refused where that is not enough.
    """
    plan = request.config.stash[PLAN]
    item = request.node
    calls = 0
    if STATE in item.stash:
        item.stash[STATE].runs += 1
        item.stash[STATE].records.clear()
        item.stash[STATE].failed = ""

    def run(mechanism: Any, claim: Any = None, pairs: Any = None, **options: Any) -> AuditResult:
        __tracebackhide__ = True
        from dpaudit.pytest_plugin.calls import audit_in_test

        nonlocal calls
        calls += 1
        try:
            return audit_in_test(item, plan, calls, mechanism, claim, pairs, options)
        except pytest.fail.Exception as error:
            # An expected failure of a known violation is one of these too, and is swallowed by nobody.
            if STATE in item.stash and not isinstance(error, pytest.xfail.Exception):
                item.stash[STATE].failed = str(error)
            raise

    return run


@pytest.fixture
def dp_certify() -> DpCertify:
    """Prove a claim: `dp_certify(mechanism, claim=..., pairs=..., **options)`, with the options of `dpaudit.certify`.

    Returns the `Certificate` where the claim is kept on every pair; fails the test where it is violated, and also where
    it stays open. Nothing is drawn: it takes no part of the session's error rate.
    """

    def prove(mechanism: Any, claim: Any = None, pairs: Any = None, **options: Any) -> Certificate:
        __tracebackhide__ = True
        from dpaudit.symbolic.certifying import certify

        result = certify(mechanism, claim, pairs, **options)
        if result.verdict != "kept":
            pytest.fail(f"dp_certify: {result.summary()}", pytrace=False)
        return result

    return prove


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what a test's audits found to its report; a known violation that was not found fails."""
    report = yield
    if report.outcome == "failed" and call.excinfo is not None and bound_check(item) is not None:
        from dpaudit.conformance.outcomes import CheckFailed

        if isinstance(call.excinfo.value, CheckFailed | UsageError):
            report.longrepr = call.excinfo.getrepr(style="value")  # what it says; the lines that led there are ours
    check = bound_check(item)
    record = None if check is None else checks.record_of(item, check, call, report)
    if record is not None:
        vars(report)[checks.ATTRIBUTE] = record
    state = item.stash.get(STATE, None)
    if state is None:
        return report
    if report.when == "call" and report.outcome == "passed" and state.known is not None:
        verdicts = {record["verdict"] for record in state.records}
        if verdicts == {"not_refuted"} and not any(record.get("witness") == "kept" for record in state.records):
            report.outcome = "failed"
            report.longrepr = state.known.vanished_text()
    # A test may go on to skip itself; a mark that expects a failure lets the failure itself through.
    leaves = (pytest.skip.Exception, pytest.xfail.Exception)
    goes_on = report.outcome == "passed" or (call.excinfo is not None and isinstance(call.excinfo.value, leaves))
    if report.when == "call" and state.failed and goes_on:
        report.outcome = "failed"
        vars(report).pop("wasxfail", None)
        report.longrepr = f"{SWALLOWED}\n{state.failed}"
    if report.when == "call":
        state.failed = ""  # it is reported, as this or as what the test raised
    # An attribute of its own, which xdist sends along with the report, and which no JUnit file shows.
    vars(report)["dpaudit"] = [dict(record, place=list(item.location[:2])) for record in state.records]
    return report


def _fail_if_expired(item: pytest.Item) -> None:
    """A test with a known violation fails from its date on, before anything is drawn, also where it audits nothing."""
    listed = item.config.stash[PLAN].settings.known_violations if can_audit(item) else ()
    known = _or_fail(known_violation, item, listed)
    if known is not None and known.is_expired:
        pytest.fail(known.expired_text(), pytrace=False)


def _or_fail(function: Callable[..., Any], *given: Any) -> Any:
    """Call a function, and fail the test with the message of its `UsageError`, once and without a traceback."""
    try:
        return function(*given)
    except UsageError as error:
        wrong = str(error)  # within the handler pytest would show both exceptions
    pytest.fail(wrong, pytrace=False)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker tells how the error rate was split; the main process writes the report."""
    config = session.config
    plan = config.stash[PLAN]
    if plan.settings.is_worker:
        vars(config)["workeroutput"][OUTPUT] = plan.account()
        return
    summary = config.stash[SUMMARY]
    summary.receive(plan.account())
    summary.finish()
    swallowed = any(item.stash[STATE].failed for item in session.items if STATE in item.stash)  # then `pytest.exit`
    if (summary.fails or swallowed) and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of xdist the seed of the session."""
    seed = node.config.stash[PLAN].settings.session_seed
    if seed is not None:
        node.workerinput[SEED_INPUT] = seed


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    """Hear from a worker of xdist how the error rate was split, and what it collected."""
    output = getattr(node, "workeroutput", {})
    if OUTPUT in output:
        node.config.stash[SUMMARY].receive(output[OUTPUT])


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print what was audited and found, and what the session promises."""
    for line in config.stash[SUMMARY].lines(is_short=config.getoption("verbose", 0) <= 0):
        terminalreporter.write_line(f"dpaudit: {line}")


@contextlib.contextmanager
def reports_exit(item: pytest.Item) -> Iterator[None]:
    """While a test runs, `os._exit` reports the test that called it, and never has status 0: a suite would end green.

    Child processes end as ever. What ends the process in C code, past Python, is not seen: audit it with isolation.
    """
    own, end = os.getpid(), os._exit
    capture = item.config.pluginmanager.getplugin("capturemanager")

    def reported_exit(status: int) -> NoReturn:
        if os.getpid() != own:
            end(status)
        if capture is not None:
            capture.suspend_global_capture(in_=True)
        text = (
            f"\ndpaudit: FAILED: {item.nodeid} ended the process of pytest with os._exit({status!r}). No test after it "
            "was run. Audit it with isolation: dp_audit(..., isolation=True).\n"
        )
        with contextlib.suppress(OSError, ValueError):
            (sys.__stderr__ or sys.stderr).write(text)
            (sys.__stderr__ or sys.stderr).flush()
        end(status or int(pytest.ExitCode.INTERNAL_ERROR))

    os._exit = reported_exit
    try:
        yield
    finally:
        os._exit = end
