"""Shared by all tests: pytester, which runs pytest inside a test, and a folder of the user's own code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]


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
