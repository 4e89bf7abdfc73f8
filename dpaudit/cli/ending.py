"""The end of a command's process: by the status of the command, whatever its output and its mechanism do.

* A stream that cannot be written (a full disk, a reader that left, a closed descriptor) raises nothing while a command
  prints: what was found is known by then, and the exit status says it. `Steady.lost` has the reason.
* What others registered for the end of the process (`atexit`) is run in a copy of it: it may tidy up, and cannot
  choose the status. Workers of our own are ended before that: a copy has no thread that could, and they would hold
  standard output open until they have been idle for long.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from typing import NoReturn

import click

from dpaudit.cli.terminating import INTERRUPTED

_end = os._exit  # bound before a mechanism is loaded
COPY_SECONDS = 5.0  # for what was registered for the end of the process


class Steady(io.BufferedWriter):
    """The bytes of a standard stream, whose writing never raises: the first reason for that is kept in `lost`."""

    lost: OSError | ValueError | None = None

    def write(self, content: object) -> int:
        """Write, or note why not; all of it is taken."""
        try:
            return super().write(content)  # type: ignore[arg-type]
        except (OSError, ValueError) as error:
            self.lost = self.lost or error
            return len(memoryview(content))  # type: ignore[arg-type]

    def flush(self) -> None:
        """Flush, or note why not."""
        try:
            super().flush()
        except (OSError, ValueError) as error:
            self.lost = self.lost or error

    def close(self) -> None:
        """Flush: a mechanism may close the streams that it finds, and what is said later still has to be said."""
        self.flush()


def steady_streams() -> None:
    """Put steady streams in the place of this process's standard output and error."""
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if not isinstance(stream, io.TextIOWrapper) or stream is not getattr(sys, f"__{name}__"):
            continue
        steady = Steady(io.FileIO(number, "w", closefd=False))
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
        _REPLACED.append(stream)  # one that is forgotten closes its descriptor
        new = io.TextIOWrapper(steady, stream.encoding, "backslashreplace", line_buffering=stream.line_buffering)
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


def why_lost() -> OSError | ValueError | None:
    """Error that lost some of the standard output; None where all of it was written."""
    stream = sys.stdout
    if stream is not None:
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    return getattr(getattr(stream, "buffer", None), "lost", None)


def run_and_end(command: Callable[[], object]) -> NoReturn:
    """Run a command, which returns its status or raises, and end the process by that status."""
    own = os.getpid()
    steady_streams()
    status = 3  # of what is unexpected: 1 is the status of a violation
    try:
        found = command()
        status = found if isinstance(found, int) else 0
    except click.ClickException as error:
        error.show()
        status = error.exit_code
    except click.Abort:
        status = INTERRUPTED
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else status
    except BaseException:
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    if os.getpid() == own:
        if (workers := sys.modules.get("dpaudit.running.workers")) is not None:
            workers.end_pools()
        _run_registered()
    _end(status)


def _run_registered() -> None:
    """Run in a copy of the process what was registered for its end, for some seconds at most."""
    if not hasattr(os, "fork"):  # pragma: no cover (elsewhere nothing can be kept from choosing the status)
        atexit._run_exitfuncs()
        return
    with warnings.catch_warnings(), contextlib.suppress(OSError):
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads, which are over
        copy = os.fork()
        if copy == 0:  # pragma: no cover (in the copy)
            try:
                with contextlib.suppress(OSError):
                    os.setpgid(0, 0)
                sys.unraisablehook = lambda _: None  # what it says of a process that is not its own
                atexit._run_exitfuncs()
                sys.stdout.flush()
            finally:
                _end(0)
        until = time.monotonic() + COPY_SECONDS
        while os.waitpid(copy, os.WNOHANG)[0] == 0:
            if time.monotonic() > until:
                os.killpg(copy, signal.SIGKILL)
                os.waitpid(copy, 0)
                return
            time.sleep(0.001)


_REPLACED: list[object] = []
