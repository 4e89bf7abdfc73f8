"""Probability that noise on a tree leaves all counts non-negative, given the sums; the loss of conditioning on it.

With the leaves as free variables, the density of the noise given the sums is a product of e^-|node| over all nodes. So
the integral over non-negative counts is built from the leaves upwards: a node's law is the convolution of its
children's, times e^-|s|. Laws are masses on a grid of step 1/100 of the scale, each spread over its two neighbours so
that means are kept: the error is of the order of the step squared. The probability c_x is the integral over the same
without limits.

For counts x and x' of one more record, the log ratio of the two unnormalised densities has its extremes at all counts 0
and far out, so that the loss of the pair is exactly d / scale + |log c_x' / c_x| = (1 + gamma) d / scale (CD-S7), with
d the l1 distance of all nodes.
"""

import math
from typing import Any

import numpy as np
from scipy import signal

from dpaudit.errors import DpauditError
from dpaudit_mechanisms.constrained.hierarchy import Hierarchy
from dpaudit_mechanisms.inputs import FloatArray, positive, table

STEP, REACH = 0.01, 60.0  # of the grid, in scales
MIN_SHARE = 1e-11  # share of the whole integral below which the convolutions' rounding shows


def log_non_negative_mass(tree: Hierarchy, counts: Any, scale: float) -> float:
    """log P(all noisy counts >= 0) given the sums, for these true counts of the leaves.

    Parameters
    ----------
    tree : Hierarchy
    counts : array_like of float, shape (leaves,)
        In [0, inf).
    scale : float
        Of the Laplace noise at every node, in (0, inf).

    Raises
    ------
    UsageError
        If a count is negative.
    DpauditError
        If the probability is below 1e-11, where it cannot be computed in this way.

    Examples
    --------
    >>> one_leaf = Hierarchy.flat(1)  # e^(-2|u|/s) on u >= -x: 1 - e^(-2x/s) / 2
    >>> round(log_non_negative_mass(one_leaf, [1.0], 2.0), 4), round(math.log(1.0 - 0.5 * math.exp(-1.0)), 4)
    (-0.2033, -0.2033)
    """
    given, scale = table("counts", counts, (tree.leaves,), within="in [0, inf)"), positive("scale", scale)
    limited, whole = (_integral(tree, ends) for ends in (given / scale, np.full(tree.leaves, np.inf)))
    if limited < MIN_SHARE * whole:
        raise DpauditError(f"the probability of non-negative counts must be at least {MIN_SHARE}, got less.")
    return math.log(limited / whole)


def non_negative_gamma(tree: Hierarchy, x: Any, x_prime: Any, scale: float) -> float:
    """Privacy loss that non-negativity adds to a pair, as a share of the loss without it, in [0, 1] for one record.

    Examples
    --------
    >>> round(non_negative_gamma(Hierarchy.flat(1), [0.0], [1.0], 2.0), 3)  # log(2 - 1/e)
    0.49
    """
    masses = [log_non_negative_mass(tree, counts, scale) for counts in (x, x_prime)]
    distance = float(np.abs(tree.totals(x) - tree.totals(x_prime)).sum()) / scale
    return abs(masses[0] - masses[1]) / distance if distance > 0.0 else 0.0


def _integral(tree: Hierarchy, ends: FloatArray) -> float:
    """The integral of the product of e^-|node| over leaf noise u >= -ends, at scale 1, up to one constant."""
    grid = STEP * np.arange(-round(REACH / STEP), round(REACH / STEP) + 1)
    damping = np.exp(-np.abs(grid))
    laws: dict[int, FloatArray] = {}
    first = tree.nodes - tree.leaves
    for node in range(tree.nodes - 1, -1, -1):
        if node >= first:
            law = _leaf(grid, float(ends[node - first]))
        else:
            law = laws.pop(node) * damping
        parent = tree.parents[node]
        if parent < 0:
            return float(law.sum())
        laws[parent] = signal.fftconvolve(laws[parent], law, mode="same") if parent in laws else law
    raise AssertionError("a tree has a root")


def _leaf(grid: FloatArray, end: float) -> FloatArray:
    """Masses of the density e^-|u| / 2 on u >= -end, spread over the two nearest points of the grid."""

    def twice(u: FloatArray) -> FloatArray:  # the density, integrated twice
        whole = np.where(u < 0.0, 0.5 * np.exp(-np.abs(u)), u + 0.5 * np.exp(-np.abs(u)))
        if math.isinf(end):
            return np.asarray(whole)
        start = 0.5 * math.exp(-end)  # both its value and its slope at -end
        return np.where(u > -end, whole - start - start * (u + end), 0.0)

    return np.asarray((twice(grid + STEP) - 2.0 * twice(grid) + twice(grid - STEP)) / STEP)
