"""The exit status of a command says what was found, whatever its output and its mechanism do before and after."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from dpaudit.cli import main

COMMAND = ["--claim", "eps=1", "--pairs", "0.0,1.0", "--samples", "3000", "--seed", "1", "--no-floating-point", "-q"]
MECHANISMS = """
import atexit, os, sys, weakref
calls = 0

def broken(data, rng):
    return data + rng.laplace(scale=0.2)

def sound(data, rng):
    return data + rng.laplace()

def once(act):
    def release(data, rng):
        global calls
        calls += 1
        if calls == 50:
            act()
        return broken(data, rng)
    return release

ends = once(lambda: atexit.register(os._exit, 0))
closes = once(lambda: os.closerange(0, 300))
shuts = once(lambda: (sys.stdout.close(), sys.stderr.close(), sys.__stdout__.close(), sys.__stderr__.close()))
forks = once(os.fork)
moves = once(lambda: (os.makedirs("elsewhere", exist_ok=True), os.chdir("elsewhere")))
tidies = once(lambda: atexit.register(lambda: open("tidied", "w").close()))
stays = once(lambda: atexit.register(__import__("time").sleep, 1000))

def slow(data, rng):
    __import__("time").sleep(0.001)
    return sound(data, rng)
"""
AT_IMPORT = "import atexit, os\natexit.register(os._exit, 0)\n" + MECHANISMS
PATCHED = (
    "import os, sys, threading\nend = os._exit\nsys.exit = os._exit = lambda *_: end(0)\n"
    "threading._register_atexit(end, 0)\nthreading.Thread(target=threading.Event().wait).start()\n" + MECHANISMS
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "m.py").write_text(MECHANISMS)
    (tmp_path / "ends.py").write_text(AT_IMPORT)
    (tmp_path / "patched.py").write_text(PATCHED)
    (tmp_path / "forks.py").write_text("import os\nos.fork()\n" + MECHANISMS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def audit(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE):
    command = [sys.executable, "-m", "dpaudit", "audit", *arguments, *COMMAND]
    return subprocess.run(command, stdout=stdout, stderr=stderr, text=True, timeout=120)


def verdict(folder):
    return json.loads((folder / "audit.json").read_text())["verdict"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no file that is always full")
@pytest.mark.parametrize(("name", "status"), [("broken", 1), ("sound", 0)])
def test_a_verdict_that_cannot_be_printed_keeps_its_status(folder, name, status):
    with open("/dev/full", "w") as full:
        done = audit(f"m.py:{name}", "--out", "o", stdout=full)
        assert done.returncode == status and verdict(folder / "o") == ("violated" if status else "not_refuted")
        assert done.stderr.startswith("Error: standard output could not be written")
        assert audit(f"m.py:{name}", stdout=full, stderr=full).returncode == status


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no file that is always full")
@pytest.mark.parametrize(
    "asked", ["claims", "--help", "--version", "audit --help", "evidence --help", "evidence list -h"]
)
def test_what_only_prints_and_cannot_has_failed(asked):
    command = [sys.executable, "-m", "dpaudit", *asked.split()]
    with open("/dev/full", "w") as full:
        shown = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert shown.returncode == 3 and shown.stderr.startswith("Error: standard output must be")
    assert shown.stderr.count("\n") == 1


def test_a_reader_that_leaves_does_not_change_a_verdict(folder):
    reading, writing = os.pipe()
    os.close(reading)
    done = audit("m.py:broken", stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("name", ["m.py:closes", "m.py:shuts"])
def test_a_mechanism_that_closes_streams_loses_no_report_and_no_verdict(folder, name):
    assert audit(name, "--out", "o").returncode == 1
    assert verdict(folder / "o") == "violated" and len(os.listdir("o")) == 3


@pytest.mark.parametrize(
    "arguments", [["m.py:ends"], ["ends.py:broken"], ["ends.py:broken", "--isolation"], ["patched.py:broken"]]
)
def test_what_a_mechanism_registers_for_the_end_does_not_choose_the_status(folder, arguments):
    done = audit(*arguments)
    assert done.returncode == 1 and "Violated" in done.stdout


def test_what_is_registered_for_the_end_is_still_run_but_not_waited_for_without_end(folder):
    assert audit("m.py:tidies").returncode == 1 and (folder / "tidied").exists()
    assert audit("m.py:stays").returncode == 1


def test_worker_processes_end_with_the_command_and_hold_no_stream_open(folder):
    done = audit("m.py:slow", "--jobs", "2")  # its streams are read to their ends: for 120 s of idle workers before
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["m.py:forks", "forks.py:broken"])
def test_a_copy_of_the_auditor_that_a_call_or_an_import_makes_ends_at_once_and_says_so(folder, name):
    done = audit(name, "--out", "o")
    assert done.returncode == 1 and verdict(folder / "o") == "violated"
    assert done.stdout.count("Violated") == 1 and done.stderr.count("The copy ends here") == 1


def test_a_mechanism_that_changes_the_working_directory_does_not_move_the_reports(folder):
    done = audit("m.py:moves", "--out", "o")
    assert done.returncode == 1 and "Written: o/audit.json" in done.stdout and not (folder / "elsewhere/o").exists()
    beside = {one["kind"]: one for one in json.loads((folder / "o/audit.json").read_text())["side_findings"]}
    assert beside["working_directory"]["status"] == "found"
    assert beside["working_directory"]["details"]["left"] == str(folder / "elsewhere")


@pytest.mark.parametrize("more", [[], ["--seconds", "60"]])
def test_an_interrupted_command_says_which_call_it_waited_for(tmp_path, monkeypatch, more):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.py").write_text(
        "def hangs(data):\n    raise KeyboardInterrupt  # as of Ctrl-C, in a call that hangs\n"
    )
    done = CliRunner().invoke(main, ["audit", "m.py:hangs", "--claim", "eps=1", "--pairs", "0,1", *more])
    first, last = done.output.splitlines()[-2:]
    assert (done.exit_code, first) == (130, "Interrupted.")
    assert last.startswith("It was in a call, at line 2 of ") and "m.py. `dpaudit audit --isolation seconds=10`" in last
