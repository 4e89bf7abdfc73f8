"""Datacube releases: exact losses, densities and samplers; audits of them and of their faulty twins.

Every audit has confidence 1 - 1e-6: a sound mechanism is called violated with probability at most 1e-6, for any seed.
The twins are caught for the fixed seed below.
"""

import itertools
import math

import numpy as np
import pytest
from sampler_checks import DRAWS as SAMPLER_DRAWS
from sampler_checks import is_drawn_from
from scipy import stats

import dpaudit
from dpaudit.errors import UsageError
from dpaudit.privacy.claims import ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP
from dpaudit_mechanisms.datacubes import (
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
    hierarchy,
    workload_itself,
)

DRAWS, FEWER = 20_000, 2_000  # runs on an input, at most: of twins, and of sound mechanisms
ADJACENCIES = ["add_remove", "replace_one"]
FIGURE_1 = Workload(Domain.binary(3), [(0,), (0, 1)])
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


@pytest.mark.claim("DC-P3.1.i", "DC-P3.1.ii")
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"claim": dpaudit.MetricDP(lambda x, x_prime: 1.0)}, "claim must be an ApproxDP, GaussianDP"),
        ({"claim": PureDP(0.0)}, r"epsilon must be in \(0, inf\), got 0"),
        ({"budgets": "best"}, "budgets must be optimal, uniform, joint or an array, got 'best'"),
        ({"budgets": [0.5, 0.6]}, r"budgets must be non-negative and lose at most 1, got 1\.1"),
        ({"budgets": [-0.5, 0.5]}, "budgets must be non-negative and lose at most 1, got inf"),
        ({"budgets": [1.0]}, r"budgets must be of shape \(2,\), got shape \(1,\)"),
        ({"adjacency": "both"}, "adjacency must be one of add_remove, replace_one, got 'both'"),
        ({"recovery": "best"}, "recovery must be one of least_squares, initial"),
        ({"strategy": FourierStrategy(FIGURE_1), "budgets": "joint"}, "must be of marginals for joint budgets"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    arguments = {"workload": FIGURE_1, "strategy": workload_itself(FIGURE_1), "claim": PureDP(1.0), **options}
    with pytest.raises(UsageError, match=message):
        DatacubeRelease(**arguments)


def test_what_does_not_depend_on_the_data_is_not_released():
    total = Workload(Domain.binary(2), [()])
    with pytest.raises(UsageError, match="must depend on the data between neighbours"):
        StrategyRelease(total, workload_itself(total), PureDP(1.0), adjacency="replace_one")
    assert StrategyRelease(total, workload_itself(total), PureDP(1.0)).eta.tolist() == [1.0]


# ---- audits ---------------------------------------------------------------------------------------------------------
