"""Interception of a program's sources of randomness: all are led to a tape while a recorded run goes on.

Replaced for the time of a run, and put back whatever happens: the functions of `numpy.random` and of `random`,
`default_rng`, `RandomState`, `random.Random` and `SystemRandom`, `secrets`, `os.urandom`, `rvs` of scipy's common laws;
mechanisms of OpenDP, diffprivlib and python-dp and the generators of torch, jax and tensorflow, where they are
imported. `numpy.asarray` and other functions that make arrays keep symbols as they are.

Python's profiling hook sees what goes past these: compiled code that is asked for the system's random numbers by a
name that a library took, devices, sockets and processes that are read, clocks. All that ends what can be proved.

A generator that is made from a fixed seed is a real one: its numbers are constants, and are seen as such. Functions
that a module of the user's took by name (`from random import gauss`) before the run are replaced in that module too;
those of `numpy.random` in modules of libraries as well.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import io
import math
import os
import random
import secrets
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from dpaudit.symbolic import libraries
from dpaudit.symbolic.choices import is_own_code
from dpaudit.symbolic.conversions import ARRAYS, keeping_symbols
from dpaudit.symbolic.generators import OLD_NAMES, PARAMETERS, PYTHON_METHODS, NumpyRng, OldNumpyRng, PythonRng
from dpaudit.symbolic.growing import FUNCTIONS
from dpaudit.symbolic.noise_draws import NoiseDraws, seeded_state
from dpaudit.symbolic.noisy_numbers import following
from dpaudit.symbolic.operations import StandIn, StandInClass
from dpaudit.symbolic.seeds import HandedSeed
from dpaudit.symbolic.tape import Tape, line_of_call
from dpaudit.symbolic.watching import OPENING, SYSTEM, is_device, watched

_REAL_DEFAULT_RNG, _REAL_STATE, _REAL_RANDOM = np.random.default_rng, np.random.RandomState, random.Random
_REAL_SEQUENCE = np.random.SeedSequence
STREAMS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64", "SeedSequence")
_REAL_OPEN, _REAL_OS_OPEN = OPENING
STATES = ("get_state", "set_state", "getstate", "setstate")
OF_CLASSES = ("floor", "ceil", "trunc")  # which `math` asks a number for
_INHERITED = object()
Replaced = tuple[Any, str, Any]  # owner, name, and what stands there meanwhile


@contextlib.contextmanager
def recorded(tape: Tape) -> Iterator[NumpyRng]:
    """While a run goes on: gives the generator to be passed to the program."""
    changed: list[Replaced] = []
    instead: dict[int, tuple[Any, Any]] = {}

    def replace(owner: Any, name: str, value: Any) -> None:
        if not hasattr(owner, name):
            return
        old = getattr(owner, name)
        if isinstance(owner, types.ModuleType) and not issubclass(type(value), StandIn | StandInClass):
            value = StandIn(old, value)
        is_own = name in vars(owner)
        try:
            setattr(owner, name, value)
        except (AttributeError, TypeError):  # of a compiled class that cannot be changed
            return
        changed.append((owner, name, old if is_own else _INHERITED))
        instead[id(old)] = (old, value)

    try:
        for owner, name, value in (
            *_of_python(tape),
            *_of_numpy(tape),
            *_of_files(tape),
            *libraries.replacements(tape),
        ):
            replace(owner, name, value)
        for owner, name, value in list(_taken_by_name(instead)):
            replace(owner, name, value)
        with watched(tape, reads=True):
            yield NumpyRng(NoiseDraws(tape))
    finally:
        for owner, name, old in reversed(changed):
            delattr(owner, name) if old is _INHERITED else setattr(owner, name, old)


def _of_files(tape: Tape) -> Iterator[Replaced]:
    """Functions that open files: to open a device is noted."""

    def noting(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(file: Any, *args: Any, **keywords: Any) -> Any:
            if is_device(file):
                tape.mark_unseen(f"the device {file!r} is opened")
            return real(file, *args, **keywords)

        return call

    opened = noting(_REAL_OPEN)
    yield builtins, "open", opened
    yield io, "open", opened
    yield os, "open", noting(_REAL_OS_OPEN)


def _taken_by_name(instead: dict[int, tuple[Any, Any]]) -> Iterator[Replaced]:
    """Functions that modules have taken by name, alone or with arguments (`functools.partial`).

    Modules of libraries keep all but the functions of `numpy.random`: others, as `asarray`, would slow them down.
    """
    count = len(sys.modules)
    if _SCANNED.get("modules") != count:  # what is replaced is always the same, so that only new modules matter
        found = []
        for key, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            is_own = isinstance(file, str) and is_own_code(file)
            if is_own or key.partition(".")[0] not in ("numpy", "dpaudit"):
                for name, value in list(getattr(module, "__dict__", {}).items()):
                    function = value.func if type(value) is functools.partial else value
                    is_taken = id(function) in (instead if is_own else _SCANNED["random"])
                    found += [(module, name, id(function))] if is_taken else []
        _SCANNED.update(modules=count, taken=found)
    for module, name, number in _SCANNED["taken"]:
        old, value = instead.get(number, (_SCANNED, None))
        taken = getattr(module, name, None)
        if taken is old:
            yield module, name, value
        elif type(taken) is functools.partial and taken.func is old:
            yield module, name, functools.partial(value, *taken.args, **taken.keywords)


# What was found when modules were looked through last, and the functions of `numpy.random`.
_SCANNED: dict[str, Any] = {"random": {id(value) for value in vars(np.random).values() if callable(value)}}


def _standing_for(real: type, make: Callable[..., Any]) -> type:
    kind = StandInClass(real.__name__, (), {"__new__": lambda cls, *args, **keywords: make(*args, **keywords)})
    kind.plain = real
    return kind


def _module(tape: Tape, owner: Any, names: Iterable[str], rng: Any, real: Callable[[Any], Any]) -> Iterator[Replaced]:
    """The functions of a module that has a generator of its own, which a seed makes a real one."""
    fixed: list[Any] = []  # the generator of the seed that was given

    def function(name: str) -> Callable[..., Any]:
        def call(*args: Any, **keywords: Any) -> Any:
            return getattr(fixed[-1] if fixed else rng, name)(*args, **keywords)

        return call

    def seed_all(seed: Any = None, version: int = 2) -> None:
        fixed[:] = [] if _is_random(tape, seed) else [real(seed)]

    for name in (*names, *STATES):  # a state that is read or set loses the draws: they come again, or go on as before
        yield owner, name, function(name)
    yield owner, "seed", seed_all


def _of_numpy(tape: Tape) -> Iterator[Replaced]:
    drawn = NoiseDraws(tape)

    def default_rng(seed: Any = None) -> Any:
        if isinstance(seed, np.random.Generator):
            return seed
        return NumpyRng(drawn) if _is_random(tape, seed) else _REAL_DEFAULT_RNG(seed)

    def state(seed: Any = None) -> Any:
        return OldNumpyRng(drawn) if _is_random(tape, seed) else seeded_state(seed)

    def stream(real: Any) -> Callable[..., Any]:
        def make(*args: Any, **keywords: Any) -> Any:
            # Of the system's entropy, which compiled code asks for itself; or of the seed, in a way that is not known.
            if not args or args[0] is None or tape.handed:
                tape.mark_opaque()
            return real(*args, **keywords)

        return make

    yield from _module(tape, np.random, (*PARAMETERS, *OLD_NAMES), OldNumpyRng(drawn), seeded_state)
    yield np.random, "default_rng", default_rng
    yield np.random, "RandomState", _standing_for(_REAL_STATE, state)
    for name in STREAMS:
        real = getattr(np.random, name)
        yield np.random, name, _standing_for(real, stream(real))
    yield from ((np, name, keeping_symbols(name)) for name in ARRAYS)


def _is_random(tape: Tape, seed: Any) -> bool:
    """Tell whether a generator from this seed is random: no seed, the one handed in, or one made of entropy."""
    if seed is None or tape.has_entropy or isinstance(seed, HandedSeed):
        return True
    is_stream = isinstance(seed, _REAL_SEQUENCE | np.random.BitGenerator)
    # Validity: what is made of explicit numbers may be made of the seed. A stream is of unknown origin: its numbers are
    # drawn as they are, and must repeat.
    if tape.handed or is_stream:
        tape.mark_opaque()
    if isinstance(seed, int | np.integer) and int(seed) in tape.handed:
        return True
    if not is_stream:
        tape.seeds.append(str(seed))
        tape.fixed_seeds.append(line_of_call())
    return False


def _of_python(tape: Tape) -> Iterator[Replaced]:
    generator = PythonRng(NoiseDraws(tape))

    def make(seed: Any = None) -> Any:
        return PythonRng(NoiseDraws(tape)) if _is_random(tape, seed) else _REAL_RANDOM(seed)

    def entropy(name: str, read: Callable[[bytes], Any]) -> Callable[..., Any]:
        """Random bytes of the system, as something else."""

        def call(count: int | None = None, *_: Any) -> Any:
            tape.has_entropy = True
            tape.mark_unseen(SYSTEM)
            size = 32 if count is None else count
            return tape.other(name, [], lambda stream: read(stream.bytes(size)))

        return call

    yield from _module(tape, random, PYTHON_METHODS, generator, _REAL_RANDOM)
    yield from ((math, name, following(getattr(math, name), name)) for name in FUNCTIONS if name not in OF_CLASSES)
    yield random, "Random", _standing_for(_REAL_RANDOM, make)
    system = _standing_for(random.SystemRandom, lambda *_: generator)
    yield from (
        (random, "SystemRandom", system),
        (secrets, "SystemRandom", system),
        (secrets, "choice", generator.choice),
        (secrets, "randbelow", generator.randrange),
        (secrets, "token_bytes", entropy("secrets token_bytes", bytes)),
        (secrets, "token_hex", entropy("secrets token_hex", bytes.hex)),
        (os, "urandom", entropy("os urandom", bytes)),
        (os, "getrandom", entropy("os getrandom", bytes)),
        (random, "_urandom", entropy("os urandom", bytes)),  # of each `SystemRandom` that was made before
    )
    bits = entropy("secrets randbits", int.from_bytes)
    yield secrets, "randbits", lambda k: bits((k + 7) // 8) >> (-k % 8)
