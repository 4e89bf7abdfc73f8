"""Synthetic results for the tests of the reports: no mechanism runs, every number is made by a formula."""

import dataclasses
import io
import itertools
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from dpaudit.conformance.result import CheckRecord, CheckResult
from dpaudit.privacy.claims import Budget
from dpaudit.reports import terminal
from dpaudit.reports.dossier import Dossier
from dpaudit.reports.reading import read_dossier
from dpaudit.reports.redaction import redacted
from dpaudit.results.all_pairs_table import NOT_ASKED, AllPairsTable
from dpaudit.results.model import (
    INTERVALS,
    SAME_INPUT,
    AuditResult,
    Finding,
    FloatingPointFinding,
    FloatingPointPair,
    LearnedLoss,
    Look,
    PlantedCell,
    Power,
    Severity,
    SideFinding,
    Sketch,
    WitnessRecord,
)
from dpaudit.results.plan_result import EventEstimate, Needed, Plan, PlannedBudget, PlannedPower
from dpaudit.results.trade_off import LossLimit, MonotoneLimits, TradeOffBand, TradeOffPoint
from dpaudit.results.utility_result import UtilityFinding, UtilityResult
from dpaudit.scores.result import GuessRecord, IndependentBound, ScoresResult
from dpaudit.symbolic.certificate import Certificate, CertifiedPair, Event

# fmt: off
CITIES = [
    "Aachen", "Berlin", "Bremen", "Celle", "Dresden", "Essen", "Erfurt", "Fulda", "Freiburg", "Gera", "Hagen",
    "Halle", "Hamburg", "Jena", "Kassel", "Kiel", "Koblenz", "Leipzig", "Lemgo", "Mainz", "Marburg", "Munich",
    "Passau", "Rostock", "Siegen", "Speyer", "Trier", "Ulm", "Weimar", "Worms",
]
# fmt: on
HOSTILE = '<script>alert("x")</script>\x1b[31m\u202egnp.exe\u0000|[b]&amp;\ud800`**' + "A" * 500


def make_finding(x_id="a", x_prime_id="b", ratio=0.8, budget=1.0, verdict=None, mode="sequential", **changes):
    """A finding whose lower bound is `ratio` times `budget`, with looks (sequential) or a p-value (fixed)."""
    verdict = verdict or ("violated" if ratio > 1.0 else "not_refuted")
    share, draws = changes.pop("error_share", 0.001), 20_000
    goal = math.log(1.0 / share)
    steps = [int(draws * 2.0 ** (-k)) for k in range(9, -1, -1)]
    slope = goal * (1.4 if ratio > 1.0 else 0.6 * ratio - 0.7)
    wiggle = [math.sin(3.0 * k + 7.0 * ratio) for k in range(len(steps))]
    wealth = [slope * step / draws + 0.5 * w for step, w in zip(steps, wiggle, strict=True)]
    looks = tuple(Look(step, w, ratio * budget * step / draws) for step, w in zip(steps, wealth, strict=True))
    correct = int(4000 * (0.5 + 0.25 * min(ratio, 1.9)))
    values = {
        "id": f"{x_id}|{x_prime_id}",
        "x_id": x_id,
        "x_prime_id": x_prime_id,
        "x": {"city": x_id},
        "x_prime": {"city": x_prime_id},
        "budget": Budget(budget, 0.0),
        "parameter": "epsilon",
        "parameter_budget": budget,
        "verdict": verdict,
        "epsilon_lower": ratio * budget,
        "parameter_lower": ratio * budget,
        "ratio_lower": ratio,
        "log_wealth": wealth[-1] if mode == "sequential" else None,
        "p_value": None if mode == "sequential" else min(1.0, 10.0 ** (-8.0 * ratio)),
        "error_share": share,
        "samples": draws,
        "power": Power(0.1, 0.9, 1.15 * budget + 0.1, budget),
        "witness": WitnessRecord(
            f"Guesses {x_id} when the output is above 0.37, and {x_prime_id} when it is below -0.21.",
            {"kind": "threshold", "at": [-0.21, 0.37]},
            correct,
            4000 - correct,
            6000,
            {"epsilon": budget, "delta": 0.0},
        ),
        "looks": looks if mode == "sequential" else (),
    }
    return Finding(**{**values, **changes})


def make_result(findings, mode="sequential", **changes):
    """A result of the findings, with the provenance that an audit would write."""
    values = {
        "claim": "metric=great circle",
        "confidence": 0.95,
        "mode": mode,
        "seed": 20_261_120,
        "replayable": True,
        "findings": tuple(findings),
        "not_asked": (),
        "report_delta": 0.0,
        "samples": 20_000 * len(findings),
        "seconds": 12.3456,
        "subject": {
            "name": "city release",
            "target": "release.py:mechanism",
            "fingerprint": "0123abcd",
            "interface": "sample(data, size, rng)",
        },
        "environment": {
            "python": "3.11.7",
            "numpy": "2.1.0",
            "scipy": "1.14.0",
            "dpaudit": "0.1.0",
            "platform": "Linux",
        },
        "options": {"samples": 10_000, "witness": "auto"},
    }
    return AuditResult(**{**values, **changes})


def make_cities(inputs=30, violated=True):
    """All pairs of `inputs` cities under a metric claim; one city leaks, the most distant pairs are not asked."""
    rng = np.random.default_rng(5)
    names = CITIES[:inputs] if inputs <= 30 else [f"{name} {i}" for i, name in enumerate((CITIES * 2)[:inputs])]
    places = rng.uniform(0.0, 6.0, (inputs, 2))
    findings, not_asked = [], []
    for i, j in itertools.combinations(range(inputs), 2):
        distance = float(np.hypot(*(places[i] - places[j])))
        if distance > 5.5:
            not_asked.append(f"{names[i]}|{names[j]}")
            continue
        ratio = float(rng.uniform(0.0, 0.95)) if distance > 0.4 else 0.0
        if violated and (i == 4 or j == 4) and distance < 3.0:
            ratio = 1.02 + 0.9 * float(rng.random())
        findings.append(make_finding(names[i], names[j], ratio, distance))
    return make_result(findings, not_asked=tuple(not_asked))


def make_fixed():
    """One budget for twelve pairs of six inputs, each tested once."""
    names = [f"dataset {k}" for k in range(6)]
    pairs = list(itertools.combinations(names, 2))[:12]
    findings = [make_finding(x, y, 0.99 - 0.05 * k, 1.0, mode="fixed") for k, (x, y) in enumerate(pairs)]
    return make_result(findings, mode="fixed", claim="eps=1")


def make_error():
    """Three pairs of which one broke."""
    broken = make_finding(
        "b", "c", 0.0, verdict="error", looks=(), log_wealth=None, witness=None, power=None, ratio_lower=None
    )
    broken = dataclasses.replace(broken, message="ValueError: scale must be positive, got -1.0.", samples=0)
    return make_result([make_finding("a", "b", 0.5), broken, make_finding("a", "c", 0.6)], claim="eps=1")


def make_inconclusive():
    """Two pairs, one of which could not have shown anything."""
    weak = make_finding("a", "c", 0.1, verdict="inconclusive", power=Power(0.1, 0.9, math.inf, 1.0))
    return make_result([make_finding("a", "b", 0.7), weak], claim="eps=1")


def make_infinite():
    """Budget 0, infinite bounds, NaN: the values that a scale or a number format can fall over."""
    findings = [
        make_finding(
            "a", "b", 1.0, 0.0, verdict="violated", ratio_lower=math.inf, parameter_lower=0.4, epsilon_lower=0.4
        ),
        make_finding(
            "a", "c", 1.0, 0.0, verdict="not_refuted", ratio_lower=None, parameter_lower=0.0, epsilon_lower=0.0
        ),
        make_finding("b", "c", 2.0, 1.0, parameter_lower=math.inf, epsilon_lower=math.inf, ratio_lower=math.inf),
        make_finding(
            "a", "d", 0.5, 1.0, looks=(Look(10, -math.inf, 0.0), Look(20, math.inf, math.inf), Look(30, math.nan, 0.0))
        ),
        make_finding(
            "b",
            "d",
            0.5,
            1.0,
            parameter_lower=math.nan,
            epsilon_lower=math.nan,
            ratio_lower=math.nan,
            log_wealth=math.nan,
        ),
    ]
    return make_result(findings, claim="metric=discrete")


def make_hostile():
    """Every name, message and input is an attack on some format."""
    finding = make_finding(
        HOSTILE, HOSTILE + "2", 1.5, 1.0, id=HOSTILE, x=HOSTILE, x_prime={HOSTILE: HOSTILE}, message=HOSTILE
    )
    record = WitnessRecord(HOSTILE, {HOSTILE: HOSTILE}, 10, 1, 0, {"epsilon": 1.0, "delta": 0.0})
    findings = [dataclasses.replace(finding, witness=record)]
    findings += [make_finding(HOSTILE + str(k), f"{k}", 0.5, 1.0) for k in range(3)]
    findings.append(make_finding("x", HOSTILE, 0.0, verdict="error", message=HOSTILE, looks=()))
    facts = {HOSTILE: HOSTILE, "name": HOSTILE, "target": HOSTILE, "fingerprint": HOSTILE}
    return make_result(
        findings,
        claim=HOSTILE,
        subject=facts,
        environment={"dpaudit": HOSTILE},
        options={HOSTILE: [HOSTILE]},
        not_asked=(HOSTILE,),
        floating_point=make_doubles(name=HOSTILE).floating_point,
        side_findings=(SideFinding("timing", "found", HOSTILE, 0.01, {HOSTILE: HOSTILE}),),
    )


def make_renyi():
    """A zCDP claim with one violated pair."""
    witness = WitnessRecord(
        "Pays more the further the output lies to the right.", {}, 812, 188, 0, {"order": 2.0, "epsilon": 1.0}
    )
    finding = make_finding("0", "1", 1.3, 0.5, parameter="rho", epsilon_lower=6.1, witness=witness)
    finding = dataclasses.replace(finding, budget=Budget(5.7565, 1e-6))
    return make_result([finding], claim="rho=0.5", report_delta=1e-6)


def make_doubles(leaks=True, name="a"):
    """A result whose low bits leak for one of two pairs, or were found to say nothing."""
    quiet = FloatingPointPair(
        name, name, "c", Budget(1.0, 0.0), "nothing_found", 0.4, 0.8, 5e-4, 100, 60, 13_584, 0.0026, f"Outputs {name}"
    )
    words = "Outputs that are no multiple of 2^-53: 185 of 6,839 on x = a, 0 of 6,905 on x′ = b."
    loud = dataclasses.replace(
        quiet, id="a|b", x_prime_id="b", verdict="leaks", epsilon_lower=3.2695, p_value=1.7e-52, description=words
    )
    verdict, pairs = ("leaks", (loud, quiet)) if leaks else ("nothing_found", (quiet,))
    result = make_result([make_finding("a", "b", 0.9), make_finding("a", "c", 0.5)], claim="eps=1")
    return dataclasses.replace(result, floating_point=FloatingPointFinding(verdict, "", 1e-3, 60_000, pairs, 0))


def make_sides():
    """Side findings of known kinds and of one that is not known."""
    sides = (
        SideFinding("timing", "found", "Inputs of a take longer than those of b.", 0.001, {"seconds": [0.1, 0.2]}),
        SideFinding("pair_search", "nothing_found", "No pair that was tried is worse.", None, {}),
        SideFinding("later_kind", "not_applicable", "There is nothing of the kind.", None, {}),
    )
    return make_result([make_finding("a", "b", 0.9)], claim="eps=1", side_findings=sides)


def make_check(name="city release", message="seen twice"):
    """A run of the conformance suite with a check of every status."""
    statuses = ("not_refuted", "violated", "error", "inconclusive", "xfail", "skipped")
    names = ("law_mixture", "batch_contract", "pickling", "law_sequential_composition", "deep_copy", "refuses_nan")
    reasons = ("", "", "", "", "known since long", "")
    records = tuple(
        CheckRecord(name, check, f"keeps {check}", status, message, reason, 1e-4, 0.25)
        for check, status, reason in zip(names, statuses, reasons, strict=True)
    )
    mechanism = {"name": name, "target": "release.py:mechanism", "fingerprint": "0123abcd", "interface": "sample"}
    mechanism |= {"claim": "eps=1", "pairs": 2}
    return CheckResult(records, (mechanism,), 0.001, 10_000, 7, 1.5, {"python": "3.11.7", "dpaudit": "0.1.0"})


def make_utility(name="city release", input_id="Aachen"):
    """Three bounds: one kept, one broken, one that could not be measured."""
    kept = UtilityFinding("mean", "expectation", input_id, {"city": input_id}, False, 2.0, 2.0, "not_refuted", 1.0, 0.9)
    broken = UtilityFinding(
        "tail", "tail", input_id, 1.0, True, 9.0, 0.05, "violated", 0.2, 0.18, 0.22, 1e-9, 0.06, 0.01, 1000
    )
    error = UtilityFinding("other", "tail", input_id, 1.0, False, math.nan, 0.05, "error", message="ValueError: no.")
    subject = {"name": name, "target": "release.py:mechanism", "fingerprint": "0123abcd", "interface": "sample"}
    bounds = ("mean: E loss <= 2", "tail: P(loss > 9) <= 0.05", "other: P(loss > 1) <= 0.05")
    findings = (kept, broken, error)
    return UtilityResult(0.95, 3, 3000, 0.5, findings, bounds, subject, {"dpaudit": "0.1.0"}, {"samples": 1000})


def make_unclear():
    """Error bounds of which one may be broken and one says nothing."""
    excess = UtilityFinding("mean", "expectation", "x", 0, False, 1.0, 1.0, "not_refuted", 1.07, 0.932, 1.22, samples=9)
    empty = dataclasses.replace(excess, bound="empty", verdict="inconclusive", measured=0.1, says_nothing=True)
    return dataclasses.replace(make_utility("unclear release"), findings=(excess, empty), bounds=("mean", "empty"))


def make_broken():
    """One pair with all that a finding can hold: a sketch, a band, limits, a bound after the verdict, long inputs."""
    rule = "Guess x where the output is at most 0.4, x′ where it is above 0.6."
    sketch = Sketch("the output", (-1.0, 0.0, 0.5, 1.0, 2.0), (9, 30, 8, 3), (2, 7, 31, 10), (1.0, 1.0, -0.2, -1.0))
    witness = WitnessRecord(rule, {}, 3700, 300, 6000, {"epsilon": 1.0, "delta": 0.0}, sketch)
    inputs = {"x": [0] * 50, "x_prime": [0] * 40 + [1] + [0] * 9}
    finding = make_finding("0.0", "1.0", 1.7, witness=witness, severity=Severity(5000, 1.7), **inputs)
    points = tuple(TradeOffPoint(a, (1.0 - a) ** 3, (1.0 - a) ** 4, max(0.0, 1.0 - 2.7 * a)) for a in (0.0, 0.2, 1.0))
    limits = MonotoneLimits("the output", (LossLimit(0.1, 2.3456), LossLimit(0.01, 3.5)))
    band = TradeOffBand(finding.id, 0.005, 800, "the output", points, "", limits)
    return make_result([finding], claim="eps=1", trade_off=band, floating_point=make_doubles().floating_point)


def make_quiet(**changes):
    """Two pairs in which nothing was found, with what would have been found in outputs of several masses."""
    learned = (LearnedLoss("one threshold", 1.3), LearnedLoss(INTERVALS, 1.6), LearnedLoss("a tail", math.inf))
    by_mass = ((0.3, 1.1), (0.1, 1.2), (0.01, 2.5), (0.001, math.inf))
    power = dataclasses.replace(Power(0.1, 0.9, 1.2, 1.0, learned, by_mass=by_mass), **changes)
    findings = [make_finding("a", "b", 0.7, mode="fixed", power=power), make_finding("a", "c", 0.2, mode="fixed")]
    return make_result(findings, mode="fixed", claim="eps=1")


def make_planted():
    """The same where leaks were planted into the audit's own outputs."""
    learned = (LearnedLoss("one threshold", 1.4, 20, 20), LearnedLoss("a tail", math.inf, 11, 20, False))
    cells = tuple(
        PlantedCell(form, mass, loss, found, 20)
        for form, found in (("one threshold", 20), ("a tail", 11))
        for mass, loss in ((0.1, 1.4), (0.01, 2.8))
    )
    return make_quiet(learned=learned, cells=cells, planted_draws=20_000)


def make_all_pairs():
    """A table of all pairs of thirty inputs: one violated, one not asked, one of budget 0."""
    first, second = np.triu_indices(30, 1)
    budget = 0.1 + 0.1 * (second - first)
    lower = 0.8 * budget
    lower[7], budget[3], budget[5] = 2.0 * budget[7], 0.0, np.inf
    verdict = np.where(budget < 0.5, 2, 3).astype(np.int8)
    verdict[7], verdict[5] = 0, NOT_ASKED
    lower[3] = lower[5] = 0.0
    ids = tuple(f"<b>city{k}|" if k == 1 else f"city {k}" for k in range(30))
    p_values = np.where(verdict == 0, -30.0, -0.1)
    table = AllPairsTable(ids, first, second, budget, lower, p_values, verdict, budget + 0.1, 0.0, 1_000, 900)
    table = AllPairsTable.from_dict(table.to_dict())  # rounded as in a file
    return make_result([make_finding("0.0", "1.0", 1.7)], claim="eps=1", universe=table)


def make_dependent(kind="call_order"):
    """One pair that is violated and one that is inconclusive, of draws that depend on each other."""
    findings = [make_finding("a", "b", 1.5), make_finding("a", "c", 0.3, verdict="inconclusive")]
    return make_result(findings, side_findings=(SideFinding(kind, "found", "Outcomes changed.", 1e-6, {}),))


def make_plan():
    """A plan for two budgets, of one of which a rule was estimated."""
    needed = (Needed("sequential", 3000.0, 9000.0, 4.5), Needed("fixed", 2000.0, math.inf, 3.0))
    power = PlannedPower(0.1, False, 1.2, 1.5, 2.0, 1.4, 1.9, 1.4, 1.9, 1.3, needed, 1900.0)
    rare = PlannedPower(0.01, True, math.inf, math.inf, math.inf, math.inf, math.inf, None, None, 1.3, needed)
    forms = (LearnedLoss("one threshold", 1.9), LearnedLoss("a tail", math.inf))
    estimate = EventEstimate(0.25, 0.75, 2000, "Guesses a.")
    budgets = (
        PlannedBudget("a|b", 3, "epsilon", 1.0, (power, rare), forms, estimate),
        PlannedBudget("a|c", 1, "epsilon", 2.0, (power,), forms),
    )
    subject = {"name": "city release", "target": "release.py:mechanism"}
    return Plan("eps=1", 0.95, "fixed", 5000, 0.1, 0.9, 4, 1, 3, False, 0.0125, budgets, 40_000, 20.0, 800, 2000.0, 7,
                subject, {"dpaudit": "0.1.0"}, 20.0, 9000, 2)  # fmt: skip


def make_scores(**changes):
    """An audit of scores of one run, with its bound if canaries are answered independently."""
    points = tuple(TradeOffPoint(a, (1.0 - a) ** 3, None, max(0.0, 1.0 - 2.7 * a)) for a in (0.0, 0.2, 1.0))
    rules = (GuessRecord("the highest scores", 200, 180, 400, 0.5), GuessRecord("the lowest scores", 90, 80, 400, 0.5))
    values = {
        "claim": "rho=0.5", "parameter": "rho", "budget": 0.5, "delta": 1e-5, "design": "one_run", "confidence": 0.95,
        "seed": 3, "scores_in": 400, "scores_out": 400, "epsilon_lower": 1.5, "parameter_lower": 0.6, "ceiling": 4.0,
        "parameter_ceiling": 2.5, "trade_off": points, "guesses": rules, "decided_after": None, "log_wealth": None,
        "assumptions": ("Canaries were put in by fair coins.",), "notes": ("Scores were rounded.",), "seconds": 1.5,
        "environment": {"dpaudit": "0.1.0"}, "independent": IndependentBound(1.8, 0.7, 5.0, 3.0, 0.4),
    }  # fmt: skip
    return ScoresResult(**{**values, **changes})


def make_certificate(*values, **changes):
    """A certificate with a pair of each verdict and its loss, which is exact."""
    event = Event(("1",), 1, "x", Fraction(3, 4), Fraction(1, 4))
    pairs = tuple(
        CertifiedPair(f"in|out {k}", "in", f"out {k}", verdict, 1.0, value, value, 0.0, None, 0.0, value, value,
                      event if verdict == "violated" else None, reason="too deep" if verdict == "open" else "")
        for k, (verdict, value) in enumerate(values)
    )  # fmt: skip
    found = {"claim": "eps=1", "rounding": 1e-9, "pairs": pairs, "inputs": 2, "runs": 40, "seconds": 0.5, **changes}
    return Certificate(subject={"name": "response", "target": "r.py:response", "fingerprint": "c0"}, **found)


def make_judged(folder):
    """A report on an audit, three certificates and two audits of scores, read from their files."""
    made = {
        "audit": make_quiet(), "kept": make_certificate(("kept", 0.9)),
        "broken": make_certificate(("violated", 1.2), ("kept", 0.9)),
        "open": make_certificate(("open", 0.0), refusal="It draws from a normal law."), "scores": make_scores(),
        "quiet scores": make_scores(parameter_lower=0.2, epsilon_lower=0.9, independent=None),
    }  # fmt: skip
    for name, result in made.items():
        result.save(folder / "judged" / f"{name}.json")
    return read_dossier([f"judged/{name}.json" for name in made])


def make_dossier(name="single"):
    """An audit, a run of the conformance suite and error bounds."""
    return Dossier.of(MAKERS[name](), make_check(), make_utility())


def make_attacked():
    """The same of which every text is an attack on some format."""
    return Dossier.of(make_hostile(), make_check(HOSTILE, HOSTILE), make_utility(HOSTILE, HOSTILE))


MAKERS = {
    "violated": make_cities,
    "not_refuted": lambda: make_cities(violated=False),
    "fixed": make_fixed,
    "error": make_error,
    "inconclusive": make_inconclusive,
    "infinite": make_infinite,
    "hostile": make_hostile,
    "single": lambda: make_result([make_finding("0.0", "1.0", 1.7)], claim="eps=1"),
    "empty": lambda: make_result([], not_asked=("a|b",), claim="eps=inf"),
    "broken": make_broken,
    "learned": make_quiet,
    "planted": make_planted,
    "few cities": lambda: make_cities(6),
    "same input": lambda: make_result(
        [make_finding("a", "a", 0.0, verdict="inconclusive", notes=(SAME_INPUT,), power=None, witness=None)],
        claim="eps=1",
    ),
    "dependent": make_dependent,
    "all pairs": make_all_pairs,
    "renyi": make_renyi,
    "doubles": make_doubles,
    "doubles nothing": lambda: make_doubles(leaks=False),
    "sides": make_sides,
}


def terminal_page(blocks):
    """Say what a terminal of 80 columns shows."""
    console = Console(file=io.StringIO(), width=80, color_system=None)
    console.print(terminal.show(blocks), crop=False)
    return console.file.getvalue()


@pytest.fixture
def synthetic():
    """The factory: `synthetic.finding(...)`, `synthetic.result(...)`, `synthetic.make(name)`, `synthetic.names`."""
    return SimpleNamespace(
        finding=make_finding,
        result=make_result,
        cities=make_cities,
        make=lambda name: MAKERS[name](),
        names=tuple(MAKERS),
        hostile=HOSTILE,
        check=make_check,
        utility=make_utility,
        dependent=make_dependent,
        plan=make_plan,
        unclear=make_unclear,
        scores=make_scores,
        judged=make_judged,
        certificate=make_certificate,
        dossier=make_dossier,
        attacked=make_attacked,
        page=terminal_page,
    )


@pytest.fixture(params=sorted(MAKERS))
def any_result(request):
    """Each synthetic result in turn."""
    return MAKERS[request.param]()


@pytest.fixture(params=[*sorted(MAKERS), "attacked", "redacted"])
def any_dossier(request):
    """A report on each synthetic result in turn, one that is attacked, and one that is redacted."""
    if request.param in MAKERS:
        return Dossier.of(MAKERS[request.param]())
    return make_attacked() if request.param == "attacked" else redacted(make_dossier("single"))


@pytest.fixture
def keys_in():
    """A function that writes a new pair of keys as PEM files into a folder: their two paths."""

    def write(folder, kind="ed25519"):
        """A new pair of keys as PEM files."""
        pytest.importorskip("cryptography", reason="needs the extra sign")
        from cryptography.hazmat.primitives import serialization as forms
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519

        key = ed25519.Ed25519PrivateKey.generate() if kind == "ed25519" else ec.generate_private_key(ec.SECP256R1())
        pem = forms.Encoding.PEM
        (folder / "key.pem").write_bytes(key.private_bytes(pem, forms.PrivateFormat.PKCS8, forms.NoEncryption()))
        public = key.public_key().public_bytes(pem, forms.PublicFormat.SubjectPublicKeyInfo)
        (folder / "public.pem").write_bytes(public)
        return folder / "key.pem", folder / "public.pem"

    return write
