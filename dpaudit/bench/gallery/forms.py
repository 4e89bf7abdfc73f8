"""Forms of leaks whose loss can be chosen: what an audit has to learn to see randomised response inside an event.

Each form hides the two halves A and B of an event in outputs of another kind. Under x an output is in A with
probability m e^L / (1 + e^L) and in B with probability m / (1 + e^L), under x_prime the other way round, and elsewhere
with probability 1 - m, by one law for both: m is the event mass, L the loss in nats. Who knows A and B knows all that
an output tells, so that the forms differ in nothing but how hard A and B are to find.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray

OUTSIDE, IN_A, IN_B = 0, 1, 2  # where an output is
Places = NDArray[np.intp]
Maker = Callable[[Places, float, np.random.Generator], Any]  # (places, mass, rng) to outputs, one a place


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

    def sample(self, data: int, size: int, rng: np.random.Generator) -> Any:
        """As a mechanism."""
        is_inside = rng.random(size) < self.mass
        is_right = rng.random(size) < scipy.special.expit(self.loss)
        side = np.where(is_right == bool(data), IN_A, IN_B)
        return self.form.make(np.where(is_inside, side, OUTSIDE), self.mass, rng)


def pieces(starts_of_a: tuple[float, ...], starts_of_b: tuple[float, ...], is_normal: bool) -> Maker:
    """Numbers whose ranks lie in intervals of equal mass, which start at these ranks."""

    def make(places: Places, mass: float, rng: np.random.Generator) -> FloatArray:
        width = mass / (len(starts_of_a) + len(starts_of_b))
        ranks = (1.0 - mass) * rng.random(len(places))
        for start in sorted((*starts_of_a, *starts_of_b)):  # ranks outside leave the intervals out
            ranks = np.where(ranks >= start, ranks + width, ranks)
        for where, starts in ((IN_A, starts_of_a), (IN_B, starts_of_b)):
            is_here = places == where
            count = int(is_here.sum())
            ranks[is_here] = rng.choice(starts, size=count) + width * rng.random(count)
        return np.asarray(scipy.special.ndtri(np.clip(ranks, 1e-12, 1.0 - 1e-12))) if is_normal else ranks

    return make


def threshold(is_normal: bool) -> Maker:
    """Numbers: A is the upper tail, B the lower one."""

    def make(places: Places, mass: float, rng: np.random.Generator) -> FloatArray:
        return np.asarray(pieces((1.0 - mass / 2.0,), (0.0,), is_normal)(places, mass, rng))

    return make


def spots(width: float, columns: int, is_normal: bool) -> Maker:
    """Numbers in two narrow intervals; of several columns, rows in two thin shells around 0."""

    def make(places: Places, mass: float, rng: np.random.Generator) -> FloatArray:
        del mass
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

    return make


def residues(modulus: int, scale: float) -> Maker:
    """Widely spread counts: A and B are two residues."""

    def make(places: Places, mass: float, rng: np.random.Generator) -> FloatArray:
        del mass
        rest = np.array([r for r in range(modulus) if r not in (1, 3)])
        left = np.choose(places, [rng.choice(rest, size=len(places)), 1, 3])
        return np.asarray(modulus * np.rint(rng.laplace(scale=scale, size=len(places))) + left)

    return make


def labels(count: int) -> Maker:
    """Texts of which A is one and B is another."""

    def make(places: Places, mass: float, rng: np.random.Generator) -> list[str]:
        del mass
        names = [f"answer {k}" for k in range(count)]
        index = np.choose(places, [rng.integers(2, count, size=len(places)), 0, 1])
        return [names[k] for k in index.tolist()]

    return make


def columns_together(columns: int) -> Maker:
    """Rows of normal numbers: A and B are the tails of their sum, of which each column tells a little."""

    def make(places: Places, mass: float, rng: np.random.Generator) -> FloatArray:
        total = threshold(True)(places, mass, rng)
        rows = rng.normal(size=(len(places), columns))
        return np.asarray(rows - rows.mean(axis=1, keepdims=True) + total[:, None] / np.sqrt(columns))

    return make


THRESHOLD, INTERVALS = "one threshold", "two and two intervals"
NARROW, RESIDUES, VALUES = "narrow intervals", "residues", "single values"
WEAK, DISTANCES = "many weak columns", "distances"

# By which the curve is chosen, and others by which it is tested.
DEVELOPMENT = (
    Form(THRESHOLD, threshold(True)),
    Form(INTERVALS, pieces((0.15, 0.6), (0.35, 0.8), True)),
    Form(NARROW, spots(1e-4, 1, True)),
    Form(RESIDUES, residues(10, 50.0)),
    Form(VALUES, labels(20)),
    Form(WEAK, columns_together(16)),
    Form(DISTANCES, spots(1e-4, 3, True)),
)
HELD_OUT = (
    Form(THRESHOLD, threshold(False)),
    Form(INTERVALS, pieces((0.3, 0.5), (0.05, 0.7), False)),
    Form(NARROW, spots(1e-6, 1, False)),
    Form(RESIDUES, residues(7, 200.0)),
    Form(VALUES, labels(40)),
    Form(WEAK, columns_together(24)),
    Form(DISTANCES, spots(1e-5, 2, False)),
)
