"""Laws as the papers print them: where they hold, a search that found nothing; where not, a smallest counterexample.

Finite mechanisms and exact sums; no statistics. What holds instead of a refuted statement is checked beside it.
"""

import itertools
import math

import numpy as np
import pytest

from dpaudit import strategies
from dpaudit.laws import finite
from dpaudit.privacy.finite_metrics import shortest_paths

EACH = 400
KINDS = pytest.mark.parametrize("kind", strategies.KINDS)


def drawn(seed, kind, inputs=3, outcomes=4, count=EACH):
    rng = np.random.default_rng([seed, strategies.KINDS.index(kind)])
    return strategies.random_mechanisms(rng, count, inputs, outcomes, kind), rng


def positive(rows):
    """The same mechanisms, with every outcome possible: at least 0.02 each."""
    return (1.0 - 0.02 * rows.shape[-1]) * rows + 0.02


def both_ways(table):
    return np.maximum(table, np.swapaxes(table, -2, -1))


# ---- conditioning (constrained DP, section 3) ------------------------------------------------------------------------


@pytest.mark.claim("CD-P2.2")
@KINDS
def test_a_law_given_a_disjoint_union_is_the_weighted_mean_of_the_laws_given_its_parts(kind):
    rows, _ = drawn(1, kind, inputs=1, outcomes=6)
    here, there = np.array([1, 1, 0, 0, 0, 0.0]), np.array([0, 0, 0, 1, 1, 0.0])
    masses = rows @ np.stack([here, there], axis=1)  # (batch, 1, 2)
    asked = np.all(masses > 0.0, axis=(1, 2))
    rows, masses = rows[asked], masses[asked]
    assert len(rows) > 100
    weights = masses / masses.sum(axis=-1, keepdims=True)
    mean = finite.mixed([finite.conditioned(rows, event) for event in (here, there)], weights, by_input=True)
    np.testing.assert_allclose(mean, finite.conditioned(rows, here + there), rtol=0, atol=1e-14)


@pytest.mark.claim("CD-S7")
@KINDS
def test_the_cost_of_conditioning_is_the_ratio_of_the_masses_and_never_negative(kind):
    rows, rng = drawn(2, kind)
    rows = positive(rows)
    event = (rng.random((EACH, 4)) < 0.5).astype(float)
    event[event.sum(axis=1) == 0.0, 0] = 1.0
    masses = (rows * event[:, None]).sum(axis=-1)
    epsilon = finite.losses(rows).max(axis=(1, 2))
    cost = np.log(masses.max(axis=1) / masses.min(axis=1))  # gamma epsilon: the maximum over ordered pairs
    assert np.all(cost >= 0.0) and np.all(cost <= epsilon + 1e-13)  # gamma is in [0, 1]
    assert np.all(finite.losses(finite.conditioned(rows, event)).max(axis=(1, 2)) <= epsilon + cost + 1e-12)


@pytest.mark.claim("CD-L3.4.2")
def test_conditioning_and_a_function_do_not_commute():
    # h permutes three outcomes, C = {0, 1}. M tells nothing given C; h after M, given C, is M given {1, 2}, and tells.
    rows = np.array([[0.4, 0.4, 0.2], [0.45, 0.45, 0.1]])
    event, kernel = np.array([1.0, 1.0, 0.0]), np.eye(3)[[2, 0, 1]]
    given = finite.conditioned(rows, event)
    assert finite.losses(given).max() < 1e-15
    after = finite.conditioned(finite.processed(rows, kernel), event)
    assert not np.allclose(finite.processed(given, kernel), after)
    assert finite.losses(after).max() > 0.4


@pytest.mark.claim("CD-L3.4.2")
@KINDS
def test_conditioning_and_a_function_commute_with_the_preimage_of_the_event(kind):
    rows, rng = drawn(3, kind)
    rows = positive(rows)
    for _ in range(10):
        targets = rng.integers(0, 3, size=4)
        event = np.zeros(3)
        event[targets[0]] = 1.0
        event[rng.integers(0, 3)] = 1.0
        kernel = np.eye(3)[targets]
        left = finite.processed(finite.conditioned(rows, event[targets]), kernel)
        right = finite.conditioned(finite.processed(rows, kernel), event)
        np.testing.assert_allclose(left, right, rtol=0, atol=1e-14)


@pytest.mark.claim("CD-T3.5.2")
@pytest.mark.parametrize("kind", ["dense", "extreme"])
def test_the_claim_of_the_parts_is_not_kept_by_their_disjoint_union(kind):
    # The smallest counterexample has two outcomes: each part is one of them.
    rows = np.array([[0.8, 0.2], [0.2, 0.8]])
    parts = [finite.conditioned(rows, event) for event in np.eye(2)]
    assert all(finite.losses(part).max() == 0.0 for part in parts)
    assert finite.losses(finite.conditioned(rows, np.ones(2))).max() == pytest.approx(math.log(4.0))
    # It is no rare exception: most random mechanisms break the printed law, and none the one with the choice added.
    rows, _ = drawn(4, kind)
    check = finite.check_disjoint_union(rows, [1, 1, 0, 0], [0, 0, 1, 1])
    parts = [finite.losses(finite.conditioned(rows, event)) for event in ([1, 1, 0, 0], [0, 0, 1, 1])]
    broken = (check.found > np.maximum(*parts) + 1e-9).any(axis=(1, 2))
    assert broken.mean() > 0.5 and check.holds.all()


@pytest.mark.claim("CD-L3.6", "CD-L3.10")
def test_mechanisms_with_joint_noise_do_not_compose():
    # A fair coin, and the same coin turned where x = 1: each alone tells nothing, in any event; together they tell all.
    joint = np.array([[0.5, 0.0, 0.0, 0.5], [0.0, 0.5, 0.5, 0.0]])  # outcomes (0,0), (0,1), (1,0), (1,1)
    first, second = joint.reshape(2, 2, 2).sum(axis=2), joint.reshape(2, 2, 2).sum(axis=1)
    assert finite.losses(first).max() == finite.losses(second).max() == 0.0
    assert np.isinf(finite.losses(joint)).any()


@pytest.mark.claim("CD-L3.6", "CD-L3.10")
@KINDS
def test_independent_mechanisms_compose_under_conditions_and_under_projections(kind):
    first, rng = drawn(5, kind)
    second, _ = drawn(6, kind)
    first, second = positive(first), positive(second)
    for _ in range(5):
        events = (rng.random((2, 4)) < 0.5).astype(float)
        events[:, rng.integers(0, 4)] = 1.0
        together = finite.conditioned(finite.composed(first, second), np.outer(*events).ravel())
        parts = [finite.conditioned(rows, event) for rows, event in zip((first, second), events, strict=True)]
        np.testing.assert_allclose(together, finite.composed(*parts), rtol=0, atol=1e-14)
        assert finite.check_sequential(*parts).holds.all()
        nearest = [np.eye(4)[rng.integers(0, 4, size=4)] for _ in range(2)]
        projected = [finite.processed(rows, kernel) for rows, kernel in zip((first, second), nearest, strict=True)]
        promised = finite.losses(first) + finite.losses(second)
        assert np.all(finite.losses(finite.composed(*projected)) <= promised + 1e-12)


@pytest.mark.claim("CD-TAB1.mix")
def test_conditioning_does_not_commute_with_mixtures():
    parts, event = [np.array([[0.5, 0.0, 0.5]]), np.array([[0.0, 0.9, 0.1]])], [1.0, 1.0, 0.0]
    mixture = finite.conditioned(finite.mixed(parts, [0.5, 0.5]), event)
    mean = finite.mixed([finite.conditioned(part, event) for part in parts], [0.5, 0.5])
    np.testing.assert_allclose(mixture, [[0.5 / 1.4, 0.9 / 1.4, 0.0]])
    np.testing.assert_allclose(mean, [[0.5, 0.5, 0.0]])


# ---- imaging (constrained DP, section 3) -----------------------------------------------------------------------------


def imaged(rows, points, targets):
    """The law of the nearest target, as a law on all points; the first of several nearest ones."""
    nearest = np.argmin(np.abs(np.subtract.outer(points, points[targets])), axis=1)
    return rows @ np.eye(len(points))[np.asarray(targets)[nearest]]


@pytest.mark.claim("CD-S3", "CD-T3.9.1")
@KINDS
def test_imaging_commutes_with_mixtures(kind):
    parts = [drawn(7 + k, kind)[0] for k in range(3)]
    weights = np.random.default_rng(10).dirichlet(np.ones(3))
    points = np.array([0.0, 1.0, 2.5, 4.0])
    for targets in ([0], [0, 2], [1, 2, 3]):
        left = imaged(finite.mixed(parts, weights), points, targets)
        right = finite.mixed([imaged(part, points, targets) for part in parts], weights)
        np.testing.assert_allclose(left, right, rtol=0, atol=1e-14)


@pytest.mark.claim("CD-S3")
def test_other_updates_commute_with_mixtures_too():
    # "Only imaging does" is false as printed: a world may be sent to several worlds of C, by fixed chances.
    parts, kernel = drawn(11, "dense")[0][:2], np.array([[1, 0, 0, 0], [0.5, 0, 0, 0.5], [0, 0, 0, 1], [0, 0, 0, 1.0]])
    left = finite.mixed(list(parts), [0.3, 0.7]) @ kernel
    np.testing.assert_allclose(left, finite.mixed([part @ kernel for part in parts], [0.3, 0.7]), rtol=0, atol=1e-15)
    assert not np.all(np.isin(kernel, [0.0, 1.0]))  # no map of worlds: not imaging
    assert np.all(left[:, 1:3] == 0.0)  # and yet all of the law is on C = {0, 3}


@pytest.mark.claim("CD-S3")
def test_imaging_makes_impossible_worlds_possible_and_sure_events_uncertain():
    law, points = np.array([[0.5, 0.5, 0.0, 0.0]]), np.array([0.0, 3.0, 1.0, 2.0])
    image = imaged(law, points, [2, 3])  # 0 goes to 1, and 3 to 2
    assert image.tolist() == [[0.0, 0.0, 0.5, 0.5]]  # {0, 1} was sure, and 2, 3 impossible


@pytest.mark.claim("CD-TAB1.uni")
def test_imaging_on_a_union_is_no_mixture_of_imaging_on_its_parts():
    # C = {0, 5}, C' = {3}: 3 goes to 5 on C, stays on C' and on the union. A mixture with no mass on 5 has none on 0.
    law, points = np.array([[0.5, 0.5, 0.0]]), np.array([0.0, 3.0, 5.0])
    union, here, there = imaged(law, points, [0, 1, 2]), imaged(law, points, [0, 2]), imaged(law, points, [1])
    assert (union.tolist(), here.tolist(), there.tolist()) == ([[0.5, 0.5, 0.0]], [[0.5, 0.0, 0.5]], [[0.0, 1.0, 0.0]])
    shares = np.linspace(0.0, 1.0, 101)
    assert min(np.abs(s * here + (1.0 - s) * there - union).max() for s in shares) > 0.2


@pytest.mark.claim("CD-L3.8")
def test_what_projection_hides_a_function_before_it_may_show():
    # C = {0, 3}: M tells 0 from 1 only, which both go to 0. h sends 1 to 3 first, and the projection tells all.
    rows, points = np.eye(4)[[0, 1]], np.array([0.0, 1.0, 2.0, 3.0])
    assert finite.losses(imaged(rows, points, [0, 3])).max() == 0.0
    kernel = np.eye(4)[[0, 3, 2, 3]]
    assert np.isinf(finite.losses(imaged(rows @ kernel, points, [0, 3]))).any()


@pytest.mark.claim("CD-L3.8")
@KINDS
def test_a_function_and_then_a_projection_keep_what_the_mechanism_itself_keeps(kind):
    rows, rng = drawn(12, kind)
    points = np.array([0.0, 1.0, 2.5, 4.0])
    for _ in range(10):
        kernel = np.eye(4)[rng.integers(0, 4, size=4)]
        for epsilon in (0.0, 0.5):
            derived = imaged(rows @ kernel, points, [0, 2])
            assert np.all(finite.deltas(derived, epsilon) <= finite.deltas(rows, epsilon) + 1e-14)


@pytest.mark.claim("CD-S13")
def test_noise_is_projected_on_the_directions_of_the_invariant_and_not_on_the_invariant():
    # f(D) + Pi_C(U) lies off C = {z1 + z2 = 10}: its sum is 20. Right is U projected on z1 + z2 = 0.
    answer, noise = np.array([4.0, 6.0]), np.random.default_rng(13).laplace(size=(100, 2))

    def nearest(points, total):
        return points + (total - points.sum(axis=1, keepdims=True)) / 2.0

    right = nearest(answer + noise, 10.0)
    assert np.allclose((answer + nearest(noise, 10.0)).sum(axis=1), 20.0)
    np.testing.assert_allclose(answer + nearest(noise, 0.0), right, rtol=0, atol=1e-12)
    centred = np.array([4.0, -4.0])  # where C holds the origin the printed form is right
    np.testing.assert_allclose(centred + nearest(noise, 0.0), nearest(centred + noise, 0.0), rtol=0, atol=1e-12)
    # For an orthant it is wrong too: the noise at an answer inside of it is cut off at the wrong place.
    assert not np.allclose(np.maximum(answer + noise, 0.0), answer + np.maximum(noise, 0.0))


@pytest.mark.claim("CD-S14")
def test_spherical_normal_noise_is_conditioned_as_it_is_projected_and_other_noise_is_not():
    rng = np.random.default_rng(14)
    for _ in range(200):
        columns = int(rng.integers(2, 7))
        a = rng.normal(size=(int(rng.integers(1, columns)), columns))
        along = np.eye(columns) - np.linalg.pinv(a) @ a
        for spread, is_same in ((4.0 * np.eye(columns), True), (np.diag(rng.uniform(1.0, 5.0, columns)), False)):
            given = spread - spread @ a.T @ np.linalg.solve(a @ spread @ a.T, a @ spread)
            assert np.allclose(given, along @ spread @ along.T, rtol=0, atol=1e-9) is is_same


# ---- group privacy (utility first vs. privacy first, sections 3.2 and 3.6) -------------------------------------------


def graph(rng, points):
    """A random connected graph's distances: integers, and every distance is made of unit steps."""
    steps = np.full((points, points), np.inf)
    np.fill_diagonal(steps, 0.0)
    for node in range(1, points):
        other = int(rng.integers(0, node))
        steps[node, other] = steps[other, node] = 1.0
    extra = rng.random((points, points)) < 0.2
    steps = np.where((extra | extra.T) & (steps > 0.0), 1.0, steps)
    return shortest_paths(steps)


@pytest.mark.claim("UP-P2")
@KINDS
def test_group_privacy_holds_where_distances_are_made_of_unit_steps(kind):
    rows, rng = drawn(15, kind, inputs=5, outcomes=3)
    for one in np.array_split(rows, 40):
        distance = graph(rng, 5)
        losses = finite.losses(one)
        epsilon = np.where(distance == 1.0, losses, 0.0).max(axis=(1, 2), keepdims=True)
        is_asked = np.isfinite(np.broadcast_to(epsilon, losses.shape)) & (distance > 0.0)
        promised = distance * np.where(np.isfinite(epsilon), epsilon, 0.0)
        assert np.all(losses[is_asked] <= promised[is_asked] + 1e-11)  # logs of up to 28, five of them


@pytest.mark.claim("UP-S5", "UP-P2")
def test_without_unit_steps_a_distance_bounds_nothing():
    # Two inputs 2 apart have no neighbours at all: every mechanism is epsilon-DP, also the identity.
    assert np.isinf(finite.losses(np.eye(2)))[0, 1]


@pytest.mark.claim("UP-S5")
def test_neighbours_at_half_a_unit_may_lose_a_whole_epsilon():
    # D = {0, 1/2}, epsilon = 1: neighbours are at most 1 apart, so a loss of 1 is 1-DP; eq. 4 promises 1/2.
    keep = math.e / (1.0 + math.e)
    rows = np.array([[keep, 1.0 - keep], [1.0 - keep, keep]])
    assert finite.losses(rows).max() == pytest.approx(1.0) and finite.losses(rows).max() > 0.5


@pytest.mark.claim("UP-S5")
@KINDS
def test_the_number_of_neighbours_on_the_way_bounds_the_loss(kind):
    # What holds: k epsilon, where a chain of k neighbours, each at most 1 from the next, joins the two.
    rows, _ = drawn(16, kind, inputs=5)
    places = np.array([0.0, 0.5, 1.1, 2.0, 2.6])
    distance = np.abs(np.subtract.outer(places, places))
    check = finite.check_group(rows, (distance > 0.0) & (distance <= 1.0))
    assert check.holds.all()


# ---- embeddings (metric query release, section 4) --------------------------------------------------------------------


def stub(rng, points, size):
    """A random mechanism on all datasets of `size` points, with the largest loss of two that differ in one point."""
    data = list(itertools.product(range(points), repeat=size))
    rows = strategies.random_mechanisms(rng, 1, len(data), 3)[0]
    losses = finite.losses(rows)
    adjacent = np.array([[sum(a != b for a, b in zip(x, y, strict=True)) == 1 for y in data] for x in data])
    return {x: k for k, x in enumerate(data)}, rows, losses[adjacent].max()


@pytest.mark.claim("MQ-T8", "MQ-S8")
def test_a_map_of_single_points_before_a_private_mechanism_costs_nothing():
    for seed in range(1_000):
        rng = np.random.default_rng([17, seed])
        number, rows, epsilon = stub(rng, 2, 2)
        embedding = rng.integers(0, 2, size=4)  # four points of a space, to two
        data = list(itertools.product(range(4), repeat=2))
        derived = rows[[number[tuple(embedding[list(x)])] for x in data]]
        adjacent = np.array([[sum(a != b for a, b in zip(x, y, strict=True)) == 1 for y in data] for x in data])
        assert finite.losses(derived)[adjacent].max() <= epsilon


@pytest.mark.claim("MQ-T8")
def test_a_map_that_looks_at_all_points_costs_more():
    # Each point is sent to 1 if any point is above 1: one changed point changes both images, and costs 2 epsilon.
    keep = math.e / (1.0 + math.e)
    one = np.array([[keep, 1.0 - keep], [1.0 - keep, keep]])
    mechanism = finite.in_parallel(one, one)  # on two bits, one changed bit costs 1
    before, after = mechanism[0], mechanism[3]  # (0, 0) -> 0, 0 and (2, 0) -> 1, 1
    assert finite.losses(np.stack([before, after])).max() == pytest.approx(2.0)


# ---- the summary table (constrained DP, table 1) ---------------------------------------------------------------------

POINTS = np.array([0.0, 1.0, 2.5, 4.0])
LEFT, RIGHT = np.array([1.0, 1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0, 1.0])


def largest(rows):
    return finite.losses(rows).max(axis=(-2, -1))


def given(rows, event):
    return finite.conditioned(rows, event)


def projected(rows, targets):
    return imaged(rows, POINTS, targets)


def cell(operator, column, first, second, kernel):
    """The loss of what the operator gives, and the loss that the column of the table allows it; one a mechanism."""
    mean = finite.mixed([first, second], [0.5, 0.5])
    if operator == "revision":
        return {
            "privacy": lambda: (largest(given(first, LEFT)), largest(first)),
            "post-processing": lambda: (largest(given(first, LEFT) @ kernel), largest(given(first, LEFT))),
            "composition": lambda: (
                largest(given(finite.composed(first, second), np.outer(LEFT, RIGHT).ravel())),
                largest(given(first, LEFT)) + largest(given(second, RIGHT)),
            ),
            "disjoint union": lambda: (
                largest(given(first, LEFT + np.array([0, 0, 1.0, 0]))),
                np.maximum(largest(given(first, LEFT)), largest(given(first, np.array([0, 0, 1.0, 0])))),
            ),
            "mixture": lambda: (
                largest(given(mean, LEFT)),
                np.maximum(largest(given(first, LEFT)), largest(given(second, LEFT))),
            ),
        }[column]()
    return {
        "privacy": lambda: (largest(projected(first, [0, 2])), largest(first)),
        "post-processing": lambda: (largest(projected(first @ kernel, [0, 2])), largest(projected(first, [0, 2]))),
        "composition": lambda: (
            largest(finite.composed(projected(first, [0, 2]), projected(second, [1, 3]))),
            largest(first) + largest(second),
        ),
        "disjoint union": lambda: (
            largest(projected(first, [0, 1, 3])),
            np.maximum(largest(projected(first, [0, 3])), largest(projected(first, [1]))),
        ),
        "mixture": lambda: (
            largest(projected(mean, [0, 2])),
            np.maximum(largest(projected(first, [0, 2])), largest(projected(second, [0, 2]))),
        ),
    }[column]()


@pytest.mark.claim("CD-TAB1")
@pytest.mark.parametrize(
    ("operator", "column", "printed", "holds"),
    [
        ("revision", "privacy", False, False),
        ("revision", "post-processing", True, True),  # h after M given C: CD-L3.4.1
        ("revision", "composition", True, True),  # of independent mechanisms
        ("revision", "disjoint union", True, False),  # the weights depend on the input
        ("revision", "mixture", False, False),
        ("update", "privacy", True, True),
        ("update", "post-processing", True, False),  # as CD-L3.8 prints it: (h after M)_C from the claim of M_C
        ("update", "composition", True, True),  # of independent mechanisms
        ("update", "disjoint union", False, False),
        ("update", "mixture", True, True),
    ],
)
def test_each_cell_of_the_table(operator, column, printed, holds):
    # Two cells differ from the print. "Linear equalities" has tests of its own: CD-L3.3.
    broken = 0
    for kind in ("dense", "extreme", "near"):
        first, rng = drawn(18, kind)
        second, _ = drawn(19, kind)
        kernel = np.eye(4)[rng.permutation(4)]
        found, allowed = cell(operator, column, positive(first), positive(second), kernel)
        broken += int((found > allowed + 1e-12).sum())
    assert (broken == 0) is holds
    assert printed or not holds
