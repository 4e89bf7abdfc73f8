"""The family on the real line: levels of the deviation |r - f(x)|, with Lebesgue measure.

`OnTheLine` is the mechanism of any profile of levels (`profiles`: staircase, privacy first and widened). For the
weights exp(-epsilon b) without rounding (Laplace noise) see `k_norm` in one dimension.

The normaliser is the same for every answer, so a change of one level costs epsilon, not 2 epsilon.
"""

import dataclasses
import functools
import math
from typing import Any, ClassVar

import numpy as np

from dpaudit_mechanisms.accuracy import sum_of_errors
from dpaudit_mechanisms.inputs import ArrayLike, Checked, FloatArray, Positive, answer, output_batch
from dpaudit_mechanisms.protocol import Pair, UtilityBound
from dpaudit_mechanisms.two_metrics.levels import PartitionAndWeight
from dpaudit_mechanisms.two_metrics.profiles import SPARE, Profile, query_profile


@dataclasses.dataclass(frozen=True, eq=False)
class OnTheLine(Checked, PartitionAndWeight):
    """Corollary 1 of Wu, Xia and He (2017), arXiv:1702.02721.

    Answers one real-valued query with density exp(-epsilon level(r - f(x))) / alpha.

    Parameters
    ----------
    profile : Profile
        Inputs are answers f(x), finite numbers; neighbours' answers differ by `profile.steps`.
    epsilon : float
        Weight of one level in nats, in (0, inf); also the claim, which rests on a profile whose levels change by at
        most 1 along a step: those of this module do, one made by hand need not (`largest_level_change`).

    Examples
    --------
    >>> from dpaudit_mechanisms.two_metrics.profiles import staircase_profile
    >>> mechanism = OnTheLine(staircase_profile(sensitivity=1.0), epsilon=1.0)
    >>> np.exp(mechanism.log_density(0.0, [0.5, 1.5])).round(4).tolist()  # (e - 1) / 2 is 0.8591
    [0.3161, 0.1163]
    >>> round(mechanism.expected_error(), 4), mechanism.epsilon_exact
    (1.082, 1.0)
    """

    profile: Profile
    epsilon: Positive
    has_one_total: ClassVar[bool] = True  # UP-S7, UP-C1

    @property
    def drawn(self) -> Profile:
        """The profile as it is drawn."""
        return self.profile

    @functools.cached_property
    def log_alpha(self) -> float:
        """Natural log of the integral of exp(-epsilon level)."""
        return self.log_alpha_of(None) - self.epsilon * self.drawn.lowest

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one answer, shape (size,): a cell, then a uniform point of it, on either side."""
        profile, centre = self.drawn, float(answer(data, None))
        masses = profile.cells(self.epsilon)[0]
        cell = rng.choice(len(masses), size=size, p=masses / masses.sum())
        steps = np.floor(rng.standard_exponential(size) / self.epsilon)  # geometric, for every epsilon
        beyond = np.where(cell == len(masses) - 1, steps, 0.0)
        low = profile.edges[cell] + beyond * profile.width
        widths = np.append(np.diff(profile.edges), profile.width)[cell]
        away = low + widths * rng.random(size)
        return centre + np.where(rng.random(size) < 0.5, -away, away)

    def level_at(self, data: Any, outputs: Any) -> FloatArray:
        """The level of each output on one answer, shape (size,); infinity where an output is not finite."""
        return self.drawn.level(output_batch(outputs, ()) - float(answer(data, None)))

    def lowest_level(self, data: Any) -> float:
        """The lowest level of a cell, whatever the answer."""
        return self.drawn.lowest

    def log_alpha_of(self, data: Any) -> float:
        """Natural log of the integral of exp(-epsilon (level - lowest)), whatever the answer."""
        return math.log(float(self.drawn.cells(self.epsilon)[0].sum()))

    def largest_level_change(self, shift: float) -> float:
        """The largest change of the level of one output where the answer moves by `shift`; ends of cells left out."""
        profile = self.drawn
        far = profile.edges[-1] + abs(shift) + 2.0 * profile.width  # beyond it everything repeats
        tail = np.arange(profile.edges[-1], far + profile.width, profile.width)
        half = np.unique(np.concatenate([profile.edges, tail]))
        own = np.concatenate([-half, half])
        cuts = np.unique(np.concatenate([own, own + shift]))
        wide = np.diff(cuts) > SPARE * profile.width
        middles = ((cuts[1:] + cuts[:-1]) / 2.0)[wide]
        return float(np.abs(profile.level(middles) - profile.level(middles - shift)).max())

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Exact privacy loss of two answers in nats: epsilon times the largest change of a level."""
        return self.epsilon * self.largest_level_change(float(answer(x_prime, None)) - float(answer(x, None)))

    @functools.cached_property
    def epsilon_exact(self) -> float:
        """The largest loss over ends and middles of `profile.steps`, in nats: epsilon where the mechanism is sound.

        Then every change but 0 costs exactly one level: at most one by the proof, and at least one as levels differ.
        """
        changes = np.unique(np.abs(np.append(self.profile.steps, self.profile.steps.mean(axis=1))))
        return max((self.privacy_loss(0.0, float(shift)) for shift in changes[changes > 0.0]), default=0.0)

    def pairs(self) -> list[Pair]:
        """The largest change of the answer by a neighbour, up and down."""
        top = float(self.profile.steps.max())
        return [Pair(0.0, top), Pair(0.0, -top)]

    def utility_bounds(self) -> list[UtilityBound]:
        """E |output - f(x)|: with equality (UP-S14)."""
        return [sum_of_errors(lambda data: answer(data, None), self.expected_error(), "UP-S14")]

    def expected_error(self) -> float:
        """E |output - f(x)|, in units of the answer (UP-S14)."""
        masses, moments = self.drawn.cells(self.epsilon)
        return float(moments.sum() / masses.sum())


def query_mechanism(neighbouring_set: ArrayLike, epsilon: float, width: float = 0.0) -> OnTheLine:
    """The (widened) privacy-first mechanism of a linear query on the line: `OnTheLine(query_profile(...), epsilon)`."""
    return OnTheLine(query_profile(neighbouring_set, width), epsilon)
