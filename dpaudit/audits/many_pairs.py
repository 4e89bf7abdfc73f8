"""What many pairs may cost, and what they are played as for that: games, games that look once, or one table.

Up to `MANY_PAIRS` pairs it is the cost of a game for each that decides, by their number and the measured
`SECONDS_A_PAIR`, never by the clock. Where games that look after each round would cost more than `MOST_SECONDS`, they
look once (`mode_of`). Where these cost too much as well, the pairs are a universe.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dpaudit.campaign.schedules import Mode
from dpaudit.errors import UsageError
from dpaudit.privacy.claims import ApproxDP, Claim, MetricDP
from dpaudit.privacy.inputs import distinct_inputs, is_same_input
from dpaudit.privacy.pairs import MANY_PAIRS, Pair
from dpaudit.subjects.callables import Subject
from dpaudit.testing.pools import pool_pairs

TABLE_SHARE = 0.5  # of the error rate, and of the runs on an input, for the table of all pairs
TABLE_RUNS = 20_000_000  # over all inputs, beyond `MANY_PAIRS` pairs: about 20 s for 0.2 microseconds a draw
LEAST_DRAWS = 100  # of each input for the table
# Processor seconds of one pair's label game, measured: of audits of 21 pairs and 5,000 to 100,000 samples.
SECONDS_A_PAIR: Mapping[str, float] = {"sequential": 0.6, "adaptive": 0.4, "fixed": 0.1}
MEASURED_SAMPLES = 100_000  # of the largest of them
MOST_SECONDS = 12.0  # of the label games of an audit: beyond, they look once each
LOOKS_SECONDS = 50.0  # of games that look once each: beyond, their pairs share one table, which has half of the draws
DEPTH_SECONDS = 10.0  # of the label games of the depth, up to `MANY_PAIRS` pairs
SELECTED = 48  # pairs that are examined in depth, beyond
LARGEST_LABEL_GAME = 10_000  # pairs of claims that the table does not serve


def is_universe(promise: Claim, pairs: Sequence[Pair], mode: Mode, *, games: int | None = None) -> bool:
    """Whether an audit of these pairs is one of a universe.

    Parameters
    ----------
    promise : Claim
    pairs : sequence of Pair
    mode : {"sequential", "adaptive", "fixed"}
    games : int, optional
        The label games that would take their place up to `MANY_PAIRS` pairs, fewer where pairs are pooled: one a pair
        by default. 0 where an audit asks for what games alone give (`replaceable_games`).

    Raises
    ------
    UsageError
        If there are too many pairs for a claim that is neither pure, approximate nor metric.
    """
    is_served = isinstance(promise, ApproxDP | MetricDP)
    if len(pairs) <= MANY_PAIRS:
        count = len(pairs) if games is None else games
        return is_served and count * SECONDS_A_PAIR[mode] > (LOOKS_SECONDS if mode == "fixed" else MOST_SECONDS)
    if is_served:
        return True
    if len(pairs) > LARGEST_LABEL_GAME:
        raise UsageError(
            f"pairs must be at most {LARGEST_LABEL_GAME:,} for the claim {promise}, got {len(pairs):,}. Only pure, "
            "approximate and metric claims are audited on more at a time."
        )
    return False


def mode_of(promise: Claim, pairs: Sequence[Pair], mode: Mode, games: int) -> Mode:
    """The mode of an audit of at most `MANY_PAIRS` pairs that asks for this one: one look where that costs too much.

    One exact test of all draws takes a sixth of the time that bets take, and finds a little less near the budget.
    """
    is_served = isinstance(promise, ApproxDP | MetricDP) and len(pairs) <= MANY_PAIRS
    return "fixed" if is_served and games * SECONDS_A_PAIR[mode] > MOST_SECONDS else mode


def replaceable_games(
    subject: Subject, promise: Claim, pairs: Sequence[Pair], pool: bool | None, samples: int, needs_games: bool = False
) -> int:
    """The label games that an audit of at most `MANY_PAIRS` pairs would play; 0 where it needs them.

    It needs them where it asks for what a table or one look does not give: evidence of many nights or a band
    (`needs_games`), pools that were asked for, calls in one random order, controls, or fewer draws than a table takes.
    """
    if needs_games or pool or subject.draws_together or samples < 2 * LEAST_DRAWS:
        return 0
    if any(is_same_input(pair) for pair in pairs):
        return 0
    data, positions = distinct_inputs(pairs)
    claims = [promise.for_pair(pair.x, pair.x_prime) for pair in pairs]
    asked = [k for k, claim in enumerate(claims) if not claim.is_vacuous]
    games = pool_pairs(subject, data, [positions[k] for k in asked], [claims[k] for k in asked], pool)
    return len(games.groups) if asked else 0


def selected(pairs: int, mode: str, samples: int) -> int:
    """How many of so many pairs are examined in depth: what `DEPTH_SECONDS` pay for, or the square root of all.

    A game takes longer where it has more draws, by their power of 0.4: that is what fixed games were measured at.

    Examples
    --------
    >>> [selected(pairs, "fixed", 20_000) for pairs in (12, 328, 2_000, 474_825)], selected(328, "fixed", 1_000_000)
    ([12, 100, 100, 48], 39)
    """
    if pairs > MANY_PAIRS:
        return SELECTED
    seconds = SECONDS_A_PAIR[mode] * max(1.0, samples / MEASURED_SAMPLES) ** 0.4
    return min(pairs, max(math.isqrt(pairs), int(DEPTH_SECONDS / seconds)))


def table_draws(samples: int, inputs: int, pairs: int) -> int:
    """Runs on each of so many inputs that the table of so many pairs takes in an audit of `samples`."""
    most = TABLE_RUNS // inputs if pairs > MANY_PAIRS else samples
    return max(LEAST_DRAWS, min(int(TABLE_SHARE * samples), most))
