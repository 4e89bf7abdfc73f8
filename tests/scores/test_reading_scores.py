"""Scores from files of every kind, and the command that reads them."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import dpaudit
from dpaudit.cli import main
from dpaudit.reports.curves import staircase
from dpaudit.scores.reading import as_scores

VALUES = [0.5, -1.0, float("inf"), float("nan")]


def written(folder, name):
    path = folder / name
    if name == "a.csv":
        path.write_text("0.5\n-1\ninf\nnan\n")
    elif name == "b.csv":
        path.write_text("id,score\n1,0.5\n2,-1\n3,inf\n4,nan\n")
        return f"{path}:score"
    elif name == "c.npy":
        np.save(path, np.array(VALUES))
    elif name == "d.npz":
        np.savez(path, other=np.zeros(2), score=np.array(VALUES))
        return f"{path}:score"
    elif name == "e.json":
        path.write_text('[0.5, -1, "inf", "nan"]')
    elif name == "f.json":
        path.write_text('{"score": [0.5, -1, "inf", "nan"], "loss": []}')
        return f"{path}:score"
    elif name == "g.parquet":
        pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow (extra data)")
        from pyarrow import parquet

        parquet.write_table(pyarrow.table({"score": VALUES}), path)
    return str(path)


@pytest.mark.parametrize("name", ["a.csv", "b.csv", "c.npy", "d.npz", "e.json", "f.json", "g.parquet"])
def test_every_kind_of_file_gives_the_same_scores(tmp_path, name):
    np.testing.assert_array_equal(as_scores("scores_in", written(tmp_path, name)), VALUES)


def run(*arguments):
    return CliRunner().invoke(main, list(arguments))


def test_the_command_audits_files_and_writes_reports(tmp_path):
    rng = np.random.default_rng(1)
    is_in = rng.integers(0, 2, 400) == 1
    scores = rng.normal(size=400) + 6.0 * is_in
    np.save(tmp_path / "in.npy", scores[is_in])
    np.save(tmp_path / "out.npy", scores[~is_in])
    files = str(tmp_path / "in.npy"), str(tmp_path / "out.npy")
    found = run("scores", *files, "--claim", "eps=1,delta=1e-5", "--seed", "1", "--out", str(tmp_path / "out"))
    assert found.exit_code == 1 and found.stdout.startswith("Violated: with 95% confidence")
    assert "Assumes: One run of the mechanism." in found.stdout
    page = (tmp_path / "out" / "scores.html").read_text()
    assert "<svg" in page and "some attack is at or below" in page
    assert "ceiling" in (tmp_path / "out" / "scores.md").read_text()
    record = json.loads((tmp_path / "out" / "scores.json").read_text())
    assert record["verdict"] == "violated"
    again = run("scores", *files, "--claim", "eps=1,delta=1e-5", "--seed", "1", "--format", "json")
    assert {**json.loads(again.stdout), "seconds": 0} == {**record, "seconds": 0}
    few = run("scores", *files, "--claim", "eps=9", "--design", "one-run", "--seed", "1")
    assert few.exit_code == 5 and "even perfect guesses" in few.stdout


def test_a_sequential_audit_is_reported_with_both_limits_and_refuses_sorted_files(tmp_path):
    rng = np.random.default_rng(3)
    sides = rng.normal(1.0, 1.0, 40), rng.normal(0.0, 1.0, 40)
    for name, scores in (("in", sides[0]), ("out", sides[1]), ("sorted", np.sort(sides[1]))):
        np.savetxt(tmp_path / f"{name}.txt", scores)
    stated = "--claim", "eps=1", "--design", "sequential", "--out", str(tmp_path / "out")
    found = run("scores", str(tmp_path / "in.txt"), str(tmp_path / "out.txt"), *stated)
    assert found.exit_code in (0, 1, 5) and "Every look at a longer list has the same seed" in found.stdout
    page = (tmp_path / "out" / "scores.html").read_text()
    assert "no threshold of this score is below" in page and "says nothing of other tests" in page
    points = dpaudit.load_scores(tmp_path / "out" / "scores.json").trade_off
    limits = np.array([(point.type_one, point.thresholds_lower) for point in points])
    corners = staircase(limits.tolist())
    assert np.all(np.diff(limits[:, 1]) <= 0.0)
    assert all(y <= limits[limits[:, 0] == x, 1][0] for x, y in corners)  # where a step begins and where it ends
    refused = run("scores", str(tmp_path / "in.txt"), str(tmp_path / "sorted.txt"), *stated)
    assert refused.exit_code == 2 and "scores_out must be in the order of the runs" in refused.stderr
