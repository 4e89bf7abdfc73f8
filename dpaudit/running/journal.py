"""Files that are added to, so that whatever ends a run finds again what was finished: a journal, and who may open it.

A journal is a line that names its form, a header that says what it is of (JSON), and records. Each record is its length
and CRC-32 (8 bytes, little-endian) and that many bytes, written in one piece: a record is whole, or it is the torn end
of the file and is cut off. The file is its owner's alone (mode 0600) and has one writer at a time.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from dpaudit.errors import UsageError

FRAME = struct.Struct("<II")  # length and CRC-32 of a record
SYNC_SECONDS = 5.0  # at most so long a record is not yet on the disk; one that the system has survives a kill


def open_private(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading and writing, which nobody else may read where it is new; it is not emptied.

    Raises
    ------
    OSError
    """
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)


def framed(content: bytes) -> bytes:
    """A record as it stands in the file."""
    return FRAME.pack(len(content), zlib.crc32(content)) + content


class Journal:
    """A journal that is open for reading and writing.

    Parameters
    ----------
    stream : file
        Empty, or a journal.
    form : bytes
        The first line.
    header : dict
        What it is of: written where the file is empty.

    Attributes
    ----------
    end : int
        Where the last whole record ends.
    """

    def __init__(self, stream: BinaryIO, form: bytes, header: dict[str, Any]) -> None:
        self._stream, self._synced = stream, time.monotonic()
        self.end = stream.seek(0, os.SEEK_END)
        if not self.end:
            self.append(form + framed(json.dumps(header, sort_keys=True).encode()))

    @property
    def is_closed(self) -> bool:
        return self._stream.closed

    def append(self, records: bytes) -> int:
        """Write records in one piece, all or none, and on the disk soon; gives the new end.

        Raises
        ------
        OSError
            If there is no room: the file is as before.
        """
        self._stream.seek(self.end)
        try:
            written = 0
            while written < len(records):
                written += self._stream.write(records[written:])
        except OSError:
            with contextlib.suppress(OSError):
                self._stream.truncate(self.end)
            raise
        self.end += len(records)
        if time.monotonic() - self._synced > SYNC_SECONDS:
            self.sync()
        return self.end

    def read(self, start: int, length: int) -> bytes:
        """Bytes of a record."""
        self._stream.seek(start)
        return self._stream.read(length)

    def records(self) -> Iterator[tuple[int, bytes]]:
        """The whole records behind the header, each with the position of its first byte."""
        self._stream.seek(0)
        self._stream.readline()
        position = self._stream.tell()
        is_header = True
        while True:
            self._stream.seek(position)
            length, crc = _frame(self._stream)
            content = self._stream.read(length) if 0 <= length <= self.end - position else b""
            if len(content) != length or zlib.crc32(content) != crc:
                return
            if not is_header:
                yield position + FRAME.size, content
            is_header = False
            position += FRAME.size + length

    def cut(self, end: int) -> bool:
        """Cut off what stands behind `end`, a torn record; False where nothing does."""
        is_torn = end < self.end
        if is_torn:
            self.end = end  # also where the file keeps it: nobody reads it
            self._stream.truncate(end)
        return is_torn

    def sync(self) -> None:
        """Ask for all of it to be on the disk."""
        with contextlib.suppress(OSError):
            os.fsync(self._stream.fileno())
        self._synced = time.monotonic()

    def close(self) -> None:
        self.sync()
        self._stream.close()


def lock(stream: BinaryIO, path: Path, what: str) -> None:
    """Take the file for this process, until it is closed.

    Raises
    ------
    UsageError
        If another one has it.
    """
    try:
        import fcntl
    except ImportError:  # not on this system: nothing stops a second process there
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise UsageError(f"{what} must be used by one audit at a time, got {str(path)!r}, which is in use.") from error


def header_of(stream: BinaryIO, form: bytes) -> tuple[int, dict[str, Any]]:
    """Where the header of a journal ends, and what it says.

    Raises
    ------
    ValueError
        If it has another form, or no whole header.
    """
    first, name = stream.readline(len(form) + 8), form.rstrip().rpartition(b" ")[0]
    if not first.startswith(name + b" "):
        raise ValueError("its first line is another one")
    length, crc = _frame(stream)
    content = stream.read(length) if length >= 0 else b""
    is_whole = len(content) == length and zlib.crc32(content) == crc
    header: dict[str, Any] = json.loads(content) if is_whole else {}
    if first != form:
        raise ValueError(
            f"it is one of dpaudit {header.get('dpaudit', 'of another version')}, which this version does not go on "
            "from: finish it with that version, or remove it and begin again"
        )
    if not is_whole:
        raise ValueError("its header is torn")
    return len(form) + FRAME.size + length, header


def _frame(stream: BinaryIO) -> tuple[int, int]:
    """Length and CRC-32 of the record that comes next; a length of -1 where there is no whole frame."""
    frame = stream.read(FRAME.size)
    length, crc = FRAME.unpack(frame) if len(frame) == FRAME.size else (-1, 0)
    return length, crc
