"""The paper on constrained privacy, on additive noise: calibration, invariants, equalities, projections, variances.

Closed forms against quadrature and linear algebra; exact rationals where integrals of polynomials times exponentials
allow it. Counterexamples come from the ledger. Scales are 1 unless a name says otherwise.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from dpaudit.privacy.claims import GaussianDP
from dpaudit_mechanisms.constrained.affine import Affine
from dpaudit_mechanisms.constrained.boxes import ConditionedLaplace
from dpaudit_mechanisms.constrained.equalities import LaplaceOnEqualities
from dpaudit_mechanisms.constrained.hierarchy import Hierarchy
from dpaudit_mechanisms.constrained.laplace_sums import conditional_variance, projected_variance
from dpaudit_mechanisms.constrained.polyhedron import Polyhedron
from dpaudit_mechanisms.faulty.constrained import LaplaceOnAnyTotal
from dpaudit_mechanisms.ledger import entry

FIXED = settings(max_examples=100)
SEEDS = st.integers(0, 2**32)
EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0)
DELTAS = (0.5, 0.1, 1e-2, 1e-5, 1e-8, 1e-12)


# ---- calibration (Proposition 2.7) ----------------------------------------------------------------------------------


def exact_delta(sigma, epsilon):
    """The least delta of normal noise on a query of l2 sensitivity 1, by log probabilities."""
    mu = 1.0 / sigma
    first, second = stats.norm.logcdf(mu / 2 - epsilon / mu), epsilon + stats.norm.logcdf(-mu / 2 - epsilon / mu)
    return math.exp(first) * -math.expm1(second - first)


def printed_sigma(epsilon, delta):
    return (1.0 + math.sqrt(1.0 + math.log(1.0 / delta))) / epsilon


def corrected_sigma(epsilon, delta):
    log = math.log(1.0 / delta)
    return (math.sqrt(log) + math.sqrt(log + epsilon)) / (math.sqrt(2.0) * epsilon)


@pytest.mark.claim("CD-P2.7.2")
def test_as_printed_normal_noise_is_too_small_for_small_delta_and_for_large_epsilon():
    data = entry("CD-P2.7.2").counterexample
    for case in data["cases"]:
        found = exact_delta(printed_sigma(case["epsilon"], case["delta"]), case["epsilon"])
        assert found == pytest.approx(case["exact_delta"], rel=1e-2) and found > 1.5 * case["delta"]
        sigma = printed_sigma(case["epsilon"], case["delta"])
        assert GaussianDP(1.0 / sigma).profile(case["epsilon"]) == pytest.approx(found, rel=1e-3)
    broken = {(e, d) for e, d in itertools.product(EPSILONS, DELTAS) if exact_delta(printed_sigma(e, d), e) > d}
    assert {(e, d) for e, d in broken if e <= 1.0} == {(0.5, 1e-12), (1.0, 1e-12)}
    assert len(broken) == 16


@pytest.mark.claim("CD-P2.7.2")
@FIXED
@given(st.floats(1e-3, 100.0), st.floats(-30.0, -0.01))
def test_the_corrected_scale_is_enough_for_every_epsilon_and_delta(epsilon, log_delta):
    delta = math.exp(log_delta)
    assert exact_delta(corrected_sigma(epsilon, delta), epsilon) <= delta
    assert all(exact_delta(corrected_sigma(e, d), e) <= d for e, d in itertools.product(EPSILONS, DELTAS))


def conditional_gaussian(centre, spread, given):
    """Mean and covariance of a normal vector given that it lies in an affine set.

    mean - S A' (A S A')^-1 (A mean - b) and S - S A' (A S A')^-1 A S, for the covariance S.
    """
    rows = given.normals
    gain = np.linalg.solve(rows @ spread @ rows.T, rows @ spread).T  # (coordinates, rank)
    return centre - gain @ (rows @ centre - given.levels), spread - gain @ rows @ spread


# ---- conditional densities, invariants ------------------------------------------------------------------------------


@pytest.mark.claim("CD-S4")
@pytest.mark.parametrize("correlation", [-0.8, 0.0, 0.5])
def test_a_conditional_density_is_the_joint_one_over_the_marginal_and_keeps_ratios(correlation):
    covariance = np.array([[1.0, correlation], [correlation, 2.0]])
    joint, y = stats.multivariate_normal([0.5, -1.0], covariance), 0.7
    mean, spread = conditional_gaussian([0.5, -1.0], covariance, Affine([[0.0, 1.0]], [y]))
    xs = np.linspace(-3.0, 3.0, 13)
    ratio = joint.pdf(np.column_stack([xs, np.full(13, y)])) / stats.norm(-1.0, math.sqrt(2.0)).pdf(y)
    assert ratio == pytest.approx(stats.norm(mean[0], math.sqrt(spread[0, 0])).pdf(xs), rel=1e-12)
    assert mean[1] == pytest.approx(y) and abs(spread[1]).max() < 1e-12
    at = joint.pdf(np.column_stack([xs, np.full(13, y)]))
    assert ratio / ratio[0] == pytest.approx(at / at[0], rel=1e-12)


@pytest.mark.claim("CD-D3.1")
@pytest.mark.parametrize("noise", [stats.laplace, stats.norm], ids=["laplace", "normal"])
def test_no_additive_noise_with_a_full_density_has_an_invariant_that_an_answer_satisfies(noise):
    """P[M(D) in C] is 1 for C everything only: half-lines and half-planes have less, lines have 0.

    So "M(D) in C exactly if f(D) in C, with probability one" leaves sets of measure 0 that no answer lies in, the empty
    set and the whole space: the invariants of the later claims are sets that true answers lie in.
    """
    data = entry("CD-D3.1").counterexample
    assert data["answer"] >= data["half_line_from"]  # f(D) is in C, and M(D) is not with probability 1/2
    assert noise.sf(data["half_line_from"] - data["answer"]) == data["mass_of_half_line"] < 1.0
    for answer, end in itertools.product((-2.0, 0.0, 1.0, 8.0), (-10.0, 0.0, 1.0)):
        # inside and outside of the half-line; one of them may be as small as 1e-72
        assert noise.sf(end - answer) > 0.0 and noise.cdf(end - answer) > 0.0
    samples = noise.rvs(size=(10_000, 2), random_state=np.random.default_rng(20_261_511))
    line = Affine(data["matrix"])  # a random vector with a density misses it
    assert line.contains([[0.0, 0.0]]).all() and line.contains(samples).mean() == data["mass_of_line"]
    assert not line.contains(samples).any() and line.contains(line.project(samples)).all()
    half_plane = (samples.sum(axis=1) >= 0.0).mean()
    assert 0.4 < half_plane < 0.6  # 20 standard deviations about 1/2


@pytest.mark.claim("CD-S5")
def test_the_conditioned_density_is_not_the_density_of_the_noise():
    data = entry("CD-S5").counterexample
    law = stats.laplace(data["answer"])
    assert law.pdf(data["u"]) == pytest.approx(data["left"], rel=1e-12)
    right = law.pdf(data["u"]) / law.sf(data["half_line_from"])
    assert right == pytest.approx(data["right"], rel=1e-12) and data["right"] != data["left"]
    given = ConditionedLaplace(1.0, [data["half_line_from"]], [math.inf])
    z = data["u"] * given.scale
    assert np.exp(given.log_density([0.0], [[z]]))[0] == pytest.approx(data["right"] / given.scale, rel=1e-9)


# ---- conditioning on equalities (CD-S6, Lemma 3.3) ------------------------------------------------------------------


def change_of_variables(given):
    """Appendix A: V_i = U_i for the free variables, V_i = U_i(free) - U_i for the others, as a matrix."""
    free = given.free_variables()
    others = [i for i in range(given.coordinates) if i not in free]
    solved = given.solved(np.eye(given.dimension), free)  # (free, coordinates)
    matrix = np.zeros((given.coordinates, given.coordinates))
    for row, i in enumerate(free):
        matrix[row, i] = 1.0
    for row, i in enumerate(others, start=len(free)):
        matrix[row, list(free)] = solved[:, i]
        matrix[row, i] -= 1.0
    return matrix


CASES = [(2, 1), (3, 1), (4, 1), (4, 2)]


@pytest.mark.claim("CD-S6")
@pytest.mark.parametrize(("coordinates", "rows"), CASES)
def test_the_solutions_have_as_many_free_variables_as_coordinates_without_rows(coordinates, rows):
    rng = np.random.default_rng(20_261_512)
    for _ in range(5):
        given = Affine(rng.normal(size=(rows, coordinates)))
        assert given.dimension == coordinates - rows == len(given.free_variables())
        matrix = change_of_variables(given)
        assert np.linalg.matrix_rank(matrix) == coordinates  # invertible, as a change of variables has to be
        inside = given.solved(rng.normal(size=(4, given.dimension)))
        assert np.abs(given.matrix @ inside.T).max() < 1e-10
        assert np.abs((inside @ matrix.T)[:, given.dimension :]).max() < 1e-10  # A U = 0 is V = 0 beyond them


@pytest.mark.claim("CD-S6")
def test_as_printed_the_number_of_free_variables_and_the_rank_are_wrong():
    data = entry("CD-S6").counterexample
    given = Affine(data["matrix"])
    assert given.rank == data["printed_free_variables"] == data["printed_rank"]
    assert given.dimension == data["free_variables"] != data["printed_free_variables"]
    assert np.linalg.matrix_rank(change_of_variables(given)) == data["rank"] != data["printed_rank"]
    noise = np.random.default_rng(20_261_513).laplace(size=(100_000, 3))
    assert not given.contains(noise).any()  # (a): A U = 0 has probability 0, not 1
    tree = Hierarchy.of_sizes([43, 61, 1, 69, 69, 20]).equalities()  # the paper's own: 270 coordinates, 7 rows
    assert (tree.coordinates, tree.rank, tree.dimension) == (270, 7, 263)


def line_integral(answer, total):
    """The integral of exp(-|z - answer|_1) over z_1 + z_2 = total, in z_1; kinks are split off."""
    kinks = sorted([answer[0], total - answer[1]])
    ends = [kinks[0] - 40.0, *kinks, kinks[1] + 40.0]
    return sum(
        integrate.quad(lambda t: math.exp(-abs(t - answer[0]) - abs(total - t - answer[1])), a, b)[0]
        for a, b in itertools.pairwise(ends)
        if b > a
    )


@pytest.mark.claim("CD-S6", "CD-L3.3")
@FIXED
@given(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0), st.floats(-3.0, 3.0))
def test_the_normaliser_depends_on_the_answer_unless_it_satisfies_the_equality(first, second, total):
    """(d): one K for all answers in C, (1 + s) e^-s of it at a gap of s = |total - first - second|."""
    gap = abs(total - first - second)
    found = line_integral((first, second), total)
    assert found == pytest.approx((1.0 + gap) * math.exp(-gap), rel=1e-7)
    assert line_integral((first, total - first), total) == pytest.approx(1.0, rel=1e-7)
    twin = LaplaceOnAnyTotal(1.0, total)
    assert twin.log_normaliser(np.array([first, second])) == pytest.approx(math.log(math.sqrt(2.0) * found), abs=1e-7)


def loss_on_line(x, x_prime, total):
    """sup |log p(z) / p'(z)| over z_1 + z_2 = total at scale 1, from the definition and quadrature."""
    t = np.linspace(-30.0, 30.0, 6001)
    z = np.column_stack([t, total - t])
    logs = np.abs(z - x_prime).sum(axis=1) - np.abs(z - x).sum(axis=1)
    constant = math.log(line_integral(x_prime, total)) - math.log(line_integral(x, total))
    return float(np.abs(logs + constant).max())


@pytest.mark.claim("CD-L3.3")
def test_as_printed_equalities_cost_nothing_which_is_wrong_off_the_set():
    data = entry("CD-L3.3").counterexample
    for case in data["cases"]:
        found = loss_on_line(np.array(case["x"]), np.array(case["x_prime"]), data["total"])
        assert found == pytest.approx(case["loss"], abs=1e-6)
        assert found > data["epsilon"] == np.abs(np.subtract(case["x"], case["x_prime"])).sum()
    twin = LaplaceOnAnyTotal(data["epsilon"], data["total"])
    first = data["cases"][0]
    assert twin.privacy_loss(first["x"], first["x_prime"]) == pytest.approx(first["loss"], abs=1e-9)
    assert 2.0 - math.log(2.0) == pytest.approx(first["loss"], abs=1e-9)


@pytest.mark.claim("CD-L3.3", "CD-TAB1")
@FIXED
@given(SEEDS, st.integers(2, 5))
def test_on_the_set_the_loss_is_that_of_the_noise_and_off_it_at_most_twice(seed, coordinates):
    """The corrected statement. The log ratio reaches |x - x'|_1 along the line through both answers."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, coordinates))
    given = Affine(rng.normal(size=(rows, coordinates)), rng.normal(size=rows))
    x, x_prime = given.project(rng.normal(size=(2, coordinates)))
    loss = np.abs(x - x_prime).sum()
    points = given.project(rng.normal(scale=3.0, size=(200, coordinates)))
    far = x + np.array([[-1e6], [1e6]]) * (x - x_prime)
    logs = [np.abs(z - x_prime).sum(axis=1) - np.abs(z - x).sum(axis=1) for z in (points, far)]
    assert np.abs(logs[0]).max() <= loss * (1.0 + 1e-9) + 1e-9
    assert np.abs(logs[1]) == pytest.approx([loss, loss], rel=1e-6, abs=1e-6)  # numbers of size 1e6
    any_total = LaplaceOnAnyTotal(1.0, float(rng.normal()))
    y = rng.normal(size=2)
    y_prime = y + np.array([rng.normal(), 0.0])
    assert any_total.privacy_loss(y, y_prime) <= 2.0 * np.abs(y - y_prime).sum() + 1e-9


# ---- imaging (eqs. 5 and 6, the design at the end of Section 3) -----------------------------------------------------


@pytest.mark.claim("CD-S10")
def test_as_printed_fibre_integrals_are_no_density_for_a_curved_edge():
    """The unit disk and a standard normal vector: the circle gets e^(-1/2), its fibre integrals add up to 0.40."""
    data = entry("CD-S10").counterexample
    mass = math.exp(-0.5 * data["radius"] ** 2)
    fibre = integrate.quad(lambda r: math.exp(-0.5 * r * r) / (2.0 * math.pi), data["radius"], np.inf)[0]
    assert mass == pytest.approx(data["mass"], rel=1e-9)
    assert 2.0 * math.pi * data["radius"] * fibre == pytest.approx(data["printed"], rel=1e-9)
    assert abs(data["mass"] - data["printed"]) > 0.2
    # With the fibre's Jacobian r / radius it is right: the corrected density.
    weighted = integrate.quad(lambda r: r * math.exp(-0.5 * r * r) / (2.0 * math.pi), data["radius"], np.inf)[0]
    assert 2.0 * math.pi * weighted == pytest.approx(mass, rel=1e-9)


@pytest.mark.claim("CD-S13")
def test_as_printed_the_noise_is_projected_onto_the_set_itself():
    for case in entry("CD-S13").counterexample["cases"]:
        truth, noise = np.array(case["truth"]), np.array(case["noise"])
        onto = Affine(case["matrix"], case["offsets"]) if "matrix" in case else None
        project = (lambda z: np.maximum(z, 0.0)) if onto is None else (lambda z, onto=onto: onto.project(z[None])[0])
        assert project(truth) == pytest.approx(truth)  # the true answer satisfies the invariant
        assert project(truth + noise) == pytest.approx(np.array(case["projected"]))
        assert truth + project(noise) == pytest.approx(np.array(case["printed"]))
        assert np.abs(np.subtract(case["projected"], case["printed"])).max() >= 0.5


@pytest.mark.claim("CD-S13")
@FIXED
@given(SEEDS, st.integers(2, 5))
def test_the_noise_is_projected_onto_the_parallel_set_through_0(seed, coordinates):
    """The corrected statement: f + P u with P onto ker A for equalities; else onto C - f(D), which depends on D."""
    rng = np.random.default_rng(seed)
    given = Affine(rng.normal(size=(1, coordinates)), [10.0])
    truth = given.project(rng.normal(size=(1, coordinates)))[0]
    noise = rng.laplace(size=(5, coordinates))
    assert given.project(truth + noise) == pytest.approx(truth + noise @ given.projector, abs=1e-9)
    cone = Polyhedron(np.eye(coordinates), np.zeros(coordinates))
    inside = np.abs(rng.normal(size=coordinates))
    shifted = Polyhedron(np.eye(coordinates), -inside)
    assert cone.project(inside + noise) == pytest.approx(inside + shifted.project(noise), abs=1e-9)


@pytest.mark.claim("CD-S14", "CD-S15")
@FIXED
@given(SEEDS, st.integers(2, 6))
def test_for_a_spherical_normal_vector_conditioning_and_imaging_are_one_law(seed, coordinates):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, coordinates))
    given = Affine(rng.normal(size=(rows, coordinates)), rng.normal(size=rows))
    sigma = float(rng.uniform(0.5, 3.0))
    centre = rng.normal(size=coordinates)  # even off the set
    mean, covariance = conditional_gaussian(centre, sigma**2 * np.eye(coordinates), given)
    assert covariance == pytest.approx(sigma**2 * given.projector, abs=1e-9)
    assert mean == pytest.approx(given.project(centre[None])[0], abs=1e-9)
    root = rng.normal(size=(coordinates, coordinates))
    general = root @ root.T + 0.1 * np.eye(coordinates)
    _, conditional = conditional_gaussian(centre, general, given)
    projected = given.projector @ general @ given.projector
    # Never smaller in any direction; equal only where the covariance leaves the kernel as a set alone.
    assert np.linalg.eigvalsh(projected - conditional).min() >= -1e-9 * np.abs(general).max()
    assert np.abs(projected - conditional).max() > 1e-9


@pytest.mark.claim("CD-S15")
def test_for_laplace_noise_they_differ_unless_single_coordinates_are_fixed():
    for n in (2, 3):
        assert conditional_variance(n) < 0.7 * projected_variance(n)
    fixed = LaplaceOnEqualities(1.0, Affine([[1.0, 0.0, 0.0]], [2.0]))  # the first coordinate is 2
    points = np.array([[2.0, 1.0, -1.0], [2.0, 0.0, 3.0]])
    conditioned = fixed.log_density([2.0, 0.0, 0.0], points)
    assert conditioned == pytest.approx(stats.laplace.logpdf(points[:, 1:]).sum(axis=1))  # what a projection leaves too
    assert fixed.given.project([[5.0, 1.0, -1.0]])[0] == pytest.approx([2.0, 1.0, -1.0])


# ---- utility (Section 4, Appendix B) --------------------------------------------------------------------------------


def moment(power, rate=2):
    """The integral of u^power e^(-rate u) over u > 0, a fraction."""
    return Fraction(math.factorial(power), rate ** (power + 1))


@pytest.mark.claim("CD-U1", "CD-F2")
def test_the_normaliser_for_three_variables_is_three_halves():
    """The exponent is 2 (u_1 + u_2), 2 u_1 and -2 u_2 on the three parts of the half-plane u_1 >= 0 of figure 2."""
    parts = [moment(0) * moment(0), moment(1), moment(1)]  # the second: u_2 from -u_1 to 0; the third likewise
    assert parts == [Fraction(1, 4)] * 3 and 2 * sum(parts) == Fraction(3, 2)
    bounds = [(lambda u: 0.0, lambda u: 40.0), (lambda u: -u, lambda u: 0.0), (lambda u: -40.0, lambda u: -u)]
    for low, high in bounds:  # and by quadrature over the parts as printed
        found = integrate.dblquad(lambda v, u: math.exp(-(abs(u) + abs(v) + abs(u + v))), 0.0, 40.0, low, high)[0]
        assert found == pytest.approx(0.25, abs=1e-7)
    for u, v in np.random.default_rng(1).normal(size=(1000, 2)):  # they are a partition of the half-plane
        if u > 0.0:
            assert (v >= 0.0) + (-u <= v < 0.0) + (v < -u and 0.0 <= u <= -v) == 1
    printed = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 1.0]])  # V = P U
    assert np.linalg.matrix_rank(printed) == 3


@pytest.mark.claim("CD-U2", "CD-U3", "CD-E0")
def test_the_marginal_and_its_variance_for_three_variables_in_rationals():
    """K h(u) = (1 + u) e^(-2u) for u > 0: 1/2 + u + 1/2, from u_2 > 0, between -u and 0, and below."""
    for u in (0.0, 0.3, 2.0):
        inner = [(0.0, 40.0), (-u, 0.0), (-40.0, -u)]
        found = sum(integrate.quad(lambda v, u=u: math.exp(-(abs(u) + abs(v) + abs(u + v))), a, b)[0] for a, b in inner)
        assert found == pytest.approx((1.0 + u) * math.exp(-2.0 * u), abs=1e-9)
    total = 2 * (moment(0) + moment(1))
    assert total == Fraction(3, 2)  # it integrates to 1
    variance = 2 * (moment(2) + moment(3)) / total
    assert variance == Fraction(5, 6) < Fraction(4, 3)
    assert conditional_variance(3) == pytest.approx(5.0 / 6.0, rel=1e-15)
    assert 2 * moment(2) / (2 * moment(0)) == Fraction(1, 2) < 1  # n = 2: e^(-2|t|) against 2 (1 - 1/2)


@pytest.mark.claim("CD-U4")
def test_the_conditioned_variance_is_the_smaller_one_from_n_equal_to_2_on():
    """(8 J_(n+2) - 6 J_(n+1)) / J_n = (2n - 1)(n - 1) / (n (n + 1)), in rationals, below 2 (n - 1) / n for every n.

    J_(n+1) / J_n = (2n - 1) / (2n) for J_n, the integral of (1 + w^2)^-n. The quotient of both sides of the comparison
    is (2n - 1) / (2n + 2), which is below 1 without a bound on n.
    """
    for n in range(2, 271):
        step = Fraction(2 * n - 1, 2 * n)
        exact = step * (8 * Fraction(2 * n + 1, 2 * n + 2) - 6)
        assert exact == Fraction((2 * n - 1) * (n - 1), n * (n + 1))
        assert exact / Fraction(2 * (n - 1), n) == Fraction(2 * n - 1, 2 * n + 2) < 1
        assert conditional_variance(n) == pytest.approx(float(exact), rel=1e-14)


@pytest.mark.claim("CD-U4")
def test_given_the_sum_of_one_number_neither_way_leaves_any_noise():
    data = entry("CD-U4").counterexample
    assert conditional_variance(data["n"]) == data["conditioned"]
    assert projected_variance(data["n"]) == data["projected"] == data["conditioned"]
    projector = Affine([[1.0]], [0.0]).project([[2.5]])  # the only answer with the sum 0
    assert projector == pytest.approx(0.0, abs=1e-15)


@pytest.mark.claim("CD-F1", "CD-F3")
def test_the_hierarchy_of_figure_3_has_three_levels():
    tree = Hierarchy.of_sizes([43, 61, 1, 69, 69, 20])
    assert np.bincount(tree.depth).tolist() == [1, 6, 263] and tree.nodes == 270 and tree.levels == 3
    assert tree.totals(np.ones(263))[:7].tolist() == [263.0, 43.0, 61.0, 1.0, 69.0, 69.0, 20.0]
