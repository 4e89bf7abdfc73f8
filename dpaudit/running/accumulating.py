"""One session of an audit whose evidence accumulates: bets go on from the store, on fresh streams, and are saved.

All pairs are of one label game. Old ones go on from their states; new ones play a pilot first, which fixes their
levels, and are let in before the first draw that counts. After a round the counts are committed, and only then is
anything shown: what a kill loses, nobody has seen, and its stream is used up. Nor may what ends a session depend on it:
a mechanism that ends the process by itself, or takes so long that it is ended, where it draws one of some outcomes, is
conditioned on not having drawn these.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dpaudit.campaign.campaign import Progress
from dpaudit.campaign.schedules import Mode
from dpaudit.errors import OutOfTimeError, UsageError
from dpaudit.features.outcomes import Outcomes
from dpaudit.inference.order import most_runs_of_batches
from dpaudit.inference.pair_game import PairGame
from dpaudit.inference.saved import State, StateError, claim_digest, joined, pair_state, restored
from dpaudit.inference.tasks import Task, TaskResult
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.inputs import distinct_inputs, inputs_apart
from dpaudit.privacy.pairs import Pair, numbered
from dpaudit.running.digests import input_key
from dpaudit.running.label_games import ask_batches, game_on, start_or_restart, until_it_raises
from dpaudit.running.plain_data import outcomes_as_bytes, outcomes_from_bytes
from dpaudit.running.store import FAILED, Identity, SavedPair, Store, StoreError, as_text, next_generation, share_of
from dpaudit.running.worker_pool import WorkerPool
from dpaudit.subjects.callables import Subject

SHARE_OF_SAVING = 0.1  # of the time, that saving may take


class AccumulatingAudit:
    """Plays one session of pairs with claims of their own under the call's `promise`, in a mode that looks every round.

    `why_not` says why no pair may be let in, by the pilot of a session, if anything speaks against it. Played, `games`
    are those of the pairs with their labelled draws of this session; `failure` and `traceback` say what went wrong.
    """

    def __init__(
        self,
        store: Store,
        subject: Subject,
        promise: Claim,
        claims: Sequence[Claim],
        pairs: Sequence[Pair],
        *,
        samples: int,
        mode: Mode = "sequential",
        confidence: float,
        seed: int,
        worker_pool: WorkerPool,
        why_not: Callable[[AccumulatingAudit], str] = lambda _: "",
    ) -> None:
        if not subject.replayable:
            raise UsageError(
                f"mechanism must take its randomness from rng or seed for a store, got {subject.name}: "
                "whether its draws are new in every session cannot be known."
            )
        self.store, self.subject = store, subject
        self.claims, self.pairs = claims, pairs
        self.samples, self.mode, self.confidence, self.worker_pool = samples, mode, confidence, worker_pool
        self._runs_of_batches, self._why_not = 0, why_not
        self.moved: dict[int, bool] = {}  # the inputs whose first calls took randomness: see `DrawJob`
        self.keys = numbered(
            [input_key((pair.x, pair.x_prime, claim_digest(claim))) for pair, claim in zip(pairs, claims, strict=True)]
        )
        identity = Identity(subject.fingerprint, subject.name, subject.target, str(promise))
        self.session = store.begin(identity, confidence, seed, samples)
        self._last_saved = self._saving = 0.0
        self.games: list[tuple[PairGame, int]] = []
        self.failure = self.traceback = ""
        self.went_on = False  # whether a pair of the subject had evidence before, be it one that is not asked tonight
        self._saved: dict[str, SavedPair] = {}  # what the store has of the pairs
        self._has_counted = self._batch_raised = False
        self._kept: dict[str, int] = {}

    def play(self, on_progress: Callable[[Progress], None] | None = None) -> AccumulatingAudit:
        """Play the session, once, and give it back; everything that was counted is saved, whatever is raised."""
        known = self.store.pairs_of(self.session)
        self.went_on = bool(known)
        subject = self.subject
        if any(known[key].state.get("one_by_one") for key in self.keys if key in known):
            subject = dataclasses.replace(subject, one_by_one=True)
        try:
            start_or_restart(lambda subject, restart: self._begin(known, subject, restart), subject)
            self._has_counted = True
            self.failure, self.traceback = until_it_raises(
                lambda: self.game.play(lambda _: self._after_round(on_progress)), self.subject
            )
            if self.failure:
                # Validity: what raised was not counted, and what it would have shown may be why; so nothing follows on
                # it. Other sessions that are under way are told first.
                self.store.end(self.session, FAILED)
            self._save(is_last=True, joins=not self.failure)
            if not self.failure:
                self._look_at_batches()
        except BaseException:
            if self._batch_raised:
                self.store.end(self.session, FAILED)
            raise
        if not self.failure:
            self.store.end(self.session, "finished")
        for pair in self._pairs().values():
            for _, test in pair.uses:
                test.draws = max(pair.labelled, 1)  # for the power: what all sessions together could have found
        self.games = [(pair, self.game.labelled(pair)) for pair in self.game.pairs]
        return self

    @property
    def options(self) -> dict[str, Any]:
        """Record of the session in a result."""
        return {"night": self.session.ordinal, "stream": self.session.origin, "went_on": self.went_on}

    @property
    def runs(self) -> int:
        """Of the mechanism, this session."""
        return self.game.runs + self._runs_of_batches

    def _pairs(self) -> dict[str, PairGame]:
        """The pairs that have evidence, by their keys: not those of which all calls of the pilot raised."""
        return {key: pair for key, pair in zip(self.keys, self.game.pairs, strict=True) if not pair.is_broken}

    def _begin(self, known: dict[str, SavedPair], subject: Subject, restart: int) -> None:
        """Make the game: old pairs as they are known, new ones after their pilot and let in, unless it only raised."""
        self.subject = subject
        self.moved.clear()
        # Validity: where an outcome may depend on when a call is made, pairs share no draws (`audits.one_audit`).
        find = inputs_apart if subject.draws_together else distinct_inputs
        self.data, self.positions = find(self.pairs)
        self.input_keys = numbered([input_key(x) for x in self.data])
        generation = next_generation(known)
        error_rate = (1.0 - self.confidence) * share_of(generation)  # of the new pairs
        self.game = game = game_on(
            self.subject, self.data, self.claims, self.positions, self.samples, error_rate, self.mode,
            root=self.session.stream_seed, restart=restart, worker_pool=self.worker_pool, moved=self.moved,
        )  # fmt: skip
        drawer = game.draws.draw

        def draw(tasks: Sequence[Task]) -> list[TaskResult]:
            try:
                return drawer(tasks)
            except (KeyboardInterrupt, OutOfTimeError):  # of a person or a clock, who know no more than what was shown
                raise
            except BaseException:  # whatever it is: what the batch would have shown may be why
                self._batch_raised = self._has_counted  # one of the pilot is drawn anew, output by output
                raise

        game.draws.draw = draw
        self._saved = {key: known[key] for key in self.keys if key in known}
        old = {key: pair for key, pair in self._pairs().items() if key in known}
        for key, pair in old.items():
            with self._reading():
                restored(known[key].state, pair)
        if old:
            game.go_on(self._kept_of({i for pair in old.values() for i in pair.inputs}))
        if len(old) == len(game.pairs):
            return
        game.start()
        if reason := self._why_not(self):  # Validity: what is let in counts for ever
            raise UsageError(f"mechanism must draw noise anew in each call for a store, got {subject.name}. {reason}")
        wanted = {}
        pairs = self._pairs()
        for key in pairs.keys() - known.keys():
            asked, pair = self.pairs[self.keys.index(key)], pairs[key]
            names = as_text(asked.id), as_text(asked.x_id), as_text(asked.x_prime_id)
            promised = pair.claim.parameter, float(pair.claim.value)
            wanted[key] = SavedPair(key, *names, *promised, generation, pair.level, self._state(pair))
        self._saved |= self.store.admit(self.session, [wanted[key] for key in self.keys if key in wanted])
        for key, own in wanted.items():
            there = self._saved[key]
            pairs[key].start(there.level)  # Validity: as it was let in; nothing was counted yet
            rounds = [
                [one["name"] for one in state["uses"][0]["table"]["rounds"]] for state in (there.state, own.state)
            ]
            if rounds[0] != rounds[1]:  # another session has let it in since: to be joined
                self._saved[key] = dataclasses.replace(there, revision=-1)

    def _kept_of(self, inputs: set[int]) -> dict[int, Outcomes]:
        """The outputs of earlier sessions that fits may see."""
        kept: dict[int, Outcomes] = {}
        for i in inputs:
            data = self.store.outputs_of(self.session, self.input_keys[i])
            if data is not None:
                with self._reading():
                    kept[i] = outcomes_from_bytes(data)
                self._kept[self.input_keys[i]] = len(kept[i])
        return kept

    def _look_at_batches(self) -> None:
        """Ask small batches, where no pair has changed so far; what they share is saved, and stays with the pairs."""
        pairs = list(self._pairs().values())
        if not pairs or any(pair.change for pair in pairs):
            return
        pair = max(pairs, key=lambda one: (one.is_violated, one.wealth))
        # Asked of the session's own draws: a pair that was adopted from the store has none.
        hint = min(1.0, len(pair.inputs) * min(map(self.game.draws.hint, pair.inputs)))
        most = most_runs_of_batches(self.runs, hint)
        is_violated, x = bool(self.runs) and pair.is_violated, self.data[pair.pool.members[0].inputs[0]]
        shared, self._runs_of_batches = ask_batches(
            self.subject, x, self.session.stream_seed, self.worker_pool, self.samples, most, is_violated, pair.score
        )
        if shared is not None:
            for pair in pairs:
                pair.change = shared
            self._save(is_last=True)

    # --- saving ---

    def _state(self, pair: PairGame) -> State:
        return {**pair_state(pair, self.session.origin), "one_by_one": self.subject.one_by_one}

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """For a while what cannot be read is a fault of the store."""
        try:
            yield
        except ValueError as error:
            raise UsageError(
                f"store must have states that this version reads, got another one of {self.subject.name} ({error}) at "
                f"{str(self.store.path)!r}. Forget it with `dpaudit evidence forget`, or use the version that wrote it."
            ) from error

    def _after_round(self, on_progress: Callable[[Progress], None] | None) -> None:
        # Validity: what was not saved is not shown, so nobody breaks off a session by what it is about to lose.
        if time.monotonic() - self._last_saved < self._saving * (1.0 / SHARE_OF_SAVING - 1.0):
            return
        self._save()
        if on_progress is not None:
            on_progress(self.game.progress())

    def _save(self, is_last: bool = False, joins: bool = True) -> None:
        """Commit what was counted since the last time; join what other sessions of the subject have added.

        Validity: after a batch that raised nothing is joined (`joins`): a product with what others won meanwhile is a
        new one, at a time that the batch has chosen.
        """
        begun, pairs = time.monotonic(), self._pairs()

        def state_of(key: str, there: SavedPair | None) -> State | None:
            if there is not None and not joins:
                return None
            if there is not None:
                self._join(pairs[key], there.state)
            if pairs[key].is_violated:  # Validity: what is saved may be all that a later session sees of it
                self.game.look_at_order(pairs[key])
            return self._state(pairs[key])

        known = {key: self._saved[key] for key in pairs if is_last or pairs[key].labelled != self._saved[key].labelled}
        outputs = self._outputs({i for pair in pairs.values() for i in pair.inputs})
        self._saved |= self.store.save(self.session, known, state_of, outputs, self.runs)
        self._last_saved = time.monotonic()
        self._saving = self._last_saved - begun

    def _join(self, pair: PairGame, there: State) -> None:
        """Go on from the product of what this session has counted of a pair and what the store has.

        Validity: level and bound are those of the store; what the session saw alone does not count.
        """
        own, change, earlier = pair.labelled - pair.labelled_before, pair.change, pair.earlier_change
        try:
            state = joined(self._state(pair), there)
        except StateError as error:
            raise StoreError(
                f"store must not be written by two versions of dpaudit at a time, got both ({error})"
            ) from error
        bounds = [{**use, "lower": of["lower"]} for use, of in zip(state["uses"], there["uses"], strict=True)]
        with self._reading():
            restored({**state, "level": there["level"], "uses": bounds}, pair)
        pair.labelled_before = pair.labelled - own
        # What was seen of the outcomes of this session; and of those of the other one, where that has changed.
        of_others = None if pair.change == change else pair.change
        pair.change, pair.earlier_change = change or pair.change, earlier or of_others
        if pair.looks:
            del pair.looks[-1]
        if pair.labelled:
            pair.look()
        pair.finish()

    def _outputs(self, inputs: set[int]) -> dict[str, tuple[int, bytes]]:
        """Outputs to keep, of inputs that have more than when they were saved."""
        chosen = {}
        for i in inputs:
            outcomes, key = self.game.kept(i), self.input_keys[i]
            if outcomes is None or len(outcomes) <= self._kept.get(key, 0):
                continue
            data = outcomes_as_bytes(outcomes)
            self._kept[key] = len(outcomes)
            if data is not None:
                chosen[key] = len(outcomes), data
        return chosen
