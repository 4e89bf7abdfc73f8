"""Defaults that a project states: the table `[tool.dpaudit]` of the nearest pyproject.toml, looking upwards.

    [tool.dpaudit]
    samples = 20000
    report = ["json", "html"]
    out = "build/audits"

Types and ranges are checked here; what a text means (`isolation`, `report`) where it is used. What the command line or
a call says comes first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from dpaudit.arguments import check_options, did_you_mean
from dpaudit.errors import UsageError
from dpaudit.files import read_toml

FILE = "pyproject.toml"
Kind = tuple[str, Callable[[Any], bool]]  # what a value must be, in words, and whether it is
INTEGER: Kind = ("an integer", lambda value: type(value) is int)
NUMBER: Kind = ("a number", lambda value: type(value) in (int, float))
TEXT: Kind = ("a text", lambda value: isinstance(value, str))
FLAG: Kind = ("true or false", lambda value: isinstance(value, bool))
LIMITS: Kind = ("true, false or a text such as 'seconds=1'", lambda value: isinstance(value, bool | str))


def _key(kind: Kind, default: Any = None, *, is_of_audit: bool = True) -> Any:
    """A field that the file may state; by default an option of `dpaudit.audit`."""
    return dataclasses.field(default=default, metadata={"kind": kind, "is_of_audit": is_of_audit})


def _is_formats(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(item, str) for item in value))


def _is_known_violations(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(entry, dict) and all(isinstance(entry.get(name), str) for name in ("test", "reason"))
        and "expires" in entry
        for entry in value
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings of one pyproject.toml; None where it is silent.

    Attributes
    ----------
    path : Path or None
        The file; None if there is none.
    samples, mode, confidence, seed, jobs, backend, cluster, event_mass, inconclusive_factor, floating_point,
    isolation, pool, severity, band, power
        Options of `dpaudit.audit`.
    report : tuple of str or None
        Formats of reports.
    out : Path or None
        Folder of reports; a relative one starts at the folder of the file.
    strict : bool or None
        Whether an inconclusive audit, or one whose low bits leak, fails its test (pytest).
    known_violations : tuple of dict
        Violations that are known (pytest): tables with `test`, `reason`, `expires` and perhaps `pairs`.
    deployment : dict or None
        What the user declares for a compliance report, as written; `dpaudit.reports.deployment` reads it.
    """

    path: Path | None = None
    samples: int | None = _key(INTEGER)
    mode: str | None = _key(TEXT)
    confidence: float | None = _key(NUMBER)
    seed: int | None = _key(INTEGER)
    jobs: int | None = _key(INTEGER)
    backend: str | None = _key(TEXT)
    cluster: str | None = _key(TEXT)
    event_mass: float | None = _key(NUMBER)
    inconclusive_factor: float | None = _key(NUMBER)
    floating_point: bool | None = _key(FLAG)
    isolation: str | bool | None = _key(LIMITS)
    pool: bool | None = _key(FLAG)
    severity: bool | None = _key(FLAG)
    band: bool | None = _key(FLAG)
    power: str | None = _key(TEXT)
    report: tuple[str, ...] | None = _key(("a list of texts, or one text with commas", _is_formats), is_of_audit=False)
    out: Path | None = _key(TEXT, is_of_audit=False)  # noqa: RUF009
    known_violations: tuple[Mapping[str, Any], ...] = _key(
        ("a list of tables with test, reason and expires", _is_known_violations), (), is_of_audit=False
    )
    strict: bool | None = _key(FLAG, is_of_audit=False)
    deployment: Mapping[str, Any] | None = _key(("a table", lambda value: isinstance(value, dict)), is_of_audit=False)

    def audit_options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Options for `dpaudit.audit`: those of `given` that are not None, then those of the file."""
        stated = {name: getattr(self, name) for name in AUDIT_OPTIONS}
        chosen = {**stated, **{name: value for name, value in given.items() if value is not None}}
        return {name: value for name, value in chosen.items() if value is not None}

    def located(self, error: UsageError, given: Collection[str]) -> UsageError:
        """The error with the file's name, if it is about an option that only the file states; else the error itself.

        `given` are the names of the options that were stated elsewhere.
        """
        name = str(error).partition(" ")[0]
        if self.path is None or name in given or name not in AUDIT_OPTIONS or getattr(self, name) is None:
            return error
        return UsageError(f"{error} This was read from [tool.dpaudit] of {str(self.path)!r}.")


def read_config(start: Path | None = None) -> Config:
    """The defaults of the nearest pyproject.toml in `start` (the current folder) or a folder above it.

    `UsageError` if the file is not TOML, `[tool.dpaudit]` has an unknown key, or a value has the wrong type or is out
    of range.
    """
    folder = (Path.cwd() if start is None else start).resolve()
    path = next((place / FILE for place in (folder, *folder.parents) if (place / FILE).is_file()), None)
    if path is None:
        return Config()
    values: dict[str, Any] = {"path": path}
    for key, value in _table(path).items():
        if key not in _KEYS:
            known = ", ".join(_KEYS)
            near = did_you_mean(key, _KEYS)
            raise UsageError(f"key of [tool.dpaudit] must be one of {known}, got {key!r} at {str(path)!r}.{near}")
        condition, has_type = _KEYS[key]["kind"]
        if not has_type(value):
            raise UsageError(f"{key} must be {condition}, got {value!r} at [tool.dpaudit] of {str(path)!r}.")
        try:
            check_options(**{key: value})
        except UsageError as error:
            raise UsageError(f"{error} This was read from [tool.dpaudit] of {str(path)!r}.") from None
        if key == "out":
            value = path.parent / value
        elif key in ("report", "known_violations"):
            value = formats(value) if key == "report" else tuple(value)
        values[key] = value
    return Config(**values)


def _table(path: Path) -> dict[str, Any]:
    content = read_toml(FILE, path)
    tool = content.get("tool", {})
    table = tool.get("dpaudit", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise UsageError(f"tool.dpaudit must be a table, got {table!r} at {str(path)!r}.")
    return table


def formats(value: str | Collection[str]) -> tuple[str, ...]:
    """Names of formats from a list of them, or from one text with commas; each once, in lower case."""
    names = value.split(",") if isinstance(value, str) else value
    return tuple(dict.fromkeys(name.strip().lower() for name in names if name.strip()))


_KEYS = {field.name: field.metadata for field in dataclasses.fields(Config) if field.metadata}
AUDIT_OPTIONS = tuple(name for name, about in _KEYS.items() if about["is_of_audit"])
