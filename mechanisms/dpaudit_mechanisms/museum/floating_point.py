"""Bugs of floating point: the low bits of noise in doubles, and machine integers that wrap around."""

import numpy as np

from dpaudit.domains import DatasetDomain, NumberDomain
from dpaudit.exhibits.exhibit import Release
from dpaudit_mechanisms.museum.bugs import Bugs, two_sided_geometric

bug = Bugs("floating point")
GRID = 2.0**-20  # of the mended versions
UNIT = NumberDomain(0.0, 1.0, change=1.0)


@bug(
    "world-federation-of-advertisers/cross-media-measurement#1357",
    "The noisers use the Gaussian and Laplace classes of a statistics library, whose low bits tell the answer.",
    "eps=4,delta=0.001",
    UNIT,
    (0.0, 1.0),
    channel="low bits",
)
def gaussian_in_doubles(data, size, rng, mended):
    """Gaussian noise of a statistics library, in doubles."""
    noise = rng.normal(size=size)
    if mended:
        return (np.round(data / GRID) + np.round(noise / GRID)) * GRID
    return data + noise


@bug(
    "opendp/smartnoise-core#242",
    "Scaled samples of a library's Laplace generator are added in doubles: most doubles can come from one input only.",
    "eps=1",
    UNIT,
    (0.0, 1.0),
    channel="low bits",
)
def laplace_in_doubles(data, size, rng, mended):
    """Laplace noise by the inverse of its distribution function, in doubles."""
    if mended:
        return (np.round(data / GRID) + two_sided_geometric((1.0 + GRID) / GRID, size, rng)) * GRID
    u = rng.random(size) - 0.5
    return data - np.sign(u) * np.log1p(-2.0 * np.abs(u))


@bug(
    "IBM/differential-privacy-library#19",
    "The attack on the low bits of Laplace noise tells 0 and 1 apart; here they are the lengths of two lists.",
    "eps=1",
    DatasetDomain(values=(0, 1)),
    ([], [0]),
    channel="low bits",
)
def length_of_a_list_in_doubles(data, size, rng, mended):
    """Laplace noise in doubles on the length of a list."""
    if mended:
        return len(data) + two_sided_geometric(1.0, size, rng)
    return len(data) + rng.laplace(size=size)


def _diffprivlib():
    from diffprivlib.mechanisms import Laplace

    def release(data, rng):
        return Laplace(epsilon=1.0, sensitivity=1.0, random_state=int(rng.integers(2**31))).randomise(float(data))

    return release


@bug(
    "opendp/opendp#414",
    "The precision of a sum is that of its less precise summand, whatever the noise itself looks like.",
    "eps=1",
    UNIT,
    (0.0, 1.0),
    channel="low bits",
    releases=(Release("diffprivlib", "0.6.6", _diffprivlib),),
)
def noise_without_holes_added(data, size, rng, mended):
    """Noise without holes is added to the answer, and the sum has the precision of the larger one."""
    if mended:
        return (np.round(data / GRID) + two_sided_geometric((1.0 + GRID) / GRID, size, rng)) * GRID
    scale = 1.0
    return (rng.laplace(size=size) + data / scale) * scale


@bug(
    "arXiv:2207.10635 (overflow)",
    "The sensitivity is that of a sum of integers; the sum of machine integers jumps by 2**8 where it overflows.",
    "eps=1",
    DatasetDomain(values=(0, 100, 50, 27)),
    ([100], [100, 50]),
    faulty="int8",
    mended="int64",
)
def sum_wraps_around(data, size, rng, integers):
    """A sum of small integers wraps around."""
    total = np.sum(np.clip(data, 0, 100).astype(integers), dtype=integers)
    return int(total) + rng.laplace(scale=100, size=size)
