"""The paper on datacubes, sections 1 to 3: worked example, definitions, privacy of budgets, recovery, consistency.

`datacube_literal` has the printed constructions. Counterexamples come from the ledger.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from datacube_literal import (
    FIG_Q,
    FIG_R,
    FIG_S,
    changes,
    fourier,
    gaussian_delta,
    identity,
    loss,
    nearest,
    objective,
    product,
    recovery_weights,
    transposed,
)
from hypothesis import given
from hypothesis import strategies as st

from dpaudit_mechanisms.datacubes import Domain, HaarStrategy, MatrixStrategy, Workload
from dpaudit_mechanisms.ledger import entry

SEEDS = st.integers(0, 2**32)
ADJACENCIES = ("add_remove", "replace_one")
# Below 4 log 2 the Gaussian bound of Thm 2.2 has a proof (DC-T2.2); the grid goes beyond.
THRESHOLD = 4.0 * math.log(2.0)
DELTAS = (0.99, 0.5, 0.1, 0.01, 1e-4, 1e-6, 1e-9, 1e-12)


def random_matrix(rng, rows, columns, most=3):
    return [[int(v) for v in row] for row in rng.integers(-most, most + 1, size=(rows, columns))]


def norm_p(values, p):
    return float(np.linalg.norm(np.array(values, dtype=float), p))


# ---- Fig. 1 and the framework ---------------------------------------------------------------------------------------


@pytest.mark.claim("DC-F1", "DC-X2", "DC-X3")
def test_the_workload_is_the_recovery_of_the_strategy():
    on_a = [[int(f"{cell:03b}".startswith(prefix)) for cell in range(8)] for prefix in ("0", "1")]
    on_ab = [[int(f"{cell:03b}".startswith(prefix)) for cell in range(8)] for prefix in ("00", "01", "10", "11")]
    assert on_a + on_ab == FIG_Q and on_ab == FIG_S
    assert product(FIG_R, FIG_S) == FIG_Q


@pytest.mark.claim("DC-X4", "DC-X5", "DC-X6")
def test_the_numbers_of_the_worked_example_and_its_optima():
    """In rationals at epsilon = 1; add_remove is the adjacency under which they are 1-DP, with nothing to spare."""
    uniform, printed = [Fraction(1, 2)] * 6, [Fraction(4, 9)] * 2 + [Fraction(5, 9)] * 4
    for budgets in (uniform, printed):
        assert loss(FIG_Q, budgets, "add_remove") == 1 and loss(FIG_Q, budgets, "replace_one") == 2
    assert [2 / e**2 for e in uniform] == [8] * 6
    assert objective([2] * 6, uniform) == 48 and objective([2] * 6, printed) == Fraction(4617, 100)
    optimum = (4 ** (1 / 3) + 8 ** (1 / 3)) ** 3  # DC-EQ4: groups of s = 4 and s = 8
    assert 46.16 < optimum < 46.17
    # The six combinations: half of each of the two ways in which an answer can be had.
    half = Fraction(1, 2)
    recovery = [
        [half, 0, half, half, 0, 0], [0, half, 0, 0, half, half],
        [half, 0, half, -half, 0, 0], [half, 0, -half, half, 0, 0],
        [0, half, 0, 0, half, -half], [0, half, 0, 0, -half, half],
    ]  # fmt: skip
    assert product(recovery, FIG_Q) == FIG_Q
    variances = [2 / e**2 for e in printed]
    each = [sum(r**2 * v for r, v in zip(row, variances, strict=True)) for row in recovery]
    assert each == [Fraction(577125, 100000)] * 6 and sum(each) == Fraction(346275, 10000)
    assert round(100 * (1 - sum(each) / 48)) == 28
    # Least squares from the same answers: 30.01; from the strategy of Fig. 1(c) alone: 16.
    best = sum(2 * v1 * v2 / (v1 + 2 * v2) * 2 + 4 * v2 * (v1 + v2) / (v1 + 2 * v2)
               for v1, v2 in [(variances[0], variances[2])])  # fmt: skip
    groups = [[1, 1, 0, 0], [0, 0, 1, 1], *identity(4)]  # the cells of A, B in place of those of A, B, C
    cells, each = Domain((4,)), np.array(variances, dtype=float)
    left = MatrixStrategy(cells, np.array(groups, dtype=float)).least_squares_matrix(each, Workload(cells, [(0,)]))
    total = float(((np.array(groups) @ left) ** 2 @ each).sum())
    assert total == pytest.approx(float(best)) and round(total, 4) == 30.0126
    assert objective(recovery_weights(FIG_R), [1] * 4) == 16


# ---- definitions and noise (Section 2) ------------------------------------------------------------------------------


@pytest.mark.claim("DC-T2.2")
def test_gaussian_noise_of_the_printed_variance_fails_at_large_epsilon():
    for case in entry("DC-T2.2").counterexample["cases"]:
        ratio = case["epsilon"] / math.sqrt(2 * math.log(2 / case["delta"]))
        exact = gaussian_delta(case["epsilon"], ratio)
        assert exact == pytest.approx(case["exact_delta"], rel=1e-3) and exact > case["delta"]


@pytest.mark.claim("DC-P3.1.ii")
def test_gaussian_budgets_fail_at_large_budgets_under_both_adjacencies():
    for case in entry("DC-P3.1.ii").counterexample["cases"]:
        scaled = [[case["budget"] * v for v in row] for row in case["strategy"]]
        promised = 2 * max(norm_p(c, 2) for c in transposed(scaled))
        assert promised == pytest.approx(case["alpha"])
        change = max(norm_p(d, 2) for d in changes(scaled, case["adjacency"]))
        exact = gaussian_delta(promised, change / math.sqrt(2 * math.log(2 / case["delta"])))
        assert exact == pytest.approx(case["exact_delta"], rel=1e-3) and exact > case["delta"]


@pytest.mark.claim("DC-P3.1.ii")
@given(SEEDS, st.sampled_from(DELTAS), st.floats(0.1, THRESHOLD))
def test_gaussian_budgets_hold_up_to_4_log_2(seed, delta, alpha):
    rng = np.random.default_rng(seed)
    strategy = random_matrix(rng, int(rng.integers(1, 6)), int(rng.integers(2, 6)))
    scaled = np.array(strategy) * rng.uniform(0.1, 1.0, size=(len(strategy), 1))
    largest = np.linalg.norm(scaled, axis=0).max()
    if largest == 0:
        return
    scaled = (scaled * alpha / (2 * largest)).tolist()
    for adjacency in ADJACENCIES:
        change = max(norm_p(d, 2) for d in changes(scaled, adjacency))
        assert change <= alpha * (1 + 1e-12)
        ratio = change / math.sqrt(2 * math.log(2 / delta))
        assert gaussian_delta(alpha, ratio) <= delta * (1 + 1e-9)
        if adjacency == "add_remove":
            assert gaussian_delta(alpha / 2, ratio) <= delta * (1 + 1e-9)


@pytest.mark.claim("DC-S3")
def test_no_constant_of_proportionality_serves_gaussian_noise_for_all_budgets():
    """sigma = c Delta / alpha: the loss has the mean alpha^2 / (2 c^2), above alpha from alpha = 2 c^2 on."""
    data = entry("DC-S3").counterexample
    for c in data["constants"]:
        assert gaussian_delta(data["factor"] * c**2, data["factor"] * c**2 / c) > data["delta"]
    # Laplace noise of variance (2 Delta / alpha)^2 / 2, that is of scale Delta / alpha, is alpha-DP for each alpha.
    for alpha in (Fraction(1, 10), Fraction(50)):
        assert loss(identity(2), [alpha / 2] * 2, "replace_one") == alpha


@pytest.mark.claim("DC-S4")
def test_the_proof_for_gaussian_budgets_drops_an_index_and_fails_at_large_epsilon():
    data = entry("DC-S4").counterexample
    strategy, budget, epsilon = data["strategy"], data["budget"], data["epsilon"]
    unindexed = epsilon * max(norm_p(c, 2) for c in transposed(strategy))
    assert budget * max(norm_p(c, 2) for c in transposed(strategy)) / unindexed == data["column_norm"] > 1
    # With the index the columns are of norm 1 at most; the variance of DC-T2.2 is too small for a large epsilon.
    case = data["large"]
    ratio = case["epsilon"] / math.sqrt(2 * math.log(2 / case["delta"]))
    assert gaussian_delta(case["epsilon"], ratio) == pytest.approx(case["exact_delta"], rel=1e-3)
    assert case["exact_delta"] > case["delta"]


# ---- recovery (Section 3.2) -----------------------------------------------------------------------------------------


@pytest.mark.claim("DC-O1")
@pytest.mark.parametrize("n", [4, 8])
def test_an_orthonormal_strategy_has_one_recovery_for_all_budgets(n):
    rng = np.random.default_rng(n)
    wavelet = HaarStrategy(Domain((n,))).matrix()
    for basis in (
        np.array(fourier(range(n), n.bit_length() - 1)) / math.sqrt(n),
        wavelet / np.linalg.norm(wavelet, axis=1, keepdims=True),
    ):
        assert np.allclose(basis @ basis.T, np.eye(n))
        queries = rng.normal(size=(3, n))
        for _ in range(5):
            precision = np.diag(rng.uniform(0.1, 10.0, size=n))
            left = np.linalg.solve(basis.T @ precision @ basis, basis.T @ precision)
            assert np.allclose(left, basis.T) and np.allclose(queries @ left @ basis, queries)


# ---- consistency (Section 3.3) --------------------------------------------------------------------------------------


@pytest.mark.claim("DC-S10")
def test_no_matrix_gives_the_nearest_consistent_answer_for_p_1_or_infinity():
    """Three answers to one query: the median is not additive, and neither is the middle of the range."""
    data = entry("DC-S10").counterexample
    for p, name in ((1, "sum_of_l1"), (np.inf, "sum_of_linf"), (2, "sum_of_l2")):
        parts = [nearest(data["workload"], answers, p)[1][0] for answers in data["answers"]]
        whole = nearest(data["workload"], np.sum(data["answers"], axis=0), p)[1][0]
        assert (sum(parts), whole) == pytest.approx((data[name], data["whole"]), abs=1e-9)
        assert (abs(data[name] - data["whole"]) < 1e-9) == (p == 2)
