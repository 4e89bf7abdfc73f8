"""Rooms of names have the name that users write: `import dpaudit.libraries`, and `dpaudit.libraries`."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import dpaudit


@pytest.mark.parametrize("name", ["domains", "libraries"])
def test_a_room_of_subjects_can_be_imported_as_it_is_written(name):
    public = importlib.import_module(f"dpaudit.{name}")
    home = importlib.import_module(f"dpaudit.subjects.{name}")
    assert public is getattr(dpaudit, name)
    assert public.__all__ == home.__all__
    assert all(getattr(public, one) is getattr(home, one) for one in home.__all__)


@pytest.mark.parametrize("name", ["domains", "laws", "libraries", "strategies"])
@pytest.mark.parametrize("form", ["import dpaudit.{}", "from dpaudit import {}", "import dpaudit; dpaudit.{}"])
def test_every_room_can_be_reached_in_each_form(name, form):
    assert subprocess.run([sys.executable, "-c", form.format(name)], check=False).returncode == 0
