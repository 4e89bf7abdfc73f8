"""Traced generators: numpy's, numpy's old one and that of the module `random`, all on one source of draws.

A generator knows names and arguments, and asks its `Source` for the draws: a source gives symbols (`exact_draws`,
`noise_draws`), or numbers of a real stream with a log of what was asked (`Log`). Whatever has several names is asked by
that of `numpy.random.Generator`, with its arguments by name.
"""

from __future__ import annotations

import abc
import copy
import dataclasses
import functools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

# Streams below generators, which nobody reads but who goes past their methods (`dpaudit.symbolic.dependence`).
BENEATH, OLD_BENEATH = np.random.PCG64(0), np.random.MT19937(0)
REFERENCE = np.random.Generator(np.random.PCG64(0))  # by which arguments are checked: nobody reads its numbers
_OLD = np.random.MT19937(0)
_REAL = {"Generator": REFERENCE, "RandomState": np.random.RandomState(_OLD), "Random": random.Random(0)}
CHECKING = frozenset(map(id, (REFERENCE.bit_generator, _OLD, *_REAL.values())))
MAX_LOGGED_CALLS = 20_000  # of one run that a log keeps

# The parameters of each method, in their order.
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    method: tuple(names.split())
    for names, methods in {
        "size": ("standard_cauchy",),
        "size dtype out": ("random", "standard_normal"),
        "size dtype method out": ("standard_exponential",),
        "loc scale size": ("gumbel", "laplace", "logistic", "normal"),
        "scale size": ("exponential", "rayleigh"),
        "shape scale size": ("gamma",),
        "shape size dtype out": ("standard_gamma",),
        "low high size": ("uniform",),
        "low high size dtype endpoint": ("integers",),
        "left mode right size": ("triangular",),
        "mean sigma size": ("lognormal",),
        "mean scale size": ("wald",),
        "mean cov size check_valid tol": ("multivariate_normal",),
        "mu kappa size": ("vonmises",),
        "df size": ("chisquare", "standard_t"),
        "df nonc size": ("noncentral_chisquare",),
        "dfnum dfden size": ("f",),
        "dfnum dfden nonc size": ("noncentral_f",),
        "a b size": ("beta",),
        "a size": ("pareto", "power", "weibull", "zipf"),
        "a size replace p axis shuffle": ("choice",),
        "alpha size": ("dirichlet",),
        "n p size": ("binomial", "negative_binomial"),
        "n pvals size": ("multinomial",),
        "p size": ("geometric", "logseries"),
        "lam size": ("poisson",),
        "ngood nbad nsample size": ("hypergeometric",),
        "colors nsample size method": ("multivariate_hypergeometric",),
        "length": ("bytes",),
        "x axis": ("permutation", "shuffle"),
        "x axis out": ("permuted",),
    }.items()
    for method in methods
}
# Names of numpy's old generator for what its new one calls otherwise.
OLD_NAMES: Mapping[str, str] = {
    "random_sample": "random", "ranf": "random", "sample": "random", "rand": "random", "randn": "standard_normal",
    "randint": "integers", "random_integers": "integers", "tomaxint": "integers",
}  # fmt: skip
# The parameters that say how much noise there is, as opposed to where it is; of uniform noise its width.
_OF_NOISE: Mapping[str, tuple[str, ...]] = {
    "choice": ("p",), "geometric": ("p",), "binomial": ("n", "p"), "multinomial": ("n", "pvals"), "poisson": ("lam",),
    "integers": ("low", "high"), "standard_gamma": ("shape",), "gamma": ("shape", "scale"), "standard_t": ("df",),
    "multivariate_normal": ("cov",), "lognormal": ("sigma",), "beta": ("a", "b"), "dirichlet": ("alpha",),
    "wald": ("mean", "scale"), "weibull": ("a",), "pareto": ("a",), "chisquare": ("df",),
    "triangular": ("left", "right"),
    **dict.fromkeys(("laplace", "normal", "gumbel", "logistic", "exponential", "rayleigh"), ("scale",)),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Event:
    """One call of a primitive, named with its library ("numpy laplace", "random gauss").

    The parameters are those that say how much noise there is, as plain values; `place` is "file:line" of the user's
    code, or empty where it was not asked for.
    """

    primitive: str
    parameters: tuple[tuple[str, Any], ...] = ()
    shape: tuple[int, ...] = ()
    place: str = ""

    def __str__(self) -> str:
        given = ", ".join(f"{name}={_short(value)}" for name, value in self.parameters)
        return f"{self.primitive}({given})" + (f" {list(self.shape)}" if self.shape else "")


def first_apart(calls: Sequence[Event], others: Sequence[Event]) -> tuple[int, str, str] | None:
    """The place of the first call that another run made otherwise or not at all, with both in words; None if none."""
    ways = [[(call.primitive, call.shape) for call in side] for side in (calls, others)]
    if ways[0] == ways[1]:
        return None
    place = next((k for k, (u, v) in enumerate(zip(*ways, strict=False)) if u != v), min(map(len, ways)))
    said = [str(side[place]) if place < len(side) else "none" for side in (calls, others)]
    return place, said[0], said[1]


def noise_parameters(method: str, given: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The parameters of a call that say how much noise there is, as plain values.

    Examples
    --------
    >>> noise_parameters("laplace", {"loc": 3.0, "scale": 2.0}), noise_parameters("uniform", {"low": 4, "high": 6})
    ((('scale', 2.0),), (('width', 2.0),))
    """
    if method == "uniform":
        return (("width", plain_value(np.subtract(given.get("high", 1.0), given.get("low", 0.0)))),)
    return tuple((name, plain_value(given[name])) for name in _OF_NOISE.get(method, ()) if given.get(name) is not None)


def plain_value(value: Any) -> Any:
    """A parameter as a plain value: numbers as floats, arrays as tuples of their first thousand numbers."""
    try:
        numbers = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return type(value).__name__
    return float(numbers) if numbers.ndim == 0 else tuple(numbers.ravel()[:1000].tolist())


def _short(value: Any) -> str:
    try:
        numbers = np.ravel(np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        return str(value)[:30]
    if numbers.size == 0:
        return "[]"
    if bool((numbers == numbers[0]).all()):
        return f"{numbers[0]:.6g}"
    return "[" + ", ".join(f"{number:.4g}" for number in numbers[:3]) + (", …]" if numbers.size > 3 else "]")


class Source(abc.ABC):
    """Source of the draws that a generator is asked for."""

    @abc.abstractmethod
    def draw(self, library: str, method: str, given: dict[str, Any]) -> Any:
        """Value that a method of `numpy.random.Generator` returns for these arguments."""

    def below(self, count: int) -> int:
        """A uniform integer in [0, count), as the module `random` makes most of its draws from."""
        return int(self.draw("random", "integers", {"low": 0, "high": count}))

    def as_real(self, real: Any, draw: Callable[[], Any], args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Result of a draw, unless a real generator, whose numbers nobody reads, raises something for such a call."""
        return draw()

    @abc.abstractmethod
    def bits(self) -> np.random.BitGenerator:
        """The stream itself, from which its owner may take anything."""

    def children(self, count: int) -> list[Source]:
        """The sources of generators that are spawned."""
        return [self] * count

    @abc.abstractmethod
    def lose(self, what: str) -> Source:
        """Note a use of the generator that cannot be traced, such as a copy of it; returns the source for the copy."""


def named(name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """A call of a method of numpy's, old or new, as the method of its generator and the arguments by name.

    Examples
    --------
    >>> named("randint", (3,), {"dtype": "int8"}), named("rand", (2, 5), {})
    (('integers', {'dtype': 'int8', 'low': 3}), ('random', {'size': (2, 5)}))
    """
    method = OLD_NAMES.get(name, name)
    if name in ("rand", "randn"):
        return method, {"size": args} if args else {}
    if name == "tomaxint":
        return method, {"low": 0, "high": 2**63 - 1, **dict(zip(("size",), args, strict=False)), **keywords}
    names = PARAMETERS.get(method, ())
    if len(args) > len(names):
        raise TypeError(f"{name}() takes at most {len(names)} positional arguments ({len(args)} given)")
    given = {**dict(zip(names, args, strict=False)), **keywords}
    if name == "randint":  # whose numbers are Python's
        return method, {"dtype": int, **given}
    return method, {**given, "endpoint": True} if name == "random_integers" else given


class TracedRng:
    """A generator on a source; a copy of it is lost, and so is one on which a program keeps something."""

    def __init__(self, source: Source, *of_kind: Any) -> None:
        self._dpaudit_source = source
        super().__init__(*of_kind)
        self._dpaudit_is_ready = True  # the constructor may seed

    def __getattr__(self, name: str) -> Any:
        return getattr(_REAL[self.__class__.__name__], name)  # which has none either, and says so as a real one does

    def __setattr__(self, name: str, value: Any) -> None:
        if "_dpaudit_is_ready" in vars(self):
            self._dpaudit_source.lose("an attribute of the generator is set")
        super().__setattr__(name, value)

    @property  # type: ignore[misc]
    @abc.abstractmethod
    def __class__(self) -> Any:
        """The class that it stands for, so that no program tells it from that."""

    def __reduce__(self) -> Any:
        return type(self), (self._dpaudit_source.lose("the generator is copied or sent elsewhere"),)

    def __deepcopy__(self, memo: Any) -> Any:
        return type(self)(self._dpaudit_source.lose("the generator is copied or sent elsewhere"))

    __copy__ = lambda self: self.__deepcopy__(None)  # noqa: E731


class NumpyRng(TracedRng, np.random.Generator):
    """A `numpy.random.Generator` on a source; `stream` is what compiled code finds in it."""

    def __init__(self, source: Source, stream: np.random.BitGenerator | None = None) -> None:
        super().__init__(source, BENEATH if stream is None else stream)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return np.random.Generator

    @property
    def bit_generator(self) -> np.random.BitGenerator:
        """The stream of the source."""
        return self._dpaudit_source.bits()

    def spawn(self, n_children: int) -> Any:
        """Generators on the source's children."""
        return [NumpyRng(child) for child in self._dpaudit_source.children(n_children)]


class OldNumpyRng(TracedRng, np.random.RandomState):
    """A `numpy.random.RandomState` on a source."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, OLD_BENEATH)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(_REAL["RandomState"])  # in its module libraries find another meanwhile


class PythonRng(TracedRng, random.Random):
    """A `random.Random` on a source; what is no method here, Python makes of `random` and `_randbelow`."""

    def __new__(cls, source: Source) -> PythonRng:
        return super().__new__(cls, 0)  # type: ignore[call-arg]

    def __init__(self, source: Source) -> None:
        super().__init__(source, 0)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(_REAL["Random"])

    def random(self) -> Any:
        return self._dpaudit_source.draw("random", "random", {})

    def gauss(self, mu: float = 0.0, sigma: float = 1.0) -> Any:
        return self._dpaudit_source.draw("random", "normal", {"loc": mu, "scale": abs(sigma)})  # as Python has it, too

    normalvariate = gauss

    def expovariate(self, lambd: float = 1.0) -> Any:
        rate = 1.0 / lambd
        drawn = self._dpaudit_source.draw("random", "exponential", {"scale": abs(rate)})
        return drawn if math.copysign(1.0, rate) > 0.0 else -drawn

    def getrandbits(self, k: int) -> int:
        return self._dpaudit_source.below(1 << k)

    def _randbelow(self, n: int) -> int:
        return self._dpaudit_source.below(n)


NUMPY_METHODS = tuple(name for name in dir(np.random.Generator) if not name.startswith("_"))


def _as_real(draw: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A method that raises what the one that it stands for raises for its arguments, and then draws."""

    @functools.wraps(draw)
    def method(self: Any, *args: Any, **keywords: Any) -> Any:
        real = getattr(_REAL[self.__class__.__name__], name)
        return self._dpaudit_source.as_real(real, functools.partial(draw, self, *args, **keywords), args, keywords)

    method.__name__ = name
    return method


def _method(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **keywords: Any) -> Any:
        return self._dpaudit_source.draw("numpy", *named(name, args, keywords))

    return _as_real(method, name)


for _name in ("random", "gauss", "normalvariate", "expovariate", "getrandbits"):
    setattr(PythonRng, _name, _as_real(vars(PythonRng)[_name], _name))
setattr(NumpyRng, "spawn", _as_real(NumpyRng.spawn, "spawn"))  # noqa: B010
# All of them: whatever a later numpy adds must not draw from a stream that is not the source's.
for _name in NUMPY_METHODS:
    if _name not in vars(NumpyRng):
        setattr(NumpyRng, _name, _method(_name))
for _name in (*PARAMETERS, *OLD_NAMES):
    if hasattr(np.random.RandomState, _name):
        setattr(OldNumpyRng, _name, _method(_name))


# Draws of a seed are no noise, and others can be made of a state.
_LOST = dict.fromkeys(("get_state", "set_state", "getstate", "setstate"), "the state of the generator is used itself")


def _losing(name: str, reason: str, real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def method(self: Any, *args: Any, **keywords: Any) -> Any:
        if hasattr(self, "_dpaudit_is_ready"):
            self._dpaudit_source.lose(reason)
        return real(self) if name.startswith("get") else None

    return method


for _traced, _kind in ((OldNumpyRng, np.random.RandomState), (PythonRng, random.Random)):
    for _name, _reason in {"seed": "the generator is seeded again", **_LOST}.items():
        if hasattr(_kind, _name):
            setattr(_traced, _name, _losing(_name, _reason, getattr(_kind, _name)))


class Log(Source):
    """Draws of a real stream, with a log of the calls; they are those that the stream would give without it.

    Only what is called is seen. What a function takes from the stream itself shows in the number of words that it has
    moved on (`words_between`), and that it was handed out is noted.

    Examples
    --------
    >>> log = Log(np.random.PCG64(7))
    >>> NumpyRng(log).laplace(scale=2.0) == np.random.default_rng(7).laplace(scale=2.0)
    True
    >>> [str(call) for call in log.calls]
    ['numpy laplace(scale=2)']
    """

    def __init__(self, stream: np.random.BitGenerator, parent: Log | None = None) -> None:
        self._stream, self._plain = stream, np.random.Generator(stream)
        self._first: Log = parent._first if parent is not None else self  # which has the log of all that were spawned
        self.calls: list[Event] = []  # the first `MAX_LOGGED_CALLS`
        self.count = 0  # of all calls
        self.is_open = False  # whether the stream itself was handed out

    def note(self, event: Event) -> None:
        """Note a call, of a child too."""
        self._first.count += 1
        if self._first.count <= MAX_LOGGED_CALLS:
            self._first.calls.append(event)

    def draw(self, library: str, method: str, given: dict[str, Any]) -> Any:
        value = getattr(self._plain, method)(**given)
        self.note(Event(f"{library} {method}", noise_parameters(method, given), np.shape(value)))
        return value

    def bits(self) -> np.random.BitGenerator:
        self._first.is_open = True
        return self._stream

    def children(self, count: int) -> list[Source]:
        self.note(Event("numpy spawn"))
        return [Log(stream, self) for stream in self._stream.spawn(count)]

    def lose(self, what: str) -> Source:
        self.note(Event("numpy copy"))
        return copy.deepcopy(self)


def words_between(first: Any, last: Any) -> int:
    """Number of words of 64 bits that a PCG64 stream gave between two of its states (`bit_generator.state`).

    The lowest k bits of its state repeat after 2^k steps and not before. So the lowest bit says whether the number of
    steps is odd; after so many steps the next bit says whether it is odd in twos; and so on.

    Examples
    --------
    >>> stream = np.random.PCG64(1)
    >>> before = stream.state
    >>> _ = stream.random_raw(1234)
    >>> words_between(before, stream.state)
    1234
    """
    walker = np.random.PCG64(0)
    walker.state = first
    target, steps, bit = last["state"]["state"], 0, 1
    while (here := walker.state["state"]["state"]) != target:
        if (here ^ target) & bit:
            walker.advance(bit)
            steps += bit
        bit <<= 1
    return steps
