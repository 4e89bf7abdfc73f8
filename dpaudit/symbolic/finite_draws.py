"""Draws of finite laws as choices, and how a source makes numbers and arrays of its draws.

Each method draws exactly from the law that its arguments name, taken as the rational numbers that they are: `choice`
with weights p takes i with probability p[i] / sum(p). What numpy rounds in its own tables is not part of the model.

Each method first calls numpy's own with the same arguments, on a stream that nobody reads: it raises what numpy raises,
and says of which class a number is, and of which shape and type an array. Python makes its integers, choices, shuffles
and samples of `_randbelow`, which is one uniform choice here.
"""

from __future__ import annotations

import abc
import math
import random
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy import asarray  # which stays numpy's own while `conversions` replaces it

from dpaudit.symbolic.generators import REFERENCE, Source
from dpaudit.symbolic.symbols import Symbol, SymbolArray, guarded
from dpaudit.symbolic.watching import unheard

MAX_TRIALS = 4_096  # of one binomial draw


class FiniteDraws(Source):
    """Draws that are made of choices among finitely many outcomes."""

    @abc.abstractmethod
    def choose(self, weights: Sequence[Fraction]) -> int:
        """One of some outcomes, by their probabilities."""

    @abc.abstractmethod
    def refuse(self, reason: str) -> Any:
        """End a draw that is not followed."""

    def as_real(self, real: Any, draw: Callable[[], Any], args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        is_followed = False
        for one in (*args, *keywords.values()):
            is_followed |= isinstance(one, Symbol) or type(one) is SymbolArray
        if not is_followed and isinstance(real.__self__, random.Random):  # of which no run may take anything
            with unheard():
                real(*args, **keywords)
        elif not is_followed and real.__name__ != "shuffle":  # which would be one of the program's
            arrays = [one for one in (*args, *keywords.values()) if isinstance(one, np.ndarray) and one.flags.writeable]
            before = [one.copy() for one in arrays]
            try:
                real(*args, **keywords)
            finally:  # Validity: one of them may be for the output, which is the program's
                for one, values in zip(arrays, before, strict=True):
                    one[...] = values
        try:
            return draw()
        except Exception:
            self.lose(f"{real.__name__} raises what a generator would not")
            raise

    def integer(self, low: int, count: int, dtype: Any) -> Any:
        """A uniform integer in [low, low + count)."""
        return low + self.below(count)

    def _integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        def draw(a: Any, b: Any = None) -> Any:
            start, stop = (0, int(a)) if b is None else (int(a), int(b))
            return self.integer(start, stop + bool(endpoint) - start, dtype)

        ends = (low,) if high is None else (low, high)
        return self._drawn(draw, "integers", *ends, size=size, dtype=dtype, endpoint=endpoint)

    def _bytes(self, length: int) -> bytes:
        return bytes(self.below(256) for _ in range(length))

    def _binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        return self._drawn(lambda n, p: self._successes(int(n), exact_probability(p)), "binomial", n, p, size=size)

    def _successes(self, count: int, success: Fraction) -> int:
        if count > MAX_TRIALS:
            self.refuse(f"binomial has {count:,} trials, more than {MAX_TRIALS:,}")
        if success in (0, 1) or count == 0:
            return count * int(success)
        fail = 1 - success
        return self.choose([math.comb(count, k) * success**k * fail ** (count - k) for k in range(count + 1)])

    def _multinomial(self, n: Any, pvals: Any, size: Any = None) -> Any:
        real = REFERENCE.multinomial(n, pvals, size=size)
        if np.ndim(n) or np.ndim(pvals) != 1:
            self.refuse("multinomial is asked for several laws at once")
        weights = [exact_probability(p) for p in np.ravel(pvals)]
        # As numpy does, the last category takes what is left.
        weights[-1] = max(Fraction(0), 1 - sum(weights[:-1], Fraction(0)))

        def draw() -> list[int]:
            left, rest, counts = int(n), Fraction(1), list[int]()
            for weight in weights[:-1]:
                share = min(Fraction(1), weight / rest) if rest > 0 else Fraction(0)
                counts.append(self._successes(left, share))
                left, rest = left - counts[-1], rest - weight
            return [*counts, left]

        rows = [draw() for _ in range(real.size // len(weights))]
        return _filled(real, np.reshape(rows, real.shape))

    def _hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Any = None) -> Any:
        def draw(good: Any, bad: Any, sample: Any) -> int:
            a, b, n = int(good), int(bad), int(sample)
            if n > MAX_TRIALS:
                self.refuse(f"hypergeometric has a sample of {n:,}, more than {MAX_TRIALS:,}")
            total = math.comb(a + b, n)
            return self.choose([Fraction(math.comb(a, k) * math.comb(b, n - k), total) for k in range(n + 1)])

        return self._drawn(draw, "hypergeometric", ngood, nbad, nsample, size=size)

    def _choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0, shuffle: bool = True
    ) -> Any:
        real = REFERENCE.choice(a, size=size, replace=replace, p=p, axis=axis, shuffle=shuffle)
        items = None if np.ndim(a) == 0 else asarray(a)
        count = int(a) if items is None else items.shape[axis]
        shape = () if size is None else tuple(np.atleast_1d(size).tolist())
        number = math.prod(shape)
        weights = None if p is None else [Fraction(weight) for weight in asarray(p, dtype=float).tolist()]
        if replace:
            picks = [self._pick(count, weights) for _ in range(number)]
        else:
            if not shuffle and number > 1 and p is None:
                self.refuse("choice without replacement and without shuffle has an order that numpy leaves open")
            picks = []
            left = list(range(count))
            for _ in range(number):
                rest = None if weights is None else [weights[item] for item in left]
                picks.append(left.pop(self._pick(len(left), rest)))
        if size is None and (items is None or items.ndim == 1):
            return type(real)(picks[0]) if items is None else items[picks[0]]
        places = np.array(picks, dtype=np.int64).reshape(shape)
        return _filled(real, places if items is None else np.take(items, places, axis=axis))

    def _pick(self, count: int, weights: Sequence[Fraction] | None) -> int:
        if weights is None:
            return self.below(count)
        total = sum(weights, Fraction(0))
        return self.choose([weight / total for weight in weights])

    def _shuffle(self, x: Any, axis: int = 0) -> None:
        if isinstance(x, np.ndarray) and x.ndim:
            x[...] = np.take(x, self._order(x.shape[axis]), axis=axis)
            return
        if axis:
            REFERENCE.shuffle([0], axis=axis)  # type: ignore[call-overload]  # raises what numpy raises
        for place, item in enumerate([x[i] for i in self._order(len(x))]):  # as numpy: a deque takes no slices
            x[place] = item

    def _permutation(self, x: Any, axis: int = 0) -> Any:
        real = REFERENCE.permutation(x, axis=axis)
        if np.ndim(x) == 0:
            return _filled(real, self._order(int(x)))
        array = asarray(x)
        return _filled(real, np.take(array, self._order(array.shape[axis]), axis=axis))

    def _permuted(self, x: Any, axis: Any = None, out: Any = None) -> Any:
        array = asarray(x)
        if out is not None or (axis is not None and array.ndim > 1):
            self.refuse("permuted is asked for an axis, or for an output array")
        return _filled(REFERENCE.permuted(array), array.ravel()[self._order(array.size)].reshape(array.shape))

    def _order(self, count: int) -> list[int]:
        left, order = list(range(count)), list[int]()
        while left:
            order.append(left.pop(self.below(len(left))))
        return order

    def _drawn(self, draw: Callable[..., Any], name: str, *arguments: Any, **options: Any) -> Any:
        """One draw for each set of arguments: numbers, or arrays that are broadcast to one shape."""
        real = getattr(REFERENCE, name)(*arguments, **options)
        if not isinstance(real, np.ndarray):
            drawn = draw(*[value.item() if isinstance(value, np.ndarray) else value for value in arguments])
            return drawn.as_class(type(real)) if isinstance(drawn, Symbol) else type(real)(drawn)
        spread = [np.broadcast_to(asarray(value), real.shape) for value in arguments]
        result = np.empty(real.shape, dtype=object)
        for index in np.ndindex(real.shape):
            result[index] = draw(*[value[index] for value in spread])
        found = guarded(result)
        return found if isinstance(found, SymbolArray) else result.astype(real.dtype)


def _filled(real: Any, values: Any) -> Any:
    """Array that numpy has drawn, with other values in it: its shape, its type and its layout are the program's."""
    real[...] = values
    return real


def exact_probability(p: Any) -> Fraction:
    """A probability that numpy has accepted, as a fraction."""
    return Fraction(float(p))
