"""What users copy into their CI: valid YAML, GitHub's own schema, and commands that run in a repository like theirs.

What only the service can do (the actions that are used, permissions, the code scanner) is not tested here.
"""

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dpaudit
from dpaudit.reports import FORMATS

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = ROOT / "ci" / "github" / "dpaudit.yml"
HOOKS = ROOT / ".pre-commit-hooks.yaml"
CONFIG = ROOT / "ci" / "pre-commit-config.yaml"


def load(path):
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps():
    return {step.get("name", step.get("uses")): step for step in load(WORKFLOW)["jobs"]["audit"]["steps"]}


def run(command, folder, summary=None, **more):
    """Run a step as GitHub does: bash with -e, in the repository; python is this one."""
    bin = folder.parent / "bin"
    bin.mkdir(exist_ok=True)
    if not (bin / "python").exists():
        (bin / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        (bin / "python").chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}",
        # As where dpaudit is installed from this folder, whichever one is.
        "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        "GITHUB_STEP_SUMMARY": str(summary or os.devnull),
        **more,
    }
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", command], cwd=folder, env=environment, capture_output=True, text=True
    )


def test_the_workflow_follows_githubs_schema():
    jsonschema = pytest.importorskip("jsonschema")
    shipped = pytest.importorskip("check_jsonschema", reason="needs check-jsonschema, which ships GitHub's schema")
    file = Path(shipped.__file__).parent / "builtin_schemas" / "vendor" / "github-workflows.json"
    schema = json.loads(file.read_text(encoding="utf-8"))
    # YAML 1.1 reads the key `on` as true; GitHub reads it as a text.
    workflow = {("on" if key is True else key): value for key, value in load(WORKFLOW).items()}
    jsonschema.validators.validator_for(schema)(schema).validate(workflow)
    del workflow["jobs"]["audit"]["runs-on"]  # the schema does say something
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validators.validator_for(schema)(schema).validate(workflow)


def test_pull_requests_have_fixed_seeds_and_nights_have_fresh_ones():
    from dpaudit.profiles import profile_named

    workflow = load(WORKFLOW)
    triggers = workflow[True] if True in workflow else workflow["on"]
    assert {"pull_request", "schedule"} <= set(triggers)
    profile = workflow["jobs"]["audit"]["env"]["DPAUDIT_PROFILE"]
    assert "github.event_name == 'schedule'" in profile and profile.endswith("&& 'nightly' || 'ci' }}")
    assert (profile_named("ci").seeds, profile_named("nightly").seeds) == ("fixed", "fresh")


def test_what_is_kept_between_runs_is_what_the_plugin_keeps():
    from dpaudit.pytest_plugin.options import CACHE

    restored, saved = (steps()[name]["with"] for name in (
        "Restore witnesses and evidence", "Save witnesses and evidence"))  # fmt: skip
    assert restored["path"] == saved["path"] == CACHE
    assert restored["key"] == saved["key"] and "github.run_id" in saved["key"]  # a cache is never overwritten
    branch, default = restored["restore-keys"].splitlines()
    assert saved["key"].startswith(branch) and default == branch.replace(
        "github.ref_name", "github.event.repository.default_branch"
    )


def test_what_is_uploaded_is_what_the_audit_writes():
    audit, upload = steps()["Audit"]["run"], steps()["Upload SARIF"]
    assert "sarif" in audit.partition("--dp-report ")[2].split()[0].split(",")
    assert audit.partition("--dp-out ")[2].split()[0] == steps()["Keep the reports"]["with"]["path"]
    assert upload["with"]["sarif_file"] == "dpaudit-out/session.sarif"
    assert "always()" in upload["if"]  # a violation fails the step before it


@pytest.mark.slow
def test_the_commands_of_the_workflow_run_in_a_repository(repository, tmp_path):
    summary = tmp_path / "summary.md"
    command = steps()["Audit"]["run"]
    if "sarif" not in FORMATS:
        command = command.replace("json,html,sarif", "json,html")
    store = ".dpaudit/evidence.sqlite" if "store" in inspect.signature(dpaudit.audit).parameters else ""
    audit = run(command, repository, summary, DPAUDIT_PROFILE="ci", DPAUDIT_STORE=store)
    assert audit.returncode == 1, audit.stdout + audit.stderr  # the violation fails the job
    assert "1 failed, 1 passed, 1 deselected" in audit.stdout
    assert run(steps()["Job summary"]["run"], repository, summary).returncode == 0
    text = summary.read_text()
    assert "| test\\_it.py::test\\_release | eps=1 | violated |" in text
    assert len(text.encode()) < 1_000_000
    assert (repository / "dpaudit-out" / "session.sarif").exists() == ("sarif" in FORMATS)
    assert list((repository / ".dpaudit" / "witnesses").glob("*.json"))  # what the cache keeps


def test_a_job_without_audits_says_so_in_its_summary(repository, tmp_path):
    summary = tmp_path / "summary.md"
    assert run(steps()["Job summary"]["run"], repository, summary).returncode == 0
    assert summary.read_text() == "dpaudit: no audit was run.\n"


@pytest.mark.parametrize("size", [899_999, 2_000_000])
def test_a_job_summary_is_cut_below_what_the_service_drops(repository, tmp_path, size):
    (repository / "dpaudit-out").mkdir()
    (repository / "dpaudit-out" / "session.md").write_text("x" * size)
    summary = tmp_path / "summary.md"
    assert run(steps()["Job summary"]["run"], repository, summary).returncode == 0
    assert summary.stat().st_size == min(size, 900_000)


def test_the_hook_is_a_hook_and_the_example_uses_it():
    (hook,) = load(HOOKS)
    assert {"id", "name", "entry", "language"} <= set(hook)  # what pre-commit requires of a manifest
    known = {"description", "types", "pass_filenames", "require_serial"}
    assert set(hook) <= {"id", "name", "entry", "language", *known}
    (repo,) = load(CONFIG)["repos"]
    (used,) = repo["hooks"]
    assert repo["repo"] == "local" and used.pop("stages") == ["pre-push"]
    assert used == {name: value for name, value in hook.items() if name != "description"}


@pytest.mark.slow
def test_the_hook_runs_in_a_repository(repository):
    (hook,) = load(HOOKS)
    found = run(hook["entry"], repository)
    assert found.returncode == 1, found.stdout + found.stderr
    assert "dpaudit: 2 audits: 1 violated, 1 not refuted" in found.stdout
    suite = repository / "test_it.py"
    suite.write_text(suite.read_text().replace("return data\n", "return data + rng.laplace()\n"))
    assert run(hook["entry"] + " -W ignore", repository).returncode == 0


def test_actions_are_pinned_by_commit():
    for file in (WORKFLOW, ROOT / "dpaudit/cli/templates/workflow.yml"):
        used = re.findall(r"uses: (\S+)", file.read_text())
        assert len(used) == 6 and all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one) for one in used)
