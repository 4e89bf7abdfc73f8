"""Every experiment runs, draws, is repeated by its seed, and is installed under its name; and it says what its paper
says where that holds."""

import functools
import math
import tomllib
from pathlib import Path

import numpy as np
import pytest

from dpaudit.privacy.claims import GaussianDP, PureDP
from dpaudit.reproductions.command import picture, saved_form
from dpaudit.reproductions.reproduction import Options, load_reproduction
from dpaudit_mechanisms.datacubes import DatacubeRelease, paper_mu, workload_itself
from dpaudit_mechanisms.ledger import entry
from dpaudit_mechanisms.noise_scales import improvement_factor, noise_scales, single_scales
from dpaudit_mechanisms.reproductions import (
    datacubes,
    distance_queries,
    distance_workloads,
    dx_blowfish,
    dx_places,
    taxi,
    taxi_data,
    up_linear_sets,
)
from dpaudit_mechanisms.reproductions.datacube_data import DOMAINS, TOTALS
from dpaudit_mechanisms.reproductions.datacube_runs import FAMILIES, WORKLOADS, exact_error, exact_improvement, release
from dpaudit_mechanisms.two_metrics import OnTheLine, query_profile

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
NAMES = sorted(PROJECT["entry-points"]["dpaudit.reproductions"])
SLOW = {"datacubes", "distance-queries", "taxi"}
EXACT = {"triangles", "linear-sets"}  # nothing in them is drawn
QUICK = Options(seed=3, quick=True)


@functools.cache
def quick(name):
    """The outcome of one quick run, by the name that `dpaudit reproduce` knows."""
    return load_reproduction(name).run(QUICK)


def plain(name, outcome):
    """The numbers that are saved, but for times."""
    numbers = saved_form(name, load_reproduction(name), outcome, seed=3, quick=True, seconds=0.0)["numbers"]
    return {key: value for key, value in numbers.items() if key not in ("seconds", "times")}


@pytest.mark.claim("DX-E4.1", "DX-E4.2", "DX-E4.3", "DX-E4.4", "CD-E0", "CD-E1", "MQ-T1")
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in NAMES])
def test_an_experiment_runs_draws_and_is_repeated_by_its_seed(name):
    if name == "triangles":
        pytest.importorskip("networkx")
    experiment, outcome = load_reproduction(name), quick(name)
    assert picture(outcome).startswith(b"\x89PNG")
    assert outcome.tables and outcome.statements
    assert plain(name, outcome) == plain(name, experiment.run(QUICK))
    if name not in SLOW | EXACT:
        assert plain(name, outcome) != plain(name, experiment.run(Options(seed=4, quick=True)))


# ---- linear queries --------------------------------------------------------------------------------------------------


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


# ---- two metric spaces -----------------------------------------------------------------------------------------------


@pytest.mark.claim("UP-E1", "UP-F6")
def test_the_triangles_agree_with_the_paper():
    pytest.importorskip("networkx")
    triangles = quick("triangles")
    assert [one.agrees for one in triangles.statements] == ["yes", "yes", "in part"]
    numbers = triangles.numbers
    # Whether most of a hundred are worse at most epsilon hangs on which hundred: of 0.5, 1, 2, 3, 5 here.
    mostly = {name: sum(share > 0.5 for share in shares) for name, shares in numbers["share_worse_of_widened"].items()}
    assert mostly["atlas"] > mostly["reverse"] >= mostly["most triangles"] > 0
    assert (numbers["graphs"], len(numbers["counts"])) == (1044, 28) and numbers["seconds"] > 0.0
    for row in numbers["exact_losses"]:  # the true loss beside the bound
        assert all(row["epsilon"] < row[name] < 2.0 * row["epsilon"] for name in ("privacy first", "widened", "ladder"))


@pytest.mark.claim("UP-E2", "UP-F7", "UP-F8", "UP-P3", "UP-F2", "UP-N2")
def test_the_linear_sets_agree_with_the_paper_but_for_the_second_set_without_width():
    linear_sets = quick("linear-sets")
    found = {(one.source, one.agrees) for one in linear_sets.statements}
    assert found == {("UP-E2", "yes"), ("UP-E2", "no"), ("UP-F8", "yes"), ("UP-P3", "yes")}
    (refuted,) = [one for one in linear_sets.statements if one.agrees == "no"]
    assert refuted.ours.startswith("V_2 is better for epsilon from 0.5 to 5")
    assert all(level <= 1001 for level in linear_sets.numbers["filled_from_level"].values())
    data, largest = entry("UP-N2").counterexample, linear_sets.numbers["largest_densities"]
    assert set(largest) == {"V_1", "V_2", "V_3", "staircase", "Laplace"}
    # level 0 has its highest density on 2 delta units at least, whatever epsilon is
    assert data["largest_possible"] == 1.0 / (2.0 * data["width"]) < data["printed_top"]
    assert all(largest[name] <= data["largest_possible"] for name in ("V_1", "V_2", "V_3"))
    for epsilon in data["epsilons"]:
        top = OnTheLine(query_profile([[0.0, 500.0], [1000.0, 1001.0]], data["width"]), epsilon)
        assert math.exp(float(top.log_density(0.0, [0.25])[0])) <= data["largest_possible"]
    grid = np.arange(0.0, 2e4, 0.5) + 0.25
    assert up_linear_sets.staircase_density(grid, 1.0).sum() == pytest.approx(1.0, abs=1e-3)  # half a unit, two sides
    rates = linear_sets.numbers["rates"]
    for name, is_better in (("V_1", False), ("V_2", True), ("V_3", False), ("V_4", False)):
        assert (rates[name][:, 0] < 1.0).any() == is_better  # the column delta = 0


# ---- invariants ------------------------------------------------------------------------------------------------------


@pytest.mark.claim("CD-U4", "CD-U3", "CD-P4.1")
def test_the_variance_table_agrees_with_its_runs():
    """Every printed statement does; the runs of the quick table are within 30% (7 standard errors of 2,000 squares)."""
    outcome = quick("constrained-variance")
    # No statement rests on which of two runs is the smaller one, which at n = 270 is a toss of a coin.
    assert [s.agrees for s in outcome.statements] == ["yes"] * 4
    for row in outcome.numbers["variances"]:
        assert row["conditioned"] < row["projected"]
        assert row["conditioned_runs"] == pytest.approx(row["conditioned"], rel=0.3)
        assert row["projected_runs"] == pytest.approx(row["projected"], rel=0.3)
    for row in outcome.numbers["chains"]:
        assert row["effective_sample_size"] > 500 and row["r_hat"] < 1.1


@pytest.mark.claim("CD-E1", "CD-E2")
def test_the_printed_table_is_not_that_of_noise_in_proportion_to_one_over_epsilon():
    data = entry("CD-E2").counterexample
    column, level = ("M_MH", "TopDown").index(data["method"]), data["level"] - 1
    errors = [taxi.PRINTED[epsilon][level][column] for epsilon in data["epsilons"]]
    assert errors == data["errors"] and errors[0] < errors[1]  # it grows with the budget
    better = [row[0] < row[1] for rows in taxi.PRINTED.values() for row in rows]
    assert (sum(better), len(better)) == (8, 9)  # "in most cases"
    for column in (0, 1):  # on 263 zones a mean has a relative standard error of at most 9%: 4 is 15 of them away
        assert taxi.PRINTED[0.5][2][column] / taxi.PRINTED[2.0][2][column] < 2.0


@pytest.mark.claim("CD-E1", "CD-E2")
def test_ours_conditioned_is_more_accurate_than_top_down_on_every_level():
    """Exact draws, not the short chains of the quick run; the ratios of the full one are 84%, 79% and 98%."""
    outcome = quick("taxi")
    errors = outcome.numbers["errors_at_scale_1"]
    assert errors["conditioned"][2] < 1.02 * errors["TopDown"][2]
    assert errors["conditioned"][0] < errors["TopDown"][0] and errors["conditioned"][1] < errors["TopDown"][1]
    assert errors["M_MH"] == pytest.approx(errors["conditioned"], rel=0.5)  # 10 chains of 8 kept sweeps
    assert [s.agrees for s in outcome.statements if s.source == "CD-E2"][1] == "no: not in the printed table"
    assert len(outcome.tables[0].rows) == 9


@pytest.mark.claim("CD-F3", "CD-E1")
def test_the_tree_has_the_zones_of_each_borough():
    assert len(taxi_data.ZONES) == 263
    sizes = [taxi_data.ZONES.count(letter) for letter in taxi_data.BOROUGHS]
    assert sizes == [43, 61, 1, 69, 69, 20] == taxi_data.tree().sizes
    # some zones by name: Newark Airport, JFK, LaGuardia, Central Park, Coney Island, Co-Op City, Great Kills
    known = {1: "E", 132: "Q", 138: "Q", 43: "M", 55: "K", 51: "X", 109: "S", 263: "M"}
    assert {zone: taxi_data.ZONES[zone - 1] for zone in known} == known
    counts = taxi_data.synthetic(np.random.default_rng(1))
    assert counts.sum() == taxi_data.TOTAL and len(counts) == 263 and counts.min() >= 0.0
    assert sorted(taxi_data.order().tolist()) == list(range(263))


# ---- datacubes, by their exact errors --------------------------------------------------------------------------------


def workload(name, data="NLTCS"):
    return WORKLOADS[name](DOMAINS[data]).encoded()


@pytest.mark.claim("DC-E1", "DC-E2", "DC-E3", "DC-F4", "DC-F5", "DC-F6")
@pytest.mark.slow
def test_the_experiment_has_every_strategy_and_takes_seconds():
    outcome = quick("datacubes")
    assert len(outcome.tables) == 8
    assert set(outcome.numbers["errors_at_epsilon_1"]["Adult"]["Q1*"]) == set(datacubes.STRATEGIES)
    assert {s.source for s in outcome.statements} == {"DC-E1", "DC-E2", "DC-E3", "DC-X6", "DC-TAB1"}
    # At most 0.12 s and 3 s here.
    assert all(v < 1.0 for row in outcome.numbers["seconds"]["NLTCS"].values() for v in row.values())
    assert all(v < 60.0 for row in outcome.numbers["seconds"]["Adult"].values() for v in row.values())


@pytest.mark.claim("DC-E1", "DC-F4")
def test_optimal_budgets_improve_adult_by_what_is_printed():
    """Exact: 20 to 25% for Q on Q_1*, for the first half of the pairs; a cell of 2^b cells has the weight 2^-b."""
    assert exact_improvement(workload("Q1*", "Adult"), "Q") == pytest.approx(0.245, abs=0.001)
    for name in WORKLOADS:
        # Base counts have twice the error of Q+ at least, and so are never the strategy to take.
        found = workload(name, "Adult")
        bits = np.array([len(marginal) for marginal in found.sets], dtype=float)
        base = float((2.0**bits * np.sqrt(2.0 * 2.0 ** (23 - bits))).sum())
        own = float(np.sqrt(release(found, "Q+", "initial").query_variances()).sum())
        assert base > 2.0 * own


@pytest.mark.claim("DC-E2", "DC-F5")
def test_optimal_budgets_improve_nltcs_by_less_and_by_more_than_is_printed():
    """Expectations: what one release shows scatters about them, so that they refute nothing."""
    data = {"printed": [0.30, 0.35], "improvements": {"Q1*": 0.2764, "Q2*": 0.3744},
            "roots": {"I": 149.4718, "Q+": 311.9698, "F+": 93.7406}}  # fmt: skip
    for name, share in data["improvements"].items():
        found = exact_improvement(workload(name), "F")
        assert found == pytest.approx(share, abs=5e-4)
        assert not data["printed"][0] <= found <= data["printed"][1]
    # The base cells are ahead of the workload, and not of Fourier, on Q_2^a: root mean squares over all entries.
    roots = {s: float(np.sqrt(release(workload("Q2a"), s, "initial").query_variances().mean())) for s in data["roots"]}
    assert roots == pytest.approx(data["roots"], rel=1e-3) and roots["F+"] < roots["I"] < roots["Q+"]


@pytest.mark.claim("DC-N1")
def test_with_gaussian_noise_gains_are_similar_and_the_order_of_strategies_is_another_one():
    data = entry("DC-N1").counterexample
    found = workload(data["workload"], data["data"])
    roots = {}
    for family in "QFC":
        strategy = FAMILIES[family](found)
        for name, claim in (("pure", PureDP(1.0)), ("approximate", GaussianDP(paper_mu(1.0, data["delta"])))):
            for budgets in ("uniform", "optimal"):
                one = DatacubeRelease(found, strategy, claim, budgets, recovery="initial")
                roots[name, family, budgets] = float(np.sqrt(one.query_variances()).sum())
    for name, printed in data["over_best"].items():
        best = min(roots[name, family, "optimal"] for family in "QFC")
        assert {f: roots[name, f, "optimal"] / best for f in "QFC"} == pytest.approx(printed, abs=0.01)
    for family in "QFC":
        pure, approximate = (1.0 - roots[n, family, "optimal"] / roots[n, family, "uniform"] for n in data["over_best"])
        assert 0.6 < approximate / pure < 0.85


@pytest.mark.claim("DC-N2")
def test_nothing_but_the_histogram_depends_on_the_number_of_records():
    rng = np.random.default_rng(5)
    found = workload("Q1*")
    mechanism = DatacubeRelease(found, workload_itself(found), PureDP(1.0))
    few, many = rng.multinomial(10, np.full(2**16, 2.0**-16)), rng.multinomial(10**7, np.full(2**16, 2.0**-16))
    released = [mechanism.sample(x.astype(float), 1, np.random.default_rng(6)) for x in (few, many)]
    assert released[0].shape == released[1].shape
    noise = [answers - found.answers(x.astype(float)) for answers, x in zip(released, (few, many), strict=True)]
    assert noise[0] == pytest.approx(noise[1], abs=1e-6)  # the same draws, the same work


@pytest.mark.claim("DC-N4")
def test_relative_errors_are_inversely_proportional_to_the_number_of_records():
    for name in ("Q2*", "Q2a"):
        found = workload(name, "Adult")
        both = [exact_error(found, "Q+", total) for total in (48_842, TOTALS["Adult"])]
        assert both[1] / both[0] == pytest.approx(48_842 / 32_561, rel=1e-12) and TOTALS["Adult"] == 32_561


@pytest.mark.claim("DC-N5")
def test_what_is_not_described_is_not_checked():
    assert entry("DC-N5").verdict == "not checkable"


# ---- distance queries ------------------------------------------------------------------------------------------------


@pytest.mark.claim("MQ-T1")
def test_errors_keep_what_is_promised_and_the_printed_alpha_is_above_the_diameter():
    for mode in ("pure", "approximate"):
        part = quick("distance-queries").numbers["exponents"][mode]
        # Each run misses its alpha with probability 0.05; of 24 runs 12 miss with a probability below 1e-9.
        assert part["within"] > 0.5 and part["errors"] == sorted(part["errors"], reverse=True)
        assert part["printed"][0] > 1.0 > part["promised"][0]
        assert abs(part["promised_slope"] - distance_queries.PRINTED[mode]) < 0.03


@pytest.mark.claim("MQ-T1", "MQ-C3")
@pytest.mark.slow
def test_measured_exponents_are_the_printed_ones_up_to_logarithms():
    """What is deterministic in alpha dominates: slopes of single repetitions differ by 0.003, and 0.05 is far off."""
    found = distance_queries._exponents(Options(), np.random.default_rng(20_261_651), runs=2, count=1500)
    for mode, printed in distance_queries.PRINTED.items():
        assert abs(found[mode]["without_logs"][0] - printed) < 0.05
    assert found["approximate"]["interval"][1] > found["pure"]["interval"][2]


def test_edit_distances_are_a_metric_with_known_values():
    names = ("", "a", "ab", "ba", "Austin", "Boston", "Houston")
    table = distance_workloads.edit_distances(names, names) * 7
    assert distance_workloads.edit_distance("kitten", "sitting") == 3
    assert (table == table.T).all() and (np.diag(table) == 0).all()
    assert (table[:, None] <= table[:, :, None] + table[None] + 1e-9).all()
