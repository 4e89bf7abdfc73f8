"""`.ci/collected_session.py`: faults that are put into a session of pytest which has collected everything once."""

import importlib.util
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / ".ci" / "collected_session.py"
MODULE = """
import functools

LIMIT = 3


class Half:
    of = 2

    def __call__(self, x):
        return x / self.of


@functools.cache
def doubled(x):
    return x + x


def is_large(x):
    return x > LIMIT


def alone(x, step=1):
    return x + step


def for_ever(x):
    while x > 0:
        x -= 1
    return x


def not_run():
    return 5
"""
TESTS = """
import numbers_here as n

def test_half():
    assert n.Half()(4) == 2

def test_doubled():
    assert n.doubled(3) == 6

def test_large():
    assert n.is_large(4) and not n.is_large(3)

def test_alone():
    assert n.alone(1) == 2

def test_for_ever():
    assert n.for_ever(5) == 0

def test_runs_no_line():
    assert n.Half.of == 2

def test_that_takes_longer():  # its limit on time is above that of the tests before it
    import time
    end = time.process_time() + 0.3
    while time.process_time() < end:
        assert n.doubled(1) == 2
"""
RUN = """
import dataclasses, json, sys
from pathlib import Path
sys.path[:0] = [{ci!r}, {folder!r}]
import pytest
import numbers_here
from collected_session import Session
path = Path({folder!r}, "numbers_here.py")
source = path.read_text()
faults = [(new, source.replace(old, new)) for old, new in json.loads({faults!r})]
session = Session("numbers_here", path, faults)
status = pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:dpaudit", {folder!r}], plugins=[session])
print(json.dumps([int(status), [dataclasses.astuple(one) for one in session.outcomes]]))
"""
# What is written for what, the status of the fault, and the tests that it is asked by.
FAULTS = [
    ("x + x", "x * x", 1, ["test_doubled", "test_that_takes_longer"]),  # its cache knew the answer
    ("x + x", "2 * x", 0, ["test_doubled", "test_that_takes_longer"]),
    ("x > LIMIT", "x >= LIMIT", 1, ["test_large"]),
    ("LIMIT = 3", "LIMIT = 4", 1, None),
    ("x / self.of", "x / (self.of + 1)", 1, ["test_half"]),
    ("    of = 2", "    of = 3", None, None),  # an attribute of a class that stands
    ("step=1", "step=2", None, ["test_alone"]),  # a default that was kept
    ("x -= 1", "x -= 0", -1, ["test_for_ever"]),  # ended by the limit on its time
]


def tried(folder, tests, faults):
    """The status of a session, and its outcomes."""
    (folder / "numbers_here.py").write_text(MODULE)
    (folder / "test_numbers_here.py").write_text(tests)
    faults = json.dumps([fault[:2] for fault in faults])
    script = textwrap.dedent(RUN).format(ci=str(SOURCE.parent), folder=str(folder), faults=faults)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    status, found = tried(tmp_path_factory.mktemp("session"), TESTS, FAULTS)
    assert status == 0
    return found


def test_tests_that_fail_in_a_fork_say_nothing(tmp_path):
    in_fork = "\nimport os\nHERE = os.getpid()\n\ndef test_process():\n    assert os.getpid() == HERE\n"
    status, found = tried(tmp_path, TESTS + in_fork, FAULTS[:1])
    assert status != 0 and found == []


@pytest.mark.parametrize(
    ("number", "status", "asked"), [(k, *fault[2:]) for k, fault in enumerate(FAULTS)], ids=[f[1] for f in FAULTS]
)
def test_each_kind_of_fault_is_put_in_and_asked_by_the_tests_that_run_it(outcomes, number, status, asked):
    _, got, tests = outcomes[number]
    assert got == status
    if asked is not None:
        assert [test.split("::")[1] for test in tests] == asked


def test_a_fault_in_what_is_run_at_import_is_asked_by_tests_that_run_no_line_too(outcomes):
    asked = next(tests for name, _, tests in outcomes if name == "    of = 3")
    assert "test_runs_no_line" in [test.split("::")[1] for test in asked]


def loaded():
    spec = importlib.util.spec_from_file_location("collected_session", SOURCE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["collected_session"] = module
    spec.loader.exec_module(module)
    return module


def test_changed_lines_are_counted_in_the_source():
    session = loaded()
    assert session.changed_lines("a\nb\nc", "a\nB\nc") == (2, 2)
    assert session.changed_lines("a\nb\nc\nd", "a\nx\ny\nd") == (2, 3)
    assert session.changed_lines("a\nb\nc", "a\nb\nC") == (3, 3)
    assert session.changed_lines("a\nb\nc\nd", "a\nd") == (2, 3)


def test_the_fastest_tests_come_first_and_a_few_whatever_they_take():
    session = loaded()
    tests = [session.Test(k, frozenset({k, 9}), seconds) for k, seconds in enumerate((8.0, 1.0, 9.0, 10.0, 40.0))]
    assert [test.item for test in session.covering(tests, 9, 9)] == [1, 0, 2]
    assert [test.item for test in session.covering(tests, 3, 4)] == [3, 4]
    assert session.covering(tests, 6, 8) == []


def test_each_known_fault_can_be_put_in():
    faults = json.loads((SOURCE.parents[1] / ".ci" / "known_faults.json").read_text(encoding="utf-8"))
    assert len(faults) >= 60
    for fault in faults:
        found = (SOURCE.parents[1] / fault["module"]).read_text(encoding="utf-8").count(fault["old"])
        file = fault["tests"].partition(" ")[0].partition("::")[0]
        assert found == 1 and fault["old"] != fault["new"] and (SOURCE.parents[1] / file).is_file(), fault
