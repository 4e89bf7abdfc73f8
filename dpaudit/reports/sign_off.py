"""The decision of a person about a report: who accepted or rejected it, when, and under which conditions.

A TOML file that `dpaudit report --sign-off` reads; an unknown key is an error that names its place:

    name = "A. Person"
    role = "Data protection officer"
    date = 2026-11-25
    decision = "accept with conditions"     # or "accept", or "reject"
    conditions = "Release 2.1 alone."       # with that decision only
    results = "9f2c…"                       # the digest that the sign-off block prints: binds it to these results
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import os
import re
import tomllib
from pathlib import Path
from typing import Any

from dpaudit.errors import UsageError
from dpaudit.reports.dossier import Dossier

DECISIONS = ("accept", "accept with conditions", "reject")
TEXTS = ("name", "role", "conditions", "results")
KEYS = ("name", "role", "date", "decision", "conditions", "results")
LONGEST = 2000  # characters of a text


@dataclasses.dataclass(frozen=True)
class SignOff:
    """A decision. `date` is ISO 8601; `results` is the digest of the results it was made on, or empty."""

    name: str
    role: str
    date: str
    decision: str
    conditions: str = ""
    results: str = ""


def results_digest(dossier: Dossier) -> str:
    """SHA-256 over the digests of the results, whatever their order: what a sign-off is bound to."""
    digests = [source.digest for source in dossier.sources]
    digests += [one.digest for one in dossier.attachments if one.judged is not None]
    text = "\n".join(sorted(digests))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def read_sign_off(path: str | os.PathLike[str], dossier: Dossier) -> SignOff:
    """Read a decision about the results of a dossier.

    Raises
    ------
    UsageError
        If the file cannot be read, a key is unknown or missing or of the wrong type, the conditions do not fit the
        decision, or it was made on other results.
    """
    file = Path(path)
    where = f" at {str(file)!r}"
    try:
        table: Any = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"sign_off must be a readable file, got {str(file)!r} ({error.strerror}).") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"sign_off must be TOML, got {str(file)!r}: {error}.") from error
    for key in table:
        if key not in KEYS:
            raise UsageError(f"key must be one of {', '.join(KEYS)}, got {key!r}{where}.")
    for key in TEXTS:
        value = table.get(key, "")
        if not isinstance(value, str) or len(value) > LONGEST:
            given = f"{len(value):,} characters" if isinstance(value, str) else repr(value)
            raise UsageError(f"{key} must be a text of at most {LONGEST:,} characters, got {given}{where}.")
        if key in ("name", "role") and not value.strip():
            raise UsageError(f"{key} must say something, got {value!r}{where}.")
    date = table.get("date")
    if isinstance(date, datetime.datetime) or not isinstance(date, datetime.date):
        raise UsageError(f"date must be a date such as 2026-11-25, got {date!r}{where}.")
    decision = table.get("decision")
    if decision not in DECISIONS:
        raise UsageError(f"decision must be one of {', '.join(DECISIONS)}, got {decision!r}{where}.")
    conditions, results = (table.get(key, "").strip() for key in ("conditions", "results"))
    if bool(conditions) != (decision == "accept with conditions"):
        must = "stated" if decision == "accept with conditions" else "left out"
        raise UsageError(f"conditions must be {must} to {decision}, got {conditions!r}{where}.")
    if results and (not re.fullmatch("[0-9a-f]{64}", results) or results != results_digest(dossier)):
        here = results_digest(dossier)
        raise UsageError(f"results must be the digest of these results, {here}, got {results[:64]!r}{where}.")
    return SignOff(table["name"].strip(), table["role"].strip(), date.isoformat(), decision, conditions, results)
