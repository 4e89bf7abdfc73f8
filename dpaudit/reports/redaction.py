"""Taking the records out of results, so that a report can be shown to people who may not see the data.

Every input, its name, and every text that may quote an input or an output (rules, messages, summaries, details) is
replaced. A name becomes `input-` and twelve hexadecimal digits of an HMAC-SHA256 under a random key, which is forgotten
when the call returns: equal inputs have equal names within one report, but nobody can find a record by trying out
all likely ones, as a plain digest would allow, and two reports cannot be linked. The digests of the saved files
are keyed in the same way, for the same reason.

An audit is deterministic: whoever knows its seed can run it on each of a list of likely records, and the wealth of the
true one is the same to the last bit. So a redacted result has no seed, no looks, no wealth and no p-value (a power of
ten above it), and counts, times and bounds have two significant digits: bounds rounded down, with further digits only
where a violation would not show otherwise.

What stays: names of subjects and claims, budgets, rounded bounds and counts, versions, options, and what the user wrote
into the deployment. So this is still possible: who has the mechanism and a short list of candidates can compare the
*rounded* bounds with those of audits of his own, and rule out candidates on which the mechanism behaves otherwise;
the budgets of a metric claim are distances between records; and an audit whose seed can be guessed (a default, a date)
can be repeated with it, and compared as far as two digits go. Redaction hides records from readers of a report. It is
not differential privacy.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import json
import math
import secrets
from collections.abc import Callable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context
from typing import Any

import numpy as np

from dpaudit.conformance.result import CheckResult
from dpaudit.privacy.claims import FloatArray
from dpaudit.reports.attachments import certificate_attachment
from dpaudit.reports.dossier import Dossier, Judged, Result, Source, kind_of
from dpaudit.reports.scores import scores_attachment
from dpaudit.results import model
from dpaudit.results.all_pairs_table import AllPairsTable
from dpaudit.results.model import AuditResult, Finding
from dpaudit.results.saved_inputs import REDACTED
from dpaudit.results.saving import utf8
from dpaudit.results.utility_result import UtilityFinding
from dpaudit.scores.result import IndependentBound, ScoresResult
from dpaudit.symbolic.certificate import Certificate, CertifiedPair

DIGITS = 12  # of names
KEPT = 2  # significant digits of numbers that depend on the draws
Rule = Callable[["_Mask", Any, Any], Any]  # what the field of a dataclass becomes: of the mask, that object, its value


def _rounded(value: float, rounding: str = ROUND_HALF_EVEN, digits: int = KEPT) -> float:
    if not math.isfinite(value):
        return value
    return float(Context(prec=digits, rounding=rounding).create_decimal(value))


def _beside(value: float, budget: float, rounding: str = ROUND_FLOOR) -> float:
    """A number rounded, with as many digits as it takes to stay above the budget if it is, and within it if it is."""
    rounded = [_rounded(value, rounding, digits) for digits in (KEPT, 3, 4, 6, 9, 17)]
    return next((one for one in rounded if (one > budget) == (value > budget)), value)


def _lowers(values: FloatArray, budgets: FloatArray) -> FloatArray:
    return np.array(list(map(_beside, values.tolist(), budgets.tolist())))


def redacted(dossier: Dossier, key: bytes | None = None) -> Dossier:
    """The dossier without records; with a stated key (of 32 random bytes) reports can be compared with each other."""
    mask = _Mask(key if key is not None else secrets.token_bytes(32))
    sources = []
    for place, source in enumerate(dossier.sources, 1):
        result = mask.result(source.result)
        name = f"{place}-{kind_of(source.result)}.json"  # a file may be named after a person
        sources.append(Source(name, mask.digest(source.result.to_bytes(), 64), result, is_keyed=True))
    deployment = dossier.deployment
    if deployment is not None:
        source_name = deployment.source.replace("\\", "/").rpartition("/")[2]
        deployment = dataclasses.replace(deployment, source=source_name, coordinates={})
    beside = [mask.attachment(place, one) for place, one in enumerate(dossier.judged, 1)]
    return Dossier(tuple(sources), deployment, is_redacted=True, attachments=tuple(beside))


class _Mask:
    """The names of one report, under one key; `pairs` and `inputs` are the pairs and inputs of the audit at hand."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.pairs: dict[str, str] = {}
        self.inputs: set[str] = set()

    def digest(self, content: bytes, digits: int = DIGITS) -> str:
        return hmac.new(self._key, content, hashlib.sha256).hexdigest()[:digits]

    def name(self, text: str, noun: str = "input") -> str:
        return f"{noun}-{self.digest(utf8(json.dumps(text)))}"

    def pair(self, id: str, halves: list[str]) -> str:
        """The name of a pair, of those of its inputs where its own joins theirs."""
        return "|".join(map(self.name, halves)) if id == "|".join(halves) else self.name(id, "pair")

    def result(self, result: Result) -> Result:
        findings = result.findings if isinstance(result, AuditResult) else ()
        self.pairs = {one.id: self.pair(one.id, [one.x_id, one.x_prime_id]) for one in findings}
        self.inputs = {name for one in findings for name in (one.x_id, one.x_prime_id)}
        found: Result = self.of(result)
        return found

    def not_asked(self, id: str) -> str:
        halves = id.split("|")
        return self.pair(id, halves if len(halves) == 2 and self.inputs.issuperset(halves) else [])

    def of(self, value: Any) -> Any:
        """A dataclass, or several, each of whose fields is what its rule says; one without a rule stays."""
        if isinstance(value, tuple):
            return tuple(map(self.of, value))
        if not dataclasses.is_dataclass(value) or isinstance(value, type):
            return value
        rules, changed = {**ANYWHERE, **OF_CLASS.get(type(value), {})}, {}
        for name in (field.name for field in dataclasses.fields(value)):
            own, rule = getattr(value, name), rules.get(name)
            changed[name] = self.of(own) if rule is None or own is None else rule(self, value, own)
        return dataclasses.replace(value, **changed)

    def attachment(self, place: int, one: Judged) -> Judged:
        """A certificate or an audit of scores, with its rows and its chapter made anew from what is left."""
        name, digest = f"a{place}-{one.kind}.json", self.digest(json.dumps(one.digest).encode("ascii"), 64)
        if isinstance(one.result, Certificate):
            return certificate_attachment(name, digest, self.of(one.result), is_keyed=True)
        return scores_attachment(name, digest, self.of(one.result), is_keyed=True)


def _be(value: Any) -> Rule:
    return lambda mask, one, own: value


def _at(rounding: str = ROUND_HALF_EVEN) -> Rule:
    return lambda mask, one, own: _rounded(own, rounding)


def _within(budget: Callable[[Any], float], rounding: str = ROUND_FLOOR) -> Rule:
    return lambda mask, one, own: _beside(own, budget(one), rounding)


def _count(mask: _Mask, one: Any, own: int) -> int:
    return int(_rounded(float(own)))


def _hidden(mask: _Mask, one: Any, own: str) -> str:
    """Say what stands in the place of a text, if there is one."""
    return REDACTED if own else ""


def _ratio(mask: _Mask, one: Finding, own: float) -> float:
    is_known = math.isfinite(own) and one.parameter_budget > 0.0
    return _beside(one.parameter_lower, one.parameter_budget) / one.parameter_budget if is_known else own


def _severity(mask: _Mask, one: Finding, own: Any) -> Any:
    return dataclasses.replace(mask.of(own), parameter_lower=_beside(one.parameter_lower, one.parameter_budget))


def _of_table(mask: _Mask, one: AllPairsTable, own: FloatArray) -> FloatArray:
    """Bounds on epsilon, which is the claim's parameter or stays above nothing."""
    return _lowers(own, one.budget if one.parameter_lower is None else np.full(len(one), np.inf))


def _independent(mask: _Mask, one: ScoresResult, own: IndependentBound) -> IndependentBound:
    hidden: IndependentBound = mask.of(own)
    return dataclasses.replace(hidden, **{name: rule(mask, one, getattr(own, name)) for name, rule in SCORES.items()})


def _of_epsilon(result: ScoresResult) -> float:
    return result.budget if result.parameter == "epsilon" else math.inf


COUNTS: Mapping[str, Rule] = dict.fromkeys(
    ("samples", "correct", "wrong", "abstained", "inputs", "runs", "scores_in", "scores_out"), _count
)
TEXTS: Mapping[str, Rule] = dict.fromkeys(("message", "refusal", "description"), _hidden)
SCORES: Mapping[str, Rule] = {
    "epsilon_lower": _within(_of_epsilon),
    "parameter_lower": _within(lambda one: one.budget),
    "ceiling": _within(_of_epsilon, ROUND_CEILING),
    "parameter_ceiling": _within(lambda one: one.budget, ROUND_CEILING),
}
# What fields become, by their names, in whatever part of a result they stand; then those of single classes.
ANYWHERE: Mapping[str, Rule] = {
    **COUNTS,
    **TEXTS,
    "seed": _be(REDACTED),  # what is shown and saved in its place
    "seconds": _at(),
    # What the command line was given as claim and pairs are records, or files named after a person.
    "options": lambda mask, one, own: {name: value for name, value in own.items() if name not in ("claim", "pairs")},
    # The power of ten at or above it.
    "p_value": lambda mask, one, own: min(1.0, 10.0 ** math.ceil(math.log10(own))) if 0.0 < own < math.inf else own,
    "log_wealth": _be(None),
    "id": lambda mask, one, own: mask.pair(own, [one.x_id, one.x_prime_id]),
    **dict.fromkeys(("x_id", "x_prime_id", "input_id"), lambda mask, one, own: mask.name(own)),
    **dict.fromkeys(("x", "x_prime", "data"), _be(REDACTED)),
    "trade_off": lambda mask, one, own: () if isinstance(own, tuple) else None,
    "notes": lambda mask, one, own: tuple(note if note == model.SAME_INPUT else REDACTED for note in own),
    **dict.fromkeys(("detectable", "detectable_share"), _at(ROUND_CEILING)),
}
OF_CLASS: Mapping[type, Mapping[str, Rule]] = {
    AuditResult: {"not_asked": lambda mask, one, own: tuple(map(mask.not_asked, own))},
    Finding: {
        "parameter_lower": _within(lambda one: one.parameter_budget),
        "epsilon_lower": _within(lambda one: one.budget.epsilon),
        "ratio_lower": _ratio,
        "severity": _severity,
        "pool": lambda mask, one, own: mask.pairs.get(own, mask.name(own, "pair")),
        "looks": _be(()),
        "keys": _be(None),
        "traceback": _be(""),
    },
    model.Power: {"event_mass": _at(), "cells": _be(())},
    model.LearnedLoss: {"loss": _at(ROUND_CEILING)},
    model.WitnessRecord: {"description": _be(REDACTED), "rule": _be({"redacted": True}), "sketch": _be(None)},
    model.FloatingPointPair: {"epsilon_lower": _within(lambda one: one.budget.epsilon), "rule": _be(None)},
    model.SideFinding: {"summary": _be(REDACTED), "details": _be({})},
    AllPairsTable: {
        "ids": lambda mask, one, own: tuple(map(mask.name, own)),
        "pair_ids": lambda mask, one, own: tuple(mask.name(id, "pair") for id in own),
        "partition": _be(None),
        "epsilon_lower": _of_table,
        "parameter_lower": lambda mask, one, own: _lowers(own, one.budget),
        "log10_p_value": lambda mask, one, own: np.minimum(np.ceil(own), 0.0),
        "detectable": lambda mask, one, own: np.array([_rounded(each, ROUND_CEILING) for each in own.tolist()]),
    },
    CheckResult: {"samples": lambda mask, one, own: own},  # an option
    UtilityFinding: {
        "measured": _within(lambda one: one.allowed, ROUND_HALF_EVEN),
        "lower": _within(lambda one: one.allowed),
        "upper": _at(ROUND_CEILING),
    },
    ScoresResult: {**SCORES, "guesses": _be(()), "decided_after": _be(None), "independent": _independent},
    # Bounds are those of the input's exact probabilities: two digits of them stay, and no event.
    CertifiedPair: {
        "epsilon_lower": _at(ROUND_FLOOR),
        "epsilon_upper": _at(ROUND_CEILING),
        "value_lower": _within(lambda one: one.claimed),
        "value_upper": _within(lambda one: one.claimed, ROUND_CEILING),
        "mass_left": lambda mask, one, own: min(1.0, _rounded(own, ROUND_CEILING)),
        "exact": _be(None),
        "event": _be(None),
        "profile": _be(()),
        "reason": _hidden,
    },
}
