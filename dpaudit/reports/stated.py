"""Tables of TOML that somebody wrote, read key by key: what is unknown or of another kind is refused with its place."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpaudit.errors import UsageError

MAX_CHARACTERS = 4000  # of a text


def is_number(value: Any) -> bool:
    """Tell whether this is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


class Stated:
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

    def text(self, key: str, is_needed: bool = False) -> str:
        """A text without spaces at its ends, empty where none is stated; with `is_needed` it has to say something."""
        value = self.values.get(key, "")
        if not isinstance(value, str) or len(value) > MAX_CHARACTERS:
            self.refuse(key, f"be a text of at most {MAX_CHARACTERS:,} characters", value)
        if is_needed and not value.strip():
            self.refuse(key, "say something", value)
        return str(value).strip()

    def one_of(self, key: str, known: Sequence[str], otherwise: str | None = None) -> str:
        """One of the texts that are known."""
        value = self.values.get(key, otherwise)
        if value not in known:
            self.refuse(key, f"be one of {', '.join(known)}", value)
        return str(value)

    def date(self, key: str) -> str:
        """A date in ISO 8601."""
        value = self.values.get(key)
        if isinstance(value, datetime.datetime) or not isinstance(value, datetime.date):
            self.refuse(key, "be a date such as 2026-01-31", value)
        return str(value)

    def amount(self, key: str) -> float:
        """A finite number of at least 0."""
        value = self.values.get(key)
        if not is_number(value) or value < 0.0:  # type: ignore[operator]
            self.refuse(key, "be a finite number of at least 0", value)
        return float(value)  # type: ignore[arg-type]

    def table(self, key: str, keys: Sequence[str]) -> Stated:
        """A table within this one, empty where none is stated."""
        return Stated(self.values.get(key, {}), keys, self.where, ".".join(filter(None, (self.name, key))))

    def tables(self, key: str, keys: Sequence[str]) -> list[Stated]:
        """A list of tables, each with all of these keys."""
        entries = self.values.get(key, [])
        if not isinstance(entries, list):
            self.refuse(key, "be a list of tables", entries)
        found = [Stated(entry, keys, self.where, f"{self.name}.{key}") for entry in entries]
        for one in found:
            if missing := next((name for name in keys if name not in one), None):
                raise UsageError(f"{one.name} must have {missing}, got {dict(one.values)!r}{self.where}.")
        return found
