"""Programs in any language as subjects: `exec:COMMAND`, JSON lines on stdin and stdout (docs/exec-protocol.md).

One process a worker, started when it is first needed, ended when it breaks the protocol, takes too long or too much, or
is not needed any more: by a fork server, with every process that it has left (`dpaudit.subjects.isolation`). The
messages follow `dpaudit/schemas/exec-1.json`.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import functools
import hashlib
import json
import math
import multiprocessing.util
import os
import re
import select
import selectors
import shlex
import signal
import socket
import struct
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dpaudit.errors import OutOfTimeError, ProgramError, UsageError
from dpaudit.files import parsed_json
from dpaudit.privacy.claims import Claim, number
from dpaudit.privacy.parsing import as_claim, parse_claim
from dpaudit.subjects.call_limits import end_of_time, is_time_over
from dpaudit.subjects.call_outcomes import PROGRAM_DIED, Failed
from dpaudit.subjects.callables import Subject, as_subject
from dpaudit.subjects.isolation import Isolation, isolated
from dpaudit.subjects.isolation.fork_server import ANSWER_SECONDS, ForkServer, ForkServerLost
from dpaudit.subjects.isolation.limits import OUTPUTS_A_LIMIT
from dpaudit.subjects.protocol import WHOLE_DOUBLES

PROTOCOL = 1
PREFIX = "exec:"
# Of a batch, and at least of the first answer; of a process; of a line.
PROGRAM_LIMITS = Isolation(seconds_a_call=60.0, memory=4 << 30, output=64 << 20)
START_ERROR = struct.Struct("!i")
STDERR_KEPT = 4_096  # characters of what the program wrote to stderr last, which an error shows
END_SECONDS = 2.0  # for the program to end after its input is closed, before it is killed
HASHED_FILE = 10_000_000  # bytes of a file on the command line, beyond which its content is not in the fingerprint
GREETING: dict[str, tuple[str, Callable[[Any], bool]]] = {  # what a program may say of itself
    "batch": ("a positive integer", lambda value: type(value) is int and value > 0),
    "numbers": ("json or double", lambda value: value in ("json", "double")),
    "seeds": ("true or false", lambda value: isinstance(value, bool)),
    "claim": ("a text", lambda value: isinstance(value, str)),
    "pairs": (
        "a list of [x, x']",
        lambda value: isinstance(value, list) and all(isinstance(one, list) and len(one) == 2 for one in value),
    ),
}
_HEX_FLOAT = re.compile(r"[-+]?(0x[0-9a-f]+(\.[0-9a-f]*)?(p[-+]?[0-9]+)?|inf(inity)?|nan)", re.IGNORECASE)


class ReportedError(RuntimeError):
    """The program reports that a call raised."""

    def __init__(self, failed: Failed, message: str = "") -> None:
        super().__init__(message or f"{failed.kind}: {failed.message}")
        self.failed = failed


class ProgramDied(ReportedError):
    """The program ended in the middle of a request: an outcome of the call, like an exception."""


def exec_subject(
    command: str | Sequence[str],
    *,
    claim: Claim | str | None = None,
    timeout: float = PROGRAM_LIMITS.seconds_a_call,
    name: str | None = None,
) -> Subject:
    """The subject of a program that speaks the protocol of docs/exec-protocol.md.

    Parameters
    ----------
    command : str or sequence of str
        Split as a shell would, and run without one; in the current folder.
    claim : Claim or str, optional
        Audited by default, in place of the program's own.
    timeout : float
        Seconds for one batch (at most 10,000 outputs), above 0. At least a minute is given for the first answer.
    name : str, optional

    Returns
    -------
    Subject
        Replayable if the program takes seeds. A program that announces a batch of 1 is asked one output a call, and so
        is one from then on that dies over an input in the first requests: its death is an outcome.

    Raises
    ------
    UsageError
        If the command cannot be read or started.
    ProgramError
        If the program does not greet as the protocol says.
    """
    try:
        words = tuple(shlex.split(command)) if isinstance(command, str) else tuple(command)
    except ValueError as error:
        raise UsageError(f"command must be one that a shell could split, got {command!r} ({error}).") from error
    if not words or not all(isinstance(word, str) for word in words):
        raise UsageError(f"command must name a program, got {command!r}.")
    seconds = number("timeout", timeout, "above 0 seconds", lambda value: 0.0 < value < math.inf)
    limits = dataclasses.replace(PROGRAM_LIMITS, seconds_a_call=seconds)
    hello = _program(words, limits).hello
    own = parse_claim(hello["claim"]) if "claim" in hello else None
    mechanism = ExecMechanism(
        command=words,
        limits=limits,
        replayable=bool(hello.get("seeds", False)),
        batch=int(hello.get("batch", OUTPUTS_A_LIMIT)),
        doubles=hello.get("numbers", "json") == "double",
        claim=as_claim(claim) or own,
        stated=own,
        pairs=[tuple(_decoded(pair, False)) for pair in hello["pairs"]] if "pairs" in hello else None,
        digests=tuple(_digests(words)),
    )
    weakref.finalize(mechanism, _close, words, limits)  # another subject of the same command would start it again
    subject = as_subject(mechanism, name=name or str(hello.get("name") or Path(words[0]).name))
    # Validity: where a request is for one output, what happens in it is the outcome of one draw.
    return dataclasses.replace(subject, one_by_one=mechanism.batch == 1)


def contained(subject: Subject, limits: Isolation) -> contextlib.AbstractContextManager[Subject]:
    """The subject with these limits, for a while: of a program of a batch, of its process, and of a line.

    `UsageError` if the time of a program's calls is to be examined, which says nothing of its batches.
    """
    if not subject.is_program:
        return isolated(subject, limits)
    if limits.timing:
        raise UsageError(f"timing of isolation must be 0 for a program, got {limits.timing}.")
    mechanism = dataclasses.replace(subject.mechanism, limits=limits)
    weakref.finalize(mechanism, _close, mechanism.command, limits)
    return contextlib.nullcontext(dataclasses.replace(subject, mechanism=mechanism))


@dataclasses.dataclass(frozen=True, eq=False)
class ExecMechanism:
    """A program as a mechanism: the command and what its greeting said. Workers start a process of their own."""

    batch_advice: ClassVar[str] = (
        'Announce "batch": 1 in the greeting: each request is for one output then, and a death or an error is the '
        "outcome of a draw."
    )
    is_program: ClassVar[bool] = True
    outputs_only: ClassVar[bool] = True  # what it draws with is not the generator that it is given
    command: tuple[str, ...]
    limits: Isolation
    replayable: bool
    batch: int
    doubles: bool
    claim: Claim | None = None
    stated: Claim | None = None
    pairs: list[Any] | None = None
    digests: tuple[str, ...] = ()

    @property
    def promised(self) -> Callable[[Any, Any], Claim] | None:
        """Claim of the program's greeting, for every pair; None if it claims nothing."""
        stated = self.stated
        return None if stated is None else lambda x, x_prime: stated

    def __repr__(self) -> str:
        return f"ExecMechanism({self.command!r}, {self.digests!r})"

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """`size` outputs: a list, or an array of doubles where the program says that its outputs are."""
        outputs: list[Any] = []
        try:
            encoded = encoded_input(data)
            for start in range(0, max(size, 1), self.batch):
                wanted = min(self.batch, size - start)
                seed = {"seed": int(rng.integers(WHOLE_DOUBLES))} if self.replayable else {}
                message = {"type": "sample", "input": encoded, "size": wanted, **seed}
                outputs.extend(_outputs(_program(self.command, self.limits), message, wanted, self.doubles))
        except ReportedError as error:
            # Validity: one observation of a call. It is the outcome of a draw only where the call was for one draw.
            if size != 1:
                raise
            outputs = [error.failed]
        except UsageError as error:
            # No outcome: it would tell an input that has no JSON form from one that has.
            raise ProgramError(str(error)) from error
        if self.doubles and all(type(output) is float for output in outputs):
            return np.array(outputs, dtype=float)
        return outputs


def _outputs(program: _Program, message: dict[str, Any], wanted: int, doubles: bool) -> list[Any]:
    """The outputs of one request, checked."""
    reply = program.ask(message)
    if "error" in reply:
        error = reply["error"]
        if not isinstance(error, dict) or not isinstance(error.get("kind"), str):
            raise program.broken(f"an error must be an object with a kind, got {error!r:.100}")
        raise ReportedError(_failed(error))
    form = "hex" if "hex" in reply else "outputs"
    outputs = reply.get(form)
    if not isinstance(outputs, list) or len(outputs) != wanted:
        got = f"{len(outputs)}" if isinstance(outputs, list) else f"{type(outputs).__name__}"
        raise program.broken(f"{form} must be a list of {wanted} outputs, got {got}")
    try:
        if form == "hex":
            return [_from_hex(output) for output in outputs]
        return [_decoded(output, doubles) for output in outputs]
    except (KeyError, TypeError, ValueError) as error:
        raise program.broken(f"outputs must be as the protocol writes them, got {error}") from error


def encoded_input(value: Any) -> Any:
    """An input as strict JSON: numpy to Python, and floats that JSON has no text for as {"$float": "inf"}.

    Finite doubles keep their bits: they are written with as many digits as they need.

    `UsageError` if a part of it has no JSON form.

    Examples
    --------
    >>> encoded_input([1, 0.1, float("inf")])
    [1, 0.1, {'$float': 'inf'}]
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, list | tuple):
        return [encoded_input(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: encoded_input(item) for key, item in value.items()}
    raise UsageError(f"an input of a program must have a JSON form, got {type(value).__name__}.")


def _decoded(value: Any, doubles: bool) -> Any:
    """A value of the protocol as Python's: special floats, exceptions, and numbers as doubles where they all are."""
    if isinstance(value, list):
        return [_decoded(item, doubles) for item in value]
    if isinstance(value, dict):
        if "$float" in value:
            return _from_hex(value["$float"])
        if "$error" in value:
            return _failed(value["$error"])
        return {key: _decoded(item, doubles) for key, item in value.items()}
    if doubles and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def _from_hex(text: Any) -> Any:
    """A double from C's hexadecimal form, or nan, inf; lists of these alike."""
    if isinstance(text, list):
        return [_from_hex(item) for item in text]
    if not isinstance(text, str) or not _HEX_FLOAT.fullmatch(text):
        raise ValueError(f"{text!r:.60} for a float in hexadecimal form")
    return math.nan if "nan" in text.lower() else float.fromhex(text)


def _failed(error: dict[str, Any]) -> Failed:
    return Failed(str(error["kind"]), str(error.get("message", "")))


def _digests(words: Sequence[str]) -> list[str]:
    """Digests of the files that the command names, so that another version of the program has another fingerprint."""
    found = []
    for word in words:
        path = Path(word)
        with contextlib.suppress(OSError, ValueError):
            if path.is_file() and path.stat().st_size <= HASHED_FILE:
                found.append(hashlib.sha256(path.read_bytes()).hexdigest()[:16])
    return found


_PROGRAMS: dict[tuple[int, tuple[str, ...], Isolation], _Program] = {}
_ENDING: set[int] = set()  # processes that will end their programs when they end
_STARTING = threading.Lock()


def _program(words: tuple[str, ...], limits: Isolation) -> _Program:
    """This process's copy of the program, started if it is not running."""
    # The process id is a part of the key: a forked child must not speak through its parent's pipes.
    key = (os.getpid(), words, limits)
    with _STARTING:
        known = _PROGRAMS.get(key)
        if known is None or not known.is_open:
            known = _PROGRAMS[key] = _Program(words, limits)
            if os.getpid() not in _ENDING:
                _ENDING.add(os.getpid())
                multiprocessing.util.Finalize(None, close_programs, exitpriority=0)  # workers do not run atexit
        return known


@atexit.register
def close_programs() -> None:
    """End every program that this process started; what does not end by itself is killed."""
    for pid, words, limits in list(_PROGRAMS):
        if pid == os.getpid():
            _close(words, limits)


def _close(words: tuple[str, ...], limits: Isolation) -> None:
    known = _PROGRAMS.pop((os.getpid(), words, limits), None)
    if known is not None:
        known.close()


def _become(words: tuple[str, ...], memory: int, channel: socket.socket) -> None:  # pragma: no cover (in the worker)
    """Become the program: its ends of two pipes go to the auditor, and the number of an error if it cannot start."""
    import resource

    (in_reading, in_writing), (out_reading, out_writing) = os.pipe(), os.pipe()
    socket.send_fds(channel, [b"p"], [in_writing, out_reading])
    os.dup2(in_reading, 0)
    os.dup2(out_writing, 1)
    for name in os.listdir("/dev/fd"):  # all others end with the start of the program
        if int(name) > 2:
            with contextlib.suppress(OSError):
                os.set_inheritable(int(name), False)
    for one in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_DFL)
    for limit, size in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_DATA, memory)):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (size, size))
    try:
        os.execvp(words[0], words)
    except OSError as error:
        channel.sendall(START_ERROR.pack(error.errno or 0))


class _Program:
    """A running program: one line to it, one line back, with a time limit, and stderr read meanwhile.

    It is the worker of a fork server of its own, which ends it with all that it has started.
    """

    def __init__(self, words: tuple[str, ...], limits: Isolation) -> None:
        self.words, self.limits, self.requests = words, limits, 0
        self.unread, self.errors = b"", b""
        self.speaking = threading.Lock()  # threads of one process share the program
        self.fork_server = ForkServer(lambda: None, functools.partial(_become, words, limits.memory))
        try:
            self.pid, channel, self.stderr = self.fork_server.start()
            with channel:
                channel.settimeout(ANSWER_SECONDS)
                _, (self.stdin, self.stdout), _, _ = socket.recv_fds(channel, 1, 2)
                failed = channel.recv(START_ERROR.size)  # nothing once it has started
        except (ForkServerLost, OSError, ValueError) as error:
            self.fork_server.close()
            raise ProgramError(f"{self._name()} must be started by its fork server, which did not answer.") from error
        for handle in (self.stdin, self.stdout, self.stderr):
            os.set_blocking(handle, False)
        self.is_open, self.how = True, ""
        if failed:
            self.close(0.0)
            reason = os.strerror(START_ERROR.unpack(failed)[0])
            raise UsageError(f"command must be a program that can be started, got {words[0]!r} ({reason}).")
        try:
            self.hello = self._greeting()
        except ProgramDied as error:
            raise ProgramError(f"{error} It must answer the greeting (docs/exec-protocol.md).") from error

    def _greeting(self) -> dict[str, Any]:
        greeting = {"type": "hello", "protocol": [PROTOCOL], "id": 0}
        reply = self._exchange(greeting, max(self.limits.seconds_a_call, PROGRAM_LIMITS.seconds_a_call))
        if reply.get("type") != "hello" or reply.get("protocol") != PROTOCOL:
            raise self.broken(f"it must greet with protocol {PROTOCOL}, got {json.dumps(reply)[:100]}")
        for name, (wanted, is_good) in GREETING.items():
            if name in reply and not is_good(reply[name]):
                raise self.broken(f"{name} must be {wanted}, got {reply[name]!r:.60}")
        return reply

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """The reply to one request; a program that died is an outcome of the call, anything else that is wrong is not.

        `ProgramDied` if it ended before it answered. `ProgramError` if it took too long, or its answer is none.
        """
        with self.speaking:
            self.requests += 1
            reply = self._exchange({**message, "id": self.requests}, self.limits.seconds_a_call)
            if reply.get("id") != self.requests:
                raise self.broken(f"id must be {self.requests}, that of the request, got {reply.get('id')!r:.60}")
        return reply

    def broken(self, what: str) -> ProgramError:
        """The error that says what is wrong, with the program ended and the last of its stderr."""
        self.close(0.0)
        return ProgramError(f"{self._name()} must follow the protocol: {what}.{self._stderr()}")

    def close(self, patience: float = END_SECONDS) -> None:
        """End the program: close its input, wait, and let the fork server end it and what it has left behind."""
        if not self.is_open:
            return
        self.is_open = False
        os.close(self.stdin)
        if patience:
            with contextlib.suppress(AttributeError, OSError):  # no child of this process, and pidfds are of Linux
                handle = os.pidfd_open(self.pid)  # type: ignore[attr-defined, unused-ignore]
                select.select([handle], [], [], patience)
                os.close(handle)
        with contextlib.suppress(ForkServerLost):
            status, _ = self.fork_server.end(at_once=not patience)
            code = os.waitstatus_to_exitcode(status)
            known = {one.value: one.name for one in signal.Signals}
            self.how = f"signal {known.get(-code, -code)}" if code < 0 else f"exit status {code}"
        self.fork_server.close()
        with contextlib.suppress(OSError):
            self._keep(os.read(self.stderr, 1 << 16))
        os.close(self.stdout)
        os.close(self.stderr)

    def _exchange(self, message: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Write one line and read one, both at once, so that neither side waits for a full pipe."""
        waiting = (json.dumps(message, allow_nan=False, separators=(",", ":")) + "\n").encode()
        deadline = time.monotonic() + seconds
        chunks = [self.unread]
        length = len(self.unread)
        with selectors.DefaultSelector() as selector:
            selector.register(self.stdin, selectors.EVENT_WRITE)
            selector.register(self.stdout, selectors.EVENT_READ)
            selector.register(self.stderr, selectors.EVENT_READ)
            while b"\n" not in chunks[-1]:
                left = min(deadline, end_of_time()) - time.monotonic()
                if left <= 0.0 and is_time_over():
                    self.close(0.0)
                    raise OutOfTimeError
                if left <= 0.0:
                    raise self.broken(f"an answer must take at most {seconds:g} s, got none by then")
                for key, _ in selector.select(left):
                    if key.fd == self.stdin:
                        try:
                            waiting = waiting[os.write(self.stdin, waiting[:65_536]) :]
                        except BlockingIOError:
                            continue
                        except OSError:
                            waiting = b""  # it reads no more: what it still has to say comes first
                        if not waiting:
                            selector.unregister(self.stdin)
                        continue
                    read = os.read(key.fd, 1 << 20)
                    if key.fd == self.stderr:
                        self._keep(read)
                        if not read:
                            selector.unregister(self.stderr)
                    elif read:
                        chunks.append(read)
                        length += len(read)
                        if length > self.limits.output:
                            raise self.broken(f"a line must have at most {self.limits.output:,} bytes, got more")
                    else:
                        self.close(END_SECONDS)
                        text = f"{self._name()} ended without an answer ({self.how}).{self._stderr()}"
                        raise ProgramDied(Failed(PROGRAM_DIED, self.how), text)
        if waiting:  # the rest would be read as the beginning of the next request
            raise self.broken("a request must be read to its end before it is answered")
        line, _, self.unread = b"".join(chunks).partition(b"\n")
        if self.unread:
            raise self.broken(f"each request has one line for an answer, got more: {self.unread[:60]!r}")
        try:
            reply = parsed_json("an answer", line, repr(line[:60]))
        except UsageError as error:
            raise self.broken(f"{error}".rstrip(".")) from error
        if not isinstance(reply, dict):
            raise self.broken(f"an answer must be a JSON object, got {line[:60]!r}")
        return reply

    def _keep(self, read: bytes) -> None:
        self.errors = (self.errors + read)[-STDERR_KEPT:]

    def _name(self) -> str:
        return f"program {shlex.join(self.words)!r}"

    def _stderr(self) -> str:
        text = self.errors.decode("utf-8", "replace").strip()
        return f" The last of its stderr: {text.rstrip('.')}." if text else ""
