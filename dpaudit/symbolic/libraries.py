"""Primitives of other libraries, where they are imported: what replaces them while a recorded run goes on.

* scipy: `rvs` of common laws, as the generator's own.
* diffprivlib: `randomise` of its Laplace and Gaussian mechanisms, as noise of the law that they document;
  python-dp: `add_noise` of its Laplace and Gaussian mechanisms; OpenDP: what `make_laplace` and `make_gaussian` return
  for doubles, of the finest grain.
* Other measurements and mechanisms of these libraries, torch, jax and tensorflow: the output is drawn by the library,
  noted, and the same on both inputs. The noise inside is not recorded.

A module that the program has not imported is not imported here.
"""

from __future__ import annotations

import contextlib
import functools
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from dpaudit.symbolic.generators import TracedRng
from dpaudit.symbolic.noise_draws import NoiseDraws
from dpaudit.symbolic.noisy_numbers import Noisy
from dpaudit.symbolic.symbols import number_of
from dpaudit.symbolic.tape import Tape

SCIPY = {
    "laplace": "laplace", "norm": "normal", "gumbel_r": "gumbel", "logistic": "logistic", "expon": "exponential",
    "uniform": "uniform",
}  # fmt: skip
OPENDP = {"make_laplace": "laplace", "make_gaussian": "normal"}  # which say themselves how they were made
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


def replacements(tape: Tape) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """Functions to be replaced, by owner and name, and what stands there meanwhile."""
    loaded = sys.modules
    if "scipy.stats" in loaded:
        for name, method in SCIPY.items():
            law = getattr(loaded["scipy.stats"], name)
            yield law, "rvs", functools.partial(_rvs, law.rvs, NoiseDraws(tape), method)
    if "diffprivlib" in loaded:
        mechanisms = loaded["diffprivlib"].mechanisms
        adding = {mechanisms.Laplace: ("laplace", _laplace_scale)}
        adding |= dict.fromkeys((mechanisms.GaussianAnalytic, mechanisms.Gaussian), ("normal", lambda one: one._scale))
        for kind in [one for one in vars(mechanisms).values() if isinstance(one, type) and "randomise" in vars(one)]:
            noted = _noting(tape, f"diffprivlib {kind.__name__}", vars(kind)["randomise"], _of_mechanism)
            yield kind, "randomise", _adding(tape, "diffprivlib", *adding[kind]) if kind in adding else noted
    if "pydp" in loaded:
        with contextlib.suppress(ImportError):
            from pydp.algorithms import numerical_mechanisms as numerical

            laplace, gaussian = (lambda one: one.diversity), (lambda one: one.std)
            yield numerical.LaplaceMechanism, "add_noise", _adding(tape, "python-dp", "laplace", laplace)
            yield numerical.GaussianMechanism, "add_noise", _adding(tape, "python-dp", "normal", gaussian)
    if "opendp.core" in loaded:
        core = loaded["opendp.core"]
        yield core, "measurement_invoke", _measuring(tape, core.measurement_invoke)
    for module, names in OTHERS.items():
        for name in names if module in loaded else ():
            if hasattr(loaded[module], name):
                old = getattr(loaded[module], name)
                yield loaded[module], name, _noting(tape, f"{module.split('.')[0]} {name}", old, _of_call)


Shown = list[tuple[str, Any]]  # parameters of a call


def _noting(tape: Tape, name: str, old: Callable[..., Any], shown: Callable[..., Shown]) -> Callable[..., Any]:
    """A function whose outputs are numbers that cannot be followed."""

    def call(*args: Any, **keywords: Any) -> Any:
        given = number_of(args, "an argument")
        return tape.other(name, shown(*given, **keywords), lambda _: old(*given, **keywords))

    return call


def _of_call(*args: Any, **keywords: Any) -> Shown:
    named = [(key, keywords.get(key)) for key in SHOWN_KEYWORDS]
    return _numbers([*named, *((f"#{k}", value) for k, value in enumerate(args))])


def _of_mechanism(mechanism: Any, *_: Any, **__: Any) -> Shown:
    return _numbers([(key, getattr(mechanism, key, None)) for key in ("epsilon", "delta", "sensitivity")])


def _of_measurement(measurement: Any, *_: Any, **__: Any) -> Shown:
    try:
        found = _numbers([("map(1)", measurement.map(1))])
    except Exception:  # of another metric or measure: there is nothing to show
        found = []
    return found or [("map(1)", "?")]


def _numbers(listed: Iterable[tuple[str, Any]]) -> Shown:
    return [(name, value) for name, value in listed if isinstance(value, float | int)]


def _rvs(real: Callable[..., Any], draws: NoiseDraws, method: str, *args: Any, **keywords: Any) -> Any:
    """Noise of a law of scipy; with a seed or another generator its own."""
    if isinstance(seed := keywords.get("random_state"), int | np.integer):  # numpy asks the system for entropy first
        keywords["random_state"] = np.random.RandomState(seed)  # which asks the tape
    given = {**dict(zip(("loc", "scale", "size"), args, strict=False)), **keywords}
    if not isinstance(given.get("random_state"), TracedRng | None):
        return real(*args, **keywords)
    loc, scale, size = given.get("loc", 0.0), given.get("scale", 1.0), given.get("size", 1)
    size = None if size == 1 and np.ndim(loc) == 0 and np.ndim(scale) == 0 else size
    if method == "uniform":
        return draws.draw("scipy", method, {"low": loc, "high": np.add(loc, scale), "size": size})
    if method == "exponential":
        return loc + draws.draw("scipy", method, {"scale": scale, "size": size})
    return draws.draw("scipy", method, {"loc": loc, "scale": scale, "size": size})


def _adding(tape: Tape, library: str, method: str, scale: Callable[[Any], float]) -> Callable[..., Any]:
    """A method that adds noise of a known law to a value, with the scale that its owner says."""

    def add(self: Any, value: Any) -> Any:
        if hasattr(self, "_check_all"):
            self._check_all(value.signal if isinstance(value, Noisy) else float(value))
        width = float(scale(self))
        is_noise = width > 0.0 and math.isfinite(width)
        return value + NoiseDraws(tape).draw(library, method, {"scale": width}) if is_noise else value

    return add


def _measuring(tape: Tape, old: Callable[..., Any]) -> Callable[..., Any]:
    """The call of an OpenDP measurement, which adds noise of a known law to doubles where it says that it does."""
    noted = _noting(tape, "opendp measurement", old, _of_measurement)

    def invoke(this: Any, arg: Any) -> Any:
        made = getattr(this, "__opendp_dict__", {})
        given, method = made.get("__kwargs__", {}), OPENDP.get(made.get("__function__", ""), "")
        kind = {"f64": float, "Vec<f64>": list}.get(str(getattr(given.get("input_domain"), "carrier_type", "")))
        values = arg if kind is list and type(arg) is list else [arg]
        # Validity: what OpenDP refuses or rounds (other classes, NaN, a coarse grain, no noise) it is asked for itself.
        is_known = bool(method) and given.get("k") is None and 0.0 < given["scale"] < math.inf and kind is not None
        if not is_known or not all(map(_is_finite, values)):
            return noted(this, arg)
        noises = NoiseDraws(tape).draw("opendp", method, {"scale": given["scale"], "size": len(values)})
        found = [one + noise for one, noise in zip(values, noises.tolist(), strict=True)]
        return found if kind is list else found[0]

    return invoke


def _is_finite(value: Any) -> bool:
    return isinstance(value, Noisy) or (isinstance(value, float) and math.isfinite(value))


def _laplace_scale(mechanism: Any) -> float:
    """Scale of diffprivlib's noise."""
    return float(mechanism.sensitivity) / (float(mechanism.epsilon) - math.log1p(-float(mechanism.delta)))
