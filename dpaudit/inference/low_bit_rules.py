"""Low-bit rules: frozen guesses by the low-order bits of an output's numbers, learned, said in words and saved as data.

A rank tree on the codes of a view (`dpaudit.features.low_bits`) gives the log odds of x; over several columns they are
added up. Two thirds of the training draws grow the trees. The other third chooses the view and the guessing rule, so
that a tree that learnt its own draws by heart is not taken for a good one.

What is no number under a column (an exception, an entry that is missing, a text, NaN) has no bits, so it is no evidence
here: the audit's own tests read it as the outcome that it is. A rule abstains on an output that holds no number in its
columns, and a column is left out where one input has numbers there more often than the other.

Saved rules hold the doubles that earlier draws showed, and the names of facts of inputs, never their values.

Validity: a rule is a function of one output, frozen before the draws that it is counted on. Columns are chosen on
probes, before training and counting.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.features.input_facts import location_of
from dpaudit.features.low_bits import SIZES as VIEW_SIZES
from dpaudit.features.low_bits import LowBitView, SeenBefore, low_bit_view_from_dict, low_bit_views, lowest_set_bit
from dpaudit.features.outcomes import Outcomes
from dpaudit.features.reader import Reader
from dpaudit.features.views import scan
from dpaudit.features.whole_numbers import are_integers
from dpaudit.inference.guess_rules import GuessRule, choose_rule
from dpaudit.inference.independence import COLUMNS, Columns, more_equal
from dpaudit.inference.payoffs import Inequalities
from dpaudit.inference.tables import EDGES, N_BINS
from dpaudit.learning.rank_tree import Forest, Labels, Ordered, Steps, pruned_trees
from dpaudit.privacy.claims import ApproxDP, Budget, FloatArray
from dpaudit.privacy.pairs import Pair
from dpaudit.subjects.call_outcomes import Opaque
from dpaudit.subjects.plain import seen


@dataclasses.dataclass(frozen=True)
class LowBitRuleSizes:
    """Sizes of the search for rules on low bits."""

    presence: float = 1e-3  # p-value below which the inputs' shares of numbers in a column differ
    max_tried: int = 4  # predictors, the clearest ones, whose guessing rules are compared: 3 ms each
    margin: float = 0.2  # nats by which a later view must be better: earlier ones are easier to understand


SIZES = LowBitRuleSizes()
VERSION = 2  # of saved rules; those of version 1 had tables of log ratios, and thresholds


class RealColumns(Columns):
    """Columns of numbers in outputs."""

    def of_input(self, value: Any) -> FloatArray:
        """The numbers that an input holds where outputs hold these; NaN where it has another form."""
        return np.asarray(self(Outcomes(np.zeros((1, 4)), np.array([""], dtype=object), raw=(seen(value),)))[0])

    def words(self, column: int) -> str:
        """Prefix of the words of a view: empty for an output that is a number itself."""
        path = re.sub(r"(?:^column |, place )(\d+)$", r"[\1]", self.names[column].removeprefix("the output"))
        return f"with an entry {path} " if path else ""


def choose_columns(first: Outcomes, second: Outcomes) -> RealColumns:
    """At most `COLUMNS` columns of reals: of more, those that tell draws of the two inputs best.

    A column is one of reals if it varies on both inputs (two constants are no noise that was rounded), is not always an
    integer, and is a number about as often on either (`SIZES.presence`).
    """
    reader = Reader.learn([first, second])
    if not any(_holds_reals(one.raw) if one.raw else not one.is_integer for one in (first, second)):
        return RealColumns(reader, ())
    everything = RealColumns(reader, tuple(range(sum(block.width for block in reader.blocks) + len(reader.keys))))
    batches = [everything(one) for one in (first, second)]
    chosen = [k for k in everything.places if _is_real_valued(batches[0][:, k], batches[1][:, k])]
    if len(chosen) > COLUMNS:
        matrix, labels = np.concatenate(batches)[:, chosen], np.repeat([0, 1], list(map(len, batches)))
        bits = lowest_set_bit(matrix)[0]
        clear = np.argsort(-np.maximum(scan(matrix, labels), scan(bits, labels)), kind="stable")
        chosen = sorted(chosen[k] for k in clear[:COLUMNS])
    return RealColumns(*reader.only(chosen))


def _holds_reals(value: Any) -> bool:
    """Tell whether a float is among what a value holds: integers have no low bits, however large."""
    parts = value.state if isinstance(value, Opaque) else value
    if isinstance(parts, Mapping):
        parts = list(parts.values())
    if isinstance(parts, list | tuple | set | frozenset):
        return any(map(_holds_reals, parts))
    return (
        parts.dtype.kind in "fc" if isinstance(parts, np.ndarray) else isinstance(parts, float | complex | np.floating)
    )


def _is_real_valued(first: FloatArray, second: FloatArray) -> bool:
    finite = [side[np.isfinite(side)] for side in (first, second)]
    if not all(len(side) and np.any(side != side[0]) for side in finite) or all(map(are_integers, finite)):
        return False
    missing = [np.isnan(side) for side in (first, second)]
    return min(more_equal(*missing), more_equal(*missing[::-1])) >= SIZES.presence


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """The log odds of x that a view's codes give on one column."""

    column: int
    view: LowBitView
    steps: Steps

    @functools.cached_property
    def odds(self) -> FloatArray:
        """The log odds of each step, shape (steps,)."""
        return np.asarray(scipy.special.logit(np.clip(self.steps.probabilities, 1e-7, 1.0 - 1e-7)))

    def __call__(self, matrix: FloatArray) -> FloatArray:
        """The log odds of each row, shape (draws,); 0 for what is no number."""
        codes = self.view(matrix[:, self.column])
        at = np.minimum(np.searchsorted(self.steps.edges, codes), len(self.odds) - 1)
        return np.where(np.isnan(codes), 0.0, self.odds[at])

    def words(self, is_chosen: NDArray[np.bool_]) -> str:
        """The doubles on the chosen steps, in words that complete "outputs …"."""
        ends = np.concatenate([[-math.inf], np.floor(self.steps.edges), [math.inf]])
        begins, stops = np.flatnonzero(np.diff(np.pad(is_chosen, 1).astype(int))).reshape(-1, 2).T
        said = [self.view.words(ends[a] + 1.0, ends[b]) for a, b in zip(begins, stops, strict=True)]
        more = len(said) - VIEW_SIZES.shown
        return " or ".join(said[: VIEW_SIZES.shown]) + (f" (and {more} more kinds)" if more > 0 else "")


@dataclasses.dataclass(frozen=True, eq=False)
class LowBitRule:
    """A frozen predictor, the sum of tables, with the guessing rule on its bins; counts bins of outputs."""

    columns: RealColumns
    tables: tuple[Table, ...]
    guesses: GuessRule = dataclasses.field(default_factory=lambda: GuessRule(N_BINS, 0, 0, 0.0))

    def zeros(self) -> NDArray[np.int64]:
        return np.zeros(N_BINS + 1, dtype=np.int64)

    def count(self, outcomes: Outcomes) -> NDArray[np.int64]:
        """Counts by bin, and behind them of outputs without a number, shape (bins + 1,)."""
        return self.bin_counts(self.columns(outcomes)) if len(outcomes) else self.zeros()

    def bin_counts(self, matrix: FloatArray) -> NDArray[np.int64]:
        """The same of rows that were read."""
        is_none = np.all([np.isnan(matrix[:, table.column]) for table in self.tables], axis=0)
        return np.bincount(np.where(is_none, N_BINS, np.digitize(self.odds(matrix), EDGES)), minlength=N_BINS + 1)

    def odds(self, matrix: FloatArray) -> FloatArray:
        """Log odds of x of rows that were read, added up in one order whatever the size of the batch."""
        return functools.reduce(np.add, [table(matrix) for table in self.tables])

    def events(self) -> tuple[str, str]:
        """The two guessing events in words that complete "outputs …"; empty for a guess that is never made."""
        if len(self.tables) > 1:
            kinds = f"whose low bits in {len(self.tables)} coordinates together speak for"
            first, second = self.guesses.directions
            return f"{kinds} x" if first else "", f"{kinds} x′" if second else ""
        (table,) = self.tables
        bins, entry = np.digitize(table.odds, EDGES), self.columns.words(table.column)
        said = [table.words(chosen) for chosen in (bins >= self.guesses.first_up, bins < self.guesses.end_down)]
        return entry + said[0] if said[0] else "", entry + said[1] if said[1] else ""

    def to_dict(self) -> dict[str, Any]:
        """The rule as strict JSON values, with facts of inputs by their names."""
        tables = [{"column": t.column, "view": t.view.to_dict(), "steps": t.steps.to_dict()} for t in self.tables]
        return {
            "version": VERSION,
            "reader": self.columns.reader.to_dict(),
            "columns": list(self.columns.places),
            "tables": tables,
            "guesses": [self.guesses.first_up, self.guesses.end_down],
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], x: Any, x_prime: Any) -> LowBitRule:
        """Read what `to_dict` wrote, for these inputs.

        Raises
        ------
        IndexError, KeyError, TypeError, ValueError
            If it is none.
        """
        columns = RealColumns(Reader.from_dict(record["reader"]), tuple(map(int, record["columns"])))
        entries = np.stack([columns.of_input(value) for value in (x, x_prime)])
        tables = []
        for one in record["tables"]:
            column = range(len(columns.places))[one["column"]]
            view = low_bit_view_from_dict(one["view"], entries[:, column], x, x_prime)
            tables.append(Table(column, view, Steps.from_dict(one["steps"])))
        up, down = map(int, record["guesses"])
        if not tables or not 0 <= down <= up <= N_BINS:
            raise ValueError(f"rule must have tables, and guess in bins of 0 to {N_BINS}, got {record['guesses']}.")
        return cls(columns, tuple(tables), GuessRule(up, down, 0, 0.0))


def learn_rule(
    columns: RealColumns, batches: tuple[FloatArray, FloatArray], pair: Pair, budget: Budget, level: float, draws: int
) -> LowBitRule | None:
    """The rule of the best expected bound, from training draws; None where nothing is worth a guess.

    `batches`, shape (draws, columns) each, are the numbers of training draws of x and of x_prime; `level` and `draws`
    are those of the test to come.
    """
    matrix, labels = np.concatenate(batches), np.repeat([1, 0], list(map(len, batches)))
    # Every third draw of an input chooses, the others grow the trees: other shares were not measured.
    is_held = np.concatenate([np.arange(len(side)) for side in batches]) % 3 == 2
    held, of_held = matrix[is_held], labels[is_held]

    def foretold(rule: LowBitRule) -> float:
        """Nats by which held labels are foretold better than by the nearest law that keeps the budget's epsilon."""
        right = np.where(of_held == 1, 1.0, -1.0) * rule.odds(held)
        kept = np.clip(right, -budget.epsilon, budget.epsilon)
        return float((scipy.special.log_expit(right) - scipy.special.log_expit(kept)).sum())

    entries = np.stack([columns.of_input(value) for value in (pair.x, pair.x_prime)])
    places: list[tuple[int, LowBitView]] = []
    ordered: list[Ordered] = []
    for k in range(len(columns.places)):
        is_own = ~is_held & ~np.isnan(matrix[:, k])
        values, own = matrix[is_own, k], labels[is_own]
        if len(set(own.tolist())) < 2:
            continue
        of_x, of_x_prime = values[own == 1], values[own == 0]
        location = location_of(pair.x, pair.x_prime, entries[:, k], of_x, of_x_prime)
        for view in low_bit_views(of_x, of_x_prime, location, budget.epsilon):
            places.append((k, view))
            ordered.append(Ordered.of(_codes(view, values, own), own))
    if not places:
        return None
    trees = pruned_trees(Forest(ordered))
    tables = [Table(k, view, trees.steps(tree)) for tree, (k, view) in enumerate(places)]
    tried = [(foretold(rule), rule) for rule in (LowBitRule(columns, (table,)) for table in tables)]
    clearest = {
        k: max((one for one in tried if one[1].tables[0].column == k), key=lambda one: one[0]) for k, _ in places
    }
    if len(clearest) > 1:
        together = LowBitRule(columns, tuple(rule.tables[0] for _, rule in clearest.values()))
        tried.append((foretold(together), together))
    claim, best = Inequalities(ApproxDP(budget.epsilon, budget.delta)), None
    ranked = sorted(range(len(tried)), key=lambda k: -tried[k][0])
    for rule in (tried[k][1] for k in sorted(ranked[: SIZES.max_tried])):
        counts = np.stack([rule.bin_counts(held[of_held == label]) for label in (0, 1)])
        with_number = counts[:, :N_BINS]
        size = int(draws * with_number.sum() / max(counts.sum(), 1))
        guesses = choose_rule(with_number, claim, level, max(size, 1))
        if any(guesses.directions) and (best is None or guesses.expected > best.guesses.expected + SIZES.margin):
            best = dataclasses.replace(rule, guesses=guesses)
    return best


def _codes(view: LowBitView, values: FloatArray, labels: Labels) -> FloatArray:
    """The codes that a tree learns from: what one half of the draws shows is asked of the other one."""
    if not isinstance(view, SeenBefore):
        return view(values)
    codes, half = np.empty(len(values)), np.arange(len(values)) % 2 == 0
    for own in (half, ~half):
        codes[~own] = SeenBefore.learn(values[own & (labels == 1)], values[own & (labels == 0)])(values[~own])
    return codes
