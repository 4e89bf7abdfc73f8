"""What the checks found: one record a check, and the saved form (schema `dpaudit.check/1`).

Statuses: the four verdicts `violated`, `not_refuted`, `inconclusive` and `error`, and two that decide nothing:
`skipped` (with the reason) and `xfail` (a known failure, which failed). A known failure that no longer fails is an
`error`, as its reason is out of date.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpaudit.errors import UsageError
from dpaudit.results.model import EXIT_STATUS, VERDICTS, Verdict, to_json, write_whole
from dpaudit.results.saving import utf8
from dpaudit.results.shown import Shown

SCHEMA = "dpaudit.check/1"
STATUSES = (*VERDICTS, "xfail", "skipped")


@dataclasses.dataclass(frozen=True)
class CheckRecord:
    """One check of one mechanism.

    Attributes
    ----------
    mechanism : str
        Its name in the result.
    name, demands : str
        The check and the property.
    status : str
        One of `STATUSES`.
    message : str
        What was seen, why it was skipped, or a remark.
    reason : str
        Why the failure is known, for `xfail`.
    error_share : float
        The part of the error rate that is this check's; 0 for one that chance cannot fail.
    seconds : float
    """

    mechanism: str
    name: str
    demands: str
    status: str
    message: str
    reason: str
    error_share: float
    seconds: float


@dataclasses.dataclass(frozen=True)
class CheckResult(Shown):
    """All checks of the mechanisms of one call.

    Attributes
    ----------
    records : tuple of CheckRecord
    mechanisms : tuple of dict
        `name` in the result, `claim`, `pairs` (how many were looked at), and the subject as in an audit's result.
    error_rate : float
        Of the whole list of one mechanism.
    samples, seed : int
    seconds : float
    environment : dict
    options : dict
        `states`: what of claim and pairs the mechanisms state themselves; `claim` and `pairs` as the command line was
        given them, for the line that runs checks again. Empty in files of older versions.
    """

    records: tuple[CheckRecord, ...]
    mechanisms: tuple[dict[str, Any], ...]
    error_rate: float
    samples: int
    seed: int
    seconds: float
    environment: dict[str, str]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """The first of violated, error, inconclusive and not_refuted among the checks; inconclusive without any."""
        found = {record.status for record in self.records}
        return next((verdict for verdict in VERDICTS if verdict in found), "inconclusive")

    @property
    def exit_status(self) -> int:
        """As of an audit: 0 not refuted, 1 violated, 3 error, 5 inconclusive."""
        return EXIT_STATUS[self.verdict]

    @property
    def counts(self) -> dict[str, int]:
        """How many checks have each status, in the order of `STATUSES`."""
        found = Counter(record.status for record in self.records)
        return {status: found[status] for status in STATUSES if found[status]}

    def of_status(self, status: str) -> tuple[CheckRecord, ...]:
        """The records of one status."""
        return tuple(record for record in self.records if record.status == status)

    def to_dict(self) -> dict[str, Any]:
        """The result as strict JSON values: the content of check.json."""
        record: dict[str, Any] = to_json(
            {
                "schema": SCHEMA,
                "verdict": self.verdict,
                "error_rate": self.error_rate,
                "samples": self.samples,
                "seed": self.seed,
                "seconds": round(self.seconds, 3),
                "counts": self.counts,
                "mechanisms": self.mechanisms,
                "environment": self.environment,
                "options": self.options,
                "checks": [dataclasses.asdict(one) | {"seconds": round(one.seconds, 4)} for one in self.records],
            }
        )
        return record

    def to_text(self) -> str:
        """The result as strict JSON, with a line end."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False, ensure_ascii=False) + "\n"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write check.json, complete or not at all; its path."""
        write_whole(path, utf8(self.to_text()))
        return Path(path)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> CheckResult:
        """The result of the content of check.json; the verdict it states must be the one that its checks have."""
        if record.get("schema") != SCHEMA:
            raise UsageError(f"schema must be {SCHEMA!r}, got {record.get('schema')!r}.")
        names = [field.name for field in dataclasses.fields(cls) if field.name not in ("records", "options")]
        values = {name: record[name] for name in names}
        values["options"] = record.get("options", {})
        values["mechanisms"] = tuple(dict(mechanism) for mechanism in record["mechanisms"])
        names = [field.name for field in dataclasses.fields(CheckRecord)]
        records = tuple(CheckRecord(**{name: entry[name] for name in names}) for entry in record["checks"])
        unknown = next((one.status for one in records if one.status not in STATUSES), None)
        if unknown is not None:
            raise UsageError(f"status must be one of {', '.join(STATUSES)}, got {unknown!r}.")
        result = cls(records=records, **values)
        if record["verdict"] != result.verdict:
            raise UsageError(f"verdict must be that of the checks, {result.verdict!r}, got {record['verdict']!r}.")
        return result
