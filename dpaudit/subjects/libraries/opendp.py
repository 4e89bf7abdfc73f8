"""Measurements of OpenDP as subjects, with the claim of their own map.

>>> # import opendp.prelude as dp; dp.enable_features("contrib")
>>> # laplace = dp.m.make_laplace(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=1.0)
>>> # dpaudit.audit(dpaudit.libraries.opendp.subject(laplace), pairs=[(0.0, 1.0)]).verdict

OpenDP has randomness of its own, so its audits cannot be replayed bit by bit, and are never drawn in workers; a saved
witness is replayed on fresh draws as ever. A call takes tens of microseconds, most of it the way into the library: see
`batch` of `subject` for noise mechanisms.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import ApproxDP, Claim, ProfileClaim, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.privacy.differences import row_key
from dpaudit.privacy.neighbours import Adjacency, NeighbourClaim, steps_between
from dpaudit.subjects.callables import Subject
from dpaudit.subjects.libraries.library_mechanism import (
    Promised,
    import_library,
    library_subject,
    or_unknown,
    real_distance,
)

RELATIONS: dict[str, Adjacency] = {
    "SymmetricDistance": "add_remove",
    "InsertDeleteDistance": "add_remove",
    "ChangeOneDistance": "replace_one",
    "HammingDistance": "replace_one",
}
UNORDERED = frozenset({"SymmetricDistance", "ChangeOneDistance"})
PROFILE_GRID = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0)  # epsilons at which two profiles are compared
WHOLE_NUMBERS = ("u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "usize")


def subject(
    measurement: Any,
    *,
    d_in: Any = 1,
    claim: Claim | str | None = None,
    order: float | None = None,
    batch: Any = None,
    name: str | None = None,
) -> Subject:
    """The subject of a measurement.

    Parameters
    ----------
    measurement : opendp.mod.Measurement
        Called once a draw; its inputs are the subject's.
    d_in : number
        The distance between neighbouring inputs under the measurement's input metric: the claim that is audited by
        default is its map there, and for inputs that are further apart its map at their distance.
    claim : Claim or str, optional
        Audited instead, of inputs `d_in` apart; others have the budget of several steps.
    order : float, optional
        The Renyi order to take, where the measurement's output measure is the Renyi divergence.
    batch : opendp.mod.Measurement, optional
        The same noise on vectors, to draw many outputs at once: an input is repeated as often as outputs are wanted,
        and each coordinate of one release is one output. What is audited is then the noise of a coordinate of `batch`.
        Sound only where coordinates have noise of their own, as those of `make_laplace`, `make_gaussian`,
        `make_geometric` and `make_noise` have; its map must promise at `d_in`, which one changed coordinate uses up,
        what that of `measurement` promises.
    """
    import_library("opendp", "opendp")
    if not callable(getattr(measurement, "map", None)) or not hasattr(measurement, "output_measure"):
        raise UsageError(f"measurement must be an OpenDP measurement, got {type(measurement).__name__}.")
    library_claim = stated_claim(measurement, d_in, order=order)
    promised = functools.partial(_promised, measurement, d_in, order)
    relation = RELATIONS.get(str(measurement.input_metric.type).split("<")[0], "given")
    adjacency: Adjacency = relation if d_in == 1 else "given"  # also where the metric is none of datasets
    steps = functools.partial(_steps, measurement, d_in)
    convert = _converter(str(measurement.input_carrier_type))
    # What it promises tells its scale, which OpenDP does not print.
    text = f"{measurement!r} d_in={d_in!r} promises {library_claim}"
    if isinstance(library_claim, ProfileClaim):
        text += f" {[library_claim.profile(at) for at in PROFILE_GRID]}"
    draw: Callable[..., Any] = lambda data: measurement(convert(data))  # noqa: E731
    if batch is not None:
        vector_claim = stated_claim(batch, d_in, order=order)
        if not _alike(vector_claim, library_claim) or not str(batch.input_carrier_type).startswith("Vec<"):
            raise UsageError(
                f"batch must be the same noise on vectors, which promises {library_claim} at d_in={d_in!r}, "
                f"got {batch!r}, which promises {vector_claim}."
            )
        text += f" in batches of {batch!r}"
        draw = lambda data, size: np.asarray(batch([convert(data)] * size))  # noqa: E731
    return library_subject(
        "opendp",
        " ".join(text.split()),
        draw,
        name or "opendp measurement",
        claim=claim,
        own=MapClaim(library_claim, adjacency, None, steps, True, promised),
        promised=promised,
        adjacency=adjacency,
        steps=steps,
    )


@dataclasses.dataclass(frozen=True)
class MapClaim(NeighbourClaim):
    """The map of a measurement: at the distance of its neighbours, and at that of a pair that is further apart."""

    promised: Promised | None = dataclasses.field(default=None, compare=False, repr=False)

    def for_pair(self, x: Any, x_prime: Any) -> Claim:
        is_further = 1.0 < self.count(x, x_prime) < math.inf
        promised = self.promised(x, x_prime) if is_further and self.promised is not None else None
        return promised or super().for_pair(x, x_prime)


def stated_claim(measurement: Any, d_in: Any = 1, *, order: float | None = None) -> Claim:
    """The claim of a measurement's own map at a distance `d_in` of its inputs.

    MaxDivergence: `PureDP`. Its approximate form: `ApproxDP`. SmoothedMaxDivergence: the privacy profile that the map
    returns, a `ProfileClaim`. ZeroConcentratedDivergence: `ZeroConcentratedDP`. RenyiDivergence: `RenyiDP` of the
    `order` that is asked for.
    """
    measure = str(measurement.output_measure.type)
    kind = "".join(measure.split()).replace("<", "(").replace(">", ")")
    try:
        promised = measurement.map(_distance_value(measurement, d_in))
    except Exception as error:
        detail = " ".join(str(error).split())
        raise UsageError(f"d_in must be one that the measurement's map takes, got {d_in!r} ({detail:.200}).") from error
    if kind == "MaxDivergence":
        return PureDP(float(promised))
    if kind == "ZeroConcentratedDivergence":
        return ZeroConcentratedDP(float(promised))
    if kind in ("Approximate(MaxDivergence)", "FixedSmoothedMaxDivergence"):
        return ApproxDP(float(promised[0]), float(promised[1]))
    if kind == "SmoothedMaxDivergence":
        deltas = lambda epsilon: float(min(max(promised.delta(float(epsilon)), 0.0), 1.0))  # noqa: E731
        return ProfileClaim(deltas, name=f"opendp profile at d_in={d_in!r}")
    if kind == "RenyiDivergence":
        if order is None:
            raise UsageError("order must be given for a measurement whose map is a Renyi curve, got None.")
        return RenyiDP(float(order), float(promised(float(order))))
    raise UsageError(
        f"output_measure must be one of MaxDivergence, its approximate or smoothed form, ZeroConcentratedDivergence or "
        f"RenyiDivergence, got {measure}. Combine the measurement into one of these (dp.c.make_...)."
    )


def distance(measurement: Any, x: Any, x_prime: Any) -> float | None:
    """The distance of two inputs under the measurement's input metric; None where it is not known here.

    Known: absolute, l1, l2, l-infinity and discrete distance; symmetric, insert-delete, change-one and Hamming
    distance of lists, the last two inf where lengths differ.
    """
    kind = str(measurement.input_metric.type).split("<")[0]
    if kind == "AbsoluteDistance":
        return real_distance(x, x_prime)
    if kind == "DiscreteDistance":
        return 0.0 if x == x_prime else 1.0
    if isinstance(x, str) or not isinstance(x, Sequence | np.ndarray) or not isinstance(x_prime, Sequence | np.ndarray):
        return None
    first, second = list(x), list(x_prime)
    if kind in ("L1Distance", "L2Distance", "LInfDistance"):
        if len(first) != len(second):
            return None
        gaps = np.abs(np.asarray(first, dtype=float) - np.asarray(second, dtype=float))
        if not len(gaps):
            return 0.0
        norms: dict[str, Callable[[Any], Any]] = {"L1Distance": np.sum, "LInfDistance": np.max}
        return or_unknown(float(norms.get(kind, np.linalg.norm)(gaps)))
    if kind not in RELATIONS:
        return None
    if kind in UNORDERED:
        return steps_between(Counter(map(row_key, first)), Counter(map(row_key, second)), RELATIONS[kind])
    return steps_between(first, second, RELATIONS[kind])


def _steps(measurement: Any, d_in: Any, x: Any, x_prime: Any) -> float | None:
    """Distance of two inputs in units of `d_in`; None where that is not known, inf where nothing joins them."""
    apart = distance(measurement, x, x_prime)
    if apart is None or isinstance(d_in, tuple):
        return apart if apart == math.inf else None
    return apart / d_in if d_in else None


def _alike(one: Claim, other: Claim) -> bool:
    """Tell whether two claims promise the same; privacy profiles are compared on a grid."""
    if type(one) is not type(other):
        return False
    if one.anchored:
        return all(math.isclose(one.profile(at), other.profile(at), abs_tol=1e-300) for at in PROFILE_GRID)
    return math.isclose(one.value, other.value) and math.isclose(one.delta, other.delta)


def _promised(measurement: Any, d_in: Any, order: float | None, x: Any, x_prime: Any) -> Claim | None:
    """Claim of the measurement's map for a pair; at `d_in` where the metric is not known here."""
    apart = distance(measurement, x, x_prime)
    try:
        return stated_claim(measurement, d_in if apart is None else apart, order=order)
    except UsageError:
        return None


def _distance_value(measurement: Any, d_in: Any) -> Any:
    """A distance as the map takes it: a whole number, rounded up, where the metric counts."""
    if isinstance(d_in, tuple):
        return d_in
    counts = str(measurement.input_distance_type) in WHOLE_NUMBERS
    return int(np.ceil(float(d_in))) if counts else float(d_in)


def _converter(carrier: str) -> Callable[[Any], Any]:
    """An input as OpenDP takes it: a JSON integer where it wants a float, an array where it wants a list."""
    if carrier in ("f64", "f32"):
        return float
    if carrier in ("Vec<f64>", "Vec<f32>"):
        return lambda data: [float(value) for value in data]
    if carrier in WHOLE_NUMBERS:
        return int
    return lambda data: data.tolist() if isinstance(data, np.ndarray) else data
