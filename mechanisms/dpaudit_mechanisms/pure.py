"""Base of all mechanisms whose budget is one epsilon."""

import dataclasses

from dpaudit.privacy.claims import Claim, PureDP
from dpaudit_mechanisms.inputs import Checked, Positive


@dataclasses.dataclass(frozen=True, eq=False)
class Pure(Checked):
    """A mechanism that keeps `PureDP(epsilon)`, for the inputs that it takes."""

    epsilon: Positive

    @property
    def claim(self) -> Claim:
        """`PureDP(epsilon)`."""
        return PureDP(self.epsilon)
