"""`dpaudit init`: what it writes works as it stands, and nothing that is there is overwritten."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpaudit.cli import main
from dpaudit.cli.init import test_text as text_of_test
from dpaudit.cli.init import workflow_text

ROOT = Path(__file__).resolve().parents[2]


def init(*arguments, given=None):
    return CliRunner().invoke(main, ["init", *arguments], input=given, prog_name="dpaudit")


def test_the_files_in_ci_are_those_that_init_writes(project):
    assert init("workflow").exit_code == init("hook").exit_code == 0
    written = (project / ".github/workflows/dpaudit.yml", project / ".pre-commit-config.yaml")
    kept = (ROOT / "ci/github/dpaudit.yml", ROOT / "ci/pre-commit-config.yaml")
    assert [path.read_text() for path in written] == [path.read_text() for path in kept]


@pytest.mark.parametrize("install", ["./wheels/dpaudit-0.1.0-py3-none-any.whl", "./third party/#1: dpaudit"])
def test_the_workflow_installs_what_was_said(install):
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    assert yaml.safe_load(workflow_text(install))["jobs"]["audit"]["env"]["DPAUDIT_INSTALL"] == install


def test_the_first_test_audits_the_function(pytester):
    pytester.makepyprojecttoml("")
    pytester.makepyfile(noise="def release(data, rng):\n    return data + rng.laplace(scale=0.2)\n")
    command = ["init", "test", "noise:release", "--claim", "eps=1", "--pairs", "0,1; 1,2"]
    done = pytester.run(sys.executable, "-m", "dpaudit", *command)
    assert done.ret == 0, done.stderr.str()
    pytester.syspathinsert()  # as where the project is installed
    result = pytester.runpytest("--dp-samples", "2000", "-p", "no:cacheprovider")
    result.stdout.fnmatch_lines(["Violated: the promise is broken for 2 of 2 pairs"])
    result.assert_outcomes(failed=1)


@pytest.mark.parametrize(
    ("target", "line"),
    [
        ("noise:release", "from noise import release"),
        ("noise.py:release", "from noise import release"),
        ("shop/noise.py:release", "from shop.noise import release"),
    ],
)
def test_the_first_test_imports_a_module_whatever_form_names_it(target, line):
    assert line in text_of_test(target, "eps=1", "0,1").splitlines()


def test_the_first_test_runs_where_nothing_is_installed(project):
    """With plain pytest, in a project of two files: the folder of the tests alone would not find the function."""
    (project / "noise.py").write_text("def release(data, rng):\n    return data + rng.laplace(scale=0.2)\n")
    done = init("test", "noise.py:release", "--claim", "eps=1", "--pairs", "0,1")
    assert done.exit_code == 0 and "Written: conftest.py" in done.output
    code = "import sys, pytest; sys.path[:] = [p for p in sys.path if p]; sys.exit(pytest.main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "--collect-only", "-q", "-p", "no:cacheprovider"]
    found = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert found.returncode == 0 and "test_release_keeps_its_promise" in found.stdout, found.stdout
    (project / "conftest.py").unlink()  # what it is there for
    assert subprocess.run(command, cwd=project, capture_output=True, check=False).returncode == 2


def test_settings_are_added_to_a_file_that_is_there_and_can_be_read(project):
    (project / "pyproject.toml").write_text('[project]\nname = "mine"\n')
    assert init("settings", "--samples", "5000", "--out", 'a "folder"').exit_code == 0
    content = tomllib.loads((project / "pyproject.toml").read_text())
    assert content["project"]["name"] == "mine"
    assert content["tool"]["dpaudit"] == {"samples": 5000, "confidence": 0.95, "out": 'a "folder"'}
    refused = init("settings")
    assert refused.exit_code == 2 and "file must have no [tool.dpaudit] yet, got 'pyproject.toml'." in refused.stderr


def test_questions_lead_to_the_same_files(project):
    answers = ["y", "noise:release", "", "", "y", "", "y", "y", "n"]
    done = init(given="\n".join(answers) + "\n")
    assert done.exit_code == 0, done.output
    for name in ("tests/test_privacy.py", ".github/workflows/dpaudit.yml", ".pre-commit-config.yaml", "pyproject.toml"):
        assert (project / name).is_file() and f"Written: {name}" in done.output
    assert 'dp_audit(release, claim="eps=1", pairs=pairs)' in (project / "tests/test_privacy.py").read_text()
    assert (project / "pyproject.toml").read_text().startswith("[tool.dpaudit]")


def test_a_file_that_is_there_stays(project):
    (project / ".pre-commit-config.yaml").write_text("mine")
    done = init("hook")
    assert done.exit_code == 2 and "file must be one that is not there yet" in done.stderr
    assert (project / ".pre-commit-config.yaml").read_text() == "mine"


def test_questions_that_get_no_answer_are_no_interrupt(project):
    command = [sys.executable, "-m", "dpaudit", "init"]
    done = subprocess.run(command, input="y\n", capture_output=True, text=True, cwd=project)
    assert done.returncode == 2 and "Interrupted" not in done.stderr
    assert done.stderr.strip() == "Error: standard input must answer every question, got its end."
