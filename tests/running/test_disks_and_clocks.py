"""Full disks, read-only folders, and clocks that leap or go backwards: one message each, and never another result."""

from __future__ import annotations

import datetime
import itertools
import json
import random
import shutil
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner
from support.samplers import laplace

import dpaudit
from dpaudit.cli import main
from dpaudit.running import store as stores
from dpaudit.running.store import Store

# Runs in a mount namespace of its own. A disk of 64 KiB, most of it taken, and one that is read-only; each is asked to
# take a store, a checkpoint and reports. Prints a line of JSON for each: exit status, message, files that were left.
SCRIPT = """
import json, os, subprocess, sys
from pathlib import Path
from click.testing import CliRunner
from dpaudit.cli import main

base = Path(sys.argv[1])
os.chdir(base)
for name, options in (("full", "size=64k"), ("readonly", "size=1m")):
    Path(name).mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(base / name)], check=True)
Path("full/filler").write_bytes(b"x" * 48 * 1024)
subprocess.run(["mount", "-o", "remount,ro", str(base / "readonly")], check=True)
Path("m.py").write_text("def f(data, size, rng):\\n    return data + rng.laplace(size=size)\\n")
audit = ["audit", "m.py:f", "--claim", "eps=1", "--pairs", "0,1", "--samples", "300", "--seed", "1", "-q",
         "--no-floating-point"]
print("mounted", flush=True)
for name in ("full", "readonly"):
    for more in (["--store", f"{name}/s.db"], ["--checkpoint", f"{name}/c"],
                 ["--report", "json", "--report", "html", "--out", f"{name}/out"]):
        done = CliRunner().invoke(main, [*audit, *more])
        print(json.dumps([name, more[0], done.exit_code, done.stderr]))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Exit status and message by disk and option."""
    folder = tmp_path_factory.mktemp("disks")
    (folder / "script.py").write_text(SCRIPT)
    if shutil.which("unshare") is None or shutil.which("mount") is None:
        pytest.skip("needs unshare and mount")
    command = ["unshare", "--map-root-user", "--mount", sys.executable, "script.py", str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    if not lines or lines[0] != "mounted":
        pytest.skip(f"needs the right to mount a small disk: {done.stderr.strip()[-80:]}")
    assert done.returncode == 0, done.stderr
    return {(disk, option): (status, said) for disk, option, status, said in map(json.loads, lines[1:])}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("disk", "option", "status", "said"),
    [
        ("full", "--store", 3, "store must have room to grow, got database or disk is full at 'full/s.db'"),
        ("full", "--checkpoint", 5, "Nothing more is noted in the checkpoint (No space left on device); the audit"),
        ("full", "--report", 3, "output must be a writable place, got 'full/out/audit."),
        ("readonly", "--store", 2, "store must be a file that can be opened, got 'readonly/s.db'"),
        ("readonly", "--checkpoint", 2, "checkpoint must be a file that can be written, got 'readonly/c'"),
        ("readonly", "--report", 2, "out must be a folder that can be written, got 'readonly/out'"),
    ],
)
def test_a_disk_that_takes_nothing_is_one_message(answers, disk, option, status, said):
    # 5 is the verdict "inconclusive" of so small an audit: a full disk costs a checkpoint, and no verdict.
    found, message = answers[disk, option]
    assert found == status and said in message and "Traceback" not in message, (found, message)
    assert len(message.splitlines()) == 1, message


# --- clocks ---

NIGHT = {"samples": 80, "floating_point": False}


def evidence(result):
    return json.dumps({**result.to_dict(), "seconds": 0.0, "environment": None}, sort_keys=True)


def audited(**options):
    return dpaudit.audit(laplace, "eps=1", [(0.0, 1.0)], seed=3, **NIGHT, **options)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """An audit, and the wealth of three nights, with the clock of this machine."""
    path = tmp_path_factory.mktemp("clock") / "store.db"
    return evidence(audited()), [audited(store=path).findings[0].log_wealth for _ in range(3)]


@pytest.fixture(params=["backwards", "leaping", "standing still"])
def clock(request, monkeypatch, expected):
    """A wall clock that is wrong. (Monotonic ones never go back; they leap where a machine sleeps.)"""
    ticks = itertools.count()
    rng = random.Random(1)
    start = datetime.datetime(2026, 11, 26, 2, tzinfo=datetime.UTC)
    hours = {"backwards": lambda: -next(ticks), "leaping": lambda: rng.randint(-9_000, 9_000), "standing still": int}
    of_wall = hours[request.param]

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, zone=None):
            return start + datetime.timedelta(hours=of_wall())

    monkeypatch.setattr(stores, "datetime", Clock)
    monkeypatch.setattr(time, "time", lambda: start.timestamp() + 3_600.0 * of_wall())
    if request.param != "backwards":
        steps = itertools.accumulate(rng.choice([0.0, 0.0, 1e-9, 5e3]) for _ in itertools.count())
        still = request.param == "standing still"
        monkeypatch.setattr(time, "monotonic", lambda: 7.0 if still else next(steps))
        monkeypatch.setattr(time, "perf_counter", lambda: 7.0 if still else next(steps))
    return request.param


def test_nights_follow_each_other_whatever_the_clock_says(tmp_path, clock, expected):
    path = tmp_path / "store.db"
    results = [audited(store=path) for _ in range(3)]
    assert [result.options["night"] for result in results] == [1, 2, 3]
    assert [result.options["stream"] for result in results] == ["3/0", "3/1", "3/2"]
    assert [result.findings[0].log_wealth for result in results] == expected[1]
    with Store.at(path) as store:
        (subject,) = store.subjects()
    assert [night["number"] for night in subject["nights"]] == [0, 1, 2]
    assert [look["labelled"] for look in subject["looks"]] == sorted(look["labelled"] for look in subject["looks"])
    for command in ("list", "explain", "export"):
        done = CliRunner().invoke(main, ["evidence", command, "--store", str(path)])
        assert done.exit_code == 0, done.output
