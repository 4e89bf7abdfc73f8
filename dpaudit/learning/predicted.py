"""Scores of what learners propose: what an output's numbers are reduced to, as it is or as log ratios of its cells.

Conventions: see `dpaudit.learning.scores`, and `dpaudit.learning` for reductions and learners.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.learning.edge_counts import EdgeCounter
from dpaudit.learning.histograms import histogram_edges
from dpaudit.learning.predictors import Predictor, proposed
from dpaudit.learning.reductions import NO_POINTS, Points, Reduction, reduction_from_dict
from dpaudit.privacy.claims import FloatArray
from dpaudit.features.input_facts import points_of
from dpaudit.reading.log_ratios import shrunk_log_ratio
from dpaudit.reading.outcomes import Outcomes

MOST_PROPOSED = 4  # predictors of one fit
BINS = 24  # of equal mass, where a predictor has no cells of its own
LEARNED = "learned: "  # how kinds of scores begin that learners have proposed


@dataclasses.dataclass(frozen=True)
class Reduced:
    """The number that a reduction makes of the numbers of an output."""

    reduction: Reduction

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        return self.reduction(outcomes.numbers)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "reduced", "reduction": self.reduction.to_dict()}

    @staticmethod
    def from_dict(record: Mapping[str, Any], x: Any, x_prime: Any) -> Reduced:
        """What `to_dict` wrote, for these inputs; ValueError for another one."""
        return Reduced(_reduction(record["reduction"], x, x_prime))

    def describe(self) -> str:
        return f"{self.reduction.describe()} of the output"


@dataclasses.dataclass(frozen=True)
class Binned:
    """Log ratios of x to x_prime in the cells of a reduction.

    `edges` increase; a cell holds its lower edge, and `values` has one number a cell and one more for NaN. `name` finds
    it again among the scores that were fitted on other draws.
    """

    reduced: Reduced
    edges: FloatArray
    values: FloatArray
    name: str

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        return np.asarray(self.values[self._counter.index(self.reduced(outcomes))])

    @functools.cached_property
    def _counter(self) -> EdgeCounter:
        return EdgeCounter(self.edges)

    def to_dict(self) -> dict[str, Any]:
        edges, values = ([float(value).hex() for value in row] for row in (self.edges, self.values))
        return {
            "kind": "binned",
            "reduction": self.reduced.reduction.to_dict(),
            "edges": edges,
            "values": values,
            "name": self.name,
        }

    @staticmethod
    def from_dict(record: Mapping[str, Any], x: Any, x_prime: Any) -> Binned:
        """What `to_dict` wrote, for these inputs.

        Raises
        ------
        ValueError
            If edges do not increase, or there is not one value a cell and one for NaN.
        """
        edges, values = (np.array([float.fromhex(text) for text in record[name]]) for name in ("edges", "values"))
        if not np.all(edges[1:] > edges[:-1]) or len(values) != len(edges) + 2:
            raise ValueError("edges must increase, and values must be two more than they are.")
        return Binned(Reduced(_reduction(record["reduction"], x, x_prime)), edges, values, str(record["name"]))

    def describe(self) -> str:
        return f"the log ratio, in {len(self.edges) + 1} cells, of {self.reduced.describe()}"


def known_points(x: Any, x_prime: Any, columns: int) -> Points:
    """What is known of two inputs: points of so many numbers, by names; those that both share once."""
    found: dict[str, tuple[float, ...]] = {}
    for name, value in (("x", x), ("x'", x_prime)):
        for about, point in points_of(value, columns).items():
            if point not in found.values():
                found[f"the {about} of {name}"] = point
    return found


def _reduction(record: Mapping[str, Any], x: Any, x_prime: Any) -> Reduction:
    inner = record["of"] if record["kind"] == "residue" else record
    points = known_points(x, x_prime, len(inner["columns"])) if inner["kind"] == "radius" else NO_POINTS
    return reduction_from_dict(record, points)


@dataclasses.dataclass(frozen=True)
class Proposal:
    """What a learner has proposed, with edges, before log ratios are known."""

    predictor: Predictor
    reduced: Reduced
    edges: FloatArray

    @classmethod
    def of(cls, predictor: Predictor, numbers: FloatArray) -> Proposal:
        """That of a predictor; where it has no cells of its own they are of equal mass of the reduced `numbers`."""
        edges = predictor.edges if predictor.edges is not None else histogram_edges(numbers, BINS)
        return cls(predictor, Reduced(predictor.reduction), edges)

    def binned(self, of_x: FloatArray, of_x_prime: FloatArray) -> Binned:
        """The score with the log ratios of these counts in its cells, shape (edges + 2,)."""
        values = shrunk_log_ratio(of_x, of_x_prime)
        starts = self.predictor.starts
        if starts is not None:  # nothing is said of what lies between
            values[:-1][~np.isin(np.concatenate([[-np.inf], self.edges]), starts)] = 0.0
        return Binned(self.reduced, self.edges, values, f"{LEARNED}{self.predictor.name}")


def proposals(first: FloatArray, second: FloatArray, points: Points = NO_POINTS) -> list[Proposal]:
    """What learners propose for numbers of x and x_prime, shape (draws, columns) each."""
    found = proposed(first, second, MOST_PROPOSED, points)
    return [Proposal.of(one, one.reduction(np.concatenate([first, second]))) for one in found]


def learned_scores(
    first: Outcomes, second: Outcomes, points: Points = NO_POINTS, known: Sequence[Proposal] | None = None
) -> Iterator[Binned]:
    """What learners propose for outcomes of x and x_prime that are numbers, with log ratios of these draws.

    `known` are proposals that were learned from more draws of these; None to learn them here.
    """
    for proposal in proposals(first.numbers, second.numbers, points) if known is None else known:
        counter = EdgeCounter(proposal.edges)
        yield proposal.binned(*(counter.count(proposal.reduced(side)).astype(float) for side in (first, second)))
