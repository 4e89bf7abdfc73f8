"""Noisy numbers as symbols: a noise-free part plus multiples of recorded noises.

Sums and multiples give another symbol. A comparison asks the tape for a decision where one noise decides it, or two
do. A function that grows (a rounding, a logarithm) is kept beside the number: what it gives may be compared with a
constant or be an output. All else (`float`, a product of two noisy numbers) is a look at the value.
"""

from __future__ import annotations

import math
import numbers
import operator
import sys
from collections.abc import Callable
from fractions import Fraction
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from dpaudit.symbolic.growing import FUNCTIONS, MAX_DIGITS, Function, rounding
from dpaudit.symbolic.laws import Law, combined
from dpaudit.symbolic.piecewise import Comparison
from dpaudit.symbolic.symbols import PYTHONS, Symbol, is_nan
from dpaudit.symbolic.tape import Tape

# Of the largest number on the way, or of the largest noise: what is smaller is in part a rounding error, of a share of
# 2^-53 / 2^-30 = 1.2e-7 at least, which is what a proof leaves as slack.
MIN_SHARE = 2.0**-30
MIN_STRENGTH = sys.float_info.min / MIN_SHARE  # of weaker noise such a share is a subnormal double, with fewer digits
UNTOLD = "has noise that all but cancels, is absorbed by a large number, or leaves the range of doubles"
NEVER = 1e-30  # a probability that no run of a program meets
MAX_INTEGER = 2.0**53  # beyond this doubles are no integers one by one; beyond 2^63 numpy's wrap around
MAX_STRENGTH = sys.float_info.max * NEVER  # no noise goes farther out than 1 / NEVER scales, a Cauchy one with NEVER


class Noisy(Symbol):
    """A noisy number: `signal` plus the sum of `terms` (index of a noise: its coefficient) of a tape.

    Where there is a function, `by`, it is what that gives of this. A program that gives it out loses at most what the
    number does, and as much where there is an inverse.

    `reach` is the largest noise-free part on the way: the rounding errors of `signal` are some 2^-53 of it each.
    `width` is the largest noise on the way, in scales times coefficients. A number whose noise has cancelled is still
    one of these, as the program has rounding errors in its place; it has no terms.
    """

    __slots__ = ("by", "reach", "signal", "terms", "width")
    FAMILY = "noise"
    COMPARED = ()

    def __init__(
        self,
        tape: Tape,
        signal: float,
        terms: dict[int, float],
        reach: float = 0.0,
        kind: type = float,
        width: float = 0.0,
        by: Function | None = None,
    ) -> None:
        self._run, self._kind, self.signal, self.terms, self.by = tape, kind, signal, terms, by
        self.reach = max(reach, abs(signal)) if math.isfinite(signal) else reach
        self.width = width

    @property
    def tape(self) -> Tape:
        """The tape of its noises."""
        tape: Tape = self._run
        return tape

    @property
    def value(self) -> float:
        """Its value in this run: not for the program."""
        found = self.signal + sum(factor * self.tape.noises[index].value for index, factor in self.terms.items())
        return found if self.by is None else self.by.value(found)

    @property
    def function(self) -> str:
        """The name of what gives it, or nothing."""
        return "" if self.by is None else self.by.name

    @property
    def law(self) -> tuple[float, Law] | None:
        """The law of its noises together, with a coefficient, where it has a name."""
        return combined([(factor, self.tape.noises[index].law) for index, factor in self.terms.items()])

    @property
    def is_far_from_zero(self) -> bool:
        """Tell whether it has no noise left, and more than the rounding errors that are in its place; or is NaN."""
        return not self.terms and not abs(self.signal) <= MIN_SHARE * (self.reach + self.width)

    def as_class(self, kind: type) -> Any:
        if PYTHONS[kind] is int and PYTHONS[self._kind] is float and (self.by is None or self.by.step != 1.0):
            return self.after(FUNCTIONS["trunc"], kind)
        return self._of(self.by, kind)

    def _of(self, by: Function | None, kind: type) -> Noisy:
        """Result of a function of the number."""
        return Noisy(self.tape, self.signal, self.terms, self.reach, kind, self.width, by)

    def number(self, use: str = "as it is") -> Any:
        """Its value, by a look."""
        value = self.tape.look(self.value, use)
        return self._kind(round(value) if PYTHONS[self._kind] is int else value)

    def centre(self) -> float:
        """The noise-free part: it is finite where the number is."""
        return self.signal

    # Functions of it.

    def after(self, function: Function, kind: type | None = None) -> Any:
        """Result of a function of it; None where that is refused."""
        kind = kind or self._kind
        if not self.is_followed_by(function):
            return kind(function.value(self.number(function.name)))
        if function.start > -math.inf and self <= function.start:
            return None
        return self._of(function, kind)

    def is_followed_by(self, function: Function) -> bool:
        """Tell whether it has continuous noise, for which ends of steps do not matter, between a function's ends.

        Noise of whole numbers is at such ends; beyond the others a program overflows, or gets zeros.
        """
        terms = [(factor, self.tape.noises[index].law) for index, factor in self.terms.items()]
        is_bare = self.by is None and bool(terms) and math.isfinite(self.signal)
        if not is_bare or any(law.is_discrete for _, law in terms):
            return False
        beyond = 0.0
        for factor, law in terms:
            low, high = sorted((end - self.signal) / factor / len(terms) for end in function.ends)
            beyond += law.mass(-math.inf, low) + law.mass(high, math.inf)
        return beyond <= NEVER

    def __round__(self, digits: Any = None) -> Any:
        if PYTHONS[self._kind] is int or abs(digits or 0) > MAX_DIGITS:
            return round(self.number("round"), digits)
        return self.after(rounding(digits or 0), int if digits is None else self._kind)

    def round(self, decimals: int = 0, out: Any = None) -> Any:
        """Round as a number of numpy."""
        return np.round(self.number("round"), decimals) if out is not None else round(self, decimals)

    def __floor__(self) -> Any:
        return self.after(FUNCTIONS["floor"], int)

    def __ceil__(self) -> Any:
        return self.after(FUNCTIONS["ceil"], int)

    def __trunc__(self) -> Any:
        return self.after(FUNCTIONS["trunc"], int)

    # Sums and multiples.

    def _made(self, signal: float, terms: dict[int, float], reach: float, kind: type, width: float) -> Any:
        left = {index: factor for index, factor in terms.items() if factor != 0.0}
        # Validity: noise that cancels leaves rounding errors in the program, and 0 times noise a zero with its sign.
        if len(left) < len(terms) or not left:
            self.tape.factor = None
        return Noisy(self.tape, signal, left, reach if math.isfinite(reach) else 0.0, kind, width).checked()

    def checked(self) -> Noisy:
        """Itself; a look where some of its noise is in the last digits of what was computed on the way."""
        strengths = [abs(factor) * self.tape.noises[index].law.unit for index, factor in self.terms.items()]
        self.width = max([self.width, *strengths])
        largest = max(self.width, self.reach)
        if PYTHONS[self._kind] is int:  # geometric: beyond k it has probability (1 - p)^k <= e^(-k p)
            means = sum(abs(factor) / self.tape.noises[index].law.scale for index, factor in self.terms.items())
            if self.reach - math.log(NEVER) * means > MAX_INTEGER:
                self.tape.mark_opaque(UNTOLD)
        if largest > MAX_STRENGTH or any(one <= max(MIN_SHARE * largest, MIN_STRENGTH) for one in strengths):
            self.tape.mark_opaque(UNTOLD)
        return self

    def _with(self, operation: Callable[[Any, Any], Any], other: Any) -> tuple[type, float] | None:
        """The class of a result and the other number as a double; None where the operation needs the number."""
        kind = self._result_class(operation, other)
        if kind is None or isinstance(other, Symbol) or self.by is not None:
            return None
        return kind, float(other)

    def _sum(self, other: Any, sign: int) -> Any:
        operation = operator.add if sign > 0 else operator.sub
        if isinstance(other, Noisy) and self.by is None and other.by is None:
            terms = dict(self.terms)
            for index, factor in other.terms.items():
                terms[index] = terms.get(index, 0.0) + sign * factor
            kind = self._result_class(operation, other) or float
            reach, width = max(self.reach, other.reach), max(self.width, other.width)
            return self._made(self.signal + sign * other.signal, terms, reach, kind, width)
        found = self._with(operation, other)
        if found is None:
            return super()._sum(other, sign) if _is_number(other) else NotImplemented
        kind, number = found
        number *= sign
        if not self.terms and self.width == self.signal == 0.0 and (number or math.copysign(1.0, number) > 0.0):
            return kind(number)  # a zero, whatever its sign is, adds nothing to it
        return self._made(self.signal + number, self.terms, max(self.reach, abs(number)), kind, self.width)

    def _scaled(self, operation: Callable[[Any, Any], Any], other: Any) -> Any:
        found = self._with(operation, other)
        if not _is_number(other):
            return NotImplemented
        if found is None or (operation is operator.truediv and found[1] == 0.0):
            return operation(self.number("a product"), other.number("a product") if isinstance(other, Noisy) else other)
        kind, number = found
        terms = {index: operation(factor, number) for index, factor in self.terms.items()}
        if number and 0.0 in terms.values():
            self.tape.mark_opaque(UNTOLD)
        reach, width = (abs(operation(one, number)) for one in (self.reach, self.width))
        return self._made(operation(self.signal, number), terms, reach, kind, width if math.isfinite(width) else 0.0)

    def _product(self, other: Any) -> Any:
        return self._scaled(operator.mul, other)

    def _quotient(self, other: Any) -> Any:
        return self._scaled(operator.truediv, other)

    # Comparisons.

    def _is_below(self, other: Any, is_strict: bool) -> Any:
        if not _is_number(other):
            return NotImplemented
        if is_nan(other) or (not isinstance(other, Symbol) and math.isinf(other)):
            return not is_nan(other) and other > 0
        if self.by is not None:
            if isinstance(other, Symbol):
                return super()._is_below(other, is_strict)
            limit = math.nextafter(float(other), -math.inf) if is_strict and self.by.step else float(other)
            return self._of(None, float) <= self.by.last(limit)
        if isinstance(other, Noisy) and other.by is not None:
            other = other.number("a comparison")
        # Below is not at most, the other way round.
        return not (-self)._is_at_most(-other) if is_strict else self._is_at_most(other)

    def _is_at_most(self, other: Any) -> bool:
        """Tell whether self - other <= 0; equality has probability 0 or is discrete."""
        gap = self._sum(other, -1)
        if gap.is_far_from_zero:
            return bool(gap.signal <= 0.0)
        if len(gap.terms) == 1 and math.isfinite(gap.signal):
            ((index, factor),) = gap.terms.items()
            self.tape.reaches[index] = max(self.tape.reaches.get(index, 0.0), gap.reach / abs(factor))
            threshold = -gap.signal / factor
            if factor > 0.0:
                return self.tape.is_below(index, threshold)
            if self.tape.noises[index].law.is_discrete:  # factor * z <= -signal: z >= threshold
                threshold = math.ceil(threshold) - 1
            return not self.tape.is_below(index, threshold)
        found: bool | None = gap._is_order() if len(gap.terms) == 2 and math.isfinite(gap.signal) else None
        return bool(gap.number("a comparison") <= 0.0) if found is None else found

    def _is_order(self) -> bool | None:
        """Tell whether the number, a difference of multiples of two noises, is at most 0, by their order."""
        (one, factor), (other, minus) = ((index, Fraction(factor)) for index, factor in self.terms.items())
        known = self.tape.units
        ratio = factor / known[one] if one in known else -minus / known[other] if other in known else abs(factor)
        units = {one: factor / ratio, other: -minus / ratio}
        limit = -Fraction(self.signal) / ratio
        first, second = Comparison(one, other, limit), Comparison(other, one, -limit)
        options = ([first], [second]) if ratio > 0 else ([second], [first])
        found = self.tape.order(options, units, self.reach / float(abs(ratio)), "comparison of two noises")
        return None if found is None else found == 0

    def _equals(self, other: Any) -> Any:
        if not _is_number(other):
            return NotImplemented
        if self.by is not None:
            return self._is_below(other, False) and bool(self.by.step) and not self._is_below(other, True)
        if isinstance(other, Noisy) and other.by is not None:
            return other._equals(self)
        gap = self._sum(other, -1)
        return not gap.is_far_from_zero and gap.number("a comparison") == 0.0

    # As numbers of numpy have them.

    def __getattr__(self, name: str) -> Any:
        if name in ("dtype", "mean"):  # by which functions of numpy would ask it for a number
            raise AttributeError(f"'{self._kind.__name__}' object has no attribute {name!r}")
        return super().__getattr__(name)

    def astype(self, kind: Any, **_: Any) -> Any:
        """Convert as a number of numpy: a double stays tracked."""
        is_double = np.dtype(kind) == np.float64
        return self.as_class(np.float64) if is_double else np.dtype(kind).type(self.number("astype"))

    @staticmethod
    def place_of_largest(row: list[Any], sign: float) -> np.intp:
        """The place of the largest of sign * numbers; a decision where they have independent noise."""
        noisy = [item for item in row if isinstance(item, Noisy)]
        if noisy and len(noisy) == len(row) and all(len(item.terms) == 1 and item.by is None for item in noisy):
            tape = noisy[0].tape
            indices = [next(iter(item.terms)) for item in noisy]
            signals = [sign * item.signal for item in noisy]
            factors = [sign * item.terms[index] for item, index in zip(noisy, indices, strict=True)]
            if len(set(indices)) == len(indices) > 1 and all(map(math.isfinite, signals)):
                units = {index: Fraction(factor) for index, factor in zip(indices, factors, strict=True)}
                options = [_first(place, signals, indices) for place in range(len(noisy))]
                found = tape.order(options, units, max(item.reach for item in noisy), "place of the largest")
                if found is not None:
                    return np.intp(found)
        values = [item.number("the largest") if isinstance(item, Noisy) else item for item in row]
        return np.argmax(sign * np.array(values, dtype=float))


def _first(place: int, signals: list[float], indices: list[int]) -> list[Comparison]:
    """Event that one of signals + multiples of noises is the largest."""
    best = Fraction(signals[place])
    return [
        Comparison(index, indices[place], best - Fraction(signal))
        for index, signal in zip(indices, signals, strict=True)
        if index != indices[place]
    ]


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Number | np.generic)


def _larger(a: Any, b: Any) -> Any:
    return b if is_nan(a) or (not is_nan(b) and b > a) else a


def _smaller(a: Any, b: Any) -> Any:
    return b if is_nan(a) or (not is_nan(b) and b < a) else a


def following(plain: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function of `math` or of numpy that keeps a noisy number a symbol."""

    def follow(*arguments: Any, **options: Any) -> Any:
        if len(arguments) != 1 or options or not isinstance(arguments[0], Noisy):
            return plain(*arguments, **options)
        function = FUNCTIONS[name]
        if not arguments[0].is_followed_by(function):
            return plain(arguments[0].number(name))
        found = arguments[0].after(function, float if isinstance(plain, BuiltinFunctionType) else None)
        # What is refused has no value: NaN of numpy, an exception of Python's.
        return plain(math.nextafter(function.start, -math.inf)) if found is None else found

    return follow


def _of_symbol(ufunc: Any, name: str) -> Callable[[Any], Any]:
    follow = following(ufunc, name)
    return lambda item: follow(item) if isinstance(item, Noisy) else ufunc(item.number(name))


Noisy.FOLLOWED = {
    np.divide: operator.truediv,
    np.fmax: _larger,
    np.fmin: _smaller,
    np.rint: lambda item: item.round(),
    **{getattr(np, name): _of_symbol(getattr(np, name), name) for name in FUNCTIONS},
}
