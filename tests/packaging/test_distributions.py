"""What is installed: names that are nobody else's, every file that a command reads, and commands that work anywhere."""

import re
import tarfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]


def test_the_wheel_installs_names_that_are_ours_alone(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.endswith((".dist-info", ".data"))} == {"dpaudit", "dpaudit_mechanisms"}
    expected = {file.relative_to(ROOT / "mechanisms").as_posix() for file in (ROOT / "mechanisms").rglob("__init__.py")}
    assert expected <= set(names) and len(expected) > 5


def test_the_wheel_has_every_file_that_its_code_reads(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in (ROOT / "dpaudit", ROOT / "mechanisms" / "dpaudit_mechanisms"):
        files = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        assert len(files) > 50
        missing = {path.relative_to(folder.parent).as_posix() for path in files} - names
        assert not missing


def test_the_wheel_has_its_license_and_says_what_it_is(wheel):
    archive = zipfile.ZipFile(wheel)
    (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    said = HeaderParser().parsestr(archive.read(metadata).decode())
    assert said["Name"] == "dpaudit" and said["License-Expression"] == "Apache-2.0"
    assert said["License-File"] == "LICENSE"
    (text,) = [name for name in archive.namelist() if name.endswith("/LICENSE")]
    assert archive.read(text) == (ROOT / "LICENSE").read_bytes()


def test_the_sdist_has_what_a_packager_needs(dist):
    (file,) = dist.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for wanted in ("LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "setup.py"):
        assert wanted in names
    for wanted in ("ci/github/dpaudit.yml", "docs/pytest.md", "tests/conftest.py", "dpaudit/schemas/audit-1.json"):
        assert wanted in names
    assert not [name for name in names if "__pycache__" in name or name.startswith((".venv", "node_modules"))]


@pytest.mark.parametrize("where", ["dpaudit", "dpaudit_mechanisms"])
def test_what_runs_is_what_was_installed(installed, where):
    done = installed.run("python", "-c", f"import {where}; print({where}.__file__)")
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(installed.prefix)
    assert installed.run("python", "-c", "import mechanisms").returncode != 0


def test_claims_and_reproductions_are_shown_in_any_folder(installed):
    claims = installed.run("dpaudit", "claims")
    assert claims.returncode == 0, claims.stderr
    assert re.search(r"^ ?DX-T1 ", claims.stdout, re.MULTILINE)
    assert "No tests here mark these claims" in claims.stdout
    listed = installed.run("dpaudit", "reproduce")
    assert listed.returncode == 0, listed.stderr
    assert "dx-multi" in listed.stdout and "triangles" in listed.stdout
    done = installed.run("dpaudit", "reproduce", "linear-sets")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (installed.folder / "reproductions" / "linear-sets.json").is_file()


def test_uninstalling_leaves_a_package_of_the_users_named_mechanisms(installed, wheel):
    (site,) = installed.prefix.glob("lib/python*/site-packages")
    own = site / "mechanisms"
    own.mkdir(exist_ok=True)
    (own / "__init__.py").write_text("MINE = True\n")
    try:
        again = ("install", "--quiet", "--no-index", "--no-deps", "--force-reinstall", str(wheel))
        assert installed.run("python", "-m", "pip", *again).returncode == 0
        assert (own / "__init__.py").read_text() == "MINE = True\n"
        listing = "from importlib.metadata import files; print(*files('dpaudit'), sep='\\n')"
        files = installed.run("python", "-c", listing)
        assert "dpaudit/audits/auditing.py" in files.stdout
        assert not [line for line in files.stdout.splitlines() if line.startswith("mechanisms/")]
    finally:
        (own / "__init__.py").unlink()
        own.rmdir()
