"""Geometric draws, and integers from a wide range, as symbols that are split only where the program looks at them.

A `WholeNumber` is an integer plus a sum of independent variables with whole coefficients. A variable is X in
{0, 1, ...} with P(X = k) proportional to ratio^k, without an end (0 <= ratio < 1) or on {0, ..., size - 1} (where ratio
1 is uniform).

Validity: every split below leaves the remaining variables independent, with the law of their kind, by memorylessness.

* X without an end is below k, or is k + X' with X' as X. P(X >= k) = ratio^k.
* The race of X and Y without ends (ratios a, b): min(X, Y) is geometric with ratio ab, independent of which one is
  smaller. P(X < Y) = (1 - a) b / (1 - ab), and then Y = min + 1 + Y' with Y' as Y, independent of min; P(X = Y) =
  (1 - a)(1 - b) / (1 - ab). So every comparison of sums of geometric variables, of coefficients 1 and -1, takes
  finitely many splits, although the variables are unbounded: the arg max of noisy counts has a finite exact law.

A whole number is Python's int or numpy's, or a double of either (`Symbol`): `int`, `float`, `round` and sums with
whole doubles change its class alone. Where the program needs the number itself, the symbol becomes one, by choices
without an end; the first line where it does is noted (`Tracer.note_end`).
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.symbolic.symbols import NUMPYS, PYTHONS, Symbol
from dpaudit.symbolic.tracing import WIDEST, Tracer
from dpaudit.symbolic.uniform_numbers import UniformNumber, exact

BLOCK = 8  # values of a variable without an end that one choice tells apart
EXACT = 2**53  # integers up to here are doubles
ENDLESS = 89  # as many mean distances hold all of a variable without an end but a mass of 2^-128
MAX_DIGITS = 2**22  # binary digits of a probability: more take seconds, and 2^40 no computer has room for
ROUNDED: type = type(round(np.int64(1)))  # which depends on numpy's version


class Variable:
    """One variable of a run; `value` is what it turned out to be, as a sum of others."""

    __slots__ = ("ratio", "size", "value")

    def __init__(self, ratio: Fraction, size: int | None = None) -> None:
        self.ratio, self.size = ratio, size
        self.value: tuple[int, dict[Variable, int]] | None = None

    @property
    def reach(self) -> int:
        """A number that it exceeds with probability 0, or at most 2^-128."""
        ends = self.ratio.denominator
        # ratio^k <= e^(-k (1 - ratio))
        return self.size - 1 if self.size is not None else ENDLESS * ends // (ends - self.ratio.numerator) + 1

    def become(self, shift: int, parts: dict[Variable, int] | None = None) -> None:
        """Note that X is shift + parts."""
        self.value = shift, parts or {}

    def shift(self, by: int) -> None:
        """Note that X >= by: what is beyond has the same kind of law."""
        size = None if self.size is None else self.size - by
        self.become(by, {Variable(self.ratio, size): 1} if size != 1 else {})


class WholeNumber(Symbol):
    """constant + sum of coefficient * variable."""

    __slots__ = ("_constant", "_terms")
    FAMILY = "whole"

    def __init__(self, tracer: Tracer, constant: int, terms: dict[Variable, int], kind: type = int) -> None:
        self._run, self._constant, self._terms, self._kind = tracer, constant, terms, kind

    def as_class(self, kind: type) -> Any:
        if PYTHONS[kind] is float and PYTHONS[self._kind] is int:
            return self._with(self._constant, self._terms, kind)  # a double, if all its values are
        return WholeNumber(self._run, self._constant, self._terms, kind)

    def _settle(self) -> None:
        """Replace the variables of which more is known by what they are."""
        while True:
            for variable in self._terms:
                if variable.value is not None:
                    break
            else:
                return
            constant, terms = self._constant, dict[Variable, int]()
            for variable, factor in self._terms.items():
                shift, parts = variable.value if variable.value is not None else (0, {variable: 1})
                constant += factor * shift
                for part, inner in parts.items():
                    terms[part] = terms.get(part, 0) + factor * inner
            self._constant, self._terms = constant, {v: f for v, f in terms.items() if f}

    def parts(self) -> tuple[int, dict[Variable, int]]:
        """The constant and the coefficients of the variables that are still open."""
        self._settle()
        return self._constant, self._terms

    def number(self, use: str = "as it is") -> Any:
        """The number itself: every variable is told by choices."""
        while True:
            self._settle()
            if not self._terms:
                return self._kind(self._constant)
            variable = next(iter(self._terms))
            if variable.size is None:
                self._run.note_end(use)
            tell(self._run, variable)

    def is_negative(self) -> bool:
        """Tell whether the number is below 0, by as few choices as that takes."""
        while True:
            self._settle()
            constant, terms = self._constant, self._terms
            low = high = constant
            is_bounded_below = is_bounded_above = True
            for variable, factor in terms.items():
                if variable.size is not None:
                    low, high = low + min(factor, 0) * (variable.size - 1), high + max(factor, 0) * (variable.size - 1)
                elif factor > 0:
                    is_bounded_above = False
                else:
                    is_bounded_below = False
            if is_bounded_below and low >= 0:
                return False
            if is_bounded_above and high < 0:
                return True
            self._split(constant, terms)

    def _split(self, constant: int, terms: dict[Variable, int]) -> None:
        """One more choice towards the sign of the number."""
        endless = [variable for variable in terms if variable.size is None]
        bounded = [variable for variable in terms if variable.size is not None]
        ups = [variable for variable in endless if terms[variable] > 0]
        downs = [variable for variable in endless if terms[variable] < 0]
        if len(terms) == 1:
            variable, factor = next(iter(terms.items()))
            # The number is negative where factor * X < -constant.
            count = -(constant // factor) if factor > 0 else constant // -factor + 1
            cut(self._run, variable, count)
        elif bounded:
            tell(self._run, min(bounded, key=lambda variable: variable.size or 0))
        elif ups and downs:
            if all(abs(terms[variable]) == 1 for variable in endless):
                race(self._run, ups[0], downs[0])
            else:
                tell(self._run, ups[0])
        elif ups:  # constant < 0
            atoms(self._run, ups[0], -(constant // terms[ups[0]]))
        else:
            atoms(self._run, downs[0], constant // -terms[downs[0]] + 1)

    # Comparisons: with a whole number by its difference, with any other by the whole number above or below it.

    def _is_below(self, other: Any, is_strict: bool) -> Any:
        if type(other) is UniformNumber:
            return NotImplemented
        if type(other) is WholeNumber:
            gap = self - other - (0 if is_strict else 1)
            return gap.is_negative() if type(gap) is WholeNumber else gap < 0
        value = self._exact(other)
        if value is None:
            return NotImplemented
        if isinstance(value, float):
            return value == math.inf
        bound = math.ceil(value) if is_strict else math.floor(value) + 1
        return WholeNumber(self._run, self._constant - bound, self._terms).is_negative()

    def _exact(self, other: Any) -> Any:
        """A number to compare with, or the end of the run where numpy would round this one to a double first."""
        if self._result_class(operator.add, other) is np.float64:
            self.as_class(np.float64)
        return exact(other)

    def _equals(self, other: Any) -> Any:
        if type(other) is not WholeNumber:
            value = self._exact(other) if type(other) is not UniformNumber else None
            if value is None:
                return NotImplemented
            if isinstance(value, float) or value.denominator != 1:
                return False
        return bool(self >= other) and bool(self <= other)

    # Arithmetic that keeps the symbol

    def _sum(self, other: Any, sign: int) -> Any:
        if type(other) is UniformNumber:
            return NotImplemented
        kind = self._result_class(operator.add, other)
        if type(other) is WholeNumber:
            terms = dict(self._terms)
            for variable, factor in other._terms.items():
                terms[variable] = terms.get(variable, 0) + sign * factor
            return self._with(self._constant + sign * other._constant, terms, kind or int)
        value = exact(other)
        if kind and isinstance(value, Fraction) and value.denominator == 1:
            return self._with(self._constant + sign * int(value), self._terms, kind)
        return super()._sum(other, sign)

    def _with(self, constant: int, terms: dict[Variable, int], kind: type) -> Any:
        terms = {variable: factor for variable, factor in terms.items() if factor}
        # Validity: numpy's integers wrap around beyond 2**63, and a sum with a double is rounded beyond 2**53.
        reach = abs(constant) + sum(abs(f) * v.reach for v, f in terms.items())
        if terms and reach > EXACT:
            self._run.refuse("an integer draw is computed with so that it may exceed 2**53")
        return WholeNumber(self._run, constant, terms, kind) if terms else kind(constant)

    def __rsub__(self, other: Any) -> Any:
        if isinstance(other, float) and math.copysign(1.0, other) < 0 and self == 0:
            return other - self._kind(0)  # -0.0 less 0
        return self._times(-1, self._kind) + other

    def _times(self, factor: int, kind: type) -> Any:
        return self._with(factor * self._constant, {v: factor * f for v, f in self._terms.items()}, kind)

    def _product(self, other: Any) -> Any:
        if type(other) is UniformNumber:
            return NotImplemented
        value = exact(other) if type(other) is not WholeNumber else None
        kind = self._result_class(operator.mul, other)
        if kind and isinstance(value, Fraction) and value.denominator == 1:
            if PYTHONS[kind] is float and value <= 0 and (not value or self == 0):  # 0 has a sign
                return self._kind(-1 if self < 0 else 0 if self == 0 else 1) * other
            return self._times(int(value), kind)
        return super()._product(other)

    def __neg__(self) -> Any:
        return -self._kind(0) if PYTHONS[self._kind] is float and self == 0 else self._times(-1, self._kind)

    def __floor__(self) -> Any:
        return self.as_class(int)

    __ceil__ = __floor__

    def __trunc__(self) -> Any:
        return math.trunc(self.number("trunc")) if self._kind is np.int64 else self.as_class(int)

    def __round__(self, digits: Any = None) -> Any:
        if digits is None:
            return self.as_class(ROUNDED if self._kind is np.int64 else int)
        return self if type(digits) is int and digits >= 0 else round(self.number("round"), digits)

    def round(self, decimals: int = 0, out: Any = None) -> Any:
        """Method that `numpy.round` calls on a number."""
        is_itself = decimals >= 0 and out is None
        return self.as_class(NUMPYS[self._kind]) if is_itself else np.round(self.number("round"), decimals, out)


# Splits. Their probabilities are computed once for each law: runs make the same ones again and again.

Weights = tuple[Fraction, ...]
Key = tuple[int, int]  # numerator and denominator: a fraction's own hash takes longer than a product


def _key(ratio: Fraction) -> Key:
    return ratio.numerator, ratio.denominator


def _at_least(ratio: Fraction, size: int | None, count: int) -> Fraction:
    """P(X >= count), for 0 <= count (<= size)."""
    if size is None:
        return ratio**count
    if ratio == 1:
        return Fraction(size - count, size)
    return (ratio**count - ratio**size) / (1 - ratio**size)


@functools.lru_cache(maxsize=4096)
def _cut_weights(key: Key, size: int | None, count: int) -> Weights:
    above = _at_least(Fraction(*key), size, count)
    return 1 - above, above


@functools.lru_cache(maxsize=4096)
def _atom_weights(key: Key, size: int | None, count: int) -> Weights:
    """Of 0, ..., count - 1, and of all beyond, which has probability 0 where count is the size."""
    tails = [_at_least(Fraction(*key), size, k) for k in range(count + 1)]
    return (*(first - second for first, second in itertools.pairwise(tails)), tails[-1])


@functools.lru_cache(maxsize=4096)
def _race_weights(first: Key, second: Key) -> tuple[Weights, Fraction]:
    a, b = Fraction(*first), Fraction(*second)
    below, equal = (1 - a) * b / (1 - a * b), (1 - a) * (1 - b) / (1 - a * b)
    return (below, equal, 1 - below - equal), a * b


@functools.lru_cache(maxsize=1024)
def _failure(numerator: int, denominator: int) -> Fraction:
    return 1 - Fraction(numerator, denominator)


def geometric(tracer: Tracer, success: Fraction) -> Any:
    """Trials up to the first success, each with probability `success` in (0, 1]: an integer from 1 on."""
    if success == 1:
        return 1
    number = WholeNumber(tracer, 1, {})._with(1, {Variable(_failure(*_key(success))): 1}, int)
    if not tracer.lazy:
        return number.number("a draw")
    tracer.has_wholes = True
    return number


def uniform(tracer: Tracer, low: int, count: int) -> Any:
    """A uniform integer in [low, low + count): a symbol where there are more than one choice tells apart."""
    if count <= WIDEST or not tracer.lazy:
        return low + tracer.uniform_integer(count)
    tracer.has_wholes = True
    return WholeNumber(tracer, low, {Variable(Fraction(1), count): 1})


def cut(tracer: Tracer, variable: Variable, count: int) -> None:
    """Split X into X < count and X >= count."""
    if variable.ratio != 1 and count * variable.ratio.denominator.bit_length() > MAX_DIGITS:
        tracer.refuse("a geometric draw is compared with a number so far out that its probability has too many digits")
    if tracer.choose(_cut_weights(_key(variable.ratio), variable.size, count)) == 1:
        variable.shift(count)
    else:
        variable.become(0, {Variable(variable.ratio, count): 1} if count > 1 else {})


def atoms(tracer: Tracer, variable: Variable, count: int) -> None:
    """Split X into 0, ..., count - 1 one by one, and X >= count; of a large count the first ones."""
    count = min(count, BLOCK)
    taken = tracer.choose(_atom_weights(_key(variable.ratio), variable.size, count))
    if taken < count:
        variable.become(taken)
    else:
        variable.shift(count)


def tell(tracer: Tracer, variable: Variable) -> None:
    """Choose a value of X, or a part of its values: of many, a first block and the rest, or two halves."""
    if variable.size is None:
        atoms(tracer, variable, BLOCK)
    elif variable.size <= WIDEST:
        variable.become(tracer.choose(_atom_weights(_key(variable.ratio), variable.size, variable.size)))
    elif variable.ratio == 1:
        variable.become(tracer.uniform_integer(variable.size))
    else:
        cut(tracer, variable, variable.size // 2)


def race(tracer: Tracer, first: Variable, second: Variable) -> None:
    """Split two variables without ends by which one is smaller."""
    weights, both = _race_weights(_key(first.ratio), _key(second.ratio))
    least = Variable(both)
    taken = tracer.choose(weights)
    first.become(*((0, {least: 1}) if taken < 2 else (1, {least: 1, Variable(first.ratio): 1})))
    second.become(*((0, {least: 1}) if taken > 0 else (1, {least: 1, Variable(second.ratio): 1})))
