"""Measurements that are not of one problem: overhead, low bits, runs, memory, processes, speed. More are added by name.

Those of other packages are found through the entry-point group `dpaudit.measurements` (each entry point: an `Extra`);
that is where a measurement goes that needs more than this package, as one over an all-pairs table of inputs does.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np

import dpaudit
from dpaudit.bench import speed
from dpaudit.bench.comparisons import comparisons
from dpaudit.bench.design import TARGETS, Design
from dpaudit.bench.extra import Extra
from dpaudit.bench.floating_point import floating_point
from dpaudit.bench.repeats import PAIR, TIMED_MODES, Mode, audit_and_drawing, seconds_of
from dpaudit.bench.runs import runs
from dpaudit.bench.scaling import jobs
from dpaudit.errors import DpauditError, UsageError
from dpaudit.extensions import extensions

GROUP = "dpaudit.measurements"
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

    One long audit says what a draw more costs, beside what an audit costs once, and one of calls with one output each,
    what a call costs; `met` is about batches, and the shorter ones.
    """
    record: dict[str, Any] = {
        "draws": design.overhead_draws,
        "long": {"draws": design.long_draws},
        "calls": {"draws": design.overhead_calls},
    }
    for mode in TIMED_MODES:
        repeats = range(design.overhead_repeats)
        times = [audit_and_drawing(mode, design.overhead_draws, repeat, time.perf_counter) for repeat in repeats]
        audit, drawing = (statistics.median(column) for column in zip(*times, strict=True))
        ratios = [audit / drawing for audit, drawing in times]
        record[mode] = {"ratio": statistics.median(ratios), "ratios": ratios}
        record[mode] |= {"audit_seconds": audit, "drawing_seconds": drawing}
        audit, drawing = audit_and_drawing(mode, design.long_draws, 0, time.perf_counter)
        record["long"][mode] = {"ratio": audit / drawing, "audit_seconds": audit, "drawing_seconds": drawing}
        audit, calling = _audit_and_calls(mode, design.overhead_calls)
        record["calls"][mode] = {"ratio": audit / calling, "audit_seconds": audit, "calling_seconds": calling}
    record["ratio"], limit = max(record[mode]["ratio"] for mode in TIMED_MODES), TARGETS["overhead"]
    taken, of_long, of_calls = (
        " and ".join(f"{part[mode]['ratio']:.3g} times in {mode} mode" for mode in TIMED_MODES)
        for part in (record, record["long"], record["calls"])
    )
    record["says"] = f"an audit of {design.overhead_draws:,} Laplace draws takes the time of drawing them {taken} "
    record["says"] += f"(at most {limit:g}), one of {design.long_draws:,} draws {of_long}; "
    record["says"] += f"one of {design.overhead_calls:,} calls with one output each takes their time {of_calls}"
    record["met"] = record["ratio"] <= limit
    return record


def _audit_and_calls(mode: Mode, draws: int) -> tuple[float, float]:
    """Seconds of an audit with so many labelled draws, each of them a call, and of as many calls as it made."""

    def laplace(data: float, rng: np.random.Generator) -> float:
        return data + rng.laplace()

    start = time.perf_counter()
    result = dpaudit.audit(laplace, "eps=1", [PAIR], samples=draws // 2, mode=mode, seed=0)
    audit = time.perf_counter() - start
    calls = result.samples + (result.floating_point.samples if result.floating_point is not None else 0)
    rng = np.random.default_rng(0)
    return audit, seconds_of(lambda: [laplace(1.0, rng) for _ in range(calls)], time.perf_counter)


def memory(design: Design) -> dict[str, Any]:
    """Peak memory of an audit with many draws over that of one with few, each in a process of its own."""
    record: dict[str, Any] = {"draws": list(design.memory_draws)}
    for mode in TIMED_MODES:
        peaks = []
        for draws in design.memory_draws:
            command = [sys.executable, "-c", MEMORY_PROGRAM, str(draws), mode]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise DpauditError(f"the audit of {draws:,} draws must end, got {done.stderr.strip()[-500:]!r}.")
            peaks.append(int(done.stdout))
        record[mode] = {"peaks": peaks, "ratio": peaks[1] / peaks[0]}
    record["ratio"] = max(record[mode]["ratio"] for mode in TIMED_MODES)
    return record


EXTRAS: tuple[Extra, ...] = (
    Extra("overhead", "time of an audit over the time of drawing its outputs", overhead),
    Extra("floating_point", "what the low bits of naive and of sound noise give away", floating_point),
    Extra("runs", "runs that an audit takes behind its decision", runs, by_default=False),
    Extra("memory", "peak memory with many draws over that with few", memory, by_default=False),
    Extra("comparisons", "total runs where others have published theirs", comparisons, by_default=False),
    Extra("jobs", "what a second process is worth", jobs, by_default=False),
    Extra("start", "what a program waits for before its first audit", speed.start, by_default=False),
    Extra("reading", "what outputs that are objects take to read", speed.reading, by_default=False),
    Extra("checks", "what a check and a test of objects take", speed.checks, by_default=False),
    Extra("one_pair", "what an audit of one pair takes", speed.one_pair, by_default=False),
    Extra("pairs", "what audits of many pairs take", speed.pairs, by_default=False),
    Extra("curves", "how the time of an audit grows", speed.curves, by_default=False),
)
# Measurements that one name of `--only` stands for.
SETS = {"speed": ("start", "reading", "checks", "one_pair", "pairs", "runs", "comparisons", "jobs", "curves")}


def load_extras() -> dict[str, Extra]:
    """All named measurements, this package's own first.

    `UsageError` if two have one name.
    """
    extras = {extra.name: extra for extra in EXTRAS}
    for _, extra in extensions(GROUP):
        if extra.name in extras:
            raise UsageError(f"measurements must have different names, got {extra.name!r} twice.")
        extras[extra.name] = extra
    return extras
