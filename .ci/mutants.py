"""Put small faults into modules one at a time, and see which of them the tests notice.

    make mutants MODULES="dpaudit/privacy/composition.py dpaudit/exact/response.py"

cosmic-ray makes the faults, in a copy of the repository. Each module is tested with the tests that mirror it (and
those named by TESTS). The score and the survivors are printed; docs/measurements/reliability.md says what is known.
A fault that changes nothing (an equivalent one) has to be told by a person.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 300.0  # for the tests of one fault
CONFIGURATION = """[cosmic-ray]
module-path = {module!r}
timeout = {seconds}
excluded-modules = []
test-command = {command!r}

[cosmic-ray.distributor]
name = "local"
"""


def tests_of(module: str) -> list[str]:
    """The tests that mirror a module, and tests of the room for single faults."""
    path = Path(module)
    room = Path("tests", *path.parts[1:-1]) if path.parts[0] == "dpaudit" else Path("tests", *path.parts[:-1])
    own = [room / f"test_{path.stem}.py", *sorted((ROOT / room).glob("test_*faults*.py"))]
    own += sorted((ROOT / room).glob("test_thresholds*.py")) + sorted((ROOT / room).glob("test_exact*.py"))
    found = [str(one.relative_to(ROOT) if one.is_absolute() else one) for one in own]
    return [one for one in found if (ROOT / one).exists()]


def survivors(module: str, folder: Path) -> tuple[int, list[str]]:
    """How many faults there were in a module, and those that no test noticed, as differences."""
    tests = [*tests_of(module), *os.environ.get("TESTS", "").split()]
    if not tests:
        raise SystemExit(f"MODULES must have tests, got {module!r} without. Name some with TESTS=...")
    command = shlex.join([sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-m", "not slow and not long", *tests])
    (folder / "mutants.toml").write_text(
        CONFIGURATION.format(module=module, seconds=SECONDS, command=command), encoding="utf-8"
    )
    subprocess.run(["cosmic-ray", "init", "mutants.toml", "mutants.sqlite", "--force"], cwd=folder, check=True)
    subprocess.run(["cosmic-ray", "exec", "mutants.toml", "mutants.sqlite"], cwd=folder, check=True)
    dumped = subprocess.run(
        ["cosmic-ray", "dump", "mutants.sqlite"], cwd=folder, check=True, capture_output=True, text=True
    )
    results = [json.loads(line)[1] for line in dumped.stdout.splitlines() if line.strip()]
    left = [one["diff"] for one in results if one and one["test_outcome"] == "survived"]
    return len(results), left


def main() -> int:
    modules = os.environ.get("MODULES", "").split()
    if not modules:
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory(prefix="dpaudit-mutants-") as name:
        folder = Path(name)
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True)
        subprocess.run(["tar", "x"], cwd=folder, input=archive.stdout, check=True)
        for module in modules:
            count, left = survivors(module, folder)
            print(f"{module}: {count - len(left)} of {count} faults noticed", flush=True)
            print("\n".join(left))
    return 0


if __name__ == "__main__":
    sys.exit(main())
