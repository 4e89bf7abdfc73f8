"""Partitions of the outcomes for one pair, with the counts of the draws that they were not fitted on."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from dpaudit.evidence.candidates import candidates
from dpaudit.evidence.cells import MOST_FINE_CELLS, Cells, quantile_edges, rare_edges, whole_edges
from dpaudit.evidence.histograms import Coordinate, Histogram, fit_table
from dpaudit.evidence.outcomes import Outcomes, Reading
from dpaudit.evidence.scores import LogRatio, Score, Viewed
from dpaudit.privacy.claims import FloatArray


FINE_ROUGH = False
WHOLES=(True,)
TEMPERED=1.0
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
    several = [(w, c) for w in WHOLES for c in candidates(first, second, objects, log_ratio, w)] if reading.columns != 1 else [(False, c) for c in candidates(first, second, objects, log_ratio)]
    for w, (score, a, b) in several:
        scores = score(a), score(b)
        if reading.columns == 1 and isinstance(score, Histogram):
            continue
        both = np.concatenate(scores)
        coarse = _partition(score, scores, quantile_edges(both), reading)
        coarse = dataclasses.replace(coarse, name=str(w), counts=coarse.counts * (TEMPERED if w else 1.0))
        partitions.append(coarse)
        if reading.columns == 1 and isinstance(score, Coordinate):
            for name, edges, rough in (
                ("rare", rare_edges(both), True),
                ("fine", quantile_edges(both, MOST_FINE_CELLS), FINE_ROUGH),
                ("whole", whole_edges(both), True),
            ):
                if len(edges) and not np.array_equal(edges, coarse.cells.edges):
                    part = _partition(score, scores, edges, reading)
                    partitions.append(dataclasses.replace(part, is_rough=rough, name=name))
    if reading.columns != 1:
        table = fit_table(first, second, largest=MOST_FINE_CELLS)
        if table is not None:
            values = {key: float(k) for k, key in enumerate(sorted(table.values, key=table.values.__getitem__))}
            codes = dataclasses.replace(table, values=values, shared=-1.0)
            scores = codes(first), codes(second)
            part = _partition(codes, scores, np.arange(len(values)) - 0.5, reading)
            partitions.append(dataclasses.replace(part, is_rough=False, name="codes"))
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
