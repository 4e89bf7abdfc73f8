"""Laplace noise in boxes, conditioned and clamped; rejection; projections onto polyhedra; mixtures."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampler_checks import DRAWS, is_drawn_from
from scipy import integrate, stats
from support.refusals import refusals

import dpaudit
from dpaudit.errors import DpauditError, UsageError
from dpaudit.privacy.claims import PureDP
from dpaudit.privacy.pairs import Pair
from dpaudit_mechanisms.constrained.affine import Affine
from dpaudit_mechanisms.constrained.boxes import ConditionedLaplace, ImagedLaplace
from dpaudit_mechanisms.constrained.mixture import Mixture
from dpaudit_mechanisms.constrained.polyhedron import Polyhedron, project_onto_simplex
from dpaudit_mechanisms.constrained.rejection import Rejected
from dpaudit_mechanisms.faulty.constrained import ImagedOntoTheData, MixtureByTheData, RejectedGivesUp
from dpaudit_mechanisms.laplace import Laplace

SEEDS = st.integers(0, 2**32)
INF = math.inf
# lower, upper, sensitivity of one coordinate
INTERVALS = st.tuples(st.floats(-3.0, 3.0), st.one_of(st.floats(0.1, 8.0), st.just(INF)), st.floats(0.1, 5.0))


def in_box(seed, mechanism, count):
    """Random answers in a box, infinite sides cut at 6 scales from the finite end or from 0."""
    far = 6.0 * mechanism.scale
    low = np.where(np.isfinite(mechanism.lower), mechanism.lower, np.minimum(mechanism.upper, far) - 2.0 * far)
    high = np.where(np.isfinite(mechanism.upper), mechanism.upper, low + 2.0 * far)
    return np.random.default_rng(seed).uniform(low, high, size=(count, len(low)))


# ---- conditioning on a box ------------------------------------------------------------------------------------------


@pytest.mark.claim("CD-S7")
@given(st.floats(0.02, 8.0), INTERVALS, INTERVALS, SEEDS)
def test_the_scale_is_the_least_that_keeps_the_claim_on_all_pairs(epsilon, first, second, seed):
    """No random pair within the sensitivity exceeds epsilon, the stated pair reaches it, gamma lies in [0, 1]."""
    lower, widths, reach = (np.array(values) for values in zip(first, second, strict=True))
    mechanism = ConditionedLaplace(epsilon, lower, lower + widths, reach)
    assert mechanism.claim == PureDP(epsilon)
    pair = mechanism.pairs()[0]
    assert mechanism.privacy_loss(pair.x, pair.x_prime) == pytest.approx(epsilon, rel=1e-9)
    assert 0.0 <= mechanism.gamma <= 1.0
    x = in_box(seed, mechanism, 200)
    moves = np.random.default_rng(seed + 1).uniform(-1.0, 1.0, size=x.shape) * mechanism.coordinate_sensitivity
    x[::4] = np.where(np.isfinite(mechanism.lower), mechanism.lower, x[::4])  # ends too
    moves[::2] = np.sign(moves[::2]) * reach
    x_prime = np.clip(x + moves, mechanism.lower, mechanism.upper)
    x_prime = np.clip(x_prime, x - mechanism.coordinate_sensitivity, x + mechanism.coordinate_sensitivity)
    losses = [mechanism.privacy_loss(a, b) for a, b in zip(x, x_prime, strict=True)]
    assert max(losses) <= epsilon * (1.0 + 1e-9)


@pytest.mark.claim("CD-S5")
@given(st.floats(0.1, 5.0), INTERVALS, SEEDS)
def test_the_conditioned_density_is_the_noise_over_its_mass_and_integrates_to_one(epsilon, interval, seed):
    lower, width, reach = interval
    mechanism = ConditionedLaplace(epsilon, [lower], [lower + width], [reach])
    point = in_box(seed, mechanism, 1)[0]
    law = stats.laplace(point[0], mechanism.scale)
    mass = law.cdf(lower + width) - law.cdf(lower)
    assert mechanism.masses(point)[0] == pytest.approx(mass, rel=1e-9)
    inside = lower + min(width, 5.0) * np.array([0.1, 0.5, 0.9])
    assert np.exp(mechanism.log_density(point, inside[:, None])) == pytest.approx(law.pdf(inside) / mass, rel=1e-9)
    outside = np.array([[lower - 0.1], [lower + width + 0.1], [np.nan], [INF]])
    assert (mechanism.log_density(point, outside) == -INF).all()
    end = min(lower + width, point[0] + 40.0 * mechanism.scale)
    total = sum(
        integrate.quad(lambda u: math.exp(mechanism.log_density(point, [[u]])[0]), a, b)[0]
        for a, b in ((lower, point[0]), (point[0], end))
    )
    assert total == pytest.approx(1.0, abs=1e-6)
    left, right = mechanism.tails(point, inside[:, None])
    assert left[:, 0] == pytest.approx((law.cdf(inside) - law.cdf(lower)) / mass, rel=1e-7, abs=1e-12)
    assert left + right == pytest.approx(np.ones((3, 1)))


@pytest.mark.claim("CD-S5", "CD-D3.2")
def test_both_samplers_draw_from_the_conditional_law():
    """The inverse distribution function and rejection, in an interval and in an orthant; the noise itself does not."""
    rng = np.random.default_rng(20_261_531)
    mechanism = ConditionedLaplace(1.0, [0.0], [3.0])
    noise = Laplace(1.0, (mechanism.scale,))
    rejected = Rejected(noise, lambda outputs: ((outputs >= 0.0) & (outputs <= 3.0)).all(axis=1))

    def cdf(values):
        return mechanism.tails([0.5], np.asarray(values)[:, None])[0][:, 0]

    for sampler in (mechanism, rejected):
        draws = sampler.sample([0.5], DRAWS, rng)
        assert draws.min() >= 0.0 and draws.max() <= 3.0
        assert is_drawn_from(draws[:, 0], cdf)  # false alarm rate 1e-10 each
    assert not is_drawn_from(np.clip(noise.sample([0.5], DRAWS, rng), 0.0, 3.0)[:, 0], cdf)  # control: imaging
    kept = rejected.event(noise.sample([0.5], 10_000, rng)).mean()
    assert kept == pytest.approx(mechanism.masses([0.5])[0], abs=0.035)  # 7 errors
    orthant = ConditionedLaplace(1.0, [0.0, 0.0], [INF, INF])
    draws = orthant.sample([0.0, 1.0], DRAWS, rng)
    assert is_drawn_from(draws[:, 0], stats.expon(scale=orthant.scale).cdf)  # the answer at the end: one side is left
    assert is_drawn_from(draws[:, 1], lambda v: orthant.tails([0.0, 1.0], np.column_stack([v, v]))[0][:, 1])


def test_an_event_that_never_occurs_ends_with_an_error_and_no_output_is_made_up():
    impossible = Rejected(Laplace(1.0), lambda outputs: outputs > np.inf, most=10)
    with pytest.raises(DpauditError, match=r"occurred in 0 of"):
        impossible.sample(0.0, 100, np.random.default_rng(1))
    line = Affine([[1.0, 1.0]])
    with pytest.raises(DpauditError, match="too rare to reject to"):  # a set of probability 0
        Rejected(Laplace(1.0, (1.0, 1.0)), line.contains, most=10).sample([0.0, 0.0], 50, np.random.default_rng(1))
    assert Rejected(Laplace(1.0), lambda outputs: outputs > 0.0).sample(0.0, 0, np.random.default_rng(1)).shape == (0,)


@pytest.mark.claim("CD-S7")
def test_rejection_keeps_what_conditioning_costs_and_not_what_the_noise_promised():
    """False alarm rate 1e-6; the twin, which releases the true answer now and then, is found with this seed."""
    options = {"pairs": [(0.0, 1.0)], "confidence": 1.0 - 1e-6, "seed": 20_261_551, "floating_point": False}
    sound = Rejected(Laplace(1.0), lambda outputs: outputs >= 0.0)
    cost = 1.0 + math.log(2.0 - math.exp(-1.0))  # the exact loss of this pair, 1.49
    result = dpaudit.audit(sound, PureDP(cost), samples=5_000, **options)
    assert result.verdict != "violated" and result.epsilon_lower <= cost
    assert dpaudit.audit(sound, PureDP(1.0), samples=30_000, **options).verdict == "violated"
    twin = RejectedGivesUp(sound.mechanism, sound.event)
    assert "loss inf nats, promised 2" in twin.fault
    assert dpaudit.audit(twin, samples=30_000, **options).verdict == "violated"


# ---- imaging onto a box ---------------------------------------------------------------------------------------------


@pytest.mark.claim("CD-L3.7", "CD-S10")
@given(st.floats(0.1, 5.0), INTERVALS, SEEDS)
def test_clamped_noise_loses_what_the_noise_loses(epsilon, interval, seed):
    """Exactly: the supremum over atoms and density together is |x - x'| / scale, for every pair in the box."""
    lower, width, reach = interval
    mechanism = ImagedLaplace(epsilon, [lower], [lower + width], [reach])
    x, x_prime = in_box(seed, mechanism, 2)
    ends = [end for end in (lower, lower + width) if np.isfinite(end)]
    outputs = np.array([*ends, *(lower + min(width, 9.0) * np.linspace(0.01, 0.99, 50)), x[0], x_prime[0]])[:, None]
    ratios = mechanism.log_density(x, outputs) - mechanism.log_density(x_prime, outputs)
    assert np.abs(ratios).max() == pytest.approx(mechanism.privacy_loss(x, x_prime), rel=1e-9, abs=1e-9)
    pair = mechanism.pairs()[0]
    assert mechanism.privacy_loss(pair.x, pair.x_prime) == pytest.approx(epsilon, rel=1e-9)
    law = stats.laplace(x[0], mechanism.scale)
    atoms = np.exp(mechanism.log_density(x, np.array(ends)[:, None]))
    assert atoms[0] == pytest.approx(law.cdf(lower), rel=1e-9)
    if len(ends) == 2:
        assert atoms[1] == pytest.approx(law.sf(lower + width), rel=1e-9)


# ---- projections onto polyhedra -------------------------------------------------------------------------------------


@pytest.mark.claim("CD-S9")
@settings(max_examples=100)
@given(SEEDS, st.integers(1, 4), st.integers(1, 6))
def test_a_projection_satisfies_what_characterises_it(seed, coordinates, rows):
    """In the set; idempotent; non-expansive; (y - P y) (z - P y) <= 0 for points z of the set."""
    rng = np.random.default_rng(seed)
    inner = rng.normal(size=coordinates)  # a point of the set
    normals = rng.normal(size=(rows, coordinates))
    equalities = None
    if coordinates > 1 and rng.random() < 0.5:
        row = rng.normal(size=(1, coordinates))
        equalities = Affine(row, row @ inner)
    onto = Polyhedron(normals, normals @ inner - rng.exponential(size=rows), equalities)
    points = rng.normal(scale=4.0, size=(8, coordinates))
    found = onto.project(points)
    assert onto.contains(found).all()
    assert onto.project(found) == pytest.approx(found, abs=1e-8)
    gaps = np.linalg.norm(found[:, None] - found, axis=2) - np.linalg.norm(points[:, None] - points, axis=2)
    assert gaps.max() <= 1e-8
    others = np.vstack([found, inner])  # points of the set
    for y, p in zip(points, found, strict=True):
        assert ((others - p) @ (y - p)).max() <= 1e-7 * (1.0 + np.linalg.norm(y - p) ** 2)


def test_a_batch_is_projected_point_by_point():
    """What comes of a point does not depend on what the others of its batch are: the same bits beside others."""
    rng = np.random.default_rng(20_261_534)
    onto = Polyhedron(rng.normal(size=(4, 3)), -np.ones(4))
    points = rng.normal(scale=3.0, size=(50, 3))
    others = np.where(np.arange(50)[:, None] % 2, points, rng.normal(scale=30.0, size=(50, 3)))
    assert (onto.project(points)[1::2] == onto.project(others)[1::2]).all()
    assert (onto.project(points)[::2] != onto.project(others)[::2]).any()


# ---- mixtures -------------------------------------------------------------------------------------------------------


@pytest.mark.claim("CD-T3.9.1")
def test_a_mixture_draws_each_output_from_a_mechanism_of_its_choice():
    mixture = Mixture([Laplace(1.0), Laplace(1.0, 3.0)], [0.75, 0.25])
    draws = mixture.sample(2.0, DRAWS, np.random.default_rng(20_261_535))

    def cdf(values):
        return 0.75 * stats.laplace.cdf(values, 2.0, 1.0) + 0.25 * stats.laplace.cdf(values, 2.0, 3.0)

    assert is_drawn_from(draws, cdf)  # false alarm rate 1e-10
    assert not is_drawn_from(draws, stats.laplace(2.0, 1.0).cdf)  # control: 0.04 away
    assert np.exp(mixture.log_density(2.0, [1.0])) == pytest.approx(
        0.75 * stats.laplace.pdf(1.0, 2.0, 1.0) + 0.25 * stats.laplace.pdf(1.0, 2.0, 3.0)
    )
    first = draws[:2000] - 2.0  # which mechanism was drawn does not follow the position in the batch
    assert abs((np.abs(first[:1000]) > 4.0).mean() - (np.abs(first[1000:]) > 4.0).mean()) < 0.1  # 7 standard errors


def test_noise_for_a_smaller_sensitivity_would_break_the_claim_of_a_mixture():
    """Why it is refused: one claim in words, Laplace(1) and Laplace(1, 1/2), and 1.54 nats on the first one's pair."""
    parts, points = [Laplace(1.0), Laplace(1.0, 0.5)], np.linspace(-3.0, 4.0, 701)
    logs = [np.logaddexp(*(part.log_density(x, points) for part in parts)) for x in (0.0, 1.0)]
    assert np.abs(logs[0] - logs[1]).max() > 1.5
    assert Mixture(parts[::-1], [0.5, 0.5]).pairs()[0].x_prime == 0.5  # on the pairs of the other both keep it


@pytest.mark.claim("CD-T3.9.1")
@pytest.mark.parametrize(("part", "pair"), list(itertools.product(range(3), repeat=2)))
def test_every_part_of_a_mixture_is_asked_about_every_pair(part, pair):
    pairs = [Pair(0, 1), Pair(1, 2), Pair(2, 0)]

    def stub(place):
        losses = {one.x: 2.0 if (place, n) == (part, pair) else 1.0 for n, one in enumerate(pairs)}
        return SimpleNamespace(claim=PureDP(1.0), pairs=lambda: pairs, privacy_loss=lambda x, _: losses[x])

    with pytest.raises(UsageError, match=f"on the pairs of the first, got a loss of 2 of mechanism {part}"):
        Mixture([stub(place) for place in range(3)], [0.25, 0.25, 0.5])


@pytest.mark.claim("CD-T3.9.2")
@given(st.floats(0.0, 1.0), SEEDS)
def test_a_mixture_loses_no_more_than_its_parts_and_one_by_the_data_does(weight, seed):
    mixture = Mixture([Laplace(1.0), Laplace(1.0, 3.0)], [weight, 1.0 - weight])
    outputs = np.random.default_rng(seed).normal(scale=5.0, size=100)
    ratios = mixture.log_density(0.0, outputs) - mixture.log_density(1.0, outputs)
    assert np.abs(ratios).max() <= 1.0 + 1e-9
    twin = MixtureByTheData(mixture.mechanisms, [0.9, 0.1])
    far = twin.log_density(0.0, [100.0])[0] - twin.log_density(1.0, [100.0])[0]
    assert far == pytest.approx(math.log(9.0) - 1.0 / 3.0, abs=1e-6)  # only the wide noise reaches that far


def test_an_inequality_that_follows_from_the_equalities_does_not_empty_the_set():
    """Far points: what is left of such a row is rounding of their size, once more than what counted as nothing."""
    points = 1e9 * np.random.default_rng(20_261_541).normal(size=(200, 3))
    total = Affine([[1.0, 1.0, 1.0]], [1e6])
    with_row = Polyhedron(np.vstack([np.eye(3), np.ones((1, 3))]), [0.0, 0.0, 0.0, 1e6], total)
    without = Polyhedron(np.eye(3), np.zeros(3), total)
    assert with_row.project(points) == pytest.approx(without.project(points), abs=1e-5)  # rounding of 1e9


test_what_makes_no_sense_is_refused = refusals(
    (lambda: ConditionedLaplace(1.0, [0.0], [0.0]), "upper must"),
    (lambda: ConditionedLaplace(1.0, [INF], [INF]), "upper must"),
    (lambda: ConditionedLaplace(1.0, [0.0], [1.0], [0.0]), "coordinate_sensitivity must"),
    (lambda: ConditionedLaplace(1.0, [0.0], [1.0]).sample([2.0], 1, None), "data must"),
    (lambda: ImagedLaplace(0.0, [0.0], [1.0]), "epsilon must"),
    (lambda: Polyhedron([[1.0], [-1.0]], [1.0, 0.0]), "rows must"),
    (lambda: Polyhedron([[0.0]], [1.0]), "rows must"),
    (lambda: Polyhedron([[1.0, 0.0]], [0.0], Affine([[1.0]])), "equalities must"),
    (lambda: project_onto_simplex([[1.0, math.nan]], [1.0]), "points must"),
    (lambda: Rejected(Laplace(1.0), True), "event must"),
    (lambda: Rejected(Laplace(1.0), len, most=0), "most must"),
    (lambda: Rejected(Laplace(1.0), lambda outputs: [True]).sample(0.0, 1, np.random.default_rng(1)), "event must"),
    (lambda: project_onto_simplex([[1.0]], [-1.0]), "totals must"),
    (lambda: Mixture([Laplace(1.0), Laplace(1.0, 0.5)], [0.5, 0.5]), "mechanisms must"),
    (lambda: Mixture([Laplace(1.0)], [0.5]), "weights must"),
    (lambda: Mixture([Laplace(1.0), Laplace(2.0)], [0.5, 0.5]), "mechanisms must"),
    (lambda: Mixture([Laplace(1.0)], lambda data: [1.0]), "weights must"),
)


def test_open_boxes_leave_the_noise_as_it_is():
    open_box = ConditionedLaplace(2.0, [-INF], [INF], [3.0])
    assert open_box.scale == 1.5 and open_box.gamma == 0.0
    assert open_box.log_density([1.0], [[0.0]])[0] == pytest.approx(stats.laplace.logpdf(0.0, 1.0, 1.5))
    twin = ImagedOntoTheData(1.0, [-INF], [INF])
    assert twin.privacy_loss([0.0], [0.0]) == 0.0 and "loss inf" in twin.fault
