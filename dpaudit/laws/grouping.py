"""Group privacy: what is kept by two inputs that a chain of pairs joins."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.laws.claims import checked, group_claim
from dpaudit.laws.derived import Derived, LogDensity, density_of, draw, pairs_of
from dpaudit.laws.listed_laws import ListedLaw, Outputs, listed_law
from dpaudit.privacy.claims import Claim, FloatArray, MetricDP, whole_number
from dpaudit.privacy.finite_metrics import shortest_paths
from dpaudit.privacy.inputs import Inputs, identity_of, inputs_of
from dpaudit.privacy.metrics import Metric
from dpaudit.privacy.pairs import Pair, short_form
from dpaudit.subjects.callables import as_subject


@dataclasses.dataclass(frozen=True)
class Grouped(Derived):
    """The mechanism itself, on pairs that are several steps apart."""

    steps: int

    @property
    def name(self) -> str:
        return f"{self.parts[0].name} over {self.steps} steps"

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Outputs:
        return draw(self.parts[0], data, size, rng)

    def _density(self) -> LogDensity | None:
        return functools.partial(density_of, self.parts[0]) if self.parts[0].has_log_density else None

    def _listed(self) -> ListedLaw | None:
        return listed_law(self.parts[0])


@dataclasses.dataclass(frozen=True, eq=False)
class ChainMetric(Metric):
    """The budget of two inputs along the cheapest chain of pairs between them: the sum of the budgets of its steps."""

    inputs: tuple[Any, ...]
    budgets: tuple[tuple[float, ...], ...]

    @property
    def name(self) -> str:
        return f"chains over {len(self.inputs)} inputs"

    def __call__(self, x: Any, x_prime: Any) -> float:
        return self.budgets[self._position("x", x)][self._position("x_prime", x_prime)]

    def _position(self, name: str, value: Any) -> int:
        own = identity_of(value)
        for position, known in enumerate(self.inputs):
            if identity_of(known) == own:
                return position
        raise UsageError(f"{name} must be an input of the pairs that the chains are made of, got {short_form(value)}.")


def group_privacy(
    mechanism: Any,
    claim: Claim,
    steps: int = 2,
    *,
    pairs: Iterable[Any] | None = None,
) -> tuple[Grouped, Claim]:
    """Group privacy: inputs that a chain of `steps` pairs joins, each of which keeps the claim.

    Proof. P_0(S) <= e^e P_1(S) + d <= e^e (e^e P_2(S) + d) + d, and so on: pure budgets grow with the number of steps,
    deltas with the sum of e^(i e). zCDP, Renyi and Gaussian: `dpaudit.privacy.group`. Metric claims: the sum of the
    budgets along the cheapest chain, per pair.

    Claims: UP-P2 (true under its hypothesis, for an integer distance: without the chain nothing follows, as a finite
    metric with a gap shows; e^(ceil(d) epsilon) is the constant on a space where every distance is made of unit steps),
    UP-S5 (e^(d epsilon) for a real distance d is false: neighbours at distance 1/2 may lose epsilon, not epsilon/2; and
    false where no chain of neighbours joins x and y), DX-F1.3 (prints a factor k, the l1 distance of x and x', where
    replacing records has k/2 steps: twice what is needed for equal totals, and bounds nothing for different ones).

    Tight: pure budgets, Gaussian ones, deltas at epsilon = 0.

    Parameters
    ----------
    mechanism, claim
        The claim is kept by each pair.
    steps : int, optional
        At least 1.
    pairs : iterable, optional
        Pairs that keep the claim, the mechanism's own by default. The derived subject's `pairs()` are the two ends of
        the shortest chains of `steps` of them (for metric claims, of any number of steps from 2 up to that).

    Raises
    ------
    UsageError
        If the family has no rule, or pairs are known and no two inputs are so many steps apart.

    Examples
    --------
    >>> from dpaudit.privacy.claims import PureDP
    >>> noisy = lambda data, size, rng: data + rng.laplace(size=size)
    >>> far, claim = group_privacy(noisy, PureDP(1.0), 2, pairs=[(0.0, 1.0), (1.0, 2.0)])
    >>> [(pair.x, pair.x_prime) for pair in far.pairs()], str(claim)
    ([(0.0, 2.0)], 'eps=2')
    """
    count = whole_number("steps", steps, "a whole number of at least 1", 1)
    subject, promise = as_subject(mechanism), checked(claim)
    known = pairs_of(subject, pairs)
    if known is None:
        if isinstance(promise, MetricDP):
            raise UsageError("pairs must be given for chains under a metric claim, got none.")
        return Grouped((subject,), count), group_claim(promise, count)
    inputs, hops, budgets = _chains(known, promise)
    is_far = (hops >= min(2, count)) & (hops <= count) if isinstance(promise, MetricDP) else hops == count
    ends = [(i, j) for i, j in zip(*np.nonzero(np.triu(is_far, 1)), strict=True)]
    if not ends:
        raise UsageError(f"pairs must join two inputs that are {count} steps apart, got {len(known)} without any.")
    data, ids = inputs.data, inputs.ids
    far = tuple(Pair(data[i], data[j], x_id=ids[i], x_prime_id=ids[j]) for i, j in ends)
    derived = Grouped((subject,), count, known_pairs=far)
    if isinstance(promise, MetricDP):
        return derived, MetricDP(ChainMetric(tuple(data), tuple(map(tuple, budgets.tolist()))))
    return derived, group_claim(promise, count)


def _chains(pairs: Sequence[Pair], claim: Claim) -> tuple[Inputs, FloatArray, FloatArray]:
    """The inputs of the pairs, the least number of pairs between any two, and their least budget."""
    inputs = inputs_of(pairs)
    steps = np.full((len(inputs.data), len(inputs.data)), np.inf)
    np.fill_diagonal(steps, 0.0)
    budgets = steps.copy()
    steps[inputs.first, inputs.second] = steps[inputs.second, inputs.first] = 1.0
    if isinstance(claim, MetricDP):
        for pair, i, j in zip(pairs, inputs.first.tolist(), inputs.second.tolist(), strict=True):
            budgets[i, j] = budgets[j, i] = min(budgets[i, j], claim.for_pair(pair.x, pair.x_prime).value)
    return inputs, shortest_paths(steps), shortest_paths(budgets)
