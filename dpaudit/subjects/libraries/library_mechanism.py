"""What the adapters make: a library's object with the way to draw from it, and what its metadata promise.

Two kinds. Those that are asked for a batch have `sample(data, size, rng)`; those that are asked once a draw are called,
with a generator if the library takes randomness from outside and without it otherwise. Raising is then an outcome.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.neighbours import Reader, Steps
from dpaudit.subjects.callables import Subject, as_subject, fingerprint

Promised = Callable[[Any, Any], Claim | None]  # x and x_prime to the library's claim for them; None: it has none


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LibraryMechanism:
    """A mechanism of a library, as the auditor asks it.

    Attributes
    ----------
    library, version : str
        Of the library.
    description : str
        The mechanism with its parameters, without addresses.
    draw : callable
        One output of `draw(data)`, of `draw(data, rng)` where randomness comes from outside, or `size` outputs of
        `draw(data, size, rng)` for a batch.
    claim : Claim or None
        What is audited where the caller states no claim.
    promised : callable or None
        The library's claim for a pair, from its metadata; None where it has no metadata.
    replayable : bool
        Whether its randomness comes from the generator that it is given.
    pairs : sequence or None
        What is audited where the caller gives no pairs.
    parts : tuple
        Functions of the caller's own that have a part in a draw (None for none).
    dataset_adjacency : str or None
        The neighbouring relation for which the library calibrates its noise: see `dpaudit.privacy.neighbours`.
    dataset_rows, dataset_steps : callable or None
        How an input is read as a dataset, and how the steps of a pair are counted where the library has a distance.
    """

    library: str
    version: str
    description: str
    draw: Callable[..., Any]
    claim: Claim | None = None
    promised: Promised | None = None
    replayable: bool = False
    pairs: Sequence[Any] | None = None
    parts: tuple[Any, ...] = ()
    dataset_adjacency: str | None = None
    dataset_rows: Reader | None = None
    dataset_steps: Steps | None = None

    def __repr__(self) -> str:
        # Validity: fingerprints are of this text, and evidence of equal fingerprints is added up.
        given = "".join(f" {fingerprint(part)}" for part in self.parts if part is not None)
        return f"{self.library} {self.version}".strip() + f": {self.description}{given}"


class InBatches(LibraryMechanism):
    """Draws `size` outputs a call."""

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """`size` independent outputs on `data`."""
        return self.draw(data, size, rng)


class OnceADraw(LibraryMechanism):
    """Draws one output a call, with randomness of its own."""

    def __call__(self, data: Any) -> Any:
        return self.draw(data)


class OnceASeededDraw(LibraryMechanism):
    """Draws one output a call, from the generator that it is given."""

    def __call__(self, data: Any, rng: np.random.Generator) -> Any:
        return self.draw(data, rng)


def library_subject(mechanism: LibraryMechanism, name: str) -> Subject:
    """The subject of an adapter's mechanism."""
    return as_subject(mechanism, name=name)


def with_pairs(subject: Subject, pairs: Sequence[Any]) -> Subject:
    """The subject of an adapter with pairs of its own, so that a target names all that an audit needs.

    Raises
    ------
    UsageError
        If it is not the subject of an adapter.
    """
    if not isinstance(subject.mechanism, LibraryMechanism):
        raise UsageError(f"subject must be one that an adapter made, got {subject.name}.")
    return dataclasses.replace(subject, mechanism=dataclasses.replace(subject.mechanism, pairs=list(pairs)))


def import_library(module: str, package: str, extra: str) -> Any:
    """The module of an optional library.

    Raises
    ------
    UsageError
        If it cannot be imported: with the reason, and the extra that installs it.
    """
    try:
        importlib.import_module(module.partition(".")[0])  # a part of a package that failed may be left behind
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            f"{package} must be installed to audit it, got {type(error).__name__}: {' '.join(str(error).split())}. "
            f"Install it with: pip install 'dpaudit[{extra}]'."
        ) from error


def version_of(package: str) -> str:
    """The installed version of a package; empty where it has none."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def steps_of(sensitivity: Any, distance: Callable[[Any, Any], float | None]) -> Steps | None:
    """Counts the steps between two inputs: how many times the sensitivity they are apart; None without one."""
    if not isinstance(sensitivity, int | float | np.number):
        return None

    def steps(x: Any, x_prime: Any) -> float | None:
        apart = distance(x, x_prime)
        if not apart or not sensitivity:
            return None if apart is None else math.inf if apart else 0.0
        return apart / float(sensitivity)

    return steps


def real_distance(x: Any, x_prime: Any) -> float | None:
    """|x - x_prime| of two numbers; None for anything else."""
    numbers = (int, float, np.integer, np.floating)
    if not isinstance(x, numbers) or not isinstance(x_prime, numbers):
        return None
    return abs(float(x) - float(x_prime))
