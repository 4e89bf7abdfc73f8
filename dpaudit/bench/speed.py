"""Waiting times: start, reading, checks, tests, audits of one and of many pairs, and how these grow.

Conventions: seconds are of the processor, of this process or of one that was started for it and its children, so that
other programs on the machine count little; they are medians of `repeats`. Where a line is about a ratio, both are
measured in turn in one run. A line says what is asked for as text, and `met` compares it.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dpaudit
from dpaudit.bench.design import Design
from dpaudit.bench.numbers import gaussian, laplace
from dpaudit.bench.repeats import PAIR, TIMED_MODES, audit_and_drawing, median_seconds, seconds_of
from dpaudit.bench.scaling import calibrated, drawing_seconds
from dpaudit.bench.vectors import laplace_vector
from dpaudit.errors import DpauditError
from dpaudit.features.outcomes import read_outputs
from dpaudit.running.workers import LokyWorkers

OUTPUTS = 10_000  # that are read
TABLES = 1_000  # the same of tables, which are larger; what is reported is for as many as `OUTPUTS`
ONE_PAIR = 100_000  # labelled draws of an audit of one pair
DRAWS = 1_000_000  # labelled draws of the audit whose time is compared with drawing them
PAIR_SAMPLES = 5_000  # of each input, where there are many pairs
N_PAIRS = (105, 2_016)  # pairs: of 15 and of 64 inputs, the second one just above `MANY_PAIRS`
BASE = "import numpy, scipy.stats"  # which a start is compared with: most programs of this field import them
# What curves are taken at.
PAIRS_AT, DRAWS_AT = (3, 10, 36, 105, 300, 1_035, 2_016), (1_000, 10_000, 100_000, 1_000_000)
DIMENSIONS_AT, DIMENSION_SAMPLES = (1, 3, 10, 30, 100), 5_000
SLOWEST = 60.0  # seconds that a point of a curve may take, after which no larger one is measured
CURVE_OF_PROCESSES = 40_000  # outputs of a subject that takes 10 microseconds for each
HISTOGRAM_TEST = """
import numpy as np

def histogram(data, rng):
    return {cell: count + float(rng.laplace(scale=1.0)) for cell, count in zip("abcd", data)}

def test_histogram(dp_audit):
    dp_audit(histogram, claim="eps=1", pairs=[((5, 3, 2, 1), (6, 3, 2, 1))])
"""
TABLE_SUBJECT = """
import numpy as np
import pandas

def table(data, rng):
    return pandas.DataFrame({"cell": ["a", "b"], "count": np.asarray(data) + rng.laplace(size=2)})
"""


Line = dict[str, Any]  # what is measured, the value, what is asked for, and whether that is met


def start(design: Design) -> dict[str, Any]:
    """`import dpaudit; dpaudit.audit` and `dpaudit --help`, over `BASE`, in turn in processes of their own."""
    program = "import dpaudit; dpaudit.audit"
    commands = (
        [sys.executable, "-c", BASE],
        [sys.executable, "-c", program],
        [sys.executable, "-m", "dpaudit", "--help"],
    )
    times = [[_of_process(command) for command in commands] for _ in range(design.overhead_repeats)]
    base, audit, helped = (statistics.median(column) for column in zip(*times, strict=True))
    over = f"times `{BASE}`"
    return _told(
        _line(f"`{program}`", audit, 0.6, f" s, {audit / base:.2f} {over}"),
        _line("`dpaudit --help`", helped, 0.15, f" s, {helped / base:.2f} {over}"),
    )


def reading(design: Design) -> dict[str, Any]:
    """Outputs that are read: flat dictionaries, records in records and, where pandas is installed, tables."""
    rng = np.random.default_rng(0)
    numbers, kinds = rng.normal(size=(OUTPUTS, 2)).tolist(), rng.integers(0, 3, OUTPUTS).tolist()
    flat = [{"count": a, "mean": b, "kind": kind} for (a, b), kind in zip(numbers, kinds, strict=True)]
    nested = [{"of": {"count": a, "means": [b, 2.0]}, "kind": k} for (a, b), k in zip(numbers, kinds, strict=True)]

    def columns() -> None:
        for key in ("count", "mean", "kind"):
            np.array([output[key] for output in flat], dtype=float)

    def milliseconds(outputs: list[Any]) -> float:
        return 1e3 * median_seconds(lambda: read_outputs(outputs, len(outputs)), design)

    read_outputs(flat, OUTPUTS)
    base, of_flat, of_nested = 1e3 * median_seconds(columns, design), milliseconds(flat), milliseconds(nested)
    listed = "times as long as to list the numbers"
    lines = [
        _line(f"{OUTPUTS:,} flat dictionaries", of_flat, 10.0, f" ms, {of_flat / base:.3g} {listed}", unit=" ms"),
        _line(f"{OUTPUTS:,} records in records", of_nested, None, f" ms, {of_nested / base:.3g} {listed}"),
    ]
    if importlib.util.find_spec("pandas") is not None:
        import pandas

        tables = [pandas.DataFrame({"cell": ["a", "b"], "count": pair}) for pair in numbers[:TABLES]]
        lines.append(_line(f"{OUTPUTS:,} tables of pandas", milliseconds(tables) * OUTPUTS / TABLES, None, " ms"))
    return _told(*lines)


def checks(design: Design) -> dict[str, Any]:
    """`dpaudit check` on a function that returns a table, and a histogram in a test at the `ci` profile."""
    check = [sys.executable, "-m", "dpaudit", "check", "table.py:table", "--claim", "eps=1"]
    check += ["--pairs", "[0.0,0.0],[1.0,0.0]", "--seed", "1"]
    test = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_histogram.py", "--dp-profile", "ci"]
    asked = [("a histogram in a test at the `ci` profile", test, 3.0)]
    if importlib.util.find_spec("pandas") is not None:
        asked.insert(0, ("`dpaudit check` on a function that returns a table", check, 10.0))
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "table.py").write_text(TABLE_SUBJECT, encoding="utf-8")
        Path(folder, "test_histogram.py").write_text(HISTOGRAM_TEST, encoding="utf-8")
        for what, command, most in asked:
            took = statistics.median(_of_process(command, folder, (0, 1, 5)) for _ in range(design.overhead_repeats))
            lines.append(_line(what, took, most))
    return _told(*lines)


def one_pair(design: Design) -> dict[str, Any]:
    """Sequential audits of one pair whose noise keeps the claim exactly, and their time over that of drawing alone."""
    _audit(laplace, PAIR, 500)  # so that no later one imports anything
    lines = []
    for claim, sample, most in (("eps=1", laplace, 0.4), ("mu=1", gaussian, 1.0), ("rho=0.5", gaussian, 1.0)):
        run = functools.partial(_audit, sample, PAIR, ONE_PAIR // 2, claim)
        lines.append(_line(f"one pair, {ONE_PAIR:,} draws, {claim}", median_seconds(run, design), most))
    for mode, limit in zip(TIMED_MODES, (4.0, 1.5), strict=True):
        times = [audit_and_drawing(mode, DRAWS, k, time.process_time) for k in range(design.overhead_repeats)]
        ratio = statistics.median(audit / drawing for audit, drawing in times)
        lines.append(_line(f"{DRAWS:,} Laplace draws, {mode}, over the drawing", ratio, limit, unit=" times"))
    return _told(*lines)


def pairs(design: Design) -> dict[str, Any]:
    """Audits of many pairs, on both sides of the switch to all-pairs tables."""
    _audit(laplace, PAIR, 500)
    lines = []
    for count, most in zip(N_PAIRS, (5.0, 20.0), strict=True):
        took = median_seconds(functools.partial(_audit_pairs, count), design)
        lines.append(_line(f"{count:,} pairs, {PAIR_SAMPLES:,} samples", took, most))
    return _told(*lines)


def curves(design: Design) -> dict[str, Any]:
    """Seconds of an audit by its number of pairs, draws, dimensions and processes.

    One audit a point: what is asked of them is their course. `curves` has (size, seconds) by name.
    """
    _audit(laplace, PAIR, 500)
    most = 1 if design.overhead_repeats == 1 else None  # of each curve, points, in a quick run
    found = {
        "pairs": _curve(PAIRS_AT[:most], _audit_pairs),
        "draws": _curve(DRAWS_AT[:most], lambda draws: _audit(laplace, PAIR, draws // 2)),
        "dimensions": _curve(DIMENSIONS_AT[:most], _audit_of_vectors),
        "processes": _of_processes(),
    }
    summary = "; ".join(
        f"{name}: " + ", ".join(f"{seconds:.3g} s at {size:,}" for size, seconds in points)
        for name, points in found.items()
    )
    return {"curves": found, "says": summary, "met": True}


def _curve(sizes: Sequence[int], run: Callable[[int], None]) -> list[tuple[int, float]]:
    points: list[tuple[int, float]] = []
    for size in sizes:
        if points and points[-1][1] > SLOWEST:
            break
        points.append((size, seconds_of(functools.partial(run, size))))
    return points


def _of_processes() -> list[tuple[int, float]]:
    """Seconds of the clock of drawing with 1, 2, ... processes: those of the processor do not fall."""
    subject, points = calibrated(), []
    for count in range(1, min(os.cpu_count() or 1, 8) + 1):
        workers = LokyWorkers(count)
        drawing_seconds(subject, 1, workers)  # they have started then
        points.append((count, drawing_seconds(subject, CURVE_OF_PROCESSES // count, workers)))
    return points


def _audit_pairs(count: int) -> None:
    """An audit of so many pairs, each with a budget of its distance, which the noise keeps exactly."""
    inputs = [float(k) for k in range(2 + int((2.0 * count) ** 0.5))]
    chosen = [(a, b) for k, a in enumerate(inputs) for b in inputs[k + 1 :]][:count]
    claim = dpaudit.MetricDP(lambda x, y: abs(x - y))
    dpaudit.audit(laplace, claim, chosen, samples=PAIR_SAMPLES, seed=1, floating_point=False)


def _audit(sample: Any, pair: tuple[Any, Any], samples: int, claim: str = "eps=1") -> None:
    dpaudit.audit(sample, claim, [pair], samples=samples, seed=1, floating_point=False)


def _audit_of_vectors(dimensions: int) -> None:
    _audit(laplace_vector, (np.zeros(dimensions), np.eye(dimensions)[0]), DIMENSION_SAMPLES)


def _of_process(command: Sequence[str], folder: str | None = None, statuses: Collection[int] = (0,)) -> float:
    """Seconds of the processor that a process and its children took.

    `DpauditError` if it ends with another status than these.
    """
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in statuses:
        summary = (done.stderr.strip() or done.stdout.strip())[-500:]
        raise DpauditError(f"{' '.join(command[1:4])} must end with one of {sorted(statuses)}, got {summary!r}.")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _line(what: str, value: float, most: float | None, said: str = "", unit: str = " s") -> Line:
    """One line of the table; with no limit it is asked that columns are read as such."""
    asked, is_met = ("column by column", None) if most is None else (f"{most:g}{unit}", value <= most)
    return {"what": what, "value": f"{value:.3g}{said or unit}", "asked": asked, "met": is_met}


def _told(*lines: Line) -> dict[str, Any]:
    said = "; ".join(f"{line['what']}: {line['value']} (asked for: {line['asked']})" for line in lines)
    return {"lines": list(lines), "says": said, "met": all(line["met"] is not False for line in lines)}
