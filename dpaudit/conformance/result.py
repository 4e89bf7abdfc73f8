"""Results of the checks: one record a check, and the saved form (schema `dpaudit.check/1`).

Statuses: the four verdicts `violated`, `not_refuted`, `inconclusive` and `error`, and two that decide nothing:
`skipped` (with the reason) and `xfail` (a known failure, which failed). A known failure that no longer fails is an
`error`, as its reason is out of date.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any, Literal

from dpaudit.results.codec import ROUNDED
from dpaudit.results.saving import Saved
from dpaudit.results.shown import Shown
from dpaudit.results.verdicts import VERDICTS, Verdict, gravest

SCHEMA = "dpaudit.check/1"
Status = Literal[Verdict, "xfail", "skipped"]
STATUSES: tuple[Status, ...] = (*VERDICTS, "xfail", "skipped")


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
    status: Status
    message: str
    reason: str
    error_share: float
    seconds: float = dataclasses.field(metadata={"write": lambda seconds: round(seconds, 4)})


@dataclasses.dataclass(frozen=True)
class CheckResult(Saved, Shown):
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

    records: tuple[CheckRecord, ...] = dataclasses.field(metadata={"name": "checks"})
    mechanisms: tuple[dict[str, Any], ...]
    error_rate: float
    samples: int
    seed: int
    seconds: float = dataclasses.field(metadata=ROUNDED)
    environment: dict[str, str]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)

    schema = SCHEMA
    decided_by = "checks"
    derived = ("counts",)

    @property
    def verdict(self) -> Verdict:
        """The first of violated, error, inconclusive and not_refuted among the checks; inconclusive without any."""
        return gravest({record.status for record in self.records})

    @property
    def counts(self) -> dict[str, int]:
        """Number of checks of each status, in the order of `STATUSES`."""
        found: Counter[str] = Counter(record.status for record in self.records)
        return {status: found[status] for status in STATUSES if found[status]}

    def of_status(self, status: str) -> tuple[CheckRecord, ...]:
        """The records of one status."""
        return tuple(record for record in self.records if record.status == status)
