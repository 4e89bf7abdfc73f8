"""Text that commands write to a terminal fits its width; a file or a program gets one message a line."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

CODE = """
from dpaudit import Pair, PureDP
def leaky(data, rng): return data + rng.laplace(scale=0.5)
def raises_a_long_story(data, rng): raise ValueError("the service that holds the histograms of all regions is gone")
def warns(data, rng):
    import warnings
    warnings.warn("the bounds of this query were read from the data, which is not private at all, whatever it adds")
    return data + rng.laplace()
"""
AUDIT = ("--claim", "eps=1", "--pairs", "0,1", "--samples", "60", "--seed", "1", "--no-severity")
COMMANDS = {
    "audit": ("audit", "m.py:leaky", *AUDIT, "--out", "out"),
    "audit that fails": ("audit", "m.py:raises_a_long_story", *AUDIT),
    "audit that warns": ("audit", "m.py:warns", *AUDIT),
    "audit of repeated pairs": ("audit", "m.py:leaky", *AUDIT[:2], "--pairs", "0,1;1,0;0,0", *AUDIT[4:]),
    "guessed pairs": ("audit", "m.py:leaky", "--claim", "eps=1", "--example", "0.5", "--samples", "60", "--seed", "1"),
    "usage": ("audit", "m.py:leaky", "--claim", "eps=1", "--pairs", "0,1", "--search-budget", "3", "--mode", "fixed"),
    "plan": ("plan", "m.py:leaky", *AUDIT[:4]),
    "greybox": ("greybox", "m.py:leaky", *AUDIT[:4]),
    "certify": ("certify", "m.py:leaky", *AUDIT[:4]),
    "check": ("check", "m.py:leaky", *AUDIT[:4], "--only", "pickling,seeded_determinism"),
    "museum": ("museum", "--list"),
    "bench": ("bench", "--list"),
    "reproduce": ("reproduce",),
    "claims": ("claims", "--out", "claims"),
    "report": ("report", "out/audit.json", "--profile", "compliance", "--out", "report"),
    "replay": ("replay", "out/audit.json", "--target", "m.py:leaky"),
}
WHOLE = ("  replay  ", "Written: ", "report/")  # to be copied, and names of files


def on_a_terminal(folder, *arguments):
    """Say what the command writes to a terminal of 80 columns: text, without its colours."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "dpaudit", *arguments]
    process = subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    parts = []
    while True:
        try:
            part = os.read(ours, 65_536)
        except OSError:  # the other end was closed
            break
        if not part:
            break
        parts.append(part)
    os.close(ours)
    process.wait()
    return b"".join(parts).decode()


@pytest.mark.slow
def test_every_command_keeps_to_80_columns(tmp_path):
    (tmp_path / "m.py").write_text(CODE)
    wide = {}
    for name, arguments in COMMANDS.items():
        text = on_a_terminal(tmp_path, *arguments).replace(str(tmp_path), "FOLDER")  # a path is as long as it is
        assert text.strip() and "Traceback" not in text, name
        lines = [line for part in text.split("\n") for line in part.split("\r") if not line.startswith(WHOLE)]
        wide[name] = [line for line in lines if len(line) > 80]
    assert not any(wide.values()), {name: lines[:3] for name, lines in wide.items() if lines}


def test_a_message_is_wrapped_on_a_terminal_and_one_line_elsewhere(tmp_path):
    (tmp_path / "m.py").write_text(CODE)
    arguments = COMMANDS["usage"]
    text = on_a_terminal(tmp_path, *arguments)
    lines = text.replace("\r", "").splitlines()
    command = [sys.executable, "-m", "dpaudit", *arguments]
    environment = {**os.environ, "COLUMNS": "80", "PYTHONPATH": str(ROOT)}
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    (message,) = found.stderr.splitlines()
    assert len(message) > 80 and len(lines) > 1 and max(map(len, lines)) <= 80
    assert " ".join(line.strip() for line in lines) == message
    assert all(line.startswith("  ") for line in lines[1:])
