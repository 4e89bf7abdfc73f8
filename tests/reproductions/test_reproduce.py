"""`dpaudit reproduce`: found through entry points, printed, saved as strict JSON and as a picture."""

import importlib.metadata
import json
import struct
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

import dpaudit
from dpaudit.cli import main
from dpaudit.reproductions import command
from dpaudit.reproductions.reproduction import GROUP, Outcome, Reproduction, Statement, Table

PNG = b"\x89PNG\r\n\x1a\n"


def fair_coin(options):
    options.tell("tossing")

    def draw(figure):
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], label="line")

    heads = 3 if options.quick else 30 + options.seed
    return Outcome(
        tables=[
            Table("Tosses", ["coin", "heads", "share"], [["fair", heads, 0.5], ["loaded", None, float("inf")]], "Two.")
        ],
        statements=[Statement("PAPER-1", "half are heads", "a half", "yes")],
        numbers={"heads": heads, "limit": float("inf")},
        draw=draw,
    )


coin = Reproduction("tosses of a coin", "PAPER-E1", fair_coin)


def entry(name, value="test_reproduce:coin"):
    return importlib.metadata.EntryPoint(name, value, GROUP)


@pytest.fixture
def installed(monkeypatch):
    """Reproductions under the names that a test asks for, in place of the installed ones."""

    def install(*entries):
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [e for e in entries if e.group == group])

    return install


def run(*arguments):
    return CliRunner().invoke(main, ["reproduce", *arguments])


def test_without_a_name_all_are_listed(installed):
    installed(entry("coin-b"), entry("coin-a"))
    result = run()
    assert result.exit_code == 0
    assert result.stdout.index("coin-a") < result.stdout.index("coin-b")
    assert "tosses of a coin" in result.stdout and "PAPER-E1" in result.stdout
    installed()
    assert "No reproductions are installed" in run().stdout


def test_a_run_prints_its_tables_and_writes_a_picture_and_strict_json(installed, tmp_path):
    installed(entry("coin"))
    result = run("coin", "--out", str(tmp_path / "new"), "--seed", "4")
    assert result.exit_code == 0
    for text in ("Tosses", "fair", "half are heads", "a half", "34", "inf", "Two."):
        assert text in result.stdout
    assert "tossing" in result.stderr and "seed 4" in result.stderr
    content = json.loads((tmp_path / "new" / "coin.json").read_text(), parse_constant=lambda name: pytest.fail(name))
    assert (content["schema"], content["name"], content["seed"], content["quick"]) == (
        "dpaudit.reproduction/1", "coin", 4, False,
    )  # fmt: skip
    schema = json.loads((Path(dpaudit.__file__).parent / "schemas" / "reproduction-1.json").read_text())
    jsonschema.validate(content, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**content, "more": 1}, schema)
    assert content["numbers"] == {"heads": 34, "limit": "inf"}
    assert content["tables"][0]["rows"] == [["fair", 34, 0.5], ["loaded", None, "inf"]]
    assert content["statements"] == [
        {"source": "PAPER-1", "printed": "half are heads", "ours": "a half", "agrees": "yes"}
    ]
    picture = (tmp_path / "new" / "coin.png").read_bytes()
    assert picture.startswith(PNG)
    width, height = struct.unpack(">II", picture[16:24])
    assert width > 500 and height > 300


def test_an_unknown_name_is_told_the_known_ones_before_anything_runs(installed, tmp_path):
    installed(entry("coin-single"), entry("coin-multi"))
    result = run("coin-single", "coin-mutli", "--out", str(tmp_path))
    assert result.exit_code == 2
    assert "name must be a reproduction (coin-multi, coin-single), got 'coin-mutli'" in result.stderr
    assert "Did you mean 'coin-multi'?" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_saved_form_turns_numpy_into_plain_values():
    numpy = pytest.importorskip("numpy")
    outcome = Outcome([], [], {"values": numpy.array([1.0, numpy.inf]), "one": numpy.int64(1)}, lambda figure: None)
    content = command.saved_form("x", coin, outcome, seed=0, quick=True, seconds=0.1)
    assert content["numbers"] == {"values": [1.0, "inf"], "one": 1}
    assert json.loads(json.dumps(content, allow_nan=False)) == content
