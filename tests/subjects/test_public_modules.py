"""Rooms of names have the name that users write: `import dpaudit.libraries`, and `dpaudit.libraries`."""

from __future__ import annotations

import importlib

import pytest

import dpaudit


@pytest.mark.parametrize("name", ["domains", "libraries"])
def test_a_room_of_subjects_can_be_imported_as_it_is_written(name):
    public = importlib.import_module(f"dpaudit.{name}")
    home = importlib.import_module(f"dpaudit.subjects.{name}")
    assert public is getattr(dpaudit, name)
    assert public.__all__ == home.__all__
    assert all(getattr(public, one) is getattr(home, one) for one in home.__all__)
