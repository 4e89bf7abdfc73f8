"""What people wait for: start, reading, checks, tests, audits of one and of many pairs, and how these grow.

Conventions: seconds are of the processor, of this process or of one that was started for it and its children, so that
other programs on the machine count little; they are medians of `repeats`. Where a line is about a ratio, both are
measured in turn in one run. A line says what is asked for as text, and `met` compares it.
"""

from __future__ import annotations

import dataclasses
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

import dpaudit
from dpaudit.bench.design import Design
from dpaudit.bench.scaling import Drawing, calibrated
from dpaudit.errors import DpauditError
from dpaudit.features.outcomes import read_outputs
from dpaudit.running.workers import LokyWorkers, Packed

OUTPUTS = 10_000  # that are read
TABLES = 1_000  # the same of tables, which are larger; what is reported is for as many as `OUTPUTS`
ONE_PAIR = 100_000  # labelled draws of an audit of one pair
DRAWS = 1_000_000  # labelled draws of the audit whose time is compared with drawing them
PAIR_SAMPLES = 5_000  # of each input, where there are many pairs
MANY = (105, 2_016)  # pairs: of 15 and of 64 inputs, the second one just above `MANY_PAIRS`
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


@dataclasses.dataclass(frozen=True)
class Line:
    """One line of the table: what is measured, what came out, what is asked for and whether that is met."""

    what: str
    value: str
    asked: str
    met: bool | None

    def record(self) -> dict[str, Any]:
        """As plain values."""
        return dataclasses.asdict(self)


def start(design: Design) -> dict[str, Any]:
    """`import dpaudit; dpaudit.audit` and `dpaudit --help`, over `BASE`, in turn in processes of their own."""
    commands = {
        "base": [sys.executable, "-c", BASE],
        "audit": [sys.executable, "-c", "import dpaudit; dpaudit.audit"],
        "help": [sys.executable, "-m", "dpaudit", "--help"],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(design.overhead_repeats):
        for name, command in commands.items():
            seconds[name].append(_of_process(command))
    base, audit, helped = (statistics.median(seconds[name]) for name in ("base", "audit", "help"))
    return _told(
        Line("`import dpaudit; dpaudit.audit`", _over(audit, base, BASE), "0.6 s", audit <= 0.6),
        Line("`dpaudit --help`", _over(helped, base, BASE), "0.15 s", helped <= 0.15),
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

    read_outputs(flat, OUTPUTS)
    base = _median(columns, design)
    lines = [
        Line(f"{OUTPUTS:,} flat dictionaries", _milliseconds(flat, base, design), "10 ms", None),
        Line(f"{OUTPUTS:,} records in records", _milliseconds(nested, base, design), "column by column", None),
    ]
    lines[0] = dataclasses.replace(lines[0], met=_median(lambda: read_outputs(flat, OUTPUTS), design) <= 0.01)
    try:
        import pandas
    except ImportError:
        return _told(*lines)
    tables = [pandas.DataFrame({"cell": ["a", "b"], "count": pair}) for pair in numbers[:TABLES]]
    took = _median(lambda: read_outputs(tables, TABLES), design) * OUTPUTS / TABLES
    lines.append(Line(f"{OUTPUTS:,} tables of pandas", f"{1e3 * took:.3g} ms", "column by column", None))
    return _told(*lines)


def checks(design: Design) -> dict[str, Any]:
    """`dpaudit check` on a function that returns a table, and a histogram in a test at the `ci` profile."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "table.py").write_text(TABLE_SUBJECT, encoding="utf-8")
        Path(folder, "test_histogram.py").write_text(HISTOGRAM_TEST, encoding="utf-8")
        check = [sys.executable, "-m", "dpaudit", "check", "table.py:table", "--claim", "eps=1"]
        check += ["--pairs", "[0.0,0.0],[1.0,0.0]", "--seed", "1"]
        test = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_histogram.py"]
        test += ["--dp-profile", "ci"]
        asked = [("a histogram in a test at the `ci` profile", test, 3.0)]
        if _has("pandas"):
            asked.insert(0, ("`dpaudit check` on a function that returns a table", check, 10.0))
        for what, command, most in asked:
            took = statistics.median(_of_process(command, folder, (0, 1, 5)) for _ in range(design.overhead_repeats))
            lines.append(Line(what, f"{took:.3g} s", f"{most:g} s", took <= most))
    return _told(*lines)


def one_pair(design: Design) -> dict[str, Any]:
    """Sequential audits of one pair whose noise keeps the claim exactly, and their time over that of drawing alone."""
    _warm()
    lines = []
    for claim, sample, most in (
        ("eps=1", _laplace, 0.4),
        ("mu=1", _gaussian, 1.0),
        ("rho=0.5", _gaussian, 1.0),
    ):

        def audit(claim: str = claim, sample: Any = sample) -> None:
            dpaudit.audit(sample, claim, [(0.0, 1.0)], samples=ONE_PAIR // 2, seed=1, floating_point=False)

        took = _median(audit, design)
        lines.append(Line(f"one pair, {ONE_PAIR:,} draws, {claim}", f"{took:.3g} s", f"{most:g} s", took <= most))
    modes: tuple[tuple[Literal["sequential", "fixed"], float], ...] = (("sequential", 4.0), ("fixed", 1.5))
    for mode, limit in modes:
        ratio = statistics.median(_over_drawing(mode, number) for number in range(design.overhead_repeats))
        what = f"{DRAWS:,} Laplace draws, {mode}, over the drawing"
        lines.append(Line(what, f"{ratio:.3g} times", f"{limit:g} times", ratio <= limit))
    return _told(*lines)


def pairs(design: Design) -> dict[str, Any]:
    """Audits of many pairs, on both sides of the switch to universes."""
    _warm()
    lines = []
    for count, most in zip(MANY, (5.0, 20.0), strict=True):
        took = _median(lambda count=count: _audit_pairs(count), design)  # type: ignore[misc]
        lines.append(Line(f"{count:,} pairs, {PAIR_SAMPLES:,} samples", f"{took:.3g} s", f"{most:g} s", took <= most))
    return _told(*lines)


def curves(design: Design) -> dict[str, Any]:
    """How the seconds of an audit grow with its pairs, draws and dimensions, and fall with processes.

    One audit a point: what is asked of them is their course. `curves` has (size, seconds) by name.
    """
    _warm()
    most = 1 if design.overhead_repeats == 1 else None  # of each curve, points, in a quick run
    found = {
        "pairs": _curve(PAIRS_AT[:most], _audit_pairs),
        "draws": _curve(DRAWS_AT[:most], lambda draws: _audit_of(_laplace, 0.0, 1.0, draws // 2)),
        "dimensions": _curve(DIMENSIONS_AT[:most], _audit_of_vectors),
        "processes": _of_processes(),
    }
    told = "; ".join(
        f"{name}: " + ", ".join(f"{seconds:.3g} s at {size:,}" for size, seconds in points)
        for name, points in found.items()
    )
    return {"curves": found, "says": told, "met": True}


def _curve(sizes: Sequence[int], run: Callable[[int], None]) -> list[tuple[int, float]]:
    points: list[tuple[int, float]] = []
    for size in sizes:
        if points and points[-1][1] > SLOWEST:
            break
        points.append((size, _seconds(lambda size=size: run(size))))  # type: ignore[misc]
    return points


def _of_processes() -> list[tuple[int, float]]:
    """Seconds of the clock of drawing with 1, 2, ... processes: those of the processor do not fall."""
    subject = calibrated()
    points = []
    for count in range(1, min(os.cpu_count() or 1, 8) + 1):
        workers, each = LokyWorkers(count), CURVE_OF_PROCESSES // count
        packed = Packed(Drawing(subject), f"drawing by {count}")
        for _ in workers.run(packed, [[1]] * count):  # they have started then
            pass
        began = time.perf_counter()
        for _ in workers.run(packed, [[each]] * count):
            pass
        points.append((count, time.perf_counter() - began))
    return points


def _audit_pairs(count: int) -> None:
    """An audit of so many pairs, each with a budget of its distance, which the noise keeps exactly."""
    inputs = [float(k) for k in range(2 + int((2.0 * count) ** 0.5))]
    chosen = [(a, b) for k, a in enumerate(inputs) for b in inputs[k + 1 :]][:count]
    claim = dpaudit.MetricDP(lambda x, y: abs(x - y))
    dpaudit.audit(_laplace, claim, chosen, samples=PAIR_SAMPLES, seed=1, floating_point=False)


def _audit_of(sample: Any, x: Any, x_prime: Any, samples: int) -> None:
    dpaudit.audit(sample, "eps=1", [(x, x_prime)], samples=samples, seed=1, floating_point=False)


def _audit_of_vectors(dimensions: int) -> None:
    _audit_of(_vectors, (0.0,) * dimensions, (1.0,) + (0.0,) * (dimensions - 1), DIMENSION_SAMPLES)


def _laplace(data: float, size: int, rng: np.random.Generator) -> Any:
    return data + rng.laplace(size=size)


def _gaussian(data: float, size: int, rng: np.random.Generator) -> Any:
    return data + rng.normal(size=size)


def _vectors(data: tuple[float, ...], size: int, rng: np.random.Generator) -> Any:
    return np.asarray(data) + rng.laplace(size=(size, len(data)))


def _over_drawing(mode: Literal["sequential", "fixed"], seed: int) -> float:
    """Seconds of an audit of `DRAWS` labelled draws over those of drawing what it drew."""
    sizes: list[int] = []

    def laplace(data: float, size: int, rng: np.random.Generator) -> Any:
        sizes.append(size)
        return data + rng.laplace(size=size)

    audit = _seconds(lambda: dpaudit.audit(laplace, "eps=1", [(0.0, 1.0)], samples=DRAWS // 2, mode=mode, seed=seed))

    def draw() -> None:
        rng = np.random.default_rng(seed)
        for size in sizes:
            _ = 1.0 + rng.laplace(size=size)

    return audit / _seconds(draw)


def _milliseconds(outputs: list[Any], base: float, design: Design) -> str:
    took = _median(lambda: read_outputs(outputs, len(outputs)), design)
    return f"{1e3 * took:.3g} ms, {took / base:.3g} times as long as to list the numbers"


def _over(seconds: float, base: float, of: str) -> str:
    return f"{seconds:.3g} s, {seconds / base:.2f} times `{of}`"


def _seconds(run: Callable[[], Any]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


def _warm() -> None:
    """A small audit, so that no later one imports anything."""
    _audit_of(_laplace, 0.0, 1.0, 500)


def _median(run: Callable[[], Any], design: Design) -> float:
    return statistics.median(_seconds(run) for _ in range(design.overhead_repeats))


def _of_process(command: Sequence[str], folder: str | None = None, statuses: Collection[int] = (0,)) -> float:
    """Seconds of the processor that a process and its children took.

    Raises
    ------
    DpauditError
        If it ends with another status than these.
    """
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in statuses:
        told = (done.stderr.strip() or done.stdout.strip())[-500:]
        raise DpauditError(f"{' '.join(command[1:4])} must end with one of {sorted(statuses)}, got {told!r}.")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _has(library: str) -> bool:
    from importlib.util import find_spec

    return find_spec(library) is not None


def _told(*lines: Line) -> dict[str, Any]:
    said = "; ".join(f"{line.what}: {line.value} (asked for: {line.asked})" for line in lines)
    is_met = all(line.met is not False for line in lines)
    return {"lines": [line.record() for line in lines], "says": said, "met": is_met}
