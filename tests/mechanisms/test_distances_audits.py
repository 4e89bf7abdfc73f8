"""Audits of the distance queries; an adaptive analyst is part of the subject. Twins are found in meta/test_power.py.

Every audit has confidence 1 - 1e-6: a sound mechanism is called violated with probability at most 1e-6, for any seed.
"""

import numpy as np
import pytest

import dpaudit
from dpaudit_mechanisms.distances import (
    Calibration,
    EmbeddedDistances,
    FixedQueries,
    InteractiveDistances,
    MetricDistances,
    OfflineDistances,
    RandomProjection,
    SlopeSeeker,
    StableProjection,
    SubsetDistances,
)
from dpaudit_mechanisms.faulty.distances import (
    EmbeddingLooksAtTheData,
    LearnerForgetsTheSlopes,
    on_the_line,
    worst_pair,
)

CONFIDENCE = 1.0 - 1e-6
SEED = 20_261_641
ENDS = FixedQueries([[0.0], [1.0], [0.0], [1.0]])
TUNED = Calibration(1, [1.0], 1, 0.5, 2.0, 4.0, 6.0)  # 1.5 nats
TWICE = Calibration(2, [1.0], 2, 0.3, 1.0, 2.0, 1.5)
GAUSSIAN = Calibration(2, [1.0], 2, 0.3, 1.0, 2.0, 1.5, "gaussian", 1e-2)


def audited(mechanism, samples, **options):
    return dpaudit.audit(mechanism, samples=samples, confidence=CONFIDENCE, seed=SEED, floating_point=False, **options)


def low_and_moved(records, dimension):
    low = np.zeros((records, dimension))
    moved = low.copy()
    moved[0] = 0.5
    return low, moved


PROJECTION = RandomProjection(2, 3, seed=1)
STABLE = StableProjection(1.5, 2, 3, seed=1)
NEAR_THE_MIDDLE = FixedQueries([[0.6, 0.6], [0.4, 0.4]])
MIDDLE = np.full((200, 2), 0.5)
ONE_MOVED = np.where(np.arange(200)[:, None] == 0, 1.0, MIDDLE)
SOUND = [
    InteractiveDistances(TUNED, ENDS, 4),
    InteractiveDistances(TUNED, SlopeSeeker(1.0, 1.0), 4),
    InteractiveDistances(TWICE, SlopeSeeker(1.0, 1.0), 6),
    InteractiveDistances(TWICE, SlopeSeeker(1.0, 1.0), 3, release="transcript"),
    InteractiveDistances(GAUSSIAN, SlopeSeeker(1.0, 1.0), 6),
    InteractiveDistances(Calibration(2, [0.5, 0.5], 2, 0.3, 1.0, 2.0, 1.5), FixedQueries([[0.0, 0.0], [0.5, 0.5]]), 2),
    OfflineDistances(2, [0.5, 0.5], 1.0, intervals=2),
    EmbeddedDistances(PROJECTION, Calibration(3, PROJECTION.widths, 1, 0.1, 1.0, 1.0, 1.0),
                      FixedQueries([[0.5, 0.0], [-0.5, 0.0]]), 2, [low_and_moved(3, 2)]),
    EmbeddedDistances(SubsetDistances(on_the_line, [[0.0], [1.0]], 2, seed=1),
                      Calibration(20, [0.25] * 4, 1, 0.3, 0.1, 0.2, 0.3), FixedQueries([[0.0], [1.0], [0.0]]), 3,
                      [worst_pair(20)]),
    MetricDistances(SubsetDistances(on_the_line, [[0.0], [1.0]], 2, seed=1), [[0.0], [1.0]], 20, 2.0,
                    databases=[worst_pair(20)]),
    LearnerForgetsTheSlopes(TUNED, ENDS, 4),
    EmbeddedDistances(STABLE, Calibration(200, STABLE.widths, 1, 0.3, 0.1, 0.2, 0.3), NEAR_THE_MIDDLE, 2,
                      [(MIDDLE, ONE_MOVED)]),
    MetricDistances(STABLE, [[0.0, 0.0], [1.0, 1.0]], 200, 2.0, databases=[(MIDDLE, ONE_MOVED)]),
]  # fmt: skip


@pytest.mark.claim("MQ-L3", "MQ-T1", "MQ-T2", "MQ-T8", "MQ-D1b", "MQ-N3")
@pytest.mark.parametrize("mechanism", SOUND, ids=[f"{type(m).__name__}-{i}" for i, m in enumerate(SOUND)])
def test_a_distance_release_is_not_refuted(mechanism):
    result = audited(mechanism, 300 if getattr(mechanism, "release", "") == "transcript" else 2_500)
    assert result.verdict != "violated"
    assert result.epsilon_lower <= mechanism.claim.value


def test_the_embedding_of_the_data_is_over_twelve_times_too_sensitive():
    subsets = SubsetDistances(on_the_line, np.zeros((20, 1)), 1, seed=2)
    tuned = Calibration(20, subsets.widths, 1, 0.3, 0.1, 0.2, 0.3)
    twin = EmbeddingLooksAtTheData(subsets, tuned, FixedQueries([[0.0], [1.0], [0.0]]), 3, [worst_pair(20)])
    assert twin.sensitivity(*worst_pair(20)) > 12.0
