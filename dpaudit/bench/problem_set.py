"""The problem set that comes with dpaudit (entry point `dpaudit` of the group `dpaudit.problems`)."""

from __future__ import annotations

from dpaudit.bench import classics, numbers, objects, vectors
from dpaudit.bench.problem import Problem


def problems() -> list[Problem]:
    """All problems of this set, in the order in which tables list them."""
    return [*classics.problems(), *numbers.problems(), *vectors.problems(), *objects.problems()]
