"""Low-bit stage: a test of the claim on the doubles that a mechanism really returns, apart from the verdict.

The claim of an audit is read on the real line. A mechanism that keeps it there can break it on doubles: noise is added
and rounded in floating point, so that some doubles can come from one input only (Mironov 2012: naive Laplace sampling
by inversion; the same holds for ziggurat Gaussians, for rounding of the noise instead of the sum, for single precision).
This stage asks the pair's own claim, at its budget (epsilon, delta), of the laws of the doubles. No verdict or bound of
the audit depends on it, and its draws are not the audit's.

**The test.** At most `SIZES.max_pairs` pairs are examined (those with the smallest budgets, in the order of the audit),
in one stage, or in up to three of a subject whose calls take time (`stages_of`). A stage is several times as long as
all those before it, and a pair takes no part in the stages behind the one in which it leaks. In a stage views of
low-order bits (`dpaudit.features.low_bits`) get a tree each on a part of the training draws so far; the view and the
guessing rule with the best expected bound by the rest of them are frozen. Then n labelled draws are counted once by an
exact test (`dpaudit.inference.exact`), n fixed beforehand: labels are fair coins (the number of ones is binomial(n, 1/2),
from a stream of the pair's own), and draws are fresh. Both directions share the one test.

**Its error rate.** `SIZES.error_rate` is split evenly over the examined pairs, and the level of a pair over the stages
that are planned, whether they are held or not. For a pair and a stage with level l, the lower bound on epsilon exceeds
the truth of the doubles' law with probability at most l, given all that was drawn before it. "leaks" is the bound above
the budget. Summed over stages (draws before a stage tell whether it is held) and pairs (union bound, whatever inputs
they share): if the doubles keep the claim, P(any "leaks") <= error rate; in any case P(some bound of the check exceeds
its truth) <= error rate. It is spent beside the audit's own 1 - confidence, never out of it. The p-value of a pair is
that of its last stage over the stage's share of the level: "leaks" where it is below the pair's level.

**What it can see.** Excess at low bits and in the support of numbers. What is no number (an exception, a missing entry,
NaN) is no evidence: rules abstain on it, and an entry that is a number more often on one input is not looked at, by a
choice on probes that are neither trained nor counted on. Views are blind to sizes, except through atoms and binades, so
a claim that is broken on the real line may show up here too.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.campaign.campaign import Campaign
from dpaudit.campaign.rounds import Counts, Draws, Plan
from dpaudit.campaign.witness_game import WitnessGame
from dpaudit.errors import SubjectError
from dpaudit.features.input_facts import location_of
from dpaudit.features.low_bits import SIZES as VIEW_SIZES
from dpaudit.features.low_bits import LowBitView, SeenBefore, low_bit_view_from_dict, low_bit_views, lowest_set_bit
from dpaudit.features.reader import Reader
from dpaudit.inference.exact import SIZES as EXACT_SIZES
from dpaudit.inference.exact import ExactTest, GuessRule, choose_rule
from dpaudit.inference.payoffs import Inequalities
from dpaudit.inference.tables import EDGES, N_BINS
from dpaudit.learning.rank_tree import Cells, Labels, Steps, pruned_tree
from dpaudit.privacy.claims import ApproxDP, Budget, FloatArray
from dpaudit.privacy.pairs import Pair
from dpaudit.reading.outcomes import Outcomes
from dpaudit.reading.whole_numbers import are_integers
from dpaudit.results.model import FloatingPointFinding, FloatingPointPair
from dpaudit.subjects.plain import seen
from dpaudit.testing import binomial
from dpaudit.testing.tasks import Draw, Request, Task, TaskResult, toss


@dataclasses.dataclass(frozen=True)
class LowBitStageSizes:
    """The size of the stage, and how its rules are found."""

    error_rate: float = 1e-3  # of the whole stage, beside the audit's own
    max_pairs: int = 8  # that share the error rate, and the time
    min_samples: int = 1_000  # of the audit, below which the stage would cost as much as the audit and find little
    share_of_audit: tuple[float, float] = (0.25, 0.5)  # of its runs on one input, of calls one by one; of batches
    max_draws: tuple[int, int] = (5_000, 20_000)  # of one input, of calls one by one; of batches
    slow_call: float = 1e-3  # seconds, above which calls are not made behind a violation unless they are asked for
    stage_growth: int = 4  # the draws at the end of a stage over those at the end of the one before it
    last_stage_share: float = 0.5  # of a pair's level, where there are several stages; the others have the rest evenly
    probe: int = 128  # draws of one input that show whether and where its outputs are real numbers
    training_share: float = 0.3  # of the draws of one input
    max_numbers: int = 1 << 23  # numbers drawn of one input, and held of all, where outputs are wide
    found_with: float = 0.9  # the probability that defines `detectable_share`
    max_columns: int = 16  # of an output that a rule looks at
    presence: float = 3.0  # standard deviations by which the inputs' shares of numbers in a column may differ
    max_tried: int = 4  # predictors, the clearest ones, whose guessing rules are compared
    margin: float = 0.2  # nats by which a later view must be better: earlier ones are easier to understand


SIZES = LowBitStageSizes()
VERSION = 2  # of saved rules; those of version 1 had tables of log ratios, and thresholds
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
    """How many draws of each input the stage takes, about and at most, in an audit of `samples`; 0: it does not run.

    `taken` says how many runs the audit took of each input: `samples` by default.

    Examples
    --------
    >>> draws_of(20_000, True), draws_of(20_000, False), draws_of(20_000, True, taken=100), draws_of(500, True)
    (10000, 5000, 1000, 0)
    """
    if samples < SIZES.min_samples:
        return 0
    share = int(SIZES.share_of_audit[is_vectorised] * (samples if taken is None else taken))
    return min(max(share, SIZES.min_samples), SIZES.max_draws[is_vectorised])


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
    while ends[0] > 2 * SIZES.min_samples:
        ends.insert(0, max(SIZES.min_samples, ends[0] // SIZES.stage_growth))
    if len(ends) == 1:
        return [(draws, 1.0)]
    early = (1.0 - SIZES.last_stage_share) / (len(ends) - 1)
    return [*((end, early) for end in ends[:-1]), (draws, SIZES.last_stage_share)]


def not_applicable(reason: str, samples: int = 0, omitted: int = 0) -> FloatingPointFinding:
    """A finding that tested nothing, with the reason."""
    return FloatingPointFinding("not_applicable", reason, SIZES.error_rate, samples, (), omitted)


def examine(
    candidates: Sequence[Candidate],
    draws: int,
    draw: Draw,
    coin: Callable[[int], np.random.Generator],
    error_rate: float = SIZES.error_rate,
    in_stages: bool = False,
) -> FloatingPointFinding:
    """Run the stage.

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
        In (0, 1), of the whole stage.
    in_stages : bool
        Whether a pair that leaks takes no more draws: for subjects whose calls take time. Its bound is smaller then.

    Returns
    -------
    FloatingPointFinding
    """
    chosen = sorted(candidates, key=lambda pair: (pair.budget.epsilon, pair.budget.delta, pair.place))[
        : SIZES.max_pairs
    ]
    omitted = len(candidates) - len(chosen)
    if not chosen:
        return not_applicable("There is no pair to examine.")
    game = LowBitGame(chosen, draws, draw, coin, error_rate, in_stages)
    try:
        game.start()
        while game.round():
            pass
    except SubjectError as error:
        return not_applicable(f"The subject broke during the check: {error}", game.runs, len(candidates))
    pairs = [learned.found for learned in game.pairs if learned.found is not None]
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


# --- predictors and rules ---


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """The log odds of x that a view's codes give on one column: a tree that was fitted on earlier draws."""

    column: int
    view: LowBitView
    steps: Steps

    def __call__(self, matrix: FloatArray) -> FloatArray:
        """Log odds of each row, shape (draws,); 0 for what is no number."""
        codes = self.view(matrix[:, self.column])
        odds = scipy.special.logit(np.clip(self.steps.probabilities, 1e-7, 1.0 - 1e-7))
        return np.where(np.isnan(codes), 0.0, odds[np.minimum(np.searchsorted(self.steps.edges, codes), len(odds) - 1)])

    def words(self, is_chosen: NDArray[np.bool_]) -> str:
        """The doubles on the chosen steps, in words that complete "outputs …"."""
        ends = np.concatenate([[-math.inf], np.floor(self.steps.edges), [math.inf]])
        begins = np.flatnonzero(np.diff(np.concatenate([[0], is_chosen])) == 1)
        stops = np.flatnonzero(np.diff(np.concatenate([is_chosen, [0]])) == -1) + 1
        said = [self.view.words(ends[a] + 1.0, ends[b]) for a, b in zip(begins, stops, strict=True)]
        more = len(said) - VIEW_SIZES.shown
        return " or ".join(said[: VIEW_SIZES.shown]) + (f" (and {more} more kinds)" if more > 0 else "")


@dataclasses.dataclass(frozen=True, eq=False)
class LowBitPredictor:
    """A frozen predictor: the sum of tables of one or several columns. Counts bins, and behind them what has no number.

    `reader` reads outputs, and `columns` are those of its columns that tables are numbered by.
    """

    reader: Reader
    columns: tuple[int, ...]
    tables: tuple[Table, ...]

    def zeros(self) -> NDArray[np.int64]:
        return np.zeros(N_BINS + 1, dtype=np.int64)

    def count(self, outcomes: Outcomes) -> NDArray[np.int64]:
        return self.count_rows(read(self.reader, self.columns, outcomes)) if len(outcomes) else self.zeros()

    def count_rows(self, matrix: FloatArray) -> NDArray[np.int64]:
        """Counts by bin of rows that were read, shape (bins + 1,)."""
        is_none = np.logical_and.reduce([np.isnan(matrix[:, table.column]) for table in self.tables])
        return np.bincount(np.where(is_none, N_BINS, np.digitize(self.odds(matrix), EDGES)), minlength=N_BINS + 1)

    def odds(self, matrix: FloatArray) -> FloatArray:
        """Log odds of x of rows that were read, added up in one order whatever the size of the batch."""
        return functools.reduce(np.add, [table(matrix) for table in self.tables])

    def events(self, rule: GuessRule) -> tuple[str, str]:
        """The two guessing events in words that complete "outputs …"; empty for a guess that is never made."""
        if len(self.tables) > 1:
            kinds = f"whose low bits in {len(self.tables)} coordinates together speak for"
            first, second = (
                f"{kinds} {name}" if side else "" for name, side in zip(("x", "x′"), rule.sides, strict=True)
            )
            return first, second
        (table,) = self.tables
        p = table.steps.probabilities
        bins = np.digitize(scipy.special.logit(np.clip(p, 1e-7, 1.0 - 1e-7)), EDGES)
        where = _place(self.reader, self.columns[table.column])
        entry = f"with an entry {where} " if where else ""
        said = [table.words(chosen) for chosen in (bins >= rule.first_up, bins < rule.end_down)]
        return entry + said[0] if said[0] else "", entry + said[1] if said[1] else ""


def read(reader: Reader, columns: Sequence[int], outcomes: Outcomes) -> FloatArray:
    """Some of the columns that a reader reads, shape (draws, columns)."""
    matrix = reader(outcomes, works_out=False)
    return matrix if matrix.shape[1] == len(columns) else matrix[:, list(columns)]


def entries_of(reader: Reader, columns: Sequence[int], value: Any) -> FloatArray:
    """The numbers that an input holds where outputs hold these columns; NaN where it has another form."""
    alone = Outcomes(np.zeros((1, 4)), np.array([""], dtype=object), raw=(seen(value),))
    return read(reader, columns, alone)[0]


def _place(reader: Reader, column: int) -> str:
    """How a sentence names a column that is read: empty for the output itself."""
    for block in reader.blocks:
        if column < block.width:
            return f"{block.path}[{column}]" if block.width > 1 or not reader.columns else ""
        column -= block.width
    path, what = reader.keys[column]
    return f"{path} ({what})" if what else path


def choose_columns(reader: Reader, first: Outcomes, second: Outcomes) -> tuple[int, ...]:
    """At most `SIZES.max_columns` columns of reals: of more, those in which the inputs differ most on these draws.

    A column is one of reals if it varies on both inputs (two constants are no noise that was rounded), is not always an
    integer, and is a number about as often on either (`SIZES.presence`).
    """
    if all(one.is_integer or {int} == set(map(type, one.raw)) for one in (first, second)):
        return ()
    n_read = sum(block.width for block in reader.blocks) + len(reader.keys)
    sides = [read(reader, range(n_read), one) for one in (first, second)]
    chosen = [k for k in range(n_read) if _is_real_valued(sides[0][:, k], sides[1][:, k])]
    if len(chosen) > SIZES.max_columns:
        shifts = {k: _shift(sides[0][:, k], sides[1][:, k]) for k in chosen}
        chosen = sorted(sorted(chosen, key=lambda k: -shifts[k])[: SIZES.max_columns])
    return tuple(chosen)


def _is_real_valued(first: FloatArray, second: FloatArray) -> bool:
    sides = [side[np.isfinite(side)] for side in (first, second)]
    if not all(len(side) and np.any(side != side[0]) for side in sides) or all(map(are_integers, sides)):
        return False
    missing, sizes = np.array([np.isnan(side).sum() for side in (first, second)]), np.array([len(first), len(second)])
    pooled = missing.sum() / sizes.sum()
    deviation = math.sqrt(pooled * (1.0 - pooled) * float((1.0 / sizes).sum()))
    return bool(abs(float(np.diff(missing / sizes)[0])) <= SIZES.presence * deviation)


def _shift(first: FloatArray, second: FloatArray) -> float:
    """How far the sides lie apart, by size or by lowest bits: the difference of medians over the quartiles' spread."""
    largest = 0.0
    for both in ((first, second), (lowest_set_bit(first)[0], lowest_set_bit(second)[0])):
        quartiles = [np.percentile(side[np.isfinite(side)], [25, 50, 75]) for side in both]
        difference = abs(float(quartiles[0][1] - quartiles[1][1]))
        spread = sum(float(one[2] - one[0]) for one in quartiles)
        ratio = difference / spread if spread > 0.0 else (math.inf if difference > 0.0 else 0.0)
        largest = max(largest, 0.0 if math.isnan(ratio) else ratio)
    return largest


def learn(
    reader: Reader, columns: tuple[int, ...], sides: tuple[FloatArray, FloatArray], candidate: Candidate, level: float,
    draws: int,
) -> tuple[LowBitPredictor, GuessRule] | None:  # fmt: skip
    """The predictor and the rule of the best expected bound, from training draws; None where nothing is worth a guess.

    Parameters
    ----------
    sides : (ndarray, ndarray), shape (draws, columns) each
        What was read of training draws of x and of x_prime.
    level, draws : float, int
        Of the test to come.
    """
    budget, pair = candidate.budget, candidate.pair
    matrix = np.concatenate(sides)
    labels = np.repeat([1, 0], list(map(len, sides)))
    place = np.concatenate([np.arange(len(side)) for side in sides])
    is_held = place % 3 >= round(3.0 * EXACT_SIZES.fitted_share)
    entries = [entries_of(reader, columns, value) for value in (pair.x, pair.x_prime)]

    def grown(predictor: LowBitPredictor) -> float:
        """Nats by which held labels are foretold better than by the nearest law that keeps the budget's epsilon."""
        right = np.where(labels[is_held] == 1, 1.0, -1.0) * predictor.odds(matrix[is_held])
        kept = np.clip(right, -budget.epsilon, budget.epsilon)
        return float((scipy.special.log_expit(right) - scipy.special.log_expit(kept)).sum())

    tried: list[tuple[float, LowBitPredictor]] = []
    clearest: list[Table] = []
    for k in range(len(columns)):
        is_number = ~np.isnan(matrix[:, k])
        rows = [is_number & ~is_held & (labels == label) for label in (1, 0)]
        if not all(row.any() for row in rows):
            continue
        own = matrix[rows[0], k], matrix[rows[1], k]
        location = location_of(pair.x, pair.x_prime, (float(entries[0][k]), float(entries[1][k])), *own)
        of_column: list[tuple[float, Table]] = []
        for view in low_bit_views(*own, location, budget.epsilon):
            table = Table(k, view, _tree(view, matrix[~is_held & is_number, k], labels[~is_held & is_number]))
            of_column.append((grown(LowBitPredictor(reader, columns, (table,))), table))
        tried += [(growth, LowBitPredictor(reader, columns, (table,))) for growth, table in of_column]
        clearest.append(max(of_column, key=lambda one: one[0])[1])
    if len(clearest) > 1:
        together = LowBitPredictor(reader, columns, tuple(clearest))
        tried.append((grown(together), together))
    best: tuple[LowBitPredictor, GuessRule] | None = None
    claim = Inequalities(ApproxDP(budget.epsilon, budget.delta))
    ranked = sorted(range(len(tried)), key=lambda k: -tried[k][0])
    for predictor in (tried[k][1] for k in sorted(ranked[: SIZES.max_tried])):
        held = np.stack([predictor.count_rows(matrix[is_held & (labels == label)]) for label in (0, 1)])
        share = held[:, :N_BINS].sum() / max(held.sum(), 1)
        rule = choose_rule(held[:, :N_BINS], claim, level, max(int(share * draws), 1))
        if any(rule.sides) and (best is None or rule.expected > best[1].expected + SIZES.margin):
            best = predictor, rule
    return best


def _tree(view: LowBitView, values: FloatArray, labels: Labels) -> Steps:
    codes = view(values)
    if isinstance(view, SeenBefore):  # what was seen in one half is asked of the other one
        half = np.arange(len(values)) % 2 == 0
        for own in (half, ~half):
            codes[~own] = SeenBefore.learn(values[own & (labels == 1)], values[own & (labels == 0)])(values[~own])
    return pruned_tree(Cells(codes, labels))


def rule_to_dict(predictor: LowBitPredictor, rule: GuessRule) -> dict[str, Any]:
    """A rule as strict JSON values, with facts of inputs by their names."""
    tables = [{"column": t.column, "view": t.view.to_dict(), "steps": t.steps.to_dict()} for t in predictor.tables]
    reader = {"reader": predictor.reader.to_dict(), "columns": list(predictor.columns)}
    return {"version": VERSION, **reader, "tables": tables, "rule": dataclasses.asdict(rule)}


def rule_from_dict(record: Mapping[str, Any], x: Any, x_prime: Any) -> tuple[LowBitPredictor, GuessRule]:
    """What `rule_to_dict` wrote, for these inputs.

    Raises
    ------
    IndexError, KeyError, TypeError, ValueError
        If it is none.
    """
    reader, columns = Reader.from_dict(record["reader"]), tuple(map(int, record["columns"]))
    entries = [entries_of(reader, columns, value) for value in (x, x_prime)]
    tables = []
    for one in record["tables"]:
        column = range(len(columns))[one["column"]]
        at = float(entries[0][column]), float(entries[1][column])
        view = low_bit_view_from_dict(one["view"], at, x, x_prime)
        tables.append(Table(column, view, Steps.from_dict(one["steps"])))
    rule = GuessRule(int(record["rule"]["first_up"]), int(record["rule"]["end_down"]), 0, 0.0)
    if not tables or not 0 <= rule.end_down <= rule.first_up <= N_BINS:
        raise ValueError(f"rule must have tables, and guess in bins of 0 to {N_BINS}, got {record['rule']}.")
    return LowBitPredictor(reader, columns, tuple(tables)), rule


# --- the tests ---


class LowBitTest(ExactTest):
    """The exact test of one frozen rule on one pair, which abstains on what is no number."""

    def __init__(self, candidate: Candidate, draws: int, predictor: LowBitPredictor, rule: GuessRule) -> None:
        super().__init__(ApproxDP(candidate.budget.epsilon, candidate.budget.delta), draws)
        self.candidate, self.predictor, self.rule = candidate, predictor, rule
        self._sides = np.zeros((2, N_BINS + 1), dtype=np.int64)  # of x_prime, of x

    @property
    def statistic(self) -> LowBitPredictor:
        return self.predictor

    def add(self, counts_x: NDArray[np.int64], counts_x_prime: NDArray[np.int64]) -> None:
        super().add(counts_x, counts_x_prime)
        self._sides += np.stack([counts_x_prime, counts_x])

    @property
    def counts(self) -> tuple[int, int, int]:
        right, wrong, idle = super().counts
        return right, wrong, idle + int(self._sides[:, N_BINS].sum())

    def found(self, level: float, share: float = 1.0) -> FloatingPointPair:
        """The finding of a stage that has a share of the pair's level, after its look."""
        pair, budget = self.candidate.pair, self.candidate.budget
        right, wrong, idle = self.counts
        leaks, p_value = self.is_rejected, self.p_value
        assert p_value is not None
        return FloatingPointPair(
            id=pair.id,
            x_id=pair.x_id,
            x_prime_id=pair.x_prime_id,
            budget=budget,
            verdict="leaks" if leaks else "nothing_found",
            epsilon_lower=self.lower,
            p_value=min(1.0, p_value / share),
            error_share=level,
            correct=right,
            wrong=wrong,
            abstained=idle,
            detectable_share=detectable_share(right + wrong + idle, budget.epsilon, budget.delta, level * share),
            description=self.describe(*pair.said),
            rule=rule_to_dict(self.predictor, self.rule) if leaks else None,
        )

    def describe(self, x: str, x_prime: str) -> str:
        """The guessing events in words, with how often fresh draws of each input fell into them."""
        names = [
            letter if name == letter else f"{letter} = {name}"
            for letter, name in zip(("x", "x′"), (x, x_prime), strict=True)
        ]
        events, chosen = (
            self.predictor.events(self.rule),
            (slice(self.rule.first_up, N_BINS), slice(0, self.rule.end_down)),
        )
        said = []
        for k, (event, bins) in enumerate(zip(events, chosen, strict=True)):
            if event:
                own = [(self._sides[1 - side], names[side]) for side in (k, 1 - k)]
                shares = [f"{counts[bins].sum():,} of {counts.sum():,} on {name}" for counts, name in own]
                said.append(f"Outputs {event}: {shares[0]}, {shares[1]}.")
        return " ".join(said)


@dataclasses.dataclass
class LearnedPair:
    """One pair of the stage: what its outputs are read by, its level, and the finding of its last look."""

    candidate: Candidate
    reader: Reader
    columns: tuple[int, ...]
    level: float = math.nan
    rule: tuple[LowBitPredictor, GuessRule] | None = None
    found: FloatingPointPair | None = None

    @property
    def is_open(self) -> bool:
        return self.found is None or self.found.verdict != "leaks"

    def nothing(self, labelled: int, share: float) -> FloatingPointPair:
        """The finding of a stage without a rule: it guesses nothing, whatever is drawn."""
        pair, budget = self.candidate.pair, self.candidate.budget
        detectable = detectable_share(labelled, budget.epsilon, budget.delta, self.level * share)
        return FloatingPointPair(
            pair.id, pair.x_id, pair.x_prime_id, budget, "nothing_found", 0.0, 1.0, self.level, 0, 0, labelled,
            detectable, "",
        )  # fmt: skip


class LowBitGame(Campaign):
    """The stage on its pairs: a round is one of its stages.

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
        self.pairs: list[LearnedPair] = []
        self.error_rate = error_rate
        self._chosen, self._size, self._coin, self._in_stages = chosen, draws, coin, in_stages
        self._trained: dict[int, list[Outcomes]] = {}
        self._stages: list[tuple[int, int, float]] = []  # those to come: training, labelled draws, share of the level

    def start(self) -> None:
        """Probe the inputs, leave out pairs without real numbers, fix levels and stages, and fit the first one."""
        probed = min(SIZES.probe, self._size // 4)
        inputs = sorted({i for one in self._chosen for i in one.inputs})
        probes = self.draws.hand_over(dict.fromkeys(inputs, probed))
        for candidate in self._chosen:
            both = [probes[i] for i in candidate.inputs]
            reader = Reader.learn(both)
            if columns := choose_columns(reader, *both):
                self.pairs.append(LearnedPair(candidate, reader, columns))
        if not self.pairs:
            return
        # Validity: the pairs, their levels, the stages and their sizes are fixed by probes, before all other draws.
        self.draws.measure(list(probes.values()))
        held = self.draws.columns * max(1.0, SIZES.training_share * len(self._inputs()))
        draws = max(min(self._size, SIZES.min_samples), min(self._size, int(SIZES.max_numbers / held)))
        for learned in self.pairs:
            learned.level = self.error_rate / len(self.pairs)
        self._coins = {learned.candidate.place: self._coin(learned.candidate.place) for learned in self.pairs}
        begin, share_of = 0, SIZES.training_share
        for end, share in stages_of(draws) if self._in_stages else [(draws, 1.0)]:
            training = int(share_of * end) - int(share_of * begin)
            self._stages.append((training, 2 * (end - begin - training - (0 if begin else probed)), share))
            begin = end
        self._fit()

    def _inputs(self) -> list[int]:
        """Those of the pairs that are still asked."""
        return sorted({i for learned in self._open() for i in learned.candidate.inputs})

    def _open(self) -> list[LearnedPair]:
        return [learned for learned in self.pairs if learned.is_open]

    def _freeze(self) -> Plan | None:
        if not self._stages or not self._open():
            return None
        _, labelled, self._share = self._stages.pop(0)
        self._playing: list[tuple[LearnedPair, LowBitTest]] = []
        requests: dict[int, list[Request]] = {}
        for learned in self._open():
            # Validity: coins are of a stream that nothing else reads, so labels do not depend on outputs.
            quotas = toss(labelled, self._coins[learned.candidate.place])
            if learned.rule is None:
                learned.found = learned.nothing(labelled, self._share)
                continue
            test = LowBitTest(learned.candidate, labelled, *learned.rule)
            test.start(learned.level * self._share)
            self._playing.append((learned, test))
            for i, quota in zip(learned.candidate.inputs, quotas, strict=True):
                requests.setdefault(i, []).append(Request(quota, test.statistic))
        return Plan({i: max(r.quota for r in requests[i]) for i in sorted(requests)}, requests)

    def _absorb(self, counts: Counts) -> None:
        counted = {i: iter(of_input) for i, of_input in counts.items()}
        for learned, test in self._playing:
            test.add(*(next(counted[i]) for i in learned.candidate.inputs))

    def _look(self) -> None:
        for learned, test in self._playing:
            test.update()
            learned.found = test.found(learned.level, self._share)

    def _fit(self) -> None:
        if not self._stages or not self._open():
            return
        training, labelled, share = self._stages[0]
        fresh = self.draws.hand_over(dict.fromkeys(self._inputs(), training))
        for i, outcomes in fresh.items():
            self._trained.setdefault(i, []).append(outcomes)
        for learned in self._open():
            of_x, of_x_prime = (
                np.concatenate([read(learned.reader, learned.columns, part) for part in self._trained[i]])
                for i in learned.candidate.inputs
            )
            learned.rule = learn(
                learned.reader, learned.columns, (of_x, of_x_prime), learned.candidate, learned.level * share, labelled
            )


def count_again(
    pair: Candidate,
    rule: tuple[LowBitPredictor, GuessRule],
    labelled: int,
    draw: Draw,
    coin: np.random.Generator,
    error_rate: float,
) -> FloatingPointPair:
    """One test of a rule that was fixed before, on fresh draws of one pair.

    P(verdict "leaks") <= error_rate if the doubles keep the claim: no other pair or rule shares it.

    Raises
    ------
    SubjectError
        If the subject breaks.
    """
    test = LowBitTest(pair, labelled, *rule)
    game = WitnessGame(test, error_rate, labelled, draw, coin)
    game.start()
    game.round()
    return test.found(error_rate)


def detectable_share(labelled: int, epsilon: float, delta: float, level: float) -> float:
    """The smallest share of one input's outputs that, given by it alone, would have been found; see the result."""
    shares = np.geomspace(0.5 / labelled, 1.0, 200)
    # The number of right guesses, exceeded with probability `found_with`: a normal quantile, less one for its error.
    mean = labelled * shares / 2.0
    quantile = np.floor(mean + scipy.special.ndtri(1.0 - SIZES.found_with) * np.sqrt(mean * (1.0 - shares / 2.0))) - 1.0
    right = np.maximum(quantile, 0.0)
    spent = level * EXACT_SIZES.mass_share if delta > 0.0 else 0.0
    accuracy = binomial.binomial_lower_each(right, right, np.full(len(right), level - spent))
    mass = binomial.binomial_lower_each(right, np.full(len(right), float(labelled)), np.full(len(right), spent))
    allowed = binomial.largest_accuracy(np.array([epsilon]), np.array([delta / 2.0]), mass)
    found = np.flatnonzero(accuracy > allowed)
    return float(shares[found[0]]) if len(found) else math.inf


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
