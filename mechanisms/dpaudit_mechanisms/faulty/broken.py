"""Making of a faulty twin from its mechanism, and the text of its fault."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar


class Twin:
    """A mechanism with a planted fault, which `fault` states. It stands before the mechanism among the bases.

    `changes` has what is drawn with in place of a property of the mechanism: by its name, a function of the twin and of
    the sound value. What inherits from it is a frozen dataclass, as the mechanism is.
    """

    fault: Any
    changes: ClassVar[Mapping[str, Callable[[Any, Any], Any]]] = {}

    def __init_subclass__(cls) -> None:
        for name, change in vars(cls).get("changes", {}).items():
            setattr(cls, name, _changed(cls, name, change))
        dataclasses.dataclass(frozen=True, eq=False)(cls)


def _changed(twin: type, name: str, change: Callable[[Any, Any], Any]) -> property:
    return property(lambda self: change(self, getattr(super(twin, self), name)))


class Broken(Twin):
    """A mechanism that loses more than it promises; `what` says why."""

    what: ClassVar[str]
    loses: ClassVar[Any] = "loss"

    @property
    def fault(self) -> str:
        """The fault, and the true exact loss of the first pair beside what was promised."""
        for pair in self.pairs()[:1]:
            exact, promised = self.privacy_loss(pair.x, pair.x_prime), self.claim.for_pair(pair.x, pair.x_prime).value
            return f"{self.what}: {self.loses} {exact:.6g} nats on the pair {pair.id}, promised {promised:g}"
        return self.what


class BrokenSomewhere(Broken):
    """A mechanism that loses more than it promises on pairs that `what` describes."""

    @property
    def fault(self) -> str:
        """Description of the fault, and the claim."""
        return f"{self.what}, promised {self.claim}"
