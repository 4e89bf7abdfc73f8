"""Which doubles a naive Laplace sampler can return: Mironov's attack, where location and scale can be guessed.

Sampling by inversion takes a uniform double u, a multiple of 2^-53, and returns location ± scale * log(u). There are
fewer such u than doubles around, so only some doubles can come out, and which ones depends on the location. Whether a
given double can is decided by trying the u next to the one that would give it on the real line. The less u (or 1 - u,
of a sampler that takes the upper half by it), the further from the location, so that only one side need be tried.

What is guessed here (that the location is the input itself, or its entry under the same path, and that the scale is
1 / epsilon or |x - x_prime| / epsilon) only suggests a rule: where the guess is wrong, the codes say nothing and
another feature wins. Where it is right it is worth much. Lower bounds measured at 10,000 draws a side of
`Generator.laplace`, epsilon = 0.1: from 3.3 to 6.9 on (0, 1), from none to 6.8 on (10, 11), from none to 2.8 on
(1000, 1001).

What recognition is worth depends on the machine that audits and on the one that drew, never what it may claim: the
codes of a double are a function of its bits on any one machine, and a rule is judged by fresh draws there. The sampler
takes the logarithm of the C library, recognition that of numpy. With AVX-512 numpy has one of its own, which differs in
the last bit for about 0.3% of arguments: so many draws are not recognised. Without AVX-512 (with AVX2, or with the
baseline of x86-64 alone) numpy calls the C library and every draw is recognised. Outputs of a machine with another C
library are like the former case, at a share that depends on both. Now and then the other input's location could give a
draw that is not recognised: with AVX-512 about 1 in 5,000 was taken for the other input's. So words name numpy's
logarithm, and counts beside them need not be 0.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpaudit.doubles.features import Codes
from dpaudit.doubles.locations import Location
from dpaudit.privacy.claims import FloatArray

Sampler = Literal["numpy", "logarithm"]
ScaleOf = Literal["one", "difference"]
GRID = 2.0**53  # uniform doubles are multiples of 1 over this
BLOCK = 1 << 13  # values that are looked at together: the arrays of one block stay in a cache of a megabyte
LANES = 64  # a multiple of the doubles in any vector register


@dataclasses.dataclass(frozen=True)
class Attainable:
    """Which input could have given a double: 0 neither, 1 x only, 2 x′ only, 3 both.

    `first` and `second` are the locations; `sampler` is "numpy" (the formula of `Generator.laplace`) or "logarithm"
    (scale * log(u), or of 1 - 2|u - 1/2|, with either sign). Locations may be numbers of somebody's data, and so may a
    scale that is the distance of the two over epsilon (`scale_of`): words name them by `location`, and give no value.
    """

    first: float
    second: float
    scale: float
    sampler: Sampler
    location: Location | None = None  # None: of a file of an earlier version, which holds only the numbers
    scale_of: ScaleOf = "one"
    epsilon: float = math.nan  # that the scale was computed with, where there is a location
    is_ordered = False

    @classmethod
    def around(cls, location: Location, epsilon: float, sampler: Sampler, scale_of: ScaleOf) -> Attainable:
        """Noise of scale 1 / epsilon ("one"), or of the distance of the locations over epsilon ("difference")."""
        apart = 1.0 if scale_of == "one" else abs(location.x - location.x_prime)
        return cls(location.x, location.x_prime, apart / epsilon, sampler, location, scale_of, epsilon)

    def codes(self, values: FloatArray) -> Codes:
        codes = np.empty(len(values), dtype=np.int64)
        for start in range(0, len(values), BLOCK):
            block = values[start : start + BLOCK]
            padded = _in_full_vectors(block)
            padded[np.isinf(padded)] = math.nan  # which nothing gives
            with np.errstate(all="ignore"):  # outputs far away cannot be
                sides = [self._can_be(padded, location).view(np.int8) for location in (self.first, self.second)]
            codes[start : start + BLOCK] = (sides[0] + 2 * sides[1])[: len(block)]
        return codes

    def words(self, ranges: Sequence[tuple[int, int]]) -> str:
        known = self.location if self.location is not None else Location(self.first, self.second)
        first, second = known.said("x"), known.said("x′")
        noise = f"{self.scale:.6g} * log(u)" if self.scale_of == "one" else f"s / {self.epsilon:.6g} * log(u)"
        names = (
            f"that neither {first} ± {noise} nor {second} ± {noise} can be",
            f"that {first} ± {noise} can be and {second} ± {noise} cannot",
            f"that {second} ± {noise} can be and {first} ± {noise} cannot",
            f"that {first} ± {noise} and {second} ± {noise} can both be",
        )
        kinds = " or ".join(names[first] for first, _ in ranges)
        far = "" if self.scale_of == "one" else ", s how far these lie apart"
        return f"{kinds}{far}, u a multiple of 2^-53 (noise sampled by inversion; log as numpy has it here)"

    def _can_be(self, values: FloatArray, location: float) -> NDArray[np.bool_]:
        """Which of the values (in full vectors, none of them infinite) can be."""
        noise = values - location
        upper = noise > 0.0
        scale = np.where(upper, -self.scale, self.scale)
        share = np.exp(np.abs(noise) / -self.scale)
        if self.sampler == "numpy":
            share = (0.5 * share + 0.5) - 0.5  # at most 1/2: the sums round to the nearest multiple of 2^-53
        else:
            share = np.rint(share * GRID) / GRID
        given = self._given(location, upper, scale, share)
        known = given == values
        # The less of a share, the further from the location. So beside the nearest share only that on the side of the
        # value can give it: what falls between the doubles of neighbours is given by none. The rounding of the
        # exponential takes the nearest one step off at most (of 10^7 values, none was given by one further away).
        share += np.where((values > given) ^ upper, 1.0 / GRID, -1.0 / GRID)
        return np.asarray(known | (self._given(location, upper, scale, share) == values))

    def _given(self, location: float, upper: NDArray[np.bool_], scale: FloatArray, share: FloatArray) -> FloatArray:
        """The double that each share gives, in full vectors; infinite or NaN for a share that no u has.

        The share is u, or for "numpy" u below the location and 1 - u above it (`upper`), where `scale` is negative.
        """
        if self.sampler == "numpy":
            # 2u, and (2 - u) - u, which rounds on the way: the grid of the upper half depends on that.
            share = share + np.where(upper, (1.0 + share) - 1.0, share)
        noise = np.log(share)
        noise *= scale
        noise += location
        return noise


def _in_full_vectors(values: FloatArray) -> FloatArray:
    """The values, and behind them so many NaN that vectors of processors are full.

    Validity: vectorised exponentials and logarithms may give other bits at the end of an array, where vectors are not
    full. So all values go through full vectors: a code is a function of the value alone.
    """
    padded = np.full(len(values) + LANES - len(values) % LANES, math.nan)
    padded[: len(values)] = values
    return padded


def attainable(location: Location | None, epsilon: float) -> list[Attainable]:
    """The features to try for outputs that may be a location plus Laplace noise; empty where that makes no sense."""
    if location is None or not (math.isfinite(location.x) and math.isfinite(location.x_prime)):
        return []
    if not 0.0 < epsilon < math.inf or location.x == location.x_prime:
        return []
    scales: tuple[ScaleOf, ...] = ("one", "difference")
    samplers: tuple[Sampler, ...] = ("numpy", "logarithm")
    tried = [Attainable.around(location, epsilon, sampler, scale) for scale in scales for sampler in samplers]
    of_each = {(one.scale, one.sampler): one for one in reversed(tried)}  # of equal scales the first kind is meant
    return [one for one in tried if 0.0 < one.scale < math.inf and of_each[one.scale, one.sampler] is one]
