"""Recorded noise on the reference mechanisms: no sound one is accused; faults of known structure are proved.

No statistics: what is asserted of sound mechanisms holds on any seed.
"""

import pytest
from support.reference_mechanisms import TWINS

import dpaudit
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
