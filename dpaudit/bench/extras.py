"""Measurements that are not of one problem: overhead, low bits, peak memory and processes. More are added by name.

Those of other packages are found through the entry-point group `dpaudit.measurements` (each entry point: an `Extra`);
that is where a measurement goes that needs more than this package, as one over a universe of inputs does.
"""

from __future__ import annotations

import importlib.metadata
import statistics
import subprocess
import sys
import time
from typing import Any, Literal

import numpy as np

import dpaudit
from dpaudit.bench.design import TARGETS, Design
from dpaudit.bench.doubles import floating_point
from dpaudit.bench.extra import Extra
from dpaudit.bench.scaling import jobs
from dpaudit.errors import DpauditError, UsageError

GROUP = "dpaudit.measurements"
MODES: tuple[Literal["sequential", "fixed"], ...] = ("sequential", "fixed")
# Peak resident memory in kilobytes (bytes on macOS) of one audit in a process of its own.
MEMORY_PROGRAM = """
import resource, sys, dpaudit
def laplace(data, size, rng):
    return data + rng.laplace(size=size)
dpaudit.audit(laplace, "eps=1", [(0.0, 1.0)], samples=int(sys.argv[1]) // 2, mode=sys.argv[2], seed=1)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def overhead(design: Design) -> dict[str, Any]:
    """Time of an audit of Laplace noise exactly on its budget over the time of drawing the same outputs.

    The drawing is of the same sizes in the same order, in turn with the audit, so that both meet the same machine.
    """
    record: dict[str, Any] = {"draws": design.overhead_draws}
    for mode in MODES:
        ratios, audits, drawings = [], [], []
        for repeat in range(design.overhead_repeats):
            sizes: list[int] = []

            def laplace(data: float, size: int, rng: np.random.Generator, sizes: list[int] = sizes) -> Any:
                sizes.append(size)
                return data + rng.laplace(size=size)

            start = time.perf_counter()
            dpaudit.audit(laplace, "eps=1", [(0.0, 1.0)], samples=design.overhead_draws // 2, mode=mode, seed=repeat)
            audits.append(time.perf_counter() - start)
            rng, start = np.random.default_rng(repeat), time.perf_counter()
            for size in sizes:
                _ = 1.0 + rng.laplace(size=size)
            drawings.append(time.perf_counter() - start)
            ratios.append(audits[-1] / drawings[-1])
        record[mode] = {
            "ratio": statistics.median(ratios),
            "ratios": ratios,
            "audit_seconds": statistics.median(audits),
            "drawing_seconds": statistics.median(drawings),
        }
    record["ratio"], limit = max(record[mode]["ratio"] for mode in MODES), TARGETS["overhead"]
    taken = " and ".join(f"{record[mode]['ratio']:.3g} times in {mode} mode" for mode in MODES)
    record["says"] = f"an audit of {design.overhead_draws:,} Laplace draws takes the time of drawing them {taken} "
    record["says"] += f"(at most {limit:g})"
    record["met"] = record["ratio"] <= limit
    return record


def memory(design: Design) -> dict[str, Any]:
    """Peak memory of an audit with many draws over that of one with few, each in a process of its own."""
    record: dict[str, Any] = {"draws": list(design.memory_draws)}
    for mode in MODES:
        peaks = []
        for draws in design.memory_draws:
            command = [sys.executable, "-c", MEMORY_PROGRAM, str(draws), mode]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise DpauditError(f"the audit of {draws:,} draws must end, got {done.stderr.strip()[-500:]!r}.")
            peaks.append(int(done.stdout))
        record[mode] = {"peaks": peaks, "ratio": peaks[1] / peaks[0]}
    record["ratio"] = max(record[mode]["ratio"] for mode in MODES)
    return record


EXTRAS: tuple[Extra, ...] = (
    Extra("overhead", "time of an audit over the time of drawing its outputs", overhead),
    Extra("floating_point", "what the low bits of naive and of sound noise give away", floating_point),
    Extra("memory", "peak memory with many draws over that with few", memory, by_default=False),
    Extra("jobs", "what a second process is worth", jobs, by_default=False),
)


def load_extras() -> dict[str, Extra]:
    """All named measurements, this package's own first.

    Raises
    ------
    UsageError
        If two have one name.
    """
    extras = {extra.name: extra for extra in EXTRAS}
    for entry in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda entry: entry.name):
        extra = entry.load()
        if extra.name in extras:
            raise UsageError(f"measurements must have different names, got {extra.name!r} twice.")
        extras[extra.name] = extra
    return extras
