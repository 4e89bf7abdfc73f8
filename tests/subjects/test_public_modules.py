"""Public names: each is there as it is listed, and rooms have the name that users write, as `dpaudit.libraries`."""

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


def test_public_names_are_those_that_type_checkers_see():
    names = {}
    exec("from dpaudit import *", names)
    assert {"audit", "PureDP", "laws", "__version__"} <= set(dpaudit.__all__) == set(dir(dpaudit))
    assert set(names) - {"__builtins__"} == set(dpaudit.__all__)
    assert all(names[one] is getattr(dpaudit, one) for one in dpaudit.__all__)
    for name in ("no_such_name", "attach", "_no_such_name"):
        with pytest.raises(AttributeError, match=f"module 'dpaudit' has no attribute '{name}'"):
            getattr(dpaudit, name)
