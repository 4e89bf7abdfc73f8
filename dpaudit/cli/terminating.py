"""SIGTERM (a container that is stopped, a job that is cancelled) as the interrupt that Ctrl-C is."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

INTERRUPTED = 130  # 128 + SIGINT, as shells have it
TERMINATED = 143  # 128 + SIGTERM
AGAIN_SECONDS = 2.0  # `timeout` and others tell the process and then its group: for so long it is the same signal


class Terminated(KeyboardInterrupt):
    """The process was asked to end: what interrupts a command, by another signal."""


def interrupt_status(interrupt: BaseException) -> int:
    """The exit status of a command that was interrupted."""
    return TERMINATED if isinstance(interrupt, Terminated) else INTERRUPTED


@contextlib.contextmanager
def heard_terminations() -> Iterator[None]:
    """Raise `Terminated` in the main thread at the first SIGTERM; one that comes later ends the process at once.

    Nothing is changed where somebody handles the signal already, or in another thread; and a child that is forked
    meanwhile ends by it as if nothing had been changed.
    """
    first = 0.0

    def hear(number: int, frame: Any) -> None:
        nonlocal first
        now = time.monotonic()
        if first == 0.0:
            first = now
            raise Terminated
        if now - first > AGAIN_SECONDS:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    _FORKS.handler = hear
    signal.signal(signal.SIGTERM, hear)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is hear:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _FORKS.handler = None


class _Forks:
    """Gives children the default handler, with the signal held back until they have it: before, it would be lost."""

    def __init__(self) -> None:
        self.handler: Any = None
        self.held = threading.local()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._hold, after_in_parent=self._let_go, after_in_child=self._in_child)

    def _hold(self) -> None:
        if self.handler is not None and signal.getsignal(signal.SIGTERM) is self.handler:
            self.held.mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])

    def _let_go(self) -> None:
        mask = self.held.__dict__.pop("mask", None)
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def _in_child(self) -> None:
        if "mask" in self.held.__dict__:
            self.handler = None
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._let_go()


_FORKS = _Forks()
