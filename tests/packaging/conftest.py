"""The sdist and the wheel, built once, and an environment outside the checkout that has the wheel."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from environments import new_environment

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = (".git", ".venv*", "node_modules", "build", "dist", "_build", "*.egg-info", ".*_cache", "__pycache__")


@pytest.fixture(scope="session")
def dist(tmp_path_factory):
    """The folder with the sdist and the wheel that was built from it."""
    pytest.importorskip("build", reason="needs build, which makes the sdist and the wheel")
    if int(version("setuptools").split(".")[0]) < 77:
        pytest.skip("needs setuptools 77, to build without fetching it")
    source = tmp_path_factory.mktemp("source") / "dpaudit"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*LEFT_OUT))
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-4_000:]
    return out


@pytest.fixture(scope="session")
def wheel(dist):
    (file,) = dist.glob("*.whl")
    return file


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory):
    """An environment with the wheel."""
    environment = new_environment(tmp_path_factory.mktemp("installed"))
    done = environment.run("python", "-m", "pip", "install", "--quiet", "--no-index", str(wheel))
    assert done.returncode == 0, done.stdout + done.stderr
    return environment
