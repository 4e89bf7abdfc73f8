"""The definitions and laws that the paper on two metric spaces starts from: models, metrics, privacy, sensitivity."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize
from up_literal_sets import random_space, space_of

from dpaudit.errors import UsageError
from dpaudit.exact import privacy_loss as finite_loss
from dpaudit.privacy.finite_metrics import check_metric
from dpaudit_mechanisms.laplace import Laplace
from dpaudit_mechanisms.ledger import entry
from dpaudit_mechanisms.two_metrics import FiniteSpaces, GlobalSensitivity, PrivacyFirst

SEEDS = st.integers(0, 2**32)


def random_laws(rng, inputs, outcomes):
    """Rows are laws; some outcomes are impossible on all inputs."""
    weights = rng.uniform(0.05, 1.0, size=(inputs, outcomes)) * (rng.random(outcomes) < 0.8)
    weights[:, 0] += 0.1
    return weights / weights.sum(axis=1, keepdims=True)


# ---- privacy (Sections 2 and 3.2) -----------------------------------------------------------------------------------


@pytest.mark.claim("UP-D8", "UP-D1", "UP-D5")
@given(SEEDS)
def test_over_a_metric_space_the_audit_by_values_is_the_audit_by_events(seed):
    """Every set of values of a finite space is an event: points are open balls."""
    space = random_space(seed, most=5)
    mechanism = PrivacyFirst(space.spaces(), 0.7)
    largest = 0.0
    for x, y in space.neighbours:
        p, q = mechanism.distribution(x), mechanism.distribution(y)
        for event in itertools.product([False, True], repeat=len(p)):
            if any(event):
                largest = max(largest, math.log(p[list(event)].sum() / q[list(event)].sum()))
    assert mechanism.epsilon_exact == pytest.approx(largest, abs=1e-12)


@pytest.mark.claim("UP-P1", "UP-D7")
@given(SEEDS)
def test_independent_mechanisms_add_up_on_the_product_space(seed):
    rng = np.random.default_rng(seed)
    first, second = random_laws(rng, 3, 4), random_laws(rng, 3, 3)
    joint = [np.outer(p, q).ravel() for p, q in zip(first, second, strict=True)]
    for law, p, q in zip(joint, first, second, strict=True):  # a measure whose rectangles have products of masses
        assert law.sum() == pytest.approx(1.0, abs=1e-12)
        rectangle = np.outer([True, False, True, True], [False, True, True]).ravel()
        assert law[rectangle].sum() == pytest.approx(p[[0, 2, 3]].sum() * q[1:].sum(), abs=1e-12)
    for i, j in itertools.combinations(range(3), 2):
        total = finite_loss(first[i], first[j]) + finite_loss(second[i], second[j])
        assert finite_loss(joint[i], joint[j]) <= total + 1e-9
    response = np.array([[0.75, 0.25], [0.25, 0.75]])  # and the sum is reached
    assert finite_loss(np.outer(response[0], response[0]).ravel(), np.outer(response[1], response[1]).ravel()) == (
        pytest.approx(2.0 * math.log(3.0))
    )


def largest_group_ratio(hidden, x, y, epsilon, rare=1e-4):
    """The largest P_x(S) / P_y(S) over all mechanisms that are epsilon-DP on this space, where P_y(S) = `rare`.

    A linear program: one event and its complement are all that counts.
    """
    count, factor = len(hidden), math.exp(epsilon)
    rows, limits = [], []
    for a, b in itertools.permutations(range(count), 2):
        if hidden[a][b] <= 1:
            event, complement = np.zeros(count), np.zeros(count)
            event[a], event[b] = 1.0, -factor  # p_a <= e^eps p_b
            complement[a], complement[b] = -1.0, factor  # 1 - p_a <= e^eps (1 - p_b)
            rows += [event, complement]
            limits += [0.0, factor - 1.0]
    objective = np.zeros(count)
    objective[x] = -1.0
    fixed = np.zeros((1, count))
    fixed[0, y] = 1.0
    found = optimize.linprog(objective, A_ub=np.array(rows) if rows else None, b_ub=limits if rows else None,
                             A_eq=fixed, b_eq=[rare], bounds=[(0.0, 1.0)] * count)  # fmt: skip
    return -found.fun / rare


@pytest.mark.claim("UP-P2")
@pytest.mark.parametrize("seed", range(12))
def test_group_privacy_holds_over_all_mechanisms_where_chains_exist_and_its_constant_is_the_least(seed):
    space = random_space(seed, most=6, kind="integer")  # shortest paths of a graph: the hypothesis holds
    epsilon = 0.5
    for x, y in itertools.combinations(space.datasets, 2):
        ratio = largest_group_ratio(space.hidden, x, y, epsilon)
        assert ratio == pytest.approx(math.exp(int(space.hidden[x][y]) * epsilon), rel=1e-5)


@pytest.mark.claim("UP-P2", "UP-S5")
def test_without_chains_of_neighbours_privacy_says_nothing_of_distant_datasets():
    two_apart = [[0, 2], [2, 0]]  # no neighbours at all: every mechanism is epsilon-DP
    assert largest_group_ratio(two_apart, 0, 1, 0.5) == pytest.approx(1e4)  # 1 / rare: no bound
    isolated = [[0, 1, 3], [1, 0, 3], [3, 3, 0]]
    assert largest_group_ratio(isolated, 0, 2, 0.5) == pytest.approx(1e4)


@pytest.mark.claim("UP-S5")
def test_the_weighted_bound_is_broken_by_neighbours_less_than_one_apart():
    data = entry("UP-S5").counterexample
    laws, epsilon = np.array(data["laws"]), data["epsilon"]
    distance = data["dbar"][0][1]
    assert finite_loss(*laws) == pytest.approx(epsilon) and distance <= 1.0  # epsilon-DP
    assert data["ratio"] == pytest.approx((laws[0] / laws[1]).max())
    assert data["ratio"] > math.exp(distance * epsilon) == pytest.approx(data["printed"])


@pytest.mark.claim("UP-S5")
@pytest.mark.parametrize("seed", range(8))
def test_what_holds_instead_is_the_least_number_of_steps_between_neighbours(seed):
    space = random_space(100 + seed, most=6, kind="rational")
    count, epsilon = len(space.f), 0.4
    steps = np.where(np.array([[float(v) for v in row] for row in space.hidden]) <= 1.0, 1.0, np.inf)
    np.fill_diagonal(steps, 0.0)
    for k, i, j in itertools.product(range(count), repeat=3):
        steps[i, j] = min(steps[i, j], steps[i, k] + steps[k, j])
    for x, y in itertools.combinations(space.datasets, 2):
        ratio = largest_group_ratio(space.hidden, x, y, epsilon)
        expected = min(math.exp(min(steps[x, y], 100.0) * epsilon), 1e4)
        assert ratio == pytest.approx(expected, rel=1e-5)
        assert steps[x, y] >= math.ceil(space.hidden[x][y])


# ---- mechanisms of Section 2 ----------------------------------------------------------------------------------------


@pytest.mark.claim("UP-D3", "UP-S1")
def test_the_printed_laplace_density_has_mass_1_in_one_dimension_only():
    data = entry("UP-D3").counterexample
    assert entry("UP-S1").counterexample == data  # no law, so no mechanism that could be private

    def printed(*r):
        rate = data["epsilon"] / data["sensitivity"]
        return rate / 2.0 * math.exp(-rate * sum(map(abs, r)))

    assert 2.0 * integrate.quad(printed, 0.0, 60.0)[0] == pytest.approx(1.0, abs=1e-9)
    plane = 4.0 * integrate.dblquad(printed, 0.0, 60.0, 0.0, 60.0)[0]
    assert data["dimensions"] == 2 and plane == pytest.approx(data["mass"], rel=1e-6)
    for k in (1, 2, 3):  # corrected: the constant to the power k, as the product of k densities has it
        mechanism = Laplace(data["epsilon"], (data["sensitivity"] / k,) * k)  # l1 sensitivity 1
        at_zero = float(np.exp(mechanism.log_density(np.zeros(k), np.zeros((1, k))))[0])
        assert at_zero == pytest.approx((data["epsilon"] / (2.0 * data["sensitivity"])) ** k)


# ---- metric spaces (Sections 3.1 and 3.3 to 3.5) --------------------------------------------------------------------


@pytest.mark.claim("UP-D4")
@given(SEEDS)
def test_the_shells_of_a_dataset_split_all_datasets(seed):
    space = random_space(seed)
    spaces = space.spaces()  # checks the axioms
    for x in space.datasets:
        shells = [space.shell(x, i) for i in range(space.last() + 1)]
        assert sorted(y for shell in shells for y in shell) == list(space.datasets)
        assert shells[0] == {x}
        for i, shell in enumerate(shells):
            assert {int(y) for y in np.flatnonzero(spaces.shells[x] == i)} == shell
            assert space.ball(x, i) == set().union(*shells[: i + 1])


def quadratic_norm(matrix):
    return lambda v: math.sqrt(float(np.asarray(v) @ matrix @ np.asarray(v)))


@pytest.mark.claim("UP-D6")
@pytest.mark.parametrize("norm", [1, 2, np.inf, "weighted", "non-negative matrix"])
@pytest.mark.parametrize("seed", range(6))
def test_norms_that_grow_with_each_coordinate_make_products_of_metric_spaces(norm, seed):
    rng = np.random.default_rng(seed)
    first, second = (random_space(10 * seed + k, most=4).spaces().privacy_metric for k in (0, 1))
    weights, root = rng.uniform(0.1, 3.0, size=2), rng.uniform(size=(2, 2))
    combine = {
        "weighted": lambda v: float(np.abs(v) @ weights),
        "non-negative matrix": quadratic_norm(root @ root.T + 0.1 * np.eye(2)),
    }.get(norm, lambda v: float(np.linalg.norm(v, ord=norm)))
    points = list(itertools.product(range(len(first)), range(len(second))))
    matrix = [[combine([first[u[0], v[0]], second[u[1], v[1]]]) for v in points] for u in points]
    check_metric(np.array(matrix))  # raises where an axiom fails
    # The product topology, on a finite space all sets: the least distance of two points is positive.
    assert min(combine([first[u[0], v[0]], second[u[1], v[1]]]) for u, v in itertools.permutations(points, 2)) > 0.0


@pytest.mark.claim("UP-D6")
def test_a_norm_that_falls_along_a_coordinate_breaks_the_triangle_inequality():
    data = entry("UP-D6").counterexample
    matrix = np.array(data["A"])
    assert np.linalg.eigvalsh(matrix)[0] > 0.0  # a norm
    norm = quadratic_norm(matrix)
    u, v, w = (np.array(point) for point in data["points"])
    lengths = [norm(np.abs(a - b)) for a, b in ((u, w), (u, v), (v, w))]
    assert lengths == pytest.approx(data["distances"]) and lengths[0] > lengths[1] + lengths[2]
    with pytest.raises(UsageError, match="triangle inequality"):
        check_metric([[norm(np.abs(a - b)) for a in (u, v, w)] for b in (u, v, w)])


@pytest.mark.claim("UP-S2", "UP-S13")
@given(SEEDS, st.sampled_from([0.5, 1.0, 2.0]))
def test_accuracy_and_expected_error_are_sums_over_the_law(seed, within):
    space = random_space(seed)
    kinds = (GlobalSensitivity, PrivacyFirst) if space.sensitivity else (PrivacyFirst,)
    for mechanism, x in itertools.product([kind(space.spaces(), 1.0) for kind in kinds], space.datasets):
        law, away = mechanism.distribution(x), space.kept[space.f[x]]
        inside = sum(p for p, far in zip(law, away, strict=True) if far <= within)
        assert mechanism.accuracy(within)[x] == pytest.approx(inside, abs=1e-12)
        mean = sum(p * float(far) for p, far in zip(law, away, strict=True))
        assert mechanism.expected_error()[x] == pytest.approx(mean, rel=1e-12)


@pytest.mark.claim("UP-D9")
@given(SEEDS, st.integers(1, 3))
def test_the_neighbouring_set_is_constant_on_integer_vectors_with_a_norm(seed, size):
    query = np.random.default_rng(seed).integers(-5, 6, size=size)
    steps = [s for s in itertools.product((-1, 0, 1), repeat=size) if sum(map(abs, s)) <= 1]
    expected = {int(query @ s) for s in steps}
    for x in itertools.product((-2, 0, 3), repeat=size):
        assert {int(query @ (np.array(x) + s) - query @ np.array(x)) for s in steps} == expected


@pytest.mark.claim("UP-D9")
def test_the_neighbouring_set_moves_where_the_metric_is_not_that_of_a_norm():
    data = entry("UP-D9").counterexample
    hidden, modulus = np.array(data["dbar"]), data["field"]
    check_metric(hidden)
    sets = [{(y - x) % modulus for y in range(modulus) if hidden[x, y] <= 1} for x in range(modulus)]
    assert [sorted(one) for one in sets] == data["neighbouring_sets"] and sets[0] != sets[1]
    # and on truncated histograms, which are no vector space: nothing can be taken from the empty one
    assert {y - 0 for y in range(4) if abs(y - 0) <= 1} != {y - 1 for y in range(4) if abs(y - 1) <= 1}


@pytest.mark.claim("UP-D10")
def test_which_functions_are_monotonic():
    def is_monotonic(space):
        return all(
            space.kept[space.f[x]][space.f[y]] >= space.kept[space.f[x]][space.f[z]]
            for x, y, z in itertools.product(space.datasets, repeat=3)
            if space.hidden[x][y] > space.hidden[x][z]
        )

    path = [[abs(i - j) for j in range(4)] for i in range(4)]
    assert is_monotonic(space_of({"dbar": path, "f": [0, 1, 2, 3]}))  # the identity
    assert not is_monotonic(space_of({"dbar": path, "f": [0, 2, 1, 3]}))
    assert is_monotonic(space_of({"dbar": path, "f": [0, 0, 0, 0]}))  # a constant
    assert is_monotonic(space_of({"dbar": path, "f": [0, 0, 1, 1]}))  # a step
    assert not is_monotonic(space_of({"dbar": path, "f": [0, 1, 1, 0]}))  # a bump
    seen = [is_monotonic(random_space(seed, most=4, kind="integer")) for seed in range(60)]
    assert 0 < sum(seen) < 60


@pytest.mark.claim("UP-D11", "UP-X3")
def test_a_permutation_of_one_metric_space_has_equal_level_sets_on_both_sides():
    """Injective, d = dbar: the identity and every isometry make privacy-first and staircase levels equal."""
    cycle = [[min((i - j) % 5, (j - i) % 5) for j in range(5)] for i in range(5)]
    isometries = 0
    for f in itertools.permutations(range(5)):
        space = space_of({"dbar": cycle, "f": list(f), "d": cycle})
        assert sorted(space.f) == list(space.datasets)
        keeps = all(cycle[f[x]][f[y]] == cycle[x][y] for x, y in itertools.combinations(range(5), 2))
        same = np.array_equal(PrivacyFirst(space.spaces(), 1.0).levels, space.spaces().distances)
        assert same == keeps
        isometries += keeps
    assert isometries == 10  # the dihedral group; the other 110 permutations are permutation functions all the same


@pytest.mark.claim("UP-S3")
def test_the_bounded_and_the_unbounded_model_are_metric_spaces_with_the_usual_neighbours():
    every = [x for x in itertools.product(range(4), repeat=3) if sum(x) <= 3]
    bounded = [x for x in every if sum(x) == 3]
    for datasets, unit, usual in ((every, 1, 1), (bounded, 2, 2)):
        l1 = np.array([[np.abs(np.subtract(x, y)).sum() for y in datasets] for x in datasets])
        check_metric(l1 / unit)
        assert (l1 % unit == 0).all()  # whole distances: neighbours at distance at most 1 are those at exactly 1
        assert np.array_equal((l1 / unit <= 1.0) & (l1 > 0), l1 == usual)


@pytest.mark.claim("UP-S4")
def test_a_distortion_need_not_be_a_metric():
    squared = np.subtract.outer(range(3), range(3)) ** 2.0
    with pytest.raises(UsageError, match="triangle inequality"):
        check_metric(squared)
    assert (squared >= 0.0).all() and not squared.diagonal().any()


@pytest.mark.claim("UP-S6")
def test_the_contrasted_embedding_is_another_promise():
    """It keeps distances of outputs; a mechanism that ignores its input is 0-DP and keeps none of them."""
    law = np.array([0.5, 0.5])
    assert finite_loss(law, law) == 0.0
    collapsed = law @ np.abs(np.subtract.outer([0.0, 1.0], [0.0, 1.0])) @ law
    assert collapsed < 1.0  # the mean distance of the outputs on datasets at any distance: 1/2


@pytest.mark.claim("UP-X1", "UP-X2", "UP-X4", "UP-X5", "UP-X6")
@pytest.mark.parametrize("example", ["X1", "X2-1", "X2-2", "X2-inf", "X4-fro", "X4-spectral", "X5", "X6"])
def test_the_examples_of_value_spaces_are_metric_spaces(example):
    rng = np.random.default_rng(20_261_121)
    name, _, order = example.partition("-")
    vectors = [tuple(v) for v in rng.integers(-3, 4, size=(6, 4)).tolist()]
    grid = np.linspace(0.0, 1.0, 33)
    points, distance = {
        "X1": (list(range(6)), lambda u, v: abs(u - v)),
        "X2": (vectors, lambda u, v: np.linalg.norm(np.subtract(u, v), ord=float(order or 1))),
        "X4": (vectors, lambda u, v: np.linalg.norm(np.subtract(u, v).reshape(2, 2), ord=2 if order == "spectral"
                                                    else "fro")),
        "X5": (vectors, lambda u, v: (np.abs(np.subtract(u, v)) ** 3).sum() ** (1.0 / 3.0)),
        # functions: polynomials with the largest value on a grid, on which no two of degree 3 agree
        "X6": (vectors, lambda u, v: np.abs(np.polynomial.Polynomial(np.subtract(u, v))(grid)).max()),
    }[name]  # fmt: skip
    points = list(dict.fromkeys(points))
    check_metric(np.array([[distance(u, v) for v in points] for u in points]))  # raises where an axiom fails


@pytest.mark.claim("UP-T1", "UP-T2", "UP-T4", "UP-T5")
def test_on_an_infinite_space_there_may_be_no_density_at_all():
    """The reading of the theorems: integers with all distances 1 have level 1 everywhere but at the truth."""
    totals = []
    for count in (5, 20, 80):
        ones = 1.0 - np.eye(count)
        mechanism = PrivacyFirst(FiniteSpaces(ones, range(count), ones), 1.0)
        totals.append(float(np.exp(-mechanism.levels[0]).sum()))
    assert totals == pytest.approx([1.0 + (count - 1) / math.e for count in (5, 20, 80)])  # without a limit
