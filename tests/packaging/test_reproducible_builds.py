"""The same files give the same bits: an sdist and a wheel that are built twice, and what the lock file says."""

import hashlib
import os
import re
import subprocess
import sys
import tomllib

import pytest
from environments import ROOT, built

LOCK = ROOT / "requirements" / "dev.txt"


def digests(folder, seconds, is_private):
    """The digests of what is built from a copy whose files have other times, and modes where it is private."""

    def prepare(source):
        for path in source.rglob("*"):
            if path.is_file():
                os.chmod(path, path.stat().st_mode & (0o700 if is_private else 0o777))
                os.utime(path, (seconds, seconds))

    folder.mkdir()
    out = built(folder, prepare, {"SOURCE_DATE_EPOCH": "1795551300"})
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in out.iterdir()}


@pytest.mark.slow
def test_a_second_build_of_the_same_files_has_the_same_bits(tmp_path):
    first = digests(tmp_path / "a", 1_700_000_000, is_private=False)
    assert first == digests(tmp_path / "b", 1_750_000_000, is_private=True)
    assert sorted(name.rpartition(".")[2] for name in first) == ["gz", "whl"]


def locked():
    """The names and versions of the lock file."""
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", LOCK.read_text(), re.MULTILINE))


def test_the_lock_file_has_every_direct_requirement_within_its_bounds():
    packaging = pytest.importorskip("packaging.requirements", reason="needs packaging, which pytest brings")
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    extras = project["optional-dependencies"]
    known = {re.sub(r"[-_.]+", "-", name).lower(): number for name, number in locked().items()}
    wanted, listed = set(), [*project["dependencies"], *extras["dev"]]
    while listed:
        requirement = packaging.Requirement(listed.pop())
        if requirement.name == project["name"]:
            listed += [one for extra in requirement.extras for one in extras[extra]]
        elif requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            wanted.add(requirement.name)
            name = re.sub(r"[-_.]+", "-", requirement.name).lower()
            assert name in known, f"{name} is not in {LOCK.name}: run `make lock`"
            assert requirement.specifier.contains(known[name], prereleases=True), f"{requirement}: run `make lock`"
    assert len(wanted) > 20


def test_the_lock_file_names_no_host_and_no_place():
    text = LOCK.read_text()
    assert not re.search(r"https?://|file:|--(index|extra-index|find-links|trusted-host)", text)
    assert " @ " not in text and "/" not in re.sub(r"(?m)^\s*#.*$", "", text)
    assert "--hash=sha256:" in text


def test_the_pins_are_the_least_versions_of_the_project():
    command = [sys.executable, ROOT / ".ci" / "oldest.py", "--list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert listed == (ROOT / "requirements" / "oldest.txt").read_text() and "numpy==1.26\n" in listed
    assert "make oldest" in (ROOT / ".ci" / "run").read_text()
