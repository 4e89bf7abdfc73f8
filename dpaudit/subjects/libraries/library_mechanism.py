"""Mechanism of every adapter: a library's object with the way to draw from it, and what its metadata promise."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import inspect
import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import ApproxDP, Claim, PureDP
from dpaudit.privacy.neighbours import Adjacency, NeighbourClaim, Reader, Steps
from dpaudit.privacy.parsing import as_claim
from dpaudit.subjects.callables import Subject, as_subject, fingerprint

Promised = Callable[[Any, Any], Claim | None]  # x and x_prime to the library's claim for them; None: it has none


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LibraryMechanism:
    """A mechanism of a library, as the auditor asks it: as its `draw`, whose parameters say how.

    `draw(data)` and `draw(data, rng)` give one output a call, so that raising is an outcome, `draw(data, size)` and
    `draw(data, size, rng)` a batch; without `rng` the library has randomness of its own. See `library_subject`.
    """

    text: str
    draw: Callable[..., Any]
    claim: Claim | None
    promised: Promised | None
    dataset_adjacency: str | None
    dataset_rows: Reader | None
    dataset_steps: Steps | None
    pairs: Sequence[Any] | None = None

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.draw)

    def __call__(self, data: Any, **given: Any) -> Any:
        return self.draw(data, **given)

    def __repr__(self) -> str:
        return self.text


def library_subject(
    library: str,
    description: str,
    draw: Callable[..., Any],
    name: str,
    *,
    claim: Claim | str | None = None,
    own: Claim | None = None,
    promised: Promised | None = None,
    adjacency: Adjacency | None = None,
    rows: Reader | None = None,
    steps: Steps | None = None,
    parts: Sequence[Any] = (),
    version: str | None = None,
) -> Subject:
    """The subject of a library's mechanism, whose `description` has its parameters, and no addresses.

    It claims `claim`, or else what the library promises, its `own`; `promised` is that for a pair, by default `own` by
    the pair's steps. `adjacency` is the relation for which the library calibrates its noise, `rows` reads an input as a
    dataset, and `steps` counts the steps of a pair where the library has a distance (`dpaudit.privacy.neighbours`).
    `parts` are functions of the caller's own that have a part in a draw (None for none).
    """
    if promised is None and own is not None:
        promised = NeighbourClaim(own, adjacency or "given", rows, steps).for_pair
    known = f"{library} {version_of(library) if version is None else version}".strip()
    # Validity: fingerprints are of this text, and evidence of equal fingerprints is added up.
    given = "".join(f" {fingerprint(part)}" for part in parts if part is not None)
    text = f"{known}: {description}{given}"
    mechanism = LibraryMechanism(text, draw, as_claim(claim) or own, promised, adjacency, rows, steps)
    return as_subject(mechanism, name=name)


def with_pairs(subject: Subject, pairs: Sequence[Any]) -> Subject:
    """The subject of an adapter with pairs of its own, so that a target names all that an audit needs.

    `UsageError` if it is not the subject of an adapter.
    """
    if not isinstance(subject.mechanism, LibraryMechanism):
        raise UsageError(f"subject must be one that an adapter made, got {subject.name}.")
    return dataclasses.replace(subject, mechanism=dataclasses.replace(subject.mechanism, pairs=list(pairs)))


def import_library(module: str, package: str, extra: str = "") -> Any:
    """The module of an optional library; `UsageError` with the reason, and the extra that installs it, without it."""
    try:
        importlib.import_module(module.partition(".")[0])  # a part of a package that failed may be left behind
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            f"{package} must be installed to audit it, got {type(error).__name__}: {' '.join(str(error).split())}. "
            f"Install it with: pip install 'dpaudit[{extra or package}]'."
        ) from error


def version_of(package: str) -> str:
    """The installed version of a package; empty where it has none."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def claim_of(epsilon: Any, delta: Any = 0.0) -> Claim:
    """The claim of an epsilon and a delta, which may be no number for none."""
    has_delta = isinstance(delta, numbers.Real) and bool(delta)  # numpy's too
    return ApproxDP(float(epsilon), float(delta)) if has_delta else PureDP(float(epsilon))


def listed(parameters: dict[str, Any]) -> str:
    """Parameters as text, in the order of their names."""
    return ", ".join(f"{name}={value!r}" for name, value in sorted(parameters.items()))


def steps_of(sensitivity: Any, distance: Callable[[Any, Any], float | None]) -> Steps | None:
    """Counts the steps between two inputs: how many times the sensitivity they are apart; None without one."""
    if not isinstance(sensitivity, numbers.Real):
        return None

    def steps(x: Any, x_prime: Any) -> float | None:
        apart = distance(x, x_prime)
        if not apart or not sensitivity:
            return None if apart is None else math.inf if apart else 0.0
        return apart / float(sensitivity)

    return steps


def real_distance(x: Any, x_prime: Any) -> float | None:
    """|x - x_prime| of two numbers; None for anything else, and where one is NaN."""
    if not isinstance(x, numbers.Real) or not isinstance(x_prime, numbers.Real):
        return None
    return or_unknown(abs(float(x) - float(x_prime)))


def or_unknown(distance: float) -> float | None:
    """A distance; None where it is NaN, so that nobody can tell how many steps it is."""
    return None if math.isnan(distance) else distance
