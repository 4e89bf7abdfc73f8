"""What an audit of scores found, and its saved form (schema `dpaudit.scores/1`, published in `dpaudit/schemas/`)."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from typing import Any

from dpaudit.errors import UsageError
from dpaudit.results.model import EXIT_STATUS, VERDICTS, Verdict
from dpaudit.results.saving import as_float, from_json, read_saved, to_json, utf8, write_whole
from dpaudit.results.trade_off import TradeOffPoint

SCHEMA = "dpaudit.scores/1"


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

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> GuessRecord:
        """The record of an entry of `guesses` in scores.json."""
        values = {field.name: record[field.name] for field in dataclasses.fields(cls)}
        return cls(**{**values, "share": as_float(record["share"])})


@dataclasses.dataclass(frozen=True)
class ScoresResult:
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

    @property
    def verdict(self) -> Verdict:
        """ "violated" if the bound is above the budget; "inconclusive" if even perfect guesses could not have been."""
        if self.parameter_lower > self.budget:
            return "violated"
        return "not_refuted" if self.parameter_ceiling > self.budget else "inconclusive"

    @property
    def exit_status(self) -> int:
        """As of an audit: 0 not refuted, 1 violated, 5 inconclusive."""
        return EXIT_STATUS[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """The result as strict JSON values."""
        record: dict[str, Any] = to_json({"schema": SCHEMA, "verdict": self.verdict, **dataclasses.asdict(self)})
        return record

    def to_text(self) -> str:
        """The result as strict JSON, with a line end."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False, ensure_ascii=False) + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result as JSON: complete, or not at all."""
        write_whole(path, utf8(self.to_text()))

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> ScoresResult:
        """The result of the content of scores.json; its verdict must be the one that its bounds give."""
        if record.get("schema") != SCHEMA:
            raise UsageError(f"schema must be {SCHEMA!r}, got {record.get('schema')!r}.")
        values = {field.name: record[field.name] for field in dataclasses.fields(cls)}
        for name in _NUMBERS:
            values[name] = as_float(values[name])
            if math.isnan(values[name]):
                raise UsageError(f"{name} must be a number, got null.")
        values["log_wealth"] = from_json(values["log_wealth"])
        values["trade_off"] = tuple(TradeOffPoint.from_dict(entry) for entry in record["trade_off"])
        values["guesses"] = tuple(GuessRecord.from_dict(entry) for entry in record["guesses"])
        values["assumptions"], values["notes"] = tuple(record["assumptions"]), tuple(record["notes"])
        result = cls(**values)
        if record["verdict"] not in VERDICTS or record["verdict"] != result.verdict:
            raise UsageError(f"verdict must be that of the bounds, {result.verdict!r}, got {record['verdict']!r}.")
        return result


_NUMBERS = (
    "budget", "delta", "confidence", "epsilon_lower", "parameter_lower", "ceiling", "parameter_ceiling", "seconds",
)  # fmt: skip


def load_scores(path: str | os.PathLike[str]) -> ScoresResult:
    """Read a result that `ScoresResult.save` wrote.

    Raises
    ------
    UsageError
        If there is no such file, it is not a result of scores, or a field is of another type.
    """
    result: ScoresResult = read_saved(path, {SCHEMA: ScoresResult.from_dict})[0]
    return result
