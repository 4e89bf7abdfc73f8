"""Place of a finding in the source: the line of the audited target, or the project's configuration.

Code scanning drops a whole file if one result has no physical location, so there always is one. Nothing is imported:
the target's file is looked for below the current folder and parsed. The path is relative, with slashes.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

CONFIGURATION = "pyproject.toml"
SECTION = "[tool.dpaudit"


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
    if path and line.isascii() and line.isdigit() and int(line) > 0 and _is_inside(path):
        return Anchor(_uri(path), int(line))
    target = str(subject.get("target") or "")
    place, colon, attribute = target.rpartition(":")
    if colon and place:
        for file in _files(place):
            if _is_inside(file) and (base / file).is_file():
                return Anchor(_uri(file), _line(base / file, attribute))
    return Anchor(CONFIGURATION, _section(base / CONFIGURATION))


def _files(place: str) -> list[str]:
    """The files that a target's first half may mean: a path, or a module in the folder or in its src."""
    if place.endswith(".py"):
        return [place]
    path = place.replace(".", "/")
    return [f"{folder}{path}{ending}" for folder in ("", "src/") for ending in (".py", "/__init__.py")]


def _is_inside(path: str) -> bool:
    """Tell whether a path is relative and stays below the folder it starts from."""
    pure = PurePosixPath(path.replace("\\", "/"))
    if not pure.parts or pure.is_absolute() or ".." in pure.parts:
        return False
    return ":" not in path and "\0" not in path


def _uri(path: str) -> str:
    parts = [part for part in PurePosixPath(path.replace("\\", "/")).parts if part != "."]
    return "/".join(quote(part, errors="replace") for part in parts)


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
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return node.lineno
    return 1


def _section(file: Path) -> int:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return 1
    return next((number for number, line in enumerate(lines, 1) if line.lstrip().startswith(SECTION)), 1)
