"""The main job: a promise and a subject in, pairs, draws, wealth, and an `AuditResult` out.

The error rate. `1 - confidence` bounds, for the whole call, both P(verdict "violated") when the subject keeps its claim
on every pair, and P(some reported lower bound exceeds its truth): see `dpaudit.campaign.label_game` for the proof and
`tests/meta` for the measurement. It needs draws that are independent of each other and follow the law of the subject on
the input it is given.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol, runtime_checkable

from dpaudit.arguments import RngLike, seed_from, with_near_names
from dpaudit.audits.audit_run import AuditRun, ChosenPairs
from dpaudit.audits.compatibility import check_compatibility
from dpaudit.audits.one_audit import header, play_audit
from dpaudit.audits.options import Options, Running
from dpaudit.campaign.campaign import Progress
from dpaudit.campaign.schedules import Mode
from dpaudit.errors import SubjectError
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.pairs import MANY_PAIRS
from dpaudit.results.model import AuditResult, SideFinding
from dpaudit.results.shown import session_progress
from dpaudit.running.checkpoint import CheckpointPlan
from dpaudit.running.streams import fresh_seed
from dpaudit.running.worker_pool import WorkerPool
from dpaudit.subjects.call_limits import same_folder
from dpaudit.subjects.callables import Subject, as_subject
from dpaudit.subjects.fresh import fresh_subject
from dpaudit.subjects.isolation import Isolation
from dpaudit.subjects.programs import contained
from dpaudit.subjects.samplers import samplers
from dpaudit.subjects.stated import stated_claim, stated_pairs

LOG = logging.getLogger("dpaudit")  # says nothing unless the caller's program asks for it


@runtime_checkable
class PairSource(Protocol):
    """Source of the pairs of an audit, which chooses them before the first draw (`dpaudit.Search`).

    Validity: it may run the subject, but never on the audit's own streams.
    """

    def choose_pairs(self, subject: Subject, claim: Claim, seed: int) -> ChosenPairs: ...


@with_near_names
def audit(
    mechanism: Any,
    claim: Claim | str | None = None,
    pairs: Iterable[Any] | PairSource | None = None,
    *,
    samples: int = 100_000,
    mode: Mode = "sequential",
    confidence: float = 0.95,
    seed: int | None = None,
    rng: RngLike = None,
    jobs: int = 1,
    backend: str = "loky",
    cluster: str | None = None,
    checkpoint: str | os.PathLike[str] | CheckpointPlan | None = None,
    resume: bool = False,
    event_mass: float = 0.1,
    inconclusive_factor: float = 2.0,
    floating_point: bool | None = None,
    pool: bool | None = None,
    grey_box: bool = False,
    severity: bool | None = None,
    band: bool = False,
    power: str = "off",
    monotone: str = "density",
    fresh: bool = False,
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
        (called once a draw; keyword names `size`, `n`, `rng`, `seed`, `random_state` are recognised, and the last three
        are given what their annotation says: `dpaudit.subjects.parameters`).
    claim : Claim or str, optional
        The promise, or the command line's string for it; the mechanism's own `claim` by default. Which inputs are
        neighbours it says with `adjacency`, as in "eps=1,adjacency=add_remove", or the mechanism does
        (`dataset_adjacency`): a pair of several steps has the budget of so many.
    pairs : iterable of (x, x_prime) or Pair, optional
        The mechanism's own `pairs()` by default. Pairs of which the claim asks nothing are listed, not drawn. Of more
        than 20 each is tested once, and more than 150 are audited as one table, see Notes; `AllPairs` is the compact
        form of all pairs of many inputs. A `Search` looks for the worst pairs first, on draws of its own.
    samples : int
        At most 2 * samples labelled draws are taken a pair, so about `samples` runs on each input.
    mode : {"sequential", "adaptive", "fixed"}
        Stop a pair as soon as the evidence is there, or use all draws for the tightest bound. "adaptive" is sequential
        and spends `samples` runs an input on average where the evidence grows: half of them evenly, half on the leading
        pairs, of which each may take 16 times its even share. For many pairs of which a few may be broken. More than 20
        pairs (30 in adaptive mode) are played in fixed mode, see Notes.
    confidence : float
        In (0, 1), for the whole call: all pairs, directions, witnesses, looks and bounds together.
    seed : int, optional
        Non-negative; one is drawn and recorded by default.
    rng : int or Generator or SeedSequence, optional
        In place of `seed`: a seed is taken from it, and recorded.
    jobs : int
        Worker processes; the result does not depend on it, but for draws that depend on each other: a violation can
        only stand then where this process makes all calls. -1 takes all processors.
    backend : str
        What the processes are of: "loky" (this machine), "dask" or "ray" (a cluster, whatever `jobs` is), or another
        backend of joblib. The result depends on it as on `jobs`. Workers return counts and training draws, no samples.
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
    floating_point : bool, optional
        Whether to ask too what the low bits of real-valued outputs give away, on fresh draws and at an error rate of
        its own: `AuditResult.floating_point`. The verdict and the bounds do not depend on it. It looks at 8 pairs at
        most, those with the smallest budgets. Of an input it takes half as many draws as the audit, at most 20,000 (a
        quarter, at most 5,000, where a draw is a call), but 1,000 at least. By default it is left out behind a
        violation where a call takes more than 1 ms. Audits of fewer than 1,000 samples are too
        small for it.
    pool : bool, optional
        Whether pairs of one shift and budget are asked in one game, where the mechanism says that it is a translation
        family (`translation_family = True`, see `dpaudit.subjects.protocol`): they are found with fewer
        runs, and together. That the finding holds for each of them rests on what the mechanism says, the error rate
        does not (`Finding.pool`). None, the default, pools wherever that is possible; True is an error where it is not.
    grey_box : bool
        Whether to run x and x_prime of the first 200 pairs on the same random streams too, where the mechanism takes a
        generator, and to record the noise of the first 50: the side findings "same_randomness"
        (`replay_same_randomness`) and "recorded_noise" (`record_noise`). A `Search` does both by itself.
    power : {"off", "quick", "full"}
        Whether to measure what this audit would have found, where it refutes nothing: leaks of known loss and mass are
        planted into the outputs that it has seen, and looked for again (`dpaudit.audits.planted`). "not refuted" then
        rests on them, and not on a general table. No more runs of the mechanism. "quick" plants 10 leaks of each form
        that is expected to be found, of `inconclusive_factor` budgets; "full" 40 of each form, mass and loss, which is
        a map of what could have been missed, and takes minutes. Not of all-pairs tables and stores.
    fresh : bool
        The mechanism is a factory, a class or function without arguments: each call is made on an object of its own,
        one draw a call. For mechanisms that keep noise or a budget.
    severity : bool, optional
        Whether violated pairs (the clearest 8) have more labelled draws for a bound that says how bad they are: with
        True half of those that remain of `samples`, by default at most that half, four times as many as the verdict
        took but at least 2,000. Where half is below 2,000 both take 2,000, or all that remain, and none below 50
        (`dpaudit.audits.severity`). With False the audit stops at its first proof, when its bound is hardly above the
        budget. Not in fixed mode, whose bound has all draws already, nor of pools, all-pairs tables and stores.
    band : bool
        Whether to draw a confidence band for the trade-off function of the clearest pair, on draws of its own (at most
        12,000 of each input, but see `monotone`; 2,000 of a subject that is called once a draw):
        `AuditResult.trade_off`. It takes a fifth of the error rate, see `dpaudit.audits.band`. Not of all-pairs tables
        and stores.
    monotone : {"density", "value"}
        The number of an output that the pair's likelihood ratio is assumed to rise or fall with, for upper limits on
        the loss beside the band (`AuditResult.trade_off.monotone`): the mechanism's own log density ratio, where it has
        a `log_density`; or the output, which is a number. Of a subject that draws batches the band has `samples` draws
        of each input then, at most 100,000. The verdict does not depend on the limits (`dpaudit.audits.monotone`).
    target, name : str, optional
        How the subject is named in the result.
    store : path, optional
        A file in which evidence accumulates (it is made where there is none): the bets on each pair go on from where
        earlier audits of the same mechanism and claim left them, on streams of their own. Verdicts and bounds are then
        those of all these sessions together, and `confidence` is for all of them, for ever: 0.999 is recommended. Not
        in fixed mode, and no all-pairs tables; the floating-point check is asked on the first session only.
    isolation : Isolation or str or True, optional
        Call the subject in worker processes, with limits of time, memory and output: an `Isolation`, its short form
        ("seconds=1,memory=512M"), or True for the default limits. A call that does not come back is an outcome of that
        call. What was contained, and what the time of a call gives away, is in `AuditResult.side_findings`. The
        subject is drawn in one worker at a time then, whatever `jobs` and `backend` say. Of a program, which always has
        a process of its own, the limits are those of a batch, of a process and of a line.
    on_progress : callable, optional
        Called with a `Progress` after every round. By default an audit at a prompt or in a notebook shows a bar, once
        it takes some seconds.

    Returns
    -------
    AuditResult

    Raises
    ------
    UsageError
        If an argument makes no sense: the message names it, what was expected and what was given.
        `IncompatibleOptions` where two of them cannot go together (`dpaudit.audits.compatibility` says which, and why).
    SubjectError
        If the subject returns what cannot be read, or ends the processes that run it.

    Notes
    -----
    A subject with randomness of its own can be resumed too: what was counted stays counted, and the rest is drawn
    (`options["resumed"]` of the result says so). See `dpaudit.running.checkpoint` for why that is valid.

    An all-pairs table: each input is drawn samples / 2 times (beyond 2,000 pairs at most 20 million times over all
    inputs) for one exact test of every pair (`AuditResult.universe`). The most suspicious pairs are examined in depth
    then, with the rest of `samples`: up to 44, and 20 beyond 2,000 pairs. Up to 1,000 pairs each has a finding. What
    was taken is in `options`: `table_draws` runs on each input, `table_labelled` draws of each pair's test, `selected`
    pairs with `depth_samples`.

    Where games of the pairs would take too long in the mode that is asked for, the audit is in fixed mode
    (`options["asked_mode"]` has the other one): above 20 pairs instead of sequential, above 30 instead of adaptive.
    Up to 2,000 pairs have games in the mode that is asked for where the audit asks for what only these give: a store, a
    band, `power`, `severity=True` (but in fixed mode), pools, an isolated subject that is called once a draw, an input
    beside itself, parameters that differ from pair to pair, or fewer than 200 samples (`dpaudit.audits.many_pairs`).

    Examples
    --------
    >>> def release(data, size, rng):
    ...     return data + rng.laplace(scale=0.5, size=size)
    >>> result = audit(release, claim="eps=1", pairs=[(0.0, 1.0)], seed=7)
    >>> result.verdict
    'violated'
    """
    seed = seed_from(seed, rng)
    started = time.perf_counter()
    effort = samples, mode, confidence, seed, event_mass, inconclusive_factor, floating_point
    options = Options(*effort, pool, grey_box, severity, band, power, monotone)
    running = Running(jobs, backend, cluster, checkpoint, resume, store, isolation, on_progress)
    subject = fresh_subject(mechanism, target, name) if fresh else as_subject(mechanism, target, name)
    promise = stated_claim(subject, claim)
    own = ["claim"] if subject.states(str(promise)) else []
    own += ["pairs"] if pairs is None else []
    requested = {options.mode: options.mode, **running.asked(), **options.asked()}
    requested |= {"program": subject.name} if subject.is_program else {}
    requested |= {"search": pairs} if isinstance(pairs, PairSource) else {}
    check_compatibility(requested, replayable=subject.replayable)
    limits = running.isolation
    with (
        contextlib.nullcontext(subject) if limits is None else contained(subject, limits) as subject,
        session_progress(subject.name, on_progress) as tell,
    ):
        running = dataclasses.replace(running, on_progress=tell)
        result = _audited(subject, promise, pairs, options, running, requested)
    described, seconds = {**result.subject, "states": own}, time.perf_counter() - started
    result = dataclasses.replace(result, subject=described, seconds=seconds)
    LOG.info("%s, claim %s: %s in %.3g s", subject.name, promise, result.verdict, result.seconds)
    return result


def _audited(
    subject: Subject,
    promise: Claim,
    pairs: Iterable[Any] | PairSource | None,
    options: Options,
    running: Running,
    requested: dict[str, Any],
) -> AuditResult:
    """The audit, and what is looked at beside it, with its worker pool and its checkpoint."""
    plan = running.checkpoint
    stated = plan.seed() if options.seed is None and plan is not None else options.seed
    root = fresh_seed() if stated is None else int(stated)
    LOG.info("auditing %s, claim %s, seed %s", subject.name, promise, root)
    if isinstance(pairs, PairSource) and not subject.replayable:
        plan = None  # a temporary one: to begin again with other pairs is a second path
    worker_pool = WorkerPool(running.jobs, running.backend, running.cluster)
    searched: ChosenPairs | None = None
    finished = False
    try:
        if isinstance(pairs, PairSource):
            # Validity: what the search draws comes from streams of its own, so that the audit is one of fixed pairs.
            with same_folder():
                searched = pairs.choose_pairs(subject, promise, root)
            pairs = searched.pairs
        with same_folder():
            chosen = stated_pairs(subject, pairs, promise)
        if len(chosen) > MANY_PAIRS:
            many = {**requested, "all pairs": f"{len(chosen):,} pairs"}
            check_compatibility(many, replayable=subject.replayable, called_once=subject.draws_together)
        tell = worker_pool.telling(running.on_progress)
        run = AuditRun(subject, promise, chosen, options, root, worker_pool, running.store, tell, searched)
        if plan is not None:
            worker_pool.checkpoint = plan.open({**header(run), **running.limits}, replayable=subject.repeats_its_draws)
            if worker_pool.checkpoint is not None and worker_pool.checkpoint.beside is not None:
                subject.go_on_from(worker_pool.checkpoint.beside)
        with same_folder() as left:
            result = play_audit(run)
        finished = not run.cut  # what was cut as the time was over can be gone on from
    except SubjectError as error:
        finished = error is worker_pool.noted_error  # it would end there again
        raise
    finally:
        worker_pool.close()
        if plan is not None:
            plan.close(finished=finished)
    more: dict[str, Any] = {"resumed": True} if worker_pool.found and not subject.repeats_its_draws else {}
    text = "A call changed the working directory of the process, which was put back for the reports."
    moved = (SideFinding("working_directory", "found", text, details={"left": folder}) for folder in left)
    beside = (*result.side_findings, *moved)
    return dataclasses.replace(result, options={**result.options, **more, **running.limits}, side_findings=beside)


def same_distribution(
    first: Callable[..., Any], second: Callable[..., Any], tolerance: Claim | str, **options: Any
) -> AuditResult:
    """Test whether two samplers have one law, up to a tolerance, on both sides.

    Validity: an audit of one pair (`dpaudit.subjects.samplers`). If the laws are within the tolerance, "violated" has a
    probability of at most 1 - confidence, however many draws are looked at.

    Parameters
    ----------
    first, second : callable
        Functions of `rng`, `size` and `rng`, or nothing.
    tolerance : Claim or str
        "eps=0,delta=0.01": no event's probability differs by more than 0.01. "eps=0.1": none by more than a factor of
        1.105. Or any other claim.
    **options
        As for `dpaudit.audit`: samples, mode, confidence, seed, power and the others.

    Returns
    -------
    AuditResult
        "violated": the laws differ by more than the tolerance. "not_refuted": no difference was found, and one of the
        size that the result names would have been. "inconclusive": too few draws to say so.

    Examples
    --------
    >>> def ours(size, rng):
    ...     return rng.exponential(size=size) * rng.choice([-1, 1], size=size)
    >>> def text(size, rng):
    ...     return rng.laplace(size=size)
    >>> same_distribution(ours, text, "eps=0,delta=0.05", samples=20_000, mode="fixed", seed=1).verdict
    'not_refuted'
    """
    return audit(samplers(first, second, tolerance), **options)
