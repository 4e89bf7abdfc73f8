"""The README: short, and every command and example in it does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import run_page

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"


def test_the_readme_has_at_most_700_words():
    assert len(README.read_text(encoding="utf-8").split()) <= 700


def test_the_third_line_says_how_to_install_it():
    line = README.read_text(encoding="utf-8").splitlines()[2]
    assert "`pip install .`" in line and "`make dist`" in line and "`pip install dpaudit`" in line


@pytest.mark.slow
def test_every_example_of_the_readme_does_what_it_says(tmp_path, monkeypatch):
    assert run_page(README, tmp_path, monkeypatch) == 6
