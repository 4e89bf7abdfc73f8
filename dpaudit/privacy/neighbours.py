"""Claims with their neighbouring relation: the budget of a pair is that of the steps that join its two inputs.

    add_remove     a step adds or removes one row
    replace_one    a step replaces one row by another: the number of rows stays
    either         a step does one or the other: the claim is made of both
    given          every pair that is given is one step, whatever differs in it

A dataset is a list, tuple, array, pandas DataFrame or Series of rows; a tuple or dictionary of arrays or tables of one
length, as `(X, y)`, that are columns of the same rows; or a dictionary, set or `Counter` of rows, which have no order.
An array of counts is read as rows: give a histogram as a `Counter`, or read it with `rows`. Numbers are equal by value,
and NaN equals NaN.

The rows of a sequence are compared in their order, since mechanisms may tell an order (sums of doubles, codes by first
appearance): a row that moves costs the steps of a removal and an addition. So the number of steps is never below that
of unordered datasets, and a mechanism that keeps its claim in either reading is not accused. Inputs without a
difference keep the claim of one step.

Budgets of several steps are those of `dpaudit.privacy.group`.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from typing import Any, Literal

import numpy as np

from dpaudit.arguments import check_among
from dpaudit.errors import UsageError
from dpaudit.privacy.claims import Claim, PureDP, delegated, number
from dpaudit.privacy.composition import group
from dpaudit.privacy.differences import difference, is_frame, is_series, row_key
from dpaudit.privacy.pairs import short_form

Adjacency = Literal["add_remove", "replace_one", "either", "given"]
ADJACENCIES: tuple[Adjacency, ...] = ("add_remove", "replace_one", "either", "given")
MAX_EDITS = 100  # of an edit distance, which takes 5 ms then; beyond them every row may count as a step
Reader = Callable[[Any], Any]  # an input to the dataset that it holds
Steps = Callable[[Any, Any], float | None]  # of a pair; None where they cannot be told


@dataclasses.dataclass(frozen=True)
class NeighbourClaim(Claim):
    """A claim that is made of one step of a neighbouring relation; a pair of k steps has the budget of k.

    The text is the claim's with `adjacency=`: `eps=1,adjacency=add_remove`. It names `rows` and `steps` of the caller's
    own, and cannot be read back then.

    Parameters
    ----------
    claim : Claim
        Of one step; of a family whose budget does not depend on the pair.
    adjacency : {"add_remove", "replace_one", "either", "given"}
        See the module.
    rows : callable, optional
        The dataset that an input holds; the input itself by default.
    steps : callable, optional
        Counts the steps of a pair instead, where a library has a distance of its own: `steps(x, x_prime)`, None for a
        pair of which it cannot tell.
    is_stated : bool
        Whether the mechanism states `rows` and `steps`: the text leaves them out, and with "given" the relation too.

    Raises
    ------
    UsageError
        If a parameter makes no sense. At a pair that no steps join, or whose steps cannot be told; or of several
        steps, where the family has no rule for groups.

    Examples
    --------
    >>> claim = NeighbourClaim(PureDP(1.0), "add_remove")
    >>> claim.for_pair([1, 2, 3], [1, 3]), claim.for_pair([1, 2, 3], [1, 5, 3])  # a replaced row is two steps
    (PureDP(epsilon=1.0, delta=0.0), PureDP(epsilon=2.0, delta=0.0))
    """

    claim: Claim
    adjacency: Adjacency = "given"
    rows: Reader | None = dataclasses.field(default=None, compare=False, repr=False)
    steps: Steps | None = dataclasses.field(default=None, compare=False, repr=False)
    is_stated: bool = dataclasses.field(default=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_among("adjacency", self.adjacency, ADJACENCIES)
        if self.claim.depends_on_pair:
            raise UsageError(
                f"claim must have one budget for all pairs where adjacency is stated, got {self.claim} "
                f"({type(self.claim).__name__})."
            )

    parameter = delegated("claim.parameter")
    family = delegated("claim.family")
    anchored = delegated("claim.anchored")
    delta = delegated("claim.delta")
    value = delegated("claim.value")
    report_delta = delegated("claim.report_delta")
    orders = delegated("claim.orders")
    is_symmetric = delegated("claim.is_symmetric")
    is_order_of_pair = delegated("claim.is_order_of_pair")
    epsilon_at = delegated("claim.epsilon_at")
    profile = delegated("claim.profile")
    lines = delegated("claim.lines")
    renyi_epsilons = delegated("claim.renyi_epsilons")
    inequality = delegated("claim.inequality")

    def in_order(self, reverse: bool) -> NeighbourClaim:
        return self if self.is_symmetric else dataclasses.replace(self, claim=self.claim.in_order(reverse))

    def with_value(self, value: float) -> NeighbourClaim:
        return dataclasses.replace(self, claim=self.claim.with_value(value))

    def __str__(self) -> str:
        if self.is_stated and self.steps is not None and self.adjacency == "given":
            return str(self.claim)
        own = {} if self.is_stated else {"rows": self.rows, "steps": self.steps}
        named = (f",{name}={getattr(one, '__name__', 'own')}" for name, one in own.items() if one is not None)
        return f"{self.claim},adjacency={self.adjacency}{''.join(named)}"

    def for_pair(self, x: Any, x_prime: Any) -> Claim:
        count = self.count(x, x_prime)
        if math.isinf(count):
            raise UsageError(
                f"pairs must be joined by steps of adjacency={self.adjacency}, got {short_form(x)} and "
                f"{short_form(x_prime)}, which are not. {_ADVICE}"
            )
        try:
            return group(self.claim, math.ceil(count))  # weights of rows in a Counter may be no whole numbers
        except UsageError as error:
            text = f"The pair {short_form(x)}, {short_form(x_prime)} is {self.words(count)}"
            raise UsageError(f"{error} {text}. {_ADVICE}") from error

    def count(self, x: Any, x_prime: Any) -> float:
        """The number of steps between two inputs, at least 1; inf where no steps join them."""
        if self.steps is not None:
            counted = self.steps(x, x_prime)
            if counted is None:
                return 1.0
            counted = number("steps of a pair", counted, "in [0, inf]", lambda value: value >= 0.0)
            return max(1.0, float(np.ceil(counted * (1.0 - 1e-12))))  # rounding of a distance of doubles is no step
        if self.adjacency == "given":
            return 1.0
        read = self.rows or _columns_joined
        counted = steps_between(read(x), read(x_prime), self.adjacency)
        if counted is None:
            raise UsageError(
                f"inputs must be datasets (lists, arrays or tables of rows) for adjacency={self.adjacency}, got "
                f"{short_form(x)} and {short_form(x_prime)}. {_ADVICE}"
            )
        return max(1.0, counted)

    def words(self, count: float) -> str:
        """So many steps, in words."""
        relation = "the library's distance" if self.adjacency == "given" else self.adjacency
        return f"{'at most ' if count > MAX_EDITS else ''}{count:,.0f} steps of {relation}"


_ADVICE = "State another relation with the claim: adjacency=add_remove, replace_one, either, or given (one step each)."


def one_step(claim: Claim) -> Claim:
    """Claim of one step; a claim without a relation as it is."""
    return claim.claim if isinstance(claim, NeighbourClaim) else claim


def searched_relation(claim: Claim | None) -> Literal["add_remove", "replace_one"]:
    """Relation of the datasets of a search where none is stated: that of neighbours under the claim."""
    is_replaced = isinstance(claim, NeighbourClaim) and claim.adjacency == "replace_one"
    return "replace_one" if is_replaced else "add_remove"


def claim_of_candidate(claim: Claim, x: Any, x_prime: Any) -> Claim:
    """The claim for a pair that a search proposes: a vacuous one where no steps join the two."""
    if isinstance(claim, NeighbourClaim) and math.isinf(claim.count(x, x_prime)):
        return PureDP(math.inf)
    return claim.for_pair(x, x_prime)


def steps_note(claim: Claim, x: Any, x_prime: Any, lower: float | None) -> str:
    """Note on a pair's relation, as a sentence; empty where its budget is that of one step.

    Of a claim that states no relation: a question, for a pair that replaces one row and was found to break the claim
    with a bound `lower` that two steps would allow.
    """
    if isinstance(claim, NeighbourClaim):
        count = claim.count(x, x_prime)
        if count <= 1.0:
            return ""
        return f"The pair is {claim.words(count)} apart: its budget is {claim.for_pair(x, x_prime)}, not {claim.claim}."
    if lower is None or claim.depends_on_pair or steps_between(x, x_prime, "replace_one") != 1.0:
        return ""
    budget = ""
    try:
        two = group(claim, 2)
    except UsageError:  # the family has no rule for two steps
        pass
    else:
        # Of another Renyi order a bound says nothing here; at a larger delta it is no larger.
        if claim.family == "hockey-stick" and lower <= two.value:
            budget = f", with the budget {two}, which the bound does not exceed"
        elif claim.family == "hockey-stick" and two.delta == claim.delta:
            return ""
    changed = difference(x, x_prime)
    return (
        f"This pair replaces a row{f' ({changed})' if changed else ''}. Do neighbours add or remove a row? Then it is "
        f"two steps{budget}. State the relation with the claim: adjacency=add_remove, or adjacency=replace_one."
    )


def steps_between(x: Any, x_prime: Any, adjacency: Adjacency) -> float | None:
    """The steps between two datasets; inf where none join them, None where an input is no dataset.

    Examples
    --------
    >>> [steps_between([1, 2, 3], [3, 1, 2], adjacency) for adjacency in ("add_remove", "replace_one", "either")]
    [2.0, 3.0, 2.0]
    >>> steps_between([1, 2], [1], "replace_one"), steps_between(1, 2, "add_remove")
    (inf, None)
    """
    if adjacency == "given":
        return 1.0
    try:
        return _counted(x, x_prime, adjacency)
    except RecursionError:  # an input that holds itself
        return None


def records_added(x: Any, x_prime: Any) -> int | None:
    """The records that `x_prime` has beyond those of `x`; negative where it lacks records of `x`.

    None where that does not tell the two apart: no dataset, a replaced or moved record, equal datasets.

    Examples
    --------
    >>> records_added([1, 2], [1, 5, 2]), records_added({"a", "b"}, {"a"}), records_added([1, 2], [1, 3])
    (1, -1, None)
    """
    first, second = _columns_joined(x), _columns_joined(x_prime)
    steps = steps_between(first, second, "add_remove")
    added = 0 if steps is None else _size(second) - _size(first)
    return added if steps == abs(added) > 0 else None


def _size(dataset: Any) -> int:
    """The number of records of a dataset."""
    rows = _rows(dataset)
    return rows.total() if isinstance(rows, Counter) else len(rows or ())


def _counted(x: Any, x_prime: Any, adjacency: Adjacency) -> float | None:
    first, second = _rows(x), _rows(x_prime)
    if isinstance(first, Counter) and isinstance(second, Counter):
        return _steps((first - second).total(), (second - first).total(), adjacency)
    are_other_tables = is_frame(x) and is_frame(x_prime) and list(x) != list(x_prime)
    if not isinstance(first, list) or not isinstance(second, list) or are_other_tables:
        return None
    keys, other_keys = list(map(row_key, first)), list(map(row_key, second))
    if adjacency == "replace_one":
        if len(keys) != len(other_keys):
            return math.inf
        return float(sum(a != b for a, b in zip(keys, other_keys, strict=True)))
    return float(edit_distance(keys, other_keys, replaces=adjacency == "either"))


def edit_distance(first: Sequence[Hashable], second: Sequence[Hashable], replaces: bool = False) -> int:
    """The least number of additions and removals (and replacements) that make one sequence of another.

    By the furthest row that so many edits reach on each diagonal (Ukkonen 1985; Myers 1986). An upper bound where more
    than `MAX_EDITS` are needed, and not every row differs.

    Examples
    --------
    >>> edit_distance("abc", "adc"), edit_distance("abc", "adc", replaces=True)
    (2, 1)
    """
    rows, columns = len(first), len(second)
    counts, others = Counter(first), Counter(second)
    removed, added = (counts - others).total(), (others - counts).total()
    if (removed, added) == (rows, columns):  # nothing in common
        return max(rows, columns) if replaces else rows + columns

    def end_of_equal(row: int, diagonal: int) -> int:
        while row < rows and row + diagonal < columns and first[row] == second[row + diagonal]:
            row += 1
        return row

    reached = {0: end_of_equal(0, 0)}
    for edits in range(1, MAX_EDITS + 2):
        if reached.get(columns - rows) == rows:
            return edits - 1
        reached = {
            k: end_of_equal(
                min(
                    max(reached.get(k - 1, -2), reached.get(k + 1, -2) + 1, reached.get(k, -2) + 1 if replaces else -2),
                    rows,
                    columns - k,
                ),
                k,
            )
            for k in range(max(-edits, -rows), min(edits, columns) + 1)
            if replaces or (k + edits) % 2 == 0
        }
    return max(rows, columns) if replaces else rows + columns


def _steps(removed: int, added: int, adjacency: Adjacency) -> float:
    """The steps between datasets without an order, from the rows that only one of them has."""
    if adjacency == "add_remove":
        return float(removed + added)
    return math.inf if adjacency == "replace_one" and removed != added else float(max(removed, added))


def joined_rows(data: Any) -> Any:
    """The rows of a dataset that may be given as a tuple or dictionary of parts with a row each: `(X, y)`.

    Examples
    --------
    >>> joined_rows(([1, 2], ["a", "b"]))
    [(1, 'a'), (2, 'b')]
    """
    if not isinstance(data, tuple | dict):
        return data
    parts = [_rows(part) for part in (data.values() if isinstance(data, dict) else data)]
    if not parts or not all(isinstance(part, list) and len(part) == len(parts[0] or ()) for part in parts):
        return None
    return list(zip(*(part or () for part in parts), strict=True))


def _rows(data: Any) -> Counter[Hashable] | list[Any] | None:
    """The rows of a dataset, as a list or, where they have no order, each with its number; None where it is none."""
    if isinstance(data, Counter):
        counts: Counter[Hashable] = Counter()
        for row, count in data.items():
            counts[row_key(row)] += count  # two rows may have one key: NaN and NaN
        return counts
    if isinstance(data, Mapping):
        return Counter((row_key(key), row_key(value)) for key, value in data.items())
    if isinstance(data, Set):
        return Counter(map(row_key, data))
    if is_frame(data):
        return list(data.itertuples(index=False, name=None))
    return list(data) if isinstance(data, list | tuple) or _is_table(data) else None


def _is_table(data: Any) -> bool:
    """Tell whether it is an array, a frame or a series of rows."""
    return is_series(data) or is_frame(data) or (isinstance(data, np.ndarray) and data.ndim > 0)


def _columns_joined(data: Any) -> Any:
    """An input as a dataset: arrays and tables of one length in a tuple or dictionary are parts of the same rows."""
    parts = list(data.values()) if isinstance(data, dict) else data if isinstance(data, tuple) else ()
    joined = joined_rows(data) if parts and all(map(_is_table, parts)) else None
    return data if joined is None else joined
