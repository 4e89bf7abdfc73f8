"""Bounds on the probability that comparisons of noise hold, where `piecewise` has none.

* **Gumbel noise of one scale** (`of_gumbel`). With w = exp(-z / scale), which is standard exponential noise,
  z <= z' + g is w >= c w' with c = exp(-g / scale). What a leaf of a tree says of its neighbour is then a sum of
  a e^(-b w), as are products of such sums, and what is left at the root is a sum of a / (1 + b). The place of the
  largest has the probabilities of the exponential mechanism by this; and so has any other tree.
* **Any noise of `CUTS`** (`of_any`), also on intervals: the integrals of `piecewise`, by balls: Arb's integration of
  analytic functions proves its bounds (Johansson 2018, arXiv:1802.07942). Between their knots densities are analytic.
  Tails beyond `CUTS` are left out, and their mass is added to the bounds. It needs python-flint. All noises of a tree
  must be compared with one of them, as in a sparse vector, or where the place of the largest is asked for.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from dpaudit.symbolic.laws import Law
from dpaudit.symbolic.piecewise import NOTHING, UNIT, Comparison, CycleError, Enclosure, from_the_leaves

PRECISION = 160  # of balls, in bits
MAX_RELATIVE_WIDTH = Fraction(1, 2**56)  # relative width of a bound by balls
LEFT_OUT = Fraction(1, 2**140)  # mass beyond the cuts of a noise and between two knots that are one, at most
# In scales; e^-160 = 2^-230.8, the normal mass beyond 18 deviations is 2^-237, and e^-e^5.1 = 2^-236.
CUTS = {
    "laplace": (-160.0, 160.0),
    "exponential": (0.0, 160.0),
    "uniform": (0.0, 1.0),
    "normal": (-18.0, 18.0),
    "gumbel": (-5.1, 160.0),
    "logistic": (-160.0, 160.0),
}
KNOTS = {"laplace": (0.0,)}  # where a density bends, within its cuts

Exponentials = list[tuple[Enclosure, Enclosure]]  # (a, b) of a sum of a e^(-b w)


def of_gumbel(scale: Fraction, nodes: Sequence[int], comparisons: Sequence[Comparison]) -> Enclosure:
    """P(all comparisons hold), of independent Gumbel noises of one scale; `CycleError` where they form no trees.

    Examples
    --------
    >>> found = of_gumbel(Fraction(1), [0, 1], [Comparison(1, 0, Fraction(1))])
    >>> abs(float(found) - 1 / (1 + math.exp(-1))) < 1e-15
    True
    """

    def message(own: Exponentials, comparison: Comparison, is_lower: bool) -> Exponentials:
        # The leaf is w >= c w' where it is the lower one, and w <= w' / c where it is the upper one.
        c = Enclosure.of((-comparison.gap if is_lower else comparison.gap) / scale).exp()
        ends = [(a * (b + UNIT).inverse(), (b + UNIT) * c) for a, b in own]
        if is_lower:
            return ends
        return [(_total(own), NOTHING), *((-a, b) for a, b in ends)]

    def product(first: Exponentials, second: Exponentials) -> Exponentials:
        return [(a * c, b + d) for a, b in first for c, d in second]

    start: dict[int, Exponentials] = {node: [(UNIT, NOTHING)] for node in nodes}
    found = UNIT
    for root in from_the_leaves(start, comparisons, product, message):
        found = found * _total(root)
    return found


def _total(terms: Exponentials) -> Enclosure:
    return sum((a * (b + UNIT).inverse() for a, b in terms), NOTHING)


@dataclasses.dataclass(frozen=True)
class Node:
    """A multiple of a noise that lies in an interval: `factor` z with low < z <= high."""

    law: Law
    factor: Fraction = Fraction(1)
    low: float = -math.inf
    high: float = math.inf

    @property
    def is_free(self) -> bool:
        """Tell whether nothing is known of the noise."""
        return math.isinf(self.low) and math.isinf(self.high)


def of_any(nodes: Mapping[int, Node], comparisons: Sequence[Comparison]) -> Enclosure:
    """P(all comparisons hold and each noise is in its interval), of independent noises.

    In each tree all noises must be compared with one of them, else `CycleError`: given that one, the others are
    independent, and what is left is one integral. `ArithmeticError` if python-flint is missing, a law is not known
    here, or the bounds are not narrow.

    Examples
    --------
    >>> normal = Node(Law("normal", 1.0))
    >>> round(float(of_any({0: normal, 1: normal}, [Comparison(1, 0, Fraction(1))])), 6)
    0.76025
    """
    if any(node.law.family not in CUTS for node in nodes.values()):
        raise ArithmeticError("a law is not known here")
    trees = stars(nodes, comparisons)
    with _balls() as flint:
        made = {number: _Density(flint, node) for number, node in nodes.items()}
        value = flint.arb(1)
        for root, compared in trees.items():
            leaves = [_leaf(flint, made[leaf], gap, is_lower) for leaf, gap, is_lower in compared]
            value = value * _integral(flint, made[root], leaves).real
        if not value.is_finite():
            raise ArithmeticError("an integral has no bounds")
        low, high = (_fraction(end) for end in (value.lower(), value.upper()))
    found = Enclosure.of(max(low, Fraction(0)), high + len(nodes) * LEFT_OUT)
    if found.share > MAX_RELATIVE_WIDTH:
        raise ArithmeticError("the bounds are not narrow")
    return found


Leaf = tuple[int, Fraction, bool]  # a noise, the gap, and whether it is at most the root's plus that, or at least it


def stars(nodes: Iterable[int], comparisons: Sequence[Comparison]) -> dict[int, list[Leaf]]:
    """The leaves of each tree of which all are compared with its root."""
    each = {node: [one for one in comparisons if node in (one.lower, one.upper)] for node in nodes}
    found: dict[int, list[Leaf]] = {}
    left = set(each)
    while left:
        root = max(sorted(left), key=lambda node: len(each[node]))
        leaves = [(c.upper, -c.gap, False) if c.lower == root else (c.lower, c.gap, True) for c in each[root]]
        names = [leaf for leaf, *_ in leaves]
        if len({root, *names}) <= len(names) or any(len(each[leaf]) > 1 for leaf in names):
            raise CycleError
        found[root] = leaves
        left -= {root, *names}
    return found


@contextlib.contextmanager
def _balls() -> Iterator[Any]:
    try:
        import flint
    except ImportError as error:
        raise ArithmeticError("it needs python-flint (the extra 'proofs')") from error
    before = flint.ctx.prec
    flint.ctx.prec = PRECISION
    try:
        yield flint
    finally:
        flint.ctx.prec = before


def _exact(flint: Any, value: Fraction) -> Any:
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def _fraction(ball: Any) -> Fraction:
    """The number of a ball without a radius."""
    mantissa, exponent = (int(part) for part in ball.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent


Function = Callable[[Any], Any]  # of balls


class _Density:
    """The density of a node, by pieces between `knots`; 0 beyond them. `below[k]` integrates `pieces[k]`."""

    def __init__(self, flint: Any, node: Node) -> None:
        family, scale = node.law.family, Fraction(node.law.scale)
        low, high = (Fraction(cut) * scale for cut in CUTS[family])
        low = max(low, Fraction(node.low)) if math.isfinite(node.low) else low
        high = min(high, Fraction(node.high)) if math.isfinite(node.high) else high
        if not low < high:
            raise ArithmeticError("an interval is far out in the tails")
        ends = sorted({low, *(Fraction(k) for k in KNOTS.get(family, ()) if low < k < high), high})
        made = [_piece(flint, family, a < 0, node.factor * scale) for a in ends[:-1]]
        self.knots = [_exact(flint, node.factor * end) for end in ends]
        if node.factor < 0:
            made, self.knots = made[::-1], self.knots[::-1]
        self.pieces, self.below = [one[0] for one in made], [one[1] for one in made]
        self.masses = [
            below(b) - below(a) for below, (a, b) in zip(self.below, itertools.pairwise(self.knots), strict=True)
        ]


def _piece(flint: Any, family: str, is_left: bool, factor: Fraction) -> tuple[Function, Function]:
    """Density and distribution function of a multiple of noise of scale 1, on one side of 0 or on both."""
    acb = flint.acb
    width, sign = _exact(flint, factor), 1 if factor > 0 else -1
    root, norm = acb(2).sqrt(), 1 / acb(2 * flint.arb.pi()).sqrt()

    def at(u: Any) -> tuple[Any, Any]:
        if family == "laplace":
            half = (u if is_left else -u).exp() / 2
            return half, half if is_left else 1 - half
        if family == "exponential":
            return (-u).exp(), 1 - (-u).exp()
        if family == "uniform":
            return acb(1), u
        if family == "normal":
            return norm * (-u * u / 2).exp(), (-u / root).erfc() / 2
        if family == "gumbel":
            tail = (-(-u).exp()).exp()
            return (-u).exp() * tail, tail
        total = 1 / (1 + (-u).exp())
        return total * (1 - total), total

    return lambda t: at(t / width)[0] / (sign * width), lambda t: sign * at(acb(t) / width)[1]


def _leaf(flint: Any, own: _Density, gap: Fraction, is_lower: bool) -> tuple[list[Any], list[Function]]:
    """P(the comparison holds) for a value of the root, as knots and one function more than those."""
    by = _exact(flint, gap)
    before = [flint.acb(0)]
    for mass in own.masses:
        before.append(before[-1] + mass)
    whole, sign = (flint.acb(0), 1) if is_lower else (before[-1], -1)

    def between(number: int) -> Function:
        start = before[number] - own.below[number](own.knots[number])
        return lambda t: whole + sign * (start + own.below[number](t + by))

    def constant(value: Any) -> Function:
        return lambda t: value

    ends = constant(whole), constant(whole + sign * before[-1])
    return [knot - by for knot in own.knots], [ends[0], *map(between, range(len(own.pieces))), ends[1]]


def _integral(flint: Any, root: _Density, leaves: Sequence[tuple[list[Any], list[Function]]]) -> Any:
    """The integral of the root's density times all its leaves, between all knots of either."""
    if not leaves:
        return sum(root.masses, flint.acb(0))
    inner = {knot.mid().str(60): knot for knots, _ in leaves for knot in knots if root.knots[0] < knot < root.knots[-1]}
    found = flint.acb(0)
    for a, b in itertools.pairwise(sorted([*root.knots, *inner.values()], key=lambda knot: knot.mid())):
        middle = (a + b) / 2
        own = root.pieces[sum(bool(knot < middle) for knot in root.knots) - 1]
        factors = [functions[sum(bool(knot < middle) for knot in knots)] for knots, functions in leaves]

        def integrand(t: Any, _: bool, own: Function = own, factors: Sequence[Function] = factors) -> Any:
            return functools.reduce(operator.mul, (factor(t) for factor in factors), own(t))

        share = _exact(flint, MAX_RELATIVE_WIDTH / 16)
        found += flint.acb.integral(
            integrand, flint.acb(a), flint.acb(b), rel_tol=share, abs_tol=_exact(flint, LEFT_OUT)
        )
    return found
