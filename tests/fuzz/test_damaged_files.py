"""Every file that dpaudit reads, damaged in any way: one clear message or a result, never a traceback.

The default set tries a few damages of each format; the nightly one (`-m long`) some thousand. Damage is of two kinds:
values of a JSON or TOML file that are replaced, removed or doubled, and bytes that are changed, cut off or put in.
"""

import copy
import json
import sqlite3
import warnings

import numpy as np
import pytest
from click.testing import CliRunner

import dpaudit
from dpaudit import reports
from dpaudit.cli import main
from dpaudit.cli.searching import read_example
from dpaudit.errors import DpauditError
from dpaudit.ledgers.entries import read_ledger
from dpaudit.privacy.parsing import parse_pairs, read_metric
from dpaudit.pytest_plugin import witnesses
from dpaudit.reports.deployment import read_deployment
from dpaudit.reports.history import read_history
from dpaudit.reports.reading import read_any
from dpaudit.running.checkpoint import open_checkpoint, read_header
from dpaudit.running.store import Store
from dpaudit.scores.result import load_scores
from dpaudit.symbolic.certificate import load_certificate

pytest.importorskip("hypothesis", reason="needs hypothesis, of the extra strategies")
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FEW, MANY = 8, 1_500  # damages of each format
DEEP = "[" * 60_000
VALUES = st.sampled_from(
    [None, True, False, -1, 0, 1, 2**63, 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf"), "", "nan", "Infinity",
     "0x1p+9999", "\x00", "\ud800", "a" * 5_000, [], {}, [[]], [None] * 3, {"is": "array", "dtype": "<U99999"},
     {"is": "array", "dtype": "O", "shape": [2]}, {"is": "bytes"}, [[1, 2], [3]], {"": 1}, "violated"]
)  # fmt: skip
DEPLOYMENT = """
name = "Counts"
version = "1"
purpose = "a survey"
region = "here"
retention = "a year"
"""
LEDGER = """
paper = "AB"
title = "A paper"
[[claim]]
id = "AB-T1"
kind = "theorem"
locator = "Theorem 1"
statement = "It holds."
verdict = "verified"
how = ["reading"]
evidence = "read"
scope = "the whole"
"""


def leaky(data, size, rng):
    return data + rng.laplace(scale=0.1, size=size)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One sound file of each format, as bytes, by name."""
    folder = tmp_path_factory.mktemp("sound")
    stated = {"samples": 2_000, "seed": 1}
    result = dpaudit.audit(leaky, "eps=1", [(0.0, 1.0)], **stated)
    assert result.floating_point.verdict == "leaks" or result.floating_point.pairs
    result.save(folder / "audit.json")
    with pytest.raises(KeyboardInterrupt):
        dpaudit.audit(lambda data, size, rng: data + rng.laplace(size=size), "eps=1", [(0.0, 1.0)],
                      checkpoint=folder / "checkpoint", on_progress=stop, floating_point=False, **stated)  # fmt: skip
    dpaudit.audit(leaky, "eps=1", [(0.0, 1.0)], store=folder / "store", floating_point=False, **stated)
    (folder / "scores.json").write_text(json.dumps(scores().to_dict()))
    (folder / "deployment.toml").write_text(DEPLOYMENT)
    (folder / "ledger.toml").write_text(LEDGER)
    (folder / "example.json").write_text(json.dumps([{"age": 30, "income": 1.5}, {"age": 40, "income": None}]))
    (folder / "example.csv").write_text("age,income\n30,1.5\n40,\n")
    (folder / "metric.csv").write_text("id,x,y\na,0,1\nb,1,0\n")
    (folder / "pairs.json").write_text(json.dumps([[0, 1], [[1, 2], [1]]]))
    witnesses.save(folder, "a.py::test", 1, result, 100)
    (folder / "witness").write_bytes(next((folder / witnesses.FOLDER).glob("*.json")).read_bytes())
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name in READERS}


def stop(state):
    raise KeyboardInterrupt


def scores():
    rng = np.random.default_rng(1)
    return dpaudit.audit_scores(rng.normal(1.0, size=200), rng.normal(size=200), "eps=1", seed=1)


def read_result(path):
    result = dpaudit.load(path)
    for format in ("md", "sarif"):
        reports.render(result, format)


def read_checkpoint(path):
    header = read_header(path)
    open_checkpoint(path, header, resume=True, replayable=True).close()


def read_store(path):
    with Store.at(path, create=False):
        pass
    read_any(str(path))


def read_witness(path):
    cache = path.parent
    place = cache / witnesses.FOLDER / f"{path.name}.json"
    place.parent.mkdir(exist_ok=True)
    file = witnesses.cached_path(cache, "a.py::test", 1)
    file.write_bytes(path.read_bytes())
    witnesses.saved(cache, "a.py::test", 1)


READERS = {
    "audit.json": read_result,
    "scores.json": load_scores,
    "checkpoint": read_checkpoint,
    "store": read_store,
    "deployment.toml": read_deployment,
    "ledger.toml": lambda path: read_ledger(path, ["AB-T1"]),
    "example.json": lambda path: read_example(str(path)),
    "example.csv": lambda path: read_example(str(path)),
    "metric.csv": lambda path: read_metric(str(path)),
    "pairs.json": lambda path: parse_pairs(str(path)),
    "witness": read_witness,
}
OTHERS = (load_certificate, read_history, lambda path: read_any(str(path)))  # of any JSON file


def places(value, path=()):
    """Where the values of a JSON document are."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def damaged(draw, content, name):
    """The content with some damage."""
    if name.endswith(".json") or name == "witness":
        kind = draw(st.sampled_from(["values", "values", "values", "bytes", "deep"]))
        if kind == "deep":
            return DEEP.encode()
        if kind == "values":
            record = json.loads(content)
            for _ in range(draw(st.integers(1, 3))):
                record = with_other_value(draw, record)
            return json.dumps(record).encode()
    content = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        how = draw(st.sampled_from(["cut", "flip", "insert", "remove"]))
        if how == "cut":
            del content[at:]
        elif how == "insert":
            content[at:at] = draw(st.binary(max_size=8))
        elif how == "remove":
            del content[at : at + draw(st.integers(1, 64))]
        elif at < len(content):
            content[at] ^= draw(st.integers(1, 255))
    return bytes(content)


def with_other_value(draw, record):
    path = draw(st.sampled_from(list(places(record))))
    value = copy.deepcopy(draw(VALUES))
    if not path:
        return value
    record = copy.deepcopy(record)
    inner = record
    for key in path[:-1]:
        inner = inner[key]
    how = draw(st.sampled_from(["replace", "replace", "remove", "another"]))
    if how == "remove":
        del inner[path[-1]]
    elif how == "another" and isinstance(inner, dict):
        inner["another"] = value
    else:
        inner[path[-1]] = value
    return record


def assert_refused_or_read(readers, path):
    for reader in readers:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                reader(path)
        except DpauditError as error:
            assert "\n" not in str(error).strip() and 10 < len(str(error)) < 2_000


def tried(name, files, folder, examples):
    @settings(max_examples=examples, derandomize=True, deadline=None, database=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(data=st.data())
    def damage(data):
        path = folder / name
        path.unlink(missing_ok=True)
        path.write_bytes(damaged(data.draw, files[name], name))
        assert_refused_or_read((READERS[name], *OTHERS) if name.endswith(".json") else (READERS[name],), path)

    damage()


def test_sound_files_are_read(files, tmp_path):
    assert set(files) == set(READERS)
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        READERS[name](tmp_path / name)


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_refused_in_one_sentence_or_read(name, files, tmp_path):
    tried(name, files, tmp_path, FEW)


@pytest.mark.long
@pytest.mark.parametrize("name", READERS)
def test_thousands_of_damaged_files_are_refused_or_read(name, files, tmp_path):
    tried(name, files, tmp_path, MANY // 10 if name in ("store", "audit.json") else MANY)


def test_the_command_says_so_with_status_2(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record = json.loads(files["audit.json"])
    record["pairs"][0]["witness"] = {"rule": []}
    (tmp_path / "audit.json").write_text(json.dumps(record))
    outcome = CliRunner().invoke(main, ["report", "audit.json"])
    assert outcome.exit_code == 2 and "unexpected" not in outcome.output


def test_a_store_of_another_kind_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / "other") as connection:
        connection.execute("create table a (b)")
    with pytest.raises(dpaudit.UsageError):
        Store.at(tmp_path / "other", create=False)


def test_a_table_of_rows_that_differ_is_one_message(tmp_path):
    # pandas ends what it says of such a file with a new line; without pandas it is a table with rows that differ.
    (tmp_path / "example.csv").write_text("age,income\n30,1.5\n40,1,2,3\n")
    assert_refused_or_read((READERS["example.csv"],), tmp_path / "example.csv")
