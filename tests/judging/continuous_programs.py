"""Random programs that add, compare, round, clip and log noise, and what they lose by quadrature.

A program is a tree of tests, each of noise of its own, so that the probability of a leaf is a product of integrals of
one variable. A leaf is a constant, or a number with noise behind a function. Nothing of `dpaudit.symbolic` is used:
distribution functions are written out here, and integrals are those of scipy.
"""

from __future__ import annotations

import dataclasses
import itertools
import linecache
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.special import ndtr

FAR = 45.0  # scales of noise: what is farther out has a probability below 1e-19
QUERIES = ("x[0]", "x[1]", "x[0] - x[1]", "x[0] + x[1] + x[2]", "0.5 * x[2]", "max(x)", "abs(x[0] - 0.5)")


@dataclasses.dataclass(frozen=True)
class Noise:
    """Noise of a family and a scale, as text and as functions of numbers."""

    family: str
    scale: float

    def text(self, rng: random.Random) -> str:
        forms = [f"rng.{self.family}(scale={self.scale})", f"{self.scale} * rng.{self.family}()"]
        return rng.choice(forms if self.family == "exponential" else [*forms, f"rng.{self.family}(0.0, {self.scale})"])

    def below(self, a: float) -> float:
        """P(noise < a)."""
        u = a / self.scale
        if self.family == "laplace":
            return 0.5 * math.exp(u) if u < 0.0 else 1.0 - 0.5 * math.exp(-u)
        if self.family == "exponential":
            return -math.expm1(-u) if u > 0.0 else 0.0
        if self.family == "gumbel":
            return math.exp(-math.exp(min(-u, 700.0)))
        return float(ndtr(u))

    def above(self, a: float) -> float:
        """P(noise > a), as exact where it is small."""
        u = a / self.scale
        if self.family in ("laplace", "normal"):
            return self.below(-a)
        if self.family == "exponential":
            return math.exp(-u) if u > 0.0 else 1.0
        return -math.expm1(-math.exp(min(-u, 700.0)))

    def log_density(self, t: Any) -> Any:
        """Of an array of numbers."""
        u = np.asarray(t) / self.scale
        with np.errstate(over="ignore"):
            forms = {
                "laplace": -np.abs(u) - math.log(2.0),
                "exponential": np.where(u >= 0.0, -u, -math.inf),
                "gumbel": -u - np.exp(-u),
                "normal": -0.5 * u * u - 0.5 * math.log(2.0 * math.pi),
            }
        return forms[self.family] - math.log(self.scale)

    def density(self, t: float) -> float:
        """Of one number."""
        u = t / self.scale
        if self.family == "laplace":
            found = 0.5 * math.exp(-abs(u))
        elif self.family == "exponential":
            found = math.exp(-u) if u >= 0.0 else 0.0
        elif self.family == "gumbel":
            found = math.exp(-u - math.exp(min(-u, 700.0)))
        else:
            found = math.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
        return found / self.scale


Value = Callable[[list[float]], float]
Law = dict[Any, float]  # probabilities of the outcomes of a test


@dataclasses.dataclass
class Test:
    """A line of the program whose outcome is one of `outcomes`, and its law on an input."""

    lines: list[str]
    outcomes: list[Any]
    law: Callable[[list[float]], Law]


@dataclasses.dataclass
class Number:
    """Noise on a query behind a function, which a leaf gives out."""

    text: str
    query: Value
    noise: Noise
    function: str

    def losses(self, x: list[float], y: list[float]) -> float:
        """The largest log ratio of its law on x and on y: of densities, and of the masses of points."""
        p, q, noise = self.query(x), self.query(y), self.noise
        is_infinite = p != q and noise.family in ("normal", "gumbel")  # a tail of which falls faster than any e^-kt
        grid = _grid(p, q, noise)
        if self.function in ("none", "log", "exp"):
            first, second = noise.log_density(grid - p), noise.log_density(grid - q)
            kept = first > -math.inf
            found = float(np.max(first[kept] - second[kept]))
            return math.inf if is_infinite else max(found, 0.0)
        if self.function == "clip":
            inner = grid[(grid > -1.0) & (grid < 1.0)]
            first, second = noise.log_density(inner - p), noise.log_density(inner - q)
            kept = first > -math.inf
            ratios = [float(np.max(first[kept] - second[kept]))] if kept.any() else []
            ratios.append(_log_ratio(noise.below(-1.0 - p), noise.below(-1.0 - q)))
            ratios.append(_log_ratio(noise.above(1.0 - p), noise.above(1.0 - q)))
            return max(*ratios, 0.0)
        if is_infinite:
            return math.inf
        ratios = [0.0]
        for k in range(-40, 41):
            low, high = (k - 0.5, k + 0.5) if self.function == "round" else (float(k), k + 1.0)
            ratios.append(_log_ratio(_within(noise, low - p, high - p), _within(noise, low - q, high - q)))
        return max(ratios)


def _grid(p: float, q: float, noise: Noise) -> Any:
    span = 30.0 * noise.scale
    ends = [e + d for e in (p, q) for d in (0.0, 1e-12)]
    return np.unique([*np.linspace(min(p, q) - span, max(p, q) + span, 6_001), *ends, -1 + 1e-12, 1 - 1e-12])


def _within(noise: Noise, low: float, high: float) -> float:
    """P(low < noise < high), as a difference of small numbers where it is one."""
    return noise.above(low) - noise.above(high) if low >= 0.0 else noise.below(high) - noise.below(low)


def _log_ratio(p: float, q: float) -> float:
    if p <= 0.0:
        return -math.inf
    return math.log(p / q) if q > 0.0 else math.inf


@dataclasses.dataclass
class Leaf:
    tag: str
    number: Number | None


@dataclasses.dataclass
class Node:
    test: Test
    children: list[tuple[Any, Any]]  # outcomes with nodes or leaves


class Program:
    """One program, by its seed.

    Attributes
    ----------
    source : str
    x, x_prime : list of float
    is_released : bool
        Whether a leaf gives a noisy number out.
    """

    def __init__(self, seed: int) -> None:
        self.random, self.count, self.is_released, self.last_tag = random.Random(seed), 0, False, ""
        self.lines = ["def program(x, rng):"]
        self.root = self._node(1, self.random.choice([0, 1, 1, 1, 1, 2]))
        self.source = "\n".join(self.lines) + "\n"
        self.x = [self.random.choice([0.0, 0.25, 0.5, 1.0]) for _ in range(3)]
        self.x_prime = list(self.x)
        for place in self.random.sample(range(3), self.random.choice([1, 3, 3])):
            self.x_prime[place] = self.random.choice([0.0, 0.25, 0.5, 0.75, 1.0])

    # Writing.

    def _noise(self) -> Noise:
        family = self.random.choice(["laplace", "laplace", "exponential", "gumbel", "normal"])
        return Noise(family, self.random.choice([0.5, 1.0, 2.0]))

    def _query(self) -> tuple[str, Value]:
        text = self.random.choice(QUERIES)
        return text, eval(f"lambda x: {text}")

    def _name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def _node(self, indent: int, depth: int) -> Any:
        start = "    " * indent
        if depth == 0:
            return self._leaf(start)
        test = self.random.choice([self._threshold, self._pivot, self._largest, self._stops])()
        self.lines += [start + line for line in test.lines]
        children = []
        for place, outcome in enumerate(test.outcomes):
            word = "if" if place == 0 else "elif"
            self.lines.append(start + (f"{word} got == {outcome!r}:" if place + 1 < len(test.outcomes) else "else:"))
            children.append((outcome, self._node(indent + 1, depth - 1)))
        return Node(test, children)

    def _leaf(self, start: str) -> Leaf:
        tag = self.random.choice([one for one in "abcd" if one != self.last_tag])
        if self.random.random() < (0.85 if len(start) > 4 else 0.0):
            self.last_tag = tag
            self.lines.append(f"{start}return {tag!r}")
            return Leaf(tag, None)
        self.is_released = True
        (text, query), noise, name = self._query(), self._noise(), self._name()
        function = self.random.choice(["none", "none", "round", "floor", "clip", "log", "exp"])
        form = {
            "none": "{t}", "round": "round({t})", "floor": "math.floor({t})", "clip": "float(np.clip({t}, -1.0, 1.0))",
            "exp": "math.exp({t})", "log": "math.log(math.exp({t}))",
        }[function]  # fmt: skip
        tag = name  # its own: what is compared is the law of one number
        self.lines += [
            f"{start}{name} = {text} + {noise.text(self.random)}",
            f"{start}return [{tag!r}, {form.format(t=name)}]",
        ]
        return Leaf(tag, Number(form, query, noise, function))

    # Tests.

    def _threshold(self) -> Test:
        """Noise against a constant, behind a function that it may have."""
        (text, query), noise, name, c = self._query(), self._noise(), self._name(), self.random.choice([0.2, 0.8, 1.5])
        at = self.random.choice([-0.4, 0.3, 0.9])
        line = f"{name} = {text} + {noise.text(self.random)}"
        kind = self.random.choice(["plain", "round", "clip", "abs", "exp", "largest"])
        if kind == "abs":

            def inside(x: list[float]) -> Law:
                low, high = -c - query(x), c - query(x)
                return {True: _within(noise, low, high), False: noise.below(low) + noise.above(high)}

            return Test([line, f"got = bool(abs({name}) < {c})"], [True, False], inside)
        forms = {
            "plain": f"{name} > {at}", "round": f"round({name}) >= 1", "clip": f"np.clip({name}, -1.0, 1.0) > {at}",
            "exp": f"math.exp({name}) > {math.exp(at)!r}", "largest": f"max({name}, -1.0) > {at}",
        }  # fmt: skip
        end = 0.5 if kind == "round" else at

        def law(x: list[float]) -> Law:
            return {True: noise.above(end - query(x)), False: noise.below(end - query(x))}

        return Test([line, f"got = bool({forms[kind]})"], [True, False], law)

    def _pivot(self) -> Test:
        """Two or three noisy numbers against one, which may be clipped: all answers."""
        pivot, others = self._noise(), [(self._query(), self._noise()) for _ in range(self.random.choice([1, 2]))]
        (text, query), name, ends = self._query(), self._name(), None
        lines = [f"{name} = {text} + {pivot.text(self.random)}"]
        if self.random.random() < 0.3:
            ends = (-1.0, self.random.choice([0.5, 1.0]))
            lines.append(f"{name} = np.clip({name}, {ends[0]}, {ends[1]})")
        answers = [f"bool({t} + {n.text(self.random)} > {name})" for (t, _), n in others]
        lines.append(f"got = ({', '.join(answers)},)")
        outcomes = list(itertools.product([True, False], repeat=len(others)))

        def law(x: list[float]) -> Law:
            def given(t: float, wanted: tuple[bool, ...]) -> float:
                found = 1.0
                for yes, ((_, q), n) in zip(wanted, others, strict=True):
                    found *= n.above(t - q(x)) if yes else n.below(t - q(x))
                return found

            bends = [q(x) for (_, q), _ in others]
            return {w: _expected(pivot, query(x), lambda t, w=w: given(t, w), bends, ends) for w in outcomes}

        return Test(lines, outcomes, law)

    def _largest(self) -> Test:
        """The place of the largest of two or three, by a call or a loop."""
        count = self.random.choice([2, 3])
        queries, noise, name = [self._query() for _ in range(count)], self._noise(), self._name()
        noises = [noise] * count
        if self.random.random() < 0.5:
            draw = f"{noise.scale} * rng.standard_normal({count})"
            if noise.family != "normal":
                draw = f"rng.{noise.family}(scale={noise.scale}, size={count})"
            listed = f"{name} = np.array([{', '.join(t for t, _ in queries)}]) + {draw}"
            lines = [listed, f"got = int(np.argmax({name}))"]
        else:
            noises = [self._noise() if self.random.random() < 0.3 else noise for _ in queries]
            drawn = [f"{t} + {n.text(self.random)}" for (t, _), n in zip(queries, noises, strict=True)]
            lines = [
                f"{name} = [{', '.join(drawn)}]",
                "got = 0",
                f"for place in range(1, {count}):",
                f"    if {name}[place] > {name}[got]:",
                "        got = place",
            ]

        def law(x: list[float]) -> Law:
            at = [query(x) for _, query in queries]

            def wins(t: float, k: int) -> float:
                return math.prod(n.below(t - at[j]) for j, n in enumerate(noises) if j != k)

            return {k: _expected(noises[k], at[k], lambda t, k=k: wins(t, k), at, None) for k in range(count)}

        return Test(lines, list(range(count)), law)

    def _stops(self) -> Test:
        """A sparse vector: the place of the first that is above a noisy limit."""
        count = self.random.choice([2, 3])
        queries, limit, noise = [self._query() for _ in range(count)], self._noise(), self._noise()
        name, c = self._name(), self.random.choice([0.0, 0.5])
        lines = [
            f"{name} = {c} + {limit.text(self.random)}",
            "got = -1",
            f"for place, answer in enumerate([{', '.join(t for t, _ in queries)}]):",
            f"    if answer + {noise.text(self.random)} >= {name}:",
            "        got = place",
            "        break",
        ]

        def law(x: list[float]) -> Law:
            at = [query(x) for _, query in queries]

            def given(t: float, k: int) -> float:
                before = math.prod(noise.below(t - a) for a in (at if k < 0 else at[:k]))
                return before * (1.0 if k < 0 else noise.above(t - at[k]))

            places = [*range(count), -1]
            return {k: _expected(limit, c, lambda t, k=k: given(t, k), at, None) for k in places}

        return Test(lines, [*range(count), -1], law)

    # What is true of it.

    @property
    def program(self) -> Callable[[Any, Any], Any]:
        """The function, whose lines tracebacks know."""
        file = f"/continuous_program_{id(self)}.py"
        linecache.cache[file] = (len(self.source), None, self.source.splitlines(True), file)
        space: dict[str, Any] = {"np": np, "math": math}
        exec(compile(self.source, file, "exec"), space)
        found: Callable[[Any, Any], Any] = space["program"]
        return found

    def law(self, x: list[float]) -> Law:
        """The probability of each tag."""
        found: Law = {}

        def walk(node: Any, mass: float) -> None:
            if isinstance(node, Leaf):
                found[node.tag] = found.get(node.tag, 0.0) + mass
                return
            own = node.test.law(x)
            for outcome, child in node.children:
                walk(child, mass * own[outcome])

        walk(self.root, 1.0)
        return found

    def _numbers(self) -> dict[str, Number]:
        found, waiting = {}, [self.root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Node):
                waiting += [child for _, child in node.children]
            elif node.number is not None:
                found[node.tag] = node.number
        return found

    def loss(self) -> float:
        """The largest log ratio of the laws on both inputs, in either direction."""
        laws, numbers, worst = (self.law(self.x), self.law(self.x_prime)), self._numbers(), 0.0
        for first, second, x, y in ((0, 1, self.x, self.x_prime), (1, 0, self.x_prime, self.x)):
            for tag, mass in laws[first].items():
                more = numbers[tag].losses(x, y) if tag in numbers else 0.0
                worst = max(worst, _log_ratio(mass, laws[second][tag]) + more)
        return worst

    def delta(self, epsilon: float) -> float:
        """Of a program that gives no noise out: delta at epsilon, in the worse direction."""
        p, q = self.law(self.x), self.law(self.x_prime)
        sides = ((p, q), (q, p))
        return max(sum(max(a[tag] - math.exp(epsilon) * b[tag], 0.0) for tag in a) for a, b in sides)


def _expected(noise: Noise, at: float, given: Callable[[float], float], bends: list[float], ends: Any) -> float:
    """The mean of a function of `at` + noise, clipped to `ends` where there are such."""
    low = at if noise.family == "exponential" else at - FAR * noise.scale
    high, found = at + FAR * noise.scale, 0.0
    if ends is not None:
        found += noise.below(ends[0] - at) * given(ends[0]) + noise.above(ends[1] - at) * given(ends[1])
        low, high = max(low, ends[0]), max(min(high, ends[1]), low)
    near = [e + k * noise.scale for e in (at, *bends) for k in (-6.0, 0.0, 6.0)]
    knots = sorted({low, high, *(k for k in near if low < k < high)})
    for a, b in itertools.pairwise(knots):
        found += quad(lambda t: noise.density(t - at) * given(t), a, b, epsabs=1e-14, epsrel=1e-10)[0]
    return found
