"""Noise is what the library draws at the promised scale, exactly: a scale that is 5% off shows in every draw."""

from __future__ import annotations

import numpy as np
import pytest
from sampler_checks import DRAWS, are_independent
from scipy import stats

from dpaudit.privacy.claims import GaussianDP, PureDP
from dpaudit_mechanisms.datacubes import Domain, StrategyRelease, Workload, workload_itself
from dpaudit_mechanisms.distances import Calibration, FixedQueries, InteractiveDistances
from dpaudit_mechanisms.dx_laplace import DxLaplace
from dpaudit_mechanisms.mwem import MWEM
from dpaudit_mechanisms.statistical_queries import StatisticalLaplace

METRIC = np.array([[0.0, 0.5, 1.0], [0.5, 0.0, 0.5], [1.0, 0.5, 0.0]])
QUERIES = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0]])


@pytest.mark.parametrize("rule", ["S1", "S2", "PSA", "optimal"])
def test_the_noise_of_linear_queries_is_the_librarys_times_the_scale(rule):
    mechanism = DxLaplace(QUERIES, METRIC, rule=rule)
    outputs = mechanism.sample(1, 100, np.random.default_rng(20_261_125))
    drawn = np.random.default_rng(20_261_125).laplace(size=(100, 2))
    # One rounding of the product and one of the sum, of numbers below 2^6.
    assert outputs - QUERIES[:, 1] == pytest.approx(drawn * mechanism.c, abs=2.0**-45)
    # The scale by its definition, not as the mechanism states it: every pair loses at most its budget, some pair all.
    gaps = np.abs(QUERIES[:, :, None] - QUERIES[:, None, :])
    loss = (gaps / mechanism.c[:, None, None]).sum(axis=0)
    off = ~np.eye(3, dtype=bool)
    assert (loss <= METRIC * (1.0 + 1e-9)).all()
    assert rule == "S1" or np.max(loss[off] / METRIC[off]) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("rounds", [1, 3])
def test_the_noise_of_every_measurement_of_mwem_is_the_librarys_times_the_scale(rounds):
    class Watched:
        """A generator that notes the scales and what it drew."""

        def __init__(self):
            self.rng, self.laplaces = np.random.default_rng(20_261_125), []

        def laplace(self, *arguments, scale=1.0, size=None):
            assert not arguments
            drawn = self.rng.laplace(scale=scale, size=size)
            self.laplaces.append((scale, drawn))
            return drawn

        def __getattr__(self, name):
            return getattr(self.rng, name)

    queries, n, c = np.array([[0.0, 1.0], [1.0, 0.0]]), 100, 1.5
    mechanism = MWEM(queries, np.array([[0.0, 1.0], [1.0, 0.0]]), c, rounds, n, release="transcript")
    watched = Watched()
    transcripts = np.asarray(mechanism.sample([60, 40], 50, watched)).reshape(50, rounds, 2)
    assert len(watched.laplaces) == rounds
    for k, (scale, drawn) in enumerate(watched.laplaces):
        assert scale == 2.0 * c * rounds  # DX-T8: each of 2 T steps may spend 1 / (2 T) of every budget
        chosen = transcripts[:, k, 0].astype(int)
        truth = c * (queries @ np.array([60, 40]))[chosen]
        assert transcripts[:, k, 1] - truth == pytest.approx(drawn, abs=2.0**-44)


FIGURE_1 = Workload(Domain.binary(3), [(0,), (0, 1)])


def interactive(noise):
    tuned = Calibration(4, [1.0, 2.0], 1, -100.0, 0.1, 0.1, 0.7, noise, 1e-3 if noise == "gaussian" else 0.0)
    mechanism = InteractiveDistances(tuned, FixedQueries([[0.25, 0.5]]), 1, "transcript")  # always above
    return mechanism, np.full((4, 2), 0.75), [0.5, 0.25, -1.0, -1.0], 0.7 / np.array([1.0, 1.0, 1.0, 2.0])


def rows(claim):
    mechanism = StrategyRelease(FIGURE_1, workload_itself(FIGURE_1), claim)
    return mechanism, np.arange(8.0), FIGURE_1.answers(np.arange(8.0)), mechanism.strategy.spread(1.0 / mechanism.eta)


LAPLACE, NORMAL = stats.laplace.cdf, stats.norm.cdf
# A mechanism, an input, what it adds noise to, the scales of the noise, and its law at scale 1.
NOISY = {
    "transcript, Laplace": (*interactive("laplace"), LAPLACE), "transcript, normal": (*interactive("gaussian"), NORMAL),
    "rows, Laplace": (*rows(PureDP(1.0)), LAPLACE), "rows, normal": (*rows(GaussianDP(1.0)), NORMAL),
    "linear queries": (one := DxLaplace(QUERIES, METRIC), 1, QUERIES[:, 1], one.c, LAPLACE),
    "statistical queries": (one := StatisticalLaplace(QUERIES.T / 8.0, [1.0, 2.0], METRIC, 1), (0,), one.means((0,)),
                            one.c, LAPLACE),
}  # fmt: skip


@pytest.mark.parametrize("name", NOISY)
def test_every_coordinate_of_every_output_has_noise_of_its_own(name):
    """At most 15 pairs of columns, at 2e-10 each: a false alarm rate of 3e-9 an example, and of 1e-8 in all."""
    mechanism, data, truth, scales, law = NOISY[name]
    outputs = mechanism.sample(data, DRAWS, np.random.default_rng(20_261_128))[:, -len(scales) :]
    assert are_independent(law((outputs - truth) / scales)[:, :5])
