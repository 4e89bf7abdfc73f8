"""Clocks that leap, go backwards or stand still change no result."""

import datetime
import itertools
import random
import time

import pytest
from click.testing import CliRunner
from support.samplers import laplace

import dpaudit
from dpaudit.cli import main
from dpaudit.running import store as stores
from dpaudit.running.store import Store


def session(path):
    return dpaudit.audit(laplace, "eps=1", [(0.0, 1.0)], seed=3, samples=80, floating_point=False, store=path)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The wealth of three sessions, with the clock of this machine."""
    path = tmp_path_factory.mktemp("clock") / "store.db"
    return [session(path).findings[0].log_wealth for _ in range(3)]


@pytest.fixture(params=["backwards", "leaping", "standing still"])
def clock(request, monkeypatch, expected):
    """A wall clock that is wrong. (Monotonic ones never go back; they leap where a machine sleeps.)"""
    ticks = itertools.count()
    rng = random.Random(1)
    start = datetime.datetime(2026, 11, 26, 2, tzinfo=datetime.UTC)
    hours = {"backwards": lambda: -next(ticks), "leaping": lambda: rng.randint(-9_000, 9_000), "standing still": int}
    of_wall = hours[request.param]

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, zone=None):
            return start + datetime.timedelta(hours=of_wall())

    monkeypatch.setattr(stores, "datetime", Clock)
    monkeypatch.setattr(time, "time", lambda: start.timestamp() + 3_600.0 * of_wall())
    if request.param != "backwards":
        steps = itertools.accumulate(rng.choice([0.0, 0.0, 1e-9, 5e3]) for _ in itertools.count())
        still = request.param == "standing still"
        monkeypatch.setattr(time, "monotonic", lambda: 7.0 if still else next(steps))
        monkeypatch.setattr(time, "perf_counter", lambda: 7.0 if still else next(steps))
    return request.param


def test_sessions_follow_each_other_whatever_the_clock_says(tmp_path, clock, expected):
    path = tmp_path / "store.db"
    results = [session(path) for _ in range(3)]
    assert [result.options["night"] for result in results] == [1, 2, 3]
    assert [result.options["stream"] for result in results] == ["3/0", "3/1", "3/2"]
    assert [result.findings[0].log_wealth for result in results] == expected
    with Store.at(path) as store:
        (subject,) = store.subjects()
    assert [session["number"] for session in subject["nights"]] == [0, 1, 2]
    assert [look["labelled"] for look in subject["looks"]] == sorted(look["labelled"] for look in subject["looks"])
    for command in ("list", "explain", "export"):
        done = CliRunner().invoke(main, ["evidence", command, "--store", str(path)])
        assert done.exit_code == 0, done.output
