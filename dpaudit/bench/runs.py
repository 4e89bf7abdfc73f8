"""Runs that an audit takes behind its decision: small batches, and the low bits of calls.

Each is counted over the runs that the decision took. Runs are exact: they do not depend on the machine.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

import dpaudit
from dpaudit.bench.design import Design
from dpaudit.inference.order import (
    BATCHES,
    MIN_BEHIND_VIOLATION,
    SHARE_OF_DRAWN,
    most_runs_of_batches,
    runs_in_one_call,
)

SAMPLES = 20_000  # of an input, at most: a violation ends an audit long before
LITTLE = {"0.6": 0.6, "0.4": 0.4, "0.2": 0.2}  # Laplace scales on (0, 1) against a claim of epsilon 1
CALLS_SAMPLES = 20_000  # of an input, of an audit of calls that keep their claim on the real line
EPSILON = 1.0
MIN_RUNS_IN_BATCHES = BATCHES * MIN_BEHIND_VIOLATION  # runs in small batches behind any violation


def runs(design: Design) -> dict[str, Any]:
    """Runs behind a decision, over `design.seeds` seeds of each subject, and where naive noise is found in calls.

    "met": of three subjects that are violated, the median of the runs of small batches is at most what they may take
    (`_allowed`); and the low bits of naive noise leak in all audits of calls.
    """
    record: dict[str, Any] = {"subjects": {}}
    for name, scale in LITTLE.items():
        decided, behind = [], []
        for number in range(design.seeds):
            result = dpaudit.audit(
                _batches(scale),
                f"eps={EPSILON}",
                [(0.0, 1.0)],
                samples=SAMPLES,
                seed=design.audit_seed(f"scale {name}", "runs", number),
                floating_point=False,
                severity=False,
            )
            decided.append(result.findings[0].samples)
            behind.append(result.samples - decided[-1])
        record["subjects"][name] = {
            "decided": statistics.median(decided),
            "behind": statistics.median(behind),
            "most": max(behind),
            "over_share": sum(b > _allowed(d) for b, d in zip(behind, decided, strict=True)),
            "ratio": statistics.median(b / _allowed(d) for b, d in zip(behind, decided, strict=True)),
        }
    taken, bounds = [], []
    for number in range(design.seeds):
        result = dpaudit.audit(
            _call,
            f"eps={EPSILON}",
            [(0.0, 1.0)],
            samples=CALLS_SAMPLES,
            mode="fixed",
            seed=design.audit_seed("calls", "runs", number),
            floating_point=True,
        )
        assert result.floating_point is not None
        taken.append(result.floating_point.samples)
        bounds.append(result.floating_point.pairs[0].epsilon_lower if result.floating_point.pairs else 0.0)
    leaking = sum(bound > EPSILON for bound in bounds)
    record["calls"] = {
        "audit": 2 * CALLS_SAMPLES,
        "runs": statistics.median(taken),
        "bound": statistics.median(bounds),
        "leaking": leaking,
        "audits": len(bounds),
    }
    ratios = [of["ratio"] for of in record["subjects"].values()]
    record["says"] = "; ".join(
        f"scale {name}: decided after {of['decided']:g} runs, {of['behind']:g} behind it (at most {of['most']}; over "
        f"that in {of['over_share']} of {design.seeds})"
        for name, of in record["subjects"].items()
    )
    record["says"] += (
        f"; low bits of {2 * CALLS_SAMPLES:,} calls: {record['calls']['runs']:g} calls more, ε ≥ "
        f"{record['calls']['bound']:.2f} (medians), {leaking} of {len(bounds)} leak"
    )
    record["met"] = max(ratios) <= 1.0 and leaking == len(bounds)
    return record


def _allowed(decided: int) -> float:
    """Runs that a violation may have behind it, where nothing hints at dependence."""
    return max(MIN_RUNS_IN_BATCHES, SHARE_OF_DRAWN * decided) + runs_in_one_call(most_runs_of_batches(decided, 1.0))


def _batches(scale: float) -> Any:
    return lambda data, size, rng: data + rng.laplace(scale=scale, size=size)


def _call(data: float, rng: np.random.Generator) -> float:
    return data + rng.laplace(scale=1.0 / EPSILON)
