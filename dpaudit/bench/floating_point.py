"""The floating-point check measured: the bound that it reaches on naive noise, and how often it accuses sound noise."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import stats

from dpaudit.bench.design import Design
from dpaudit.bench.repeats import audits
from dpaudit.errors import DpauditError
from dpaudit.results.model import FloatingPointFinding

EPSILON = 0.1
AUDIT_SAMPLES = 20_000  # of an input, of the audit: the check takes half as many
SAMPLES = 10_000  # of an input, of the check; the low bits are tested on seven tenths of them
NAIVE_BOUND = 5.0  # nats: the median bound on naive noise that is asked for, fifty times its epsilon
MIN_P_VALUE = 0.01  # of the exact test that sound noise is accused at most as often as promised

Sampler = Callable[[Any, int, np.random.Generator], Any]


def naive(data: float, size: int, rng: np.random.Generator) -> Any:
    """Laplace noise added in floating point: right on the real line, and given away by its low bits."""
    return data + rng.laplace(scale=1.0 / EPSILON, size=size)


def on_grid(data: float, size: int, rng: np.random.Generator) -> Any:
    """The same, the sum rounded to a grid of 2^-10 before it is released."""
    return np.round(naive(data, size, rng) * 1024.0) / 1024.0


def of_integers(data: float, size: int, rng: np.random.Generator) -> Any:
    """Discrete Laplace noise on an integer, released in tenths: the division rounds once, whatever the input was."""
    tail = -np.expm1(-EPSILON)
    return (int(data) + rng.geometric(tail, size) - rng.geometric(tail, size)) / 10.0


def of_nothing(data: float, size: int, rng: np.random.Generator) -> Any:
    """Noise alone: every bit of it has the same law on all inputs."""
    return rng.laplace(scale=1.0 / EPSILON, size=size)


SOUND: Mapping[str, Sampler] = {"on a grid": on_grid, "of integers": of_integers, "of nothing": of_nothing}


def floating_point(design: Design) -> dict[str, Any]:
    """Bounds on naive noise over `design.seeds` seeds; accusations of sound noise over `design.alarm_audits` of each.

    "met": the median bound on naive noise is at least `NAIVE_BOUND`, all of its seeds leak, and the accusations do not
    contradict the check's own error rate.
    """
    started = time.perf_counter()
    found = _findings(design, naive, "naive noise", design.seeds)
    rate, bounds = found[-1].error_rate, [finding.pairs[0].epsilon_lower for finding in found]
    accused = {
        name: sum(finding.verdict == "leaks" for finding in _findings(design, sampler, name, design.alarm_audits))
        for name, sampler in SOUND.items()
    }
    sound, alarms = len(SOUND) * design.alarm_audits, sum(accused.values())
    p_value = float(stats.binom.sf(alarms - 1, sound, rate))
    median, leaking = statistics.median(bounds), sum(bound > EPSILON for bound in bounds)
    return {
        "samples": SAMPLES,
        "epsilon": EPSILON,
        "bounds": bounds,
        "bound": median,
        "leaking": leaking,
        "sound_audits": sound,
        "accused": accused,
        "error_rate": rate,
        "p_value": p_value,
        "seconds": time.perf_counter() - started,
        "says": f"naive Laplace noise, ε = {EPSILON:g}: ε ≥ {median:.2f} from {SAMPLES:,} draws of each input (median; "
        f"{leaking} of {len(bounds)} leak); sound noise accused: {alarms} of {sound} (promised: at most {rate:.1%})",
        "met": median >= NAIVE_BOUND and leaking == len(bounds) and p_value >= MIN_P_VALUE,
    }


def _findings(design: Design, sampler: Sampler, name: str, count: int) -> list[FloatingPointFinding]:
    options = {"claim": f"eps={EPSILON}", "samples": AUDIT_SAMPLES, "mode": "fixed"}
    results = audits(design, "floating_point", name, sampler, count, **options)
    found = [result.floating_point for result in results]
    for finding in found:
        if finding is None or not finding.pairs:
            reason = finding.message if finding is not None else "nothing"
            raise DpauditError(f"the floating-point check must run, got {reason!r}.")
    return [finding for finding in found if finding is not None]
