"""What is said when the draws cannot be carried to worker processes."""

from __future__ import annotations

import math
import threading

import pytest

import dpaudit
from dpaudit.running import worker_pool


def noise(data, size, rng):
    return data + rng.laplace(size=size)


class Locked:
    """A mechanism that cannot be pickled: locks stay in their process."""

    def __init__(self):
        self.lock = threading.Lock()

    def sample(self, data, size, rng):
        return noise(data, size, rng)


def test_an_unknown_backend_is_refused_before_the_first_draw():
    with pytest.raises(dpaudit.UsageError, match="backend must be one that joblib knows, got 'nonsense'"):
        dpaudit.audit(noise, "eps=1", [(0, 1)], jobs=2, backend="nonsense")


def test_a_mechanism_that_cannot_be_sent_to_workers_is_named_with_what_to_do(monkeypatch):
    monkeypatch.setattr(
        worker_pool.WorkerPool, "seconds_saved", lambda worker_pool, _: math.inf if worker_pool.workers else 0.0
    )  # workers are asked, whatever a draw takes
    with pytest.raises(dpaudit.UsageError, match=r"mechanism must be one that can be sent .* got Locked .* Use jobs=1"):
        dpaudit.audit(Locked(), "eps=1", [(0, 1)], jobs=2, samples=1_000)
    result = dpaudit.audit(Locked(), "eps=1", [(0, 1)], jobs=1, samples=20_000, mode="fixed", seed=1)
    assert result.verdict == "not_refuted"
