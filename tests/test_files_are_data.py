"""Nothing that a file names is run, opened or allocated because the file says so."""

import json
import os
import shutil
import sqlite3
import stat

import pytest
from click.testing import CliRunner
from support.samplers import laplace

import dpaudit
from dpaudit.cli import main
from dpaudit.errors import UsageError
from dpaudit.reports.reading import read_dossier
from dpaudit.results.saved_inputs import MAX_BYTES, restored
from dpaudit.results.saving import SHARED, write_whole
from dpaudit.running.store import Store

MECHANISM = """
from pathlib import Path
Path("imported").touch()
def leaky(data, size, rng):
    Path("called").touch()
    return data + rng.laplace(scale=0.1, size=size)
def pairs():
    Path("asked").touch()
    return [(0.0, 1.0)]
"""


@pytest.fixture(scope="module")
def audited():
    return dpaudit.audit(
        lambda data, size, rng: data + rng.laplace(scale=0.1, size=size), "eps=1", [(0.0, 1.0)], samples=500, seed=1,
        floating_point=False,
    )  # fmt: skip


@pytest.fixture
def run(tmp_path, monkeypatch, audited):
    """Run the command line in a folder with a mechanism in fad_m.py and an audit of it in o/audit.json."""
    (tmp_path / "fad_m.py").write_text(MECHANISM)
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments):
        return CliRunner(env={"COLUMNS": "200"}).invoke(main, [str(one) for one in arguments])

    (tmp_path / "o").mkdir()
    audited.save("o/audit.json")
    return invoke


def changed(**changes):
    """The file with other values in its subject and options."""
    with open("o/audit.json") as file:
        record = json.load(file)
    for name, values in changes.items():
        record[name] = {**record[name], **values} if isinstance(values, dict) else values
    with open("changed.json", "w") as file:
        json.dump(record, file)


# --- code ---

TARGETS = ["exec:sh -c 'touch called'", "fad_m.py:leaky", "os:system"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("command", [("replay",), ("replay", "--floating-point"), ("report",)], ids=" ".join)
def test_a_target_in_a_file_is_not_run(run, tmp_path, target, command):
    changed(subject={"target": target})
    name, *options = command
    outcome = run(name, "changed.json", *options)
    if name == "replay":
        assert outcome.exit_code == 2 and "which was not run" in outcome.stderr and not outcome.stdout
    assert not {"called", "imported", "asked"} & set(os.listdir(tmp_path))


def test_pairs_in_a_file_are_not_asked_for(run, tmp_path):
    changed(options={"pairs": "fad_pairs.py:pairs"})
    (tmp_path / "fad_pairs.py").write_text(MECHANISM)
    with open("changed.json") as file:
        record = json.load(file)
    record["pairs"][0]["printed"] = ["x"]  # so that the file does not hold the inputs
    (tmp_path / "changed.json").write_text(json.dumps(record))
    outcome = run("replay", "changed.json", "--target", "fad_m.py:leaky")
    assert outcome.exit_code == 2 and "--pairs fad_pairs.py:pairs" in outcome.stderr
    assert not {"called", "asked"} & set(os.listdir(tmp_path))
    run("replay", "changed.json", "--target", "fad_m.py:leaky", "--pairs", "fad_pairs.py:pairs")
    assert (tmp_path / "asked").exists()


def test_a_metric_in_a_file_is_not_opened(run, tmp_path):
    (tmp_path / "points.csv").write_text("id,a,b\na,0,1\nb,1,0\n")
    changed(claim="metric=points.csv,scale=1")
    outcome = run("replay", "changed.json", "--target", "fad_m.py:leaky")
    assert outcome.exit_code == 2 and "claim must be given with --claim" in outcome.stderr


def test_what_is_run_is_printed_and_a_changed_code_is_not_called(run, tmp_path):
    changed(subject={"target": "fad_m.py:leaky", "fingerprint": "0" * 16})
    outcome = run("replay", "changed.json", "--trust-file")
    assert outcome.exit_code == 2
    assert outcome.stderr.startswith("Running code: fad_m.py:leaky (as the file says).\n")
    assert "target must be the code that was audited" in outcome.stderr
    assert not (tmp_path / "called").exists()
    outcome = run("replay", "changed.json", "--target", "fad_m.py:leaky")
    assert outcome.exit_code == 1 and "is not what was audited" in outcome.stderr
    assert outcome.stderr.startswith("Running code: fad_m.py:leaky.\n") and (tmp_path / "called").exists()


# --- what a file asks for ---


@pytest.mark.parametrize("dtype", ["<U99999", "<U65536"])
def test_a_small_file_cannot_ask_for_a_large_array(dtype):
    with pytest.raises(ValueError, match=f"at most {MAX_BYTES:,} bytes"):
        restored([["a"] * 1_000] * 20, {"is": "array", "dtype": dtype, "shape": [20, 1_000]})
    assert restored(["a", "b"], {"is": "array", "dtype": "<U5", "shape": [2]}).dtype == "<U5"


def test_a_million_looks_are_refused(run):
    with open("o/audit.json") as file:
        record = json.load(file)
    record["pairs"][0]["looks"] = [[1, 0.0, 0.0]] * 1_000_000
    with open("looks.json", "w") as file:
        json.dump(record, file)
    with pytest.raises(dpaudit.UsageError, match="looks of a pair must be 100,000 at most, got"):
        dpaudit.load("looks.json")


def test_a_pipe_is_no_result_and_no_store(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(dpaudit.UsageError, match="result must be a regular file"):
        dpaudit.load(tmp_path / "pipe")
    with pytest.raises(dpaudit.UsageError, match="store must be a file"):
        Store.at(tmp_path / "pipe")


# --- stores ---


@pytest.fixture(scope="module")
def one_session(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "evidence.db"
    dpaudit.audit(laplace, "eps=1", [(0.0, 1.0)], samples=100, seed=1, store=path, floating_point=False)
    return path


@pytest.fixture
def store(tmp_path, one_session):
    return shutil.copy(one_session, tmp_path / "evidence.db")


def test_a_claim_of_twenty_megabytes_is_not_parsed(store):
    with sqlite3.connect(store) as connection:
        connection.execute("update subjects set claim = zeroblob(20000000)")
    connection.close()
    with Store.at(store) as opened, pytest.raises(dpaudit.UsageError, match="texts of at most 100,000 characters"):
        opened.subjects()


def test_a_store_trusts_no_function_of_a_files_own_and_no_value_without_end(store):
    with Store.at(store) as opened:
        assert opened._connection.execute("pragma trusted_schema").fetchone() == (0,)
        with pytest.raises(sqlite3.DataError, match="too big"):
            opened._connection.execute("select zeroblob(900000000)").fetchone()


# --- who may read what is written ---


@pytest.mark.parametrize(("umask", "expected"), [(0o022, 0o600), (0o277, 0o400), (0o000, 0o600)])
def test_results_are_for_their_owner_alone_and_respect_the_umask(tmp_path, umask, expected):
    before = os.umask(umask)
    try:
        write_whole(tmp_path / "a.json", "{}")
        write_whole(tmp_path / "shared", "{}", SHARED)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == expected
    assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == 0o666 & ~umask


def test_a_file_that_was_opened_to_others_stays_so(tmp_path):
    path = tmp_path / "a.json"
    write_whole(path, "{}")
    path.chmod(0o644)
    write_whole(path, "{} ")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_stores_and_checkpoints_are_for_their_owner_alone(one_session, tmp_path):
    assert stat.S_IMODE(one_session.stat().st_mode) == 0o600
    modes = []

    def look(progress):
        modes.append(stat.S_IMODE((tmp_path / "kept").stat().st_mode))

    options = {"checkpoint": tmp_path / "kept", "floating_point": False, "on_progress": look}
    dpaudit.audit(laplace, "eps=1", [(0.0, 1.0)], samples=300, seed=1, **options)
    assert set(modes) == {0o600}


@pytest.mark.parametrize("field", ["schema", "verdict", "confidence", "budget"])
def test_a_long_text_in_a_file_makes_no_long_message(tmp_path, field):
    scores = dpaudit.audit_scores([0.1 * k for k in range(40)], [0.2 * k for k in range(40)], "eps=1", seed=1)
    scores.save(tmp_path / "scores.json")
    record = json.loads((tmp_path / "scores.json").read_text())
    (tmp_path / "scores.json").write_text(json.dumps({**record, field: "a" * 1_000_000}))
    done = CliRunner().invoke(main, ["report", str(tmp_path / "scores.json")])
    assert done.exit_code == 2 and len(done.output) < 1_500 and "unexpected" not in done.output, done.output[:300]


def test_a_link_gives_what_is_written_in_its_place_no_mode_of_its_own(tmp_path):
    (tmp_path / "open").touch(0o666)
    os.chmod(tmp_path / "open", 0o666)
    (tmp_path / "link").symlink_to(tmp_path / "open")
    write_whole(tmp_path / "link", "a record")
    found = tmp_path / "link"
    assert not found.is_symlink() and stat.S_IMODE(found.stat().st_mode) & 0o077 == 0
    assert (tmp_path / "open").read_text() == ""


@pytest.mark.parametrize(
    ("table", "column"), [("subjects", "confidence"), ("nights", "samples"), ("pairs", "budget"), ("looks", "lower")]
)
def test_a_text_in_a_stores_column_of_numbers_is_a_usage_error(store, table, column):
    connection = sqlite3.connect(store)
    connection.execute(f"update {table} set {column} = '[]'")
    connection.commit()
    connection.close()
    with pytest.raises(UsageError, match=f"store must have values of the types of its columns, got .* in {column}"):
        read_dossier([str(store)])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("command", [("report",), ("replay",), ("judge", "a:b", "--pairs")])
def test_a_pipe_is_no_file_of_any_command(run, tmp_path, command):
    os.mkfifo(tmp_path / "pipe.json")
    done = run(*command, str(tmp_path / "pipe.json"))  # a reader that opens it waits for ever
    assert done.exit_code == 2
