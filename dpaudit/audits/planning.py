"""Before an audit: what it would cost, and what it could find.

The answers are computed, not simulated (but for Renyi families, whose power is): from the tests that the audit would
run, at the level that each pair is sure to have, for the alternative of `dpaudit.exact.response` (randomised response
inside an event of a stated mass). Two figures stand side by side:

* **known**: of a witness that knows the event. Exact, the same figure that a finding reports as its power.
* **learned**: of the audit itself, which has to find an event of the worst measured form in its own draws. It is what
  decides whether a finding is inconclusive (`dpaudit.testing.learned_power`, decision 38), with 90% probability;
  inf where none is promised. A measured allowance. For the table of a universe, which has no such figures, it is the
  known figure of an audit with a few times fewer samples, of a pilot that has to show the event and its side.

The subject is run for one thing only, the time it takes (and, where asked for, an estimate of the event mass that suits
it): a pilot on streams that no audit draws, so a plan spends nothing of the audit's evidence.

Pools are not planned for: the figures are those of an audit that asks its pairs one by one, and `Plan.pools` says where
it will not.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from dpaudit.audits import low_bits
from dpaudit.audits.many_pairs import (
    LEAST_DRAWS,
    TABLE_SHARE,
    Playing,
    playing_of,
    selected,
    table_draws,
)
from dpaudit.campaign.rounds import CHUNK_NUMBERS
from dpaudit.campaign.schedules import MODES, Mode, schedule_of
from dpaudit.campaign.universe import UniverseGame
from dpaudit.environment import environment
from dpaudit.errors import MechanismTraceback, SubjectError, UsageError
from dpaudit.exact.response import event_mass_of, loss_on_claim, value_of_loss
from dpaudit.inference.pair_lines import PairLines
from dpaudit.privacy.claims import Claim, number, pure_epsilon, single_line, whole_number
from dpaudit.privacy.inputs import distinct_inputs, inputs_of
from dpaudit.privacy.pair_budgets import PairBudgets, budgets_of
from dpaudit.privacy.pairs import MANY_PAIRS, Pair
from dpaudit.privacy.renyi_lines import as_lines
from dpaudit.reading.outcomes import read_outputs
from dpaudit.results.model import ZERO_BUDGET_LOSS, LearnedLoss
from dpaudit.results.plan_result import EventEstimate, Needed, Plan, PlannedBudget, PlannedPower
from dpaudit.running.streams import PLAN_DRAWS, fresh_seed, stream
from dpaudit.subjects.callables import CallError, Subject, as_subject
from dpaudit.subjects.stated import stated_claim, stated_pairs
from dpaudit.testing.failures import common_failure
from dpaudit.testing.learned_power import learned_losses, probability_measured, worst_learned_loss
from dpaudit.testing.pair_game import PairGame
from dpaudit.testing.pools import pool_pairs
from dpaudit.testing.protocols import Test

EVENT_MASSES = (0.5, 0.1, 0.01)  # by default: a common event, a rare one, a very rare one
FORMS_MASS = 0.1  # of the events that are said by their form: the default of an audit
NEEDED_IN: tuple[Mode, ...] = ("sequential", "fixed")  # modes of which it is said what an excess needs
LEAST_SHARE_OF_DRAWS = 0.5  # of its even share: what every pair gets in adaptive mode, which spends the rest by rank
# Measured of single values, for the table of a universe. It finds what a witness that knows the event finds in so many
# times fewer samples, if the pilot that fixes its rule sees so many outputs in the event. Where the line has a delta
# it has to see more, since a rule has to be worth its cost. Where lines are free the pilot chooses one as well.
LEARNING, LEARNING_OF_LINES = 2.0, 4.0
EVENTS_SEEN, EVENTS_SEEN_AT_COST = 150, 500
# And if right guesses in the event exceed wrong ones in the pilot by so many standard deviations of fair coins: a small
# loss does not show on which side the event is. (At 2.5 of them, 25% to 60% of audits found it.)
DEVIATIONS_SEEN = 5.0
MOST_BUDGETS = 8  # that are planned for; of more, these are spread evenly from the least to the largest
LARGEST_SAMPLES = 10**9  # beyond which no number of samples is looked for
LEAST_SAMPLES = 10  # of an audit: fewer are refused
TIMED_SECONDS, TIMED_DRAWS = 0.2, 20_000  # of an input, after which the timing ends


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
    target: str | None = None,
    name: str | None = None,
) -> Plan:
    """What an audit of these arguments would find and cost, and how many samples a given excess needs.

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
    seed : int, optional
        Of the pilot; one is drawn and recorded by default.

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
    >>> [round(power.known, 3) for power in planned.budgets[0].powers]
    [1.076, 1.177, 1.683]
    """
    subject = as_subject(mechanism, target, name)
    promise = stated_claim(subject, claim)
    if event_mass is not None:
        if event_masses is not EVENT_MASSES:
            raise UsageError(f"event_mass must be given without event_masses, got {event_mass!r} and {event_masses!r}.")
        number("event_mass", event_mass, "in (0, 1]", lambda v: 0.0 < v <= 1.0)
        event_masses = (event_mass,)
    masses = _checked(samples, mode, confidence, over, power, event_masses, pilot, seed, promise)
    chosen = stated_pairs(subject, pairs, promise)
    root = fresh_seed() if seed is None else int(seed)
    wanted, asked_mode = samples, mode

    def engine_of(samples: int) -> tuple[_Engine, list[int], list[float]]:
        """What an audit of so many samples plays; the pairs that it asks, and their budgets."""
        playing = playing_of(subject, promise, chosen, asked_mode, samples)
        asked, values, inputs = _asked(promise, chosen, playing.is_universe)
        return _Engine(promise, len(asked), inputs, confidence, power, playing), asked, values

    engine, asked, values = engine_of(samples)
    cost = _timed(subject, [chosen[k] for k in asked[:1]], root)
    subject = cost.subject
    if seconds is not None:
        number("seconds", seconds, "above 0", lambda v: 0.0 < v < math.inf)
        samples = _affordable(engine, subject, cost.per_run, seconds, wanted)
        engine, asked, values = engine_of(samples)  # so few may have games of their own
    mode = engine.mode
    budgets = []
    for place, (position, count) in enumerate(_represented(asked, values)):
        pair = chosen[position]
        pair_claim = promise.for_pair(pair.x, pair.x_prime)
        estimate = _estimate(subject, pair, pair_claim, pilot, samples, engine.level, root, place) if pilot else None
        own_masses = dict.fromkeys(event_mass_of(pair_claim, mass) for mass in masses)
        rows = [(mass, False) for mass in own_masses]
        if estimate is not None and estimate.event_mass > 0.0:
            rows.append((estimate.event_mass, True))
        powers = tuple(
            _power(engine, pair_claim, mass, is_estimate, samples, mode, over, cost.per_run)
            for mass, is_estimate in rows
        )
        by_form = engine.by_form(pair_claim, event_mass_of(pair_claim, FORMS_MASS), samples, mode)
        planned = PlannedBudget(pair.id, count, pair_claim.parameter, pair_claim.value, powers, by_form, estimate)
        budgets.append(planned)
    runs = engine.runs(samples)
    return Plan(
        claim=str(promise),
        confidence=confidence,
        mode=mode,
        samples=samples,
        over=over,
        power=power,
        pairs=len(asked),
        not_asked=len(chosen) - len(asked),
        inputs=engine.inputs,
        is_universe=engine.universe,
        error_share=engine.level if asked else 0.0,
        budgets=tuple(budgets),
        runs=runs,
        seconds=runs * cost.per_run,
        pilot_runs=cost.runs + sum(2 * pilot for planned in budgets if planned.estimate is not None),
        runs_per_second=1.0 / cost.per_run if cost.per_run > 0.0 else math.inf,
        seed=root,
        subject=subject.describe(),
        environment=environment(),
        time_limit=None if seconds is None else float(seconds),
        samples_wanted=wanted if samples < wanted else None,
        pools=0 if engine.universe else _pools(subject, promise, [chosen[k] for k in asked]),
    )


def events_seen(claim: Claim) -> int:
    """How many outputs inside the event a pilot must show for the allowance of `LEARNING` to hold."""
    return EVENTS_SEEN if pure_epsilon(claim) is not None else EVENTS_SEEN_AT_COST


def loss_seen(claim: Claim, event_mass: float, pilot: int) -> float:
    """The smallest loss, in nats, whose side a pilot of so many labelled draws shows; inf: none.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> loss_seen(PureDP(1.0), 0.1, 1_000), round(loss_seen(PureDP(1.0), 0.1, 10_000), 3)
    (inf, 0.319)
    """
    events = pilot * event_mass
    if events < events_seen(claim):
        return math.inf
    return 2.0 * math.atanh(DEVIATIONS_SEEN / math.sqrt(events))


def learning(claim: Claim) -> float:
    """How many times the samples of a witness that knows the event the table of a universe is allowed for learning."""
    return LEARNING_OF_LINES if claim.anchored else LEARNING


def least_share(pairs: int) -> float:
    """The share of the error rate that each of so many pairs has at least: half is even, half goes by the pilot's rank.

    Examples
    --------
    >>> least_share(1), round(least_share(10), 4)
    (1.0, 0.0671)
    """
    harmonic = math.fsum(1.0 / rank for rank in range(1, pairs + 1))
    return (0.5 + 0.5 / harmonic) / pairs if pairs else 1.0


# --- the power of an audit that has not run ------------------------------------------------------------------------


def game_before_draws(claim: Claim, draws: int, mode: Mode, level: float) -> Test:
    """The game about a claim of one pair, meant for so many labelled draws at this level, of which none is drawn."""
    no_outputs = read_outputs(np.arange(16.0) % 2.0, 16)
    pair = PairGame(claim, (0, 1), mode != "fixed", max(draws, 1))
    # A game has its grid of bets from its first fit: here on outputs of no meaning, which the power does not see.
    pair.fit(no_outputs, no_outputs, level)
    pair.start(level)
    return pair.main


class _Engine:
    """What the audit's own tests find, at the level that every one of its pairs has at least."""

    def __init__(
        self, promise: Claim, pairs: int, inputs: int, confidence: float, power: float, playing: Playing
    ) -> None:
        self.promise, self.pairs, self.inputs, self.confidence, self.power = promise, pairs, inputs, confidence, power
        self.mode, self.universe = playing.mode, playing.is_universe
        # Samples of an audit that plays this.
        self.fewest = 2 * LEAST_DRAWS if self.universe and pairs <= MANY_PAIRS else 1
        self.level = (1.0 - confidence) * least_share(pairs) * (TABLE_SHARE if self.universe else 1.0)
        self._sizes: dict[tuple[int, Mode], tuple[int, int]] = {}
        self._known: dict[Any, float] = {}
        self._lines: dict[Any, PairLines] = {}

    def size(self, samples: int, mode: Mode) -> tuple[int, int]:
        """Labelled draws that a pair's rules are fitted on before its first bet, and those that it is tested on."""
        if (samples, mode) not in self._sizes:
            schedule = schedule_of(mode, samples, self.pairs, 2)
            least = LEAST_SHARE_OF_DRAWS if mode == "adaptive" and self.pairs > 1 else 1.0
            self._sizes[samples, mode] = (schedule.pilot, int(least * schedule.planned) - schedule.most_before_test)
        return self._sizes[samples, mode]

    def _table(self, claim: Claim, samples: int) -> UniverseGame:
        """The test of one pair in the table of a universe, at the level that every pair has at least."""
        key = (str(claim), claim.value)
        if key not in self._lines:
            self._lines[key] = PairLines(PairBudgets.same(claim, 1))
        one, lines = np.zeros(1, dtype=np.int64), self._lines[key]
        draws = table_draws(samples, self.inputs, self.pairs)
        options: dict[str, Any] = {"inputs": 2, "samples": draws, "error_rate": self.level}
        return UniverseGame(one, one + 1, lines, **options, draw=_never, coin=_never)

    def known(self, claim: Claim, event_mass: float, samples: int, mode: Mode) -> float:
        """The smallest loss that a witness which knows the event finds, in nats; inf: none."""
        key = (str(claim), claim.value, event_mass, samples, mode)
        if key not in self._known:
            self._known[key] = self._detectable(claim, event_mass, samples, mode)
        return self._known[key]

    def _detectable(self, claim: Claim, event_mass: float, samples: int, mode: Mode) -> float:
        if self.universe:
            game = self._table(claim, max(samples, 1))
            return float(game.losses(np.array([event_mass]), self.power)[0])
        draws = self.size(samples, mode)[1]
        return game_before_draws(claim, draws, mode, self.level).power(event_mass, self.power)[0]

    def learned(self, claim: Claim, event_mass: float, samples: int, mode: Mode) -> float:
        """The same for the audit itself, which learns the event; see the module's docstring.

        It is measured at 90%, which is promised for a lower power as well, and for a higher one nothing is.
        """
        if self.universe:
            return self._learned_in_table(claim, event_mass, samples, mode)
        if self.power > probability_measured():
            return math.inf
        game = game_before_draws(claim, self.size(samples, mode)[1], mode, self.level)
        return worst_learned_loss(game, event_mass, probability_measured(), mode == "fixed")

    def _learned_in_table(self, claim: Claim, event_mass: float, samples: int, mode: Mode) -> float:
        lines = as_lines(claim)
        least = loss_seen(lines, event_mass, 2 * self._table(claim, samples).pilot)
        worth = int(samples / learning(lines))
        if worth < LEAST_SAMPLES or math.isinf(least):
            return math.inf
        return max(self.known(claim, event_mass, worth, mode), least)

    def by_form(self, claim: Claim, event_mass: float, samples: int, mode: Mode) -> tuple[LearnedLoss, ...]:
        """What is found by the form in which the event shows, as a finding of the audit says it; none of a universe.

        At the probability at which that was measured, whichever the plan asks for.
        """
        if self.universe:
            return ()
        game = game_before_draws(claim, self.size(samples, mode)[1], mode, self.level)
        losses = learned_losses(game, event_mass, probability_measured(), mode == "fixed")
        return tuple(LearnedLoss(form, loss) for form, loss in losses)

    def needed(self, finds: Callable[[int], float], loss: float) -> float:
        """The least round number of samples at which `finds` is at most `loss`; inf if there is none up to 10^9."""
        sizes = [size for size in _round_sizes() if size >= self.fewest]
        low, high = -1, len(sizes)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if finds(sizes[middle]) <= loss else (middle, high)
        return sizes[high] if high < len(sizes) else math.inf

    def runs(self, samples: int) -> int:
        """Runs of the mechanism that the audit takes, at most in sequential mode; without the floating-point check."""
        if not self.universe:
            return self.inputs * samples
        table = table_draws(samples, self.inputs, self.pairs)
        deep = min(2 * selected(self.promise, self.pairs), self.inputs)
        return self.inputs * table + deep * max(samples - table, 0)


def _power(
    engine: _Engine,
    claim: Claim,
    event_mass: float,
    is_estimate: bool,
    samples: int,
    mode: Mode,
    over: float,
    per_run: float,
) -> PlannedPower:
    """What the audit finds of one pair at one event mass, and what `over` needs."""
    known = engine.known(claim, event_mass, samples, mode)
    learned = engine.learned(claim, event_mass, samples, mode)
    value, line = claim.value, single_line(claim)
    known_value, learned_value = (value_of_loss(claim, event_mass, loss) for loss in (known, learned))
    if value > 0.0:
        sought = loss_on_claim(claim.with_value(value * (1.0 + over)), event_mass)
    else:  # there is no share of 0: the loss at which an audit stops being inconclusive
        sought = max(ZERO_BUDGET_LOSS, loss_on_claim(claim, event_mass))
    needed = []
    for one in NEEDED_IN:
        sizes = [math.inf, math.inf]
        if math.isfinite(sought):
            for place, finds in enumerate((engine.known, engine.learned)):
                sizes[place] = engine.needed(functools.partial(finds, claim, event_mass, mode=one), sought)
        seconds = engine.runs(int(sizes[1])) * per_run if math.isfinite(sizes[1]) else math.inf
        needed.append(Needed(one, sizes[0], sizes[1], seconds))
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
    )


@functools.cache
def _round_sizes() -> list[int]:
    """10, 11, ..., 99, 100, ..., 998, 1,000, 1,010, ...: numbers of at most three significant digits, up to 10^9."""
    sizes = set(range(10, 1_000))
    for scale in itertools.takewhile(lambda s: 100 * s < LARGEST_SAMPLES, (10**k for k in range(1, 8))):
        sizes.update(digits * scale for digits in range(100, 1_000))
    return [*sorted(size for size in sizes if size < LARGEST_SAMPLES), LARGEST_SAMPLES]


# --- the pairs -----------------------------------------------------------------------------------------------------


def _asked(promise: Claim, chosen: Sequence[Pair], universe: bool) -> tuple[list[int], list[float], int]:
    """Positions of the pairs that the claim asks anything of, their budgets, and how many inputs they have."""
    if universe:
        inputs = inputs_of(chosen)
        budgets = budgets_of(promise, chosen, inputs)
        asked = budgets.asked
        used = np.unique(np.concatenate([inputs.first[asked], inputs.second[asked]]))
        return asked.tolist(), budgets.values[asked].tolist(), len(used)
    claims = [promise.for_pair(pair.x, pair.x_prime) for pair in chosen]
    positions = [k for k, claim in enumerate(claims) if not claim.is_vacuous]
    data, _ = distinct_inputs([chosen[k] for k in positions])
    return positions, [claims[k].value for k in positions], len(data)


def _pools(subject: Subject, promise: Claim, asked: Sequence[Pair]) -> int:
    """Games in which the audit asks several of the pairs."""
    data, positions = distinct_inputs(asked)
    claims = [promise.for_pair(pair.x, pair.x_prime) for pair in asked]
    return pool_pairs(subject, data, positions, claims, None).pools


def _represented(asked: Sequence[int], values: Sequence[float]) -> list[tuple[int, int]]:
    """Positions of at most `MOST_BUDGETS` pairs, in order of the budget, and how many pairs each stands for.

    Those have its budget, or one between it and the next; the least and the largest budget are among them.
    """
    if not asked:
        return []
    order = sorted(range(len(asked)), key=lambda k: (values[k], k))
    firsts = [place for place, k in enumerate(order) if place == 0 or values[k] > values[order[place - 1]]]
    if len(firsts) > MOST_BUDGETS:
        picked = np.linspace(0, len(firsts) - 1, MOST_BUDGETS).round().astype(int)
        firsts = [firsts[place] for place in picked.tolist()]
    ends = [*firsts[1:], len(order)]
    return [(asked[order[start]], end - start) for start, end in zip(firsts, ends, strict=True)]


# --- the subject ---------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Cost:
    """Seconds of a run, reading of its output included; the runs that this took; how the subject has to be called."""

    per_run: float
    runs: int
    subject: Subject


def _timed(subject: Subject, pairs: Sequence[Pair], root: int) -> _Cost:
    """Time a few runs on both inputs of a pair: batches that double, so that a slow subject is not asked for many."""
    if not pairs:
        return _Cost(0.0, 0, subject)
    try:
        return _time(subject, pairs[0], root, 0)
    except CallError:  # as the audit does: one call a draw, where raising is an outcome
        return _time(dataclasses.replace(subject, one_by_one=True), pairs[0], root, 1)


def _time(subject: Subject, pair: Pair, root: int, restart: int) -> _Cost:
    spent, runs, seen = [], 0, []
    for side, data in enumerate((pair.x, pair.x_prime)):
        size, total, chunk, latest = 1, 0.0, 0, math.inf
        while runs < TIMED_DRAWS * (side + 1) and total < TIMED_SECONDS:
            rng = stream(root, PLAN_DRAWS, restart, side, chunk)
            started = time.perf_counter()
            outcomes = read_outputs(subject.sample(data, size, rng), size)
            elapsed = time.perf_counter() - started
            # The last, largest batch counts: the first ones pay for imports and caches.
            latest, total, runs, chunk = elapsed / size, total + elapsed, runs + size, chunk + 1
            seen.append(outcomes.rows(slice(0, 8)))
            size = max(1, min(2 * size, CHUNK_NUMBERS // max(outcomes.numbers.shape[1], 1)))
        spent.append(latest)
    failure = common_failure(seen)
    if failure is not None:
        text = f"{subject.name} must return outputs, got {failure.text}, on both inputs of {pair.id}."
        raise SubjectError(subject.with_passed(text)) from MechanismTraceback.of(failure.traceback)
    return _Cost(sum(spent) / len(spent), runs, subject)


def _estimate(
    subject: Subject, pair: Pair, claim: Claim, pilot: int, samples: int, level: float, root: int, place: int
) -> EventEstimate:
    """The event that an audit of this pair would look at, as a fixed one chooses it; counted on the pilot's other half.

    An estimate from few draws, without any confidence: it suits the plan, and is no evidence.
    """
    half = pilot // 2
    sides = []
    for side, data in enumerate((pair.x, pair.x_prime)):
        rng = stream(root, PLAN_DRAWS, 2, side, place)
        sides.append(read_outputs(subject.sample(data, pilot, rng), pilot).kept())
    game = PairGame(claim, (0, 1), False, 2 * samples)
    game.fit(sides[0].rows(slice(0, half)), sides[1].rows(slice(0, half)), level)
    game.start(level)
    use = game.main
    use.add(*(use.statistic.count(side.rows(slice(half, pilot))) for side in sides))
    correct, wrong, abstained = use.counts
    guesses, total = correct + wrong, correct + wrong + abstained
    return EventEstimate(
        event_mass=guesses / total if total else 0.0,
        loss=math.log((correct + 0.5) / (wrong + 0.5)) if guesses else 0.0,
        runs=2 * pilot,
        description=use.describe(*pair.said),
    )


def _affordable(engine: _Engine, subject: Subject, per_run: float, seconds: float, wanted: int) -> int:
    """The most samples, up to those wanted, that an audit with its floating-point check takes `seconds` for; or 10."""

    def cost(samples: int) -> float:
        doubles = min(engine.inputs, 2 * low_bits.SIZES.max_pairs)
        return per_run * (engine.runs(samples) + doubles * low_bits.draws_of(samples, subject.is_vectorised))

    if cost(wanted) <= seconds:
        return wanted
    low, high = LEAST_SAMPLES, wanted
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cost(middle) <= seconds else (low, middle)
    return low


# --- arguments -----------------------------------------------------------------------------------------------------


def _checked(
    samples: Any,
    mode: Any,
    confidence: Any,
    over: Any,
    power: Any,
    event_masses: Any,
    pilot: Any,
    seed: Any,
    promise: Claim,
) -> list[float]:
    """The event masses, each once; `UsageError` if an argument makes no sense."""
    whole_number("samples", samples, "an integer of at least 10", 10)
    if mode not in MODES:
        raise UsageError(f"mode must be one of {', '.join(MODES)}, got {mode!r}.")
    number("confidence", confidence, "in (0, 1)", lambda v: 0.0 < v < 1.0)
    number("over", over, "in (0, 100], a share of the claim (0.1 for 10%)", lambda v: 0.0 < v <= 100.0)
    number("power", power, "in [0.5, 0.99]", lambda v: 0.5 <= v <= 0.99)
    if promise.family == "renyi" and power != 0.9:
        raise UsageError(f"power must be 0.9 for the claim {promise}, whose power is simulated for it, got {power!r}.")
    if pilot != 0 or isinstance(pilot, bool):
        whole_number("pilot", pilot, "an integer of at least 100, or 0 for none", 100)
    if seed is not None:
        whole_number("seed", seed, "a non-negative integer", 0)
    if isinstance(event_masses, str) or not isinstance(event_masses, Sequence) or not len(event_masses):
        raise UsageError(f"event_masses must be a list of numbers in (0, 1], got {event_masses!r}.")
    masses = [number("event_masses", mass, "numbers in (0, 1]", lambda v: 0.0 < v <= 1.0) for mass in event_masses]
    return list(dict.fromkeys(masses))


def _never(*_: Any) -> Any:
    raise AssertionError("a plan never plays the game that it sizes")
