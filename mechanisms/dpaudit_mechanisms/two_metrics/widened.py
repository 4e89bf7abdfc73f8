"""The widened mechanisms between finite spaces, with important values: the compositional ones (theorems 3 to 6).

With `important` values and a `penalty` for all others they are its third category. `WidenedPrivacyFirst` subtracts all
nearer datasets' sets, not the last shell's alone as printed (UP-D-R: those are no partition).
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from dpaudit.errors import UsageError
from dpaudit_mechanisms.inputs import BoolArray, FloatArray, NonNegative, fixed, table
from dpaudit_mechanisms.two_metrics.finite import LevelMechanism, Staircase
from dpaudit_mechanisms.two_metrics.spaces import ROUNDING, widths_of


@dataclasses.dataclass(frozen=True, eq=False)
class _Penalised(LevelMechanism):
    """The third category (UP-T5, UP-T6): values that are not `important` are `penalty` steps further away."""

    widths: float | Sequence[float] | FloatArray = dataclasses.field(default=0.0, repr=False)
    important: Sequence[bool] | BoolArray | None = dataclasses.field(default=None, repr=False)
    penalty: NonNegative = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.important is not None:
            marks = table("important", self.important, (self.spaces.outcomes,))
            if not np.isin(marks, (0.0, 1.0)).all():
                raise UsageError(f"important must be True or False for each value, got {marks.tolist()}.")
            fixed(self, important=marks.astype(bool))
        elif self.penalty:
            raise UsageError(f"penalty must be 0 without important values, got {self.penalty}.")

    def penalties(self) -> FloatArray:
        if self.important is None:
            return super().penalties()
        return np.where(self.important, 0.0, self.penalty)


@dataclasses.dataclass(frozen=True, eq=False)
class WidenedPrivacyFirst(_Penalised):
    """Theorems 3 and 6 of Wu, Xia and He (2017), arXiv:1702.02721.

    The level of r is the least dbar(x, y), rounded up, of a dataset with d(f(y), r) <= widths[y] (UP-T3).

    Parameters
    ----------
    spaces, epsilon
        As in `LevelMechanism`.
    widths : float or array_like of float, shape (datasets,)
        delta^y in units of d, in [0, inf]; 0 is `PrivacyFirst`.
    important : array_like of bool, shape (outcomes,), optional
        The set E (UP-T6); all values by default. The empty set gives the same law as all values.
    penalty : float
        t in levels, in [0, inf), for values that are not important.
    distortion : array_like of float, shape (datasets, outcomes), optional
        L^x(r) in place of d(f(x), r), in [0, inf], 0 at r = f(x); it need not be a metric (UP-S11).

    Examples
    --------
    >>> from dpaudit_mechanisms.two_metrics.spaces import FiniteSpaces
    >>> path = np.abs(np.subtract.outer(range(4), range(4)))
    >>> WidenedPrivacyFirst(FiniteSpaces(path, range(4), path), 1.0, widths=[1.0, 0.0, 0.0, 0.0]).levels[0].tolist()
    [0.0, 0.0, 2.0, 3.0]
    """

    distortion: FloatArray | None = dataclasses.field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        fixed(self, widths=widths_of("widths", self.widths, self.spaces.datasets))
        if self.distortion is not None:
            found = table("distortion", self.distortion, (self.spaces.datasets, self.spaces.outcomes))
            own = found[np.arange(self.spaces.datasets), self.spaces.values]
            if (found < 0.0).any() or own.any():
                raise UsageError("distortion must be at least 0, and 0 at the value of each dataset.")
            fixed(self, distortion=found)

    def costs(self) -> FloatArray:
        return self.spaces.shells

    def covers(self) -> BoolArray:
        distances = self.spaces.distances if self.distortion is None else self.distortion
        return distances <= np.asarray(self.widths)[:, None] * (1.0 + ROUNDING)


@dataclasses.dataclass(frozen=True, eq=False)
class WidenedStaircase(_Penalised):
    """Theorems 4 and 5 of Wu, Xia and He (2017), arXiv:1702.02721.

    The level of r is the least staircase level of a value that covers r (UP-T4, UP-T5).

    A value v covers r where some dataset with value v has one with value r within widths[v] (in units of dbar).

    Parameters
    ----------
    spaces, epsilon, important, penalty
        As in `WidenedPrivacyFirst`.
    widths : float or array_like of float, shape (outcomes,)
        delta^v in units of dbar, in [0, inf]; 0 is `Staircase` without offset.

    Examples
    --------
    >>> from dpaudit_mechanisms.two_metrics.spaces import FiniteSpaces
    >>> path = np.abs(np.subtract.outer(range(4), range(4)))
    >>> WidenedStaircase(FiniteSpaces(path, range(4), path), 1.0, widths=[0.0, 1.0, 0.0, 0.0]).levels[0].tolist()
    [0.0, 1.0, 1.0, 3.0]
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        fixed(self, widths=widths_of("widths", self.widths, self.spaces.outcomes))

    def costs(self) -> FloatArray:
        return Staircase(self.spaces, self.epsilon).costs()

    def covers(self) -> BoolArray:
        return self.spaces.nearby_values(np.asarray(self.widths))
