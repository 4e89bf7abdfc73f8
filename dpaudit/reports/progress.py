"""Progress of an audit while it runs: a live line on a terminal or in a notebook, plain ones, a file of JSON lines.

Draws are labelled draws a pair, of those planned; a sequential pair that is decided takes no more, so the time left is
at most about what is said. The wealth is the largest log e-value of a pair (sequential audits), the ratio the largest
lower bound over its budget.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import importlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from markupsafe import Markup
from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from dpaudit.campaign.campaign import Progress
from dpaudit.errors import UsageError
from dpaudit.reports import wording
from dpaudit.reports.wording import short_count
from dpaudit.results.model import to_json

PLAIN_SECONDS = 10.0  # between two plain lines
BAR = 8  # characters of the bar
MIN_LABEL = 8  # characters of a label that is worth showing
Show = Callable[[Progress], None]  # an `on_progress`
CELL_SECONDS = 0.5  # between two states in a notebook


@contextlib.contextmanager
def live_progress(
    label: str = "", *, quiet: bool = False, file: str | os.PathLike[str] | None = None, after: float = 0.0
) -> Iterator[Show | None]:
    """Show where an audit stands on stderr: gives its `on_progress`, None where nobody would look.

    Parameters
    ----------
    label : str
        What comes first on the line.
    quiet : bool
        Nothing on stderr.
    file : path, optional
        A file that gets a line of JSON each time, with `seconds` and `seconds_left` (null while unknown).
    after : float
        Seconds from which on it is shown; a line that is live goes when the audit ends.

    `UsageError` if the file cannot be written.
    """
    clock, shown = Clock(), list[Show]()
    with contextlib.ExitStack() as opened:
        log = [opened.enter_context(_log(os.fspath(file), clock))] if file is not None else []

        def show(state: Progress) -> None:
            clock.see(state)
            if not (quiet or shown) and clock.seconds >= after:
                shown.append(_face(opened, label, clock))
            for one in (*log, *shown):
                one(state)

        yield show if log or not quiet else None


def _face(opened: contextlib.ExitStack, label: str, clock: Clock) -> Show:
    """A cell of a notebook, a live line on a terminal, or else plain ones."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if getattr(shell, "kernel", None) is not None:
        return _cell(opened, label, clock)
    console = Console(stderr=True)
    return _live(opened.enter_context(_bar(console)), label, clock) if console.is_terminal else _plain(label, clock)


class Clock:
    """Seconds since the start, and an estimate of those left, by the pace of the later part of what was told.

    What comes before the first report, such as fits on a pilot, does not come again; and chunks that a checkpoint knows
    come faster than those that are drawn. So the pace is that of the later half, about, of the time since that report.
    """

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._told: tuple[int, int] | None = None  # draws and runs, when draws were told last
        # Draws and when: the report to measure from, the one that takes its place in time, and the last one.
        self._reports: list[tuple[float, float]] = []

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._start

    def see(self, state: Progress) -> None:
        """Take note of a state."""
        if self._told is None or state.draws != self._told[0]:
            if self._told is not None and state.draws < self._told[0]:
                self._reports = []  # another game begins
            self._told = state.draws, state.runs
        drawn = self._drawn(state)
        if self._reports and drawn <= self._reports[-1][0]:
            return
        now = time.monotonic()
        first, *later = self._reports[:2] or [(drawn, now)]
        if later and now - later[0][1] > later[0][1] - first[1]:
            first, later = later[0], []
        self._reports = [first, *(later or [(drawn, now)]), (drawn, now)]

    def _drawn(self, state: Progress) -> float:
        """Draws a pair, with those of a round that is not complete: by its runs."""
        if self._told is None or not self._told[1] > 0:
            return float(state.draws)
        draws, runs = self._told
        return min(draws * state.runs / runs, float(state.planned)) if state.draws == draws else float(state.draws)

    def left(self, state: Progress) -> float | None:
        """Seconds left; None while nothing is known, or longer than was thought."""
        if state.planned <= 0 or state.draws > state.planned:
            return None
        if state.open_pairs == 0:
            return 0.0
        if not self._reports or self._reports[-1][0] <= self._reports[0][0]:
            return None
        (first, begin), *_, (drawn, now) = self._reports
        rest = (now - begin) * (state.planned - drawn) / (drawn - first) - (time.monotonic() - now)
        return rest if rest > 0.0 else None

    def record(self, state: Progress) -> dict[str, Any]:
        """A state as plain values."""
        left = self.left(state)
        return {
            "seconds": round(self.seconds, 3),
            "seconds_left": None if left is None else round(left, 3),
            **dataclasses.asdict(state),
        }


def state_text(state: Progress) -> str:
    """A state in words.

    Examples
    --------
    >>> state_text(Progress(45_000, 200_000, 47_000, 2, 1, 1.23, 7.5, open_pairs=1))
    '45k/200k draws, 1 of 2 pairs left, 1 violated, ratio 1.23, log wealth 7.5, 47k runs'
    """
    parts = [
        f"{short_count(state.draws)}/{short_count(state.planned)} draws",
        f"{state.open_pairs} of {wording.plural(state.pairs, 'pair')} left",
        f"{state.violated} violated",
        f"ratio {wording.number_text(float(state.largest_ratio), 3)}",
    ]
    if state.largest_log_wealth is not None:
        parts.append(f"log wealth {wording.number_text(float(state.largest_log_wealth), 3)}")
    return ", ".join([*parts, f"{short_count(state.runs)} runs"])


def status_line(label: str, state: Progress, times: str, width: int) -> str:
    """Say where an audit stands, in at most `width` characters: the label is cut, then what matters least is left out.

    Examples
    --------
    >>> state = Progress(45_000, 200_000, 47_000, 2, 1, 1.23, 7.5, open_pairs=1)
    >>> status_line("release.py:histogram", state, "0:00:12, 0:00:40 left", 80)
    'release.py:histogram: 45k/200k draws, 1 of 2 pairs left, 0:00:12, 0:00:40 left'
    """
    draws, pairs, *rest = state_text(state).split(", ")
    line = f"{draws}, {pairs}, {times}"
    room = width - len(line) - 2
    shown = label if len(label) <= room else f"…{label[1 - room :]}" if room > MIN_LABEL else ""
    line = f"{shown}: {line}" if shown else line
    for part in rest:
        line += f", {part}" if len(line) + len(part) + 2 <= width else ""
    return line[:width]


def times_text(clock: Clock, state: Progress) -> str:
    """The time so far, and what is left of it where that is known."""
    left = clock.left(state)
    gone, rest = (datetime.timedelta(seconds=int(one)) for one in (clock.seconds, left or 0.0))
    return str(gone) if left is None else f"{gone}, {rest} left"


def _bar(console: Console) -> Bar:
    text = TextColumn("{task.description}", markup=False)
    return Bar(BarColumn(bar_width=BAR), text, console=console, transient=True)


def throttled(label: str, clock: Clock, width: int, every: float, write: Callable[[Progress, str], None]) -> Show:
    """An `on_progress` that writes a state with its line, at most once in `every` seconds."""
    last = [0.0]

    def show(state: Progress) -> None:
        if clock.seconds - last[0] >= every:
            last[0] = clock.seconds
            write(state, status_line(label, state, times_text(clock, state), width))

    return show


def _live(bar: Bar, label: str, clock: Clock) -> Show:
    width, task = bar.console.width - BAR - 1, bar.add_task("", total=None)

    def write(state: Progress, text: str) -> None:
        bar.update(task, completed=state.draws, total=state.planned, description=text)

    return throttled(label, clock, width, 0.0, write)


def _cell(opened: contextlib.ExitStack, label: str, clock: Clock) -> Show:
    shell = importlib.import_module("IPython.display")
    cell, bar = shell.display(shell.HTML(""), display_id=True), Markup('<progress value="{}" max="{}"></progress> {}')
    opened.callback(lambda: cell.update(shell.HTML("")))

    def write(state: Progress, text: str) -> None:
        cell.update(shell.HTML(bar.format(state.draws, max(state.planned, 1), text)))

    return throttled(label, clock, 200, CELL_SECONDS, write)


def _plain(label: str, clock: Clock) -> Show:
    return throttled(label, clock, shutil.get_terminal_size().columns, PLAIN_SECONDS, lambda _, text: _say(text))


def _say(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # nobody listens any more
        print(text, file=sys.stderr, flush=True)


def _opened(path: str) -> TextIO:
    """The file, emptied; where standard output or error go there, they: else each would write over the other."""
    for number in (1, 2):
        with contextlib.suppress(OSError, ValueError):
            if os.path.samestat(os.stat(path), os.fstat(number)):
                return open(os.dup(number), "w", encoding="utf-8")
    return open(path, "w", encoding="utf-8")


@contextlib.contextmanager
def _log(path: str, clock: Clock) -> Iterator[Show]:
    """Write the file of `--progress` until a line cannot be written: a full disk is no reason to end an audit."""
    try:
        stream = _opened(path)
    except OSError as error:
        raise UsageError(f"progress must be a file that can be written, got {path!r} ({error.strerror}).") from error
    is_open = [True]

    def show(state: Progress) -> None:
        try:
            if is_open[0]:
                stream.write(json.dumps(to_json(clock.record(state)), allow_nan=False) + "\n")
                stream.flush()
        except OSError as error:
            is_open[0] = False
            _say(f"Note: no more progress is written to {path!r} ({error.strerror}); the audit goes on.")

    try:
        yield show
    finally:
        with contextlib.suppress(OSError):  # of a line that could not be written either
            stream.close()
