"""Partitions of the outcomes for one pair, with the counts of the draws that they were not fitted on."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from dpaudit.evidence.candidates import candidates
from dpaudit.evidence.cells import MOST_FINE_CELLS, Cells, quantile_edges, rare_edges
from dpaudit.evidence.histograms import Coordinate, Histogram
from dpaudit.evidence.outcomes import Outcomes, Reading
from dpaudit.evidence.scores import LogRatio, Score, Viewed
from dpaudit.privacy.claims import FloatArray


RARE,ONE=1,1
@dataclasses.dataclass(frozen=True)
class Partition:
    """Cells, and how many training draws fall into each: `counts` of shape (2, cells), row 0 for x_prime.

    `is_rough`: neighbouring cells have little to say about each other.
    """

    cells: Cells
    counts: NDArray[np.int64]
    is_rough: bool = False
    kind: str = ""
    name: str = ""


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
    partitions = []
    for score, a, b in candidates(first, second, objects, log_ratio):
        scores = score(a), score(b)
        if isinstance(score, Histogram) and reading.columns == 1:
            continue
        both = np.concatenate(scores)
        partitions.append(_partition(score, scores, quantile_edges(both), reading))
        if ONE and reading.columns == 1 and isinstance(score, Coordinate):
            coarse = partitions[-1].cells.edges
            fine = quantile_edges(both, MOST_FINE_CELLS)
            rare = rare_edges(both)
            if RARE and 0 < len(rare) < len(coarse):
                partitions.append(dataclasses.replace(_partition(score, scores, rare, reading), is_rough=True, name='rare'))
            if len(fine) > len(coarse):
                partitions.append(dataclasses.replace(_partition(score, scores, fine, reading), is_rough=True, name='fine'))
    names: dict[str, int] = {}
    for k, partition in enumerate(partitions):
        score = partition.cells.score
        inner = score.score if isinstance(score, Viewed) else score
        name = f"{type(score).__name__} {type(inner).__name__} {partition.is_rough} {partition.name}"
        names[name] = names.get(name, 0) + 1
        partitions[k] = dataclasses.replace(partition, kind=f"{name} {names[name]}")
    return partitions


def _partition(score: Score, scores: tuple[FloatArray, FloatArray], edges: FloatArray, reading: Reading) -> Partition:
    cells = Cells(score, edges, reading)
    return Partition(cells, np.stack([cells.count_scores(scores[1]), cells.count_scores(scores[0])]))
