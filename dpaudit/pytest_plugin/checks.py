"""Conformance checks in a session: a record of each, sent with its test's report, and a result of each list.

A list is all checks of one mechanism in one test function. Its result is that of `dpaudit.check` on the same options,
as far as its tests ran, and is written beside the audits in every format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from dpaudit.reports.words import plural

if TYPE_CHECKING:
    from dpaudit.conformance.bindings import BoundCheck
    from dpaudit.conformance.result import CheckResult

WORDS = (
    ("violated", "failed"), ("error", "broke"), ("inconclusive", "inconclusive"), ("not_refuted", "passed"),
    ("xfail", "known to fail"), ("skipped", "do not apply"),
)  # fmt: skip
ATTRIBUTE = "dpaudit_check"  # of a test's report


def record_of(
    item: pytest.Item, check: BoundCheck, call: pytest.CallInfo[None], report: pytest.TestReport
) -> dict[str, Any] | None:
    """Record of a check from a phase of its test, as values of JSON; None of a phase that says nothing new."""
    if report.when == "teardown" or (report.when == "setup" and report.outcome != "failed"):
        return None
    from dpaudit.conformance.registry import statistical_count

    status, message = _status(check, call, report)
    subjects, spec = check.subjects, check.spec
    rate = float(subjects.options["error_rate"])
    return {
        "test": item.nodeid,
        "list": f"{item.nodeid.partition('[')[0]}[{check.mechanism_name}]",
        "place": list(item.location[:2]),
        "check": {
            "mechanism": check.mechanism_name,
            "name": spec.name,
            "demands": spec.demands,
            "status": status,
            "message": message,
            "reason": check.expected_failure,
            "error_share": rate / statistical_count() if spec.is_statistical else 0.0,
            "seconds": float(report.duration),
        },
        "error_rate": rate,
        "samples": int(subjects.options["samples"]),
        "seed": int(subjects.options["seed"]),
        "mechanism": {**described(subjects), "name": check.mechanism_name},
    }


def _status(check: BoundCheck, call: pytest.CallInfo[None], report: pytest.TestReport) -> tuple[str, str]:
    """The status as `dpaudit.check` has it, and what was seen."""
    from dpaudit.conformance.outcomes import CheckFailed

    if call.excinfo is None:
        if report.outcome == "failed":  # a strict xfail that passed
            text = f"expected_failures must name checks that fail, got {check.name}, which does not. Remove it."
            return "error", text
        if check.name not in check.subjects.ran:
            return "skipped", "The test did not call the check."
        reason = check.subjects.inconclusive.get(check.name)
        return ("not_refuted", "") if reason is None else ("inconclusive", reason)
    error = call.excinfo.value
    message = str(error).removeprefix(f"{check.mechanism_name} fails {check.name}: ")
    if isinstance(error, CheckFailed):
        return ("xfail" if report.outcome == "skipped" else "violated"), message
    if report.outcome == "skipped":
        return "skipped", message
    return "error", f"the check broke: {type(error).__name__}: {message}"


def results(records: Iterable[Mapping[str, Any]]) -> dict[str, CheckResult]:
    """The result of each list, by its name, in the order of names."""
    from dpaudit.conformance.result import CheckRecord, CheckResult
    from dpaudit.environment import environment

    lists: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        lists.setdefault(record["list"], []).append(record)
    found = {}
    for name, group in sorted(lists.items()):
        first = max(group, key=lambda record: len(record["mechanism"]))  # some worker knew more of it than another
        found[name] = CheckResult(
            records=tuple(CheckRecord(**record["check"]) for record in group),
            mechanisms=(dict(first["mechanism"]),),
            error_rate=first["error_rate"],
            samples=first["samples"],
            seed=first["seed"],
            seconds=sum(record["check"]["seconds"] for record in group),
            environment=environment(),
            options={"states": []},
        )
    return found


def public(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record as session.json holds it."""
    check = dict(record["check"])
    line = (record["place"][1] or 0) + 1
    return {"test": record["test"], "file": record["place"][0], "line": line, "check": check.pop("name"), **check}


def counted(records: Sequence[Mapping[str, Any]]) -> str:
    """Number of checks that ran, and how they ended."""
    counts = Counter(record["check"]["status"] for record in records)
    lists = len({record["list"] for record in records})
    parts = [f"{counts[status]:,} {word}" for status, word in WORDS if counts[status]]
    return f"{plural(len(records), 'check')} of {plural(lists, 'mechanism')}: {', '.join(parts)}"


def described(subjects: Any) -> dict[str, Any]:
    """Subject, claim and number of pairs of a list of checks, as far as made out, as values of JSON."""
    from dpaudit.results.model import to_json

    try:
        case = subjects.case
        claim = str(case.claim) if case.claim is not None else None
        found: dict[str, Any] = to_json({**case.subject.describe(), "claim": claim, "pairs": len(case.pairs)})
    except (Exception, SystemExit):  # its own test says what is wrong with it
        return {"claim": None, "pairs": 0}
    return found
