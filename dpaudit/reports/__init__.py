"""What we say: one result rendered for the people and the programs that read it.

Everything is rendered from `AuditResult` alone, the same bytes for the same result. A format is a function from a
result to the content of its file; its module is imported when it is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from dpaudit.errors import UsageError
from dpaudit.results import AuditResult, write_whole

__all__ = ["FORMATS", "render", "write_report"]


def _html(result: AuditResult) -> str:
    from dpaudit.reports.html import render as render_html

    return render_html(result)


def _markdown(result: AuditResult) -> str:
    from dpaudit.reports.markdown import render as render_markdown

    return render_markdown(result)


def _json(result: AuditResult) -> bytes:
    return result.to_bytes()


FORMATS: Mapping[str, Callable[[AuditResult], str | bytes]] = {"html": _html, "json": _json, "md": _markdown}


def render(result: AuditResult, format: str) -> str | bytes:
    """The content of a report in one of `FORMATS`.

    Raises
    ------
    UsageError
        If there is no such format.
    """
    if format not in FORMATS:
        raise UsageError(f"format must be one of {', '.join(FORMATS)}, got {format!r}.")
    return FORMATS[format](result)


def write_report(result: AuditResult, path: str | os.PathLike[str]) -> Path:
    """Write a report in the format that the suffix of `path` names, complete or not at all; return its path.

    Raises
    ------
    UsageError
        If the suffix names no format, or the place is not writable.
    """
    target = Path(path)
    format = target.suffix.lower().removeprefix(".")
    if format not in FORMATS:
        known = ", ".join(f".{name}" for name in FORMATS)
        raise UsageError(f"path must end in one of {known}, got {os.fspath(path)!r}.")
    write_whole(target, render(result, format))
    return target
