"""Record how long each test takes, and keep the slow ones: tests/durations.json, which tests/conftest.py reads.

    python .ci/durations.py run [ARGUMENTS OF PYTEST]   run the tests, then write the file
    python .ci/durations.py read FILE...                write it from lines "SECONDS TEST" of earlier runs

Processor seconds are recorded, which do not depend on what else the machine does. A test that takes `LIMIT` or more is
marked `slow`, so that `make test` leaves it to `make long`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "tests" / "durations.json"
LIMIT = 0.4  # processor seconds: under a fifth of the tests take longer, and nine tenths of the time


def read(paths: list[Path]) -> dict[str, float]:
    """The longest time that each test took."""
    found: dict[str, float] = {}
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            seconds, _, test = line.partition(" ")
            found[test] = max(float(seconds), found.get(test, 0.0))
    return found


def write(found: dict[str, float]) -> None:
    """Keep those that take `LIMIT` or more, one line each, by name."""
    slow = {test: round(seconds, 1) for test, seconds in sorted(found.items()) if seconds >= LIMIT}
    KEPT.write_text(json.dumps(slow, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    of = f"{sum(slow.values()):.0f} of {sum(found.values()):.0f} s"
    print(f"{len(slow)} of {len(found)} tests take {LIMIT} s or more, {of}.")


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["read"] and len(arguments) > 1:
        write(read([Path(name) for name in arguments[1:]]))
        return 0
    if arguments[:1] != ["run"]:
        print(__doc__)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "DPAUDIT_DURATIONS": str(Path(folder) / "seconds")}
        done = subprocess.run([sys.executable, "-m", "pytest", *arguments[1:]], cwd=ROOT, env=environment, check=False)
        write(read(sorted(Path(folder).iterdir())))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
