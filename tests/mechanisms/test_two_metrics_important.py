"""Theorems 4 to 6 on the real line: levels against the finite family, densities, draws, exact losses, audits."""

import itertools
import math

import numpy as np
import pytest
from sampler_checks import DRAWS, is_drawn_from
from support.refusals import refusals

import dpaudit
from dpaudit_mechanisms.faulty.two_metrics import ImportantByTheData
from dpaudit_mechanisms.two_metrics import (
    FiniteSpaces,
    ImportantOnTheLine,
    OnTheLine,
    WidenedStaircase,
    query_profile,
    staircase_profile,
    widened_staircase_profile,
)

ONE, TWO = [[0.0, 3.0]], [[0.0, 1.0], [2.0, 3.0]]
SETS = {"interval": [[0.0, 4.0]], "union": [[-2.5, -1.0], [0.5, 1.5], [6.0, 30.0]], "everything": [[-1e6, 1e6]]}
PROFILES = {
    "T4": widened_staircase_profile(TWO, 1), "T4 wide": widened_staircase_profile(TWO, 3),
    "staircase": staircase_profile(3.0), "T6": query_profile(TWO, 0.4),
}  # fmt: skip

FAR = ImportantOnTheLine(PROFILES["T4"], 5.0, [[50.0, 51.0]], 9.0)


@pytest.mark.claim("UP-N1", "UP-T4")
@pytest.mark.parametrize("steps", [0, 1, 2])
@pytest.mark.parametrize("changes", [ONE, TWO], ids=["one piece", "two pieces"])
def test_levels_on_the_line_are_those_of_the_finite_family_away_from_its_ends(changes, steps):
    """Tenths of a path of 201 values: distances by the changes of one neighbour; cell middles avoid all ends."""
    values = np.arange(-100, 101) / 5.0
    gaps = np.abs(values[:, None] - values)
    one = np.any([(low - 1e-9 <= gaps) & (gaps <= high + 1e-9) for low, high in changes], axis=0)
    reached, distances = np.eye(len(values), dtype=bool), np.full(gaps.shape, np.inf)
    for step in itertools.count():
        distances[reached & np.isinf(distances)] = step
        if np.isfinite(distances).all():
            break
        reached = (reached.astype(float) @ one.astype(float)) > 0.0
    spaces = FiniteSpaces(distances, range(len(values)), gaps)
    finite = WidenedStaircase(spaces, 1.0, [float(steps)] * len(values)).levels[100]
    inner = np.abs(values) <= 12.0  # the finite space has no values beyond 20 to come from
    # A value on the grid is an end of a cell here and there: the closed side of the paper is the nearer one.
    nudged = np.where(values == 0.0, 0.0, np.abs(values) - 1e-6)
    profile = widened_staircase_profile(changes, steps)
    differs = profile.level(nudged[inner]) != finite[inner]
    ends = np.isclose(values[inner] % 1.0, 0.0) | np.isclose(values[inner] % 1.0, 1.0)
    assert not (differs & ~ends).any() and differs.mean() < 0.1
    assert (
        widened_staircase_profile(changes, 0).level(values + 0.05) == staircase_profile(3.0).level(values + 0.05)
    ).all()


@pytest.mark.claim("UP-N1", "UP-T5")
@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("which", SETS)
def test_the_density_is_one_and_the_loss_is_exact_and_at_most_2_epsilon(name, which):
    epsilon, penalty = 0.8, 1.5
    mechanism = ImportantOnTheLine(PROFILES[name], epsilon, SETS[which], penalty)
    grid = np.linspace(-60.0, 60.0, 24_001)
    middles, step = (grid[1:] + grid[:-1]) / 2.0, grid[1] - grid[0]
    for x in (0.0, 2.3):
        density = np.exp(mechanism.log_density(x, middles))
        assert density.sum() * step == pytest.approx(1.0, abs=5e-3)  # ends of cells within a step
    for shift in (0.5, 1.0, 2.5, 3.0):
        found = np.abs(mechanism.log_density(0.0, middles) - mechanism.log_density(shift, middles)).max()
        loss = mechanism.privacy_loss(0.0, shift)
        assert found <= loss + 1e-9
        if shift == 3.0 or which == "everything":
            assert found == pytest.approx(loss, abs=1e-9)
    changes = [s for low, high in TWO for s in np.linspace(low, high, 4) if s > 0.0]  # what a neighbour can do
    for x, shift in itertools.product(np.linspace(-4.0, 7.0, 6), changes):
        assert mechanism.privacy_loss(x, x + shift) <= 2.0 * epsilon + 1e-9
    if which == "everything":
        plain = OnTheLine(PROFILES[name], epsilon)
        assert mechanism.log_density(0.0, middles) == pytest.approx(plain.log_density(0.0, middles), abs=1e-6)
        assert mechanism.privacy_loss(0.0, 3.0) == pytest.approx(epsilon, abs=1e-6)


def test_a_share_and_a_weight_that_are_no_doubles_still_count():
    """E starts a level of 710 nats away from the answer -1: alpha is a level smaller there, and the loss two levels."""
    mechanism = ImportantOnTheLine(staircase_profile(1.0), 710.0, [[0.0, 10.0]], 9.7)
    assert mechanism.log_share(0.0) == pytest.approx(-math.log(2.0), rel=1e-14)
    assert mechanism.log_share(-1.0) == pytest.approx(-710.0 - math.log(2.0), rel=1e-14)
    assert mechanism.log_share(-30.0) + 20 * 710.0 < -math.log(2.0) and mechanism.log_kept(-30.0) == -9.7 * 710.0
    assert mechanism.privacy_loss(0.0, -1.0) == pytest.approx(mechanism.claim.value, rel=1e-14)
    assert mechanism.utility_bounds()[0].bound(-30.0) == pytest.approx(1.0)
    assert np.diff(mechanism.log_density(-1.0, [-1.5, 0.5])).tolist() == [710.0 * 8.7]


@pytest.mark.claim("UP-N1")
def test_draws_have_the_density_and_important_values_come_more_often():
    """Utility: E has the probability share / (share + (1 - share) e^-(epsilon t)); 0.03 is 13 deviations."""
    mechanism = ImportantOnTheLine(PROFILES["T4"], 0.8, SETS["union"], 1.5)
    draws = mechanism.sample(0.0, DRAWS, np.random.default_rng(20_261_711))
    grid = np.linspace(-60.0, 60.0, 60_001)
    density = np.exp(mechanism.log_density(0.0, (grid[1:] + grid[:-1]) / 2.0)) * (grid[1] - grid[0])
    cumulative = np.concatenate([[0.0], np.cumsum(density)])
    # False alarm rate 1e-10; the grid's own error is below 2e-3 of a threshold of 0.015.
    assert is_drawn_from(draws, lambda y: np.interp(y, grid, cumulative / cumulative[-1]))
    share = math.exp(mechanism.log_share(0.0))
    expected = share / (share + (1.0 - share) * math.exp(-1.2))
    inside = np.any([(low <= draws) & (draws <= high) for low, high in SETS["union"]], axis=0).mean()
    assert inside == pytest.approx(expected, abs=0.03) and expected > share + 0.1


@pytest.mark.claim("UP-N1")
def test_an_audit_refutes_important_values_that_move_and_not_fixed_ones():
    """False alarm rate 1e-6."""
    options = {"samples": 2_000, "confidence": 1.0 - 1e-6, "seed": 20_261_712, "floating_point": False}
    sound = ImportantOnTheLine(staircase_profile(1.0), 0.5, [[-0.5, 0.5]], 6.0)
    twin = ImportantByTheData(staircase_profile(1.0), 0.5, [[-0.5, 0.5]], 6.0)
    assert dpaudit.audit(sound, **options).verdict != "violated"
    assert "promised 1" in twin.fault and dpaudit.audit(twin, **options).verdict == "violated"


test_what_makes_no_sense_is_refused = refusals(
    (lambda: widened_staircase_profile(ONE, -1), "steps must"),
    (lambda: ImportantOnTheLine(PROFILES["T4"], 1.0, [[0.0, 1.0]], -1.0), "penalty must"),
    (lambda: ImportantOnTheLine("T4", 1.0, [[0.0, 1.0]], 1.0), "profile must be of class Profile, got 'T4'"),
    (lambda: FAR.sample(0.0, 1, np.random.default_rng(1)), "important must"),
)
