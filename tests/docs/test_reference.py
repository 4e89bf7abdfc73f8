"""The pages of the reference that are made from the code are what the code says."""

import re
import subprocess
import sys

import pytest
import reference_pages

import dpaudit
from dpaudit import errors
from dpaudit.cli.group import BROKEN_PIPE
from dpaudit.cli.terminating import INTERRUPTED
from dpaudit.results.verdicts import EXIT_STATUS


@pytest.mark.parametrize("name", reference_pages.PAGES)
def test_a_page_is_what_the_code_says(name):
    is_current = (reference_pages.FOLDER / name).read_text("utf-8") == reference_pages.PAGES[name]()
    assert is_current, f"docs/reference/{name} must be what the code says: run `make reference`"


def test_every_public_name_is_on_the_page_of_signatures():
    text = (reference_pages.FOLDER / "signatures.md").read_text("utf-8")
    own = [name for name in dpaudit.__all__ if callable(getattr(dpaudit, name))]
    missing = [name for name in own if not re.search(rf"^(\| `)?{name}\b", text, re.MULTILINE)]
    assert len(own) > 50 and not missing, f"docs/reference/signatures.md must name {missing}: run `make reference`"
    assert "    mode: Mode = 'sequential'," in text and "rng: RngLike = None" in text


def test_every_exit_status_is_on_its_page():
    text = (reference_pages.FOLDER / "exit-statuses.md").read_text("utf-8")
    stated = {int(status) for status in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    kinds = [kind.exit_status for kind in vars(errors).values() if hasattr(kind, "exit_status")]
    assert {*EXIT_STATUS.values(), *kinds, INTERRUPTED, BROKEN_PIPE} <= stated


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_names(shell):
    command = [sys.executable, "-c", "from dpaudit.cli import main; main(prog_name='dpaudit')"]
    environment = {"_DPAUDIT_COMPLETE": f"{shell}_source", "PATH": ""}
    if shell == "bash":  # click asks bash for its version
        environment = {"_DPAUDIT_COMPLETE": "bash_complete", "COMP_WORDS": "dpaudit audit --cl", "COMP_CWORD": "2"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "--claim" in done.stdout if shell == "bash" else "_DPAUDIT_COMPLETE" in done.stdout
