"""The step "Install" of the workflow, with dpaudit from an index, from a wheel, and from a checkout."""

import shutil
from pathlib import Path

import pytest
from environments import new_environment

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
OFFLINE = {
    "PIP_NO_INDEX": "1",
    "PIP_NO_BUILD_ISOLATION": "false",  # pip's own way to say that builds are not isolated
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}
PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "users-project"
version = "1"

[tool.setuptools]
py-modules = []
"""


def test_the_workflow_installs_from_an_index_a_wheel_and_a_checkout(wheel, dist, tmp_path):
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    job = yaml.safe_load((ROOT / "ci/github/dpaudit.yml").read_text(encoding="utf-8"))["jobs"]["audit"]
    assert job["env"]["DPAUDIT_INSTALL"] == "dpaudit"
    (install,) = [step["run"] for step in job["steps"] if step.get("name") == "Install"]
    environment = new_environment(tmp_path)
    (environment.folder / "pyproject.toml").write_text(PROJECT)
    (environment.folder / "wheels").mkdir()
    shutil.copy(wheel, environment.folder / "wheels")
    (source,) = dist.glob("*.tar.gz")
    shutil.unpack_archive(source, environment.folder / "third_party")
    (checkout,) = (environment.folder / "third_party").iterdir()
    index = tmp_path / "index"
    index.mkdir()
    shutil.copy(wheel, index)
    for what, more in (
        (f"./third_party/{checkout.name}", {}),
        (f"./wheels/{wheel.name}", {}),
        ("dpaudit", {"PIP_FIND_LINKS": str(index)}),
    ):
        done = environment.run("bash", "-e", "-c", install, more={**OFFLINE, **more, "DPAUDIT_INSTALL": what})
        assert done.returncode == 0, done.stdout + done.stderr
        assert environment.run("dpaudit", "--version").stdout.startswith("dpaudit, version "), what
        environment.run("python", "-m", "pip", "uninstall", "--quiet", "--yes", "dpaudit")
        assert environment.run("python", "-c", "import dpaudit").returncode != 0
