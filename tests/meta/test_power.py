"""Each planted fault is found within a stated number of draws, for every one of 20 seeds.

The stated numbers are twice the most that any of the 20 seeds took when they were measured (labelled draws of the pair
that took longest, all broken pairs of a twin to be found), rounded up, or less where an earlier engine needed less: an
engine that needs twice the draws fails here. They are a property of these seeds, which are fixed, so there is no
false-positive rate to state; `rates.py` holds the auditor to its error rate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.reference_mechanisms import TWINS

import dpaudit
from dpaudit_mechanisms.datacubes import base_counts
from dpaudit_mechanisms.distances import Calibration, FixedQueries, SlopeSeeker, StableProjection, SubsetDistances
from dpaudit_mechanisms.faulty.datacubes import CountsKeepTrueZeros
from dpaudit_mechanisms.faulty.distances import (
    EmbeddingLooksAtTheData,
    LearnerReadsWithoutMistakes,
    ProjectionScaledToTheData,
    SparseVectorNotRefreshed,
    on_the_line,
    worst_pair,
)
from dpaudit_mechanisms.laplace import Laplace
from dpaudit_mechanisms.problems import FIGURE_1

SEEDS = range(20)
SPARSE = Calibration(1, [1.0], 1, 0.5, 2.0, 4.0, 6.0)
ENDS = FixedQueries([[0.0], [1.0], [0.0], [1.0]])
OF_SUBSETS = SubsetDistances(on_the_line, np.zeros((20, 1)), 1, seed=2)
OF_IMAGES = Calibration(20, OF_SUBSETS.widths, 1, 0.3, 0.1, 0.2, 0.3)
STABLE, MIDDLE = StableProjection(1.5, 2, 3, seed=1), np.full((200, 2), 0.5)
SCALED = Calibration(200, STABLE.widths, 1, 0.3, 0.1, 0.2, 0.3)
ONE_MOVED = np.where(np.arange(200)[:, None] == 0, 1.0, MIDDLE)
# (mechanism, labelled draws a pair within which every seed finds it)
FAULTS = [
    *((twin, draws) for _, twin, draws in TWINS if draws),
    (CountsKeepTrueZeros(FIGURE_1, base_counts(FIGURE_1.domain), dpaudit.PureDP(1.0)), 1_100),
    (SparseVectorNotRefreshed(SPARSE, ENDS, 4), 16_000),
    (SparseVectorNotRefreshed(SPARSE, SlopeSeeker(1.0, 1.0), 4), 6_700),
    (LearnerReadsWithoutMistakes(SPARSE, ENDS, 4), 900),
    (LearnerReadsWithoutMistakes(SPARSE, SlopeSeeker(1.0, 1.0), 4), 680),
    (EmbeddingLooksAtTheData(OF_SUBSETS, OF_IMAGES, ENDS, 3, [worst_pair(20)]), 6_400),
    (ProjectionScaledToTheData(STABLE, SCALED, FixedQueries([[0.6, 0.6], [0.4, 0.4]]), 2, [(MIDDLE, ONE_MOVED)]), 280),
]


@pytest.mark.parametrize(("mechanism", "labelled"), FAULTS, ids=[f"{type(m).__name__}-{m.claim}" for m, _ in FAULTS])
@pytest.mark.parametrize(
    "seeds",
    [pytest.param(SEEDS[:1], marks=pytest.mark.slow), pytest.param(SEEDS, marks=pytest.mark.long)],
    ids=["one seed", "all seeds"],
)
def test_every_seed_finds_the_planted_fault_within_the_stated_draws(
    mechanism: Any, labelled: int, seeds: range
) -> None:
    for seed in seeds:
        result = dpaudit.audit(mechanism, samples=labelled // 2, seed=seed)
        assert result.verdict == "violated", (mechanism.fault, seed)


def test_the_sound_mechanism_is_not_found_by_the_same_audit() -> None:
    # The control: at the size that finds the twin, the sound one is called violated in at most 5% of seeds; here in
    # none of five fixed ones (chance of any under the promise: below 0.23; measured far below, see rates.py).
    results = [dpaudit.audit(Laplace(1.0), samples=15_500, seed=seed) for seed in range(5)]
    assert [result.verdict for result in results] == ["not_refuted"] * 5


@pytest.mark.slow
def test_fixed_audits_of_a_laplace_at_its_budget_reach_a_bound_of_0_98_in_the_median() -> None:
    # The best fixed test that knows the events reaches 0.990 at this size (binomial quantiles).
    bounds = sorted(
        dpaudit.audit(_release(1.0), "eps=1", [(0.0, 1.0)], samples=100_000, mode="fixed", seed=seed).epsilon_lower
        for seed in SEEDS
    )
    assert 0.5 * (bounds[9] + bounds[10]) >= 0.98


@pytest.mark.slow
def test_sequential_audits_stop_within_150_draws_a_side_in_the_median_where_the_loss_is_twice_the_claim() -> None:
    draws = sorted(
        dpaudit.audit(_release(2.0), "eps=1", [(0.0, 1.0)], seed=seed).findings[0].samples / 2 for seed in SEEDS
    )
    assert 0.5 * (draws[9] + draws[10]) <= 150


def _release(epsilon: float) -> Any:
    return lambda data, size, rng: data + rng.laplace(scale=1.0 / epsilon, size=size)
