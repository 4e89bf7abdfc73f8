"""Lines of pairs and records of their guesses, made by hand, and every record that is possible with its probability."""

import dataclasses

import numpy as np
from scipy import stats

from dpaudit.inference.pair_lines import PairLines, Record
from dpaudit.privacy.pair_budgets import PairBudgets

BOTH, ONLY_X, ONLY_X_PRIME = range(3)  # positions in `WAYS`


def lines_of(claim, budgets):
    """The lines of pairs of one claim with a budget each."""
    budgets = np.asarray(budgets, dtype=float)
    return PairLines(dataclasses.replace(PairBudgets.same(claim, len(budgets)), values=budgets))


def record_of(correct, guesses, draws, way=BOTH, level=0.01):
    correct, guesses, way, level = np.broadcast_arrays(np.atleast_1d(correct), guesses, way, level)
    return Record(correct.astype(float), guesses.astype(float), way, level.astype(float), draws)


class EveryRecord:
    """Every number of right and of wrong guesses of so many draws."""

    def __init__(self, draws):
        right, wrong = (side.ravel() for side in np.meshgrid(np.arange(draws + 1), np.arange(draws + 1)))
        self.draws, (self.right, self.wrong) = draws, (side[right + wrong <= draws] for side in (right, wrong))

    def __len__(self):
        return len(self.right)

    def of(self, way, level, pairs=1):
        """These records of each of some pairs."""
        return record_of(
            *(np.tile(part, pairs) for part in (self.right, self.right + self.wrong)), self.draws, way, level
        )

    def chances(self, p, q, way):
        """Their probabilities, for an event of probability p under the input guessed on it and q under the other.

        A draw has either label with probability 1/2: it is a right guess with probability p / 2, and a wrong one with
        q / 2. A rule that guesses both inputs does so on this event, and on one beside it with p and q exchanged.
        """
        each = 1.0 if way == BOTH else 0.5
        counts = np.stack([self.right, self.wrong, self.draws - self.right - self.wrong], axis=1)
        return stats.multinomial.pmf(counts, self.draws, [each * p, each * q, max(0.0, 1.0 - each * (p + q))])
