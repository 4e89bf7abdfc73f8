"""Hints: what is known of a pair before the first draw, and the scores that it suggests.

They are tried beside whatever is learned, and validity never rests on them.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from dpaudit.learning.predicted import Proposal, known_points, proposals
from dpaudit.learning.reductions import NO_POINTS, Points
from dpaudit.learning.scores import LogRatio
from dpaudit.reading.outcomes import Outcomes, Reading
from dpaudit.reading.vectors import Nearness


@dataclasses.dataclass(frozen=True)
class Hints:
    """What is known of a pair.

    Attributes
    ----------
    log_ratio : LogRatio or None
        The mechanism's own log density ratio.
    inputs : (object, object) or None
        x and x_prime, which outputs of their shape may be near to.
    proposals : tuple of Proposal or None
        What learners propose, where that was learned already, from more draws of these.
    """

    log_ratio: LogRatio | None = None
    inputs: tuple[Any, Any] | None = None
    proposals: tuple[Proposal, ...] | None = None

    def fitting(self, first: Outcomes, second: Outcomes) -> Hints:
        """The same, for outputs of the shape and kind of these numbers."""
        if self.log_ratio is None:
            return self
        return dataclasses.replace(self, log_ratio=self.log_ratio.fitting(first, second))

    def alike(self, first: Outcomes, second: Outcomes) -> tuple[Outcomes, Outcomes, Hints, Reading]:
        """Both outcomes in one form, the hints for it, and how a rule reads it: as objects where one is not numbers."""
        columns = first.numbers.shape[1]
        if first.tokens is None and second.tokens is None and columns == second.numbers.shape[1]:
            return first, second, self.fitting(first, second), Reading(columns)
        return first.as_objects(), second.as_objects(), self, Reading(0)

    def with_proposals(self, first: Outcomes, second: Outcomes) -> Hints:
        """The same, with what learners propose for these numbers: so that parts of them are cut into the same cells."""
        found = proposals(first.numbers, second.numbers, self.points(first.numbers.shape[1]))
        return dataclasses.replace(self, proposals=tuple(found))

    def points(self, columns: int) -> Points:
        """Points of so many numbers that are known of the inputs, by names."""
        return NO_POINTS if self.inputs is None else known_points(*self.inputs, columns)

    def nearness(self, outcomes: Outcomes) -> tuple[Nearness, ...]:
        """Scores of vectors: how much nearer they are to x than to x_prime; none where inputs are of another shape.

        A number needs none: every threshold on it says the same.
        """
        if self.inputs is None or outcomes.numbers.shape[1] < 2:
            return ()
        return Nearness.between(*self.inputs, outcomes.shape)


NO_HINTS = Hints()
