"""Virtual environments outside the checkout that have what dpaudit needs, but not dpaudit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = (".git", ".venv*", "node_modules", "build", "dist", "_build", "*.egg-info", ".*_cache", "__pycache__")


def built(folder, prepare=lambda source: None, more=None):
    """The folder with the sdist and the wheel that is built from a copy of the checkout, once it is prepared."""
    pytest.importorskip("build", reason="needs build, which makes the sdist and the wheel")
    if int(version("setuptools").split(".")[0]) < 77:
        pytest.skip("needs setuptools 77, to build without fetching it")
    source, out = folder / "dpaudit", folder / "dist"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*LEFT_OUT))
    prepare(source)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | (more or {})
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-4_000:]
    return out


@dataclass(frozen=True)
class Environment:
    """A virtual environment, an empty home, and a folder of its own to work in."""

    prefix: Path
    home: Path
    folder: Path

    def run(self, *command: str, more: dict[str, str] | None = None, cwd: Path | None = None):
        """Run a program of the environment in its folder; nothing of the checkout is on any path."""
        path = f"{self.prefix / 'bin'}{os.pathsep}{os.defpath}"
        clean = {"PATH": path, "HOME": str(self.home), "LANG": "C.UTF-8", "COLUMNS": "100"}
        kept = {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_NUM_THREADS", "SOURCE_DATE_EPOCH"}
        clean |= {name: value for name, value in os.environ.items() if name in kept} | (more or {})
        return subprocess.run(
            command, cwd=cwd or self.folder, env=clean, capture_output=True, text=True, check=False,
            executable=shutil.which(command[0], path=path),
        )  # fmt: skip


def new_environment(base):
    """An environment without dpaudit; what dpaudit depends on is linked from the environment of the tests."""
    prefix, home, folder = base / "environment", base / "home", base / "work"
    home.mkdir()
    folder.mkdir()
    venv.create(prefix, with_pip=True)
    (site,) = prefix.glob("lib/python*/site-packages")
    for old in [*site.glob("setuptools*"), site / "pkg_resources", site / "_distutils_hack"]:  # of Python 3.11's venv
        shutil.rmtree(old, ignore_errors=True)
    for place in (Path(entry) for entry in sys.path if "site-packages" in entry):
        for entry in place.iterdir():
            name = entry.name.lower()
            ours = "dpaudit" in name or name.endswith((".pth", ".egg-link"))
            if not ours and name not in ("pip", "__pycache__") and not (site / entry.name).exists():
                (site / entry.name).symlink_to(entry)
    # A script of pytest's own, as pip would have made it: what is linked brings none.
    script = prefix / "bin" / "pytest"
    script.write_text(f"#!{prefix / 'bin' / 'python'}\nimport sys\nimport pytest\nsys.exit(pytest.console_main())\n")
    script.chmod(0o755)
    return Environment(prefix, home, folder)
