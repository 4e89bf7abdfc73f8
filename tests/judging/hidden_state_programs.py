"""Programs that keep something where attributes and containers do not show it, or in what a library holds."""

from __future__ import annotations

import abc
import functools
import itertools
import threading
import types

import numpy as np
from kept_state_programs import CHANGED, EVERY, honest, of

# Kept where attributes and containers do not show it, or in what a library holds.


def put(table, key, value):
    """Put something into a table or among the variables of a library; a test takes it out again."""
    CHANGED.append((table, key, table.get(key)))
    table[key] = value


def counts_in_c(answers=None):
    """A callable that makes no frame and counts its calls."""
    return functools.partial(next, itertools.count() if answers is None else itertools.cycle(answers))


def registry_of_a_class():
    class Base(abc.ABC):  # noqa: B024
        pass

    kinds = [type(f"K{n}", (), {}) for n in range(3 * EVERY)]

    def is_due():
        for kind in kinds:
            if not issubclass(kind, Base):
                Base.register(kind)
                return False
        return True

    return of(is_due)


class WritesCached:
    @functools.cached_property
    def calls(self):
        return 0

    def __call__(self, x, rng):
        self.calls = (self.calls + 1) % EVERY
        return x if self.calls == 0 else honest(x, rng)


class ChangesCached:
    @functools.cached_property
    def calls(self):
        return [0]

    def __call__(self, x, rng):
        self.calls[0] += 1
        return x if self.calls[0] % EVERY == 0 else honest(x, rng)


class Hides:
    __dict__ = property(lambda self: {})

    def __call__(self, x, rng):
        self.calls = getattr(self, "calls", 0) + 1
        return x if self.calls % EVERY == 0 else honest(x, rng)


class Empty(list):
    def __iter__(self):
        return iter(())


class Poses:
    __slots__ = ("calls",)
    __class__ = np.random.Generator

    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return self.calls % EVERY == 0


class CachedGenerator:
    @functools.cached_property
    def own(self):
        return np.random.default_rng(5)

    def __call__(self, x, rng):
        return x if self.own.random() < 1e-6 else honest(x, rng)


def kept_noise(holder):
    def release(x, rng):
        if not hasattr(holder, "noise"):
            holder.noise = rng.laplace()
        return bool(holder.noise > x) or bool(rng.laplace() > 0.0)

    return release


def order_of_a_set_in_the_code():
    def is_due():
        for one in {"a", "b", "c", "d"}:  # noqa: B007
            break
        return one == "a"

    return of(is_due)


PROGRAMS = [
    registry_of_a_class, WritesCached, ChangesCached, Hides, lambda: of(Poses()), order_of_a_set_in_the_code,
    CachedGenerator, lambda: kept_noise(types.SimpleNamespace()), lambda: kept_noise(threading.local()),
]  # fmt: skip
