"""What the user declares about a deployment: recorded and marked as declared, never tested.

It stands in `[tool.dpaudit.deployment]` of pyproject.toml or in a TOML file of its own:

    name = "City statistics"          # and version, contact
    coordinates = "coordinates.json"  # {"Austin TX": [-97.7, 30.3], ...}: where inputs lie on a map

    [declared]                        # what is so, by the item of the report that it answers
    unit = "One inhabitant; everybody has one row."

    [not_applicable]                  # why an item is beside the point
    learning = "No model is trained and no synthetic data are made."

    [budget]                          # what may be spent on one data set, over all of its releases
    limit = 2.0
    releases = [{name = "2025", date = 2025-01-31, spent = 1.0}]

    [registry]                        # what a record of the deployment says beside it
    product_type = "Summary statistics"

The keys of the first two tables are those of `ITEMS`; `dpaudit init deployment` writes a file with every key and what
it means. An unknown key is an error that names its place.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpaudit.errors import UsageError
from dpaudit.files import read_json, read_toml
from dpaudit.reports.words import words

ITEMS: Mapping[str, str] = {key: item["name"] for key, item in words("items").items()}
TEXTS = (
    "name", "version", "contact", "owner", "approver", "description", "purpose", "region", "data_source", "retention",
)  # fmt: skip
KEYS = (*TEXTS, "published", "coordinates", "declared", "not_applicable", "budget", "registry")
MAX_CHARACTERS = 4000  # characters of a declared text
BUDGET_KEYS = ("parameter", "limit", "releases")
PARAMETERS = ("epsilon", "rho", "mu")  # whose values add up at worst, or add up exactly
RELEASE_KEYS = ("name", "date", "spent")
# Keys of [registry] with the values that the public registry of deployments knows; an empty tuple: any text.
REGISTRY: Mapping[str, tuple[str, ...]] = {
    "product_type": (
        "Summary statistics", "Machine learning model", "Dataset", "Synthetic data", "Interactive API", "SQL queries",
    ),
    "sector": ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance"),
    "model": ("Local", "Central", "Shuffle", "Federated"),
    "release_type": ("One release", "Many releases"),
    "data_source_type": ("Static", "Dynamic"),
    "access_type": ("Interactive", "Non-interactive"),
    "curator": (),
    "author": (),
    "unprotected": (),
    "preprocessing": (),
    "post_processing": (),
    "sources": (),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Release:
    """One release of a data set and what it spent: `date` in ISO 8601, `spent` in the ledger's parameter."""

    name: str
    date: str
    spent: float


@dataclasses.dataclass(frozen=True)
class Ledger:
    """What may be spent on one data set, and what its releases spent, as the user declares it.

    Losses of one parameter add up over releases: exactly for rho (zCDP), at worst for epsilon (basic composition). Of
    mu (Gaussian DP) the squares add up.
    """

    parameter: str
    limit: float
    releases: tuple[Release, ...] = ()

    @property
    def spent(self) -> float:
        """What all releases spent together.

        Examples
        --------
        >>> Ledger("mu", 5.0, (Release("a", "2025-01-31", 3.0), Release("b", "2026-01-31", 4.0))).spent
        5.0
        """
        values = [release.spent for release in self.releases]
        return math.hypot(*values) if self.parameter == "mu" else math.fsum(values)

    @property
    def is_overspent(self) -> bool:
        """Whether the releases spent more than the limit, beyond the rounding of their sum."""
        return self.spent > self.limit * (1.0 + 1e-12)


@dataclasses.dataclass(frozen=True)
class Deployment:
    """What the user declares.

    Attributes
    ----------
    source : str
        The file it was read from.
    name, version, contact, owner, approver, description, purpose, region, data_source, retention : str
        Empty where nothing is declared.
    published : str
        The date of the first publication, ISO 8601, or empty.
    budget : Ledger or None
        What may be spent on the data set, and was.
    registry : dict of str
        By the keys of `REGISTRY`.
    declared, not_applicable : dict of str
        By the keys of `ITEMS`: what is so, and why an item does not apply.
    coordinates : dict of (float, float)
        Where inputs lie, by their ids; for drawing alone.
    """

    source: str
    name: str = ""
    version: str = ""
    contact: str = ""
    declared: Mapping[str, str] = dataclasses.field(default_factory=dict)
    not_applicable: Mapping[str, str] = dataclasses.field(default_factory=dict)
    coordinates: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    owner: str = ""
    approver: str = ""
    description: str = ""
    purpose: str = ""
    region: str = ""
    data_source: str = ""
    retention: str = ""
    published: str = ""
    budget: Ledger | None = None
    registry: Mapping[str, str] = dataclasses.field(default_factory=dict)


def read_deployment(path: str | os.PathLike[str]) -> Deployment:
    """Read a TOML file with a deployment's declarations; of a pyproject.toml, `[tool.dpaudit.deployment]`.

    Raises
    ------
    UsageError
        If the file cannot be read, or holds a key that is not known or a value of the wrong type.
    """
    file = Path(path)
    table: Any = read_toml("deployment", file)
    if file.name == "pyproject.toml":
        for key in ("tool", "dpaudit", "deployment"):
            table = table.get(key, {}) if isinstance(table, dict) else {}
        if not table:
            raise UsageError(f"deployment must be a table [tool.dpaudit.deployment], got none at {str(file)!r}.")
        return deployment_of(table, file, "[tool.dpaudit.deployment]")
    return deployment_of(table, file)


def template() -> str:
    """The file with every key and what it means; nothing in it is declared until a comment sign is taken away."""
    return (Path(__file__).parent / "templates" / "deployment.toml").read_text(encoding="utf-8")


def deployment_of(table: Any, file: Path, place: str = "") -> Deployment:
    """The deployment of a parsed table; errors name `file` and `place`, paths start at the folder of `file`."""
    where = f"{place} of {str(file)!r}" if place else repr(str(file))
    if not isinstance(table, Mapping):
        raise UsageError(f"deployment must be a table, got {table!r} at {where}.")
    for key in table:
        if key not in KEYS:
            raise UsageError(f"key must be one of {', '.join(KEYS)}, got {key!r} at {where}.")
    texts = {key: _text(key, table.get(key, ""), where) for key in TEXTS}
    tables = {key: _answers(key, table.get(key, {}), where) for key in ("declared", "not_applicable")}
    twice = next((key for key in tables["declared"] if key in tables["not_applicable"]), None)
    if twice is not None:
        raise UsageError(f"{twice} must be declared or not applicable, got both at {where}.")
    coordinates: Mapping[str, tuple[float, float]] = {}
    if "coordinates" in table:
        coordinates = _coordinates(file.parent / _text("coordinates", table["coordinates"], where))
    return Deployment(
        source=str(file),
        **texts,
        declared=tables["declared"],
        not_applicable=tables["not_applicable"],
        coordinates=coordinates,
        published=_date("published", table["published"], where) if "published" in table else "",
        budget=_budget(table["budget"], where) if "budget" in table else None,
        registry=_registry(table.get("registry", {}), where),
    )


def _date(key: str, value: Any, where: str) -> str:
    if isinstance(value, datetime.datetime) or not isinstance(value, datetime.date):
        raise UsageError(f"{key} must be a date such as 2026-01-31, got {value!r} at {where}.")
    return value.isoformat()


def _amount(key: str, value: Any, where: str) -> float:
    if not _is_number(value) or value < 0.0:
        raise UsageError(f"{key} must be a finite number of at least 0, got {value!r} at {where}.")
    return float(value)


def _known(keys: tuple[str, ...], name: str, table: Any, where: str) -> Mapping[str, Any]:
    """The table, all of whose keys are known."""
    if not isinstance(table, Mapping):
        raise UsageError(f"{name} must be a table, got {table!r} at {where}.")
    for key in table:
        if key not in keys:
            raise UsageError(f"key of [{name}] must be one of {', '.join(keys)}, got {key!r} at {where}.")
    return table


def _budget(table: Any, where: str) -> Ledger:
    table = _known(BUDGET_KEYS, "budget", table, where)
    parameter = table.get("parameter", "epsilon")
    if parameter not in PARAMETERS:
        raise UsageError(f"budget.parameter must be one of {', '.join(PARAMETERS)}, got {parameter!r} at {where}.")
    if "limit" not in table:
        raise UsageError(f"budget.limit must be stated, got none at {where}.")
    entries = table.get("releases", [])
    if not isinstance(entries, list):
        raise UsageError(f"budget.releases must be a list of tables, got {entries!r} at {where}.")
    releases = []
    for entry in entries:
        entry = _known(RELEASE_KEYS, "budget.releases", entry, where)
        missing = next((key for key in RELEASE_KEYS if key not in entry), None)
        if missing is not None:
            raise UsageError(f"budget.releases must have {missing}, got {dict(entry)!r} at {where}.")
        name = _text("budget.releases.name", entry["name"], where)
        date = _date("budget.releases.date", entry["date"], where)
        releases.append(Release(name, date, _amount("budget.releases.spent", entry["spent"], where)))
    return Ledger(parameter, _amount("budget.limit", table["limit"], where), tuple(releases))


def _registry(table: Any, where: str) -> dict[str, str]:
    found = {}
    for key, value in _known(tuple(REGISTRY), "registry", table, where).items():
        known = REGISTRY[key]
        if known and value not in known:
            raise UsageError(f"registry.{key} must be one of {', '.join(known)}, got {value!r} at {where}.")
        found[key] = _text(f"registry.{key}", value, where)
    return found


def _text(key: str, value: Any, where: str) -> str:
    if not isinstance(value, str) or len(value) > MAX_CHARACTERS:
        given = f"{len(value):,} characters" if isinstance(value, str) else repr(value)
        raise UsageError(f"{key} must be a text of at most {MAX_CHARACTERS:,} characters, got {given} at {where}.")
    return value.strip()


def _answers(name: str, table: Any, where: str) -> dict[str, str]:
    if not isinstance(table, Mapping):
        raise UsageError(f"{name} must be a table, got {table!r} at {where}.")
    for key in table:
        if key not in ITEMS:
            raise UsageError(f"key of [{name}] must be one of {', '.join(ITEMS)}, got {key!r} at {where}.")
    answers = {key: _text(f"{name}.{key}", value, where) for key, value in table.items()}
    empty = next((key for key, value in answers.items() if not value), None)
    if empty is not None:
        raise UsageError(f"{name}.{empty} must say something, got an empty text at {where}.")
    return answers


def _coordinates(path: Path) -> dict[str, tuple[float, float]]:
    table = read_json("coordinates", path)
    if not isinstance(table, dict):
        raise UsageError(f"coordinates must be an object of places, got {type(table).__name__} at {str(path)!r}.")
    places = {}
    for name, place in table.items():
        good = isinstance(place, list) and len(place) == 2 and all(_is_number(value) for value in place)
        if not good:
            raise UsageError(f"coordinates of {name!r} must be two finite numbers, got {place!r} at {str(path)!r}.")
        places[name] = (float(place[0]), float(place[1]))
    return places


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
