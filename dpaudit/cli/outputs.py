"""Output of the commands: the console, folders and formats."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, cast

import click

from dpaudit.cli.group import note, plain, report_error
from dpaudit.cli.subject_output import LimitedStream, suppressed, warnings_once
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
