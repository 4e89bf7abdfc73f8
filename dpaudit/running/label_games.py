"""Make the label game of a subject, in any mode, and put what one of its calls raises into words."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dpaudit.campaign.label_game import LabelGame
from dpaudit.campaign.schedules import Mode
from dpaudit.inference.order import Change, in_small_batches
from dpaudit.inference.pools import Pool
from dpaudit.privacy.claims import Claim
from dpaudit.running.streams import BATCH_DRAWS, COINS, DRAWS, RESTART, stream
from dpaudit.running.worker_pool import WorkerPool
from dpaudit.subjects.callables import CallError, Subject
from dpaudit.subjects.isolation import OutOfPatience

Begun = TypeVar("Begun")


def game_on(
    subject: Subject,
    data: Sequence[Any],
    claims: Sequence[Claim],
    games: Sequence[tuple[int, int] | Pool],
    samples: int,
    error_rate: float,
    mode: Mode,
    *,
    root: int,
    restart: int,
    worker_pool: WorkerPool,
    shows: int = 0,
    moved: dict[int, bool] | None = None,
) -> LabelGame:
    """The label game of an audit with this seed; `restart` is added to the purposes of its streams.

    `moved` is filled with the inputs whose first calls took randomness: see `DrawJob`.
    """
    return LabelGame(
        claims,
        games,
        samples=samples,
        error_rate=error_rate,
        mode=mode,
        draw=worker_pool.drawer(subject, data, root, DRAWS + restart, moved),
        coin=lambda round_, pair: stream(root, COINS + restart, round_, pair),
        log_density=subject.log_density if subject.has_log_density else None,
        data=data,
        calls=not subject.is_vectorised,
        shows=shows,
    )


def until_it_raises(play: Callable[[], None], subject: Subject) -> tuple[str, str]:
    """Play; gives in words what a call raised, and its traceback: both empty where none did."""
    try:
        play()
    except OutOfPatience as error:
        return str(error), error.traceback
    except CallError as error:
        return f"{error} {subject.batch_advice}", error.traceback
    return "", ""


def start_or_restart(begin: Callable[[Subject, int], Begun], subject: Subject) -> Begun:
    """Result of `begin`; where a batch raises, that for the subject called once a draw, on fresh streams.

    It takes the subject, and what is added to the purposes of streams.
    """
    try:
        return begin(subject, 0)
    except OutOfPatience:
        raise
    except CallError:
        # Validity: a vectorised call that raises is one observation of a call, not of `size` draws. `begin` counts no
        # draw, so what it began may start again, with one call a draw, where raising is an outcome like any other.
        return begin(dataclasses.replace(subject, one_by_one=True), RESTART)


def ask_batches(subject: Subject, x: Any, seed: int, worker_pool: WorkerPool, *how: Any) -> tuple[Change | None, int]:
    """Exchangeability test on small batches of a vectorised subject, on streams of their own, and the runs.

    `how` are arguments of `in_small_batches`.
    """
    if not subject.is_vectorised or subject.has_lost_calls:
        return None, 0
    return in_small_batches(worker_pool.drawer(subject, [x], seed, BATCH_DRAWS), *how)
