"""A repository like that of a user, with tests of a mechanism that breaks its promise and of one that keeps it."""

import pytest

SUITE = """
import dpaudit

def release(data, rng):
    return data

def sound(data, size, rng):
    return data + rng.laplace(size=size)

import pytest

@pytest.mark.dp_audit(confidence=0.99, calls=1)
def test_release(dp_audit):
    dp_audit(release, claim="eps=1", pairs=[(0.0, 1.0)], samples=300)

def test_sound(dp_audit):
    dp_audit(sound, claim="eps=1", pairs=[(0.0, 1.0)], samples=3000, floating_point=False, inconclusive_factor=100)

def test_something_else():
    assert False, "not a test of a mechanism"
"""


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    (folder / "test_it.py").write_text(SUITE)
    return folder
