"""`dpaudit bench` as a user meets it."""

import json

import pytest
from click.testing import CliRunner

from dpaudit.bench.benching import load_bench
from dpaudit.bench.problem_set import problems
from dpaudit.bench.speed_page import write_speed
from dpaudit.cli import main

CHOSEN = ("classic laplace", "laplace 1", "laplace 1, true 2", "word 1")


class Entry:
    name, value = "test", "test:problems"

    def load(self):
        return lambda: [problem for problem in problems() if problem.id in CHOSEN]


@pytest.fixture
def installed(monkeypatch):
    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda group: [Entry()] if group == "dpaudit.problems" else []
    )


def bench(*arguments):
    return CliRunner().invoke(main, ["bench", *arguments])


def test_a_quick_run_writes_results_and_a_plot(installed, tmp_path):
    out = tmp_path / "out"
    done = bench("--quick", "--only", "draws,bounds,alarms,classics", "--out", str(out))
    assert done.exit_code == 0, done.output
    assert "Draws to detection over the optimum's" not in done.stdout  # none of them needs 100 draws
    for words in ("laplace 1, true 2", "classic", "False alarms", "Written:"):
        assert words in done.stdout
    assert "[1/9] draws: laplace 1, true 2" in done.stderr
    text = (out / "bench.json").read_text(encoding="utf-8")
    record = json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is no strict JSON"))
    assert record["schema"] == "dpaudit.bench/1" and list(record["problems"]) == list(CHOSEN)
    assert (out / "bench.svg").read_text(encoding="utf-8").lstrip().startswith("<?xml")
    assert (out / "bench.png").read_bytes().startswith(b"\x89PNG")


def test_resume_measures_only_what_is_missing(installed, tmp_path):
    options = ("--quick", "--only", "draws,bounds", "--out", str(tmp_path))
    assert bench(*options).exit_code == 0
    path = tmp_path / "bench.json"
    before = load_bench(path)["problems"]["word 1"]["parts"]["bounds"]["lower"]
    record = json.loads(path.read_text())
    del record["problems"]["word 1"]["parts"]["bounds"]
    path.write_text(json.dumps(record))
    done = bench(*options, "--resume")
    assert done.exit_code == 0 and "[1/1] bounds: word 1" in done.stderr
    assert load_bench(path)["problems"]["word 1"]["parts"]["bounds"]["lower"] == before
    done = bench(*options, "--resume", "--seeds", "3")
    assert done.exit_code == 2 and "design must be that of the run to resume" in done.stderr


def test_named_problems_alone(installed, tmp_path):
    done = bench("laplace 1, true 2", "--quick", "--quiet", "--out", str(tmp_path))
    assert done.exit_code == 0 and done.stderr == ""
    assert "that all of it runs is what they show, and nothing else" in " ".join(done.stdout.split())
    assert list(load_bench(tmp_path / "bench.json")["problems"]) == ["laplace 1, true 2"]
    assert load_bench(tmp_path / "bench.json")["extras"] == {}


def test_a_plot_is_the_same_files_each_time(tmp_path):
    curves = {name: [(1, 0.1), (10, 1.5), (100, 3.0)] for name in ("pairs", "draws", "dimensions", "processes")}
    content = {"extras": {"curves": {"curves": curves}}}
    first, second = (write_speed(content, tmp_path / name) for name in ("first", "second"))
    assert [path.name for path in first] == ["speed.svg", "speed.png"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
