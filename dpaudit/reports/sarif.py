"""A dossier as SARIF 2.1.0, for code scanning: one result for each check that found something.

Pairs of one claim make one result, which names the worst and counts the others: its fingerprint is over the subject,
the claim and the check, never over the pair or the witness that a run happened to find, so that an alert stays the
same alert from run to run. Every result is anchored to a file and a line (`dpaudit.reports.sarif`).
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from dpaudit.environment import __version__
from dpaudit.reports.cases import Case, counts, grouped
from dpaudit.reports.dossier import Dossier
from dpaudit.reports.wording import status_word
from dpaudit.reports.words import filled, form
from dpaudit.results.saving import json_text

CONFIGURATION = "pyproject.toml"
SECTION = "[tool.dpaudit"


def render(dossier: Dossier) -> str:
    """The log, as JSON with a line end."""
    rules = form("sarif.rules")  # of the statuses that are a result: others are counted in the run's properties
    groups = grouped(dossier, rules, lambda case: str(case.subject.get("target") or case.subject_name))
    log = filled(
        "sarif.log",
        version=__version__,
        rules=[filled("sarif.rule", **rule) for rule in rules.values()],
        results=[_result(*group) for group in groups],
        verdict=dossier.verdict,
        cases=counts(dossier),
    )
    return json_text(log)


def fingerprint(subject: str, claim: str, check: str) -> str:
    """The same for the same check of the same claim of the same subject: SHA-256, in hexadecimal."""
    text = json.dumps([subject, claim, check], ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _result(key: tuple[str, ...], group: Sequence[Case], more: str) -> dict[str, Any]:
    subject, claim, check, status = key
    worst, rules = group[0], form("sarif.rules")
    promise = f" ({claim})" if claim else ""
    message = f"{status_word(status).capitalize()}: {worst.subject_name}{promise}: {worst.name}: {worst.message}{more}"
    found: dict[str, Any] = filled(
        "sarif.result",
        **rules[status],
        **dataclasses.asdict(anchor_of(worst.subject)),
        index=list(rules).index(status),
        message=message.replace("](", "] ("),  # viewers of SARIF show `[words](target)` as a link even in plain text
        fingerprint=fingerprint(subject, claim, check),
    )
    return found


@dataclasses.dataclass(frozen=True)
class Anchor:
    """A file, as a relative URI reference, and a line in it, from 1."""

    uri: str
    line: int


def anchor_of(subject: Mapping[str, Any], root: Path | None = None) -> Anchor:
    """Say where the subject is defined: its `location` ("path:line") if any, else its target, else pyproject.toml."""
    base = Path.cwd() if root is None else root
    stated = str(subject.get("location") or "")
    path, _, line = stated.rpartition(":")
    if line.isascii() and line.isdigit() and int(line) > 0 and (uri := _uri(path)):
        return Anchor(uri, int(line))
    target = str(subject.get("target") or "")
    place, colon, attribute = target.rpartition(":")
    if colon and place:
        for file in _files(place):
            if (uri := _uri(file)) and (base / file).is_file():
                return Anchor(uri, _line(base / file, attribute))
    return Anchor(CONFIGURATION, _section(base / CONFIGURATION))


def _files(place: str) -> list[str]:
    """The files that a target's first half may mean: a path, or a module in the folder or in its src."""
    if place.endswith(".py"):
        return [place]
    path = place.replace(".", "/")
    return [f"{folder}{path}{ending}" for folder in ("", "src/") for ending in (".py", "/__init__.py")]


def _uri(path: str) -> str:
    """A path as a relative reference; empty where it does not stay below the folder that it starts from."""
    pure = PurePosixPath(path.replace("\\", "/"))
    if not pure.parts or pure.is_absolute() or ".." in pure.parts or ":" in path or "\0" in path:
        return ""
    return "/".join(quote(part, errors="replace") for part in pure.parts if part != ".")


def _line(file: Path, attribute: str) -> int:
    """The line where a module defines the name; 1 where that cannot be seen."""
    name = attribute.partition(".")[0].partition("(")[0]
    try:
        body = ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return 1
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name:
            return node.lineno
        targets = getattr(node, "targets", [getattr(node, "target", None)])  # of an assignment, plain or annotated
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return node.lineno
    return 1


def _section(file: Path) -> int:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return 1
    return next((number for number, line in enumerate(lines, 1) if line.lstrip().startswith(SECTION)), 1)
