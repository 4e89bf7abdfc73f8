"""Hints: what is known of a pair before the first draw. Validity never rests on them."""

from __future__ import annotations

import dataclasses
from typing import Any

from dpaudit.features.density import LogRatio
from dpaudit.features.outcomes import Outcomes


@dataclasses.dataclass(frozen=True)
class Hints:
    """What is known of a pair: the mechanism's own log density ratio, and the inputs, which outputs may be near to."""

    log_ratio: LogRatio | None = None
    inputs: tuple[Any, Any] | None = None

    def fitting(self, first: Outcomes, second: Outcomes) -> Hints:
        """The same, for outputs of the shape and kind of these."""
        if self.log_ratio is None:
            return self
        return dataclasses.replace(self, log_ratio=self.log_ratio.fitting(first, second))


NO_HINTS = Hints()
