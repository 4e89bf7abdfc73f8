"""Recorded noise and the grey box on the reference mechanisms: no sound one is accused; faults of known structure are
proved, and those of additive noise are found exactly.

No statistics: what is asserted of sound mechanisms holds on any seed, the rest on the streams of the seed.
"""

import linecache
import math

import pytest
from support.reference_mechanisms import TWINS

import dpaudit
from dpaudit_mechanisms.gaussian import Gaussian
from dpaudit_mechanisms.problems import problems

SEED = 20_261_125
PROBLEMS = {problem.id: problem for problem in problems()}
SLOW = ("MWEM", "HierarchyConditioned")  # seconds each
UNPROVED = {"GeometricCountsZeroTwice", "MWEMHalfTheNoise", "OnTheLineTooNarrow", "KNormOneDegreeShort",
            "ConditionedLaplaceForgetsTheMass", "HierarchyForgetsTheLevels"}  # fmt: skip


def name(mechanism):
    return type(mechanism).__name__


SOUND = [pytest.param(sound, marks=pytest.mark.slow if name(sound) in SLOW else ()) for sound, *_ in TWINS]


@pytest.mark.parametrize("sound", SOUND, ids=name)
def test_no_sound_mechanism_is_accused(sound):
    result = dpaudit.record_noise(sound, seed=SEED)
    assert result.grade != "proved" and result.side_finding().status != "found", result.pairs[0].statement


@pytest.mark.parametrize("id", [id for id in PROBLEMS if PROBLEMS[id].sound])
def test_no_sound_problem_is_accused(id):
    problem = PROBLEMS[id]
    result = dpaudit.record_noise(problem.mechanism, [problem.pair], problem.claim, seed=SEED)
    assert result.grade != "proved", result.pairs[0].statement


@pytest.mark.parametrize("twin", [twin for _, twin, _ in TWINS if name(twin) not in UNPROVED], ids=name)
def test_a_faulty_twin_of_known_structure_is_proved(twin):
    assert dpaudit.record_noise(twin, seed=SEED).grade == "proved"


def test_the_source_of_a_function_that_a_run_finds_is_no_file_that_it_opens(monkeypatch):
    twin = next(twin for _, twin, _ in TWINS if name(twin) == "DxLaplaceForgetsAQuery")
    monkeypatch.setattr(linecache, "cache", {})
    assert dpaudit.record_noise(twin, seed=SEED).grade == "proved"


# ---- the grey box ----------------------------------------------------------------------------------------------------


STREAMS = 20_261_122
# Twins whose outputs are an answer plus Laplace or normal noise, number by number.
ADDITIVE = (
    "LaplaceTooLittleNoise", "LaplaceForgetsACoordinate", "GaussianTooLittleNoise", "DxLaplaceTooLittleNoise",
    "StatisticalHalfTheNoise", "DxLaplaceForgetsAQuery", "DxLaplaceEuclidean", "DxLaplaceUnsharedBudget",
    "DatacubeUnsharedBudget", "DatacubeEuclideanBudgets", "DatacubeForgetsTheTwo",
)  # fmt: skip


@pytest.mark.parametrize("sound", [sound for sound, *_ in TWINS], ids=lambda mechanism: type(mechanism).__name__)
def test_nothing_definite_or_implied_is_said_of_a_sound_mechanism(sound):
    result = dpaudit.replay_same_randomness(sound, seed=STREAMS)
    assert not result.message and result.grade not in ("definite", "implied")


def test_nothing_definite_or_implied_is_said_of_a_sound_problem():
    for problem in problems():
        result = dpaudit.replay_same_randomness(problem.mechanism, [problem.pair], problem.claim, seed=STREAMS)
        assert not problem.sound or result.grade not in ("definite", "implied"), problem.id


@pytest.mark.parametrize(
    "twin", [twin for _, twin, _ in TWINS if type(twin).__name__ in ADDITIVE], ids=lambda twin: type(twin).__name__
)
def test_a_fault_of_additive_noise_is_implied_with_its_exact_loss(twin):
    result = dpaudit.replay_same_randomness(twin, seed=STREAMS)
    pairs = {pair.id: pair for pair in twin.pairs()}
    assert result.grade == "implied"
    for found in (found for found in result.pairs if found.grade == "implied"):
        pair = pairs[found.id]
        exact = math.inf if isinstance(twin, Gaussian) else twin.privacy_loss(pair.x, pair.x_prime)
        assert found.implied_loss == pytest.approx(exact, rel=1e-9)  # sums of a few doubles
