"""`dpaudit audit --isolation`, and the same in [tool.dpaudit]."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dpaudit.cli import main

MODULE = """
import os
def leaves(data, rng):
    print("not to be seen")
    if data == 1:
        os._exit(7)
    return float(rng.laplace())
"""


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Result:
    (folder / "isolated_subject.py").write_text(MODULE)
    monkeypatch.chdir(folder)
    command = ["audit", "isolated_subject.py:leaves", "--claim", "eps=1", "--pairs", "0,1", "--samples", "100"]
    return CliRunner().invoke(main, [*command, "--seed", "1", "--no-floating-point", *arguments])


def test_the_command_line_isolates_a_subject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(tmp_path, monkeypatch, "--isolation=seconds=5", "--out", "reports", "--report", "json")
    assert result.exit_code == 1
    assert "not to be seen" not in result.output
    shown = " ".join(result.output.split())
    assert re.search(r"found\. (\d+) of \1 calls on 1 did not come back \(\1 by exit 7\)", shown)
    saved = json.loads((tmp_path / "reports" / "audit.json").read_text())
    assert saved["options"]["isolation"] == "seconds=5,memory=1G,output=64M,patience=60,timing=0"
    assert set(saved["side_findings"][0]["details"]["ended"]["1"]) == {"exit 7"}


def test_the_project_states_the_isolation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.dpaudit]\nisolation = true\n")
    assert run(tmp_path, monkeypatch).exit_code == 1
    (tmp_path / "pyproject.toml").write_text("[tool.dpaudit]\nisolation = 3\n")
    result = run(tmp_path, monkeypatch)
    assert result.exit_code == 2 and "isolation must be true, false or a text" in result.output
