"""Draws as noise: the source of traced generators in a run on a tape.

Noise of a known law is given as a symbol (`dpaudit.symbolic.noisy_numbers`), a choice among few outcomes as a decision;
anything else is drawn, noted, and marks the run as opaque. Values come from the tape's streams, event by event, so that
x and x_prime see the same noise whatever else they draw.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.symbolic.choices import weight_of
from dpaudit.symbolic.finite_draws import FiniteDraws
from dpaudit.symbolic.generators import Source, noise_parameters, plain_value
from dpaudit.symbolic.laws import Law
from dpaudit.symbolic.noisy_numbers import Noisy
from dpaudit.symbolic.symbols import PYTHONS, Symbol, SymbolArray, guarded, number_of
from dpaudit.symbolic.tape import MAX_NOISES, Tape, Unsupported

# As they are outside of recorded runs.
_MT19937, _PCG64, _RANDOM_STATE = np.random.MT19937, np.random.PCG64, np.random.RandomState
OF_PYTHON = "random integers"  # the event of which Python makes most of its draws
MAX_OUTCOMES = 64  # of a choice that is a decision
MAX_CHOICES = 8  # choices in one call that are decisions

# The family of a law, and which arguments of a call are its location and its scale; of uniform noise its ends.
TRACKED: Mapping[str, tuple[str, str, str]] = {
    **{family: (family, "loc", "scale") for family in ("laplace", "normal", "gumbel", "logistic")},
    **{f"standard_{family}": (family, "", "scale") for family in ("normal", "cauchy", "exponential")},
    "exponential": ("exponential", "", "scale"),
    "random": ("uniform", "", "scale"),
    "uniform": ("uniform", "low", "high"),
    "geometric": ("geometric", "", "p"),
}


class NoiseDraws(FiniteDraws):
    """The draws of one run on a tape."""

    def __init__(self, tape: Tape) -> None:
        self.tape, self._name = tape, OF_PYTHON

    def draw(self, library: str, method: str, given: dict[str, Any]) -> Any:
        symbols = [key for key, one in given.items() if isinstance(one, Symbol) or type(one) is SymbolArray]
        given = given | {key: number_of(given[key], method) for key in symbols}
        name = f"{library} {method}"
        # Validity: numbers of another precision say by their last digits what they were added to.
        if method in TRACKED and given.get("out") is None and np.dtype(given.get("dtype", float)) == np.float64:
            stream = self.tape.stream()
            return self._tracked(name, method, given, getattr(stream, method)(**given))
        if _is_small(method, given):
            self._name = name
            try:
                return getattr(self, f"_{method}")(**given)
            finally:
                self._name = OF_PYTHON
        return self.tape.other(name, noise_parameters(method, given), lambda stream: getattr(stream, method)(**given))

    def below(self, count: int) -> int:
        if count <= MAX_OUTCOMES:
            return self.choose([Fraction(1, count)] * count)
        size = (count.bit_length() + 71) // 8
        return int(self.tape.other(self._name, [], lambda s: int.from_bytes(s.bytes(size)) % count))

    def choose(self, weights: Sequence[Fraction]) -> int:
        tape, stream, doubles = self.tape, self.tape.stream(), [*map(weight_of, weights)]
        actual = int(stream.choice(len(weights), p=np.asarray(doubles) / math.fsum(doubles)))
        event = tape.add(self._name, [("p", plain_value(doubles))], ())
        if tape.is_plain:
            return actual if tape.replayed is None else tape.replayed.outcomes.get(event, actual)
        tape.outcomes[event] = tape.choose(doubles, actual, self._name, weights)
        return tape.outcomes[event]

    def refuse(self, reason: str) -> Any:
        raise Unsupported(f"{reason}.")

    def bits(self) -> np.random.BitGenerator:
        # 128 bits, as the system's entropy has: see `dpaudit.running.streams.stream`.
        seed = self.tape.other("numpy bit_generator", [], lambda stream: int.from_bytes(stream.bytes(16), "little"))
        return _PCG64(seed)

    def lose(self, what: str) -> Source:
        self.tape.mark_opaque()  # a copy gives the same numbers again, which the tape would not
        return self

    def _tracked(self, name: str, method: str, given: dict[str, Any], value: Any) -> Any:
        """Symbols for the numbers that a method has given, with their law; the numbers themselves in a plain run."""
        tape, (family, of_location, of_scale) = self.tape, TRACKED[method]
        location, scale = given.get(of_location, 0.0), given.get(of_scale, 1.0)
        scale = np.subtract(scale, location) if of_scale == "high" else scale
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
        kind = value.dtype.type if isinstance(value, np.ndarray) else type(value)
        for k, (number, center, width) in enumerate(zip(numbers.ravel().tolist(), locations, scales, strict=True)):
            symbols[k] = number
            if math.isinf(width):  # noise that is infinite, of either sign
                tape.mark_opaque()
            if _has_noise(center, width):
                index = tape.new_noise(Law(family, width), number - center, event)
                symbols[k] = Noisy(tape, center, {index: 1.0}, kind=kind if kind in PYTHONS else float).checked()
        if not isinstance(value, np.ndarray):
            return symbols[0]
        return guarded(symbols.reshape(numbers.shape), value.dtype)


def _is_small(method: str, given: Mapping[str, Any]) -> bool:
    """Tell whether a draw is a few choices, each among few outcomes."""
    size = given.get("size")
    count, outcomes = 1 if size is None else math.prod(np.atleast_1d(size).tolist()), 0
    if method == "choice" and given.get("axis", 0) == 0 and (count == 1 or given.get("replace", True)):
        items: Any = given.get("a")
        outcomes = int(items) if isinstance(items, int | np.integer) else len(items) * (np.ndim(items) == 1)
    elif method == "integers":
        low, high = given.get("low", 0), given.get("high")
        low, high = (0, low) if high is None else (low, high)
        if np.ndim(low) == np.ndim(high) == 0:
            outcomes = int(high) + bool(given.get("endpoint", False)) - int(low)
    elif method == "binomial" and np.ndim(given["n"]) == np.ndim(given["p"]) == 0:
        outcomes = int(given["n"]) + 1
    elif method in ("permutation", "shuffle") and given.get("axis", 0) == 0:
        count = outcomes = int(given["x"]) if np.ndim(given["x"]) == 0 else len(given["x"])
    return 1 <= count <= MAX_CHOICES and 1 <= outcomes <= MAX_OUTCOMES


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
