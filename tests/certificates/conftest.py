"""Certificates in these tests hold laws against fewer runs, which take most of their time."""

from __future__ import annotations

import pytest

from dpaudit.symbolic import real_runs


@pytest.fixture(autouse=True)
def few_runs(monkeypatch):
    monkeypatch.setattr(real_runs, "RUNS", 40)
