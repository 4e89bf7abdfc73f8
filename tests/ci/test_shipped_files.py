"""What services read of this repository: valid by their own schemas, and commands that run where they would."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from test_ci_files import ROOT, load, run

ACTION = ROOT / "action.yml"
RECIPE = ROOT / "conda" / "meta.yaml"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
REQUIREMENT = re.compile(r"([a-z-]+)\s*(?:>=|==)\s*([\d.]+)")


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("action.yml", "github-actions"),
        (".readthedocs.yaml", "readthedocs"),
        (".github/ISSUE_TEMPLATE/bug.yml", "github-issue-forms"),
        (".github/ISSUE_TEMPLATE/wrong-verdict.yml", "github-issue-forms"),
        (".github/ISSUE_TEMPLATE/config.yml", "github-issue-config"),
    ],
)
def test_a_file_follows_the_schema_of_its_service(name, schema):
    jsonschema = pytest.importorskip("jsonschema")
    shipped = pytest.importorskip("check_jsonschema", reason="needs check-jsonschema, which ships the schemas")
    folder = Path(shipped.__file__).parent / "builtin_schemas" / "vendor"
    (file,) = [path for path in folder.rglob("*.json") if path.stem.removesuffix(".schema") == schema]
    found = json.loads(file.read_text(encoding="utf-8"))
    jsonschema.validators.validator_for(found)(found).validate(load(ROOT / name))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validators.validator_for(found)(found).validate(["no", "mapping"])


def steps():
    return {step["name"]: step for step in load(ACTION)["runs"]["steps"]}


def defaults(**stated):
    """The environment of the steps, as the service makes it of the inputs."""
    inputs = {name: one["default"] for name, one in load(ACTION)["inputs"].items()} | stated
    names = {f"DPAUDIT_{name.upper()}": str(value) for name, value in inputs.items()}
    return names | {"DPAUDIT_ACTION": str(ROOT)}


def test_a_step_reads_inputs_from_its_environment_alone():
    """A value that were pasted into a command could be a command."""
    for step in steps().values():
        assert "${{" not in step.get("run", "")
        used = set(re.findall(r"\$\{?(DPAUDIT_\w+)", step.get("run", "")))
        assert used == set(step.get("env", {})) and used <= set(defaults())


@pytest.mark.slow
def test_the_action_audits_a_repository_and_says_what_it_found(repository, tmp_path):
    summary = tmp_path / "summary.md"
    environment = defaults(profile="quick", arguments="-W ignore -k 'not something'")
    audit = run(steps()["Audit"]["run"], repository, summary, **defaults(profile="quick", arguments="-W ignore"))
    assert audit.returncode == 1, audit.stdout + audit.stderr  # the violation fails the job
    assert "1 failed, 1 passed, 1 deselected" in audit.stdout
    assert (repository / "dpaudit-out" / "session.sarif").exists()
    assert run(steps()["Job summary"]["run"], repository, summary, **environment).returncode == 0
    assert "| test\\_it.py::test\\_release | eps=1 | violated |" in summary.read_text()


def test_a_job_of_the_action_without_audits_says_so(repository, tmp_path):
    summary = tmp_path / "summary.md"
    assert run(steps()["Job summary"]["run"], repository, summary, **defaults()).returncode == 0
    assert summary.read_text() == "dpaudit: no audit was run.\n"


def lower_bounds(texts):
    return dict(found.groups() for text in texts if (found := REQUIREMENT.match(text)))


def recipe():
    """The recipe with its templates filled in; `PYTHON` is conda's own."""
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    jinja2 = pytest.importorskip("jinja2")
    return yaml.safe_load(jinja2.Template(RECIPE.read_text("utf-8")).render(PYTHON="python"))


def test_the_recipe_requires_what_the_project_does():
    found = recipe()
    assert found["package"] == {"name": "dpaudit", "version": PROJECT["version"]}
    wanted = lower_bounds(PROJECT["dependencies"])
    required = lower_bounds(text.replace("matplotlib-base", "matplotlib") for text in found["requirements"]["run"])
    assert required == wanted | {"python": PROJECT["requires-python"].removeprefix(">=")}
    assert found["build"]["entry_points"] == [f"{name} = {home}" for name, home in PROJECT["scripts"].items()]


def test_the_extra_of_pytest_is_named_where_people_install():
    assert PROJECT["optional-dependencies"]["pytest"] == ["pytest>=8"]
    for page in ("README.md", "docs/pytest.md", "docs/tutorials/first-audit.md"):
        assert "[pytest]" in (ROOT / page).read_text("utf-8"), page


def test_the_draft_of_a_paper_cites_what_its_bibliography_has():
    text = (ROOT / "paper" / "paper.md").read_text("utf-8")
    entries = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "paper" / "paper.bib").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"@(\w+\d{4})", text)) == entries and "# Statement of need" in text
