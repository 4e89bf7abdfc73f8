"""What an output raises when it is looked at is the mechanism's, also where it looks like an interrupt of a person."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
import types

import numpy as np
import pytest

import dpaudit
from dpaudit.errors import SubjectError
from dpaudit.subjects.call_outcomes import Failed
from dpaudit.subjects.callables import as_subject
from dpaudit.subjects.plain import seen
from dpaudit.subjects.tracebacks import OWN_FOLDER
from dpaudit.symbolic.tracing import Suspended


class Awkward(list):
    def __init__(self, error):
        super().__init__([1.0])
        self.error = error

    def __iter__(self):
        raise self.error

    __len__ = __reduce_ex__ = __repr__ = lambda self, *_: self.__iter__()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit, MemoryError])
def test_an_exception_of_an_output_is_of_the_mechanism(error):
    with pytest.raises(SubjectError, match="an output must be readable"):
        seen(Awkward(error))

    def yields(data, rng):
        yield 1.0
        raise error

    (found,) = as_subject(yields).sample(0.0, 1, np.random.default_rng(1))
    assert found == [1.0, Failed(error.__name__, "")]


class Shy:
    """Raises whatever is asked of it: its class, its items, its copy."""

    def __getattribute__(self, name):
        raise KeyboardInterrupt


@pytest.mark.parametrize("wrapped", [lambda one: one, lambda one: [1.0, one], lambda one: {"a": one}])
def test_an_output_that_interrupts_at_every_look_ends_no_audit(wrapped):
    def release(data, rng):
        return wrapped(Shy())

    def batches(data, size, rng):
        return [wrapped(Shy()) for _ in range(size)]

    for mechanism in (release, batches):
        found = dpaudit.audit(mechanism, "eps=1", [(0, 1)], samples=60, seed=1, floating_point=False)
        assert found.verdict in ("error", "inconclusive")


class Slow(list):
    def __iter__(self):
        try:
            for _ in range(1_000):
                time.sleep(0.01)
        except KeyboardInterrupt:
            raise  # as a mechanism may, that tidies up first
        return iter(())


def test_an_interrupt_of_a_person_still_ends_what_is_running():

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            seen(Slow([[1.0]]))
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_ends_a_run_in_the_middle_is_not_of_the_output():
    def end(self, *_):
        raise Suspended

    own = types.FunctionType(end.__code__.replace(co_filename=f"{OWN_FOLDER}ends.py"), globals())

    class Reads(list):
        __iter__ = __len__ = __reduce_ex__ = __repr__ = own

    with pytest.raises(Suspended):
        seen(Reads())
