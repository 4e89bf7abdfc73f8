"""Primitives of other libraries, where they are imported: what replaces them while a recorded run goes on.

* scipy: `rvs` of common laws, as the generator's own.
* diffprivlib: `randomise` of its Laplace and Gaussian mechanisms, as noise of the law that they document;
  python-dp: `add_noise` of its Laplace and Gaussian mechanisms.
* OpenDP measurements, other mechanisms of these libraries, torch, jax and tensorflow: the output is drawn by the
  library, noted, and the same on both inputs. The noise inside is not recorded.

A module that the program has not imported is not imported here.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpaudit.symbolic.noise_draws import NoiseDraws
from dpaudit.symbolic.noisy_numbers import Noisy
from dpaudit.symbolic.symbols import number_of
from dpaudit.symbolic.tape import Tape

Replacement = tuple[Any, str, Callable[[Any], Any]]
SCIPY = {
    "laplace": "laplace", "norm": "normal", "gumbel_r": "gumbel", "logistic": "logistic", "expon": "exponential",
    "uniform": "uniform",
}  # fmt: skip
# Functions whose outputs are numbers that cannot be followed.
OTHERS = {
    "torch": (
        "normal", "rand", "randn", "randint", "randperm", "bernoulli", "multinomial", "poisson", "rand_like",
        "randn_like",
    ),
    "jax.random": (
        "normal", "uniform", "laplace", "gumbel", "exponential", "bernoulli", "categorical", "choice", "permutation",
        "cauchy", "logistic",
    ),
    "tensorflow.random": ("normal", "uniform", "truncated_normal", "gamma", "poisson", "categorical", "shuffle"),
}  # fmt: skip
SHOWN_KEYWORDS = ("mean", "std", "scale", "loc", "stddev", "minval", "maxval", "p", "probs", "shape", "size", "sigma")


def replacements(tape: Tape) -> Iterator[Replacement]:
    """What is to be replaced: the owner, the name, and a function of what is there."""
    if "scipy.stats" in sys.modules:
        yield from _of_scipy(tape)
    if "diffprivlib" in sys.modules:
        yield from _of_diffprivlib(tape)
    if "pydp" in sys.modules:
        yield from _of_pydp(tape)
    if "opendp.mod" in sys.modules:
        yield sys.modules["opendp.mod"].Measurement, "__call__", lambda old: _opendp(tape, old)
    for module, names in OTHERS.items():
        if module in sys.modules:
            for name in names:
                if hasattr(sys.modules[module], name):
                    yield sys.modules[module], name, _noted(tape, module.split(".")[0], name)


def _noted(tape: Tape, library: str, name: str) -> Callable[[Any], Any]:
    def make(old: Any) -> Any:
        def call(*args: Any, **keywords: Any) -> Any:
            shown = [(key, keywords[key]) for key in SHOWN_KEYWORDS if isinstance(keywords.get(key), float | int)]
            shown += [(f"#{k}", value) for k, value in enumerate(args) if isinstance(value, float | int)]
            return tape.other(f"{library} {name}", shown, lambda _: old(*args, **keywords))

        return call

    return make


def _of_scipy(tape: Tape) -> Iterator[Replacement]:
    stats, draw = sys.modules["scipy.stats"], functools.partial(NoiseDraws(tape).draw, "scipy")
    for name, method in SCIPY.items():
        law = getattr(stats, name)

        def rvs(*args: Any, _method: str = method, **keywords: Any) -> Any:
            given = {**dict(zip(("loc", "scale", "size"), args, strict=False)), **keywords}
            loc, scale, size = given.get("loc", 0.0), given.get("scale", 1.0), given.get("size", 1)
            size = None if size == 1 and np.ndim(loc) == 0 and np.ndim(scale) == 0 else size
            if _method == "uniform":
                return draw(_method, {"low": loc, "high": np.add(loc, scale), "size": size})
            if _method == "exponential":
                return loc + draw(_method, {"scale": scale, "size": size})
            return draw(_method, {"loc": loc, "scale": scale, "size": size})

        yield law, "rvs", functools.partial(_instead, rvs)


def _instead(value: Any, old: Any) -> Any:
    return value


def _adding(
    tape: Tape,
    library: str,
    method: str,
    scale: Callable[[Any], float],
    check: Callable[[Any, Any], None] | None = None,
) -> Callable[[Any], Any]:
    """A method that adds noise of a known law to a value, with the scale that its owner says."""
    draw = functools.partial(NoiseDraws(tape).draw, library)

    def add(self: Any, value: Any) -> Any:
        if check is not None:
            check(self, value)
        width = float(scale(self))
        return value + draw(method, {"scale": width}) if width > 0.0 and math.isfinite(width) else value

    return lambda old: add


def _of_diffprivlib(tape: Tape) -> Iterator[Replacement]:
    mechanisms = sys.modules["diffprivlib"].mechanisms

    def check(self: Any, value: Any) -> None:
        self._check_all(float(value) if not isinstance(value, Noisy) else value.signal)

    def laplace(self: Any) -> float:
        return float(self.sensitivity) / (float(self.epsilon) - math.log1p(-float(self.delta)))

    yield mechanisms.Laplace, "randomise", _adding(tape, "diffprivlib", "laplace", laplace, check)
    for kind in (mechanisms.GaussianAnalytic, mechanisms.Gaussian):
        yield kind, "randomise", _adding(tape, "diffprivlib", "normal", lambda self: self._scale, check)
    for name in dir(mechanisms):
        kind = getattr(mechanisms, name)
        if (
            isinstance(kind, type)
            and name not in ("Laplace", "Gaussian", "GaussianAnalytic")
            and "randomise" in vars(kind)
        ):
            yield kind, "randomise", _randomise(tape, name)


def _randomise(tape: Tape, name: str) -> Callable[[Any], Any]:
    def make(old: Any) -> Any:
        def randomise(self: Any, *args: Any) -> Any:
            given = {key: getattr(self, key, None) for key in ("epsilon", "delta", "sensitivity")}
            shown = [(key, float(value)) for key, value in given.items() if isinstance(value, float | int)]
            return tape.other(f"diffprivlib {name}", shown, lambda _: old(self, *args))

        return randomise

    return make


def _of_pydp(tape: Tape) -> Iterator[Replacement]:
    try:
        from pydp.algorithms import numerical_mechanisms
    except ImportError:
        return
    for kind, method, scale in (
        (numerical_mechanisms.LaplaceMechanism, "laplace", lambda self: self.diversity),
        (numerical_mechanisms.GaussianMechanism, "normal", lambda self: self.std),
    ):
        yield kind, "add_noise", _adding(tape, "python-dp", method, scale)


def _opendp(tape: Tape, old: Any) -> Any:
    def call(self: Any, arg: Any) -> Any:
        given = number_of(arg, "an argument")
        return tape.other("opendp measurement", [("map(1)", _map(self))], lambda _: old(self, given))

    return call


def _map(measurement: Any) -> Any:
    try:
        found = measurement.map(1)
    except Exception:  # of another metric or measure: there is nothing to show
        return "?"
    return float(found) if isinstance(found, float | int) else "?"
