"""Exact losses of finite mechanisms, against brute force over events, rationals and linear programs."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special
from support.refusals import refusals

from dpaudit import exact
from dpaudit.exact.keeping import keeps, trade_off_corners
from dpaudit.privacy.claims import ApproxDP, PureDP, RenyiDP

FIXED = settings(derandomize=True, deadline=None, max_examples=100)
ROUNDING = 1e-12  # at most 6 outcomes with probabilities of at least 1/300


@st.composite
def laws(draw, count=2, with_zeros=True, largest=6):
    """`count` laws on the same outcomes, as lists of Fractions."""
    outcomes = draw(st.integers(1, largest))
    weights = st.lists(st.integers(0 if with_zeros else 1, 50), min_size=outcomes, max_size=outcomes)
    rows = [draw(weights.filter(any)) for _ in range(count)]
    return [[Fraction(weight, sum(row)) for weight in row] for row in rows]


def as_floats(law):
    return np.array([float(probability) for probability in law])


def least_type_two(p, q, type_one_error):
    rejected, kept = trade_off_corners(p, q)
    return min(
        np.interp(type_one_error, rejected[i : i + 2], kept[i : i + 2])
        for i in range(len(p))
        if rejected[i] <= type_one_error <= rejected[i + 1]
    )


def events(outcomes):
    return itertools.chain.from_iterable(itertools.combinations(range(outcomes), n) for n in range(outcomes + 1))


@pytest.mark.claim("CD-D2.4", "MQ-D1")
@FIXED
@given(laws(), st.floats(-3.0, 5.0))
def test_the_hockey_stick_divergence_is_the_largest_excess_over_events(pair, epsilon):
    p, q = map(as_floats, pair)
    factor = Fraction(math.exp(epsilon))
    best = max(sum((pair[0][o] - factor * pair[1][o] for o in event), Fraction(0)) for event in events(len(p)))
    # exp(3) * 6 outcomes * 2**-53
    assert exact.hockey_stick_divergence(p, q, epsilon) == pytest.approx(
        float(best), abs=ROUNDING * math.exp(abs(epsilon))
    )


@pytest.mark.claim("DX-D1")
@FIXED
@given(laws())
def test_the_loss_is_the_largest_log_ratio_over_events(pair):
    p, q = map(as_floats, pair)
    worst = 0.0
    for event in events(len(p)):
        first, second = (sum((law[o] for o in event), Fraction(0)) for law in pair)
        if first == second == 0:
            continue
        worst = max(worst, math.inf if 0 in (first, second) else abs(math.log(first / second)))
    assert exact.privacy_loss(p, q) == pytest.approx(worst, rel=ROUNDING, abs=ROUNDING)


@FIXED
@given(laws(count=4))
def test_losses_of_all_pairs_are_those_of_each_pair(rows):
    mechanism = np.array([as_floats(row) for row in rows])
    expected = [[exact.privacy_loss(p, q) for q in mechanism] for p in mechanism]
    assert exact.privacy_losses(mechanism).tolist() == expected
    assert (np.diag(expected) == 0.0).all()


@FIXED
@given(laws())
def test_the_profile_is_zero_exactly_from_the_loss_on(pair):
    p, q = map(as_floats, pair)
    loss = exact.privacy_loss(p, q)
    if loss < 20.0:
        assert exact.privacy_profile(p, q, loss + 1e-9) == 0.0
        if loss > 1e-6:
            assert exact.privacy_profile(p, q, 0.999 * loss) > 0.0
    assert exact.privacy_profile(p, q, 0.0) == pytest.approx(float(np.abs(p - q).sum() / 2.0), abs=ROUNDING)


@FIXED
@given(laws(count=5, largest=4), st.floats(0.0, 3.0))
def test_post_processing_never_increases_profile_or_divergence(rows, epsilon):
    p, q, *kernel = (as_floats(row) for row in rows)
    kernel = np.array((kernel * 2)[: len(p)])  # (outcomes, new outcomes)
    after = [p @ kernel / (p @ kernel).sum(), q @ kernel / (q @ kernel).sum()]
    assert exact.privacy_profile(*after, epsilon) <= exact.privacy_profile(p, q, epsilon) + ROUNDING
    for order in (1.0, 1.5, 4.0, math.inf):
        assert exact.renyi_divergence(*after, order) <= exact.renyi_divergence(p, q, order) + 1e-10


@FIXED
@given(laws(largest=5), st.floats(0.0, 1.0))
def test_the_trade_off_function_is_the_linear_program_of_neyman_and_pearson(pair, type_one_error):
    p, q = map(as_floats, pair)
    best = optimize.linprog(-q, A_ub=[p], b_ub=[type_one_error], bounds=(0.0, 1.0), method="highs")
    # HiGHS meets its constraints to 1e-7; a slack of 1e-7 in the type I error moves the value by 1e-7 q/p <= 1.3e-5.
    assert least_type_two(p, q, type_one_error) == pytest.approx(1.0 + best.fun, abs=2e-5)


@FIXED
@given(laws(with_zeros=False), st.integers(2, 6))
def test_renyi_divergences_of_whole_orders_are_sums_of_rationals(pair, order):
    p, q = map(as_floats, pair)
    total = sum((a**order / b ** (order - 1) for a, b in zip(*pair, strict=True)), Fraction(0))
    expected = math.log(total) / (order - 1)
    assert exact.renyi_divergence(p, q, order) == pytest.approx(expected, rel=1e-10, abs=ROUNDING)


@FIXED
@given(laws(with_zeros=False))
def test_renyi_divergences_grow_with_the_order_between_their_limits(pair):
    p, q = map(as_floats, pair)
    orders = [1.0, 1.0 + 1e-9, 1.001, 1.1, 1.5, 2.0, 5.0, 50.0, 1e4, math.inf]
    values = [exact.renyi_divergence(p, q, order) for order in orders]
    assert (np.diff(values) >= -1e-13 - 1e-9 * values[-1]).all()
    expected = sum(float(a) * math.log(a / b) for a, b in zip(*pair, strict=True))
    assert values[0] == pytest.approx(expected, rel=1e-9, abs=ROUNDING)
    assert values[1] == pytest.approx(values[0], rel=1e-6, abs=ROUNDING)
    assert values[-1] == pytest.approx(max(math.log(a / b) for a, b in zip(*pair, strict=True)), abs=ROUNDING)


def test_renyi_divergence_of_nearly_equal_laws_keeps_its_digits():
    shift = 2.0**-30  # p = 1/2 +- shift: D_r = 2 r shift^2 + O(shift^4)
    p, q = [0.5 + shift, 0.5 - shift], [0.5, 0.5]
    for order in (1.0, 1.25, 2.0, 8.0):
        assert exact.renyi_divergence(p, q, order) == pytest.approx(2.0 * order * shift**2, rel=1e-8)


@FIXED
@given(laws(with_zeros=False))
def test_rho_is_the_supremum_over_a_grid_of_orders_and_rounded_up(pair):
    p, q = map(as_floats, pair)
    orders = 1.0 + np.geomspace(1e-6, 1e3, 400)
    grid = max(exact.renyi_divergence(a, b, r) / r for a, b in ((p, q), (q, p)) for r in orders)
    rho = exact.zcdp_rho(p, q)
    assert rho >= grid * (1.0 - 1e-12)
    # Between neighbours r < s of the grid D_t / t <= D_s / r = (D_s / s) (s / r), and s / r < 1.053.
    assert rho <= 1.053 * grid + 1e-12
    assert rho <= 0.5 * exact.privacy_loss(p, q) ** 2 * (1.0 + 2e-6) + 1e-15  # Bun and Steinke (2016), proposition 1.4


def test_rho_of_a_rare_large_loss_is_attained_inside():
    # An outcome of probability 1e-6 with a loss of log 1000: the supremum lies at an order between 1 and infinity.
    p, q = np.array([1.0 - 1e-6, 1e-6]), np.array([1.0 - 1e-9, 1e-9])
    found = optimize.minimize_scalar(
        lambda r: -exact.renyi_divergence(p, q, r) / r, bounds=(1.01, 50.0), method="bounded", options={"xatol": 1e-10}
    )
    assert 1.05 < found.x < 40.0
    assert -found.fun > 10.0 * exact.renyi_divergence(p, q, 1.0)
    assert exact.zcdp_rho(p, q, relative_gap=1e-10) == pytest.approx(-found.fun, rel=1e-9)
    assert -found.fun <= exact.zcdp_rho(p, q) <= -found.fun * (1.0 + 2e-6)
    assert exact.zcdp_rho(q, p) == exact.zcdp_rho(p, q)


def test_a_search_for_rho_ends_where_orders_are_neighbours_and_the_gap_is_left():
    """Rounding is larger than the smallest gap that may be asked for: orders were halved without end."""
    p, q = np.array([1.0 - 1e-6, 1e-6]), np.array([1.0 - 1e-9, 1e-9])
    assert exact.zcdp_rho(p, q, relative_gap=1e-12) == pytest.approx(exact.zcdp_rho(p, q, relative_gap=1e-9), rel=2e-9)


def test_rho_of_normal_noise_on_a_grid_is_that_of_the_normal_law():
    # D_r / r is 1/2 for every order that the grid resolves (it ends 10 standard deviations away): the slowest search.
    grid = np.linspace(-10.0, 11.0, 201)
    p, q = (np.exp(-0.5 * (grid - shift) ** 2) for shift in (0.0, 1.0))
    rho = exact.zcdp_rho(p / p.sum(), q / q.sum())
    assert 0.5 * (1.0 - 1e-9) <= rho <= 0.5 * (1.0 + 2e-6)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
def test_randomised_response_has_the_known_losses(epsilon):
    truth = 1.0 / (1.0 + math.exp(-epsilon))
    p, q = [truth, 1.0 - truth], [1.0 - truth, truth]
    assert exact.privacy_loss(p, q) == pytest.approx(epsilon, rel=1e-11)
    for anchor in (0.0, 0.3 * epsilon, epsilon, 2.0 * epsilon):
        assert exact.privacy_profile(p, q, anchor) == pytest.approx(PureDP(epsilon).profile(anchor), abs=ROUNDING)
    kullback_leibler = epsilon * math.tanh(0.5 * epsilon)
    assert exact.renyi_divergence(p, q, 1.0) == pytest.approx(kullback_leibler, rel=1e-11)
    assert kullback_leibler <= exact.zcdp_rho(p, q) <= 0.5 * epsilon**2


def test_an_outcome_of_one_side_only_is_an_infinite_loss_and_of_neither_counts_for_nothing():
    p, q = np.array([[0.5, 0.5, 0.0, 0.0], [0.25, 0.5, 0.25, 0.0]])
    assert exact.privacy_loss(p, q) == math.inf
    assert exact.renyi_divergence(p, q, 2.0) == pytest.approx(math.log(1.5))  # 0.5^2 / 0.25 + 0.5
    assert exact.renyi_divergence(q, p, 2.0) == exact.renyi_divergence(q, p, 1.0) == math.inf
    assert exact.renyi_divergence(q, p, math.inf) == exact.zcdp_rho(p, q) == math.inf
    assert exact.privacy_profile(p, q, 600.0) == 0.25
    assert least_type_two(p, q, 0.0) == 0.75
    disjoint = np.eye(2)
    assert [least_type_two(*disjoint, error) for error in (0.0, 0.5, 1.0)] == [0.0, 0.0, 0.0]
    assert exact.hockey_stick_divergence(*disjoint, 700.0) == 1.0


@FIXED
@given(laws(count=1))
def test_equal_laws_lose_nothing(law):
    p = as_floats(law[0])
    assert exact.privacy_loss(p, p) == exact.privacy_profile(p, p, 0.0) == exact.zcdp_rho(p, p) == 0.0
    assert exact.renyi_divergence(p, p, 1.0) == exact.renyi_divergence(p, p, 3.0) == 0.0


def test_arguments_are_left_unchanged():
    mechanism = np.array([[0.5, 0.5], [0.25, 0.75]])
    before = mechanism.copy()
    exact.privacy_losses(mechanism)
    exact.zcdp_rho(*mechanism)
    trade_off_corners(*mechanism)
    assert (mechanism == before).all()


test_what_makes_no_sense_is_refused = refusals(
    (lambda: exact.privacy_loss([0.5, 0.5], [1.0]), "p and q must"),
    (lambda: exact.privacy_loss([0.5, 0.6], [0.5, 0.5]), "p must"),
    (lambda: exact.privacy_loss([0.5, 0.5], [1.5, -0.5]), "q must"),
    (lambda: exact.privacy_loss("ab", [1.0]), "p must"),
    (lambda: exact.privacy_losses([[1.0], [0.5]]), "mechanism must"),
    (lambda: exact.privacy_losses([1.0]), "mechanism must"),
    (lambda: exact.hockey_stick_divergence([1.0], [1.0], 701.0), "epsilon must"),
    (lambda: exact.privacy_profile([1.0], [1.0], -0.1), "epsilon must"),
    (lambda: exact.renyi_divergence([1.0], [1.0], 0.5), "renyi_order must"),
    (lambda: exact.zcdp_rho([1.0], [1.0], 0.0), "relative_gap must"),
)


@pytest.mark.parametrize("loss", np.linspace(0.1, 5.0, 50).tolist())
def test_randomised_response_on_its_claim_keeps_it_whatever_its_last_bit(loss):
    # Its loss is eps; its delta at eps / 2 and its divergence of order 2 are sums of two terms.
    right = special.expit(loss)
    rows, wrong = [[right, 1.0 - right], [1.0 - right, right]], 1.0 - right
    delta = (np.exp(loss) - np.exp(0.5 * loss)) / (1.0 + np.exp(loss))
    divergence = np.log(right**2 / wrong + wrong**2 / right)
    for claim in (PureDP(loss), ApproxDP(0.5 * loss, delta), RenyiDP(2.0, divergence)):
        assert keeps(rows, claim) and not keeps(rows, claim.with_value(claim.value * (1.0 - 1e-9)))
    assert not keeps([[1.0, 0.0], [1.0 - 1e-13, 1e-13]], PureDP(loss))
