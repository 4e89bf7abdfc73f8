"""The additive Laplace mechanism and its faulty twins."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampler_checks import DRAWS, is_drawn_from
from scipy import stats
from support.refusals import refusals

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import PureDP
from dpaudit_mechanisms.faulty.laplace import LaplaceForgetsACoordinate
from dpaudit_mechanisms.laplace import Laplace

EPSILONS = st.floats(0.01, 20.0)
SENSITIVITIES = st.lists(st.floats(0.01, 100.0), min_size=1, max_size=5).map(tuple)


@pytest.mark.claim("CD-D2.5", "DX-D4")
def test_the_vector_sampler_draws_independent_noise_of_one_scale():
    mechanism = Laplace(epsilon=1.5, coordinate_sensitivity=(1.0, 2.0))  # scale 2
    samples = mechanism.sample([5.0, -5.0], DRAWS, np.random.default_rng(20_261_102))
    assert samples.shape == (DRAWS, 2)
    noise = stats.laplace(scale=2.0)
    assert is_drawn_from(samples[:, 0] - 5.0, noise.cdf)  # false alarm rate 1e-10 each
    assert is_drawn_from(samples[:, 1] + 5.0, noise.cdf)
    # Under independence the first value's quantile, moved by that of the second (mod 1), is again uniform.
    moved = (noise.cdf(samples[:, 0] - 5.0) + noise.cdf(samples[:, 1] + 5.0)) % 1.0
    assert is_drawn_from(moved, stats.uniform.cdf)
    same = (2.0 * noise.cdf(samples[:, 0] - 5.0)) % 1.0 / 2.0  # control: one number used twice, moved to [0, 1/2]
    assert not is_drawn_from(same, stats.uniform.cdf)


def test_the_density_is_scipys_and_a_sum_over_coordinates():
    outputs = np.array([[0.0, 1.0], [2.0, -3.0], [np.nan, 0.0], [np.inf, 0.0]])
    expected = stats.laplace(loc=1.0, scale=3.0).logpdf(outputs[:2]).sum(axis=1)
    logs = Laplace(1.0, (1.0, 2.0)).log_density([1.0, 1.0], outputs)
    assert logs[:2] == pytest.approx(expected, rel=1e-14)
    assert (logs[2:] == -np.inf).all()


@pytest.mark.claim("CD-P2.7.1", "DX-C3")
@given(EPSILONS, SENSITIVITIES)
def test_the_loss_equals_the_claim_on_its_pairs(epsilon, sensitivities):
    for given_as in (sensitivities, sensitivities[0]):
        mechanism = Laplace(epsilon, given_as)
        assert mechanism.claim == PureDP(epsilon)
        for pair in mechanism.pairs():
            assert mechanism.privacy_loss(pair.x, pair.x_prime) == pytest.approx(epsilon, rel=1e-14)


test_what_makes_no_sense_is_refused = refusals(
    (lambda: Laplace(0.0), "epsilon must"),
    (lambda: Laplace(math.nan), "epsilon must"),
    (lambda: Laplace(1.0, -1.0), "coordinate_sensitivity must"),
    (lambda: Laplace(1.0, (1.0, 0.0)), r"coordinate_sensitivity\[1\] must"),
    (lambda: Laplace(1.0).sample("a", 1, np.random.default_rng(1)), "data must"),
    (lambda: Laplace(1.0).log_density(0.0, 1.0), "outputs must"),
    (lambda: Laplace(1.0, (1.0,)).privacy_loss([1.0, 2.0], [0.0]), "data must"),
    (lambda: LaplaceForgetsACoordinate(1.0, 2.0), r"must have at least two coordinates, got 2\.0\."),
)


@pytest.mark.parametrize(("epsilon", "reach"), [(5.2, 5e-324), (1e300, 1e-300), (5e-324, 3.0)])
def test_noise_whose_scale_is_no_positive_double_is_refused(epsilon, reach):
    """A scale of 0 drew no noise at all, under a claim of 5.2."""
    with pytest.raises(UsageError, match="l1_sensitivity / epsilon must be in"):
        Laplace(epsilon, reach)


def test_a_sensitivity_above_the_largest_double_is_refused():
    with pytest.raises(UsageError, match="coordinate_sensitivity must be an array of numbers, got one above"):
        Laplace(1.0, (1.0, 10**400))
