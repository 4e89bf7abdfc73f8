"""`[tool.dpaudit]`: which file is read, what it may say, and what a mistake is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dpaudit.config import Config, read_config
from dpaudit.errors import UsageError

FULL = """
[tool.dpaudit]
samples = 2000
mode = "fixed"
confidence = 0.99
seed = 7
jobs = 2
backend = "loky"
event_mass = 0.2
inconclusive_factor = 3
pool = false
report = ["json", "HTML", "json"]
out = "build/audits"
strict = true
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "pyproject.toml"
    path.write_text(text)
    return path


def test_every_key_is_read(tmp_path):
    path = write(tmp_path, FULL)
    assert read_config(tmp_path) == Config(
        path=path,
        samples=2000,
        mode="fixed",
        confidence=0.99,
        seed=7,
        jobs=2,
        backend="loky",
        event_mass=0.2,
        inconclusive_factor=3,
        pool=False,
        report=("json", "html"),
        out=tmp_path / "build/audits",
        strict=True,
    )


def test_the_nearest_file_upwards_is_read(tmp_path):
    write(tmp_path, "[tool.dpaudit]\nsamples = 10\n")
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert read_config(inner).samples == 10
    write(tmp_path / "a", "[tool.other]\n")
    assert read_config(inner).samples is None


def test_what_is_given_comes_before_what_the_file_states(tmp_path):
    write(tmp_path, "[tool.dpaudit]\nsamples = 50\nmode = 'fixed'\n")
    options = read_config(tmp_path).audit_options({"samples": 70, "mode": None, "seed": 0})
    assert options == {"samples": 70, "mode": "fixed", "seed": 0}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "[tool.dpaudit]\nsample = 3\n",
            ["one of samples, mode, confidence", "strict, deployment, got 'sample' at", "Did you mean 'samples'?"],
        ),
        ("[tool.dpaudit]\nsamples = 'many'\n", ["samples must be an integer, got 'many' at [tool.dpaudit] of"]),
        ("[tool.dpaudit]\nsamples = true\n", ["samples must be an integer, got True"]),
        ("[tool.dpaudit]\nsamples = 3\n", ["samples must be an integer of at least 10, got 3. This was read from"]),
        ("[tool.dpaudit]\nseed = 1.5\n", ["seed must be an integer, got 1.5"]),
        ("[tool.dpaudit]\nmode = 1\n", ["mode must be a text, got 1"]),
        ("[tool.dpaudit]\nconfidence = '0.9'\n", ["confidence must be a number, got '0.9'"]),
        ("[tool.dpaudit]\nreport = [1]\n", ["report must be a list of texts, or one text with commas, got [1]"]),
        ("[tool.dpaudit]\nout = []\n", ["out must be a text, got []"]),
        ("[tool.dpaudit]\nstrict = 'yes'\n", ["strict must be true or false, got 'yes'"]),
        ("tool.dpaudit = 3\n", ["tool.dpaudit must be a table, got 3"]),
        ("[tool.dpaudit\n", ["pyproject.toml must be TOML, got"]),
    ],
)
def test_each_mistake_is_told_with_the_file(tmp_path, text, words):
    path = write(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        read_config(tmp_path)
    for part in [*words, str(path)]:
        assert part in str(caught.value)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "pyproject.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="must be a file in UTF-8"):
        read_config(tmp_path)


def test_an_error_about_a_value_of_the_file_names_the_file(tmp_path):
    path = write(tmp_path, "[tool.dpaudit]\nbackend = 'x'\n")
    config, error = read_config(tmp_path), UsageError("backend must be a backend of joblib, got 'x'.")
    assert str(path) in str(config.located(error, given=()))
    assert config.located(error, given=("backend",)) is error
    other = UsageError("jobs must be a positive integer, got 0.")
    assert config.located(other, given=()) is other


def test_reading_the_configuration_imports_no_numpy():
    code = "import sys, dpaudit.arguments, dpaudit.config, dpaudit.profiles as profiles"
    code += "; dpaudit.config.read_config(); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
