"""The audit of a universe: a table of all pairs from shared draws, then the most suspicious ones in depth.

Half of the error rate of the call is spent by `UniverseGame` on one exact test of every pair, the other half by a
`LabelGame` on the pairs that the table selects, which looks once too, in every mode.

Validity: the label game takes fresh draws, from streams of its own, so its pairs may be selected by anything that was
drawn before. Both halves hold simultaneously (union bound), so a pair has the larger of its two bounds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.audits.findings import (
    change_sentence,
    changes_of,
    finding_of,
    withheld,
    withhold_all,
)
from dpaudit.audits.kept import KEPT_NOISE, SHARED_NOISE
from dpaudit.audits.many_pairs import LEAST_DRAWS, TABLE_SHARE, selected, table_draws
from dpaudit.audits.universe_findings import Deep, UniverseFindings, empty_table, losses_at_budgets, masses_of, pair_at
from dpaudit.campaign.campaign import Progress
from dpaudit.campaign.label_game import LabelGame
from dpaudit.campaign.schedules import Mode
from dpaudit.campaign.universe import UniverseGame
from dpaudit.inference.pair_lines import PairLines
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.inputs import Inputs, inputs_of
from dpaudit.privacy.pair_budgets import budgets_of
from dpaudit.privacy.pairs import Pair
from dpaudit.results.model import Finding
from dpaudit.results.universe_table import UniverseTable
from dpaudit.running.draws import Crew, Drawer
from dpaudit.running.playing import game_on, until_it_raises
from dpaudit.running.streams import RESTART, UNIVERSE_COINS, UNIVERSE_DRAWS, stream
from dpaudit.subjects.callables import CallError, Subject
from dpaudit.testing.failures import Failure
from dpaudit.testing.order import Change

NAMED_SHARE = 1.0 / 3.0  # of them at most, that the table has named already, for tighter bounds


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
    ask_batches: Callable[[Any, int | None, bool], tuple[Change | None, int]]
    ask_kept: Callable[[LabelGame, Sequence[Any], Collection[int]], tuple[dict[int, str], int]]
    on_progress: Callable[[Progress], None] | None = None
    runs: int = 0
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    changes: list[Change] = dataclasses.field(default_factory=list)  # of outcomes from call to call
    inputs_looked_at: int = 0  # for these
    kept: str = ""  # why nothing can be said of any pair, where the mechanism keeps its noise
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
            return (), empty_table(self.pairs, inputs, budgets)
        lines = PairLines(budgets.of(asked))
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
        lower = None if lines.is_epsilon else np.zeros(len(self.pairs))
        masses = masses_of(budgets.of(asked), self.event_mass)
        said = UniverseFindings(
            self.promise,
            self.pairs,
            self.subject.name,
            empty_table(self.pairs, inputs, budgets, lower),
            game,
            asked,
            losses_at_budgets(budgets.of(asked), masses),
            masses,
            self.inconclusive_factor,
        )
        game.start()
        self._tell(game, 0, len(game.first))
        failure, traceback = until_it_raises(game.play, self.subject)
        self.runs = game.runs
        if not (game.changes or failure):
            shared, more = self.ask_batches(inputs.data[int(first[0])], None, bool(game.violated.any()))
            self.runs += more
            game.changes = {} if shared is None else dict.fromkeys(game.used.tolist(), shared)
        if game.changes:  # of one input: it is said of all
            game.changes = dict.fromkeys(game.used.tolist(), next(iter(game.changes.values())))
            game.withhold_all()
        said.fill(failure)
        depth = max(LEAST_DRAWS, self.samples - draws)
        chosen = np.empty(0, dtype=np.int64) if failure else self._selected(game)
        self._tell(game, game.labelled, len(chosen))  # those are still open: how long they take is not known yet
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
            said.fill(failure)
        self.options["examined"] = sum(not one.why_not for one in deep.values())
        reason = self.kept or next((change_sentence(change) for change in self.changes), "")
        found = said.merged(deep, failure, reason)
        return tuple(dataclasses.replace(one, traceback=traceback) for one in found) if failure else found, said.table

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
    ) -> dict[int, Deep]:
        """The label game on the chosen pairs, on draws of its own, by position among the asked.

        `changes` are those of outcomes on an input before it.
        """
        if not len(chosen):
            return {}
        pairs = [pair_at(self.pairs, inputs, int(asked[k])) for k in chosen.tolist()]
        ends = np.stack([inputs.first[asked[chosen]], inputs.second[asked[chosen]]], axis=1)
        used, positions = np.unique(ends, return_inverse=True)
        data = [inputs.data[i] for i in used.tolist()]

        def new_game(restart: int) -> LabelGame:
            claims = [self.promise.for_pair(pair.x, pair.x_prime) for pair in pairs]
            games = [(int(i), int(j)) for i, j in positions.reshape(-1, 2)]
            sizes = samples, (1.0 - TABLE_SHARE) * (1.0 - self.confidence)
            # One look: sequential games of 48 pairs took ten times the time, and called as many pairs violated.
            return game_on(
                self.subject, data, claims, games, *sizes, "fixed", root=self.root, restart=restart, crew=self.crew
            )

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
            deep[int(k)] = Deep(one, nothing, one.message if is_over else "")
        return deep

    def _tell(self, game: UniverseGame, draws: int, open_pairs: int) -> None:
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
                open_pairs=open_pairs,
            )
        )
