"""Datacube releases: exact losses, densities and samplers; what they refuse instead of releasing something biased."""

import itertools
import math

import numpy as np
import pytest
from sampler_checks import DRAWS as SAMPLER_DRAWS
from sampler_checks import is_drawn_from
from scipy import stats
from support.refusals import refusals

import dpaudit
from dpaudit.errors import UsageError
from dpaudit.privacy.claims import ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP
from dpaudit_mechanisms.datacubes import (
    CountsRelease,
    DatacubeRelease,
    Domain,
    FourierStrategy,
    HaarStrategy,
    MarginalStrategy,
    SketchStrategy,
    StrategyRelease,
    Workload,
    all_and_half,
    base_counts,
    clusters,
    consistent,
    convex_budgets,
    hierarchy,
    joint_budgets,
    least_variance,
    non_negative,
    optimal_budgets,
    paper_mu,
    uniform_budgets,
    whole,
    workload_itself,
)

BINARY = Domain.binary(3)
FIGURE_1 = Workload(BINARY, [(0,), (0, 1)])
TWICE = Workload(Domain([3, 2]), [(0,), (0,), (1,)])
UNMEASURED = "budgets must be positive for groups that the recovery reads, got 0 for"
ALL_CELLS = "strategy must determine every cell with the rows that have a budget"
ADJACENCIES = ["add_remove", "replace_one"]
NATIVE = all_and_half(Domain([3, 2, 2]), 1)


def strategies(workload):
    found = [
        base_counts(workload.domain),
        workload_itself(workload),
        FourierStrategy(workload),
        clusters(workload),
        hierarchy(workload.domain),
        SketchStrategy(workload.domain, 4, 6, seed=3),
    ]
    return [*found, HaarStrategy(workload.domain)] if set(workload.domain.sizes) == {2} else found


def neighbours(cells, adjacency):
    """All pairs of data vectors with one record or none, and with one record."""
    units = np.eye(cells)
    if adjacency == "add_remove":
        return [(np.zeros(cells), unit) for unit in units]
    return [(units[i], units[j]) for i, j in itertools.combinations(range(cells), 2)]


@pytest.mark.claim("DC-P3.1.i", "DC-P3.1.ii", "DC-D2.1", "DC-S2")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("budgets", ["optimal", "uniform"])
@pytest.mark.parametrize("claim", [PureDP(0.7), ApproxDP(1.0, 1e-3), ZeroConcentratedDP(0.5)], ids=str)
def test_the_worst_neighbours_lose_exactly_what_is_promised(claim, budgets, adjacency):
    for workload in (FIGURE_1, NATIVE):
        for strategy in strategies(workload):
            release = StrategyRelease(workload, strategy, claim, budgets, adjacency)
            rows = strategy.matrix() * strategy.spread(release.eta)[:, None]
            losses = []
            for x, x_prime in neighbours(workload.domain.cells, adjacency):
                change = rows @ (x - x_prime)
                loss = np.abs(change).sum() if release.order == 1 else math.sqrt((change**2).sum())
                assert release.distance(x, x_prime) == pytest.approx(loss)
                losses.append(loss)
            assert max(losses) <= release.total * (1.0 + 1e-9)
            assert max(losses) == pytest.approx(release.total)  # tight
            found = [release.distance(pair.x, pair.x_prime) for pair in release.pairs()]
            assert found == sorted(found, reverse=True)


@pytest.mark.claim("DC-T2.1")
@pytest.mark.parametrize("claim", [PureDP(0.7), GaussianDP(0.7)], ids=str)
def test_each_row_has_the_noise_of_its_budget_and_the_density_that_is_stated(claim):
    strategy = MarginalStrategy(FIGURE_1.domain, [(0,), (0, 1), (2,)])  # the third one gets no budget
    release = StrategyRelease(FIGURE_1, strategy, claim)
    data = np.arange(8.0)
    draws = release.sample(data, SAMPLER_DRAWS, np.random.default_rng(20_262_102))
    truth, scales = strategy.answers(data), 1.0 / strategy.spread(release.eta)[:6]
    assert release.eta[2] == 0.0 and not draws[:, 6:].any()
    law = stats.laplace if release.order == 1 else stats.norm
    for i in (0, 3):
        assert is_drawn_from(draws[:, i], lambda y, i=i: law.cdf(y, truth[i], scales[i]))
        assert not is_drawn_from(draws[:, i], lambda y, i=i: law.cdf(y, truth[i], 1.2 * scales[i]))
    logs = law.logpdf(draws[:9, :6], truth[:6], scales).sum(axis=1)
    assert release.log_density(data, draws[:9]) == pytest.approx(logs)
    moved = draws[:3].copy()
    moved[0, 6], moved[1, 0] = 1.0, np.nan
    assert np.isneginf(release.log_density(data, moved)).tolist() == [True, True, False]


def test_what_does_not_depend_on_the_data_is_not_released():
    total = Workload(Domain.binary(2), [()])
    with pytest.raises(UsageError, match="must depend on the data between neighbours"):
        StrategyRelease(total, workload_itself(total), PureDP(1.0), adjacency="replace_one")
    assert StrategyRelease(total, workload_itself(total), PureDP(1.0)).eta.tolist() == [1.0]


# ---- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recovery", ["initial", "consistent_1", "consistent_2", "consistent_inf"])
def test_a_recovery_that_reads_what_is_not_measured_is_refused(recovery):
    """Rows without a budget are released as 0: initial answers made from them would be biased by the whole count."""
    itself = workload_itself(FIGURE_1)
    for budgets in ("joint", [0.0, 1.0]):  # the joint optimum reads the first marginal from the second
        with pytest.raises(UsageError, match=rf"{UNMEASURED} \[0\]"):
            DatacubeRelease(FIGURE_1, itself, PureDP(1.0), budgets, recovery=recovery)
        assert DatacubeRelease(FIGURE_1, itself, PureDP(1.0), budgets).total_variance() == pytest.approx(16.0)


@pytest.mark.parametrize("recovery", ["initial", "least_squares"])
def test_a_determined_strategy_needs_a_budget_for_all_that_is_read(recovery):
    for strategy in (FourierStrategy(FIGURE_1), HaarStrategy(BINARY)):
        budgets = [0.5, 0.0, 0.1, 0.0]
        with pytest.raises(UsageError, match=UNMEASURED):
            DatacubeRelease(FIGURE_1, strategy, PureDP(1.0), budgets, recovery=recovery)
    # the finest level of Haar is not read: no budget is needed
    coarse = DatacubeRelease(FIGURE_1, HaarStrategy(BINARY), PureDP(1.0), [0.3, 0.3, 0.4, 0.0], recovery=recovery)
    assert np.isfinite(coarse.query_variances()).all()


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("claim", [PureDP(1.0), GaussianDP(1.0)], ids=str)
def test_what_is_released_is_unbiased_for_every_kind_of_budget(claim, adjacency):
    """Without noise, exactly: R S = Q over the rows that are measured, or a refusal."""
    for workload in (FIGURE_1, TWICE, all_and_half(Domain([3, 1, 2]), 1)):
        for strategy in (workload_itself(workload), hierarchy(workload.domain), FourierStrategy(workload)):
            for budgets in ("optimal", "uniform", "joint"):
                for recovery in ("least_squares", "initial", "consistent_2"):
                    try:
                        release = DatacubeRelease(workload, strategy, claim, budgets, adjacency, recovery)
                    except UsageError as error:
                        assert budgets == "joint" and (
                            "strategy must be of marginals" in str(error) or UNMEASURED in str(error)
                        )
                        continue
                    measured = np.where(strategy.spread(release.eta)[:, None] > 0.0, strategy.matrix(), 0.0)
                    assert release.recovered(measured.T) == pytest.approx(workload.matrix().T, abs=1e-9)


def test_attributes_of_one_value_are_in_every_marginal():
    """The joint optimum measures the first marginal alone, and the second one is its total."""
    workload = Workload(Domain([1, 3]), [(1,), (0,)])
    release = DatacubeRelease(workload, workload_itself(workload), PureDP(1.0), "joint")
    assert release.eta.tolist() == [1.0, 0.0]
    assert release.recovered(np.array([1.0, 2.0, 4.0, 0.0])).tolist() == [1.0, 2.0, 4.0, 7.0]
    assert release.query_variances() == pytest.approx([2.0, 2.0, 2.0, 6.0])
    alone = MarginalStrategy(workload.domain, [(1,)])
    assert DatacubeRelease(workload, alone, PureDP(1.0), recovery="initial").total_variance() == pytest.approx(12.0)


def test_variances_of_consistency_are_not_stated_where_two_answers_are_read_from_one_group():
    domain = Domain([3, 1])
    for sets in ([(0, 1), (0,)], [(0,), (0,)]):
        workload = Workload(domain, sets)
        release = DatacubeRelease(workload, workload_itself(workload), PureDP(1.0), "uniform", recovery="consistent_2")
        with pytest.raises(UsageError, match="strategy must be the workload itself, or give consistent answers"):
            release.query_variances()
    apart = Workload(domain, [(1,), (0,)])
    release = DatacubeRelease(apart, workload_itself(apart), PureDP(1.0), "uniform", recovery="consistent_2")
    recovery = release.recovered(np.eye(4))
    assert release.query_variances() == pytest.approx(8.0 * (recovery**2).sum(axis=0))


def test_a_marginal_that_occurs_twice_is_read_from_its_first_copy_unless_by_least_squares():
    strategy = workload_itself(TWICE)
    assert strategy.assigned(TWICE) == [0, 0, 2]
    assert DatacubeRelease(TWICE, strategy, PureDP(1.0)).eta[1] == 0.0
    both = DatacubeRelease(TWICE, strategy, PureDP(1.0), "uniform")
    first = DatacubeRelease(TWICE, strategy, PureDP(1.0), "uniform", recovery="initial")
    assert (both.query_variances()[:6] < 0.6 * first.query_variances()[:6]).all()


def test_counts_need_every_cell():
    for strategy in (workload_itself(FIGURE_1), FourierStrategy(FIGURE_1), hierarchy(BINARY)):
        with pytest.raises(UsageError, match=ALL_CELLS):
            CountsRelease(FIGURE_1, strategy, PureDP(1.0))  # optimal budgets leave out the leaves of the hierarchy
    uniform = CountsRelease(FIGURE_1, hierarchy(BINARY), PureDP(1.0), "uniform")
    assert uniform.sample(np.ones(8), 2, np.random.default_rng(1)).shape == (2, 6)


def _release(**options):
    return DatacubeRelease(
        **{"workload": FIGURE_1, "strategy": workload_itself(FIGURE_1), "claim": PureDP(1), **options}
    )


test_what_makes_no_sense_is_refused = refusals(
    (lambda: _release(claim=dpaudit.MetricDP(lambda x, x_prime: 1.0)), "claim must be an ApproxDP, GaussianDP"),
    (lambda: _release(claim=PureDP(0.0)), r"epsilon must be in \(0, inf\), got 0"),
    (lambda: _release(budgets="best"), "budgets must be 'optimal', 'uniform' or 'joint', got 'best'"),
    (lambda: _release(budgets=[0.5, 0.6]), r"budgets must be non-negative and lose at most 1, got 1\.1"),
    (lambda: _release(budgets=[-0.5, 0.5]), "budgets must be non-negative and lose at most 1, got inf"),
    (lambda: _release(budgets=[1.0]), r"budgets must be of shape \(2,\), got shape \(1,\)"),
    (lambda: _release(adjacency="both"), "adjacency must be 'add_remove' or 'replace_one', got 'both'"),
    (lambda: _release(recovery="best"), "recovery must be 'least_squares', 'initial'"),
    (lambda: _release(strategy=FourierStrategy(FIGURE_1), budgets="joint"), "strategy must be of marginals"),
    (lambda: optimal_budgets([1.0], [1.0], 1, -1.0), "total must"),
    (lambda: uniform_budgets([1.0], 1, -1.0), "total must"),
    (lambda: least_variance([1.0], [1.0], 2, 0.0), "total must"),
    (lambda: convex_budgets([1.0], [[1.0]], 1, -1.0), "total must"),
    (lambda: joint_budgets(workload_itself(FIGURE_1), FIGURE_1, 1, 0.0), "total must"),
    (lambda: uniform_budgets([0.0], 1), "constants must"),
    (lambda: uniform_budgets([1.0], 3), "order must"),
    (lambda: convex_budgets([1.0], [[np.inf]], 2), "columns must"),
    (lambda: joint_budgets(MarginalStrategy(BINARY, [(0,)]), FIGURE_1, 2), "workload must"),
    (lambda: paper_mu(1.0, 3.0), "delta must"),
    (lambda: paper_mu(0.0, 0.1), "epsilon must"),
    (lambda: base_counts(BINARY).sensitivity([1.0], 3), "order must"),
    (lambda: workload_itself(FIGURE_1).sensitivity([1.0], 1), "budgets must"),
    (lambda: HaarStrategy(BINARY).sensitivity([1.0, 1.0, -1.0, 0.0], 1, "replace_one"), "budgets must"),
    (lambda: _release(workload=None), "workload must"),
    (lambda: _release(strategy=None), "strategy must"),
    (lambda: StrategyRelease(FIGURE_1, base_counts(Domain.binary(2)), PureDP(1.0), "uniform"), "strategy must"),
    (lambda: _release(budgets=[0.0, 0.0]), "rows with a budget must"),
    (lambda: _release().recovered(np.zeros((2, 7))), "noisy must"),
    (lambda: FourierStrategy(FIGURE_1).initial(np.zeros(4), Workload(BINARY, [(1, 2)])), "workload must"),
    (lambda: FourierStrategy(FIGURE_1).initial_variances(np.ones(4), Workload(BINARY, [(2,)])), "workload must"),
    (lambda: Workload(BINARY, [(0.5,)]), "marginals must"),
    (lambda: Workload(BINARY, [("a",)]), "marginals must"),
    (lambda: Workload(BINARY, [0, 1]), "marginals must"),
    (lambda: BINARY.histogram([["a", "b", "c"]]), "records must"),
    (lambda: BINARY.histogram([[np.nan, 0, 0]]), "records must"),
    (lambda: BINARY.histogram([[np.inf, 0, 0]]), "records must"),
    (lambda: FIGURE_1.decoded(np.zeros(3)), "answers must"),
    (lambda: whole([np.nan]), "values must"),
    (lambda: non_negative([]), "values must"),
    (lambda: consistent(FIGURE_1, ["a"] * 6), "answers must"),
    (lambda: SketchStrategy(BINARY, 2, 2, seed=-1), "seed must"),
)
