"""`dpaudit init`: files to begin with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from dpaudit.cli.group import command, main
from dpaudit.config import FILE as SETTINGS
from dpaudit.config import read_config
from dpaudit.errors import UsageError

TEMPLATES = Path(__file__).parent / "templates"
WORKFLOW = Path(".github/workflows/dpaudit.yml")
HOOK = Path(".pre-commit-config.yaml")
TEST, ROOT_OF_TESTS = Path("tests/test_privacy.py"), Path("conftest.py")
CONFTEST = '"""pytest puts the folder of this file on the path, so that tests import the modules that are here."""\n'
INSTALL = "DPAUDIT_INSTALL: dpaudit\n"  # the line of the workflow that says what to install


@main.group("init", invoke_without_command=True)
@click.pass_context
def init_group(ctx: click.Context) -> None:
    """Write files to begin with: a test, settings, a workflow, a hook.

    Without a command, ask which ones. Nothing that is there is overwritten.
    """
    if ctx.invoked_subcommand is None:
        _ask(ctx)


@command("workflow", init_group)
@click.option(
    "--install",
    default="dpaudit",
    show_default=True,
    metavar="WHAT",
    help="What the workflow installs: dpaudit (from an index), ./a/wheel.whl, or ./a/checkout.",
)
def workflow_command(_: click.Context, given: Any) -> None:
    """Write a GitHub workflow that runs the audits of the test suite.

    On pull requests with fixed seeds, every night with fresh ones. The file is .github/workflows/dpaudit.yml.
    """
    _write(WORKFLOW, workflow_text(given.install))


@command("hook", init_group)
def hook_command(_: click.Context, given: Any) -> None:
    """Write a hook for pre-commit that runs quick audits before a push.

    The file is .pre-commit-config.yaml.
    """
    _write(HOOK, _template("pre-commit-config.yaml"))


@command("settings", init_group)
@click.option("--samples", type=int, default=100_000, show_default=True, help="Runs on each input of a pair, at most.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Of all statements of one audit.")
@click.option("--out", default="build/audits", show_default=True, help="Folder for reports.")
def settings_command(_: click.Context, given: Any) -> None:
    """Add [tool.dpaudit] to pyproject.toml, which is made where it is absent."""
    from dpaudit.arguments import check_options

    check_options(samples=given.samples, confidence=given.confidence)
    _add_settings(given.samples, given.confidence, given.out)


@command("test", init_group)
@click.argument("target", metavar="MODULE:FUNCTION")
@click.option("--claim", required=True, help="The promise, as for `dpaudit audit`.")
@click.option("--pairs", required=True, help="Pairs of inputs as JSON, such as 0,1: as for `dpaudit audit`.")
def test_command(_: click.Context, given: Any) -> None:
    """Write a first test of MODULE:FUNCTION, tests/test_privacy.py, and a conftest.py where there is none."""
    for path, text in _test_files(test_text(given.target, given.claim, given.pairs)):
        _write(path, text)


@command("deployment", init_group)
@click.argument("path", default="deployment.toml", metavar="[FILE]")
def deployment_command(_: click.Context, given: Any) -> None:
    """Write FILE (deployment.toml), in which you declare what a report cannot measure.

    It has every key with its meaning, all commented out: owner, approver, unit of privacy, data source, retention, the
    budget over releases, and what a public registry asks for. `dpaudit report --profile compliance --deployment FILE`
    checks and quotes it.
    """
    from dpaudit.reports.deployment import template

    _write(Path(given.path), template())


def workflow_text(install: str = "dpaudit") -> str:
    """The workflow, with what it installs.

    `UsageError` if `install` is empty or more than one line.
    """
    if not install.strip() or not install.isprintable():
        raise UsageError(f"install must be a name, a wheel or a folder, got {install!r}.")
    said = install if install == "dpaudit" else json.dumps(install)  # a JSON string is a YAML string
    return _template("workflow.yml").replace(INSTALL, f"DPAUDIT_INSTALL: {said}\n")


def test_text(target: str, claim: str, pairs: str) -> str:
    """A test file with one audit.

    `UsageError` if the target is neither `module:function` nor `file.py:function`, or the claim or the pairs cannot be
    read.
    """
    from dpaudit.privacy.parsing import parse_claim, parse_pairs

    path, colon, name = target.rpartition(":")
    file = Path(path)
    module = ".".join(file.with_suffix("").parts) if file.suffix == ".py" and not file.is_absolute() else path
    if not colon or not name.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise UsageError(f"target must be module:function or file.py:function of this folder, got {target!r}.")
    parse_claim(claim)
    listed = "".join(f"        ({pair.x!r}, {pair.x_prime!r}),\n" for pair in parse_pairs(pairs))
    return (
        f'"""The privacy promises of this project, tested by dpaudit: pytest --dp-only."""\n\n'
        f"from {module} import {name}\n\n\n"
        f"def test_{name}_keeps_its_promise(dp_audit):\n"
        f"    pairs = [\n{listed}    ]\n"
        f"    dp_audit({name}, claim={json.dumps(claim)}, pairs=pairs)\n"
    )


def _template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _test_files(text: str) -> list[tuple[Path, str]]:
    """The test, and what it takes that plain `pytest` finds the modules of this folder, where that is not there."""
    return [(TEST, text), *([] if ROOT_OF_TESTS.exists() else [(ROOT_OF_TESTS, CONFTEST)])]


def _write(path: Path, text: str) -> None:
    """Write a new file of the current folder, and say so."""
    from dpaudit.results.saving import write_whole

    if path.exists():
        raise UsageError(f"file must be one that is not there yet, got {str(path)!r}. Remove that one first.")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
    click.echo(f"Written: {path}")


def _add_settings(samples: int, confidence: float, out: str) -> None:
    from dpaudit.results.saving import write_whole

    path = Path(SETTINGS)
    there = path.read_text(encoding="utf-8") if path.exists() else ""
    if "[tool.dpaudit" in there:
        raise UsageError(f"file must have no [tool.dpaudit] yet, got {SETTINGS!r}.")
    table = f"[tool.dpaudit]\nsamples = {samples}\nconfidence = {confidence}\nout = {json.dumps(out)}\n"
    write_whole(path, f"{there.rstrip()}\n\n{table}" if there.strip() else table)
    read_config()
    click.echo(f"Written: {path}")


def _ask(ctx: click.Context) -> None:
    """Ask, and write what is wanted; a file that is there is left alone, and that is said."""
    steps = []
    if not TEST.exists() and click.confirm(f"A first test, {TEST}?", default=True):
        target = click.prompt("  The mechanism, as module:function")
        claim = click.prompt("  Its promise", default="eps=1")
        pairs = click.prompt("  Two inputs that it takes, as JSON", default="0,1")
        steps += _test_files(test_text(target, claim, pairs))
    if not WORKFLOW.exists() and click.confirm(f"A GitHub workflow, {WORKFLOW}?", default=True):
        install = click.prompt("  Where dpaudit comes from (an index: dpaudit; a wheel; a checkout)", default="dpaudit")
        steps.append((WORKFLOW, workflow_text(install)))
    if not HOOK.exists() and click.confirm(f"A hook for pre-commit, {HOOK}?", default=False):
        steps.append((HOOK, _template("pre-commit-config.yaml")))
    settings = click.confirm(f"Settings, [tool.dpaudit] in {SETTINGS}?", default=True)
    for path, text in steps:
        _write(path, text)
    if settings:
        _add_settings(100_000, 0.95, "build/audits")
    if click.confirm("A file for what you declare, deployment.toml?", default=False):
        ctx.invoke(deployment_command, path="deployment.toml")
