"""The README and the first tutorial, from the wheel: an empty home, and no checkout on any path."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "docs"))
from pages import run_page  # noqa: E402

pytestmark = pytest.mark.slow
MINUTES = 3.0  # of processor time, since other programs may use the machine


@pytest.mark.parametrize("page", ["README.md", "docs/tutorials/first-audit.md"])
def test_a_newcomers_page_works_from_the_wheel(installed, tmp_path, monkeypatch, page):
    def run(command, folder):
        done = installed.run("bash", "-e", "-o", "pipefail", "-c", f"exec 2>&1\n{command}", cwd=folder)
        return subprocess.CompletedProcess(command, done.returncode, done.stdout + done.stderr)

    before = _children()
    assert run_page(ROOT / page, tmp_path, monkeypatch, run) >= 6
    assert _children() - before < 60.0 * MINUTES


def _children() -> float:
    """Processor seconds of the processes that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
