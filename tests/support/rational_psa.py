"""PSA step by step in rational numbers, as printed: what `dpaudit_mechanisms.psa` is held to."""

import dataclasses
import itertools
import math
from fractions import Fraction


@dataclasses.dataclass(frozen=True)
class ExactRun:
    """A run of PSA in rational numbers.

    Attributes
    ----------
    scales : tuple
        c_k as a Fraction; 0 for a constant query, math.inf for one that cannot be answered.
    passes : tuple of tuple of Fraction
        The rates T that each pass added, for all K queries.
    """

    scales: tuple
    passes: tuple


def psa_exact(queries, metric):
    """Algorithm 3 as printed, step by step, in exact arithmetic: the reference for `psa`. For small instances.

    Parameters
    ----------
    queries : sequence of K sequences of N rational numbers
    metric : sequence of N sequences of N rational numbers, or math.inf
        Symmetric.
    """
    elements = range(len(queries[0]))
    finite = [(i, j) for i, j in itertools.combinations(elements, 2) if metric[i][j] != math.inf]
    left = {(i, j): Fraction(metric[i][j]) for i, j in finite}
    gaps = [{(i, j): abs(Fraction(row[i]) - Fraction(row[j])) for i, j in finite} for row in queries]
    varying = [any(gap.values()) for gap in gaps]
    rates = [Fraction(0)] * len(queries)
    passes = []
    while True:
        # A query that tells apart a pair with nothing left has c'_k = inf: 1/c'_k = 0 and T_k = 0, it is finished.
        alive = [
            k for k, gap in enumerate(gaps) if varying[k] and all(left[pair] > 0 for pair in finite if gap[pair] > 0)
        ]
        if not alive:
            break
        seen = {k: [pair for pair in finite if gaps[k][pair] > 0] for k in alive}
        alone = {k: max(gaps[k][pair] / left[pair] for pair in seen[k]) for k in alive}
        total = {pair: sum((gaps[k][pair] / alone[k] for k in alive), Fraction(0)) for pair in finite}
        share = {k: {p: left[p] * (gaps[k][p] / alone[k]) / total[p] for p in seen[k]} for k in alive}
        scale = {k: max(gaps[k][pair] / share[k][pair] for pair in seen[k]) for k in alive}
        for pair in finite:
            left[pair] -= sum((gaps[k][pair] / scale[k] for k in alive), Fraction(0))
        step = tuple(1 / scale[k] if k in scale else Fraction(0) for k in range(len(queries)))
        rates = [rate + more for rate, more in zip(rates, step, strict=True)]
        passes.append(step)
    scales = tuple(
        Fraction(0) if not varies else 1 / rate if rate else math.inf
        for rate, varies in zip(rates, varying, strict=True)
    )
    return ExactRun(scales, tuple(passes))
