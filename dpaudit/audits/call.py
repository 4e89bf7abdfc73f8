"""One audit, once its pairs are chosen: games of single pairs or a table of all, the stages behind, and the result."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

from dpaudit.audits.kept import why_kept
from dpaudit.audits.many_pairs import Playing, playing_of
from dpaudit.audits.options import BAND_SHARE, Options
from dpaudit.audits.stages import ChosenPairs, Standing, ask_batches, play_stages
from dpaudit.audits.universe_auditing import UniverseAudit
from dpaudit.campaign.campaign import Progress
from dpaudit.campaign.label_game import LabelGame
from dpaudit.campaign.schedules import Mode
from dpaudit.environment import environment
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.inputs import distinct_inputs, inputs_apart
from dpaudit.privacy.neighbours import steps_note
from dpaudit.privacy.pairs import MANY_PAIRS, AllPairs, Pair
from dpaudit.results.model import AuditResult, Finding, to_json
from dpaudit.running.checkpoint import PLAYED
from dpaudit.running.digests import digest
from dpaudit.running.draws import Crew
from dpaudit.running.playing import game_on, until_it_raises
from dpaudit.running.streams import RESTART
from dpaudit.subjects.callables import CallError, Subject
from dpaudit.subjects.isolation import OutOfPatience
from dpaudit.testing.order import Change
from dpaudit.testing.pools import pool_pairs

IDS_SHOWN = 5  # pairs that a checkpoint names


@dataclasses.dataclass
class Call:
    """One audit of pairs that were chosen, with who draws for it: see `dpaudit.audit`."""

    subject: Subject
    promise: Claim
    chosen: Sequence[Pair]
    options: Options
    root: int
    store: str | os.PathLike[str] | None
    crew: Crew
    tell: Callable[[Progress], None] | None
    searched: ChosenPairs | None = None
    asked_mode: dict[str, Mode] = dataclasses.field(default_factory=dict)  # where another one was asked for

    @functools.cached_property
    def playing(self) -> Playing:
        """What its pairs are played as."""
        asked = self.options
        needs_games = self.store is not None or asked.band or (bool(asked.severity) and asked.mode != "fixed")
        return playing_of(
            self.subject, self.promise, self.chosen, asked.mode, asked.samples, pool=asked.pool, needs_games=needs_games
        )

    def header(self) -> dict[str, Any]:
        """Which audit a checkpoint is of: whatever its draws and its result depend on."""
        subject, chosen = self.subject, self.chosen
        inputs: Any = (chosen.ids, chosen.inputs) if isinstance(chosen, AllPairs) else list(chosen)
        replayable = "replayable" if subject.replayable else "not replayable"
        more = f" and {len(chosen) - IDS_SHOWN:,} more" if len(chosen) > IDS_SHOWN else ""
        return {
            "claim": str(self.promise),
            "promise": digest(self.promise),
            "pairs": f"{len(chosen)} ({digest(inputs)})",
            "shown": {"pairs": ", ".join(chosen[k].id for k in range(min(len(chosen), IDS_SHOWN))) + more},
            "seed": self.root,
            "subject": subject.name,
            "fingerprint": f"{subject.fingerprint} {subject.interface}, {replayable}",
            **to_json(self.options.said),
            "mode": self.options.mode,
            PLAYED: str(self.playing),
            "confidence": float(self.options.confidence),
            "floating_point": None if self.options.floating_point is None else bool(self.options.floating_point),
            **{name: environment()[name] for name in ("dpaudit", "numpy", "scipy", "platform")},
        }

    def run(self) -> AuditResult:
        """Play the pairs, then the stages."""
        self._take_mode(self.playing.mode)
        at = self._universe() if self.playing.is_universe else self._pairs()
        play_stages(at)
        return self._result(at)

    def _take_mode(self, mode: Mode) -> None:
        if mode != self.options.mode:
            self.asked_mode = {"asked_mode": self.options.mode}
            self.options = dataclasses.replace(self.options, mode=mode)

    def _standing(self, **played: Any) -> Standing:
        own = (self.subject, self.promise, self.chosen, self.options, self.root, self.crew, self.searched)
        return Standing(*own, **played)

    def _universe(self) -> Standing:
        subject = self.subject
        universe = UniverseAudit(
            subject,
            self.promise,
            self.chosen,
            self.options.samples,
            self.options.mode,
            self.options.confidence,
            self.root,
            self.crew,
            self.options.event_mass,
            self.options.inconclusive_factor,
            lambda x, most, is_violated: self._ask_batches(self.subject, x, self.root, most, is_violated),
            lambda game, data, earlier: why_kept(game, self.subject, data, self.root, earlier),
            self.tell,
        )
        try:
            found, table = universe.run(0)
        except CallError:  # as for the label game below: no draw was counted yet
            if subject.is_contained:  # its calls have to be in one random order, of all inputs: games of their own
                if len(self.chosen) > MANY_PAIRS:
                    raise
                self.subject = dataclasses.replace(subject, one_by_one=True)
                self._take_mode(self.asked_mode.get("asked_mode", self.options.mode))
                self.asked_mode = {}
                return self._pairs()
            universe.subject = self.subject = dataclasses.replace(subject, one_by_one=True)
            found, table = universe.run(RESTART)
        self.subject = universe.subject
        return self._standing(
            universe=table,
            of_universe=found,
            report_delta=table.delta,
            changes=(universe.changes, universe.inputs_looked_at),
            inputs=universe.inputs_looked_at,
            runs=universe.runs,
            said=universe.options,
        )

    def _pairs(self) -> Standing:
        """The games of the pairs of which the claim asks anything."""
        claims = [self.promise.for_pair(pair.x, pair.x_prime) for pair in self.chosen]
        asked = [k for k, claim in enumerate(claims) if not claim.is_vacuous]
        pairs, asked_claims = [self.chosen[k] for k in asked], [claims[k] for k in asked]
        data, positions = distinct_inputs(pairs)
        self.crew.expected = self.options.samples * len(data)
        played: dict[str, Any] = {}
        if asked and self.store is not None:
            played = self._accumulated(pairs, asked_claims)
        elif asked:
            played = self._labelled(pairs, asked_claims, data, positions)
        return self._standing(
            pairs=pairs,
            claims=asked_claims,
            not_asked=tuple(pair.id for pair, claim in zip(self.chosen, claims, strict=True) if claim.is_vacuous),
            report_delta=max((claim.report_delta for claim in asked_claims), default=self.promise.report_delta),
            positions=positions,
            inputs=len(data),
            **played,
        )

    def _labelled(
        self, pairs: Sequence[Pair], claims: Sequence[Claim], data: Sequence[Any], positions: Sequence[tuple[int, int]]
    ) -> dict[str, Any]:
        """The label game on the pairs that are asked; a pool is tested at the largest of its budgets."""
        pooling = pool_pairs(self.subject, data, positions, claims, self.options.pool)
        of_games = [max((claims[k] for k in group), key=lambda claim: claim.value) for group in pooling.groups]

        def new_game(restart: int) -> LabelGame:
            subject, inputs, games = self.subject, data, pooling.games
            if subject.draws_together:
                # Validity: where an outcome may depend on when a call is made, pairs share no draws: then the labels of
                # the slots of each pair are fair coins given everything else (`dpaudit.subjects.isolation.subject`).
                inputs, apart = inputs_apart(pairs)
                games = pooling.placed(apart)
            error_rate = (1.0 - self.options.confidence) * (1.0 - BAND_SHARE if self.options.band else 1.0)
            sizes = self.options.samples, error_rate, self.options.mode
            return game_on(subject, inputs, of_games, games, *sizes, root=self.root, restart=restart, crew=self.crew)

        game = new_game(0)
        try:
            game.start()
        except OutOfPatience:
            raise
        except CallError:
            # Validity: a vectorised call that raises is one observation of a call, not of `size` draws. No draw was
            # counted yet, so the audit may start again, on fresh streams and with one call a draw, where raising is an
            # outcome like any other.
            self.subject = dataclasses.replace(self.subject, one_by_one=True)
            game = new_game(RESTART)
            game.start()
        if self.tell is not None:  # the only round of a fixed audit may be long
            self.tell(game.progress())
        failure, traceback = until_it_raises(lambda: game.play(self.tell), self.subject)
        for pair in game.pairs:
            pair.is_fair = self._has_fair_labels(game, data)
        kept, more = why_kept(game, self.subject, data, self.root)
        return {
            "games": game.pairs,
            "labelled": [game.labelled(pair) for pair in game.pairs],
            "groups": pooling.groups,
            "runs": game.runs + more,
            "failure": failure,
            "traceback": traceback,
            "said": pooling.options,
            "kept": kept,
            "shown": game.shown,
        }

    def _has_fair_labels(self, game: LabelGame, data: Sequence[Any]) -> bool:
        """Whether a draw's label is a fair coin given all that came before, whatever calls remember of each other.

        All calls of a round are made in one random order, and pairs share no draws, or there is one pair: see
        `dpaudit.subjects.isolation.subject`. Then each factor of a bet has mean 1 at most given the past, where each
        call keeps the claim given what came before it. (Guesses of a fixed test are counted: how many there are may
        depend on which were right. A round that was interrupted goes on with what was left of it.)
        """
        subject = self.subject
        if self.options.mode == "fixed" or subject.is_vectorised:
            return False
        if subject.draws_together:
            return True
        is_one_pair = len(game.pairs) == 1 and len(data) == 2 and data[0] is not data[1]
        is_here = self.crew.workers is None and not self.crew.found
        return is_one_pair and is_here and subject.makes_calls_one_by_one(data)

    def _accumulated(self, pairs: Sequence[Pair], claims: Sequence[Claim]) -> dict[str, Any]:
        """One night of the store's evidence on the pairs that are asked."""
        from dpaudit.running.nights import AccumulatingAudit  # few audits need it, and it takes long to import
        from dpaudit.running.store import Store

        assert self.store is not None
        with Store.at(self.store) as opened:
            night = AccumulatingAudit(
                opened,
                self.subject,
                self.promise,
                claims,
                pairs,
                samples=self.options.samples,
                mode=self.options.mode,
                confidence=self.options.confidence,
                seed=self.root,
                crew=self.crew,
                ask_batches=self._ask_batches,
            ).play(self.tell)
        self.subject = night.subject
        return {
            "games": night.games,
            "labelled": night.samples,
            "groups": [(k,) for k in range(len(pairs))],
            "runs": night.runs,
            "failure": night.failure,
            "traceback": night.traceback,
            "said": {"store": os.fspath(self.store), **night.options},
            "night": night.options["night"],
            "went_on": night.went_on,
        }

    def _ask_batches(
        self, subject: Subject, x: Any, seed: int, most: int | None, is_violated: bool
    ) -> tuple[Change | None, int]:
        return ask_batches(subject, x, seed, most, is_violated, self.options, self.crew)

    def _result(self, at: Standing) -> AuditResult:
        return AuditResult(
            claim=str(self.promise),
            confidence=self.options.confidence,
            mode=self.options.mode,
            seed=self.root,
            replayable=self.subject.replayable,
            findings=tuple(map(self._explained, at.findings)),
            not_asked=at.not_asked,
            report_delta=at.report_delta,
            samples=at.runs,
            seconds=0.0,
            subject=self.subject.describe(),
            environment=environment(),
            options={**self.options.said, **self.asked_mode, **at.said},
            floating_point=at.floating_point,
            universe=at.universe,
            side_findings=tuple(at.beside),
            trade_off=at.trade_off,
        )

    def _explained(self, finding: Finding) -> Finding:
        """A finding with the relation of its pair; of calls that broke, with what they were passed as randomness."""
        if finding.verdict == "error":
            return dataclasses.replace(finding, message=self.subject.with_passed(finding.message))
        lower = finding.parameter_lower if finding.verdict == "violated" else None
        note = steps_note(self.promise, finding.x, finding.x_prime, lower)
        return dataclasses.replace(finding, notes=(*finding.notes, note)) if note else finding
