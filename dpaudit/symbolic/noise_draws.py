"""Generators that write what is asked of them on a tape, with the faces of numpy's and of the module `random`.

Noise of a known law is given as a symbol (`dpaudit.symbolic.noisy_numbers`), a choice among few outcomes as a decision;
anything else is drawn, noted, and marks the run as opaque. Values come from the tape's streams, event by event, so that
x and x_prime see the same noise whatever else they draw.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpaudit.symbolic.faces import PARAMETERS
from dpaudit.symbolic.laws import Law
from dpaudit.symbolic.noisy_numbers import Noisy, NoisyArray
from dpaudit.symbolic.tape import MOST_NOISES, Tape

# As they are outside of recorded runs.
_MT19937, _PCG64, _RANDOM_STATE = np.random.MT19937, np.random.PCG64, np.random.RandomState
MOST_OUTCOMES = 64  # of a choice that is a decision
MOST_CHOICES = 8  # choices in one call that are decisions


class _Settings:
    """The parameters of a location-scale law: family, location and scale."""

    def __init__(self, family: str, read: Callable[[dict[str, Any]], tuple[Any, Any]], names: tuple[str, ...]) -> None:
        self.family, self.read, self.names = family, read, names


def _loc_scale(given: dict[str, Any]) -> tuple[Any, Any]:
    return given.get("loc", 0.0), given.get("scale", 1.0)


TRACKED = {
    "laplace": _Settings("laplace", _loc_scale, ("scale",)),
    "normal": _Settings("normal", _loc_scale, ("scale",)),
    "gumbel": _Settings("gumbel", _loc_scale, ("scale",)),
    "logistic": _Settings("logistic", _loc_scale, ("scale",)),
    "standard_normal": _Settings("normal", lambda given: (0.0, 1.0), ()),
    "standard_cauchy": _Settings("cauchy", lambda given: (0.0, 1.0), ()),
    "standard_exponential": _Settings("exponential", lambda given: (0.0, 1.0), ()),
    "exponential": _Settings("exponential", lambda given: (0.0, given.get("scale", 1.0)), ("scale",)),
    "random": _Settings("uniform", lambda given: (0.0, 1.0), ()),
    "geometric": _Settings("geometric", lambda given: (0.0, given["p"]), ("p",)),
    "uniform": _Settings(
        "uniform",
        lambda given: (given.get("low", 0.0), np.subtract(given.get("high", 1.0), given.get("low", 0.0))),
        ("low", "high"),
    ),
}
# What numpy's generator, its old face and the module call the same thing.
SAME = {
    "random_sample": "random", "ranf": "random", "sample": "random", "rand": "random", "randn": "standard_normal",
    "randint": "integers", "random_integers": "integers",
}  # fmt: skip
OLD_ONLY = ("random_sample", "ranf", "sample", "rand", "randn", "randint", "tomaxint")


def tracked(tape: Tape, library: str, method: str, given: dict[str, Any], value: Any) -> Any:
    """Symbols for the numbers that a method has given, with their law; the numbers themselves in a plain run."""
    settings = TRACKED[method]
    location, scale = settings.read(given)
    value_array = np.asarray(value, dtype=float)
    shown = [(name, _kept(given[name])) for name in settings.names if name in given]
    event = tape.add(f"{library} {method}", shown, value_array.shape, not tape.is_plain)
    if tape.is_plain and tape.replayed is None:
        return value
    if value_array.size > MOST_NOISES:
        tape.mark_opaque()
        return value
    locations = np.broadcast_to(np.asarray(location, dtype=float), value_array.shape).ravel().tolist()
    scales = np.broadcast_to(np.asarray(scale, dtype=float), value_array.shape).ravel().tolist()
    if tape.replayed is not None:
        return _replayed(tape.replayed, event, value, locations, scales)
    symbols = np.empty(value_array.size, dtype=object)
    for k, (number, center, width) in enumerate(zip(value_array.ravel().tolist(), locations, scales, strict=True)):
        if not _has_noise(center, width):
            symbols[k] = number  # no noise
            continue
        index = tape.new_noise(Law(settings.family, width), number - center, event)
        symbols[k] = Noisy(tape, center, {index: 1.0})
    if value_array.ndim == 0:
        return symbols[0]
    return symbols.reshape(value_array.shape).view(NoisyArray)


def _has_noise(center: float, width: float) -> bool:
    return width > 0.0 and math.isfinite(width) and math.isfinite(center)


def _replayed(tape: Tape, event: int, value: Any, locations: list[float], scales: list[float]) -> Any:
    """The numbers that an event had in another run, in the form of `value`."""
    noises = iter([noise.value for noise in tape.noises if noise.event == event])
    flat = np.array(value, dtype=float).ravel()
    for k, (center, width) in enumerate(zip(locations, scales, strict=True)):
        if _has_noise(center, width):
            flat[k] = center + next(noises, math.nan)
    shaped = flat.reshape(np.shape(value))
    return shaped if isinstance(value, np.ndarray) else type(value)(shaped)


def chosen(tape: Tape, library: str, method: str, chances: Sequence[float], stream: np.random.Generator) -> int:
    """One of a few outcomes with given probabilities: a decision."""
    actual = int(stream.choice(len(chances), p=np.asarray(chances) / math.fsum(chances)))
    event = tape.add(f"{library} {method}", [("p", _kept(chances))], (), True)
    if tape.is_plain:
        return actual if tape.replayed is None else tape.replayed.outcomes.get(event, actual)
    tape.outcomes[event] = tape.choose([float(chance) for chance in chances], actual, f"{library} {method}")
    return tape.outcomes[event]


def ask(tape: Tape, library: str, name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """What a method of a generator of numpy gives, noted on the tape."""
    if any(isinstance(item, Noisy | NoisyArray) for item in (*args, *keywords.values())):
        from dpaudit.symbolic.noisy_numbers import _plain

        args = tuple(_plain(item) for item in args)
        keywords = {key: _plain(item) for key, item in keywords.items()}
    method = SAME.get(name, name)
    if name in ("rand", "randn"):
        args, keywords = ((), {"size": tuple(args)} if args else {})
    names = PARAMETERS.get(method, ())
    if name in ("randint", "random_integers"):
        names = ("low", "high", "size", "dtype")
    given = {**dict(zip(names, args, strict=False)), **keywords}
    if name == "random_integers":
        given["endpoint"] = True
    if method in TRACKED and given.get("out") is None:
        stream = tape.stream()
        return tracked(tape, library, method, given, getattr(stream, method)(**given))
    found = _decided(tape, library, method, given)
    if found is not None:
        return found[0]
    shown = [(key, _kept(value)) for key, value in given.items() if key in _SHOWN.get(method, ())]
    return tape.other(f"{library} {method}", shown, lambda stream: _draw(stream, method, given))


_SHOWN = {
    "choice": ("p",), "binomial": ("n", "p"), "multinomial": ("n", "pvals"), "poisson": ("lam",),
    "gamma": ("shape", "scale"), "standard_gamma": ("shape",), "multivariate_normal": ("cov",),
    "integers": ("low", "high"), "standard_t": ("df",), "lognormal": ("sigma",), "rayleigh": ("scale",),
    "beta": ("a", "b"), "dirichlet": ("alpha",),
    "wald": ("mean", "scale"), "weibull": ("a",), "pareto": ("a",), "chisquare": ("df",),
    "triangular": ("left", "right"),
}  # fmt: skip


def _draw(stream: np.random.Generator, method: str, given: dict[str, Any]) -> Any:
    if method == "shuffle":
        stream.shuffle(given.pop("x"), **given)
        return None
    return getattr(stream, method)(**given)


def _decided(tape: Tape, library: str, method: str, given: dict[str, Any]) -> tuple[Any] | None:
    """A choice among few outcomes, as a tuple of one; None where it is another kind of draw, or too large."""
    size = given.get("size")
    shape = () if size is None else tuple(np.atleast_1d(size).tolist())
    count = math.prod(shape)
    if not 1 <= count <= MOST_CHOICES:
        return None
    if method == "choice" and given.get("axis", 0) == 0 and (count == 1 or given.get("replace", True)):
        options: Any = given.get("a")
        is_count = isinstance(options, int | np.integer)
        length = int(options) if is_count else len(options) if np.ndim(options) == 1 else 0
        chances = given.get("p")
        listed = [1.0 / length] * length if chances is None and length else np.asarray(chances, dtype=float).tolist()
        if not _are_chances(listed, length):
            return None

        def outcome(k: int) -> Any:
            return k if is_count else np.asarray(options)[k]

    elif method == "integers":
        low: Any = given.get("low", 0)
        high: Any = given.get("high")
        low, high = (0, low) if high is None else (low, high)
        if np.ndim(low) or np.ndim(high):
            return None
        length = int(high) - int(low) + bool(given.get("endpoint", False))
        listed = [1.0 / length] * length if 1 <= length <= MOST_OUTCOMES else []

        def outcome(k: int) -> Any:
            return int(low) + k

    elif method == "binomial" and np.ndim(given["n"]) == np.ndim(given["p"]) == 0 and given["n"] == 1:
        listed = [1.0 - float(given["p"]), float(given["p"])]

        def outcome(k: int) -> Any:
            return k

    else:
        return None
    if not _are_chances(listed, len(listed)):
        return None
    found = [outcome(chosen(tape, library, method, listed, tape.stream())) for _ in range(count)]
    return (found[0] if size is None else np.array(found).reshape(shape),)


def _are_chances(listed: Any, length: int) -> bool:
    if not isinstance(listed, list) or not 1 <= length <= MOST_OUTCOMES or len(listed) != length:
        return False
    return all(0.0 <= chance <= 1.0 for chance in listed) and abs(math.fsum(listed) - 1.0) < 1e-8


def _kept(value: Any) -> Any:
    """A parameter as a plain value: numbers as floats, arrays as tuples of their shape and numbers."""
    try:
        numbers = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return type(value).__name__
    return float(numbers) if numbers.ndim == 0 else tuple(numbers.ravel()[:1000].tolist())


class TapeGenerator(np.random.Generator):
    """A `numpy.random.Generator` whose methods write on a tape."""

    def __init__(self, tape: Tape) -> None:
        super().__init__(_PCG64(0))
        self._tape = tape

    @property
    def bit_generator(self) -> np.random.BitGenerator:
        """A stream of numbers that cannot be followed."""
        # 128 bits, as the system's entropy has: see `dpaudit.running.streams.stream`.
        seed = self._tape.other("numpy bit_generator", [], lambda stream: int.from_bytes(stream.bytes(16), "little"))
        return _PCG64(seed)

    def spawn(self, n_children: int) -> Any:
        """Generators on the same tape."""
        return [TapeGenerator(self._tape) for _ in range(n_children)]

    def __reduce__(self) -> Any:
        return TapeGenerator, (self._tape,)

    def __deepcopy__(self, memo: Any) -> Any:
        self._tape.mark_opaque()  # a copy gives the same numbers again, which the tape would not
        return TapeGenerator(self._tape)

    __copy__ = lambda self: self.__deepcopy__(None)  # noqa: E731


def seeded_state(seed: Any) -> np.random.RandomState:
    """`numpy.random.RandomState(seed)`, made without asking the system for entropy first."""
    stream = _MT19937(0)
    stream._legacy_seeding(seed)
    return _RANDOM_STATE(stream)


class TapeRandomState(np.random.RandomState):
    """A `numpy.random.RandomState` whose methods write on a tape."""

    def __init__(self, tape: Tape) -> None:
        super().__init__(_MT19937(0))
        self._tape = tape

    def __reduce__(self) -> Any:
        return TapeRandomState, (self._tape,)


class TapeRandom(random.Random):
    """A `random.Random` whose methods write on a tape."""

    def __init__(self, tape: Tape) -> None:
        super().__init__(0)
        self._tape = tape

    def __reduce__(self) -> Any:
        return TapeRandom, (self._tape,)

    def random(self) -> Any:
        """A uniform number."""
        return ask(self._tape, "random", "random", (), {})

    def uniform(self, a: float, b: float) -> Any:
        """A uniform number between a and b."""
        return ask(self._tape, "random", "uniform", (min(a, b), max(a, b)), {})

    def gauss(self, mu: float = 0.0, sigma: float = 1.0) -> Any:
        """A normal number."""
        return ask(self._tape, "random", "normal", (mu, sigma), {})

    normalvariate = gauss

    def expovariate(self, lambd: float = 1.0) -> Any:
        """An exponential number."""
        return ask(self._tape, "random", "exponential", (1.0 / lambd,), {})

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> Any:
        """One of range(start, stop, step)."""
        options = range(start) if stop is None else range(start, stop, step)
        return options[int(ask(self._tape, "random", "integers", (len(options),), {}))]

    def randint(self, a: int, b: int) -> Any:
        """A whole number from a to b."""
        return self.randrange(a, b + 1)

    def choice(self, seq: Any) -> Any:
        """One of a sequence."""
        return seq[int(ask(self._tape, "random", "integers", (len(seq),), {}))]

    def getrandbits(self, k: int) -> int:
        """A whole number of k bits."""
        if k <= 6:
            return int(ask(self._tape, "random", "integers", (1 << k,), {}))
        return int(
            self._tape.other("random getrandbits", [], lambda s: int.from_bytes(s.bytes((k + 7) // 8)) >> (-k % 8))
        )

    def _own(self, name: str, *args: Any, **keywords: Any) -> Any:
        """A method of the class on numbers that cannot be followed."""
        seed = self._tape.other(f"random {name}", [], lambda stream: int(stream.integers(2**63)))
        return getattr(random.Random(seed), name)(*args, **keywords)


PYTHON_TRACKED = (
    "random",
    "uniform",
    "gauss",
    "normalvariate",
    "expovariate",
    "randrange",
    "randint",
    "choice",
    "getrandbits",
)
PYTHON_OTHERS = (
    "betavariate", "choices", "gammavariate", "lognormvariate", "paretovariate", "randbytes", "sample", "shuffle",
    "triangular", "vonmisesvariate", "weibullvariate", "binomialvariate",
)  # fmt: skip


def _numpy_method(name: str, library: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **keywords: Any) -> Any:
        return ask(self._tape, library, name, args, keywords)

    method.__name__ = name
    return method


def _python_method(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **keywords: Any) -> Any:
        return self._own(name, *args, **keywords)

    method.__name__ = name
    return method


for _name in PARAMETERS:
    if hasattr(np.random.Generator, _name):
        setattr(TapeGenerator, _name, _numpy_method(_name, "numpy"))
for _name in (*PARAMETERS, *OLD_ONLY):
    if hasattr(np.random.RandomState, _name):
        setattr(TapeRandomState, _name, _numpy_method(_name, "numpy"))
for _name in PYTHON_OTHERS:
    if hasattr(random.Random, _name):
        setattr(TapeRandom, _name, _python_method(_name))
