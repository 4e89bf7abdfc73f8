"""A confidence band for the trade-off function of one pair: an audit's opt-in stage, on draws of its own.

The stage examines the pair that the audit found clearest. A first part of its draws fits a score of the outputs; the
band (`dpaudit.scores.bands`) is that of the score's values on the others, and holds at all type I errors together.

Validity. The pair is chosen from what the audit saw, and the stage reads streams that nothing else reads. How many
draws it takes depends on the audit's options alone. So given the audit, the pair and the score, the values on the
second part of the draws are independent samples of two fixed laws, and the band is wrong somewhere with probability at
most its level. That level is `BAND_SHARE` of the error rate of the call (`dpaudit.audits.options`); the pairs and their
bounds have the rest. By the union bound the whole call is wrong with probability at most its error rate, the band
included. Where the stage gives no band, its share is lost: to give it back would depend on what was seen.

The score is a fixed function of the output by then, so its trade-off function is at least that of the mechanism, and an
upper limit of the one is an upper limit of the other (post-processing). The lower limit is of the score's thresholds.
"""

from __future__ import annotations

import numpy as np

from dpaudit.errors import SubjectError
from dpaudit.learning.fitted_scores import best_rule, fit_rules
from dpaudit.learning.objectives import Objective
from dpaudit.learning.rules import Rule
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.pairs import Pair
from dpaudit.reading.outcomes import Outcomes, join
from dpaudit.results.trade_off import TradeOffBand, TradeOffPoint
from dpaudit.running.draws import Crew, Drawer
from dpaudit.running.streams import BAND_DRAWS
from dpaudit.scores.auditing import claimed_trade_off
from dpaudit.scores.bands import band
from dpaudit.scores.profile_bounds import TYPE_ONE
from dpaudit.subjects.callables import Subject
from dpaudit.testing.order import change_of
from dpaudit.testing.tasks import Task

MOST_DRAWS = {True: 12_000, False: 2_000}  # of each input: of a subject that draws batches, of one that is called once
TRAINING_SHARE = 0.25  # of these, on which the score is fitted
SMALL_BATCH, MOST_BATCHES = 16, 64  # outputs of a batch, at least, and about so many batches of a part at most
DEPEND = "The draws of the stage depend on each other, so that nothing can be said."
RAISED = "A call of the stage raised or did not come back."
FAILED = "No pair has an answer."
NO_SCORE = "No score of the outputs could be fitted."


def draws_of(samples: int, is_vectorised: bool) -> tuple[int, int]:
    """Draws of each input that fit the score, and that the band rests on, in an audit of `samples`.

    Examples
    --------
    >>> draws_of(100_000, is_vectorised=True)
    (3000, 9000)
    """
    draws = max(min(samples, MOST_DRAWS[is_vectorised]), 8)
    training = int(TRAINING_SHARE * draws)
    return training, draws - training


def examine(
    pair: Pair, claim: Claim, *, subject: Subject, samples: int, level: float, seed: int, crew: Crew
) -> tuple[TradeOffBand, int]:
    """The band of a pair at an error rate of `level`, or why there is none, and the runs that it took."""
    draw = Drawer(subject, [pair.x, pair.x_prime], seed, BAND_DRAWS, crew)
    runs = 0
    parts: list[list[Outcomes]] = []
    try:
        for part, size in enumerate(draws_of(samples, subject.is_vectorised)):
            batch = max(SMALL_BATCH, size // MOST_BATCHES)
            # Validity: both inputs at once, so that calls are made in one random order, where they are made one by one.
            tasks = [
                Task(i, part, chunk, start, min(batch, size - start), (), min(batch, size - start))
                for chunk, start in enumerate(range(0, size, batch))
                for i in (0, 1)
            ]
            runs += 2 * size
            drawn = [found.kept for found in draw(tasks) if found.kept is not None]
            for outputs in (drawn[::2], drawn[1::2]):
                # Validity: a shared draw of noise or a state shows in the order of the calls; then there is no band.
                if change_of(join(outputs), [len(output) for output in outputs]) is not None:
                    return TradeOffBand(pair.id, level, reason=DEPEND), runs
            parts.append([join(drawn[::2]), join(drawn[1::2])])
    except SubjectError:
        return TradeOffBand(pair.id, level, reason=RAISED), runs
    if subject.has_lost_calls:  # when a call did not come back may tell of which input it was
        return TradeOffBand(pair.id, level, reason=RAISED), runs
    training, testing = parts
    rule = _separating(*training)
    if rule is None:
        return TradeOffBand(pair.id, level, reason=NO_SCORE), runs
    first, second = (np.asarray(rule.score(rule.reading(side)), dtype=float) for side in testing)
    found = band(first, second, level)
    columns = TYPE_ONE, found.upper(TYPE_ONE), found.thresholds_lower(TYPE_ONE), claimed_trade_off(claim, TYPE_ONE)
    points = tuple(TradeOffPoint(*(float(value) for value in row)) for row in zip(*columns, strict=True))
    return TradeOffBand(pair.id, level, len(first), rule.score.describe(), points), runs


def _separating(first: Outcomes, second: Outcomes) -> Rule | None:
    """A rule of the score that separates these outcomes best; None where nothing suits them."""
    chase = Objective(0.0, 0.0, len(first) + len(second), 0.05, chase_wealth=True)
    rules = fit_rules(first, second, chase)
    return rules[best_rule(rules, chase)[0]].rule if rules else None
