"""Checkpoints: the finished chunks of one audit in a file, from which it goes on after it was ended by anything.

An audit is a function of its seed, its options and the results of its chunks: with these read back, it comes to the
same state and goes on with the chunks that are missing. So a checkpoint is a journal of results, and nothing else.

The file is a `dpaudit.running.journal`: its header says which audit it is; its records are a chunk each, or all chunks
of a round that are drawn together. A record is written before anybody looks at the result. It says which tasks it is of
and, for an isolated subject, what isolation has contained so far (JSON), and then has their results
(`dpaudit.running.plain_data`): an audit that goes on knows of calls that were lost before, as one that was never
interrupted does. What follows the last whole record is torn: it is cut off, and drawn again.

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
* A subject that ends the process by itself, or is ended as it takes long, depending on what it draws, and has
  randomness of its own, is conditioned on not having done so. Isolation is the remedy; the report of a resumed audit of
  such a subject says that it was.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from dpaudit.errors import DpauditCheckpointWarning, UsageError
from dpaudit.files import opened
from dpaudit.inference.tasks import Task, TaskResult
from dpaudit.running.digests import digest
from dpaudit.running.journal import Journal, lock, open_private
from dpaudit.running.plain_data import NotPlainError, block, from_bytes, text_of, to_bytes
from dpaudit.running.workers import Raised

FIRST_LINE = b"dpaudit checkpoint 4\n"  # 1 had the counts of an earlier engine, 2 other records, 3 another header
# Entries of a header that are digests, in words.
DIGESTS = {"promise": "values of the claim", "inputs": "inputs of the pairs", "fingerprint": "mechanism's parts"}

Place = tuple[int, int, int, int]


class Checkpoint:
    """A checkpoint that is open for reading and writing.

    Made by `open_checkpoint` (a file) or `temporary_checkpoint` (a file without a name, until it is saved).
    """

    def __init__(self, stream: BinaryIO, header: dict[str, Any], path: Path | None, replayable: bool) -> None:
        self.path, self.trouble = path, ""  # why nothing is noted any more; empty as long as all is well
        self.recovered = 0  # draws that were read back
        self.beside: dict[str, Any] | None = None  # what had been contained when the last chunk was noted
        self.on_trouble: Callable[[str], None] | None = None  # told in one sentence why nothing is noted any more
        self._journal, self._replayable = Journal(stream, FIRST_LINE, header), replayable
        # Of each task: its size, the digest of what was asked, and where its result is.
        self._places: dict[Place, tuple[int, str, int, int]] = {}
        end = 0
        try:
            for start, content in self._journal.records():
                self.recovered += self._find_places(start, content)
                end = start + len(content)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise UsageError(f"checkpoint must hold records of tasks, got another form ({path}).") from error
        # Whether the file had an end that could not be read, which is cut off.
        self.is_torn = self._journal.cut(end or self._journal.begin)

    def __len__(self) -> int:
        return len(self._places)

    def find(self, purpose: int, task: Task) -> TaskResult | Raised | None:
        """The result of a task that was finished before; `UsageError` if another task of that place was."""
        known = self._places.get((purpose, task.input, task.round, task.chunk))
        if known is None:
            return None
        size, asked, start, length = known
        if (size, asked) != (task.size, _digest_of_task(task)):
            raise UsageError(
                f"checkpoint must lead to where its audit was, got another course at round {task.round} of input "
                f"{task.input} ({self.path or 'in memory'}). The subject, a library or dpaudit is not what it was; "
                "begin again without it."
            )
        return from_bytes(self._journal.read(start, length))

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
            parts = [to_bytes(result) for _, result in results]
            tasks = [
                [purpose, task.input, task.round, task.chunk, task.size, _digest_of_task(task), len(part)]
                for (task, _), part in zip(results, parts, strict=True)
            ]
            content = block({"tasks": tasks, "beside": beside}, *parts)
            self._find_places(self._journal.append(content), content)
        except NotPlainError as error:
            if not self._replayable:  # else it is drawn again on the way back: the same bits
                self._give_up(f"an output of type {error} is no plain value", everything=True)
        except OSError as error:
            self._give_up(str(error.strerror or error), everything=not self._replayable)

    def save(self, path: Path) -> Path:
        """Copy a temporary checkpoint to a file; a file stays where it is. `UsageError` if it cannot be written."""
        if self.path is None:
            from dpaudit.results.saving import write_whole

            write_whole(path, self._journal.read(0, self._journal.end))
            self.path = path
        elif not self._journal.is_closed:
            self._journal.sync()
        return self.path

    def close(self, *, finished: bool = False) -> None:
        """Close the file; remove it where its audit has ended."""
        if self._journal.is_closed:
            return
        if finished and self.path is not None:
            with contextlib.suppress(OSError):
                self.path.unlink()
        self._journal.close()

    def _give_up(self, reason: str, *, everything: bool) -> None:
        self.trouble = reason
        if everything:
            self._places.clear()
            self.beside = None
            with contextlib.suppress(OSError):
                self._journal.cut(0)
            if self.path is not None:
                with contextlib.suppress(OSError):
                    self.path.unlink()
                self.path = None
        if self.on_trouble is not None:
            kept = "It cannot be resumed" if everything else "It can be resumed from what was noted before"
            self.on_trouble(f"Nothing more is noted in the checkpoint ({reason}); the audit goes on. {kept}.")

    def _find_places(self, start: int, content: bytes) -> int:
        """Note where the results of a record are, which begins at `start`; the draws of its tasks."""
        record, position = text_of(content)
        beside = record["beside"]
        if beside is not None and not isinstance(beside, dict):
            raise ValueError("what was contained must be an object")
        draws = 0
        for purpose, input_, round_, chunk, size, asked, length in record["tasks"]:
            self._places[purpose, input_, round_, chunk] = (size, asked, start + position, length)
            position, draws = position + length, draws + size
            if not 0 <= length <= position <= len(content):
                raise ValueError("results must be in their record")
        self.beside = beside
        return draws


def open_checkpoint(
    path: str | os.PathLike[str], header: dict[str, Any], *, resume: bool, replayable: bool
) -> Checkpoint:
    """Open the checkpoint of an audit: a new file or, to `resume`, the one that is there, whose header must be equal.

    `replayable` says whether the subject draws the same bits again. `UsageError` if the place cannot be written, is
    used by another process, or holds something else or another audit.
    """
    place = Path(path)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        stream = open_private(place)  # not emptied: until the lock is held it may be another process's
        try:
            lock(stream, place, "checkpoint")
            if stream.seek(0, os.SEEK_END):
                if not resume:
                    raise UsageError(
                        f"checkpoint must be a new file, got {str(place)!r}, which is there. Use resume (--resume) to "
                        "go on from it, or remove it."
                    )
                _check_header(read_header(place), header, place)
            return Checkpoint(stream, header, place, replayable)
        except BaseException:
            stream.close()
            raise
    except OSError as error:
        raise UsageError(
            f"checkpoint must be a file that can be written, got {str(place)!r} ({error.strerror})."
        ) from error


def temporary_checkpoint(header: dict[str, Any], *, replayable: bool) -> Checkpoint | None:
    """A checkpoint in a file without a name, which `save` copies to a place; None where there is no room for one."""
    try:
        stream: BinaryIO = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        return Checkpoint(stream, header, None, replayable)
    except OSError:
        return None


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Header that names the audit of a checkpoint; UsageError where it is no checkpoint of this version."""
    try:
        with opened("checkpoint", path) as stream:
            return Journal(stream, FIRST_LINE).header
    except (ValueError, TypeError, RecursionError) as error:
        raise UsageError(f"checkpoint must be a checkpoint of dpaudit, got {os.fspath(path)!r} ({error}).") from error


@dataclasses.dataclass
class CheckpointPlan:
    """Place of an audit's checkpoint, before it is known which audit it is; afterwards the checkpoint."""

    path: Path | None = None  # None: a temporary one, which can be saved when the audit is interrupted
    resume: bool = False  # whether to go on from a file that is there
    on_trouble: Callable[[str], None] | None = None  # told in one sentence why nothing is noted any more
    checkpoint: Checkpoint | None = None
    on_resume: Callable[[str], None] | None = None  # told in one sentence what was read back

    def seed(self) -> int | None:
        """The seed of the file that is there and to be gone on from."""
        seed = read_header(self.path).get("seed") if self.path is not None and self.resume and self._holds() else None
        return seed if isinstance(seed, int) else None

    def open(self, header: dict[str, Any], *, replayable: bool) -> Checkpoint | None:
        """Open the checkpoint of the audit with this header; see `open_checkpoint`."""
        if self.path is None:
            self.checkpoint = temporary_checkpoint(header, replayable=replayable)
        else:
            begins = "" if self._holds() else "is empty" if self.path.exists() else "is not there"
            self.checkpoint = open_checkpoint(self.path, header, resume=self.resume, replayable=replayable)
            if self.resume and self.on_resume is not None:
                self.on_resume(self._resumed_text(self.checkpoint, begins))
        if self.checkpoint is not None:
            self.checkpoint.on_trouble = self.on_trouble
        return self.checkpoint

    def close(self, *, finished: bool) -> None:
        """Close the checkpoint; a temporary one stays open until it is saved, where its audit has not ended."""
        if self.checkpoint is not None and (finished or self.path is not None):
            self.checkpoint.close(finished=finished)

    def _holds(self) -> bool:
        """Tell whether there is something at the path: a folder too, which is refused when it is opened."""
        return self.path is not None and self.path.exists() and (self.path.is_dir() or self.path.stat().st_size > 0)

    def _resumed_text(self, checkpoint: Checkpoint, begins: str) -> str:
        """Report of what was read back; `begins` says why nothing was."""
        torn = " Its end was torn: what it held is drawn again." if checkpoint.is_torn else ""
        if not len(checkpoint):
            return (
                f"The checkpoint {str(self.path)!r} {begins or 'holds no finished draws'}: the audit begins anew.{torn}"
            )
        parts = f"{len(checkpoint):,} finished {'part' if len(checkpoint) == 1 else 'parts'}"
        return f"Going on from {str(self.path)!r}: {checkpoint.recovered:,} draws in {parts} are taken from it.{torn}"


def as_plan(checkpoint: str | os.PathLike[str] | CheckpointPlan | None, resume: bool) -> CheckpointPlan | None:
    """The plan of a call of `dpaudit.audit`; `UsageError` if the arguments make no sense."""
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


def _check_header(there: dict[str, Any], here: dict[str, Any], path: Path) -> None:
    here = json.loads(json.dumps(here))
    different = {name for name in {**here, **there} if here.get(name) != there.get(name)}
    if different:
        named = [f"{name}: {there.get(name)}, here {here.get(name)}" for name in sorted(different - DIGESTS.keys())]
        said = named or [f"{DIGESTS[name]} differ" for name in sorted(different)]  # digests say nothing to anybody
        raise UsageError(
            f"checkpoint must be of this audit, got {str(path)!r} of another one ({'; '.join(said)}). "
            "State what it was begun with, or another file for this audit."
        )


def _digest_of_task(task: Task) -> str:
    """A digest of what is counted on a task's draws, and what is kept of them."""
    asked = [(request.quota, _digest_of(request.statistic), request.start, request.move) for request in task.requests]
    return digest([asked, task.keep, task.start, task.is_last])


_DIGESTS: dict[int, tuple[Any, str]] = {}  # of the last statistics, which many tasks share


def _digest_of(statistic: Any) -> str:
    known = _DIGESTS.get(id(statistic))
    if known is None:
        while len(_DIGESTS) >= 64:
            _DIGESTS.pop(next(iter(_DIGESTS)))
        known = _DIGESTS[id(statistic)] = (statistic, digest(statistic))
    return known[1]
