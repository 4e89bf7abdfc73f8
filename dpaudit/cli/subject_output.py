"""Prints and warnings of a subject while it runs: the first of them are shown, the rest is counted.

A mechanism is called a hundred thousand times. Lines that it prints in this process go to stderr, `MAX_LINES` at
most; of the warnings that one line of code gives, the first is shown. A note at the end counts the others. What
other processes and C code write is passed on as it comes. Warnings of dpaudit itself are all shown.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any, TextIO

from dpaudit import errors
from dpaudit.cli.group import fitted

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
