"""A label game on the draws of a subject, and what is said where one of its calls raises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dpaudit.campaign.label_game import LabelGame
from dpaudit.campaign.schedules import Mode
from dpaudit.inference.pools import Pool
from dpaudit.privacy.claims import Claim
from dpaudit.running.draws import Crew, Drawer
from dpaudit.running.streams import COINS, DRAWS, stream
from dpaudit.subjects.callables import CallError, Subject
from dpaudit.subjects.isolation import OutOfPatience


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
    crew: Crew,
    shows: int = 0,
) -> LabelGame:
    """The label game of an audit with this seed; `restart` is added to the purposes of its streams."""
    return LabelGame(
        claims,
        games,
        samples=samples,
        error_rate=error_rate,
        mode=mode,
        draw=Drawer(subject, data, root, DRAWS + restart, crew),
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
