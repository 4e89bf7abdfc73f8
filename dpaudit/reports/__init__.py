"""Reports: results rendered for the people and the programs that read them.

Everything is rendered from the saved model (`AuditResult`, `CheckResult`, `UtilityResult`, or several of them as a
`Dossier`) alone, the same bytes for the same result. But html, md, pdf, label and oscal say when they were written,
unless SOURCE_DATE_EPOCH states another date (`dpaudit.reports.wording`), and SARIF looks into the current folder for
the line that it anchors a result to. A format's module is imported when it is used.

Formats and the names of their files: `html` and `md` (audit.html, audit.md), `json` (audit.json), `junit`
(audit.junit.xml), `sarif` (audit.sarif), `pdf` (audit.pdf; extra `pdf`), `in-toto` (audit.intoto.json), `registry`
(audit.registry.yaml), `label` and `label-svg` (audit.label.html, audit.label.svg), `oscal` (audit.oscal.json).
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from dpaudit.errors import UsageError
from dpaudit.reports.formats import (
    OWN,
    SUFFIXES,
    ReportFormat,
    added_formats,
    all_formats,
    check_format,
    file_name,
    format_of,
    other_reports,
)

if TYPE_CHECKING:
    from dpaudit.conformance.result import CheckResult
    from dpaudit.reports.document import Document
    from dpaudit.reports.dossier import Dossier
    from dpaudit.results.model import AuditResult
    from dpaudit.results.utility_result import UtilityResult
    from dpaudit.scores.result import ScoresResult

    Reported: TypeAlias = AuditResult | CheckResult | UtilityResult | Dossier | Document

__all__ = [
    "FORMATS",
    "PROFILES",
    "SUFFIXES",
    "ReportFormat",
    "all_formats",
    "check_format",
    "file_name",
    "format_of",
    "other_reports",
    "render",
    "write_report",
]

PROFILES = ("plain", "compliance")
FORMATS = tuple(OWN)


def render(
    result: Reported | ScoresResult, format: str, profile: str = "plain", saved: str | os.PathLike[str] | None = None
) -> str | bytes:
    """The content of a report in one of the formats.

    Parameters
    ----------
    result : AuditResult, CheckResult, UtilityResult, Dossier, ScoresResult, or a Document for people
    format : str
        One of `all_formats()`.
    profile : {"plain", "compliance"}
        "compliance" puts a page for non-experts and the items of an evaluation first; of html, json, md and pdf only.
    saved : path, optional
        Where the result is saved, for the lines that replay it: of one result, as a dossier knows its files. A name
        such as audit.json stands in where it is not known.

    Raises
    ------
    UsageError
        If there is no such format or profile, or what the format needs is not installed.
    """
    check_format(format)
    if profile not in PROFILES:
        raise UsageError(f"profile must be one of {', '.join(PROFILES)}, got {profile!r}.")
    own = OWN.get(format)
    write: Callable[..., str | bytes] = (
        getattr(importlib.import_module(f"dpaudit.reports.{own.module}"), own.function)
        if own is not None
        else added_formats()[format].render
    )
    if own is not None and own.takes == "result":
        return write(result, profile)
    from dpaudit.reports.compliance import document_of, dossier_of

    if own is not None and own.takes == "document":
        return write(document_of(result, profile, os.fspath(saved) if saved is not None else ""))
    content = write(dossier_of(result))
    if not isinstance(content, str | bytes):
        raise UsageError(f"format {format} must render str or bytes, got {type(content).__name__}.")
    return content


def write_report(
    result: Reported | ScoresResult,
    path: str | os.PathLike[str],
    profile: str = "plain",
    saved: str | os.PathLike[str] | None = None,
) -> Path:
    """Write a report in the format that the suffix of `path` names, complete or not at all; return its path.

    `saved` is where the result is saved, as for `render`.

    Raises
    ------
    UsageError
        If the suffix names no format, what it needs is not installed, or the place is not writable.
    OutputError
        If the file cannot be written to its end, as on a full disk.

    Examples
    --------
    >>> from dpaudit import PureDP, audit
    >>> result = audit(lambda data, size, rng: data + rng.laplace(size=size), PureDP(1.0), [(0.0, 1.0)], samples=1000)
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(result, pathlib.Path(folder) / "audit.sarif").name
    'audit.sarif'
    """
    from dpaudit.results.saving import write_whole

    target = Path(path)
    write_whole(target, render(result, format_of(target), profile, saved))
    return target
