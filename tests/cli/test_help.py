"""`dpaudit audit --help`: groups, of which the first has the ten options that people need first."""

import re

from click.testing import CliRunner

from dpaudit.cli import main
from dpaudit.cli.audit import GROUPS, audit_command
from dpaudit.cli.group import REST

TITLES = ["First", "What to audit", "How hard", "Where it runs", "Output"]


def shown():
    return CliRunner(env={"COLUMNS": "80"}).invoke(main, ["audit", "--help"]).stdout


def test_the_options_stand_in_groups_and_the_ten_most_needed_come_first():
    text = shown()
    found = re.findall(r"^(\w[\w ]*):$", text, re.MULTILINE)
    assert [title for title in found if title != REST] == TITLES == list(GROUPS)
    first = text.partition("First:")[2].partition("What to audit:")[0]
    assert len(re.findall(r"^  (?:-q, )?--\w", first, re.MULTILINE)) == len(GROUPS["First"]) == 10
    assert max(map(len, text.splitlines())) <= 80


def test_every_option_is_shown_once_and_every_name_of_a_group_is_an_option():
    options = {parameter.name for parameter in audit_command.params if hasattr(parameter, "hidden")}
    named = [name for names in GROUPS.values() for name in names]
    assert len(named) == len(set(named)) and set(named) <= options | {"help"}
    text = shown()
    for parameter in audit_command.params:
        if hasattr(parameter, "hidden"):
            assert len(re.findall(rf"^  (?:-\w, )?{parameter.opts[0]}(?![\w-])", text, re.MULTILINE)) == 1
