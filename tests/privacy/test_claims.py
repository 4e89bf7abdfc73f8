"""Claims: profiles against independent computation, conversions, the Renyi inequality, and every refusal."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import (
    REPORT_DELTA,
    ApproxDP,
    Budget,
    GaussianDP,
    HockeyStickLine,
    MetricDP,
    ProfileClaim,
    PureDP,
    RenyiDP,
    RenyiInequality,
    ZeroConcentratedDP,
    epsilon_of_profile,
    gaussian_profile,
)

bounded = settings(max_examples=60, deadline=None, derandomize=True)
budgets = st.floats(0.0, 20.0)


def hockey_stick(p, q, epsilon):
    """By enumeration of all events: max over S of P(S) - e^epsilon Q(S)."""
    gains = [a - math.exp(epsilon) * b for a, b in zip(p, q, strict=True)]
    events = itertools.product([0, 1], repeat=len(gains))
    return max(sum(gain for gain, taken in zip(gains, event, strict=True) if taken) for event in events)


def dominating_pair(epsilon, delta):
    """The laws that lose the most under (epsilon, delta)-DP: the input is revealed with probability delta, and goes
    through randomised response otherwise."""
    keep = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    rest = 1.0 - delta
    return [delta, rest * keep, rest * (1.0 - keep), 0.0], [0.0, rest * (1.0 - keep), rest * keep, delta]


def renyi_divergence(p, q, order):
    return math.log(sum(a**order * b ** (1.0 - order) for a, b in zip(p, q, strict=True))) / (order - 1.0)


def gaussian_hockey_stick(mu, epsilon):
    """By numerical integration of max(p - e^epsilon q, 0) for N(mu, 1) against N(0, 1)."""
    edge = epsilon / mu + mu / 2.0  # the likelihood ratio exceeds e^epsilon above it
    value, _ = integrate.quad(
        lambda t: stats.norm.pdf(t - mu) - math.exp(epsilon) * stats.norm.pdf(t),
        edge,
        edge + 40.0,
        epsabs=1e-15,
        limit=400,
    )
    return value


# --- pure and approximate ---


@pytest.mark.parametrize("epsilon_claimed", [0.0, 0.1, 0.5, 2.0])
@pytest.mark.parametrize("delta_claimed", [0.0, 1e-6, 0.1, 0.9, 1.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.2, 1.0, 3.0])
def test_the_profile_is_that_of_the_dominating_pair(epsilon_claimed, delta_claimed, epsilon):
    """Of a pure claim that is randomised response."""
    expected = hockey_stick(*dominating_pair(epsilon_claimed, delta_claimed), epsilon)
    # observed error: 3.9e-16
    assert ApproxDP(epsilon_claimed, delta_claimed).profile(epsilon) == pytest.approx(expected, abs=1e-14)
    assert delta_claimed or PureDP(epsilon_claimed).profile(epsilon) == pytest.approx(expected, abs=1e-14)


@pytest.mark.guard
@bounded
@given(epsilon=budgets, delta=st.floats(0.0, 0.99), at=st.floats(0.0, 20.0))
def test_epsilon_at_inverts_the_approximate_profile(epsilon, delta, at):
    claim = ApproxDP(epsilon, delta)
    back = claim.epsilon_at(claim.profile(at))
    assert back <= at + 1e-9 or claim.profile(at) == claim.profile(back)
    # the profile is flat above epsilon, and its slope below is at least (1 - delta) / 2 times e^(at - epsilon)
    assert claim.profile(back) == pytest.approx(claim.profile(at), abs=1e-12)


def test_epsilon_at_the_claims_own_delta_is_the_claims_epsilon():
    assert ApproxDP(1.5, 0.01).epsilon_at(0.01) == 1.5
    assert ApproxDP(1.5, 0.01).epsilon_at(0.009) == math.inf
    assert ApproxDP(1.5, 0.01).epsilon_at(1.0) == 0.0
    assert PureDP(1.5).epsilon_at(0.0) == 1.5
    assert ApproxDP(1.0, 1.0).epsilon_at(1.0) == 0.0
    assert PureDP(math.inf).epsilon_at(0.5) == math.inf


def test_the_pure_profile_of_a_huge_epsilon_does_not_overflow():
    assert PureDP(1e6).profile(0.0) == 1.0
    assert PureDP(math.inf).profile(3.0) == 1.0
    assert PureDP(1e6).epsilon_at(1e-6) == pytest.approx(1e6, rel=1e-9)
    assert PureDP(1.0).profile(math.inf) == 0.0


def test_the_pure_profile_far_beyond_its_epsilon_does_not_overflow():
    assert [ApproxDP(1.0, 0.25).profile(epsilon) for epsilon in (1.0, 800.0, math.inf)] == [0.25] * 3


def test_lines_of_an_approximate_claim_vary_epsilon_and_keep_delta():
    epsilon, delta = ApproxDP(1.0, 0.1).lines(np.array([0.5, 2.0]), anchor=9.0)
    assert epsilon.tolist() == [0.5, 2.0]
    assert delta.tolist() == [0.1, 0.1]
    assert ApproxDP(1.0, 0.1).inequality() == HockeyStickLine(1.0, 0.1)


# --- Gaussian ---


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.0, 3.0, 6.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0])
def test_the_gaussian_profile_is_the_integrated_hockey_stick_divergence(mu, epsilon):
    # observed error: 2.3e-16 absolute; quad itself promises 1.5e-8 relative
    assert GaussianDP(mu).profile(epsilon) == pytest.approx(gaussian_hockey_stick(mu, epsilon), rel=1e-8, abs=2e-14)


def test_the_gaussian_profile_stays_finite_at_the_ends_of_its_range():
    mus = np.array([0.0, 5e-324, 1e-200, 1e-150, 1e-3, 1e3, 1e200, 1.7e308, math.inf])
    with np.errstate(all="raise", under="ignore"):
        for epsilon in (0.0, 1e-300, 1.0, 700.0, 1e300, math.inf):
            delta = gaussian_profile(mus, epsilon)
            assert np.all((delta >= 0.0) & (delta <= 1.0)), (epsilon, delta)
            assert np.all(np.diff(delta) >= 0.0), (epsilon, delta)


# mu, epsilon and delta: mpmath 1.4.1, 60 digits, the formula of `gaussian_profile`, 2026-11-30. By differences of
# logarithms the second was off by 4e-13, the third by 5e-10, and the last by 1.
LARGE_PROFILES = [
    (1498.6642602795698, 1123445.4839406626, 0.3821898560489557),
    (1e4, 5e7 + 3e3, 0.3820504401740118),
    (1e7, 5e13 - 2e6, 0.5792596703348328),
    (1e200, 1e300, 1.0),
]


@pytest.mark.parametrize(("mu", "epsilon", "delta"), LARGE_PROFILES)
def test_the_gaussian_profile_of_a_large_mu_is_as_close_as_mu_is_to_its_double(mu, epsilon, delta):
    assert GaussianDP(mu).profile(epsilon) == pytest.approx(delta, rel=0.0, abs=min(1e-15 + 1e-16 * mu, 1e-8))


@bounded
@given(mu=st.floats(0.05, 10.0), delta=st.floats(1e-9, 0.5))
def test_epsilon_at_inverts_the_gaussian_profile(mu, delta):
    claim = GaussianDP(mu)
    epsilon = claim.epsilon_at(delta)
    assert claim.profile(epsilon) <= delta
    assert epsilon <= 1e-9 or claim.profile(epsilon * (1.0 - 1e-6)) > delta * (1.0 - 1e-9)


# mu, delta and the least epsilon: mpmath 1.4.1, 60 digits, bisection on Q(e/mu - mu/2) - exp(e) Q(e/mu + mu/2) with
# Q(x) = erfc(x / sqrt(2)) / 2, 2026-11-30.
LEAST_EPSILONS = [
    (0.01, 1e-300, 0.3682989900138095),
    (0.01, 1e-12, 0.06075221062978622),
    (0.01, 1e-3, 0.009048072593038798),
    (0.5, 1e-300, 18.590234297297755),
    (0.5, 1e-3, 1.3522762448025543),
    (1.0, 1e-12, 7.238494420178858),
    (40.0, 1e-300, 2281.1760982640117),
    (40.0, 1e-3, 922.6462101982227),
    (40.0, 0.5, 799.0002079698866),
    (40.0, 1.0 - 1e-9, 559.0046107582832),
    (1e3, 1e-300, 537046.1143780627),
    (1e3, 0.5, 499999.00000033336),
    (1e3, 1.0 - 1e-9, 494001.1899697881),
]


# As above, of a small mu. By a difference the first was 0, the next two off by 11% and 0.9%, the next two by 1e-4.
SMALL_PROFILES = [
    (1e-250, 0.0, 3.989422804014327e-251),
    (2.5e-15, 0.0, 9.973557010035816e-16),
    (4e-15, 1e-20, 1.5957641216107177e-15),
    (2.5e-12, 0.0, 9.973557010035816e-13),
    (3e-11, 1e-9, 5.706801130860184e-256),
    (0.0999, 2.6, 1.7629090213456207e-151),
]


@pytest.mark.parametrize(("mu", "epsilon", "delta"), SMALL_PROFILES)
def test_the_gaussian_profile_of_a_small_mu_has_twelve_digits(mu, epsilon, delta):
    assert GaussianDP(mu).profile(epsilon) == pytest.approx(delta, rel=1e-12, abs=0.0)


# Of a small mu, as above: by cancellation the first was 4e-10 of itself too small.
SMALL_EPSILONS = [
    (1.3546252736464178e-08, 2.7193812916208375e-23, 1.0284373097617661e-07),
    (1e-08, 1e-30, 9.508066845552646e-08),
    (1e-06, 1e-09, 2.7178059287972227e-06),
]


@pytest.mark.parametrize(("mu", "delta", "least"), SMALL_EPSILONS)
def test_the_epsilon_of_a_small_mu_is_not_below_the_least_one(mu, delta, least):
    assert least <= GaussianDP(mu).epsilon_at(delta) <= least * (1.0 + 1e-7)


@pytest.mark.parametrize(("mu", "delta", "least"), LEAST_EPSILONS)
def test_the_epsilon_of_a_gaussian_claim_is_rounded_up_by_less_than_a_billionth(mu, delta, least):
    assert least <= GaussianDP(mu).epsilon_at(delta) <= least * (1.0 + 1e-9)


def test_a_gaussian_claim_keeps_no_pure_epsilon():
    assert GaussianDP(1.0).epsilon_at(0.0) == math.inf
    assert GaussianDP(0.0).epsilon_at(0.0) == 0.0
    assert GaussianDP(math.inf).epsilon_at(0.5) == math.inf
    assert GaussianDP(math.inf).epsilon_at(1.0) == 0.0


def test_lines_of_a_gaussian_claim_keep_the_anchor_and_vary_delta():
    epsilon, delta = GaussianDP(1.0).lines(np.array([0.0, 1.0, math.inf]), anchor=1.0)
    assert epsilon.tolist() == [1.0, 1.0, 1.0]
    assert delta.tolist() == [0.0, GaussianDP(1.0).profile(1.0), 1.0]
    assert GaussianDP(1.0).inequality(at=1.0) == HockeyStickLine(1.0, GaussianDP(1.0).profile(1.0))


# --- profiles of the user's own ---


def test_a_profile_claim_is_its_function_and_its_scale_stretches_epsilon():
    gaussian = GaussianDP(1.0)
    claim = ProfileClaim(gaussian.profile, name="gaussian")
    assert claim.profile(1.0) == gaussian.profile(1.0)
    assert claim.with_value(2.0).profile(1.0) == gaussian.profile(0.5)
    assert claim.epsilon_at(1e-3) == pytest.approx(gaussian.epsilon_at(1e-3), rel=1e-8)
    assert claim.with_value(2.0).epsilon_at(1e-3) == pytest.approx(2 * gaussian.epsilon_at(1e-3), rel=1e-8)
    assert (str(claim), str(claim.with_value(1.25))) == ("gaussian", "gaussian (scale 1.25)")


@pytest.mark.parametrize("at", [0.0, 0.5, 3.0, 700.0])
def test_the_scales_of_a_profile_claim_are_nested(at):
    claim = ProfileClaim(lambda epsilon: 0.01 + 0.5 * math.exp(-epsilon))
    scales = np.array([0.0, 1e-320, 1e-3, 0.5, 1.0, 7.0, math.inf])
    epsilon, delta = claim.lines(scales, anchor=at)
    assert epsilon.tolist() == [at] * len(scales)
    assert np.all(np.diff(delta) >= 0.0)


def test_scale_zero_keeps_the_value_at_zero_and_the_tail():
    claim = ProfileClaim(lambda epsilon: 0.1 + (0.4 if epsilon < 1.0 else 0.0), scale=0.0)
    assert (claim.profile(0.0), claim.profile(1e-9), claim.profile(5.0)) == (0.5, 0.1, 0.1)


def test_epsilon_of_a_profile_that_jumps_at_zero_is_found():
    assert epsilon_of_profile(lambda epsilon: 0.5 if epsilon == 0.0 else 0.0, 0.1) <= 1e-12
    assert ProfileClaim(lambda epsilon: 0.5 / (1.0 + epsilon) ** 9, scale=0.0).epsilon_at(0.1) <= 1e-12


def test_epsilon_of_a_profile_that_never_falls_to_delta_is_infinite():
    assert epsilon_of_profile(lambda epsilon: 0.2, 0.1) == math.inf
    assert epsilon_of_profile(lambda epsilon: 0.2, 0.2) == 0.0


# --- Renyi and zCDP ---

laws = st.lists(st.floats(0.02, 1.0), min_size=4, max_size=4).map(lambda masses: np.array(masses) / sum(masses))


@bounded
@given(p=laws, q=laws, g=st.lists(st.floats(0.0, 5.0), min_size=4, max_size=4), order=st.floats(1.01, 12.0))
def test_the_renyi_inequality_holds_for_every_bounded_function(p, q, g, order):
    inequality = RenyiInequality(order, renyi_divergence(p, q, order))
    paid, charged = inequality.terms(np.array(g))
    assert paid @ p - charged @ q <= inequality.bound * (1.0 + 1e-9) + 1e-9


@bounded
@given(p=laws, q=laws, order=st.floats(1.01, 12.0))
def test_the_renyi_inequality_is_an_equality_at_the_likelihood_ratio(p, q, order):
    inequality = RenyiInequality(order, renyi_divergence(p, q, order))
    paid, charged = inequality.terms(p / q)
    # observed rtol: 6.3e-15 over 5000 random instances; the two terms cancel to 1/r of their size
    assert paid @ p - charged @ q == pytest.approx(inequality.bound, rel=1e-9)


def test_the_renyi_bound_is_infinite_where_it_would_overflow():
    assert RenyiInequality(2.0, 1e6).bound == math.inf
    assert RenyiInequality(2.0, math.inf).bound == math.inf
    assert RenyiInequality(3.0, 0.0).bound == 1.0


def test_a_renyi_claim_promises_its_order_and_every_smaller_one():
    claim = RenyiDP(3.0, 0.4)
    assert claim.orders == (3.0,)
    assert claim.inequality(3.0) == RenyiInequality(3.0, 0.4)
    assert claim.inequality(2.0) == RenyiInequality(2.0, 0.4)
    for order in (1.0, 3.5, math.nan):
        with pytest.raises(UsageError, match=r"order must be in \(1, 3\], got"):
            claim.inequality(order)


def test_a_zcdp_claim_promises_rho_times_the_order():
    claim = ZeroConcentratedDP(0.5)
    assert all(order > 1.0 for order in claim.orders)
    assert claim.inequality(4.0) == RenyiInequality(4.0, 2.0)
    assert claim.renyi_epsilons(np.array([0.0, 1.0]), 3.0).tolist() == [0.0, 3.0]
    with pytest.raises(UsageError, match=r"order must be in \(1, inf\), got 1.0\."):
        claim.inequality(1.0)


def test_renyi_families_convert_as_bun_and_steinke_and_mironov_say():
    # proposition 1.3: rho + 2 sqrt(rho log(1/delta)), by hand at rho = 1/4 and delta = e^-4
    assert ZeroConcentratedDP(0.25).epsilon_at(math.exp(-4.0)) == pytest.approx(2.25, rel=1e-12)
    # proposition 3: epsilon + log(1/delta) / (order - 1), by hand at delta = e^-4
    assert RenyiDP(3.0, 0.5).epsilon_at(math.exp(-4.0)) == pytest.approx(2.5, rel=1e-12)


@pytest.mark.parametrize("claim", [ZeroConcentratedDP(0.0), RenyiDP(2.0, 0.0), GaussianDP(0.0), PureDP(0.0)])
@pytest.mark.parametrize("delta", [0.0, 5e-324, 1e-6, 1.0])
def test_a_claim_of_zero_promises_epsilon_zero_at_every_delta(claim, delta):
    assert claim.epsilon_at(delta) == 0.0


@pytest.mark.parametrize("claim", [ZeroConcentratedDP(0.1), RenyiDP(2.0, 0.1)])
def test_a_renyi_family_promises_no_pure_epsilon_and_all_of_it_at_delta_one(claim):
    assert claim.epsilon_at(0.0) == math.inf
    assert claim.epsilon_at(1.0) == 0.0
    assert math.isfinite(claim.epsilon_at(5e-324))


# --- metric ---


def test_a_metric_claim_on_inputs_is_pure_with_the_pairs_budget():
    claim = MetricDP(lambda x, y: 0.5 * abs(x - y))
    assert claim.for_pair(1.0, 4.0) == PureDP(1.5)
    assert claim.for_pair(1.0, 1.0).value == 0.0
    assert not claim.is_vacuous


def test_a_metric_claim_on_records_adds_up_the_positions():
    claim = MetricDP(lambda u, v: 0.5 * abs(u - v), on="records")
    assert str(claim).startswith("metric=") and str(claim).endswith(",on=records")
    assert claim.for_pair([1, 2, 3], [1, 4, 4]) == PureDP(1.5)
    assert claim.for_pair(np.array([1.0, 2.0]), np.array([1.0, 2.0])) == PureDP(0.0)
    assert claim.for_pair((), ()) == PureDP(0.0)


def test_an_infinite_distance_leaves_the_pair_not_asked():
    assert MetricDP(lambda x, y: math.inf).for_pair(0, 1).is_vacuous


@pytest.mark.parametrize(
    ("x", "x_prime", "message"),
    [
        ([1, 2], [1], r"the same number of records for a metric on records, got 2 and 1\."),
        (3, [1], r"inputs must be sequences of records for a metric on records, got 3\."),
        ([1], np.array(2.0), r"inputs must be sequences of records for a metric on records, got 2\.0\."),
    ],
)
def test_inputs_that_are_not_records_of_one_length_are_refused(x, x_prime, message):
    with pytest.raises(UsageError, match=message):
        MetricDP(lambda u, v: 1.0, on="records").for_pair(x, x_prime)


@pytest.mark.parametrize("budget", [-1.0, math.nan, "1", None, 1j, np.array([1.0])])
def test_a_distance_that_is_no_budget_is_refused_with_its_points(budget):
    with pytest.raises(UsageError, match=r"metric\('a', 'b'\) must be a budget in \[0, inf\] nats, got "):
        MetricDP(lambda x, y: budget).for_pair("a", "b")


@pytest.mark.parametrize("on", ["inputs", "records"])
def test_a_metric_that_is_not_symmetric_is_refused_with_both_budgets(on):
    claim = MetricDP(lambda x, y: 2 if x < y else 0.5, on=on)
    pair = (0.0, 1.0) if on == "inputs" else ([3.0, 0.0], [3.0, 1.0])
    there, back = r"metric\(0\.0, 1\.0\) = 2\.0", r"metric\(1\.0, 0\.0\) = 0\.5"
    with pytest.raises(UsageError, match=f"metric must be symmetric, got {there} but {back}"):
        claim.for_pair(*pair)
    with pytest.raises(UsageError, match=f"metric must be symmetric, got {back} but {there}"):
        claim.for_pair(*pair[::-1])


def test_a_metric_that_raises_in_the_other_order_is_refused_with_its_points():
    with pytest.raises(UsageError, match=r"metric\('b', 'a'\) must be a budget in nats, got KeyError\(\('b', 'a'\)\)"):
        MetricDP(lambda x, y: {("a", "b"): 1.0}[x, y]).for_pair("a", "b")


def test_rounding_error_does_not_break_the_symmetry_of_a_metric():
    claim = MetricDP(lambda x, y: 0.3 if x < y else 0.1 + 0.2)
    assert claim.for_pair(0, 1).value == 0.3
    assert claim.for_pair(1, 0).value == 0.1 + 0.2
    assert MetricDP(lambda x, y: 0.0 if x < y else 1e-17).for_pair(0, 1).value == 0.0


def test_a_metric_that_changes_from_call_to_call_is_refused():
    budgets = iter([1.0, 2.0, 3.0])
    with pytest.raises(UsageError, match=r"metric\(0, 1\) must be the same at every call, got 1\.0 and 3\.0\."):
        MetricDP(lambda x, y: next(budgets)).for_pair(0, 1)


def test_a_metric_claim_must_have_a_metric_on_inputs_or_records():
    with pytest.raises(UsageError, match=r"metric must be a callable \(x, x_prime\) -> budget in nats, got 1\.0\."):
        MetricDP(1.0)
    with pytest.raises(UsageError, match=r"on must be 'inputs' or 'records', got 'rows'\."):
        MetricDP(lambda x, y: 1.0, on="rows")


# --- all claims ---

CLAIMS = [
    PureDP(1.0),
    ApproxDP(0.5, 1e-6),
    GaussianDP(1.3),
    ProfileClaim(lambda epsilon: 0.1),
    RenyiDP(2.5, 0.3),
    ZeroConcentratedDP(0.5),
]


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_a_claim_is_its_family_at_its_own_value(claim):
    assert claim.with_value(claim.value) == claim
    assert type(claim.with_value(2.0)) is type(claim)
    assert claim.with_value(2.0).value == 2.0
    assert claim.for_pair(0, 1) is claim
    assert claim.with_value(math.inf).is_vacuous and not claim.is_vacuous


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_the_budget_is_epsilon_at_the_report_delta(claim):
    assert claim.budget == Budget(claim.epsilon_at(claim.report_delta), claim.report_delta)
    assert claim.report_delta == (claim.delta if isinstance(claim, ApproxDP) else REPORT_DELTA)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize("delta", [-0.1, 1.1, math.nan, "0.1", True])
def test_a_delta_out_of_range_is_refused(claim, delta):
    with pytest.raises(UsageError, match=r"delta must be in \[0, 1\], got "):
        claim.epsilon_at(delta)


@pytest.mark.parametrize("claim", CLAIMS[:4], ids=str)
@pytest.mark.parametrize("epsilon", [-0.1, math.nan])
def test_a_profile_is_asked_at_epsilon_from_zero(claim, epsilon):
    with pytest.raises(UsageError, match=r"epsilon must be in \[0, inf\], got "):
        claim.profile(epsilon)


@pytest.mark.parametrize("claim", CLAIMS[:4], ids=str)
def test_a_hockey_stick_claim_has_lines_and_no_renyi_inequalities(claim):
    assert claim.family == "hockey-stick" and claim.orders == ()
    with pytest.raises(UsageError, match=r"claim must be a family of Renyi inequalities, got .*\(\w+\)\."):
        claim.renyi_epsilons(np.array([1.0]), 2.0)


@pytest.mark.parametrize("claim", CLAIMS[4:], ids=str)
def test_a_renyi_claim_has_no_profile_and_no_lines(claim):
    assert claim.family == "renyi" and claim.orders
    with pytest.raises(UsageError, match=r"claim must have a privacy profile, got .*\(\w+\)\."):
        claim.profile(1.0)
    with pytest.raises(UsageError, match=r"claim must be a family of hockey-stick lines, got .*\(\w+\)\."):
        claim.lines(np.array([1.0]), 0.0)


@pytest.mark.parametrize("build", [PureDP, GaussianDP, ZeroConcentratedDP, lambda value: RenyiDP(2.0, value)])
@pytest.mark.parametrize("value", [-1e-9, math.nan, "1", None, True, [1.0], 10**400])
def test_a_budget_out_of_range_is_refused(build, value):
    with pytest.raises(UsageError, match=r"(epsilon|mu|rho) must be in \[0, inf\], got "):
        build(value)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (0.5, r"function must be a callable from epsilon to delta, got 0\.5\."),
        (lambda epsilon: 1.5, r"function\(0\) must be in \[0, 1\], got 1\.5\."),
        (lambda epsilon: math.nan, r"function\(0\) must be in \[0, 1\], got nan\."),
        (lambda epsilon: "0.1", r"function\(0\) must be in \[0, 1\], got '0\.1'\."),
        (lambda epsilon: min(1.0, epsilon), r"function must not increase, got 0\.01\d* at 0\.01 after 0\.0\."),
        (lambda epsilon: 1.0 / math.exp(2 * epsilon), r"function must be defined in \[0, 700\] nats, got Overflow"),
    ],
)
def test_a_function_that_is_no_profile_is_refused(function, message):
    with pytest.raises(UsageError, match=message):
        ProfileClaim(function)


@pytest.mark.parametrize("claim", [PureDP(2), ApproxDP(np.array(2.0)), GaussianDP(np.int64(2)), RenyiDP(2, 1)])
def test_numbers_of_any_kind_become_floats(claim):
    assert type(claim.value) is float


def test_a_function_may_give_an_array_without_axes():
    """`numpy.where` does. It was refused: "must be in [0, 1], got array(0.1)"."""
    profile = ProfileClaim(lambda epsilon: np.where(epsilon < 1.0, 0.1, 0.05))
    assert (profile.profile(0.5), profile.profile(2.0)) == (0.1, 0.05)
    assert MetricDP(lambda x, y: np.where(x == y, 0.0, 1.0)).for_pair(0.0, 1.0) == PureDP(1.0)
    for wrong in (np.array(True), np.array("1"), np.array(2.0)):
        with pytest.raises(UsageError, match=r"function\(0\) must be in \[0, 1\], got (True|'1'|2\.0)\."):
            ProfileClaim(lambda epsilon, wrong=wrong: wrong)
