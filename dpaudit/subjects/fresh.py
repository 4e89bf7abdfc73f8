"""Fresh objects: a mechanism that is made anew for every call, from a factory without arguments.

An object that keeps something from call to call (noise, a budget, sums) gives draws that depend on each other, of which
an audit says nothing. Where the object is made by a function or a class without arguments, each call can have its own.
What a module or a class keeps is not made anew.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from dpaudit.errors import UsageError
from dpaudit.subjects.callables import Around, Subject, as_subject
from dpaudit.subjects.iterators import read_whole

FRESH = "a fresh object a call, "  # in front of the interface of results


@dataclasses.dataclass(frozen=True)
class Fresh(Around):
    """Makes a mechanism with `factory` and asks it once.

    `first` is the subject of a first object, which is never asked: how the others are called, and what it states.
    """

    factory: Callable[[], Any]
    dpaudit_calls = FRESH

    def __call__(self, data: Any, rng: Any) -> Any:
        made = dataclasses.replace(self.first, mechanism=self.factory())
        output = made._call(data, 1, rng)
        if "size" not in self.first.interface:
            return output
        if not hasattr(output, "__len__") or len(output) != 1:
            raise ValueError(f"a batch of 1 output must be returned for size=1, got {output!r:.80}")
        return read_whole(output[0])

    def __repr__(self) -> str:
        return f"Fresh({getattr(self.factory, '__qualname__', self.factory)}, {self.first.fingerprint})"


def fresh_subject(factory: Any, target: str | None = None, name: str | None = None) -> Subject:
    """A subject whose calls have a fresh object each, made by `factory()`: a class or a function.

    `UsageError` if the factory cannot be called without arguments, or what it makes is no mechanism.

    Examples
    --------
    >>> class Once:
    ...     def __init__(self):
    ...         self.left = 1
    ...     def sample(self, data, size, rng):
    ...         self.left -= size
    ...         return data + rng.laplace(size=size) if self.left >= 0 else [None] * size
    >>> import numpy as np
    >>> len(fresh_subject(Once).sample(0.0, 3, np.random.default_rng(1)))
    3
    """
    if isinstance(factory, Subject):
        target, factory = target or factory.target, factory.mechanism
    try:
        inspect.signature(factory).bind()
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"mechanism must be a factory with fresh=True, called without arguments, got {factory!r:.80} ({error})."
        ) from error
    return Fresh(as_subject(factory(), target, name), factory).as_subject()


def subject_of(mechanism: Any, description: Mapping[str, Any]) -> Subject:
    """The subject as a saved result describes it (`subject`): with a fresh object a call, or as it is."""
    is_fresh = FRESH in str(description.get("interface", ""))
    if isinstance(mechanism, Subject) and isinstance(mechanism.mechanism, Fresh):
        return mechanism
    return fresh_subject(mechanism) if is_fresh else as_subject(mechanism)
