"""The third category on the real line (theorems 4 to 6): staircase levels with widths, and a penalty on other values.

`widened_staircase_profile` has the levels of UP-T4 for one linear query and the same width for all values: the values
of datasets that at most `steps` neighbours lie between are on level 0 together, and each further level is Delta f wide.
`ImportantOnTheLine` is UP-T5 and UP-T6 over any profile: the density is exp(-epsilon (level + t)) outside of a set E of
values and exp(-epsilon level) on it. E is fixed, so its share of the density moves with the answer, and alpha with it:
2 epsilon where no level changes by more than 1, as in the finite family.
"""

import dataclasses
import math
from typing import Annotated, Any

import numpy as np
from scipy import special

from dpaudit_mechanisms.inputs import (
    ArrayLike,
    Checked,
    FloatArray,
    NonNegative,
    Positive,
    answer,
    output_batch,
    positive,
    whole_number,
)
from dpaudit_mechanisms.protocol import Pair, UsageError, UtilityBound
from dpaudit_mechanisms.two_metrics.intervals import difference, is_inside, union, unions
from dpaudit_mechanisms.two_metrics.levels import PartitionAndWeight
from dpaudit_mechanisms.two_metrics.line import OnTheLine
from dpaudit_mechanisms.two_metrics.profiles import Profile, profile_of, query_shells


def widened_staircase_profile(neighbouring_set: ArrayLike, steps: int) -> Profile:
    """Levels of the widened staircase (UP-T4) for one linear query, with the width `steps` for every value.

    T_0 is f(x) + A, with A the changes that chains of `steps` neighbours can make. Level i is what is within i Delta f
    of a point of A, and not within (i - 1) Delta f: A reaches every multiple of Delta f up to steps Delta f, so that
    from level 1 on nothing is missing between.

    Parameters
    ----------
    neighbouring_set : array_like of float, shape (intervals, 2)
        V_f without its negative, which belongs to it.
    steps : int
        delta, in steps between datasets, at least 0; 0 gives the staircase.

    Examples
    --------
    >>> widened_staircase_profile([[0.0, 1.0], [2.0, 3.0]], 1).level([0.5, 1.5, 2.5, 5.9, 6.1]).tolist()
    [0.0, 1.0, 0.0, 1.0, 2.0]
    """
    given = unions("neighbouring_set", neighbouring_set)
    top = positive("neighbouring_set", float(np.abs(given).max()))
    count = whole_number("steps", steps, 0)
    shells = query_shells(given)
    reached = next(shells)
    for _ in range(count):
        reached = next(shells)
    end = count * top
    inside = np.clip(reached, 0.0, None)
    inside = inside[inside[:, 1] - inside[:, 0] > 1e-9 * top]
    between = difference(union([[0.0, end + top]]), reached)
    levels = np.concatenate([np.zeros(len(inside)), np.ones(len(between))])
    return profile_of(np.concatenate([inside, between]), levels, 2.0, top, given)


@dataclasses.dataclass(frozen=True, eq=False)
class ImportantOnTheLine(Checked, PartitionAndWeight):
    """Theorems 5 and 6 of Wu, Xia and He (2017), arXiv:1702.02721.

    p(r) = exp(-epsilon (level(r - f(x)) + t [r not in E])) / alpha(x).

    Answers one real-valued query; values outside of E weigh exp(-epsilon penalty) less.

    Parameters
    ----------
    profile : Profile
        Levels of the deviation: `widened_staircase_profile` for UP-T5, `query_profile` for UP-T6.
    epsilon : float
        Weight of one level in nats, in (0, inf); the claim is 2 epsilon.
    important : array_like of float, shape (intervals, 2)
        E, a union of intervals of values; fixed, whatever the data.
    penalty : float
        t, in levels, in [0, inf).

    Examples
    --------
    >>> from dpaudit_mechanisms.two_metrics.profiles import staircase_profile
    >>> mechanism = ImportantOnTheLine(staircase_profile(1.0), 1.0, [[0.0, 10.0]], 1.0)
    >>> np.exp(np.diff(mechanism.log_density(0.0, [-0.5, 0.5]))).round(4).tolist()  # e
    [2.7183]
    """

    profile: Profile
    epsilon: Positive
    important: Annotated[FloatArray, unions]
    penalty: NonNegative

    def important_values(self, data: Any) -> FloatArray:
        """E on one input: the same for all."""
        return self.important

    def log_share(self, data: Any) -> float:
        """Natural log of the probability of E on one input without the penalty, also where it is below all doubles."""
        profile, ratio = self.profile, -math.expm1(-self.epsilon)
        cuts, end = self.important_values(data) - float(answer(data, None)), profile.edges[-1]
        parts = np.clip(np.concatenate([cuts, -cuts[:, ::-1]]), 0.0, None)  # of E, on either side: (parts, 2)
        inner = np.minimum(parts[:, 1:], profile.edges[1:]) - np.maximum(parts[:, :1], profile.edges[:-1])
        cells, beyond = np.divmod(np.maximum(parts - end, 0.0) / profile.width, 1.0)
        far = np.log1p(-beyond * ratio) - self.epsilon * cells  # of all that lies beyond either end, in tails
        with np.errstate(divide="ignore"):
            heads = np.log(np.maximum(inner, 0.0)) - self.epsilon * (profile.levels - profile.lowest)
            tails = far[:, 0] + np.log(-np.expm1(far[:, 1] - far[:, 0])) + math.log(profile.width / ratio)
        tails -= self.epsilon * (profile.first - profile.lowest)
        inside = float(special.logsumexp(np.append(heads, tails)))
        return min(0.0, inside - math.log(float(profile.cells(self.epsilon)[0].sum())))

    def log_kept(self, data: Any) -> float:
        """Natural log of s + (1 - s) e^(-epsilon t), the total with the penalty over that without; s is the share."""
        share = self.log_share(data)
        with np.errstate(divide="ignore"):
            return float(np.logaddexp(share, np.log(-np.expm1(share)) - self.epsilon * self.penalty))

    def level_at(self, data: Any, outputs: Any) -> FloatArray:
        """The level of each output on one answer, with the penalty, shape (size,)."""
        batch = output_batch(outputs, ())
        levels = self.profile.level(batch - float(answer(data, None)))
        return levels + self.penalty * ~is_inside(self.important_values(data), batch)

    def lowest_level(self, data: Any) -> float:
        """Lowest level of the profile, which the penalty does not lower."""
        return self.profile.lowest

    def log_alpha_of(self, data: Any) -> float:
        """Natural log of the total, for levels that are counted from the lowest one."""
        return math.log(float(self.profile.cells(self.epsilon)[0].sum())) + self.log_kept(data)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one answer, shape (size,): values outside of E are kept with probability exp(-epsilon t).

        Raises
        ------
        UsageError
            If E is so unlikely, and the penalty so large, that fewer than one draw in a million would be kept.
        """
        plain, found, missing = OnTheLine(self.profile, self.epsilon), [np.empty(0)], size
        keep = math.exp(-self.epsilon * self.penalty)
        rate = math.exp(self.log_kept(data))
        if rate < 1e-6:
            raise UsageError(f"important must be likelier or the penalty smaller, got a share of {rate:.2g} to keep.")
        while missing > 0:
            draws = plain.sample(data, math.ceil(1.2 * missing / rate) + 16, rng)
            kept = draws[is_inside(self.important_values(data), draws) | (rng.random(len(draws)) < keep)][:missing]
            found.append(kept)
            missing -= len(kept)
        return np.concatenate(found)

    def utility_bounds(self) -> list[UtilityBound]:
        """The probability of values outside of E: 1 less the share of E over what is kept."""

        def is_outside(data: Any, outputs: Any) -> FloatArray:
            return (~is_inside(self.important_values(data), output_batch(outputs, ()))).astype(float)

        def expected(data: Any) -> float:
            return -math.expm1(self.log_share(data) - self.log_kept(data))

        return [UtilityBound("unimportant value", is_outside, expected, largest_loss=1.0, source="UP-T5")]

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Exact privacy loss of two answers in nats: far out on either side a level changes in either direction."""
        levels = OnTheLine(self.profile, self.epsilon).privacy_loss(x, x_prime)
        return levels + abs(self.log_alpha_of(x) - self.log_alpha_of(x_prime))

    def pairs(self) -> list[Pair]:
        """The largest change of the answer by a neighbour, across an end of E and within it."""
        top, end = float(self.profile.steps.max()), float(self.important[0, 0])
        return [Pair(end, end - top), Pair(end, end + top)]
