"""The experiments of the d_X paper say what the paper says where it holds."""

import numpy as np
import pytest
from support.experiments import quick

from dpaudit_mechanisms.noise_scales import improvement_factor, noise_scales, single_scales
from dpaudit_mechanisms.reproductions import dx_blowfish, dx_places


@pytest.mark.claim("DX-E4.1")
def test_the_runs_of_a_single_query_have_the_error_of_their_noise():
    # RMSE over 100 runs against sqrt(2) c. The mean square of 100 equal scales has a relative standard error of 0.22;
    # the limits are 3.8 of them below, and the seed is fixed: this tells an error of units, not of a few percent.
    numbers = quick("dx-single").numbers
    for record in numbers["draws"]:
        for kind in ("rmse", "rmse_ordinary"):
            assert 0.4 < record[f"{kind}_of_runs"] / record[kind] < 2.0
        assert record["improvement"]["min"] >= 1.0 - 1e-12  # DX-L1
        assert record["improvement"]["mean"] > 1.5  # "significant", which DX-L1 alone does not give
        assert record["rmse"] < record["rmse_ordinary"] / 1.5


@pytest.mark.claim("DX-C13", "DX-E4.2")
def test_strategy_3_is_best_on_average_and_more_so_for_binary_queries():
    # A mean over 5 matrices for each of 9 K; the seed is fixed. Over 5 draws of places and 500 matrices of each K the
    # mean ratio to the better strategy is 1.19 (real) and 1.72 (binary), and Strategy 2 is better for 5% of them.
    means = quick("dx-multi").numbers["mean_improvement"]
    gain = {}
    for kind, found in means.items():
        better = np.maximum(found["S1"], found["S2"])[1:]
        gain[kind] = float((found["PSA"][1:] / better).mean())
    assert 1.05 < gain["real"] < gain["binary"]


@pytest.mark.claim("DX-E4.2")
def test_in_the_experiment_strategy_1_is_above_its_printed_limit_on_some_draws_of_places():
    """One draw of places; its limit is that of the paper's draw: see DX-C14 for how many draws keep it."""
    data = {"seed": 3, "queries": 5, "matrices": 100, "mean_improvement": 3.224564235068675, "printed": 1.5}
    rng = np.random.default_rng(data["seed"])
    metric = dx_places.distances(dx_places.places(rng))
    factors = []
    for _ in range(data["matrices"]):
        queries = rng.integers(0, 2, size=(data["queries"], len(metric))).astype(float)
        assert (queries.max(axis=1) > queries.min(axis=1)).all()
        factors.append(improvement_factor(queries, metric, noise_scales(queries, metric, "S1")))
    assert np.mean(factors) == pytest.approx(data["mean_improvement"], rel=1e-6) and np.mean(factors) > data["printed"]


@pytest.mark.claim("DX-N1")
def test_the_improvement_of_an_element_is_that_of_its_count():
    rng = np.random.default_rng(20_261_302)
    metric = dx_places.distances(dx_places.places(rng))
    found = dx_places.element_improvements(metric)
    counts = np.eye(len(metric))
    by_hand = [improvement_factor(q[None], metric, noise_scales(q[None], metric, "single")) for q in counts[:10]]
    assert found[:10] == pytest.approx(by_hand, rel=1e-12)
    assert found.min() == 1.0 and (found == 1.0).sum() == 2  # the nearest pair
    assert len(quick("dx-single").numbers["first_draw"]["improvements"]) == dx_places.ELEMENTS


@pytest.mark.claim("DX-C17", "DX-C18", "DX-E4.4")
def test_blowfish_improves_more_at_a_low_threshold_and_alike_at_a_high_one():
    rng = np.random.default_rng(20_261_303)
    medians = {threshold: [] for threshold in (2.0, 16.0)}
    sums = {threshold: np.zeros(2) for threshold in medians}
    for _ in range(10):
        points = dx_places.places(rng)
        while dx_places.smallest_distance(dx_places.distances(points)) > 2.0:
            points = dx_places.places(rng)
        queries = rng.uniform(size=(100, 50))
        for threshold, ratios in medians.items():
            blow, smooth = (single_scales(queries, kind(1.0, threshold).matrix(list(points)))
                            for _, kind in dx_blowfish.METRICS)  # fmt: skip
            ratios.append(np.median(smooth / blow))
            sums[threshold] += (blow.mean(), smooth.mean())
    # of 10 draws of places; the full experiment has 1.21 and 1.00
    assert np.mean(medians[2.0]) > 1.05
    assert np.mean(medians[16.0]) < 1.02
    # DX-C17, "roughly the same" on average: errors are proportional to scales. Over 12 other seeds the ratio is 1.15 to
    # 1.38 at T = 2 and 1.003 to 1.005 at T = 16; the limit of 1.5 is the reading of the ledger.
    apart = {threshold: smooth / blow for threshold, (blow, smooth) in sums.items()}
    assert 1.0 <= apart[16.0] < 1.02 < apart[2.0] < 1.5
