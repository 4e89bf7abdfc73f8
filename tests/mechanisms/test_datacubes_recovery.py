"""What is made of noisy answers: consistency in three norms, non-negative and whole counts, unbiasedness."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import GaussianDP, PureDP
from dpaudit_mechanisms.datacubes import (
    CountsRelease,
    DatacubeRelease,
    Domain,
    FourierStrategy,
    HaarStrategy,
    Workload,
    all_and_half,
    all_marginals,
    base_counts,
    clusters,
    consistent,
    hierarchy,
    non_negative,
    whole,
    workload_itself,
)

NORMS = [1, 2, np.inf]
FIGURE_1 = Workload(Domain.binary(3), [(0,), (0, 1)])
SMALL = [
    FIGURE_1,
    all_and_half(Domain.binary(3), 1),
    all_marginals(Domain.binary(4), 2),
    Workload(Domain([3, 2, 2]), [(0,), (0, 1), (0, 1), (), (2,)]),
]


def over_the_cells(workload, answers, order):
    """The least distance over data vectors, all N of them variables: an independent program."""
    matrix = workload.matrix()
    queries, cells = matrix.shape
    if order == 2:
        return float(np.linalg.norm(matrix @ np.linalg.lstsq(matrix, answers, rcond=None)[0] - answers))
    slack = np.eye(queries) if order == 1 else np.ones((queries, 1))
    found = optimize.linprog(
        np.concatenate([np.zeros(cells), np.ones(slack.shape[1])]),
        A_ub=np.block([[matrix, -slack], [-matrix, -slack]]),
        b_ub=np.concatenate([answers, -answers]),
        bounds=(None, None),
    )
    return float(found.fun)


@pytest.mark.claim("DC-S10", "DC-S15", "DC-D2.3", "DC-S11")
@pytest.mark.parametrize("order", NORMS)
@pytest.mark.parametrize("workload", SMALL, ids=range(len(SMALL)))
def test_consistent_answers_are_the_nearest_ones_that_a_data_vector_has(workload, order):
    rng = np.random.default_rng(5)
    matrix = workload.matrix()
    for kind in range(6):
        truth = matrix @ rng.integers(0, 9, workload.domain.cells)
        noise = rng.laplace(size=len(truth)) * (1.0 if kind % 2 else rng.random(len(truth)) < 0.2)
        noisy = truth + noise
        found = consistent(workload, noisy, order)
        nearest = np.linalg.lstsq(matrix, found, rcond=None)[0]
        assert matrix @ nearest == pytest.approx(found, abs=1e-7)
        gap = np.linalg.norm(found - noisy, order)
        assert gap == pytest.approx(over_the_cells(workload, noisy, order), abs=1e-6)
        assert np.linalg.norm(found - truth, order) <= 2.0 * np.linalg.norm(noise, order) + 1e-7  # DC-S11
        if order == 2:
            assert np.linalg.norm(found - truth) <= np.linalg.norm(noise) + 1e-9  # a projection
        assert consistent(workload, truth, order) == pytest.approx(truth, abs=1e-6)


@pytest.mark.claim("DC-S9")
def test_consistency_of_many_answers_is_that_of_each():
    rng = np.random.default_rng(1)
    independent = Workload(FIGURE_1.domain, [(0, 1)])
    for order in NORMS:
        answers = rng.normal(size=4)
        assert consistent(independent, answers, order) == pytest.approx(answers)
        batch = rng.normal(size=(3, FIGURE_1.queries)) * 5.0
        each = [consistent(FIGURE_1, answers, order) for answers in batch]
        assert consistent(FIGURE_1, batch, order) == pytest.approx(np.array(each))
    for bad, message in ((np.zeros(3), "answers must be of shape"), (np.full(6, np.nan), "answers must be finite")):
        with pytest.raises(UsageError, match=message):
            consistent(FIGURE_1, bad)
    with pytest.raises(UsageError, match="order must be 1, 2 or inf, got 3"):
        consistent(FIGURE_1, batch, 3)


@pytest.mark.claim("DC-S10")
@pytest.mark.parametrize("order", NORMS)
def test_large_counts_do_not_blur_what_is_nearest(order):
    """The solver's tolerance is relative to the noise: at counts of 10^7 the distance was nearly twice the least."""
    rng = np.random.default_rng(0)
    for workload in SMALL:
        noise = rng.laplace(size=workload.queries)
        large = workload.answers(np.full(workload.domain.cells, 1e7))
        least = np.linalg.norm(consistent(workload, noise, order) - noise, order)
        found = np.linalg.norm(consistent(workload, large + noise, order) - large - noise, order)
        assert found == pytest.approx(least, rel=1e-6)


@pytest.mark.claim("DC-L3.5", "DC-F2", "DC-F3")
@pytest.mark.parametrize("claim", [PureDP(1.0), GaussianDP(1.0)], ids=str)
def test_releases_are_unbiased_and_have_the_variances_that_they_state(claim):
    # 20,000 draws, 12 cases of 12 answers. Means: 6 standard errors, two-sided 2e-9 each (normal limit); variances:
    # 15% at a standard error of at most sqrt(5 / 20,000) = 1.6% (kurtosis at most 6): 9 of them. In all below 1e-6.
    draws, rng = 20_000, np.random.default_rng(20_262_001)
    workload = all_and_half(Domain.binary(3), 1)
    data = rng.integers(0, 9, 8).astype(float)
    truth = workload.answers(data)
    domain = workload.domain
    strategies = [base_counts(domain), workload_itself(workload), FourierStrategy(workload), clusters(workload)]
    for strategy in [*strategies, hierarchy(domain), HaarStrategy(domain)]:
        for recovery in ("least_squares", "initial"):
            release = DatacubeRelease(workload, strategy, claim, recovery=recovery)
            answers = release.sample(data, draws, rng)
            assert answers.shape == (draws, workload.queries)
            stated = release.query_variances()
            assert (np.abs(answers.mean(axis=0) - truth) <= 6.0 * np.sqrt(stated / draws)).all()
            assert answers.var(axis=0) == pytest.approx(stated, rel=0.15)
            assert release.total_variance() == pytest.approx(stated.sum())


def test_consistency_is_applied_to_the_initial_answers():
    workload = all_and_half(Domain.binary(3), 1)
    data = np.arange(8.0)
    for recovery, order in (("consistent_1", 1), ("consistent_2", 2), ("consistent_inf", np.inf)):
        release = DatacubeRelease(workload, workload_itself(workload), PureDP(1.0), recovery=recovery)
        noisy = release.noisy(data, 2, np.random.default_rng(3))
        assert release.recovered(noisy) == pytest.approx(consistent(workload, noisy, order))
        if order != 2:
            with pytest.raises(UsageError, match=f"least_squares, initial or consistent_2 for .*, got '{recovery}'"):
                release.query_variances()


def test_the_variances_of_consistent_answers_in_l2_are_those_of_the_recovery_written_out():
    for workload in SMALL[:3]:
        for strategy in (workload_itself(workload), base_counts(workload.domain), FourierStrategy(workload),
                         HaarStrategy(workload.domain)):  # fmt: skip
            release = DatacubeRelease(workload, strategy, PureDP(1.0), recovery="consistent_2")
            recovery = release.recovered(np.eye(strategy.rows)).T
            measured = release.eta > 0.0  # rows without a budget are released as 0
            each = strategy.spread(np.where(measured, release.variances, 0.0))
            stated = release.query_variances()
            assert stated == pytest.approx(recovery**2 @ each)
            best = DatacubeRelease(workload, strategy, PureDP(1.0)).query_variances()
            assert (best <= stated * (1.0 + 1e-9)).all()
    repeated = SMALL[3]
    with pytest.raises(UsageError, match="strategy must be the workload itself, or give consistent answers"):
        DatacubeRelease(repeated, workload_itself(repeated), PureDP(1.0), recovery="consistent_2").query_variances()


def test_a_strategy_of_more_coefficients_than_are_needed_leaves_the_others_without_a_budget():
    domain = Domain([3, 2, 4])
    larger, workload = FourierStrategy(all_marginals(domain, 2)), all_marginals(domain, 1)
    release = DatacubeRelease(workload, larger, PureDP(1.0))
    same = DatacubeRelease(workload, FourierStrategy(workload), PureDP(1.0))
    assert release.query_variances() == pytest.approx(same.query_variances())
    data = np.arange(24.0)
    exact = larger.answers(data) * (larger.spread(release.eta) > 0.0)
    assert release.recovered(exact[None])[0] == pytest.approx(workload.answers(data))


# ---- counts ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8))
def test_counts_are_moved_to_the_nearest_non_negative_ones_of_the_same_total(values):
    found = non_negative(values)
    assert found.min() >= 0.0 and found.sum() == pytest.approx(max(sum(values), 0.0), abs=1e-9)
    # the projection onto a simplex takes one number off all that stay positive, and no less off the others
    kept = found > 1e-9
    if kept.any():
        taken = np.array(values) - found
        assert np.ptp(taken[kept]) < 1e-6 and (taken[~kept] <= taken[kept].max() + 1e-6).all()


@given(st.lists(st.floats(0.0, 1e3), min_size=1, max_size=8))
def test_whole_counts_are_less_than_one_away_and_keep_the_total(values):
    found = whole(values)
    assert (found % 1.0 == 0.0).all() and (np.abs(found - values) < 1.0 + 1e-9).all() and found.min() >= 0.0
    assert found.sum() == pytest.approx(sum(values), abs=0.5 + 1e-6)
    assert whole(found).tolist() == found.tolist()


@pytest.mark.claim("DC-S17")
@pytest.mark.parametrize("make", [base_counts, hierarchy, HaarStrategy], ids=lambda make: make.__name__)
def test_materialised_counts_are_consistent_non_negative_and_whole(make):
    workload = all_and_half(Domain.binary(3), 1)
    release = CountsRelease(workload, make(workload.domain), PureDP(0.5))
    data = np.array([9.0, 0, 0, 0, 3, 0, 0, 1])
    answers = release.sample(data, 50, np.random.default_rng(4))
    assert answers.min() >= 0.0 and (answers % 1.0 == 0.0).all()
    nearest = np.linalg.lstsq(workload.matrix(), answers.T, rcond=None)[0]
    assert workload.matrix() @ nearest == pytest.approx(answers.T, abs=1e-9)
    plain = CountsRelease(workload, make(workload.domain), PureDP(0.5), is_non_negative=False, is_whole=False)
    noisy = plain.noisy(data, 5, np.random.default_rng(4))
    assert workload.answers(plain.counts(noisy)) == pytest.approx(
        plain.strategy.least_squares(noisy, plain.variances, workload)
    )  # without the tidying it is least squares
