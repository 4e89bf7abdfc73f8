"""One night of an audit whose evidence accumulates: bets go on from the store, on fresh streams, and are saved.

Old pairs go on from their states; new ones play a pilot first, which fixes their levels, and are let in before the
first draw that counts. After a round the counts are committed, and only then is anything shown: what a kill loses,
nobody has seen, and its stream is used up.
"""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpaudit.campaign.campaign import Progress
from dpaudit.campaign.label_game import LabelGame
from dpaudit.campaign.schedules import Mode
from dpaudit.errors import UsageError
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.inputs import distinct_inputs, inputs_apart
from dpaudit.privacy.pairs import Pair
from dpaudit.reading.kept_outputs import packed, unpacked
from dpaudit.reading.outcomes import Outcomes, canonical
from dpaudit.running.draws import Crew, Drawer
from dpaudit.running.playing import until_it_raises
from dpaudit.running.store import Store, StoreError
from dpaudit.running.store_rows import FAILED, Identity, Night, SavedPair, share_of
from dpaudit.running.streams import COINS, DRAWS, stream
from dpaudit.subjects.callables import CallError, Subject
from dpaudit.testing.order import Change, most_runs_of_batches
from dpaudit.testing.pair_game import PairGame
from dpaudit.testing.saved_state import State, StateError, claim_digest, pair_state, restored
from dpaudit.testing.tasks import Draw, Task, TaskResult

NIGHTS = 30  # of as many draws as this one: what bets of a first night are meant for
GROWTH = 1.1  # of the outputs that are kept, from which on they are saved again
SHARE_OF_SAVING = 0.1  # of the time, that saving may take
OLD, NEW, RESTART = 0, 2, 4  # added to the purposes of streams


@dataclasses.dataclass
class Played:
    """What a night leaves: each pair's game, its labelled draws of all nights together, and what went wrong.

    `went_on` says whether a pair of the subject had evidence before, be it one that is not asked tonight.
    """

    games: list[PairGame]
    samples: list[int]
    runs: int
    failure: str
    traceback: str  # of what went wrong, as text
    night: Night
    went_on: bool
    subject: Subject

    @property
    def options(self) -> dict[str, Any]:
        """What a result says of it."""
        return {"night": self.night.ordinal, "stream": self.night.origin, "went_on": self.went_on}


@dataclasses.dataclass
class _Part:
    """Old or new pairs of one night: their label game, their positions among the asked ones, and the store's rows."""

    game: LabelGame
    positions: list[int]
    saved: dict[str, SavedPair]


class AccumulatingAudit:
    """Plays one night.

    Parameters
    ----------
    store : Store
    subject : Subject
        Replayable: whether the draws of another one are new every night cannot be known.
    promise : Claim
        Of the call.
    claims, pairs
        Of the pairs that are asked: their claims, and themselves.
    samples, mode, confidence, seed
        As for `dpaudit.audit`; the mode is one that looks after each round.
    crew : Crew
        Who draws.
    ask_batches : callable
        (subject, input, seed, most) to what small batches on this input share, drawn from streams of the seed, and
        their runs: at most so many, or as many as they need where `most` is None.
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
        crew: Crew,
        ask_batches: Callable[[Subject, Any, int, int | None, bool], tuple[Change | None, int]],
    ) -> None:
        if not subject.replayable:
            raise UsageError(
                f"mechanism must take its randomness from rng or seed for a store, got {subject.name}: "
                "whether its draws are new every night cannot be known."
            )
        self.store, self.subject = store, subject
        self.claims, self.pairs = claims, pairs
        self.samples, self.mode, self.confidence, self.crew = samples, mode, confidence, crew
        self._ask_batches, self._runs_of_batches = ask_batches, 0
        self._lay_out()
        self.keys = _numbered(
            [
                _sha256(f"{input_key(pair.x)} {input_key(pair.x_prime)} {claim_digest(claim)}")
                for pair, claim in zip(pairs, claims, strict=True)
            ]
        )
        identity = Identity(subject.fingerprint, subject.name, subject.target, str(promise))
        self.night = store.begin(identity, confidence, seed, samples)
        self._last_saved = self._saving = 0.0
        self._parts: list[_Part] = []
        self._has_counted = self._batch_raised = False
        self._kept: dict[str, int] = {}

    def play(self, on_progress: Callable[[Progress], None] | None = None) -> Played:
        """Play the night; everything that was counted is saved, whatever is raised."""
        known = self.store.pairs_of(self.night)
        old = [k for k, key in enumerate(self.keys) if key in known]
        new = [k for k, key in enumerate(self.keys) if key not in known]
        if any(known[self.keys[k]].state.get("one_by_one") for k in old):
            self._restart_one_by_one()
        broken: list[tuple[int, PairGame, int]] = []
        failure = traceback = ""
        try:
            if new:
                self._parts.append(self._begun(new, broken))
            if old:
                self._parts.insert(0, self._gone_on(old, known))
            for part in self._parts:
                if not failure:
                    failure, traceback = self._played(part, on_progress)
                    if failure:
                        # Validity: what raised was not counted, and what it would have shown may be why; so nothing
                        # follows on it. Other nights that are under way are told first.
                        self.store.end(self.night, FAILED)
                self._save(part, is_last=True, joins=not failure)
            if not failure:
                self._look_at_batches()
        except BaseException:
            if self._batch_raised:
                self.store.end(self.night, FAILED)
            raise
        if not failure:
            self.store.end(self.night, "finished")
        games: list[PairGame | None] = [None] * len(self.pairs)
        samples = [0] * len(self.pairs)
        for part in self._parts:
            for k, pair in zip(part.positions, part.game.pairs, strict=True):
                for _, game in pair.uses:
                    game.draws = max(pair.labelled, 1)  # for the power: what all nights together could have found
                games[k], samples[k] = pair, part.game.labelled(pair)
        for k, pair, drawn in broken:
            games[k], samples[k] = pair, drawn
        return Played(
            [game for game in games if game is not None],
            samples,
            self._runs,
            failure,
            traceback,
            self.night,
            bool(known),
            self.subject,
        )

    def _lay_out(self) -> None:
        """Give each pair the positions of its inputs, and each input its key."""
        # Validity: where an outcome may depend on when a call is made, pairs share no draws (`dpaudit.audits.call`).
        find = inputs_apart if self.subject.draws_together else distinct_inputs
        self.data, self.positions = find(self.pairs)
        self.input_keys = _numbered([input_key(x) for x in self.data])

    def _restart_one_by_one(self) -> None:
        """Call the subject once a draw from here on."""
        self.subject = dataclasses.replace(self.subject, one_by_one=True)
        self._lay_out()

    def _played(self, part: _Part, on_progress: Callable[[Progress], None] | None) -> tuple[str, str]:
        """Play one part; what went wrong, with the traceback."""
        if not part.game.pairs:  # all of them raised in the pilot, whatever the input
            return "", ""
        self._has_counted = True
        return until_it_raises(lambda: part.game.play(lambda _: self._after_round(part, on_progress)), self.subject)

    def _look_at_batches(self) -> None:
        """Ask small batches, where no pair has changed so far; what they share is saved, and stays with the pairs."""
        games = [(part.game, place, k) for part in self._parts for place, k in enumerate(part.positions)]
        pairs = [game.pairs[place] for game, place, _ in games]
        if not pairs or any(pair.change for pair in pairs):
            return
        game, place, k = max(games, key=lambda one: (one[0].pairs[one[1]].is_violated, one[0].pairs[one[1]].wealth))
        # Asked of the night's own draws: a pair that was adopted from the store has none.
        inputs = game.pairs[place].inputs
        hint = min(1.0, len(inputs) * min(game.draws.hint(i) for i in inputs))
        most = most_runs_of_batches(self._runs, hint)
        x = self.data[self.positions[k][0]]
        shared, self._runs_of_batches = self._ask_batches(
            self.subject, x, self.night.stream_seed, most, bool(self._runs) and game.pairs[place].is_violated
        )
        if shared is None:
            return
        for part in self._parts:
            for pair in part.game.pairs:
                pair.change = shared
            self._save(part, is_last=True)

    # --- the two parts ---

    def _begun(self, new: list[int], broken: list[tuple[int, PairGame, int]]) -> _Part:
        """Pairs that are new: after their pilot, and let in; the others are `broken`, with the labelled draws of it."""
        generation = self.store.next_generation(self.night)
        confidence = 1.0 - (1.0 - self.confidence) * share_of(generation)
        game = self._label_game(new, NEW, confidence)
        try:
            game.start()
        except CallError:
            # Validity: as in `dpaudit.audit`. Nothing was counted yet; from here on raising is an outcome of one draw.
            self._restart_one_by_one()
            game = self._label_game(new, NEW + RESTART, confidence)
            game.start()
        broken += [(k, pair, game.labelled(pair)) for k, pair in zip(new, game.pairs, strict=True) if pair.is_broken]
        sound = [(k, pair) for k, pair in zip(new, game.pairs, strict=True) if not pair.is_broken]
        game.pairs = [pair for _, pair in sound]
        part = _Part(game, [k for k, _ in sound], {})
        wanted = []
        for k, pair in sound:
            names = self.pairs[k]
            wanted.append(
                SavedPair(
                    self.keys[k],
                    _text(names.id),
                    _text(names.x_id),
                    _text(names.x_prime_id),
                    pair.claim.parameter,
                    float(pair.claim.value),
                    generation,
                    pair.level,
                    self._state(pair),
                )
            )
        part.saved = self.store.admit(self.night, wanted)
        for place, (own, (_, pair)) in enumerate(zip(wanted, sound, strict=True)):
            saved = part.saved[own.key]
            if _epoch_ids(saved.state) != _epoch_ids(own.state):
                # Validity: another night has let it in since. Its bets are those of the pair, also where it has not bet
                # yet: two grids of stakes would be two products, and the bound the larger one of them.
                self._adopt(part, place, saved)
            else:
                pair.start(saved.level)  # Validity: as it was let in; nothing was counted yet
        return part

    def _gone_on(self, old: list[int], known: dict[str, SavedPair]) -> _Part:
        """Pairs that go on from their states."""
        game = self._label_game(old, OLD, self.confidence)
        game.pairs = [
            self._restored(pair, k, known[self.keys[k]].state) for k, pair in zip(old, game.pairs, strict=True)
        ]
        kept: dict[int, Outcomes] = {}
        for i in {i for k in old for i in self.positions[k]}:
            data = self.store.outputs_of(self.night, self.input_keys[i])
            if data is not None:
                try:
                    kept[i] = unpacked(data)
                except ValueError as error:
                    raise self._unreadable(error) from error
                self._kept[self.input_keys[i]] = len(kept[i])
        for pair in game.pairs:
            if pair.trained_on == 0 and any(i not in kept for i in pair.inputs):
                raise self._unreadable(StateError("bets of another version of dpaudit, and no outputs to fit on"))
        game.go_on(kept)
        return _Part(game, old, {self.keys[k]: known[self.keys[k]] for k in old})

    def _label_game(self, chosen: Sequence[int], purpose: int, confidence: float) -> LabelGame:
        seed = self.night.stream_seed
        return LabelGame(
            [self.claims[k] for k in chosen],
            [self.positions[k] for k in chosen],
            samples=self.samples,
            error_rate=1.0 - confidence,
            mode=self.mode,
            draw=self._drawer(seed, purpose),
            coin=lambda round_, pair: stream(seed, COINS + purpose, round_, pair),
            log_density=self.subject.log_density if self.subject.has_log_density else None,
            data=self.data,
            horizon=NIGHTS * 2 * self.samples,
        )

    def _drawer(self, seed: int, purpose: int) -> Draw:
        drawer = Drawer(self.subject, self.data, seed, DRAWS + purpose, self.crew)

        def draw(tasks: Sequence[Task]) -> list[TaskResult]:
            try:
                return drawer(tasks)
            except KeyboardInterrupt:  # of a person, who knows no more than what was shown
                raise
            except BaseException:  # whatever it is: what the batch would have shown may be why
                self._batch_raised = self._has_counted  # one of the pilot is drawn anew, output by output
                raise

        return draw

    # --- saving ---

    def _state(self, pair: PairGame) -> State:
        return {**pair_state(pair, self.night.origin), "one_by_one": self.subject.one_by_one}

    def _restored(self, pair: PairGame, k: int, state: State) -> PairGame:
        """The game of pair k as it was; `pair` is a new one, of the same claim."""
        x, x_prime = (self.data[i] for i in self.positions[k])
        log_density = self.subject.log_density if self.subject.has_log_density else None
        try:
            return restored(state, pair, log_density, x, x_prime)
        except StateError as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> UsageError:
        return UsageError(
            f"store must have states that this version reads, got another one of {self.subject.name} ({error}) "
            f"at {str(self.store.path)!r}. Forget it with `dpaudit evidence forget`, or use the version that wrote it."
        )

    def _after_round(self, part: _Part, on_progress: Callable[[Progress], None] | None) -> None:
        # Validity: what was not saved is not shown, so nobody breaks off a night by what it is about to lose.
        if time.monotonic() - self._last_saved < self._saving * (1.0 / SHARE_OF_SAVING - 1.0):
            return
        self._save(part)
        if on_progress is not None:
            on_progress(part.game.progress())

    def _save(self, part: _Part, is_last: bool = False, joins: bool = True) -> None:
        """Commit what was counted since the last time; adopt what other nights of the subject have added.

        Validity: after a batch that raised nothing is joined (`joins`): a product with what others won meanwhile is a
        new one, at a time that the batch has chosen.
        """
        begun = time.monotonic()
        game = part.game
        while True:
            states = {}
            for k, pair in zip(part.positions, game.pairs, strict=True):
                before = part.saved[self.keys[k]]
                if pair.is_violated:  # Validity: what is saved may be all that a later night sees of it
                    game.look_at_order(pair)
                if is_last or pair.labelled != before.labelled or before.log_wealth is None:
                    states[self.keys[k]] = (self._state(pair), before)
            saved = self.store.save(self.night, states, self._outputs(game, is_last), self._runs, joins)
            part.saved.update(saved)
            overtaken = False
            for place, k in enumerate(part.positions):
                one = saved.get(self.keys[k])
                if one is not None and one.state is not states[self.keys[k]][0]:
                    overtaken = True
                    self._adopt(part, place, one)
            if not overtaken:
                break
        self._last_saved = time.monotonic()
        self._saving = self._last_saved - begun

    def _adopt(self, part: _Part, place: int, saved: SavedPair) -> None:
        """Go on from what the store has of a pair: the night's own counts, and those of another one."""
        k, pair = part.positions[place], part.game.pairs[place]
        own = pair.labelled - pair.labelled_before
        new = self._restored(PairGame(pair.claim, pair.pool, True, pair.main.draws, pair.hints), k, saved.state)
        if new.trained_on == 0:
            raise StoreError("store must not be written by two versions of dpaudit at a time, got another one's bets.")
        new.labelled_before = new.labelled - own
        new.pilot_more = pair.pilot_more  # runs that this night has had, and has not left
        new.looks = pair.looks[:-1]
        # What was seen of the outcomes of this night; and of those of the other one, where that has changed.
        of_others = None if new.change == pair.change else new.change
        new.change, new.earlier_change = pair.change or new.change, pair.earlier_change or of_others
        new.remarks, new.keys = pair.remarks, pair.keys
        new.unseen, new.repeats = pair.unseen, pair.repeats
        if new.labelled:
            new.look()
        new.finish()
        part.game.pairs[place] = new

    def _outputs(self, game: LabelGame, is_last: bool) -> dict[str, tuple[int, bytes]]:
        """Outputs to keep, of inputs that have enough more than when they were saved."""
        chosen = {}
        for i in {i for pair in game.pairs for i in pair.inputs}:
            outcomes, key = game.kept(i), self.input_keys[i]
            if outcomes is None or len(outcomes) <= self._kept.get(key, 0) * (1.0 if is_last else GROWTH):
                continue
            data = packed(outcomes)
            self._kept[key] = len(outcomes)
            if data is not None:
                chosen[key] = len(outcomes), data
        return chosen

    @property
    def _runs(self) -> int:
        """Of the mechanism, this night."""
        return sum(part.game.runs for part in self._parts) + self._runs_of_batches


def _epoch_ids(state: State) -> list[list[str]]:
    """What tells the fits of one night from those of another: an id names the stream that it was fitted on."""
    return [[epoch["id"] for epoch in use["epochs"]] for use in state["uses"]]


def input_key(value: Any) -> str:
    """64 hexadecimal digits that tell inputs apart, the same in every process; objects by what they hold.

    Validity: two inputs that share a key share their evidence. That names the wrong one of them, at worst: wealth is an
    e-value against the claim's holding on all of them.

    Examples
    --------
    >>> input_key(0.0) == input_key(0.0), input_key(0.0) == input_key(-0.0), input_key([1, 2]) == input_key((1, 2))
    (True, False, False)
    """
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    kind = type(value)
    if isinstance(value, np.generic | np.ndarray) and value.dtype.kind in "biufcUSmM":
        array = np.ascontiguousarray(value)
        about, content = f"{array.dtype.str}{array.shape}", array.tobytes()
    elif kind in (list, tuple, dict):
        items = [part for item in value.items() for part in item] if kind is dict else value
        about, content = f"{kind.__name__}{len(items)}", b""
        digest.update(f"{len(about)}:{about}".encode())
        for item in items:
            _feed(digest, item)
        return
    elif kind is float:
        about, content = "float", value.hex().encode()
    elif kind is bytes:
        about, content = "bytes", value
    else:
        about = f"{kind.__module__}.{kind.__qualname__}"
        content = (repr(value) if kind in (bool, int, str, type(None)) else canonical(value)).encode(
            "utf-8", "surrogatepass"
        )
    digest.update(f"{len(about)}:{about}{len(content)}:".encode() + content)


def _numbered(keys: Sequence[str]) -> list[str]:
    """Keys with a number behind those that came before."""
    seen: dict[str, int] = {}
    result = []
    for key in keys:
        seen[key] = seen.get(key, 0) + 1
        result.append(key if seen[key] == 1 else f"{key}#{seen[key]}")
    return result


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _text(value: str) -> str:
    return value.encode("utf-8", "backslashreplace").decode()
