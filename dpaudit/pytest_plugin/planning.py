"""The session as it was collected: tests that can audit, lists of checks, and what each has to spend."""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from dpaudit.errors import UsageError
from dpaudit.pytest_plugin.budget import SessionBudget, TestBudget, split
from dpaudit.pytest_plugin.marks import AuditMark, KnownViolation, audit_mark, is_of, known_violation
from dpaudit.pytest_plugin.options import Settings

if TYPE_CHECKING:
    from dpaudit.conformance.bindings import BoundCheck, Subjects

FIXTURE = "dp_audit"
PROPERTY = "dpaudit"  # the name of the verdicts among a test's user_properties
FLOATING_POINT_PROPERTY = "dpaudit_floating_point"  # there, of each audit whose low bits leak
CHECKS = "dpaudit.conformance.bindings"
STATE: pytest.StashKey[TestState] = pytest.StashKey()


@dataclasses.dataclass
class Spent:
    """One call of a test."""

    key: Any  # what it was
    share: float
    confidence: float
    outcome: str = ""  # a digest of what came out
    cut: tuple[int, str] | None = None  # samples that fit into a limit of time, and what is said of it


@dataclasses.dataclass
class TestState:
    """One test that audits, over all of its runs."""

    __test__ = False  # not a class of tests

    budget: TestBudget
    mark: AuditMark
    known: KnownViolation | None
    spent: dict[int, Spent] = dataclasses.field(default_factory=dict)  # its calls so far, by number
    records: list[dict[str, Any]] = dataclasses.field(default_factory=list)  # what is reported of calls of this run
    failed: str = ""  # what the last call that failed said: a test must not swallow that
    runs: int = 1  # how often it has run: a second time under a plugin that reruns failures

    def charge(self, key: Any, position: int, confidence: float | None, may_repeat: bool) -> tuple[int, Spent]:
        """The number of a call and what it has to spend.

        The call at the same position of an earlier run is repeated, free, where its key is the same: same seed, same
        bits. Every other call is a new one, and spends error rate.
        """
        before = self.spent.get(position)
        if self.runs > 1 and may_repeat and before is not None and before.key == key:
            return position, before
        share = self.budget.next() if confidence is None else self.budget.take(confidence)
        number = len(self.spent) + 1
        self.spent[number] = Spent(key, share, confidence if confidence is not None else 0.0)
        return number, self.spent[number]


class Plan:
    """Collected tests, and how the session's error rate is split over them; a plugin of pytest, for its own hooks.

    The split is the same in every worker of pytest-xdist: it depends on the collected tests alone, never on results.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        # Validity: a check that is collected several times may draw anew each time, so its list counts as often.
        self.lists: dict[tuple[int, int], Subjects] = {}  # by id, and how often a check was there before
        self.reserved: list[tuple[str, float]] = []  # one a test: of two tests of one node id each has its own
        self.audited: set[str] = set()
        self.tests = 0
        self._budget: SessionBudget | None = None
        self.has_collected = False
        self.is_selected = False  # whether tests were left out that might audit
        self.unread: set[str] = set()  # ids of what broke or was skipped when it was collected

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Note that the session is not of all tests."""
        self.is_selected |= bool(items)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not be read."""
        if not report.passed:
            self.unread.add(report.nodeid)

    def collect(self, items: list[pytest.Item]) -> None:
        """Count what can raise an alarm among the tests that will run."""
        self.has_collected = True
        before = Counter[tuple[int, str]]()
        for item in items:
            check = bound_check(item)
            if check is not None and check.spec.is_statistical:
                own = id(check.subjects)
                self.lists[own, before[own, check.name]] = check.subjects
                before[own, check.name] += 1
            if can_audit(item):
                self.audited.add(item.nodeid)
                self.tests += 1
                try:
                    confidence = audit_mark(item).confidence
                except UsageError:  # told by the test itself, which then draws nothing
                    confidence = None
                if confidence is not None:
                    self.reserved.append((item.nodeid, 1.0 - confidence))
        if self.settings.test_error is not None and not self.settings.is_worker:
            self._split()  # an option of the session that makes no sense stops it now

    def account(self) -> dict[str, Any]:
        """Account of this process at its end, as data that a worker of xdist can send.

        The split, where a test of this process has spent of it, and what it collected, if it did, of the known
        violations that the project lists: positions of those of no test that audits.
        """
        listed = self.settings.known_violations if self.has_collected else ()
        missing = [k for k, entry in enumerate(listed) if not any(is_of(entry, one) for one in self.audited)]
        collected = {"is_selected": self.is_selected, "unread": sorted(self.unread), "missing": missing}
        return {
            "plan": self.described() if self._budget is not None else None,
            "collected": collected if self.has_collected else None,
        }

    @property
    def budget(self) -> SessionBudget:
        """The split; `UsageError` if the session's options make no sense."""
        if self._budget is None:
            self._budget = self._split()
        return self._budget

    def _split(self) -> SessionBudget:
        error_rate = float(f"{1.0 - self.settings.confidence:.12g}")  # 0.05 of 0.95, and not what doubles make of it
        lists = [subjects.stated_rate for subjects in self.lists.values()]
        tests = self.tests - len(self.reserved)
        return split(error_rate, lists, self.reserved, tests, self.settings.test_error)

    def prepare(self, item: pytest.Item) -> None:
        """Give the list that a check is of its part of the session's error rate."""
        check = bound_check(item)
        if check is not None and (id(check.subjects), 0) in self.lists:
            check.subjects.limit(check.subjects.stated_rate * self.budget.list_factor)

    def state(self, item: pytest.Item) -> TestState:
        """State of a test: what it has to spend and has spent."""
        state = item.stash.get(STATE, None)
        if state is None:
            if item.nodeid not in self.audited:
                raise UsageError(
                    "dp_audit must be known when tests are collected, got a test that asks for it while it runs. "
                    "Name it among the arguments of the test, or mark the test with @pytest.mark.dp_audit."
                )
            mark = audit_mark(item)
            budget = self.budget
            if item.nodeid in budget.refused:
                raise UsageError(budget.refused[item.nodeid])
            error = dict(self.reserved).get(item.nodeid, budget.test_error)
            known = known_violation(item, self.settings.known_violations)
            state = item.stash[STATE] = TestState(TestBudget(error, mark.calls), mark, known)
        return state

    def described(self) -> dict[str, Any]:
        """The split, for the summary and session.json."""
        budget = self.budget
        return {
            **{name: value for name, value in vars(budget).items() if name != "refused"},
            "confidence": self.settings.confidence,
            "total": budget.total,
            "profile": self.settings.profile.name,
            "seeds": self.settings.profile.seeds,
            "session_seed": self.settings.session_seed,
            "seed": self.settings.one_seed[0] if self.settings.one_seed is not None else None,
            "strict": self.settings.strict,
        }


def can_audit(item: pytest.Item) -> bool:
    """Tell whether a test has the fixture, itself or through another one, or says by a mark that it asks for it."""
    return FIXTURE in getattr(item, "fixturenames", ()) or item.get_closest_marker(FIXTURE) is not None


def is_ours(item: pytest.Item) -> bool:
    """Tell whether a test audits or checks."""
    return can_audit(item) or bound_check(item) is not None


def bound_check(item: pytest.Item) -> BoundCheck | None:
    """The conformance check that a test runs; None for other tests."""
    checks = sys.modules.get(CHECKS)  # where nobody has loaded it there is no check
    parameters = getattr(getattr(item, "callspec", None), "params", None)
    if checks is None or not parameters:
        return None
    return next((value for value in parameters.values() if isinstance(value, checks.BoundCheck)), None)
