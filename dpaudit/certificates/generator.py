"""A `numpy.random.Generator` whose draws are traced choices.

Each method draws exactly from the law that its arguments name, taken as the rational numbers that they are: `choice`
with weights p takes i with probability p[i] / sum(p), `geometric(p)` needs k trials with probability (1 - p)^(k-1) p.
What numpy rounds in its own tables is not part of the model. Draws of real-valued laws are refused by their line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.certificates.symbol_arrays import guarded
from dpaudit.certificates.tracing import Tracer
from dpaudit.certificates.uniform_numbers import Source, UniformNumber, exact
from dpaudit.certificates.whole_numbers import geometric, uniform

MOST_TRIALS = 4_096  # of one binomial draw
SUM_TOLERANCE = 1.5e-8  # by which numpy lets weights miss the sum 1 (sqrt of 2**-52)

REAL_LAWS = [
    "beta",
    "chisquare",
    "dirichlet",
    "exponential",
    "f",
    "gamma",
    "gumbel",
    "laplace",
    "logistic",
    "lognormal",
    "logseries",
    "multivariate_normal",
    "noncentral_chisquare",
    "noncentral_f",
    "normal",
    "pareto",
    "poisson",
    "power",
    "rayleigh",
    "standard_cauchy",
    "standard_exponential",
    "standard_gamma",
    "standard_normal",
    "standard_t",
    "triangular",
    "vonmises",
    "wald",
    "weibull",
    "zipf",
    "negative_binomial",
    "multivariate_hypergeometric",
]


class TracingGenerator(np.random.Generator):
    """A generator of one traced run.

    Its own stream is never moved: compiled code that takes from it past the methods is found by that
    (`dpaudit.certificates.watching`).
    """

    def __init__(self, tracer: Tracer, stream: np.random.BitGenerator) -> None:
        super().__init__(stream)
        self._tracer, self._own = tracer, stream

    @property
    def bit_generator(self) -> Any:
        self._tracer.refuse("the generator's bit stream is used itself")

    def spawn(self, n_children: int) -> Any:
        """Generators whose draws are choices of the same run."""
        return [TracingGenerator(self._tracer, self._own) for _ in range(n_children)]

    def __reduce__(self) -> Any:
        self._tracer.refuse("the generator is copied or sent elsewhere")

    def __deepcopy__(self, _: Any) -> Any:
        self._tracer.refuse("the generator is copied or sent elsewhere")

    __copy__ = __reduce__

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        if out is not None or np.dtype(dtype) != np.float64:
            self._tracer.refuse("random is asked for another type than double, or for an output array")
        return self._filled(size, self._uniform)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        return self._spread(lambda a, b: (b - a) * self._uniform() + a, size, low, high)

    def _uniform(self) -> Any:
        self._tracer.has_uniforms = True
        return UniformNumber(Source(self._tracer))

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        kind = np.dtype(dtype)
        if kind != np.int64 and kind.kind not in "iub":
            raise TypeError(f"Unsupported dtype {kind!r} for integers")
        first, last = (0, low) if high is None else (low, high)

        def draw(a: Any, b: Any) -> Any:
            start, stop = int(a), int(b) + bool(endpoint)
            if start >= stop:
                raise ValueError("low >= high" if not endpoint else "low > high")
            if kind.kind != "b" and not np.iinfo(kind).min <= start < stop <= np.iinfo(kind).max + 1:
                raise ValueError(f"low or high is out of bounds for {kind.name}")
            if kind != np.int64:  # it wraps around elsewhere than a symbol would
                return kind.type(start + self._tracer.uniform_integer(stop - start))
            value = uniform(self._tracer, start, stop - start)
            return kind.type(value) if type(value) is int else value

        drawn = self._spread(draw, size, first, last)
        is_plain = isinstance(drawn, np.ndarray) and drawn.dtype.kind in "iub" and type(drawn) is np.ndarray
        return drawn.astype(kind) if is_plain else bool(drawn) if kind.kind == "b" and not np.ndim(drawn) else drawn

    def bytes(self, length: int) -> bytes:
        return bytes(self._tracer.uniform_integer(256) for _ in range(length))

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        return self._spread(self._binomial, size, n, p)

    def _binomial(self, n: Any, p: Any) -> int:
        count, success = int(n), self._probability(p)
        if count < 0:
            raise ValueError("n < 0")
        if count > MOST_TRIALS:
            self._tracer.refuse(f"binomial has {count:,} trials, more than {MOST_TRIALS:,}")
        if success in (0, 1):
            return count * int(success)
        fail = 1 - success
        return self._tracer.choose([math.comb(count, k) * success**k * fail ** (count - k) for k in range(count + 1)])

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Any:
        weights = [self._probability(p) for p in np.ravel(pvals)]
        if np.ndim(n) or np.ndim(pvals) != 1:
            self._tracer.refuse("multinomial is asked for several laws at once")
        # As numpy does, the last category takes what is left.
        weights[-1] = max(Fraction(0), 1 - sum(weights[:-1], Fraction(0)))

        def draw() -> Any:
            left, rest, counts = int(n), Fraction(1), list[int]()
            for weight in weights[:-1]:
                share = min(Fraction(1), weight / rest) if rest > 0 else Fraction(0)
                counts.append(self._binomial_exact(left, share))
                left, rest = left - counts[-1], rest - weight
            return np.array([*counts, left])

        return (
            draw()
            if size is None
            else np.array([draw() for _ in range(math.prod(_shape(size)))]).reshape((*_shape(size), len(weights)))
        )

    def _binomial_exact(self, count: int, success: Fraction) -> int:
        if success in (0, 1) or count == 0:
            return count * int(success)
        fail = 1 - success
        return self._tracer.choose([math.comb(count, k) * success**k * fail ** (count - k) for k in range(count + 1)])

    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Any = None) -> Any:
        def draw(good: Any, bad: Any, sample: Any) -> int:
            a, b, n = int(good), int(bad), int(sample)
            if a < 0 or b < 0 or not 0 <= n <= a + b:
                raise ValueError("ngood + nbad < nsample")
            if n > MOST_TRIALS:
                self._tracer.refuse(f"hypergeometric has a sample of {n:,}, more than {MOST_TRIALS:,}")
            total = math.comb(a + b, n)
            return self._tracer.choose([Fraction(math.comb(a, k) * math.comb(b, n - k), total) for k in range(n + 1)])

        return self._spread(draw, size, ngood, nbad, nsample)

    def geometric(self, p: Any, size: Any = None) -> Any:
        def draw(success: Any) -> Any:
            value = self._probability(success)
            if value == 0:
                raise ValueError("p <= 0, p > 1 or p contains NaNs")
            return geometric(self._tracer, value)

        return self._spread(draw, size, p)

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0, shuffle: bool = True
    ) -> Any:
        items = None if np.ndim(a) == 0 and not isinstance(a, str) else np.asarray(a)
        count = int(a) if items is None else items.shape[axis]
        shape = () if size is None else _shape(size)
        number = math.prod(shape)
        if count <= 0 and number:
            raise ValueError("a must be a positive integer unless no samples are taken")
        weights = None if p is None else self._weights(p, count)
        if replace:
            picks = [self._pick(count, weights) for _ in range(number)]
        else:
            if number > count:
                raise ValueError("Cannot take a larger sample than population when replace is False")
            if not shuffle and number > 1 and p is None:
                self._tracer.refuse(
                    "choice without replacement and without shuffle has an order that numpy leaves open"
                )
            if weights is not None and sum(weight > 0 for weight in weights) < number:
                raise ValueError("Fewer non-zero entries in p than size")
            picks = []
            left = list(range(count))
            for _ in range(number):
                rest = None if weights is None else [weights[item] for item in left]
                picks.append(left.pop(self._pick(len(left), rest)))
        if items is None:
            return picks[0] if size is None else np.array(picks, dtype=np.int64).reshape(shape)
        if size is None:
            return np.take(items, picks[0], axis=axis)[()] if items.ndim > 1 else items[picks[0]]
        chosen = np.take(items, np.array(picks, dtype=np.int64), axis=axis)
        return chosen.reshape(shape) if items.ndim == 1 else chosen

    def _pick(self, count: int, weights: Sequence[Fraction] | None) -> int:
        if weights is None:
            return self._tracer.uniform_integer(count)
        total = sum(weights, Fraction(0))
        return self._tracer.choose([weight / total for weight in weights])

    def _weights(self, p: Any, count: int) -> list[Fraction]:
        values = np.asarray(p, dtype=float)
        if values.ndim != 1:
            raise ValueError("p must be 1-dimensional")
        if len(values) != count:
            raise ValueError("a and p must have same size")
        if np.isnan(values).any():
            raise ValueError("Probabilities contain NaN")
        if (values < 0).any():
            raise ValueError("Probabilities are not non-negative")
        if abs(math.fsum(values.tolist()) - 1.0) > SUM_TOLERANCE:
            raise ValueError("Probabilities do not sum to 1. See Notes section of docstring for more information.")
        return [Fraction(value) for value in values.tolist()]

    def shuffle(self, x: Any, axis: int = 0) -> None:
        if isinstance(x, np.ndarray) and x.ndim:
            x[...] = np.take(x, self._order(x.shape[axis]), axis=axis)
            return
        if axis:
            raise NotImplementedError("Axis argument is only supported on ndarray objects")
        x[:] = [x[i] for i in self._order(len(x))]

    def permutation(self, x: Any, axis: int = 0) -> Any:
        if np.ndim(x) == 0 and not isinstance(x, str):
            return np.array(self._order(int(x)), dtype=np.int64)
        array = np.asarray(x)
        return np.take(array, self._order(array.shape[axis]), axis=axis)

    def permuted(self, x: Any, axis: Any = None, out: Any = None) -> Any:
        array = np.asarray(x)
        if out is not None or (axis is not None and array.ndim > 1):
            self._tracer.refuse("permuted is asked for an axis, or for an output array")
        return array.ravel()[self._order(array.size)].reshape(array.shape)

    def _order(self, count: int) -> list[int]:
        left, order = list(range(count)), list[int]()
        while left:
            order.append(left.pop(self._tracer.uniform_integer(len(left))))
        return order

    def _probability(self, p: Any) -> Fraction:
        value = exact(p)
        if not isinstance(value, Fraction) or not 0 <= value <= 1:
            raise ValueError("p < 0, p > 1 or p is NaN")
        return value

    def _filled(self, size: Any, draw: Callable[[], Any]) -> Any:
        if size is None:
            return draw()
        shape = _shape(size)
        result = np.empty(shape, dtype=object)
        for index in np.ndindex(shape):
            result[index] = draw()
        return guarded(result) if result.size else np.empty(shape)

    def _spread(self, draw: Callable[..., Any], size: Any, *arguments: Any) -> Any:
        """One draw for each set of arguments, which are numbers or arrays that are spread to one shape."""
        if size is None and not any(np.ndim(argument) for argument in arguments):
            return draw(*[argument.item() if isinstance(argument, np.ndarray) else argument for argument in arguments])
        shape = np.broadcast_shapes(*(np.shape(argument) for argument in arguments))
        full = shape if size is None else _shape(size)
        spread = [np.broadcast_to(np.asarray(argument), full) for argument in arguments]
        result = np.empty(full, dtype=object)
        for index in np.ndindex(full):
            result[index] = draw(*[argument[index] for argument in spread])
        return guarded(result) if result.size else np.empty(full, dtype=np.int64)


def _shape(size: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in size) if isinstance(size, Sequence | np.ndarray) else (int(size),)


def _refused(name: str) -> Callable[..., Any]:
    def method(self: TracingGenerator, *_: Any, **__: Any) -> Any:
        self._tracer.refuse(f"{name} draws a number from infinitely many that a certificate cannot list")

    method.__name__ = name
    return method


for _name in REAL_LAWS:
    setattr(TracingGenerator, _name, _refused(_name))
# Whatever a later numpy adds must not draw from the stream that stands for the choices.
for _name in dir(np.random.Generator):
    if not _name.startswith("_") and _name not in TracingGenerator.__dict__:
        setattr(TracingGenerator, _name, _refused(_name))
