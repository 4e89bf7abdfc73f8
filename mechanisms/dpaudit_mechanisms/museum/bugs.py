"""Re-creation of a bug: one function that has both versions, and a decorator that says the rest of its exhibit."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.exhibits.exhibit import Exhibit, Kind


class Bugs(list[Exhibit]):
    """The exhibits of one kind, which decorates the functions that re-create them.

    A function takes `(data, size, rng, version)` under any names; its own name is that of the exhibit. `faulty` and
    `mended` are what the last argument is in either version: a number that is wrong, or whether it is mended. What only
    a mended version does stands in a block `if mended:`, so that a reader can be shown the source without it.
    """

    def __init__(self, kind: Kind) -> None:
        super().__init__()
        self.kind = kind

    def __call__(
        self, source: str, wrong: str, claim: Any, domain: Any, pair: tuple[Any, Any], *,
        faulty: Any = False, mended: Any = True, **rest: Any,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # fmt: skip
        """Decorator of a function; the arguments are those of an `Exhibit`, but for the two values."""

        def added(function: Callable[..., Any]) -> Callable[..., Any]:
            version = list(inspect.signature(function).parameters)[-1]
            both = [functools.partial(function, **{version: value}) for value in (faulty, mended)]
            name = function.__name__.replace("_", "-")
            self.append(Exhibit(name, self.kind, source, wrong, claim, *both, domain, pair, **rest))
            return function

        return added


def two_sided_geometric(scale: float, size: Any, rng: np.random.Generator) -> np.ndarray:
    """Noise with P(k) proportional to exp(-|k| / scale)."""
    p = -np.expm1(-1.0 / scale)
    return rng.geometric(p, size=size) - rng.geometric(p, size=size)
