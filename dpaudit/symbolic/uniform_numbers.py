"""Uniform numbers as symbols: they are compared, floored and searched for, and never seen.

A `UniformNumber` stands for `scale * U + offset` with U uniform on [0, 1), a *real* number, and rational scale and
offset. A comparison with a number splits the interval in which U is known to lie; the probabilities of the two parts
are ratios of lengths, and U stays uniform on the part that was taken.

The model: a double p in the program is the rational number that it is, so U < p has probability exactly p; sums and
products of a symbol with a number are those of real numbers, without rounding; two ties (U == p) have probability 0,
so `<` and `<=` are the same. Numpy's own uniform number is a multiple of 2**-53, and its sums are rounded: a sum with a
large offset would absorb the draw. A symbol whose offset exceeds 2**20 times its scale is therefore refused, and a
probability of the model differs from the program's by about 2**-33 at most for each operation on the path. The
certificate is on the model. Two forms of one draw whose difference is constant in the model, such as (u + 1) - 1 and
u, differ by their rounding in the program: to subtract them, or to compare them where they are close, is refused.

Whatever would need the number itself (`float`, `math.log`, two uniform numbers in one comparison, an output) is refused
with the line of the call. So is a division by 0 that numpy would answer with an infinity.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from dpaudit.symbolic.symbols import PYTHONS, Symbol
from dpaudit.symbolic.tracing import WIDEST, Tracer

Exact = Fraction | float  # a float only for an infinity or NaN
MAX_OFFSET = 2**20  # of a symbol, as a multiple of its scale
MAX_SCALE = 2**1000  # of a symbol, or of 1 divided by it: beyond that doubles overflow, or have fewer digits
# What is said of uses that need the number.
USES_IN_WORDS = {
    "a text": "printed, or is an output",
    "a key, or a member of a set": "looked up by its value",
    "a copy": "copied",
}


def exact(value: Any) -> Exact | None:
    """A number as the rational that it is; infinities and NaN as floats, and None for what is no real number."""
    if isinstance(value, Symbol):
        value = value.number()
    if isinstance(value, np.generic):
        if isinstance(value, np.longdouble):
            return None
        value = value.item()
    if isinstance(value, int | Fraction):
        return Fraction(int(value)) if isinstance(value, int) else value
    if isinstance(value, float | Decimal):
        return Fraction(value) if math.isfinite(value) else float(value)
    return None


class UniformSource:
    """One uniform draw of a run: U lies in [low, high), and is uniform there."""

    __slots__ = ("high", "low", "tracer")

    def __init__(self, tracer: Tracer) -> None:
        self.tracer, self.low, self.high = tracer, Fraction(0), Fraction(1)
        tracer.has_uniforms = True

    def is_below(self, cut: Fraction) -> bool:
        """Tell whether U < cut; splits the interval where both are possible."""
        if cut >= self.high:
            return True
        if cut <= self.low:
            return False
        share = (cut - self.low) / (self.high - self.low)
        if self.tracer.choose((share, 1 - share)) == 0:
            self.high = cut
            return True
        self.low = cut
        return False


class UniformNumber(Symbol):
    """`scale * U + offset`, for the U of a `UniformSource`."""

    __slots__ = ("_is_drawn", "_offset", "_scale", "_source")
    FAMILY = "uniform"

    def __init__(
        self,
        source: UniformSource,
        scale: Fraction = Fraction(1),
        offset: Fraction = Fraction(0),
        is_drawn: bool = True,
        kind: type = float,
    ) -> None:
        self._source, self._scale, self._offset, self._is_drawn = source, scale, offset, is_drawn
        self._run, self._kind = source.tracer, kind

    def as_class(self, kind: type) -> Any:
        if PYTHONS[kind] is int:
            return kind(int(self))
        return UniformNumber(self._source, self._scale, self._offset, self._is_drawn, kind)

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """Between which the draw is known to lie."""
        return self._source.low, self._source.high

    def number(self, use: str = "as it is") -> NoReturn:
        self._refuse(f"a uniform number is {USES_IN_WORDS.get(use, f'used as a number ({use})')}")

    def _refuse(self, reason: str) -> NoReturn:
        self._run.refuse(reason)
        raise AssertionError

    # Comparisons

    def _is_below(self, other: Any, is_strict: bool) -> Any:
        """Tell whether the symbol is below `other`; `is_strict` matters for two symbols of one draw."""
        if type(other) is UniformNumber:
            if other._source is not self._source:
                self._refuse("two uniform numbers are compared with each other")
            scale, rest = self._scale - other._scale, other._offset - self._offset
            if scale == 0:
                self._check_apart(other)
                return rest > 0 if is_strict else rest >= 0
            self._check_slopes(other)
            return _cut(self._source, scale, rest)
        value = exact(other)
        if value is None:
            return NotImplemented
        if isinstance(value, float):
            return value == math.inf
        return _cut(self._source, self._scale, value - self._offset)

    def _equals(self, other: Any) -> Any:
        # A real number meets a given one with probability 0; two forms of one draw meet always or never.
        if type(other) is not UniformNumber:
            return False
        if other._source is not self._source:
            self._refuse("two uniform numbers are compared with each other")
        if self._scale == other._scale:
            self._check_apart(other)
        else:
            self._check_slopes(other)
        return self._scale == other._scale and self._offset == other._offset

    def __bool__(self) -> bool:
        return True  # 0 has probability 0

    # Arithmetic

    def _affine(self, scale: Fraction, offset: Fraction, kind: type) -> Any:
        return self._with(self._scale * scale, self._offset * scale + offset, kind)

    def _with(self, scale: Fraction, offset: Fraction, kind: type) -> Any:
        if abs(offset) > MAX_OFFSET * abs(scale):
            self._refuse("a uniform number is added to one so large that its digits are lost")
        if not 1 <= abs(scale) * MAX_SCALE <= MAX_SCALE**2:
            self._refuse("a uniform number is computed with so that it may leave the range of doubles")
        return UniformNumber(self._source, scale, offset, is_drawn=False, kind=kind)

    def _is_same(self, other: UniformNumber) -> bool:
        """Tell whether another symbol is the same double, and not only the same real number."""
        return self is other or (self._is_drawn and other._is_drawn and self._source is other._source)

    def _check_apart(self, other: UniformNumber) -> None:
        """Refuse two symbols of one slope that rounding may put in either order."""
        gap, size = abs(self._offset - other._offset), abs(self._offset) + abs(other._offset) + abs(self._scale)
        if gap * MAX_OFFSET <= size and not self._is_same(other):
            self._refuse("two forms of one uniform number are compared that differ by their rounding")

    def _check_slopes(self, other: UniformNumber, sign: int = -1) -> None:
        """Refuse two symbols of one draw whose slopes differ by little more than rounding does."""
        if abs(self._scale + sign * other._scale) * MAX_OFFSET < abs(self._scale):
            self._refuse("two nearly equal multiples of a uniform number are subtracted or compared")

    def _number(self, other: Any) -> tuple[Fraction, type]:
        """Another number, and the class of a sum, product or quotient with it."""
        value, kind = exact(other), self._result_class(operator.add, other)
        if value is None or isinstance(value, float) or kind is None:
            self._refuse(f"a uniform number is computed with {type(other).__name__} {other!r:.40}")
        return value, kind

    def _sum(self, other: Any, sign: int) -> Any:
        if type(other) is UniformNumber:
            if other._source is not self._source:
                self._refuse("two uniform numbers are added")
            scale, offset = self._scale + sign * other._scale, self._offset + sign * other._offset
            if scale:
                self._check_slopes(other, sign)
            if not scale and not self._is_same(other):
                # Validity: (u + 1) - u is 1 in real numbers, and 1 or a little more or less in doubles.
                self._refuse("two forms of one uniform number cancel, up to their rounding")
            kind = self._result_class(operator.add, other) or float
            return self._with(scale, offset, kind) if scale else kind(offset)
        number, kind = self._number(other)
        return self._affine(Fraction(1), sign * number, kind)

    def _product(self, other: Any) -> Any:
        if type(other) is UniformNumber:
            self._refuse("two uniform numbers are multiplied")
        factor, kind = self._number(other)
        if not factor:
            return self._kind(-1 if self < 0 else 1) * other  # 0 with its sign
        return self._affine(factor, Fraction(0), kind)

    def _quotient(self, other: Any) -> Any:
        divisor, kind = self._divisor(operator.truediv, other)
        return self._affine(1 / divisor, Fraction(0), kind)

    def _divisor(self, operation: Callable[[Any, Any], Any], other: Any) -> tuple[Fraction, type]:
        """Number as by `_number`, of a divisor: by 0 Python raises, and numpy goes on with an infinity."""
        divisor, kind = self._number(other)
        if not divisor:
            if isinstance(self, np.generic) or isinstance(other, np.generic):
                self._refuse("a uniform number is divided by 0")
            operation(1.0, other)
        return divisor, kind

    def __neg__(self) -> Any:
        return self._affine(Fraction(-1), Fraction(0), self._kind)

    # Whole parts

    def __floor__(self) -> int:
        source, scale, offset = self._source, self._scale, self._offset
        while True:
            ends = sorted((source.low * scale + offset, source.high * scale + offset))
            first, last = math.floor(ends[0]), math.ceil(ends[1]) - 1
            if first >= last:
                return first
            step = -(-(last - first) // WIDEST)
            cuts = sorted((whole - offset) / scale for whole in range(first + 1, last + 1, step))
            places = [source.low, *cuts, source.high]
            width = source.high - source.low
            parts = [(high - low) / width for low, high in itertools.pairwise(places)]
            part = source.tracer.choose(parts)
            source.low, source.high = places[part], places[part + 1]

    def __ceil__(self) -> int:
        opposite: UniformNumber = -self
        return -opposite.__floor__()

    def __trunc__(self) -> int:
        return math.ceil(self) if self < 0 else math.floor(self)

    __int__ = __trunc__

    def __round__(self, digits: Any = None) -> int:
        if digits is not None:
            self._refuse("a uniform number is rounded to a number of digits")
        shifted: UniformNumber = self + 0.5
        return shifted.__floor__()  # ties have probability 0

    def __floordiv__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return self._each(self.__floordiv__, other)
        _, kind = self._divisor(operator.floordiv, other)
        return kind(math.floor(self / other))

    def __mod__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return self._each(self.__mod__, other)
        divisor, kind = self._divisor(operator.mod, other)
        return (self - divisor * Fraction(math.floor(self / other))).as_class(kind)

    def __divmod__(self, other: Any) -> Any:
        self._divisor(divmod, other)
        return self // other, self % other

    def is_integer(self) -> bool:
        if abs(self._scale) > MAX_OFFSET:
            self._refuse("a uniform number is asked for its last digits")  # it is a multiple of scale * 2**-53
        return False  # with probability 1

    def __index__(self) -> int:
        raise TypeError("'float' object cannot be interpreted as an integer")


def _cut(source: UniformSource, scale: Fraction, value: Fraction) -> bool:
    """Tell whether scale * U < value."""
    below = source.is_below(value / scale)
    return below if scale > 0 else not below


def _floor(a: Any) -> Any:
    return float(np.floor(a)) if not isinstance(a, Symbol) else float(a.__floor__())


def _rint(a: Any) -> Any:
    whole = _floor(a + 0.5)  # ties have probability 0
    return whole if whole or a >= 0 else -0.0


UniformNumber.FOLLOWED = {
    np.floor_divide: operator.floordiv,
    np.remainder: operator.mod,
    np.divide: operator.truediv,
    np.floor: _floor,
    np.ceil: lambda a: -_floor(-a),
    np.trunc: lambda a: _floor(a) if a >= 0 else -_floor(-a),
    np.rint: _rint,
}
