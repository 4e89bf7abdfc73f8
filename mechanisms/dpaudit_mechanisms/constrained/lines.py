"""Independent Laplace noise on an affine set, by exact draws along lines: a Gibbs chain without tuning or rejections.

Along u + t w the density is proportional to exp(-sum_i |u_i + t w_i| / s_i): log-linear between the points where a
coordinate changes its sign, so that t is drawn exactly, for all chains at once. The lines are the same for all chains
and all steps, in a fixed order (the columns of the kernel's basis, then one line for each free variable), so that the
chains are independent of each other.
"""

import numpy as np

from dpaudit_mechanisms.constrained.affine import Affine
from dpaudit_mechanisms.inputs import FloatArray


def directions(given: Affine) -> FloatArray:
    """Lines that span the kernel, shape (lines, coordinates): an orthonormal basis, and each free variable by itself.

    The second kind has few non-zero coordinates, along which a chain moves far; the first connects everything.
    """
    if given.dimension == 0:
        return np.empty((0, given.coordinates))
    single = given.solved(np.eye(given.dimension))
    return np.vstack([given.kernel, single]) if given.dimension > 1 else single


def step_along(noise: FloatArray, direction: FloatArray, scales: FloatArray, rng: np.random.Generator) -> None:
    """Move every row of `noise`, shape (chains, coordinates), along one line by an exact draw, in place.

    `direction` and `scales` have the shape (coordinates,).
    """
    moving = np.abs(direction) > 1e-12 * np.abs(direction).max()
    w, s = direction[moving], scales[moving]
    breaks = -noise[:, moving] / w  # (chains, moving): where a coordinate is 0
    order = np.argsort(breaks, axis=1)
    breaks = np.take_along_axis(breaks, order, axis=1)
    turns = (np.abs(w) / s)[order]  # how much the slope of the exponent turns there, halved
    slopes = 2.0 * np.cumsum(turns, axis=1) - turns.sum(axis=1, keepdims=True)  # after each break
    first = -turns.sum(axis=1, keepdims=True)
    slopes = np.hstack([first, slopes])  # (chains, moving + 1)
    gaps = np.diff(breaks, axis=1)
    # Exponent at each break, up to one constant a chain.
    level = np.hstack([np.zeros((len(noise), 1)), np.cumsum(slopes[:, 1:-1] * gaps, axis=1)])
    lengths = np.hstack([np.full((len(noise), 1), np.inf), gaps, np.full((len(noise), 1), np.inf)])
    # A piece is entered at its end of least exponent; from there the density falls at the rate |slope|.
    rising = slopes >= 0.0
    starts = np.where(rising, np.hstack([breaks[:, :1], breaks]), np.hstack([breaks, breaks[:, -1:]]))
    least = np.where(rising, np.hstack([level[:, :1], level]), np.hstack([level, level[:, -1:]]))
    rates = np.abs(slopes)
    flat = rates < 1e-12 * turns.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        widths = np.where(flat, lengths, -np.expm1(-rates * lengths) / rates)
        masses = widths * np.exp(least.min(axis=1, keepdims=True) - least)
    cumulative = np.cumsum(masses, axis=1)
    chosen = (rng.random((len(noise), 1)) * cumulative[:, -1:] >= cumulative[:, :-1]).sum(axis=1)
    rows = np.arange(len(noise))
    v, rate, length = rng.random(len(noise)), rates[rows, chosen], lengths[rows, chosen]
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.where(flat[rows, chosen], v * length, -np.log1p(v * np.expm1(-rate * length)) / rate)
    t = starts[rows, chosen] + np.where(rising[rows, chosen], distance, -distance)
    noise += t[:, None] * direction
