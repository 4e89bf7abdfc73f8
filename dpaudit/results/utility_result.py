"""Result of the test of a mechanism's error bounds, and its saved form (schema `dpaudit.utility/1`)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal

from dpaudit.results.codec import ROUNDED, Form, from_json
from dpaudit.results.saved_inputs import saved_input
from dpaudit.results.saving import Saved
from dpaudit.results.shown import Shown
from dpaudit.results.verdicts import VERDICTS, Verdict, gravest

SCHEMA = "dpaudit.utility/1"


@dataclasses.dataclass(frozen=True)
class UtilityFinding(Form):
    """One bound on one input.

    Attributes
    ----------
    bound : str
        Its name.
    kind : {"tail", "expectation"}
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
    measured : float
        The share of losses above the limit, or their mean; NaN where nothing was measured.
    lower, upper : float
        Its confidence limits.
    p_value : float
        Of "the bound holds"; for expected losses the inverse of the wealth.
    detectable : float
        The least quantity that the test would have found with 90% probability.
    error_share : float
        The part of 1 - confidence that is this finding's.
    samples : int
    message : str
        What went wrong, if the verdict is "error"; why draws depend on each other, where it is "inconclusive" for that.
    says_nothing : bool
        Whether no output can have a loss above the limit; then the verdict is "inconclusive".
    """

    bound: str
    kind: Literal["tail", "expectation"]
    input_id: str
    data: Any = dataclasses.field(metadata={"write": saved_input})
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

    derived = ("ratio", "ratio_lower", "ratio_upper", "detectable_ratio")

    @property
    def status(self) -> Verdict:
        """The verdict as reports show it: not settled where the measured error is above its bound and may be within.

        >>> UtilityFinding("mean", "expectation", "x", 0, False, 1.0, 1.0, "not_refuted", 1.07, 0.93, 1.22).status
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


@dataclasses.dataclass(frozen=True)
class UtilityResult(Saved, Shown):
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
    seconds: float = dataclasses.field(metadata=ROUNDED)
    findings: tuple[UtilityFinding, ...]
    bounds: tuple[str, ...]
    subject: dict[str, Any]
    environment: dict[str, str]
    options: dict[str, Any]

    schema = SCHEMA
    decided_by = "findings"

    @property
    def verdict(self) -> Verdict:
        """The first of violated, error, inconclusive and not_refuted that any finding has."""
        return gravest({finding.verdict for finding in self.findings})

    @property
    def status(self) -> Verdict:
        """The verdict as reports show it (`UtilityFinding.status`)."""
        return gravest({finding.status for finding in self.findings})

    @property
    def worst(self) -> UtilityFinding | None:
        """The finding of the worst verdict with the largest ratio of measured to allowed."""

        def key(finding: UtilityFinding) -> tuple[int, float]:
            ratio = finding.ratio
            return VERDICTS.index(finding.verdict), -(math.inf if ratio is None or math.isnan(ratio) else ratio)

        return min(self.findings, key=key, default=None)

    @classmethod
    def _of_saved(cls, record: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**record, "options": from_json(record.get("options"))}
