"""Conditioning on thousands of random finite mechanisms: on an event, a disjoint union, linear equalities.

As in `test_finite_laws`: both sides are computed, faults are planted, and the bounds are reached.
"""

import itertools
import math

import exact_laws
import numpy as np
import pytest
from finite_batches import EACH, KINDS, MEASURES, drawn

from dpaudit import strategies

# ---- conditioning ----------------------------------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize("measure", [*MEASURES, {"uses_mass": False}])
def test_conditioning_keeps_the_enlarged_claim(kind, measure):
    rows, rng = drawn(27, kind)
    if kind in ("zeros", "ties"):
        rows = 0.9 * rows + 0.025  # every event has a positive probability
    chances = rng.choice([0.0, 0.3, 1.0], size=(EACH, 4))
    chances[chances.sum(axis=1) == 0.0, 0] = 1.0
    assert exact_laws.check_conditioning(rows, chances, **measure).holds.all()


def test_conditioning_reaches_twice_the_budget():
    # Outside C lies the mass that x has and x' has not; inside, one rare outcome goes the other way.
    for epsilon in (0.1, 1.0, 3.0):
        small = 1e-9
        q = np.array([small, math.exp(-epsilon) * 0.01, 0.0])
        p = np.array([small * math.exp(epsilon), 0.01 * math.exp(-2 * epsilon), 0.0])
        rows = np.stack([p, q])
        rows[:, 2] = 1.0 - rows.sum(axis=1)
        loss = exact_laws.losses(rows)
        assert max(loss[0, 1], loss[1, 0]) <= epsilon + 1e-12
        check = exact_laws.check_conditioning(rows, [1.0, 1.0, 0.0], uses_mass=False)
        assert check.found.max() > (2.0 - 1e-3) * epsilon
        assert check.promised.max() == pytest.approx(2.0 * loss.max(), rel=1e-15) and check.holds


@pytest.mark.parametrize(("epsilon", "mass"), [(1.0, 0.3), (0.5, 0.9), (3.0, 0.05)])
def test_conditioning_with_a_mass_is_tight_for_losses(epsilon, mass):
    # The extreme pair of the proof: p has mass c in C, and q as much as the claim allows; a rare outcome of C goes the
    # other way. Both bounds of Q(C) are met: by the outcome outside of C, or by the one inside.
    rare = 1e-9
    q_mass = min(math.exp(epsilon) * mass, 1.0 - math.exp(-epsilon) * (1.0 - mass))
    p = np.array([math.exp(epsilon) * rare, mass - math.exp(epsilon) * rare, 1.0 - mass])
    q = np.array([rare, q_mass - math.exp(2.0 * epsilon) * rare, 1.0 - q_mass + (math.exp(2.0 * epsilon) - 1.0) * rare])
    rows = np.stack([p, q])
    assert exact_laws.losses(rows).max() == pytest.approx(epsilon, abs=1e-5)
    check = exact_laws.check_conditioning(rows, [1.0, 1.0, 0.0])
    assert check.holds and check.used > 0.999


def test_conditioning_divides_delta_by_the_mass_and_no_less():
    # An outcome that only one input has, at any epsilon.
    for delta, mass in ((1e-3, 0.5), (0.05, 0.1)):
        rows = np.array([[delta, mass - delta, 1.0 - mass], [0.0, mass, 1.0 - mass]])
        for epsilon in (0.0, 1.0, 5.0):
            check = exact_laws.check_conditioning(rows, [1.0, 1.0, 0.0], epsilon=epsilon)
            assert check.holds and check.used == pytest.approx(1.0, abs=1e-9)


def test_no_approximate_claim_survives_conditioning_without_a_mass():
    for delta in (0.1, 1e-3, 1e-9):
        rows = np.array([[delta, 0.0, 1.0 - delta], [0.0, delta, 1.0 - delta]])
        assert exact_laws.deltas(rows, 0.0).max() <= delta * (1 + 1e-15)
        assert exact_laws.deltas(exact_laws.conditioned(rows, [1.0, 1.0, 0.0]), 5.0).max() == 1.0


def test_zcdp_given_a_mass_follows_from_its_renyi_bounds():
    # (sqrt(rho) + sqrt(log(1/c)))^2 bounds min over s >= r of (s rho + s / (s - 1) log(1/c)) / r for every order r > 1.
    for rho, mass in itertools.product((0.01, 0.5, 3.0), (0.9, 0.5, 0.01)):
        claimed = (math.sqrt(rho) + math.sqrt(-math.log(mass))) ** 2
        orders = 1.0 + np.geomspace(1e-6, 1e4, 20_001)
        bounds = orders * rho - orders / (orders - 1.0) * math.log(mass)
        least = np.minimum.accumulate(bounds[::-1])[::-1]  # at the order itself or any larger one
        assert (least / orders).max() <= claimed * (1.0 + 1e-6)  # the grid's steps, 1e-3, enter squared


# ---- disjoint union --------------------------------------------------------------------------------------------------


def unions(seed, kind):
    rows, _ = drawn(seed, kind, outcomes=5)
    return 0.9 * rows + 0.02, np.array([1, 1, 0, 0, 0]), np.array([0, 0, 1, 1, 0])


@KINDS
def test_a_disjoint_union_costs_its_parts_and_the_choice(kind):
    assert exact_laws.check_disjoint_union(*unions(29, kind)).holds.all()


@KINDS
@pytest.mark.claim("CD-T3.5.1")
def test_a_condition_on_a_disjoint_union_is_a_mixture_whose_weights_depend_on_the_input(kind):
    rows, here, there = unions(30, kind)
    union = exact_laws.conditioned(rows, here + there)
    share = (rows @ here) / (rows @ (here + there))  # (batch, inputs)
    parts = [exact_laws.conditioned(rows, event) for event in (here, there)]
    mixture = exact_laws.mixed(parts, np.stack([share, 1.0 - share], axis=-1), by_input=True)
    np.testing.assert_allclose(mixture, union, rtol=0, atol=1e-14)  # some 10 operations of 2**-53 on numbers below 1
    assert np.ptp(share, axis=1).max() > 0.005


# ---- linear equalities -----------------------------------------------------------------------------------------------

MODULUS = 5


def linear_cases(seed, count):
    """Noise on (Z mod 5)^3, one or two random equalities, and two answers that satisfy them."""
    rng = np.random.default_rng(seed)
    grid = np.array(list(itertools.product(range(MODULUS), repeat=3)))
    for number in range(count):
        matrix = rng.integers(0, MODULUS, size=(1 + number % 2, 3))
        answers = grid[rng.integers(len(grid), size=1)]
        values = (answers[0] @ matrix.T) % MODULUS
        on = grid[np.all((grid @ matrix.T - values) % MODULUS == 0, axis=1)]
        answers = np.concatenate([answers, on[rng.integers(len(on), size=1)]])
        yield rng, matrix, values, answers, grid


@pytest.mark.claim("CD-L3.3")
def test_linear_equalities_cost_nothing_where_all_answers_satisfy_them():
    for rng, matrix, values, answers, _ in linear_cases(32, 50):  # 50 x 40 noise laws
        noise = strategies.random_mechanisms(rng, 40, 1, MODULUS**3, "extreme")[:, 0]
        check = exact_laws.check_linear(noise, answers, MODULUS, matrix, values)
        assert check.holds.all()


def test_linear_equalities_are_tight_for_answers_along_them():
    # Noise that falls along a line of the solutions: the worst ratio is met on the solutions themselves.
    weights = np.exp(-np.abs((np.arange(MODULUS) + 2) % MODULUS - 2.0))  # by the distance from 0, around the cycle
    noise = np.einsum("a,b->ab", weights, weights).reshape(1, -1)
    noise /= noise.sum()
    check = exact_laws.check_linear(noise, [[0, 0], [1, 4]], MODULUS, [[1, 1]], [0])
    assert check.holds.all() and check.used.max() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.claim("CD-L3.3")
def test_linear_equalities_that_an_answer_misses_cost_more():
    weights = np.exp(-np.abs((np.arange(MODULUS) + 2) % MODULUS - 2.0))
    noise = np.einsum("a,b->ab", weights, weights).reshape(-1) / weights.sum() ** 2
    rows = exact_laws.additive(noise, [[0, 0], [1, 0]], MODULUS)
    grid = np.array(list(itertools.product(range(MODULUS), repeat=2)))
    derived = exact_laws.conditioned(rows, ((grid.sum(axis=1)) % MODULUS == 0).astype(float))
    assert exact_laws.losses(derived).max() > exact_laws.losses(rows).max() + 0.1
