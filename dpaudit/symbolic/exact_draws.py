"""Draws as traced choices: the source of traced generators in a run that is to be exact.

Uniform numbers, integers from a wide range and geometric draws are symbols; what is drawn from another finite law is
chosen (`dpaudit.symbolic.finite_draws`). `geometric(p)` needs k trials with probability (1 - p)^(k-1) p. Draws of
real-valued laws are refused by their line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.symbolic.finite_draws import FiniteDraws, exact_probability
from dpaudit.symbolic.symbols import Symbol
from dpaudit.symbolic.tracing import OF_REAL_LAW, Tracer
from dpaudit.symbolic.uniform_numbers import UniformNumber, UniformSource
from dpaudit.symbolic.whole_numbers import WholeNumber, geometric, uniform


class ExactDraws(FiniteDraws):
    """Choices of one traced run, or `numbers` in the place of choices and symbols; `drawn` has what was drawn."""

    def __init__(self, tracer: Tracer, numbers: Iterable[Any] | None = None) -> None:
        self._tracer = tracer
        self._numbers: Iterator[Any] | None = None if numbers is None else iter(numbers)
        self.drawn: list[Any] = []

    def _made(self, make: Callable[[], Any]) -> Any:
        if self._numbers is None:
            self.drawn.append(make())
        else:
            self.drawn.append(next(self._numbers, None))
            if self.drawn[-1] is None:
                self.refuse("with numbers in the place of its draws the program draws more")
        return self.drawn[-1]

    def numbers(self) -> list[Any] | None:
        """Numbers that what was drawn may be, at the end of the run; None where no double is one.

        A variable of which nothing more is known is 1.
        """
        found: list[Any] = []
        for one in self.drawn:
            if type(one) is WholeNumber:
                constant, terms = one.parts()
                found.append(constant + sum(terms.values()))
            elif type(one) is UniformNumber:
                low, high = one.ends
                within = [one for one in (float((low + high) / 2), float(low)) if low <= Fraction(one) < high]
                if not within:
                    return None
                found.append(within[0])
            else:
                found.append(one)
        return found

    def draw(self, library: str, method: str, given: dict[str, Any]) -> Any:
        if not hasattr(self, f"_{method}"):
            self.refuse(f"{method} {OF_REAL_LAW}")
        given = {name: value.number(method) if type(value) is WholeNumber else value for name, value in given.items()}
        if any(isinstance(value, Symbol) for value in given.values()):
            self.refuse(f"{method} is given a draw that stands for a number")
        return getattr(self, f"_{method}")(**given)

    def choose(self, weights: Sequence[Fraction]) -> int:
        return int(self._made(lambda: self._tracer.choose(weights)))

    def below(self, count: int) -> int:
        return int(self._made(lambda: self._tracer.uniform_integer(count)))

    def refuse(self, reason: str) -> Any:
        self._tracer.refuse(reason)

    def lose(self, what: str) -> Any:
        self.refuse(what)

    def bits(self) -> Any:
        self.refuse("the generator's bit stream is used itself")

    def integer(self, low: int, count: int, dtype: Any) -> Any:
        if np.dtype(dtype) != np.int64:  # it wraps around elsewhere than a symbol would
            return low + self.below(count)
        return self._made(lambda: uniform(self._tracer, low, count))

    def _random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        if out is not None or np.dtype(dtype) != np.float64:
            self.refuse("random is asked for another type than double, or for an output array")
        return self._drawn(self._unit, "random", size=size)

    def _uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        def draw(a: Any, b: Any) -> Any:
            return (float(b) - float(a)) * self._unit() + float(a)

        return self._drawn(draw, "uniform", low, high, size=size)

    def _unit(self) -> Any:
        return self._made(lambda: UniformNumber(UniformSource(self._tracer)))

    def _geometric(self, p: Any, size: Any = None) -> Any:
        def draw(p: Any) -> Any:
            return self._made(lambda: geometric(self._tracer, exact_probability(p)))

        return self._drawn(draw, "geometric", p, size=size)
