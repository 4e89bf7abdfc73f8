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
    """Open a file for reading and writing, which nobody else may read where it is new; it is not emptied."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)


def lock(stream: BinaryIO, path: Path, what: str) -> None:
    """Take the file for this process, until it is closed; `UsageError` if another one has it."""
    try:
        import fcntl
    except ImportError:  # not on this system: nothing stops a second process there
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise UsageError(f"{what} must be used by one audit at a time, got {str(path)!r}, which is in use.") from error


class Journal:
    """A journal that is open for reading and writing: a file that is empty, or has `form` as its first line.

    An empty one gets the header, which says what it is of; `header` is what the file says. ValueError if it has another
    form, or no whole header. `begin` and `end` are where the header ends, and where the last whole record does.
    """

    def __init__(self, stream: BinaryIO, form: bytes, header: dict[str, Any] | None = None) -> None:
        self._stream, self._synced = stream, time.monotonic()
        self.end = stream.seek(0, os.SEEK_END)
        if header is not None and not self.end:
            self._write(form + _framed(json.dumps(header, sort_keys=True).encode()))
        stream.seek(0)
        first = stream.readline(len(form) + 8)
        if not first.startswith(form.rstrip().rpartition(b" ")[0] + b" "):
            raise ValueError("its first line is another one")
        start, content = next(self._frames(len(first)), (0, None))
        self.header: dict[str, Any] = {} if content is None else dict(json.loads(content))
        if first != form:
            raise ValueError(
                f"it is one of dpaudit {self.header.get('dpaudit', 'of another version')}, which this version does not "
                "go on from: finish it with that version, or remove it and begin again"
            )
        if content is None:
            raise ValueError("its header is torn")
        self.begin = start + len(content)

    @property
    def is_closed(self) -> bool:
        return self._stream.closed

    def append(self, content: bytes) -> int:
        """Write a record in one piece, and on the disk soon; gives the position of its first byte.

        OSError if there is no room: the file is as before.
        """
        self._write(_framed(content))
        return self.end - len(content)

    def read(self, start: int, length: int) -> bytes:
        """Bytes of a record."""
        self._stream.seek(start)
        return self._stream.read(length)

    def records(self) -> Iterator[tuple[int, bytes]]:
        """The whole records behind the header, each with the position of its first byte."""
        return self._frames(self.begin)

    def cut(self, end: int) -> bool:
        """Cut off what stands behind `end`; False where nothing does."""
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
        with contextlib.suppress(OSError):  # a mechanism may have closed its descriptor
            self._stream.close()

    def _write(self, content: bytes) -> None:
        self._stream.seek(self.end)
        try:
            written = 0
            while written < len(content):
                written += self._stream.write(content[written:])
        except OSError:
            with contextlib.suppress(OSError):
                self._stream.truncate(self.end)
            raise
        self.end += len(content)
        if time.monotonic() - self._synced > SYNC_SECONDS:
            self.sync()

    def _frames(self, position: int) -> Iterator[tuple[int, bytes]]:
        while True:
            frame = self.read(position, FRAME.size)
            position += len(frame)
            length, crc = FRAME.unpack(frame) if len(frame) == FRAME.size else (self.end, 0)
            content = self.read(position, length) if length <= self.end - position else b""
            if not length or len(content) != length or zlib.crc32(content) != crc:  # zeros are no empty record
                return
            yield position, content
            position += length


def _framed(content: bytes) -> bytes:
    """A record as it stands in the file."""
    return FRAME.pack(len(content), zlib.crc32(content)) + content
