"""Noises that are compared with each other: the probability that they lie in an order, and numbers that do.

A component is a tree of comparisons of multiples of noises, each of which may lie in an interval. Its probability lies
between bounds: those of `piecewise` for Laplace, exponential and uniform noise, and those of `enclosures` for others.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from dpaudit.symbolic.choices import weight_of
from dpaudit.symbolic.enclosures import CUTS, MAX_RELATIVE_WIDTH, Node, of_any, of_gumbel, stars
from dpaudit.symbolic.laws import FAMILIES as LAWS
from dpaudit.symbolic.piecewise import (
    FAMILIES,
    MAX_PLACES,
    PLACES,
    Comparison,
    CycleError,
    Enclosure,
    Piecewise,
    density,
    probability,
)

MAX_EXACT = 8  # noises in one tree: their densities have up to 2^8 terms a piece
# Of the logarithm of a density, per scale, within the cuts of the law.
RATES = {"laplace": 1.0, "exponential": 1.0, "logistic": 1.0, "normal": 18.0, "gumbel": 165.0}
PANELS = 180  # of an integral by quadrature, in the range of a law
NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)
QUADRATURE = 1e-9  # what such an integral may be off by, beside what more panels change


@dataclasses.dataclass(frozen=True)
class Component:
    """Comparisons of multiples of noises, by their numbers, that form a tree."""

    nodes: tuple[tuple[int, Node], ...]
    comparisons: tuple[Comparison, ...]

    def mass(self) -> Enclosure | None:
        """The probability that all comparisons hold; None where it is not known."""
        nodes = dict(self.nodes)
        try:
            if all(node.law.family in FAMILIES for node in nodes.values()) and len(nodes) <= MAX_EXACT:
                return self._in_pieces(PLACES)
            scales = {Fraction(node.law.scale) * node.factor for node in nodes.values()}
            is_gumbel = all(node.law.family == "gumbel" and node.is_free for node in nodes.values())
            if is_gumbel and len(scales) == 1 and min(scales) > 0:
                return of_gumbel(scales.pop(), list(nodes), self.comparisons)
            return of_any(nodes, self.comparisons)
        except (CycleError, ArithmeticError):
            return None

    def _in_pieces(self, places: int) -> Enclosure | None:
        """The same by `piecewise`, with as many digits as narrow bounds take."""
        found = probability({number: _density(node, places) for number, node in self.nodes}, self.comparisons)
        if found.share <= MAX_RELATIVE_WIDTH:
            return found
        return self._in_pieces(4 * places) if 4 * places <= MAX_PLACES else None

    def growth(self) -> float:
        """By how much, at most, the logarithm of the probability grows with a gap; infinite where that is not known.

        To move a gap up is to move all noises above it up, or all below it down: their densities change by `RATES`.
        Exponential noise may only be moved away from its end.
        """
        if not all(node.is_free for _, node in self.nodes):
            return math.inf
        nodes, found = dict(self.nodes), 0.0
        for number, one in enumerate(self.comparisons):
            rest = self.comparisons[:number] + self.comparisons[number + 1 :]
            sides = [[nodes[k] for k in connected({end}, rest)] for end in (one.upper, one.lower)]
            found = max(found, min(_growth(side, sign) for side, sign in zip(sides, (1, -1), strict=True)))
        return found

    def holds(self, values: Mapping[int, float]) -> bool:
        """Tell whether it does for some numbers."""
        nodes = dict(self.nodes)
        scaled = {number: float(node.factor) * values[number] for number, node in self.nodes}
        return all(nodes[number].low < values[number] <= nodes[number].high for number in nodes) and all(
            scaled[one.lower] <= scaled[one.upper] + float(one.gap) for one in self.comparisons
        )

    def example(self) -> dict[int, float] | None:
        """Numbers for which it holds, each some way from its ends; None where none were found."""
        from scipy.optimize import linprog

        places = {number: k for k, (number, _) in enumerate(self.nodes)}
        factors = {number: float(node.factor) for number, node in self.nodes}
        scale = min(node.law.scale * abs(factors[number]) for number, node in self.nodes)
        rows: list[tuple[Mapping[int, float], float]] = [
            ({one.lower: factors[one.lower], one.upper: -factors[one.upper]}, float(one.gap))
            for one in self.comparisons
        ]
        for number, node in self.nodes:
            low, high = max(node.low, node.law.support[0]), min(node.high, node.law.support[1])
            rows += [({number: -1.0}, -low)] * math.isfinite(low) + [({number: 1.0}, high)] * math.isfinite(high)
        matrix = [[row.get(number, 0.0) for number in places] + [1.0] for row, _ in rows]  # what is left is the way
        bounds = [*[(None, None)] * len(places), (0.0, scale)]
        found = linprog([*[0.0] * len(places), -1.0], A_ub=matrix, b_ub=[end for _, end in rows], bounds=bounds)
        if not found.success or not found.x[-1] > 0.0:
            return None
        return {number: float(found.x[k]) for number, k in places.items()}


@functools.lru_cache(maxsize=4_096)
def mass_of(component: Component, is_quick: bool = False) -> tuple[float, float]:
    """The probability of a component in doubles, and an estimate of its error beside rounding; -1 if it is unknown.

    A quick one, which only ranks inputs, is by quadrature where bounds by balls take long. So is any other that has no
    bounds: where python-flint is missing, or noises are many.
    """
    for one in component.comparisons:
        if least_gap(component.comparisons, one.upper, one.lower) + one.gap <= 0:  # they contradict each other
            return 0.0, 0.0
    if not is_quick or all(node.law.family in (*FAMILIES, "gumbel") for _, node in component.nodes):
        found = component.mass()
        if found is not None:
            return weight_of(found), 0.0
    value = by_quadrature(component)
    if is_quick:
        return value, QUADRATURE
    error = QUADRATURE + abs(by_quadrature(component, 2 * PANELS) - value)
    return value if value > error else -1.0, error


def by_quadrature(component: Component, panels: int = PANELS) -> float:
    """The probability of stars by the rule of Gauss and Legendre between all places where a function bends."""
    nodes, found = dict(component.nodes), 1.0
    if any(node.law.family not in CUTS for node in nodes.values()):
        return -1.0
    try:
        trees = stars(nodes, component.comparisons)
    except CycleError:
        return -1.0
    for root, compared in trees.items():
        own = nodes[root]
        low, high = (cut * own.law.scale for cut in CUTS[own.law.family])
        low, high = max(low, own.low), min(high, own.high)
        leaves, ends = [], [np.linspace(low, high, panels + 1), np.zeros(1)]
        for number, by, is_lower in compared:
            leaf, gap = nodes[number], float(by)
            leaves.append((leaf, gap, is_lower == (leaf.factor > 0)))
            width = panels if leaf.law.scale * abs(leaf.factor) < 0.5 * own.law.scale * abs(own.factor) else 0
            bends = [0.0, leaf.low, leaf.high, *(leaf.law.scale * np.linspace(*CUTS[leaf.law.family], width + 2))]
            ends.append((np.array(bends) * float(leaf.factor) - gap) / float(own.factor))
        knots = np.unique(np.clip(np.concatenate(ends), low, high))
        half = 0.5 * np.diff(knots)[:, None]
        z = knots[:-1, None] + half * (1.0 + NODES)
        values = WEIGHTS * half * np.exp(LAWS[own.law.family].log_density(z / own.law.scale)) / own.law.scale
        for leaf, gap, is_below in leaves:
            below, scale = LAWS[leaf.law.family].below, leaf.law.scale
            start, stop = (float(below(end / scale)) for end in (max(leaf.low, -1e300), min(leaf.high, 1e300)))
            inner = np.clip(below((z * float(own.factor) + gap) / float(leaf.factor) / scale), start, stop)
            values = values * (inner - start if is_below else stop - inner)
        found *= float(values.sum())
    return found


def _growth(side: Sequence[Node], sign: int) -> float:
    if any(node.law.family == "exponential" and node.factor * sign < 0 for node in side):
        return math.inf
    return math.fsum(RATES.get(node.law.family, math.inf) / node.law.scale / float(abs(node.factor)) for node in side)


def needed(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons, without those that others imply: of a <= b, b <= c and a <= c the last one.

    Examples
    --------
    >>> zero = Fraction(0)
    >>> needed([Comparison(0, 1, zero), Comparison(0, 2, zero), Comparison(1, 2, zero)])
    (Comparison(lower=0, upper=1, gap=Fraction(0, 1)), Comparison(lower=1, upper=2, gap=Fraction(0, 1)))
    """
    kept = list(comparisons)
    for one in comparisons:
        rest = [other for other in kept if other is not one]
        if least_gap(rest, one.lower, one.upper) <= one.gap:
            kept = rest
    return tuple(kept)


def least_gap(comparisons: Sequence[Comparison], lower: int, upper: int) -> Fraction | float:
    """The least gap for which comparisons imply that `lower` is below `upper` plus that; infinite where none do."""
    found: dict[int, Fraction] = {lower: Fraction(0)}
    for _ in comparisons:  # each round follows one more of them
        for one in comparisons:
            if one.lower in found:
                found[one.upper] = min(found[one.lower] + one.gap, found.get(one.upper, found[one.lower] + one.gap))
    return found.get(upper, math.inf)


def connected(nodes: set[int], comparisons: Sequence[Comparison]) -> set[int]:
    """The noises that comparisons lead to from some."""
    found, size = set(nodes), -1
    while size < len(found):
        size = len(found)
        for pair in comparisons:
            if pair.lower in found or pair.upper in found:
                found |= {pair.lower, pair.upper}
    return found


def _density(node: Node, places: int) -> Piecewise:
    found = density(node.law.family, Fraction(node.law.scale) * abs(node.factor), places)
    found = found.mirrored() if node.factor < 0 else found
    if node.is_free:
        return found
    low, high = sorted(_scaled(node.factor, end) for end in (node.low, node.high))
    return found.between(low, high)


def _scaled(factor: Fraction, end: float) -> Fraction | float:
    return factor * Fraction(end) if math.isfinite(end) else end * (1 if factor > 0 else -1)
