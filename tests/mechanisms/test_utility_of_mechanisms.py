"""What every mechanism says of its error: kept on its draws, never empty, and missed by a twin that spends less.

Each sound mechanism and its twin, which draws with a share of the budget and is as private, are audited at confidence
1 - 1e-9: by the union bound a sound one is refuted with probability at most 1e-9 a call, below 1e-7 for the file. The
shares are such that a twin's error is far above its bound at the number of draws.
"""

import itertools

import pytest
from support.reference_mechanisms import EVERY, SUM

import dpaudit
from dpaudit_mechanisms.accuracy import with_budget
from dpaudit_mechanisms.constrained.affine import Affine
from dpaudit_mechanisms.constrained.imaging import Imaged
from dpaudit_mechanisms.faulty.another_budget import SpendsAnotherBudget
from dpaudit_mechanisms.laplace import Laplace
from dpaudit_mechanisms.planar_laplace import PlanarLaplace
from dpaudit_mechanisms.sparse_vector import SparseVector

SURE = 1.0 - 1e-9


@pytest.mark.parametrize("name", EVERY)
def test_a_bound_is_kept_says_something_and_is_missed_by_a_twin_of_less_budget(name):
    mechanism, share, draws = EVERY[name]
    sound = dpaudit.audit_utility(mechanism, samples=draws, confidence=SURE, seed=1)
    assert sound.verdict != "violated" and not [f for f in sound.findings if f.verdict == "error"], sound.worst
    assert not [finding.bound for finding in sound.findings if finding.says_nothing]
    twin = SpendsAnotherBudget(mechanism, share)
    assert dpaudit.audit_utility(twin, samples=draws, confidence=SURE, seed=1).verdict == "violated"


def test_a_sparse_vector_keeps_its_error_bound_and_misses_it_with_less_budget():
    mechanism, counts = SparseVector(1.0, 50.0, most=2), list(range(8))
    found = [
        dpaudit.audit_utility(
            dpaudit.as_sessions(drawn, counts), mechanism.utility_bounds(), samples=3_000, confidence=SURE, seed=1
        )
        for drawn in (mechanism, with_budget(mechanism, 0.3))
    ]
    assert [result.verdict for result in found] == ["not_refuted", "violated"]
    assert not any(finding.says_nothing for result in found for finding in result.findings)
    own = dpaudit.audit_utility(dpaudit.as_sessions(mechanism, counts), samples=3_000, confidence=SURE, seed=1)
    assert own.verdict == "not_refuted"  # a session states the bounds of its mechanism


def test_an_imaged_mechanism_of_other_noise_states_no_bound():
    """The noise of a planar mechanism has the variance 3 scale^2 in each coordinate, and is not independent."""
    assert Imaged(PlanarLaplace(1.0, points=((0.0, 0.0), (1.0, 0.0))), SUM).utility_bounds() == []


@pytest.mark.parametrize("name", EVERY)
def test_another_budget_promises_that_many_times_as_much(name):
    mechanism = EVERY[name][0]
    for factor, pair in itertools.product((0.3, 2.5), list(mechanism.pairs())[:3]):
        claims = (one.claim.for_pair(pair.x, pair.x_prime) for one in (mechanism, with_budget(mechanism, factor)))
        before, after = (claim.value for claim in claims)
        assert after == pytest.approx(factor * before, rel=1e-6)


def test_a_mechanism_that_is_imaged_onto_a_point_states_no_bound():
    """Of 0, which rounding of 1e-31 misses: it was called violated."""
    point = Affine([[1.0, 2.0], [2.0, 0.0]], [7.0, 6.0])
    assert Imaged(Laplace(1.0, (1.0, 1.0)), point).utility_bounds() == []
