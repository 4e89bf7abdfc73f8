"""Shared by all tests: pytester, which runs pytest inside a test, a folder of the user's own code, and what is slow.

A test that `tests/durations.json` lists is marked `slow`, unless it alone notices a fault of validity, and so is marked
`guard`; `.ci/durations.py` writes the file.

With `DPAUDIT_LONG_PART=k/n` in the environment, of the tests marked `slow` or `long` only those of part k run: a file
belongs to the part that its path names. CI runs one part a commit, in turn, so that all run within n commits and the
same commit always runs the same.
"""

import importlib.util
import json
import os
import sys
import zlib
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
os.environ["SOURCE_DATE_EPOCH"] = "1795551300"  # reports are compared to the byte: 2026-11-24 20:15 UTC
# Files that tests write are never compiled to disk, here or in processes that tests start: a module that is written
# twice within a second, at the same length, would be taken for the first one.
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
TESTS = Path(__file__).parent
if importlib.util.find_spec("hypothesis"):
    from hypothesis import settings

    # The same examples on every run, and no verdict that hangs on how busy a machine is.
    settings.register_profile("dpaudit", derandomize=True, deadline=None, max_examples=60)
    settings.load_profile("dpaudit")


def part_of(path, parts):
    """The part of the slow and long sets that a test file belongs to, the same on every machine."""
    return zlib.crc32(Path(path).relative_to(TESTS).as_posix().encode()) % parts


def processor_seconds():
    """Of this process and of the children that it has waited for."""
    return sum(os.times()[:4])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """With `DPAUDIT_DURATIONS=FILE`, write down the processor seconds of each test: see `.ci/durations.py`."""
    path = os.environ.get("DPAUDIT_DURATIONS")
    before = processor_seconds()
    yield
    if path:
        with open(f"{path}.{os.environ.get('PYTEST_XDIST_WORKER', 'one')}", "a", encoding="utf-8") as out:
            print(f"{processor_seconds() - before:.2f}", item.nodeid, file=out)


@pytest.hookimpl(tryfirst=True)  # before marks are chosen by -m
def pytest_collection_modifyitems(config, items):
    recorded = json.loads((TESTS / "durations.json").read_text(encoding="utf-8"))
    for item in items:
        if item.nodeid in recorded and not item.get_closest_marker("guard"):
            item.add_marker("slow")
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


@pytest.fixture(autouse=True)
def _forget_modules_of_a_test(tmp_path_factory, monkeypatch):
    """Forget what a test imported from a temporary folder, and the way there: two tests may both write a module `m`."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    base = tmp_path_factory.getbasetemp()
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).is_relative_to(base):
            del sys.modules[name]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An empty project as the current folder."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")  # so that no file further up is found
    monkeypatch.chdir(folder)
    return folder
