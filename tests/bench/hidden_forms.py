"""Forms of leaks whose loss can be chosen: what an audit has to learn to see randomised response inside an event.

Each form hides the two halves A and B of an event in outputs of another kind. Under x an output is in A with
probability m e^L / (1 + e^L) and in B with probability m / (1 + e^L), under x_prime the other way round, and elsewhere
with probability 1 - m, by one law for both: m is the event mass, L the loss in nats. Who knows A and B knows all that
an output tells, so that the forms differ in nothing but how hard A and B are to find.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial as of
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray

OUTSIDE, IN_A, IN_B = 0, 1, 2  # where an output is
Places = NDArray[np.intp]
Rng = np.random.Generator
Maker = Callable[[Places, float, Rng], Any]  # (places, mass, rng) to outputs, one a place


@dataclasses.dataclass(frozen=True)
class Form:
    """A way in which an event shows in outputs."""

    name: str  # as reports print it
    make: Maker  # outputs from where each is: an array or a list


@dataclasses.dataclass(frozen=True)
class Hidden:
    """A mechanism on the inputs 1 and 0 that has exactly this loss, and shows it in this form."""

    form: Form
    loss: float
    mass: float

    def sample(self, data: int, size: int, rng: Rng) -> Any:
        """As a mechanism."""
        is_inside = rng.random(size) < self.mass
        is_right = rng.random(size) < scipy.special.expit(self.loss)
        side = np.where(is_right == bool(data), IN_A, IN_B)
        return self.form.make(np.where(is_inside, side, OUTSIDE), self.mass, rng)


def pieces(
    places: Places, mass: float, rng: Rng, a: tuple[float, ...], b: tuple[float, ...], is_normal: bool = True
) -> FloatArray:
    """Numbers whose ranks lie in intervals of equal mass, which start at these ranks."""
    width = mass / (len(a) + len(b))
    ranks = (1.0 - mass) * rng.random(len(places))
    for start in sorted((*a, *b)):  # ranks outside leave the intervals out
        ranks = np.where(ranks >= start, ranks + width, ranks)
    for where, starts in ((IN_A, a), (IN_B, b)):
        is_here = places == where
        count = int(is_here.sum())
        ranks[is_here] = rng.choice(starts, size=count) + width * rng.random(count)
    return np.asarray(scipy.special.ndtri(np.clip(ranks, 1e-12, 1.0 - 1e-12))) if is_normal else ranks


def threshold(places: Places, mass: float, rng: Rng, is_normal: bool = True) -> FloatArray:
    """Numbers: A is the upper tail, B the lower one."""
    return pieces(places, mass, rng, (1.0 - mass / 2.0,), (0.0,), is_normal)


def spots(places: Places, _: float, rng: Rng, width: float, columns: int = 1, is_normal: bool = True) -> FloatArray:
    """Numbers in two narrow intervals; of several columns, rows in two thin shells around 0."""
    shape = (len(places),) if columns == 1 else (len(places), columns)
    numbers = rng.normal(size=shape) if is_normal else 2.0 * rng.random(shape) - 1.0
    for where, start in ((IN_A, 0.31), (IN_B, 0.72)):
        is_here = places == where
        exact = start + width * rng.random(int(is_here.sum()))
        if columns == 1:
            numbers[is_here] = exact
        else:
            numbers[is_here] *= (exact / np.linalg.norm(numbers[is_here], axis=1))[:, None]
    return numbers


def residues(places: Places, _: float, rng: Rng, modulus: int, scale: float) -> FloatArray:
    """Widely spread counts: A and B are two residues."""
    rest = np.array([r for r in range(modulus) if r not in (1, 3)])
    left = np.choose(places, [rng.choice(rest, size=len(places)), 1, 3])
    return np.asarray(modulus * np.rint(rng.laplace(scale=scale, size=len(places))) + left)


def labels(places: Places, _: float, rng: Rng, count: int) -> list[str]:
    """Texts of which A is one and B is another."""
    index = np.choose(places, [rng.integers(2, count, size=len(places)), 0, 1])
    return [f"answer {k}" for k in index.tolist()]


def columns_together(places: Places, mass: float, rng: Rng, columns: int) -> FloatArray:
    """Rows of normal numbers: A and B are the tails of their sum, of which each column tells a little."""
    total = threshold(places, mass, rng)
    rows = rng.normal(size=(len(places), columns))
    return np.asarray(rows - rows.mean(axis=1, keepdims=True) + total[:, None] / np.sqrt(columns))


THRESHOLD, INTERVALS = "one threshold", "two and two intervals"
NARROW, RESIDUES, VALUES = "narrow intervals", "residues", "single values"
WEAK, DISTANCES = "many weak columns", "distances"

# By which the curve is chosen, and others by which it is tested.
DEVELOPMENT = (
    Form(THRESHOLD, threshold),
    Form(INTERVALS, of(pieces, a=(0.15, 0.6), b=(0.35, 0.8))),
    Form(NARROW, of(spots, width=1e-4)),
    Form(RESIDUES, of(residues, modulus=10, scale=50.0)),
    Form(VALUES, of(labels, count=20)),
    Form(WEAK, of(columns_together, columns=16)),
    Form(DISTANCES, of(spots, width=1e-4, columns=3)),
)
HELD_OUT = (
    Form(THRESHOLD, of(threshold, is_normal=False)),
    Form(INTERVALS, of(pieces, a=(0.3, 0.5), b=(0.05, 0.7), is_normal=False)),
    Form(NARROW, of(spots, width=1e-6, is_normal=False)),
    Form(RESIDUES, of(residues, modulus=7, scale=200.0)),
    Form(VALUES, of(labels, count=40)),
    Form(WEAK, of(columns_together, columns=24)),
    Form(DISTANCES, of(spots, width=1e-5, columns=2, is_normal=False)),
)
