"""Problems whose output is a number: noise of several kinds, atoms that leak, and claims of several kinds.

Every mechanism is a function of (data, size, rng); `data` is the input: x or x_prime of the pair.
"""

from __future__ import annotations

import math
from functools import partial as of
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.bench.laws import (
    event_law,
    exact_or_laplace_law,
    gaussian_law,
    geometric_law,
    laplace_law,
    reach_for,
    response_law,
    spread_law,
    tight_mu,
    truncated_laplace_law,
)
from dpaudit.bench.problem import Problem, finite_law, graded, problem
from dpaudit.privacy.claims import ApproxDP, Claim, FloatArray, GaussianDP, ProfileClaim, PureDP, ZeroConcentratedDP

Rng = np.random.Generator


# --- Mechanisms -------------------------------------------------------------------------------------------------------


def laplace(data: float, size: int, rng: Rng, *, scale: float = 1.0) -> FloatArray:
    """The answer plus Laplace noise."""
    return data + rng.laplace(scale=scale, size=size)


def gaussian(data: float, size: int, rng: Rng, *, sigma: float = 1.0) -> FloatArray:
    """The answer plus normal noise."""
    return data + rng.normal(scale=sigma, size=size)


def spread(data: float, size: int, rng: Rng) -> FloatArray:
    """Noise whose scale is the data: nothing shows in the mean."""
    return rng.normal(scale=data, size=size)


def truncated_laplace(data: float, size: int, rng: Rng, *, epsilon: float, reach: float) -> FloatArray:
    """Laplace noise given that it is within +-reach, by inversion."""
    uniform = rng.uniform(-1.0, 1.0, size)
    far = -np.log1p(np.abs(uniform) * math.expm1(-epsilon * reach)) / epsilon
    return data + np.copysign(far, uniform)


def exact_or_laplace(data: float, size: int, rng: Rng, *, leak: float, scale: float) -> FloatArray:
    """The answer itself with a small probability, else the answer plus Laplace noise."""
    noise = rng.laplace(scale=scale, size=size)
    return data + np.where(rng.random(size) < leak, 0.0, noise)


def clamped_laplace(data: float, size: int, rng: Rng, *, scale: float) -> FloatArray:
    """Laplace noise, the result clamped to [0, 1]: half of the mass and more sits on the two ends."""
    return np.clip(data + rng.laplace(scale=scale, size=size), 0.0, 1.0)


def sometimes_zero(data: float, size: int, rng: Rng) -> FloatArray:
    """Normal noise that does not depend on the data, but exactly 0 with probability `data`."""
    return np.where(rng.random(size) < data, 0.0, rng.normal(scale=5.0, size=size))


def even_part(data: float, size: int, rng: Rng) -> FloatArray:
    """A number between 0 and 100 whose integer part is even with probability `data`."""
    whole = 2 * rng.integers(50, size=size) + (rng.random(size) >= data)
    return whole + rng.random(size)


def geometric(data: int, size: int, rng: Rng, *, rate: float) -> NDArray[np.int64]:
    """The count plus two-sided geometric noise."""
    success = -math.expm1(-rate)
    return data + rng.geometric(success, size) - rng.geometric(success, size)


def bounded_integer(data: int, size: int, rng: Rng, *, reach: int) -> NDArray[np.int64]:
    """The count plus an integer chosen uniformly from -reach to reach."""
    return data + rng.integers(-reach, reach + 1, size=size)


def response(data: int, size: int, rng: Rng, *, epsilon: float, categories: int = 2) -> NDArray[np.int64]:
    """Randomised response."""
    truth = math.exp(epsilon) / (math.exp(epsilon) + categories - 1)
    others = (data + rng.integers(1, categories, size=size)) % categories
    return np.where(rng.random(size) < truth, data, others)


# --- The problems -----------------------------------------------------------------------------------------------------

EXACT, HIDDEN = "an exact value leaks", "hidden in a number"
CATASTROPHE = "the textbook catastrophe: everything is published with probability delta"
CUT = "Geng, Ding, Guo and Kumar 2020"
NORMAL, BUN = "Dong, Roth and Su 2019", "Bun and Steinke 2016"


def problems() -> list[Problem]:
    """All problems on numbers."""
    return [*_scalars(), *_atoms_and_deltas(), *_free_lines(), *_discrete()]


def _scalars() -> list[Problem]:
    return [
        *(graded("laplace", claim, loss, "Laplace noise", "continuous", of(laplace, scale=1.0 / loss),
                 of(laplace_law, loss), "Dwork, McSherry, Nissim and Smith 2006", exact=loss)
          for claim, loss in ((1.0, 1.0), (10.0, 10.0), (0.2, 0.3), (1.0, 1.2), (1.0, 2.0), (5.0, 6.0))),
        problem("parity of the integer part", HIDDEN, "continuous", even_part, PureDP(0.5),
                of(finite_law, [0.7, 0.3], [0.3, 0.7]), "no threshold on the output sees it", (0.7, 0.3)),
        problem("spread of the noise", HIDDEN, "continuous", spread, ApproxDP(0.5, 0.01), spread_law,
                "noise scaled by the data, as with a local sensitivity (Nissim, Raskhodnikova and Smith 2007)",
                (1.0, 1.5)),
    ]  # fmt: skip


def _gaussian(name: str, claim: Claim, mu: float, source: str, is_sound: bool) -> Problem:
    return problem(f"gaussian {name}", "Gaussian noise", "continuous", of(gaussian, sigma=1.0 / mu), claim,
                   of(gaussian_law, mu), source, true="tight" if is_sound else "faulty")  # fmt: skip


def _calibrated(epsilon: float, delta: float, shrink: float) -> Problem:
    name = f"{epsilon:g}, {delta:g}" + ("" if shrink == 1.0 else f", noise {shrink:g} times too small")
    mu = tight_mu(epsilon, delta) * shrink
    source = "Balle and Wang 2018, the analytic calibration"
    return _gaussian(name, ApproxDP(epsilon, delta), mu, source, shrink == 1.0)


def _truncated(name: str, delta: float, source: str, **options: Any) -> Problem:
    reach = reach_for(1.0, delta)
    return problem(f"truncated laplace {name}", "truncated noise", "continuous",
                   of(truncated_laplace, epsilon=1.0, reach=reach), ApproxDP(1.0, 1e-3),
                   of(truncated_laplace_law, 1.0, reach), source, **options)  # fmt: skip


def _catastrophe(name: str, claim: Claim, leak: float, **options: Any) -> Problem:
    return problem(f"catastrophe {name}", EXACT, "continuous", of(exact_or_laplace, leak=leak, scale=2.0), claim,
                   of(exact_or_laplace_law, leak, 0.5), CATASTROPHE, **options)  # fmt: skip


def _atoms_and_deltas() -> list[Problem]:
    return [
        _calibrated(1.0, 1e-5, 1.0),
        _calibrated(0.5, 0.01, 1.0),
        _calibrated(0.5, 0.01, 1.5),
        _calibrated(1.0, 1e-6, 2.0),
        _calibrated(4.0, 1e-3, 1.5),
        _truncated("1, 0.001", 1e-3, CUT, true="tight", exact=1.0),
        _truncated("1, 0.001, true 0.005", 5e-3, f"{CUT}, cut too early"),
        _catastrophe("0.01", ApproxDP(0.5, 0.01), 0.01, true="tight"),
        _catastrophe("0.01, true 0.02", ApproxDP(0.5, 0.01), 0.02),
        _catastrophe("0, true 0.01", PureDP(0.5), 0.01),
        problem("clamped laplace 1", EXACT, "continuous", of(clamped_laplace, scale=1.0), PureDP(1.0),
                of(laplace_law, 1.0), "post-processing of Laplace noise: atoms at the ends, a density between",
                true="tight", exact=1.0),
        problem("sometimes exactly zero", EXACT, "continuous", sometimes_zero, PureDP(1.0), of(event_law, 0.2, 0.04),
                "an atom in a density, as of a filter that removes a value", (0.2, 0.04)),
    ]  # fmt: skip


def _free_lines() -> list[Problem]:
    own = "a privacy profile of the user's own (Balle, Barthe and Gaboardi 2018)"
    laplace_profile = ProfileClaim(_laplace_profile, "laplace profile")
    return [
        _gaussian("mu 1", GaussianDP(1.0), 1.0, NORMAL, True),
        _gaussian("mu 1, true 1.3", GaussianDP(1.0), 1.3, NORMAL, False),
        _gaussian("against the profile of Laplace noise", laplace_profile, 1.0, own, False),
        _gaussian("rho 0.5", ZeroConcentratedDP(0.5), 1.0, BUN, True),
        _gaussian("rho 0.5, true 0.72", ZeroConcentratedDP(0.5), 1.2, BUN, False),
    ]


def _laplace_profile(epsilon: float) -> float:
    """Of Laplace noise with loss 1."""
    return max(0.0, -math.expm1(0.5 * (epsilon - 1.0)))


def _discrete() -> list[Problem]:
    return [
        *(graded("geometric", 0.5, rate, "integer noise", "integer", of(geometric, rate=rate), of(geometric_law, rate),
                 "Ghosh, Roughgarden and Sundararajan 2009", (10, 11)) for rate in (0.5, 0.6)),
        problem("bounded integer 0.1, 0.01, true 0.016", "integer noise", "integer", of(bounded_integer, reach=30),
                ApproxDP(0.1, 0.01), of(finite_law, [1 / 61, 60 / 61, 0.0], [0.0, 60 / 61, 1 / 61]),
                "uniform noise: nothing but its two ends says anything", (10, 11)),
        *(graded(f"response {size} categories", claim, loss, "randomised response", "category",
                 of(response, epsilon=loss, categories=size), of(response_law, loss, size),
                 "Warner 1965; Kairouz, Oh and Viswanath 2014", (0, size - 1))
          for size, claim, loss in ((2, 1.0, 1.0), (10, 2.0, 2.0), (10, 2.0, 2.5), (100, 3.0, 4.0))),
    ]  # fmt: skip
