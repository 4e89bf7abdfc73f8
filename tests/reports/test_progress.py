"""Progress of an audit: the live line, plain lines, JSON lines, and the time that is left."""

import dataclasses
import itertools
import json
import os
import sys
import types

import pytest

import dpaudit
from dpaudit.campaign.campaign import Progress
from dpaudit.reports import progress
from dpaudit.reports.progress import Clock, live_progress, state_text, status_line
from dpaudit.results.shown import session_progress
from dpaudit.running import worker_pool

STATE = Progress(45_000, 200_000, 47_000, 2, 1, 1.23, 7.5, open_pairs=1)


def laplace(data, size, rng):
    return data + rng.laplace(size=size)


@pytest.fixture
def time_goes(monkeypatch):
    """A clock that the test turns."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])

    def on(seconds):
        now[0] += seconds

    return on


def test_the_time_left_follows_the_draws(time_goes):
    clock = Clock()
    assert clock.left(STATE) is None  # nothing was told yet
    time_goes(60.0)  # what comes before the first draws that are told, such as fits, does not come again
    clock.see(dataclasses.replace(STATE, draws=20_000))
    assert clock.left(STATE) is None
    time_goes(5.0)
    clock.see(STATE)
    assert clock.left(STATE) == pytest.approx(31.0)  # 5 s for 25 thousand, and 155 thousand are left
    time_goes(4.0)
    assert clock.left(STATE) == pytest.approx(27.0)
    time_goes(40.0)
    assert clock.left(STATE) is None  # it takes longer than it seemed
    assert clock.left(dataclasses.replace(STATE, open_pairs=0)) == 0.0
    assert clock.record(STATE)["seconds"] == 109.0


def test_runs_tell_how_far_a_long_round_is(time_goes):
    """A fixed audit has one round after its pilot: the draws of a pair are told again at its end."""
    clock, pilot = Clock(), dataclasses.replace(STATE, draws=30_000, runs=40_000)
    time_goes(9.0)
    clock.see(pilot)
    for part in range(1, 4):
        time_goes(2.0)
        state = dataclasses.replace(pilot, runs=40_000 + 40_000 * part)  # 30 thousand draws in 2 s
        clock.see(state)
        assert clock.left(state) == pytest.approx((200_000 - 30_000 * (1 + part)) / 15_000)
    time_goes(2.0)
    clock.see(dataclasses.replace(pilot, runs=10**9))
    assert clock.left(state) is None  # more runs than there are draws left: it takes longer than was thought


def test_another_game_has_a_pace_of_its_own(time_goes):
    clock = Clock()
    for drawn in range(10_000, 60_000, 10_000):
        time_goes(1.0)
        clock.see(dataclasses.replace(STATE, draws=drawn))
    clock.see(dataclasses.replace(STATE, draws=2_000))
    assert clock.left(dataclasses.replace(STATE, draws=2_000)) is None
    time_goes(4.0)
    state = dataclasses.replace(STATE, draws=4_000)
    clock.see(state)
    assert clock.left(state) == pytest.approx(2.0 * 196)


def test_what_a_checkpoint_knew_is_not_taken_for_the_pace_of_draws(time_goes):
    clock = Clock()
    for drawn in range(1_000, 101_000, 1_000):  # found again, in a second
        time_goes(0.01)
        clock.see(dataclasses.replace(STATE, draws=drawn))
    for drawn in range(101_000, 106_000, 1_000):
        time_goes(1.0)
        clock.see(dataclasses.replace(STATE, draws=drawn))
    state = dataclasses.replace(STATE, draws=105_000)
    assert clock.left(state) == pytest.approx(95.0)


def test_without_a_terminal_a_plain_line_comes_now_and_then(time_goes, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with live_progress("target") as tell:
        for second in range(25):
            time_goes(1.0)
            tell(dataclasses.replace(STATE, draws=STATE.draws + 1_000 * second))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2  # after 10 and 20 seconds
    told = state_text(dataclasses.replace(STATE, draws=54_000))
    draws, pairs, rest = told.split(", ", 2)
    assert lines[0] == f"target: {draws}, {pairs}, 0:00:10, 0:02:26 left, {rest}"  # a second for a thousand draws
    with live_progress(quiet=True) as tell:
        assert tell is None


def test_on_a_terminal_the_line_is_live(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    with live_progress() as tell:
        tell(STATE)
    said = capsys.readouterr().err
    assert "log wealth 7.5" in said and "1 of 2 pairs left" in said and "left" in said


@pytest.mark.parametrize("label", ["", "m.py:f", "src/release/histograms.py:noisy_histogram_of_ages", "x" * 300])
def test_a_line_of_progress_fits_the_terminal(label, time_goes, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    busy = dataclasses.replace(STATE, draws=123_456, planned=1_234_567, runs=7_654_321, largest_log_wealth=-12.345)
    with live_progress(label) as tell:
        time_goes(36_000.0)
        tell(busy)
    (line,) = capsys.readouterr().err.splitlines()
    assert len(line) <= 80 and "draws" in line and "pairs left" in line and "10:00:00" in line
    assert line.startswith("m.py:f: ") == (label == "m.py:f") and not line.startswith(":")
    for width in range(20, 200):
        assert len(status_line(label, busy, "0:00:10, 0:00:34 left", width)) <= width
    line = status_line(label, busy, "0:00:10", 500)  # with room for it nothing is left out
    assert all(part in line for part in state_text(busy).split(", "))


def test_a_file_of_json_lines_follows_the_audit(tmp_path):
    path = tmp_path / "progress.jsonl"
    with live_progress(quiet=True, file=path) as tell:
        result = dpaudit.audit(laplace, "eps=0.4", [(0.0, 1.0), (1.0, 2.0)], samples=500, seed=1, on_progress=tell)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(records) > 5 and all(record["pairs"] == 2 for record in records)
    assert [record["draws"] for record in records] == sorted(record["draws"] for record in records)
    last = records[-1]
    assert last["open_pairs"] == 0 and last["seconds_left"] == 0.0
    assert last["violated"] == len(result.violated) and last["largest_log_wealth"] > 0.0
    with (
        pytest.raises(dpaudit.UsageError, match="progress must be a file that can be written"),
        live_progress(file=tmp_path / "no" / "folder"),
    ):
        pass


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no file that is always full")
def test_a_file_that_is_full_is_said_once_and_ends_no_audit(capsys):
    with live_progress(quiet=True, file="/dev/full") as tell:
        result = dpaudit.audit(laplace, "eps=0.4", [(0.0, 1.0)], samples=500, seed=1, on_progress=tell)
    assert result.verdict == "violated"
    said = capsys.readouterr().err
    assert said == "Note: no more progress is written to '/dev/full' (No space left on device); the audit goes on.\n"


def test_a_long_round_is_told_of_chunk_by_chunk(monkeypatch):

    monkeypatch.setattr("dpaudit.campaign.draws.CHUNK_NUMBERS", 100)
    monkeypatch.setattr(worker_pool, "TELL_SECONDS", 0.0)
    states = []
    dpaudit.audit(
        laplace,
        "eps=1",
        [(0.0, 1.0)],
        samples=1_000,
        seed=1,
        mode="fixed",
        floating_point=False,
        on_progress=states.append,
    )
    runs = [state.runs for state in states]
    assert len(set(runs)) > 10 and runs == sorted(runs)  # one round of twenty chunks
    sequential = []
    dpaudit.audit(
        laplace, "eps=1", [(0.0, 1.0)], samples=5_000, seed=1, floating_point=False, on_progress=sequential.append
    )
    between = [b.runs - a.runs for a, b in itertools.pairwise(sequential) if a.draws == b.draws]
    assert len(between) > 20 and min(between) >= 0


def test_in_a_notebook_a_cell_shows_a_slow_audit_and_is_empty_at_its_end(time_goes, monkeypatch):
    shown = []
    cell = types.SimpleNamespace(update=shown.append)
    display = types.SimpleNamespace(HTML=str, display=lambda *_, display_id: cell)
    shell = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=1))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    with session_progress("target", None) as tell:
        tell(STATE)
        assert not shown
        time_goes(4.0)
        tell(STATE)
        assert "45k/200k draws, 1 of 2 pairs left" in shown[0] and 'max="200000"' in shown[0]
    assert shown[1:] == [""]


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="the system has no such name for standard output")
@pytest.mark.parametrize("number", [1, 2])
def test_a_file_that_is_printed_into_is_neither_emptied_nor_written_over(tmp_path, number):
    kept, path = os.dup(number), tmp_path / "log"
    try:
        os.dup2(handle := os.open(path, os.O_WRONLY | os.O_CREAT), number)  # as of `> log`
        os.write(number, b"before\n")
        with live_progress(quiet=True, file=f"/dev/{['stdout', 'stderr'][number - 1]}") as tell:
            tell(STATE)
            os.write(number, b"while\n")
            tell(STATE)
        os.write(number, b"after\n")
    finally:
        os.dup2(kept, number)
        os.close(kept)
        os.close(handle)
    before, first, during, second, after = path.read_text().splitlines()
    assert (before, during, after) == ("before", "while", "after")
    assert json.loads(first)["draws"] == json.loads(second)["draws"] == STATE.draws
