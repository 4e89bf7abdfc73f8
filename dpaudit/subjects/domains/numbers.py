"""Domains of numbers and of vectors of numbers.

The patterns for vectors of query answers are those of StatDP (Ding et al. 2018) and DP-Sniper (Bichsel et al. 2021);
each is tried at several levels, because most faults depend on where the answers lie.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import FloatArray, number, whole_number
from dpaudit.subjects.domains.domain import MOVES, Domain, Inputs, Start, check_ends

Change = Literal["each", "one", "moved"]
CHANGES: tuple[Change, ...] = ("each", "one", "moved")


@dataclasses.dataclass(frozen=True)
class NumberDomain(Domain):
    """Numbers between two ends; two of them are adjacent if they differ by at most `change`.

    Parameters
    ----------
    low, high : float
        Finite, low < high.
    change : float
        Positive; infinity for any two numbers, as a metric claim has it.
    integer : bool
        Whether only whole numbers are inputs; the ends are whole then, and `change` is at least 1.
    special : tuple
        Further inputs, adjacent to every other one: for example NaN, where the mechanism says that it takes it.

    Examples
    --------
    >>> [(x, y) for _, x, y in NumberDomain(0, 10, integer=True).starts()][:3]
    [(0, 1), (10, 9), (5, 6)]
    """

    low: float
    high: float
    change: float = 1.0
    integer: bool = False
    special: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        _range(self.low, self.high, self.change, self.integer)

    def starts(self) -> Iterator[Start]:
        """The two ends, the middle and zero with their neighbours; then the special inputs."""
        middle, zero = 0.5 * (self.low + self.high), min(max(0.0, self.low), self.high)
        if self._step == self.high - self.low:  # the largest change is the whole line
            yield self._start("ends", self.low, self.high)
        yield self._start("boundary", self.low, self.low + self._step)
        yield self._start("boundary", self.high, self.high - self._step)
        yield self._start("middle", middle, middle + self._step)
        yield self._start("zero", zero, zero + self._step)
        yield self._start("zero", zero, zero - self._step)
        small = max(1.0, 1e-3 * self._step) if self.integer else 1e-3 * self._step
        for base in (self.low, middle):
            yield self._start("small change", base, base + small)
        for value in self.special:
            yield "special", value, self._value(middle)
            yield "special", self._value(self.low), value

    def random(self, rng: np.random.Generator) -> Inputs:
        """Anywhere, at the largest change half of the time."""
        base = float(rng.uniform(self.low, self.high))
        size = self._step if rng.random() < 0.5 else float(rng.uniform(0.0, self._step))
        return self._pair(base, base + size * float(rng.choice([-1.0, 1.0])))

    def moves(self, x: Any, x_prime: Any, rng: np.random.Generator) -> list[Inputs]:
        """The pair shifted, turned round, at the largest change, and halfway to each end."""
        if not all(map(_is_finite, (x, x_prime))):
            return []
        gap = x_prime - x
        sign = 1.0 if gap >= 0.0 else -1.0
        shift = self._step * float(rng.normal())
        found = [
            self._pair(x + shift, x_prime + shift),
            self._pair(x, x + sign * self._step),
            self._pair(x, x - gap),
            self._pair(0.5 * (x + self.low), 0.5 * (x + self.low) + gap),
            self._pair(0.5 * (x + self.high), 0.5 * (x + self.high) + gap),
            self._pair(x, x + gap * float(rng.uniform(0.3, 1.0))),
        ]
        return found[:MOVES]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "number", **dataclasses.asdict(self)}

    @property
    def _step(self) -> float:
        return _largest_change(self.low, self.high, self.change, self.integer)

    def _value(self, value: float) -> Any:
        inside = min(max(value, self.low), self.high)
        return math.floor(inside) if self.integer else float(inside)

    def _pair(self, x: float, x_prime: float) -> Inputs:
        first, second = self._value(x), self._value(x_prime)
        if abs(second - first) > self._step:  # rounding down may have widened it
            second = self._value(first + math.copysign(self._step, second - first))
        return first, second

    def _start(self, family: str, x: float, x_prime: float) -> Start:
        return family, *self._pair(x, x_prime)


@dataclasses.dataclass(frozen=True)
class VectorDomain(Domain):
    """Vectors of numbers: answers of several queries, or counts of a histogram, or points of a metric space.

    Parameters
    ----------
    length : int
        Numbers in a vector, at least 1.
    low, high : float
        Finite; of every number.
    change : float
        Positive: what one number may change by; infinity for any two vectors.
    adjacency : {"each", "one", "moved"}
        Every number may change by at most `change` (queries of that sensitivity), one number only (a histogram to
        which a record is added), or one goes up and another one down by at most that much (a record is replaced).
    integer : bool
        Whether the vectors are whole numbers; the ends are whole then, and `change` is at least 1.
    special : tuple
        Values that a coordinate may have too: for example NaN, where the mechanism says that it takes it.
    as_list : bool
        Whether the inputs are lists rather than arrays; so they are in the JSON form.

    Examples
    --------
    >>> domain = VectorDomain(4, 0, 8, integer=True)
    >>> next((x.tolist(), y.tolist()) for family, x, y in domain.starts() if family == "x shape")
    ([5, 5, 4, 4], [4, 4, 5, 5])
    """

    length: int
    low: float = 0.0
    high: float = 10.0
    change: float = 1.0
    adjacency: Change = "each"
    integer: bool = False
    special: tuple[Any, ...] = ()
    as_list: bool = False

    def __post_init__(self) -> None:
        whole_number("length", self.length, "a positive integer", 1)
        _range(self.low, self.high, self.change, self.integer)
        if self.adjacency not in CHANGES:
            raise UsageError(f"adjacency must be one of {', '.join(CHANGES)}, got {self.adjacency!r}.")
        if not isinstance(self.as_list, bool):
            raise UsageError(f"as_list must be True or False, got {self.as_list!r}.")
        if self.adjacency == "moved" and self.length < 2:
            raise UsageError(f"length must be at least 2 where one number goes up and another down, got {self.length}.")

    def starts(self) -> Iterator[Start]:
        """The patterns of the literature at several levels, then pairs between far corners and special values."""
        step, n = self._step, self.length
        for level in self._levels:
            base = np.full(n, level)
            for family, change in self._patterns().items():
                yield self._start(family, base, base + step * change)
            if self.adjacency == "each" and n > 1:
                half = np.where(np.arange(n) < n // 2, 1.0, 0.0)
                yield self._start("x shape", base + step * half, base + step * (1.0 - half))
        ramp = self.low + (self.high - self.low) * np.arange(n) / max(n - 1, 1)
        peak = np.where(np.arange(n) == 0, self.high, self.low)
        for family, base in (("staircase", ramp), ("one peak", peak), ("one peak at the end", peak[::-1])):
            for change in list(self._patterns().values())[:2]:
                yield self._start(family, base, base + step * change)
        middle = self._vector(np.full(n, 0.5 * (self.low + self.high)))
        for value in self.special:
            other = np.array(middle, dtype=float)
            other[0] = value
            yield "special", middle, other.tolist() if self.as_list else other

    def random(self, rng: np.random.Generator) -> Inputs:
        """Anywhere, or on few values; changed by a random pattern."""
        base = rng.uniform(self.low, self.high, size=self.length)
        if rng.random() < 0.5:
            base = rng.choice(np.array(self._levels), size=self.length)
        return self._pair(base, base + self._step * self._random_change(rng))

    def moves(self, x: Any, x_prime: Any, rng: np.random.Generator) -> list[Inputs]:
        """The change kept and the place moved (all of it, one number, a swap), or the other way round."""
        base, change = np.asarray(x, dtype=float), np.asarray(x_prime, dtype=float) - np.asarray(x, dtype=float)
        if not np.isfinite(base).all() or not np.isfinite(change).all():
            return []
        n = self.length
        moved, flipped, placed = base.copy(), change.copy(), base.copy()
        moved[rng.integers(n)] = rng.choice(np.array(self._levels))
        places = rng.permutation(n)[: max(1, n // 3)]
        flipped[places] = -flipped[places] if rng.random() < 0.5 else self._step * rng.choice([-1.0, 0.0, 1.0])
        placed[:] = base + self._step * float(rng.normal())
        order = rng.permutation(n)
        other = self._step * self._random_change(rng)
        if self.adjacency != "each":
            flipped = -change
        found = [(placed, change), (moved, change), (base, flipped), (base[order], change[order]), (base, -change)]
        return [self._pair(place, place + shift) for place, shift in [*found, (base, other)]][:MOVES]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "vector", **dataclasses.asdict(self)}

    @property
    def _step(self) -> float:
        return _largest_change(self.low, self.high, self.change, self.integer)

    @property
    def _levels(self) -> list[float]:
        """Where the answers lie: the ends, a step from them, the middle, and zero."""
        middle = 0.5 * (self.low + self.high)
        levels = [middle, self.low, min(max(0.0, self.low), self.high), self.low + self._step, self.high - self._step]
        return list(dict.fromkeys([*levels, self.high]))

    def _patterns(self) -> dict[str, FloatArray]:
        """Changes in units of the step, as the literature names them."""
        n = self.length
        first = np.where(np.arange(n) == 0, 1.0, 0.0)
        if self.adjacency == "one":
            last = first[::-1]
            return {"one above": first, "one below": -first, "last above": last, "last below": -last}
        if self.adjacency == "moved":
            return {"first to last": first[::-1] - first, "last to first": first - first[::-1]}
        half = np.where(np.arange(n) < n // 2, 1.0, 0.0)
        ones = np.ones(n)
        patterns = {
            "all above": ones,
            "all below": -ones,
            "one above": first,
            "one below": -first,
            "one above, rest below": 2.0 * first - ones,
            "one below, rest above": ones - 2.0 * first,
            "half and half": 2.0 * half - ones,
            "alternating": np.where(np.arange(n) % 2 == 0, 1.0, -1.0),
        }
        return patterns if n > 1 else {name: patterns[name] for name in ("all above", "all below")}

    def _random_change(self, rng: np.random.Generator) -> FloatArray:
        n = self.length
        if self.adjacency == "each":
            if math.isinf(self.change):
                return rng.uniform(-1.0, 1.0, size=n)
            return rng.choice([-1.0, 0.0, 1.0], size=n, p=[0.4, 0.2, 0.4])
        change, places = np.zeros(n), rng.permutation(n)
        change[places[0]] = rng.choice([-1.0, 1.0])
        if self.adjacency == "moved":
            change[places[1]] = -change[places[0]]
        return change

    def _vector(self, values: FloatArray) -> Any:
        inside = np.clip(values, self.low, self.high)
        vector = np.floor(inside).astype(np.int64) if self.integer else inside
        return vector.tolist() if self.as_list else vector

    def _pair(self, x: FloatArray, x_prime: FloatArray) -> Inputs:
        """The two vectors inside of the range: moved there together, so that the change stays what it is."""
        change = np.clip(x_prime - x, -self._step, self._step)
        if self.integer:
            change = np.trunc(change + 1e-9 * np.sign(change))  # a sum of doubles may be just below a whole number
            x = np.floor(x)
        low, high = self.low - np.minimum(change, 0.0), self.high - np.maximum(change, 0.0)
        base = np.clip(x, low, np.maximum(low, high))
        return self._vector(base), self._vector(base + change)

    def _start(self, family: str, x: FloatArray, x_prime: FloatArray) -> Start:
        return family, *self._pair(x, x_prime)


def _range(low: Any, high: Any, change: Any, integer: Any) -> None:
    """Check the parameters of a domain of numbers."""
    check_ends(low, high)
    number("change", change, "positive", lambda v: v > 0.0)
    if not isinstance(integer, bool):
        raise UsageError(f"integer must be True or False, got {integer!r}.")
    if integer:
        for name, value in (("low", low), ("high", high)):
            number(name, value, "a whole number where integer is True", lambda v: v == math.floor(v))
        number("change", change, "at least 1 where integer is True", lambda v: v >= 1.0)


def _largest_change(low: float, high: float, change: float, integer: bool) -> float:
    """The largest change that two numbers of the range can have."""
    step = min(change, high - low)
    return math.floor(step) if integer else step


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and math.isfinite(value)
