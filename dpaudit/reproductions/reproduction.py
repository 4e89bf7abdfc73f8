"""A reproduction: a published experiment that runs again here, with the printed numbers beside ours.

Reproductions come from the entry-point group `dpaudit.reproductions`: the name of the entry point is the name on the
command line, the object has a `description` and a `run`. `Reproduction` is such an object. What a run finds is an
`Outcome`: tables to print, numbers to save, and a plot to draw. Nothing here writes a file: see
`dpaudit.reproductions.command`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from dpaudit.errors import UsageError
from dpaudit.extensions import extension

GROUP = "dpaudit.reproductions"  # the entry-point group
Cell = str | int | float | None
# Colour-blind safe (Okabe and Ito), in the order in which plots take them; markers differ as well.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = ("o", "s", "^", "D", "v", "x")


@dataclasses.dataclass(frozen=True)
class Table:
    """One table of a reproduction."""

    title: str
    columns: Sequence[str]  # names, with units where a column has one
    rows: Sequence[Sequence[Cell]]  # as long as columns; numbers are rounded when printed, None is an empty cell
    note: str = ""  # to be read before the numbers

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise UsageError(f"rows of the table {self.title!r} must have {len(self.columns)} cells, got {row!r}.")


@dataclasses.dataclass(frozen=True)
class Statement:
    """A printed statement beside ours."""

    source: str  # the id of the claim
    printed: str  # what the paper says
    ours: str  # what was measured
    agrees: str  # "yes", "no", or a word in between


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Result of a run."""

    tables: Sequence[Table]
    statements: Sequence[Statement]  # the printed results, one by one, beside ours
    numbers: Mapping[str, Any]  # worth saving: plain numbers, strings, lists and dictionaries; numpy's are converted
    draw: Callable[[Any], None]  # draws the plot on an empty matplotlib figure
    size: tuple[float, float] = (9.0, 4.5)  # of the figure, in inches


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of a run."""

    seed: int = 0  # of everything random
    quick: bool = False  # a smoke test with few repetitions
    tell: Callable[[str], None] = lambda text: None  # takes lines on progress
    data: str = ""  # the path of a file of the user's own, where the experiment reads one


@runtime_checkable
class HasRun(Protocol):
    """Interface of an entry point of the group."""

    description: str

    def run(self, options: Options) -> Outcome:
        """Run the experiment."""


@dataclasses.dataclass(frozen=True)
class Reproduction:
    """An experiment: one line that describes it, where it is published, and a function that runs it.

    `data` says what a file has to be that the user may give (`--data`); empty where none is read.

    Examples
    --------
    >>> half = Reproduction("the half", "nowhere", lambda options: Outcome([], [], {"half": 0.5}, lambda figure: None))
    >>> half.run(Options()).numbers["half"]
    0.5
    """

    description: str
    source: str
    function: Callable[[Options], Outcome]
    data: str = ""

    def run(self, options: Options) -> Outcome:
        """Run the experiment."""
        return self.function(options)


def load_reproduction(name: str) -> HasRun:
    """The installed reproduction of a name.

    Raises
    ------
    UsageError
        If two have the name, it cannot be imported, or it has no description or no run.
    """
    loaded = extension(GROUP, name)
    if not isinstance(loaded, HasRun):
        raise UsageError(f"reproduction {name!r} must have a description and a run, got {loaded!r}.")
    return loaded
