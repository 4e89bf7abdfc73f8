"""The audit of a universe: a table of all pairs from shared draws, then the most suspicious ones in depth.

Half of the error rate of the call is spent by `UniverseGame` on one exact test of every pair, the other half by a
`LabelGame` on the pairs that the table selects.

Validity: the label game takes fresh draws, from streams of its own, so its pairs may be selected by anything that was
drawn before. Both halves hold simultaneously (union bound), so a pair has the larger of its two bounds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.audits.findings import (
    FOUND_WITH,
    broken_text,
    change_sentence,
    changes_of,
    finding_of,
    named,
    withhold_all,
)
from dpaudit.audits.kept import KEPT_NOISE, SHARED_NOISE, withheld
from dpaudit.audits.many_pairs import LEAST_DRAWS, TABLE_SHARE, selected, table_draws
from dpaudit.campaign.campaign import Progress
from dpaudit.campaign.label_game import LabelGame
from dpaudit.campaign.schedules import Mode
from dpaudit.campaign.universe import UniverseGame
from dpaudit.exact.response import loss_on_claim
from dpaudit.privacy.claims import Claim, FloatArray
from dpaudit.privacy.inputs import Inputs, inputs_of
from dpaudit.privacy.pair_budgets import PairBudgets, budgets_of
from dpaudit.privacy.pairs import MANY_PAIRS, AllPairs, Pair
from dpaudit.results.model import DECIDING_FORM, VERDICTS, ZERO_BUDGET_LOSS, Finding, Power, WitnessRecord
from dpaudit.results.universe_table import NOT_ASKED, UniverseTable
from dpaudit.running.draws import Crew, Drawer
from dpaudit.running.playing import game_on, until_it_raises
from dpaudit.running.streams import RESTART, UNIVERSE_COINS, UNIVERSE_DRAWS, stream
from dpaudit.subjects.callables import CallError, Subject
from dpaudit.testing import binomial, learned_power
from dpaudit.testing.failures import Failure
from dpaudit.testing.hockey_stick import GUESSES_QUANTILE
from dpaudit.testing.lines_of_pairs import lines_of
from dpaudit.testing.order import Change

NAMED_SHARE = 1.0 / 3.0  # of them at most, that the table has named already, for tighter bounds
EXACT_LOSSES = 25  # values of a family at which the loss that they allow is computed
LARGEST_FINDINGS = 1_000  # findings in full; all pairs are in the table
SMALLEST_P_VALUE = 1e-300  # below which a p-value is given as this
# A note of a pair whose finding is that of the table.
NOT_IN_DEPTH = "This is what the table of all pairs says of it: its examination in depth gave nothing, as {why}"


def losses_found(game: UniverseGame, event_mass: float, probability: float) -> FloatArray:
    """The smallest loss of randomised-response type that the table finds of each pair, in nats; inf: none."""
    return game.losses(event_mass, probability, GUESSES_QUANTILE)


def losses_learned(game: UniverseGame, event_mass: float) -> FloatArray:
    """The smallest loss that the table is taken to find of an event in several pieces, to be learned; inf: none.

    An allowance: a rule of the table is fixed before its one test, and is taken to need as many times the draws of a
    witness as the rule of a fixed game does (`dpaudit.testing.learned_power`), which learns from fewer.
    """
    seen = game.labelled * min(event_mass / learned_power.event_mass_measured(), 1.0)
    harder = learned_power.FREE_LINES if game.lines.is_free else 1.0
    share = learned_power.worth(DECIDING_FORM, True, seen, harder) / seen
    if share * game.labelled < 2.0:
        return np.full(len(game.first), math.inf)
    return game.losses(event_mass, FOUND_WITH, GUESSES_QUANTILE, int(share * game.labelled))


def losses_at_budgets(budgets: PairBudgets, event_mass: float) -> FloatArray:
    """The largest loss of randomised-response type that the claim of each pair allows, in nats, shape (pairs,).

    Where a family of free lines has more than 25 values it is interpolated between as many.
    """
    losses = np.zeros(len(budgets.values))
    for k in np.unique(budgets.family).tolist():
        family, pairs = budgets.families[k], np.flatnonzero(budgets.family == k)
        values, place = np.unique(budgets.values[pairs], return_inverse=True)
        if family.anchored or family.family == "renyi":
            asked = values[values > 0.0]
            at = asked if len(asked) <= EXACT_LOSSES else np.geomspace(asked[0], asked[-1], EXACT_LOSSES)
            exact = [loss_on_claim(family.with_value(value), event_mass) for value in at.tolist()]
            found = np.interp(values, at, exact, left=0.0) if exact else np.zeros(1)
        else:
            epsilon, delta = family.lines(values, 0.0)
            at_cost = scipy.special.logit(binomial.largest_accuracy(epsilon, delta, event_mass))
            found = np.where(delta > 0.0, at_cost, epsilon)
        losses[pairs] = found[place.ravel()]
    return losses


@dataclasses.dataclass(frozen=True)
class _Deep:
    """What the depth says of a pair.

    `is_withheld`: outcomes on one of its inputs changed, in this game or before it, or the mechanism keeps its noise.
    `why_not` says why it has examined nothing, so that the table's test stands; else it is empty.
    """

    finding: Finding
    is_withheld: bool
    why_not: str = ""


@dataclasses.dataclass
class UniverseAudit:
    """One audit of a universe; `run` returns what `AuditResult` needs."""

    subject: Subject
    promise: Claim
    pairs: Sequence[Pair]
    samples: int
    mode: Mode
    confidence: float
    root: int
    crew: Crew
    event_mass: float
    inconclusive_factor: float
    ask_batches: Callable[[Any], tuple[Change | None, int]]
    ask_kept: Callable[[LabelGame, Sequence[Any], Collection[int]], tuple[dict[int, str], int]]
    on_progress: Callable[[Progress], None] | None = None
    runs: int = 0
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    changes: list[Change] = dataclasses.field(default_factory=list)  # of outcomes from call to call
    inputs_looked_at: int = 0  # for these
    kept: str = ""  # why nothing can be said of any pair, where the mechanism keeps its noise
    _at_budget: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(0))  # losses that are allowed, (asked,)
    _moved: Mapping[int, bool] = dataclasses.field(default_factory=dict)  # inputs whose first calls took randomness

    def run(self, restart: int) -> tuple[tuple[Finding, ...], UniverseTable]:
        """Draw, test all pairs, examine the most suspicious.

        Raises
        ------
        CallError
            If a vectorised call raises before the first counted draw: to be started again, one call a draw.
        """
        inputs = inputs_of(self.pairs)
        budgets = budgets_of(self.promise, self.pairs, inputs)
        asked = budgets.asked
        if not len(asked):
            return (), self._empty(inputs, budgets, None)
        lines = lines_of(budgets.of(asked))
        table = self._empty(inputs, budgets, None if lines.is_epsilon else np.zeros(len(budgets.values)))
        self._at_budget = losses_at_budgets(budgets.of(asked), self.event_mass)
        first, second = inputs.first[asked], inputs.second[asked]
        used = len(np.unique(np.concatenate([first, second])))
        draws = table_draws(self.samples, used, len(asked))
        self.crew.expected = draws * used
        error_rate = 1.0 - self.confidence
        drawer = Drawer(self.subject, inputs.data, self.root, UNIVERSE_DRAWS + restart, self.crew)
        self._moved = drawer.moved
        game = UniverseGame(
            first,
            second,
            lines,
            inputs=len(inputs.data),
            samples=draws,
            error_rate=TABLE_SHARE * error_rate,
            draw=drawer,
            coin=lambda: stream(self.root, UNIVERSE_COINS + restart),
        )
        game.start()
        self._tell(game, 0)
        failure, traceback = until_it_raises(game.play, self.subject)
        self.runs = game.runs
        if not (game.changes or failure):
            shared, more = self.ask_batches(inputs.data[int(first[0])])
            self.runs += more
            game.changes = {} if shared is None else dict.fromkeys(game.used.tolist(), shared)
        self._withhold(game, next(iter(game.changes.values()), None))
        table = self._filled(table, game, asked, failure)
        self._tell(game, game.labelled)
        depth = max(LEAST_DRAWS, self.samples - draws)
        chosen = np.empty(0, dtype=np.int64) if failure else self._selected(game)
        self.options = {
            "table_draws": draws,
            "table_labelled": game.labelled,
            "selected": len(chosen),
            "depth_samples": depth,
        }
        self.changes, self.inputs_looked_at = list(game.changes.values()), used
        deep = self._in_depth(inputs, asked, chosen, depth, restart, game.changes)
        if (self.changes and not game.changes) or self.kept:  # seen in depth alone: the table supposes it too
            game.withhold_all()
            table = self._filled(table, game, asked, failure)
        self.options["examined"] = sum(not one.why_not for one in deep.values())
        found = self._merged(table, game, asked, deep, failure)
        return tuple(dataclasses.replace(one, traceback=traceback) for one in found) if failure else found, table

    def _withhold(self, game: UniverseGame, change: Change | None) -> None:
        """Let a change of the outcomes of one input, if there is one, be said of all."""
        if change is not None:
            game.changes = dict.fromkeys(game.used.tolist(), change)
            game.withhold_all()

    def _empty(self, inputs: Inputs, budgets: PairBudgets, parameter_lower: FloatArray | None) -> UniverseTable:
        count, pairs = len(self.pairs), self.pairs
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

    def _filled(
        self, table: UniverseTable, game: UniverseGame, asked: NDArray[np.int64], failure: str
    ) -> UniverseTable:
        """The table with what the game found, in the rows of the asked pairs."""
        assert game.partition is not None
        detectable = losses_found(game, self.event_mass, FOUND_WITH)
        # Validity: what would have been found supposes that draws are independent.
        detectable = np.where(game.is_withheld, np.inf, detectable)
        table.detectable[asked] = detectable
        table.epsilon_lower[asked] = game.epsilon_lower
        table.lower[asked] = game.lower  # of a line of its own, the same
        table.log10_p_value[asked] = game.log_p / math.log(10.0)
        limit = np.where(self._at_budget > 0.0, self.inconclusive_factor * self._at_budget, ZERO_BUDGET_LOSS)
        # Up to `MANY_PAIRS` pairs are judged as pairs with games of their own are: by an event that has to be learned.
        judged = detectable
        if len(self.pairs) <= MANY_PAIRS:
            judged = np.maximum(detectable, losses_learned(game, self.event_mass))
        found_little = np.isinf(judged) | (judged > limit)
        code = np.where(found_little, VERDICTS.index("inconclusive"), VERDICTS.index("not_refuted"))
        code = np.where(game.violated, VERDICTS.index("violated"), code)
        table.verdict[asked] = np.where(game.broken | bool(failure), VERDICTS.index("error"), code)
        labelled = 0 if failure else game.labelled
        return dataclasses.replace(table, labelled=labelled, draws=game.samples, partition=game.partition.to_dict())

    def _selected(self, game: UniverseGame) -> NDArray[np.int64]:
        """Positions (among the asked) of the pairs to examine in depth: the least p-values, and a few violated ones."""
        order = np.lexsort((-game.merit, game.log_p))
        order = order[~game.broken[order]]
        is_violated = game.violated[order]
        most = selected(self.promise, len(game.first), self.mode, self.samples)
        named = order[is_violated][: int(NAMED_SHARE * most)]
        return np.concatenate([named, order[~is_violated][: most - len(named)]])

    def _in_depth(
        self,
        inputs: Inputs,
        asked: NDArray[np.int64],
        chosen: NDArray[np.int64],
        samples: int,
        restart: int,
        changes: Mapping[int, Change],
    ) -> dict[int, _Deep]:
        """The label game on the chosen pairs, on draws of its own, by position among the asked.

        `changes` are those of outcomes on an input before it.
        """
        if not len(chosen):
            return {}
        pairs = [self._pair(inputs, int(asked[k])) for k in chosen.tolist()]
        ends = np.stack([inputs.first[asked[chosen]], inputs.second[asked[chosen]]], axis=1)
        used, positions = np.unique(ends, return_inverse=True)
        data = [inputs.data[i] for i in used.tolist()]

        def new_game(restart: int) -> LabelGame:
            claims = [self.promise.for_pair(pair.x, pair.x_prime) for pair in pairs]
            games = [(int(i), int(j)) for i, j in positions.reshape(-1, 2)]
            sizes = samples, (1.0 - TABLE_SHARE) * (1.0 - self.confidence), self.mode
            return game_on(self.subject, data, claims, games, *sizes, root=self.root, restart=restart, crew=self.crew)

        game = new_game(restart)
        has_started = False

        def play() -> None:
            nonlocal game, has_started
            try:
                game.start()
            except CallError:
                # Validity: as in `dpaudit.audit`, no draw of this game was counted yet.
                if restart or self.subject.is_contained:
                    raise
                self.runs += game.runs
                self.subject = dataclasses.replace(self.subject, one_by_one=True)
                game = new_game(RESTART)
                game.start()
            has_started = True
            game.play(self.on_progress)

        failure, traceback = until_it_raises(play, self.subject)
        kept: dict[int, str] = {}
        if has_started and not failure:
            # The depth's own first calls are none of the mechanism's: what it keeps, it has drawn for the table.
            kept, more = self.ask_kept(game, data, [k for k, i in enumerate(used.tolist()) if self._moved.get(i)])
            self.runs += more
            self.kept = next((reason for reason in kept.values() if reason in (KEPT_NOISE, SHARED_NOISE)), "")
        withhold_all(game.pairs)
        found, looked_at = changes_of(game.pairs)
        self.changes, self.inputs_looked_at = self.changes + found, self.inputs_looked_at + looked_at
        self.runs += game.runs
        deep = {}
        of_pairs = zip(chosen.tolist(), pairs, game.pairs, ends.tolist(), strict=True)
        for place, (k, pair, pair_game, both) in enumerate(of_pairs):
            pair_game.change = pair_game.change or next((changes[i] for i in both if i in changes), None)
            if not has_started:  # it has neither rules nor a level
                pair_game.failure, pair_game.level = Failure(failure, traceback=traceback), 0.0
            said = "" if pair_game.change else failure
            labelled, name = game.labelled(pair_game), self.subject.name
            one = finding_of(pair, pair_game, labelled, name, said, self.event_mass, self.inconclusive_factor)
            is_over = one.verdict == "error" and bool(said or pair_game.is_broken)
            if one.verdict == "error" and not one.traceback:
                one = dataclasses.replace(one, traceback=traceback)
            if not has_started:
                one = dataclasses.replace(one, message=failure)
            if reason := kept.get(place, self.kept):
                one = withheld(one, reason)
            nothing = pair_game.change is not None or bool(reason)
            deep[int(k)] = _Deep(one, nothing, one.message if is_over else "")
        return deep

    def _merged(
        self,
        table: UniverseTable,
        game: UniverseGame,
        asked: NDArray[np.int64],
        deep: dict[int, _Deep],
        failure: str,
    ) -> tuple[Finding, ...]:
        """The findings in full, and the table's rows raised to what the depth found."""
        kept: dict[int, Finding] = {}
        for k, one in deep.items():
            row, finding, found = int(asked[k]), one.finding, one.finding
            if found.verdict == "error" and (one.why_not or game.violated[k]) and not one.is_withheld:
                # Its own test was fixed before the depth and is over: it stands, whatever the depth did.
                kept[k] = dataclasses.replace(
                    self._of_table(table, game, k, row, VERDICTS[int(table.verdict[row])]),
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
                finding = self._of_table(table, game, k, row, "violated" if game.violated[k] else finding.verdict)
                finding = dataclasses.replace(finding, notes=found.notes, keys=found.keys)
                if found.power is not None and finding.power is not None:
                    finding = dataclasses.replace(
                        finding, power=min(found.power, finding.power, key=lambda power: power.detectable)
                    )
            if finding.verdict != "error":  # each of the two tests has a bound on epsilon as well
                epsilon_lower = max(found.epsilon_lower, float(game.epsilon_lower[k]))
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
                kept[k] = self._of_table(table, game, k, int(asked[k]), "violated")
        broken = np.arange(len(asked)) if failure else np.flatnonzero(game.broken)
        for k in broken[: LARGEST_FINDINGS - len(kept)].tolist():
            finding = self._of_table(table, game, k, int(asked[k]), "error", failure or self._broken_text(game, k))
            kept[k] = finding if failure else dataclasses.replace(finding, traceback=game.failure(k).traceback)
        if len(asked) <= LARGEST_FINDINGS:  # few enough for a finding each
            reason = self.kept or next((change_sentence(change) for change in self.changes), "")
            for k in (k for k in range(len(asked)) if k not in kept):
                row = int(asked[k])
                finding = self._of_table(table, game, k, row, VERDICTS[int(table.verdict[row])])
                kept[k] = withheld(finding, reason) if reason else finding
        return tuple(kept[k] for k in sorted(kept))

    def _broken_text(self, game: UniverseGame, k: int) -> str:
        return broken_text(self.subject.name, game.failure(k))

    def _tell(self, game: UniverseGame, draws: int) -> None:
        if self.on_progress is None:
            return
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.nan_to_num(game.lower / game.lines.budget, nan=0.0, posinf=math.inf)
        self.on_progress(
            Progress(
                draws=draws,
                planned=game.labelled,
                runs=game.runs,
                pairs=len(game.first),
                violated=int(game.violated.sum()),
                largest_ratio=float(ratios.max()),
                largest_log_wealth=None,
                open_pairs=0 if draws else len(game.first),
            )
        )

    def _pair(self, inputs: Inputs | UniverseTable, row: int) -> Pair:
        """The pair of one row of the table."""
        if isinstance(self.pairs, AllPairs):
            return self.pairs.pair(int(inputs.first[row]), int(inputs.second[row]))
        return self.pairs[row]

    def _of_table(
        self, table: UniverseTable, game: UniverseGame, k: int, row: int, verdict: Any, message: str = ""
    ) -> Finding:
        """A finding that rests on the table: its one exact test, its rule on cells."""
        pair = self._pair(table, row)
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
        return Finding(
            **common,
            verdict=verdict,
            epsilon_lower=float(game.epsilon_lower[k]),
            parameter_lower=lower,
            ratio_lower=ratio,
            p_value=max(SMALLEST_P_VALUE, math.exp(float(game.log_p[k]))),
            power=Power(self.event_mass, FOUND_WITH, float(table.detectable[row]), float(self._at_budget[k])),
            witness=WitnessRecord(
                description=rule.describe(*pair.said),
                rule={"game": "guess", "anchor": anchor, **rule.to_dict()},
                correct=correct,
                wrong=wrong,
                abstained=game.labelled - correct - wrong,
                line={"epsilon": epsilon, "delta": delta},
            ),
        )
