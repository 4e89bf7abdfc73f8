"""Result of an audit of scores, and its saved form (schema `dpaudit.scores/1`, published in `dpaudit/schemas/`)."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from typing import Any

from dpaudit.arguments import check_among
from dpaudit.errors import UsageError
from dpaudit.results.saving import Saved, read_saved
from dpaudit.results.shown import Shown
from dpaudit.results.trade_off import TradeOffPoint
from dpaudit.results.verdicts import Verdict

SCHEMA = "dpaudit.scores/1"
ASSUME = ("nothing", "independent")  # what a verdict may rest on, beside the assumptions of the design
NUMBERS = {  # which bounds cannot do without
    "budget", "delta", "confidence", "epsilon_lower", "parameter_lower", "ceiling", "parameter_ceiling", "seconds",
}  # fmt: skip
REFUTED_AT = 0.01  # p-value from which on independence is taken to be false: the least that 99 drawn orders give


@dataclasses.dataclass(frozen=True)
class GuessRecord:
    """The guesses of one rule in one run, or of one rule among several.

    `share` is its part of the error rate; `canaries` those it could have guessed on.
    """

    rule: str
    guesses: int
    correct: int
    canaries: int
    share: float


@dataclasses.dataclass(frozen=True)
class IndependentBound:
    """Bounds that hold together with an audit's confidence if canaries are answered independently.

    Attributes
    ----------
    epsilon_lower, parameter_lower : float
        As of the audit.
    ceiling, parameter_ceiling : float
        The same, had every guess been right.
    p_value : float or None
        Of the test that no canary's score depends on its neighbours (`dpaudit.scores.dependence`); None if the order of
        canaries is lost. A coin that is tossed once for all canaries leaves no trace in one run.
    """

    epsilon_lower: float
    parameter_lower: float
    ceiling: float
    parameter_ceiling: float
    p_value: float | None

    @property
    def is_refuted(self) -> bool:
        """Tell whether the test says that canaries are not answered independently."""
        return self.p_value is not None and self.p_value <= REFUTED_AT

    def notes(self, assume: str) -> tuple[str, ...]:
        """Notes on the test of the assumption, where it is worth a sentence."""
        if self.is_refuted:
            what = (
                "Scores of neighbouring canaries go together: the bound for independent canaries is not to be trusted"
            )
            rests = ", and the verdict rests on the other one" if assume == "independent" else ""
            return (f"{what}{rests}. (Their order in the files must say nothing of them.)",)
        if self.p_value is None:
            return (
                "Nothing was tested of whether canaries are answered independently: the scores are sorted, or too few.",
            )
        return ()


@dataclasses.dataclass(frozen=True)
class ScoresResult(Saved, Shown):
    """An audit from scores, with what is needed to repeat it.

    All bounds hold together with probability `confidence`, under the assumptions.

    Attributes
    ----------
    claim, parameter : str
        The claim, and the name of what it promises.
    budget : float
        The promised value of the parameter.
    delta : float
        At which epsilon is reported: the claim's own, or 1e-6.
    design : {"one-run", "many-runs", "sequential", "paired"}
    confidence : float
    seed : int
        Of ties and coins.
    scores_in, scores_out : int
        Numbers of scores.
    epsilon_lower : float
        Epsilon at `delta` is at least this.
    parameter_lower : float
        The claim's parameter is at least this; above the budget exactly when the verdict is "violated".
    ceiling, parameter_ceiling : float
        The same two bounds, had every guess been right: this many scores cannot show more.
    trade_off : tuple of TradeOffPoint
    guesses : tuple of GuessRecord
        Of one run; empty for many runs.
    decided_after : int or None
        Many runs: scores after which the bets had rejected the claim; in the order of the runs if the design is
        sequential. None if they did not.
    log_wealth : float or None
        Many runs: the largest log wealth against the claim.
    assumptions, notes : tuple of str
    seconds : float
    environment : dict
    assume : {"nothing", "independent"}
        What the caller supposed beforehand.
    independent : IndependentBound or None
        One run and pairs: the bounds if canaries are answered independently. They hold with the same confidence by
        themselves; the other bounds do not need that.
    """

    claim: str
    parameter: str
    budget: float
    delta: float
    design: str
    confidence: float
    seed: int
    scores_in: int
    scores_out: int
    epsilon_lower: float
    parameter_lower: float
    ceiling: float
    parameter_ceiling: float
    trade_off: tuple[TradeOffPoint, ...]
    guesses: tuple[GuessRecord, ...]
    decided_after: int | None
    log_wealth: float | None
    assumptions: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float
    environment: dict[str, str]
    assume: str = "nothing"
    independent: IndependentBound | None = None

    schema = SCHEMA
    decided_by = "bounds"

    @property
    def decisive(self) -> ScoresResult | IndependentBound:
        """The bounds that the verdict rests on: those for independent canaries if assumed, and not refuted."""
        second = self.independent
        return self if self.assume == "nothing" or second is None or second.is_refuted else second

    @property
    def verdict(self) -> Verdict:
        """ "violated" if the bound is above the budget; "inconclusive" if even perfect guesses could not have been."""
        if self.decisive.parameter_lower > self.budget:
            return "violated"
        return "not_refuted" if self.decisive.parameter_ceiling > self.budget else "inconclusive"

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> ScoresResult:
        """The result of the content of scores.json; its verdict must be the one that its bounds give."""
        result = super().from_dict(record)
        check_among("assume", result.assume, ASSUME)
        for one in (result, *([result.independent] if result.independent is not None else [])):
            for name in NUMBERS & vars(one).keys():
                if math.isnan(getattr(one, name)):
                    raise UsageError(f"{name} must be a number, got null.")
        return result


def load_scores(path: str | os.PathLike[str]) -> ScoresResult:
    """Read a result that `ScoresResult.save` wrote.

    Raises
    ------
    UsageError
        If there is no such file, it is not a result of scores, or a field is of another type.
    """
    result: ScoresResult = read_saved(path, {SCHEMA: ScoresResult.from_dict})[0]
    return result
