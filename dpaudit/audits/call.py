"""One audit, once its pairs are chosen: a universe or single pairs, the checks beside them, and the result."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.audits import low_bits as doubles
from dpaudit.audits import severity
from dpaudit.audits.claim_metadata import claim_metadata
from dpaudit.audits.findings import changes_of, finding_of, findings_of_pool, order_finding, with_controls, withhold_all
from dpaudit.audits.kept import KEPT_NOISE as KEPT
from dpaudit.audits.kept import OTHERS, SHARED_NOISE, differs_in_others, keeps_noise, spent, withheld
from dpaudit.audits.many_pairs import Playing, playing_of
from dpaudit.audits.options import BAND_SHARE, Options
from dpaudit.audits.universe_auditing import UniverseAudit
from dpaudit.campaign.campaign import Progress
from dpaudit.campaign.label_game import LabelGame
from dpaudit.campaign.schedules import Mode
from dpaudit.environment import environment
from dpaudit.errors import UsageError
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.inputs import distinct_inputs, inputs_apart, is_same_input
from dpaudit.privacy.neighbours import steps_note
from dpaudit.privacy.pairs import MANY_PAIRS, AllPairs, Pair
from dpaudit.reading.outcomes import Outcomes
from dpaudit.results.model import VERDICTS, AuditResult, Finding, FloatingPointFinding, Severity, SideFinding, to_json
from dpaudit.results.trade_off import TradeOffBand
from dpaudit.results.universe_table import NOT_ASKED, UniverseTable
from dpaudit.running.checkpoint import PLAYED
from dpaudit.running.digests import digest
from dpaudit.running.draws import Crew, Drawer
from dpaudit.running.playing import game_on, until_it_raises
from dpaudit.running.streams import BATCH_DRAWS, FLOAT_COINS, FLOAT_DRAWS, KEPT_NOISE, RESTART, stream
from dpaudit.subjects.callables import CallError, Subject
from dpaudit.subjects.isolation import OutOfPatience
from dpaudit.testing.order import Change, in_small_batches, most_runs_of_batches
from dpaudit.testing.pair_game import PairGame
from dpaudit.testing.pools import pool_pairs

DEPEND = "Draws depend on each other, and the check supposes that they do not."
NOT_BEHIND_VIOLATION = (
    f"A pair is violated, and a call takes more than {1_000 * doubles.SIZES.slow_call:g} ms, so that low bits are "
    "looked at only when asked for: floating_point=True, --floating-point."
)
IDS_SHOWN = 5  # pairs that a checkpoint names


@dataclasses.dataclass(frozen=True)
class Played:
    """What a label game leaves: games with their labelled draws, the pairs of each, runs, what broke, what to report.

    `groups` has the positions of the pairs that each game asks.
    """

    pairs: list[tuple[PairGame, int]]
    groups: Sequence[Sequence[int]]
    runs: int
    failure: str = ""
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    traceback: str = ""  # of what broke, as text
    kept: dict[int, str] = dataclasses.field(default_factory=dict)  # by game: why nothing can be said (`audits.kept`)
    # The outcomes of a game that fits may see, on x and on x_prime.
    shown: Callable[[PairGame], tuple[Outcomes, Outcomes]] | None = None


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
    asked_mode: dict[str, Mode] = dataclasses.field(default_factory=dict)  # where another one was asked for

    @functools.cached_property
    def playing(self) -> Playing:
        """What its pairs are played as."""
        asked = self.options
        has_stage = bool(asked.severity) and asked.mode != "fixed"
        needs_games = self.store is not None or asked.band or has_stage
        return playing_of(
            self.subject, self.promise, self.chosen, asked.mode, asked.samples, pool=asked.pool, needs_games=needs_games
        )

    def header(self) -> dict[str, Any]:
        """Which audit a checkpoint is of: whatever its draws and its result depend on."""
        subject, chosen = self.subject, self.chosen
        inputs: Any = (chosen.ids, chosen.inputs) if isinstance(chosen, AllPairs) else list(chosen)
        replayable = "replayable" if subject.replayable else "not replayable"
        return {
            "claim": str(self.promise),
            "promise": digest(self.promise),
            "pairs": f"{len(chosen)} ({digest(inputs)})",
            "shown": {"pairs": _first_ids(chosen)},
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
        """Play it."""
        if self.options.band and self.store is not None:
            raise UsageError("band must not be given with a store, got True: its error rate is spent in one call.")
        playing = self.playing
        self._take_mode(playing.mode)
        if not playing.is_universe:
            return self._pairs()
        if self.options.band:
            raise UsageError("band must not be given with a universe, got True. Audit fewer pairs with it.")
        return self._universe()

    def _take_mode(self, mode: Mode) -> None:
        if mode != self.options.mode:
            self.asked_mode = {"asked_mode": self.options.mode}
            self.options = dataclasses.replace(self.options, mode=mode)

    def _universe(self) -> AuditResult:
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
            self._ask_batches,
            self._kept,
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
        about_doubles = None
        if self.options.looks_at_doubles:
            candidates = _least_budgets(self.promise, self.chosen, table)
            about_doubles = (
                doubles.not_applicable(DEPEND)
                if universe.changes
                else self._doubles(
                    *candidates, universe.runs // max(universe.inputs_looked_at, 1), bool(table.count("violated"))
                )
            )
        return self._result(
            findings=found,
            not_asked=(),
            report_delta=table.delta,
            samples=universe.runs,
            options={**self.options.said, **self.asked_mode, **universe.options},
            floating_point=about_doubles,
            universe=table,
            beside=order_finding(universe.changes, universe.inputs_looked_at, self.options.mode == "fixed"),
        )

    def _pairs(self) -> AuditResult:
        chosen = self.chosen
        claims = [self.promise.for_pair(pair.x, pair.x_prime) for pair in chosen]
        asked = [k for k, pair_claim in enumerate(claims) if not pair_claim.is_vacuous]
        pairs, asked_claims = [chosen[k] for k in asked], [claims[k] for k in asked]
        data, positions = distinct_inputs(pairs)
        self.crew.expected = self.options.samples * len(data)
        played = self._played(pairs, asked_claims, data, positions) if asked else Played([], (), 0)
        games, more = [game for game, _ in played.pairs], 0
        severities, of_stages = self._severities(pairs, asked_claims, played)
        # A night of a store has asked: what it was told stays with the evidence.
        has_asked = self.store is not None or any(game.change for game in games)
        said = [k for k in range(len(games)) if k not in played.kept]  # of the others nothing is said
        if said and not played.failure and not has_asked:
            clearest = max(said, key=lambda k: (games[k].is_violated, games[k].wealth))
            most, is_violated = most_runs_of_batches(played.runs, games[clearest].hint), games[clearest].is_violated
            x = pairs[played.groups[clearest][0]].x
            games[clearest].change, more = self._ask_batches(x, most, is_violated)
        drawn, of_band = self._band(pairs, asked_claims, played) if self.options.band else (None, 0)
        withhold_all(games)
        findings = self._findings(pairs, played, severities)
        about_doubles = None
        if self.options.looks_at_doubles and not played.options.get("went_on"):  # its error rate is spent once
            candidates = [
                doubles.Candidate(pairs[k], positions[k], finding.budget, k)
                for k, finding in enumerate(findings)
                if finding.verdict != "error"
            ]
            depend = any(game.change for game in games)
            is_broken = any(finding.verdict == "violated" for finding in findings)
            about_doubles = (
                doubles.not_applicable(DEPEND)
                if depend
                else self._doubles(candidates, 0, played.runs // max(len(data), 1), is_broken)
            )
        return self._result(
            findings=findings,
            not_asked=tuple(pair.id for k, pair in enumerate(chosen) if k not in set(asked)),
            report_delta=max((claims[k].report_delta for k in asked), default=self.promise.report_delta),
            samples=played.runs + more + of_stages + of_band,
            options={**self.options.said, **self.asked_mode, **played.options},
            floating_point=about_doubles,
            trade_off=drawn,
            beside=order_finding(*changes_of(games), self.options.mode == "fixed", played.options.get("night", 1)),
        )

    def _severities(
        self, pairs: Sequence[Pair], claims: Sequence[Claim], played: Played
    ) -> tuple[dict[int, Severity | None] | None, int]:
        """How bad the violated pairs are, by position (None for one that has no bound of a stage), and the runs.

        Where draws of a stage depend on each other, that is noted as of the pair. None where there are no stages. A
        pair of which nothing is said, as its noise is kept, has none.
        """
        depends = any(game.change for game, _ in played.pairs)
        asked, shown = self.options.severity, played.shown  # a store's nights show nothing
        if (asked is not None and not asked) or self.options.mode == "fixed" or shown is None or depends:
            return None, 0
        of_pair = {
            group[0]: game
            for place, (group, game) in enumerate(zip(played.groups, played.pairs, strict=True))
            if len(group) == 1 and place not in played.kept
        }
        broken = [k for k, (game, _) in of_pair.items() if game.is_violated]
        found: dict[int, Severity | None] = dict.fromkeys(broken)
        runs = 0
        if played.failure:
            return found, runs
        for k in sorted(broken, key=lambda k: (-of_pair[k][0].wealth, k))[: severity.MOST_EXAMINED]:
            game, labelled = of_pair[k]
            draws = severity.draws_of(labelled, self.options.samples, bool(asked))
            if draws == 0:
                continue
            one, game.change, taken = severity.examine(
                pairs[k], claims[k], game, k, shown=shown(game), subject=self.subject, draws=draws, seed=self.root,
                crew=self.crew,
            )  # fmt: skip
            runs += taken
            if game.change is not None:
                return None, runs
            found[k] = one
        return found, runs

    def _band(self, pairs: Sequence[Pair], claims: Sequence[Claim], played: Played) -> tuple[TradeOffBand, int]:
        """The band of the clearest pair, or why there is none, and the runs."""
        from dpaudit.audits import band  # few audits need it, and it takes long to import

        level = (1.0 - self.options.confidence) * BAND_SHARE
        games = [game for game, _ in played.pairs]
        places = [k for k, game in enumerate(games) if not game.is_broken and k not in played.kept]
        if any(game.change for game in games):
            return TradeOffBand("", level, reason=band.DEPEND), 0
        if played.failure or not places:
            return TradeOffBand("", level, reason=band.FAILED), 0
        clearest = max(places, key=lambda k: (games[k].is_violated, games[k].wealth, -k))
        member = played.groups[clearest][0]
        return band.examine(
            pairs[member], claims[member], subject=self.subject, samples=self.options.samples, level=level,
            seed=self.root, crew=self.crew,
        )  # fmt: skip

    def _findings(
        self, pairs: Sequence[Pair], played: Played, severities: Mapping[int, Severity | None] | None
    ) -> tuple[Finding, ...]:
        """Those of the pairs that are asked, in their order: of a pool each member has one."""
        found_of: dict[int, Finding] = {}
        for place, (group, (game, labelled)) in enumerate(zip(played.groups, played.pairs, strict=True)):
            members = [pairs[k] for k in group]
            told = next((member for member in members if not is_same_input(member)), members[0])  # it has a power
            sizes = self.options.event_mass, self.options.inconclusive_factor
            one = finding_of(told, game, labelled, self.subject.name, played.failure, *sizes)
            if one.verdict == "error" and not one.traceback:
                one = dataclasses.replace(one, traceback=played.traceback)
            if one.verdict == "violated" and severities is not None and group[0] in severities:
                one = severity.with_severity(one, severities[group[0]], game)
            of_members = findings_of_pool(one, members, game, self.subject.name)
            if place in played.kept:
                of_members = [withheld(own, played.kept[place]) for own in of_members]
            found_of.update(zip(group, of_members, strict=True))
        return tuple(with_controls([found_of[k] for k in sorted(found_of)]))

    def _played(
        self, pairs: Sequence[Pair], claims: Sequence[Claim], data: Sequence[Any], positions: Sequence[tuple[int, int]]
    ) -> Played:
        """The label game on the pairs that are asked, or one night of it."""
        if self.store is not None:
            return self._accumulated(pairs, claims)
        return self._labelled(pairs, claims, data, positions)

    def _labelled(
        self, pairs: Sequence[Pair], claims: Sequence[Claim], data: Sequence[Any], positions: Sequence[tuple[int, int]]
    ) -> Played:
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
        taken = [(pair, game.labelled(pair)) for pair in game.pairs]
        kept, more = self._kept(game, data)
        return Played(taken, pooling.groups, game.runs + more, failure, pooling.options, traceback, kept, game.shown)

    def _kept(
        self, game: LabelGame, data: Sequence[Any], earlier: Collection[int] = ()
    ) -> tuple[dict[int, str], int]:
        """Why nothing can be said of a game whose mechanism keeps its noise or has spent a budget; the calls taken.

        `earlier`: the inputs of which calls before the game took randomness.
        """
        found: dict[int, str] = {}
        runs = 0
        moved = game.draws.draw.moved if isinstance(game.draws.draw, Drawer) else {}
        for place, pair in enumerate(game.pairs):
            if reason := spent(game.first_outcomes(pair)):
                found[place] = reason
            elif pair.repeats and self.subject.is_contained:
                for i, outcomes in zip(pair.inputs, game.first_outcomes(pair), strict=True):
                    streams = [stream(self.root, KEPT_NOISE, i, k) for k in range(OTHERS)]
                    differs, calls = differs_in_others(self.subject, data[i], outcomes, streams)
                    runs += calls
                    if differs:
                        found[place] = SHARED_NOISE
                        break
            elif pair.repeats:
                for i in (i for i in pair.inputs if moved.get(i) or i in earlier):
                    runs += 1
                    if keeps_noise(self.subject, data[i], stream(self.root, KEPT_NOISE, i)):
                        found[place] = KEPT
                        break
        return found, runs

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

    def _accumulated(self, pairs: Sequence[Pair], claims: Sequence[Claim]) -> Played:
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
                ask_batches=self._ask_batches_of,
            ).play(self.tell)
        self.subject = night.subject
        options = {"store": os.fspath(self.store), **night.options}
        alone = tuple((k,) for k in range(len(pairs)))
        games = list(zip(night.games, night.samples, strict=True))
        return Played(games, alone, night.runs, night.failure, options, night.traceback)

    def _ask_batches(self, x: Any, most: int | None, is_violated: bool) -> tuple[Change | None, int]:
        """What batches of outcomes on this input share, of a vectorised subject, on streams of their own; the runs."""
        return self._ask_batches_of(self.subject, x, self.root, most, is_violated)

    def _ask_batches_of(
        self, subject: Subject, x: Any, seed: int, most: int | None, is_violated: bool
    ) -> tuple[Change | None, int]:
        if not subject.is_vectorised or subject.has_lost_calls:
            return None, 0
        draw = Drawer(subject, [x], seed, BATCH_DRAWS, self.crew)
        return in_small_batches(draw, self.options.samples, most, is_violated)

    def _doubles(
        self, candidates: Sequence[doubles.Candidate], omitted: int, taken: int, is_broken: bool
    ) -> FloatingPointFinding:
        """The floating-point check of the pairs that the audit asked, on streams of its own.

        `omitted` pairs were left out of the candidates, since their budgets are larger than those of enough others. The
        audit has `taken` so many runs of each input, and `is_broken` says whether some pair is violated.
        """
        draws = doubles.draws_of(self.options.samples, self.subject.is_vectorised, taken)
        if draws == 0:
            least = doubles.SIZES.min_samples
            few = f"samples must be at least {least:,} for this check, got {self.options.samples:,}."
            return doubles.not_applicable(few, omitted=len(candidates) + omitted)
        is_slow = not self.subject.is_vectorised and self.crew.seconds_a_run > doubles.SIZES.slow_call
        if is_broken and is_slow and self.options.floating_point is None:
            return doubles.not_applicable(NOT_BEHIND_VIOLATION, omitted=len(candidates) + omitted)
        # Validity: these draws are made input by input: a time-out could tell when it was, and so of which input.
        ended = "The calls of the subject do not all come back."
        if self.subject.has_lost_calls:
            return doubles.not_applicable(ended, omitted=len(candidates) + omitted)
        data = {i: x for one in candidates for i, x in zip(one.inputs, (one.pair.x, one.pair.x_prime), strict=True)}
        draw = Drawer(self.subject, data, self.root, FLOAT_DRAWS, self.crew)
        found = doubles.examine(
            candidates,
            draws,
            draw,
            lambda place: stream(self.root, FLOAT_COINS, place),
            in_stages=not self.subject.is_vectorised,
        )
        if self.subject.has_lost_calls:
            return doubles.not_applicable(ended, found.samples, len(candidates) + omitted)
        return dataclasses.replace(found, omitted=found.omitted + omitted)

    def _result(self, findings: Sequence[Finding], beside: Sequence[SideFinding] = (), **found: Any) -> AuditResult:
        return AuditResult(
            findings=tuple(map(self._explained, findings)),
            claim=str(self.promise),
            confidence=self.options.confidence,
            mode=self.options.mode,
            seed=self.root,
            replayable=self.subject.replayable,
            seconds=0.0,
            subject=self.subject.describe(),
            environment=environment(),
            side_findings=(*claim_metadata(self.subject, self.promise, self.chosen), *beside),
            **found,
        )

    def _explained(self, finding: Finding) -> Finding:
        """A finding with the relation of its pair; of calls that broke, with what they were passed as randomness."""
        if finding.verdict == "error":
            return dataclasses.replace(finding, message=self.subject.with_passed(finding.message))
        lower = finding.parameter_lower if finding.verdict == "violated" else None
        note = steps_note(self.promise, finding.x, finding.x_prime, lower)
        return dataclasses.replace(finding, notes=(*finding.notes, note)) if note else finding


def _first_ids(pairs: Sequence[Pair]) -> str:
    """Some pairs by name, for people."""
    more = f" and {len(pairs) - IDS_SHOWN:,} more" if len(pairs) > IDS_SHOWN else ""
    return ", ".join(pairs[k].id for k in range(min(len(pairs), IDS_SHOWN))) + more


def _least_budgets(promise: Claim, chosen: Sequence[Pair], table: UniverseTable) -> tuple[list[doubles.Candidate], int]:
    """The pairs of a universe with the smallest budgets, as many as the floating-point check takes; how many others."""
    asked = np.flatnonzero((table.verdict != NOT_ASKED) & (table.verdict != VERDICTS.index("error")))
    order = asked[np.lexsort((asked, table.budget[asked]))][: doubles.SIZES.max_pairs]
    candidates = []
    for row in order.tolist():
        pair = chosen[row]
        budget = promise.for_pair(pair.x, pair.x_prime).budget
        candidates.append(doubles.Candidate(pair, (int(table.first[row]), int(table.second[row])), budget, row))
    return candidates, len(asked) - len(order)
