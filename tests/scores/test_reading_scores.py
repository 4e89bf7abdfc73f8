"""Scores from files of every kind, the command that reads them, and their order against enumeration of arrangements."""

import itertools
import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

import dpaudit
from dpaudit.cli import main
from dpaudit.errors import UsageError
from dpaudit.reports.curves import staircase
from dpaudit.scores.order import _few_descents, is_sorted, order_p_value, sorted_probability
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


@pytest.mark.parametrize("content, ending, message", [
    ("0\n0.5\n-1.5\n", "", "a name .* or a score, got 0 above"),  # pandas.Series([0.5, -1.5]).to_csv(index=False)
    ("a,b,a\n0.5,1,2\n", ":a", "must name one column among a, b, a, got 'a'"),
])  # fmt: skip
def test_a_file_that_may_be_read_in_two_ways_is_refused(tmp_path, content, ending, message):
    (tmp_path / "s.csv").write_text(content)
    with pytest.raises(UsageError, match=message):
        as_scores("scores_in", f"{tmp_path / 's.csv'}{ending}")
    (tmp_path / "whole.csv").write_text("0\n1\n-2\n")
    assert as_scores("scores_in", str(tmp_path / "whole.csv")).tolist() == [0.0, 1.0, -2.0]
    (tmp_path / "named.csv").write_text("0\n0.5\n-1.5\n")
    assert as_scores("scores_in", f"{tmp_path / 'named.csv'}:0").tolist() == [0.5, -1.5]


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


# ---- their order -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scores", [[1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 0.0, 1.0, 1.0, 1.0, 2.0], [7.0] * 4])
def test_the_probability_of_a_sorted_column_is_that_of_enumeration(scores):
    arrangements = list(itertools.permutations(scores))
    rising = sum(all(a <= b for a, b in itertools.pairwise(found)) for found in arrangements)
    assert sorted_probability(np.array(scores)) == pytest.approx(rising / len(arrangements), rel=1e-12)


@pytest.mark.parametrize("size", [2, 5, 7])
def test_the_bound_on_descents_is_above_the_law_of_all_permutations(size):
    found = [sum(a > b for a, b in itertools.pairwise(order)) for order in itertools.permutations(range(size))]
    for descents in range(size):
        exact = np.mean([count <= descents for count in found])
        assert exact <= _few_descents(size, descents) <= max(1.0 * (descents >= size / 2), 12.0 * exact)


def test_p_values_of_independent_runs_are_not_too_small():
    """P(p <= 0.2) is at most 0.2 in each case: P(Binomial(1000, 0.2) >= 268) = 1.5e-7."""
    assert stats.binom.sf(267, 1_000, 0.2) < 2e-7
    for seed, draw in enumerate((np.random.Generator.normal, lambda rng, size: rng.integers(0, 2, size) + 0.0)):
        rng = np.random.default_rng(seed)
        small = sum(order_p_value(draw(rng, size=6), rng) <= 0.2 for _ in range(1_000))
        assert small < 268


def test_equal_scores_and_nan_are_in_no_order():
    rng = np.random.default_rng(3)
    assert order_p_value(np.zeros(500), rng) > 1e-6
    assert order_p_value(np.array([np.nan] * 50 + [1.0] * 50), rng) < 1e-20  # sorted, NaN below everything
    assert order_p_value(np.array([1.0]), rng) == 1.0 and order_p_value(np.array([]), rng) == 1.0
    assert is_sorted(np.array([2.0, 1.0, 1.0])) and not is_sorted(np.array([1.0, 2.0, 1.0]))


@pytest.mark.parametrize("design", ["one-run", "many-runs", "paired"])
@pytest.mark.parametrize("content", ["", "score\n"])
def test_a_file_without_scores_is_named(tmp_path, design, content):
    (tmp_path / "empty.csv").write_text(content)
    np.savetxt(tmp_path / "full.csv", np.random.default_rng(0).normal(size=400))
    found = run(
        "scores", str(tmp_path / "empty.csv"), str(tmp_path / "full.csv"), "--claim", "eps=1", "--design", design
    )
    assert found.exit_code == 2
    assert re.fullmatch(r"Error: scores_in must have at least one score, got none at .*empty\.csv\.\n", found.stderr)
