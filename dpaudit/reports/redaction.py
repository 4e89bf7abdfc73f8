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
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context
from typing import Any, cast

import numpy as np

from dpaudit.conformance.result import CheckResult
from dpaudit.privacy.claims import FloatArray
from dpaudit.reports.attachments import certificate_attachment
from dpaudit.reports.dossier import Attachment, Dossier, Result, Source, kind_of
from dpaudit.reports.scores import scores_attachment
from dpaudit.results.model import (
    SAME_INPUT,
    AuditResult,
    Finding,
    FloatingPointFinding,
    FloatingPointPair,
    Severity,
    WitnessRecord,
)
from dpaudit.results.saved_inputs import REDACTED
from dpaudit.results.saving import utf8
from dpaudit.results.utility_result import UtilityResult
from dpaudit.scores.result import IndependentBound, ScoresResult
from dpaudit.symbolic.certificate import Certificate, CertifiedPair

DIGITS = 12  # of names
KEPT = 2  # significant digits of numbers that depend on the draws
NO_SEED = cast(int, REDACTED)  # what is shown and saved in the place of a seed


def _rounded(value: float, rounding: str = ROUND_HALF_EVEN, digits: int = KEPT) -> float:
    if not math.isfinite(value):
        return value
    return float(Context(prec=digits, rounding=rounding).create_decimal(value))


def _count(value: int) -> int:
    return int(_rounded(float(value)))


def _hidden(text: str) -> str:
    """Say what stands in the place of a text, if there is one."""
    return REDACTED if text else ""


def _counts(one: WitnessRecord | FloatingPointPair) -> dict[str, Any]:
    """The counts of a rule."""
    return {name: _count(getattr(one, name)) for name in ("correct", "wrong", "abstained")}


def _beside(value: float, budget: float, rounding: str = ROUND_HALF_EVEN) -> float:
    """A number rounded, with as many digits as it takes to stay above the budget if it is, and within it if it is."""
    rounded = [_rounded(value, rounding, digits) for digits in (KEPT, 3, 4, 6, 9, 17)]
    return next((one for one in rounded if (one > budget) == (value > budget)), value)


def _lower(value: float, budget: float) -> float:
    return _beside(value, budget, ROUND_FLOOR)


def _lowers(values: FloatArray, budgets: FloatArray) -> FloatArray:
    return np.array(list(map(_lower, values.tolist(), budgets.tolist())))


def _p_value(value: float) -> float:
    """The power of ten at or above it."""
    return value if not 0.0 < value < math.inf else min(1.0, 10.0 ** math.ceil(math.log10(value)))


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
    beside = [mask.attachment(place, one) for place, one in enumerate(dossier.attachments, 1) if one.result is not None]
    return Dossier(tuple(sources), deployment, is_redacted=True, attachments=tuple(beside))


def _without_texts(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options without what the command line was given as claim and pairs: records, or files named after a person."""
    return {name: value for name, value in options.items() if name not in ("claim", "pairs")}


def _scores(result: ScoresResult) -> ScoresResult:
    """Without seed, guesses, wealth and curve: bounds and counts of two digits."""
    of_epsilon = result.budget if result.parameter == "epsilon" else math.inf

    def rounded(found: ScoresResult | IndependentBound) -> dict[str, Any]:
        return {
            "epsilon_lower": _lower(found.epsilon_lower, of_epsilon),
            "parameter_lower": _lower(found.parameter_lower, result.budget),
            "ceiling": _beside(found.ceiling, of_epsilon, ROUND_CEILING),
            "parameter_ceiling": _beside(found.parameter_ceiling, result.budget, ROUND_CEILING),
        }

    second = result.independent
    return dataclasses.replace(
        result,
        **rounded(result),
        independent=second and dataclasses.replace(second, **rounded(second)),
        seed=NO_SEED,
        scores_in=_count(result.scores_in),
        scores_out=_count(result.scores_out),
        trade_off=(),
        guesses=(),
        decided_after=None,
        log_wealth=None,
        notes=tuple(REDACTED for _ in result.notes),
        seconds=_rounded(result.seconds),
    )


class _Mask:
    """The names of one report, under one key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def digest(self, content: bytes, digits: int = DIGITS) -> str:
        return hmac.new(self._key, content, hashlib.sha256).hexdigest()[:digits]

    def name(self, text: str, noun: str = "input") -> str:
        return f"{noun}-{self.digest(utf8(json.dumps(text)))}"

    def result(self, result: Result) -> Result:
        if isinstance(result, AuditResult):
            return self._audit(result)
        return self._check(result) if isinstance(result, CheckResult) else self._utility(result)

    def _audit(self, result: AuditResult) -> AuditResult:
        known = {name for finding in result.findings for name in (finding.x_id, finding.x_prime_id)}
        names = [self._pair_name(name, known) for name in result.not_asked]
        universe = result.universe
        if universe is not None:
            pair_ids = None if universe.pair_ids is None else tuple(self.name(one, "pair") for one in universe.pair_ids)
            above_all = np.full(len(universe), np.inf)
            ids, own = tuple(self.name(name) for name in universe.ids), universe.parameter_lower
            universe = dataclasses.replace(
                universe,
                ids=ids,
                pair_ids=pair_ids,
                partition=None,
                epsilon_lower=_lowers(universe.epsilon_lower, universe.budget if own is None else above_all),
                parameter_lower=None if own is None else _lowers(own, universe.budget),
                log10_p_value=np.minimum(np.ceil(universe.log10_p_value), 0.0),
                detectable=np.array([_rounded(one, ROUND_CEILING) for one in universe.detectable.tolist()]),
            )
        doubles = result.floating_point
        pools = {finding.id: self._names(finding)["id"] for finding in result.findings}
        return dataclasses.replace(
            result,
            seed=NO_SEED,
            samples=_count(result.samples),
            seconds=_rounded(result.seconds),
            findings=tuple(self._finding(finding, pools) for finding in result.findings),
            not_asked=tuple(names),
            options=_without_texts(result.options),
            floating_point=None if doubles is None else self._doubles(doubles),
            universe=universe,
            side_findings=tuple(dataclasses.replace(one, summary=REDACTED, details={}) for one in result.side_findings),
            trade_off=None,
        )

    def _pair_name(self, name: str, known: set[str]) -> str:
        halves = name.split("|")
        if len(halves) == 2 and known.issuperset(halves):
            return "|".join(self.name(half) for half in halves)
        return self.name(name, "pair")

    def _names(self, one: Finding | FloatingPointPair | CertifiedPair) -> dict[str, Any]:
        """The names of a pair and of its inputs."""
        x_id, x_prime_id = self.name(one.x_id), self.name(one.x_prime_id)
        plain = one.id == f"{one.x_id}|{one.x_prime_id}"
        id = f"{x_id}|{x_prime_id}" if plain else self.name(one.id, "pair")
        return {"id": id, "x_id": x_id, "x_prime_id": x_prime_id}

    def _finding(self, finding: Finding, pools: Mapping[str, str]) -> Finding:
        lower, power = _lower(finding.parameter_lower, finding.parameter_budget), finding.power
        ratio = finding.ratio_lower
        if ratio is not None and math.isfinite(ratio) and finding.parameter_budget > 0.0:
            ratio = lower / finding.parameter_budget
        if power is not None:
            mass, detectable = _rounded(power.event_mass), _rounded(power.detectable, ROUND_CEILING)
            learned = tuple(dataclasses.replace(one, loss=_rounded(one.loss, ROUND_CEILING)) for one in power.learned)
            power = dataclasses.replace(power, event_mass=mass, detectable=detectable, learned=learned, cells=())
        return dataclasses.replace(
            finding,
            **self._names(finding),
            parameter_lower=lower,
            epsilon_lower=_lower(finding.epsilon_lower, finding.budget.epsilon),
            ratio_lower=ratio,
            log_wealth=None,
            p_value=None if finding.p_value is None else _p_value(finding.p_value),
            samples=_count(finding.samples),
            power=power,
            looks=(),
            keys=None,
            severity=None if finding.severity is None else Severity(_count(finding.severity.samples), lower),
            pool=None if finding.pool is None else pools.get(finding.pool, self.name(finding.pool, "pair")),
            x=REDACTED,
            x_prime=REDACTED,
            witness=None if finding.witness is None else self._witness(finding.witness),
            message=_hidden(finding.message),
            traceback="",
            notes=tuple(note if note == SAME_INPUT else REDACTED for note in finding.notes),
        )

    def _witness(self, witness: WitnessRecord) -> WitnessRecord:
        return dataclasses.replace(
            witness, description=REDACTED, rule={"redacted": True}, sketch=None, **_counts(witness)
        )

    def _doubles(self, finding: FloatingPointFinding) -> FloatingPointFinding:
        return dataclasses.replace(
            finding, message=_hidden(finding.message), pairs=tuple(self._double(pair) for pair in finding.pairs)
        )

    def _double(self, pair: FloatingPointPair) -> FloatingPointPair:
        return dataclasses.replace(
            pair,
            **self._names(pair),
            **_counts(pair),
            epsilon_lower=_lower(pair.epsilon_lower, pair.budget.epsilon),
            p_value=_p_value(pair.p_value),
            detectable_share=_rounded(pair.detectable_share, ROUND_CEILING),
            description=_hidden(pair.description),
            rule=None,
        )

    def attachment(self, place: int, one: Attachment) -> Attachment:
        """A certificate or an audit of scores, with its rows and its chapter made anew from what is left."""
        name, digest = f"a{place}-{one.kind}.json", self.digest(json.dumps(one.digest).encode("ascii"), 64)
        if isinstance(one.result, Certificate):
            return certificate_attachment(name, digest, self._certificate(one.result), is_keyed=True)
        if isinstance(one.result, ScoresResult):
            return scores_attachment(name, digest, _scores(one.result), is_keyed=True)
        raise TypeError(f"no redaction is known of {one.kind!r}")

    def _certificate(self, result: Certificate) -> Certificate:
        pairs = tuple(self._certified(pair) for pair in result.pairs)
        refusal = _hidden(result.refusal)
        inputs, runs, seconds = _count(result.inputs), _count(result.runs), _rounded(result.seconds)
        return dataclasses.replace(result, pairs=pairs, refusal=refusal, inputs=inputs, runs=runs, seconds=seconds)

    def _certified(self, pair: CertifiedPair) -> CertifiedPair:
        """Bounds are those of the input's exact probabilities: two digits of them stay, and no event."""
        return dataclasses.replace(
            pair,
            **self._names(pair),
            epsilon_lower=_rounded(pair.epsilon_lower, ROUND_FLOOR),
            epsilon_upper=_rounded(pair.epsilon_upper, ROUND_CEILING),
            value_lower=_lower(pair.value_lower, pair.claimed),
            value_upper=_beside(pair.value_upper, pair.claimed, ROUND_CEILING),
            mass_left=min(1.0, _rounded(pair.mass_left, ROUND_CEILING)),
            exact=None,
            event=None,
            profile=(),
            reason=_hidden(pair.reason),
        )

    def _check(self, result: CheckResult) -> CheckResult:
        records = tuple(
            dataclasses.replace(record, message=_hidden(record.message), seconds=_rounded(record.seconds))
            for record in result.records
        )
        options, seconds = _without_texts(result.options), _rounded(result.seconds)
        return dataclasses.replace(result, records=records, seed=NO_SEED, seconds=seconds, options=options)

    def _utility(self, result: UtilityResult) -> UtilityResult:
        findings = tuple(
            dataclasses.replace(
                finding,
                input_id=self.name(finding.input_id),
                data=REDACTED,
                message=_hidden(finding.message),
                measured=_beside(finding.measured, finding.allowed),
                lower=_lower(finding.lower, finding.allowed),
                upper=_rounded(finding.upper, ROUND_CEILING),
                p_value=_p_value(finding.p_value),
                detectable=_rounded(finding.detectable, ROUND_CEILING),
                samples=_count(finding.samples),
            )
            for finding in result.findings
        )
        return dataclasses.replace(result, findings=findings, seed=NO_SEED, seconds=_rounded(result.seconds))
