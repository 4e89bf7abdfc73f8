"""Measurements of one problem: draws to detection, bounds, false alarms, and the classic subjects.

Conventions: draws are draws a side, half of the labelled draws of a pair, those that the audit fits on included. Each
function below returns a record of plain numbers, the same for the same design whatever else runs. Times are wall
clock.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

from scipy import stats

import dpaudit
from dpaudit.bench.design import CONFIDENCE, Design
from dpaudit.bench.optimum import bound, draws_to_detection, parameter_bound
from dpaudit.bench.problem import Law, Peer, Problem
from dpaudit.inference.order import MAX_SHARE
from dpaudit.results.model import AuditResult, Finding

Record = dict[str, Any]
MARGIN, MIN_CLASSIC = 10, 20_000  # of the audit of a classic subject: times the optimum's draws, and draws a side
DOUBTFUL = 2.0  # standard errors of the optimum's bound: a shortfall above which more audits are held
HALVINGS = 40  # of the search for the draws that a bound needs: to 1e-12 of them


def audited(problem: Problem, **options: Any) -> AuditResult:
    """One audit of the problem's pair, without the stage behind a violation: the bench counts what a verdict takes."""
    about: dict[str, Any] = {"confidence": CONFIDENCE, "severity": False}
    return dpaudit.audit(problem.mechanism, problem.claim, [problem.pair], **about, **options)


def finding_of(problem: Problem, design: Design, part: str, number: int, **options: Any) -> Finding:
    """The finding of one more audit of a problem; `SubjectError` where the audit of it broke."""
    finding = audited(problem, seed=design.audit_seed(problem.id, part, number), **options).findings[0]
    if finding.verdict == "error" and finding.message:
        raise dpaudit.SubjectError(finding.message)
    return finding


def measure(problem: Problem, part: str, design: Design, tight_problems: int) -> Record:
    """One part of one problem. What it raises is a record with `error`, so that the other problems go on."""
    start = time.perf_counter()
    try:
        record = MEASURES[part](problem, design, tight_problems)
    except Exception as error:
        record = {"error": f"{type(error).__name__}: {error}"}
    return record | {"seconds": round(time.perf_counter() - start, 3)}


def concerns(problem: Problem, part: str) -> bool:
    """Tell whether a part has anything to measure of a problem."""
    has_law = problem.make_law is not None
    return {
        "draws": not problem.sound,
        "bounds": has_law and problem.pair_claim.family == "hockey-stick",
        "alarms": problem.sound,
        "classics": bool(problem.peers),
    }[part]


def draws(problem: Problem, design: Design, _: int) -> Record:
    """Draws at detection over the seeds, in sequential mode, and the optimum's."""
    best = draws_to_detection(problem.law, problem.pair_claim, CONFIDENCE) if problem.law is not None else None
    optimum = best.draws if best is not None else None
    cap = design.cap(optimum)
    findings = [finding_of(problem, design, "draws", number, samples=cap) for number in range(design.seeds)]
    found = [0.5 * finding.samples if finding.verdict == "violated" else math.inf for finding in findings]
    median = statistics.median(found)
    return {
        "optimum": optimum,
        "cap": cap,
        "found": found,
        "median": median,
        "worst": max(found),
        "missed": sum(math.isinf(value) for value in found),
        "ratio": median / optimum if optimum is not None else None,
    }


def bounds(problem: Problem, design: Design, _: int) -> Record:
    """Lower bounds on the claim's own parameter in fixed mode, and the optimum's.

    Of many problems with few audits each the worst is the unluckiest one. So where the first few say that the shortfall
    is above `DOUBTFUL` standard errors, the bench adds audits, and takes the median of all. (A lucky
    median of few audits stays: the worst reported problem is a doubtful one.)
    """
    assert problem.law is not None
    best = parameter_bound(problem.law, problem.pair_claim, design.bound_draws, CONFIDENCE)
    assert best is not None
    lower: list[float] = []
    error, size = best.standard_error, {"samples": design.bound_draws, "mode": "fixed"}
    for audits in (design.bound_seeds, design.doubtful_seeds):
        if not lower or best.median - statistics.median(lower) > DOUBTFUL * error:
            findings = (finding_of(problem, design, "bounds", k, **size) for k in range(len(lower), audits))
            lower += [finding.parameter_lower for finding in findings]
    median = statistics.median(lower)
    return {
        "parameter": problem.pair_claim.parameter,
        "lower": lower,
        "median": median,
        "optimum": best.median,
        "standard_error": error,
        "shortfall": (best.median - median) / error if error > 0.0 else None,
        "ratio": median / best.median if best.median > 0.0 else None,
    }


def alarms(problem: Problem, design: Design, tight_problems: int) -> Record:
    """Small sequential audits of a sound problem: how many cried wolf, and how many bounds were above the truth."""
    audits = math.ceil(design.tight_audits / tight_problems) if problem.tight else design.alarm_audits
    truth = math.inf if problem.truth is None else problem.truth
    findings = [finding_of(problem, design, "alarms", k, samples=design.alarm_samples) for k in range(audits)]
    return {
        "audits": audits,
        "violated": sum(finding.verdict == "violated" for finding in findings),
        "above_truth": sum(finding.epsilon_lower > truth + 1e-9 for finding in findings),
        "errors": sum(finding.verdict == "error" for finding in findings),
        "tight": problem.tight,
    }


def classics(problem: Problem, design: Design, _: int) -> Record:
    """Fixed audits of a classic subject, each with at most a share of the other tool's runs; their median stands.

    How many runs one takes is decided before, from the optimum's bound: ten times what the optimum needs to be above
    the other tool's bound with 97.5% probability (a rule has to be learned as well) and at least 20,000 a side, or all
    that are allowed where that is less. All audits count: the bound of one is a matter of luck.
    """
    peer = next(peer for peer in problem.peers if peer.runs is not None)
    assert peer.runs is not None and problem.law is not None
    allowed = int(min(design.runs_share * peer.runs, design.most_runs))
    side = _planned(problem.law, peer, int(allowed / (2.0 + MAX_SHARE)))  # of which so much may be drawn beside
    seeds = [design.audit_seed(problem.id, "classics", number) for number in range(design.classic_seeds)]
    results = [audited(problem, samples=side, mode="fixed", seed=seed) for seed in seeds]
    best = bound(problem.law, 0.0, side, CONFIDENCE)
    bounds_found = [result.epsilon_lower for result in results]
    lower = statistics.median(bounds_found)
    reason = ""
    if lower < peer.bound:
        most = bound(problem.law, 0.0, allowed // 2, CONFIDENCE)
        reason = f"the optimum's bound with all {allowed:,} runs is {most.median:.3f} ± {most.standard_error:.3f}"
        if most.guess is not None:
            reason += f", by guesses on {most.guess.mass:.2g} of the outputs, which it is told and the auditor finds"
    return {
        "lower": lower,
        "bounds": bounds_found,
        "runs": max(result.samples for result in results),
        "allowed": allowed,
        "optimum": best.median,
        "standard_error": best.standard_error,
        "truth": problem.truth,
        "reached": lower >= peer.bound,
        "reason": reason,
        "peers": [
            {"tool": other.tool, "bound": other.bound, "confidence": other.confidence, "runs": other.runs}
            for other in problem.peers
        ],
    }


MEASURES: dict[str, Callable[[Problem, Design, int], Record]] = {
    "draws": draws,
    "bounds": bounds,
    "alarms": alarms,
    "classics": classics,
}


def alarm_p_value(violated: int, audits: int) -> float:
    """Exact one-sided p-value of so many false alarms against a rate of 1 - confidence."""
    return float(stats.binom.sf(violated - 1, audits, 1.0 - CONFIDENCE))


def _planned(law: Law, peer: Peer, most: int) -> int:
    """Draws a side for the audit of a classic subject."""

    def is_enough(side: int) -> bool:
        best = bound(law, 0.0, side, CONFIDENCE)
        return best.median - 2.0 * best.standard_error >= peer.bound

    low, high = 10, max(10, most // MARGIN)
    if not is_enough(high):
        return most
    for _ in range(HALVINGS):
        if high - low <= max(1, high // 50):
            break
        middle = int(math.sqrt(low * high))
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return min(most, max(MIN_CLASSIC, MARGIN * high))
