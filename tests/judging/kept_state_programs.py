"""Programs that keep a count between their calls, where attributes and containers show it."""

from __future__ import annotations

import collections
import collections.abc
import contextlib
import dataclasses
import functools
import itertools
import os
import tempfile
import types
import weakref
from pathlib import Path

import numpy as np

FILE = Path(tempfile.gettempdir()) / f"dpaudit-{os.getpid()}-calls"
EVERY = 50  # calls
COUNT = 0
SHARED = {"calls": 0}
BOX = types.SimpleNamespace(calls=0)
QUEUE = collections.deque(range(EVERY))
NUMBERS = np.zeros(1)
CHANGED = []  # tables of libraries, with a key and what stood there


def honest(x, rng):
    return x if rng.random() < 0.75 else 1 - x


def of(is_due):
    """A program that gives its input away where that is due."""

    def release(x, rng):
        return x if is_due() else honest(x, rng)

    return release


# Kept between calls.


def closure():
    count = 0

    def release(x, rng):
        nonlocal count
        count += 1
        return x if count % EVERY == 0 else honest(x, rng)

    return release


def default():
    def release(x, rng, calls=[0]):  # noqa: B006
        calls[0] += 1
        return x if calls[0] % EVERY == 0 else honest(x, rng)

    return release


def keyword_default():
    def release(x, rng, *, calls={}):  # noqa: B006
        calls["n"] = calls.get("n", 0) + 1
        return x if calls["n"] % EVERY == 0 else honest(x, rng)

    return release


class Counts:
    def __init__(self):
        self.calls = 0

    def __call__(self, x, rng):
        self.calls += 1
        return x if self.calls % EVERY == 0 else honest(x, rng)


class CountsOfClass:
    calls = 0

    def __call__(self, x, rng):
        type(self).calls += 1
        return x if CountsOfClass.calls % EVERY == 0 else honest(x, rng)


class Method:
    def __init__(self):
        self.calls = 0

    def release(self, x, rng):
        self.calls += 1
        return x if self.calls % EVERY == 0 else honest(x, rng)


@dataclasses.dataclass
class Sampled:
    calls: int = 0

    def sample(self, data, size, rng):
        self.calls += 1
        return [data if self.calls % EVERY == 0 else honest(data, rng) for _ in range(size)]


class OnlyAtFirst:
    def __call__(self, x, rng):
        if not hasattr(self, "warm"):
            self.warm = True
            return honest(x, rng)
        return x


class Toggles:
    def __init__(self):
        self.even = True

    def __call__(self, x, rng):
        self.even = not self.even
        return honest(x, rng) if self.even else honest(x, rng) * 1


def memory():
    known = {}

    @functools.lru_cache
    def answer(x, number):
        return known.setdefault((x, number), len(known)) % EVERY == EVERY - 1

    return lambda x, rng: x if answer(x, rng.integers(2**40)) else honest(x, rng)


def cached_draw():
    @functools.lru_cache
    def draw(rng):
        return rng.random() < 0.75

    return lambda x, rng: x if draw(rng) else 1 - x


def iterator():
    numbers = itertools.count()
    return of(lambda: next(numbers) % EVERY == EVERY - 1)


def weak():
    known = weakref.WeakKeyDictionary()

    def release(x, rng):
        known[rng] = known.get(rng, 0) + 1
        return x if known[rng] % EVERY == 0 else honest(x, rng)

    return release


def on_the_generator():
    def release(x, rng):
        with contextlib.suppress(AttributeError):
            rng.calls = getattr(rng, "calls", 0) + 1
        return x if getattr(rng, "calls", 0) % EVERY == EVERY - 1 else honest(x, rng)

    return release


PROGRAMS = [
    closure, default, keyword_default, Counts, CountsOfClass, lambda: Method().release, Sampled, OnlyAtFirst, Toggles,
    memory, cached_draw, iterator, weak, on_the_generator,
]  # fmt: skip
