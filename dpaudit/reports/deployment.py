"""Declarations of the user about a deployment: recorded and marked as declared, never tested.

It stands in `[tool.dpaudit.deployment]` of pyproject.toml or in a TOML file of its own. In the tables `declared` and
`not_applicable` stand what is so and what is beside the point, by the items of the report; in `budget` what may be
spent on one data set over all of its releases; in `registry` what a record of the deployment says beside it.
`dpaudit init deployment` writes a file with every key and what it means. An unknown key is an error that names its
place.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dpaudit.errors import UsageError
from dpaudit.files import read_json, read_toml
from dpaudit.numerals import number_text
from dpaudit.reports.words import TEMPLATES, form, words

ITEMS: Mapping[str, str] = {key: item["name"] for key, item in words("items").items()}
TEXTS = (
    "name", "version", "contact", "owner", "approver", "description", "purpose", "region", "data_source", "retention",
)  # fmt: skip
KEYS = (*TEXTS, "published", "coordinates", "declared", "not_applicable", "budget", "registry")
BUDGET_KEYS = ("parameter", "limit", "releases")
PARAMETERS = ("epsilon", "rho", "mu")  # whose values add up at worst, or add up exactly
RELEASE_KEYS = ("name", "date", "spent")
# Keys of [registry] with the values that the public registry of deployments knows; none: any text.
REGISTRY: Mapping[str, Sequence[str]] = form("registry.known")
MAX_CHARACTERS = 4000  # of a text


@dataclasses.dataclass(frozen=True)
class Release:
    """One release of a data set and what it spent: `date` in ISO 8601, `spent` in the ledger's parameter."""

    name: str
    date: str
    spent: float


@dataclasses.dataclass(frozen=True)
class Ledger:
    """Budget of one data set and what its releases spent, as the user declares it.

    Losses of one parameter add up over releases: exactly for rho (zCDP), at worst for epsilon (basic composition). Of
    mu (Gaussian DP) the squares add up.
    """

    parameter: str
    limit: float
    releases: tuple[Release, ...] = ()

    @property
    def spent(self) -> float:
        """Say what all releases spent together.

        Examples
        --------
        >>> Ledger("mu", 5.0, (Release("a", "2025-01-31", 3.0), Release("b", "2026-01-31", 4.0))).spent
        5.0
        """
        values = [release.spent for release in self.releases]
        return math.hypot(*values) if self.parameter == "mu" else math.fsum(values)

    def __str__(self) -> str:
        return f"{number_text(self.spent)} of {number_text(self.limit)}"

    @property
    def is_overspent(self) -> bool:
        """Tell whether the releases spent more than the limit, beyond the rounding of their sum."""
        return self.spent > self.limit * (1.0 + 1e-12)


@dataclasses.dataclass(frozen=True)
class Deployment:
    """Declarations of the user, read from the file `source`; a text is empty where nothing is declared.

    `published` is the date of the first publication in ISO 8601. By the keys of `ITEMS`, `declared` says what is so and
    `not_applicable` why an item does not apply; `registry` is by the keys of `REGISTRY`. `coordinates` say where inputs
    lie, by their ids, for drawing alone.
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

    `UsageError` if the file cannot be read, or holds a key that is not known or a value of the wrong type.
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
    return (TEMPLATES / "deployment.toml").read_text(encoding="utf-8")


def deployment_of(table: Any, file: Path, place: str = "") -> Deployment:
    """The deployment of a parsed table; errors name `file` and `place`, paths start at the folder of `file`."""
    where = f" at {place} of {str(file)!r}" if place else f" at {str(file)!r}"
    stated = StrictTable(table, KEYS, where, "" if isinstance(table, Mapping) else "deployment")
    tables = {name: stated.table(name, tuple(ITEMS)) for name in ("declared", "not_applicable")}
    answers = {name: {key: one.text(key, is_needed=True) for key in one.values} for name, one in tables.items()}
    twice = next((key for key in answers["declared"] if key in answers["not_applicable"]), None)
    if twice is not None:
        raise UsageError(f"{twice} must be declared or not applicable, got both{where}.")
    registry = stated.table("registry", tuple(REGISTRY))
    return Deployment(
        source=str(file),
        declared=answers["declared"],
        not_applicable=answers["not_applicable"],
        **{key: stated.text(key) for key in TEXTS},
        coordinates=_coordinates(file.parent / stated.text("coordinates")) if "coordinates" in stated else {},
        published=stated.date("published") if "published" in stated else "",
        budget=_budget(stated.table("budget", BUDGET_KEYS)) if "budget" in stated else None,
        registry={
            key: registry.one_of(key, REGISTRY[key]) if REGISTRY[key] else registry.text(key) for key in registry.values
        },
    )


def _budget(table: StrictTable) -> Ledger:
    parameter = table.one_of("parameter", PARAMETERS, "epsilon")
    if "limit" not in table:
        raise UsageError(f"budget.limit must be stated, got none{table.where}.")
    stated = table.tables("releases", RELEASE_KEYS)
    releases = tuple(Release(one.text("name"), one.date("date"), one.amount("spent")) for one in stated)
    return Ledger(parameter, table.amount("limit"), releases)


def _coordinates(path: Path) -> dict[str, tuple[float, float]]:
    table = read_json("coordinates", path)
    if not isinstance(table, dict):
        raise UsageError(f"coordinates must be an object of places, got {type(table).__name__} at {str(path)!r}.")
    places = {}
    for name, place in table.items():
        if not (isinstance(place, list) and len(place) == 2 and all(map(is_number, place))):
            raise UsageError(f"coordinates of {name!r} must be two finite numbers, got {place!r} at {str(path)!r}.")
        places[name] = (float(place[0]), float(place[1]))
    return places


def is_number(value: Any) -> bool:
    """Tell whether this is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


class StrictTable:
    """A table with no other keys than these; `where` ends each message, `name` is the table's own name, dotted."""

    def __init__(self, table: Any, keys: Sequence[str], where: str, name: str = "") -> None:
        self.where, self.name = where, name
        self.values: Mapping[str, Any] = table if isinstance(table, Mapping) else {}
        if not isinstance(table, Mapping):
            self.refuse("", "be a table", table)
        for key in table:
            if key not in keys:
                of = f" of [{name}]" if name else ""
                raise UsageError(f"key{of} must be one of {', '.join(keys)}, got {key!r}{where}.")

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def refuse(self, key: str, demand: str, value: Any) -> None:
        """Raise the `UsageError` of a value of another kind."""
        place = ".".join(filter(None, (self.name, key)))
        got = f"{len(value):,} characters" if isinstance(value, str) and len(value) > MAX_CHARACTERS else repr(value)
        raise UsageError(f"{place} must {demand}, got {got}{self.where}.")

    def checked(self, key: str, demand: str, is_right: Callable[[Any], bool], otherwise: Any = None) -> Any:
        """A value that is right, or stands for one that is not stated."""
        value = self.values.get(key, otherwise)
        if not is_right(value):
            self.refuse(key, demand, value)
        return value

    def text(self, key: str, is_needed: bool = False) -> str:
        """A text without spaces at its ends, empty where none is stated; with `is_needed` it has to say something."""
        demand = f"be a text of at most {MAX_CHARACTERS:,} characters"
        self.checked(key, demand, lambda value: isinstance(value, str) and len(value) <= MAX_CHARACTERS, "")
        return str(self.checked(key, "say something", lambda value: value.strip() or not is_needed, "")).strip()

    def one_of(self, key: str, known: Sequence[str], otherwise: str | None = None) -> str:
        """One of the texts that are known."""
        return str(self.checked(key, f"be one of {', '.join(known)}", lambda value: value in known, otherwise))

    def date(self, key: str) -> str:
        """A date in ISO 8601."""
        return str(self.checked(key, "be a date such as 2026-01-31", lambda value: type(value) is datetime.date))

    def amount(self, key: str) -> float:
        """A finite number of at least 0."""
        demand = "be a finite number of at least 0"
        return float(self.checked(key, demand, lambda value: is_number(value) and value >= 0.0))

    def table(self, key: str, keys: Sequence[str]) -> StrictTable:
        """A table within this one, empty where none is stated."""
        return StrictTable(self.values.get(key, {}), keys, self.where, ".".join(filter(None, (self.name, key))))

    def tables(self, key: str, keys: Sequence[str]) -> list[StrictTable]:
        """A list of tables, each with all of these keys."""
        entries = self.values.get(key, [])
        if not isinstance(entries, list):
            self.refuse(key, "be a list of tables", entries)
        found = [StrictTable(entry, keys, self.where, f"{self.name}.{key}") for entry in entries]
        for one in found:
            if missing := next((name for name in keys if name not in one), None):
                raise UsageError(f"{one.name} must have {missing}, got {dict(one.values)!r}{self.where}.")
        return found
