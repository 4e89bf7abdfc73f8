"""The measurements of speed: that they measure what their lines say, and what is written of them."""

import dataclasses
import statistics

import numpy as np
import pytest

import dpaudit
from dpaudit.bench import comparisons as published
from dpaudit.bench import extras, speed
from dpaudit.bench.command import chosen_parts
from dpaudit.bench.design import QUICK, Design
from dpaudit.bench.speed_page import BEGIN, END, into_page, table, write_speed

LINE = {"what": "a start", "value": "0.5 s", "asked": "0.6 s", "met": True}
CURVES = {name: [(1, 0.5), (10, 4.0)] for name in ("pairs", "draws", "dimensions", "processes")}
CONTENT = {
    "extras": {
        "start": {"lines": [LINE, {**LINE, "what": "another", "met": False}], "says": "both", "met": False},
        "runs": {"says": "few", "met": True},
        "curves": {"curves": CURVES, "says": "", "met": True},
        "jobs": {"error": "broke"},
    }
}


def test_speed_stands_for_all_of_its_measurements():
    parts, chosen = chosen_parts("speed,start", extras.load_extras(), False, has_names=False)
    assert parts == [] and [extra.name for extra in chosen] == list(extras.SETS["speed"])
    assert not any(extra.by_default for extra in chosen)
    with pytest.raises(dpaudit.UsageError, match="Did you mean 'speed'"):
        chosen_parts("sped", extras.load_extras(), False, has_names=False)


def test_a_start_is_measured_in_processes_of_its_own(monkeypatch):
    took = iter([2.0, 0.5, 0.1, 1.0, 0.9, 0.2, 3.0, 0.4, 0.3])
    commands = []
    monkeypatch.setattr(speed, "_of_process", lambda command: commands.append(command) or next(took))
    record = speed.start(dataclasses.replace(QUICK, overhead_repeats=3))
    assert len(commands) == 9 and commands[0] != commands[1]
    assert [line["value"].split(" s")[0] for line in record["lines"]] == ["0.5", "0.2"]
    assert [line["met"] for line in record["lines"]] == [True, False] and not record["met"]
    assert "0.25 times" in record["lines"][0]["value"]


def test_a_process_that_breaks_is_an_error():
    assert speed._of_process([speed.sys.executable, "-c", "sum(range(10**6))"]) > 0.0
    with pytest.raises(dpaudit.DpauditError, match="got 'no more'"):
        speed._of_process([speed.sys.executable, "-c", "import sys; sys.exit('no more')"])


def test_what_is_read_is_what_the_lines_say(monkeypatch):
    monkeypatch.setattr(speed, "OUTPUTS", 200)
    monkeypatch.setattr(speed, "TABLES", 20)
    read = []
    plain = speed.read_outputs
    monkeypatch.setattr(speed, "read_outputs", lambda outputs, size: read.append(outputs[0]) or plain(outputs, size))
    lines = speed.reading(QUICK)["lines"]
    assert [line["what"] for line in lines][:2] == ["200 flat dictionaries", "200 records in records"]
    assert {"count", "mean", "kind"} in [set(one) for one in read] and {"of", "kind"} in [set(one) for one in read]


def test_many_pairs_are_as_many_as_the_line_says(monkeypatch):
    asked = []
    monkeypatch.setattr(speed.dpaudit, "audit", lambda *args, **options: asked.append((args[1], args[2], options)))
    monkeypatch.setattr(speed, "_warm", lambda: None)
    speed.pairs(QUICK)
    assert [len(chosen) for _, chosen, _ in asked] == list(speed.MANY)
    claim, chosen, options = asked[0]
    assert all(claim.for_pair(*pair).value == abs(pair[0] - pair[1]) for pair in chosen)
    assert len(set(chosen)) == len(chosen) and options["samples"] == speed.PAIR_SAMPLES


def test_a_curve_ends_behind_its_first_slow_point(monkeypatch):
    took = iter([1.0, 61.0, 1.0])
    monkeypatch.setattr(speed, "_seconds", lambda run: next(took))
    assert speed._curve((1, 2, 3), lambda size: None) == [(1, 1.0), (2, 61.0)]


def test_its_table_and_its_figure_are_written(tmp_path):
    assert table(CONTENT).splitlines() == [
        "| what | measured | asked for | met |",
        "| --- | --- | --- | --- |",
        "| a start | 0.5 s | 0.6 s | yes |",
        "| another | 0.5 s | 0.6 s | no |",
        "",
        "*runs*: few.",
    ]
    assert [path.name for path in write_speed(CONTENT, tmp_path)] == ["speed.md", "speed.svg", "speed.png"]
    assert (tmp_path / "speed.png").read_bytes()[:4] == b"\x89PNG"
    assert write_speed({"extras": {"runs": {"says": "few", "met": True}}}, tmp_path) == []


def test_a_page_keeps_what_is_around_the_table(tmp_path):
    page = tmp_path / "speed.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    for _ in range(2):
        into_page(CONTENT, page)
        text = page.read_text(encoding="utf-8")
        assert text.startswith("before\n") and text.endswith(f"{END}\nafter\n")
        assert "old" not in text and text.count("| a start |") == 1
    for broken in ("", BEGIN, f"{END}{BEGIN}", f"{BEGIN}{END}{END}", f"{BEGIN}{BEGIN}{END}"):
        page.write_text(broken, encoding="utf-8")
        with pytest.raises(dpaudit.UsageError, match="page must have the marks"):
            into_page(CONTENT, page)
    with pytest.raises(dpaudit.UsageError, match="page must be a readable page"):
        into_page(CONTENT, tmp_path / "none.md")


def test_the_least_draws_are_those_that_the_game_needs():
    """Randomised response of loss 3 against 1: bets win a relative entropy, in closed form."""

    def density(data, outputs):
        of_each = (outputs != 0.0) / (len(outputs) // 2) / (outputs[1] - outputs[0])
        right = np.exp(3.0) / (1.0 + np.exp(3.0))
        return np.where((outputs > 0.0) == (data > 0.5), right, 1.0 - right) * of_each

    case = published.Comparison("", None, "eps=1", (0.0, 1.0), 1, density, 1.0, 1.0)
    right, allowed = np.exp(3.0) / (1.0 + np.exp(3.0)), np.exp(1.0) / (1.0 + np.exp(1.0))
    won = right * np.log(right / allowed) + (1.0 - right) * np.log((1.0 - right) / (1.0 - allowed))
    assert published.least_draws(case) == pytest.approx(np.log(20.0) / won, rel=1e-6)


def test_published_comparisons_count_all_runs(monkeypatch):
    case = published.COMPARISONS[2]
    monkeypatch.setattr(published, "COMPARISONS", (dataclasses.replace(case, published=10**6),))
    monkeypatch.setattr(published, "SEEDS_TIMES", 1)
    record = published.comparisons(Design(seeds=2))
    (of,) = record["cases"].values()
    assert record["met"] and of["nothing"]["found"] == 2 and of["nothing"]["runs"] >= of["nothing"]["labelled"]
    assert of["default"]["runs"] >= of["default"]["labelled"] + 100 and of["default"]["low_bits"] >= 1_000
    assert of["nothing"]["low_bits"] == 0 and of["least"] < of["nothing"]["labelled"]
    seeds = [Design().audit_seed(case.name, "comparisons", number) for number in range(2)]
    again = [
        dpaudit.audit(case.sample, case.claim, [case.pair], samples=20_000, seed=seed, **published.BEHIND["nothing"])
        for seed in seeds
    ]
    assert of["nothing"]["runs"] == statistics.median(result.samples for result in again)
    monkeypatch.setattr(published, "COMPARISONS", (dataclasses.replace(case, published=1),))
    monkeypatch.setattr(published, "SEEDS_TIMES", 3)
    record = published.comparisons(Design(seeds=1))
    assert not record["met"] and record["cases"][case.name]["nothing"]["found"] == 3
