"""How bad a broken promise is, as far as the result tells: marginal, clear or severe, with the rule that says so.

A grade rests on a lower bound that holds at the confidence of the result, so that it is too high only where the bound
is. One rule is no bound: a guessing rule that was hardly ever wrong is reported as what was observed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Literal

from dpaudit.reports import wording
from dpaudit.results.model import ZERO_BUDGET_LOSS, AuditResult, Finding

Grade = Literal["marginal", "clear", "severe"]
GRADES: tuple[Grade, ...] = ("marginal", "clear", "severe")
SEVERE_RATIO = 10.0  # times the promise
PRECISION = 1.1  # times the promise, where the result does not say which excess it would have found
BEST_CASE = "the audit's precision in the best case"
TELL_GUESSES, TELL_WRONG = 100, 0.01  # a near-deterministic tell: so many guesses, at most this share of them wrong
MEANINGS: Mapping[Grade, str] = {
    "marginal": "the test can just see the excess; the true one may be larger",
    "clear": "the test sees the excess plainly",
    "severe": "the answers tell the two inputs apart far too well",
}
FIRST_PROOF = "The audit stopped at the first proof: the loss may be far larger."
RULE = (
    "Marginal: the proven loss exceeds the promise by no more than the excess that a test which knows the event would "
    "have found with 90% probability, the precision in the best case (by no more than "
    f"{PRECISION - 1.0:.0%} where that is not known). Clear: by more. Severe: the proven loss is at least "
    f"{SEVERE_RATIO:g} times the promise, or a guessing rule was wrong in at most {TELL_WRONG:.0%} of at least "
    f"{TELL_GUESSES} guesses, which is an observation without an error rate of its own. Where nothing at all may leak, "
    f"the loss is compared with {ZERO_BUDGET_LOSS:g} nats; where no larger epsilon covers what leaks, it is clear. An "
    "audit that stops at the first proof knows only the least grade."
)
NO_SCALE = 2.0**18  # bounds on the scale of a profile are looked for up to 2^19 and more: there it covers nothing
UNSCALED = "no larger epsilon covers what leaks, at whatever multiple of the promise"


@dataclasses.dataclass(frozen=True)
class Severity:
    """The grade of a violated pair.

    Attributes
    ----------
    grade : {"marginal", "clear", "severe"}
    is_least : bool
        Whether the audit stopped at the first proof, so that the true grade may be higher.
    ratio : float
        The proven loss over the promise; of a promise of 0 over 0.1 nats.
    reason : str
        What of the rule decided.
    harm : str
        What the proven loss lets somebody conclude from one answer, beside what the promise allows; else empty.
    """

    grade: Grade
    is_least: bool
    ratio: float
    reason: str
    harm: str = ""

    @property
    def words(self) -> str:
        """The grade in words: "clear", or "at least marginal" where the audit stopped at the first proof."""
        return f"at least {self.grade}" if self.is_least and self.grade != "severe" else self.grade

    @property
    def place(self) -> str:
        """The grade as one of three, for a reader who does not know their names."""
        least = "at least " if self.is_least and self.grade != "severe" else ""
        return f"{least}{GRADES.index(self.grade) + 1} of {len(GRADES)}, {self.grade}"

    @property
    def meaning(self) -> str:
        """What the grade says, for a reader who does not know the rule."""
        return MEANINGS[self.grade]


def severity_of(result: AuditResult, finding: Finding | None = None) -> Severity | None:
    """The severity of a violated pair of a result, by default of the gravest one; None where nothing is violated.

    A result whose audit went on after the rejection holds that stage in the finding's `severity`, with a lower bound on
    the claim's parameter (`parameter_lower`). Without one, the bound at the first proof counts.

    Examples
    --------
    >>> from dpaudit import PureDP, audit
    >>> result = audit(lambda data, size, rng: data + rng.laplace(size=size), PureDP(0.1), [(0.0, 1.0)], samples=4000,
    ...                mode="fixed", seed=1, floating_point=False)
    >>> severity_of(result).grade in ("clear", "severe")
    True
    """
    if finding is None:
        graded = [severity_of(result, one) for one in result.violated]
        known = [one for one in graded if one is not None]
        return max(known, key=lambda one: (GRADES.index(one.grade), one.ratio), default=None)
    if finding.verdict != "violated":
        return None
    return dataclasses.replace(_graded(result, finding), harm=harm_text(finding))


def harm_text(finding: Finding) -> str:
    """The certainty that one answer gives somebody who thought both inputs equally likely: proven, and promised.

    An output with a loss of epsilon turns odds of one to one into e^epsilon to one. A bound at a delta proves such an
    event too, so that delta excuses nothing of what is proven.

    Examples
    --------
    >>> from types import SimpleNamespace as S
    >>> print(harm_text(S(epsilon_lower=1.6, budget=S(epsilon=1.0, delta=0.0), parameter="epsilon")))
    One answer can make somebody at least 83.2% sure which input it came from; promised: at most 73.2%.
    """
    proven = finding.epsilon_lower
    if not proven > 0.0:
        return ""
    sure = math.floor(1000.0 / (1.0 + math.exp(-proven))) / 10.0
    text = f"One answer can make somebody at least {sure:g}% sure which input it came from"
    if finding.parameter != "epsilon" or not finding.budget.epsilon < proven:
        return f"{text}."
    allowed = math.ceil(1000.0 / (1.0 + math.exp(-finding.budget.epsilon))) / 10.0
    rare = f", but with probability {wording.number_text(finding.budget.delta)}" if finding.budget.delta else ""
    return f"{text}; promised: at most {allowed:g}%{rare}."


def _graded(result: AuditResult, finding: Finding) -> Severity:
    stage = getattr(finding, "severity", None)
    further = getattr(stage, "parameter_lower", stage)
    lower, is_further = finding.parameter_lower, False
    if isinstance(further, float) and further >= lower:  # False for NaN
        lower, is_further = further, True
    reference = finding.parameter_budget if finding.parameter_budget > 0.0 else ZERO_BUDGET_LOSS
    ratio = lower / reference
    is_least = not is_further and result.mode != "fixed" and finding.log_wealth is not None
    precision = _precision(finding)
    if finding.parameter == "scale" and ratio >= NO_SCALE:
        tell = _tell(finding)
        return Severity("severe" if tell else "clear", is_least, math.inf, tell or UNSCALED)
    if finding.parameter_budget == 0.0 and not _tell(finding) and ratio < SEVERE_RATIO:
        told = f"where an epsilon of 0 is promised, the proven one is {wording.number_text(lower, 3)}"
        return Severity("clear" if ratio > precision else "marginal", is_least, ratio, told)
    if ratio >= SEVERE_RATIO:
        return Severity("severe", is_least, ratio, f"the proven loss is at least {SEVERE_RATIO:g} times the promise")
    tell = _tell(finding)
    if tell:
        return Severity("severe", is_least, ratio, tell)
    if ratio > precision:
        reason = f"the proven loss is above {wording.number_text(precision, 3)} times the promise, {BEST_CASE}"
        return Severity("clear", is_least, ratio, reason)
    reason = f"the proven loss is within {wording.number_text(precision, 3)} times the promise, {BEST_CASE}"
    return Severity("marginal", is_least, ratio, reason)


def _precision(finding: Finding) -> float:
    """The least loss that a test which knows the event finds with 90% probability, over what the claim allows.

    The best case it is, and not what an audit learns: the event of a violated pair was found, and what is graded is how
    far its bound is from the promise.
    """
    power = finding.power
    if power is None or not power.at_budget > 0.0 or not math.isfinite(power.detectable):
        return PRECISION
    return max(1.0, power.detectable / power.at_budget)


def _tell(finding: Finding) -> str:
    """What was observed of a rule that is hardly ever wrong; empty where no rule is."""
    witness = finding.witness
    guesses = witness.correct + witness.wrong if witness is not None else 0
    if witness is None or guesses < TELL_GUESSES or witness.wrong > TELL_WRONG * guesses:
        return ""
    wrong = "in none" if witness.wrong == 0 else f"in {witness.wrong:,}"
    return f"a guessing rule was wrong {wrong} of {guesses:,} guesses (observed, without an error rate of its own)"
