"""Shared by all tests: pytester, which runs pytest inside a test, a folder of the user's own code, and a time limit.

With `DPAUDIT_LONG_MINUTES` in the environment no test marked `long` is begun once that many minutes have passed: it is
skipped, with the reason. CI has so much time and no more.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
os.environ["SOURCE_DATE_EPOCH"] = "1795551300"  # reports are compared to the byte: 2026-11-24 20:15 UTC
STARTED = time.monotonic()


def pytest_runtest_setup(item):
    minutes = os.environ.get("DPAUDIT_LONG_MINUTES")
    if minutes and item.get_closest_marker("long") and time.monotonic() - STARTED > 60.0 * float(minutes):
        pytest.skip(f"not begun: {minutes} minutes have passed (DPAUDIT_LONG_MINUTES)")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An empty project as the current folder; what is imported from it is forgotten after the test."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")  # so that no file further up is found
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).is_relative_to(tmp_path):
            del sys.modules[name]
