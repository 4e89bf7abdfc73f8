"""Integrals of Laplace, exponential and uniform noise that is compared with other noise, between bounds.

Densities and masses of these laws are, piece by piece, sums of c x^p e^(r x), with rational ends of pieces and rational
r. Products, antiderivatives and moves of such functions are of the same kind. So the probability of every set of
comparisons `y <= z + c` that forms a tree (an answer of a sparse vector with its threshold, the best so far of a noisy
maximum with the next number) is a number that sums, products and exponentials lead to. Each number on the way lies
between two decimals (`Enclosure`), of as many digits as the result needs (`PLACES`). What is 0 is so without rounding:
beyond a support there are no pieces.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TypeVar

from dpaudit.symbolic.divergences import context, decimals

PLACES = 120  # digits of a first try: far more than differences of a few terms lose
MAX_PLACES = 2_000
ZERO = Fraction(0)
FAMILIES = ("laplace", "exponential", "uniform")


@dataclasses.dataclass(frozen=True)
class Enclosure:
    """A number between two decimals; what is computed of it has so many digits, and is rounded outwards.

    Examples
    --------
    >>> half = Enclosure.of(Fraction(1, 2))
    >>> float(half.times_exp(Fraction(1)) + -half), bool(half + -half)
    (0.8591409142295227, False)
    """

    low: Decimal
    high: Decimal
    places: int = PLACES

    @classmethod
    def of(cls, low: Fraction, high: Fraction | None = None, places: int = PLACES) -> Enclosure:
        """A fraction, or a number between two."""
        return cls(decimals(low, places)[0], decimals(low if high is None else high, places)[1], places)

    def __bool__(self) -> bool:
        return bool(self.low or self.high)

    def __add__(self, other: Enclosure) -> Enclosure:
        down, up, places = self._rounding(other)
        return Enclosure(down.add(self.low, other.low), up.add(self.high, other.high), places)

    def __neg__(self) -> Enclosure:
        return Enclosure(self.high.copy_negate(), self.low.copy_negate(), self.places)

    def __mul__(self, other: Enclosure) -> Enclosure:
        down, up, places = self._rounding(other)
        ends = [(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        low, high = min(down.multiply(a, b) for a, b in ends), max(up.multiply(a, b) for a, b in ends)
        return Enclosure(low, high, places)

    def _rounding(self, other: Enclosure) -> tuple[Context, Context, int]:
        places = max(self.places, other.places)
        return context(places, ROUND_FLOOR), context(places, ROUND_CEILING), places

    def scaled(self, factor: Fraction) -> Enclosure:
        """A rational multiple."""
        return self * Enclosure.of(factor, places=self.places)

    def times_exp(self, exponent: Fraction) -> Enclosure:
        """The product with e^exponent."""
        return self * _power(exponent, self.places)

    def inverse(self) -> Enclosure:
        """1 / the number, which is positive."""
        down, up, places = self._rounding(self)
        return Enclosure(down.divide(Decimal(1), self.high), up.divide(Decimal(1), self.low), places)

    def exp(self) -> Enclosure:
        """e^ the number."""
        if not self:
            return UNIT
        nearest = context(self.places)  # `exp` of decimals is correctly rounded, to the nearest one
        low, high = (end.exp(nearest) for end in (self.low, self.high))
        return Enclosure(low.next_minus(nearest), high.next_plus(nearest), self.places)

    @property
    def share(self) -> Decimal:
        """The relative width; 1 or more where nothing is known."""
        up = context(self.places, ROUND_CEILING)
        return up.divide(up.subtract(self.high, self.low), self.low) if self.low > 0 else Decimal(int(bool(self)))

    def __float__(self) -> float:
        nearest = context(self.places)  # a fraction of one that is far out has too many digits
        return float(nearest.divide(nearest.add(self.low, self.high), Decimal(2)))


@functools.lru_cache(maxsize=4_096)
def _power(exponent: Fraction, places: int) -> Enclosure:
    return Enclosure.of(exponent, places=places).exp()


NOTHING, UNIT = (Enclosure(Decimal(value), Decimal(value)) for value in (0, 1))
Piece = Mapping[tuple[int, Fraction], Enclosure]  # (p, r): coefficient of x^p e^(r x)


def _add(pieces: Iterable[Piece]) -> Piece:
    found: dict[tuple[int, Fraction], Enclosure] = {}
    for piece in pieces:
        for key, value in piece.items():
            found[key] = found[key] + value if key in found else value
    return {key: value for key, value in found.items() if value}


def _product(first: Piece, second: Piece) -> Piece:
    return _add({(p + k, r + s): c * d} for (p, r), c in first.items() for (k, s), d in second.items())


def _antiderivative(piece: Piece) -> Piece:
    """The one without a constant.

    Of x^p e^(r x) it is the sum over j of (-1)^j p! / (p - j)! x^(p - j) e^(r x) / r^(j + 1).
    """

    def parts() -> Iterable[Piece]:
        for (p, r), c in piece.items():
            if r == 0:
                yield {(p + 1, r): c.scaled(Fraction(1, p + 1))}
                continue
            for j in range(p + 1):
                yield {(p - j, r): c.scaled(Fraction((-1) ** j * math.perm(p, j)) / r ** (j + 1))}

    return _add(parts())


def _at(piece: Piece, x: Fraction) -> Enclosure:
    return sum((c.scaled(x**p).times_exp(r * x) for (p, r), c in piece.items()), NOTHING)


@dataclasses.dataclass(frozen=True)
class Piecewise:
    """A function on the real line: `pieces[k]` is what it is between `knots[k - 1]` and `knots[k]`.

    Examples
    --------
    >>> noise = density("laplace", Fraction(1))
    >>> float(noise.total()), round(float((noise * noise.below().moved(Fraction(1))).total()), 6)
    (1.0, 0.27591)
    """

    knots: tuple[Fraction, ...]
    pieces: tuple[Piece, ...]

    def __mul__(self, other: Piecewise) -> Piecewise:
        knots = tuple(sorted({*self.knots, *other.knots}))
        pairs = zip(self._spread(knots), other._spread(knots), strict=True)
        return Piecewise(knots, tuple(_product(first, second) for first, second in pairs))

    def _spread(self, knots: Sequence[Fraction]) -> list[Piece]:
        """The pieces between more knots."""
        return [self.pieces[sum(own < end for own in self.knots)] for end in knots] + [self.pieces[-1]]

    def moved(self, by: Fraction) -> Piecewise:
        """x -> f(x - by)."""

        def parts(piece: Piece) -> Iterable[Piece]:
            for (p, r), c in piece.items():
                start = c.times_exp(-r * by)
                for k in range(p + 1):
                    yield {(k, r): start.scaled(math.comb(p, k) * (-by) ** (p - k))}

        return Piecewise(tuple(knot + by for knot in self.knots), tuple(_add(parts(piece)) for piece in self.pieces))

    def mirrored(self) -> Piecewise:
        """x -> f(-x)."""
        pieces = (
            {(p, -r): c.scaled(Fraction((-1) ** p)) for (p, r), c in piece.items()} for piece in self.pieces[::-1]
        )
        return Piecewise(tuple(-knot for knot in self.knots[::-1]), tuple(pieces))

    def between(self, low: Fraction | float, high: Fraction | float) -> Piecewise:
        """Restriction to an interval, 0 elsewhere."""
        knots = tuple(Fraction(end) for end in (low, high) if math.isfinite(end))
        nothing: list[Piece] = [{}]
        pieces = [*nothing * math.isfinite(low), {(0, ZERO): UNIT}, *nothing * math.isfinite(high)]
        return self * Piecewise(knots, tuple(pieces))

    def below(self) -> Piecewise:
        """t -> the integral up to t; `ValueError` if it has no limit on the left."""
        if any(r <= 0 for _, r in self.pieces[0]):
            raise ValueError("a function must fall to 0 on the left to be integrated")
        sofar, found = NOTHING, []
        for k, piece in enumerate(self.pieces):
            whole = _antiderivative(piece)
            constant = sofar + -_at(whole, self.knots[k - 1]) if k else NOTHING
            found.append(_add([whole, {(0, ZERO): constant}]))
            if k < len(self.knots):
                sofar = _at(found[-1], self.knots[k])
        return Piecewise(self.knots, tuple(found))

    def total(self) -> Enclosure:
        """The integral over the real line."""
        last = self.below().pieces[-1]
        if any((p, r) != (0, ZERO) and r >= 0 for p, r in last):
            raise ValueError("a function must fall to 0 on the right to be integrated")
        return last.get((0, ZERO), NOTHING)

    def above(self) -> Piecewise:
        """t -> the integral from t on."""
        return self.mirrored().below().mirrored()


def density(family: str, scale: Fraction, places: int = PLACES) -> Piecewise:
    """The density of noise of one of `FAMILIES` around 0, or from 0 on; numbers of it have so many digits."""
    rate = 1 / scale
    height = Enclosure.of(rate, places=places)
    right: Piece = {(0, -rate): height}
    if family == "laplace":
        half = Enclosure.of(rate / 2, places=places)
        return Piecewise((ZERO,), ({(0, rate): half}, {(0, -rate): half}))
    if family == "exponential":
        return Piecewise((ZERO,), ({}, right))
    if family != "uniform":
        raise ValueError(f"family must be one of {', '.join(FAMILIES)}, got {family!r}")
    return Piecewise((ZERO, scale), ({}, {(0, ZERO): height}, {}))


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Noise `lower` is below noise `upper` plus `gap`; both are numbers of nodes."""

    lower: int
    upper: int
    gap: Fraction


class CycleError(Exception):
    """Comparisons that form no tree."""


def probability(nodes: Mapping[int, Piecewise], comparisons: Sequence[Comparison]) -> Enclosure:
    """P(all comparisons hold), for independent noise with these densities (each with its own mass).

    Each leaf of a tree is integrated for a given value of the node that it is compared with, which leaves a function of
    that value; and so on up to the root. `CycleError` if the comparisons form no trees.

    Examples
    --------
    >>> noise = density("exponential", Fraction(1))  # the larger of two, of which one leads by 1
    >>> found = probability({0: noise, 1: noise}, [Comparison(1, 0, Fraction(1))])
    >>> float(found) == 1.0 - 0.5 * math.exp(-1.0)
    True
    """
    found = UNIT
    for root in from_the_leaves(nodes, comparisons, Piecewise.__mul__, _message):
        found = found * root.total()
    return found


def _message(own: Piecewise, comparison: Comparison, is_lower: bool) -> Piecewise:
    return own.below().moved(-comparison.gap) if is_lower else own.above().moved(comparison.gap)


Function = TypeVar("Function")


def from_the_leaves(
    nodes: Mapping[int, Function],
    comparisons: Sequence[Comparison],
    product: Callable[[Function, Function], Function],
    message: Callable[[Function, Comparison, bool], Function],
) -> Iterator[Function]:
    """Function left at the root of each tree of comparisons; `CycleError` if they form no trees.

    `message` gives, of a leaf's function and its comparison (in which it is the lower one, or not), a function of the
    value that the leaf is compared with; `product` multiplies it into that node's.
    """
    left: dict[int, set[int]] = {node: set() for node in nodes}
    for place, comparison in enumerate(comparisons):
        left[comparison.lower].add(place)
        left[comparison.upper].add(place)
    known, reached = dict(nodes), set[int]()
    while known:  # nodes of which nothing was asked yet go first, as their integrals are simple
        node = min(known, key=lambda one: (len(left[one]), one in reached))
        own = known.pop(node)
        if not left[node]:
            yield own
            continue
        if len(left[node]) > 1:
            raise CycleError
        place = left[node].pop()
        comparison = comparisons[place]
        other = comparison.upper if comparison.lower == node else comparison.lower
        if other == node:
            raise CycleError
        left[other].discard(place)
        reached.add(other)
        known[other] = product(known[other], message(own, comparison, comparison.lower == node))
