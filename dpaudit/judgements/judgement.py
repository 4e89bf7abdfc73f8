"""A judgement: one verdict on a function and its claim, what it rests on, and what to do next.

The saved form (schema `dpaudit.judgement/1`, published in `dpaudit/schemas/`) is strict JSON.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
from collections.abc import Mapping
from typing import Any, Literal

from dpaudit.privacy.pairs import Pair
from dpaudit.reports.input_diff import apart
from dpaudit.reports.replay_command import is_readable
from dpaudit.results.codec import UNSAVED
from dpaudit.results.saved_inputs import is_digest, kept, restored
from dpaudit.results.saving import Saved, read_saved
from dpaudit.symbolic.tracing import OF_REAL_LAW

SCHEMA = "dpaudit.judgement/1"
Verdict = Literal["refuted", "proved", "not_refuted", "inconclusive", "error"]
VERDICTS: tuple[Verdict, ...] = ("refuted", "proved", "not_refuted", "inconclusive", "error")
By = Literal["recorded noise", "certificate", "statistics", ""]
EXIT_STATUS: Mapping[str, int] = {"refuted": 1, "proved": 0, "not_refuted": 0, "inconclusive": 5, "error": 3}
KEPT = "kept between"  # in a reason: then an audit can say nothing either, however large it is
OF_TIME = re.compile(r"\bmore (time|seconds)\b")  # in a reason: more of it may have the claim proved
MAX_PAIR = 300  # characters of a pair that is written into a command


@dataclasses.dataclass(frozen=True)
class Judgement(Saved):
    """Judgement of a function and its claim.

    Attributes
    ----------
    subject : dict
        Name, target, fingerprint and interface.
    claim : str
    verdict : {"refuted", "proved", "not_refuted", "inconclusive", "error"}
    by : {"recorded noise", "certificate", "statistics", ""}
        What the verdict rests on. The first two draw no numbers: they suppose that each primitive has the law that its
        arguments name, and that numbers are real.
    statement : str
        What was found, in a sentence or two.
    scope : str
        Of which inputs that is said, and what was never tried.
    places : tuple of str
        The lines of the program that are to blame, as "file:line", where they are known.
    pair_id : str
        Names the pair that the statement speaks of; empty where it speaks of none.
    pair : Pair or None
        That pair; None where a file does not hold its inputs.
    loss : float
        A lower bound on its loss in nats (at the claim's delta); NaN where none is known.
    error_rate : float
        Probability of "refuted" for a function that keeps its claim, at most; 0 of what is proved.
    guessed : str
        What was guessed of the inputs, and from what; empty where they were stated.
    next_step : str
        What to do next, in one sentence.
    seed, runs : int
    seconds : float
    searched : dict
        Of the search for the pair: `tried`, `lost` (pairs that could not be followed), `runs`, `seconds`, `is_cut`
        (by the limit of time), `distance` (in scales of the noise), `domain`.
    details : dict
        The saved forms of what it rests on: "audit", "certificate", "recorded", where there are such.
    """

    subject: dict[str, Any]
    claim: str
    verdict: Verdict
    by: By
    statement: str
    scope: str
    places: tuple[str, ...]
    pair_id: str
    pair: Pair | None = dataclasses.field(compare=False, default=None, kw_only=True, metadata=UNSAVED)
    loss: float
    error_rate: float
    guessed: str
    next_step: str
    seed: int
    runs: int
    seconds: float
    searched: dict[str, Any]
    details: dict[str, Any] = dataclasses.field(compare=False)

    schema = SCHEMA

    @property
    def exit_status(self) -> int:
        """Exit status of `dpaudit judge`: 1 refuted, 0 proved or not refuted, 5 inconclusive, 3 error."""
        return EXIT_STATUS[self.verdict]

    def __repr__(self) -> str:
        """The text that a prompt or a notebook shows: `text`, in brackets; `to_dict` has all that it holds."""
        return f"<Judgement {self.text()}>"

    def replay(self, path: str = "judgement.json") -> str:
        """The command that judges the pair again, on fresh draws where draws are what it rests on.

        `path` is where the judgement is saved, for inputs that cannot be written into a command.
        """
        if not self.pair_id:
            return ""
        target, given = self.subject.get("target"), path
        if not target or not is_readable(self.claim):  # then no command can name them
            return f"dpaudit.judge(mechanism, claim, pairs=[dpaudit.load_judgement({path!r}).pair])"
        if self.pair is not None:
            saved_inputs = [kept(side) for side in (self.pair.x, self.pair.x_prime)]
            text = ",".join(json.dumps(saved, allow_nan=False) for saved, _, _ in saved_inputs)
            if all(types is None and is_held for _, types, is_held in saved_inputs) and len(text) <= MAX_PAIR:
                given = text
        return f"dpaudit judge {shlex.quote(target)} --claim {shlex.quote(self.claim)} --pairs {shlex.quote(given)}"

    def text(self, path: str = "judgement.json") -> str:
        """The judgement for a person, in some lines."""
        said = {"not_refuted": "Not refuted"}.get(self.verdict, self.verdict.capitalize())
        how = f" ({self.by})" if self.by else ""
        lines = [f"{said}{how}: {self.claim}. {self.statement}".rstrip()]
        if self.pair_id and self.pair is not None:
            named = f"Pair: {self.pair.x_id} and {self.pair.x_prime_id}"  # long ones begin in the same way
            lines.append(": ".join(filter(None, (named, apart(self.pair.x, self.pair.x_prime)))))
        if self.places:
            lines.append(f"Line: {', '.join(self.places)}")
        lines.append(self.scope)
        if self.guessed:
            lines.append(self.guessed)
        if self.verdict == "refuted" and self.error_rate > 0.0:
            lines.append(f"A function that keeps its claim is refuted with probability at most {self.error_rate:g}.")
        lines.append(f"Next: {self.next_step}")
        if replay := self.replay(path):
            lines.append(f"Again: {replay}")
        lines.append(f"{self.runs:,} runs of the mechanism, {self.seconds:.3g} s, seed {self.seed}")
        return "\n".join(line for line in lines if line)

    def _to_saved(self, record: dict[str, Any]) -> dict[str, Any]:
        """With the inputs of the pair, each as a file keeps it."""
        record |= {"exit_status": self.exit_status, "replay": self.replay(), "inputs": None}
        if self.pair is not None:
            record["inputs"] = {"x_id": self.pair.x_id, "x_prime_id": self.pair.x_prime_id}
            for name in ("x", "x_prime"):
                saved, types, is_held = kept(getattr(self.pair, name))
                record["inputs"][name] = {"value": saved, "types": types, "held": is_held and not is_digest(saved)}
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Judgement:
        """The judgement of a saved form; `UsageError` names what is missing or of another type."""
        found, inputs = super().from_dict(record), record["inputs"]
        if inputs is None or not all(inputs[name]["held"] for name in ("x", "x_prime")):
            return found
        x, x_prime = (restored(inputs[name]["value"], inputs[name]["types"]) for name in ("x", "x_prime"))
        pair = Pair(x, x_prime, found.pair_id, inputs["x_id"], inputs["x_prime_id"])
        return dataclasses.replace(found, pair=pair)


def advice(verdict: Verdict, by: By, places: tuple[str, ...], why: str, is_listed: bool, is_guessed: bool) -> str:
    """Next thing to do; `why` is the reason why nothing is proved, empty where something is or no reason is known."""
    if verdict == "refuted":
        where = f" at {', '.join(places)}" if places else ""
        return f"Mend the function{where}, then run the command below again."
    if verdict == "error":
        return "Mend what the function raises or returns, then judge it again."
    if why and OF_REAL_LAW not in why and not OF_TIME.search(why):
        larger = "" if KEPT in why else " For a larger audit give more time (--seconds)."
        return f"For a proof change this, which more time does not: {why}.{larger}"
    if verdict == "inconclusive":
        return "Give more time (--seconds), or a function that returns many outputs a call (size)."
    if is_guessed:
        return "State the inputs with --domain, as they were guessed."
    if verdict == "proved":
        return "State a domain, if other inputs can occur." if is_listed else "Nothing, for these inputs."
    if by == "statistics":
        return "Give more time (--seconds) to find smaller leaks, or examples of your data with --examples."
    return "Give examples of your own data with --examples, if they differ from what was tried."


def load_judgement(path: str | os.PathLike[str]) -> Judgement:
    """A saved judgement.

    Raises
    ------
    UsageError
        If there is no such file, or it is no judgement.
    """
    found: Judgement = read_saved(path, {SCHEMA: Judgement.from_dict})[0]
    return found
