"""The line that runs a finding again: one for all reports, which works, and says what it cannot know."""

import dataclasses
import html
import json
import re
import shlex

import numpy as np
import pytest
from click.testing import CliRunner

import dpaudit
from dpaudit import reports
from dpaudit.cli import main
from dpaudit.reports import brief, terminal
from dpaudit.reports.replay_command import again, check_again

CODE = """
import numpy as np
from dpaudit import MetricDP, Pair
class Table:
    def __init__(self, rows): self.rows = rows
    def __len__(self): return self.rows
def tables(): return [Pair(Table(3), Table(2), id="it's")]
def lengths(data, rng): return len(data) + rng.laplace(scale=0.1)
def loud(data, size, rng): return data + rng.laplace(scale=0.1, size=size)
def names(data, rng): return ord(data)
class Own:
    claim = MetricDP(lambda x, x_prime: abs(len(x) - len(x_prime)) * 1.0)
    def pairs(self): return tables()
    def sample(self, data, size, rng): return len(data) + rng.laplace(scale=0.1, size=size)
own = Own()
"""
METRIC = "id,a,b\na,0,1\nb,1,0\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command line in a folder with mechanisms in again_m.py and a metric in points.csv."""
    (tmp_path / "again_m.py").write_text(CODE)
    (tmp_path / "points.csv").write_text(METRIC)
    (tmp_path / "pairs.json").write_text("[[0, 1]]")
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner(env={"COLUMNS": "80"}).invoke(main, arguments, prog_name="dpaudit")


def commands(text, command="replay"):
    """The lines of a report that run something again, without the escapes and breaks of its format."""
    text = html.unescape(text).replace("\\\n", " ")
    return [re.sub(r"\s+", " ", line).strip() for line in re.findall(rf"dpaudit {command} [^\n<`]*", text)]


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("again_m.py:lengths", ("--claim", "eps=1", "--pairs", "again_m.py:tables")),
        ("again_m.py:loud", ("--claim", "eps=1", "--pairs", "0,1")),
        ("again_m.py:loud", ("--claim", "eps=1", "--pairs", "pairs.json")),
        ("again_m.py:own", ()),
    ],
    ids=["named pairs", "listed pairs", "a file of pairs", "its own claim and pairs"],
)
def test_every_report_prints_the_same_line_and_it_works(run, tmp_path, target, options):
    shown = run("audit", target, *options, "--samples", "2000", "--seed", "3", "--no-floating-point", "--out", "o")
    assert shown.exit_code == 1
    run("report", "o/audit.json", "--profile", "compliance", "--report", "html,md", "--out", "c")
    run("report", "o/audit.json", "--report", "html,md", "--out", "r")
    files = ["o/audit.html", "o/audit.md", "r/audit.html", "r/audit.md", "c/compliance.html", "c/compliance.md"]
    found = [commands((tmp_path / name).read_text()) for name in files]
    [line] = commands(shown.stdout)
    assert found == [[line]] * len(files)
    arguments = shlex.split(line)[1:]
    assert arguments[1] == "o/audit.json"
    assert ("--pairs" in arguments) == (options[-1:] not in ((), ("0,1",)))
    assert run(*arguments, "--seed", "5").exit_code == 1


def test_a_claim_that_cannot_be_read_back_is_in_the_line(run):
    claim = "metric=points.csv,scale=0.1"
    shown = run("audit", "again_m.py:names", "--claim", claim, "--pairs", '"a","b"', "--samples", "500", "--out", "o")
    [line] = commands(shown.stdout)
    assert claim in shlex.split(line)
    assert run(*shlex.split(line)[1:]).exit_code == 1


def leaks(data, size, rng):
    return np.full(size, float(np.sum(data)))


def test_what_no_command_can_replay_is_a_call_from_python():
    metric = dpaudit.MetricDP(lambda x, x_prime: 1.0)
    result = dpaudit.audit(leaks, metric, [(0.0, 1.0)], samples=500, seed=1)
    written = [
        reports.render(result, "html"),
        reports.render(result, "md").replace("\\", ""),
        reports.render(result, "html", "compliance"),
        terminal.plain(brief.violation(result)),
    ]
    for text in written:
        text = re.sub(r"\s+", " ", html.unescape(text))
        assert not commands(text)
        assert "dpaudit.replay(dpaudit.load('audit.json'), mechanism, claim, pair='0.0|1.0')" in text
        assert "the result names no target and its claim, metric=function, cannot be read back" in text
        assert "Give the mechanism that was audited, and its claim." in text


def test_the_call_from_python_works_as_it_is_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    inputs = (frozenset([1]), frozenset([1, 2]))

    class Bag:
        def __init__(self, items):
            self.items = items

    def counts(data, size, rng):
        return np.full(size, float(len(data.items)))

    pair = dpaudit.Pair(*map(Bag, inputs), id="bags")
    result = dpaudit.audit(counts, "eps=1", [pair], samples=500, seed=1)
    result.save("mine.json")
    line = again(dpaudit.load("mine.json"), "bags", "mine.json")
    assert line == again(result, "bags", "mine.json") and "the two inputs of the pair" in line.needs
    names = {"dpaudit": dpaudit, "mechanism": counts, "x": pair.x, "x_prime": pair.x_prime}
    assert eval(line.line, names).confirmed  # the line that this very test had printed


def test_a_report_names_the_file_that_was_saved(tmp_path):
    result = dpaudit.audit(leaks, "eps=1", [(0.0, 1.0)], samples=500, seed=1, target="m.py:leaks")
    for name in ("one.html", "one.md"):
        path = reports.write_report(result, tmp_path / name, saved="results/mine.json")
        assert "dpaudit replay results/mine.json --pair" in path.read_text()
        assert "dpaudit replay audit.json --pair" in reports.render(result, reports.format_of(name))


def test_what_a_redacted_report_holds_does_not_list_pairs(run, tmp_path):
    run("audit", "again_m.py:lengths", "--claim", "eps=1", "--pairs", "again_m.py:tables", "--samples", "500",
        "--out", "o")  # fmt: skip
    run("check", "again_m.py:loud", "--claim", "eps=1", "--pairs", "0,1234567", "--only", "claim_audit", "--out", "o")
    files = ("o/audit.json", "o/check.json")
    run("report", *files, "--profile", "compliance", "--redact", "--report", "json", "--out", "c")
    text = (tmp_path / "c/compliance.json").read_text()
    assert "again_m.py:tables" not in text and "1234567" not in text
    assert all("claim" not in source["result"]["options"] for source in json.loads(text)["results"])
    assert all("again_m.py:tables" in (tmp_path / one).read_text() or "1234567" in (tmp_path / one).read_text()
               for one in files)  # fmt: skip


# Failed checks.


def check_lines(run, tmp_path, *options):
    run("check", "again_m.py:loud", *options, "--seed", "4", "--out", "o")
    run("report", "o/check.json", "--profile", "compliance", "--report", "md", "--out", "c")
    return commands((tmp_path / "c/compliance.md").read_text(), "check")


def test_failed_checks_are_run_again_on_the_claim_and_the_pairs_that_they_had(run, tmp_path):
    options = ("--claim", "eps=1", "--pairs", "0,1; 1,2", "--samples", "1500")
    [line] = check_lines(run, tmp_path, *options)
    before = reports.reading.read_dossier([tmp_path / "o/check.json"]).checks[0]
    failed = [record.name for record in before.of_status("violated")]
    assert len(failed) == 5  # what follows from one that failed is skipped; all that did are in the line
    again = run(*shlex.split(line)[1:], "--out", "again")
    after = reports.reading.read_dossier([tmp_path / "again/check.json"]).checks[0]
    assert again.exit_code == 1 and [record.name for record in after.records] == failed
    assert {record.status for record in after.records} == {"violated"}


def test_checks_that_no_command_can_run_again_are_a_call_from_python():
    found = dpaudit.check(leaks, "eps=1", [(0.0, 1.0)], only=["claim_audit"], seed=1)
    line = check_again(found, found.mechanisms[0])
    assert line.line == "dpaudit.check(mechanism, claim, pairs, only=['claim_audit'], seed=1)"
    assert "the result names no target and it does not hold the pairs of inputs" in line.needs
    named = dataclasses.replace(found, mechanisms=({**found.mechanisms[0], "target": "m.py:leaks"},))
    own = check_again(dataclasses.replace(named, options={"states": ["pairs"]}), named.mechanisms[0])
    assert own.line == "dpaudit check m.py:leaks --claim eps=1 --only claim_audit --seed 1"
    assert check_again(dataclasses.replace(named, records=()), named.mechanisms[0]) is None


def test_violated_pairs_without_a_line_are_counted(synthetic):
    result = synthetic.result([synthetic.finding("a", str(k), 1.5) for k in range(9)], claim="eps=1")
    text = reports.render(result, "md", "compliance")
    assert len(commands(text)) == 3 and "6 more violated pairs" in text
