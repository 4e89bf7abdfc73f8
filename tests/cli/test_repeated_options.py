"""No option that is given twice loses a value in silence: lists are put together, everything else is refused."""

import click
import pytest

from dpaudit.cli import main
from dpaudit.cli.check import _known_failures
from dpaudit.errors import UsageError


def commands(group, path=()):
    """Every command of the group with the words that call it."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


OPTIONS = [
    (words, command, option)
    for words, command in commands(main)
    for option in command.params
    if isinstance(option, click.Option) and not (option.is_flag and not option.secondary_opts)
]
LISTS = {("audit", "report"), ("bench", "only"), ("check", "only"), ("check", "xfail"), ("museum", "only"),
         ("report", "report"), ("scores", "report"), ("evidence forget", "changed")}  # fmt: skip


def test_an_option_is_refused_where_it_is_given_twice_or_keeps_every_value():
    kept = set()
    for words, command, option in OPTIONS:
        twice = [option.opts[0]] * 2 if option.is_flag else [f"{option.opts[0]}=1", f"{option.opts[0]}=2"]
        context = click.Context(command, info_name=words)
        if option.multiple:
            opts, _, _ = command.make_parser(context).parse_args(twice)
            value = option.process_value(context, opts[option.name])
            assert value in ("1,2", ("1", "2")), (words, option.name)
            kept.add((words, option.name))
        else:
            with pytest.raises(UsageError, match=f"{option.opts[0]}.* must be given once, got it 2 times"):
                command.parse_args(context, twice)
    assert kept == LISTS and len(OPTIONS) > 100


def test_a_switch_and_its_opposite_are_refused_and_a_flag_twice_says_the_same():
    audit = main.commands["audit"]
    with pytest.raises(UsageError, match="--band/--no-band must be given once"):
        audit.make_context("audit", ["a:b", "--band", "--no-band"])
    assert audit.make_context("audit", ["a:b", "-q", "--quiet"]).params["quiet"]


def test_two_reasons_for_one_known_failure_are_refused():
    assert _known_failures(["a=x", "a=x", "b=y"]) == {"a": "x", "b": "y"}
    with pytest.raises(UsageError, match="xfail must have one reason for each name, got two for 'a'"):
        _known_failures(["a=x", "a=y"])
