"""What follows for the claim, family by family: closed forms, exact checks on finite mechanisms, refusals."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.errors import UsageError
from dpaudit.exact import privacy_loss, privacy_profile
from dpaudit.laws import (
    adaptive_composition,
    average_claim,
    conditioned_claim,
    disjoint_union,
    group_claim,
    mixture,
    parallel_composition,
    weakest_claim,
)
from dpaudit.laws.claims import composed_claim
from dpaudit.privacy.claims import (
    ApproxDP,
    GaussianDP,
    MetricDP,
    ProfileClaim,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from dpaudit.privacy.metrics import AbsoluteMetric, EuclideanMetric, HammingMetric

FIXED = settings(derandomize=True, deadline=None, max_examples=40, database=None)
EPSILONS = np.concatenate([[0.0], np.geomspace(0.01, 8.0, 40)])
EVENT = np.array([1.0, 1.0, 0.0])


def flat(delta):
    return ProfileClaim(lambda epsilon: delta, name=f"flat {delta}")


def within_profile(p, q, claim):
    """Whether a pair keeps a hockey-stick claim at 41 epsilons; 1e-12 for the rounding of the profiles."""
    return all(privacy_profile(p, q, epsilon) <= claim.profile(epsilon) + 1e-12 for epsilon in EPSILONS.tolist())


def in_the_event(rows):
    """The rows under the condition that the outcome is one of the first two."""
    return rows * EVENT / (rows @ EVENT)[:, None]


# ---- weakest ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ([PureDP(1.0), PureDP(2.0)], PureDP(2.0)),
        ([PureDP(2.0), ApproxDP(1.0, 0.1)], ApproxDP(2.0, 0.1)),
        ([ApproxDP(1.0, 0.2), ApproxDP(3.0, 0.1)], ApproxDP(3.0, 0.2)),
        ([ZeroConcentratedDP(0.1), ZeroConcentratedDP(0.3)], ZeroConcentratedDP(0.3)),
        ([GaussianDP(2.0), GaussianDP(0.5)], GaussianDP(2.0)),
        ([RenyiDP(2.0, 0.5), RenyiDP(2.0, 0.1)], RenyiDP(2.0, 0.5)),
        ([GaussianDP(2.0)], GaussianDP(2.0)),
    ],
)
def test_the_weakest_claim_has_the_largest_of_each_parameter(claims, expected):
    assert weakest_claim(claims) == expected == weakest_claim(claims[::-1])


def test_the_weakest_of_metric_claims_is_taken_pair_by_pair():
    near, far = MetricDP(AbsoluteMetric(2.0)), PureDP(1.0)
    claim = weakest_claim([near, far])
    assert claim.for_pair(0.0, 0.25) == PureDP(1.0) and claim.for_pair(0.0, 3.0) == PureDP(6.0)
    records = MetricDP(HammingMetric(0.5), on="records")
    assert weakest_claim([records, PureDP(0.7)]).for_pair([(0, 0)], [(1, 1)]) == PureDP(1.0)


def test_the_weakest_of_profiles_is_their_larger_delta():
    assert weakest_claim([flat(0.1), flat(0.3)]).profile(2.0) == 0.3


# ---- averages --------------------------------------------------------------------------------------------------------


def test_averages_of_each_family():
    half = [0.5, 0.5]
    assert average_claim([PureDP(1.0), PureDP(2.0)], half) == PureDP(2.0)
    assert average_claim([ApproxDP(1.0, 0.2), PureDP(2.0)], [0.25, 0.75]) == ApproxDP(2.0, 0.05)
    renyi = average_claim([RenyiDP(3.0, 1.0), RenyiDP(3.0, 0.0)], half)
    assert renyi.order == 3.0 and renyi.epsilon == pytest.approx(math.log(0.5 * math.e**2 + 0.5) / 2.0)
    gaussian = average_claim([GaussianDP(1.0), GaussianDP(2.0)], half)
    assert gaussian.profile(0.5) == pytest.approx(0.5 * (GaussianDP(1.0).profile(0.5) + GaussianDP(2.0).profile(0.5)))
    assert average_claim([flat(0.1), PureDP(1.0)], half).profile(3.0) == pytest.approx(0.05)
    assert average_claim([ZeroConcentratedDP(1.0)] * 2, half) == ZeroConcentratedDP(1.0)
    metric = average_claim([MetricDP(AbsoluteMetric(1.0)), MetricDP(AbsoluteMetric(2.0))], half)
    assert metric.for_pair(0.0, 1.0) == PureDP(2.0)


def test_different_rhos_and_families_have_no_average():
    with pytest.raises(UsageError, match=r"can be averaged, got rho=2 .* use mixture"):
        average_claim([ZeroConcentratedDP(1.0), ZeroConcentratedDP(2.0)], [0.5, 0.5])
    with pytest.raises(UsageError, match="claims must be of one family"):
        average_claim([RenyiDP(2.0, 1.0), PureDP(1.0)], [0.5, 0.5])
    with pytest.raises(UsageError, match="weights must be 2 positive numbers that sum to 1"):
        average_claim([PureDP(1.0)] * 2, [0.5, 0.6])


# ---- conditioning ----------------------------------------------------------------------------------------------------


def test_conditioned_claims_of_each_family():
    assert conditioned_claim(PureDP(1.5)) == PureDP(3.0)
    assert conditioned_claim(PureDP(math.inf)) == PureDP(math.inf)
    assert conditioned_claim(PureDP(1.0), mass=1.0) == PureDP(1.0)
    assert conditioned_claim(PureDP(1.0), mass=1e-9).value == pytest.approx(2.0)
    assert conditioned_claim(PureDP(5.0), mass=0.5).value <= 5.0 + math.log(2.0)
    assert conditioned_claim(MetricDP(EuclideanMetric(0.5))).for_pair([0.0], [1.0]) == PureDP(1.0)
    assert conditioned_claim(ApproxDP(1.0, 0.1), mass=0.1) == ApproxDP(1.0, 1.0)
    assert conditioned_claim(ApproxDP(1.0, 0.0), mass=0.3).epsilon == conditioned_claim(PureDP(1.0), mass=0.3).epsilon
    assert conditioned_claim(RenyiDP(2.0, 0.5), mass=0.5) == RenyiDP(2.0, 0.5 + 2.0 * math.log(2.0))
    assert conditioned_claim(ZeroConcentratedDP(0.5), mass=1.0).rho == pytest.approx(0.5)
    assert conditioned_claim(GaussianDP(1.0), mass=0.5).profile(0.0) == 1.0


def test_a_conditioned_approximate_claim_is_that_of_its_extreme_pair():
    # delta / c is needed at any epsilon: an outcome of one input alone. Beside it stands epsilon + log R.
    delta, mass = 0.05, 0.4
    rows = np.array([[delta, mass - delta, 1.0 - mass], [0.0, mass, 1.0 - mass]])
    kept = conditioned_claim(ApproxDP(0.5, delta), mass)
    derived = in_the_event(rows)
    assert kept.delta == delta / mass == pytest.approx(privacy_profile(*derived, kept.epsilon), rel=1e-12)
    ratio = min(math.exp(0.5) + delta / mass, math.exp(-0.5) + (1.0 - math.exp(-0.5) * (1.0 - delta)) / mass)
    assert kept.epsilon == pytest.approx(0.5 + math.log(ratio), rel=1e-12)


def test_a_conditioned_profile_covers_the_extreme_pairs_and_no_less_would():
    # An outcome of one input alone, at every epsilon; and a pure pair whose loss is doubled, nearly, by the condition.
    delta, mass = 0.05, 0.4
    alone = in_the_event(np.array([[delta, mass - delta, 1.0 - mass], [0.0, mass, 1.0 - mass]]))
    kept = conditioned_claim(flat(delta), mass)
    assert kept.profile(3.0) == pytest.approx(privacy_profile(*alone, 3.0), rel=1e-12) == delta / mass
    doubled = np.array([[0.1 * math.e, 0.2, 0.7 - 0.1 * (math.e - 1.0)], [0.1, 0.2 * math.e, 0.0]])
    doubled[:, 2] = 1.0 - doubled[:, :2].sum(axis=1)
    assert privacy_loss(*doubled) == pytest.approx(1.0, abs=1e-12)
    mass = float((doubled @ EVENT).min())
    kept, derived = conditioned_claim(ProfileClaim(PureDP(1.0).profile, name="pure"), mass), in_the_event(doubled)
    assert within_profile(*derived, kept)
    assert privacy_profile(*derived, 1.05) > 0.01 > 0.0 == PureDP(1.0).profile(1.05)  # not what held without it


def test_a_conditioned_rho_is_the_least_of_its_renyi_bounds():
    # min over s >= r of (s rho + s / (s - 1) log(1/c)) / r, for every order r > 1.
    for rho, mass in itertools.product((0.01, 0.5, 3.0), (0.9, 0.5, 0.01)):
        claimed = conditioned_claim(ZeroConcentratedDP(rho), mass).rho
        orders = 1.0 + np.geomspace(1e-6, 1e4, 20_001)
        bounds = orders * rho - orders / (orders - 1.0) * math.log(mass)
        least = np.minimum.accumulate(bounds[::-1])[::-1]  # at the order itself or any larger one
        assert (least / orders).max() == pytest.approx(claimed, rel=2e-3)  # the grid's steps are of 1e-3


# ---- groups ----------------------------------------------------------------------------------------------------------


def test_groups_of_profiles_split_epsilon_over_the_steps():
    profile = ProfileClaim(PureDP(1.0).profile, name="pure")
    two = group_claim(profile, 2)
    assert group_claim(profile, 1) is profile
    assert two.profile(0.0) == pytest.approx(2.0 * profile.profile(0.0))
    assert two.profile(2.1) == 0.0  # the grid has a point between 2 and 2.1
    assert group_claim(flat(0.01), 3).profile(0.0) == pytest.approx(0.03)
    with pytest.raises(UsageError, match="k must be a whole number"):
        group_claim(profile, 0)


@given(mu=st.sampled_from([0.2, 1.0]), steps=st.sampled_from([2, 3]), epsilon=st.floats(0.0, 6.0))
@FIXED
def test_the_group_profile_covers_that_of_normal_noise(mu, steps, epsilon):
    profile = ProfileClaim(GaussianDP(mu).profile, name="normal")
    assert group_claim(profile, steps).profile(epsilon) >= GaussianDP(steps * mu).profile(epsilon) - 1e-12


# ---- composition -----------------------------------------------------------------------------------------------------


def test_metrics_on_inputs_and_on_records_add_up_pair_by_pair():
    claim = composed_claim([MetricDP(EuclideanMetric(0.5)), MetricDP(AbsoluteMetric(2.0), on="records")])
    assert claim.for_pair([0.0, 0.0], [3.0, 4.0]) == PureDP(0.5 * 5.0 + 2.0 * 7.0)


def test_what_may_follow_costs_its_largest_claim_wherever_it_stands():
    def noisy(data, size, rng):
        return rng.normal(size=size)

    for others in ([PureDP(0.5), PureDP(3.0)], [PureDP(3.0), PureDP(0.5)]):
        assert adaptive_composition(noisy, PureDP(1.0), [noisy] * 2, others, np.sign)[1] == PureDP(4.0)
        for law in (mixture, disjoint_union):
            assert law([noisy] * 2, others, lambda data: (0.5, 0.5), choice_claim=PureDP(1.0))[1] == PureDP(4.0)
            assert law([noisy] * 2, others, [0.5, 0.5])[1] == PureDP(3.0)


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ([PureDP(1.0), PureDP(3.0), PureDP(2.0)], PureDP(5.0)),
        ([ApproxDP(1.0, 0.02), ApproxDP(3.0, 0.0), ApproxDP(2.0, 0.01)], ApproxDP(5.0, 0.03)),
        ([ZeroConcentratedDP(0.1), ZeroConcentratedDP(0.4), ZeroConcentratedDP(0.2)], ZeroConcentratedDP(0.6)),
        ([RenyiDP(2.0, 0.1), RenyiDP(2.0, 0.4), RenyiDP(2.0, 0.2)], RenyiDP(2.0, 0.6)),
        ([GaussianDP(3.0), GaussianDP(1.0), GaussianDP(4.0)], GaussianDP(math.hypot(4.0, 4.0))),
    ],
    ids=str,
)
def test_pieces_that_change_cost_the_largest_claims(claims, expected):
    # Two pieces of three change: any two of the claims compose to no more than these.
    parts = [lambda data, size, rng: rng.normal(size=size)] * 3
    for order in (claims, claims[::-1], claims[1:] + claims[:1]):
        claim = parallel_composition(parts, order, lambda data: data, changed_pieces=2)[1]
        assert type(claim) is type(expected) and claim.value == pytest.approx(expected.value, rel=1e-12)
        assert getattr(claim, "delta", 0.0) == pytest.approx(getattr(expected, "delta", 0.0), rel=1e-12)
        one = parallel_composition(parts, order, lambda data: data)[1]
        assert one.value == max(part.value for part in claims)
