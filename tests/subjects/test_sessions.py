"""Sessions of queries by an adaptive analyst, as subjects of an audit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.subjects.protocol import InteractiveMechanism, SessionEnded
from dpaudit.subjects.sessions import Bisection, FixedQueries, StopAfter, as_sessions
from dpaudit_mechanisms.distances import InteractiveDistances, SlopeSeeker
from dpaudit_mechanisms.distances.calibration import practical
from dpaudit_mechanisms.faulty.sparse_vector import SparseVectorWithoutEnd, SparseVectorWithoutQueryNoise
from dpaudit_mechanisms.sparse_vector import SparseVector

ALTERNATE = FixedQueries((0, 1) * 6)


class Echo:
    """Answers a query with its number, five times."""

    def start(self, data: Any, rng: np.random.Generator) -> Any:
        class Open:
            asked = 0

            def answer(self, query: Any) -> Any:
                if self.asked == 5:
                    raise SessionEnded
                self.asked += 1
                return data + self.asked

        return Open()


def audit(subject: Any, **options: Any) -> dpaudit.AuditResult:
    return dpaudit.audit(subject, samples=400, confidence=0.999, seed=3, floating_point=False, **options)


def one(subject: Any, data: Any = 0, seed: int = 1) -> Any:
    return subject.sample(data, 1, np.random.default_rng(seed))[0]


def test_a_transcript_ends_with_the_analyst_the_session_or_the_number_of_queries() -> None:
    assert one(as_sessions(Echo(), [7, 7, 7])) == (1, 2, 3)
    assert one(as_sessions(Echo(), lambda transcript: 0)) == (1, 2, 3, 4, 5)
    assert one(as_sessions(Echo(), lambda transcript: 0, queries=2)) == (1, 2)
    assert one(as_sessions(Echo(), StopAfter([7] * 9, lambda answer: answer == 4))) == (1, 2, 3, 4)


def test_an_analyst_sees_every_answer_before_the_next_query() -> None:
    subject = as_sessions(Echo(), Bisection(0.0, 8.0, 3), with_queries=True)
    assert one(subject) == ((4.0, 1), (2.0, 2), (1.0, 3))
    assert one(subject, data=4) == ((4.0, 5), (6.0, 6), (5.0, 7))
    drawn = as_sessions(Echo(), lambda transcript, rng: int(rng.integers(9)), queries=3, with_queries=True)
    assert one(drawn) == one(drawn) != one(drawn, seed=2)  # a generator of its own, from the session's seed


def test_a_sound_sparse_vector_is_not_refuted() -> None:
    mechanism = SparseVector(epsilon=1.0, threshold=10.0, most=2)
    assert isinstance(mechanism, InteractiveMechanism)
    result = audit(as_sessions(mechanism, ALTERNATE))
    assert result.verdict in ("not_refuted", "inconclusive")  # alarm: 0.001 at most, at this seed
    assert result.subject["name"] == "sessions of SparseVector"


@pytest.mark.parametrize("faulty", [SparseVectorWithoutQueryNoise, SparseVectorWithoutEnd])
def test_a_faulty_sparse_vector_is_caught(faulty: type[SparseVector]) -> None:
    queries = ALTERNATE if faulty is SparseVectorWithoutQueryNoise else FixedQueries((0,) * 40 + (1,) * 40)
    mechanism = faulty(epsilon=1.0, threshold=10.0)
    result = audit(as_sessions(mechanism, queries))
    assert result.verdict == "violated"


def test_a_session_can_be_isolated() -> None:
    subject = as_sessions(SparseVectorWithoutQueryNoise(epsilon=1.0, threshold=10.0), ALTERNATE)
    result = audit(subject, isolation=True)
    assert result.verdict == "violated"
    assert result.subject["interface"] == "isolated, f(data, rng)"


def test_the_session_of_the_distance_queries_is_one_run_of_them() -> None:
    analyst = SlopeSeeker(1.0)
    mechanism = InteractiveDistances(practical(10**4, [1.0], 1.0, queries=4, beta=0.05), analyst, 4)
    data = np.linspace(0.0, 1.0, 10**4)[:, None]

    def asks(transcript: Any) -> Any:
        return analyst(np.array([[answer for _, answer in transcript]]))[0]

    subject = as_sessions(mechanism, asks)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rng.integers(2**32, size=8)  # the analyst's
        assert one(subject, data, seed) == tuple(mechanism.sample(data, 1, rng)[0].tolist())
