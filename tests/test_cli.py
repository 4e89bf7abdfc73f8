"""The command line: exit status, what is said where, what is written.

No outcome here is left to chance: every project states `confidence` 1 - 1e-9, so that a mechanism that keeps its claim
is refuted in at most one of 10**9 choices of a seed, and the mechanism that breaks its claim returns its input (see
test_pytest_plugin.py).
"""

import dataclasses
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import dpaudit
from dpaudit.cli import main
from dpaudit.reports import render

CODE = '''
import numpy as np
from dpaudit import MetricDP, Pair, PureDP

class Sound:
    claim = PureDP(1.0)
    scale = 1.0
    def sample(self, data, size, rng): return data + rng.laplace(scale=self.scale, size=size)
    def pairs(self): return [(0.0, 1.0), (2.0, 1.0)]

class Exact(Sound):
    scale = 0.0

def budget(x, x_prime): return abs(x[0] - x_prime[0])

class OnVectors:
    """Needs arrays: its pairs cannot be read back from JSON."""
    claim = MetricDP(budget)
    def sample(self, data, size, rng): return np.full(size, data.sum())
    def pairs(self): return [Pair(np.array([0.0, 0.0]), np.array([1.0, 5.0]), id="far")]

class BadPairs(Sound):
    def pairs(self): return 1 / 0

sound, exact, on_vectors, bad_pairs = Sound(), Exact(), OnVectors(), BadPairs()
def leaky(data, rng): return data
def raises(data, rng): raise ValueError("the database\\nis \\x1b[31mgone")
def leaves(data, rng): raise SystemExit(0)
def stops(data, rng): raise KeyboardInterrupt
def short(data, size, rng): return rng.random(size - 1)
def vector_pairs(): return [Pair(np.array([0.0, 0.0]), np.array([1.0, 5.0]), id="far")]
def of_vectors(data, rng): return float(data.sum())
class Table:
    def __init__(self, rows): self.rows = rows
    def __len__(self): return self.rows
def table_pairs(): return [Pair(Table(3), Table(2), id="tables")]
def lengths(data, rng): return len(data) + rng.laplace(scale=0.1)
'''


@pytest.fixture
def run(project, monkeypatch):
    """Run the command line in a project with mechanisms in m.py; never a traceback, never an unexpected error."""
    (project / "m.py").write_text(CODE)
    (project / "mymodule.py").write_text("def release(data, rng): return data + rng.laplace()\n")
    configure(project)

    def run(*arguments, unexpected=False):
        result = CliRunner(env={"COLUMNS": "80"}).invoke(main, arguments, prog_name="dpaudit")
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "Traceback" not in result.output
        assert unexpected or "unexpected" not in result.stderr
        assert "\x1b" not in result.output
        kept_whole = ("  replay  ", "Written: ")
        assert all(len(line) <= 80 for line in result.stdout.splitlines() if not line.startswith(kept_whole))
        return result

    return run


def configure(project, text=""):
    (project / "pyproject.toml").write_text(
        f"[tool.dpaudit]\nsamples = 4000\nconfidence = 0.999999999\ninconclusive_factor = 100\nseed = 7\n{text}"
    )


def told(result):
    """The one message on stderr."""
    messages = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert len(messages) == 1, result.stderr
    return messages[0]


# The user story, and what each verdict says.


def test_the_three_lines_of_the_user_story(run):
    result = run("audit", "mymodule.py:release", "--claim", "eps=1", "--pairs", "0,1")
    assert result.exit_code == 0
    assert result.stderr == "Auditing mymodule.py:release, seed 7\n"
    assert "Not refuted: no broken promise found in 1 pair." in result.stdout
    assert re.search(r"^ 0\|1 .* not refuted\s*$", result.stdout, re.MULTILINE)
    assert re.search(r"99\.\d*% confidence|100% confidence", result.stdout)
    assert "seed 7" in result.stdout


def test_a_violation_exits_with_1_and_says_how_to_save_the_witness(run, project):
    result = run("audit", "m.py:leaky", "--claim", "eps=1", "--pairs", "0,1")
    assert result.exit_code == 1
    for words in ("Violated: the promise is broken for 1 of 1 pair", "rule ", "ε ≥", "audit again with --out DIR"):
        assert words in result.stdout
    assert not (project / "dpaudit-out").exists()


def test_too_few_draws_exit_with_5(run):
    result = run("audit", "mymodule.py:release", "--claim", "eps=1", "--pairs", "0,1", "--samples", "20")
    assert result.exit_code == 5
    assert "Inconclusive" in result.stdout
    assert "--samples" in result.stdout


def test_a_mechanism_that_raises_on_every_call_exits_with_3(run):
    result = run("audit", "m.py:raises", "--claim", "eps=1", "--pairs", "0,1")
    assert result.exit_code == 3
    assert "m.py:raises: raises must return outputs, got ValueError: the database is " in told(result)
    assert "gone in raises (m.py, line 27) from all 800 calls" in told(result)


def test_a_mechanism_that_ends_the_process_exits_with_3_and_not_with_its_own_status(run):
    result = run("audit", "m.py:leaves", "--claim", "eps=1", "--pairs", "0,1")
    assert result.exit_code == 3
    assert "SystemExit" in told(result)


def test_debug_shows_the_traceback_of_a_mechanism_that_always_raises(project):
    (project / "boom.py").write_text('def helper(x): return {}["column"]\ndef f(x, rng): return helper(x)\n')
    arguments = ["audit", "boom.py:f", "--claim", "eps=1", "--pairs", "0,1"]
    plain, debug = (CliRunner().invoke(main, [*arguments, *more]) for more in ([], ["--debug"]))
    for result in (plain, debug):
        assert "got KeyError: 'column' in helper (boom.py, line 1) from all 800 calls" in result.stderr
    assert "Traceback" not in plain.stderr
    assert "Traceback (most recent call last):" in debug.stderr and "line 2, in f" in debug.stderr


def test_an_interrupt_exits_with_130_and_one_line(run):
    result = run("audit", "m.py:stops", "--claim", "eps=1", "--pairs", "0,1", "--quiet")
    assert result.exit_code == 130
    assert result.stderr == "Interrupted.\n"


def test_the_claim_and_the_pairs_are_the_mechanisms_own_unless_given(run):
    result = run("audit", "m.py:sound", "--quiet", "--out", "o", "--report", "json")
    assert result.exit_code == 5  # so few samples settle nothing
    assert result.stderr == ""
    assert [finding.id for finding in dpaudit.load("o/audit.json").findings] == ["0.0|1.0", "2.0|1.0"]
    run("audit", "m.py:sound", "--claim", "eps=2", "--pairs", "5,6", "--out", "o", "--report", "json")
    saved = dpaudit.load("o/audit.json")
    assert (saved.claim, [finding.id for finding in saved.findings]) == ("eps=2", ["5|6"])


def test_every_option_reaches_the_audit(run):
    options = "--samples 300 --mode fixed --confidence 0.9999999 --seed 3 --jobs 1 --event-mass 0.2 --no-pool"
    more = "--no-severity"
    run("audit", "m.py:sound", *options.split(), more, "--inconclusive-factor", "4", "--out", "o", "--report", "json")
    saved = dpaudit.load("o/audit.json")
    assert (saved.mode, saved.confidence, saved.seed) == ("fixed", 0.9999999, 3)
    flags = {"pool": False, "severity": False}
    assert saved.options == {"samples": 300, "event_mass": 0.2, "inconclusive_factor": 4.0, **flags}


def test_a_seed_is_drawn_and_printed(run, project):
    (project / "pyproject.toml").write_text("[tool.dpaudit]\nsamples = 20\nconfidence = 0.999999999\n")
    result = run("audit", "m.py:sound")
    [seed] = re.findall(r"^Auditing m.py:sound, seed (\d+)$", result.stderr, re.MULTILINE)
    assert f"seed {seed}" in result.stdout


# Several targets.


@pytest.mark.parametrize(
    ("targets", "status"),
    [
        (["m.py:sound", "m.py:exact"], 1),
        (["m.py:short", "m.py:exact", "m.py:sound"], 1),
        (["m.py:sound", "m.py:short"], 3),
        (["m.py:bad_pairs", "m.py:exact"], 1),
    ],
)
def test_the_worst_verdict_of_several_targets_is_the_exit_status(run, targets, status):
    result = run("audit", *targets, "--claim", "eps=1", "--pairs", "0,1")
    assert result.exit_code == status


def test_several_targets_get_a_folder_each_and_a_table_of_all(run, project):
    targets = ["m.py:sound", "m.py:exact", "m:sound", "m.py:leaky"]
    result = run("audit", *targets, "--claim", "eps=1", "--pairs", "0,1", "--out", "o", "--report", "json")
    assert result.exit_code == 1
    written = sorted(path.relative_to(project / "o").as_posix() for path in (project / "o").rglob("*.*"))
    assert written == ["Exact/audit.json", "Sound-2/audit.json", "Sound/audit.json", "leaky/audit.json"]
    assert "worst pair" in result.stdout


# Reports.


def test_saved_results_are_rendered(run, project):
    run("audit", "m.py:sound", "--out", "o", "--report", "json")
    result = run("report", "o/audit.json", "--out", "r")
    assert (result.exit_code, result.stdout.split()) == (0, ["r/audit.html", "r/audit.md"])
    assert (project / "r/audit.html").read_text() == render(dpaudit.load("o/audit.json"), "html", saved="o/audit.json")
    run("audit", "m.py:sound", "--seed", "3", "--out", "p", "--report", "json")
    result = run("report", "o/audit.json", "p/audit.json", "--report", "md", "--out", "r")
    assert result.stdout.split() == ["r/Sound/audit.md", "r/Sound-2/audit.md"]


def test_what_was_found_is_said_even_if_it_cannot_be_written(run, project):
    (project / "o" / "audit.json").mkdir(parents=True)
    (project / "o" / "audit.json" / "file").write_text("in the way")
    result = run("audit", "m.py:leaky", "--claim", "eps=1", "--pairs", "0,1", "--out", "o", "--report", "json")
    assert result.exit_code == 1  # what was found, whatever happens after
    assert "output must be a writable place, got 'o/audit.json'" in told(result)
    assert "Violated" in result.stdout
    assert [path.name for path in (project / "o").iterdir()] == ["audit.json"]


@pytest.fixture
def full_disk(monkeypatch):
    """Nothing that is written reaches the disk."""

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)


@pytest.mark.parametrize(("target", "status"), [("m.py:leaky", 1), ("m.py:sound", 3)])
def test_a_full_disk_is_no_mistake_and_hides_no_violation(run, project, full_disk, target, status):
    result = run("audit", target, "--claim", "eps=1", "--pairs", "0,1", "--out", "o", "--report", "json")
    assert result.exit_code == status
    path = re.escape("o/audit.json")
    assert re.fullmatch(
        rf"Error: {target}: output must be a writable place, got '{path}' \(No space left on device\)\. Make room.*",
        told(result),
    )
    assert ("Violated" in result.stdout) == (status == 1) and "Written" not in result.stdout
    assert list((project / "o").iterdir()) == []


# Replay.


def replay_line(result):
    [line] = re.findall(r"^  replay   dpaudit (.*)$", result.stdout.replace("\\\n", " "), re.MULTILINE)
    return [part.strip("'") for part in line.split()]


def test_the_printed_line_replays_a_violation(run):
    line = replay_line(run("audit", "m.py:leaky", "--claim", "eps=1", "--pairs", "0,1; 0,0", "--out", "o"))
    assert line == ["replay", "o/audit.json", "--pair", "0|1", "--target", "m.py:leaky"]
    result = run(*line, "--seed", "5")
    assert result.exit_code == 1
    for words in ("Confirmed: ", "Pair 0|1, claim eps=1, seed 5.", "wrong in 0", "1 was promised"):
        assert words in result.stdout


def test_a_witness_that_finds_nothing_is_not_confirmed(run):
    run("audit", "m.py:leaky", "--claim", "eps=1", "--pairs", "0,1", "--out", "o")
    result = run("replay", "o/audit.json", "--target", "m.py:sound")
    assert result.exit_code == 0
    assert "Not confirmed" in result.stdout
    assert "is not what was audited" in result.stderr


def test_a_claim_that_has_no_text_and_inputs_that_are_no_json_are_the_subjects_own(run):
    first = run("audit", "m.py:on_vectors", "--out", "o")
    assert first.exit_code == 1
    assert dpaudit.load("o/audit.json").claim == "metric=function"
    assert run(*replay_line(first)).exit_code == 1


def test_a_replay_on_other_inputs_says_so(run, project):
    run("audit", "m.py:of_vectors", "--claim", "eps=1", "--pairs", "m.py:vector_pairs", "--out", "o")
    held = run("replay", "o/audit.json", "--trust-file")
    assert held.exit_code == 1 and held.stderr.startswith("Running code: m.py:of_vectors (as the file says).")
    record = json.loads((project / "o/audit.json").read_text())
    for finding in record["pairs"]:  # as an older version wrote it: with lists, on which every call raises
        del finding["types"]
    (project / "old.json").write_text(json.dumps(record))
    result = run("replay", "old.json", "--trust-file")
    assert result.exit_code == 3
    assert "from all " in result.stderr and "Are these the inputs of the audit?" in result.stderr


@pytest.mark.parametrize("options", [[], ["--pair", "tables"], ["--floating-point"]], ids=str)
def test_a_replay_never_runs_on_the_printed_form_of_an_input(run, project, options):
    given = ("--claim", "eps=1", "--pairs", "m.py:table_pairs", "--out", "o", "--samples", "2000")
    assert run("audit", "m.py:lengths", *given).exit_code == 1
    assert run("replay", "o/audit.json", "--trust-file", *options).exit_code == 1  # it names its pairs
    record = json.loads((project / "o/audit.json").read_text())
    del record["options"]["pairs"]
    (project / "alone.json").write_text(json.dumps(record))
    result = run("replay", "alone.json", "--trust-file", *options)
    assert result.exit_code == 2 and not result.stdout
    assert "inputs of 'tables' must be given" in told(result) and "--pairs module:function" in told(result)
    given = ("--target", "m.py:lengths", "--pair", "tables", "--pairs", "m.py:table_pairs")
    assert run("replay", "alone.json", *given).exit_code == 1


@pytest.fixture(scope="module")
def audit_of_leaky():
    """The file of `dpaudit audit m.py:leaky --claim eps=1 --pairs 0,1`."""
    result = dpaudit.audit(lambda data, rng: data, "eps=1", [(0, 1)], samples=100, seed=7)
    return dataclasses.replace(result, subject={**result.subject, "target": "m.py:leaky"}).to_bytes().decode()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.json"], "result must be a readable file, got 'nothing.json'"),
        (["m.py"], "result must be a saved result such as audit.json, got 'm.py', which is code."),
        (["o/audit.json", "--pair", "zzz"], "id of a finding with a witness, such as '0|1', got 'zzz'"),
        (["o/audit.json", "--target", "m.py:nothing"], "target must name an attribute of m, got 'nothing'"),
        (["o/audit.json", "--claim", "eps=-1"], "epsilon must be in [0, inf], got -1.0"),
        (["o/audit.json", "--pairs", "5,6"], "pairs must hold the pair '0|1', got '5,6' without it."),
        (["named.json"], "target must be given with --target: 'named.json' names none."),
        (["other.json"], "claim must be given with --claim: 'metric=great circle' cannot be read back"),
    ],
)
def test_each_bad_replay_is_told_what_is_wrong(run, project, arguments, words, audit_of_leaky):
    (project / "o").mkdir()
    (project / "o/audit.json").write_text(audit_of_leaky)
    record = json.loads(audit_of_leaky)
    (project / "other.json").write_text(json.dumps({**record, "claim": "metric=great circle"}))
    (project / "named.json").write_text(json.dumps({**record, "subject": {**record["subject"], "target": None}}))
    given = () if arguments[0] == "named.json" or "--target" in arguments else ("--target", "m.py:leaky")
    result = run("replay", *arguments, *given)
    assert result.exit_code == 2
    assert words in told(result)


# Mistakes.

BAD_INPUTS = {
    "negative epsilon": (["--claim", "eps=-1"], "epsilon must be in [0, inf], got -1.0 at claim 'eps=-1'."),
    "no metric file": (["--claim", "metric=nothing.csv"], "metric must be a readable file, got 'nothing.csv'"),
    "triangle inequality": (["--claim", "metric=triangle.csv"], "metric violates the triangle inequality: d('a', 'c')"),
    "no pairs in the file": (["--pairs", "empty.json"], "at least one pair of inputs, got none at 'empty.json'."),
    "one input": (["--pairs", "1,1;[2],[2]"], "pairs must be of two different inputs, got an input with itself alone"),
    "pairs from nowhere": (["--pairs", "m.py:nothing"], "pairs must name an attribute of m, got 'nothing'"),
    "unknown format": (["--report", "json,docx"], "report must name formats among html, json, md, junit, sarif, pdf,"),
    "no format": (["--report", " , "], "report must name formats among html, json, md, junit, sarif, pdf, in-toto"),
    "a file in the way": (["--out", "m.py"], "got 'm.py' (a file is in the way)."),
    "a file on the way": (["--out", "m.py/x/y"], "got 'm.py/x/y' (a file is in the way at 'm.py')."),
    "too few samples": (["--samples", "3"], "samples must be an integer of at least 10, got 3."),
    "confidence of 1": (["--confidence", "1"], "confidence must be in (0, 1), got 1.0."),
    "negative seed": (["--seed", "-1"], "seed must be a non-negative integer, got -1."),
    "a process a run": (["--jobs", "1000000"], "for each processor, got 1000000. -1 takes all processors."),
    "event without mass": (["--event-mass", "0"], "event_mass must be in (0, 1], got 0.0."),
    "factor below 1": (["--inconclusive-factor", "0.5"], "inconclusive_factor must be at least 1, got 0.5."),
    "no limit of isolation": (["--isolation", "second=1"], "isolation must be"),
    "no number": (["--samples", "many"], "'many' is not a valid integer."),
    "no such mode": (["--mode", "quick"], "'quick' is not one of 'sequential', 'adaptive', 'fixed'."),
    "no such option": (["--sample", "3"], "No such option"),
}


@pytest.mark.parametrize("name", BAD_INPUTS)
def test_each_bad_option_exits_with_2_and_writes_nothing(run, project, name):
    (project / "triangle.csv").write_text(",a,b,c\na,0,1,5\nb,1,0,1\nc,5,1,0\n")
    (project / "empty.json").write_text("[]")
    options, words = BAD_INPUTS[name]
    before = sorted(path.name for path in project.iterdir() if path.name != "__pycache__")
    given = dict(zip(options[::2], options[1::2], strict=True))
    stated = {"--claim": "eps=1", "--pairs": "0,1", "--out": "o", **given}
    result = run("audit", "mymodule.py:release", *(part for option in stated.items() for part in option))
    assert result.exit_code == 2
    assert words in told(result)
    assert result.stdout == "" and "Auditing" not in result.stderr
    assert sorted(path.name for path in project.iterdir() if path.name != "__pycache__") == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mymodule.py:release", "nothing:release"], "target must name a module that can be imported, got 'nothing'"),
        (["mymodule.py:release", "--pairs", "0,1"], "claim must be given: mymodule.py:release states none."),
        (["mymodule.py:release", "--claim", "eps=1"], "pairs must be given: none can be guessed"),
        ([], "Missing argument 'TARGET...'"),
    ],
)
def test_each_bad_target_exits_with_2(run, arguments, words):
    result = run("audit", *arguments)
    assert result.exit_code == 2
    assert words in told(result)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="a folder that nothing can be made in, whoever asks")
def test_a_folder_that_cannot_be_made_exits_with_2_before_the_audit(run):
    result = run("audit", "m.py:sound", "--out", "/proc/x")
    assert result.exit_code == 2 and "Auditing" not in result.stderr
    assert "out must be a folder that can be written, got '/proc/x' (" in told(result)


# In a process of its own.


def process(*arguments, code=None, environment=()):
    command = [sys.executable, "-c", code] if code else [sys.executable, "-m", "dpaudit", *arguments]
    environment = {**os.environ, "COLUMNS": "80", **dict(environment)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


LOUD = """
import os
print("seen", "at import")
def release(data, rng):
    print("seen", data)
    os.write(1, b"seen past python\\n")
    return data + rng.laplace()
def pairs():
    print("seen in pairs")
    return [(0, 1)]
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("audit", "--samples", "100", "--quiet"),
        ("check", "--only", "pickling,seeded_determinism", "--format", "json"),
        ("plan", "--format", "json"),
        ("greybox", "--format", "json"),
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_what_the_subject_prints_goes_to_stderr_and_the_report_alone_to_stdout(run, project, arguments):
    (project / "loud.py").write_text(LOUD)
    command, *options = arguments
    result = process(command, "loud.py:release", "--claim", "eps=1", "--pairs", "loud.py:pairs", *options)
    assert "seen" not in result.stdout and result.stdout
    for words in ("seen at import", "seen in pairs", "seen 0", "seen past python"):
        assert words in result.stderr
    if "json" in options:
        json.loads(result.stdout)


def test_the_module_runs_as_the_command_does_and_an_encoding_without_the_symbols_is_no_error(run, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    result = process("audit", "m.py:leaky", "--claim", "eps=1", "--pairs", "0,1")
    assert (result.returncode, result.stderr) == (1, "Auditing m.py:leaky, seed 7\n")
    assert "Violated" in result.stdout and "\\u2265" in result.stdout and "\x1b" not in result.stdout


def test_a_subject_that_ends_the_process_loses_nothing_that_a_checkpoint_has_noted(run, project):
    (project / "ends.py").write_text(
        "import os, pathlib\ncalls = 0\n"
        "def f(data, rng):\n    global calls\n    calls += 1\n"
        "    if calls == 1500 and os.environ.get('END'):\n        os._exit(9)\n"
        "    return data + rng.laplace()\n"
    )
    arguments = ["audit", "ends.py:f", "--claim", "eps=1", "--pairs", "0,1", "--mode", "fixed", "--no-floating-point"]
    ended = process(*arguments, "--checkpoint", "c", "--quiet", environment={"END": "1"})
    assert (ended.returncode, ended.stdout, ended.stderr) == (9, "", "")
    noted = (project / "c").stat().st_size
    assert noted > 1_000  # the pilot at least
    resumed = process(*arguments, "--checkpoint", "c", "--resume", "--out", "resumed", "--report", "json")
    whole = process(*arguments, "--out", "whole", "--report", "json")
    assert resumed.returncode == whole.returncode and not (project / "c").exists()
    records = [dpaudit.load(place / "audit.json").findings for place in (project / "resumed", project / "whole")]
    assert records[0] == records[1]


def test_help_and_version_import_no_numpy():
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom dpaudit.cli import main\n"
        "for option in (['--help'], ['--version'], ['audit', '--help']):\n"
        "    assert CliRunner().invoke(main, option).exit_code == 0\n"
        "sys.exit(bool({'numpy', 'rich', 'jinja2', 'matplotlib'} & set(sys.modules)))"
    )
    assert process(code=code).returncode == 0
    assert process("--version").stdout == f"dpaudit, version {dpaudit.__version__}\n"


def test_the_library_and_the_command_line_agree(run):
    run("audit", "m.py:sound", "--seed", "5", "--out", "o", "--report", "json")
    own = dpaudit.audit(
        lambda data, size, rng: data + rng.laplace(scale=np.float64(1.0), size=size),
        claim="eps=1",
        pairs=[(0.0, 1.0), (2.0, 1.0)],
        samples=4000,
        confidence=0.999999999,
        inconclusive_factor=100,
        seed=5,
    )
    assert [finding.epsilon_lower for finding in dpaudit.load("o/audit.json").findings] == [
        finding.epsilon_lower for finding in own.findings
    ]
