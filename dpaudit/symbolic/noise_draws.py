"""Draws as noise: the source of the faces of a generator in a run on a tape.

Noise of a known law is given as a symbol (`dpaudit.symbolic.noisy_numbers`), a choice among few outcomes as a decision;
anything else is drawn, noted, and marks the run as opaque. Values come from the tape's streams, event by event, so that
x and x_prime see the same noise whatever else they draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.symbolic.faces import Source, noise_parameters, plain_value
from dpaudit.symbolic.laws import Law
from dpaudit.symbolic.noisy_numbers import Noisy
from dpaudit.symbolic.symbols import PYTHONS, Symbol, SymbolArray, guarded, number_of
from dpaudit.symbolic.tape import MAX_NOISES, Tape

# As they are outside of recorded runs.
_MT19937, _PCG64, _RANDOM_STATE = np.random.MT19937, np.random.PCG64, np.random.RandomState
MAX_OUTCOMES = 64  # of a choice that is a decision
MAX_CHOICES = 8  # choices in one call that are decisions

Settings = Callable[[Mapping[str, Any]], tuple[Any, Any]]  # location and scale of a call


def _loc_scale(given: Mapping[str, Any]) -> tuple[Any, Any]:
    return given.get("loc", 0.0), given.get("scale", 1.0)


def _standard(given: Mapping[str, Any]) -> tuple[Any, Any]:
    return 0.0, given.get("scale", 1.0)


def _ends(given: Mapping[str, Any]) -> tuple[Any, Any]:
    low = given.get("low", 0.0)
    return low, np.subtract(given.get("high", 1.0), low)


# The family of a law with location and scale, and how a call says them.
TRACKED: Mapping[str, tuple[str, Settings]] = {
    **{family: (family, _loc_scale) for family in ("laplace", "normal", "gumbel", "logistic")},
    **{f"standard_{family}": (family, _standard) for family in ("normal", "cauchy", "exponential")},
    "exponential": ("exponential", _standard),
    "random": ("uniform", _standard),
    "uniform": ("uniform", _ends),
    "geometric": ("geometric", lambda given: (0.0, given["p"])),
}


class NoiseDraws(Source):
    """The draws of one run on a tape."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape

    def draw(self, library: str, method: str, given: dict[str, Any]) -> Any:
        given = {key: number_of(value, method) if _is_symbol(value) else value for key, value in given.items()}
        name = f"{library} {method}"
        if method in TRACKED and given.get("out") is None:
            stream = self.tape.stream()
            return self._tracked(name, method, given, getattr(stream, method)(**given))
        found = self._decided(name, method, given)
        if found is not None:
            return found[0]
        if method in ("permutation", "shuffle") and given.get("axis", 0) == 0:
            items = given["x"]
            count = int(items) if np.ndim(items) == 0 else len(items)
            if count <= MAX_CHOICES:
                return self._ordered(name, method, items, count)
        return self.tape.other(name, noise_parameters(method, given), lambda stream: getattr(stream, method)(**given))

    def below(self, count: int) -> int:
        if count <= MAX_OUTCOMES:
            return int(self.draw("random", "integers", {"low": count}))
        size = (count.bit_length() + 71) // 8
        return int(self.tape.other("random integers", [], lambda s: int.from_bytes(s.bytes(size)) % count))

    def bits(self) -> np.random.BitGenerator:
        # 128 bits, as the system's entropy has: see `dpaudit.running.streams.stream`.
        seed = self.tape.other("numpy bit_generator", [], lambda stream: int.from_bytes(stream.bytes(16), "little"))
        return _PCG64(seed)

    def lose(self, what: str) -> Source:
        self.tape.mark_opaque()  # a copy gives the same numbers again, which the tape would not
        return self

    def _tracked(self, name: str, method: str, given: dict[str, Any], value: Any) -> Any:
        """Symbols for the numbers that a method has given, with their law; the numbers themselves in a plain run."""
        tape, (family, read) = self.tape, TRACKED[method]
        location, scale = read(given)
        numbers = np.asarray(value, dtype=float)
        event = tape.add(name, noise_parameters(method, given), numbers.shape)
        if tape.is_plain and tape.replayed is None:
            return value
        if numbers.size > MAX_NOISES:
            tape.mark_opaque()
            return value
        locations = np.broadcast_to(np.asarray(location, dtype=float), numbers.shape).ravel().tolist()
        scales = np.broadcast_to(np.asarray(scale, dtype=float), numbers.shape).ravel().tolist()
        if tape.replayed is not None:
            return _replayed(tape.replayed, event, value, locations, scales)
        symbols = np.empty(numbers.size, dtype=object)
        for k, (number, center, width) in enumerate(zip(numbers.ravel().tolist(), locations, scales, strict=True)):
            symbols[k] = number
            if math.isinf(width):  # noise that is infinite, of either sign
                tape.mark_opaque()
            if _has_noise(center, width):
                index = tape.new_noise(Law(family, width), number - center, event)
                kind = type(value) if type(value) in PYTHONS else float
                symbols[k] = Noisy(tape, center, {index: 1.0}, kind=kind).checked()
        if not isinstance(value, np.ndarray):
            return symbols[0]
        return guarded(symbols.reshape(numbers.shape), value.dtype)

    def _chosen(self, name: str, chances: Sequence[Fraction]) -> int:
        """One of a few outcomes with given probabilities: a decision."""
        tape, stream, doubles = self.tape, self.tape.stream(), [float(chance) for chance in chances]
        actual = int(stream.choice(len(chances), p=np.asarray(doubles) / math.fsum(doubles)))
        event = tape.add(name, [("p", plain_value(doubles))], ())
        if tape.is_plain:
            return actual if tape.replayed is None else tape.replayed.outcomes.get(event, actual)
        tape.outcomes[event] = tape.choose(doubles, actual, name, chances)
        return tape.outcomes[event]

    def _ordered(self, name: str, method: str, items: Any, count: int) -> Any:
        """A few items in an order that is chosen one by one."""
        left, order = list(range(count)), list[int]()
        while left:
            order.append(left.pop(self._chosen(name, [Fraction(1, len(left))] * len(left))))
        if method == "permutation":
            return np.array(order, dtype=np.int64) if np.ndim(items) == 0 else np.asarray(items)[order]
        items[:] = np.array(items)[order] if isinstance(items, np.ndarray) else [items[place] for place in order]
        return None

    def _decided(self, name: str, method: str, given: dict[str, Any]) -> tuple[Any] | None:
        """A choice among few outcomes, as a tuple of one; None where it is another kind of draw, or too large."""
        size = given.get("size")
        shape = () if size is None else tuple(np.atleast_1d(size).tolist())
        options, listed = _options(method, given, math.prod(shape))
        if not 1 <= math.prod(shape) <= MAX_CHOICES or not 1 <= len(listed) == len(options) <= MAX_OUTCOMES:
            return None
        like = getattr(self.tape.stream(), method)(**given)
        found = [options[self._chosen(name, listed)] for _ in range(math.prod(shape))]
        if size is not None:
            return (np.array(found, dtype=like.dtype).reshape(shape),)
        return (found[0] if method == "choice" else type(like)(found[0]),)  # numpy's integers divide and wrap otherwise


def _is_symbol(value: Any) -> bool:
    return isinstance(value, Symbol) or type(value) is SymbolArray


def _options(method: str, given: dict[str, Any], count: int) -> tuple[Any, list[Fraction]]:
    """The outcomes of one of `count` choices, and their probabilities; none where it is another kind of draw."""
    none: tuple[Any, list[Fraction]] = (), []
    if method == "choice" and given.get("axis", 0) == 0 and (count == 1 or given.get("replace", True)):
        items: Any = given.get("a")
        options: Any = range(int(items)) if isinstance(items, int | np.integer) else np.asarray(items)
        if np.ndim(options) != 1 and not isinstance(options, range):
            return none
        if given.get("p") is None:
            return options, _even(len(options))
        weights = np.asarray(given["p"], dtype=float).tolist()
        # What numpy refuses is drawn by numpy, which raises.
        if not all(0.0 <= weight <= 1.0 for weight in weights) or abs(math.fsum(weights) - 1.0) >= 1e-8:
            return none
        total = sum(map(Fraction, weights), Fraction(0))
        return options, [Fraction(weight) / total for weight in weights]
    if method == "integers":
        low, high = given.get("low", 0), given.get("high")
        low, high = (0, low) if high is None else (low, high)
        if np.ndim(low) or np.ndim(high):
            return none
        options = range(int(low), int(high) + bool(given.get("endpoint", False)))
        return options, _even(len(options))
    if method == "binomial" and np.ndim(given["n"]) == np.ndim(given["p"]) == 0 and given["n"] == 1:
        success = Fraction(float(given["p"]))
        return (range(2), [1 - success, success]) if 0 <= success <= 1 else none
    return none


def _even(count: int) -> list[Fraction]:
    return [Fraction(1, count)] * count if 0 < count <= MAX_OUTCOMES else []


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


def seeded_state(seed: Any) -> np.random.RandomState:
    """`numpy.random.RandomState(seed)`, made without asking the system for entropy first."""
    stream = _MT19937(0)
    stream._legacy_seeding(seed)
    return _RANDOM_STATE(stream)
