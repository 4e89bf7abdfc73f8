"""Fault of a faulty twin as it says it: in words, with the exact loss of its first pair beside what was promised."""

import dataclasses
from typing import Any, ClassVar


class Broken:
    """A mechanism that loses more than it promises; `what` says why. It stands before the mechanism among the bases.

    What inherits from it is a frozen dataclass, as the mechanism is.
    """

    what: ClassVar[str]
    claim: Any
    pairs: Any
    privacy_loss: Any

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(frozen=True, eq=False)(cls)

    @property
    def fault(self) -> str:
        """The fault, and the true exact loss of the first pair."""
        for pair in self.pairs()[:1]:
            exact, promised = self.privacy_loss(pair.x, pair.x_prime), self.claim.for_pair(pair.x, pair.x_prime).value
            return f"{self.what}: loss {exact:.6g} nats on the pair {pair.id}, promised {promised:g}"
        return self.what
