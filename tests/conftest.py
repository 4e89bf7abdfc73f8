"""Shared by all tests: pytester, which runs pytest inside a test, a folder of the user's own code, and a time limit.

With `DPAUDIT_LONG_PART=k/n` in the environment, of the tests marked `slow` or `long` only those of part k run: a file
belongs to the part that its path names. CI runs one part a commit, in turn, so that all run within n commits and the
same commit always runs the same.
"""

from __future__ import annotations

import os
import sys
import zlib
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
os.environ["SOURCE_DATE_EPOCH"] = "1795551300"  # reports are compared to the byte: 2026-11-24 20:15 UTC
TESTS = Path(__file__).parent


def part_of(path, parts):
    """The part of the slow and long sets that a test file belongs to, the same on every machine."""
    return zlib.crc32(Path(path).relative_to(TESTS).as_posix().encode()) % parts


def pytest_collection_modifyitems(config, items):
    chosen = os.environ.get("DPAUDIT_LONG_PART")
    if not chosen:
        return
    part, parts = (int(number) for number in chosen.split("/"))
    others = [
        item
        for item in items
        if (item.get_closest_marker("slow") or item.get_closest_marker("long")) and part_of(item.path, parts) != part
    ]
    config.hook.pytest_deselected(items=others)
    left_out = set(others)
    items[:] = [item for item in items if item not in left_out]


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
