"""Problems whose output is a number: noise of several kinds, atoms that leak, and claims of several kinds.

Every mechanism is a function of (data, size, rng); `data` is what the pair differs in.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from dpaudit.bench.laws import (
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
from dpaudit.bench.problem import FloatArray, Problem, finite_law
from dpaudit.privacy.claims import ApproxDP, GaussianDP, ProfileClaim, PureDP, ZeroConcentratedDP

Rng = np.random.Generator


# --- Mechanisms -------------------------------------------------------------------------------------------------------


def laplace(data: float, size: int, rng: Rng, *, scale: float) -> FloatArray:
    """The answer plus Laplace noise."""
    return data + rng.laplace(scale=scale, size=size)


def gaussian(data: float, size: int, rng: Rng, *, sigma: float) -> FloatArray:
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


def problems() -> list[Problem]:
    """All problems on numbers."""
    return [*_scalars(), *_atoms_and_deltas(), *_free_lines(), *_discrete()]


def _laplace(claim: float, loss: float) -> Problem:
    sound = loss <= claim
    return Problem(
        f"laplace {claim:g}" + ("" if sound else f", true {loss:g}"),
        "Laplace noise",
        "continuous",
        functools.partial(laplace, scale=1.0 / loss),
        PureDP(claim),
        (0.0, 1.0),
        1,
        sound,
        "Dwork, McSherry, Nissim and Smith 2006",
        tight=loss == claim,
        make_law=functools.partial(laplace_law, loss),
        exact=loss,
    )


def _scalars() -> list[Problem]:
    return [
        _laplace(1.0, 1.0),
        _laplace(10.0, 10.0),
        _laplace(0.2, 0.3),
        _laplace(1.0, 1.2),
        _laplace(1.0, 2.0),
        _laplace(5.0, 6.0),
        Problem(
            "parity of the integer part",
            "hidden in a number",
            "continuous",
            even_part,
            PureDP(0.5),
            (0.7, 0.3),
            1,
            False,
            "no threshold on the output sees it",
            make_law=functools.partial(finite_law, [0.7, 0.3], [0.3, 0.7]),
        ),
        Problem(
            "spread of the noise",
            "hidden in a number",
            "continuous",
            spread,
            ApproxDP(0.5, 0.01),
            (1.0, 1.5),
            1,
            False,
            "noise scaled by the data, as with a local sensitivity (Nissim, Raskhodnikova and Smith 2007)",
            make_law=spread_law,
        ),
    ]


def _gaussian(epsilon: float, delta: float, shrink: float) -> Problem:
    mu = tight_mu(epsilon, delta) * shrink
    return Problem(
        f"gaussian {epsilon:g}, {delta:g}" + ("" if shrink == 1.0 else f", noise {shrink:g} times too small"),
        "Gaussian noise",
        "continuous",
        functools.partial(gaussian, sigma=1.0 / mu),
        ApproxDP(epsilon, delta),
        (0.0, 1.0),
        1,
        shrink <= 1.0,
        "Balle and Wang 2018, the analytic calibration",
        tight=shrink == 1.0,
        make_law=functools.partial(gaussian_law, mu),
    )


def _atoms_and_deltas() -> list[Problem]:
    catastrophe = "the textbook catastrophe: everything is published with probability delta"
    reach, short = reach_for(1.0, 1e-3), reach_for(1.0, 5e-3)
    return [
        _gaussian(1.0, 1e-5, 1.0),
        _gaussian(0.5, 0.01, 1.0),
        _gaussian(0.5, 0.01, 1.5),
        _gaussian(1.0, 1e-6, 2.0),
        _gaussian(4.0, 1e-3, 1.5),
        Problem(
            "truncated laplace 1, 0.001",
            "truncated noise",
            "continuous",
            functools.partial(truncated_laplace, epsilon=1.0, reach=reach),
            ApproxDP(1.0, 1e-3),
            (0.0, 1.0),
            1,
            True,
            "Geng, Ding, Guo and Kumar 2020",
            tight=True,
            make_law=functools.partial(truncated_laplace_law, 1.0, reach),
            exact=1.0,
        ),
        Problem(
            "truncated laplace 1, 0.001, true 0.005",
            "truncated noise",
            "continuous",
            functools.partial(truncated_laplace, epsilon=1.0, reach=short),
            ApproxDP(1.0, 1e-3),
            (0.0, 1.0),
            1,
            False,
            "Geng, Ding, Guo and Kumar 2020, cut too early",
            make_law=functools.partial(truncated_laplace_law, 1.0, short),
        ),
        Problem(
            "catastrophe 0.01",
            "an exact value leaks",
            "continuous",
            functools.partial(exact_or_laplace, leak=0.01, scale=2.0),
            ApproxDP(0.5, 0.01),
            (0.0, 1.0),
            1,
            True,
            catastrophe,
            tight=True,
            make_law=functools.partial(exact_or_laplace_law, 0.01, 0.5),
        ),
        Problem(
            "catastrophe 0.01, true 0.02",
            "an exact value leaks",
            "continuous",
            functools.partial(exact_or_laplace, leak=0.02, scale=2.0),
            ApproxDP(0.5, 0.01),
            (0.0, 1.0),
            1,
            False,
            catastrophe,
            make_law=functools.partial(exact_or_laplace_law, 0.02, 0.5),
        ),
        Problem(
            "catastrophe 0, true 0.01",
            "an exact value leaks",
            "continuous",
            functools.partial(exact_or_laplace, leak=0.01, scale=2.0),
            PureDP(0.5),
            (0.0, 1.0),
            1,
            False,
            catastrophe,
            make_law=functools.partial(exact_or_laplace_law, 0.01, 0.5),
        ),
        Problem(
            "clamped laplace 1",
            "an exact value leaks",
            "continuous",
            functools.partial(clamped_laplace, scale=1.0),
            PureDP(1.0),
            (0.0, 1.0),
            1,
            True,
            "post-processing of Laplace noise: atoms at the ends, a density between",
            tight=True,
            make_law=functools.partial(laplace_law, 1.0),
            exact=1.0,
        ),
        Problem(
            "sometimes exactly zero",
            "an exact value leaks",
            "continuous",
            sometimes_zero,
            PureDP(1.0),
            (0.2, 0.04),
            1,
            False,
            "an atom in a density, as of a filter that removes a value",
            make_law=functools.partial(finite_law, [0.2, 0.8], [0.04, 0.96]),
        ),
    ]


def _free_lines() -> list[Problem]:
    normal = "Dong, Roth and Su 2019"
    return [
        Problem(
            f"gaussian {name}",
            "Gaussian noise",
            "continuous",
            functools.partial(gaussian, sigma=1.0 / mu),
            claim,
            (0.0, 1.0),
            1,
            sound,
            source,
            tight=sound,
            make_law=functools.partial(gaussian_law, mu),
        )
        for name, claim, mu, sound, source in (
            ("mu 1", GaussianDP(1.0), 1.0, True, normal),
            ("mu 1, true 1.3", GaussianDP(1.0), 1.3, False, normal),
            (
                "against the profile of Laplace noise",
                ProfileClaim(_laplace_profile, "laplace profile"),
                1.0,
                False,
                "a privacy profile of the user's own (Balle, Barthe and Gaboardi 2018)",
            ),
            ("rho 0.5", ZeroConcentratedDP(0.5), 1.0, True, "Bun and Steinke 2016"),
            ("rho 0.5, true 0.72", ZeroConcentratedDP(0.5), 1.2, False, "Bun and Steinke 2016"),
        )
    ]


def _laplace_profile(epsilon: float) -> float:
    """Of Laplace noise with loss 1."""
    return max(0.0, -math.expm1(0.5 * (epsilon - 1.0)))


def _discrete() -> list[Problem]:
    return [
        Problem(
            f"geometric {claim:g}" + ("" if rate <= claim else f", true {rate:g}"),
            "integer noise",
            "integer",
            functools.partial(geometric, rate=rate),
            PureDP(claim),
            (10, 11),
            1,
            rate <= claim,
            "Ghosh, Roughgarden and Sundararajan 2009",
            tight=rate == claim,
            make_law=functools.partial(geometric_law, rate),
        )
        for claim, rate in ((0.5, 0.5), (0.5, 0.6))
    ] + [
        Problem(
            "bounded integer 0.1, 0.01, true 0.016",
            "integer noise",
            "integer",
            functools.partial(bounded_integer, reach=30),
            ApproxDP(0.1, 0.01),
            (10, 11),
            1,
            False,
            "uniform noise: nothing but its two ends says anything",
            make_law=functools.partial(finite_law, [1 / 61, 60 / 61, 0.0], [0.0, 60 / 61, 1 / 61]),
        ),
        *(
            Problem(
                f"response {categories} categories {claim:g}" + ("" if epsilon <= claim else f", true {epsilon:g}"),
                "randomised response",
                "category",
                functools.partial(response, epsilon=epsilon, categories=categories),
                PureDP(claim),
                (0, categories - 1),
                1,
                epsilon <= claim,
                "Warner 1965; Kairouz, Oh and Viswanath 2014",
                tight=epsilon == claim,
                make_law=functools.partial(response_law, epsilon, categories),
            )
            for categories, claim, epsilon in ((2, 1.0, 1.0), (10, 2.0, 2.0), (10, 2.0, 2.5), (100, 3.0, 4.0))
        ),
    ]
