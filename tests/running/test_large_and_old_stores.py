"""Merges that are interrupted, and files of an older release."""

import json
import random
import shutil
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner
from killing import in_child
from support.samplers import response

import dpaudit
from dpaudit.cli import main
from dpaudit.running.store import Identity, Store

OLD = Path(__file__).with_name("old_files")
TABLES = ("subjects", "nights", "pairs", "looks", "inputs")


def session(path, seed=1, pairs=((0, 1),)):
    return dpaudit.audit(response, "eps=1", list(pairs), samples=80, seed=seed, floating_point=False, store=path)


def rows_of(path):
    """All rows but for the times of sessions: what a store says."""
    connection = sqlite3.connect(path)
    assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
    found = {table: connection.execute(f"select * from {table}").fetchall() for table in TABLES}
    connection.close()
    return found


# --- merges that are interrupted ---


def test_a_merge_that_is_killed_took_over_all_or_nothing(tmp_path):
    own, other, path = tmp_path / "own.db", tmp_path / "other.db", tmp_path / "merged.db"
    session(own, seed=1)
    session(other, seed=2, pairs=((0, 1), (1, 0)))

    def merged():
        with Store.at(path) as store, Store.at(other) as second:
            store.merge(second)

    shutil.copy(own, path)
    of_all = in_child(merged)
    before, after = rows_of(own), rows_of(path)
    assert before != after
    rng, ends = random.Random(3), []
    # the last calls are those of the commit: they are among the moments
    for moment in [*(rng.randint(1, of_all) for _ in range(10)), of_all - 1, of_all - 3, of_all - 6]:
        shutil.copy(own, path)
        in_child(merged, moment)
        ends.append(rows_of(path))
        assert ends[-1] in (before, after)
        if ends[-1] == before:
            merged()
            assert rows_of(path) == after
        else:
            with pytest.raises(dpaudit.UsageError, match="stores must have no stream in common"):
                merged()
            assert rows_of(path) == after
    assert before in ends and after in ends


# --- files of an older release ---


def test_a_store_of_an_earlier_engine_is_listed_and_forgotten_but_not_gone_on_with(tmp_path):
    path = tmp_path / "old.db"
    connection = sqlite3.connect(path)
    connection.executescript((OLD / "store-0.1.0.sql").read_text(encoding="utf-8"))
    connection.commit()
    (identity,) = connection.execute("select fingerprint, claim, digest, confidence from subjects").fetchall()
    connection.close()

    def run(*words):
        return CliRunner().invoke(main, ["evidence", *words, "--store", str(path)])

    exported = run("export")
    assert exported.exit_code == 0
    assert json.loads(exported.stdout) == json.loads((OLD / "said-0.1.0.json").read_text(encoding="utf-8"))
    about = Identity(identity[0], "response", None, identity[1])
    said = r"got that of dpaudit 0\.1\.0 for 'response' at .*"
    before = path.read_bytes()
    with Store.at(path) as old, Store.at(tmp_path / "new.db") as store:
        for goes_on in (lambda: old.begin(about, identity[3], 1, 100), lambda: store.merge(old)):
            with pytest.raises(dpaudit.UsageError, match=said + "listed and exported; .* `dpaudit evidence forget`"):
                goes_on()
        assert store.subjects() == []
    assert path.read_bytes() == before
    assert run("forget", identity[2][:12]).exit_code == 0
    with Store.at(path) as old:
        assert old.begin(about, identity[3], 1, 100).life == 1


def test_a_checkpoint_of_an_earlier_engine_is_refused_with_what_to_do(tmp_path):
    path = tmp_path / "kept"
    shutil.copy(OLD / "checkpoint-0.1.0", path)
    before = path.read_bytes()
    said = (
        r"got '.*kept' \(it is one of dpaudit 0\.1\.0, .*: finish it with that version, or remove it and begin again\)"
    )
    with pytest.raises(dpaudit.UsageError, match=said):
        dpaudit.audit(response, "eps=1", [(0, 1)], samples=80, seed=5, checkpoint=path, resume=True)
    assert path.read_bytes() == before
