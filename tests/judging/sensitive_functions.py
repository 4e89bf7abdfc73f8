"""Functions on [0, 1]^n of which one number may change to any other, with the sensitivity that each is known to have.

A search for sensitivities is measured on them. The first 25 are those of a public bank (DPriv-Bench,
arXiv:2604.15851, in words of our own); the other 23 are ours.

Each function is released in six ways, with the noise that the claim needs and with half of it:

* `laplace`: Laplace noise of scale s / epsilon;
* `gdp`, `zcdp`: normal noise of standard deviation s / mu, and s / sqrt(2 rho);
* `exponential`: one of the answers "f" and "-f" by the exponential mechanism, of scores f and -f;
* `noisy_max`: the larger of f and -f with Laplace noise of scale 2 s / epsilon on each;
* `permute_and_flip`: the answers in random order, each kept with the probability of its score.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.subjects.domains import VectorDomain

SIZES = (1, 3, 10, 100)
EPSILON = 1.0
MU = 1.0
RHO = 0.5
CLAIMS = {
    "laplace": "eps=1",
    "gdp": "mu=1",
    "zcdp": "rho=0.5",
    "exponential": "eps=1",
    "noisy_max": "eps=1",
    "permute_and_flip": "eps=1",
}
TRACKS = tuple(CLAIMS)


@dataclasses.dataclass(frozen=True)
class Function:
    """A function of n numbers in [0, 1], and its sensitivity as a function of n."""

    name: str
    value: Callable[[Any], Any]  # of an array of shape (n,)
    sensitivity: Callable[[int], float]  # of n; 0 where nothing changes
    is_public: bool = True  # of the public bank, or else of our second half


def _turns(x: Any) -> Any:
    rises = np.diff(x) > 0.0
    return (rises[1:] != rises[:-1]).sum()


def _from(least: int) -> Callable[[int], float]:
    """1 from so many numbers on; with fewer the function is constant."""
    return lambda n: float(n >= least)


def _neighbours(n: int) -> float:
    """Of sums over neighbours of which each changes by at most 1: the numbers inside have two."""
    return float(min(n - 1, 2))


def _always(value: float) -> Callable[[int], float]:
    return lambda n: value


FUNCTIONS: tuple[Function, ...] = (
    Function("sum", lambda x: x.sum(), _always(1.0)),
    Function("product", lambda x: x.prod(), _always(1.0)),
    Function("largest", lambda x: x.max(), _always(1.0)),
    Function("smallest", lambda x: x.min(), _always(1.0)),
    Function("mean", lambda x: x.mean(), lambda n: 1.0 / n),
    Function("norm", lambda x: np.sqrt((x * x).sum()), _always(1.0)),
    Function("steps", lambda x: np.abs(np.diff(x)).sum(), _neighbours),
    Function("distance from the mean", lambda x: np.abs(x - x.mean()).sum(), lambda n: 2.0 * (n - 1) / n),
    Function("squares about the mean", lambda x: ((x - x.mean()) ** 2).sum(), lambda n: (n - 1) / n),
    Function("squares", lambda x: (x * x).sum(), _always(1.0)),
    Function("cubes", lambda x: (x**3).sum(), _always(1.0)),
    Function("roots", lambda x: np.sqrt(x).sum(), _always(1.0)),
    Function("logarithms", lambda x: np.log1p(x).sum(), _always(math.log(2.0))),
    Function("exponentials", lambda x: np.exp(x).sum(), _always(math.e - 1.0)),
    Function("sines", lambda x: np.sin(math.pi * x).sum(), _always(1.0)),
    Function("cosines", lambda x: np.cos(math.pi * x).sum(), _always(2.0)),
    Function("x times 1 - x", lambda x: (x * (1.0 - x)).sum(), _always(0.25)),
    Function("median", lambda x: np.median(x), lambda n: 1.0 if n % 2 else 0.5),
    Function("above one half", lambda x: (x > 0.5).sum(), _always(1.0)),
    Function("in a band", lambda x: ((x >= 0.6) & (x <= 0.7)).sum(), _always(1.0)),
    Function("neighbours multiplied", lambda x: (x[1:] * x[:-1]).sum(), _neighbours),
    Function("square of the sum", lambda x: x.sum() ** 2, lambda n: 2.0 * n - 1.0),
    Function("weighted by place", lambda x: (np.arange(1, len(x) + 1) * x).sum(), float),
    Function("sum above n/2", lambda x: float(x.sum() > len(x) / 2), _always(1.0)),
    Function("logarithm of squares", lambda x: np.log1p((x * x).sum()), _always(math.log(2.0))),
    Function("range", lambda x: x.max() - x.min(), _from(2), False),
    Function("second largest", lambda x: np.sort(x)[-2] if len(x) > 1 else 0.0, _from(2), False),
    Function("pairs apart", lambda x: np.abs(x[:, None] - x[None, :]).sum() / 2.0, lambda n: n - 1.0, False),
    Function("distance from .3", lambda x: np.abs(x - 0.3).sum(), _always(0.7), False),
    Function("squares about .4", lambda x: ((x - 0.4) ** 2).sum(), _always(0.36), False),
    Function("entropy", lambda x: -(x * np.log(np.maximum(x, 1e-300))).sum(), _always(math.exp(-1.0)), False),
    Function("fast sines", lambda x: np.sin(5.0 * math.pi * x).sum(), _always(2.0), False),
    Function("sum above .9 n", lambda x: float(x.sum() > 0.9 * len(x)), _always(1.0), False),
    Function("all above .2", lambda x: float((x > 0.2).all()), _always(1.0), False),
    Function("narrow band", lambda x: ((x > 0.71) & (x < 0.74)).sum(), _always(1.0), False),
    Function("parity of those above one half", lambda x: float((x > 0.5).sum() % 2), _always(1.0), False),
    Function("rises", lambda x: (np.diff(x) > 0.0).sum(), _from(2), False),
    Function("turns", _turns, lambda n: max(0.0, min(n - 2.0, 2.0)), False),
    Function("log of exponentials", lambda x: np.log(np.exp(x).sum()), lambda n: math.log1p((math.e - 1.0) / n), False),
    Function("square about the middle", lambda x: (x - 0.5).sum() ** 2, lambda n: max(n - 1.0, 0.25), False),
    Function("sum of the upper half", lambda x: np.sort(x)[len(x) // 2 :].sum(), _always(1.0), False),
    Function("ninth decile", lambda x: np.sort(x)[int(0.9 * (len(x) - 1))], _always(1.0), False),
    Function("whole tenths", lambda x: np.floor(10.0 * x).sum(), _always(10.0), False),
    Function("beyond .8", lambda x: np.maximum(x - 0.8, 0.0).sum(), _always(0.2), False),
    Function("alternating sum", lambda x: (x * (-1.0) ** np.arange(len(x))).sum(), _always(1.0), False),
    Function("largest step", lambda x: np.abs(np.diff(x)).max() if len(x) > 1 else 0.0, _from(2), False),
    Function("first times last", lambda x: x[0] * x[-1], _always(1.0), False),
    Function("harmonic mean", lambda x: len(x) / (1.0 / np.maximum(x, 1e-9)).sum(), _always(1.0), False),
)  # fmt: skip


def domain(n: int) -> VectorDomain:
    """[0, 1]^n, of which one number may change to any other."""
    return VectorDomain(n, 0.0, 1.0, 1.0, "one")


def mechanism(function: Function, track: str, n: int, share: float = 1.0) -> Callable[[Any, Any], Any]:
    """The function released in one of the ways of the module, with this share of the noise that its claim needs.

    Examples
    --------
    >>> release = mechanism(FUNCTIONS[0], "laplace", 3, share=0.5)
    >>> float(release(np.ones(3), np.random.default_rng(1))) != 3.0
    True
    """
    f, scale = function.value, share * function.sensitivity(n)
    noises: dict[str, Callable[[Any], Any]] = {
        "laplace": lambda rng: rng.laplace(scale=scale / EPSILON),
        "gdp": lambda rng: rng.normal(scale=scale / MU),
        "zcdp": lambda rng: rng.normal(scale=scale / math.sqrt(2.0 * RHO)),
    }

    def noisy(x: Any, rng: Any) -> Any:
        return f(x) + noises[track](rng)

    def selected(x: Any, rng: Any) -> Any:
        return ("f", "-f")[_selected(np.array([1.0, -1.0]) * f(x), track, scale, rng)]

    return noisy if track in noises else selected


def _selected(scores: Any, track: str, scale: float, rng: Any) -> int:
    """The place of the answer that one of the ways to select takes."""
    if track == "noisy_max":
        return int(np.argmax(scores + rng.laplace(scale=2.0 * scale / EPSILON, size=2)))
    odds = np.exp((scores - scores.max()) * EPSILON / (2.0 * scale))
    if track == "exponential":
        return int(rng.choice(2, p=odds / odds.sum()))
    return next(int(place) for place in rng.permutation(2) if rng.random() <= odds[place])
