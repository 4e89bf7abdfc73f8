"""The floating-point check: whether the doubles of the outputs give away what their sizes keep.

The claim of an audit is read on the real line. A mechanism that keeps it there can break it on the doubles that it
really returns: noise is added and rounded in floating point, so that some doubles can come from one input only (Mironov
2012: naive inverse-CDF Laplace sampling; the same holds for ziggurat Gaussians, for rounding of the noise instead of
the sum, for single precision). This check asks the pair's own claim, at its budget (epsilon, delta), of the laws of the
doubles. It is a finding of its own: no verdict or bound of the audit depends on it, and its draws are not the audit's.

**The test.** At most `MOST_PAIRS` pairs are examined (those with the smallest budgets, in the order of the audit), in
one stage, or in up to three of a subject whose calls take time (`stages_of`). A stage is several times as long as all
those before it, and a pair takes no part in the stages behind the one in which it leaks. In a stage all training draws
of both inputs so far are fitted on (`dpaudit.doubles.low_bits`), which fixes one rule that guesses x, guesses x_prime
or abstains by low bits and support of one output. Then n labelled draws are counted once, n fixed beforehand: their
labels are fair coins (the number of ones is binomial(n, 1/2), from a stream of the pair's own), the draws are fresh.
Given the number of guesses, the correct ones are binomial with a success probability of at most
(e^epsilon + a) / (1 + e^epsilon), where a = delta_cost / P(a guess) (`dpaudit.testing.binomial`). Both directions share
the one test.

**Its error rate.** `ERROR_RATE` is split evenly over the examined pairs, and the level of a pair over the stages that
are planned, whether they are held or not. For a pair and a stage with level l, the lower bound on epsilon exceeds the
truth of the doubles' law with probability at most l, given all that was drawn before it: with delta = 0 the exact
binomial limit alone; with delta > 0 a share `MASS_SHARE` of l pays for the Clopper-Pearson limit on P(a guess), the
rest for the binomial limit, and the bound is monotone in both. "leaks" is the bound above the budget. Summed over
stages (whether one is held is told by draws before it) and pairs (union bound, whatever inputs they share): if the
doubles keep the claim, P(any "leaks") <= ERROR_RATE; in any case P(some bound of the check exceeds its truth) <=
ERROR_RATE. It is spent beside the audit's own 1 - confidence, never out of it. The p-value of a pair is that of its
last stage over the stage's share of the level: "leaks" where it is below the pair's level.

**Its size.** It takes a share of the runs that the audit took of an input (`draws_of`).

**What it can see.** Excess at low bits and in the support of numbers. What is no number (an exception, a missing entry,
NaN) is no evidence: rules abstain on it, and an entry that is a number more often on one input is not looked at, by a
choice on probes that are neither trained nor counted on. It says nothing about the real line: features are blind to
sizes, except through atoms and binades, so a claim that is broken there may show up here too.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.campaign.campaign import Campaign
from dpaudit.campaign.rounds import Counts, Draws, Plan
from dpaudit.campaign.witness_game import WitnessGame
from dpaudit.doubles.locations import location_of
from dpaudit.doubles.low_bits import Columns, LowBitRule, choose_columns, fit, union
from dpaudit.doubles.saved_low_bits import rule_to_dict
from dpaudit.errors import SubjectError
from dpaudit.privacy.claims import Budget, FloatArray
from dpaudit.privacy.pairs import Pair
from dpaudit.reading.outcomes import Outcomes
from dpaudit.reading.real_columns import Path, paths_of, read_path
from dpaudit.results.model import FloatingPointFinding, FloatingPointPair
from dpaudit.testing.binomial import binomial_lower_each, p_value
from dpaudit.testing.tasks import Draw, Request, Task, TaskResult, toss

ERROR_RATE = 1e-3  # of the whole check, beside the audit's own
MASS_SHARE = 0.05  # of a pair's level, spent on the probability of a guess where the line has a delta
MOST_PAIRS = 8  # that share the error rate, and the time
LEAST_SAMPLES = 1_000  # of the audit, below which a check would cost as much as the audit and find little
# Of the audit's runs on one input: the draws of one input, of a subject that draws batches, and that is called once a
# draw, where these are more than `LEAST_SAMPLES`; and at most.
SHARE_OF_AUDIT = {True: 0.5, False: 0.25}
MOST_DRAWS = {True: 20_000, False: 5_000}
SLOW_CALL = 1e-3  # seconds, above which calls are not made behind a violation unless they are asked for
STAGE_GROWTH = 4  # the draws at the end of a stage over those at the end of the one before it
LAST_STAGE_SHARE = 0.5  # of a pair's level, where there are several stages; the others have the rest evenly
PROBE = 128  # draws of one input that show whether and where its outputs are real numbers
TRAINING_SHARE = 0.3  # of the draws of one input
MOST_NUMBERS = 1 << 23  # numbers drawn of one input, and held of all, where outputs are wide
FOUND_WITH = 0.9  # the probability that defines `detectable_share`
ROUNDING = 1e-9  # nats by which bounds are lowered, for the rounding of the incomplete beta function

# (round, input, chunk, size) to that many fresh outputs of the input
DrawChunk = Callable[[int, int, int, int], Outcomes]


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A pair that may be examined: its inputs, their positions, the claim as one line, its place in the audit."""

    pair: Pair
    inputs: tuple[int, int]
    budget: Budget
    place: int


def draws_of(samples: int, is_vectorised: bool, taken: int | None = None) -> int:
    """How many draws of each input the check takes, about and at most, in an audit of `samples`; 0: it does not run.

    `taken` says how many runs the audit took of each input: `samples` by default.

    Examples
    --------
    >>> draws_of(20_000, True), draws_of(20_000, False), draws_of(20_000, True, taken=100), draws_of(500, True)
    (10000, 5000, 1000, 0)
    """
    if samples < LEAST_SAMPLES:
        return 0
    share = int(SHARE_OF_AUDIT[is_vectorised] * (samples if taken is None else taken))
    return min(max(share, LEAST_SAMPLES), MOST_DRAWS[is_vectorised])


def stages_of(draws: int) -> list[tuple[int, float]]:
    """The draws of each input at the end of each stage, and the shares of a pair's level, which sum to 1.

    Examples
    --------
    >>> stages_of(1_000)
    [(1000, 1.0)]
    >>> stages_of(10_000)
    [(1000, 0.25), (2500, 0.25), (10000, 0.5)]
    """
    ends = [draws]
    while ends[0] > 2 * LEAST_SAMPLES:
        ends.insert(0, max(LEAST_SAMPLES, ends[0] // STAGE_GROWTH))
    if len(ends) == 1:
        return [(draws, 1.0)]
    early = (1.0 - LAST_STAGE_SHARE) / (len(ends) - 1)
    return [*((end, early) for end in ends[:-1]), (draws, LAST_STAGE_SHARE)]


def not_applicable(reason: str, samples: int = 0, omitted: int = 0) -> FloatingPointFinding:
    """A finding that tested nothing, with the reason."""
    return FloatingPointFinding("not_applicable", reason, ERROR_RATE, samples, (), omitted)


def examine(
    candidates: Sequence[Candidate],
    draws: int,
    draw: Draw,
    coin: Callable[[int], np.random.Generator],
    error_rate: float = ERROR_RATE,
    in_stages: bool = False,
) -> FloatingPointFinding:
    """Run the check.

    Parameters
    ----------
    candidates : sequence of Candidate
        The pairs of the audit with finite budgets.
    draws : int
        Of each input, about and at most.
    draw : callable
        Carries out tasks: workers count, and return what is fitted on.
    coin : callable
        The place of a pair to the generator of its labels.
    error_rate : float
        In (0, 1), of the whole check.
    in_stages : bool
        Whether a pair that leaks takes no more draws: for subjects whose calls take time. Its bound is smaller then.

    Returns
    -------
    FloatingPointFinding
    """
    chosen = sorted(candidates, key=lambda pair: (pair.budget.epsilon, pair.budget.delta, pair.place))[:MOST_PAIRS]
    omitted = len(candidates) - len(chosen)
    if not chosen:
        return not_applicable("There is no pair to examine.")
    game = DoublesGame(chosen, draws, draw, coin, error_rate, in_stages)
    try:
        game.start()
        while game.round():
            pass
    except SubjectError as error:
        return not_applicable(f"The subject broke during the check: {error}", game.runs, len(candidates))
    pairs = [test.found for test in game.tests if test.found is not None]
    if not pairs:
        reason = (
            "No pair has a real-valued entry in its outputs: a number, as often on one input as on the other, that "
            "varies on both and is not always an integer."
        )
        return not_applicable(reason, game.runs, len(candidates))
    ranked = tuple(sorted(pairs, key=lambda pair: (pair.verdict != "leaks", pair.p_value, -pair.epsilon_lower)))
    return FloatingPointFinding(
        ranked[0].verdict, "", error_rate, game.runs, ranked, omitted + len(chosen) - len(pairs)
    )


class LowBitTest:
    """One pair: what its rule guesses on fresh labelled draws, and what that says at a level, which stages may share.

    `found` is the finding of the last look; None before the first.
    """

    def __init__(self, pair: Candidate, rule: LowBitRule | None = None) -> None:
        self.pair, self.rule, self.share, self.level = pair, rule, 1.0, math.nan
        self.paths: list[Path] = []
        self.found: FloatingPointPair | None = None

    def start(self, level: float) -> None:
        """Fix the level of all stages together."""
        self.level = level

    def fit(self, trained: Mapping[int, Columns], share: float, labelled: int) -> None:
        """Fix the rule of the next stage, which has this share of the level, from training columns by input."""
        self.share = share
        of_x, of_x_prime = ({path: trained[i][path] for path in self.paths} for i in self.pair.inputs)
        both, budget = self.pair.pair, self.pair.budget
        known = {path: location_of(both.x, both.x_prime, path, of_x[path], of_x_prime[path]) for path in self.paths}
        fitted = fit(
            of_x, of_x_prime, epsilon=budget.epsilon, delta=budget.delta, level=self.level * share, draws=labelled,
            names=both.said, locations=known,
        )  # fmt: skip
        self.rule = fitted.rule if fitted is not None else None

    @property
    def statistic(self) -> Guesses:
        """What is counted on each side's draws, where there is a rule."""
        assert self.rule is not None
        return Guesses(self.rule)

    def add(self, counts_x: NDArray[np.int64], counts_x_prime: NDArray[np.int64]) -> None:
        """Take the counts of one stage."""
        self._counts = counts_x.tolist(), counts_x_prime.tolist()

    def update(self) -> None:
        """Look at the counts of the stage, once."""
        (x_right, x_wrong, on_x), (prime_wrong, prime_right, on_x_prime) = self._counts
        pair, rule, of_stage = self.pair, self.rule, self.level * self.share
        correct, wrong, labelled = x_right + prime_right, x_wrong + prime_wrong, on_x + on_x_prime
        epsilon, delta = pair.budget.epsilon, pair.budget.delta
        cost = delta * (rule.sides if rule is not None else 0) / 2.0
        lower = float(lower_bound(np.array([correct]), np.array([wrong]), labelled, cost, of_stage)[0])
        p = p_value(correct, correct + wrong, labelled, epsilon, cost, of_stage, MASS_SHARE)
        self.found = FloatingPointPair(
            id=pair.pair.id,
            x_id=pair.pair.x_id,
            x_prime_id=pair.pair.x_prime_id,
            budget=pair.budget,
            verdict="leaks" if lower > epsilon else "nothing_found",
            epsilon_lower=lower,
            p_value=min(1.0, p / self.share),
            error_share=self.level,
            correct=correct,
            wrong=wrong,
            abstained=labelled - correct - wrong,
            detectable_share=detectable_share(labelled, epsilon, delta, of_stage),
            description=_describe(pair, rule, self._counts) if rule is not None else "",
            rule=rule_to_dict(rule) if rule is not None and lower > epsilon else None,
        )


class DoublesGame(Campaign):
    """The check on its pairs, of which `tests` has one each: a round is a stage.

    Parameters are those of `examine`, of the pairs that are chosen.
    """

    def __init__(
        self,
        chosen: Sequence[Candidate],
        draws: int,
        draw: Draw,
        coin: Callable[[int], np.random.Generator],
        error_rate: float,
        in_stages: bool,
    ) -> None:
        super().__init__(Draws(draw))
        self.tests = [LowBitTest(pair) for pair in chosen]
        self.error_rate = error_rate
        self._size, self._coin, self._in_stages = draws, coin, in_stages
        self._trained: dict[int, Columns] = {}
        self._stages: list[tuple[int, int, float]] = []  # those to come: training, labelled draws, share of the level

    def start(self) -> None:
        """Probe the inputs, leave out pairs without real numbers, fix levels and stages, and fit the first one."""
        probed = min(PROBE, self._size // 4)
        probes = self.draws.hand_over(dict.fromkeys(self._inputs(), probed))
        for test in self.tests:
            test.paths = choose_columns(*_probed(*(probes[i] for i in test.pair.inputs)))
        self.tests = [test for test in self.tests if test.paths]
        if not self.tests:
            return
        # Validity: the pairs, their levels, the stages and their sizes are fixed by probes, before all other draws.
        self.draws.measure(list(probes.values()))
        held = self.draws.columns * max(1.0, TRAINING_SHARE * len(self._inputs()))
        draws = max(min(self._size, LEAST_SAMPLES), min(self._size, int(MOST_NUMBERS / held)))
        for test in self.tests:
            test.start(self.error_rate / len(self.tests))
        self._coins = {test.pair.place: self._coin(test.pair.place) for test in self.tests}
        begin = 0
        for end, share in stages_of(draws) if self._in_stages else [(draws, 1.0)]:
            training = int(TRAINING_SHARE * end) - int(TRAINING_SHARE * begin)
            self._stages.append((training, 2 * (end - begin - training - (0 if begin else probed)), share))
            begin = end
        self._fit()

    def _inputs(self) -> list[int]:
        """Those of the pairs that are still asked."""
        return sorted({i for test in self._open() for i in test.pair.inputs})

    def _open(self) -> list[LowBitTest]:
        return [test for test in self.tests if test.found is None or test.found.verdict != "leaks"]

    def _freeze(self) -> Plan | None:
        if not self._stages or not self._open():
            return None
        _, labelled, _ = self._stages.pop(0)
        # Validity: coins are of a stream that nothing else reads, so labels do not depend on outputs.
        self._playing = [(test, toss(labelled, self._coins[test.pair.place])) for test in self._open()]
        requests: dict[int, list[Request]] = {}
        for test, quotas in self._playing:
            for i, quota in zip(test.pair.inputs, quotas, strict=True):
                if test.rule is not None:
                    requests.setdefault(i, []).append(Request(quota, test.statistic))
        return Plan({i: max(r.quota for r in requests[i]) for i in sorted(requests)}, requests)

    def _absorb(self, counts: Counts) -> None:
        counted = {i: iter(of_input) for i, of_input in counts.items()}
        for test, quotas in self._playing:
            if test.rule is None:  # it guesses nothing, whatever is drawn
                test.add(*(np.array([0, 0, quota]) for quota in quotas))
            else:
                test.add(*(next(counted[i]) for i in test.pair.inputs))

    def _look(self) -> None:
        for test, _ in self._playing:
            test.update()

    def _fit(self) -> None:
        if not self._stages or not self._open():
            return
        training, labelled, share = self._stages[0]
        fresh = self.draws.hand_over(dict.fromkeys(self._inputs(), training))
        for i in self._inputs():
            paths = union([test.paths for test in self._open() if i in test.pair.inputs])
            more = {path: read_path(fresh[i], path) if i in fresh else np.empty(0) for path in paths}
            before = self._trained.get(i)
            self._trained[i] = (
                more if before is None else {path: np.concatenate([before[path], more[path]]) for path in paths}
            )
        for test in self._open():
            test.fit(self._trained, share, labelled)


def count_again(
    pair: Candidate, rule: LowBitRule, labelled: int, draw: Draw, coin: np.random.Generator, error_rate: float
) -> FloatingPointPair:
    """One test of a rule that was fixed before, on fresh draws of one pair.

    P(verdict "leaks") <= error_rate if the doubles keep the claim: no other pair or rule shares it.

    Raises
    ------
    SubjectError
        If the subject breaks.
    """
    test = LowBitTest(pair, rule)
    game = WitnessGame(test, error_rate, labelled, draw, coin)
    game.start()
    game.round()
    assert test.found is not None
    return test.found


def lower_bound(correct: FloatArray, wrong: FloatArray, labelled: int, cost: float, level: float) -> FloatArray:
    """Lower confidence bound on epsilon from guessing records against lines with this delta_cost; at least 0.

    P(bound > truth) <= level, for a rule and a number of labelled draws that were fixed before these.

    Examples
    --------
    >>> round(float(lower_bound(np.array([100]), np.array([0]), 1_000, 0.0, 1e-3)[0]), 4)
    2.6378
    """
    spent = level * MASS_SHARE if cost > 0.0 else 0.0
    guesses = np.asarray(correct, dtype=float) + wrong
    accuracy = _lower_limits(correct, guesses, level - spent)
    mass = _lower_limits(guesses, labelled, spent) if cost > 0.0 else np.ones(len(guesses))
    # accuracy <= (e^eps + a) / (1 + e^eps) with a = cost / mass, solved for epsilon
    odds = (accuracy - np.divide(cost, mass, out=np.full(len(mass), math.inf), where=mass > 0.0)) / (1.0 - accuracy)
    return np.asarray(np.maximum(0.0, np.log(np.maximum(odds, 1.0)) - ROUNDING))


def _lower_limits(successes: FloatArray, trials: FloatArray | int, level: float) -> FloatArray:
    """`binomial_lower` of each record: exact lower limits, non-coverage at most `level`."""
    successes, trials = np.broadcast_arrays(np.asarray(successes, dtype=float), np.asarray(trials, dtype=float))
    limits = binomial_lower_each(successes, trials, np.full(len(successes), level))
    return np.asarray(np.minimum(limits, 1.0 - 2.0**-53))


def detectable_share(labelled: int, epsilon: float, delta: float, level: float) -> float:
    """The smallest share of one input's outputs that, given by it alone, would have been found; see the result."""
    shares = np.geomspace(0.5 / labelled, 1.0, 200)
    # The number of right guesses, exceeded with probability FOUND_WITH: a normal quantile, less one for its error.
    mean = labelled * shares / 2.0
    quantile = np.floor(mean + scipy.special.ndtri(1.0 - FOUND_WITH) * np.sqrt(mean * (1.0 - shares / 2.0))) - 1.0
    bounds = lower_bound(np.maximum(quantile, 0.0), np.zeros(len(shares)), labelled, delta / 2.0, level)
    found = np.flatnonzero(bounds > epsilon)
    return float(shares[found[0]]) if len(found) else math.inf


def _describe(pair: Candidate, rule: LowBitRule, counts: Sequence[Sequence[int]]) -> str:
    """The guessing events in words, with how often fresh draws of each input fell into them."""
    sides = zip(("x", "x′"), pair.pair.said, strict=True)
    names = [letter if name == letter else f"{letter} = {name}" for letter, name in sides]
    said = []
    for k, event in enumerate(rule.events()):
        if event:
            shares = [f"{counts[side][k]:,} of {counts[side][2]:,} on {names[side]}" for side in (k, 1 - k)]
            said.append(f"Outputs {event}: {shares[0]}, {shares[1]}.")
    return " ".join(said)


@dataclasses.dataclass(frozen=True)
class Guesses:
    """How often a rule guesses x and x_prime, and of how many: what is counted on a batch of outcomes."""

    rule: LowBitRule

    def zeros(self) -> NDArray[np.int64]:
        return np.zeros(3, dtype=np.int64)

    def count(self, outcomes: Outcomes) -> NDArray[np.int64]:
        if not len(outcomes):
            return self.zeros()
        columns = {path: read_path(outcomes, path) for path, _ in self.rule.tables}
        return np.array([*self.rule.count(columns, len(outcomes)), len(outcomes)], dtype=np.int64)


def in_turn(draw: DrawChunk) -> Draw:
    """Carries out tasks one after the other, from a function that gives fresh outputs."""

    def carry_out(tasks: Sequence[Task]) -> list[TaskResult]:
        results = []
        for task in tasks:
            outcomes = draw(task.round, task.input, task.chunk, task.size)
            counts = tuple(request.count(outcomes) for request in task.requests)
            results.append(TaskResult(counts, task.kept_of(outcomes)))
        return results

    return carry_out


def _probed(first: Outcomes, second: Outcomes) -> tuple[Columns, Columns]:
    """All columns of two probes."""
    paths = union([paths_of(first), paths_of(second)])
    return {path: read_path(first, path) for path in paths}, {path: read_path(second, path) for path in paths}
