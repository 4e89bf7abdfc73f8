"""What several tests of this folder ask for."""

from __future__ import annotations

import math

import pytest

from dpaudit.running import crew


@pytest.fixture
def always_sent(monkeypatch):
    """Workers are asked whatever a draw takes, in several groups."""
    monkeypatch.setattr(crew.Crew, "seconds_saved", lambda crew, _: math.inf if crew.workers else 0.0)
    monkeypatch.setattr("dpaudit.campaign.draws.CHUNK_NUMBERS", 100)
