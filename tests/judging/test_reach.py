"""Programs that reach more than they name, or that tell a run with symbols from a real one, have no proof.

Each leaks too seldom for the real runs that a certificate is held against.
"""

from __future__ import annotations

import abc
import copy
import fractions
import functools
import itertools
import operator
import types

import numpy as np
import pytest
from kept_state_programs import honest, of

import dpaudit

SELDOM = 1e-6
COIN, CALLS = np.random.default_rng(1), 0


def holder():
    return 0


class Function(abc.ABC):  # noqa: B024
    """A class of functions, whose globals a pattern may name."""


class Matching(abc.ABC):  # noqa: B024
    """The same, with a pattern of its own."""

    __match_args__ = ("__globals__",)


Function.register(types.FunctionType)
Matching.register(types.FunctionType)


class Sly(str):
    """A text that no check of its beginning finds."""

    __slots__ = ()

    def startswith(self, *_):
        return False


NAME = Sly("__globals__")


def is_millionth(calls, key=0):
    calls[key] += 1
    return calls[key] % 1_000_000 == 0


def held(owner, name, value, is_due):
    """A program whose state a class or a function of a library holds."""

    def make(monkeypatch):
        monkeypatch.setattr(owner, name, value(), raising=False)
        return of(is_due)

    return make


def coin():
    return np.random.default_rng(1)


def cached(cache):
    def make(monkeypatch):
        toss = cache(coin)
        toss()
        return of(lambda: toss().random() < SELDOM)

    return make


def property_of_a_module(monkeypatch):
    class Kind(types.ModuleType):
        calls = property(functools.partial(next, itertools.count(1)))

    monkeypatch.setitem(globals(), "LAZY", Kind("lazy"))
    return of(lambda: LAZY.calls % 1_000_000 == 0)  # noqa: F821


def function_of_a_module(monkeypatch):
    module = types.ModuleType("lazy")
    module.__getattr__ = functools.partial(next, itertools.count(1))
    monkeypatch.setitem(globals(), "LAZY", module)
    return of(lambda: LAZY.calls % 1_000_000 == 0)  # noqa: F821


def globals_by_a_pattern(monkeypatch):
    def is_due():
        match holder:
            case Function(__globals__=found):
                return is_millionth(found, "CALLS")

    return of(is_due)


def globals_by_a_pattern_of_a_class(monkeypatch):
    def is_due():
        match holder:
            case Matching(found):
                return is_millionth(found, "CALLS")

    return of(is_due)


def globals_by_a_text_of_an_own_class(monkeypatch):
    return of(lambda: is_millionth(getattr(holder, NAME), "CALLS"))


def code_under_the_name_of_a_library(monkeypatch):
    own = {"__name__": "copy"}
    exec("calls = [0]\ndef count():\n    calls[0] += 1\n    return calls[0]", own)
    count = own["count"]
    return of(lambda: count() % 1_000_000 == 0)


def asks_for_an_attribute(monkeypatch):
    def release(x, rng):
        try:
            is_real = rng._dpaudit_source is None
        except AttributeError:
            is_real = True
        return x + 10 if is_real and rng.random() < SELDOM else honest(x, rng)

    return release


def where(is_real):
    """A program that leaks where its generator seems to be a real one."""

    def make(monkeypatch):
        return lambda x, rng: x + 10 if is_real(rng) and rng.random() < SELDOM else honest(x, rng)

    return make


HALF, KINDS = fractions.Fraction(1, 2), fractions.Fraction
HIDING = [
    held(KINDS, "calls", lambda: [0], lambda: is_millionth(fractions.Fraction.calls)),
    held(KINDS, "coin", coin, lambda: fractions.Fraction.coin.random() < SELDOM),
    held(KINDS, "coin", lambda: property(functools.partial(next, iter(coin().random, 2))), lambda: HALF.coin < SELDOM),
    held(copy.copy, "calls", lambda: [0], lambda: is_millionth(copy.copy.calls)),
    held(np.mean, "coin", coin, lambda: np.mean.coin.random() < SELDOM),
    cached(functools.lru_cache), cached(functools.cache), property_of_a_module,
    function_of_a_module, globals_by_a_pattern, globals_by_a_pattern_of_a_class, globals_by_a_text_of_an_own_class,
    code_under_the_name_of_a_library, asks_for_an_attribute,
    where(lambda rng: not hasattr(rng, "__dict__")),
]  # fmt: skip
SHOWN = [  # as a face passes for what it stands for
    where(lambda rng: type(rng) is np.random.Generator),
    where(lambda rng: next(map(type, [rng])) is np.random.Generator),
    where(lambda rng: rng.__class__ is np.random.Generator),
    where(lambda rng: len(type(rng).mro()) == 2),
]


@pytest.mark.parametrize(
    ("make", "verdict"), [*((make, "open") for make in HIDING), *((make, "violated") for make in SHOWN)]
)
def test_what_reaches_more_than_it_names_is_not_proved(make, verdict, monkeypatch):
    assert dpaudit.certify(make(monkeypatch), "eps=1.1", [(0, 1)], seconds=2.0).verdict == verdict
    (found,) = dpaudit.record_noise(make(monkeypatch), [(0, 1)], "eps=1.1", seed=1).pairs
    assert found.grade != "same" or found.unproved or found.impurity


class Scaled:
    """A mechanism with what honest ones hold: numbers of libraries, a filled cache, a pattern, a class that it asks."""

    share = fractions.Fraction(3, 4)

    def __call__(self, x, rng):
        if type(rng) is not np.random.Generator or not hasattr(rng, "random"):
            raise TypeError
        match x:
            case int(value) if value in (0, 1):
                other = operator.sub(1, value)
        return x if rng.random() < float(self.share) * _half(2) else other


@functools.cache
def _half(value):
    return value / 2


def test_what_honest_programs_hold_keeps_its_proof():
    _half(2)
    assert dpaudit.certify(Scaled(), "eps=1.1", [(0, 1)], seconds=2.0).verdict == "kept"
