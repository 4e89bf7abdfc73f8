"""Work of a worker process: make calls of the subject, and leave their outcomes in memory that the auditor shares.

Calls are made one by one, in the order of a schedule that names an input for each: the outcome of each is written into
the `Log` before the next one begins, with its time, so that a call which ends the worker takes nothing with it. A call
for a batch is a schedule of one, whose outcome is all of its outputs. The answer to a request is in the log too: what
comes through the channel is one byte, which says that it may be there.

An input that can be changed is given as a fresh copy to every call. Generators of the process are seeded anew when a
worker starts: it is a copy of the fork server, and would repeat the noise of the worker before it.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import mmap
import os
import pickle
import random
import signal
import socket
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dpaudit.errors import ProgramError
from dpaudit.files import address_space
from dpaudit.subjects.call_outcomes import Ended, Failed
from dpaudit.subjects.callables import Subject
from dpaudit.subjects.isolation.fork_server import children
from dpaudit.subjects.isolation.limits import Isolation
from dpaudit.subjects.plain import PlainWriter, TooLarge, brief, packed, shown
from dpaudit.subjects.residual import KEPT_KINDS
from dpaudit.subjects.tracebacks import is_new_kind, located_once

BLOCK = 4_096  # calls of one request, at most
TIME_OUT = "time-out"
OUTPUT_LIMIT = "output limit"
UNREADABLE = "unreadable output"
BAD = "bad batch"
# Kinds of records of the log; 0 is none. BROKEN is the conversation with a program: no outcome, an error of the audit.
NUMBER, OBJECT, BROKEN = 1, 2, 3
GOES_ON = ("threads", "processes", "signal_handlers")  # notes of a process that must be replaced
NOTES = ("global_generator", "working_directory", "environment", *GOES_ON)
BATCH_HEAD = 4_096  # bytes beside the numbers of an array, which may take all that a call may return


class Log:
    """Memory shared by the auditor and its workers: where a worker stands, outcomes of a block of calls, and notes."""

    def __init__(self, output: int) -> None:
        fixed = 40 + BLOCK * 18
        self.most = output + BATCH_HEAD  # bytes of one outcome
        self.room = output + self.most
        self._memory = mmap.mmap(-1, fixed + self.room)
        view = memoryview(self._memory)
        self.place = view[0:8].cast("q")  # [0]: the calls that are finished
        self.since = view[8:16].cast("d")  # [0]: when the call began that is being made
        self.used = view[16:24].cast("q")  # [0]: bytes of objects
        self.answered = view[24:32].cast("q")  # [0]: the request, once all that is noted of it is there
        self.notes = view[32 : 32 + len(NOTES)]  # of each, whether it was seen
        self.values = view[40 : 40 + 8 * BLOCK].cast("d")
        self.seconds = view[40 + 8 * BLOCK : 40 + 16 * BLOCK].cast("d")
        self.kinds = view[40 + 16 * BLOCK : 40 + 17 * BLOCK]
        self.changed = view[40 + 17 * BLOCK : fixed]  # of each call, whether it was seen to change its input
        self.objects = view[fixed:]

    def clear(self) -> None:
        self.place[0] = self.used[0] = 0
        self.kinds[:] = self.changed[:] = bytes(BLOCK)
        self.since[0] = -1.0  # no call has begun


def is_fixed(data: Any) -> bool:
    """Tell whether an input cannot be changed by a call."""
    kind = type(data)
    if kind in (tuple, frozenset):
        return all(is_fixed(item) for item in data)
    return data is None or kind in (bool, int, float, complex, str, bytes) or isinstance(data, np.generic)


class Worker:  # pragma: no cover (in the worker)
    """Answers the auditor's requests, until its end of the channel is closed."""

    def __init__(self, subject: Subject, isolation: Isolation, log: Log) -> None:
        self.subject, self.isolation, self.log = subject, isolation, log
        self.generators: list[Any] = []
        self.inputs: dict[int, bytes] = {}
        self.streams: list[np.random.Generator] = []  # of each input of a schedule
        self.located: set[str] = set()  # the kinds of exceptions whose first ones have said where they came from
        # Bound before the subject can replace them.
        self.clock, self.call, self.leave, self.identify = time.monotonic, subject._call, os._exit, os.getpid

    def prepare(self) -> None:
        """Once, in the fork server: find the generators that every worker gets a copy of."""
        self.generators = live_generators()

    def serve(self, channel: socket.socket) -> None:
        """The worker's main loop."""
        limit_memory(self.isolation.memory)
        self.pid = self.identify()
        self.start = changeable()
        first = True
        requests = channel.makefile("rb")
        while True:
            try:
                request = pickle.load(requests)
            except EOFError:
                return
            if first:
                reseed(self.generators, request["seed"])
                first = False
            if request.get("forget"):
                self.inputs.clear()
            self.inputs.update(request.get("inputs", {}))
            self.start["global_generator"] = global_state()
            if "outputs" in request:
                self.density(request)
            else:
                self.calls(request)
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(BaseException):
                    stream.flush()
            self.note_changes()
            self.log.answered[0] = request["serial"]
            channel.sendall(b".")

    def note_changes(self) -> None:
        """Note what the calls of a request have changed, by the names of `NOTES`; what can be put back is."""
        now = changeable()
        found = [now[name] != self.start[name] for name in NOTES]
        self.log.notes[:] = bytes(found)
        if found[NOTES.index("working_directory")]:
            os.chdir(self.start["working_directory"])
        if found[NOTES.index("environment")]:
            os.environ.clear()
            os.environ.update(self.start["environment"])

    def check_process(self) -> None:
        """End a copy of the worker that a call made, and that came back from it.

        Validity: two workers on one log would write outcomes of one input where those of another belong.
        """
        if self.identify() != self.pid:
            self.leave(0)

    def data(self, key: int) -> Any:
        return pickle.loads(self.inputs[key])

    def read(self, outputs: Any, size: int) -> Any:
        """The outputs of a call for a batch as an array or a list of plain data; `BAD` where there are none."""
        if isinstance(outputs, np.ma.MaskedArray) and np.ma.getmaskarray(outputs).any():
            outputs = list(outputs) if outputs.ndim > 1 else outputs.tolist()  # rows with what is under their masks
        if isinstance(outputs, np.ndarray):
            array = np.asarray(outputs)
            if array.ndim == 0 or len(array) != size:
                return Failed(BAD, f"an array of shape {array.shape}")
            if array.dtype.kind in KEPT_KINDS:
                if array.nbytes > self.isolation.output:
                    raise TooLarge
                return array
            outputs = list(array)
        if isinstance(outputs, str | bytes | Mapping) or not isinstance(outputs, Iterable):
            return Failed(BAD, f"{type(outputs).__qualname__} {shown(outputs)}")
        listed = list(itertools.islice(iter(outputs), size + 1))
        if len(listed) != size:
            return Failed(BAD, f"{len(listed)} outputs{' or more' if len(listed) > size else ''}")
        writer = PlainWriter(self.isolation.output)
        return listed if all(type(item) is float for item in listed) else [writer.plain(item) for item in listed]

    def calls(self, request: dict[str, Any]) -> None:
        """Calls one by one: their outcomes are in the log, and which were seen to change their inputs.

        Where the request has a `size`, one call for a batch of it, whose outcome is the whole of it.
        """
        log, clock, call, identify, pid = self.log, self.clock, self.call, self.identify, self.pid
        size, limit, vectorised = request["size"], request["limit"], "size" in self.subject.interface
        if request["streams"]:
            self.streams, self.located = request["streams"], set()
        keys: list[int] = request["keys"]
        fixed = {key: data for key in keys if is_fixed(data := self.data(key))}
        watched: set[int] = set()
        place, since, kinds, values, seconds = log.place, log.since, log.kinds, log.values, log.seconds
        for k, position in enumerate(request["schedule"]):
            if log.used[0] + log.most > log.room:  # Validity: before the call, whose outcome may have any size
                break
            since[0] = clock()
            key, rng = keys[position], self.streams[position]
            data = fixed[key] if key in fixed else self.data(key)
            raised: BaseException | None = None
            began = clock()
            try:
                output = call(data, size or 1, rng)
                if vectorised and not size:
                    output = _single(output)
            except ProgramError as error:
                # Validity: no outcome of a call: it may say that an input has no JSON form, or that a program is slow.
                self.check_process()
                self.record(k, str(error))
                kinds[k], place[0] = BROKEN, k + 1
                return
            except BaseException as error:
                output, raised = brief(error), error
            elapsed = clock() - began
            if identify() != pid:
                self.check_process()
            if elapsed > limit:
                output = Ended(TIME_OUT, "")
            elif raised is not None and is_new_kind(output.kind, self.located):
                since[0] = clock()  # what is said of a call is none of its time
                output = located_once(output, raised, self.located)
            raised = None  # its traceback holds this frame, and with it all that the call had
            if not size and (type(output) is float or type(output) is np.float64):
                values[k] = output
                kinds[k] = NUMBER
            else:
                self.record(k, output, 0 if isinstance(output, Failed) else size)
            seconds[k] = elapsed
            place[0] = k + 1
            if key not in fixed and key not in watched:
                watched.add(key)  # once a block: a comparison may cost as much as a call
                log.changed[k] = self.is_changed(key, data)
            if clock() > request["until"]:  # the auditor makes no more of them
                break

    def record(self, k: int, output: Any, size: int = 0) -> None:
        """Write an output that is no float, or a batch of `size`, behind the others."""
        most, is_located = self.isolation.output, type(output) is Failed and bool(output.traceback)
        try:
            plain = self.read(output, size) if size else PlainWriter(most).plain(output.bare if is_located else output)
            content = packed(plain)
            if len(content) > (self.log.most if size else most):
                raise TooLarge
        except TooLarge:
            text = f"more than {most:,} bytes"
            content = packed(Failed(BAD, text) if size else Ended(OUTPUT_LIMIT, text))
        except BaseException as error:
            kind = brief(error).kind
            content = packed(Failed(BAD, f"outputs that cannot be read ({kind})") if size else Ended(UNREADABLE, kind))
        else:
            if is_located:  # where it came from is no part of the outcome, which has the limit to itself
                more = packed(output)
                content = more if self.log.used[0] + len(more) <= self.log.room else content
        log, start = self.log, self.log.used[0]
        log.objects[start : start + len(content)] = content
        log.used[0] = start + len(content)
        log.values[k] = float(len(content))
        log.kinds[k] = OBJECT

    def is_changed(self, key: int, data: Any) -> bool:
        """Tell whether a call changed its input, as far as a pickle shows it."""
        if is_fixed(data):
            return False
        try:  # against the pickle of a copy that no call has seen: a first pickle may differ from it
            return pickle.dumps(data, protocol=5) != pickle.dumps(self.data(key), protocol=5)
        except BaseException:
            return True

    def density(self, request: dict[str, Any]) -> None:
        """The mechanism's own log density of outputs, as the outcome of a call; none where it cannot say."""
        self.log.since[0] = self.clock()
        with contextlib.suppress(BaseException):
            values = self.subject.log_density(self.data(request["key"]), request["outputs"])
            if values is not None:
                self.record(0, values, len(values))
                self.log.place[0] = 1


def _single(outputs: Any) -> Any:  # pragma: no cover (in the worker)
    """The one output of a call for a batch of one."""
    if hasattr(outputs, "__len__") and not isinstance(outputs, str | bytes | Mapping) and len(outputs) == 1:
        return outputs[0]
    return Ended("a batch of the wrong length", f"{type(outputs).__qualname__} {shown(outputs)}")


def limit_memory(memory: int) -> None:  # pragma: no cover (in the worker)
    """Limit the address space to what the process has and `memory` bytes more; no core files."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        present = address_space()
    except (OSError, ValueError):  # no such file system: the most that was resident, in kilobytes or bytes
        present = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = present + memory
    if hard == resource.RLIM_INFINITY or limit < hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def live_generators() -> list[Any]:
    """The generators of the process outside of numpy's and Python's own modules: bit generators, `random.Random`."""
    kinds = (np.random.BitGenerator, random.Random)  # real classes: a weak proxy of what is gone has no other to ask
    found = [x for x in gc.get_objects() if issubclass(type(x), kinds) and type(x) is not random.SystemRandom]
    # That of the functions of numpy.random is hidden in their module.
    hidden = [np.random.get_bit_generator()]  # type: ignore[attr-defined, unused-ignore]
    return [*found, *(thing for thing in hidden if not any(thing is known for known in found))]


def reseed(generators: list[Any], seed: tuple[int, ...]) -> None:  # pragma: no cover (in the worker)
    """Seed them all anew.

    Validity: a worker is a copy. A generator that lives in the subject, or numpy's global one, would give each worker
    the noise that the one before it had: draws of an audit in which a worker was replaced would not be independent.
    """
    for generator, sequence in zip(generators, np.random.SeedSequence(seed).spawn(len(generators)), strict=True):
        with contextlib.suppress(Exception):
            if isinstance(generator, random.Random):
                generator.seed(int.from_bytes(sequence.generate_state(8).tobytes(), "little"))
            else:
                generator.state = type(generator)(sequence).state


def changeable() -> dict[str, Any]:  # pragma: no cover (in the worker)
    """State of the process that a call may change beside its output, by the names of `NOTES`."""
    try:
        folder = os.getcwd()
    except OSError:
        folder = ""
    interrupts = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGHUP)
    return {
        "global_generator": global_state(),
        "working_directory": folder,
        "environment": dict(os.environ),
        "threads": len(sys._current_frames()),  # of Python: libraries of linear algebra start some of their own
        "processes": bool(children()),
        "signal_handlers": [signal.getsignal(number) for number in interrupts],
    }


def global_state() -> dict[str, Any]:
    """The state of the global generators, by their modules."""
    _, keys, *rest = np.random.get_state()  # noqa: NPY002
    return {"numpy.random": (keys.tobytes(), *rest), "random": random.getstate()}  # type: ignore[attr-defined]
