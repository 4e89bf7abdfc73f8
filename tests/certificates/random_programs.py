"""Random small programs with two semantics: run on a generator, and as a law that is computed step by step.

A program is a list of instructions on a whole number `s` and a list of what was emitted. The second semantics knows
nothing of tracing: it carries a dictionary from states to probabilities through the instructions, with the textbook law
of each draw. Exponential in the number of outcomes, so that programs are small. Loops are of three kinds: a block that
is repeated, a walk of coins that ends at the first tail, and a uniform number that is drawn again until it is small
("until"), which has no end: the law of what it accepts is uniform.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np

INPUTS = (0, 1, 2)
MODULUS = 5
SMALL = 0.75


def random_program(rng: np.random.Generator) -> list[Any]:
    """Two or three instructions, some of them branches."""
    return _block(rng, int(rng.integers(2, 4)), depth=0)


def _block(rng: np.random.Generator, length: int, depth: int) -> list[Any]:
    return [_instruction(rng, depth) for _ in range(length)]


def _instruction(rng: np.random.Generator, depth: int) -> Any:
    kinds = ["coin", "integers", "choice", "floor", "table", "shuffle", "clipped", "binomial", "sides", "race", "pick"]
    kinds += ["bits", "band", "hyper", "walk"]
    kinds += ["if", "repeat", "emit", "add", "raise", "until"] if depth == 0 else ["emit", "add"]
    kind = kinds[int(rng.integers(len(kinds)))]
    probabilities = [float(p) for p in rng.choice([0.125, 0.25, 0.3, 0.5, 0.7, 0.9], size=len(INPUTS))]
    if kind in ("coin", "binomial", "clipped", "walk"):
        return kind, probabilities
    if kind in ("bits", "hyper", "repeat", "until"):
        count = int(rng.integers(1, 4))
        return (kind, count + 1, _block(rng, 1, 1)) if kind == "repeat" else (kind, count)
    if kind == "band":  # two comparisons of one uniform number
        return kind, [float(cut) for cut in rng.choice([0.1, 0.2, 0.4, 0.55, 0.8], size=2, replace=False)]
    if kind in ("integers", "floor"):
        return kind, int(rng.integers(2, 5))
    if kind in ("shuffle", "pick"):
        return kind, int(rng.integers(1, 4 if kind == "shuffle" else 3))
    if kind == "choice":
        weights = rng.choice([0.125, 0.25, 0.5, 1.0], size=(len(INPUTS), 3))
        return kind, (weights / weights.sum(axis=1, keepdims=True)).tolist()
    if kind == "table":  # one uniform number in a table of cuts that depend on the input
        return kind, [sorted(float(cut) for cut in rng.choice([0.1, 0.2, 0.4, 0.55, 0.8], size=2, replace=False))
                      for _ in INPUTS]  # fmt: skip
    if kind in ("sides", "race"):
        return kind, [float(p) for p in rng.choice([0.25, 0.5, 0.75], size=2)]
    if kind == "if":
        return kind, int(rng.integers(MODULUS)), _block(rng, 1, 1), _block(rng, 2, 1)
    if kind == "raise":
        return kind, int(rng.integers(MODULUS))
    return kind, int(rng.integers(1, 4))


OUTCOMES = {
    "coin": 2,
    "binomial": 3,
    "clipped": 3,
    "choice": 3,
    "table": 3,
    "sides": 8,
    "race": 10,
    "walk": 4,
    "band": 3,
    "hyper": 3,
}  # at most, of draws


def paths(program: list[Any]) -> int:
    """A bound of the number of paths through a program."""
    total = 1
    for kind, first, *rest in program:
        if kind == "if":
            total *= max(map(paths, rest))
        elif kind == "repeat":
            total *= paths(rest[0]) ** first
        elif kind == "bits":
            total *= 2**first
        elif kind == "until":
            total *= first + 1  # of a round that is accepted
        elif kind == "shuffle":
            total *= math.factorial(first)
        elif kind == "pick":
            total *= math.perm(4, first)
        elif kind in ("integers", "floor"):
            total *= first
        else:
            total *= OUTCOMES.get(kind, 1)
    return total


def kinds(program: list[Any]) -> set[str]:
    """The kinds of all instructions, also of inner blocks."""
    found = set()
    for kind, _, *blocks in program:
        found |= {kind}.union(*(kinds(block) for block in blocks if isinstance(block, list)))
    return found


def is_endless(program: list[Any]) -> bool:
    """Whether it has outcomes without an end: a loop, or a geometric number that an exception makes one of a list."""
    return "until" in kinds(program) or {"raise", "clipped"} <= kinds(program)


def run(program: list[Any], x: int, rng: np.random.Generator) -> Any:
    """The program as a mechanism would write it."""
    s, emitted = _run(program, x, rng, x % MODULUS, [])
    return {"s": s, "emitted": emitted}


def _run(program: list[Any], x: int, rng: Any, s: int, emitted: list[int]) -> tuple[int, list[int]]:
    for kind, first, *rest in program:
        if kind == "coin":
            value = 1 if rng.random() < first[x] else 0
        elif kind == "binomial":
            value = int(rng.binomial(2, first[x]))
        elif kind == "clipped":
            value = int(min(rng.geometric(first[x]), 3))
        elif kind == "integers":
            value = int(rng.integers(first))
        elif kind == "floor":
            value = int(rng.random() * first)
        elif kind == "shuffle":
            order = list(range(first))
            rng.shuffle(order)
            value = order[0] + 2 * order[-1]
        elif kind == "choice":
            value = int(rng.choice(3, p=first[x]))
        elif kind == "table":
            value = int(np.searchsorted(np.array(first[x]), rng.random(), side="right"))
        elif kind == "sides":  # two-sided geometric noise against a threshold
            noise = x + rng.geometric(first[0]) - rng.geometric(first[1])
            value = 0 if noise < 0 else 2 if noise > 1 else 1
        elif kind == "race":  # noisy maximum of three
            noisy = np.array([x, 1, s]) + rng.geometric(first[0], 3)
            value = int(np.argmax(noisy))
        elif kind == "pick":
            value = int(rng.choice(4, size=first, replace=False).sum())
        elif kind == "bits":
            value = int(rng.integers(0, 2, size=first).sum())
        elif kind == "band":
            u = rng.random()
            value = 2 if first[0] <= u < first[1] else 1 if u > 0.9 else 0
        elif kind == "hyper":
            value = int(rng.hypergeometric(first, 2, 2))
        elif kind == "walk":
            value = 0
            while value < 3 and rng.random() < first[x]:
                value += 1
        elif kind == "until":
            u = rng.random()
            while u >= SMALL:
                u = rng.random()
            value = int(u * (first + 1))
        elif kind == "if":
            s, emitted = _run(rest[0] if s == first else rest[1], x, rng, s, emitted)
            continue
        elif kind == "repeat":
            for _ in range(first):
                s, emitted = _run(rest[0], x, rng, s, emitted)
            continue
        elif kind == "raise":
            if s == first:
                raise ValueError("the program raises here")
            continue
        elif kind == "emit":
            emitted = [*emitted, s % (first + 1)]
            continue
        else:  # "add"
            value = first * x
        s = (s + value) % MODULUS
    return s, emitted


def law(program: list[Any], x: int) -> dict[Any, Fraction]:
    """The exact law of the outcomes: (s, emitted), or "raised"."""
    return _law(program, x, {(x % MODULUS, ()): Fraction(1)})


def _law(program: list[Any], x: int, states: dict[Any, Fraction]) -> dict[Any, Fraction]:
    for instruction in program:
        after: dict[Any, Fraction] = {}
        for state, mass in states.items():
            for new, share in _step(instruction, x, state).items():
                after[new] = after.get(new, Fraction(0)) + mass * share
        states = after
    return states


def _step(instruction: Any, x: int, state: Any) -> dict[Any, Fraction]:
    if state == "raised":
        return {state: Fraction(1)}
    (kind, first, *rest), (s, emitted) = instruction, state
    if kind == "if":
        return _law(rest[0] if s == first else rest[1], x, {state: Fraction(1)})
    if kind == "repeat":
        return _law(rest[0] * first, x, {state: Fraction(1)})
    if kind == "raise":
        return {"raised" if s == first else state: Fraction(1)}
    if kind == "emit":
        return {(s, (*emitted, s % (first + 1))): Fraction(1)}
    found: dict[Any, Fraction] = {}
    for value, share in _values(kind, first, x, s).items():
        new = (s + value) % MODULUS, emitted
        found[new] = found.get(new, Fraction(0)) + share
    return found


def _values(kind: str, first: Any, x: int, s: int) -> dict[int, Fraction]:
    """The law of the number that a draw adds."""
    if kind == "add":
        return {first * x: Fraction(1)}
    if kind == "until":
        cuts = [min(Fraction(k, first + 1), Fraction(SMALL)) / Fraction(SMALL) for k in range(first + 2)]
        return {k: high - low for k, (low, high) in enumerate(itertools.pairwise(cuts))}
    if kind in ("integers", "floor"):
        return {value: Fraction(1, first) for value in range(first)}
    if kind == "shuffle":
        return _counted(order[0] + 2 * order[-1] for order in itertools.permutations(range(first)))
    if kind == "pick":
        return _counted(sum(order[:first]) for order in itertools.permutations(range(4)))
    if kind == "choice":
        total = sum(map(Fraction, first[x]))
        return {value: Fraction(weight) / total for value, weight in enumerate(first[x])}
    if kind == "table":
        low, high = map(Fraction, first[x])
        return {0: low, 1: high - low, 2: 1 - high}
    if kind == "bits":
        return {k: Fraction(math.comb(first, k), 2**first) for k in range(first + 1)}
    if kind == "band":
        low, high = map(Fraction, first)
        inside, late = max(high - low, Fraction(0)), 1 - Fraction(0.9)  # no band reaches 0.9
        return {0: 1 - inside - late, 1: late, 2: inside}
    if kind == "hyper":
        return {k: Fraction(math.comb(first, k) * math.comb(2, 2 - k), math.comb(first + 2, 2)) for k in range(3)}
    if kind == "sides":
        return _sides(x, *(1 - Fraction(p) for p in first))
    if kind == "race":
        return _race([x, 1, s], 1 - Fraction(first[0]))
    p = Fraction(first[x])
    if kind == "coin":
        return {0: 1 - p, 1: p}
    if kind == "walk":
        return {k: p**k * (1 - p if k < 3 else 1) for k in range(4)}
    if kind == "binomial":
        return {k: math.comb(2, k) * p**k * (1 - p) ** (2 - k) for k in range(3)}
    return {1: p, 2: (1 - p) * p, 3: (1 - p) ** 2}  # "clipped"


def _counted(values: Any) -> dict[int, Fraction]:
    listed = list(values)
    return {value: Fraction(listed.count(value), len(listed)) for value in set(listed)}


def _sides(x: int, a: Fraction, b: Fraction) -> dict[int, Fraction]:
    """Of x + X - Y with geometric X and Y from 0: P(X - Y >= k) = a^k (1 - b) / (1 - ab) for k >= 0."""

    def at_least(k: int) -> Fraction:
        return a**k * (1 - b) / (1 - a * b) if k >= 0 else 1 - b ** (1 - k) * (1 - a) / (1 - a * b)

    below, above = 1 - at_least(-x), at_least(2 - x)
    return {0: below, 1: 1 - below - above, 2: above}


def _race(scores: list[int], a: Fraction) -> dict[int, Fraction]:
    """The first arg max of scores + geometric noise, by the distribution function and geometric series.

    P(i wins) = sum over v of P(score_i + X = v) prod_j P(score_j + X_j < v or, for j > i, <= v). Beyond the largest
    score each factor is 1 - a^(v - c), so that the sum is one of finitely many geometric series.
    """
    found = {}
    top = max(scores)
    for i, score in enumerate(scores):
        total = Fraction(0)
        ends = [other + (0 if j < i else -1) for j, other in enumerate(scores)]  # P(noisy_j below or at v) exponents
        others = [end for j, end in enumerate(ends) if j != i]
        for v in range(score, top + 1):
            share = (1 - a) * a ** (v - score)
            for end in others:
                share *= 1 - a ** (v - end) if v >= end else 0
            total += share
        # v = top + 1 + n: (1 - a) a^(top + 1 - score + n) * prod (1 - a^(top + 1 + n - end)), expanded.
        for size in range(len(others) + 1):
            for chosen in itertools.combinations(others, size):
                weight = (1 - a) * a ** (top + 1 - score) * (-1) ** size
                for end in chosen:
                    weight *= a ** (top + 1 - end)
                total += weight / (1 - a ** (1 + size))
        found[i] = total
    return found
