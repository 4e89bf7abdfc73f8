"""A mechanism that ends pytest's process: `os._exit(0)` in a call would end a suite green, without a summary.

While a test audits or checks, `os._exit` in this process says what happened and ends it with a status that fails. Child
processes end as ever. What ends the process in C code, past Python, is not seen here: audit it with isolation.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import NoReturn

import pytest

ENDED = int(pytest.ExitCode.INTERNAL_ERROR)  # where the mechanism chose 0


@contextlib.contextmanager
def reports_exit(item: pytest.Item) -> Iterator[None]:
    """While a test runs, `os._exit` reports the test that called it, and never has status 0."""
    own, end = os.getpid(), os._exit
    capture = item.config.pluginmanager.getplugin("capturemanager")

    def reported_exit(status: int) -> NoReturn:
        if os.getpid() != own:
            end(status)
        if capture is not None:
            capture.suspend_global_capture(in_=True)
        text = (
            f"\ndpaudit: FAILED: {item.nodeid} ended the process of pytest with os._exit({status!r}). No test after it "
            "was run. Audit it with isolation: dp_audit(..., isolation=True).\n"
        )
        with contextlib.suppress(OSError, ValueError):
            (sys.__stderr__ or sys.stderr).write(text)
            (sys.__stderr__ or sys.stderr).flush()
        end(status or ENDED)

    os._exit = reported_exit
    try:
        yield
    finally:
        os._exit = end
