"""Trade-off functions from profiles: rounded outwards, however coarse the grid of slopes."""

import numpy as np
import pytest
from scipy import special

from dpaudit.scores import profile_bounds
from dpaudit.scores.profile_bounds import TYPE_ONE, ProfileBound


def gaussian(mu):
    at = TYPE_ONE[1:-1]
    true = special.ndtr(-special.ndtri(at) - mu)

    def profile(epsilon):
        return special.ndtr(-epsilon / mu + mu / 2) - np.exp(epsilon) * special.ndtr(-epsilon / mu - mu / 2)

    return at, true, ProfileBound((profile,))


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
def test_the_upper_limit_of_the_trade_off_is_not_below_that_of_the_profile(mu):
    at, true, bound = gaussian(mu)
    away = bound.trade_off_upper(at) - true
    assert np.all(away >= -1e-13)  # the special functions' rounding
    assert np.all(away <= 0.011 * (1.0 - true))  # steps of 0.01 in epsilon: 1% of e^epsilon a, and of delta's slope


@pytest.mark.parametrize("step", [1, 50, 600])
def test_a_coarser_grid_is_further_out(monkeypatch, step):
    monkeypatch.setattr(profile_bounds, "FINE_GRID", profile_bounds.FINE_GRID[::step])
    at, true, bound = gaussian(1.0)
    assert np.all(bound.trade_off_upper(at) >= true - 1e-13)


def test_with_nothing_known_the_limit_is_the_diagonal():
    at = np.linspace(0.0, 1.0, 5)
    assert ProfileBound(()).trade_off_upper(at) == pytest.approx(1.0 - at)
