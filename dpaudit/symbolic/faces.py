"""A generator that records what is asked of it, and that can give fixed numbers in the place of noise.

`RecordingGenerator` is a `numpy.random.Generator` on the same stream as `dpaudit.running.streams.stream`: its values
are the generator's own, so that whatever runs on it does what it would do without the record. With `constant=True` it
takes the same numbers from its stream, but gives a fixed central value of each law instead (0 for centred noise): what
an output is then is its noise-free part, where the code does not choose its way by the noise.

Only what is called on the generator is seen. What a function takes from `bit_generator` itself shows in the number of
words that the stream has moved on, and that it was handed out is noted.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_CALLS = 20_000  # of one run, beyond which constant noise is taken to never end a loop; numbers that are kept

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
_DEFAULTS: Mapping[str, Any] = {"loc": 0.0, "scale": 1.0, "low": 0.0, "high": 1.0}
# A fixed value for each law that is usual as noise, as a function of its parameters: any value would do.
_CENTRES: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    **dict.fromkeys(
        ("laplace", "logistic", "normal", "standard_cauchy", "standard_normal", "standard_t"),
        lambda given: given["loc"],
    ),
    **dict.fromkeys(("exponential", "standard_exponential"), lambda given: given["scale"] * math.log(2.0)),
    **dict.fromkeys(("gamma", "standard_gamma"), lambda given: np.asarray(given["shape"]) * given["scale"]),
    **dict.fromkeys(("random", "uniform"), lambda given: 0.5 * (np.asarray(given["low"]) + np.asarray(given["high"]))),
    "gumbel": lambda given: given["loc"] - given["scale"] * math.log(math.log(2.0)),
}
# The laws of one shape, of which a multiple is of the same kind.
_FAMILIES = {
    **{name: name for name in ("exponential", "laplace", "logistic", "normal", "uniform")},
    "standard_normal": "normal",
    "standard_exponential": "exponential",
    "random": "uniform",
}
# What says how much noise there is, as opposed to where it is centred; of a geometric law that is its p.
_OF_NOISE = ("scale", "shape", "sigma", "cov", "df")


def _scale(method: str, given: Mapping[str, Any]) -> Any:
    return np.asarray(given["high"]) - np.asarray(given["low"]) if method == "uniform" else given["scale"]


class EndlessLoop(BaseException):
    """Constant noise was asked for too often in one run: a loop that waits for other noise never ends."""


@dataclasses.dataclass(frozen=True)
class Call:
    """One call on the generator."""

    method: str
    shape: tuple[int, ...]  # of what it returned
    noise: tuple[tuple[str, bytes], ...]  # the parameters that say how much there is, with the bits of their values
    parameters: str  # the same in words

    def __str__(self) -> str:
        return f"{self.method}({self.parameters})" + (f" of shape {self.shape}" if self.shape else "")


@dataclasses.dataclass
class Log:
    """What one run asked of its generator, and of those that it spawned."""

    calls: list[Call] = dataclasses.field(default_factory=list)  # the first `MOST_CALLS`
    count: int = 0  # all calls
    # The noise that was given, less its centre, its scale and its law, number by number; of laws with a scale.
    values: list[NDArray[np.float64]] = dataclasses.field(default_factory=list)
    scales: list[NDArray[np.float64]] = dataclasses.field(default_factory=list)
    families: list[str] = dataclasses.field(default_factory=list)
    is_constant: bool = True  # whether every value given so far had a fixed one that could stand for it
    is_complete: bool = True  # whether all numbers are among `values`
    is_open: bool = False  # whether the stream itself was handed out

    def note_other(self, what: str) -> None:
        """Note something else that was done with the generator."""
        self.count += 1
        if self.count <= MOST_CALLS:
            self.calls.append(Call(what, (), (), ""))


class RecordingGenerator(np.random.Generator):
    """A generator that notes every call in `log`; see the module.

    Parameters
    ----------
    bit_generator : numpy.random.BitGenerator
    constant : bool
        Whether to give fixed values in the place of noise.
    log : Log, optional
        To go on with; a new one by default.

    Examples
    --------
    >>> rng = RecordingGenerator(np.random.PCG64(7))
    >>> rng.laplace(scale=2.0) == np.random.default_rng(7).laplace(scale=2.0)
    True
    >>> [str(call) for call in rng.log.calls]
    ['laplace(scale=2)']
    """

    def __init__(self, bit_generator: np.random.BitGenerator, constant: bool = False, log: Log | None = None) -> None:
        super().__init__(bit_generator)
        self._stream = bit_generator
        self.constant, self.log = constant, log if log is not None else Log()
        self._is_inside = False

    @property
    def bit_generator(self) -> np.random.BitGenerator:
        """The stream itself; the log notes that somebody has it, who could take anything from it."""
        self.log.is_open = True
        return self._stream

    @property
    def state(self) -> Mapping[str, Any]:
        """Where the stream stands."""
        state: Mapping[str, Any] = self._stream.state
        return state

    def spawn(self, n_children: int) -> Any:
        """Generators of the streams that numpy would spawn, with the same log."""
        self.log.note_other("spawn")
        children = self._stream.spawn(n_children)
        return [RecordingGenerator(child, self.constant, self.log) for child in children]

    def __reduce__(self) -> Any:
        self.log.note_other("copy")
        return RecordingGenerator, (self._stream, self.constant, self.log)

    def _ask(self, method: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """What the generator itself returns, noted; or the fixed value that stands for it."""
        ask = getattr(np.random.Generator, method)
        if self._is_inside:  # one method may be made of others
            return ask(self, *args, **keywords)
        self._is_inside = True
        try:
            value = ask(self, *args, **keywords)
        finally:
            self._is_inside = False
        given = {**_DEFAULTS, **dict(zip(PARAMETERS[method], args, strict=False)), **keywords}
        self._note(method, given, value)
        if not self.constant:
            return value
        if self.log.count > MOST_CALLS:
            raise EndlessLoop
        if method not in _CENTRES:
            self.log.is_constant = False
            return value
        centre = _CENTRES[method](given)
        if isinstance(value, np.ndarray):
            value[...] = centre  # in place: it may be the caller's `out`
            return value
        return float(centre)

    def _note(self, method: str, given: Mapping[str, Any], value: Any) -> None:
        log = self.log
        log.count += 1
        if log.count <= MOST_CALLS:
            told = _OF_NOISE if method != "geometric" else ("p",)
            names = [name for name in told if name in PARAMETERS[method] and name in given]
            noise = tuple((name, np.asarray(given[name], dtype=float).tobytes()) for name in names)
            if method == "uniform":  # its width
                noise = (("width", np.asarray(_scale(method, given), dtype=float).tobytes()),)
            words = ", ".join(f"{name}={_short(given[name])}" for name in names)
            log.calls.append(Call(method, np.shape(value), noise, words))
        if method in _FAMILIES:
            numbers = np.asarray(value, dtype=float)
            if len(log.families) + numbers.size <= MOST_CALLS:
                log.values.append(np.ravel(numbers - _CENTRES[method](given)))
                scale = np.asarray(_scale(method, given), dtype=float)
                log.scales.append(np.ravel(np.broadcast_to(scale, numbers.shape)).copy())
                log.families += [_FAMILIES[method]] * numbers.size
                return
        log.is_complete = False


def _recorded(method: str) -> Callable[..., Any]:
    """The method of the class for one of the generator's."""

    @functools.wraps(getattr(np.random.Generator, method))
    def ask(self: RecordingGenerator, *args: Any, **keywords: Any) -> Any:
        return self._ask(method, args, keywords)

    return ask


for _name in PARAMETERS:
    if hasattr(np.random.Generator, _name):
        setattr(RecordingGenerator, _name, _recorded(_name))


def words_between(first: Any, last: Any) -> int:
    """How many words of 64 bits a PCG64 stream gave between two of its states (`bit_generator.state`).

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


def _short(value: Any) -> str:
    numbers = np.ravel(np.asarray(value, dtype=float))
    if numbers.size == 0 or bool((numbers == numbers[0]).all()):
        return f"{numbers[0]:.6g}" if numbers.size else "nothing"
    return "[" + ", ".join(f"{number:.6g}" for number in numbers[:4]) + (", …]" if numbers.size > 4 else "]")
