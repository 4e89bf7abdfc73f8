"""A bench run: every part of every problem, then the named measurements; the file on disk is complete at any time.

`bench.json` has the schema `dpaudit.bench/1`: the design, what each problem is, the record of each part, the records of
the named measurements, and the overall figures. It is written whole after every record, in strict JSON (infinities are
"inf"), so a run that was interrupted goes on from it. Records do not depend on the number of jobs; only times do.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import joblib

from dpaudit.bench.design import PARTS, Design
from dpaudit.bench.extra import Extra
from dpaudit.bench.measuring import Record, concerns, measure
from dpaudit.bench.problem import Problem
from dpaudit.bench.summary import summary
from dpaudit.environment import environment
from dpaudit.errors import UsageError
from dpaudit.results.codec import from_json, to_json
from dpaudit.results.saving import SHARED, json_text, write_whole

SCHEMA = "dpaudit.bench/1"
FILE = "bench.json"
Tell = Callable[[str], None]


def run_bench(
    problems: Sequence[Problem],
    design: Design,
    out: Path,
    *,
    parts: Sequence[str] = PARTS,
    extras: Sequence[Extra] = (),
    jobs: int = 1,
    resume: bool = False,
    tell: Tell = lambda text: None,
) -> Record:
    """Measure the problems and write `bench.json` in the folder `out` after every record; its content.

    Records do not depend on `jobs` (their times do). Extras are measured after the problems, one after the other and in
    this process: they are about time and memory. `resume` goes on from the file that is there, and measures what it
    lacks or what broke. `tell` takes a line of text on each measurement.

    `UsageError` if there is nothing to measure, or the file to resume is of another design.
    """
    path = out / FILE
    stated = to_json(dataclasses.asdict(design))
    content: Record = {"schema": SCHEMA, "design": stated, "environment": environment(), "problems": {}, "extras": {}}
    if resume and path.exists():
        earlier = load_bench(path)
        if to_json(earlier["design"]) != stated:
            raise UsageError(f"design must be that of the run to resume, got another at {str(path)!r}.")
        content |= {name: earlier[name] for name in ("problems", "extras")}
    for problem in problems:
        entry = content["problems"].setdefault(problem.id, {"parts": {}})
        content["problems"][problem.id] = describe(problem) | {"parts": entry["parts"]}
    tight = sum(problem.tight for problem in problems)
    tasks = [
        (problem, part)
        for part in PARTS
        if part in parts
        for problem in problems
        if concerns(problem, part) and not _is_done(content["problems"][problem.id]["parts"].get(part))
    ]
    if not tasks and not extras and not any(entry["parts"] for entry in content["problems"].values()):
        raise UsageError(f"--only must leave something to measure, got {', '.join(parts)} of {len(problems)} problems.")
    write_bench(path, content)
    for number, (problem, part, record) in enumerate(_measured(tasks, design, tight, jobs), start=1):
        content["problems"][problem.id]["parts"][part] = record
        write_bench(path, content)
        state = f": {record['error']}" if "error" in record else f", {record['seconds']:.1f} s"
        tell(f"[{number}/{len(tasks)}] {part}: {problem.id}{state}")
    for extra in extras:
        if _is_done(content["extras"].get(extra.name)):
            continue
        tell(f"{extra.name}: {extra.title}")
        try:
            content["extras"][extra.name] = extra.run(design)
        except Exception as error:
            content["extras"][extra.name] = {"error": f"{type(error).__name__}: {error}"}
        write_bench(path, content)
    write_bench(path, content)
    return content


def write_bench(path: Path, content: Record) -> None:
    """Write the file whole, with the overall figures of what it holds so far."""
    content["summary"] = summary(content)
    write_whole(path, json_text(to_json(content)), SHARED)


def load_bench(path: Path) -> Record:
    """The content of a `bench.json`, infinities as floats.

    `UsageError` if there is no such file, or it is no bench result of this schema.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"bench must be a readable file, got {str(path)!r} ({error.strerror}).") from error
    except ValueError as error:
        raise UsageError(f"bench must be JSON, got {str(path)!r}: {error}.") from error
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        given = content.get("schema") if isinstance(content, dict) else type(content).__name__
        raise UsageError(f"schema must be {SCHEMA!r}, got {given!r} at {str(path)!r}.")
    result: Record = from_json(content)
    return result


def describe(problem: Problem) -> Record:
    """Describe a problem as plain values."""
    return {
        "family": problem.family,
        "kind": problem.kind,
        "claim": str(problem.claim),
        "dimensions": problem.dimensions,
        "sound": problem.sound,
        "tight": problem.tight,
        "truth": problem.truth,
        "law": problem.law.note if problem.law is not None else None,
        "source": problem.source,
    }


def _is_done(record: Record | None) -> bool:
    return record is not None and "error" not in record


def _measured(
    tasks: Sequence[tuple[Problem, str]], design: Design, tight: int, jobs: int
) -> Iterator[tuple[Problem, str, Record]]:
    """The records in the order of the tasks, as they come."""
    calls = (joblib.delayed(measure)(problem, part, design, tight) for problem, part in tasks)
    records = joblib.Parallel(n_jobs=jobs, return_as="generator")(calls)
    for (problem, part), record in zip(tasks, records, strict=True):
        yield problem, part, record
