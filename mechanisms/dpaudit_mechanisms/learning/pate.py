"""PATE: the label that most of many teachers vote for, with noise on the counts.

The data of one person are in one teacher's share, so two adjacent inputs are votes of which one differs. Each release
is the argmax of the counts plus Laplace(2 / epsilon) noise, one for each class: replacing one vote changes two counts
by 1, so the counts' l1 sensitivity is 2 and the release keeps epsilon-DP (Papernot et al. 2017, arXiv:1610.05755;
post-processing of the noisy counts).
"""

import dataclasses
from typing import Literal

import numpy as np

from dpaudit_mechanisms.inputs import Count, FloatArray, IntArray
from dpaudit_mechanisms.protocol import Pair, UtilityBound
from dpaudit_mechanisms.pure import Pure


@dataclasses.dataclass(frozen=True)
class NoisyVotes(Pure):
    """The class with the largest noisy count.

    Parameters
    ----------
    epsilon : float
        Promised for each release, above 0.
    classes : int
    fault : {"none", "too_little_noise", "votes_of_each_model"}
        "too_little_noise": an eighth of the noise: the sensitivity is taken for 1, and epsilon for four times what is
        promised. "votes_of_each_model": each teacher's vote counts eight times, once for each of its models.
    """

    classes: Count = 3
    fault: Literal["none", "too_little_noise", "votes_of_each_model"] = "none"

    def pairs(self) -> list[Pair]:
        """Elections of 40 teachers: a clear one, a close one with three candidates, and one vote moved."""
        elections = [np.repeat(np.arange(self.classes), votes) for votes in (self._votes(24), self._votes(4))]
        return [Pair(votes, np.append(votes[:-1], 0), f"lead {k}") for k, votes in enumerate(elections)]

    def _votes(self, lead: int) -> list[int]:
        return [10 + lead, *[10] * (self.classes - 1)]

    def utility_bounds(self) -> list[UtilityBound]:
        """E (votes by which the winner is short of the first) <= sum over classes of gap P(it beats the first).

        Two noises of scale b differ by at least g with probability (1 + g / (2 b)) exp(-g / b) / 2: with equality for
        two classes.
        """

        def gaps(data: IntArray) -> FloatArray:
            counts = np.bincount(data, minlength=self.classes).astype(float)
            return counts.max() - counts

        def limit(data: IntArray) -> float:
            g, b = gaps(data), 2.0 / self.epsilon
            return float((g * (1.0 + g / (2.0 * b)) * np.exp(-g / b) / 2.0).sum())

        return [
            UtilityBound(
                "votes short of the first",
                lambda data, outputs: gaps(data)[np.asarray(outputs, dtype=int)],
                limit,
                largest_loss=lambda data: float(gaps(data).max()),
                source="the difference of two Laplace variables, and a union over classes",
            )
        ]

    def sample(self, data: IntArray, size: int, rng: np.random.Generator) -> FloatArray:
        """Winners of `size` releases, shape (size,): the class as a float.

        Parameters
        ----------
        data : ndarray of int, shape (teachers,)
            One vote a teacher, in [0, classes).
        """
        counts = np.bincount(data, minlength=self.classes).astype(float)
        scale = 2.0 / self.epsilon
        if self.fault == "votes_of_each_model":
            counts *= 8.0
        if self.fault == "too_little_noise":
            scale = 0.25 / self.epsilon
        noisy = counts + rng.laplace(0.0, scale, (size, self.classes))
        return np.argmax(noisy, axis=1).astype(float)


def membership_scores(
    mechanism: NoisyVotes, releases: int, runs: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Scores of runs with the canary's vote for class 0, and of runs with its vote for class 1.

    A run releases the winner of `releases` tied elections, whose promise is `releases` times epsilon; the score is the
    number of wins of class 0 less those of class 1.
    """
    others = np.repeat([0, 1], 10)
    sides = []
    for vote in (0, 1):
        won = mechanism.sample(np.append(others, vote), runs * releases, rng).reshape(runs, releases)
        sides.append(((won == 0).astype(float) - (won == 1)).sum(axis=1))
    return sides[0], sides[1]
