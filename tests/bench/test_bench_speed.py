"""The measurements of speed: that they measure what their lines say, and what is written of them."""

import dataclasses
import statistics

import numpy as np
import pytest

import dpaudit
from dpaudit.bench import comparisons as published
from dpaudit.bench import extras
from dpaudit.bench.command import chosen_parts
from dpaudit.bench.design import Design
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
