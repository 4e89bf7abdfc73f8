"""Where the commands write: the console, folders and formats."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from dpaudit.cli.chatter import Sparing, told, warnings_once
from dpaudit.cli.group import note, plain
from dpaudit.config import Config, formats
from dpaudit.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from dpaudit.reports import Reported

DEFAULT_OUT = "dpaudit-out"
AUDIT_FORMATS = ("json", "html", "md")  # where --out is given without --report


def chosen_outputs(
    config: Config, report: str | None, out: str | None, default: Sequence[str] | None
) -> tuple[tuple[str, ...], Path]:
    """The formats to write and their folder, both checked; no format where neither was asked for."""
    from dpaudit.reports import all_formats, check_format
    from dpaudit.results.saving import check_folder

    stated = formats(report) if report is not None else config.report
    folder = Path(out) if out is not None else Path(os.path.relpath(config.out)) if config.out is not None else None
    if stated is None and default is None and folder is None:
        return (), Path()
    chosen = stated if stated is not None else tuple(default or AUDIT_FORMATS)
    known = ", ".join(all_formats())
    if not chosen:
        raise UsageError(f"report must name formats among {known}, got {report!r}.")
    for name in chosen:
        if name not in all_formats():
            raise UsageError(f"report must name formats among {known}, got {name!r}.")
        check_format(name)
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
    result: Reported,
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
    with contextlib.ExitStack() as undo:
        if sys.stdout is sys.__stdout__:  # else a caller of this process has put something else there
            undo.enter_context(_descriptor_of_stderr())
        spared = Sparing(sys.stderr if sys.stderr is not None else io.StringIO())  # None where it is closed
        undo.enter_context(contextlib.redirect_stdout(cast(TextIO, spared)))
        more = undo.enter_context(warnings_once())
        try:
            yield
        finally:
            for text in told(spared, more):
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
        os.dup2(kept, number)
        os.close(kept)


def output_console() -> Console:
    """Where results are printed: plain text when stdout is not a terminal, nothing once its reader has left."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:  # rich would exit with 1, which says that something was violated
            with contextlib.suppress(SystemExit):
                super().on_broken_pipe()

    return Output(markup=False, highlight=False, emoji=False)
