"""Before an audit: what it would cost, and what it could find.

The answers are computed, not simulated (but for Renyi families, whose power is): from the tests that the audit would
run, at the level that each pair is sure to have, for the alternative of `dpaudit.exact.response` (randomised response
inside an event of a stated mass). Two figures stand side by side:

* **known**: of a witness that knows the event. Exact, the same figure that a finding reports as its power.
* **learned**: of the audit itself, which has to find an event of the worst measured form in its own draws. It is what
  decides whether a finding is inconclusive (`dpaudit.inference.learned_power`, decision 38), with 90% probability;
  inf where none is promised. A measured allowance, for an all-pairs table that of its table.

The subject is run for one thing only, the time it takes (and, where asked for, an estimate of the event mass that suits
it): a pilot on streams that no audit draws, so a plan spends nothing of the audit's evidence. Pools are not planned
for: `Plan.pools` says where the audit will not ask its pairs one by one.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from dpaudit.arguments import RngLike, check_options, seed_from, with_near_names
from dpaudit.audits import low_bits
from dpaudit.audits.findings import STAGE_PAIRS
from dpaudit.audits.many_pairs import MIN_DRAWS, TABLE_SHARE, GamePlan, game_plan, selected, table_draws
from dpaudit.audits.power import game_before_draws, least_size, round_sizes, tested_draws
from dpaudit.campaign.all_pairs import AllPairsGame
from dpaudit.campaign.campaign import shares_by_rank
from dpaudit.campaign.draws import chunk_size
from dpaudit.campaign.schedules import Mode, schedule_of
from dpaudit.environment import environment
from dpaudit.errors import MechanismTraceback, OutOfTimeError, SubjectError, UsageError
from dpaudit.exact.response import event_mass_of, loss_on_claim, value_of_loss
from dpaudit.features.outcomes import read_outputs
from dpaudit.inference.failures import common_failure
from dpaudit.inference.learned_power import (
    event_mass_measured,
    learned_losses,
    probability_measured,
    worst_learned_loss,
)
from dpaudit.inference.order import BATCHES
from dpaudit.inference.pair_game import PairGame
from dpaudit.inference.pair_lines import PairLines
from dpaudit.inference.pools import pool_pairs
from dpaudit.inference.protocols import Test
from dpaudit.privacy.claims import Claim, number, single_line, whole_number
from dpaudit.privacy.inputs import distinct_inputs, inputs_of
from dpaudit.privacy.pair_budgets import PairBudgets, budgets_of
from dpaudit.privacy.pairs import MANY_PAIRS, Pair
from dpaudit.results.model import ZERO_BUDGET_LOSS, LearnedLoss
from dpaudit.results.plan_result import EventEstimate, Needed, Plan, PlannedBudget, PlannedPower
from dpaudit.running.label_games import start_or_restart
from dpaudit.running.streams import PLAN_DRAWS, root_of, stream
from dpaudit.running.worker_pool import randomness_moved
from dpaudit.subjects.call_limits import is_time_over, within
from dpaudit.subjects.callables import Subject, as_subject
from dpaudit.subjects.stated import stated_claim, stated_pairs

OF_AUDIT = ("samples", "mode", "confidence", "seed")  # options that an audit and its plan share
EVENT_MASSES = (0.5, 0.1, 0.01)  # by default: a common event, a rare one, a very rare one
NEEDED_IN: tuple[Mode, ...] = ("sequential", "fixed")  # modes of which it is said what an excess needs
MAX_SAMPLES = 10**9  # beyond which no number of samples is looked for
MIN_SAMPLES = 10  # of an audit: fewer are refused
FIXED_TIME = 0.8  # of a limit, that the runs of an audit in fixed mode are planned for: its one look is at their end
TIMED_SECONDS, TIMED_DRAWS = 0.2, 20_000  # of an input, after which the timing ends
TIMED_BATCH = 64  # outputs of the last call of a vectorised subject, at least: what an output takes beside the call


@with_near_names
def plan(
    mechanism: Any,
    claim: Claim | str | None = None,
    pairs: Iterable[Any] | None = None,
    *,
    samples: int = 100_000,
    mode: Mode = "sequential",
    confidence: float = 0.95,
    over: float = 0.1,
    power: float = 0.9,
    event_masses: Sequence[float] = EVENT_MASSES,
    event_mass: float | None = None,
    pilot: int = 0,
    seconds: float | None = None,
    seed: int | None = None,
    rng: RngLike = None,
    target: str | None = None,
    name: str | None = None,
) -> Plan:
    """Plan an audit of these arguments: what it would find and cost, and how many samples a given excess needs.

    Parameters
    ----------
    mechanism, claim, pairs, samples, mode, confidence, target, name
        As for `dpaudit.audit`.
    over : float
        In (0, 100]: the excess to be found, as a share of the claim's own parameter (0.1: 10% over the claim).
    power : float
        In [0.5, 0.99]: the probability with which it is to be found. Claims of Renyi families are planned for 0.9 only.
    event_masses : sequence of float
        Each in (0, 1].
    event_mass : float, optional
        In place of `event_masses`: the one of an audit, whose argument has this name.
    pilot : int
        Runs on each input of a planned pair for an estimate of the event mass that suits the mechanism; 0 for none, at
        least 100 otherwise.
    seconds : float, optional
        Above 0: plan for as many of the samples as can be had in this time, in one process and with the floating-point
        check; `Plan.samples_wanted` says that these are fewer.
    seed, rng
        As for `dpaudit.audit`; of the pilot.

    Returns
    -------
    Plan

    Raises
    ------
    UsageError
        If an argument makes no sense: the message names it, what was expected and what was given.
    SubjectError
        If every call of the subject raises, or it returns what cannot be read.

    Examples
    --------
    >>> def release(data, size, rng):
    ...     return data + rng.laplace(size=size)
    >>> planned = plan(release, "eps=1", [(0.0, 1.0)], samples=10_000, mode="fixed", seed=7)
    >>> [round(power.known, 1) for power in planned.budgets[0].powers]
    [1.1, 1.2, 1.8]
    """
    seed = seed_from(seed, rng)
    subject = as_subject(mechanism, target, name)
    promise = stated_claim(subject, claim)
    check_options(samples=samples, mode=mode, confidence=confidence)
    masses = _checked(over, power, event_masses, event_mass, pilot, promise)
    chosen, root = stated_pairs(subject, pairs, promise), root_of(seed)
    wanted = samples

    def planned_at(samples: int) -> _Planned:
        games = game_plan(subject, promise, chosen, mode, samples)
        return _Planned(subject, promise, chosen, games, confidence, power)

    audit = planned_at(samples)
    pace, timed = Pace(0.0, 0.0, 1), 0
    if audit.asked:
        first = chosen[audit.asked[0]]
        timing = start_or_restart(lambda asked, restart: _time(asked, first, root, restart), subject)
        pace, timed, subject = timing
    if seconds is not None:
        check_options(seconds=seconds)
        samples = _affordable(audit, subject, pace, seconds, wanted)
        audit = planned_at(samples)  # so few may have games of their own
    budgets = []
    for place, (position, count) in enumerate(audit.represented()):
        pair = chosen[position]
        pair_claim = promise.for_pair(pair.x, pair.x_prime)
        estimate = _estimate(subject, pair, pair_claim, pilot, samples, audit.level, root, place) if pilot else None
        rows = [(mass, False) for mass in dict.fromkeys(event_mass_of(pair_claim, mass) for mass in masses)]
        if estimate is not None and estimate.event_mass > 0.0:
            rows.append((estimate.event_mass, True))
        powers = tuple(_power(audit, pair_claim, *row, samples, over, pace) for row in rows)
        by_form = audit.by_form(pair_claim, event_mass_of(pair_claim, event_mass_measured()), samples)
        planned = PlannedBudget(pair.id, count, pair_claim.parameter, pair_claim.value, powers, by_form, estimate)
        budgets.append(planned)
    runs, calls = audit.runs(samples), audit.calls(samples, pace.chunk)
    taking = pace.of(runs, calls)
    return Plan(
        claim=str(promise),
        confidence=confidence,
        mode=audit.mode,
        samples=samples,
        over=over,
        power=power,
        pairs=len(audit.asked),
        not_asked=len(chosen) - len(audit.asked),
        inputs=audit.inputs,
        is_universe=audit.is_table,
        error_share=audit.level if audit.asked else 0.0,
        budgets=tuple(budgets),
        runs=runs,
        seconds=taking,
        pilot_runs=timed + sum(2 * pilot for planned in budgets if planned.estimate is not None),
        runs_per_second=runs / taking if taking > 0.0 else math.inf,
        calls=calls if pace.call > 0.0 else 0,
        seconds_a_call=pace.call,
        seed=root,
        subject=subject.describe(),
        environment=environment(),
        time_limit=None if seconds is None else float(seconds),
        samples_wanted=wanted if samples < wanted else None,
        pools=audit.pools,
    )


def least_share(pairs: int) -> float:
    """The share of the error rate that each of so many pairs has at least: that of the last one by rank.

    Examples
    --------
    >>> least_share(1), round(least_share(10), 4)
    (1.0, 0.0671)
    """
    return float(shares_by_rank(np.zeros(pairs)).min(initial=1.0)) if pairs else 1.0


@dataclasses.dataclass(frozen=True)
class Pace:
    """Seconds of each run, and of each call that gives many outputs, however few these are; reading included.

    `chunk` is the most outputs that the audit asks for in one call.
    """

    run: float
    call: float
    chunk: int

    def of(self, runs: int, calls: int) -> float:
        """Seconds of so many runs in so many calls."""
        return runs * self.run + calls * self.call


class _Planned:
    """An audit that has not run: its pairs, and what its own tests find at the level that each has at least."""

    def __init__(
        self,
        subject: Subject,
        promise: Claim,
        chosen: Sequence[Pair],
        games: GamePlan,
        confidence: float,
        power: float,
    ) -> None:
        self.promise, self.power, self.pools = promise, power, 0
        self.mode, self.is_table = games.mode, games.is_table
        if self.is_table:
            inputs = inputs_of(chosen)
            budgets = budgets_of(promise, chosen, inputs)
            self.asked, self._values = budgets.asked.tolist(), budgets.values[budgets.asked].tolist()
            self.inputs = len(np.unique(np.concatenate([inputs.first[self.asked], inputs.second[self.asked]])))
        else:
            claims = [promise.for_pair(pair.x, pair.x_prime) for pair in chosen]
            self.asked = [k for k, claim in enumerate(claims) if not claim.is_vacuous]
            self._values = [claims[k].value for k in self.asked]
            data, positions = distinct_inputs([chosen[k] for k in self.asked])
            self.inputs = len(data)
            self.pools = pool_pairs(subject, data, positions, [claims[k] for k in self.asked], None).pools
        self.pairs = len(self.asked)
        # Samples of an audit that plays this.
        self.fewest = 2 * MIN_DRAWS if self.is_table and self.pairs <= MANY_PAIRS else 1
        self.level = (1.0 - confidence) * least_share(self.pairs) * (TABLE_SHARE if self.is_table else 1.0)

    def represented(self) -> list[tuple[int, int]]:
        """Positions of at most `STAGE_PAIRS` pairs, in order of the budget, and how many pairs each stands for.

        Those have its budget, or one between it and the next; the least and the largest budget are among them.
        """
        values = self._values
        order = sorted(range(len(values)), key=lambda k: (values[k], k))
        firsts = [place for place, k in enumerate(order) if place == 0 or values[k] > values[order[place - 1]]]
        if len(firsts) > STAGE_PAIRS:
            picked = np.linspace(0, len(firsts) - 1, STAGE_PAIRS).round().astype(int)
            firsts = [firsts[place] for place in picked.tolist()]
        ends = [*firsts[1:], len(order)]
        return [(self.asked[order[start]], end - start) for start, end in zip(firsts, ends, strict=False)]

    def finds(self, claim: Claim, event_mass: float, samples: int, mode: Mode, is_learned: bool) -> float:
        """The smallest loss that is found, in nats; inf: none. By the audit, which learns the event, or a witness.

        What an audit learns is measured at 90%, which is promised for a lower power as well; for a higher one nothing.
        """
        power = probability_measured() if is_learned else self.power
        if self.power > power:
            return math.inf
        if self.is_table:
            return float(self._table(claim, samples).losses(np.array([event_mass]), power, is_learned)[0])
        game = self._game(claim, samples, mode)
        if is_learned:
            return worst_learned_loss(game, event_mass, power, mode == "fixed")
        return game.power(event_mass, power)[0]

    def by_form(self, claim: Claim, event_mass: float, samples: int) -> tuple[LearnedLoss, ...]:
        """Losses found by the form in which the event shows, as a finding says them; none of all-pairs tables.

        At the probability at which that was measured, whichever the plan asks for.
        """
        if self.is_table:
            return ()
        game = self._game(claim, samples, self.mode)
        losses = learned_losses(game, event_mass, probability_measured(), self.mode == "fixed")
        return tuple(LearnedLoss(form, loss) for form, loss in losses)

    def needed(self, finds: Callable[[int], float], loss: float) -> float:
        """The least round number of samples at which `finds` is at most `loss`; inf if there is none up to 10^9."""
        sizes = [size for size in round_sizes(3, MAX_SAMPLES) if size >= self.fewest]
        return least_size(sizes, lambda size: finds(size) <= loss) or math.inf

    def runs(self, samples: int) -> int:
        """Runs of the mechanism that the audit takes, at most in sequential mode; without the floating-point check."""
        if not self.is_table:
            return self.inputs * samples
        table = table_draws(samples, self.inputs, self.pairs)
        deep = min(2 * selected(self.promise, self.pairs), self.inputs)
        return self.inputs * table + deep * max(samples - table, 0)

    def calls(self, samples: int, chunk: int, mode: Mode | None = None) -> int:
        """Calls of a mechanism that gives many outputs in one, at most: one an input and round, or chunk of one."""
        if not self.pairs:
            return 0
        rounds = schedule_of(mode or self.mode, samples, self.pairs, self.inputs).rounds()
        chunks = math.ceil(samples / chunk)
        in_games = min(2 * selected(self.promise, self.pairs), self.inputs) if self.is_table else self.inputs
        return in_games * (rounds + chunks) + BATCHES + (2 * chunks * self.inputs if self.is_table else 0)

    def _game(self, claim: Claim, samples: int, mode: Mode) -> Test:
        """The test of one pair, with the draws behind its pilot."""
        return game_before_draws(claim, tested_draws(samples, mode, self.pairs), mode, self.level).main

    def _table(self, claim: Claim, samples: int) -> AllPairsGame:
        """The test of one pair in the all-pairs table."""
        one, lines = np.zeros(1, dtype=np.int64), PairLines(PairBudgets.same(claim, 1))
        draws = table_draws(max(samples, 1), self.inputs, self.pairs)
        options: dict[str, Any] = {"inputs": 2, "samples": draws, "error_rate": self.level}
        return AllPairsGame(one, one + 1, lines, **options, draw=_never, coin=_never)


def _power(
    audit: _Planned, claim: Claim, event_mass: float, is_estimate: bool, samples: int, over: float, pace: Pace
) -> PlannedPower:
    """Power of the audit on one pair at one event mass, and what `over` needs."""
    known, learned = (audit.finds(claim, event_mass, samples, audit.mode, one) for one in (False, True))
    value, line = claim.value, single_line(claim)
    known_value, learned_value = (value_of_loss(claim, event_mass, loss) for loss in (known, learned))
    if value > 0.0:
        sought = loss_on_claim(claim.with_value(value * (1.0 + over)), event_mass)
    else:  # there is no share of 0: the loss at which an audit stops being inconclusive
        sought = max(ZERO_BUDGET_LOSS, loss_on_claim(claim, event_mass))
    needed = []
    for mode in NEEDED_IN:
        finds = [functools.partial(audit.finds, claim, event_mass, mode=mode, is_learned=one) for one in (False, True)]
        sizes = [audit.needed(of, sought) if math.isfinite(sought) else math.inf for of in finds]
        size = int(sizes[1]) if math.isfinite(sizes[1]) else 0
        seconds = pace.of(audit.runs(size), audit.calls(size, pace.chunk, mode)) if size else math.inf
        needed.append(Needed(mode, sizes[0], sizes[1], seconds))
    return PlannedPower(
        event_mass=event_mass,
        is_estimate=is_estimate,
        allowed=loss_on_claim(claim, event_mass) if value > 0.0 or (line is not None and line.delta > 0.0) else 0.0,
        known=known,
        learned=learned,
        known_value=known_value,
        learned_value=learned_value,
        known_ratio=known_value / value if value > 0.0 else None,
        learned_ratio=learned_value / value if value > 0.0 else None,
        sought=sought,
        needed=tuple(needed),
        textbook=None if line is None or line.delta > 0.0 else _textbook(audit, value, sought, event_mass),
    )


def _textbook(audit: _Planned, allowed: float, sought: float, event_mass: float) -> float | None:
    """Samples on each input with which a one-sided test of one proportion finds the loss; None without statsmodels.

    Of outputs in the event, a share expit(loss) has the label that it speaks for, and at most expit(allowed) under the
    claim. The normal approximation is of another make than our figure, which is exact and keeps shares back.
    """
    try:
        from statsmodels.stats.power import normal_sample_size_one_tail
    except ImportError:
        return None
    if not allowed < sought < math.inf:
        return math.inf
    null, other = (1.0 / (1.0 + math.exp(-loss)) for loss in (allowed, sought))
    deviations = [math.sqrt(share * (1.0 - share)) for share in (null, other)]
    guesses = normal_sample_size_one_tail(other - null, audit.power, audit.level, *deviations)
    return float(guesses) / (2.0 * event_mass)


# --- the subject ---------------------------------------------------------------------------------------------------


def _time(subject: Subject, pair: Pair, root: int, restart: int) -> tuple[Pace, int, Subject]:
    """Seconds of runs and calls; the runs that this took; how the subject has to be called.

    A few runs on both inputs: batches that double, so that a slow subject is not asked for many, and one of
    `TIMED_BATCH` at least. The quickest batch is what a call takes, whatever it gives.
    """
    spent, runs, seen, largest = [], 0, [], 1
    for side, data in enumerate((pair.x, pair.x_prime)):
        size, total, chunk, latest, quickest = 1, 0.0, 0, math.inf, math.inf
        while size:
            rng = stream(root, PLAN_DRAWS, int(restart > 0), side, chunk)
            moved = randomness_moved(subject, rng)
            started = time.perf_counter()
            try:  # a subject that turns slow is not waited for: the limit of an audit's time holds in the audit alone
                with within(10.0 * TIMED_SECONDS + total if size > 1 else math.inf):
                    outcomes = read_outputs(subject.sample(data, size, rng), size)
            except OutOfTimeError:
                if size == 1 or is_time_over():
                    raise
                latest, quickest = (time.perf_counter() - started) / size, 0.0
                break
            elapsed = time.perf_counter() - started
            if moved():
                subject.history.note_moved(data)
            # The last, largest batch counts: the first ones pay for imports and caches.
            latest, total, runs, chunk = elapsed / size, total + elapsed, runs + size, chunk + 1
            quickest = min(quickest, elapsed) if subject.is_vectorised else 0.0
            latest -= quickest / size
            seen.append(outcomes.rows(slice(0, 8)))
            is_late = runs >= TIMED_DRAWS * (side + 1) or total >= TIMED_SECONDS
            following = max(2 * size, TIMED_BATCH) if is_late else 2 * size
            largest = chunk_size(outcomes.numbers.shape[1], outcomes.nbytes // size)
            is_over = is_late and (size >= min(TIMED_BATCH, largest) or not subject.is_vectorised)
            size = 0 if is_over else min(following, largest)
        spent.append((latest, quickest))
    failure = common_failure(seen)
    if failure is not None:
        text = f"{subject.name} must return outputs, got {failure.text}, on both inputs of {pair.id}."
        raise SubjectError(subject.with_passed(text)) from MechanismTraceback.of(failure.traceback)
    run, call = (sum(times) / len(spent) for times in zip(*spent, strict=True))
    return Pace(run, call, largest), runs, subject


def _estimate(
    subject: Subject, pair: Pair, claim: Claim, pilot: int, samples: int, level: float, root: int, place: int
) -> EventEstimate:
    """The event that an audit of this pair would look at, as a fixed one chooses it; counted on the pilot's other half.

    An estimate from few draws, without any confidence: it suits the plan, and is no evidence.
    """
    half = pilot // 2
    batches = []
    for side, data in enumerate((pair.x, pair.x_prime)):
        rng = stream(root, PLAN_DRAWS, 2, side, place)
        batches.append(read_outputs(subject.sample(data, pilot, rng), pilot).kept())
    game = PairGame(claim, (0, 1), False, 2 * samples)
    game.fit(batches[0].rows(slice(0, half)), batches[1].rows(slice(0, half)), level)
    game.start(level)
    use = game.main
    use.add(*(use.statistic.count(side.rows(slice(half, pilot))) for side in batches))
    correct, wrong, abstained = use.counts
    guesses, total = correct + wrong, correct + wrong + abstained
    return EventEstimate(
        event_mass=guesses / total if total else 0.0,
        loss=math.log((correct + 0.5) / (wrong + 0.5)) if guesses else 0.0,
        runs=2 * pilot,
        description=use.describe(*pair.said),
    )


def _affordable(audit: _Planned, subject: Subject, pace: Pace, seconds: float, wanted: int) -> int:
    """The most samples, up to those wanted, that an audit with its floating-point check takes `seconds` for; or 10."""
    room = seconds * FIXED_TIME if audit.mode == "fixed" else seconds

    def is_too_long(samples: int) -> bool:
        doubles = min(audit.inputs, 2 * STAGE_PAIRS)
        runs = audit.runs(samples) + doubles * low_bits.draws_of(samples, subject.is_vectorised)
        return pace.of(runs, audit.calls(samples, pace.chunk)) > room

    longer = least_size(range(MIN_SAMPLES + 1, wanted + 1), is_too_long)
    return wanted if longer is None else longer - 1


def _checked(
    over: Any, power: Any, event_masses: Any, event_mass: float | None, pilot: Any, promise: Claim
) -> list[float]:
    """The event masses, each once; `UsageError` if an argument makes no sense."""
    number("over", over, "in (0, 100], a share of the claim (0.1 for 10%)", lambda v: 0.0 < v <= 100.0)
    number("power", power, "in [0.5, 0.99]", lambda v: 0.5 <= v <= 0.99)
    if promise.family == "renyi" and power != 0.9:
        raise UsageError(f"power must be 0.9 for the claim {promise}, whose power is simulated for it, got {power!r}.")
    if pilot != 0 or isinstance(pilot, bool):
        whole_number("pilot", pilot, "an integer of at least 100, or 0 for none", 100)
    if event_mass is not None:
        if event_masses is not EVENT_MASSES:
            raise UsageError(f"event_mass must be given without event_masses, got {event_mass!r} and {event_masses!r}.")
        return [number("event_mass", event_mass, "in (0, 1]", lambda v: 0.0 < v <= 1.0)]
    if isinstance(event_masses, str) or not isinstance(event_masses, Sequence) or not len(event_masses):
        raise UsageError(f"event_masses must be a list of numbers in (0, 1], got {event_masses!r}.")
    masses = [number("event_masses", mass, "numbers in (0, 1]", lambda v: 0.0 < v <= 1.0) for mass in event_masses]
    return list(dict.fromkeys(masses))


def _never(*_: Any) -> Any:
    raise AssertionError("a plan never plays the game that it sizes")
