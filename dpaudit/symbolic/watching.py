"""Watches a traced run for randomness that no choice accounts for.

* Python's profiling hook sees every call of compiled code: `os.urandom` (so also `secrets`, `uuid4` and generators of
  numpy that are made without a seed), the module `random`, threads and processes; in the user's own code also clocks,
  `id` and `hash`.
* The states of numpy's global generator, and of each generator that existed beforehand, are compared before and after;
  a generator that was made meanwhile and is kept is refused.

Not seen: what compiled code draws by itself, and files or devices that differ between calls. A repeated path that ends
otherwise shows those (`dpaudit.symbolic.exploring`).
"""

from __future__ import annotations

import _random
import gc
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np

from dpaudit.symbolic.exact_draws import ReferenceStream
from dpaudit.symbolic.faces import PythonFace
from dpaudit.symbolic.other_randomness import listening, reason_of_call
from dpaudit.symbolic.tracing import Tracer, Untraceable


class Watch:
    """Watches the runs of one certificate."""

    def __init__(self, own: np.random.BitGenerator) -> None:
        self.own = own
        found = _alive(own)
        self.others = [item for item in found if isinstance(item, np.random.BitGenerator)]
        self.randoms = [item for item in found if isinstance(item, random.Random)]
        self.before = self._states()

    @contextmanager
    def over(self, tracer: Tracer) -> Iterator[None]:
        """While a run goes on; ends it where it takes other randomness, or where its deadline has long passed."""
        calls = 0

        def hear(frame: FrameType, event: str, argument: Any) -> None:
            nonlocal calls
            if event != "c_call":
                calls += 1
                if not calls & 0xFFFF and time.monotonic() > tracer.deadline:  # a loop that neither ends nor draws
                    sys.setprofile(None)
                    tracer.suspend()
                return
            reason = _reason(frame, argument)
            if reason:
                sys.setprofile(None)
                tracer.refuse(reason)

        with listening(hear):
            yield
            if sys.getprofile() is not hear and not tracer.is_suspended and not tracer.refusal:
                tracer.refuse("the hook that sees calls was taken away")

    def check(self) -> None:
        """Refuse the runs so far if a generator of numpy was moved, or one was made that is kept.

        Raises
        ------
        Untraceable
            If one was.
        """
        now = self._states()
        if not _are_equal(now[0], self.before[0]):
            raise Untraceable("Compiled code took random bits from the generator itself, past its methods.")
        if not _are_equal(now, self.before):
            raise Untraceable("A generator of numpy other than the one that is given is used.")
        if self._has_new():
            gc.collect()
            if self._has_new():
                raise Untraceable("A generator other than the one that is given was made and is kept between runs.")

    def _has_new(self) -> bool:
        known = {id(item) for item in (*self.others, *self.randoms)}
        return any(id(item) not in known for item in _alive(self.own))

    def _states(self) -> list[Any]:
        return [self.own.state, np.random.get_state(legacy=False), *(stream.state for stream in self.others)]  # noqa: NPY002


def _alive(own: object) -> list[Any]:
    """The generators that exist, of numpy and of the module `random`, but for those of traced runs."""
    kinds = (_subclasses(np.random.BitGenerator) | _subclasses(random.Random)) - {PythonFace, ReferenceStream}
    return [item for item in gc.get_objects() if type(item) in kinds and item is not own]


def _subclasses(kind: type) -> set[type]:
    below: list[type] = kind.__subclasses__()
    return {kind}.union(*map(_subclasses, below))


def _reason(frame: FrameType, function: Any) -> str:
    owner = getattr(function, "__self__", None)
    if isinstance(owner, _random.Random):
        return "" if type(owner) is PythonFace else "a generator of the module random is used"
    return reason_of_call(frame, function)


def _are_equal(first: Any, second: Any) -> bool:
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(_are_equal(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(_are_equal, first, second))
    if isinstance(first, np.ndarray):
        return bool(np.array_equal(first, second))
    return bool(first == second)
