"""`dpaudit report`."""

from __future__ import annotations

import click

from dpaudit.cli.group import main, with_debug
from dpaudit.cli.outputs import DEFAULT_OUT, chosen_outputs, places, write_reports
from dpaudit.config import read_config

REPORT_FORMATS = ("html", "md")


@main.command("report")
@click.argument("results", nargs=-1, required=True, metavar="RESULT...")
@click.option("--report", help=f"Formats to write.  [default: {','.join(REPORT_FORMATS)}]")
@click.option("--out", help=f"Folder for the reports.  [default: {DEFAULT_OUT}]")
@with_debug
def report_command(results: tuple[str, ...], report: str | None, out: str | None) -> None:
    """Render saved RESULTs (audit.json) as reports."""
    from dpaudit.results import load

    chosen, folder = chosen_outputs(read_config(), report, out, REPORT_FORMATS)
    loaded = [load(path) for path in results]
    names = [str(result.subject.get("name", "")) for result in loaded]
    for result, place in zip(loaded, places(folder, names), strict=True):
        for path in write_reports(result, place, chosen):
            click.echo(path)
