"""Interception of a program's sources of randomness: all are led to a tape while a recorded run goes on.

The program's own code asks for each call (`dpaudit.symbolic.operations`). So a function of `numpy.random`, of `random`
or of `secrets` is known by what it is, whatever name, table or default the program has it by, and another is called in
its place (`Sources`): a program never sees what stands for them. Code that does not ask, as that of libraries, finds
functions in these modules, and under names that it has taken, which ask the run (`STANDING`). These, and functions of
other libraries (`dpaudit.symbolic.libraries`), are there for the time of a run.

Python's profiling hook sees what goes past these: the system's random numbers, devices, sockets and processes that are
read, clocks. All that ends what can be proved.

A generator that is made from a fixed seed is a real one: its numbers are constants, and are seen as such.
"""

from __future__ import annotations

import contextlib
import functools
import math
import random
import secrets
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpaudit.symbolic import libraries
from dpaudit.symbolic.choices import is_own_code
from dpaudit.symbolic.generators import NumpyRng, OldNumpyRng, PythonRng
from dpaudit.symbolic.growing import FUNCTIONS
from dpaudit.symbolic.noise_draws import NoiseDraws, seeded_state
from dpaudit.symbolic.noisy_numbers import following
from dpaudit.symbolic.seeds import HandedSeed
from dpaudit.symbolic.tape import Tape, line_of_call
from dpaudit.symbolic.values import REAL, real
from dpaudit.symbolic.watching import RUNNING, watched

NUMPYS: np.random.RandomState = np.random.mtrand._rand
PYTHONS: random.Random = random._inst
STREAMS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64", "SeedSequence")
DRAWING = (np.random, random, secrets, math)  # modules whose functions are led to a tape
NOT_LIBRARIES = sys.stdlib_module_names | {"numpy", "dpaudit"}  # which keep what they have taken by name
OF_CLASSES = ("floor", "ceil", "trunc")  # which `math` asks a number for


class Sources:
    """The functions that stand for those that draw, in one run."""

    def __init__(self, tape: Tape) -> None:
        self.tape, draws = tape, NoiseDraws(tape)
        python = PythonRng(draws)
        self.shared: dict[int, Any] = {id(NUMPYS): OldNumpyRng(draws), id(PYTHONS): python}
        self.system = python
        self.functions: dict[int, Callable[..., Any]] = {
            id(np.random.default_rng): self.default_rng,
            id(np.random.RandomState): self._maker(seeded_state, lambda: OldNumpyRng(draws)),
            id(random.Random): self._maker(random.Random, lambda: PythonRng(draws)),
            id(random.SystemRandom): lambda *_: python,
            id(secrets.randbelow): python.randrange,
            id(np.random.seed): functools.partial(self.seed, id(NUMPYS)),
            **dict.fromkeys(map(id, (np.random.ranf, np.random.sample)), self._sample),
            **{id(getattr(math, name)): following(getattr(math, name), name)
               for name in FUNCTIONS if name not in OF_CLASSES},
            **{id(getattr(np.random, name)): self._stream(getattr(np.random, name)) for name in STREAMS},
        }  # fmt: skip

    def instead(self, function: Any, owner: Any) -> Any:
        """The function in the place of one, which may be bound to its owner; None where there is none."""
        if type(owner) is real(random.SystemRandom):
            return getattr(self.system, function.__name__)
        if id(owner) not in self.shared:
            return self.functions.get(id(function))
        if function.__name__ == "seed":
            return functools.partial(self.seed, id(owner))
        # A state that is read or set loses the draws: they come again, or go on as before.
        return getattr(self.shared[id(owner)], function.__name__)

    def seed(self, owner: int, seed: Any = None, version: int = 2) -> None:
        """Seed a generator of the process: a seed makes it a real one."""
        make, draws = (seeded_state, OldNumpyRng) if owner == id(NUMPYS) else (real(random.Random), PythonRng)
        self.shared[owner] = draws(NoiseDraws(self.tape)) if self._is_random(seed) else make(seed)

    def _sample(self, size: Any = None) -> Any:
        return self.shared[id(NUMPYS)].random_sample(size)

    def default_rng(self, seed: Any = None) -> Any:
        """A generator of numpy's."""
        if isinstance(seed, np.random.Generator):
            return seed
        return NumpyRng(NoiseDraws(self.tape)) if self._is_random(seed) else real(np.random.default_rng)(seed)

    def _maker(self, plain: Callable[[Any], Any], traced: Callable[[], Any]) -> Callable[..., Any]:
        return lambda seed=None: traced() if self._is_random(seed) else plain(seed)

    def _stream(self, plain: Any) -> Callable[..., Any]:
        def make(*args: Any, **keywords: Any) -> Any:
            # Of the system's entropy, which compiled code asks for itself; or of the seed, in a way that is not known.
            if not args or args[0] is None or self.tape.handed:
                self.tape.mark_opaque()
            return plain(*args, **keywords)

        return make

    def _is_random(self, seed: Any) -> bool:
        """Tell whether a generator from this seed is random: it has none, or the one handed in."""
        tape = self.tape
        if seed is None or isinstance(seed, HandedSeed):
            return True
        is_stream = isinstance(seed, np.random.SeedSequence | np.random.BitGenerator)
        # Validity: what is made of explicit numbers may be made of the seed. A stream is of unknown origin: its numbers
        # are drawn as they are, and must repeat.
        if tape.handed or is_stream:
            tape.mark_opaque()
        if isinstance(seed, int | np.integer) and int(seed) in tape.handed:
            return True
        if not is_stream:
            tape.seeds.append(str(seed))
            tape.fixed_seeds.append(line_of_call())
        return False


def _instead(function: Any) -> Any:
    """The function that a library calls for one: that in its place in the run that goes on, or the function itself."""
    found = RUNNING[-1].instead(function, getattr(function, "__self__", None)) if RUNNING else None
    return function if found is None else found


class _Standing(type):
    """The class of a class that libraries find in the place of another, its base, and that has its instances."""

    def __call__(cls, /, *args: Any, **keywords: Any) -> Any:
        function = real(cls)
        return super().__call__(*args, **keywords) if function is cls else _instead(function)(*args, **keywords)

    def __instancecheck__(cls, value: Any) -> bool:
        return type.__instancecheck__(real(cls), value)

    def __subclasscheck__(cls, kind: Any) -> bool:
        return type.__subclasscheck__(real(cls), kind)


def _standing_for(function: Any) -> Any:
    if isinstance(function, type):
        return _Standing(function.__name__, (function,), {"__module__": function.__module__})

    @functools.wraps(function)
    def standing(*args: Any, **keywords: Any) -> Any:
        return _instead(function)(*args, **keywords)

    return standing


def _public() -> Iterator[tuple[types.ModuleType, str, Any]]:
    """Functions of the modules by which programs draw, with their modules and names there."""
    for module in DRAWING:
        yield from ((module, name, one) for name, one in vars(module).items() if name[0] != "_" and callable(one))


def _standing() -> dict[int, Any]:
    """Functions that libraries find in the place of those that a run has others for, by the numbers of these."""
    instead = Sources(Tape(0, 0)).instead
    found = [one for _, _, one in _public() if instead(one, getattr(one, "__self__", None)) is not None]
    drawing = {id(one): one for one in found}
    standing = {number: _standing_for(one) for number, one in drawing.items()}
    REAL.update((id(one), drawing[number]) for number, one in standing.items())
    return standing


STANDING = _standing()


@functools.lru_cache(maxsize=1)
def _places(*loaded: types.ModuleType) -> list[tuple[dict[str, Any], str]]:
    """Places of the functions that draw: in their own modules, and under names that libraries have taken."""
    found = [(vars(module), name) for module, name, one in _public() if id(one) in STANDING]
    functions = STANDING.keys() - set(map(id, vars(math).values()))
    for module in loaded:
        file = getattr(module, "__file__", None)
        is_own = isinstance(file, str) and is_own_code(file)
        if not is_own and str(module.__name__).partition(".")[0] not in NOT_LIBRARIES:
            found += [(vars(module), name) for name, one in list(vars(module).items()) if id(one) in functions]
    return found


@contextlib.contextmanager
def _followed_in_libraries() -> Iterator[None]:
    """While this goes on, libraries draw from the run."""
    loaded = [one for one in list(sys.modules.values()) if issubclass(type(one), types.ModuleType)]
    places = [(place, name, place.get(name)) for place, name in _places(*loaded)]
    held = [(place, name, one) for place, name, one in places if id(one) in STANDING]
    try:
        for place, name, one in held:
            place[name] = STANDING[id(one)]
        yield
    finally:
        for place, name, one in held:
            place[name] = one


@contextlib.contextmanager
def recorded(tape: Tape) -> Iterator[NumpyRng]:
    """While a run goes on: gives the generator to be passed to the program."""
    tape.instead = Sources(tape).instead
    with contextlib.ExitStack() as replaced:
        replaced.enter_context(_followed_in_libraries())
        for owner, name, function in libraries.replacements(tape):
            replaced.enter_context(_replaced(owner, name, function))
        with watched(tape, reads=True):
            yield NumpyRng(NoiseDraws(tape))


@contextlib.contextmanager
def _replaced(owner: Any, name: str, function: Callable[..., Any]) -> Iterator[None]:
    """While this goes on, a library has another function; one in a compiled class that cannot be changed stays."""
    before, is_own = getattr(owner, name), name in vars(owner)
    with contextlib.suppress(AttributeError, TypeError):
        setattr(owner, name, function)
    try:
        yield
    finally:
        if getattr(owner, name) is not before:
            setattr(owner, name, before) if is_own else delattr(owner, name)
