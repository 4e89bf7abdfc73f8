"""The sparse vector technique in its published variants: samplers and exact laws.

Queries of sensitivity 1 are compared one after the other with a noisy threshold; after `cut_off` answers "above" a
variant with a cut-off stops. Given the noise of the threshold the answers are independent, so every law below is an
integral over that one number: Gauss-Legendre quadrature on panels between the kinks of the Laplace laws (error below
1e-12). Numbering as in Lyu, Su and Li (2017), "Understanding the sparse vector technique", figure 1.

Conventions: answers are shape (queries,), noise scales in units of an answer; outputs are 1 above, 0 below, and for
what follows the stop -1 (or -1,000 and -2,000 where values are released).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, stats

from dpaudit.bench.laws import laplace_law
from dpaudit.bench.problem import SAME, Law, finite_law, product_law, union_law
from dpaudit.privacy.claims import FloatArray

BELOW, STOPPED = -1000.0, -2000.0  # of the variants that release values
NODES = 40  # of the quadrature, a panel
PANELS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 40.0)  # ends beyond the outermost kinks, in units of the larger scale
STEP = 0.05  # of the grid for released values; divides every kink


# --- Samplers --------------------------------------------------------------------------------------------------------


def above(
    data: FloatArray, size: int, rng: np.random.Generator, *, start: float, threshold: float, query: float, cut_off: int
) -> NDArray[np.int64]:
    """Mark queries above `start` plus noise of scale `threshold`; 0 for `query` adds none, 0 for no cut-off."""
    is_above = _is_above(data, size, rng, start, threshold, query)
    result = is_above.astype(np.int64)
    if cut_off:
        result[_is_stopped(is_above, cut_off)] = -1
    return result


def released(
    data: FloatArray, size: int, rng: np.random.Generator, *, start: float, threshold: float, query: float, cut_off: int
) -> FloatArray:
    """Variant 3: the value that was compared, where it is above."""
    values = data + rng.laplace(scale=query, size=(size, len(data)))
    is_above = values >= start + rng.laplace(scale=threshold, size=(size, 1))
    return np.where(_is_stopped(is_above, cut_off), STOPPED, np.where(is_above, values, BELOW))


def numeric(
    data: FloatArray,
    size: int,
    rng: np.random.Generator,
    *,
    start: float,
    threshold: float,
    query: float,
    value: float,
    cut_off: int,
) -> FloatArray:
    """Numerical sparse vector: the answer with fresh noise of scale `value`, where it is above."""
    is_above = _is_above(data, size, rng, start, threshold, query)
    values = data + rng.laplace(scale=value, size=(size, len(data)))
    return np.where(_is_stopped(is_above, cut_off), BELOW, np.where(is_above, values, 0.0))


def _is_above(
    data: FloatArray, size: int, rng: np.random.Generator, start: float, threshold: float, query: float
) -> NDArray[np.bool_]:
    limit = start + rng.laplace(scale=threshold, size=(size, 1))
    values = data + rng.laplace(scale=query, size=(size, len(data))) if query > 0.0 else data
    return np.asarray(values >= limit)


def _is_stopped(is_above: NDArray[np.bool_], cut_off: int) -> NDArray[np.bool_]:
    return np.asarray(np.cumsum(is_above, axis=1) - is_above >= cut_off)


# --- Laws ------------------------------------------------------------------------------------------------------------


def first_above_law(x: FloatArray, x_prime: FloatArray, start: float, threshold: float, query: float) -> Law:
    """With a cut-off of 1 the output is the position of the first query above, or none."""
    first, second = (first_above_masses(answers, start, threshold, query) for answers in (x, x_prime))
    return finite_law(first, second)


def counts_law(x: FloatArray, x_prime: FloatArray, start: float, threshold: float, query: float) -> Law:
    """Without a cut-off: queries with the same two answers are exchangeable, so their numbers above are sufficient."""
    _, p, q = counts_masses(x, x_prime, start, threshold, query)
    return finite_law(p, q)


def counts_masses(
    x: FloatArray, x_prime: FloatArray, start: float, threshold: float, query: float
) -> tuple[list[tuple[float, float]], FloatArray, FloatArray]:
    """The groups of queries with the same two answers; the masses of their numbers above, one axis a group."""
    groups = sorted(set(zip(x.tolist(), x_prime.tolist(), strict=True)))
    sizes = [int(((x == a) & (x_prime == b)).sum()) for a, b in groups]

    def masses(side: int) -> FloatArray:
        answers = np.array([group[side] for group in groups])
        nodes, weights = _quadrature(answers - start, threshold, query)
        chances = [stats.laplace.sf(nodes + start - answer, scale=query) for answer in answers]
        terms = [
            stats.binom.pmf(np.arange(n + 1)[:, None], n, chance) for n, chance in zip(sizes, chances, strict=True)
        ]
        cells = [functools.reduce(np.multiply, parts) @ weights for parts in itertools.product(*terms)]
        return normalised(np.array(cells)).reshape([n + 1 for n in sizes])

    return groups, masses(0), masses(1)


def noiseless_law(x: FloatArray, x_prime: FloatArray, start: float, threshold: float) -> Law:
    """Without noise on the queries: the output is a step function of the noisy threshold."""
    ends = np.unique(np.concatenate([x, x_prime]))
    masses: dict[bytes, list[float]] = {}
    below = [-math.inf, *ends.tolist()]
    for low, high in zip(below, [*ends.tolist(), math.inf], strict=True):
        mass = float(stats.laplace.cdf(high - start, scale=threshold) - stats.laplace.cdf(low - start, scale=threshold))
        for side, answers in enumerate((x, x_prime)):
            masses.setdefault((answers >= high).tobytes(), [0.0, 0.0])[side] += mass
    p, q = zip(*masses.values(), strict=True)
    return finite_law(p, q)


def released_law(x: FloatArray, x_prime: FloatArray, start: float, threshold: float, query: float) -> Law:
    """Variant 3 with a cut-off of 1: the position of the first query above, and its value on a grid of 0.1."""
    reach = round(40.0 * max(threshold, query) / (2.0 * STEP)) * 2.0 * STEP
    grid = np.linspace(-reach, reach, 2 * round(reach / STEP) + 1)

    def masses(answers: FloatArray) -> FloatArray:
        before = stats.laplace.pdf(grid, scale=threshold)  # of the threshold's noise, and of all earlier ones below
        cells = []
        for answer in answers.tolist():
            passed = integrate.cumulative_simpson(before, dx=STEP, initial=0.0)
            # Released at v: the threshold was at most v, that is its noise at most v - start.
            reached = np.interp(grid - start, grid, passed, left=0.0)
            density = reached * stats.laplace.pdf(grid - answer, scale=query)
            cells.append(STEP / 3.0 * (density[:-2:2] + 4.0 * density[1::2] + density[2::2]))
            before = before * stats.laplace.cdf(grid + start - answer, scale=query)
        found = np.concatenate(cells)
        return normalised(np.append(found, 1.0 - math.fsum(found.tolist())))

    law = product_law([finite_law(masses(x), masses(x_prime))])
    return Law(law.p, law.q, f"released values on a grid of {2.0 * STEP:g}, losses rounded to 1/4,000 of their range")


def numeric_law(
    x: FloatArray, x_prime: FloatArray, start: float, threshold: float, query: float, value: float, cut_off: int
) -> Law:
    """Numerical sparse vector: which queries were above is one law, the fresh noise on each value another."""
    positions = [ids for n in range(cut_off + 1) for ids in itertools.combinations(range(len(x)), n)]
    first, second = (above_masses(answers, positions, start, threshold, query, cut_off) for answers in (x, x_prime))
    noise = {shift: product_law([laplace_law(shift / value)], 400) if shift else SAME for shift in (0.0, 1.0)}
    released = functools.cache(lambda shifts: product_law([noise[shift] for shift in shifts], 800) if shifts else SAME)
    parts = []
    for ids, p, q in zip(positions, first.tolist(), second.tolist(), strict=True):
        shifts = tuple(sorted(abs(float(x[i] - x_prime[i])) for i in ids))
        parts.append((p, q, released(shifts)))
    return product_law([union_law(parts)])


def first_above_masses(answers: FloatArray, start: float, threshold: float, query: float) -> FloatArray:
    """Probability that each query is the first above, and that none is."""
    positions = [*((place,) for place in range(len(answers))), ()]
    return above_masses(answers, positions, start, threshold, query, 1)


def above_masses(
    answers: FloatArray,
    positions: Sequence[tuple[int, ...]],
    start: float,
    threshold: float,
    query: float,
    cut_off: int,
) -> FloatArray:
    """Probability that exactly these queries are above, of all up to the last one asked."""
    nodes, weights = _quadrature(answers - start, threshold, query)
    below = [stats.laplace.cdf(nodes + start - answer, scale=query) for answer in answers.tolist()]
    over = [stats.laplace.sf(nodes + start - answer, scale=query) for answer in answers.tolist()]

    def mass(ids: tuple[int, ...]) -> float:
        last = ids[-1] if len(ids) == cut_off else len(answers) - 1
        terms = [over[i] if i in ids else below[i] for i in range(last + 1)]
        return float(functools.reduce(np.multiply, terms) @ weights)

    return normalised(np.array([mass(ids) for ids in positions]))


def _quadrature(kinks: FloatArray, threshold: float, query: float) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of an integral against the threshold's Laplace noise."""
    nodes, weights = panels(np.unique(np.append(kinks, 0.0)), max(threshold, query))
    return nodes, weights * stats.laplace.pdf(nodes, scale=threshold)


def panels(kinks: FloatArray, scale: float) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of an integral over the line, by Gauss-Legendre on panels between increasing kinks."""
    far = np.array(PANELS) * scale
    ends = np.concatenate([kinks[0] - far[::-1], kinks, kinks[-1] + far])
    unit, share = np.polynomial.legendre.leggauss(NODES)
    half = 0.5 * np.diff(ends)[:, None]
    return (ends[:-1, None] + half * (unit + 1.0)).ravel(), (half * share).ravel()


def normalised(masses: FloatArray) -> FloatArray:
    """The masses, after a check that quadrature lost next to nothing."""
    total = math.fsum(masses.tolist())
    if abs(total - 1.0) > 1e-7:
        raise ArithmeticError(f"masses must sum to 1 within 1e-7, got {total!r}.")
    return np.maximum(masses, 0.0) / total
