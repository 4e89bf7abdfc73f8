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
import scipy  # whose rooms are imported when they are used

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


CELLS = 24  # of equal mass, where a predictor has no cells of its own
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

    Merits of some learners leave labels out, and any number of spikes would keep out what tells them. So the last half
    of the places is for those, of the others, whose cells tell most of the labels.

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
    found = sorted(found, key=lambda predictor: -predictor.merit)
    if len(found) <= most:
        return found
    first_half, others = found[: most - most // 2], found[most - most // 2 :]
    return first_half + sorted(others, key=lambda predictor: -_told(predictor, training))[: most // 2]


def _told(predictor: Predictor, training: Training) -> float:
    """Nats by which the cells of a predictor tell the labels, less what so many cells tell by chance."""
    draws = training.sorted(predictor.reduction)
    if not len(draws):
        return -math.inf
    places = np.arange(1, CELLS) * len(draws) // CELLS
    edges = draws.values[places] if predictor.edges is None else predictor.edges
    cell = np.searchsorted(np.unique(edges), draws.values, side="right")
    counts = np.bincount(2 * cell + draws.labels, minlength=2 * (len(edges) + 1)).reshape(-1, 2).astype(float)
    counts = counts[counts.sum(axis=1) > 0.0]
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    told = float(scipy.special.rel_entr(counts, expected).sum())
    return told - 0.5 * (len(counts) - 1) * math.log(len(draws))
