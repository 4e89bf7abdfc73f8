"""One audit of pairs that are chosen: games of single pairs or a table of all, stages, findings, and the result."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from dpaudit.audits.all_pairs_auditing import AllPairsAudit
from dpaudit.audits.audit_run import AuditRun
from dpaudit.audits.findings import findings_of
from dpaudit.audits.many_pairs import GamePlan, game_plan
from dpaudit.audits.memory_checks import note_unused, why_kept
from dpaudit.audits.options import BAND_SHARE
from dpaudit.audits.stages import BESIDE, EVIDENCE, play_stages
from dpaudit.campaign.draws import KEPT_BYTES
from dpaudit.campaign.label_game import LabelGame
from dpaudit.environment import environment
from dpaudit.inference.pools import pool_pairs
from dpaudit.inference.saved import claim_digest
from dpaudit.privacy.inputs import distinct_inputs, inputs_apart
from dpaudit.privacy.neighbours import steps_note
from dpaudit.privacy.pairs import MANY_PAIRS, AllPairs
from dpaudit.results.model import AuditResult, Finding, SideFinding, to_json
from dpaudit.running.digests import digest, input_key
from dpaudit.running.label_games import game_on, start_or_restart, until_it_raises
from dpaudit.subjects.callables import Subject

IDS_SHOWN = 5  # pairs that a checkpoint names


def planned_games(run: AuditRun) -> GamePlan:
    """Games or a table: how the pairs of an audit are played."""
    asked = run.options
    is_of_games = run.store is not None or asked.band or asked.power != "off"
    needs_games = is_of_games or (bool(asked.severity) and asked.mode != "fixed")
    sizes = asked.mode, asked.samples
    return game_plan(run.subject, run.promise, run.chosen, *sizes, pool=asked.pool, needs_games=needs_games)


def header(run: AuditRun) -> dict[str, Any]:
    """Identity of an audit in its checkpoint: all that its draws, verdict and bounds depend on (so not `grey_box`)."""
    subject, chosen, options = run.subject, run.chosen, run.options
    inputs: Any = (chosen.ids, chosen.inputs) if isinstance(chosen, AllPairs) else list(chosen)
    more = f" and {len(chosen) - IDS_SHOWN:,} more" if len(chosen) > IDS_SHOWN else ""
    # A function prints as any other does, and so do objects: what is asked of the pairs counts, and what inputs hold.
    some = (chosen[k] for k in range(0, len(chosen), max(len(chosen) // MANY_PAIRS, 1)))
    claims = [run.promise.for_pair(pair.x, pair.x_prime) for pair in some]
    return {
        "claim": str(run.promise),
        "promise": digest([run.promise, *map(claim_digest, claims[:1]), [float(claim.value) for claim in claims]]),
        "pairs": ", ".join(chosen[k].id for k in range(min(len(chosen), IDS_SHOWN))) + more,
        "inputs": input_key(inputs),
        "seed": run.root,
        "mechanism": f"{subject.name}, {subject.interface}, {'' if subject.replayable else 'not '}replayable",
        "fingerprint": subject.fingerprint,
        **to_json(options.said),
        "mode": options.mode,
        "played": str(planned_games(run)),
        "confidence": float(options.confidence),
        "floating_point": None if options.floating_point is None else bool(options.floating_point),
        **{name: environment()[name] for name in ("dpaudit", "numpy", "scipy", "platform")},
    }


def play_audit(run: AuditRun) -> AuditResult:
    """Play the pairs and the stages; the findings, and with them the verdict, are made between."""
    how = planned_games(run)
    if how.mode != run.options.mode:
        run.said = {"asked_mode": run.options.mode}
        run.options = dataclasses.replace(run.options, mode=how.mode)
    if how.is_table:
        _play_all_pairs(run)
    else:
        _play_pairs(run)
    run.played = run.runs
    play_stages(run, EVIDENCE)
    if run.table is None:
        run.findings = findings_of(run)
    play_stages(run, BESIDE)
    if run.cut:
        text = f"The time was over. Cut or left out: {'; '.join(run.cut)}. What was found before stands."
        run.beside.append(SideFinding("time_limit", "not_applicable", text))
    return AuditResult(
        claim=str(run.promise),
        confidence=run.options.confidence,
        mode=run.options.mode,
        seed=run.root,
        replayable=run.subject.replayable,
        findings=tuple(_explained(run, finding) for finding in run.findings),
        not_asked=run.not_asked,
        report_delta=run.report_delta,
        samples=run.runs,
        seconds=0.0,
        subject=run.subject.describe(),
        environment=environment(),
        options={**run.options.said, **run.said},
        floating_point=run.floating_point,
        universe=run.table,
        side_findings=tuple(run.beside),
        trade_off=run.trade_off,
    )


def _play_all_pairs(run: AuditRun) -> None:
    """Play the table; an isolated subject whose batch raises has games instead, as its calls need one random order."""

    def begin(subject: Subject, restart: int) -> None:
        run.subject = subject
        if subject.draws_together:
            asked_mode = run.said.pop("asked_mode", run.options.mode)
            run.options = dataclasses.replace(run.options, mode=asked_mode)
            _play_pairs(run)
        else:
            AllPairsAudit(run).play(restart)

    if run.subject.is_contained and len(run.chosen) > MANY_PAIRS:
        begin(run.subject, 0)
    else:
        start_or_restart(begin, run.subject)


def _play_pairs(run: AuditRun) -> None:
    """Play games of the pairs of which the claim asks anything."""
    claims = [run.promise.for_pair(pair.x, pair.x_prime) for pair in run.chosen]
    asked = [k for k, claim in enumerate(claims) if not claim.is_vacuous]
    run.pairs, run.claims = [run.chosen[k] for k in asked], [claims[k] for k in asked]
    run.not_asked = tuple(pair.id for pair, claim in zip(run.chosen, claims, strict=True) if claim.is_vacuous)
    run.report_delta = max((claim.report_delta for claim in run.claims), default=run.promise.report_delta)
    data, run.positions = distinct_inputs(run.pairs)
    run.inputs, run.worker_pool.expected = len(data), run.options.samples * len(data)
    if asked and run.store is not None:
        _play_session(run, run.store)
    elif asked:
        _play_games(run, data)


def _play_games(run: AuditRun, data: Sequence[Any]) -> None:
    """Play the label game; a pool is tested at the largest of its budgets."""
    options = run.options
    pooling = pool_pairs(run.subject, data, run.positions, run.claims, options.pool)
    of_games = [max((run.claims[k] for k in group), key=lambda claim: claim.value) for group in pooling.groups]

    error_rate = (1.0 - options.confidence) * (1.0 - BAND_SHARE if options.band else 1.0)
    shows = 0 if options.power == "off" else options.samples
    moved: dict[int, bool] = {}

    def begin(subject: Subject, restart: int) -> LabelGame:
        run.subject = subject
        moved.clear()
        inputs, games = data, pooling.games
        if subject.draws_together:
            # Validity: where an outcome may depend on when a call is made, pairs share no draws: then the labels of
            # the slots of each pair are fair coins given everything else (`dpaudit.subjects.isolation.subject`).
            inputs, apart = inputs_apart(run.pairs)
            games = pooling.placed(apart)
        game = game_on(
            subject, inputs, of_games, games, options.samples, error_rate, options.mode,
            root=run.root, restart=restart, worker_pool=run.worker_pool, shows=shows, moved=moved,
        )  # fmt: skip
        game.start()
        return game

    game = start_or_restart(begin, run.subject)
    if run.tell is not None:  # the only round of a fixed audit may be long
        run.tell(game.progress())
    run.failure, run.traceback = until_it_raises(lambda: game.play(run.tell), run.subject)
    for pair in game.pairs:
        pair.is_fair = _has_fair_labels(run, game, data)
    note_unused(run.subject, game.pairs, moved)
    run.withheld, more = why_kept(run.subject, run.root, game, data, moved)
    run.games, run.labelled, run.groups = game.pairs, [game.labelled(pair) for pair in game.pairs], pooling.groups
    run.runs, run.shown = game.runs + more, game.shown
    if dropped := game.draws.dropped:
        text = (
            f"Outcomes take about {game.draws.size:,} bytes each: {dropped:,} that fits may see were not kept, so that "
            f"they take {KEPT_BYTES >> 20:,} MiB at most. All were counted."
        )
        run.beside.append(SideFinding("memory", "not_applicable", text))
    _note_cut(run, game)
    run.said |= pooling.options


def _note_cut(run: AuditRun, game: LabelGame) -> None:
    """Note what is left of a game that was cut as the time was over."""
    if game.is_cut:
        state = game.progress()
        left = f"{state.open_pairs} of {state.pairs} pairs, after {state.draws:,} of {state.planned:,}"
        run.cut.append(f"draws of {left}")


def _has_fair_labels(run: AuditRun, game: LabelGame, data: Sequence[Any]) -> bool:
    """True where a draw's label is a fair coin given all that came before, whatever calls remember of each other.

    All calls of a round are made in one random order, and pairs share no draws, or there is one pair: see
    `dpaudit.subjects.isolation.subject`. Then each factor of a bet has mean 1 at most given the past, where each
    call keeps the claim given what came before it. (Guesses of a fixed test are counted: how many there are may
    depend on which were right. A round that was interrupted goes on with what was left of it.)
    """
    subject = run.subject
    if run.options.mode == "fixed" or subject.is_vectorised:
        return False
    if subject.draws_together:
        return True
    is_one_pair = len(game.pairs) == 1 and len(data) == 2 and data[0] is not data[1]
    is_here = run.worker_pool.workers is None and not run.worker_pool.found
    return is_one_pair and is_here and subject.makes_calls_one_by_one(data)


def _play_session(run: AuditRun, path: str | os.PathLike[str]) -> None:
    """Play one session of the store's evidence on the pairs that are asked."""
    from dpaudit.running.accumulating import AccumulatingAudit  # few audits need it, and it takes long to import
    from dpaudit.running.store import Store

    def kept(session: AccumulatingAudit) -> tuple[dict[int, str], int]:
        return why_kept(session.subject, session.session.stream_seed, session.game, session.data, session.moved)

    def why_not(session: AccumulatingAudit) -> str:
        # Of an isolated subject the few outcomes of a pilot may well be others in other processes.
        return "" if session.subject.is_contained else next(iter(kept(session)[0].values()), "")

    with Store.at(path) as opened:
        session = AccumulatingAudit(
            opened, run.subject, run.promise, run.claims, run.pairs, samples=run.options.samples, mode=run.options.mode,
            confidence=run.options.confidence, seed=run.root, worker_pool=run.worker_pool, why_not=why_not,
        ).play(run.tell)  # fmt: skip
    _note_cut(run, session.game)
    run.withheld, more = kept(session)
    note_unused(session.subject, session.game.pairs, session.moved)
    run.subject, run.runs = session.subject, session.runs + more
    run.games, run.labelled = [game for game, _ in session.games], [labelled for _, labelled in session.games]
    run.groups = [(k,) for k in range(len(run.pairs))]
    run.failure, run.traceback = session.failure, session.traceback
    run.session, run.went_on = session.options["night"], session.went_on
    run.said |= {"store": os.fspath(path), **session.options}


def _explained(run: AuditRun, finding: Finding) -> Finding:
    """A finding with the relation of its pair; of calls that broke, with what they were passed as randomness."""
    if finding.verdict == "error":
        return dataclasses.replace(finding, message=run.subject.with_passed(finding.message))
    lower = finding.parameter_lower if finding.verdict == "violated" else None
    note = steps_note(run.promise, finding.x, finding.x_prime, lower)
    return dataclasses.replace(finding, notes=(*finding.notes, note)) if note else finding
