"""Base of all mechanisms whose budget is one epsilon."""

from __future__ import annotations

from dpaudit.privacy.claims import Claim, PureDP


class Pure:
    """A mechanism that keeps `PureDP(epsilon)`, for the inputs that it takes."""

    epsilon: float

    @property
    def claim(self) -> Claim:
        """`PureDP(epsilon)`."""
        return PureDP(self.epsilon)
