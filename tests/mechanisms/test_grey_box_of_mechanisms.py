"""The grey box on the reference mechanisms: nothing is said of sound ones; faults of additive noise are found exactly.

No statistics: what is asserted holds on the streams of the seed, and for sound mechanisms on any.
"""

import math

import pytest
from support.reference_mechanisms import TWINS

import dpaudit
from dpaudit_mechanisms.gaussian import Gaussian
from dpaudit_mechanisms.problems import problems

SEED = 20_261_122
# Twins whose outputs are an answer plus Laplace or normal noise, number by number.
ADDITIVE = (
    "LaplaceTooLittleNoise", "LaplaceForgetsACoordinate", "GaussianTooLittleNoise", "DxLaplaceTooLittleNoise",
    "StatisticalHalfTheNoise", "DxLaplaceForgetsAQuery", "DxLaplaceEuclidean", "DxLaplaceUnsharedBudget",
    "DatacubeUnsharedBudget", "DatacubeEuclideanBudgets", "DatacubeForgetsTheTwo",
)  # fmt: skip


@pytest.mark.parametrize("sound", [sound for sound, *_ in TWINS], ids=lambda mechanism: type(mechanism).__name__)
def test_nothing_definite_or_implied_is_said_of_a_sound_mechanism(sound):
    result = dpaudit.replay_same_randomness(sound, seed=SEED)
    assert not result.message and result.grade not in ("definite", "implied")


def test_nothing_definite_or_implied_is_said_of_a_sound_problem():
    for problem in problems():
        result = dpaudit.replay_same_randomness(problem.mechanism, [problem.pair], problem.claim, seed=SEED)
        assert not problem.sound or result.grade not in ("definite", "implied"), problem.id


@pytest.mark.parametrize(
    "twin", [twin for _, twin, _ in TWINS if type(twin).__name__ in ADDITIVE], ids=lambda twin: type(twin).__name__
)
def test_a_fault_of_additive_noise_is_implied_with_its_exact_loss(twin):
    result = dpaudit.replay_same_randomness(twin, seed=SEED)
    pairs = {pair.id: pair for pair in twin.pairs()}
    assert result.grade == "implied"
    for found in (found for found in result.pairs if found.grade == "implied"):
        pair = pairs[found.id]
        exact = math.inf if isinstance(twin, Gaussian) else twin.privacy_loss(pair.x, pair.x_prime)
        assert found.implied_loss == pytest.approx(exact, rel=1e-9)  # sums of a few doubles
