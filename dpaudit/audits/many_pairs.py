"""Choice of the test for many pairs: games, games that look once, or one table; and the division of their draws.

Up to `MANY_PAIRS` pairs their number decides, by what a game takes, never the clock: where games that look after each
round would cost too much, they look once; where these cost too much as well, the pairs are an all-pairs table.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from dpaudit.campaign.schedules import Mode
from dpaudit.inference.pools import pool_pairs
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.inputs import distinct_inputs, is_same_input
from dpaudit.privacy.pairs import MANY_PAIRS, Pair
from dpaudit.subjects.callables import Subject

TABLE_SHARE = 0.5  # of the error rate, and of the runs on an input, for the table of all pairs
TABLE_RUNS = 20_000_000  # over all inputs, beyond `MANY_PAIRS` pairs: about 20 s for 0.2 microseconds a draw
MIN_DRAWS = 100  # of each input for the table
# Games of an audit, measured at 21 pairs and 5,000 to 100,000 samples. Those that look after each round take .6 or .4 s
# each and 12 s together at most, else games look once. These take .2 to .4 s each and 50 s together at most, else their
# pairs share one table (docs/decisions/0047-many-pairs.md).
MAX_GAMES: Mapping[str, int] = {"sequential": 20, "adaptive": 30, "fixed": 150}
DEPTH_GAMES = 30  # of the depth, up to `MANY_PAIRS` pairs: 10 s
DEPTH_OF_MANY = 20  # the same beyond: 30 s, at 1.4 s for a fit on 80,000 samples of two numbers
SLOW_CLAIM_FACTOR = 6  # time of a game of a claim that is not one line, over that of a game of one line


@dataclasses.dataclass(frozen=True)
class GamePlan:
    """The way that pairs of an audit are played: one table, or games in a mode, be it another one than asked for."""

    mode: Mode
    is_table: bool

    def __str__(self) -> str:
        return "one table" if self.is_table else f"{self.mode} mode"


def game_plan(
    subject: Subject,
    promise: Claim,
    pairs: Sequence[Pair],
    mode: Mode,
    samples: int,
    *,
    pool: bool | None = None,
    needs_games: bool = False,
) -> GamePlan:
    """The games or the table that an audit of these pairs plays, with arguments of `dpaudit.audit`.

    Up to `MANY_PAIRS` pairs have games in the mode that is asked for where the audit asks for what a table or one look
    does not give: evidence of many sessions, a band, planted leaks or a severity (`needs_games`), pools that were asked
    for, calls in one random order, controls, or fewer draws than a table takes; and where the pairs are promised
    different parameters, of which a table has one.
    """
    if len(pairs) > MANY_PAIRS:
        return GamePlan(mode, True)
    asks = needs_games or pool or subject.draws_together or samples < 2 * MIN_DRAWS
    if asks or any(map(is_same_input, pairs)):
        return GamePlan(mode, False)
    data, positions = distinct_inputs(pairs)
    claims = [promise.for_pair(pair.x, pair.x_prime) for pair in pairs]
    asked = [k for k, claim in enumerate(claims) if not claim.is_vacuous]
    if len({claims[k].parameter for k in asked}) != 1:
        return GamePlan(mode, False)
    pools = pool_pairs(subject, data, [positions[k] for k in asked], [claims[k] for k in asked], pool)
    games = len(pools.groups)
    # One exact test of all draws takes less time than bets, as at `MAX_GAMES`, and finds a little less near the budget.
    return GamePlan("fixed" if games > MAX_GAMES[mode] else mode, games > MAX_GAMES["fixed"])


def selected(promise: Claim, pairs: int) -> int:
    """The number of pairs that are examined in depth, by the time that it takes, or the square root of all.

    Examples
    --------
    >>> from dpaudit.privacy.claims import GaussianDP, PureDP
    >>> [selected(PureDP(1.0), pairs) for pairs in (12, 328, 2_000, 474_825)], selected(GaussianDP(1.0), 328)
    ([12, 30, 44, 20], 18)
    """
    times = 1 if promise.is_one_line else SLOW_CLAIM_FACTOR
    if pairs > MANY_PAIRS:
        return DEPTH_OF_MANY // times
    return min(pairs, max(math.isqrt(pairs), DEPTH_GAMES // times))


def table_draws(samples: int, inputs: int, pairs: int) -> int:
    """Runs on each of so many inputs that the table of so many pairs takes in an audit of `samples`."""
    most = TABLE_RUNS // inputs if pairs > MANY_PAIRS else samples
    return max(MIN_DRAWS, min(int(TABLE_SHARE * samples), most))
