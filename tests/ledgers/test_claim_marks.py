"""Marks of claims: found without an import, and exactly those that pytest sees."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dpaudit.errors import UsageError
from dpaudit.ledgers import Mark, collect_marks

ROOT = Path(__file__).parents[2]
CODE = """
import a_module_that_does_not_exist
import pytest

pytestmark = pytest.mark.claim("AB-1")

@pytest.mark.claim("AB-2", "AB-3")
def test_plain(): ...

@pytest.mark.claim("AB-4")
class TestGroup:
    @pytest.mark.claim("AB-5")
    async def test_inside(self): ...

@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.claim("AB-6"))])
def test_many(x): ...

@pytest.mark.slow
def test_none(claim):
    claim("AB-7")
"""
COLLECTOR = """
import pytest
def pytest_collection_finish(session):
    for item in session.items:
        for name in {name for mark in item.iter_markers("claim") for name in mark.args}:
            print("MARK", name, item.nodeid.split("[")[0])
"""


def test_marks_are_found_where_they_stand(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "test_it.py").write_text(CODE)
    (tmp_path / "deep" / "helper.py").write_text(CODE)  # no file of tests
    assert [(mark.id, mark.node) for mark in collect_marks(tmp_path)] == [
        ("AB-1", "deep/test_it.py"),
        ("AB-2", "deep/test_it.py::test_plain"),
        ("AB-3", "deep/test_it.py::test_plain"),
        ("AB-4", "deep/test_it.py::TestGroup"),
        ("AB-5", "deep/test_it.py::TestGroup::test_inside"),
        ("AB-6", "deep/test_it.py::test_many"),
    ]
    assert collect_marks(tmp_path)[1] == Mark("AB-2", "deep/test_it.py", "test_plain", 7)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("NAME", r"pytest\.mark\.claim\(NAME\)"),
        ("", r"pytest\.mark\.claim\(\)"),
        ("'AB-1', 2", r"pytest\.mark\.claim\('AB-1', 2\)"),
        ("f'AB-{1}'", r"pytest\.mark\.claim\(f'AB-\{1\}'\)"),
        ("id='AB-1'", r"pytest\.mark\.claim\(id='AB-1'\)"),
    ],
)
def test_an_id_has_to_be_written_out(tmp_path, line, shown):
    (tmp_path / "test_it.py").write_text(f"@pytest.mark.claim({line})\ndef test_plain(): ...\n")
    with pytest.raises(UsageError, match=rf"a mark claim must name its ids as strings, got {shown} at test_it\.py:1\."):
        collect_marks(tmp_path)


@pytest.mark.slow
def test_pytest_sees_the_same_marks_in_this_repository(tmp_path):
    (tmp_path / "mark_collector.py").write_text(COLLECTOR)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "tests",
        "--collect-only",
        "-q",
        "-p",
        "mark_collector",
        "-p",
        "no:cacheprovider",
    ]
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import pytest; sys.exit(pytest.main({command[3:]!r}))"
    all_parts = {name: value for name, value in os.environ.items() if name != "DPAUDIT_LONG_PART"}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=all_parts, capture_output=True, text=True, timeout=1800, check=False
    )
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    seen = {(name, node) for name, node in re.findall(r"^MARK (\S+) tests/(\S+)$", run.stdout, re.MULTILINE)}
    found = {(mark.id, mark.node) for mark in collect_marks(ROOT / "tests")}
    assert seen == found and len(found) > 100
