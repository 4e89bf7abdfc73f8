"""Imaging: a mechanism whose output is moved to the nearest point of a set that does not depend on the data (CD-S9).

Post-processing: whatever the mechanism promises, the imaged one promises too (CD-L3.7).
"""

import dataclasses
from typing import Any, Self

import numpy as np

from dpaudit_mechanisms.accuracy import squared_error, with_budget
from dpaudit_mechanisms.constrained.affine import Affine
from dpaudit_mechanisms.constrained.polyhedron import Polyhedron
from dpaudit_mechanisms.gaussian import Gaussian
from dpaudit_mechanisms.inputs import FloatArray
from dpaudit_mechanisms.laplace import Laplace
from dpaudit_mechanisms.protocol import Claim, UtilityBound


@dataclasses.dataclass(frozen=True, eq=False)
class Imaged:
    """Equation 5 of Liu et al. (2023), arXiv:2303.00228.

    Pi_C(M(x)), Pi_C the L2 projection.

    A mechanism with outputs of shape (size, coordinates), projected onto an affine set or a polyhedron.

    Parameters
    ----------
    mechanism : object
        With `sample(data, size, rng)`.
    onto : Affine or Polyhedron

    Examples
    --------
    >>> from dpaudit_mechanisms.laplace import Laplace
    >>> noisy = Imaged(Laplace(1.0, (0.5, 0.5)), Affine([[1.0, 1.0]], [3.0]))
    >>> noisy.sample([1.0, 2.0], 2, np.random.default_rng(1)).sum(axis=1).round(9).tolist()
    [3.0, 3.0]
    """

    mechanism: Any
    onto: Affine | Polyhedron

    @property
    def claim(self) -> Claim:
        """Claim of the mechanism."""
        return self.mechanism.claim

    def pairs(self) -> list[Any]:
        """Pairs of the mechanism."""
        return list(self.mechanism.pairs())

    def with_budget(self, factor: float) -> Self:
        """The same projection of the mechanism with `factor` times its budget."""
        return dataclasses.replace(self, mechanism=with_budget(self.mechanism, factor))

    def utility_bounds(self) -> list[UtilityBound]:
        """The squared distance from the projected answer, of Laplace or normal noise of variance v (CD-P4.1).

        A projection does not increase distances, so it is at most n v; onto an affine set with d free variables it is
        d v with equality, which for a given sum is v (1 - 1/n) a coordinate.
        """
        inner = self.mechanism
        free = self.onto.dimension if isinstance(self.onto, Affine) else self.onto.coordinates
        if not isinstance(inner, Laplace | Gaussian) or not free:  # onto a point all errors are rounding
            return []
        variance = 2.0 * inner.scale**2 if isinstance(inner, Laplace) else inner.sigma**2

        def truth(data: Any) -> FloatArray:
            return self.onto.project(np.atleast_2d(np.asarray(data, dtype=float)))[0]

        return [squared_error(truth, free * variance, "CD-P4.1")]

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one input, shape (size, coordinates), all in the set."""
        return self.onto.project(self.mechanism.sample(data, size, rng))
