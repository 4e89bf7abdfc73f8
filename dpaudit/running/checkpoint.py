"""Checkpoints: the finished chunks of one audit in a file, from which it goes on after it was ended by anything.

An audit is a function of its seed, its options and the results of its chunks: with these read back, it comes to the
same state and goes on with the chunks that are missing. So a checkpoint is a journal of results, and nothing else.

The file: a line `dpaudit checkpoint 1`, then records, each its length and CRC-32 (8 bytes, little-endian) and that many
bytes. The first record says which audit it is (JSON); the others are a chunk each, or all chunks of a round that are
drawn together. A record is written, in one piece, before anybody looks at the result. In front of a chunk of an
isolated subject stands what isolation has contained so far (JSON), in the same piece: an audit that goes on knows of
calls that were lost before, as one that was never interrupted does. What follows the last whole chunk is torn: it is
cut off, and drawn again.

Validity
--------
* There is one path. Every chunk that was looked at is in the file, and what is in the file is never drawn again. So the
  path of a resumed audit is that of an audit which was never interrupted: the same bits for a replayable subject, the
  same law for another one. P(the path ever ends violated) <= 1 - confidence holds before it begins. Whether somebody
  interrupts it, gives it up or goes on only decides whether its end is told, whatever that depends on.
* That is lost by a second path: to throw a checkpoint away for what it showed, and to begin again with another seed, is
  another audit with an error rate of its own. For a subject with randomness of its own a second path also arises where
  chunks that were looked at are not noted. Therefore its checkpoint is given up, file and all, at the first result that
  cannot be noted; a replayable subject draws the same bits again.
* An error that a chunk raised is noted like a result: to try again until it does not raise would condition on that.
* A subject that ends the process by itself, depending on what it draws, and has randomness of its own, is conditioned
  on not having done so. Isolation is the remedy; the report of a resumed audit of such a subject says that it was.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import struct
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from dpaudit.errors import DpauditCheckpointWarning, UsageError
from dpaudit.running.digests import digest
from dpaudit.running.plain_data import NotPlainError, from_bytes, to_bytes
from dpaudit.running.workers import Raised
from dpaudit.testing.tasks import Task, TaskResult

FIRST_LINE = b"dpaudit checkpoint 1\n"
FRAME = struct.Struct("<II")  # length and CRC-32 of a record
KEY = struct.Struct("<5I12s")  # purpose, input, round, chunk, size; the first 12 bytes of the digest of what is asked
BESIDE = b"\xfe\xff\xff\xff"  # begins a record of what was contained before the next chunk was noted
SEVERAL = b"\xff\xff\xff\xff"  # begins a record of several tasks: no purpose is so large
COUNT = struct.Struct("<I")  # how many, followed by the length of each
SYNC_SECONDS = 5.0  # at most so long a record is not yet on the disk; one that the system has survives a kill
NAME = "audit.checkpoint"

SHOWN = "shown"  # entry of a header for people: values of which the others are digests; older files have none

Place = tuple[int, int, int, int]


class Checkpoint:
    """A checkpoint that is open for reading and writing.

    Made by `open_checkpoint` (a file) or `temporary_checkpoint` (a file without a name, until it is saved).

    Attributes
    ----------
    header : dict
        Which audit it is of.
    path : Path or None
    trouble : str
        Why nothing is noted any more; empty as long as all is well.
    recovered : int
        Draws that were read back from a file that was there.
    beside : dict or None
        What had been contained when the last chunk was noted, of an isolated subject.
    is_torn : bool
        Whether that file had an end that could not be read, which was cut off.
    """

    def __init__(self, stream: BinaryIO, header: dict[str, Any], path: Path | None, replayable: bool) -> None:
        self.header, self.path, self.trouble = header, path, ""
        self.recovered, self.is_torn = 0, False
        self.beside: dict[str, Any] | None = None
        self.on_trouble: Callable[[str], None] | None = None
        self._stream, self._replayable = stream, replayable
        self._places: dict[Place, tuple[int, int]] = {}
        self._end = stream.seek(0, os.SEEK_END)
        self._synced = time.monotonic()

    def __len__(self) -> int:
        return len(self._places)

    def find(self, purpose: int, task: Task) -> TaskResult | Raised | None:
        """The result of a task that was finished before.

        Raises
        ------
        UsageError
            If another task of that place was: the audit took another course then.
        """
        known = self._places.get((purpose, task.input, task.round, task.chunk))
        if known is None:
            return None
        start, length = known
        self._stream.seek(start)
        content = self._stream.read(length)
        if content[: KEY.size] != _key(purpose, task):
            raise UsageError(
                f"checkpoint must lead to where its audit was, got another course at round {task.round} of input "
                f"{task.input} ({self._name()}). The subject or a library is not what it was; begin again without it."
            )
        return from_bytes(content[KEY.size :])

    def note(
        self,
        purpose: int,
        results: Sequence[tuple[Task, TaskResult | Raised]],
        beside: dict[str, Any] | None = None,
    ) -> None:
        """Write down what tasks gave, all or none, and what was contained by then (`beside`, strict JSON values).

        A full disk ends the notes and nothing else; see `trouble`.
        """
        if self.trouble or not results:
            return
        try:
            parts = [_key(purpose, task) + to_bytes(result) for task, result in results]
        except NotPlainError as error:
            if not self._replayable:
                self._give_up(f"an output of type {error} is no plain value", everything=True)
            return  # drawn again on the way back: the same bits
        content = parts[0] if len(parts) == 1 else _several(parts)
        record = _record(content)
        if beside is not None:
            record = _record(BESIDE + json.dumps(beside).encode("ascii")) + record
        try:
            self._write(record)
        except OSError as error:
            self._give_up(str(error.strerror or error), everything=not self._replayable)
            return
        self._find_places(self._end - len(content), content)
        self.beside = beside

    def save(self, path: Path) -> Path:
        """Copy a temporary checkpoint to a file; a file stays where it is.

        Raises
        ------
        UsageError
            If the place cannot be written.
        """
        if self.path is None:
            from dpaudit.results.model import write_whole

            self._stream.seek(0)
            write_whole(path, self._stream.read(self._end))
            self.path = path
        elif not self._stream.closed:
            self._sync()
        return self.path

    def close(self, *, finished: bool = False) -> None:
        """Close the file; remove it where its audit has ended."""
        if self._stream.closed:
            return
        if finished and self.path is not None:
            with contextlib.suppress(OSError):
                self.path.unlink()
        self._sync()
        self._stream.close()

    def _write(self, record: bytes) -> None:
        self._stream.seek(self._end)
        try:
            written = 0
            while written < len(record):
                written += self._stream.write(record[written:])
        except OSError:
            with contextlib.suppress(OSError):
                self._stream.truncate(self._end)
            raise
        self._end += len(record)
        if time.monotonic() - self._synced > SYNC_SECONDS:
            self._sync()

    def _sync(self) -> None:
        with contextlib.suppress(OSError):
            os.fsync(self._stream.fileno())
        self._synced = time.monotonic()

    def _give_up(self, reason: str, *, everything: bool) -> None:
        self.trouble = reason
        if everything:
            self._places.clear()
            self.beside = None
            with contextlib.suppress(OSError):
                self._stream.truncate(0)
            if self.path is not None:
                with contextlib.suppress(OSError):
                    self.path.unlink()
                self.path = None
            self._end = 0
        if self.on_trouble is not None:
            kept = "It cannot be resumed" if everything else "It can be resumed from what was noted before"
            self.on_trouble(f"Nothing more is noted in the checkpoint ({reason}); the audit goes on. {kept}.")

    def _find_places(self, start: int, content: bytes) -> int:
        """Note where the results of a record are, which begins at `start`; the draws of its tasks."""
        parts, draws = [(0, len(content))], 0
        if content.startswith(SEVERAL):
            (count,) = COUNT.unpack_from(content, len(SEVERAL))
            lengths = struct.unpack_from(f"<{count}I", content, len(SEVERAL) + COUNT.size)
            ends = np.cumsum([len(SEVERAL) + COUNT.size * (1 + count), *lengths]).tolist()
            parts = list(zip(ends[:-1], lengths, strict=True))
        for offset, length in parts:
            *key, size, _ = KEY.unpack_from(content, offset)
            draws += size
            self._places[key[0], key[1], key[2], key[3]] = (start + offset, length)
        return draws

    def _name(self) -> str:
        return str(self.path) if self.path is not None else "in memory"

    def _read(self) -> None:
        """Find the records, and cut off what is torn."""
        self._stream.seek(0)
        position, _ = _read_header(self._stream)
        whole, beside = position, None
        while True:
            frame = self._stream.read(FRAME.size)
            if len(frame) < FRAME.size:
                break
            length, crc = FRAME.unpack(frame)
            content = self._stream.read(length) if length <= self._end - position else b""
            if len(content) < max(length, KEY.size) or zlib.crc32(content) != crc:
                break
            position += FRAME.size + length
            if content.startswith(BESIDE):
                beside = content[len(BESIDE) :]
                continue
            # What stands in front of a chunk that is torn was contained in calls that are made again.
            whole, self.beside = position, None if beside is None else _contained(beside, self._name())
            self.recovered += self._find_places(position - length, content)
        self.is_torn = whole < self._end
        if self.is_torn:
            self._stream.truncate(whole)
            self._end = whole


def open_checkpoint(
    path: str | os.PathLike[str], header: dict[str, Any], *, resume: bool, replayable: bool
) -> Checkpoint:
    """Open the checkpoint of an audit: a new file, or the one that is there.

    Parameters
    ----------
    path : str or path
    header : dict
        Which audit it is; every entry must be equal in the file that is there.
    resume : bool
        Whether to go on from a file that is there. Without it such a file is refused.
    replayable : bool
        Whether the subject draws the same bits again.

    Raises
    ------
    UsageError
        If the place cannot be written, is used by another process, or holds something else or another audit.
    """
    place = Path(path)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        # Not emptied: until the lock is held it may be another process's.
        stream: BinaryIO = os.fdopen(os.open(place, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)
    except OSError as error:
        raise UsageError(
            f"checkpoint must be a file that can be written, got {str(place)!r} ({error.strerror})."
        ) from error
    try:
        _lock(stream, place)
        if stream.seek(0, os.SEEK_END) == 0:
            return _begun(stream, header, place, replayable)
        if not resume:
            raise UsageError(
                f"checkpoint must be a new file, got {str(place)!r}, which is there. Use resume (--resume) to go on "
                "from it, or remove it."
            )
        _check_header(read_header(place), header, place)
        checkpoint = Checkpoint(stream, header, place, replayable)
        checkpoint._read()
        return checkpoint
    except BaseException:
        stream.close()
        raise


def temporary_checkpoint(header: dict[str, Any], *, replayable: bool) -> Checkpoint | None:
    """A checkpoint in a file without a name, which `save` copies to a place; None where there is no room for one."""
    try:
        stream: BinaryIO = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        return _begun(stream, header, None, replayable)
    except (OSError, UsageError):
        return None


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Which audit a checkpoint is of.

    Raises
    ------
    UsageError
        If it is no checkpoint of this version.
    """
    try:
        with open(path, "rb") as stream:
            return _read_header(stream)[1]
    except OSError as error:
        raise UsageError(f"checkpoint must be a readable file, got {os.fspath(path)!r} ({error.strerror}).") from error
    except ValueError as error:
        raise UsageError(f"checkpoint must be a checkpoint of dpaudit, got {os.fspath(path)!r} ({error}).") from error


@dataclasses.dataclass
class CheckpointPlan:
    """Where an audit is to keep its checkpoint, before it is known which audit it is; afterwards the checkpoint.

    Attributes
    ----------
    path : Path or None
        None: a temporary one, which can be saved when the audit is interrupted.
    resume : bool
        Whether to go on from a file that is there.
    on_trouble : callable, optional
        Told in one sentence why nothing is noted any more.
    on_resume : callable, optional
        Told in one sentence what was read back of an audit that is to be gone on with.
    """

    path: Path | None = None
    resume: bool = False
    on_trouble: Callable[[str], None] | None = None
    checkpoint: Checkpoint | None = None
    on_resume: Callable[[str], None] | None = None

    def seed(self) -> int | None:
        """The seed of the file that is there and to be gone on from."""
        if self.path is None or not self.resume or not _holds_something(self.path):
            return None
        seed = read_header(self.path).get("seed")
        return seed if isinstance(seed, int) else None

    def open(self, header: dict[str, Any], *, replayable: bool) -> Checkpoint | None:
        """Open the checkpoint of the audit with this header; see `open_checkpoint`."""
        if self.path is None:
            self.checkpoint = temporary_checkpoint(header, replayable=replayable)
        else:
            was_there, held = self.path.exists(), _holds_something(self.path)
            self.checkpoint = open_checkpoint(self.path, header, resume=self.resume, replayable=replayable)
            if self.resume and self.on_resume is not None:
                self.on_resume(_resumed_text(self.checkpoint, self.path, was_there, held))
        if self.checkpoint is not None:
            self.checkpoint.on_trouble = self.on_trouble
        return self.checkpoint

    def close(self, *, finished: bool) -> None:
        """Close the checkpoint; a temporary one stays open until it is saved, where its audit has not ended."""
        if self.checkpoint is not None and (finished or self.path is not None):
            self.checkpoint.close(finished=finished)


def as_plan(checkpoint: str | os.PathLike[str] | CheckpointPlan | None, resume: bool) -> CheckpointPlan | None:
    """The plan of a call of `dpaudit.audit`.

    Raises
    ------
    UsageError
        If the arguments make no sense.
    """
    if not isinstance(resume, bool):
        raise UsageError(f"resume must be True or False, got {resume!r}.")
    if isinstance(checkpoint, CheckpointPlan):
        return checkpoint
    if checkpoint is None:
        if resume:
            raise UsageError("checkpoint must be given where resume is, got None. It is the file to go on from.")
        return None
    try:
        path = Path(checkpoint)
    except TypeError as error:
        raise UsageError(f"checkpoint must be a path, got {checkpoint!r}.") from error
    return CheckpointPlan(path, resume, lambda said: warnings.warn(said, DpauditCheckpointWarning, stacklevel=2))


def _resumed_text(checkpoint: Checkpoint, path: Path, was_there: bool, held: bool) -> str:
    """What was read back of a checkpoint."""
    if not held:
        return f"The checkpoint {str(path)!r} {'is empty' if was_there else 'is not there'}: the audit begins anew."
    torn = " Its end was torn: what it held is drawn again." if checkpoint.is_torn else ""
    if not len(checkpoint):
        return f"The checkpoint {str(path)!r} holds no finished draws: the audit begins anew.{torn}"
    parts = f"{len(checkpoint):,} finished {'part' if len(checkpoint) == 1 else 'parts'}"
    return f"Going on from {str(path)!r}: {checkpoint.recovered:,} draws in {parts} are taken from it.{torn}"


def _holds_something(path: Path) -> bool:
    return path.exists() and (path.is_dir() or path.stat().st_size > 0)


def _begun(stream: BinaryIO, header: dict[str, Any], path: Path | None, replayable: bool) -> Checkpoint:
    checkpoint = Checkpoint(stream, header, path, replayable)
    content = json.dumps(header, sort_keys=True).encode()
    try:
        checkpoint._write(FIRST_LINE + FRAME.pack(len(content), zlib.crc32(content)) + content)
    except OSError as error:
        raise UsageError(
            f"checkpoint must be a file that can be written, got {str(path)!r} ({error.strerror})."
        ) from error
    return checkpoint


def _read_header(stream: BinaryIO) -> tuple[int, dict[str, Any]]:
    """The position behind the header, and the header."""
    if stream.read(len(FIRST_LINE)) != FIRST_LINE:
        raise ValueError("its first line is another one")
    frame = stream.read(FRAME.size)
    length, crc = FRAME.unpack(frame) if len(frame) == FRAME.size else (0, 1)
    content = stream.read(length)
    if len(content) < length or zlib.crc32(content) != crc:
        raise ValueError("its header is torn")
    header: dict[str, Any] = json.loads(content)
    return len(FIRST_LINE) + FRAME.size + length, header


def _check_header(there: dict[str, Any], here: dict[str, Any], path: Path) -> None:
    here = json.loads(json.dumps(here))
    different = {name for name in {**here, **there} if here.get(name) != there.get(name)} - {SHOWN}
    if different:
        said = "; ".join(_differences(there, here, different))
        raise UsageError(
            f"checkpoint must be of this audit, got {str(path)!r} of another one: {said}. State what it was begun "
            "with, or another file for this audit."
        )


def _differences(there: dict[str, Any], here: dict[str, Any], different: set[str]) -> list[str]:
    """How the audit of a checkpoint differs from this one, in words: digests say nothing to anybody."""
    said = []
    if "claim" in different:
        said.append(f"its claim is {there.get('claim')}, here {here.get('claim')}")
    elif "promise" in different:
        said.append(f"its claim, {there.get('claim')}, has other values, which its name does not show")
    if "pairs" in different:
        counts = [str(header.get("pairs")).partition(" ")[0] for header in (there, here)]
        shown = [(header.get(SHOWN) or {}).get("pairs") for header in (there, here)]
        if all(shown) and shown[0] != shown[1]:
            said.append(f"its pairs are {shown[0]}, here {shown[1]}")
        elif counts[0] != counts[1]:
            said.append(f"it has {counts[0]} pairs, here {counts[1]}")
        else:
            said.append(f"its pairs, {counts[0]} as here, have other inputs")
    if "subject" in different:
        said.append(f"its mechanism is {there.get('subject')}, here {here.get('subject')}")
    if "fingerprint" in different:
        (code, _, way), (code_here, _, way_here) = (
            str(header.get("fingerprint")).partition(" ") for header in (there, here)
        )
        if code != code_here and "subject" not in different:
            said.append("its mechanism has other code or other parameters")
        if way != way_here:
            said.append(f"its mechanism is {way}, here {way_here}")
    others = sorted(different - {"claim", "promise", "pairs", "subject", "fingerprint"})
    said += [f"its {name.replace('_', ' ')} is {there.get(name)}, here {here.get(name)}" for name in others]
    return said


def _record(content: bytes) -> bytes:
    return FRAME.pack(len(content), zlib.crc32(content)) + content


def _contained(content: bytes, name: str) -> dict[str, Any]:
    try:
        found = json.loads(content)
        if not isinstance(found, dict):
            raise ValueError(f"a record must be an object, got {type(found).__name__}.")
    except (ValueError, RecursionError) as error:
        raise UsageError(f"checkpoint must hold what was contained as JSON, got another form ({name}).") from error
    return found


def _several(parts: Sequence[bytes]) -> bytes:
    """The results of several tasks as one record, of which a torn end loses all."""
    lengths = struct.pack(f"<{len(parts)}I", *map(len, parts))
    return SEVERAL + COUNT.pack(len(parts)) + lengths + b"".join(parts)


def _key(purpose: int, task: Task) -> bytes:
    asked = [
        (request.quota, _digest_of(request.statistic), request.start, request.move) for request in task.requests
    ]
    content = bytes.fromhex(digest([asked, task.keep, task.start, *([True] if task.is_last else [])]))
    return KEY.pack(purpose, task.input, task.round, task.chunk, task.size, content)


_DIGESTS: dict[int, tuple[Any, str]] = {}  # of the last statistics, which many tasks share


def _digest_of(statistic: Any) -> str:
    known = _DIGESTS.get(id(statistic))
    if known is None:
        while len(_DIGESTS) >= 64:
            _DIGESTS.pop(next(iter(_DIGESTS)))
        known = _DIGESTS[id(statistic)] = (statistic, digest(statistic, whole=False))
    return known[1]


def _lock(stream: BinaryIO, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not on this system: nothing stops a second process there
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise UsageError(
            f"checkpoint must be used by one audit at a time, got {str(path)!r}, which is in use."
        ) from error
