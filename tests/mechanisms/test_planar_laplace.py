"""The planar Laplace mechanism, the US cities as its universe, and its faulty twin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sampler_checks import DRAWS, is_drawn_from
from scipy import integrate, stats

from dpaudit_mechanisms import cities
from dpaudit_mechanisms.faulty import planar_laplace as faulty
from dpaudit_mechanisms.planar_laplace import PlanarLaplace, projected_km

PLACES = ((0.0, 0.0), (300.0, 400.0), (-100.0, 50.0), (600.0, 800.0))
MOVED = faulty.PlanarLaplaceOneMoved(200.0, PLACES, ("a", "b", "c", "d"), moved="b", away_from="a")


def test_the_sampler_has_a_gamma_radius_and_a_uniform_angle():
    mechanism = PlanarLaplace(200.0)
    noise = mechanism.sample((300.0, 400.0), DRAWS, np.random.default_rng(20_261_121)) - [300.0, 400.0]
    assert noise.shape == (DRAWS, 2)
    radius, angle = np.hypot(*noise.T), np.arctan2(noise[:, 1], noise[:, 0])
    assert is_drawn_from(radius, stats.gamma(2.0, scale=200.0).cdf)  # false alarm rate 1e-10 each
    assert is_drawn_from(angle, stats.uniform(-math.pi, 2.0 * math.pi).cdf)
    for factor in (0.8, 1.25):  # negative controls: functions above 0.08 apart, miss rate below 1e-20
        assert not is_drawn_from(radius, stats.gamma(2.0, scale=200.0 * factor).cdf)


def test_the_density_is_one_in_total_and_that_of_the_sampler():
    mechanism = PlanarLaplace(2.0)

    def ring(radius):
        return 2.0 * math.pi * radius * math.exp(float(mechanism.log_density((1.0, 1.0), [[1.0 + radius, 1.0]])[0]))

    assert integrate.quad(ring, 0.0, 200.0)[0] == pytest.approx(1.0, abs=1e-9)
    radii = np.array([0.5, 3.0])
    assert [ring(r) for r in radii.tolist()] == pytest.approx(stats.gamma(2.0, scale=2.0).pdf(radii), rel=1e-12)


def test_the_loss_is_the_largest_log_ratio_and_is_attained_on_the_line_behind_a_place():
    mechanism = PlanarLaplace(200.0, PLACES)
    x, y = PLACES[0], PLACES[1]
    outputs = np.random.default_rng(1).uniform(-3000.0, 3000.0, size=(20_000, 2))
    ratios = mechanism.log_density(x, outputs) - mechanism.log_density(y, outputs)
    assert np.abs(ratios).max() <= mechanism.privacy_loss(x, y) + 1e-12 == 2.5 + 1e-12
    behind = np.array([[-300.0, -400.0]])
    assert float((mechanism.log_density(x, behind) - mechanism.log_density(y, behind))[0]) == pytest.approx(2.5)
    assert mechanism.claim.for_pair(x, y).value == pytest.approx(2.5)


def test_the_projection_keeps_areas_and_the_middle():
    # Cells of 0.1 by 0.1 degrees: their area on the sphere against that of their projection, by the shoelace formula.
    for latitude, longitude in ((26.0, -81.0), (38.0, -97.0), (48.0, -122.0), (61.0, -150.0)):
        lat = latitude + np.array([0.0, 0.0, 0.1, 0.1])
        lon = longitude + np.array([0.0, 0.1, 0.1, 0.0])
        x, y = projected_km(lat, lon).T
        flat = 0.5 * abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))
        band = np.sin(np.radians(latitude + 0.1)) - np.sin(np.radians(latitude))
        sphere = cities.EARTH_RADIUS_KM**2 * math.radians(0.1) * band
        assert flat == pytest.approx(sphere, rel=1e-5)  # straight edges for curved ones: (0.1 degrees)^2


def test_the_moved_place_loses_one_nat_more_towards_the_other_and_nobody_else_loses_more():
    a, b, c, d = PLACES
    assert MOVED.privacy_loss(b, a) == pytest.approx(3.5)
    assert MOVED.claim.for_pair(b, a).value == pytest.approx(2.5)
    excesses = MOVED.excesses()
    assert excesses[[0, 1]] == pytest.approx([1.0, 0.0])
    assert 0.0 < excesses[2] < 1.0  # on the same side
    assert excesses[3] < 0.0  # behind: the law moved towards it
    for place, excess in ((a, excesses[0]), (c, excesses[2]), (d, excesses[3])):
        budget = MOVED.claim.for_pair(b, place).value
        assert MOVED.privacy_loss(b, place) == pytest.approx(budget + excess)
    assert MOVED.privacy_loss(a, c) == pytest.approx(MOVED.claim.for_pair(a, c).value)
    assert "2 pairs are broken" in MOVED.fault


def test_the_moved_place_is_drawn_and_has_its_density_elsewhere():
    centre = MOVED.centre(PLACES[1])
    assert centre == pytest.approx([420.0, 560.0])  # 200 km further on the line from a through b
    noise = MOVED.sample(PLACES[1], DRAWS, np.random.default_rng(20_261_122)) - centre
    assert is_drawn_from(np.hypot(*noise.T), stats.gamma(2.0, scale=200.0).cdf)
    assert MOVED.log_density(PLACES[1], centre[None])[0] == pytest.approx(-math.log(2.0 * math.pi * 200.0**2))


def test_the_planted_city_is_within_what_is_asked():
    mechanism = faulty.us_cities
    x, y = (mechanism.points[list(mechanism.ids).index(name)] for name in ("Dallas TX", "Houston TX"))
    budget = mechanism.claim.for_pair(x, y).value
    assert budget <= 2.0
    assert mechanism.privacy_loss(x, y) == pytest.approx(budget + 1.0)
