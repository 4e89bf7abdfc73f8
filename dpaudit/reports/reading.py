"""Reading everything that can be reported: saved results, sessions of tests, stores of evidence, plans and replays.

A session becomes the results that its tests saved; a store becomes an audit for each mechanism and claim, of all its
sessions together. Certificates, scores and what judges no promise become attachments.
"""

from __future__ import annotations

import functools
import hashlib
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dpaudit.conformance.result import SCHEMA as CHECK_SCHEMA
from dpaudit.conformance.result import CheckResult
from dpaudit.errors import UsageError
from dpaudit.files import opened, read_bytes
from dpaudit.reports.attachments import certificate_attachment, plan_attachment, session_attachment, side_attachment
from dpaudit.reports.deployment import Deployment
from dpaudit.reports.dossier import Attachment, Dossier, Judged, Result, Source
from dpaudit.reports.evidence import SCHEMA as STORE_SCHEMA
from dpaudit.reports.evidence import audit_of_store, store_document
from dpaudit.reports.scores import scores_attachment
from dpaudit.results.model import SCHEMA as AUDIT_SCHEMA
from dpaudit.results.model import AuditResult
from dpaudit.results.plan_result import SCHEMA as PLAN_SCHEMA
from dpaudit.results.plan_result import Plan
from dpaudit.results.saving import parsed_result
from dpaudit.results.side_findings import SideFinding
from dpaudit.results.utility_result import SCHEMA as UTILITY_SCHEMA
from dpaudit.results.utility_result import UtilityResult
from dpaudit.scores.result import SCHEMA as SCORES_SCHEMA
from dpaudit.scores.result import ScoresResult
from dpaudit.symbolic.certificate import SCHEMA as CERTIFICATE_SCHEMA
from dpaudit.symbolic.certificate import Certificate

SESSION_SCHEMA = "dpaudit.session/1"
SQLITE = b"SQLite format 3\0"
SIDE_KEYS = {"kind", "status", "summary", "error_rate", "details"}  # of a file without a schema
Read = tuple[list[Source], list[Attachment]]
Reader = Callable[[str, str, Mapping[str, Any]], Read]  # of the path, the digest and the record of a file


def _check_of(record: Mapping[str, Any]) -> CheckResult:
    """A run of the conformance suite, each of whose mechanisms has a name."""
    result = CheckResult.from_dict(record)
    for mechanism in result.mechanisms:
        _ = mechanism["name"]
    return result


def read_dossier(
    paths: Iterable[str | os.PathLike[str]], deployment: Deployment | None = None, *, may_repeat: bool = False
) -> Dossier:
    """Read saved results of any kind: audits, checks, certificates, scores, sessions, plans, a store.

    Results that are compared may repeat; of those that are added up, each is counted once.

    Raises
    ------
    UsageError
        If there is none, one cannot be read, is given twice, or is of no known schema.
    """
    sources: list[Source] = []
    attachments: list[Attachment] = []
    names = [os.fspath(path) for path in paths]
    read = [read_any(name) for name in names]
    given: dict[tuple[str, ...], str] = {}
    for name, (found, beside) in zip(names, read, strict=True):
        content = (*(one.digest for one in found), *(one.digest for one in beside))
        if content in given and not may_repeat:  # its error rate, and what it found, would be counted twice
            raise UsageError(
                f"results must be given once each, got the content of {given[content]!r} again in {name!r}."
            )
        given[content] = name
        sources += found
        attachments += beside
    if not sources and not any(isinstance(one, Judged) for one in attachments):
        got = "none" if not read else "only what judges no promise"
        raise UsageError(f"results must be at least one file with a result, got {got}.")
    return Dossier(tuple(sources), deployment, attachments=tuple(attachments))


def read_any(path: str) -> Read:
    """The results and the attachments of a file, or of a folder that a session of tests was written to.

    Raises
    ------
    UsageError
        If it cannot be read, or is of no known schema.
    """
    if os.path.isdir(path):
        folder, path = path, os.path.join(path, "session.json")
        if not os.path.isfile(path):
            raise UsageError(f"result must be a file, or a folder with the session.json of tests, got {folder!r}.")
    if _is_store(path):
        return _store(path), []
    content = read_bytes("result", path)
    digest = hashlib.sha256(content).hexdigest()
    readers = {schema: functools.partial(read, path, digest) for schema, read in READERS.items()}
    found: Read = parsed_result(content, path, readers)
    return found


def _as_source(read: Callable[[Mapping[str, Any]], Result]) -> Reader:
    return lambda path, digest, record: ([Source(path, digest, read(record))], [])


def _attached(attachment: Callable[[str, str, Any], Attachment], read: Callable[[Mapping[str, Any]], Any]) -> Reader:
    return lambda path, digest, record: ([], [attachment(path, digest, read(record))])


def _side_finding(record: Mapping[str, Any]) -> SideFinding:
    if not SIDE_KEYS.issubset(record):
        raise UsageError(f"schema must be one of {', '.join(filter(None, READERS))}, got none: no result of dpaudit's.")
    return SideFinding.from_dict(record)


def _certificate_of(record: Mapping[str, Any]) -> Certificate:
    result = Certificate.from_dict(record)
    if not result.pairs:
        raise UsageError("pairs must be at least one, got none.")
    bounds = ("claimed", "epsilon_lower", "epsilon_upper", "delta", "mass_left", "value_lower", "value_upper")
    for pair in result.pairs:
        missing = next((name for name in bounds if math.isnan(getattr(pair, name))), None)
        if missing is not None:
            raise UsageError(f"{missing} must be a number, got null at pair {pair.id!r:.80}.")
        if pair.verdict == "violated" and pair.value_lower < pair.claimed:
            raise UsageError(f"verdict must be that of the bounds, got 'violated' at pair {pair.id!r:.80}.")
    if record["verdict"] != result.verdict:
        raise UsageError(f"verdict must be that of the pairs, {result.verdict!r}, got {record['verdict']!r}.")
    return result


def _is_store(path: str) -> bool:
    try:
        with opened("result", path) as stream:
            return stream.read(len(SQLITE)) == SQLITE
    except UsageError:
        return False  # said where it is read


def _session(path: str, digest: str, record: Mapping[str, Any]) -> Read:
    """The saved results of a session's tests, each once, and the session itself."""
    folder = Path(path).parent
    sources: list[Source] = []
    without = []
    for audit in record["audits"]:
        place = folder / str(audit.get("folder") or "") / "audit.json"
        if audit.get("folder") and place.is_file():
            sources += read_any(str(place))[0]
        else:
            without.append(str(audit["test"]))
    for name in dict.fromkeys(str(check.get("folder") or "") for check in record.get("checks", ())):
        place = folder / name / "check.json"
        sources += read_any(str(place))[0] if name and place.is_file() else []
    return sources, [session_attachment(path, digest, record, without)]


def _store(path: str) -> list[Source]:
    from dpaudit.running.store import Store

    with Store.at(Path(path)) as store:
        document = store_document(store)
    with opened("store", path) as stream:  # of any size
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return _subjects(path, digest, document["subjects"])


def _subjects(path: str, digest: str, subjects: Sequence[Mapping[str, Any]]) -> list[Source]:
    sources = [Source(path, digest, audit_of_store(subject)) for subject in subjects]
    if not sources:
        raise UsageError(f"result must be a store with evidence, got an empty one at {path!r}.")
    return sources


READERS: Mapping[str | None, Reader] = {
    AUDIT_SCHEMA: _as_source(AuditResult.from_dict),
    CHECK_SCHEMA: _as_source(_check_of),
    UTILITY_SCHEMA: _as_source(UtilityResult.from_dict),
    SESSION_SCHEMA: _session,
    PLAN_SCHEMA: _attached(plan_attachment, Plan.from_dict),
    STORE_SCHEMA: lambda path, digest, record: (_subjects(path, digest, record["subjects"]), []),
    CERTIFICATE_SCHEMA: _attached(certificate_attachment, _certificate_of),
    SCORES_SCHEMA: _attached(scores_attachment, ScoresResult.from_dict),
    None: _attached(side_attachment, _side_finding),
}
