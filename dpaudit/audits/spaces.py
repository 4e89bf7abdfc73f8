"""Ways through a domain, and small moves of its pairs, for the search for sensitivities (`dpaudit.audits.climbing`).

Pairs to begin with, and most of those near another one, come from the domain itself (`Domain.starts`, `Domain.moves`).
What is added here: ways of neighbours between two inputs, on which a jump is met wherever it is, and numbers that move
by ever smaller steps, so that what is the farthest is reached exactly. Inputs with rows have one form for it (`Rows`):
rows, and a record that is replaced or inserted at a place. Vectors of which every number may change move on straight
lines (`Lines`). What is neither (tables with users, lists of inputs) has only its domain (`Space`).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpaudit.privacy.adjacency import typed_rows
from dpaudit.privacy.claims import FloatArray
from dpaudit.privacy.inputs import identity_of
from dpaudit.privacy.metrics import is_same
from dpaudit.subjects.domains import DatasetDomain, Domain, NumberDomain, TableDomain, VectorDomain
from dpaudit.subjects.domains.domain import Inputs, is_number

MAX_ENDS = 24  # inputs of the domain's starts, between any two of which a way is tried
SWEEP = 48  # inputs of one level each, each on the way to the next: a band of 1 / SWEEP of a range is met


@dataclasses.dataclass(frozen=True)
class Walk:
    """A way from one input to another in some steps, each between neighbours; `at` a part in [0, 1] of it an input."""

    x: Any
    x_prime: Any
    steps: int
    at: Callable[[float], Any]


@dataclasses.dataclass(frozen=True)
class Space:
    """Pairs that only their domain can move."""

    domain: Domain

    def walks(self) -> Iterator[Walk]:
        """Walks between inputs of the domain."""
        return iter(())

    def near(self, x: Any, x_prime: Any, size: float, rng: np.random.Generator) -> Iterator[Inputs]:
        """Pairs that differ from this one by a move; of numbers of a range by this part of it."""
        yield from self.domain.moves(x, x_prime, rng)
        yield from (self.domain.random(rng) for _ in range(2))

    def _ends(self) -> list[Any]:
        """The first inputs that the domain begins with."""
        found: dict[Any, Any] = {}
        for _, x, _ in self.domain.starts():
            if len(found) == MAX_ENDS:
                break
            found.setdefault(identity_of(x), x)
        return list(found.values())


def space_of(domain: Domain) -> Space:
    """Space of a domain."""
    if isinstance(domain, VectorDomain) and domain.adjacency != "one":
        return Lines(domain) if domain.adjacency == "each" else Space(domain)
    if isinstance(domain, NumberDomain):
        kind = int if domain.integer else float
        return Rows(
            domain, (domain.low, domain.high), False, 1, lambda rows: kind(rows[0]), lambda x: [x], domain.change, kind
        )
    if isinstance(domain, VectorDomain):
        return Rows(
            domain, (domain.low, domain.high), False, domain.length,
            functools.partial(_vector, domain), list, domain.change, int if domain.integer else float,
        )  # fmt: skip
    if isinstance(domain, DatasetDomain):
        return _rows_of(domain)
    if isinstance(domain, TableDomain) and domain.user is None:
        rows = _rows_of(domain._rows_domain)
        return dataclasses.replace(rows, domain=domain, make=domain._table, read=domain._rows_of)
    return Space(domain)


def _rows_of(domain: DatasetDomain) -> Rows:
    inserts = domain.adjacency == "add_remove"
    like: Any = next(iter(domain.examples), [])

    def make(rows: list[Any]) -> Any:
        return typed_rows(like, list(rows))

    return Rows(domain, domain.ends, inserts, domain.largest - inserts, make, list)


@dataclasses.dataclass(frozen=True)
class Rows(Space):
    """Pairs of rows of which one is replaced, by at most `change` where they are numbers, or inserted.

    Any number of this `kind` between `ends` is a record; `most` are the rows of the smaller input, at most. `make` and
    `read` take rows to an input of the domain, and back.
    """

    ends: tuple[float, float] | None
    inserts: bool
    most: int
    make: Callable[[list[Any]], Any]
    read: Callable[[Any], list[Any]]
    change: float = math.inf
    kind: Callable[[float], Any] = float

    def walks(self) -> Iterator[Walk]:
        """Between any two inputs that the domain begins with; then from level to level of all rows."""
        levels = [] if self.ends is None else np.linspace(*self.ends, SWEEP).tolist()
        sweep = [self.make([self._number(level)] * self.most) for level in levels]
        for a, b in itertools.chain(itertools.combinations(self._ends(), 2), itertools.pairwise(sweep)):
            one, other = self.read(a), self.read(b)
            if steps := self._steps(one, other):
                yield Walk(a, b, steps, functools.partial(self._on_walk, one, other))

    def near(self, x: Any, x_prime: Any, size: float, rng: np.random.Generator) -> Iterator[Inputs]:
        """The record that differs moved by this part of the range, then moves of the domain."""
        first, second = sorted((self.read(x), self.read(x_prime)), key=len)
        place = next((k for k in range(len(first)) if not is_same(first[k], second[k])), len(first))
        for rows, other in ((first, second),) if self.inserts else ((first, second), (second, first)):
            if self.ends is None or place >= len(other) or not is_number(other[place]):
                continue
            for step in (size * (self.ends[1] - self.ends[0]), -size * (self.ends[1] - self.ends[0])):
                value, behind = other[place] + step, place + (not self.inserts)
                if not self.inserts and is_number(rows[place]):
                    value = min(max(value, rows[place] - self.change), rows[place] + self.change)
                yield self.make(rows), self.make([*rows[:place], self._number(value), *rows[behind:]])
        yield from super().near(x, x_prime, size, rng)

    def _steps(self, one: list[Any], other: list[Any]) -> int:
        """The number of steps between two inputs; 0 where no way is known."""
        if self.inserts:
            return abs(len(one) - len(other)) if one[: len(other)] == other[: len(one)] else 0
        hops = 1
        if self.ends is not None and math.isfinite(self.change):
            hops = max(1, math.ceil((self.ends[1] - self.ends[0]) / self.change - 1e-9))
        return len(one) * hops if len(one) == len(other) else 0

    def _on_walk(self, one: list[Any], other: list[Any], part: float) -> Any:
        if self.inserts:
            return self.make(max(one, other, key=len)[: round(len(one) + part * (len(other) - len(one)))])
        done = min(int(part * len(one) + 1e-9), len(one))
        rows, rest = [*other[:done], *one[done:]], part * len(one) - done
        if done < len(one) and rest > 1e-9 and self.ends is not None:
            rows[done] = self._number(one[done] + rest * (other[done] - one[done]))
        return self.make(rows)

    def _number(self, value: float) -> Any:
        assert self.ends is not None
        inside = min(max(float(value), self.ends[0]), self.ends[1])
        return float(round(inside)) if self.kind is int else inside


@dataclasses.dataclass(frozen=True)
class Lines(Space):
    """Vectors of which every number may change: a way is a straight line."""

    domain: VectorDomain

    def walks(self) -> Iterator[Walk]:
        """Between any two inputs that the domain begins with."""
        for a, b in itertools.combinations(self._ends(), 2):
            first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
            if (gap := float(np.abs(second - first).max())) > 0.0:
                steps = max(1, math.ceil(gap / self.domain.change - 1e-9))
                yield Walk(a, b, steps, functools.partial(self._on_walk, first, second))

    def _on_walk(self, first: FloatArray, second: FloatArray, part: float) -> Any:
        return self.domain.vector(first + part * (second - first))


def _vector(domain: VectorDomain, rows: list[Any]) -> Any:
    """The vector of these numbers, of which some may be special."""
    values = np.asarray(rows, dtype=float)
    return domain.vector(values) if np.isfinite(values).all() else values.tolist() if domain.as_list else values
