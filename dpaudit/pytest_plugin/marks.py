"""The marks `dp_audit` and `dp_known_violation`, and the known violations that `[tool.dpaudit]` lists.

    @pytest.mark.dp_audit(samples=200_000, mode="fixed", calls=2)
    @pytest.mark.dp_known_violation(reason="issue 12: the scale is off by two", expires="2027-01-31")
In `pyproject.toml`:
    [[tool.dpaudit.known_violations]]
    test = "tests/test_release.py::test_release"
    reason = "issue 12: the scale is off by two"
    expires = 2027-01-31
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from dpaudit.arguments import check_options, did_you_mean, whole_number
from dpaudit.errors import UsageError

LIST = "[[tool.dpaudit.known_violations]]"
PAIRS_NAMED = 5  # ids of pairs in a message
OF_MARK = (
    "samples", "seconds", "mode", "seed", "event_mass", "inconclusive_factor", "floating_point", "jobs", "backend",
    "confidence", "calls",
)  # fmt: skip
LINES = (
    "dp_audit(samples=, mode=, confidence=, calls=, ...): options of every dp_audit in the test; confidence is that of "
    "the whole test, taken from the session's; calls is how often it audits at most",
    "dp_known_violation(reason, expires, pairs=None): the mechanism is known to break its claim until that date; the "
    "test fails when it no longer does, and from that date on",
)


@dataclasses.dataclass(frozen=True)
class AuditMark:
    """Options of `@pytest.mark.dp_audit` for one test, the closest mark first."""

    options: dict[str, Any]  # of `dpaudit.audit`
    confidence: float | None = None  # of the whole test: it takes 1 - confidence of the session's error rate
    calls: int | None = None  # of `dp_audit` in the test, at most


def audit_mark(item: pytest.Item) -> AuditMark:
    """The marks `dp_audit` of a test, of its class and of its module, as one; `UsageError` if one makes no sense."""
    stated: dict[str, Any] = {}
    for mark in item.iter_markers("dp_audit"):
        if mark.args:
            raise UsageError(f"dp_audit must have named arguments only, got {mark.args[0]!r} in a mark.")
        stated = {**mark.kwargs, **stated}
    for name in stated:
        if name not in OF_MARK:
            near = did_you_mean(name, OF_MARK)
            raise UsageError(f"option of the mark dp_audit must be one of {', '.join(OF_MARK)}, got {name!r}.{near}")
    confidence, calls = stated.pop("confidence", None), stated.pop("calls", None)
    try:
        check_options(**stated, **({} if confidence is None else {"confidence": confidence}))
        if calls is not None:
            whole_number("calls", calls, "a positive integer", 1)
    except UsageError as error:
        raise UsageError(f"{str(error).removesuffix('.')} in a mark dp_audit.") from None
    return AuditMark(stated, None if confidence is None else float(confidence), calls)


@dataclasses.dataclass(frozen=True)
class KnownViolation:
    """A violation that is known, with the reason."""

    reason: str
    expires: datetime.date  # the first day on which it is known no more
    pairs: tuple[str, ...] | None  # ids of the pairs that may be violated; all by default
    place: str  # where it is listed

    @property
    def is_expired(self) -> bool:
        """Tell whether the date has come."""
        return datetime.date.today() >= self.expires

    def covers(self, violated: list[str]) -> bool:
        """Tell whether all these pairs are known."""
        return self.pairs is None or set(violated) <= set(self.pairs)

    def unknown_text(self, ids: Sequence[str]) -> str:
        """Text on its pairs that are none of an audit, whose pairs have these ids; empty where each is one."""
        missing = [one for one in self.pairs or () if one not in set(ids)]
        if not missing:
            return ""
        shown = ", ".join(map(repr, missing[:PAIRS_NAMED])) + (", ..." if len(missing) > PAIRS_NAMED else "")
        there = ", ".join(map(repr, ids[:PAIRS_NAMED])) + (", ..." if len(ids) > PAIRS_NAMED else "")
        return f"no pair of this audit is {shown}, as pairs of {self.place} say; its pairs are {there}"

    def expired_text(self) -> str:
        """Failure message of a test with it from that date on."""
        return (
            f"The known violation ({self.reason}) expired on {self.expires.isoformat()}. "
            f"Repair the mechanism, or state a later date in {self.place}."
        )

    def vanished_text(self) -> str:
        """Failure message of a test whose known violation was not found."""
        return (
            f"The known violation ({self.reason}) was not found: the mechanism was audited and not refuted at this "
            f"size. If a run of the size that found it agrees, remove it from {self.place}."
        )


def known_violation(item: pytest.Item, listed: tuple[Mapping[str, Any], ...]) -> KnownViolation | None:
    """The known violation of a test: its mark, else the first entry of `[tool.dpaudit]` for it.

    An entry names a node id, with its parameters or without. `UsageError` if it has no reason or date.
    """
    mark = item.get_closest_marker("dp_known_violation")
    if mark is not None:
        names = dict(zip(("reason", "expires", "pairs"), mark.args, strict=False)) | dict(mark.kwargs)
        return _read(names, "the mark dp_known_violation")
    entry = next((entry for entry in listed if is_of(entry, item.nodeid)), None)
    return None if entry is None else listed_violation(entry)


def is_of(entry: Mapping[str, Any], node_id: str) -> bool:
    """Tell whether an entry of `[tool.dpaudit]` is for the test of this node id."""
    return entry.get("test") in (node_id, node_id.partition("[")[0])


def listed_violation(entry: Mapping[str, Any]) -> KnownViolation:
    """The known violation of an entry of `[tool.dpaudit]`; `UsageError` if it has no reason or date."""
    return _read({name: value for name, value in entry.items() if name != "test"}, LIST)


def _read(entry: Mapping[str, Any], place: str) -> KnownViolation:
    for name in entry:
        if name not in ("reason", "expires", "pairs"):
            raise UsageError(f"{place} must have a reason, a date in expires and perhaps pairs, got {name!r}.")
    reason, expires, pairs = entry.get("reason"), entry.get("expires"), entry.get("pairs")
    if not isinstance(reason, str) or not reason.strip():
        raise UsageError(f"reason must be a text, got {reason!r} in {place}.")
    if isinstance(expires, str):
        try:
            expires = datetime.date.fromisoformat(expires)
        except ValueError:
            raise UsageError(f"expires must be a date such as '2027-01-31', got {expires!r} in {place}.") from None
    if isinstance(expires, datetime.datetime):
        expires = expires.date()
    if not isinstance(expires, datetime.date):
        raise UsageError(f"expires must be a date such as '2027-01-31', got {expires!r} in {place}.")
    if pairs is not None and (isinstance(pairs, str) or not all(isinstance(one, str) for one in pairs)):
        raise UsageError(f"pairs must be a list of ids of pairs, got {pairs!r} in {place}.")
    return KnownViolation(reason, expires, None if pairs is None else tuple(pairs), place)
