"""A planar Laplace mechanism with a planted fault: one place reports as if it stood elsewhere."""

import dataclasses
import functools
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from dpaudit.errors import UsageError
from dpaudit_mechanisms import cities
from dpaudit_mechanisms.inputs import FloatArray, answer
from dpaudit_mechanisms.planar_laplace import PlanarLaplace, city_points


@dataclasses.dataclass(frozen=True)
class PlanarLaplaceOneMoved(PlanarLaplace):
    """`PlanarLaplace` where the law of one place is centred `excess` nats further away from one other place.

    The centre of `moved` is shifted by excess * scale directly away from `away_from`, so the loss towards that place is
    its budget plus `excess`, exactly. By the triangle inequality no pair of `moved` breaks its budget by more; those
    with places on the same side break it by less, and those with places behind `moved` lose less than their budget
    (`excesses`). Pairs of two other places keep theirs exactly.

    Parameters
    ----------
    scale, points, ids
        As for `PlanarLaplace`; `ids` are needed here.
    moved, away_from : str
        Two different ids.
    excess : float
        In nats.

    Examples
    --------
    >>> mechanism = PlanarLaplaceOneMoved(
    ...     100.0, points=((0.0, 0.0), (200.0, 0.0)), ids=("a", "b"), moved="a", away_from="b"
    ... )
    >>> mechanism.privacy_loss((0.0, 0.0), (200.0, 0.0))
    3.0
    >>> mechanism.fault
    'the law of a is centred 1 nats further away from b: loss 3 nats on the pair a|b, promised 2; 1 pair is broken'
    """

    moved: str = ""
    away_from: str = ""
    excess: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("moved", self.moved), ("away_from", self.away_from)):
            if value not in (self.ids or ()):
                raise UsageError(f"{name} must be one of the ids, got {value!r}.")
        if self._place(self.moved) == self._place(self.away_from):
            raise UsageError(f"away_from must be at another place than moved, got {self.away_from!r}.")

    def _place(self, name: str) -> tuple[float, float]:
        return self.points[list(self.ids or ()).index(name)]

    def centre(self, data: Any) -> FloatArray:
        """Centre of the law of an input, in km, shape (2,)."""
        place = answer(data, 2)
        if tuple(place.tolist()) != self._place(self.moved):
            return place
        step = place - np.array(self._place(self.away_from))
        return place + self.excess * self.scale * step / np.hypot(*step)

    def excesses(self) -> FloatArray:
        """Exact loss less budget of the pair of `moved` with each point, in nats, shape (points,); 0 at itself."""
        places, here = np.array(self.points), np.array([self._place(self.moved)])
        there = self.centre(here[0])[None]
        change = (cdist(there, places) - cdist(here, places))[0] / self.scale
        change[list(self.ids or ()).index(self.moved)] = 0.0
        return np.asarray(change)

    @property
    def fault(self) -> str:
        """Description of the fault, the exact loss of the planted pair, and the number of pairs over budget."""
        x, y = self._place(self.moved), self._place(self.away_from)
        promised, exact = float(np.hypot(x[0] - y[0], x[1] - y[1]) / self.scale), self.privacy_loss(x, y)
        broken = int((self.excesses() > 0.0).sum())
        return (
            f"the law of {self.moved} is centred {self.excess:g} nats further away from {self.away_from}: loss "
            f"{exact:.6g} nats on the pair {self.moved}|{self.away_from}, promised {promised:.6g}; {broken} "
            + ("pair is broken" if broken == 1 else "pairs are broken")
        )


@functools.cache
def moved_city(moved: str, away_from: str) -> PlanarLaplaceOneMoved:
    """The US cities of `dpaudit_mechanisms.planar_laplace` with one of them moved."""
    points, ids = city_points()
    return PlanarLaplaceOneMoved(cities.KM_PER_NAT, points, ids, moved=moved, away_from=away_from)


def __getattr__(name: str) -> Any:
    if name == "us_cities":
        # A budget of 1.8 nats: the harder end of what is asked of the auditor (at most 2), where a nat is less of it.
        return moved_city("Dallas TX", "Houston TX")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
