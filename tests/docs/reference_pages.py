"""Write the pages of the reference that are made from the code, as text that can be read where no site is built.

    python tests/docs/reference_pages.py      (`make reference`)

`test_reference.py` holds the pages to the code.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

import dpaudit
from dpaudit.cli import main

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference"
MADE = "<!-- Made from the code by `make reference`; do not edit. -->"
WIDTH = 118
IN_ALL = {"--help", "--debug", "--quiet"}  # options that the page says once


def options_page() -> str:
    """Every command with its arguments and options, a table each."""
    context = click.Context(main, info_name="dpaudit")
    parts = [
        "# Options of every command",
        MADE,
        "What `dpaudit COMMAND --help` says, as tables. [Commands](cli.md) has the same as a site shows it, and says "
        "how the shell completes names. [Exit statuses](exit-statuses.md) have a page of their own. Each command also "
        "has `--help`; most have `--debug` (the traceback of an error) and `--quiet`.",
    ]
    parts += [part for command, name in _commands(main, context, "dpaudit") for part in _command(command, name)]
    return "\n\n".join(parts) + "\n"


def _commands(group: click.Group, context: click.Context, path: str) -> Iterator[tuple[click.Command, str]]:
    for name in sorted(group.list_commands(context)):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _commands(command, context, f"{path} {name}")
        if not isinstance(command, click.Group) or command.params:
            yield command, f"{path} {name}"


def _command(command: click.Command, name: str) -> Iterator[str]:
    context = click.Context(command, info_name=name, resilient_parsing=True, **main.context_settings)
    yield f"## {name}"
    first = inspect.cleandoc(command.help or "").partition("\n\n")[0]
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"`{name} {usage}`: {' '.join(first.split())}"
    rows = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if isinstance(parameter, click.Option) and record is not None and IN_ALL.isdisjoint(parameter.opts):
            option, text = (" ".join(part.split()).replace("|", "\\|") for part in record)
            rows.append(f"| `{option}` | {text} |")
    if rows:
        yield "\n".join(["| option | what it says |", "| --- | --- |", *rows])


def signatures_page() -> str:
    """Every public name with its signature and what it is, in one line of text each."""
    functions, classes = [], []
    for name in sorted(dpaudit.__all__, key=str.lower):
        found = getattr(dpaudit, name)
        if inspect.isfunction(found):
            functions.append(_signature(name, found))
        elif inspect.isclass(found):
            classes.append(f"| `{name}` | {_first_line(found)} |")
    parts = [
        "# Signatures",
        MADE,
        "Every function that `import dpaudit` gives, and every class. [The Python interface](api.md) has the "
        "docstrings as a site shows them; `help(dpaudit.audit)` has them anywhere.",
        "## Functions",
        *functions,
        "## Classes",
        "\n".join(["| name | what it is |", "| --- | --- |", *classes]),
    ]
    return "\n\n".join(parts) + "\n"


def _first_line(found: object) -> str:
    return inspect.cleandoc(found.__doc__ or "").partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def _signature(name: str, function: Callable[..., Any]) -> str:
    """A function's signature, wrapped between parameters; its first line above."""
    signature = inspect.signature(function)
    parts, before = [], inspect.Parameter.POSITIONAL_OR_KEYWORD
    for one in signature.parameters.values():
        if one.kind is one.KEYWORD_ONLY and before is one.POSITIONAL_OR_KEYWORD:
            parts.append("*,")
        star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        default = "" if one.default is one.empty else f" = {one.default!r}"
        parts.append(f"{star}{one.name}: {one.annotation}{default},")
        before = one.kind
    whole = f"{name}({' '.join(parts).removesuffix(',')}) -> {signature.return_annotation}"
    lines = [whole]
    if len(whole) > WIDTH:
        held = [part.replace(" ", "\0") for part in parts]
        lines = [f"{name}(", *textwrap.wrap(" ".join(held), WIDTH, initial_indent="    ", subsequent_indent="    ")]
        lines = [line.replace("\0", " ") for line in lines] + [f") -> {signature.return_annotation}"]
    return "\n".join([f"{_first_line(function)}\n", "```text", *lines, "```"])


PAGES = {"options.md": options_page, "signatures.md": signatures_page}


if __name__ == "__main__":
    for file, written in PAGES.items():
        (FOLDER / file).write_text(written(), encoding="utf-8")
