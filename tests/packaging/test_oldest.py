"""The job of the oldest versions installs what pyproject.toml promises."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_pins_are_the_least_versions_of_the_project():
    command = [sys.executable, ROOT / ".ci" / "oldest.py", "--list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert listed == (ROOT / "requirements" / "oldest.txt").read_text() and "numpy==1.26\n" in listed
    assert "make oldest" in (ROOT / ".ci" / "run").read_text()
