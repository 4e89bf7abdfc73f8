"""The oldest versions that pyproject.toml promises, installed in an environment of their own, and tests run with them.

`python .ci/oldest.py --list` prints the pins (requirements/oldest.txt; a test compares it with pyproject.toml). Without
arguments the environment `.venv-oldest` is made with the oldest Python that is promised, where that is installed, and
the rooms below are tested. The registry is asked once, when the environment is made; the tests need no network.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / ".venv-oldest"
PINS = ROOT / "requirements" / "oldest.txt"
WITH = ("data", "sign", "strategies", "tables")  # extras whose readers and writers are tested too
TESTS = [  # without those that ask click's runner for stderr alone, which click 8.1 does not keep
    "tests/test_files.py",
    "tests/test_auditing.py",
    "tests/cli/test_ending.py",
    "tests/exact",
    "tests/features/test_outcomes.py",
    "tests/inference/test_binomial.py",
    "tests/learning",
    "tests/running/test_store.py",
    "tests/running/test_streams_and_draws.py",
    "tests/subjects/test_callables.py",
    "tests/subjects/test_programs.py",
]


def oldest() -> tuple[str, list[str]]:
    """The oldest Python, and the least version of each library that an installation and its tests need, as pins."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(one for name in WITH for one in extras[name])]
    wanted += [one for one in extras["dev"] if re.match(r"(pytest|jsonschema)>", one)]
    pins = {re.sub(r">=([\d.]+).*", r"==\1", one) for one in wanted}
    return project["requires-python"].removeprefix(">="), sorted(pins)


def run(*command: str) -> int:
    print("+", *command, flush=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def main() -> int:
    version, pins = oldest()
    if "--list" in sys.argv:
        print("\n".join(pins))
        return 0
    interpreter = shutil.which(f"python{version}")
    if interpreter is None:
        print(f"python{version} is not installed: the oldest versions are not tested here")
        return 0
    python = str(PLACE / "bin" / "python")
    if not PLACE.exists():
        packages = ("-r", str(PINS), "pyyaml", "pytest-xdist")
        made = run(interpreter, "-m", "venv", str(PLACE)) or run(python, "-m", "pip", "install", "-q", *packages)
        if made or run(python, "-m", "pip", "install", "-q", "--no-deps", "-e", "."):
            shutil.rmtree(PLACE, ignore_errors=True)
            return 1
    return run(python, "-m", "pytest", "-q", "-n", "2", "-m", "not slow and not long", *TESTS)


if __name__ == "__main__":
    sys.exit(main())
