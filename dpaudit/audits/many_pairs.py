"""What many pairs may cost, and what they are played as for that: games, games that look once, or one table.

Up to `MANY_PAIRS` pairs it is the cost of a game for each that decides, by their number and the measured
`SECONDS_A_PAIR`, never by the clock. Where games that look after each round would cost more than `MOST_SECONDS`, they
look once. Where these cost too much as well, the pairs are a universe (`played_as`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from dpaudit.campaign.schedules import Mode
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.inputs import distinct_inputs, is_same_input
from dpaudit.privacy.pairs import MANY_PAIRS, Pair
from dpaudit.subjects.callables import Subject
from dpaudit.testing.pools import pool_pairs

TABLE_SHARE = 0.5  # of the error rate, and of the runs on an input, for the table of all pairs
TABLE_RUNS = 20_000_000  # over all inputs, beyond `MANY_PAIRS` pairs: about 20 s for 0.2 microseconds a draw
LEAST_DRAWS = 100  # of each input for the table
# Processor seconds of one pair's label game, measured: of audits of 21 pairs and 5,000 to 100,000 samples.
SECONDS_A_PAIR: Mapping[str, float] = {"sequential": 0.6, "adaptive": 0.4, "fixed": 0.1}
FREE_TIMES = 6  # times as long that a game of any other claim takes than that of a line of its own
MEASURED_SAMPLES = 100_000  # of the largest of them
MOST_SECONDS = 12.0  # of the label games of an audit: beyond, they look once each
LOOKS_SECONDS = 50.0  # of games that look once each: beyond, their pairs share one table, which has half of the draws
DEPTH_SECONDS = 10.0  # of the label games of the depth, up to `MANY_PAIRS` pairs
SELECTED = 20  # pairs that are examined in depth, beyond: 30 s, at 1.4 s for a fit on 80,000 samples of two numbers


@dataclasses.dataclass(frozen=True)
class Playing:
    """What the pairs of an audit are played as: one table, or games in a mode, which may be another one than asked for.

    Attributes
    ----------
    asked_mode, mode : {"sequential", "adaptive", "fixed"}
    is_universe : bool
    """

    asked_mode: Mode
    mode: Mode
    is_universe: bool

    def __str__(self) -> str:
        return "one table" if self.is_universe else f"{self.mode} mode"


def playing_of(
    subject: Subject,
    promise: Claim,
    pairs: Sequence[Pair],
    mode: Mode,
    samples: int,
    *,
    pool: bool | None = None,
    needs_games: bool = False,
) -> Playing:
    """What an audit of these pairs plays.

    Parameters
    ----------
    subject, promise, pairs, mode, samples, pool
        As for `dpaudit.audit`.
    needs_games : bool
        Whether it asks for what up to `MANY_PAIRS` pairs have games for: evidence of many nights, a band, stages.
    """
    if len(pairs) <= MANY_PAIRS:
        return played_as(replaceable_games(subject, promise, pairs, pool, samples, needs_games), mode)
    return Playing(mode, mode, True)


def played_as(games: int, mode: Mode) -> Playing:
    """What takes the place of so many label games, of at most `MANY_PAIRS` pairs, where they would cost too much.

    One exact test of all draws takes a sixth of the time that bets take, and finds a little less near the budget.

    Examples
    --------
    >>> [str(played_as(games, "sequential")) for games in (20, 21, 501)]
    ['sequential mode', 'fixed mode', 'one table']
    """
    if mode != "fixed" and games * SECONDS_A_PAIR[mode] <= MOST_SECONDS:
        return Playing(mode, mode, False)
    return Playing(mode, "fixed", games * SECONDS_A_PAIR["fixed"] > LOOKS_SECONDS)


def replaceable_games(
    subject: Subject, promise: Claim, pairs: Sequence[Pair], pool: bool | None, samples: int, needs_games: bool = False
) -> int:
    """The label games that an audit of at most `MANY_PAIRS` pairs would play; 0 where it needs them.

    It needs them where it asks for what a table or one look does not give: evidence of many nights or a band
    (`needs_games`), pools that were asked for, calls in one random order, controls, or fewer draws than a table takes;
    or where the pairs are promised different parameters, of which a table has one.
    """
    if needs_games or pool or subject.draws_together or samples < 2 * LEAST_DRAWS:
        return 0
    if any(is_same_input(pair) for pair in pairs):
        return 0
    data, positions = distinct_inputs(pairs)
    claims = [promise.for_pair(pair.x, pair.x_prime) for pair in pairs]
    asked = [k for k, claim in enumerate(claims) if not claim.is_vacuous]
    if len({claims[k].parameter for k in asked}) > 1:
        return 0
    games = pool_pairs(subject, data, [positions[k] for k in asked], [claims[k] for k in asked], pool)
    return len(games.groups) if asked else 0


def selected(promise: Claim, pairs: int, mode: str, samples: int) -> int:
    """How many of so many pairs are examined in depth: what `DEPTH_SECONDS` pay for, or the square root of all.

    A game takes longer where it has more draws, by their power of 0.4: that is what fixed games were measured at.

    Examples
    --------
    >>> from dpaudit.privacy.claims import GaussianDP, PureDP
    >>> [selected(PureDP(1.0), pairs, "fixed", 20_000) for pairs in (12, 328, 2_000, 474_825)]
    [12, 100, 100, 20]
    >>> selected(PureDP(1.0), 328, "fixed", 1_000_000), selected(GaussianDP(1.0), 328, "fixed", 20_000)
    (39, 18)
    """
    times = FREE_TIMES if promise.anchored or promise.family == "renyi" else 1
    if pairs > MANY_PAIRS:
        return SELECTED // times
    seconds = times * SECONDS_A_PAIR[mode] * max(1.0, samples / MEASURED_SAMPLES) ** 0.4
    return min(pairs, max(math.isqrt(pairs), int(DEPTH_SECONDS / seconds)))


def table_draws(samples: int, inputs: int, pairs: int) -> int:
    """Runs on each of so many inputs that the table of so many pairs takes in an audit of `samples`."""
    most = TABLE_RUNS // inputs if pairs > MANY_PAIRS else samples
    return max(LEAST_DRAWS, min(int(TABLE_SHARE * samples), most))
