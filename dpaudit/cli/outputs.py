"""Output of the commands: the console, folders and formats; and what a subject prints and warns while it runs.

A mechanism is called a hundred thousand times. Lines that it prints in this process go to stderr, `MAX_LINES` at
most; of the warnings that one line of code gives, the first is shown. A note at the end counts the others. What
other processes and C code write is passed on as it comes. Warnings of dpaudit itself are all shown.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, cast

import click

from dpaudit import errors
from dpaudit.cli.group import fitted, note, plain, report_error
from dpaudit.config import Config, formats

if TYPE_CHECKING:
    from rich.console import Console

    from dpaudit.reports import Reported
    from dpaudit.reports.document import Block
    from dpaudit.scores.result import ScoresResult

Writes = Callable[[], Sequence[Path]]
DEFAULT_OUT = "dpaudit-out"
VIOLATED = 1  # the exit status of that verdict, and of nothing else
AUDIT_FORMATS = ("json", "html", "md")  # where --out is given without --report


def chosen_outputs(
    config: Config, report: str | None, out: str | None, default: Sequence[str] | None
) -> tuple[tuple[str, ...], Path]:
    """The formats to write and their folder, both checked; no format where neither was asked for."""
    from dpaudit.reports.formats import check_formats
    from dpaudit.results.saving import check_folder

    stated = formats(report) if report is not None else config.report
    folder = Path(out) if out is not None else Path(os.path.relpath(config.out)) if config.out is not None else None
    if stated is None and default is None and folder is None:
        return (), Path()
    chosen = stated if stated is not None else tuple(default or AUDIT_FORMATS)
    check_formats("report", chosen)
    folder = folder if folder is not None else Path(DEFAULT_OUT)
    check_folder("out", folder)
    return chosen, folder


def places(folder: Path, names: Sequence[str]) -> list[Path]:
    """The folder itself for one subject, else a folder in it for each name."""
    if len(names) == 1:
        return [folder]
    taken: dict[str, Path] = {}  # by lower case, which some file systems do not tell from upper case
    for name in names:
        slug = re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII).strip("-.")[:80] or "subject"
        count = 1
        while (unique := slug if count == 1 else f"{slug}-{count}").lower() in taken:
            count += 1
        taken[unique.lower()] = folder / unique
    return list(taken.values())


def write_reports(
    result: Reported | ScoresResult,
    folder: Path,
    chosen: Sequence[str],
    stem: str = "audit",
    profile: str = "plain",
    saved: str | None = None,
) -> list[Path]:
    """Write a report in each of the formats; their paths. `saved` is where the result is, by default where it goes."""
    from dpaudit.reports import file_name, write_report

    if saved is None and "json" in chosen and profile == "plain":
        saved = str(folder / file_name(stem, "json"))
    return [write_report(result, folder / file_name(stem, name), profile, saved) for name in chosen]


@contextlib.contextmanager
def subject_output() -> Iterator[None]:
    """While the subject runs, the first of what it prints goes to stderr: stdout says the report alone.

    What it writes past Python, in C code or in worker processes, goes there whole, where stdout is that of the process.
    """
    from dpaudit.subjects.call_limits import Hold, same_folder

    with contextlib.ExitStack() as undo:
        if sys.stdout is sys.__stdout__:  # else a caller of this process has put something else there
            undo.enter_context(_descriptor_of_stderr())
        spared = LimitedStream(sys.stderr if sys.stderr is not None else io.StringIO())  # None where it is closed
        undo.enter_context(contextlib.redirect_stdout(cast(TextIO, spared)))
        more = undo.enter_context(warnings_once())
        undo.enter_context(same_folder())
        hold = Hold()
        try:
            yield
        finally:
            hold.check_process()  # a module may fork where it is imported
            for text in suppressed(spared, more):
                note(f"Note: {plain(text)}")


@contextlib.contextmanager
def _descriptor_of_stderr() -> Iterator[None]:
    """The file descriptor of stdout leads to stderr for a while, where both are open."""
    stdout, stderr = sys.stdout, sys.stderr
    try:
        stdout.flush()
        number, target = stdout.fileno(), stderr.fileno()
        kept = os.dup(number)
    except (AttributeError, OSError, ValueError):  # closed (then None), or no file
        yield
        return
    try:
        os.dup2(target, number)
        yield
    finally:
        with contextlib.suppress(OSError):
            stdout.flush()
        with contextlib.suppress(OSError):  # a mechanism may have closed it
            os.dup2(kept, number)
            os.close(kept)
        _open_again()


def _open_again() -> None:
    """Let standard descriptors that a mechanism has closed lead nowhere: else a file that is opened takes the number,
    and what is printed goes into it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            while (opened := os.open(os.devnull, os.O_RDWR)) < number:  # the lowest number that is free
                pass
            if opened != number:
                os.close(opened)


def output_console() -> Console:
    """Console for results: plain text when stdout is not a terminal."""
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False)


def print_result(form: str, text: Callable[[], str], blocks: Callable[[], Iterable[Block]]) -> None:
    """Print a result as `--format` asks: its JSON, or its blocks for a terminal."""
    if form == "json":
        click.echo(text(), nl=False)
    else:
        from dpaudit.reports import terminal

        output_console().print(terminal.show(blocks()))


def finish(
    ctx: click.Context, given: Any, result: Any, blocks: Callable[[], Iterable[Block]], write: Writes, status: int
) -> NoReturn:
    """Write a result, print it as `--format` asks, say what was written, and end with its exit status."""
    written, status = written_or_reported(ctx, write, status)
    print_result(given.form, result.to_text, blocks)
    for path in written:
        note(f"Written: {path}", err=given.form == "json")
    ctx.exit(status)


def written_or_reported(ctx: click.Context, write: Writes, status: int, where: str = "") -> tuple[Sequence[Path], int]:
    """Write what was found, before it is printed: its paths, and the exit status, which stays 1 whatever happens."""
    try:
        return write(), status
    except Exception as error:
        broken = report_error(ctx, error, where)
        return (), status if status == VIOLATED else broken


MAX_LINES = 5  # of a subject's prints that are shown
MAX_CHARACTERS = 500  # characters of each


class LimitedStream:
    """A stream that passes on the first lines, and counts the others. What is no writing of text, it leaves alone."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._place = 0  # characters of the line that is being written
        self.lines = self.cut = 0  # lines, and those of them whose end is not shown

    def write(self, text: str) -> int:
        """Pass on what belongs to the first lines; how much was taken, which is all of it."""
        *whole, rest = str(text).split("\n")
        for line in whole:
            self._part(line)
            if self.lines < MAX_LINES:
                self._stream.write("\n")
            self.lines += 1
            self._place = 0
        self._part(rest)
        return len(text)

    def _part(self, text: str) -> None:
        if self.lines < MAX_LINES and self._place <= MAX_CHARACTERS:
            room = MAX_CHARACTERS - self._place
            self._stream.write(text[:room] + "…" * (len(text) > room))
            self.cut += len(text) > room
        self._place += len(text)

    def writelines(self, lines: Any) -> None:
        """Write each."""
        for line in lines:
            self.write(line)

    @property
    def count(self) -> int:
        """Number of lines; one that has begun counts."""
        return self.lines + (self._place > 0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def warnings_once() -> Iterator[Counter[tuple[str, str, int]]]:
    """For a while, of the warnings from one line of code the first is shown; the others are counted.

    By category, file and line. A filter that makes errors of warnings still does.
    """
    more: Counter[tuple[str, str, int]] = Counter()
    seen: set[tuple[str, str, int]] = set()

    def brief(message: Any, category: Any, filename: str, lineno: int, line: str | None = None) -> str:
        return fitted(f"{filename}:{lineno}: {category.__name__}: {message}", sys.stderr) + "\n"

    form, warnings.formatwarning = warnings.formatwarning, brief
    with warnings.catch_warnings(), contextlib.ExitStack() as undo:
        undo.callback(setattr, warnings, "formatwarning", form)
        shown = warnings.showwarning

        def sparing(message: Any, category: Any, filename: str, lineno: int, *others: Any, **named: Any) -> None:
            key = (category.__name__, filename, lineno)
            if key in seen and category.__module__ != errors.__name__:
                more[key] += 1
                return
            seen.add(key)
            shown(message, category, filename, lineno, *others, **named)

        warnings.showwarning = sparing
        yield more


def suppressed(stream: LimitedStream, more: Counter[tuple[str, str, int]]) -> list[str]:
    """Sentences on what was held back."""
    notes = []
    if stream.count > MAX_LINES:
        notes.append(f"The subject printed {stream.count:,} lines; the first {MAX_LINES} are shown.")
    if stream.cut:
        notes.append(f"Of {stream.cut} of these lines the first {MAX_CHARACTERS} characters are shown.")
    for (category, file, line), count in more.most_common(MAX_LINES):
        notes.append(f"{file}:{line} gave {count:,} more warnings of the kind {category}.")
    if len(more) > MAX_LINES:
        notes.append(f"{len(more) - MAX_LINES:,} more places gave warnings again.")
    return notes
