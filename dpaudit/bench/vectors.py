"""Problems whose output is a vector of numbers or bits: where the signal sits is what makes them different."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.bench.laws import bits_law, coupled_law, gaussian_law, laplace_law, laplace_sum_law, tight_mu
from dpaudit.bench.problem import FloatArray, Problem, finite_law
from dpaudit.privacy.claims import ApproxDP, PureDP

Rng = np.random.Generator
NEEDLE, HAYSTACK = 617, 1000  # where the one coordinate with a signal is, of how many
COUPLED = (2, 7)  # the coordinates whose correlation is the signal


# --- Mechanisms -------------------------------------------------------------------------------------------------------


def needle(data: float, size: int, rng: Rng, *, scale: float) -> FloatArray:
    """1,000 numbers, of which one is the answer plus Laplace noise and the others are noise alone."""
    outputs = rng.standard_normal((size, HAYSTACK))
    outputs[:, NEEDLE] = data + rng.laplace(scale=scale, size=size)
    return outputs


def many_weak(data: float, size: int, rng: Rng, *, coordinates: int) -> FloatArray:
    """The same small answer in every coordinate, under normal noise of its own in each."""
    return data + rng.standard_normal((size, coordinates))


def along(data: FloatArray, size: int, rng: Rng, *, sigma: float) -> FloatArray:
    """A vector plus normal noise in every coordinate."""
    return data + rng.normal(scale=sigma, size=(size, len(data)))


def coupled(data: float, size: int, rng: Rng) -> FloatArray:
    """10 standard normal numbers, independent but for two whose correlation is the data."""
    outputs = rng.standard_normal((size, 10))
    first, second = COUPLED
    outputs[:, second] = data * outputs[:, first] + math.sqrt(1.0 - data**2) * outputs[:, second]
    return outputs


def cornered(data: float, size: int, rng: Rng) -> FloatArray:
    """A point of the cube [0, 1]^5, uniform but for the corner of the first two below 0.2: its mass is the data."""
    outputs = rng.random((size, 5))
    inside = rng.random(size) < data
    # Outside the corner, by rejection: at most 4% of the points fall into it, so a few rounds are enough.
    while (wrong := ~inside & (outputs[:, :2] < 0.2).all(axis=1)).any():
        outputs[wrong, :2] = rng.random((int(wrong.sum()), 2))
    outputs[inside, :2] *= 0.2
    outputs[inside, :2] = np.minimum(outputs[inside, :2], 0.2 * (1.0 - 2.0**-53))
    return outputs


def laplace_vector(data: FloatArray, size: int, rng: Rng, *, scale: float) -> FloatArray:
    """A vector plus Laplace noise in every coordinate."""
    return data + rng.laplace(scale=scale, size=(size, len(data)))


def noisy_bits(data: NDArray[np.int8], size: int, rng: Rng, *, epsilon: float) -> NDArray[np.int8]:
    """Independent randomised response on every bit."""
    outputs: NDArray[np.int8] = data ^ (rng.random((size, len(data))) >= scipy.special.expit(epsilon))
    return outputs


def coupled_bits(data: float, size: int, rng: Rng) -> NDArray[np.int8]:
    """10 fair bits, independent but for two that agree with probability `data`."""
    outputs = rng.integers(2, size=(size, 10), dtype=np.int8)
    first, second = COUPLED
    outputs[:, second] = outputs[:, first] ^ (rng.random(size) >= data)
    return outputs


# --- The problems -----------------------------------------------------------------------------------------------------


def problems() -> list[Problem]:
    """All problems on vectors and bits."""
    return [*_vectors(), *_bits()]


def _vectors() -> list[Problem]:
    direction = np.cos(np.arange(50.0))
    direction /= math.sqrt(float(direction @ direction))
    tight = tight_mu(1.0, 1e-3)
    return [
        Problem(
            "one coordinate of 1,000",
            "where in a vector",
            "vector",
            functools.partial(needle, scale=1.0 / 1.6),
            PureDP(1.0),
            (0.0, 1.0),
            HAYSTACK,
            False,
            "sparse signal among noise that says nothing",
            make_law=functools.partial(laplace_law, 1.6),
            exact=1.6,
        ),
        Problem(
            "sum of 100 weak coordinates",
            "where in a vector",
            "vector",
            functools.partial(many_weak, coordinates=100),
            ApproxDP(1.0, 0.01),
            (0.0, 0.13),
            100,
            False,
            "dense signal: 1.3 standard deviations in the sum, 0.13 in any one",
            make_law=functools.partial(gaussian_law, 1.3),
        ),
        Problem(
            "direction in 50 coordinates",
            "where in a vector",
            "vector",
            functools.partial(along, sigma=1.0 / tight),
            ApproxDP(1.0, 1e-3),
            (np.zeros(50), direction),
            50,
            True,
            "the Gaussian mechanism on a gradient (Abadi et al. 2016)",
            tight=True,
            make_law=functools.partial(gaussian_law, tight),
        ),
        Problem(
            "correlation of two coordinates",
            "where in a vector",
            "vector",
            coupled,
            PureDP(1.0),
            (0.6, -0.6),
            10,
            False,
            "no single coordinate differs in law",
            make_law=functools.partial(coupled_law, 0.6),
            exact=math.inf,
        ),
        Problem(
            "corner of a cube",
            "where in a vector",
            "vector",
            cornered,
            PureDP(1.0),
            (0.08, 0.016),
            5,
            False,
            "a conjunction of two coordinates",
            make_law=functools.partial(finite_law, [0.08, 0.92], [0.016, 0.984]),
        ),
        Problem(
            "laplace on 3 coordinates",
            "where in a vector",
            "vector",
            functools.partial(laplace_vector, scale=3.0),
            PureDP(1.0),
            (np.zeros(3), np.ones(3)),
            3,
            True,
            "Dwork, McSherry, Nissim and Smith 2006",
            tight=True,
            make_law=functools.partial(laplace_sum_law, 1.0 / 3.0, 3),
            exact=1.0,
        ),
        Problem(
            "laplace on 3 coordinates, true 1.8",
            "where in a vector",
            "vector",
            functools.partial(laplace_vector, scale=1.0 / 0.6),
            PureDP(1.0),
            (np.zeros(3), np.ones(3)),
            3,
            False,
            "Dwork, McSherry, Nissim and Smith 2006, calibrated to 0.56 of the sensitivity",
            make_law=functools.partial(laplace_sum_law, 0.6, 3),
            exact=1.8,
        ),
    ]


def _bits() -> list[Problem]:
    def bits(length: int, differing: int) -> tuple[Any, Any]:
        first = (np.arange(length) % 3 == 0).astype(np.int8)
        second = first.copy()
        second[:differing] ^= 1
        return first, second

    return [
        Problem(
            "16 bits 1",
            "bits",
            "bit vector",
            functools.partial(noisy_bits, epsilon=0.125),
            PureDP(1.0),
            bits(16, 8),
            16,
            True,
            "Erlingsson, Pihur and Korolova 2014 (RAPPOR, permanent responses)",
            tight=True,
            make_law=functools.partial(bits_law, 0.125, 8),
        ),
        Problem(
            "50 bits 1, true 4",
            "bits",
            "bit vector",
            functools.partial(noisy_bits, epsilon=0.2),
            PureDP(1.0),
            bits(50, 20),
            50,
            False,
            "Erlingsson, Pihur and Korolova 2014, the number of differing bits underestimated",
            make_law=functools.partial(bits_law, 0.2, 20),
        ),
        Problem(
            "two bits that agree",
            "bits",
            "bit vector",
            coupled_bits,
            PureDP(0.5),
            (0.7, 0.3),
            10,
            False,
            "every single bit is fair on both inputs",
            make_law=functools.partial(finite_law, [0.7, 0.3], [0.3, 0.7]),
        ),
    ]
