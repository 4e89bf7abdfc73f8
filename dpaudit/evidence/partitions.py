"""Partitions of the outcomes for one pair, with the counts of the draws that they were not fitted on."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from dpaudit.evidence.candidates import candidates
from dpaudit.evidence.cells import COARSE_MASSES, TAIL_MASSES, Cells, tail_edges
from dpaudit.evidence.outcomes import Outcomes, Reading
from dpaudit.evidence.scores import LogRatio


@dataclasses.dataclass(frozen=True)
class Partition:
    """Cells, and how many training draws fall into each: `counts` of shape (2, cells), row 0 for x_prime."""

    cells: Cells
    counts: NDArray[np.int64]


def fit_partitions(
    first: Outcomes, second: Outcomes, log_ratio: LogRatio | None = None, coarse: bool = False
) -> list[Partition]:
    """Partitions by every score that suits the outcomes under x (`first`) and x_prime (`second`).

    Scores that are themselves fitted see one half of the draws, and the counts are those of the other.

    Parameters
    ----------
    coarse : bool
        Fewer cells: where millions of draws are to be counted.
    """
    is_mixed = first.numbers.shape[1] != second.numbers.shape[1]  # numbers of different lengths: compared as objects
    objects = first.tokens is not None or second.tokens is not None or is_mixed
    if objects:
        first, second = first.as_objects(), second.as_objects()
    elif log_ratio is not None:
        log_ratio = log_ratio.fitting(first, second)
    reading = Reading(0 if objects else first.numbers.shape[1])
    masses = COARSE_MASSES if coarse else TAIL_MASSES
    partitions = []
    for score, a, b in candidates(first, second, objects, log_ratio):
        scores = score(a), score(b)
        cells = Cells(score, tail_edges(np.concatenate(scores), masses), reading)
        counts = np.stack([cells.count_scores(scores[1]), cells.count_scores(scores[0])])
        partitions.append(Partition(cells, counts))
    return partitions
