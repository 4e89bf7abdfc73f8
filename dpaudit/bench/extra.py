"""What a measurement is that is not of one problem: a name, and a function from the design to a record."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from dpaudit.bench.design import Design


@dataclasses.dataclass(frozen=True)
class Extra:
    """A named measurement.

    Attributes
    ----------
    name : str
        As `--only` takes it.
    title : str
        What it measures, in words.
    run : callable
        `Design` to a dictionary of plain values; `ratio` in it is compared with the target of the name, if any. With
        `says` (a sentence) and `met` (whether its targets are met) it is told in the summary in its own words.
    by_default : bool
        Whether it runs without being asked for.
    """

    name: str
    title: str
    run: Callable[[Design], dict[str, Any]]
    by_default: bool = True
