"""Predictors: a reduction of a row with the cells that its numbers fall into, as proposed by learners.

What a predictor is worth is not decided here. Games average over the predictors by what each has won, or compare them
on draws that no predictor was fitted on.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import math
import pkgutil
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from dpaudit.extensions import extensions
from dpaudit.learning import kinds
from dpaudit.learning.reductions import NO_POINTS, Points, Reduction
from dpaudit.learning.training import Training
from dpaudit.privacy.claims import FloatArray


@dataclasses.dataclass(frozen=True)
class Predictor:
    """Cells of a reduction.

    Attributes
    ----------
    name : str
        What finds it again among the predictors that were learned from other draws of the same pair.
    reduction : Reduction
    edges : ndarray of float or None
        Increasing; a cell holds its lower edge. None for cells of equal mass.
    starts : ndarray of float or None
        The edges at which cells begin that are proposed, where the others are what lies between them; None if all are.
    merit : float
        Standard deviations, or their like, by which it stands out on the training draws: which ones come first.
    """

    name: str
    reduction: Reduction
    edges: FloatArray | None
    merit: float
    starts: FloatArray | None = None

    @classmethod
    def of_intervals(
        cls, name: str, reduction: Reduction, intervals: Sequence[tuple[float, float]], merit: float
    ) -> Predictor:
        """That of closed intervals that do not meet."""
        lows = np.array([low for low, _ in intervals])
        highs = np.array([high for _, high in intervals])
        with np.errstate(over="ignore"):  # infinity follows the largest double
            edges = np.unique(np.concatenate([lows, np.nextafter(highs, math.inf)]))
        return cls(name, reduction, edges, merit, np.sort(lows))


GROUP = "dpaudit.learners"  # the entry-point group
Learner = Callable[[Training], Iterable[Predictor]]


@functools.cache
def learners() -> tuple[Learner, ...]:
    """The learners of `dpaudit.learning.kinds`, in the order of their names, then those of other packages."""
    names = sorted(module.name for module in pkgutil.iter_modules(kinds.__path__))
    own = [importlib.import_module(f"{kinds.__name__}.{name}").propose for name in names]
    return (*own, *(learner for _, learner in extensions(GROUP)))


def proposed(first: FloatArray, second: FloatArray, most: int, points: Points = NO_POINTS) -> list[Predictor]:
    """At most `most` predictors for draws of x and of x_prime, those that stand out most first.

    Parameters
    ----------
    first, second : ndarray of float, shape (draws, columns)
    most : int
    points : mapping, optional
        What is known of the inputs, see `Training`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.laplace(size=(2, 400, 1))
    >>> noise[0, :40] = 0.5 + 1e-6 * rng.random((40, 1))  # a tenth of the draws of x lie within a millionth
    >>> [predictor.name for predictor in proposed(noise[0], noise[1], 1)]
    ['spikes in coordinate 0']
    """
    if min(len(first), len(second)) == 0 or first.shape[1] != second.shape[1]:
        return []
    training = Training(first, second, points)
    found = [predictor for learner in learners() for predictor in learner(training)]
    return sorted(found, key=lambda predictor: -predictor.merit)[:most]
