"""`--help` in groups: what people need first, then what it is about, how hard, where it runs, what is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from dpaudit.cli.group import StatedOnce

REST = "Other options"


class GroupedCommand(StatedOnce):
    """A command whose help lists its options in groups.

    `groups` has the titles in their order, with the long names of options, `_` for `-`; the others stand at the end.
    """

    def __init__(self, *arguments: Any, groups: Mapping[str, Sequence[str]], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.groups = groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each group with the options that it has."""
        left = {
            max(parameter.opts, key=len).lstrip("-").replace("-", "_"): record
            for parameter in self.get_params(ctx)
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)) is not None
        }
        for title, names in self.groups.items():
            records = [left.pop(name) for name in names if name in left]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
        if left:
            with formatter.section(REST):
                formatter.write_dl(list(left.values()))
