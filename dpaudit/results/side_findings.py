"""Findings beside the claim: the low bits of the outputs, and whatever else was looked at.

None of it is a part of the verdict, the bounds or the ratio of an audit; each finding has an error rate of its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import Budget
from dpaudit.results.codec import Form

FloatingPointVerdict = Literal["leaks", "nothing_found", "not_applicable"]
SideStatus = Literal["found", "nothing_found", "not_applicable"]


@dataclasses.dataclass(frozen=True)
class FloatingPointPair:
    """Finding about the low bits of the outputs of one pair.

    Attributes
    ----------
    id, x_id, x_prime_id : str
        Names of the pair and of its two inputs.
    budget : Budget
        The claim for this pair as a point of its privacy profile: the line that was tested on the law of the doubles.
    verdict : {"leaks", "nothing_found"}
        "leaks" is `epsilon_lower` above the budget's epsilon.
    epsilon_lower : float
        Lower bound on epsilon at the budget's delta, of the law of the doubles, in nats. Simultaneous with the bounds
        of the other pairs of the check at its own error rate.
    p_value : float
        Of the exact test against the budget, before the error rate is divided.
    error_share : float
        The share of the check's error rate that this pair has.
    correct, wrong, abstained : int
        Labelled draws that the rule was tested on: never those it was fitted on.
    detectable_share : float
        In [0, 1], or inf: the smallest share of one input's outputs such that, if the other input could not give them
        and the rule knew them, the test would have found that with 90% probability. inf: none would have been found.
    description : str
        What the rule looks at, with counts; empty if no rule was found.
    rule : dict or None
        The rule as data, of a pair that leaks, for a replay; None in files of older versions.
    """

    id: str
    x_id: str
    x_prime_id: str
    budget: Budget
    verdict: Literal["leaks", "nothing_found"]
    epsilon_lower: float
    p_value: float
    error_share: float
    correct: int
    wrong: int
    abstained: int
    detectable_share: float
    description: str
    rule: dict[str, Any] | None = None


@dataclasses.dataclass(frozen=True)
class FloatingPointFinding(Form):
    """Result of the floating-point check: a finding of its own, never a part of the verdict, the bounds or the ratio.

    Attributes
    ----------
    verdict : {"leaks", "nothing_found", "not_applicable"}
        "leaks" if any pair does; "not_applicable" if nothing was tested.
    message : str
        Why it is not applicable, else empty.
    error_rate : float
        If the claim holds for the doubles too, P(verdict "leaks") is at most this; in any case so is P(some bound of
        the check exceeds its truth). Apart from `1 - confidence` of the audit.
    samples : int
        Runs of the mechanism that the check took, beside those of the audit.
    pairs : tuple of FloatingPointPair
        The examined pairs, the worst first.
    omitted : int
        Pairs of the audit that were not examined.
    """

    verdict: FloatingPointVerdict
    message: str
    error_rate: float
    samples: int = 0
    pairs: tuple[FloatingPointPair, ...] = ()
    omitted: int = 0

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> FloatingPointFinding:
        """The finding of `floating_point` of audit.json; the verdict must be the one that its pairs have."""
        finding = super().from_dict(record)
        leaks = any(pair.verdict == "leaks" for pair in finding.pairs)
        expected = "leaks" if leaks else "nothing_found" if finding.pairs else "not_applicable"
        if finding.verdict != expected:
            raise UsageError(f"verdict of floating_point must be {expected!r}, got {finding.verdict!r}.")
        return finding


@dataclasses.dataclass(frozen=True)
class SideFinding(Form):
    """Something that was looked at beside the claim: never a part of the verdict, the bounds or the ratio.

    Attributes
    ----------
    kind : str
        What was looked at, for example "timing" or "containment"; one word of lower case with underscores.
    status : {"found", "nothing_found", "not_applicable"}
    summary : str
        One sentence: what was found, or why it does not apply.
    error_rate : float or None
        The probability, at most, of "found" where there is nothing to find, apart from `1 - confidence` of the audit;
        None where no statistics are involved.
    details : dict
        What a reader needs to check or repeat it: strict JSON values, kind by kind.
    """

    kind: str
    status: SideStatus
    summary: str
    error_rate: float | None = None
    details: dict[str, Any] = dataclasses.field(default_factory=dict)
