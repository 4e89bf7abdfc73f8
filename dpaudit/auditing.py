"""The main job: a promise and a subject in, pairs, draws, wealth, and an `AuditResult` out.

The error rate. `1 - confidence` bounds, for the whole call, both P(verdict "violated") when the subject keeps its claim
on every pair, and P(some reported lower bound exceeds its truth): see `dpaudit.evidence.label_game` for the proof and
`tests/meta` for the measurement. It needs draws that are independent of each other and follow the law of the subject on
the input it is given.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dpaudit.arguments import check_options
from dpaudit.claim_metadata import claim_metadata
from dpaudit.environment import environment
from dpaudit.errors import SubjectError, UsageError
from dpaudit.evidence import floating_point as doubles
from dpaudit.evidence.label_game import LabelGame, Mode, Progress
from dpaudit.evidence.order import Change, in_small_batches
from dpaudit.evidence.pair_game import PairGame
from dpaudit.evidence.pools import Pooling, pool_pairs
from dpaudit.findings import (
    changes_of,
    finding_of,
    findings_of_pool,
    order_finding,
    with_controls,
    withhold_all,
)
from dpaudit.grey_box import MOST_PAIRS as MOST_REPLAYED
from dpaudit.grey_box import GreyBox
from dpaudit.inputs import distinct_inputs, is_same_input
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.pairs import MANY_PAIRS, AllPairs, Pair, as_pairs
from dpaudit.privacy.parsing import parse_claim
from dpaudit.results import (
    VERDICTS,
    AuditResult,
    Finding,
    FloatingPointFinding,
    SideFinding,
    to_json,
)
from dpaudit.running.checkpoint import CheckpointPlan, as_plan
from dpaudit.running.digests import digest
from dpaudit.running.draws import Crew, Drawer
from dpaudit.running.nights import AccumulatingAudit
from dpaudit.running.store import Store
from dpaudit.running.streams import BATCH_DRAWS, COINS, DRAWS, FLOAT_COINS, FLOAT_DRAWS, RESTART, fresh_seed, stream
from dpaudit.side_channels import TIMED_PAIRS, containment_finding, independence_finding, timing_finding
from dpaudit.subjects.callables import CallError, Subject, as_subject
from dpaudit.subjects.isolation import Isolation, OutOfPatience, as_isolation, isolated
from dpaudit.subjects.programs import ExecMechanism
from dpaudit.universe_auditing import UniverseAudit, is_universe
from dpaudit.universe_table import NOT_ASKED, UniverseTable

DEPEND = "Draws depend on each other, and the check supposes that they do not."
IDS_SHOWN = 5  # pairs that a checkpoint names


class ChosenPairs(Protocol):
    """Pairs that were searched for, and where they come from."""

    @property
    def pairs(self) -> Sequence[Pair]: ...

    def side_findings(self, findings: Sequence[Finding]) -> tuple[SideFinding, ...]: ...


@runtime_checkable
class PairSource(Protocol):
    """What chooses the pairs of an audit before its first draw (`dpaudit.Search`).

    Validity: it may run the subject, but never on the audit's own streams.
    """

    def choose_pairs(self, subject: Subject, claim: Claim, seed: int) -> ChosenPairs: ...


def audit(
    mechanism: Any,
    claim: Claim | str | None = None,
    pairs: Iterable[Any] | PairSource | None = None,
    *,
    samples: int = 100_000,
    mode: Mode = "sequential",
    confidence: float = 0.95,
    seed: int | None = None,
    jobs: int = 1,
    backend: str = "loky",
    cluster: str | None = None,
    checkpoint: str | os.PathLike[str] | CheckpointPlan | None = None,
    resume: bool = False,
    event_mass: float = 0.1,
    inconclusive_factor: float = 2.0,
    floating_point: bool = True,
    pool: bool | None = None,
    grey_box: bool = False,
    target: str | None = None,
    name: str | None = None,
    store: str | os.PathLike[str] | None = None,
    isolation: Isolation | str | bool | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> AuditResult:
    """Test a mechanism against the promise it makes for each pair of inputs.

    Parameters
    ----------
    mechanism : object or callable
        An object with `sample(data, size, rng)`, or a function `f(data, size, rng)`, `f(data, rng)` or `f(data)`
        (called once a draw; keyword names `size`, `n`, `rng`, `seed`, `random_state` are recognised).
    claim : Claim or str, optional
        The promise, or the command line's string for it; the mechanism's own `claim` by default.
    pairs : iterable of (x, x_prime) or Pair, optional
        The mechanism's own `pairs()` by default. Pairs of which the claim asks nothing are listed, not drawn. More than
        2,000 (pure, approximate and metric claims) are audited as one universe, see Notes; `AllPairs` is the compact
        form of all pairs of many inputs. A `Search` looks for the worst pairs first, on draws of its own.
    samples : int
        At most 2 * samples labelled draws are taken a pair, so about `samples` runs on each input.
    mode : {"sequential", "adaptive", "fixed"}
        Stop a pair as soon as the evidence is there, or use all draws for the tightest bound. "adaptive" is sequential
        and spends `samples` runs an input on average where the evidence grows: half of them evenly, half on the leading
        pairs, of which each may take 16 times its even share. For many pairs of which a few may be broken.
    confidence : float
        In (0, 1), for the whole call: all pairs, directions, witnesses, looks and bounds together.
    seed : int, optional
        Non-negative; one is drawn and recorded by default.
    jobs : int
        Worker processes; the result does not depend on it, but for draws that depend on each other: a violation can
        only stand then where this process makes all calls. -1 takes all processors.
    backend : str
        What the processes are of: "loky" (this machine), "dask" or "ray" (a cluster, whatever `jobs` is), or another
        backend of joblib. The result does not depend on it. Workers return counts and training draws, never samples.
    cluster : str, optional
        The address of the scheduler, with "dask" or "ray"; by default that of `DASK_SCHEDULER_ADDRESS` or
        `RAY_ADDRESS`, else a cluster of this process, else a new one of `jobs` processes (of all processors for 1).
    checkpoint : path, optional
        A file in which every finished chunk of draws is noted, and which is removed when the audit has ended. Whatever
        ends it before, a full disk or `kill -9` included, the same call with `resume` goes on from there and comes to
        the same result.
    resume : bool
        Go on from the checkpoint if it is there: it must be of the same audit, and gives the seed where none is stated.
    event_mass : float
        In (0, 1]: the mass of the event of the alternative for which the power is stated.
    inconclusive_factor : float
        At least 1: a pair is inconclusive if the loss it could have found is more than this many times the budget.
    floating_point : bool
        Whether to ask too what the low bits of real-valued outputs give away, on fresh draws (at most 20,000 of an
        input, of at most 8 pairs, those with the smallest budgets) and at an error rate of its own:
        `AuditResult.floating_point`. The verdict and the bounds do not depend on it. Audits of fewer than 1,000
        samples are too small for it.
    pool : bool, optional
        Whether pairs of one shift and budget are asked in one game, where the mechanism says that it is a translation
        family (`translation_family = True`, see `dpaudit.subjects.protocol.HasTranslations`): all of their draws serve
        one test, and one share of the error rate. They are then found with fewer runs, and together: that the finding
        holds for each of them rests on what the mechanism says, the error rate does not (`Finding.pool`). None, the
        default, pools wherever that is possible; True is an error where it is not. Universes (Notes) and audits with a
        store are not pooled.
    grey_box : bool
        Whether to run x and x_prime of the pairs (the first 200) on the same random streams too, where the mechanism
        takes a generator, and say what differs: the side finding "same_randomness" (`replay_same_randomness`). A
        `Search` does so with the pairs that it chooses, unless it is told not to.
    target, name : str, optional
        How the subject is named in the result.
    store : path, optional
        A file in which evidence accumulates (it is made where there is none): the bets on each pair go on from where
        earlier audits of the same mechanism and claim left them, on streams of their own. Verdicts and bounds are then
        those of all these nights together, and `confidence` is for all of them, for ever; 0.999 is recommended, which
        costs a few nights and lets one in a thousand sound mechanisms at most be called violated. Sequential mode
        only, and no universes; the floating-point check is asked on the first night only.
    isolation : Isolation or str or True, optional
        Call the subject in worker processes, with limits of time, memory and output: an `Isolation`, its short form
        ("seconds=1,memory=512M"), or True for the default limits. A call that does not come back is an outcome of that
        call. What was contained, and what the time of a call gives away, is in `AuditResult.side_findings`. The
        subject is drawn in one worker at a time then, whatever `jobs` and `backend` say. Not together with a
        checkpoint, a store, a `Search` or the grey box, nor of a program, which has processes of its own.
    on_progress : callable, optional
        Called with a `Progress` after every round.

    Returns
    -------
    AuditResult

    Raises
    ------
    UsageError
        If an argument makes no sense: the message names it, what was expected and what was given.
    SubjectError
        If the subject returns what cannot be read, or ends the processes that run it.

    Notes
    -----
    A subject with randomness of its own can be resumed too: what was counted stays counted, and the rest is drawn
    (`options["resumed"]` of the result says so). See `dpaudit.running.checkpoint` for why that is valid.

    A universe of more than 2,000 pairs: each input is drawn samples / 2 times, and at most 20 million times over all
    inputs, for one exact test of every pair (`AuditResult.universe`). The 48 most suspicious pairs are then examined in
    depth with the rest of `samples`. What was taken is in `options`: `table_draws` runs on each input, `table_labelled`
    draws of each pair's test, `selected` pairs with `depth_samples`.

    Examples
    --------
    >>> def release(data, size, rng):
    ...     return data + rng.laplace(scale=0.5, size=size)
    >>> result = audit(release, claim="eps=1", pairs=[(0.0, 1.0)], seed=7)
    >>> result.verdict
    'violated'
    """
    started = time.perf_counter()
    subject = as_subject(mechanism, target, name)
    promise = stated_claim(subject, claim)
    own = ["claim"] if subject.states(str(promise)) else []
    own += ["pairs"] if pairs is None else []
    check_options(
        samples=samples,
        mode=mode,
        confidence=confidence,
        seed=seed,
        jobs=jobs,
        event_mass=event_mass,
        inconclusive_factor=inconclusive_factor,
    )
    _check_flags(floating_point, pool)
    if store is not None and not isinstance(store, str | os.PathLike):
        raise UsageError(f"store must be a path, got {store!r}.")
    if store is not None and not os.fspath(store):
        raise UsageError("store must be the path of a file, got ''.")
    plan = as_plan(checkpoint, resume)
    noted = None if plan is None else "a temporary one" if plan.path is None else str(plan.path)
    limits = as_isolation(isolation)
    if limits is not None:
        if isinstance(subject.mechanism, ExecMechanism):
            raise UsageError(
                f"isolation must not be given with a program, which runs in processes of its own, got {str(limits)!r} "
                f"for {subject.name}."
            )
        given: dict[str, Any] = {
            "checkpoint": noted,
            "store": store,
            "grey_box": grey_box or None,
            "pool": pool or None,
        }
        given["pairs"] = pairs if isinstance(pairs, PairSource) else None
        for option, value in given.items():
            if value is not None:
                raise UsageError(f"{option} must not be given with isolation, got {value!r:.100}.")
    if store is not None and noted is not None:
        raise UsageError(f"checkpoint must not be given with a store, which saves every round, got {noted!r}.")
    stated = plan.seed() if seed is None and plan is not None else seed
    root = fresh_seed() if stated is None else int(stated)
    if isinstance(pairs, PairSource) and not subject.replayable and plan is not None:
        # Validity: a search that runs again chooses other pairs, and to begin again with these is a second path.
        if plan.path is not None:
            raise UsageError(
                f"checkpoint must not be given with a search for a mechanism with randomness of its own, got {noted!r} "
                f"for {subject.name}. Give the pairs that search_pairs chooses."
            )
        plan = None
    for_store = f"store must be for a sequential audit of at most {MANY_PAIRS:,} pairs"
    if store is not None and mode != "sequential":
        raise UsageError(f"{for_store}, got mode={mode!r}.")
    if store is not None and pool:
        raise UsageError("pool must be False or None with a store, whose pairs go on one by one, got True.")
    crew = Crew(jobs, backend, cluster)
    searched: ChosenPairs | None = None
    finished = False
    try:
        if isinstance(pairs, PairSource):
            # Validity: what the search draws comes from streams of its own, so that the audit is one of fixed pairs.
            searched = pairs.choose_pairs(subject, promise, root)
            pairs = searched.pairs
        chosen = stated_pairs(subject, pairs)
        if store is not None and len(chosen) > MANY_PAIRS:
            raise UsageError(f"{for_store}, got {len(chosen):,} pairs.")
        call = _Call(
            subject,
            promise,
            chosen,
            samples,
            mode,
            confidence,
            root,
            event_mass,
            inconclusive_factor,
            floating_point,
            pool,
            store,
            crew,
            crew.telling(on_progress),
        )
        if plan is not None:
            crew.checkpoint = plan.open(call.header(), replayable=subject.replayable)
        result = call.run() if limits is None else _isolated_run(call, limits)
        finished = True
    except SubjectError as error:
        finished = error is crew.noted_error  # it would end there again
        raise
    finally:
        crew.close()
        if plan is not None:
            plan.close(finished=finished)
    if crew.found and not subject.replayable:
        result = dataclasses.replace(result, options={**result.options, "resumed": True})
    result = dataclasses.replace(result, subject={**result.subject, "states": own})
    beside = searched.side_findings(result.findings) if searched is not None else ()
    if grey_box and all(finding.kind != "same_randomness" for finding in beside):
        beside += (GreyBox(subject, promise, root).examine(list(islice(chosen, MOST_REPLAYED))).side_finding(),)
    seconds = time.perf_counter() - started
    return dataclasses.replace(result, seconds=seconds, side_findings=(*result.side_findings, *beside))


def _isolated_run(call: _Call, limits: Isolation) -> AuditResult:
    """The audit with its subject in worker processes, and what was found beside the claim."""
    with isolated(call.subject, limits) as contained:
        call.subject = contained
        result = call.run()
        asked = (pair for pair in call.chosen if not call.promise.for_pair(pair.x, pair.x_prime).is_vacuous)
        timed = list(islice(asked, TIMED_PAIRS))
        found = []
        if timed and call.samples >= doubles.LEAST_SAMPLES and result.verdict != "error":
            found.append(independence_finding(contained, timed[0], call.root))
        if limits.timing:
            found.append(timing_finding(contained, timed, limits.timing, call.root))
    return dataclasses.replace(
        result,
        options={**result.options, "isolation": str(limits)},
        side_findings=(*result.side_findings, containment_finding(contained), *found),
    )


def _first_ids(pairs: Sequence[Pair]) -> str:
    """Some pairs by name, for people."""
    more = f" and {len(pairs) - IDS_SHOWN:,} more" if len(pairs) > IDS_SHOWN else ""
    return ", ".join(pairs[k].id for k in range(min(len(pairs), IDS_SHOWN))) + more


@dataclasses.dataclass
class _Call:
    """One audit, with its options checked: see `audit`."""

    subject: Subject
    promise: Claim
    chosen: Sequence[Pair]
    samples: int
    mode: Mode
    confidence: float
    root: int
    event_mass: float
    inconclusive_factor: float
    floating_point: bool
    pool: bool | None
    store: str | os.PathLike[str] | None
    crew: Crew
    tell: Callable[[Progress], None] | None

    @property
    def options(self) -> dict[str, Any]:
        """What the result says of them."""
        names = ("samples", "event_mass", "inconclusive_factor", "pool")
        return {name: getattr(self, name) for name in names}

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
            **to_json(self.options),
            "mode": self.mode,
            "confidence": float(self.confidence),
            "floating_point": bool(self.floating_point),
            **{name: environment()[name] for name in ("dpaudit", "numpy", "scipy", "platform")},
        }

    def run(self) -> AuditResult:
        """Play it."""
        return self._universe() if is_universe(self.promise, self.chosen) else self._pairs()

    def _universe(self) -> AuditResult:
        subject = self.subject
        if subject.draws_together:
            # Validity: a table's draws are made input by input, and time-outs would tell when.
            raise UsageError(
                f"pairs must be {MANY_PAIRS:,} at most for an isolated subject that is called once a draw, "
                f"got {len(self.chosen):,}."
            )
        universe = UniverseAudit(
            subject,
            self.promise,
            self.chosen,
            self.samples,
            self.mode,
            self.confidence,
            self.root,
            self.crew,
            self.event_mass,
            self.inconclusive_factor,
            self._ask_batches,
            self.tell,
        )
        try:
            found, table = universe.run(0)
        except CallError:  # as for the label game below: no draw was counted yet
            if subject.is_contained:  # its calls would have to be in one random order, of all inputs
                raise
            universe.subject = self.subject = dataclasses.replace(subject, one_by_one=True)
            found, table = universe.run(RESTART)
        self.subject = universe.subject
        about_doubles = None
        if self.floating_point:
            candidates = _least_budgets(self.promise, self.chosen, table)
            about_doubles = doubles.not_applicable(DEPEND) if universe.changes else self._doubles(*candidates)
        return self._result(
            findings=found,
            not_asked=(),
            report_delta=table.delta,
            samples=universe.runs,
            options={**self.options, **universe.options},
            floating_point=about_doubles,
            universe=table,
            beside=order_finding(universe.changes, universe.inputs_looked_at, self.mode == "fixed"),
        )

    def _pairs(self) -> AuditResult:
        chosen = self.chosen
        claims = [self.promise.for_pair(pair.x, pair.x_prime) for pair in chosen]
        asked = [k for k, pair_claim in enumerate(claims) if not pair_claim.is_vacuous]
        data, positions = distinct_inputs([chosen[k] for k in asked])
        self.crew.expected = self.samples * len(data)
        asked_claims = [claims[k] for k in asked]
        is_apart = self.store is not None or self.subject.is_contained
        wanted = False if is_apart else self.pool
        pooling = pool_pairs(self.subject, data, positions, asked_claims, wanted)
        played = _Played([], 0, "", {})
        unshared = [x for k in asked for x in (chosen[k].x, chosen[k].x_prime)]
        if asked and self.store is not None:
            played = self._accumulated(asked_claims, [chosen[k] for k in asked], positions, data)
        elif asked:
            played = self._played(asked_claims, pooling, data, unshared)
        games, more = [game for game, _ in played.pairs], 0
        # A night of a store has asked: what it was told stays with the evidence.
        if games and self.store is None and not played.failure and not any(game.change for game in games):
            clearest = max(range(len(games)), key=lambda k: (games[k].is_violated, games[k].wealth))
            shared, more = self._ask_batches(chosen[asked[pooling.groups[clearest][0]]].x)
            games[clearest].change = shared
        withhold_all(games)
        found_of: dict[int, Finding] = {}
        for group, (pair, labelled) in zip(pooling.groups, played.pairs, strict=True):
            members = [chosen[asked[k]] for k in group]
            told = next((member for member in members if not is_same_input(member)), members[0])  # it has a power
            one = self._finding(told, pair, labelled, played.failure)
            if one.verdict == "error" and not one.traceback:
                one = dataclasses.replace(one, traceback=played.traceback)
            found_of.update(zip(group, findings_of_pool(one, members, pair, self.subject.name), strict=True))
        findings = tuple(with_controls([found_of[k] for k in sorted(found_of)]))
        about_doubles = None
        if self.floating_point and not played.options.get("went_on"):  # its error rate is spent once
            candidates = [
                doubles.Candidate(chosen[asked[k]], positions[k], finding.budget, k)
                for k, finding in enumerate(findings)
                if finding.verdict != "error"
            ]
            depend = any(game.change for game in games)
            about_doubles = self._doubles(candidates, 0) if not depend else doubles.not_applicable(DEPEND)
        return self._result(
            findings=findings,
            not_asked=tuple(pair.id for k, pair in enumerate(chosen) if k not in set(asked)),
            report_delta=max((claims[k].report_delta for k in asked), default=self.promise.report_delta),
            samples=played.runs + more,
            options={**self.options, **played.options},
            floating_point=about_doubles,
            beside=order_finding(*changes_of(games), self.mode == "fixed", played.options.get("night", 1)),
        )

    def _played(
        self, claims: Sequence[Claim], pooling: Pooling, data: Sequence[Any], unshared: Sequence[Any]
    ) -> _Played:
        """The label game on the pairs that are asked; a pool is tested at the largest of its budgets.

        `unshared` has both inputs of each pair.
        """
        of_games = [max((claims[k] for k in group), key=lambda claim: claim.value) for group in pooling.groups]

        def new_game(restart: int) -> LabelGame:
            subject, root, inputs = self.subject, self.root, data
            places: Sequence[Any] = pooling.games
            if subject.draws_together:
                # Validity: where an outcome may depend on when a call is made, pairs share no draws: then the labels of
                # the slots of each pair are fair coins given everything else (`dpaudit.subjects.isolation.subject`).
                inputs, places = unshared, [(2 * k, 2 * k + 1) for k in range(len(claims))]
            return LabelGame(
                of_games,
                places,
                samples=self.samples,
                confidence=self.confidence,
                mode=self.mode,
                draw=Drawer(subject, inputs, root, DRAWS + restart, self.crew),
                coin=lambda round_, pair: stream(root, COINS + restart, round_, pair),
                log_density=subject.log_density if subject.has_log_density else None,
                data=inputs,
                calls=not subject.is_vectorised,
            )

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
        failure = traceback = ""
        try:
            game.play(self.tell)
        except CallError as error:
            failure, traceback = str(error), error.traceback
            if not isinstance(error, OutOfPatience):
                failure += f" {self.subject.batch_advice}"
        for pair in game.pairs:
            pair.is_fair = self._has_fair_labels(game, data)
        taken = [(pair, game.labelled(pair)) for pair in game.pairs]
        return _Played(taken, game.runs, failure, pooling.options, traceback)

    def _has_fair_labels(self, game: LabelGame, data: Sequence[Any]) -> bool:
        """Whether a draw's label is a fair coin given all that came before, whatever calls remember of each other.

        All calls of a round are made in one random order, and pairs share no draws, or there is one pair: see
        `dpaudit.subjects.isolation.subject`. Then each factor of a bet has mean 1 at most given the past, where each
        call keeps the claim given what came before it. (Guesses of a fixed test are counted: how many there are may
        depend on which were right. A round that was interrupted goes on with what was left of it.)
        """
        subject = self.subject
        if self.mode == "fixed" or subject.is_vectorised:
            return False
        if subject.draws_together:
            return True
        is_one_pair = len(game.pairs) == 1 and len(data) == 2 and data[0] is not data[1]
        is_here = self.crew.workers is None and not self.crew.found
        return is_one_pair and is_here and subject.makes_calls_one_by_one(data)

    def _accumulated(
        self, claims: Sequence[Claim], pairs: Sequence[Pair], positions: Sequence[tuple[int, int]], data: Sequence[Any]
    ) -> _Played:
        """One night of the store's evidence on the pairs that are asked."""
        assert self.store is not None
        with Store.at(self.store) as opened:
            night = AccumulatingAudit(
                opened,
                self.subject,
                self.promise,
                claims,
                pairs,
                positions,
                data,
                samples=self.samples,
                confidence=self.confidence,
                seed=self.root,
                crew=self.crew,
                ask_batches=self._ask_batches_of,
            ).play(self.tell)
        self.subject = night.subject
        options = {"store": os.fspath(self.store), **night.options}
        games = list(zip(night.games, night.samples, strict=True))
        return _Played(games, night.runs, night.failure, options, night.traceback)

    def _ask_batches(self, x: Any) -> tuple[Change | None, int]:
        """What batches of outcomes on this input share, of a vectorised subject, on streams of their own; the runs."""
        return self._ask_batches_of(self.subject, x, self.root)

    def _ask_batches_of(self, subject: Subject, x: Any, seed: int) -> tuple[Change | None, int]:
        if not subject.is_vectorised or subject.has_lost_calls:
            return None, 0
        return in_small_batches(Drawer(subject, [x], seed, BATCH_DRAWS, self.crew), self.samples)

    def _doubles(self, candidates: Sequence[doubles.Candidate], omitted: int) -> FloatingPointFinding:
        """The floating-point check of the pairs that the audit asked, on streams of its own.

        `omitted` pairs were left out of the candidates, since their budgets are larger than those of enough others.
        """
        draws = doubles.draws_of(self.samples, self.subject.is_vectorised)
        if draws == 0:
            few = f"samples must be at least {doubles.LEAST_SAMPLES:,} for this check, got {self.samples:,}."
            return doubles.not_applicable(few, omitted=len(candidates) + omitted)
        # Validity: these draws are made input by input: a time-out could tell when it was, and so of which input.
        ended = "The calls of the subject do not all come back."
        if self.subject.has_lost_calls:
            return doubles.not_applicable(ended, omitted=len(candidates) + omitted)
        data = {i: x for one in candidates for i, x in zip(one.inputs, (one.pair.x, one.pair.x_prime), strict=True)}
        draw = Drawer(self.subject, data, self.root, FLOAT_DRAWS, self.crew)
        found = doubles.examine(candidates, draws, draw, lambda place: stream(self.root, FLOAT_COINS, place))
        if self.subject.has_lost_calls:
            return doubles.not_applicable(ended, found.samples, len(candidates) + omitted)
        return dataclasses.replace(found, omitted=found.omitted + omitted)

    def _finding(self, pair: Pair, game: PairGame, labelled: int, failure: str) -> Finding:
        return finding_of(pair, game, labelled, self.subject.name, failure, self.event_mass, self.inconclusive_factor)

    def _result(self, beside: Sequence[SideFinding] = (), **found: Any) -> AuditResult:
        return AuditResult(
            claim=str(self.promise),
            confidence=self.confidence,
            mode=self.mode,
            seed=self.root,
            replayable=self.subject.replayable,
            seconds=0.0,
            subject=self.subject.describe(),
            environment=environment(),
            side_findings=(*claim_metadata(self.subject, self.promise, self.chosen), *beside),
            **found,
        )


@dataclasses.dataclass(frozen=True)
class _Played:
    """What a label game leaves: games with the labelled draws behind them, runs, what broke, options to report."""

    pairs: list[tuple[PairGame, int]]
    runs: int
    failure: str
    options: dict[str, Any]
    traceback: str = ""  # of what broke, as text


def stated_claim(subject: Subject, claim: Claim | str | None) -> Claim:
    """The claim of a call: what it states, or the subject's own; `UsageError` if there is none."""
    if claim is None:
        claim = subject.claim
        if claim is None:
            raise UsageError(f"claim must be given: {subject.name} states none. For example claim=PureDP(1.0).")
    if isinstance(claim, str):
        return parse_claim(claim)
    if not isinstance(claim, Claim):
        raise UsageError(f"claim must be a Claim or a string such as 'eps=1', got {claim!r}.")
    return claim


def stated_pairs(subject: Subject, pairs: Iterable[Any] | None) -> Sequence[Pair]:
    """The pairs of a call: what it states, or the subject's own; `UsageError` if there are none."""
    if pairs is None:
        pairs = subject.pairs()
        if pairs is None:
            raise UsageError(
                f"pairs must be given: {subject.name} has none. For example pairs=[(0.0, 1.0)]; `dpaudit.audit` "
                "looks for some itself with pairs=dpaudit.Search(domain)."
            )
    if isinstance(pairs, AllPairs) and len(pairs) > MANY_PAIRS:
        return pairs
    return as_pairs(pairs)


def _check_flags(floating_point: Any, pool: Any) -> None:
    if not isinstance(floating_point, bool | np.bool_):
        raise UsageError(f"floating_point must be True or False, got {floating_point!r}.")
    if pool is not None and not isinstance(pool, bool | np.bool_):
        raise UsageError(f"pool must be True, False or None, got {pool!r}.")


def _least_budgets(promise: Claim, chosen: Sequence[Pair], table: UniverseTable) -> tuple[list[doubles.Candidate], int]:
    """The pairs of a universe with the smallest budgets, as many as the floating-point check takes; how many others."""
    asked = np.flatnonzero((table.verdict != NOT_ASKED) & (table.verdict != VERDICTS.index("error")))
    order = asked[np.lexsort((asked, table.budget[asked]))][: doubles.MOST_PAIRS]
    candidates = []
    for row in order.tolist():
        pair = chosen[row]
        budget = promise.for_pair(pair.x, pair.x_prime).budget
        candidates.append(doubles.Candidate(pair, (int(table.first[row]), int(table.second[row])), budget, row))
    return candidates, len(asked) - len(order)
