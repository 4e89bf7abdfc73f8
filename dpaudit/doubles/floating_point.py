"""The floating-point check: whether the doubles of the outputs give away what their sizes keep.

The claim of an audit is read on the real line. A mechanism that keeps it there can break it on the doubles that it
really returns: noise is added and rounded in floating point, so that some doubles can come from one input only (Mironov
2012: naive inverse-CDF Laplace sampling; the same holds for ziggurat Gaussians, for rounding of the noise instead of
the sum, for single precision). This check asks the pair's own claim, at its budget (epsilon, delta), of the laws of the
doubles. It is a finding of its own: no verdict or bound of the audit depends on it, and its draws are not the audit's.

**The test.** For each of at most `MOST_PAIRS` pairs (those with the smallest budgets, in the order of the audit):
training draws of both inputs are fitted on (`dpaudit.doubles.low_bits`), which fixes one rule that guesses x, guesses
x_prime or abstains by low bits and support of one output. Then n labelled draws are counted once, n fixed beforehand:
their labels are fair coins (the number of ones is binomial(n, 1/2), from a stream of the pair's own), the draws are
fresh. Given the number of guesses, the correct ones are binomial with a success probability of at most
(e^epsilon + a) / (1 + e^epsilon), where a = delta_cost / P(a guess) (`dpaudit.testing.binomial`). Both directions
share the one test.

**Its error rate.** `ERROR_RATE` is split evenly over the examined pairs. For one pair with level l, the lower bound on
epsilon exceeds the truth of the doubles' law with probability at most l: with delta = 0 the exact binomial limit alone;
with delta > 0 a share `MASS_SHARE` of l pays for the Clopper-Pearson limit on P(a guess), the rest for the binomial
limit, and the bound is monotone in both. "leaks" is the bound above the budget. Summed over pairs (union bound,
whatever inputs they share): if the doubles keep the claim, P(any "leaks") <= ERROR_RATE; in any case P(some bound of
the check exceeds its truth) <= ERROR_RATE. It is spent beside the audit's own 1 - confidence, never out of it.

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
from dpaudit.testing.binomial import p_value
from dpaudit.testing.tasks import Draw, Request, Task, TaskResult

ERROR_RATE = 1e-3  # of the whole check, beside the audit's own
MASS_SHARE = 0.05  # of a pair's level, spent on the probability of a guess where the line has a delta
MOST_PAIRS = 8
LEAST_SAMPLES = 1_000  # of the audit, below which a check would cost as much as the audit and find little
MOST_DRAWS = 20_000  # of one input
MOST_CALLS = 5_000  # of one input, for a subject that is called once a draw; at most a quarter of the audit's samples
PROBE = 128  # draws of one input that show whether and where its outputs are real numbers
TRAINING_SHARE = 0.3  # of the draws of one input
MOST_NUMBERS = 1 << 23  # numbers drawn of one input, where its outputs are wide
CHUNK_NUMBERS = 1 << 19  # numbers drawn at a time
FOUND_WITH = 0.9  # the probability that defines `detectable_share`
ROUNDING = 1e-9  # nats by which bounds are lowered, for the rounding of the incomplete beta function
PROBING, TRAINING, COUNTING = 0, 1, 2  # phases: each has streams of its own

# (phase, input, chunk, size) to that many fresh outputs of the input
DrawChunk = Callable[[int, int, int, int], Outcomes]


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A pair that may be examined: its inputs, their positions, the claim as one line, its place in the audit."""

    pair: Pair
    inputs: tuple[int, int]
    budget: Budget
    place: int


def draws_of(samples: int, is_vectorised: bool) -> int:
    """How many draws of each input the check takes, about and at most, in an audit of `samples`; 0: it does not run."""
    if samples < LEAST_SAMPLES:
        return 0
    return min(samples, MOST_DRAWS) if is_vectorised else min(max(samples // 4, LEAST_SAMPLES), MOST_CALLS)


def not_applicable(reason: str, samples: int = 0, omitted: int = 0) -> FloatingPointFinding:
    """A finding that tested nothing, with the reason."""
    return FloatingPointFinding("not_applicable", reason, ERROR_RATE, samples, (), omitted)


def examine(
    candidates: Sequence[Candidate],
    draws: int,
    draw: Draw,
    coin: Callable[[int], np.random.Generator],
    error_rate: float = ERROR_RATE,
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
        pairs = _examine(chosen, draws, reader, coin, error_rate)
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
    counts = reader.counts([(i, size, rule) for i, size in zip(pair.inputs, quota, strict=True)], width)
    return _pair(pair, rule, counts, quota, error_rate), reader.runs


def _examine(
    chosen: Sequence[Candidate],
    draws: int,
    reader: _Reader,
    coin: Callable[[int], np.random.Generator],
    error_rate: float,
) -> list[FloatingPointPair]:
    inputs = sorted({i for pair in chosen for i in pair.inputs})
    probes = reader.probes({i: min(PROBE, draws // 4) for i in inputs})
    paths = {pair.place: choose_columns(*_probed(probes[pair.inputs[0]], probes[pair.inputs[1]])) for pair in chosen}
    chosen = [pair for pair in chosen if paths[pair.place]]
    if not chosen:
        return []
    # Validity: the pairs, their levels and the number of counted draws are fixed by probes, before the first of these.
    width = max(probe.numbers.shape[1] for probe in probes.values())
    draws = max(min(draws, LEAST_SAMPLES), min(draws, MOST_NUMBERS // width))
    level = error_rate / len(chosen)
    training = int(TRAINING_SHARE * draws)
    labelled = 2 * (draws - training - min(PROBE, draws // 4))
    inputs = sorted({i for pair in chosen for i in pair.inputs})
    needed = {i: union([paths[pair.place] for pair in chosen if i in pair.inputs]) for i in inputs}
    trained = reader.columns({i: training for i in inputs}, needed, width)
    rules: dict[int, LowBitRule] = {}
    for pair in chosen:
        sides = [{path: trained[i][path] for path in paths[pair.place]} for i in pair.inputs]
        line = {"epsilon": pair.budget.epsilon, "delta": pair.budget.delta}
        of_x, of_x_prime = sides
        both = pair.pair.x, pair.pair.x_prime
        known = {path: location_of(*both, path, of_x[path], of_x_prime[path]) for path in of_x}
        fitted = fit(sides[0], sides[1], level=level, draws=labelled, names=pair.pair.said, locations=known, **line)
        if fitted is not None:
            rules[pair.place] = fitted.rule
    quotas: dict[int, tuple[int, int]] = {}
    for pair in chosen:
        # Validity: coins are of a stream that nothing else reads, so labels do not depend on outputs.
        ones = int(coin(pair.place).binomial(labelled, 0.5))
        quotas[pair.place] = (ones, labelled - ones)
    asked = [
        (pair.inputs[k], quotas[pair.place][k], rules[pair.place])
        for pair in chosen
        for k in (0, 1)
        if pair.place in rules
    ]
    counted = iter(reader.counts(asked, width))
    found = []
    for pair in chosen:
        rule, quota = rules.get(pair.place), quotas[pair.place]
        # Rows: draws of x, of x_prime; columns: guesses of x, of x_prime.
        counts = [(0, 0), (0, 0)] if rule is None else [next(counted), next(counted)]
        found.append(_pair(pair, rule, counts, quota, level))
    return found


def _pair(
    pair: Candidate, rule: LowBitRule | None, counts: Sequence[tuple[int, int]], quota: tuple[int, int], level: float
) -> FloatingPointPair:
    """The finding of one pair from its counts."""
    (x_right, x_wrong), (prime_wrong, prime_right) = counts
    correct, wrong, labelled = x_right + prime_right, x_wrong + prime_wrong, sum(quota)
    sides = rule.sides if rule is not None else 0
    epsilon, delta = pair.budget.epsilon, pair.budget.delta
    cost = delta * sides / 2.0
    lower = float(lower_bound(np.array([correct]), np.array([wrong]), labelled, cost, level)[0])
    return FloatingPointPair(
        id=pair.pair.id,
        x_id=pair.pair.x_id,
        x_prime_id=pair.pair.x_prime_id,
        budget=pair.budget,
        verdict="leaks" if lower > epsilon else "nothing_found",
        epsilon_lower=lower,
        p_value=p_value(correct, correct + wrong, labelled, epsilon, cost, level, MASS_SHARE),
        error_share=level,
        correct=correct,
        wrong=wrong,
        abstained=labelled - correct - wrong,
        detectable_share=detectable_share(labelled, epsilon, delta, level),
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
    limits = np.zeros(len(successes))
    known = successes > 0.0
    limits[known] = scipy.special.betaincinv(successes[known], trials[known] - successes[known] + 1.0, level)
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

    def columns(self, sizes: dict[int, int], paths: dict[int, list[Path]], width: int) -> dict[int, Columns]:
        """So many training outputs of each input, each of its paths as one array, (draws,).

        `width` numbers an output bound the size of a chunk, and how many inputs are held at a time.
        """
        parts: dict[int, dict[Path, list[FloatArray]]] = {i: {path: [] for path in paths[i]} for i in sizes}
        for inputs in self._batches(sizes, width):
            tasks = [task for i in inputs for task in self._tasks(TRAINING, i, sizes[i], (), width, keeps=True)]
            for task, result in zip(tasks, self._carried_out(tasks), strict=True):
                if result.kept is not None:
                    for path in paths[task.input]:
                        parts[task.input][path].append(read_path(result.kept, path))
        return {
            i: {path: np.concatenate(arrays) if arrays else np.empty(0) for path, arrays in found.items()}
            for i, found in parts.items()
        }

    def counts(self, asked: Sequence[tuple[int, int, LowBitRule]], width: int) -> list[tuple[int, int]]:
        """For each (input, quota, rule), on the first `quota` fresh outputs of the input: guesses of x, of x_prime."""
        inputs = sorted({i for i, _, _ in asked})
        of_input = {i: [k for k, (other, _, _) in enumerate(asked) if other == i] for i in inputs}
        tasks = []
        for i in inputs:
            requests = tuple(Request(asked[k][1], Guesses(asked[k][2])) for k in of_input[i])
            tasks += self._tasks(COUNTING, i, max(request.quota for request in requests), requests, width)
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
