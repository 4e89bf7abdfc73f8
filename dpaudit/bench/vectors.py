"""Problems whose output is a vector of numbers or bits: where the signal sits is what makes them different."""

from __future__ import annotations

import math
from functools import partial as of
from typing import Any, Final

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.bench.laws import bits_law, coupled_law, event_law, gaussian_law, laplace_law, laplace_sum_law, tight_mu
from dpaudit.bench.problem import Problem, finite_law, problem
from dpaudit.privacy.claims import ApproxDP, FloatArray, PureDP

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


def laplace_vector(data: FloatArray, size: int, rng: Rng, *, scale: float = 1.0) -> FloatArray:
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

VECTOR: Final = ("where in a vector", "vector")
BIT_VECTOR: Final = ("bits", "bit vector")
DWORK = "Dwork, McSherry, Nissim and Smith 2006"
RAPPOR = "Erlingsson, Pihur and Korolova 2014"


def problems() -> list[Problem]:
    """All problems on vectors and bits."""
    direction = np.cos(np.arange(50.0))
    direction /= math.sqrt(float(direction @ direction))
    tight, three = tight_mu(1.0, 1e-3), (np.zeros(3), np.ones(3))
    return [
        problem("one coordinate of 1,000", *VECTOR, of(needle, scale=1.0 / 1.6), PureDP(1.0), of(laplace_law, 1.6),
                "sparse signal among noise that says nothing", (0.0, 1.0), HAYSTACK, exact=1.6),
        problem("sum of 100 weak coordinates", *VECTOR, of(many_weak, coordinates=100), ApproxDP(1.0, 0.01),
                of(gaussian_law, 1.3), "dense signal: 1.3 standard deviations in the sum, 0.13 in any one",
                (0.0, 0.13), 100),
        problem("direction in 50 coordinates", *VECTOR, of(along, sigma=1.0 / tight), ApproxDP(1.0, 1e-3),
                of(gaussian_law, tight), "the Gaussian mechanism on a gradient (Abadi et al. 2016)",
                (np.zeros(50), direction), 50, true="tight"),
        problem("correlation of two coordinates", *VECTOR, coupled, PureDP(1.0), of(coupled_law, 0.6),
                "no single coordinate differs in law", (0.6, -0.6), 10, exact=math.inf),
        problem("corner of a cube", *VECTOR, cornered, PureDP(1.0), of(event_law, 0.08, 0.016),
                "a conjunction of two coordinates", (0.08, 0.016), 5),
        problem("laplace on 3 coordinates", *VECTOR, of(laplace_vector, scale=3.0), PureDP(1.0),
                of(laplace_sum_law, 1.0 / 3.0, 3), DWORK, three, 3, true="tight", exact=1.0),
        problem("laplace on 3 coordinates, true 1.8", *VECTOR, of(laplace_vector, scale=1.0 / 0.6), PureDP(1.0),
                of(laplace_sum_law, 0.6, 3), f"{DWORK}, calibrated to 0.56 of the sensitivity", three, 3, exact=1.8),
        problem("16 bits 1", *BIT_VECTOR, of(noisy_bits, epsilon=0.125), PureDP(1.0), of(bits_law, 0.125, 8),
                f"{RAPPOR} (RAPPOR, permanent responses)", bits(16, 8), 16, true="tight"),
        problem("50 bits 1, true 4", *BIT_VECTOR, of(noisy_bits, epsilon=0.2), PureDP(1.0), of(bits_law, 0.2, 20),
                f"{RAPPOR}, the number of differing bits underestimated", bits(50, 20), 50),
        problem("two bits that agree", *BIT_VECTOR, coupled_bits, PureDP(0.5), of(finite_law, [0.7, 0.3], [0.3, 0.7]),
                "every single bit is fair on both inputs", (0.7, 0.3), 10),
    ]  # fmt: skip


def bits(length: int, differing: int) -> tuple[Any, Any]:
    """Two rows of bits, the first of which differ."""
    first = (np.arange(length) % 3 == 0).astype(np.int8)
    return first, first ^ (np.arange(length) < differing)
