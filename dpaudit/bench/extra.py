"""Measurement that is not of one problem: a name, and a function from the design to a record."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from dpaudit.bench.design import Design


@dataclasses.dataclass(frozen=True)
class Extra:
    """A named measurement.

    A record has plain values. `ratio` in it is compared with the target of the name, if any; with `says` (a sentence)
    and `met` (whether its targets are met) it is told in the summary in its own words.
    """

    name: str  # as `--only` takes it
    title: str  # what it measures, in words
    run: Callable[[Design], dict[str, Any]]  # to a record
    by_default: bool = True  # whether it runs without being asked for
