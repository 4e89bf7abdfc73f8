"""What several tests of this folder ask for."""

import math

import pytest

from dpaudit.running import worker_pool


@pytest.fixture
def always_sent(monkeypatch):
    """Workers are asked whatever a draw takes, in several groups."""
    monkeypatch.setattr(worker_pool.WorkerPool, "seconds_saved", lambda pool, _: math.inf if pool.workers else 0.0)
    monkeypatch.setattr("dpaudit.campaign.draws.CHUNK_NUMBERS", 100)
