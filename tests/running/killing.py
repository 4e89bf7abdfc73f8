"""Ends a process by kill -9 at the n-th call that it makes: the moment hangs on no clock. (No tests here.)"""

import os
import signal
import sys


def in_child(work, calls=None):
    """Do the work in a child, which kills itself at that call; the number of its calls where it came to the end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status, made = 1, 0

        def count(frame, event, argument):
            nonlocal made
            made += 1
            if made == calls:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.setprofile(count)
            work()
            sys.setprofile(None)
            os.write(writing, str(made).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as said:
        number = said.read()
    _, how = os.waitpid(child, 0)
    assert os.WIFSIGNALED(how) or os.WEXITSTATUS(how) == 0, "the work must not fail by itself"
    return int(number) if number else None
