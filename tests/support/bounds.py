"""The bound of a guessing record, by formulas of another kind than those of the package."""

import math

from scipy import stats

MASS_SHARE = 0.05  # of a level, for P(a guess) where the line has a delta


def line_bound(correct, wrong, labelled, cost, level):
    """The bound on epsilon, by scipy.stats: Clopper-Pearson, with a share for P(a guess), and the printed inequality.

    P(correct | a guess) <= (e^eps + a) / (1 + e^eps), a = cost / P(a guess), cost = delta / 2 an event that is guessed.
    """
    if correct == 0:
        return 0.0
    guesses, spent = correct + wrong, MASS_SHARE * level if cost else 0.0
    accuracy = stats.beta.ppf(level - spent, correct, wrong + 1)
    extra = cost / stats.beta.ppf(spent, guesses, labelled - guesses + 1) if cost else 0.0
    return max(0.0, math.log(max((accuracy - extra) / (1.0 - accuracy), 1.0)))
