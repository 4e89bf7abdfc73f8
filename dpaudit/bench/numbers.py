"""Problems whose output is a number, a vector of numbers or bits: where the signal sits is what makes them different.

Conventions: every mechanism is a function of (data, size, rng); `data` is what the pair differs in. Laws are exact up
to the grid that their note states: for a shift on 4,000 cells the loss varies by less than 0.003 nats within a cell.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from dpaudit.bench.problem import CELLS, SAME, FloatArray, Law, Problem, finite_law, grid_law, product_law, union_law
from dpaudit.privacy.claims import ApproxDP, GaussianDP, ProfileClaim, PureDP, ZeroConcentratedDP, gaussian_profile

Rng = np.random.Generator
GRID = f"{CELLS:,} cells"
NEEDLE, HAYSTACK = 617, 1000  # where the one coordinate with a signal is, of how many
COUPLED = (2, 7)  # the coordinates whose correlation is the signal


# --- Laws ------------------------------------------------------------------------------------------------------------


@functools.cache
def laplace_law(loss: float) -> Law:
    """Laplace noise of scale 1/loss, answers 0 and 1: constant loss outside [0, 1], a grid within."""
    return grid_law(stats.laplace(0.0, 1.0 / loss), stats.laplace(1.0, 1.0 / loss), np.linspace(0, 1, CELLS + 1), GRID)


@functools.cache
def gaussian_law(mu: float) -> Law:
    """N(0, 1) against N(mu, 1), on 9 standard deviations on either side."""
    edges = np.linspace(-9.0, 9.0 + mu, CELLS + 1)
    return grid_law(stats.norm(0.0, 1.0), stats.norm(mu, 1.0), edges, GRID)


@functools.cache
def geometric_law(rate: float) -> Law:
    """Two-sided geometric noise of this rate on the integers 0 and 1: every loss is `rate` or -`rate`."""
    high = 1.0 / (1.0 + math.exp(-rate))  # P(noise <= 0)
    return finite_law([high, 1.0 - high], [1.0 - high, high])


def response_law(epsilon: float, categories: int = 2) -> Law:
    """Randomised response between two of several categories."""
    truth = math.exp(epsilon) / (math.exp(epsilon) + categories - 1)
    other = (1.0 - truth) / (categories - 1)
    return finite_law([truth, other, 1.0 - truth - other], [other, truth, 1.0 - truth - other])


def bits_law(epsilon: float, differing: int) -> Law:
    """Independent randomised response on bits of which so many differ: the true answers among them are counted."""
    truth, count = special.expit(epsilon), np.arange(differing + 1)
    return finite_law(stats.binom.pmf(count, differing, truth), stats.binom.pmf(count, differing, 1.0 - truth))


def truncated_laplace_law(epsilon: float, reach: float) -> Law:
    """Laplace noise of scale 1/epsilon cut off at +-reach, answers 0 and 1."""
    total = -math.expm1(-epsilon * reach)  # twice the mass on one side

    class Cut:
        def __init__(self, centre: float) -> None:
            self.centre = centre

        def cdf(self, values: FloatArray) -> FloatArray:
            far = np.clip(values - self.centre, -reach, reach)
            return np.asarray(0.5 + 0.5 * np.sign(far) * -np.expm1(-epsilon * np.abs(far)) / total)

        def sf(self, values: FloatArray) -> FloatArray:
            return 1.0 - self.cdf(values)

    edges = [-reach, 1.0 - reach, *np.linspace(0.0, 1.0, CELLS + 1).tolist(), reach, 1.0 + reach]
    p, q = (np.diff(np.concatenate([[0.0], Cut(centre).cdf(np.array(edges)), [1.0]])) for centre in (0.0, 1.0))
    inner = slice(2, -2)  # beyond the other input's support a mass is exactly 0, not the rounding of a difference
    p[:1], q[:2], p[-2:], q[-1:] = 0.0, 0.0, 0.0, 0.0
    assert p[inner].all() and q[inner].all()
    return finite_law(p / p.sum(), q / q.sum(), GRID)


def reach_for(epsilon: float, delta: float) -> float:
    """Where to cut Laplace noise of scale 1/epsilon so that a shift of 1 costs exactly delta."""
    # delta = (e^(-(A-1) epsilon) - e^(-A epsilon)) / (2 (1 - e^(-A epsilon))), solved for e^(-A epsilon)
    tail = 2.0 * delta / (math.expm1(epsilon) + 2.0 * delta)
    return -math.log(tail) / epsilon


def exact_or_laplace_law(leak: float, loss: float) -> Law:
    """Publishes the answer itself with probability `leak`, else with Laplace noise."""
    return union_law([(leak, 0.0, SAME), (0.0, leak, SAME), (1.0 - leak, 1.0 - leak, laplace_law(loss))])


# --- Mechanisms ------------------------------------------------------------------------------------------------------


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
    outputs: NDArray[np.int8] = data ^ (rng.random((size, len(data))) >= special.expit(epsilon))
    return outputs


def coupled_bits(data: float, size: int, rng: Rng) -> NDArray[np.int8]:
    """10 fair bits, independent but for two that agree with probability `data`."""
    outputs = rng.integers(2, size=(size, 10), dtype=np.int8)
    first, second = COUPLED
    outputs[:, second] = outputs[:, first] ^ (rng.random(size) >= data)
    return outputs


# --- The problems ----------------------------------------------------------------------------------------------------


def problems() -> list[Problem]:
    """All problems on numbers, vectors and bits."""
    return [*_scalars(), *_atoms_and_deltas(), *_free_lines(), *_discrete(), *_vectors(), *_bits()]


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
            make_law=_spread_law,
        ),
    ]


def _spread_law() -> Law:
    edges = np.linspace(-14.0, 14.0, CELLS + 1)
    return grid_law(stats.norm(0.0, 1.0), stats.norm(0.0, 1.5), edges, GRID)


def _gaussian(epsilon: float, delta: float, shrink: float) -> Problem:
    mu = _tight_mu(epsilon, delta) * shrink
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


@functools.cache
def _tight_mu(epsilon: float, delta: float) -> float:
    """The largest mu of normal noise that keeps (epsilon, delta), rounded down."""
    low, high = 0.0, 100.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        is_kept = float(gaussian_profile(np.array([middle]), epsilon)[0]) <= delta
        low, high = (middle, high) if is_kept else (low, middle)
    return low


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


def _vectors() -> list[Problem]:
    direction = np.cos(np.arange(50.0))
    direction /= math.sqrt(float(direction @ direction))
    tight = _tight_mu(1.0, 1e-3)
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
            "dense signal: a mean of 13 standard errors in sum, nothing in any one",
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
            make_law=functools.partial(_coupled_law, 0.6),
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
            make_law=functools.partial(_laplace_sum_law, 1.0 / 3.0, 3),
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
            make_law=functools.partial(_laplace_sum_law, 0.6, 3),
            exact=1.8,
        ),
    ]


def _laplace_sum_law(loss: float, count: int) -> Law:
    return product_law([laplace_law(loss)] * count)


def _coupled_law(correlation: float) -> Law:
    """(a + b) / sqrt 2 and (a - b) / sqrt 2 are independent, of variance 1 + r and 1 - r: exchanged for -r."""
    wide, narrow = stats.norm(0.0, math.sqrt(1.0 + correlation)), stats.norm(0.0, math.sqrt(1.0 - correlation))
    edges = np.linspace(-8.0, 8.0, CELLS + 1)
    # Cells far out in the narrow law have masses that underflow: a probability of 1e-13 of the wide one, as one cell.
    edges = edges[np.abs(edges) < 5.0]
    return product_law([grid_law(wide, narrow, edges, GRID), grid_law(narrow, wide, edges, GRID)])


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
