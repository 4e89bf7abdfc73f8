"""The audit of an all-pairs table: a table of all pairs from shared draws, then the most suspicious ones in depth.

Half of the error rate of the call is spent by `AllPairsGame` on one exact test of every pair, the other half by a
`LabelGame` on the pairs that the table selects, which looks once too, in every mode. The result has one table of all
pairs, and findings in full of some: of a pair that was examined in depth the stronger one of its two.

Validity: the label game takes fresh draws, from streams of its own, so its pairs may be selected by anything that was
drawn before. Both halves hold simultaneously (union bound), so a pair has the larger of its two bounds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.audits.audit_run import AuditRun
from dpaudit.audits.findings import changes_of, finding_of, withheld, withhold_all
from dpaudit.audits.many_pairs import MIN_DRAWS, TABLE_SHARE, selected, table_draws
from dpaudit.audits.memory_checks import KEPT_NOISE, SHARED_NOISE, why_kept
from dpaudit.audits.power import FOUND_WITH
from dpaudit.campaign.all_pairs import AllPairsGame
from dpaudit.campaign.campaign import Progress
from dpaudit.campaign.label_game import LabelGame
from dpaudit.exact.response import event_masses, loss_on_claim
from dpaudit.inference.binomial import largest_accuracy
from dpaudit.inference.failures import Failure
from dpaudit.inference.pair_lines import PairLines
from dpaudit.privacy.claims import FloatArray
from dpaudit.privacy.inputs import Inputs, inputs_of
from dpaudit.privacy.pair_budgets import PairBudgets, budgets_of, has_own_line
from dpaudit.privacy.pairs import MANY_PAIRS, AllPairs, Pair
from dpaudit.results.all_pairs_table import NOT_ASKED, AllPairsTable
from dpaudit.results.model import VERDICTS, ZERO_BUDGET_LOSS, Finding, Power
from dpaudit.running.label_games import ask_batches, game_on, start_or_restart, until_it_raises
from dpaudit.running.streams import ALL_PAIRS_COINS, ALL_PAIRS_DRAWS, stream
from dpaudit.subjects.callables import Subject

EXACT_LOSSES = 25  # values of a family at which the loss that they allow is computed: a bound on time
MAX_FINDINGS = 1_000  # findings in full; all pairs are in the table
# A note of a pair whose finding is that of the table.
NOT_IN_DEPTH = "This is what the table of all pairs says of it: its examination in depth gave nothing, as {why}"
IntArray = NDArray[np.int64]


@dataclasses.dataclass
class AllPairsAudit:
    """One audit of an all-pairs table, which adds to the state of its run what it finds."""

    run: AuditRun
    withheld: str = ""  # why nothing can be said of any pair, where the mechanism keeps its noise
    failure: str = ""  # what ended the table before its time
    traceback: str = ""
    _deep: dict[int, Finding] = dataclasses.field(default_factory=dict)  # of the depth, by position among the asked
    _why_not: dict[int, Failure] = dataclasses.field(default_factory=dict)  # why the depth says nothing of a pair

    def play(self, restart: int) -> None:
        """Draw, test all pairs, examine the most suspicious.

        `CallError` if a vectorised call raises before the first counted draw: to be started again, one call a draw.
        """
        run, options = self.run, self.run.options
        inputs = inputs_of(run.chosen)
        budgets = budgets_of(run.promise, run.chosen, inputs)
        asked, table = budgets.asked, empty_table(run.chosen, inputs, budgets)
        if not len(asked):
            run.table, run.report_delta = table, table.delta
            return
        first, second = inputs.first[asked], inputs.second[asked]
        used = len(np.unique(np.concatenate([first, second])))
        draws = table_draws(options.samples, used, len(asked))
        run.worker_pool.expected = draws * used
        moved: dict[int, bool] = {}
        game = AllPairsGame(
            first,
            second,
            PairLines(budgets.of(asked)),
            inputs=len(inputs.data),
            samples=draws,
            error_rate=TABLE_SHARE * (1.0 - options.confidence),
            draw=run.worker_pool.drawer(run.subject, inputs.data, run.root, ALL_PAIRS_DRAWS + restart, moved),
            coin=lambda: stream(run.root, ALL_PAIRS_COINS + restart),
        )
        game.start()
        self._tell(game, 0, len(first))
        self.failure, self.traceback = until_it_raises(game.play, run.subject)
        run.runs = game.runs
        if not (game.changes or self.failure):
            # Validity: counted draws choose the input and the rule, and draws of their own are asked.
            clearest = int(np.argmin(game.log_p))
            x, is_violated = inputs.data[int(first[clearest])], bool(game.violated.any())
            sizes = options.samples, None, is_violated, game.rule(clearest) if is_violated else None
            shared, more = ask_batches(run.subject, x, run.root, run.worker_pool, *sizes)
            run.runs += more
            game.changes = {} if shared is None else {int(first[clearest]): shared}
        # What changes on one input is said of all; nothing is left to examine then.
        run.changes, run.inputs = [*game.changes.values()][:1] * used, used
        depth = max(MIN_DRAWS, options.samples - draws)
        chosen = np.empty(0, dtype=np.int64) if self.failure or game.changes else self._selected(game)
        self._tell(game, game.labelled, len(chosen))  # those are still open: how long they take is not known yet
        if len(chosen):
            self._examine(inputs, asked[chosen], chosen.tolist(), depth, restart, moved)
        run.said |= {"table_draws": draws, "table_labelled": game.labelled, "selected": len(chosen)}
        run.said |= {"depth_samples": depth, "examined": len(self._deep)}
        if run.changes or self.withheld:  # also where the depth alone has seen it: the table supposes it too
            game.changes = game.changes or dict(enumerate(run.changes))
            game.withhold(slice(None))
        table = dataclasses.replace(
            table,
            labelled=0 if self.failure else game.labelled,
            draws=draws,
            partition=game.partition.to_dict(),
            parameter_lower=None if game.lines.is_epsilon else np.zeros(len(table)),
        )
        run.table, run.report_delta = table, table.delta
        run.findings = self._findings(game, table, asked, budgets.of(asked))

    def _selected(self, game: AllPairsGame) -> IntArray:
        """Positions (among the asked) of the pairs to examine in depth: the least p-values, and some violated ones."""
        order = np.lexsort((-game.merit, game.log_p))
        order = order[~game.broken[order]]
        is_violated = game.violated[order]
        most = selected(self.run.promise, len(game.first))
        named = order[is_violated][: most // 3]  # for tighter bounds
        return np.concatenate([named, order[~is_violated][: most - len(named)]])

    def _examine(
        self, inputs: Inputs, rows: IntArray, chosen: list[int], samples: int, restart: int, moved: Mapping[int, bool]
    ) -> None:
        """Play the label game on the chosen pairs, on draws of its own.

        `rows` are theirs in the table; `moved` says on which inputs the first calls took randomness.
        """
        run = self.run
        pairs = [run.chosen[row] for row in rows.tolist()]
        claims = [run.promise.for_pair(pair.x, pair.x_prime) for pair in pairs]
        used, positions = np.unique([inputs.first[rows], inputs.second[rows]], return_inverse=True)
        games = [(int(i), int(j)) for i, j in positions.reshape(2, -1).T]
        data = [inputs.data[i] for i in used.tolist()]
        # One look: sequential games of 48 pairs took ten times the time, and called as many pairs violated.
        sizes = samples, (1.0 - TABLE_SHARE) * (1.0 - run.options.confidence)
        begun: list[LabelGame] = []
        of_depth: dict[int, bool] = {}

        def begin(subject: Subject, restart: int) -> None:
            run.subject = subject
            # The depth's own first calls are none of the mechanism's: what it keeps, it has drawn for the table.
            of_depth.clear()
            of_depth.update({k: True for k, i in enumerate(used.tolist()) if moved.get(i)})
            game = game_on(
                subject, data, claims, games, *sizes, "fixed",
                root=run.root, restart=restart, worker_pool=run.worker_pool, moved=of_depth,
            )  # fmt: skip
            begun.append(game)
            game.start()

        def start() -> None:
            if restart or run.subject.is_contained:
                begin(run.subject, restart)
            else:
                start_or_restart(begin, run.subject)

        failure, traceback = until_it_raises(start, run.subject)
        game, withheld_of = begun[-1], dict[int, str]()
        if not failure:
            failure, traceback = until_it_raises(lambda: game.play(run.tell), run.subject)
        if not failure:
            withheld_of, more = why_kept(run.subject, run.root, game, data, of_depth)
            run.runs += more
            reasons = (reason for reason in withheld_of.values() if reason in (KEPT_NOISE, SHARED_NOISE))
            self.withheld = next(reasons, "")
        withhold_all(game.pairs)
        found, looked_at = changes_of(game.pairs)
        run.changes, run.inputs = [*run.changes, *found], run.inputs + looked_at
        run.runs += sum(one.runs for one in begun)
        for place, (k, pair, pair_game) in enumerate(zip(chosen, pairs, game.pairs, strict=True)):
            if failure:  # its one look is behind its last draw
                self._why_not[k] = Failure(failure, traceback=traceback)
                continue
            one = finding_of(run, pair, pair_game, game.labelled(pair_game))
            if pair_game.is_broken:
                self._why_not[k] = Failure(one.message, traceback=one.traceback)
                continue
            reason = withheld_of.get(place, self.withheld)
            self._deep[k] = withheld(one, reason) if reason else one

    def _findings(
        self, game: AllPairsGame, table: AllPairsTable, asked: IntArray, budgets: PairBudgets
    ) -> tuple[Finding, ...]:
        """Fill the rows of the asked pairs in the table; give the findings in full."""
        run, options = self.run, self.run.options
        masses, at_budget = power_at_budgets(budgets, options.event_mass)
        # Validity: what would have been found supposes that draws are independent.
        is_withheld = bool(run.changes or self.withheld)
        detectable = np.where(is_withheld, np.inf, game.losses(masses, FOUND_WITH))
        # Up to `MANY_PAIRS` pairs are judged as pairs with games of their own are: by an event that has to be learned.
        learned = game.losses(masses, FOUND_WITH, is_learned=True) if len(table) <= MANY_PAIRS else detectable
        judged = np.maximum(detectable, learned)
        limit = np.where(at_budget > 0.0, options.inconclusive_factor * at_budget, ZERO_BUDGET_LOSS)
        found_enough = np.isfinite(judged) & (judged <= limit)
        code = np.where(found_enough, VERDICTS.index("not_refuted"), VERDICTS.index("inconclusive"))
        code = np.where(game.violated, VERDICTS.index("violated"), code)
        code = np.where(game.broken | bool(self.failure), VERDICTS.index("error"), code)
        table.lower[asked], table.epsilon_lower[asked] = game.lower, game.epsilon_lower
        table.log10_p_value[asked], table.detectable[asked] = game.log_p / math.log(10.0), detectable
        table.verdict[asked] = code
        findings = []
        for k in self._in_full(game, code):
            pair = run.chosen[int(asked[k])]
            one = game.game(k, run.promise.for_pair(pair.x, pair.x_prime))
            one.failure = Failure("", traceback=self.traceback) if self.failure else one.failure
            power = Power(float(masses[k]), FOUND_WITH, float(detectable[k]), float(at_budget[k]))
            finding = finding_of(run, pair, one, 2 * game.pilot + game.labelled, power=power)
            finding = dataclasses.replace(finding, message=self.failure or finding.message)
            if self.withheld:
                finding = withheld(finding, self.withheld)
            elif finding.power is not None:
                finding = dataclasses.replace(finding, verdict=VERDICTS[int(code[k])])
            findings.append(self._merged(k, finding))
            _note(table, int(asked[k]), findings[-1])
        return tuple(findings)

    def _in_full(self, game: AllPairsGame, code: IntArray) -> list[int]:
        """The pairs that have a finding: all, or of many those of the depth, then violated ones, then broken ones."""
        rank = np.where(game.violated, 1, np.where(code == VERDICTS.index("error"), 2, 3))
        rank[[*self._deep, *self._why_not]] = 0
        order = np.lexsort((-game.ratios, rank))
        if len(order) > MAX_FINDINGS:
            order = order[rank[order] < 3]
        return sorted(order[:MAX_FINDINGS].tolist())

    def _merged(self, k: int, table: Finding) -> Finding:
        """The finding of a pair by the table and by the depth: its two tests hold together."""
        deep, why_not = self._deep.get(k), self._why_not.get(k)
        if deep is not None and deep.verdict == "error" and table.verdict == "violated":
            why_not = Failure(deep.message, traceback=deep.traceback)
        if why_not is not None and table.power is not None:
            # The test of the table was fixed before the depth and is over: it stands, whatever the depth did.
            notes = (NOT_IN_DEPTH.format(why=why_not.text),)
            return dataclasses.replace(table, notes=notes, traceback=why_not.traceback)
        if deep is None or deep.verdict == "error" or deep.power is None or table.power is None:
            return deep or table
        return dataclasses.replace(
            max(deep, table, key=lambda one: one.parameter_lower),
            verdict=min(deep.verdict, table.verdict, key=("violated", "not_refuted", "inconclusive").index),
            power=min(deep.power, table.power, key=lambda power: power.detectable),
            epsilon_lower=max(deep.epsilon_lower, table.epsilon_lower),
            notes=deep.notes,
            keys=deep.keys,
        )

    def _tell(self, game: AllPairsGame, draws: int, open_pairs: int) -> None:
        if self.run.tell is not None:
            figures = int(game.violated.sum()), float(game.ratios.max()), None, open_pairs
            self.run.tell(Progress(draws, game.labelled, game.runs, len(game.first), *figures))


def power_at_budgets(budgets: PairBudgets, event_mass: float) -> tuple[FloatArray, FloatArray]:
    """The mass of the event that power is stated for, of each pair, and the largest loss inside it that is allowed.

    Masses are those of `exact.response.event_masses`; pairs of a family of free lines have the largest of theirs. The
    loss is of randomised-response type, in nats; where a family has more than 25 values it is interpolated between as
    many. Both are of shape (pairs,).
    """
    masses, losses = np.zeros((2, len(budgets.values)))
    for k in np.unique(budgets.family).tolist():
        family, pairs = budgets.families[k], budgets.family == k
        values, deltas = budgets.values[pairs], budgets.deltas[pairs]
        of_pairs = event_masses(family, values, deltas, event_mass)
        masses[pairs] = of_pairs = np.full_like(of_pairs, of_pairs.max()) if family.anchored else of_pairs
        if family.is_one_line:
            is_own = has_own_line(family)
            lines = [(values, deltas)] if is_own else [own.lines(values, 0.0) for own in family.directions]
            losses[pairs] = np.min(
                [np.where(d > 0.0, scipy.special.logit(largest_accuracy(e, d, of_pairs)), e) for e, d in lines], axis=0
            )
            continue
        at = np.unique(values[values > 0.0])
        at = at if len(at) <= EXACT_LOSSES else np.geomspace(at[0], at[-1], EXACT_LOSSES)
        exact = [loss_on_claim(family.with_value(value), float(of_pairs[0])) for value in at.tolist()]
        losses[pairs] = np.interp(values, at, exact, left=0.0) if exact else 0.0
    return masses, losses


def empty_table(pairs: Sequence[Pair], inputs: Inputs, budgets: PairBudgets) -> AllPairsTable:
    """The table of pairs of which nothing has been asked yet."""
    own = None if isinstance(pairs, AllPairs) else tuple(pair.id for pair in pairs)
    ids, ends = inputs.ids, zip(inputs.first.tolist(), inputs.second.tolist(), strict=True)
    lower, log10_p_value = np.zeros((2, len(pairs)))
    verdict, detectable = np.full(len(pairs), NOT_ASKED, dtype=np.int8), np.full(len(pairs), np.inf)
    columns = budgets.values, lower, log10_p_value, verdict, detectable
    return AllPairsTable(
        ids,
        inputs.first,
        inputs.second,
        *columns,
        budgets.report_delta,
        labelled=0,
        draws=0,
        pair_ids=None if own is None or own == tuple(f"{ids[i]}|{ids[j]}" for i, j in ends) else own,
        parameter=budgets.parameter,
    )


def _note(table: AllPairsTable, row: int, finding: Finding) -> None:
    """Let a row of the table say what the finding of its pair does."""
    table.verdict[row] = VERDICTS.index(finding.verdict)
    table.lower[row] = finding.parameter_lower
    if finding.budget.delta >= table.delta:  # else its bound is at another delta than those of the table
        table.epsilon_lower[row] = finding.epsilon_lower
    table.detectable[row] = math.inf if finding.power is None else finding.power.detectable
    if finding.power is None:
        table.epsilon_lower[row] = table.log10_p_value[row] = 0.0
