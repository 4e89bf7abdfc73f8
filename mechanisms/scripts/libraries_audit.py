"""Other people's libraries audited: `python mechanisms/scripts/libraries_audit.py` writes reports/libraries/.

Each library's Laplace, Gaussian, geometric or randomised response and selection mechanism against the claim of its own
metadata, with draws per second; and the known defects, each saved as an audit.json that can be replayed. Exit status 0
if what is meant to keep its claim was not refuted and every defect was found (and found again on fresh draws), else 1.

A library that is not installed is left out, and said so. Needed: pip install 'dpaudit[opendp,diffprivlib,python-dp]'.
"""

import argparse
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import dpaudit
from dpaudit.environment import environment
from dpaudit.privacy.pairs import as_pairs
from dpaudit.results.codec import to_json
from dpaudit.results.saving import write_whole
from dpaudit.subjects.callables import Subject
from dpaudit.subjects.targets import resolve_target

EXAMPLES = "docs/examples/libraries"
# Of each sound audit: 23 of them raise one false alarm in 2.3% of the runs of this report at most.
CONFIDENCE = 0.999
DEFECT_CONFIDENCE = 0.95
SAMPLES = 20_000  # of an audit, or what can be had in the seconds of an audit
TIMED_SECONDS = 0.3
# (file, name in it, what it is): attributes of the example files.
MECHANISMS = [
    ("opendp_mechanisms", "laplace", "Laplace"),
    ("opendp_mechanisms", "gaussian", "Gaussian"),
    ("opendp_mechanisms", "geometric", "geometric"),
    ("opendp_mechanisms", "randomised_response", "randomised response"),
    ("opendp_mechanisms", "noisy_max", "report noisy max"),
    ("diffprivlib_mechanisms", "laplace", "Laplace"),
    ("diffprivlib_mechanisms", "gaussian", "Gaussian (analytic)"),
    ("diffprivlib_mechanisms", "geometric", "geometric"),
    ("diffprivlib_mechanisms", "randomised_response", "randomised response"),
    ("diffprivlib_mechanisms", "exponential", "exponential mechanism"),
    ("diffprivlib_mechanisms", "permute_and_flip", "permute and flip"),
    ("diffprivlib_mechanisms", "mean", "tools.mean"),
    ("diffprivlib_mechanisms", "scaler", "models.StandardScaler"),
    ("pydp_mechanisms", "laplace", "Laplace"),
    ("pydp_mechanisms", "gaussian", "Gaussian"),
    ("pydp_mechanisms", "geometric", "geometric (Laplace on integers)"),
    ("pydp_mechanisms", "bounded_sum", "BoundedSum"),
    ("pydp_mechanisms", "count", "Count"),
    ("pydp_mechanisms", "median", "Median"),
    ("pydp_mechanisms", "partitions", "partition selection"),
    ("estimator_and_sql", "line", "an estimator of one's own"),
    ("estimator_and_sql", "adults", "a SQL query of one's own"),
]
DEFECTS = ("diffprivlib_defects", "pydp_defects")
OLD_OPENDP = ".venv-opendp-0.2/bin/python"
OLD_OPENDP_DEFECT = {
    "library": "opendp",
    "version": "0.2.2",
    "what": "sized bounded sum (by exec:)",
    "promise": "the least epsilon that the relation accepts when one record is replaced",
    "cause": "the sensitivity is computed in whole numbers and rounded down: 2 for a sum that moves by 3",
    "issues": "opendp/opendp 314 (fixed later)",
}
DEFECT_SAMPLES = 2_000  # unless it says otherwise here: slow ones, and the one that is small
SAMPLES_OF = {"linear_regression": 1_000, "quantile": 300, "categorical": 100_000}


def main() -> int:
    """Audit everything, write the report, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("reports/libraries"))
    parser.add_argument("--seconds", type=float, default=20.0, help="for each audit; slower libraries get fewer draws")
    parser.add_argument("--only", default="", help="only what has this text in its name")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # diffprivlib says that NaN is all that it could divide by, for one defect
    console = Console()
    rows, missing = [], []
    with tempfile.TemporaryDirectory() as folder:
        listed = [(f"{EXAMPLES}/{file}.py:{name}", what) for file, name, what in MECHANISMS]
        for target, what in [*listed, *_programs(Path(folder), missing)]:
            if options.only not in f"{target} {what}":
                continue
            try:
                subject = resolve_target(target)
            except dpaudit.UsageError as error:
                missing.append(f"{what} of {target}: {error}")
                continue
            rows.append(_audited(subject, target, what, options.seed, options.seconds))
            console.print(_line(rows[-1]), highlight=False, soft_wrap=True)
    defects = []
    for name, target, about in _defects(missing):
        if options.only in target:
            defects.append(_defect(name, target, about, options.seed, options.out))
            console.print(_line(defects[-1]), highlight=False, soft_wrap=True)
    for line in missing:
        console.print(f"Left out: {line}", highlight=False, soft_wrap=True)
    report = {
        "schema": "dpaudit.libraries/1",
        "seed": options.seed,
        "confidence": CONFIDENCE,
        "defect_confidence": DEFECT_CONFIDENCE,
        "environment": environment(),
        "mechanisms": rows,
        "defects": defects,
        "left_out": missing,
    }
    text = json.dumps(to_json(report), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(options.out / "libraries.json", text)
    write_whole(options.out / "README.md", markdown(report))
    console.print(f"Written: {options.out / 'README.md'}")
    sound = all(row["verdict"] in ("not_refuted", "inconclusive") for row in rows)
    return 0 if sound and all(defect["found"] and defect["found_again"] for defect in defects) else 1


def _programs(folder: Path, missing: list[str]) -> list[tuple[str, str]]:
    """The examples of exec:COMMAND, where there is something to run them with."""
    found = []
    if shutil.which("node"):
        found.append(("exec:node docs/examples/exec/laplace.js", "Laplace in JavaScript"))
    else:
        missing.append("Laplace in JavaScript: node is not installed.")
    if shutil.which("cc"):
        binary = folder / "geometric"
        subprocess.run(["cc", "-O2", "-o", binary, "docs/examples/exec/geometric.c", "-lm"], check=True)
        found.append((f"exec:{binary}", "geometric in C"))
    else:
        missing.append("geometric in C: there is no C compiler.")
    return found


def _defects(missing: list[str]) -> list[tuple[str, str, dict[str, str]]]:
    """Name, target and description of each known defect."""
    sys.path.insert(0, EXAMPLES)
    found = []
    for file in DEFECTS:
        try:
            module = importlib.import_module(file)
        except ImportError as error:
            missing.append(f"the defects of {file}: {error}")
            continue
        found.extend((name, f"{EXAMPLES}/{file}.py:{name}", about) for name, about in module.DEFECTS.items())
    if Path(OLD_OPENDP).exists():
        command = f"exec:{OLD_OPENDP} docs/examples/exec/opendp_sized_sum.py"
        found.append(("sized_sum", command, OLD_OPENDP_DEFECT))
    else:
        missing.append("the sized bounded sum of OpenDP 0.2.2: see docs/examples/exec/opendp_sized_sum.py.")
    return found


def _audited(subject: Subject, target: str, what: str, seed: int, seconds: float) -> dict[str, Any]:
    """One sound mechanism: its speed, and its audit with the draws that the time is enough for."""
    pairs = as_pairs(subject.pairs() or [(0, 1)])  # the programs state no pairs
    claim = subject.claim or "eps=1"
    speed = _speed(subject, pairs[0].x)
    planned = dpaudit.plan(
        subject,
        claim,
        pairs,
        samples=SAMPLES,
        mode="fixed",
        confidence=CONFIDENCE,
        seconds=seconds,
        event_masses=[0.1],
        seed=seed,
    )
    result = dpaudit.audit(
        subject, claim, pairs, samples=planned.samples, mode="fixed", confidence=CONFIDENCE, seed=seed
    )
    return {"target": _plain(target), "what": what, **_figures(subject, result), "draws_per_second": speed}


def _speed(subject: Subject, data: Any) -> float:
    """Draws per second: of processor time, and of the clock for programs, whose time is another process's."""
    clock = time.perf_counter if str(subject.target).startswith("exec:") else time.process_time
    rng = np.random.default_rng(0)
    size = 1
    subject.sample(data, 1, rng)
    while True:
        started = clock()
        subject.sample(data, size, rng)
        elapsed = clock() - started
        if elapsed > TIMED_SECONDS or size >= 1_000_000:
            return size / elapsed
        size *= 2


def _figures(subject: Subject, result: dpaudit.AuditResult) -> dict[str, Any]:
    finding = result.worst
    metadata = next((side for side in result.side_findings if side.kind == "claim_metadata"), None)
    doubles = result.floating_point
    mechanism = subject.mechanism
    leak = doubles.pairs[0] if doubles is not None and doubles.pairs else None
    return {
        "library": getattr(mechanism, "library", "program"),
        "version": getattr(mechanism, "version", ""),
        "claim": result.claim,
        "metadata": metadata.status if metadata is not None else "not stated",
        "verdict": result.verdict,
        "epsilon_lower": result.epsilon_lower,
        "parameter": finding.parameter,
        "parameter_lower": finding.parameter_lower,
        "detectable": finding.power.detectable if finding.power is not None else None,
        "samples": result.options["samples"],
        "runs": result.samples,
        "seed": result.seed,
        "replayable": result.replayable,
        "floating_point": doubles.verdict if doubles is not None else "not_applicable",
        "floating_point_lower": leak.epsilon_lower if leak is not None else None,
    }


def _defect(name: str, target: str, about: dict[str, str], seed: int, out: Path) -> dict[str, Any]:
    """One defect: found by an audit, saved, and found again by the saved witness on fresh draws of another seed."""
    subject = resolve_target(target)
    low_bits = name.endswith("low_bits")
    result = dpaudit.audit(
        subject,
        samples=SAMPLES_OF.get(name, SAMPLES if low_bits else DEFECT_SAMPLES),
        mode="fixed",
        confidence=DEFECT_CONFIDENCE,
        seed=seed,
        target=target,
        floating_point=low_bits,
    )
    figures = {**_figures(subject, result), **about}
    folder = f"{figures['library']}-{name}".replace("_", "-")
    saved = out / "defects" / folder / "audit.json"
    result.save(saved)
    loaded = dpaudit.load(saved)
    (inputs,) = as_pairs(subject.pairs())
    if low_bits:
        found = result.floating_point is not None and result.floating_point.verdict == "leaks"
        again = found and dpaudit.replay_floating_point(loaded, subject, inputs=inputs, seed=seed + 1).confirmed
    else:
        found = result.verdict == "violated"
        again = found and dpaudit.replay(loaded, subject, subject.claim, inputs=inputs, seed=seed + 1).confirmed
    option = " --floating-point" if low_bits else ""
    return {
        "target": target,
        **figures,
        "found": found,
        "found_again": again,
        "replay": f"dpaudit replay {saved.as_posix()}{option} --seed {seed + 1}",
    }


def _plain(target: str) -> str:
    return f"exec:./{Path(target).name}" if target.startswith("exec:/") else target  # a temporary folder


def _line(row: dict[str, Any]) -> str:
    doubles = f", low bits: {row['floating_point']}" if row["floating_point"] != "not_applicable" else ""
    speed = f", {row['draws_per_second']:,.0f} draws/s" if "draws_per_second" in row else ""
    return (
        f"{row['library']} {row['version']} {row['what']}: claim {row['claim']}, {row['verdict']}, "
        f"{row['parameter']} >= {row['parameter_lower']:.3g}{doubles}{speed}"
    )


def markdown(report: dict[str, Any]) -> str:
    """The report as Markdown, from the JSON alone."""
    lines = [
        "# Other people's libraries, audited",
        "",
        f"`python mechanisms/scripts/libraries_audit.py --seed {report['seed']}` writes this. Python "
        f"{report['environment']['python']}, numpy {report['environment']['numpy']}.",
        "",
        "Each claim is that of the library's own metadata, where it has any. Fixed mode; 20,000 samples, or what a "
        f"time limit leaves of them; {report['confidence']:.1%} confidence an audit. *At least*: the lower bound on "
        "the claim's parameter. *Could find*: the smallest loss (nats, in an event of mass 0.1) found with probability "
        "90%. *Low bits*: a finding apart, at an error rate of 0.001. Draws per second of processor time, one core (of "
        "the clock for programs).",
        "",
        "| library | mechanism | claim | samples | verdict | at least | could find | low bits | replayable | draws/s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in report["mechanisms"]:
        found = _number(row["detectable"])
        lines.append(
            f"| {row['library']} {row['version']} | {row['what']} | {row['claim']} | {row['samples']:,} | "
            f"{row['verdict']} | {row['parameter']} {_number(row['parameter_lower'])} | {found} | {_bits(row)} | "
            f"{'yes' if row['replayable'] else 'no'} | {row['draws_per_second']:,.0f} |"
        )
    lines += [
        "",
        "## Defects",
        "",
        f"Found by audits at {report['defect_confidence']:.0%} confidence, each a subject with its claim and pair in "
        "`docs/examples/libraries/`, saved under `defects/`, and found again by its saved witness on fresh "
        "draws (those of python-dp and of programs have randomness of their own).",
        "",
        "| library | what | promised | what breaks it | issues | found | at least | again |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in report["defects"]:
        leaks = row["floating_point"] == "leaks" and row["verdict"] != "violated"
        lower = row["floating_point_lower"] if leaks else row["epsilon_lower"]
        lines.append(
            f"| {row['library']} {row['version']} | {row['what']} | {row['promise']} ({row['claim']}) | "
            f"{row['cause']} | {row['issues']} | {'leak in low bits' if leaks else row['verdict']} | "
            f"{_number(lower)} nats | {'yes' if row['found_again'] else 'no'} |"
        )
    lines += ["", *(f"    {row['replay']}" for row in report["defects"])]
    if report["left_out"]:
        lines += ["", "Left out:", "", *(f"* {line}" for line in report["left_out"])]
    return "\n".join(lines) + "\n"


def _bits(row: dict[str, Any]) -> str:
    if row["floating_point"] != "leaks":
        return row["floating_point"].replace("_", " ")
    return f"leak, at least {_number(row['floating_point_lower'])} nats"


def _number(value: Any) -> str:
    return "none" if value is None or value == float("inf") else f"{value:.3g}"


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    sys.exit(main())
