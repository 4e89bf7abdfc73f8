"""The strategies give what they say: stochastic rows, and claims that are kept exactly."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from dpaudit import strategies
from dpaudit.errors import UsageError
from dpaudit.exact import (
    FiniteMechanism,
    hockey_stick_divergence,
    keeps,
    privacy_losses,
    renyi_divergence,
    zcdp_rho,
)
from dpaudit.privacy.claims import (
    ApproxDP,
    GaussianDP,
    MetricDP,
    ProfileClaim,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)

FIXED = settings(derandomize=True, deadline=None, max_examples=50, database=None)
NO_LIMIT = settings(derandomize=True, deadline=None, max_examples=2_000, database=None)


# ---- matrices --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "holds"),
    [
        ("zeros", lambda rows: np.any(rows == 0.0)),
        ("extremes", lambda rows: np.any((rows > 0.0) & (rows < 1e-9))),
        ("ties", lambda rows: rows[0, 0] == rows[1, 0] > 0.0),
        ("equal rows", lambda rows: np.array_equal(rows[0], rows[1])),
    ],
)
def test_matrices_of_each_sort_are_found(wanted, holds):
    assert holds(find(strategies.stochastic_matrices(2, 3), holds, settings=NO_LIMIT))


@given(rows=strategies.stochastic_matrices(2, 3, zeros=False))
@FIXED
def test_matrices_without_zeros_have_none(rows):
    assert np.all(rows > 0.0)


# ---- mechanisms that keep a claim ------------------------------------------------------------------------------------

SCALAR = [PureDP(1.0), ApproxDP(0.5, 0.1), ZeroConcentratedDP(0.5), RenyiDP(2.0, 0.4), GaussianDP(1.0)]


def used(p, q, claim):
    """The share of the claim that a pair uses, by the quantities of the exact room; 1 on the claim."""
    ways = ((p, q), (q, p))
    if isinstance(claim, PureDP):
        return privacy_losses([p, q]).max() / claim.value
    if isinstance(claim, ApproxDP):
        return max(hockey_stick_divergence(*way, claim.epsilon) for way in ways) / claim.delta
    if isinstance(claim, RenyiDP):
        return max(renyi_divergence(*way, claim.order) for way in ways) / claim.value
    if isinstance(claim, ZeroConcentratedDP):
        return zcdp_rho(p, q) / claim.value
    normal = np.array([GaussianDP(claim.mu).profile(e) for e in np.linspace(0.0, 5.0, 200)])
    own = np.array([max(hockey_stick_divergence(*way, e) for way in ways) for e in np.linspace(0.0, 5.0, 200)])
    return float((own[normal > 1e-9] / normal[normal > 1e-9]).max())


@pytest.mark.parametrize("claim", SCALAR, ids=str)
def test_tight_mechanisms_sit_on_their_claim(claim):
    @given(mechanism=strategies.finite_mechanisms(claim, 2, (2, 4), tight=True))
    @settings(FIXED, max_examples=8)
    def check(mechanism):
        assert isinstance(mechanism, FiniteMechanism) and mechanism.claim == claim
        assert keeps(mechanism.matrix, claim)
        share = used(*mechanism.matrix, claim)
        # Normal trade-offs touch at a corner, which lies between the 200 epsilons that are looked at.
        assert share <= 1.0 + 1e-9 and share > (0.95 if isinstance(claim, GaussianDP) else 1.0 - 1e-5)

    check()


@given(mechanism=strategies.finite_mechanisms(strategies.claims(("pure", "approximate", "renyi")), (2, 4), (2, 5)))
@FIXED
def test_finite_mechanisms_keep_their_claim_on_every_pair(mechanism):
    for pair in mechanism.pairs():
        assert used(mechanism.matrix[pair.x], mechanism.matrix[pair.x_prime], mechanism.claim) <= 1.0 + 1e-12


@given(data=st.data())
@FIXED
def test_finite_mechanisms_keep_metric_claims_pair_by_pair(data):
    metric = data.draw(strategies.finite_metrics(3))
    mechanism = data.draw(strategies.finite_mechanisms(MetricDP(metric), 3, 4, tight=True))
    losses = privacy_losses(mechanism.matrix)
    budgets = metric.matrix(range(3))
    assert np.all(losses <= budgets + 1e-12)
    assert np.max(losses[~np.eye(3, dtype=bool)] / budgets[~np.eye(3, dtype=bool)]) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (PureDP(math.log(3.0) + 1e-12), True),
        (PureDP(1.0), False),
        (ApproxDP(0.0, 0.5), True),
        (ApproxDP(0.0, 0.49), False),
        (ApproxDP(800.0, 0.0), True),
        (RenyiDP(2.0, math.log(7.0 / 3.0) + 1e-12), True),
        (RenyiDP(2.0, 0.84), False),
        (ZeroConcentratedDP(0.5495), True),
        (ZeroConcentratedDP(0.549), False),
        (GaussianDP(1.349), True),  # 2 * 0.6745: N(0, 1) against N(mu, 1) at the median error 1/4
        (GaussianDP(1.348), False),
    ],
    ids=str,
)
def test_whether_randomised_response_keeps_a_claim(claim, expected):
    assert keeps([[0.75, 0.25], [0.25, 0.75]], claim) is expected


def test_a_profile_and_a_missing_row_are_refused():
    with pytest.raises(UsageError, match="claim must be of a family that finite mechanisms can be held against"):
        keeps(np.eye(2), ProfileClaim(lambda epsilon: 0.1))
    with pytest.raises(UsageError, match=r"pairs must be row numbers in \[0, 2\), got \(0, 2\)"):
        keeps(np.eye(2), PureDP(1.0), [(0, 2)])


def test_an_outcome_of_one_input_alone_breaks_gaussian_claims_however_rare():
    assert not keeps([[1e-9, 1.0 - 1e-9, 0.0], [0.0, 1.0 - 1e-9, 1e-9]], GaussianDP(30.0))


# ---- finite mechanisms as subjects -----------------------------------------------------------------------------------


def test_a_finite_mechanism_is_what_its_matrix_says():
    mechanism = FiniteMechanism([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]])
    assert mechanism.outcomes.tolist() == [0, 1, 2] and mechanism.privacy_loss(0, 1) == math.inf
    assert np.exp(mechanism.log_density(1, [0, 1, 2, 3, 0.5])).tolist() == [0.0, 0.25, 0.75, 0.0, 0.0]
    counts = np.bincount(mechanism.sample(1, 10_000, np.random.default_rng(1)), minlength=3)
    # 5 standard deviations of a binomial count, 43: a right sampler fails with probability 1e-6
    assert counts[0] == 0 and abs(counts[1] - 2_500) < 5 * 43.4
    assert FiniteMechanism([[1.0]]).pairs() == [] and len(FiniteMechanism(np.eye(3)).pairs()) == 3
    with pytest.raises(ValueError, match="read-only"):
        mechanism.matrix[0, 0] = 1.0


def test_without_hypothesis_there_is_a_clear_message():
    code = """
import sys
sys.modules["hypothesis"] = None  # as if it were not installed
from dpaudit import UsageError, strategies
try:
    strategies.stochastic_matrices()
except UsageError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("hypothesis must be installed for dpaudit.strategies, got none. Try: pip install")
