"""What is said of the pairs of a universe: one table of all, and findings in full of some.

The table has what the one exact test of each pair says, raised by what the depth found. A pair examined in depth has
the finding of its game, or that of the table where its test was the stronger one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.audits.findings import FOUND_WITH, broken_text, named, withheld
from dpaudit.campaign.universe import UniverseGame
from dpaudit.exact.response import event_masses, loss_on_claim
from dpaudit.privacy.claims import Claim, FloatArray
from dpaudit.privacy.inputs import Inputs
from dpaudit.privacy.pair_budgets import PairBudgets, has_own_line
from dpaudit.privacy.pairs import MANY_PAIRS, AllPairs, Pair
from dpaudit.results.model import VERDICTS, ZERO_BUDGET_LOSS, Finding, Power, WitnessRecord
from dpaudit.results.universe_table import NOT_ASKED, UniverseTable
from dpaudit.testing import binomial, learned_power
from dpaudit.testing.hockey_stick import GUESSES_QUANTILE

EXACT_LOSSES = 25  # values of a family at which the loss that they allow is computed: a bound on time
LARGEST_FINDINGS = 1_000  # findings in full; all pairs are in the table
SMALLEST_P_VALUE = 1e-300  # below which a p-value is given as this
# A note of a pair whose finding is that of the table.
NOT_IN_DEPTH = "This is what the table of all pairs says of it: its examination in depth gave nothing, as {why}"


def losses_found(game: UniverseGame, masses: FloatArray, probability: float, labelled: int | None = None) -> FloatArray:
    """The smallest loss of randomised-response type that the table finds of each pair, in nats; inf: none.

    Of events with these `masses`, shape (pairs,); from the draws that the table has, or from `labelled` ones.
    """
    found = np.full(len(masses), math.inf)
    for mass in np.unique(masses).tolist():
        of_mass = game.losses(mass, probability, GUESSES_QUANTILE, labelled)
        found[masses == mass] = of_mass[masses == mass]
    return found


def masses_of(budgets: PairBudgets, event_mass: float) -> FloatArray:
    """The mass of the event that power is stated for, of each pair (`exact.response.event_masses`), shape (pairs,).

    Pairs of a family of free lines have the largest of theirs.
    """
    masses = np.empty(len(budgets.values))
    for k in np.unique(budgets.family).tolist():
        family, pairs = budgets.families[k], budgets.family == k
        of_pairs = event_masses(family, budgets.values[pairs], budgets.deltas[pairs], event_mass)
        masses[pairs] = of_pairs.max() if family.anchored else of_pairs
    return masses


def losses_learned(game: UniverseGame, masses: FloatArray) -> FloatArray:
    """The smallest loss that the table is taken to find of an event of the worst measured form; inf: none.

    An allowance: a rule of the table is fixed before its one test, and is taken to need as many times the draws of a
    witness as the rule of a fixed game does (`dpaudit.testing.learned_power`), which learns from fewer.
    """
    seen = game.labelled * min(float(masses.min(initial=1.0)) / learned_power.event_mass_measured(), 1.0)
    harder = learned_power.FREE_LINES if game.lines.is_free else 1.0
    share = min(learned_power.worth(form, True, seen, harder) for form in learned_power.forms()) / seen
    if share * game.labelled < 2.0:
        return np.full(len(game.first), math.inf)
    return losses_found(game, masses, FOUND_WITH, int(share * game.labelled))


def losses_at_budgets(budgets: PairBudgets, masses: FloatArray) -> FloatArray:
    """The largest loss of randomised-response type that the claim of each pair allows, in nats, shape (pairs,).

    Of events with these `masses`, shape (pairs,), as of `masses_of`.

    Where a family of free lines has more than 25 values it is interpolated between as many.
    """
    losses = np.zeros(len(budgets.values))
    for k in np.unique(budgets.family).tolist():
        family, pairs = budgets.families[k], np.flatnonzero(budgets.family == k)
        if family.anchored or family.family == "renyi":
            values, place = np.unique(budgets.values[pairs], return_inverse=True)
            asked = values[values > 0.0]
            at = asked if len(asked) <= EXACT_LOSSES else np.geomspace(asked[0], asked[-1], EXACT_LOSSES)
            exact = [loss_on_claim(family.with_value(value), float(masses[pairs[0]])) for value in at.tolist()]
            found = np.interp(values, at, exact, left=0.0) if exact else np.zeros(1)
            losses[pairs] = found[place.ravel()]
            continue
        epsilon, delta = budgets.values[pairs], budgets.deltas[pairs]
        if not has_own_line(family):
            epsilon, delta = family.lines(epsilon, 0.0)
        at_cost = scipy.special.logit(binomial.largest_accuracy(epsilon, delta, masses[pairs]))
        losses[pairs] = np.where(delta > 0.0, at_cost, epsilon)
    return losses


def empty_table(
    pairs: Sequence[Pair], inputs: Inputs, budgets: PairBudgets, parameter_lower: FloatArray | None = None
) -> UniverseTable:
    """The table of pairs of which nothing has been asked yet."""
    count = len(pairs)
    pair_ids = None
    if not isinstance(pairs, AllPairs):
        ids = inputs.ids
        own = tuple(pair.id for pair in pairs)
        usual = zip(inputs.first.tolist(), inputs.second.tolist(), own, strict=True)
        pair_ids = None if all(f"{ids[i]}|{ids[j]}" == name for i, j, name in usual) else own
    return UniverseTable(
        ids=inputs.ids,
        first=inputs.first,
        second=inputs.second,
        budget=budgets.values,
        epsilon_lower=np.zeros(count),
        parameter=budgets.parameter,
        parameter_lower=parameter_lower,
        log10_p_value=np.zeros(count),
        verdict=np.full(count, NOT_ASKED, dtype=np.int8),
        detectable=np.full(count, np.inf),
        delta=budgets.report_delta,
        labelled=0,
        draws=0,
        pair_ids=pair_ids,
    )


def pair_at(pairs: Sequence[Pair], ends: Inputs | UniverseTable, row: int) -> Pair:
    """The pair of one row of the table."""
    if isinstance(pairs, AllPairs):
        return pairs.pair(int(ends.first[row]), int(ends.second[row]))
    return pairs[row]


@dataclasses.dataclass(frozen=True)
class Deep:
    """What the depth says of a pair.

    `is_withheld`: outcomes on one of its inputs changed, in this game or before it, or the mechanism keeps its noise.
    `why_not` says why it has examined nothing, so that the table's test stands; else it is empty.
    """

    finding: Finding
    is_withheld: bool
    why_not: str = ""


@dataclasses.dataclass
class UniverseFindings:
    """The table of one universe, as it is filled, and the findings.

    Attributes
    ----------
    promise, pairs, name
        The claim, the pairs, and what the subject is called.
    table : UniverseTable
        Of all pairs.
    game : UniverseGame
        Of the pairs that the claim asks something of.
    asked : array of int, shape (asked pairs,)
        Their rows in the table.
    at_budget : array of float, shape (asked pairs,)
        The losses that their claims allow (`losses_at_budgets`).
    masses : array of float, shape (asked pairs,)
        Of the events that power is stated for (`masses_of`).
    inconclusive_factor : float
        As for `dpaudit.audit`.
    """

    promise: Claim
    pairs: Sequence[Pair]
    name: str
    table: UniverseTable
    game: UniverseGame
    asked: NDArray[np.int64]
    at_budget: FloatArray
    masses: FloatArray
    inconclusive_factor: float

    def fill(self, failure: str) -> None:
        """Take what the game found into the table, in the rows of the asked pairs."""
        game, table, asked = self.game, self.table, self.asked
        assert game.partition is not None
        detectable = losses_found(game, self.masses, FOUND_WITH)
        # Validity: what would have been found supposes that draws are independent.
        detectable = np.where(game.is_withheld, np.inf, detectable)
        table.detectable[asked] = detectable
        table.epsilon_lower[asked] = game.epsilon_lower
        table.lower[asked] = game.lower  # of a line of its own, the same
        table.log10_p_value[asked] = game.log_p / math.log(10.0)
        limit = np.where(self.at_budget > 0.0, self.inconclusive_factor * self.at_budget, ZERO_BUDGET_LOSS)
        # Up to `MANY_PAIRS` pairs are judged as pairs with games of their own are: by an event that has to be learned.
        judged = detectable
        if len(self.pairs) <= MANY_PAIRS:
            judged = np.maximum(detectable, losses_learned(game, self.masses))
        found_little = np.isinf(judged) | (judged > limit)
        code = np.where(found_little, VERDICTS.index("inconclusive"), VERDICTS.index("not_refuted"))
        code = np.where(game.violated, VERDICTS.index("violated"), code)
        table.verdict[asked] = np.where(game.broken | bool(failure), VERDICTS.index("error"), code)
        labelled = 0 if failure else game.labelled
        cells = game.partition.to_dict()
        self.table = dataclasses.replace(table, labelled=labelled, draws=game.samples, partition=cells)

    def merged(self, deep: Mapping[int, Deep], failure: str, reason: str) -> tuple[Finding, ...]:
        """The findings in full, and the table's rows raised to what the depth found.

        `failure` is why the table could not be played, `reason` why nothing can be said of any pair; else empty.
        """
        game, table, asked = self.game, self.table, self.asked
        kept: dict[int, Finding] = {}
        for k, one in deep.items():
            row, finding, found = int(asked[k]), one.finding, one.finding
            if found.verdict == "error" and (one.why_not or game.violated[k]) and not one.is_withheld:
                # Its own test was fixed before the depth and is over: it stands, whatever the depth did.
                kept[k] = dataclasses.replace(
                    self._of_table(k, row, VERDICTS[int(table.verdict[row])]),
                    notes=(NOT_IN_DEPTH.format(why=found.message),),
                    traceback=found.traceback,
                )
                continue
            if one.is_withheld:  # what its record and the table's say supposes that draws are independent
                kept[k], table.verdict[row] = found, VERDICTS.index(found.verdict)
                table.epsilon_lower[row], table.log10_p_value[row], table.detectable[row] = 0.0, 0.0, math.inf
                game.lower[k] = game.epsilon_lower[k] = table.lower[row] = 0.0
                continue
            if finding.verdict == "inconclusive" and table.verdict[row] == VERDICTS.index("not_refuted"):
                finding = dataclasses.replace(finding, verdict="not_refuted")  # the table's test was the stronger one
            if game.lower[k] > finding.parameter_lower and finding.verdict != "error":
                finding = self._of_table(k, row, "violated" if game.violated[k] else finding.verdict)
                finding = dataclasses.replace(finding, notes=found.notes, keys=found.keys)
                if found.power is not None and finding.power is not None:
                    finding = dataclasses.replace(
                        finding, power=min(found.power, finding.power, key=lambda power: power.detectable)
                    )
            if finding.verdict != "error":  # each of the two tests has a bound on epsilon as well
                epsilon_lower = max(found.epsilon_lower, finding.epsilon_lower, float(game.epsilon_lower[k]))
                finding = dataclasses.replace(finding, epsilon_lower=epsilon_lower)
            if finding.budget.delta >= table.delta:  # else its bound is at another delta than those of the table
                table.epsilon_lower[row] = max(table.epsilon_lower[row], finding.epsilon_lower)
            table.lower[row] = max(table.lower[row], finding.parameter_lower)
            if finding.power is None:
                table.detectable[row] = math.inf
            else:
                table.detectable[row] = min(table.detectable[row], finding.power.detectable)
            table.verdict[row] = VERDICTS.index(finding.verdict)
            kept[k] = finding
        # The best ratio of a violated pair first; of budget 0 there is none, and it comes before all.
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = np.where(game.lines.budget > 0.0, game.lower / game.lines.budget, np.inf)
        others = np.flatnonzero((game.violated & ~game.broken) if not failure else np.zeros(len(asked), dtype=bool))
        for k in others[np.argsort(-excess[others], kind="stable")].tolist():
            if k not in kept and len(kept) < LARGEST_FINDINGS:
                kept[k] = self._of_table(k, int(asked[k]), "violated")
        broken = np.arange(len(asked)) if failure else np.flatnonzero(game.broken)
        for k in broken[: LARGEST_FINDINGS - len(kept)].tolist():
            finding = self._of_table(k, int(asked[k]), "error", failure or broken_text(self.name, game.failure(k)))
            kept[k] = finding if failure else dataclasses.replace(finding, traceback=game.failure(k).traceback)
        if len(asked) <= LARGEST_FINDINGS:  # few enough for a finding each
            for k in (k for k in range(len(asked)) if k not in kept):
                row = int(asked[k])
                finding = self._of_table(k, row, VERDICTS[int(table.verdict[row])])
                kept[k] = withheld(finding, reason) if reason else finding
        return tuple(kept[k] for k in sorted(kept))

    def _of_table(self, k: int, row: int, verdict: Any, message: str = "") -> Finding:
        """A finding that rests on the table: its one exact test, its rule on cells."""
        game, table = self.game, self.table
        pair = pair_at(self.pairs, table, row)
        claim = self.promise.for_pair(pair.x, pair.x_prime)
        common: dict[str, Any] = {
            **named(pair),
            "budget": claim.budget,
            "parameter": claim.parameter,
            "parameter_budget": claim.value,
            "error_share": float(game.level[k]),
            "samples": 2 * game.pilot + game.labelled,
        }
        if verdict == "error":
            return Finding(**common, verdict="error", message=message)
        rule, lower = game.rule(k), float(game.lower[k])
        correct, wrong = int(game.correct[k]), int(game.wrong[k])
        ratio = lower / claim.value if claim.value > 0.0 else (math.inf if verdict == "violated" else None)
        anchor, epsilon, delta = game.lines.line(game.record, k)
        # Of a claim that is one line the bound on its parameter is one on epsilon, at the delta of the finding.
        is_epsilon = has_own_line(claim) and claim.report_delta <= claim.delta
        epsilon_lower = max(float(game.epsilon_lower[k]), lower if is_epsilon else 0.0)
        return Finding(
            **common,
            verdict=verdict,
            epsilon_lower=epsilon_lower,
            parameter_lower=lower,
            ratio_lower=ratio,
            p_value=max(SMALLEST_P_VALUE, math.exp(float(game.log_p[k]))),
            power=Power(float(self.masses[k]), FOUND_WITH, float(table.detectable[row]), float(self.at_budget[k])),
            witness=WitnessRecord(
                description=rule.describe(*pair.said),
                rule={**rule.rule_dict(), "anchor": anchor},
                correct=correct,
                wrong=wrong,
                abstained=game.labelled - correct - wrong,
                line={"epsilon": epsilon, "delta": delta},
            ),
        )
