"""A `random.Random` whose draws are traced choices.

Python makes its integers, choices, shuffles and samples of `_randbelow`, which is one uniform choice here. `random()`
is a uniform number as a symbol (`dpaudit.symbolic.uniform_numbers`); what takes its logarithm is refused.
"""

from __future__ import annotations

import random
from typing import Any

from dpaudit.symbolic.tracing import Tracer
from dpaudit.symbolic.uniform_numbers import Source, UniformNumber


class TracingRandom(random.Random):
    """The generator of one traced run."""

    def __new__(cls, tracer: Tracer) -> TracingRandom:
        return super().__new__(cls, 0)  # type: ignore[call-arg]

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        super().__init__(0)

    def seed(self, *_: Any, **__: Any) -> None:
        """Only the constructor may seed."""
        if hasattr(self, "_is_ready"):
            self._tracer.refuse("the generator is seeded again")
        self._is_ready = True

    def random(self) -> Any:
        self._tracer.has_uniforms = True
        return UniformNumber(Source(self._tracer))

    def getrandbits(self, k: int) -> int:
        if k < 0:
            raise ValueError("number of bits must be non-negative")
        return self._tracer.uniform_integer(1 << k)

    def _randbelow(self, n: int) -> int:
        return self._tracer.uniform_integer(n)

    def getstate(self) -> Any:
        self._tracer.refuse("the state of the generator is used itself")

    def setstate(self, state: Any) -> None:
        self._tracer.refuse("the state of the generator is used itself")

    def __reduce__(self) -> Any:
        self._tracer.refuse("the generator is copied or sent elsewhere")

    def __deepcopy__(self, _: Any) -> Any:
        self._tracer.refuse("the generator is copied or sent elsewhere")
