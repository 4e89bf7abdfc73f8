"""Domains of numbers and of vectors of numbers.

The patterns for vectors of query answers are those of StatDP (Ding et al. 2018) and DP-Sniper (Bichsel et al. 2021);
each is tried at several levels, because most faults depend on where the answers lie.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np

from dpaudit.arguments import check_among
from dpaudit.errors import UsageError
from dpaudit.privacy.claims import TOLERANCE, FloatArray, number, whole_number
from dpaudit.subjects.domains.domain import MOVES, SWEEP, Domain, Inputs, Start, check_ends, is_number

Change = Literal["each", "one", "moved"]
CHANGES: tuple[Change, ...] = ("each", "one", "moved")
PARTS = {"half the change": 0.5, "small change": 1e-3}  # families of starts that use a part of the largest change
INSIDE = 32  # numbers of a range, evenly, that starts move by the largest change
MIN_PART = 1e-4  # of the largest change, of a pair at random


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
        which a record is added), or one goes up and another one down by the same, at most `change` (a record is
        replaced).
    integer : bool
        Whether the vectors are whole numbers; the ends are whole then, and `change` is at least 1.
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
    as_list: bool = False

    def __post_init__(self) -> None:
        whole_number("length", self.length, "a positive integer", 1)
        check_ends(self.low, self.high)
        number("change", self.change, "positive", lambda v: v > 0.0)
        for name in ("integer", "as_list"):
            if not isinstance(getattr(self, name), bool):
                raise UsageError(f"{name} must be True or False, got {getattr(self, name)!r}.")
        if self.integer:
            for name in ("low", "high"):
                number(name, getattr(self, name), "a whole number where integer is True", lambda v: v == math.floor(v))
            number("change", self.change, "at least 1 where integer is True", lambda v: v >= 1.0)
        check_among("adjacency", self.adjacency, CHANGES)
        if self.adjacency == "moved" and self.length < 2:
            raise UsageError(f"length must be at least 2 where one number goes up and another down, got {self.length}.")

    def starts(self) -> Iterator[Start]:
        """The patterns of the literature at several levels, and parts of their changes."""
        step, n = self.step, self.length
        changes, half = self._patterns(), np.where(np.arange(n) < n // 2, 1.0, 0.0)
        for level in self._levels:
            base = np.full(n, level)
            for family, change in changes.items():
                yield family, *self.pair(base, base + step * change)
            if self.adjacency == "each" and n > 1:
                yield "x shape", *self.pair(base + step * half, base + step * (1.0 - half))
        ramp = self.low + (self.high - self.low) * np.arange(n) / max(n - 1, 1)
        peak = np.where(np.arange(n) == 0, self.high, self.low)
        split = np.where(half == 1.0, self.low, self.high)
        shapes = {"staircase": ramp, "one peak": peak, "one peak at the end": peak[::-1], "half at each end": split}
        for family, base in shapes.items():
            for change in list(changes.values())[:2]:
                yield family, *self.pair(base, base + step * change)
        # A function that turns round inside of the range does not change from one end to the other.
        for family, part in PARTS.items():
            for base in (*(np.full(n, level) for level in self._levels), split, ramp):
                for change in changes.values():
                    yield family, *self.pair(base, base + self.size(part) * change)

    def random(self, rng: np.random.Generator) -> Inputs:
        """Anywhere, on the levels or with ties; changed by a random pattern, half of the time as far as it may."""
        base = rng.uniform(self.low, self.high, size=self.length)
        kind = rng.random()
        if kind < 0.75 and self.length > 1:
            base = rng.choice(self._levels if kind < 0.5 else base[:2], size=self.length)
        return self.pair(base, base + self._random_change(rng))

    def moves(self, x: Any, x_prime: Any, rng: np.random.Generator) -> list[Inputs]:
        """The change kept and the place moved (all of it, one number, a swap), or the other way round, or a part."""
        base, other = _arrays(x, x_prime)
        change, n = other - base, self.length
        moved, flipped, order = base.copy(), change.copy(), rng.permutation(n)
        moved[rng.integers(n)] = rng.choice(np.array(self._levels))
        places = rng.permutation(n)[: max(1, n // 3)]
        flipped[places] = -flipped[places] if rng.random() < 0.5 else self.step * rng.choice([-1.0, 0.0, 1.0])
        if self.adjacency != "each":
            flipped = -change
        resized = change / (np.abs(change).max() or 1.0) * self.size(_part(rng))
        halfway = 0.5 * (base + rng.choice([self.low, self.high]))
        found = [(base + self.step * float(rng.normal()), change), (moved, change), (base, flipped), (base, resized)]
        found += [(base[order], change[order]) if n > 1 else (halfway, change), (base, self._random_change(rng))]
        return [self.pair(place, place + shift) for place, shift in found][:MOVES]

    def sized(self, x: Any, x_prime: Any, size: float) -> Iterator[Inputs]:
        first, second = _arrays(x, x_prime)
        if self._changes_one:
            place = int(np.argmax(first != second))
            for base, other in ((first, second), (second, first)):
                for step in (size * (self.high - self.low), -size * (self.high - self.low)):
                    moved = base.copy()
                    moved[place] = np.clip(other[place] + step, base[place] - self.step, base[place] + self.step)
                    yield self.vector(base), self._nearest(moved)

    def steps(self, x: Any, x_prime: Any) -> int:
        gap = float(np.abs(np.subtract(*_arrays(x, x_prime))).max())
        if self.adjacency == "moved" or gap == 0.0:
            return 0
        return self._hops(gap) * (self.length if self._changes_one else 1)

    def on_way(self, x: Any, x_prime: Any, step: int) -> Any:
        """One number after the other where one may change, else a straight line."""
        first, second = _arrays(x, x_prime)
        hops = self._hops(float(np.abs(second - first).max()))
        before = hops * np.arange(self.length) if self._changes_one else np.zeros(self.length)
        part = np.asarray(np.clip(step - before, 0, hops), dtype=float) / hops
        return self._nearest((1.0 - part) * first + part * second)  # each end is what it is, to the last bit

    def sweep(self) -> list[Any]:
        if not self._changes_one:
            return []
        return [self.vector(np.full(self.length, level)) for level in np.linspace(self.low, self.high, SWEEP)]

    def _nearest(self, values: FloatArray) -> Any:
        return self.vector(np.round(values) if self.integer else values)

    def _hops(self, gap: float) -> int:
        """The steps in which one number changes by so much."""
        return max(1, math.ceil(gap / self.step - 1e-9))

    @property
    def _changes_one(self) -> bool:
        return self.adjacency == "one" or self.length == 1

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "vector", **dataclasses.asdict(self)}

    def all_inputs(self, most: int) -> Iterable[Any] | None:
        levels = range(math.floor(self.low), math.floor(self.high) + 1)
        if not self.integer or len(levels) ** self.length > most:
            return None
        return (self.vector(np.array(values)) for values in itertools.product(levels, repeat=self.length))

    def is_pair(self, x: Any, x_prime: Any) -> bool:
        first, second = (np.asarray(side, dtype=float) for side in (x, x_prime))
        if first.shape != (self.length,) or second.shape != (self.length,):
            return False
        slack = TOLERANCE * max(abs(self.low), abs(self.high), 1.0)
        for side in (first, second):
            inside = (self.low - slack <= side) & (side <= self.high + slack)
            if not np.all(inside & (not self.integer or side == np.floor(side))):
                return False
        gaps = second - first
        if np.abs(gaps).max() > self.change + slack:
            return False
        changed = int(np.count_nonzero(gaps))
        if self.adjacency == "moved":
            return changed <= 2 and abs(float(gaps.sum())) <= slack
        return self.adjacency == "each" or changed <= 1

    @property
    def step(self) -> float:
        """The largest change that two numbers of the range can have."""
        step = min(self.change, self.high - self.low)
        return math.floor(step) if self.integer else step

    def size(self, part: float) -> float:
        """A part of the largest change, at least 1 where only whole numbers are inputs."""
        return max(1.0, math.floor(part * self.step)) if self.integer else part * self.step

    @property
    def _levels(self) -> list[float]:
        """Levels of the answers: the ends, a step from them, the middle, and zero."""
        middle = 0.5 * (self.low + self.high)
        levels = [middle, self.low, min(max(0.0, self.low), self.high), self.low + self.step, self.high - self.step]
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
        n, size = self.length, self.size(_part(rng))
        if self.adjacency == "each":
            if math.isinf(self.change) or (n > 1 and rng.random() < 0.25):
                sizes: FloatArray = size * rng.uniform(-1.0, 1.0, size=n)
                return np.round(sizes) if self.integer else sizes
            return size * rng.choice([-1.0, 0.0, 1.0], size=n, p=[0.4, 0.2, 0.4] if n > 1 else [0.5, 0.0, 0.5])
        change, places = np.zeros(n), rng.permutation(n)
        change[places[0]] = size * rng.choice([-1.0, 1.0])
        if self.adjacency == "moved":
            change[places[1]] = -change[places[0]]
        return change

    def vector(self, values: FloatArray) -> Any:
        """An input of these numbers, moved into the range."""
        inside = np.clip(values, self.low, self.high)
        vector = np.floor(inside).astype(np.int64) if self.integer else inside
        return vector.tolist() if self.as_list else vector

    def pair(self, x: FloatArray, x_prime: FloatArray) -> Inputs:
        """The two vectors inside of the range: moved there together, so that the change stays what it is."""
        change = np.clip(x_prime - x, -self.step, self.step)
        if self.integer:
            change = np.trunc(change + TOLERANCE * np.sign(change))  # a sum of doubles may be just below a whole number
            x = np.floor(x)
        low, high = self.low - np.minimum(change, 0.0), self.high - np.maximum(change, 0.0)
        base = np.clip(x, low, np.maximum(low, high))
        return self.vector(base), self.vector(base + change)


@dataclasses.dataclass(frozen=True)
class NumberDomain(VectorDomain):
    """Numbers between two ends; two of them are adjacent if they differ by at most `change`.

    Parameters
    ----------
    low, high : float
        Finite, low < high.
    change : float
        Positive; infinity for any two numbers, as a metric claim has it.
    integer : bool
        Whether only whole numbers are inputs; the ends are whole then, and `change` is at least 1.

    Examples
    --------
    >>> [(x, y) for _, x, y in NumberDomain(0, 10, integer=True).starts()][:3]
    [(5, 6), (5, 4), (0, 1)]
    >>> [pair.id for pair in NumberDomain(0, 3, integer=True).all_pairs()], NumberDomain(0, 3).all_pairs()
    (['0|1', '1|2', '2|3'], None)
    """

    length: int = dataclasses.field(default=1, init=False, repr=False)
    low: float = dataclasses.field()
    high: float = dataclasses.field()
    adjacency: Change = dataclasses.field(default="each", init=False, repr=False)
    as_list: bool = dataclasses.field(default=False, init=False, repr=False)

    def starts(self) -> Iterator[Start]:
        """Starts of vectors of one number, and numbers inside of the range."""
        yield from super().starts()
        for base in np.linspace(self.low, self.high, INSIDE + 2)[1:-1]:
            yield "inside", *self.pair(np.array([base]), np.array([base + self.step]))

    def is_pair(self, x: Any, x_prime: Any) -> bool:
        return is_number(x) and is_number(x_prime) and super().is_pair([x], [x_prime])

    def vector(self, values: FloatArray) -> Any:
        return super().vector(values).item()

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "number"} | {name: getattr(self, name) for name in ("low", "high", "change", "integer")}


def _arrays(x: Any, x_prime: Any) -> tuple[FloatArray, FloatArray]:
    """Two inputs, which may be single numbers, as vectors."""
    first, second = (np.asarray(side, dtype=float).reshape(-1) for side in (x, x_prime))
    return first, second


def _part(rng: np.random.Generator) -> float:
    """A part of the largest change: all of it half of the time, else mostly any, and sometimes a small one."""
    kind = float(rng.random())
    if kind < 0.5:
        return 1.0
    return float(rng.random()) if kind < 0.9 else float(MIN_PART ** rng.random())
