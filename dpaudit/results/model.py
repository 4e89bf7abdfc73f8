"""Results: verdicts, findings and the one versioned result that every report is rendered from.

Conventions: epsilon, budgets and losses in nats; `samples` of a result counts runs of the mechanism, that of a finding
or a severity labelled draws; wealth is a natural logarithm.
The saved form (`audit.json`, schema `dpaudit.audit/1`, published in `dpaudit/schemas/`) is strict JSON: infinities are
the strings "inf" and "-inf", and what does not apply is null. A file is written complete or not at all.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import Budget
from dpaudit.privacy.pairs import short_form
from dpaudit.results.all_pairs_table import AllPairsTable
from dpaudit.results.codec import OMITTED, ROUNDED, UNSAVED, Form, as_float, from_json, to_json
from dpaudit.results.saved_inputs import kept, may_be_infinite, restored
from dpaudit.results.saving import Saved, read_saved
from dpaudit.results.shown import Shown
from dpaudit.results.side_findings import FloatingPointFinding, FloatingPointPair, SideFinding
from dpaudit.results.trade_off import TradeOffBand
from dpaudit.results.verdicts import VERDICTS, Verdict, check_verdict, gravest

__all__ = [
    "IS_RETURNED",
    "NOTHING_DRAWN",
    "SAME_INPUT",
    "SCHEMA",
    "VERDICTS",
    "AuditResult",
    "Finding",
    "FloatingPointFinding",
    "FloatingPointPair",
    "Keys",
    "LearnedLoss",
    "Look",
    "Power",
    "SideFinding",
    "Sketch",
    "Verdict",
    "WitnessRecord",
    "load",
    "to_json",
]

SCHEMA = "dpaudit.audit/1"
INTERVALS = "two and two intervals"  # the form of an event without which learned figures are incomplete
FORMS_RENAMED = {"several intervals": INTERVALS}  # by their names in older files
LEARNED_ALLOWANCE = 1.5  # how much larger that loss may be than one in the best case: decision 38
ZERO_BUDGET_LOSS = 0.1  # nats: what has to be found of a pair of budget 0 in the best case
EARLIER_SHARE = 0.8  # `verdict_share` over `error_share` where a claim pays for a second bound, in files without it
MAX_LOOKS = 100_000  # of a pair in a file: an audit looks some hundred times
KEPT = {"write": lambda _: None}  # inputs, which `Finding` saves in its own way
LOOK = ("draws", "log_wealth", "parameter_lower")  # in the order of files
SAME_INPUT = "x and x′ are the same input: no loss can be found here."  # a note of a finding
IS_RETURNED = "does the mechanism return its answer?"  # the end of one, of outputs that are all one value
NOTHING_DRAWN = (  # one, of calls that left the generator they were given as it was
    "The first calls on each input drew nothing from the generator that they were given: there is no noise, or no seed "
    "repeats it, or outputs depend on earlier calls."
)


@dataclasses.dataclass(frozen=True)
class LearnedLoss(Form):
    """Loss in nats that the check finds of an event of one form that it has to learn; inf: none is promised.

    Where leaks of this form were planted into the outputs of the audit itself, `found` of `plants` of that loss were
    found; `event_mass` is their mass, None where it is that of the power. `decides` says whether "not refuted" rests on
    the form.
    """

    form: str
    loss: float
    found: int = dataclasses.field(default=0, metadata=OMITTED)
    plants: int = dataclasses.field(default=0, metadata=OMITTED)
    decides: bool = dataclasses.field(default=True, metadata=OMITTED)
    event_mass: float | None = dataclasses.field(default=None, metadata=OMITTED)

    @classmethod
    def _of_saved(cls, record: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**record, "form": FORMS_RENAMED.get(str(record.get("form")), record.get("form"))}


@dataclasses.dataclass(frozen=True)
class PlantedCell:
    """Leaks of one form, event mass and loss that were planted, and how many of them were found."""

    form: str
    event_mass: float
    loss: float
    found: int
    plants: int

    def suffices(self, probability: float) -> bool:
        """Tell whether more than this share was found: 10 of 10, 37 of 40 at .9 (`dpaudit.audits.planted` says why)."""
        return self.found > probability * self.plants + 1e-9


@dataclasses.dataclass(frozen=True)
class Power(Form):
    """Power of the check: the alternative is of randomised-response type.

    The alternative: outputs fall into an event of two parts, with probability `event_mass` on either input. In one part
    the log odds of x over x_prime are the loss, in the other minus the loss; outside the event the two laws agree.
    `detectable` is the smallest loss, in nats, that this check finds with probability at least `probability` if its
    rule knows the event, the best case; `at_budget` is the loss of the same type that sits exactly on the claim. inf:
    no such loss would have been found. `learned` has the same for an audit that has to find the event, by the form of
    it: measured on leaks that were planted into the outputs of this audit (`dpaudit.campaign.planting`), on
    `planted_draws` labelled draws, or else a general allowance (`dpaudit.inference.learned_power`). It is empty in
    older files, and for the pairs of an all-pairs table that were not examined in depth. `cells` are all plants of the
    pair itself, by form, mass and loss. `by_mass`, of the pair that was tested least well, has what `detectable` is of
    events of other masses, the most frequent first; it ends with the first of which no loss, however large, shows. Of
    that pair, where it is inconclusive, `samples_needed` are the samples by which it would be judged, by general
    figures: None where there is no such number, or leaks were planted, which need more.
    """

    event_mass: float
    probability: float
    detectable: float
    at_budget: float
    learned: tuple[LearnedLoss, ...] = ()
    cells: tuple[PlantedCell, ...] = dataclasses.field(default=(), metadata=OMITTED)
    planted_draws: int = dataclasses.field(default=0, metadata=OMITTED)
    by_mass: tuple[tuple[float, float], ...] = dataclasses.field(default=(), metadata=OMITTED)
    samples_needed: int | None = dataclasses.field(default=None, metadata=OMITTED)

    @property
    def is_planted(self) -> bool:
        """Tell whether learned figures are of leaks planted into the outputs of this audit."""
        return self.planted_draws > 0

    @property
    def blind_mass(self) -> float | None:
        """The largest mass that was asked for of which no loss shows, however large; None where that is not known."""
        return next((mass for mass, loss in self.by_mass if math.isinf(loss)), None)

    @property
    def deciding(self) -> float:
        """The loss by which a pair is inconclusive: of an event of the worst measured form, which has to be learned.

        The best case where no learned figure is known; inf where one is no number, or that of `INTERVALS` is missing
        in a general table.
        """
        if not self.learned:
            return self.detectable
        losses = {one.form: math.inf if math.isnan(one.loss) else one.loss for one in self.learned if one.decides}
        return max(losses.values(), default=math.inf) if self.is_planted or INTERVALS in losses else math.inf

    def excess(self, inconclusive_factor: float) -> float:
        """The losses found over the losses that have to be found, the larger ratio of two.

        Infinite if no loss is detectable or a loss is NaN, so that the verdict is never "not_refuted" then.

        For a pair to be judged, the best case has to be within `inconclusive_factor` times what the claim allows
        (within `ZERO_BUDGET_LOSS` where that is nothing), and the learned loss of the worst form that decides within
        as much where leaks were planted, else within `LEARNED_ALLOWANCE` times as much.
        """
        limit = inconclusive_factor * self.at_budget if self.at_budget > 0.0 else ZERO_BUDGET_LOSS
        if not (math.isfinite(self.detectable) and math.isfinite(self.deciding)) or math.isnan(self.at_budget):
            return math.inf
        if not self.learned:
            return self.detectable / limit
        allowance = 1.0 if self.is_planted else LEARNED_ALLOWANCE
        return max(self.detectable / limit, self.deciding / (allowance * limit))

    def suffices(self, inconclusive_factor: float) -> bool:
        """Tell whether a pair that is not violated is "not refuted": else it is inconclusive."""
        return self.excess(inconclusive_factor) <= 1.0


@dataclasses.dataclass(frozen=True)
class Look:
    """One look at the evidence of a pair: labelled draws bet on so far, log wealth, lower bound on the parameter.

    The bound is the one known by then: sequential bets compute it when they reject the budget, and after the last draw.
    """

    draws: int
    log_wealth: float
    parameter_lower: float


@dataclasses.dataclass(frozen=True)
class Sketch(Form):
    """Outputs of a pair along one view, in bins, with what the rule guesses there: for a picture, no evidence.

    Attributes
    ----------
    view : str
        What the values are of.
    edges : tuple of float
        Of the bins, one more than there are; values beyond them are in the outermost bins.
    x, x_prime : tuple of int
        Draws on each input in each bin, of those that the rule was learned from.
    guesses : tuple of float
        The mean guess in each bin, from -1 (always x') over 0 (none) to 1 (always x).
    """

    view: str
    edges: tuple[float, ...]
    x: tuple[int, ...]
    x_prime: tuple[int, ...]
    guesses: tuple[float, ...]

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Sketch:
        """The sketch of `sketch` of a witness in audit.json."""
        found = super().from_dict(record)
        if {len(found.x), len(found.x_prime), len(found.guesses)} != {len(found.edges) - 1}:
            raise UsageError(f"sketch must have {len(found.edges) - 1} bins, got others.")
        return found


@dataclasses.dataclass(frozen=True)
class WitnessRecord:
    """The betting rule a finding rests on, in words and in a form that `dpaudit replay` can run again.

    `description` is a sentence about the output; `rule` is the serialised rule; the three counts are the labelled draws
    that it was tested on (never those it was fitted on; of a rule that is learned again as draws come in, each draw is
    guessed by the rule as it stood before). `line` is the (epsilon, delta) of the inequality it bets
    against at the budget, or the (order, epsilon) of a Renyi inequality. `sketch` has earlier outputs along its view;
    None where its words are of no number, and in older files.
    """

    description: str
    rule: dict[str, Any]
    correct: int
    wrong: int
    abstained: int
    line: dict[str, float]
    sketch: Sketch | None = None


@dataclasses.dataclass(frozen=True)
class Keys:
    """Of the outputs of a pair that were looked at: how many are dictionaries, and their keys (of the outermost level).

    `keys` counts the different keys of all of them, `varying` those of these that some of them lack: that appear and
    vanish. Counts on both inputs together; no evidence by themselves.
    """

    outputs: int
    keys: int
    varying: int


@dataclasses.dataclass(frozen=True)
class Severity:
    """Severity of a violated pair, on draws that the verdict does not rest on (`dpaudit.audits.severity`).

    Attributes
    ----------
    samples : int
        Labelled draws of this stage.
    parameter_lower : float
        The lower confidence bound that the finding reports.
    """

    samples: int
    parameter_lower: float


@dataclasses.dataclass(frozen=True)
class Finding(Form):
    """One check of the claim on one pair.

    Attributes
    ----------
    id, x_id, x_prime_id : str
        Names of the pair and of its two inputs.
    x, x_prime : object
        The inputs.
    budget : Budget
        The claim for this pair as a point of its privacy profile.
    parameter, parameter_budget : str, float
        The claim's own parameter ("epsilon", "rho", "mu", "scale") and its promised value for this pair.
    verdict : Verdict
    epsilon_lower : float
        Lower confidence bound on the pair's epsilon at the budget's delta. Simultaneous with every other bound of the
        result at the result's confidence.
    parameter_lower : float
        The same for the claim's own parameter; the finding is a violation exactly when it exceeds `parameter_budget`.
        Of a violation that stands although draws depend on each other it is just above the budget: some call exceeds
        that, given what came before it, and how large the loss of a single output is nothing says.
    ratio_lower : float or None
        parameter_lower / parameter_budget; inf for a violated pair of budget 0, None for another pair of budget 0.
    log_wealth : float or None
        Natural logarithm of the e-value against the budget (None in fixed mode, but for Renyi families).
    p_value : float or None
        Of the exact test against the budget, before the division of the error rate (None where there is an e-value).
    error_share : float
        The share of 1 - confidence that the bounds of this pair's game were given. A pair of an all-pairs table that
        was examined in depth has two tests, the table's and the depth's, whose shares add up to its own. This is the
        share of the test that gave `parameter_lower`; `epsilon_lower` is the larger bound of the two.
    samples : int
        Labelled draws of this pair, including those that witnesses were fitted on.
    power : Power or None
    witness : WitnessRecord or None
    looks : tuple of Look
        The evidence over time.
    message : str
        What went wrong (verdict "error"), else empty.
    pool : str or None
        The id of the first pair of the pool that this pair was asked in, together with the other findings of this pool:
        what was found, the draws and the share of the error rate are those of the one game for all of them, and that it
        holds for each of them rests on what the mechanism says of itself. None for a pair that was asked by itself.
    printed : tuple of str
        Of a finding that was read from a file: which of "x" and "x_prime" are there by their printed form, so that the
        file does not hold them. Files of older versions do not say so, nor whether a list was a tuple or an array.
    notes : tuple of str
        What else is to be known of the pair, whatever its verdict: that both inputs are the same one (`SAME_INPUT`;
        there is no power then), that all outputs that were looked at are one value, or how many were exceptions.
    keys : Keys or None
        Of outputs that are dictionaries, whose keys the audit compared. None where none of those that were looked at
        is one, and in results that older versions saved.
    verdict_share : float or None
        The part of `error_share` that decides the verdict: a claim whose parameter is no epsilon pays for a second
        bound, on epsilon. None: all of it.
    severity : Severity or None
        Of a violated pair: the stage after the verdict, whose bound is the one that is reported. None where there was
        none; then a sequential audit has stopped at its first proof, and the loss may be far larger.
    traceback : str
        Where every call raised: the traceback of one of the exceptions, as text. It names files of this machine, so it
        is not saved, and not compared.
    """

    id: str
    x_id: str
    x_prime_id: str
    x: Any = dataclasses.field(metadata=KEPT)
    x_prime: Any = dataclasses.field(metadata=KEPT)
    budget: Budget
    parameter: str
    parameter_budget: float
    verdict: Verdict
    epsilon_lower: float = 0.0
    parameter_lower: float = 0.0
    ratio_lower: float | None = None
    log_wealth: float | None = None
    p_value: float | None = None
    error_share: float = 0.0
    samples: int = 0
    power: Power | None = None
    witness: WitnessRecord | None = None
    looks: tuple[Look, ...] = ()
    message: str = ""
    pool: str | None = None
    printed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    keys: Keys | None = None
    verdict_share: float | None = None
    severity: Severity | None = None
    traceback: str = dataclasses.field(default="", compare=False, repr=False, metadata=UNSAVED)

    @property
    def is_withheld(self) -> bool:
        """Tell whether its draws depend on each other, so that nothing is said of it: no evidence, and no power."""
        evidence = (self.log_wealth, self.p_value, self.power)
        return self.verdict == "inconclusive" and evidence == (None, None, None) and SAME_INPUT not in self.notes

    def _to_saved(self, record: dict[str, Any]) -> dict[str, Any]:
        """Inputs as files keep them, and looks as lists."""
        record["looks"] = [list(look.values()) for look in record["looks"]]
        record["types"] = {}
        for name in ("x", "x_prime"):
            record[name], types, is_held = kept(getattr(self, name))
            if name not in self.printed and not is_held:
                record["printed"].append(name)
            elif name not in self.printed and types is not None:
                record["types"][name] = types
        return record

    @classmethod
    def _of_saved(cls, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """Of older files: looks of so many, a share for the verdict, and infinities in inputs, which are texts there.

        Only numbers are read back as numbers: an id, message, rule or input may be the string "inf" and stays one.
        """
        known = dict(record)
        if not isinstance(looks := record.get("looks", []), list) or len(looks) > MAX_LOOKS:
            raise UsageError(f"looks of a pair must be {MAX_LOOKS:,} at most, got {short_form(looks)}.")
        known["looks"] = [dict(zip(LOOK, look, strict=True)) for look in looks]
        if "types" in record:
            known |= {name: restored(record[name], record["types"].get(name)) for name in ("x", "x_prime")}
        else:
            texts = [name for name in ("x", "x_prime") if may_be_infinite(record.get(name))]
            known["printed"] = list(dict.fromkeys([*record.get("printed", ()), *texts]))
        if "verdict_share" not in record and record["parameter_budget"] != record["budget"]["epsilon"]:
            known["verdict_share"] = EARLIER_SHARE * as_float(record.get("error_share", 0.0))
        return known

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Finding:
        """The finding of one entry of `pairs` in audit.json; a bound that is null there becomes NaN."""
        finding = super().from_dict(record)
        for name in ("parameter_budget", "epsilon_lower", "parameter_lower"):
            if getattr(finding, name) < 0.0:
                raise UsageError(f"{name} must be a number of at least 0, got {getattr(finding, name)!r}.")
        return finding


def least_powerful(findings: Iterable[Finding], inconclusive_factor: float) -> Finding | None:
    """The finding that was tested least well: its detectable loss is the largest for the loss up to which it is judged.

    Where some are inconclusive it is one of these; None where no power is known of any that is not violated.
    """
    with_power = [(one, one.power) for one in findings if one.power is not None and one.verdict != "violated"]
    weakness = [(one.verdict == "inconclusive", power.excess(inconclusive_factor)) for one, power in with_power]
    return with_power[weakness.index(max(weakness))][0] if with_power else None


@dataclasses.dataclass(frozen=True)
class AuditResult(Saved, Shown):
    """All findings of one audit of one subject, with what is needed to repeat it.

    Attributes
    ----------
    claim : str
        As the command line writes it.
    confidence : float
        For the whole call: all pairs, directions, witnesses, looks and bounds.
    mode : {"sequential", "adaptive", "fixed"}
    seed : int
    replayable : bool
        Whether the same seed gives the same bits (the subject takes a generator or a seed).
    findings : tuple of Finding
    not_asked : tuple of str
        Ids of the pairs of which the claim asks nothing (infinite budget).
    report_delta : float
        The delta at which `epsilon_lower` stands.
    samples : int
        Runs of the mechanism for verdicts, bounds, the order of draws and the band, all sides and pairs, a shared draw
        counted once; without those of a search, of the floating-point check and of other side findings.
    seconds : float
    subject : dict
        `name`, `target` (as the command line names it, or null), `fingerprint`, `interface` (how it is called).
    environment : dict
        Versions of Python, numpy, scipy and dpaudit, and the platform.
    options : dict
        The remaining options of the call, and what the audit made of them, such as "asked_mode" and "resumed".
    floating_point : FloatingPointFinding or None
        What the low bits of the outputs give away: a finding of its own, which neither the verdict nor any bound above
        depends on. None if the check was turned off, and in results that older versions saved.
    universe : AllPairsTable or None
        All pairs of an audit of very many, in a compact table; `findings` then holds in full the pairs that were
        examined in depth and those that the table names as violated (the worst 1,000). None for other audits.
    side_findings : tuple of SideFinding
        What was looked at beside the claim, each with an error rate of its own.
    trade_off : TradeOffBand or None
        The band of the clearest pair's trade-off function, where the call asked for it.
    """

    claim: str
    confidence: float
    mode: str
    seed: int
    replayable: bool
    findings: tuple[Finding, ...] = dataclasses.field(metadata={"name": "pairs"})
    not_asked: tuple[str, ...]
    report_delta: float
    samples: int
    seconds: float = dataclasses.field(metadata=ROUNDED)
    subject: dict[str, Any]
    environment: dict[str, Any]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    floating_point: FloatingPointFinding | None = None
    universe: AllPairsTable | None = dataclasses.field(default=None, metadata=OMITTED)
    side_findings: tuple[SideFinding, ...] = ()
    trade_off: TradeOffBand | None = dataclasses.field(default=None, metadata=OMITTED)

    schema = SCHEMA
    decided_by = "findings"
    derived = ("epsilon_lower", "ratio_lower")

    @property
    def verdict(self) -> Verdict:
        """The first of `VERDICTS` that any finding, or pair of the all-pairs table, has; "inconclusive" without any."""
        of_table = [self.universe.overall] if self.universe is not None else []
        return gravest([*(finding.verdict for finding in self.findings), *of_table])

    @property
    def epsilon_lower(self) -> float:
        """The largest lower bound on epsilon over the pairs, at `report_delta`."""
        bounds = [finding.epsilon_lower for finding in self.findings]
        if self.universe is not None:
            bounds.append(float(self.universe.epsilon_lower.max(initial=0.0)))
        return max((bound for bound in bounds if not math.isnan(bound)), default=0.0)

    @property
    def ratio_lower(self) -> float:
        """The largest lower bound over its budget; above 1 exactly when the verdict is "violated"."""
        ratios = [finding.ratio_lower for finding in self.findings]
        if self.universe is not None:
            ratios.append(float(np.nan_to_num(self.universe.ratio_lower, nan=0.0, posinf=math.inf).max(initial=0.0)))
        return max((ratio for ratio in ratios if ratio is not None and not math.isnan(ratio)), default=0.0)

    @property
    def violated(self) -> tuple[Finding, ...]:
        """The violated pairs, the largest ratio of bound to budget first."""
        return tuple(finding for finding in self.ranked() if finding.verdict == "violated")

    @property
    def worst(self) -> Finding | None:
        """The first of `ranked`: of the gravest verdict the one with the largest ratio; None if there is none."""
        return next(iter(self.ranked()), None)

    def ranked(self) -> tuple[Finding, ...]:
        """Findings by verdict, then by ratio of bound to budget, then by wealth or p-value: the worst first.

        A number that is missing or NaN comes after all others.
        """

        def descending(value: float | None) -> float:
            return math.inf if value is None or math.isnan(value) else -value

        def key(finding: Finding) -> tuple[float, ...]:
            evidence = -finding.p_value if finding.p_value is not None else finding.log_wealth
            ratio, epsilon = descending(finding.ratio_lower), descending(finding.epsilon_lower)
            return (VERDICTS.index(finding.verdict), ratio, epsilon, descending(evidence))

        return tuple(sorted(self.findings, key=key))

    def __repr__(self) -> str:
        """Say what a prompt shows of a result: `str`, in brackets; `to_dict` has all that it holds."""
        return f"<AuditResult {self}>"

    @classmethod
    def _of_saved(cls, record: Mapping[str, Any]) -> Mapping[str, Any]:
        options = from_json(record.get("options"))
        if isinstance(options, dict):
            as_float(options.get("inconclusive_factor") or 0.0)  # which reports work with
        return {**record, "options": options}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> AuditResult:
        """The result of the content of audit.json; `UsageError` names what is missing or of another schema.

        The verdict that the file states must be the one that its findings have, and that of a finding the one that its
        bound has: "violated" exactly where the bound is above the budget ("error" says nothing of it).
        """
        result = super().from_dict(record)
        for one in result.findings:
            if one.verdict != "error" and not math.isnan(one.parameter_lower):
                check_verdict(one.id, one.verdict, one.parameter, one.parameter_lower, one.parameter_budget)
        return result


def load(path: str | os.PathLike[str]) -> AuditResult:
    """Read a result that `AuditResult.save` wrote.

    `UsageError` if there is no such file, it is not an audit result of a known schema, or a field is of another type.
    """
    result: AuditResult = read_saved(path, {SCHEMA: AuditResult.from_dict})[0]
    return result
