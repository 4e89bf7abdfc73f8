"""The working directory: a call that changes it must not move what the auditor reads and writes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def same_folder() -> Iterator[list[str]]:
    """For a while a mechanism may change the working directory; then it is what it was before.

    Gives a list, which has the directory that was left behind once the while is over, where it is another one.
    """
    before, found = _present(), list[str]()
    try:
        yield found
    finally:
        if (after := _present()) != before:
            found.append(after)
            with contextlib.suppress(OSError):  # it may be gone
                os.chdir(before)


def _present() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "a folder that is gone"
