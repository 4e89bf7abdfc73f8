"""Environments of real releases: one each, `FOLDER/package-version`.

Two versions of a library stand side by side, and old ones need not agree with what dpaudit needs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from dpaudit.exhibits.exhibit import Release

SERVING = Path(__file__).with_name("serving.py")


def environment(release: Release, folder: Path) -> Path:
    """The folder of a release's environment."""
    return folder / f"{release.package}-{release.versions}"


def interpreter(release: Release, folder: Path | None) -> Path | None:
    """Interpreter for a release that is served from a script; None if that version is not installed.

    Its own environment comes first, then the one that runs, if that version is installed there.
    """
    if folder is not None:
        own = environment(release, folder) / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        if own.exists():
            return own.absolute()
    return Path(sys.executable) if release.installed() == release.versions else None


def command(release: Release, python: Path) -> tuple[str, ...]:
    """Command that serves a release: `dpaudit.exec_subject` takes it."""
    return str(python), str(SERVING), str(release.program)


def install(releases: Sequence[Release], folder: Path, tell: Callable[[str], None] = lambda text: None) -> list[str]:
    """Make the environments that are not there yet; the releases that could not be installed.

    Those without a program are left out: they are installed where dpaudit is. `tell` takes a line after each release.
    """
    failed = []
    wanted = {environment(release, folder): release for release in releases if release.program is not None}
    for place, release in wanted.items():
        name = f"{release.package} {release.versions}"
        if place.exists():
            tell(f"{name}: there already")
            continue
        done = False
        try:
            done = _make(release, place, folder)
        finally:
            if not done:  # what is half made would count as installed
                shutil.rmtree(place, ignore_errors=True)
        if not done:
            failed.append(name)
        tell(f"{name}: {'installed' if done else 'pip could not install it'}")
    return failed


def _make(release: Release, place: Path, folder: Path) -> bool:
    """Make one environment, and return whether pip installed all that its release needs."""
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    pip = [str(interpreter(release, folder)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    steps = [[*pip, "--no-deps", f"{release.package}=={release.versions}"]]
    if release.needs:
        steps.append([*pip, *release.needs])
    return all(subprocess.run(step, check=False).returncode == 0 for step in steps)
