"""Power of a test: what it finds at least, by the mass of the event, and with how many samples it would do."""

from __future__ import annotations

import bisect
import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

from dpaudit.campaign.schedules import Mode, schedule_of
from dpaudit.exact.response import event_mass_of
from dpaudit.inference.learned_power import learned_losses
from dpaudit.inference.pair_game import PairGame
from dpaudit.privacy.claims import Claim
from dpaudit.results.model import LearnedLoss, Power

FOUND_WITH = 0.9  # the probability that defines the power
MIN_SHARE_OF_DRAWS = 0.5  # of its even share: what every pair gets in adaptive mode, which spends the rest by rank
# Masses of events of a map: it ends where no loss shows.
MASSES = tuple(float(f"{digit}e-{power}") for power in range(1, 6) for digit in (3, 1))


def power_of(game: PairGame, event_mass: float) -> Power:
    """Power of the pair's own test: in the best case, and for events that it has to learn."""
    event_mass = event_mass_of(game.claim, event_mass)
    known = game.main.power(event_mass, FOUND_WITH)
    learned = learned_losses(game.main, event_mass, FOUND_WITH, game.is_fixed)
    return Power(event_mass, FOUND_WITH, *known, tuple(LearnedLoss(form, loss) for form, loss in learned))


def with_map(power: Power, game: PairGame, mode: Mode, inconclusive_factor: float, games: int) -> Power:
    """The power with what a test finds that knows the event, by its mass, and with the samples that would do.

    The map ends where no loss shows. So many samples of one digit would make the pair "not refuted", in an audit of so
    many `games`, by the general table of what is found; None where not even 9 * 10^8 do.
    """
    found: list[tuple[float, float]] = []
    for mass in MASSES:
        if event_mass_of(game.claim, mass) == mass:  # of a claim with a delta events are more frequent
            found.append((mass, game.main.power(mass, power.probability)[0]))
            if math.isinf(found[-1][1]):
                break

    needed = None
    if not power.suffices(inconclusive_factor) and not power.is_planted:
        needed = samples_for(game, mode, power, lambda found: found.suffices(inconclusive_factor), games)
    return dataclasses.replace(power, by_mass=tuple(found), samples_needed=needed)


def samples_for(game: PairGame, mode: Mode, power: Power, is_enough: Callable[[Power], bool], games: int) -> int | None:
    """Samples of one digit by which one pair of so many games has enough power; None where not even 9 * 10^8 do."""

    def suffices(samples: int) -> bool:
        planned = game_before_draws(game.claim, tested_draws(samples, mode, games), mode, game.level)
        return is_enough(power_of(planned, power.event_mass))

    return least_size(round_sizes(1, 9 * 10**8), suffices)


def tested_draws(samples: int, mode: Mode, games: int) -> int:
    """Labelled draws behind the pilot that each of so many games has at least in an audit of so many samples."""
    schedule = schedule_of(mode, samples, games, 2)
    least = MIN_SHARE_OF_DRAWS if mode == "adaptive" and games > 1 else 1.0
    return int(least * schedule.planned) - schedule.pilot


def game_before_draws(claim: Claim, draws: int, mode: Mode, level: float) -> PairGame:
    """The game about a claim of one pair, meant for so many labelled draws at this level, of which none is drawn."""
    pair = PairGame(claim, (0, 1), mode != "fixed", max(draws, 1))
    pair.start(level)
    return pair


@functools.cache
def round_sizes(digits: int, most: int) -> list[int]:
    """Numbers of at most this many significant digits, from 10 to `most`.

    Examples
    --------
    >>> round_sizes(1, 200)
    [10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 200]
    """
    sizes = {head * 10**power for head in range(1, 10**digits) for power in range(len(str(most)))}
    return sorted(size for size in sizes if 10 <= size <= most)


def least_size(sizes: Sequence[int], suffices: Callable[[int], bool]) -> int | None:
    """The least of these rising sizes that suffices; None where not even the largest does."""
    place = bisect.bisect_left(sizes, True, key=suffices)
    return sizes[place] if place < len(sizes) else None
