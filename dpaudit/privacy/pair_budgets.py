"""Budgets of many pairs at once: their claims, as a few families and a value of the parameter for each pair.

Two claims are of one family where they are equal at the same value (`Claim.with_value`). So 474,825 pairs of a metric
are one family and an array. All pure and approximate claims are of one family, since their deltas are an array too. A
claim of the user's own that depends on the pair (`for_pair`) is asked pair by pair.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import TOLERANCE, ApproxDP, Claim, FloatArray, MetricDP, PureDP, number
from dpaudit.privacy.inputs import Inputs
from dpaudit.privacy.metrics import Metric
from dpaudit.privacy.pairs import Pair

CHECKED = 5_000  # pairs at which a metric is asked in both orders
MAX_FAMILIES = 2_000  # whose lines are tabulated at one time: about 60 kB each
ONE_LINE = ApproxDP(1.0)  # the family of all claims that are one line
PROMISES = (  # what says what a claim promises; its fields are its own
    "anchored", "epsilon_at", "family", "in_order", "inequality", "is_symmetric", "is_vacuous", "lines", "orders",
    "profile", "renyi_epsilons", "report_delta", "value",
)  # fmt: skip
_EQUAL = "Make the class a frozen dataclass, which has __eq__ and __hash__."


@dataclasses.dataclass(frozen=True)
class PairBudgets:
    """The claims of many pairs.

    Attributes
    ----------
    families : tuple of Claim
        One claim of each family, with some value.
    family : array of int, shape (pairs,)
        Whose claim each pair has: a position in `families`.
    values : array of float, shape (pairs,)
        What is promised of the parameter; inf where nothing is.
    deltas : array of float, shape (pairs,)
        Of the line that each claim is, if it is one line.
    parameter : str
        That of all claims.
    report_delta : float
        The largest delta at which a claim reports epsilon: a bound at it is one at any smaller delta too.
    """

    families: tuple[Claim, ...]
    family: NDArray[np.int64]
    values: FloatArray
    deltas: FloatArray
    parameter: str
    report_delta: float

    @classmethod
    def same(cls, claim: Claim, pairs: int) -> PairBudgets:
        """One claim for each of so many pairs."""
        values = np.full(pairs, _value(claim, "every pair"))
        of_each = np.zeros(pairs, dtype=np.int64), values, np.full(pairs, claim.delta)
        return cls((claim,), *of_each, claim.parameter, claim.report_delta)

    def of(self, rows: NDArray[np.int64]) -> PairBudgets:
        """Budgets of some pairs."""
        of_some = {name: getattr(self, name)[rows] for name in ("family", "values", "deltas")}
        return dataclasses.replace(self, **of_some)

    @property
    def asked(self) -> NDArray[np.int64]:
        """Positions of the pairs of which something is asked."""
        return np.flatnonzero(np.isfinite(self.values))


def has_own_line(claim: Claim) -> bool:
    """Tell if a claim is the one line (epsilon, delta) whose epsilon is its parameter, as pure and approximate ones."""
    return claim.is_symmetric and type(claim).lines is ApproxDP.lines


def check_order_is_given(claim: Claim, pairs: str) -> None:
    """Refuse a claim of the first input against the second where nobody said which one is first.

    Parameters
    ----------
    pairs : str
        Where they are from, as the message says it.
    """
    if claim.is_order_of_pair:
        raise UsageError(
            f"pairs must be given in the order that the claim {claim} is about, got {pairs}, which has them in any "
            "order. List them as (x, x_prime), or promise both orders: FDP(add=f, remove=g), or FDP(f)."
        )


def check_promise(claim: Any, where: str) -> None:
    """Check that the claim of a pair promises what its family of this package promises, at its value.

    A subclass may promise something else at it: epsilon / 2, or other orders. `where` names the pair in the message.
    """
    if not isinstance(claim, Claim) or not claim.has_value:
        raise UsageError(f"for_pair must return a Claim with a budget, got {claim!r} for {where}.")
    family, own = type(claim).redefined(PROMISES)
    if own:
        raise UsageError(
            f"claim must promise what {family.__name__} promises for an exact answer, got {claim} "
            f"({type(claim).__name__}) for {where}, which has {', '.join(own)} of its own. Audit it instead."
        )


def budgets_of(promise: Claim, pairs: Sequence[Pair], inputs: Inputs) -> PairBudgets:
    """Budget of every pair.

    Of a metric it is read from its matrix where that is cheaper than one by one. Whether a metric is symmetric is
    checked at 5,000 pairs, evenly spaced in the list, and at all of a matrix: to call a function twice for each pair
    may take as long as the audit.

    Raises
    ------
    UsageError
        If the metric is not symmetric where it is checked, or gives no budget; or if `for_pair` of a claim gives what
        no table can hold.
    """
    if not promise.depends_on_pair:
        return PairBudgets.same(promise, len(pairs))
    if isinstance(promise, MetricDP) and type(promise).for_pair is MetricDP.for_pair:
        return dataclasses.replace(PairBudgets.same(PureDP(0.0), len(pairs)), values=_distances(promise, pairs, inputs))
    return _one_by_one(promise, pairs)


def _distances(promise: MetricDP, pairs: Sequence[Pair], inputs: Inputs) -> FloatArray:
    """The distances of a metric, shape (pairs,)."""
    checked = np.unique(np.linspace(0, len(pairs) - 1, min(len(pairs), CHECKED)).astype(np.int64))
    for k in checked.tolist():
        promise.for_pair(pairs[k].x, pairs[k].x_prime)  # says what is wrong with it
    is_dense = len(inputs.data) ** 2 <= 8 * len(pairs)
    if not (isinstance(promise.metric, Metric) and promise.on == "inputs" and is_dense):
        return np.array([promise.distance(pair.x, pair.x_prime) for pair in pairs])
    matrix = promise.metric.matrix(inputs.data)
    budgets, back = matrix[inputs.first, inputs.second], matrix[inputs.second, inputs.first]
    for k in np.flatnonzero(~(budgets >= 0.0))[:1].tolist():
        promise.for_pair(pairs[k].x, pairs[k].x_prime)  # says what is wrong with the first one
        raise UsageError(f"metric must give budgets in [0, inf] nats, got {budgets[k]} for {pairs[k].id}.")
    for k in np.flatnonzero(~np.isclose(budgets, back, rtol=TOLERANCE, atol=1e-12))[:1].tolist():
        promise.for_pair(pairs[k].x, pairs[k].x_prime)
        raise UsageError(f"metric must have a symmetric matrix, got {budgets[k]} and {back[k]} for {pairs[k].id}.")
    return np.asarray(budgets, dtype=float)


def _one_by_one(promise: Claim, pairs: Sequence[Pair]) -> PairBudgets:
    """Budgets by `for_pair`. Equal claims are looked at once."""
    families: dict[Claim, int] = {}
    known: dict[Claim, tuple[int, float, float]] = {}
    found = np.empty((3, len(pairs)))
    promised = promise  # what names the parameter
    report_delta = 0.0
    for k, pair in enumerate(pairs):
        claim = promise.for_pair(pair.x, pair.x_prime)
        if not isinstance(claim, Claim):
            raise UsageError(f"for_pair must return a Claim, got {claim!r} for {pair.id}.")
        try:
            placed = known.get(claim)
        except TypeError as error:
            raise UsageError(f"for_pair must return hashable claims, got {error} for {pair.id}. {_EQUAL}") from error
        if placed is None:
            promised = promised if families else claim
            placed = known[claim] = _placed(claim, families, promised.parameter, pair.id)
            report_delta = max(report_delta, claim.report_delta if np.isfinite(placed[1]) else 0.0)
        found[:, k] = placed
    of_each = found[0].astype(np.int64), found[1], found[2]
    return PairBudgets(tuple(families) or (promised,), *of_each, promised.parameter, report_delta)


def _placed(claim: Claim, families: dict[Claim, int], parameter: str, name: str) -> tuple[int, float, float]:
    """The family of one claim, which is added if it is new, its value and its delta."""
    value = _value(claim, name)
    if not np.isfinite(value):
        return 0, value, 0.0
    place = families.setdefault(ONE_LINE if has_own_line(claim) else claim.with_value(1.0), len(families))
    if place == MAX_FAMILIES:
        raise UsageError(
            f"for_pair must return claims of at most {MAX_FAMILIES:,} families for a table of all pairs, got one more "
            f"for {name}. Two claims are of one family if with_value(1.0) of both is equal. {_EQUAL}"
        )
    if claim.parameter != parameter:
        raise UsageError(
            f"for_pair must return claims of one parameter for a table of all pairs, got {parameter} and, for {name}, "
            f"{claim.parameter}. Audit these pairs apart."
        )
    return place, value, claim.delta


def _value(claim: Claim, name: str) -> float:
    """The promised value; inf where nothing is asked."""
    if claim.is_vacuous:
        return np.inf
    value = claim.value
    if type(value) is float and value >= 0.0:  # to name the claim takes longer than all else here
        return value
    return number(f"value of {claim} for {name}", value, "in [0, inf]", lambda value: value >= 0.0)
