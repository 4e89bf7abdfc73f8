"""What the test of a mechanism's error bounds found, and its saved form (schema `dpaudit.utility/1`)."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from typing import Any

from dpaudit.errors import UsageError
from dpaudit.results.model import EXIT_STATUS, VERDICTS, Verdict, to_json, write_whole
from dpaudit.results.saved_inputs import saved_input
from dpaudit.results.saving import decoded, from_json, utf8
from dpaudit.results.shown import Shown

SCHEMA = "dpaudit.utility/1"


@dataclasses.dataclass(frozen=True)
class UtilityFinding:
    """One bound on one input.

    Attributes
    ----------
    bound, kind : str
        Name of the bound; "tail" or "expectation".
    input_id : str
        Short form of the input.
    data : object
        The input.
    found_by_search : bool
    limit : float
        The bound on this input: of the loss where the kind is "tail", else of its mean.
    allowed : float
        What the measured quantity may be: the failure probability, or the limit itself.
    verdict : {"violated", "not_refuted", "inconclusive", "error"}
    measured, lower, upper : float
        The share of losses above the limit, or their mean, with confidence limits; NaN where nothing was measured.
    p_value : float
        Of "the bound holds"; for expected losses the inverse of the wealth.
    detectable : float
        The least quantity that the test would have found with 90% probability.
    error_share : float
        The part of 1 - confidence that is this finding's.
    samples : int
    message : str
        What went wrong, if the verdict is "error".
    says_nothing : bool
        Whether no output can have a loss above the limit; then the verdict is "inconclusive".
    """

    bound: str
    kind: str
    input_id: str
    data: Any
    found_by_search: bool
    limit: float
    allowed: float
    verdict: Verdict
    measured: float = math.nan
    lower: float = 0.0
    upper: float = math.inf
    p_value: float = 1.0
    detectable: float = math.inf
    error_share: float = 0.0
    samples: int = 0
    message: str = ""
    says_nothing: bool = False

    @property
    def told(self) -> Verdict:
        """The verdict as reports show it: not settled where the measured error is above its bound and may be within.

        >>> UtilityFinding("mean", "expectation", "x", 0, False, 1.0, 1.0, "not_refuted", 1.07, 0.93, 1.22).told
        'inconclusive'
        """
        return "inconclusive" if self.verdict == "not_refuted" and self.measured > self.allowed else self.verdict

    @property
    def ratio(self) -> float | None:
        """Measured over allowed; far below 1 for a loose bound. None where nothing is allowed."""
        return self._over(self.measured)

    @property
    def ratio_lower(self) -> float | None:
        """Lower limit of the ratio; above 1 exactly when the verdict is "violated"."""
        return self._over(self.lower)

    @property
    def ratio_upper(self) -> float | None:
        """Upper limit of the ratio."""
        return self._over(self.upper)

    @property
    def detectable_ratio(self) -> float | None:
        """`detectable` over what is allowed."""
        return self._over(self.detectable)

    def _over(self, value: float) -> float | None:
        return value / self.allowed if self.allowed > 0.0 else None

    def to_dict(self) -> dict[str, Any]:
        """The finding as strict JSON values."""
        names = ("ratio", "ratio_lower", "ratio_upper", "detectable_ratio")
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        own = to_json({**fields, **{name: getattr(self, name) for name in names}, "data": None})
        return {**own, "data": saved_input(self.data)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> UtilityFinding:
        """The finding of an entry of `findings` in utility.json; a number that is null there becomes NaN."""
        found: UtilityFinding = decoded(cls, record)
        return found


@dataclasses.dataclass(frozen=True)
class UtilityResult(Shown):
    """All findings of one call, with what is needed to repeat it.

    Attributes
    ----------
    confidence : float
        For the whole call: all verdicts and intervals.
    seed : int
    samples : int
        Runs of the mechanism, those of the search included.
    seconds : float
    findings : tuple of UtilityFinding
    bounds : tuple of str
        The bounds in words.
    subject, environment, options : dict
    """

    confidence: float
    seed: int
    samples: int
    seconds: float
    findings: tuple[UtilityFinding, ...]
    bounds: tuple[str, ...]
    subject: dict[str, Any]
    environment: dict[str, str]
    options: dict[str, Any]

    @property
    def verdict(self) -> Verdict:
        """The first of violated, error, inconclusive and not_refuted that any finding has."""
        found = {finding.verdict for finding in self.findings}
        return next((verdict for verdict in VERDICTS if verdict in found), "inconclusive")

    @property
    def told(self) -> Verdict:
        """The verdict as reports show it (`UtilityFinding.told`)."""
        found = {finding.told for finding in self.findings}
        return next((verdict for verdict in VERDICTS if verdict in found), "inconclusive")

    @property
    def exit_status(self) -> int:
        """As of an audit: 0 not refuted, 1 violated, 3 error, 5 inconclusive."""
        return EXIT_STATUS[self.verdict]

    @property
    def worst(self) -> UtilityFinding | None:
        """The finding of the worst verdict with the largest ratio of measured to allowed."""

        def key(finding: UtilityFinding) -> tuple[int, float]:
            ratio = finding.ratio
            return VERDICTS.index(finding.verdict), -(math.inf if ratio is None or math.isnan(ratio) else ratio)

        return min(self.findings, key=key, default=None)

    def to_dict(self) -> dict[str, Any]:
        """The result as strict JSON values."""
        record: dict[str, Any] = to_json(
            {
                "schema": SCHEMA,
                "verdict": self.verdict,
                "confidence": self.confidence,
                "seed": self.seed,
                "samples": self.samples,
                "seconds": round(self.seconds, 3),
                "subject": self.subject,
                "environment": self.environment,
                "options": self.options,
                "bounds": self.bounds,
            }
        )
        return {**record, "findings": [finding.to_dict() for finding in self.findings]}

    def to_text(self) -> str:
        """The result as strict JSON, with a line end."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False, ensure_ascii=False) + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result as JSON: complete, or not at all."""
        write_whole(path, utf8(self.to_text()))

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> UtilityResult:
        """The result of the content of utility.json; the verdict it states must be the one that its findings have."""
        if record.get("schema") != SCHEMA:
            raise UsageError(f"schema must be {SCHEMA!r}, got {record.get('schema')!r}.")
        values = {field.name: record[field.name] for field in dataclasses.fields(cls)}
        values["findings"] = tuple(UtilityFinding.from_dict(entry) for entry in record["findings"])
        values["bounds"] = tuple(record["bounds"])
        values["options"] = from_json(record["options"])
        result = cls(**values)
        if record["verdict"] != result.verdict:
            raise UsageError(f"verdict must be that of the findings, {result.verdict!r}, got {record['verdict']!r}.")
        return result
