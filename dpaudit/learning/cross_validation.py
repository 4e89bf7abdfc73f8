"""What rules show on draws that they were not fitted on: which kind of score, and how cautious a choice of thresholds.

The best of very many records is a lucky one. How much the records have to be lowered before the best of them is taken
depends on what there is to find: where the privacy loss is the same over a broad tail, little; where only few outputs
show it, those are passed over. So the thresholds are chosen in several ways, each on two thirds of the draws, and the
ways are compared on the last third, three times in turn. Each of the few ways is then judged by all of the draws, none
of which it had seen.

Validity: all of this happens on draws before the first counted one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.fitted_scores import fit_scores
from dpaudit.learning.hints import NO_HINTS, Hints
from dpaudit.learning.objectives import Objective
from dpaudit.learning.rules import ABSTAIN, Rule
from dpaudit.reading.outcomes import Outcomes, join

FOLDS = 3  # more leave less to test a fold on, and take longer
AGREEING = 2.0  # times as many guesses of one fold as of another, up to which they are alike
MOST_OBJECTS = 12_000  # outputs of one input, where they are no plain numbers: a bound on time

Way = TypeVar("Way")


@dataclasses.dataclass(frozen=True)
class Shown:
    """Rates of correct and wrong guesses on so many draws that rules of one kind, chosen in one way, had not seen.

    `sides` is the largest number of guessing events of these rules. `masses` are the shares of the draws below and
    above their thresholds, with their sign; None where the rules of the folds disagree on the sign, or one guesses
    `AGREEING` times as often as another one, or at NaN. `folds` are the rules themselves, each with its numbers of
    correct and of wrong guesses, and of the draws that it had not seen.
    """

    correct: float
    wrong: float
    sides: int
    draws: float
    masses: tuple[float, float, int] | None = None
    folds: tuple[tuple[Rule, int, int, int], ...] = dataclasses.field(default=(), repr=False, compare=False)


def cross_validated(
    first: Outcomes, second: Outcomes, ways: Mapping[Way, Objective], hints: Hints = NO_HINTS
) -> dict[tuple[str, Way], Shown]:
    """What the rules of every kind of score show that are chosen in these ways, on draws of x and of x_prime.

    Kinds that do not suit the draws of every fold are left out.
    """
    is_mixed = first.numbers.shape[1] != second.numbers.shape[1]  # compared as objects
    if first.tokens is not None or second.tokens is not None or is_mixed:
        first, second = (side.rows(slice(0, MOST_OBJECTS)) for side in (first, second))
    folds: dict[tuple[str, Way], list[tuple[Rule, NDArray[np.int64], NDArray[np.int64]]]] = {}
    for fold in range(FOLDS):
        (known1, held1), (known0, held0) = (_split(side, fold) for side in (first, second))
        for score in fit_scores(known1, known0, hints):
            rules = [score.rules(objective)[0].rule for objective in ways.values()]
            records = zip(rules, score.counts(rules, held1), score.counts(rules, held0), strict=True)
            for way, record in zip(ways, records, strict=True):
                folds.setdefault((score.kind, way), []).append(record)
    return shown_by(folds, float(len(first) + len(second)))


def shown_by(
    folds: Mapping[tuple[str, Way], Sequence[tuple[Rule, NDArray[np.int64], NDArray[np.int64]]]], draws: float
) -> dict[tuple[str, Way], Shown]:
    """What rules show over all folds, by each one's rule and its counts on the held draws of x and of x_prime.

    `draws` are those of all folds together. Where a fold is missing the kind is left out.
    """
    shown = {}
    for key, records in folds.items():
        if len(records) == FOLDS:
            each = tuple(
                (rule, int(of_x[1] + of_x_prime[0]), int(of_x[0] + of_x_prime[1]), int((of_x + of_x_prime).sum()))
                for rule, of_x, of_x_prime in records
            )
            correct, wrong = sum(right for _, right, _, _ in each), sum(wrong for _, _, wrong, _ in each)
            guessed = [int((of_x + of_x_prime)[:2].sum()) for _, of_x, of_x_prime in records]
            signs = {rule.sign if rule.nan_guess == ABSTAIN else 0 for rule, _, _ in records}
            masses = None
            if signs in ({1}, {-1}) and max(guessed) <= AGREEING * min(guessed):
                (sign,) = signs
                at_ends = (0, 1) if sign > 0 else (1, 0)  # the labels that are guessed below and above
                below, above = (sum(int(a[k] + b[k]) for _, a, b in records) / draws for k in at_ends)
                masses = below, above, sign
            sides = max(rule.sides for rule, _, _ in records)
            shown[key] = Shown(correct / draws, wrong / draws, sides, draws, masses, each)
    return shown


def _split(side: Outcomes, fold: int) -> tuple[Outcomes, Outcomes]:
    """All draws but every third one, and these."""
    parts = [side.rows(slice((fold + k) % FOLDS, None, FOLDS)) for k in range(FOLDS)]
    return join(parts[1:]), parts[0]
