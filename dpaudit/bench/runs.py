"""Runs that an audit takes behind its decision: small batches, calls for one output each, and the low bits of calls.

Each is counted over the runs that the decision took. Runs are exact: they do not depend on the machine.
"""

from __future__ import annotations

import functools
import statistics
from typing import Any

import numpy as np

from dpaudit.audits.single_calls import SIZES as SINGLE_CALLS
from dpaudit.bench.design import Design
from dpaudit.bench.numbers import laplace
from dpaudit.bench.repeats import audits
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
MIN_RUNS_IN_BATCHES = BATCHES * MIN_BEHIND_VIOLATION  # runs in small batches behind any violation


def runs(design: Design) -> dict[str, Any]:
    """Runs behind a decision, over `design.seeds` seeds of each subject, and where naive noise is found in calls.

    "met": of three subjects that are violated, the median of the runs behind it is at most what they may take
    (`_allowed`); and the low bits of naive noise leak in all audits of calls.
    """
    subjects = {name: _behind(design, name, scale) for name, scale in LITTLE.items()}
    calls = _calls(design)
    said = [
        f"scale {name}: decided after {of['decided']:g} runs, {of['behind']:g} behind it (at most {of['most']}; over "
        f"that in {of['over_share']} of {design.seeds})"
        for name, of in subjects.items()
    ]
    said.append(
        f"low bits of {2 * CALLS_SAMPLES:,} calls: {calls['runs']:g} calls more, ε ≥ {calls['bound']:.2f} (medians), "
        f"{calls['leaking']} of {calls['audits']} leak"
    )
    is_met = all(of["ratio"] <= 1.0 for of in subjects.values()) and calls["leaking"] == calls["audits"]
    return {"subjects": subjects, "calls": calls, "says": "; ".join(said), "met": is_met}


def _behind(design: Design, name: str, scale: float) -> dict[str, Any]:
    subject = functools.partial(laplace, scale=scale)
    options = {"samples": SAMPLES, "floating_point": False, "severity": False}
    results = audits(design, "runs", f"scale {name}", subject, design.seeds, **options)
    decided = [result.findings[0].samples for result in results]
    behind = [result.samples - samples for result, samples in zip(results, decided, strict=True)]
    shares = [more / _allowed(samples) for more, samples in zip(behind, decided, strict=True)]
    return {
        "decided": statistics.median(decided),
        "behind": statistics.median(behind),
        "most": max(behind),
        "over_share": sum(share > 1.0 for share in shares),
        "ratio": statistics.median(shares),
    }


def _calls(design: Design) -> dict[str, Any]:
    options = {"samples": CALLS_SAMPLES, "mode": "fixed", "floating_point": True}
    results = audits(design, "runs", "calls", _call, design.seeds, **options)
    found = [result.floating_point for result in results if result.floating_point is not None]
    bounds = [finding.pairs[0].epsilon_lower if finding.pairs else 0.0 for finding in found]
    return {
        "audit": 2 * CALLS_SAMPLES,
        "runs": statistics.median(finding.samples for finding in found),
        "bound": statistics.median(bounds),
        "leaking": sum(bound > 1.0 for bound in bounds),
        "audits": len(results),
    }


def _allowed(decided: int) -> float:
    """Runs that a violation may have behind it, where nothing hints at dependence."""
    in_batches = max(MIN_RUNS_IN_BATCHES, SHARE_OF_DRAWN * decided)
    return in_batches + runs_in_one_call(most_runs_of_batches(decided, 1.0)) + SINGLE_CALLS.times_of_counted * decided


def _call(data: float, rng: np.random.Generator) -> float:
    return data + rng.laplace()
