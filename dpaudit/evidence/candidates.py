"""Candidates: the scores that suit the outputs of a pair, each fitted on earlier draws only.

What a score misses costs draws, never error rate; what it costs to fit and to compute is paid by every audit. So cheap
scores come always, and others only where the outputs call for them and there are draws enough to fit them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpaudit.evidence.outcomes import Outcomes
from dpaudit.evidence.scores import (
    Coordinate,
    Histogram,
    LogRatio,
    Score,
    fit_histogram,
    fit_linear,
    fit_table,
)
from dpaudit.privacy.claims import FloatArray

MAXIMUM_TABLE = 4_096  # outcomes in a table


def candidates(
    first: Outcomes, second: Outcomes, objects: bool, log_ratio: LogRatio | None
) -> Iterator[tuple[Score, Outcomes, Outcomes]]:
    """Scores that suit the outcomes, each with the draws that its thresholds may be fitted on."""
    draws, columns = len(first) + len(second), first.numbers.shape[1]
    fit = first.rows(slice(0, None, 2)), second.rows(slice(0, None, 2))
    rest = first.rows(slice(1, None, 2)), second.rows(slice(1, None, 2))
    if log_ratio is not None and not objects:
        yield log_ratio, first, second
    if columns == 1 and not objects:
        yield Coordinate(0, 1), first, second
    if min(len(part) for part in rest) < 4:
        if columns > 1 or objects:
            yield Coordinate(0, columns), first, second
        return
    varying = [k for k in range(columns) if _varies(first.numbers[:, k], second.numbers[:, k])]
    if objects or columns > 1:
        table = fit_table(*fit, largest=min(MAXIMUM_TABLE, max(2, draws // 4)))
        if table is not None:
            yield table, *rest
    if not varying:
        yield Coordinate(0, columns), first, second
        return
    bins = int(np.clip(draws // 25, 4, 64)) if columns == 1 else int(np.clip(draws // 50, 2, 16))
    histogram = fit_histogram(*fit, tuple(varying), bins)
    yield histogram, *rest
    if len(varying) > 1 or objects:
        top = max(range(len(varying)), key=lambda k: _information(histogram, k, *fit))
        yield Coordinate(varying[top], columns), first, second
        yield Histogram((varying[top],), (histogram.edges[top],), (histogram.values[top],), columns), *rest
    if len(varying) > 1 and not objects and draws >= 32:
        linear = fit_linear(*fit)
        if linear is not None:
            yield linear, *rest


def _varies(a: FloatArray, b: FloatArray) -> bool:
    both = np.concatenate([a, b])
    return bool(np.any(both[1:] != both[0])) and not bool(np.all(np.isnan(both)))


def _information(histogram: Histogram, k: int, first: Outcomes, second: Outcomes) -> float:
    """How far one column's fitted log ratios separate the two samples: the difference of their means."""
    single = Histogram((histogram.columns[k],), (histogram.edges[k],), (histogram.values[k],), histogram.width)
    return float(single(first).mean() - single(second).mean())
