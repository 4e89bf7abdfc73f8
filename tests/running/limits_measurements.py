"""The figures of docs/measurements/limits.md: python tests/running/limits_measurements.py [page]

All workloads take twenty minutes. Each is saved in `reports/limits`, where a run that was ended goes on, and the page
is made of what is there; with "page" it is written alone.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SAVED, PAGE = ROOT / "reports" / "limits" / "workloads.json", ROOT / "docs" / "measurements" / "limits.md"

# name: samples, mode, what the mechanism is; the audit's other options are those of `AUDIT`.
WORKLOADS = {
    "numbers, fixed": (5_001_024, "fixed", "return x + rng.laplace(size=size)"),
    "numbers": (5_001_024, "sequential", "return x + rng.laplace(size=size)"),
    "rows of 100 numbers": (
        100_000, "sequential", "made = rng.laplace(size=(size, 100)); made[:, 0] += x; return made",
    ),
    "arrays of 100 by 100": (
        2_000, "sequential", "made = rng.laplace(size=(size, 100, 100)); made[:, 0, 0] += x; return made",
    ),
    "texts of 10 kB": (
        10_000, "sequential", "return [f'{x + rng.laplace():.6f}' + 'a' * 10_000 for _ in range(size)]",
    ),
    "texts of 1 MB, one call a draw": (600, "sequential", "return f'{x + rng.laplace():.6f}' + 'a' * 1_000_000"),
    "texts that grow from 10 bytes to 2 MB": (
        800, "sequential",
        "calls.append(0); return f'{x + rng.laplace():.6f}' + 'a' * (2_000_000 if len(calls) > 200 else 10)",
    ),
    "dictionaries of 20 numbers": (
        20_000, "sequential", "return {f'k{j}': float(v) + x * (j == 0) for j, v in enumerate(rng.laplace(size=20))}",
    ),
    "data frames of 50 by 4": (
        1_000, "sequential",
        "made = rng.laplace(size=(50, 4)); made[0, 0] += x; return pandas.DataFrame(made, columns=list('abcd'))",
    ),
    "5,000 pairs of numbers": (2_000, "adaptive", "return x + rng.laplace(size=size)"),
    "a program": (20_000, "sequential", ""),
    "numbers, isolated": (20_000, "sequential", "return x + rng.laplace()"),
}  # fmt: skip
AUDIT = """
import json, resource, sys, time
calls = []
{imports}
import dpaudit
def mechanism(x, {parameters}):
    {body}
subject = {subject}
pairs = [(0.0, 1.0)] if {few} else [(float(k), k + 1.0) for k in range(5_000)]
options = dict(samples={samples}, mode={mode!r}, isolation={isolated}, seed=1, floating_point=False)
began = time.perf_counter()
result = dpaudit.audit(subject, "eps=1", pairs, **options)
seconds = time.perf_counter() - began
own, children = (resource.getrusage(who).ru_maxrss >> 10 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
found = dict(verdict=result.verdict, runs=max(one.samples for one in result.findings), seconds=seconds, peak=own)
print(json.dumps(found | dict(children=children, memory=any(one.kind == "memory" for one in result.side_findings))))
"""
PROGRAM = """
import json, sys
import numpy as np
for line in sys.stdin:
    asked = json.loads(line)
    if asked["type"] == "hello":
        answer = {"type": "hello", "protocol": 1, "seeds": True, "numbers": "double"}
    else:
        rng = np.random.default_rng(asked["seed"])
        answer = {"id": asked["id"], "outputs": (asked["input"] + rng.laplace(size=asked["size"])).tolist()}
    print(json.dumps(answer), flush=True)
"""


def _workload(name, folder):
    samples, mode, body = WORKLOADS[name]
    (folder / "program.py").write_text(PROGRAM)
    subject = f'dpaudit.exec_subject("{sys.executable} {folder / "program.py"}")' if not body else "mechanism"
    text = AUDIT.format(
        imports="import pandas" if "pandas" in body else "import numpy",
        parameters="size, rng" if "size" in body.replace("size=20", "").replace("size=(50", "") else "rng",
        body=body or "pass", subject=subject, few=not name.startswith("5,000"), samples=samples, mode=mode,
        isolated=name.endswith("isolated"),
    )  # fmt: skip
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr[-2_000:]}")
    return json.loads(done.stdout.splitlines()[-1])


# --- the page ---


def main(parts):
    """Run the workloads that are not saved yet, unless the page alone is asked for, and write the page."""
    known = json.loads(SAVED.read_text()) if SAVED.is_file() else {}
    for name in WORKLOADS if parts != ["page"] else ():
        if name not in known:
            with tempfile.TemporaryDirectory() as folder:
                known[name] = _workload(name, Path(folder))
            print(name, known[name], flush=True)
            SAVED.parent.mkdir(parents=True, exist_ok=True)
            SAVED.write_text(json.dumps(known, indent=1) + "\n")
    PAGE.write_text(_page(known, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def _page(workloads, page):
    """The page with the rows of the workloads between its two marks."""
    rows = [
        "| outputs | mode | samples | labelled draws of a pair | verdict | seconds | peak, MiB | of children |",
        f"|{' --- |' * 8}",
    ]
    for name, (samples, mode, _) in WORKLOADS.items():
        if (one := workloads.get(name)) is None:
            continue
        verdict = one["verdict"].replace("_", " ") + (", not all kept" if one["memory"] else "")
        cells = (name, mode, f"{samples:,}", f"{one['runs']:,}", verdict, f"{one['seconds']:.0f}", f"{one['peak']:,}")
        rows.append(f"| {' | '.join(cells)} | {one['children']:,} |")
    begin, end = "<!-- workloads -->\n", "<!-- end of workloads -->"
    return re.sub(f"{begin}.*?{end}", lambda _: begin + "\n".join([*rows, end]), page, flags=re.DOTALL)


if __name__ == "__main__":
    main(sys.argv[1:])
