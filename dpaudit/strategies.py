"""Hypothesis strategies for tests of private mechanisms: finite mechanisms, claims that they keep, metrics.

They need `hypothesis`, which is imported when a strategy is asked for. Examples shrink towards few inputs, few outcomes
and small whole weights.

>>> from hypothesis import HealthCheck, given, settings
>>> @given(mechanism=finite_mechanisms(PureDP(1.0)))
... @settings(max_examples=10, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])
... def test(mechanism):
...     assert mechanism.claim == PureDP(1.0)
>>> test()
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.exact.finite_mechanism import FiniteMechanism
from dpaudit.exact.keeping import tempered
from dpaudit.privacy.claims import (
    ApproxDP,
    Claim,
    FloatArray,
    GaussianDP,
    MetricDP,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from dpaudit.privacy.finite_metrics import MatrixMetric, shortest_paths

if TYPE_CHECKING:
    from hypothesis import strategies as st
    from hypothesis.strategies import DrawFn, SearchStrategy
else:

    class _Hypothesis:
        """`hypothesis.strategies`, imported when a strategy is asked for."""

        def __getattr__(self, name: str) -> Any:
            try:
                from hypothesis import strategies
            except ImportError as error:
                raise UsageError(
                    "hypothesis must be installed for dpaudit.strategies, got none. Try: pip install hypothesis"
                ) from error
            return getattr(strategies, name)

    st = _Hypothesis()

Span = int | tuple[int, int]  # a number, or the least and the largest
EXTREME = 1e-12  # the smallest weight beside 1 in an "extreme" row: losses of up to 28 nats
FAMILIES = ("pure", "approximate", "zcdp", "renyi", "gaussian", "metric")


def stochastic_matrices(
    inputs: Span = (2, 4), outcomes: Span = (2, 5), *, zeros: bool = True, extreme: bool = True
) -> SearchStrategy[FloatArray]:
    """Row-stochastic matrices of shape (inputs, outcomes), with ties; with zeros and extreme ratios unless told not to.

    `inputs` and `outcomes` are numbers, or pairs of the least and the largest.
    """
    values = [1.0, 2.0, 3.0, 5.0, 9.0] + ([EXTREME, 1e-6, 1e6] if extreme else []) + ([0.0] if zeros else [])

    @st.composite
    def matrices(draw: DrawFn) -> FloatArray:
        shape = (draw(_whole(inputs)), draw(_whole(outcomes)))
        count = shape[0] * shape[1]
        drawn = draw(st.lists(st.sampled_from(values), min_size=count, max_size=count))
        weights = np.array(drawn).reshape(shape)
        weights[weights.sum(axis=1) == 0.0, 0] = 1.0
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    return matrices()


def finite_mechanisms(
    claim: Claim | SearchStrategy[Claim],
    inputs: Span = (2, 4),
    outcomes: Span = 4,
    *,
    tight: bool | None = None,
) -> SearchStrategy[FiniteMechanism]:
    """`FiniteMechanism`s that keep a claim on every pair of inputs, exactly; with the claim as their own.

    Parameters
    ----------
    claim : Claim or strategy of claims
        As `dpaudit.exact.keeps` takes it. A metric is asked about row numbers.
    inputs, outcomes : int or (int, int)
    tight : bool, optional
        True: some pair uses the claim up (`dpaudit.exact.tempered`); False: as the draw falls; both by default.
    """
    if not isinstance(claim, Claim | st.SearchStrategy):
        raise UsageError(f"claim must be a claim or a strategy of claims, got {claim!r}.")
    claims_drawn = claim if not isinstance(claim, Claim) else st.just(claim)
    for name, span in (("inputs", inputs), ("outcomes", outcomes)):
        if min((span, span) if isinstance(span, int) else span) < 2:
            raise UsageError(f"{name} must be at least 2, got {span!r}.")

    @st.composite
    def mechanisms(draw: DrawFn) -> FiniteMechanism:
        promise = draw(claims_drawn)
        rows = draw(stochastic_matrices(inputs, outcomes))
        if draw(st.booleans()) if tight is None else tight:
            # An outcome that only the first input has, and one that only the second has: no finite claim is kept yet.
            rows = rows.copy()
            rows[0, 0], rows[1, 0] = max(rows[0, 0], 0.25), 0.0
            rows[1, -1], rows[0, -1] = max(rows[1, -1], 0.25), 0.0
            rows /= rows.sum(axis=1, keepdims=True)
        return FiniteMechanism(tempered(rows, promise), promise)

    return mechanisms()


def claims(families: tuple[str, ...] = FAMILIES, points: int = 4) -> SearchStrategy[Claim]:
    """Claims of the named families: "pure", "approximate", "zcdp", "renyi", "gaussian", "metric" (on 0..points - 1)."""
    unknown = [family for family in families if family not in FAMILIES]
    if unknown or not families:
        raise UsageError(f"families must be some of {', '.join(FAMILIES)}, got {', '.join(unknown) or 'none'}.")
    budgets = st.sampled_from([0.01, 0.1, 0.5, 1.0, math.log(3.0), 2.0, 5.0])
    of_family: dict[str, Any] = {
        "pure": st.builds(PureDP, budgets),
        "approximate": st.builds(ApproxDP, st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([1e-3, 0.05, 0.3])),
        "zcdp": st.builds(ZeroConcentratedDP, budgets),
        "renyi": st.builds(RenyiDP, st.sampled_from([1.5, 2.0, 8.0]), budgets),
        "gaussian": st.builds(GaussianDP, budgets),
        "metric": st.builds(MetricDP, finite_metrics(points)),
    }
    return st.one_of([of_family[family] for family in families])


def finite_metrics(points: Span = (2, 5), *, infinite: bool = False) -> SearchStrategy[MatrixMetric]:
    """`MatrixMetric`s on 0..points - 1: closures of random weights; with distances of inf if `infinite`."""
    steps = st.sampled_from([0.05, 0.25, 0.5, 1.0, 1.5, 3.0] + ([math.inf] if infinite else []))

    @st.composite
    def metrics(draw: DrawFn) -> MatrixMetric:
        count = draw(_whole(points))
        table = np.zeros((count, count))
        for i in range(count):
            for j in range(i):
                table[i, j] = table[j, i] = draw(steps)
        return MatrixMetric(shortest_paths(table), ids=tuple(range(count)))

    return metrics()


def _whole(span: Span) -> SearchStrategy[int]:
    least, largest = (span, span) if isinstance(span, int) else span
    if not 1 <= least <= largest:
        raise UsageError(f"numbers must be at least 1, the least one first, got {span!r}.")
    return st.integers(least, largest)
