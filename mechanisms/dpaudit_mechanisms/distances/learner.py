"""The tangent learner of a convex Lipschitz function on [0, w], and its decomposable form on a box.

A hypothesis is the maximum of 0 and of lines; at each mistake the tangent there joins it (MQ-A1, MQ-A2). Many runs at
once: every array has the runs first. With an exact oracle the hypothesis never exceeds the function (MQ-V1); with
values and w * slopes off by at most eta together it exceeds it by at most eta.

How often a learner can err: where two update points x, z of one coordinate have a gap of at least g between the
function at the later one and the tangent of the earlier one, (G'(z) - G'(x)) (z - x) >= g; slopes differ by at most 2
and points by w, so that by Cauchy-Schwarz (m - 1) sqrt(g) <= sqrt(2 w) for m of them.

Sources: MQ-A1, MQ-A2, MQ-L4, MQ-L5, MQ-L6, MQ-S1 to MQ-S4.
"""

import math

import numpy as np

from dpaudit.errors import UsageError
from dpaudit_mechanisms.distances.averages import box_widths
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, IntArray, positive, whole_number


class TangentHypotheses:
    """For each run and each of l coordinates, the maximum of 0 and of at most `most` lines.

    Parameters
    ----------
    runs, most : int
        Number of runs and largest number of updates of each, at least 1.
    widths : array_like of float, shape (l,)
        Of the box.

    Examples
    --------
    >>> one = TangentHypotheses(1, 4, [1.0])
    >>> one.update(np.array([0]), np.array([[0.5]]), np.array([[0.25]]), np.array([[1.0]]))
    >>> one.predict(np.array([[1.0]])).tolist()
    [[0.75]]
    """

    def __init__(self, runs: int, most: int, widths: ArrayLike) -> None:
        self.widths = box_widths(widths)
        self.most = whole_number("most", most, 1)
        shape = (whole_number("runs", runs, 1), 0, len(self.widths))
        self.slopes: FloatArray = np.zeros(shape)  # (runs, room, l); room grows, so that few updates cost little
        self.intercepts: FloatArray = np.zeros(shape)
        self.updates: IntArray = np.zeros(runs, dtype=np.int64)

    def predict(self, points: FloatArray) -> FloatArray:
        """The hypothesis of each coordinate at one point a run, from points (runs, l) to (runs, l); at least 0."""
        used = int(self.updates.max(initial=0))
        if used == 0:
            return np.zeros(points.shape)
        lines = self.slopes[:, :used] * points[:, None] + self.intercepts[:, :used]
        return np.maximum(lines.max(axis=1), 0.0)

    def update(self, runs: IntArray, points: FloatArray, values: FloatArray, slopes: FloatArray) -> None:
        """Add the lines through (point, value) with these slopes to some runs; arrays of shape (len(runs), l).

        Slopes are clipped to [-1, 1], where every true one is: the noise of a clipped one is no larger.
        """
        if len(runs) == 0:
            return
        places = self.updates[runs]
        if int(places.max()) >= self.most:
            raise UsageError(f"updates must be at most {self.most} a run, got one more.")
        self._make_room(int(places.max()) + 1)
        clipped = np.clip(slopes, -1.0, 1.0)
        self.slopes[runs, places] = clipped
        self.intercepts[runs, places] = values - clipped * points
        self.updates[runs] = places + 1

    def _make_room(self, needed: int) -> None:
        room = self.slopes.shape[1]
        if needed > room:
            more = (len(self.updates), max(needed - room, min(room, self.most - room)), len(self.widths))
            self.slopes = np.concatenate([self.slopes, np.zeros(more)], axis=1)
            # A place without a line is the line 0, which every hypothesis has in any case.
            self.intercepts = np.concatenate([self.intercepts, np.zeros(more)], axis=1)


def most_updates(gap: float, widths: ArrayLike) -> int:
    """An upper bound of the updates of a decomposable learner whose gap at each update is more than `gap` in all.

    A gap of the sum over `gap` means one of more than gap / l in some coordinate; coordinate i has fewer than
    1 + sqrt(2 w_i l / gap) such updates. On [0, 1] it is ceil(sqrt(2 / gap)), at most sqrt(2 / gap) + 1 (MQ-S2).

    Examples
    --------
    >>> most_updates(0.02, [1.0]), most_updates(0.02, [0.5, 0.5])
    (10, 21)
    """
    checked, gap = box_widths(widths), positive("gap", gap)
    count = len(checked)
    bound = count + math.sqrt(2.0 * count / gap) * float(np.sqrt(checked).sum())
    return max(1, math.ceil(bound * (1.0 - 1e-12)) - 1)  # fewer than the bound


def gap_of_updates(updates: ArrayLike, widths: ArrayLike) -> FloatArray:
    """The least gap that makes `most_updates` at most this number; inf where it is below the number of coordinates."""
    checked = box_widths(widths)
    count = len(checked)
    room = np.asarray(updates, dtype=float) + 1.0 - count
    factor = 2.0 * count * float(np.sqrt(checked).sum()) ** 2
    return np.where(room > 0.0, factor / np.where(room > 0.0, room, 1.0) ** 2, np.inf)
