"""The README: short, and every command and example in it does what it says."""

from pathlib import Path

import pytest
from pages import run_page

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"


def test_the_readme_has_at_most_700_words():
    assert len(README.read_text(encoding="utf-8").split()) <= 700


def test_it_says_what_it_is_and_then_how_to_install_it():
    _, what, how, *_ = README.read_text(encoding="utf-8").split("\n\n")
    assert what.startswith("**dpaudit is the test suite for differential privacy.**")
    assert "'.[pytest]'" in how and "`make dist`" in how and "'dpaudit[pytest]'" in how


@pytest.mark.slow
def test_every_example_of_the_readme_does_what_it_says(tmp_path, monkeypatch):
    assert run_page(README, tmp_path, monkeypatch) == 6
