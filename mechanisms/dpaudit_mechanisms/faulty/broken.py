"""Fault of a faulty twin as it says it: in words, with the exact loss of its first pair beside what was promised."""

from __future__ import annotations

from typing import Any, ClassVar


class Broken:
    """A mechanism that loses more than it promises; `what` says why. It stands before the mechanism among the bases."""

    what: ClassVar[str]
    claim: Any
    pairs: Any
    privacy_loss: Any

    @property
    def fault(self) -> str:
        """The fault, and the true exact loss of the first pair."""
        for pair in self.pairs()[:1]:
            exact, promised = self.privacy_loss(pair.x, pair.x_prime), self.claim.for_pair(pair.x, pair.x_prime).value
            return f"{self.what}: loss {exact:.6g} nats on the pair {pair.id}, promised {promised:g}"
        return self.what
