"""An upper bound on the loss of a pair whose noise is compared and given out: noise of x is moved to that of x_prime.

A run is the same function of its noise on both inputs where its decisions are. If z is noise with which x goes one way
to an output, and z + shift is noise with which x_prime goes the same way to the same output, whatever z is, then that
output is at most e^loss as likely on x_prime, where loss is what the shift changes the density by. A comparison
`a z <= b w + gap` stays true if a shift_z - b shift_w <= gap' - gap; a number of the output stays the same if the shift
makes up for what its noise-free parts differ by. The cheapest such shift is a linear program, of any number of noises.

Source: Zhang and Kifer (2017), arXiv:1607.08228 (randomness alignment).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from dpaudit.symbolic.composing import noisy_pairs
from dpaudit.symbolic.laws import LAST_BITS, Law
from dpaudit.symbolic.runs import Path, Paths

TOLERANCE = 1e-9  # of a linear program, in scales: far below the slack of what is said of an upper bound
# Whether noise may be moved down, too: the density of the others falls without bound, or has an end there.
SHIFTED = {"laplace": True, "logistic": True, "exponential": False, "gumbel": False}
Row = tuple[Mapping[int, float], float]


def aligned(first: Paths, second: Paths) -> float | None:
    """The largest loss in nats at delta 0 of the cheapest shifts, over all runs and both ways; None if unknown."""
    sides = [{path.outcomes: path for path in paths.known} for paths in (first, second)]
    if sides[0].keys() != sides[1].keys() or first.left or second.left:
        return None
    worst = 0.0
    for key, path in sides[0].items():
        for one, other in ((path, sides[1][key]), (sides[1][key], path)):
            loss = _cheapest(one, other)
            if loss is None:
                return None
            worst = max(worst, loss)
    return worst


def _cheapest(one: Path, other: Path) -> float | None:
    a, b = one.tape, other.tape
    if one.token != other.token or a.spent - a.units.keys() or b.spent - b.units.keys() or not b.picked > 0.0:
        return None
    numbers = noisy_pairs(one, other)
    if numbers is None:
        return None
    equal: list[Row] = [(u.terms, u.signal - v.signal) for _, u, v in numbers]
    below: list[Row] = []
    size = max((leaf.reach for _, *both in numbers for leaf in both), default=0.0)
    if [(p.lower, p.upper) for p in a.comparisons] != [(p.lower, p.upper) for p in b.comparisons] or a.units != b.units:
        return None
    for mine, its in zip(a.comparisons, b.comparisons, strict=True):
        factors = {mine.lower: float(a.units[mine.lower]), mine.upper: -float(a.units[mine.upper])}
        below.append((factors, float(its.gap - mine.gap)))
    if a.intervals.keys() != b.intervals.keys():
        return None
    for index in a.intervals:
        below += _of_intervals(index, a.noises[index].law.support, a.intervals[index], b.intervals[index])
    used = sorted({index for row, _ in (*equal, *below) for index in row})
    if any(index >= min(len(a.noises), len(b.noises)) for index in used):
        return None
    laws = {index: a.noises[index].law for index in used}
    if any(law.family not in SHIFTED or not law.is_close(b.noises[index].law) for index, law in laws.items()):
        return None
    cost = _program(laws, equal, below, size)
    return None if cost is None else cost + max(math.log(a.picked / b.picked), 0.0)


def _of_intervals(
    index: int, support: tuple[float, float], mine: tuple[float, float], its: tuple[float, float]
) -> Iterator[Row]:
    low, high = max(mine[0], support[0]), min(mine[1], support[1])
    if its[0] > support[0]:
        yield {index: -1.0}, low - its[0]
    if its[1] < support[1]:
        yield {index: 1.0}, its[1] - high


def _program(laws: Mapping[int, Law], equal: list[Row], below: list[Row], size: float) -> float | None:
    """The least sum of shifts in scales; None where there is none. `size` is the largest number behind an end."""
    if any(not math.isfinite(end) for _, end in (*equal, *below)):
        return None
    if not laws:
        return 0.0 if all(abs(end) <= TOLERANCE for _, end in equal) else None
    from scipy.optimize import linprog

    scales = {index: law.scale for index, law in laws.items()}

    def matrix(rows: list[Row]) -> tuple[list[list[float]] | None, list[float] | None]:
        """Each row in units of its largest term, as the tolerance of the solver is an absolute one."""
        ups = [[row.get(index, 0.0) * scale for index, scale in scales.items()] for row, _ in rows]
        units = [max(map(abs, up)) for up in ups]
        listed = [
            [value / unit for value in (*up, *(-value for value in up))] for up, unit in zip(ups, units, strict=True)
        ]
        return listed or None, [end / unit for (_, end), unit in zip(rows, units, strict=True)] or None

    bounds = [(0.0, None)] * len(laws) + [(0.0, None if SHIFTED[law.family] else 0.0) for law in laws.values()]
    options = {"primal_feasibility_tolerance": 0.1 * TOLERANCE}
    found = linprog([1.0] * (2 * len(laws)), *matrix(below), *matrix(equal), bounds=bounds, options=options)
    if not found.success:
        return None
    # Validity: what the outputs say without noise must agree to the last digits, not to the solver's tolerance.
    kept, ends = matrix(equal)
    if kept and ends:
        left = np.array(ends) - np.array(kept) @ found.x
        left -= np.array(kept) @ np.linalg.lstsq(np.array(kept), left, rcond=None)[0]
        sizes = [size / max(abs(row.get(k, 0.0)) * scale for k, scale in scales.items()) for row, _ in equal]
        if (np.abs(left) > LAST_BITS * (np.array(sizes) + np.abs(kept) @ found.x)).any():
            return None
    return float(found.fun) * (1.0 + TOLERANCE)
