"""Composition: products of the worst finite pairs, chains by enumeration, and refusals of what has no rule."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import ApproxDP, GaussianDP, MetricDP, ProfileClaim, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.privacy.composition import compose, group
from dpaudit.privacy.metrics import AbsoluteMetric, DiscreteMetric

bounded = settings(max_examples=50, deadline=None, derandomize=True)


def randomised_response(epsilon):
    keep = 1.0 / (1.0 + math.exp(-epsilon))
    return np.array([keep, 1.0 - keep]), np.array([1.0 - keep, keep])


def product(laws):
    joint = np.ones(1)
    for law in laws:
        joint = np.outer(joint, law).ravel()
    return joint


# --- compose ---


@bounded
@given(st.lists(st.floats(0.0, 1.5), min_size=2, max_size=4))
def test_pure_composition_is_tight_for_randomised_response(epsilons):
    composed = compose([PureDP(epsilon) for epsilon in epsilons])
    p, q = (product(side) for side in zip(*map(randomised_response, epsilons), strict=True))
    # every ratio is below e^epsilon, and the largest reaches it; observed error: 1.8e-15
    assert np.max(np.log(p / q)) == pytest.approx(composed.epsilon, abs=1e-12)
    assert isinstance(composed, PureDP)


def test_pure_and_approximate_claims_compose_by_sums():
    assert compose([PureDP(0.5), ApproxDP(1.0, 0.25), ApproxDP(0.0, 0.5)]) == ApproxDP(1.5, 0.75)
    assert compose([ApproxDP(1.0, 0.7), ApproxDP(1.0, 0.7)]).is_vacuous
    assert compose([PureDP(0.1)] * 10) == PureDP(1.0)  # fsum: ten tenths are one


def test_zcdp_and_renyi_claims_compose_by_sums():
    assert compose([ZeroConcentratedDP(0.25), ZeroConcentratedDP(0.5)]) == ZeroConcentratedDP(0.75)
    assert compose([RenyiDP(3.0, 0.25), RenyiDP(3.0, 0.5)]) == RenyiDP(3.0, 0.75)


def test_gaussian_composition_is_the_distance_of_the_mean_vectors():
    # N((3, 4), I) against N(0, I): the likelihood ratio test sees only the distance, 5
    assert compose([GaussianDP(3.0), GaussianDP(4.0)]) == GaussianDP(5.0)
    assert compose([GaussianDP(math.inf), GaussianDP(1.0)]).is_vacuous


def test_metric_claims_compose_pair_by_pair():
    composed = compose([MetricDP(AbsoluteMetric(0.5)), MetricDP(DiscreteMetric(1.0)), MetricDP(lambda x, y: 0.25)])
    assert composed.for_pair(1.0, 4.0) == PureDP(2.75)
    on_records = compose([MetricDP(AbsoluteMetric(0.5), on="records"), MetricDP(DiscreteMetric(1.0), on="records")])
    assert on_records.for_pair([0, 0], [2, 0]) == PureDP(2.0)


def test_one_claim_composes_to_itself():
    for claim in (ProfileClaim(lambda epsilon: 0.1), MetricDP(DiscreteMetric(1.0)), RenyiDP(2.0, 1.0)):
        assert compose([claim]) is claim


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ([], r"claims must be at least one, got none\."),
        ([PureDP(1.0), 2.0], r"claims must be claims, got 2\.0 at position 1\."),
        (
            [PureDP(1.0), ZeroConcentratedDP(1.0)],
            r"one composition rule, got PureDP and ZeroConcentratedDP\. State all",
        ),
        (
            [PureDP(1.0), MetricDP(DiscreteMetric(1.0))],
            r"got MetricDP and PureDP\. State .* a MetricDP with a DiscreteM",
        ),
        ([ProfileClaim(lambda epsilon: 0.1)] * 2, r"one composition rule, got ProfileClaim\."),
        ([RenyiDP(2.0, 1.0), RenyiDP(3.0, 1.0)], r"of one Renyi order, got 2 and 3\. Each holds at order 2 too\."),
        (
            [MetricDP(DiscreteMetric(1.0)), MetricDP(DiscreteMetric(1.0), on="records")],
            r"claims must have their metrics all on inputs or all on records, got both\.",
        ),
    ],
)
def test_claims_without_a_rule_are_refused(claims, message):
    with pytest.raises(UsageError, match=message):
        compose(claims)


def test_what_is_no_list_of_claims_is_refused():
    with pytest.raises(UsageError, match=r"claims must be a list of claims, got PureDP"):
        compose(PureDP(1.0))


# --- group ---


@pytest.mark.parametrize(
    "claim", [PureDP(1.0), ApproxDP(1.0, 0.1), ZeroConcentratedDP(0.0), RenyiDP(4.0, 1.0)], ids=str
)
def test_a_chain_of_more_steps_than_doubles_count_is_refused_and_a_long_one_promises_nothing(claim):
    with pytest.raises(UsageError, match="k must be a whole number of at least 1, got a number above the largest"):
        group(claim, 10**400)
    if not isinstance(claim, RenyiDP):
        assert group(claim, 2**1023).value == claim.value * 2.0**1023


@bounded
@given(epsilon=st.floats(0.0, 3.0), delta=st.floats(0.0, 0.05), k=st.integers(1, 8))
def test_the_group_delta_is_the_sum_over_the_chain(epsilon, delta, k):
    claim = group(ApproxDP(epsilon, delta), k)
    assert claim.epsilon == pytest.approx(k * epsilon)
    expected = min(1.0, math.fsum(delta * math.exp(i * epsilon) for i in range(k)))
    assert claim.delta == pytest.approx(expected, rel=1e-12, abs=1e-300)


def test_the_group_delta_neither_overflows_nor_vanishes_at_the_ends():
    assert group(ApproxDP(500.0, 1e-6), 9) == ApproxDP(4500.0, 1.0)
    assert group(ApproxDP(400.0, 1e-300), 2).delta == pytest.approx(1e-300 * math.exp(400.0), rel=1e-12)
    assert group(ApproxDP(1e-300, 0.01), 5).delta == pytest.approx(0.05, rel=1e-12)
    assert group(ApproxDP(math.inf, 0.01), 2).delta == 1.0
    assert group(ApproxDP(1.0, 0.0), 3) == ApproxDP(3.0, 0.0)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_group_privacy_of_gaussian_noise_is_exact(k):
    # shifting the mean of N(0, 1) k times by mu shifts it by k mu; its order-r divergence is r (k mu)^2 / 2
    mu = 0.3
    assert group(GaussianDP(mu), k).mu == pytest.approx(k * mu)
    assert group(ZeroConcentratedDP(mu**2 / 2), k).rho == pytest.approx((k * mu) ** 2 / 2)
    assert group(GaussianDP(mu), k).profile(0.5) == pytest.approx(GaussianDP(k * mu).profile(0.5))


@pytest.mark.parametrize(("k", "doublings"), [(2, 1), (4, 2)])
def test_renyi_group_privacy_holds_for_gaussian_noise(k, doublings):
    mu, order = 0.4, 16.0
    claim = group(RenyiDP(order, order * mu**2 / 2), k)
    assert claim.order == order / k
    assert claim.epsilon == pytest.approx(3.0**doublings * order * mu**2 / 2)
    assert claim.epsilon >= claim.order * (k * mu) ** 2 / 2  # the exact divergence of the k-fold shift


def test_a_metric_on_inputs_is_scaled_and_on_records_adds_up_already():
    assert group(MetricDP(AbsoluteMetric(0.5)), 3).for_pair(0, 1) == PureDP(1.5)
    on_records = MetricDP(DiscreteMetric(0.5), on="records")
    assert group(on_records, 3) is on_records
    assert on_records.for_pair("abcd", "xyzd") == PureDP(1.5)


def test_a_group_of_one_is_the_claim_itself():
    claim = RenyiDP(1.5, 0.2)
    assert group(claim, 1) is claim
    assert group(claim, np.int64(1)) is claim


@pytest.mark.parametrize("k", [0, -1, 1.5, "2", True, math.nan])
def test_a_group_has_a_whole_number_of_steps(k):
    with pytest.raises(UsageError, match=r"k must be a whole number of at least 1, got "):
        group(PureDP(1.0), k)


@pytest.mark.parametrize(("order", "k"), [(8.0, 3), (7.9, 4), (2.0, 2)])
def test_a_renyi_group_is_a_power_of_two_within_half_the_order(order, k):
    with pytest.raises(UsageError, match=rf"k must be a power of 2, at most half the Renyi order .*, got {k}\."):
        group(RenyiDP(order, 0.1), k)
