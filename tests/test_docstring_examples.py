"""The examples of docstrings are what they say: all of them are run."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.long
def test_every_example_of_a_docstring_gives_what_it_shows():
    # In a process of its own: importing every module here would import optional libraries for the other tests.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--doctest-modules", "dpaudit"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4_000:]
    assert " passed" in done.stdout.splitlines()[-1]
