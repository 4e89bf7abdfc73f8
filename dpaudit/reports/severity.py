"""Severity of a broken promise, as far as the result tells: marginal, clear or severe, with the rule that says so.

A grade rests on a lower bound that holds at the confidence of the result, so that it is too high only where the bound
is. One rule is no bound: a guessing rule that was hardly ever wrong is reported as what was observed.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

from dpaudit.reports import wording
from dpaudit.reports.words import said, words
from dpaudit.results.model import ZERO_BUDGET_LOSS, AuditResult, Finding

Grade = Literal["marginal", "clear", "severe"]
GRADES: tuple[Grade, ...] = ("marginal", "clear", "severe")
SEVERE_RATIO = 10.0  # times the promise
PRECISION = 1.1  # times the promise, where the result does not say which excess it would have found
TELL_GUESSES, TELL_WRONG = 100, 0.01  # a near-deterministic tell: so many guesses, at most this share of them wrong
NO_SCALE = 2.0**18  # bounds on the scale of a profile are looked for up to 2^19 and more: there it covers nothing
FIRST_PROOF: str = words("severity.first_proof")
RULE = said(
    "severity.rule", excess=PRECISION - 1.0, times=SEVERE_RATIO, wrong=TELL_WRONG, guesses=TELL_GUESSES,
    zero=ZERO_BUDGET_LOSS,
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Severity:
    """The grade of a violated pair, and what of the rule decided it (`reason`).

    `is_least`: the audit stopped at the first proof, so that the true grade may be higher. `ratio` is the proven loss
    over the promise (of a promise of 0 over 0.1 nats); `harm` what that tells somebody from one answer, or empty.
    """

    grade: Grade
    is_least: bool
    ratio: float
    reason: str
    harm: str = ""

    @property
    def place(self) -> str:
        """The grade as one of three; "at least 1 of 3, marginal" where the audit stopped at the first proof."""
        least = "at least " if self.is_least and self.grade != "severe" else ""
        return f"{least}{GRADES.index(self.grade) + 1} of {len(GRADES)}, {self.grade}"

    @property
    def meaning(self) -> str:
        """Say what the grade says, for a reader who does not know the rule."""
        return said(f"severity.{self.grade}")


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
        # Validity: the size of a loss, and the harm of one output, suppose independent draws.
        graded = [] if wording.dependence_sentence(result) else [severity_of(result, one) for one in result.violated]
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
    One answer can make somebody at least 83.2% sure which input it came from; promised: at most 73.11%.
    >>> print(harm_text(S(epsilon_lower=1.0001, budget=S(epsilon=1.0, delta=0.0), parameter="epsilon")))
    One answer can make somebody at least 73.1% sure which input it came from, which is more than was promised.
    """
    proven = finding.epsilon_lower
    if not proven > 0.0:
        return ""
    sure, promised = math.floor(1e4 / (1.0 + math.exp(-proven))) / 100.0, ""
    if finding.parameter == "epsilon" and finding.budget.epsilon < proven:
        allowed = math.ceil(1e4 / (1.0 + math.exp(-finding.budget.epsilon))) / 100.0
        delta = finding.budget.delta
        rare = said("severity.rare", delta=wording.number_text(delta)) if delta else ""
        promised = said("severity.promised" if sure > allowed else "severity.more", allowed=allowed, rare=rare)
    return said("severity.harm" if sure < 100.0 else "severity.certain", sure=sure, promised=promised)


def _graded(result: AuditResult, finding: Finding) -> Severity:
    stage, lower = finding.severity, finding.parameter_lower
    is_further = stage is not None and stage.parameter_lower >= lower  # False for NaN
    lower = stage.parameter_lower if stage is not None and is_further else lower
    reference = finding.parameter_budget if finding.parameter_budget > 0.0 else ZERO_BUDGET_LOSS
    ratio = lower / reference
    is_least = not is_further and result.mode != "fixed" and finding.log_wealth is not None
    precision, tell = _precision(finding), _tell(finding)
    if finding.parameter == "scale" and ratio >= NO_SCALE:
        return Severity("severe" if tell else "clear", is_least, math.inf, tell or said("severity.unscaled"))
    if ratio >= SEVERE_RATIO or tell:
        is_large = ratio >= SEVERE_RATIO
        return Severity("severe", is_least, ratio, said("severity.times", times=SEVERE_RATIO) if is_large else tell)
    grade: Grade = "clear" if ratio > precision else "marginal"
    which, shown = "above" if grade == "clear" else "within", wording.number_text(precision, 3)
    reason = said(f"severity.{which}", precision=shown)
    if finding.parameter_budget == 0.0:
        reason = said("severity.of_zero", lower=wording.lower_text(lower, 3))
    return Severity(grade, is_least, ratio, reason)


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
    """Say what was observed of a rule that is hardly ever wrong; empty where no rule is."""
    witness = finding.witness
    guesses = witness.correct + witness.wrong if witness is not None else 0
    if witness is None or guesses < TELL_GUESSES or witness.wrong > TELL_WRONG * guesses:
        return ""
    return said("severity.tell", wrong=f"{witness.wrong:,}" if witness.wrong else "none", guesses=guesses)
