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
from collections.abc import Callable, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

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
from dpaudit.testing.tasks import Draw, Request, Task, TaskResult

ERROR_RATE = 1e-3  # of the whole check, beside the audit's own
MASS_SHARE = 0.05  # of a pair's level, spent on the probability of a guess where the line has a delta
MOST_PAIRS = 8
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
MOST_NUMBERS = 1 << 23  # numbers drawn of one input, where its outputs are wide
CHUNK_NUMBERS = 1 << 19  # numbers drawn at a time
FOUND_WITH = 0.9  # the probability that defines `detectable_share`
ROUNDING = 1e-9  # nats by which bounds are lowered, for the rounding of the incomplete beta function
PROBING, TRAINING, COUNTING = 0, 1, 2  # phases: each has streams of its own, and so has each further stage

# (phase, input, chunk, size) to that many fresh outputs of the input
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
        Carries out tasks, whose rounds are the phases of the check: workers count, and return what is fitted on.
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
    reader = _Reader(draw)
    try:
        pairs = _examine(chosen, draws, reader, coin, error_rate, in_stages)
    except SubjectError as error:
        return not_applicable(f"The subject broke during the check: {error}", reader.runs, len(candidates))
    if not pairs:
        reason = (
            "No pair has a real-valued entry in its outputs: a number, as often on one input as on the other, that "
            "varies on both and is not always an integer."
        )
        return not_applicable(reason, reader.runs, len(candidates))
    ranked = tuple(sorted(pairs, key=lambda pair: (pair.verdict != "leaks", pair.p_value, -pair.epsilon_lower)))
    return FloatingPointFinding(
        ranked[0].verdict, "", error_rate, reader.runs, ranked, omitted + len(chosen) - len(pairs)
    )


def count_again(
    pair: Candidate,
    rule: LowBitRule,
    labelled: int,
    draw: Draw,
    coin: Callable[[int], np.random.Generator],
    error_rate: float,
) -> tuple[FloatingPointPair, int]:
    """One test of a rule that was fixed before, on fresh draws of one pair; and how many runs it took.

    P(verdict "leaks") <= error_rate if the doubles keep the claim: no other pair or rule shares it.

    Raises
    ------
    SubjectError
        If the subject breaks.
    """
    reader = _Reader(draw)
    # Validity: coins are of a stream that nothing else reads; the rule was fixed before these draws.
    ones = int(coin(pair.place).binomial(labelled, 0.5))
    quota = (ones, labelled - ones)
    width = reader.probes({pair.inputs[0]: 1})[pair.inputs[0]].numbers.shape[1]
    counts = reader.counts([(i, size, rule) for i, size in zip(pair.inputs, quota, strict=True)], width, COUNTING)
    return _pair(pair, rule, counts, quota, error_rate), reader.runs


def _examine(
    chosen: Sequence[Candidate],
    draws: int,
    reader: _Reader,
    coin: Callable[[int], np.random.Generator],
    error_rate: float,
    in_stages: bool,
) -> list[FloatingPointPair]:
    inputs = sorted({i for pair in chosen for i in pair.inputs})
    probes = reader.probes({i: min(PROBE, draws // 4) for i in inputs})
    paths = {pair.place: choose_columns(*_probed(probes[pair.inputs[0]], probes[pair.inputs[1]])) for pair in chosen}
    chosen = [pair for pair in chosen if paths[pair.place]]
    if not chosen:
        return []
    # Validity: the pairs, their levels, the stages and their sizes are fixed by probes, before the first of these.
    width = max(probe.numbers.shape[1] for probe in probes.values())
    draws = max(min(draws, LEAST_SAMPLES), min(draws, MOST_NUMBERS // width))
    level = error_rate / len(chosen)
    probed = min(PROBE, draws // 4)
    coins = {pair.place: coin(pair.place) for pair in chosen}
    trained: dict[int, Columns] = {}
    found: dict[int, FloatingPointPair] = {}
    left, begin = chosen, 0
    for number, (end, share) in enumerate(stages_of(draws) if in_stages else [(draws, 1.0)]):
        training = int(TRAINING_SHARE * end) - int(TRAINING_SHARE * begin)
        labelled = 2 * (end - begin - training - (0 if number else probed))
        inputs = sorted({i for pair in left for i in pair.inputs})
        needed = {i: union([paths[pair.place] for pair in left if i in pair.inputs]) for i in inputs}
        more = reader.columns({i: training for i in inputs}, needed, width, TRAINING + 2 * number)
        trained = {i: _joined(trained.get(i), more[i]) for i in inputs}
        rules = _rules(left, paths, trained, level * share, labelled)
        quotas: dict[int, tuple[int, int]] = {}
        for pair in left:
            # Validity: coins are of a stream that nothing else reads, so labels do not depend on outputs.
            ones = int(coins[pair.place].binomial(labelled, 0.5))
            quotas[pair.place] = (ones, labelled - ones)
        asked = [
            (pair.inputs[k], quotas[pair.place][k], rules[pair.place])
            for pair in left
            for k in (0, 1)
            if pair.place in rules
        ]
        counted = iter(reader.counts(asked, width, COUNTING + 2 * number))
        for pair in left:
            rule, quota = rules.get(pair.place), quotas[pair.place]
            # Rows: draws of x, of x_prime; columns: guesses of x, of x_prime.
            counts = [(0, 0), (0, 0)] if rule is None else [next(counted), next(counted)]
            found[pair.place] = _pair(pair, rule, counts, quota, level, share)
        left = [pair for pair in left if found[pair.place].verdict != "leaks"]
        begin = end
        if not left:
            break
    return [found[pair.place] for pair in chosen]


def _joined(before: Columns | None, more: Columns) -> Columns:
    """Training columns with those of one more stage; `more` may have fewer of them."""
    return more if before is None else {path: np.concatenate([before[path], more[path]]) for path in more}


def _rules(
    pairs: Sequence[Candidate],
    paths: dict[int, list[Path]],
    trained: dict[int, Columns],
    level: float,
    labelled: int,
) -> dict[int, LowBitRule]:
    """What each pair is tested with, by its place, from training columns by input; none where no rule is of use."""
    rules: dict[int, LowBitRule] = {}
    for pair in pairs:
        of_x, of_x_prime = ({path: trained[i][path] for path in paths[pair.place]} for i in pair.inputs)
        line = {"epsilon": pair.budget.epsilon, "delta": pair.budget.delta}
        both = pair.pair.x, pair.pair.x_prime
        known = {path: location_of(*both, path, of_x[path], of_x_prime[path]) for path in of_x}
        fitted = fit(of_x, of_x_prime, level=level, draws=labelled, names=pair.pair.said, locations=known, **line)
        if fitted is not None:
            rules[pair.place] = fitted.rule
    return rules


def _pair(
    pair: Candidate,
    rule: LowBitRule | None,
    counts: Sequence[tuple[int, int]],
    quota: tuple[int, int],
    level: float,
    share: float = 1.0,
) -> FloatingPointPair:
    """The finding of one pair from the counts of one stage, which has this share of the pair's level."""
    (x_right, x_wrong), (prime_wrong, prime_right) = counts
    correct, wrong, labelled = x_right + prime_right, x_wrong + prime_wrong, sum(quota)
    sides = rule.sides if rule is not None else 0
    epsilon, delta = pair.budget.epsilon, pair.budget.delta
    cost = delta * sides / 2.0
    of_stage = level * share
    lower = float(lower_bound(np.array([correct]), np.array([wrong]), labelled, cost, of_stage)[0])
    return FloatingPointPair(
        id=pair.pair.id,
        x_id=pair.pair.x_id,
        x_prime_id=pair.pair.x_prime_id,
        budget=pair.budget,
        verdict="leaks" if lower > epsilon else "nothing_found",
        epsilon_lower=lower,
        p_value=min(1.0, p_value(correct, correct + wrong, labelled, epsilon, cost, of_stage, MASS_SHARE) / share),
        error_share=level,
        correct=correct,
        wrong=wrong,
        abstained=labelled - correct - wrong,
        detectable_share=detectable_share(labelled, epsilon, delta, of_stage),
        description=_describe(pair, rule, counts, quota) if rule is not None else "",
        rule=rule_to_dict(rule) if rule is not None and lower > epsilon else None,
    )


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


def _describe(pair: Candidate, rule: LowBitRule, counts: Sequence[tuple[int, int]], quota: tuple[int, int]) -> str:
    """The guessing events in words, with how often fresh draws of each input fell into them."""
    sides = zip(("x", "x′"), pair.pair.said, strict=True)
    names = [letter if name == letter else f"{letter} = {name}" for letter, name in sides]
    said = []
    for k, event in enumerate(rule.events()):
        if event:
            shares = [f"{counts[side][k]:,} of {quota[side]:,} on {names[side]}" for side in (k, 1 - k)]
            said.append(f"Outputs {event}: {shares[0]}, {shares[1]}.")
    return " ".join(said)


@dataclasses.dataclass(frozen=True)
class Guesses:
    """How often a rule guesses x and x_prime: what is counted on a batch of outcomes."""

    rule: LowBitRule

    def zeros(self) -> NDArray[np.int64]:
        return np.zeros(2, dtype=np.int64)

    def count(self, outcomes: Outcomes) -> NDArray[np.int64]:
        if not len(outcomes):
            return self.zeros()
        columns = {path: read_path(outcomes, path) for path, _ in self.rule.tables}
        return np.array(self.rule.count(columns, len(outcomes)), dtype=np.int64)


def in_turn(draw: DrawChunk) -> Draw:
    """Carries out tasks one after the other, from a function that gives fresh outputs."""

    def carry_out(tasks: Sequence[Task]) -> list[TaskResult]:
        results = []
        for task in tasks:
            outcomes = draw(task.round, task.input, task.chunk, task.size)
            counts = tuple(request.statistic.count(outcomes.rows(slice(0, request.quota))) for request in task.requests)
            results.append(TaskResult(counts, task.kept_of(outcomes)))
        return results

    return carry_out


class _Reader:
    """Draws in chunks, keeps the columns that are asked for, counts runs."""

    def __init__(self, draw: Draw) -> None:
        self._draw, self.runs = draw, 0

    def probes(self, sizes: dict[int, int]) -> dict[int, Outcomes]:
        """So many first outputs of each input."""
        tasks = [Task(i, PROBING, 0, 0, size, (), size) for i, size in sizes.items()]
        kept = [result.kept for result in self._carried_out(tasks)]
        return {i: outcomes for i, outcomes in zip(sizes, kept, strict=True) if outcomes is not None}

    def columns(
        self, sizes: dict[int, int], paths: dict[int, list[Path]], width: int, phase: int
    ) -> dict[int, Columns]:
        """So many training outputs of each input, each of its paths as one array, (draws,).

        `width` numbers an output bound the size of a chunk, and how many inputs are held at a time.
        """
        parts: dict[int, dict[Path, list[FloatArray]]] = {i: {path: [] for path in paths[i]} for i in sizes}
        for inputs in self._batches(sizes, width):
            tasks = [task for i in inputs for task in self._tasks(phase, i, sizes[i], (), width, keeps=True)]
            for task, result in zip(tasks, self._carried_out(tasks), strict=True):
                if result.kept is not None:
                    for path in paths[task.input]:
                        parts[task.input][path].append(read_path(result.kept, path))
        return {
            i: {path: np.concatenate(arrays) if arrays else np.empty(0) for path, arrays in found.items()}
            for i, found in parts.items()
        }

    def counts(self, asked: Sequence[tuple[int, int, LowBitRule]], width: int, phase: int) -> list[tuple[int, int]]:
        """For each (input, quota, rule), on the first `quota` fresh outputs of the input: guesses of x, of x_prime."""
        inputs = sorted({i for i, _, _ in asked})
        of_input = {i: [k for k, (other, _, _) in enumerate(asked) if other == i] for i in inputs}
        tasks = []
        for i in inputs:
            requests = tuple(Request(asked[k][1], Guesses(asked[k][2])) for k in of_input[i])
            tasks += self._tasks(phase, i, max(request.quota for request in requests), requests, width)
        totals = np.zeros((len(asked), 2), dtype=np.int64)
        for task, result in zip(tasks, self._carried_out(tasks), strict=True):
            for k, counts in zip(of_input[task.input], result.counts, strict=True):
                totals[k] += counts
        return [(int(x), int(x_prime)) for x, x_prime in totals]

    def _tasks(
        self, phase: int, i: int, size: int, requests: tuple[Request, ...], width: int, keeps: bool = False
    ) -> list[Task]:
        chunk_size = max(64, CHUNK_NUMBERS // max(width, 1))
        tasks = []
        for chunk, start in enumerate(range(0, size, chunk_size)):
            length = min(chunk_size, size - start)
            wanted = tuple(Request(min(max(r.quota - start, 0), length), r.statistic) for r in requests)
            tasks.append(Task(i, phase, chunk, start, length, wanted, length if keeps else 0))
        return tasks

    def _batches(self, sizes: dict[int, int], width: int) -> list[list[int]]:
        """The inputs, as many together as keep no more numbers than one input may."""
        batches: list[list[int]] = [[]]
        held = 0
        for i, size in sizes.items():
            if batches[-1] and held + size * width > MOST_NUMBERS:
                batches.append([])
                held = 0
            batches[-1].append(i)
            held += size * width
        return batches

    def _carried_out(self, tasks: Sequence[Task]) -> list[TaskResult]:
        results = self._draw(tasks)
        self.runs += sum(task.size for task in tasks)
        return results


def _probed(first: Outcomes, second: Outcomes) -> tuple[Columns, Columns]:
    """All columns of two probes."""
    paths = union([paths_of(first), paths_of(second)])
    return {path: read_path(first, path) for path in paths}, {path: read_path(second, path) for path in paths}
