"""What the user declares about a deployment: recorded and marked as declared, never tested.

It stands in `[tool.dpaudit.deployment]` of pyproject.toml or in a TOML file of its own:

    name = "City statistics"          # and version, contact
    coordinates = "coordinates.json"  # {"Austin TX": [-97.7, 30.3], ...}: where inputs lie on a map

    [declared]                        # what is so, by the item of the report that it answers
    unit = "One inhabitant; everybody has one row."

    [not_applicable]                  # why an item is beside the point
    learning = "No model is trained and no synthetic data are made."

The keys of the two tables are those of `ITEMS`. An unknown key is an error that names its place.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpaudit.errors import UsageError

ITEMS: Mapping[str, str] = {
    "epsilon": "Epsilon, delta and variant of the claim",
    "unit": "Unit of privacy",
    "contribution": "Contribution bounds and sensitivity",
    "correctness": "Correctness of the algorithms",
    "bins": "Histogram bins that appear or vanish",
    "floating_point": "Floating point",
    "side_channels": "Timing, errors and backend",
    "utility": "Utility and statistical bias",
    "human_bias": "Systemic and human bias",
    "learning": "Machine learning and synthetic data",
    "queries": "Query model and accounting of the budget",
    "other_releases": "Other releases on the same data",
    "trust": "Threat model and trust",
    "security": "Security, access control, collection exposure",
}
TEXTS = ("name", "version", "contact")
KEYS = (*TEXTS, "coordinates", "declared", "not_applicable")
LONGEST = 4000  # characters of a declared text


@dataclasses.dataclass(frozen=True)
class Deployment:
    """What the user declares.

    Attributes
    ----------
    source : str
        The file it was read from.
    name, version, contact : str
        Empty where nothing is declared.
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


def read_deployment(path: str | os.PathLike[str]) -> Deployment:
    """Read a TOML file with a deployment's declarations; of a pyproject.toml, `[tool.dpaudit.deployment]`.

    Raises
    ------
    UsageError
        If the file cannot be read, or holds a key that is not known or a value of the wrong type.
    """
    file = Path(path)
    try:
        table: Any = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"deployment must be a readable file, got {str(file)!r} ({error.strerror}).") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"deployment must be TOML, got {str(file)!r}: {error}.") from error
    if file.name == "pyproject.toml":
        for key in ("tool", "dpaudit", "deployment"):
            table = table.get(key, {}) if isinstance(table, dict) else {}
        if not table:
            raise UsageError(f"deployment must be a table [tool.dpaudit.deployment], got none at {str(file)!r}.")
        return deployment_of(table, file, "[tool.dpaudit.deployment]")
    return deployment_of(table, file)


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
    )


def _text(key: str, value: Any, where: str) -> str:
    if not isinstance(value, str) or len(value) > LONGEST:
        given = f"{len(value):,} characters" if isinstance(value, str) else repr(value)
        raise UsageError(f"{key} must be a text of at most {LONGEST:,} characters, got {given} at {where}.")
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
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"coordinates must be a readable file, got {str(path)!r} ({error.strerror}).") from error
    except ValueError as error:
        raise UsageError(f"coordinates must be JSON, got {str(path)!r}: {error}.") from error
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
