"""The fixed-size game against a family of hockey-stick lines: one rule, one exact test, one bound at the end.

One `FixedGame` is one use of the error rate on one pair. The rule and the line are fixed on earlier draws, the number
of draws beforehand; P(lower > truth) <= level for the one record at the end (see `dpaudit.testing.binomial`). Where
the line has a delta and the pilot shows a rule that is hardly ever wrong, most of the level is for the joint test of
correct and wrong guesses (`dpaudit.testing.joint_test`) and `BINOMIAL_SHARE` of it for the binomial one: the bound of
each exceeds the truth with at most its part of the level, so the larger one does with at most the level (union bound).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.cross_validation import Shown
from dpaudit.learning.fitted_scores import FittedRule, best_rule
from dpaudit.learning.hints import NO_HINTS, Hints
from dpaudit.learning.objectives import BOUND_DEVIATIONS, DEVIATIONS, Objective
from dpaudit.learning.pilots import AnyFittedScore, Pilot, pilot_of
from dpaudit.learning.predicted import LEARNED
from dpaudit.learning.rules import ABSTAIN, Rule, inset
from dpaudit.learning.scores import Coordinate, Viewed
from dpaudit.learning.trials import Trial
from dpaudit.privacy.claims import ApproxDP, Claim, FloatArray
from dpaudit.reading.outcomes import Outcomes
from dpaudit.testing import binomial
from dpaudit.testing.hockey_stick import ANCHORS, HockeyStickGame, largest_rejected
from dpaudit.testing.joint_test import joint_p_value, weight_of_wrong
from dpaudit.testing.protocols import Aim, Training
from dpaudit.testing.tasks import Statistic

MOST_CAUTIOUS = BOUND_DEVIATIONS  # of the ways to choose thresholds
TRIED_DEVIATIONS = (BOUND_DEVIATIONS, 3.0, 2.0)  # the same on a trial: so many draws have lucky tails far out
TRIED_COMPARED = 3.5, 1.0, 0.0  # as the next line, on a trial: of a few guesses in very many draws the best were lucky
COMPARED = 2.5, 1.0, 0.0  # deviations by which what these ways show is lowered, fewer where all of it is too little
# Times as many, of what learners have proposed: most choose cells by labels of the draws that it is compared on, and of
# many places the best were lucky. On a trial it is compared on draws that no learner saw.
HOPEFUL_CELLS = 2.0
FEWEST_HOPEFUL = 5  # right guesses of a rule, from which on it is worth a longer pilot that it may refute the budget:
HOPEFUL_VERDICT = 0.7  # where none does, its bound less so many deviations is above it,
HOPEFUL_MASS = 0.05  # and it guesses so rarely: what guesses often is told well enough
FOR_VERDICT = 2.0  # the same, of a rule that is to refute the budget where the best one by its bound would not
FEWEST_SHOWN = 60  # guesses, without which it shows nothing,
FEWEST_RIGHT = 12  # unless there are so many right ones, and none is wrong: an outcome that one input alone has
FEWEST_COMPARED = 60  # training draws of a side from which on they are compared
SMOOTH_DEVIATIONS = 1.0  # by which what the best of them shows is lowered where a slope has to promise more
MASS_DEVIATIONS = 2.5  # by which the probability of a guess is lowered in an expected bound
SURE_GUESSES = 30  # right ones among the training draws, without a wrong one
INSET_WRONG = 0.3  # wrong guesses that a rule is expected to make whose thresholds have moved away from the other label
SURE_LOSS = 0.03  # share of them that is lost where thresholds move away from the other label's scores
TELLING_WRONG = 3.0  # wrong guesses expected of which none was seen: by chance in one case of twenty
CLEAR_WRONG = 6.0  # wrong guesses on the training draws of a rule just on the line, which tell it from a better one
MOST_WRONG = 40.0  # wrong guesses that a rule is expected to make, up to which a line with a delta has the joint test
UNLIKE = 1.5  # times as often, or as rarely: a rule guesses so unlike those that were shown
MOST_TRIED = 8  # scores in a trial
HOPEFUL_DEVIATIONS = 0.5  # by which what they show is lowered where they are chosen
BEFORE = "before"  # the kind of a rule that was chosen before a trial
AT_BUDGET = 0.85  # of the budget: from a bound of so much of it on, rules are for the lines at the budget,
DOUBTED = 2.0  # or where the pilot's own rates, lowered by so many deviations, are more than these allow
LESS_CAUTIOUS = 2.0, 1.0, 0.0  # deviations that are enough for a value to aim at, where the usual ones reach none
LEAST_AIM = 2.0**-12  # of the budget: what is below that is not looked for
AIM_STEPS = 3  # halvings, of its logarithm, behind the power of 2 in which the value lies that rules are for
MASS_SHARE = 0.05  # of the level, spent on the probability of a guess where the line has a delta
# Of the level, for the binomial test beside the joint one: a weight that is meant for fewer wrong guesses than there
# are leaves the joint test with nothing.
BINOMIAL_SHARE = 0.01


Way = tuple[float, float]  # the epsilon of a line, and the deviations of a choice of thresholds


@dataclasses.dataclass(frozen=True)
class _Best:
    """The rule that a pilot shows to be the best one (None: the one before it), and what it was compared with."""

    kind: str
    way: Way
    fitted: FittedRule | None
    record: Shown | None
    is_clear: bool
    scores: dict[str, AnyFittedScore]
    records: dict[tuple[str, Way], Shown]


def _as_shown(fitted: FittedRule, record: Shown, score: AnyFittedScore) -> FittedRule:
    """The rule, or one with the masses of those that the record is of, where it guesses far more or less often.

    Of many draws a rule may be the best one that guesses on a few of them, by luck.
    """
    shown, mass = record.correct + record.wrong, fitted.correct + fitted.wrong
    if record.masses is None or shown <= UNLIKE * mass <= UNLIKE**2 * shown:
        return fitted
    below, above, sign = record.masses
    if sign != fitted.rule.sign or fitted.rule.nan_guess != ABSTAIN:  # then it is about something else
        return fitted
    rule = score.rule_like(fitted.rule, (below, above))
    return FittedRule(rule, record.correct, record.wrong, fitted.draws) if rule.sides else fitted


def _shows_something(record: Shown) -> bool:
    right, wrong = record.correct * record.draws, record.wrong * record.draws
    return right + wrong >= FEWEST_SHOWN or (right >= FEWEST_RIGHT and wrong == 0.0)


def _has_enough_right(record: Shown) -> bool:
    return record.correct * record.draws >= FEWEST_RIGHT


def _is_hopeful(record: Shown) -> bool:
    return record.correct * record.draws >= FEWEST_HOPEFUL and record.correct + record.wrong <= HOPEFUL_MASS


class FixedGame(HockeyStickGame):
    """One use of the error rate on one pair, tested once: see `HockeyStickGame` for the parameters.

    `level` is set by `start`, before the first counted draw.
    """

    can_be_sure = True
    fewest_sure = SURE_GUESSES  # guesses of a score without a wrong one, below which no rule of it is sure

    def __init__(self, claim: Claim, draws: int) -> None:
        super().__init__(claim, draws)
        self._rule: Rule | None = None
        self._weight: float | None = None  # of a wrong guess in the joint test, where that is the test
        self._anchor = 0.0
        self._aim = claim.value  # the parameter value whose lines rules are chosen for
        self._merit: tuple[int, float] = (0, -math.inf)
        self.is_hopeful = False  # whether a rule may refute the budget, and the pilot is too short to tell
        self.is_sure = False  # whether the rule was often right, and never wrong, on its training draws
        self.trial: Trial | None = None  # what more draws before the test are counted in; None after `start`
        self._level_of_fit = math.nan
        self._record = np.zeros(3, dtype=np.int64)  # correct, wrong, abstained

    @property
    def merit(self) -> tuple[int, float]:
        """What its rule is expected to show against the budget."""
        return self._merit

    def start(self, level: float) -> None:
        """Fix the level: the error rate this use may spend. What is needed for a trial is let go."""
        self.level, self.trial = level, None

    def prepare(self, training: Training, level: float) -> None:
        """Choose the rule and the line: see `fit`."""
        first, second, hints, aim = training.first, training.second, training.hints, training.aim
        self.fit(first, second, level, hints, aim, training.may_try, training.pilot)

    def fit(
        self,
        first: Outcomes,
        second: Outcomes,
        level: float,
        hints: Hints = NO_HINTS,
        aim: Aim = "bound",
        tries: bool = False,
        pilot: Pilot | None = None,
    ) -> None:
        """Choose the rule and the line on earlier draws of x (`first`) and x_prime (`second`).

        For each line that may be bet at, rules are fitted; of all, the one is taken that is expected to give the
        highest bound on the parameter. Unless it is hardly ever wrong, rules of every kind and way are compared by what
        they show on draws that they were not fitted on, where there are enough. With `tries`, what a trial may count is
        made ready (`trial`), where the rule is neither sure nor one that is hardly ever wrong. `pilot` is that of these
        draws, where somebody has made it.

        Rules are only compared with the aim "bound". A "ranking" of many pairs does without; and with "sureness" it is
        only asked whether the rule is sure: there need not be one where it is not.
        """
        pilot = pilot_of(first, second, hints) if pilot is None else pilot
        fitted = pilot.scores()
        self._forget()
        if aim == "sureness" and max(score.most_sure for score in fitted) < self.fewest_sure:
            return
        compare = aim == "bound" and min(len(first), len(second)) >= FEWEST_COMPARED
        self._aim = self._value_in_reach(fitted, level) if aim == "bound" else self.claim.value
        best = self._best_of(pilot, fitted, level, compare)
        rule, scores = best.fitted, best.scores
        assert rule is not None, "there is no rule before it"
        self._anchor = best.way[0]
        at_budget = self._objective(self._anchor, MOST_CAUTIOUS, level, self.claim.value)
        merit = best_rule([rule], at_budget)[1]
        self._rule, self._weight, self._merit = rule.rule, None, merit
        smooth = self._smooth(best.record, best.is_clear, best.way[0], pilot, level)
        rare = self._rarely_wrong(rule, first, second) if smooth is None else None
        if smooth is not None:
            self._rule, self.is_sure = smooth, False
        elif rare is not None:
            # Validity: which test it is, and its weight, are fixed on earlier draws, as the rule is.
            self._rule, self._weight = rare
        elif aim == "bound":
            self._rule = self._fitted_on_all(rule.rule, scores[best.kind], pilot, len(first) + len(second))
        self._refine(list(scores.values()), rule, level)
        self._level_of_fit = level
        is_tried = tries and aim == "bound" and rare is None and not self.is_sure
        self.trial = self._trial_of(best, pilot) if is_tried else None

    def _forget(self) -> None:
        """Drop what an earlier fit left."""
        self._rule, self._weight, self.trial, self.is_sure, self.is_hopeful = None, None, None, False, False

    def _best_of(
        self,
        pilot: Pilot,
        fitted_scores: Sequence[AnyFittedScore],
        level: float,
        compare: bool,
        before: tuple[tuple[str, Way], Shown] | None = None,
    ) -> _Best:
        """The rule that promises the highest bound: by its own draws, or with `compare` by those that it did not see.

        `before` is what a rule shows that was chosen on other draws, and stays where no other one shows more.
        """
        ways = {
            (anchor, deviations): self._objective(anchor, deviations, level)
            for anchor in (ANCHORS if self.claim.anchored else (0.0,))
            for deviations in (DEVIATIONS if before is None else TRIED_DEVIATIONS)
        }
        scores = {score.kind: score for score in fitted_scores}
        fitted = {
            (kind, way): score.rules(objective)[0]
            for kind, score in scores.items()
            for way, objective in ways.items()
            if way[1] == MOST_CAUTIOUS
        }
        best = max(fitted, key=lambda key: self._expected_bound(fitted[key], key[1][0], ways[key[1]]))
        records: dict[tuple[str, Way], Shown] = {}
        is_clear = False  # whether the best record is better than nothing, as low as it may be
        # Where no rule promises anything, that of the fewest guesses is the luckiest one.
        is_promising = self._expected_bound(fitted[best], best[1][0], ways[best[1]]) > 0.0
        is_rare = is_promising and fitted[best].wrong * self.draws <= MOST_WRONG
        if before is not None or (compare and not is_rare):
            every = {key: record for key, record in pilot.cross_validated(ways).items() if key[0] in scores}
            records = {key: record for key, record in every.items() if _shows_something(record)}
            if before is not None:
                records[before[0]] = before[1]
            compared = COMPARED if before is None else TRIED_COMPARED
            for deviations in compared:
                shown = {}
                for (kind, way), record in records.items():
                    is_hopeful = before is None and kind.startswith(LEARNED)
                    lowered = self._objective(way[0], deviations * (HOPEFUL_CELLS if is_hopeful else 1.0), level)
                    shown[kind, way] = self._expected_bound(record, way[0], lowered)
                best = max(shown, key=lambda key: shown[key], default=best)
                if not shown or shown[best] > 0.0:
                    is_clear = deviations == compared[0]
                    break
            if before is None and records and shown[best] <= self.claim.value:
                enough = {key: record for key, record in every.items() if _has_enough_right(record)}
                refuting = self._refuting(records | enough, level, FOR_VERDICT)
                best = refuting or best
                records |= enough
                few = {key: record for key, record in every.items() if _is_hopeful(record)}
                self.is_hopeful = refuting is None and self._refuting(few, level, HOPEFUL_VERDICT) is not None
        if before is not None and best == before[0]:
            return _Best(*best, None, records[best], is_clear, scores, records)
        rule = fitted[best] if best in fitted else scores[best[0]].rules(ways[best[1]])[0]
        if best in records:
            rule = _as_shown(rule, records[best], scores[best[0]])
        return _Best(*best, rule, records.get(best), is_clear, scores, records)

    def _refuting(
        self, records: Mapping[tuple[str, Way], Shown], level: float, deviations: float
    ) -> tuple[str, Way] | None:
        """The rule that is expected to refute the budget by most, less so many deviations; None where none is.

        A few guesses that were all right promise a low bound, by many deviations, and yet are likely to refute a budget
        that very many guesses, right just as often as it allows, do not.
        """
        expected = {
            key: self._expected_bound(record, key[1][0], self._objective(key[1][0], deviations, level))
            for key, record in records.items()
        }
        best = max(expected, key=lambda key: expected[key], default=None)
        return best if best is not None and expected[best] > self.claim.value else None

    def _trial_of(self, best: _Best, pilot: Pilot) -> Trial | None:
        """What more draws are counted in: by the rule so far, and between thresholds of scores that may be the best.

        These are the ones whose records are good, or lucky.
        """
        hopeful = dict.fromkeys(best.scores, -math.inf)
        for (kind, way), record in best.records.items():
            objective = self._objective(way[0], HOPEFUL_DEVIATIONS, self._level_of_fit)
            hopeful[kind] = max(hopeful.get(kind, -math.inf), self._expected_bound(record, way[0], objective))
        kinds = sorted(hopeful, key=lambda kind: -hopeful[kind])[:MOST_TRIED]
        on_all = {score.kind: score for score in pilot.scores(halves=False)}
        scores = [on_all.get(kind, best.scores[kind]) for kind in kinds]
        # Which summary says most is learned slowly, and each of them needs no fit.
        trial = Trial.of(self.rule, [*scores, *pilot.summaries()])
        return trial if trial.scores else None

    def try_out(self, counts_x: NDArray[np.int64], counts_x_prime: NDArray[np.int64]) -> None:
        """Choose again, by what `trial` counted on further draws before the test."""
        assert self.trial is not None, "nothing is tried"
        pilot = self.trial.counted(counts_x, counts_x_prime)
        before = (BEFORE, (self._anchor, MOST_CAUTIOUS)), pilot.shown
        best = self._best_of(pilot, pilot.scores(), self._level_of_fit, True, before)
        if best.fitted is not None:
            # The binomial test: where to move thresholds that are hardly ever wrong is not seen from counts.
            self._rule, self._anchor, self._weight = best.fitted.rule, best.way[0], None

    def _refine(self, scores: Sequence[AnyFittedScore], rule: FittedRule, level: float) -> None:
        """For `dpaudit.testing.refined_edges`: see what else the scores show, besides the best rule."""

    def _smooth(self, record: Shown | None, is_clear: bool, anchor: float, pilot: Pilot, level: float) -> Rule | None:
        """A rule of a score that adds up columns, if its slope promises more than the best of the records shows.

        A record that is not clear is the luckiest one, and shows nothing.
        """
        if record is None:
            return None
        cautious = self._objective(anchor, SMOOTH_DEVIATIONS, level)
        promised = self._expected_bound(record, anchor, cautious) if is_clear else 0.0
        objective, found = self._objective(anchor, 0.0, level), None
        for tails in pilot.smooth_tails():
            sides = (tails.low > 0.0).astype(int) + (tails.high > 0.0)
            bounds = objective.ways(tails.correct, tails.wrong, sides, np.array(tails.draws))[0]
            place = int(np.argmax(np.where(tails.is_borne_out & (sides > 0), bounds, -math.inf)))
            expected = Shown(float(tails.correct[place]), float(tails.wrong[place]), int(sides[place]), tails.draws)
            if tails.is_borne_out[place] and sides[place] > 0:
                bound = self._expected_bound(expected, anchor, objective)
                if bound > promised:
                    promised, found = bound, (tails.kind, tails.sign, float(tails.low[place]), float(tails.high[place]))
        if found is None:
            return None
        kind, sign, low, high = found
        for score in pilot.scores(halves=False):
            if score.kind == kind:
                rule = Rule(score.score, -math.inf, math.inf, sign, score.reading)
                rule = score.rule_like(rule, (low, high) if sign > 0 else (high, low))
                return rule if rule.sides else None
        return None

    def _fitted_on_all(self, rule: Rule, score: AnyFittedScore, pilot: Pilot, draws: int) -> Rule:
        """The rule of the same kind of score, fitted on all draws of the pilot, where `score` saw one half of them.

        A coordinate stays: what was fitted is which one it is, and another one may speak for x where it is small.
        """
        is_objects = score.reading.columns == 0  # whose fits are long, and capped
        is_coordinate = isinstance(score.score.score if isinstance(score.score, Viewed) else score.score, Coordinate)
        if is_objects or is_coordinate or score.draws >= draws:
            return rule
        for again in pilot.scores(halves=False):
            if again.kind == score.kind:
                found = again.rule_like(rule, score.guessed_masses(rule))
                return found if found.sides else rule
        return rule

    def _value_in_reach(self, scores: Sequence[AnyFittedScore], level: float) -> float:
        """The parameter value whose lines rules are chosen for: the budget, or one that they are expected to exclude.

        Where the lines are free their deltas grow with the value. At a budget far above the loss they pay for all that
        any rule gets right: then none is better than another at its lines, and a bound below it needs one that is.
        (Where the loss may be over the budget the verdict comes first, and its rule is for the budget: a noisy pilot
        may not show so much that it is expected to be excluded.)
        """
        budget = self.claim.value
        if not self.claim.anchored or budget <= 0.0 or self._is_in_reach(AT_BUDGET * budget, scores, level):
            return budget
        if self._is_in_reach(budget, scores, 0.5, DOUBTED):  # of this level the test itself asks no deviation
            return budget
        for deviations in (MOST_CAUTIOUS, *LESS_CAUTIOUS):
            value = 0.5 * budget
            while value >= LEAST_AIM * budget and not self._is_in_reach(value, scores, level, deviations):
                value *= 0.5
            if value >= LEAST_AIM * budget:
                break
        else:
            return budget
        step = math.sqrt(2.0)
        for _ in range(AIM_STEPS):
            if value * step < budget and self._is_in_reach(value * step, scores, level, deviations):
                value *= step
            step = math.sqrt(step)
        return value

    def _is_in_reach(
        self, value: float, scores: Sequence[AnyFittedScore], level: float, deviations: float = MOST_CAUTIOUS
    ) -> bool:
        """Whether some rule is expected to exclude a line at this parameter value."""
        for anchor in ANCHORS:
            objective = self._objective(anchor, deviations, level, value)
            for score in scores:
                rule = score.rules(objective)[0]
                columns = (np.array(part) for part in (rule.correct, rule.wrong, rule.sides, rule.draws))
                if objective.ways(*columns)[0] > objective.epsilon:
                    return True
        return False

    def _objective(self, anchor: float, deviations: float, level: float, value: float | None = None) -> Objective:
        """That of a rule that is to exclude the line at this parameter value; by default at the one they are for."""
        line = self._line_at(self._aim if value is None else value, anchor)
        return Objective(line["epsilon"], line["delta"], max(self.draws, 1), level, False, deviations)

    def _rarely_wrong(self, fitted: FittedRule, first: Outcomes, second: Outcomes) -> tuple[Rule, float | None] | None:
        """The rule and the weight of a wrong guess, where there may be few of them; else None.

        Its thresholds are where they were fitted, or further from the other label, whichever promises more. Where they
        were fitted to just exclude the other label's draws, one of them more than were seen has to be expected a side.

        The weight is that for the highest bound only where the training draws tell the rule from one that is just on
        the line. Else it comes as near to the line's own, e^epsilon, as they allow: too large a weight loses the
        verdict at the first few wrong guesses. (Lines without a delta have none: there the test is the binomial one.)
        """
        self.is_sure = False
        times = self.draws / fitted.draws
        if fitted.wrong * self.draws > MOST_WRONG:
            return None
        rule, lost = inset(fitted.rule, first, second)
        correct, seen = fitted.correct * self.draws, fitted.wrong * fitted.draws
        cautious = (seen + fitted.rule.sides) * times
        # Where fewer wrong guesses than `TELLING_WRONG` would be expected, that there were none says nothing.
        alike = seen * (1.0 - lost)
        beyond = INSET_WRONG + (alike * times if alike < TELLING_WRONG else 0.0)
        ways = [(fitted.rule, correct, cautious), (rule, correct * (1.0 - lost), beyond)]
        cost = self._cost(rule, self._aim) * self.draws
        rule, correct, wrong = max(ways, key=lambda way: weight_of_wrong(way[1], way[2], cost))
        is_clear, weight = True, None
        if self._has_delta:
            factor = math.exp(min(self._line_at(self._aim, self._anchor)["epsilon"], 700.0))
            is_clear = correct - cost >= CLEAR_WRONG * times * factor
            weight = weight_of_wrong(correct, wrong if is_clear else max(wrong, cautious), cost)
            weight = max(weight, min(factor, weight_of_wrong(correct, max(seen * times, INSET_WRONG), cost)))
        often = fitted.correct * fitted.draws >= SURE_GUESSES
        self.is_sure = seen == 0 and lost <= SURE_LOSS and often and is_clear
        return rule, weight

    def _cost(self, rule: Rule, value: float) -> float:
        """What the line at a parameter value pays for of a rule's correct guesses, a labelled draw."""
        return self._line_at(value, self._anchor)["delta"] * max(rule.sides, 1) / 2.0

    def _expected_bound(self, record: FittedRule | Shown, anchor: float, objective: Objective) -> float:
        """The bound on the parameter that a rule is expected to give; negative, and higher for better, where none."""
        rates = (np.array(part) for part in (record.correct, record.wrong, record.draws))
        lowest, mass = (float(part) for part in objective.lowest_accuracy(*rates))
        deviation = math.sqrt(mass * max(1.0 - mass, 0.0) / objective.draws)
        least = max(mass - MASS_DEVIATIONS * deviation, 0.0)
        cost = max(record.sides, 1) / 2.0
        if isinstance(self.claim, ApproxDP):  # whose lines are those of its parameter, so that no search is needed
            extra = self.claim.delta * cost / max(least, 1e-300) if self.claim.delta > 0.0 else 0.0
            odds = (lowest - extra) / max(1.0 - lowest, 1e-300)
            return math.log(odds) if odds > 1.0 else lowest - 1.0

        def rejected(values: FloatArray) -> NDArray[np.bool_]:
            line = self._line(values, anchor)
            return np.asarray(binomial.largest_accuracy(line.epsilon, line.delta * cost, least) < lowest)

        found = largest_rejected(rejected, 0.0, self.claim.value, precision=1e-4)
        return found if found > 0.0 else lowest - 1.0

    def set_rule(self, rule: Rule, anchor: float) -> None:
        """Test this rule at this line, which were fixed elsewhere before any draw of this game."""
        self._rule, self._anchor, self._weight = rule, anchor, None

    @property
    def rule(self) -> Rule:
        """The rule that is tested."""
        assert self._rule is not None, "fit comes before counting"
        return self._rule

    @property
    def statistic(self) -> Statistic:
        """What is counted on each side's draws."""
        return self.rule

    def add(self, counts_x: NDArray[np.int64], counts_x_prime: NDArray[np.int64]) -> None:
        """Add the rule's counts (guessed 0, guessed 1, abstained; shape (3,)) on new draws of x and of x_prime."""
        correct = counts_x[1] + counts_x_prime[0]
        wrong = counts_x[0] + counts_x_prime[1]
        self._record += np.array([correct, wrong, counts_x[2] + counts_x_prime[2]])

    def update(self) -> None:
        """Look at the record, once, at the end: the lower bound, the larger one where there are two tests."""
        self._lower = largest_rejected(self._rejected_by_counts(), self._lower, self.claim.value)
        if self._weight is not None:  # a value at a time: each takes a sum over numbers of wrong guesses
            self._lower = largest_rejected(self._rejected_jointly(), self._lower, self.claim.value, points=2)

    @property
    def _levels(self) -> tuple[float, float]:
        """Of the binomial test, and of the joint one: they sum to the level (union bound)."""
        share = 1.0 if self._weight is None else BINOMIAL_SHARE
        return share * self.level, (1.0 - share) * self.level

    def _rejected_by_counts(self) -> Callable[[FloatArray], NDArray[np.bool_]]:
        """Which parameter values the binomial test of the correct guesses rejects."""
        correct, wrong, _ = self.counts
        guesses, draws, sides = correct + wrong, sum(self.counts), max(self.rule.sides, 1)
        level, _ = self._levels
        spent = level * MASS_SHARE if self._has_delta else 0.0
        accuracy = binomial.binomial_lower(correct, guesses, level - spent)
        mass = binomial.binomial_lower(guesses, draws, spent) if self._has_delta else 1.0

        def rejected(values: FloatArray) -> NDArray[np.bool_]:
            line = self._line(values, self._anchor)
            limit = binomial.largest_accuracy(line.epsilon, line.delta * sides / 2.0, mass)
            return np.asarray(limit < accuracy)

        return rejected

    def _rejected_jointly(self) -> Callable[[FloatArray], NDArray[np.bool_]]:
        """Which parameter values the joint test of correct and wrong guesses rejects."""

        def rejected(values: FloatArray) -> NDArray[np.bool_]:
            line = self._line(values, self._anchor)
            costs = line.delta * max(self.rule.sides, 1) / 2.0
            p_values = [self._joint_p_value(*pair) for pair in zip(line.epsilon.tolist(), costs.tolist(), strict=True)]
            return np.array(p_values) <= self._levels[1]

        return rejected

    def _joint_p_value(self, epsilon: float, cost: float) -> float:
        correct, wrong, _ = self.counts
        assert self._weight is not None
        return joint_p_value(correct, wrong, sum(self.counts), epsilon, cost, self._weight, self._levels[1])

    @property
    def log_wealth(self) -> float | None:
        return None

    @property
    def p_value(self) -> float | None:
        """Of the exact tests against the budget: of two, each is divided by its share of the level."""
        correct, wrong, _ = self.counts
        epsilon, cost = self.line["epsilon"], self._cost(self.rule, self.claim.value)
        level, _ = self._levels
        by_counts = binomial.p_value(correct, correct + wrong, sum(self.counts), epsilon, cost, level, MASS_SHARE)
        if self._weight is None:
            return by_counts
        return min(by_counts / BINOMIAL_SHARE, self._joint_p_value(epsilon, cost) / (1.0 - BINOMIAL_SHARE), 1.0)

    @property
    def line(self) -> dict[str, float]:
        """The line it is tested at, at the budget."""
        return self._line_at_budget(self._anchor)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Correct and wrong guesses and abstentions, on draws the rule was not fitted on."""
        correct, wrong, abstained = self._record.tolist()
        return correct, wrong, abstained

    def describe(self, x: str, x_prime: str) -> str:
        """The witness in words."""
        return self.rule.describe(x, x_prime)

    def rule_record(self) -> dict[str, Any]:
        """The witness as data, for `dpaudit.learning.rules.rule_from_dict`."""
        return {"game": "guess", "anchor": self._anchor, **self.rule.to_dict()}

    def _critical(self, guesses: int, epsilon: float, delta: float) -> int:
        low, high = -1, guesses + 1
        while high - low > 1:
            middle = (low + high) // 2
            p = binomial.p_value(middle, guesses, self.draws, epsilon, delta, self.level, MASS_SHARE)
            low, high = (low, middle) if p <= self.level else (middle, high)
        return high
