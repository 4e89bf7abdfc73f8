"""`dpaudit init`: files to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from dpaudit.cli.group import main, with_debug
from dpaudit.errors import UsageError


@main.group("init")
def init_group() -> None:
    """Write files to begin with; nothing that is there is overwritten."""


@init_group.command("deployment")
@click.argument("path", default="deployment.toml", metavar="[FILE]")
@with_debug
def deployment_command(path: str) -> None:
    """Write FILE (deployment.toml), in which you declare what a report cannot measure.

    It has every key with its meaning, all commented out: owner, approver, unit of privacy, data source, retention, the
    budget over releases, and what a public registry asks for. `dpaudit report --profile compliance --deployment FILE`
    checks and quotes it.
    """
    from dpaudit.reports.deployment_template import text
    from dpaudit.results import write_whole

    place = Path(path)
    if place.exists():
        raise UsageError(f"file must be one that is not there yet, got {path!r}.")
    write_whole(place, text())
    click.echo(path)
