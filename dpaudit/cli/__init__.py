"""The command line: `dpaudit COMMAND`, with a file for each command.

Results go to stdout; progress, notes and errors go to stderr, an error as one message without a traceback (`--debug`
shows it). Exit status: 0 nothing refuted, 1 a violation (or a confirmed replay), 2 usage or configuration, 3 the audit
or its subject broke, or what was found could not be written (a full disk; a violation stays 1), 5 inconclusive,
130 interrupted (Ctrl-C), 143 terminated (SIGTERM). A verdict that could not be printed keeps its status
(`dpaudit.cli.ending`). Only click is imported until a command runs: a command's file imports at the top what every
command shares, and the rest in its function.
`dpaudit claims` runs no mechanism: it shows what papers claim, and which tests check it.
"""

from importlib import import_module
from typing import NoReturn

from dpaudit.cli.ending import run_and_end
from dpaudit.cli.group import main

__all__ = ["main", "run"]

COMMANDS = "audit bench certify check claims evidence greybox init judge museum plan replay report reproduce scores"
for _command in COMMANDS.split():
    import_module(f"dpaudit.cli.{_command}")


def run() -> NoReturn:
    """The command `dpaudit` as a process of its own, which ends by the command's status."""
    run_and_end(lambda: main(prog_name="dpaudit", standalone_mode=False))
