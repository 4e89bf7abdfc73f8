"""Real releases: a program in an environment of its own is audited beside the re-creation, and its absence is said."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest

import dpaudit
from dpaudit.errors import UsageError
from dpaudit.exhibits import Release, environments
from dpaudit.exhibits.page import figures, page
from dpaudit.exhibits.running import run
from dpaudit.exhibits.serving import serve

NO_NOISE = "def mechanism():\n    print('hello')\n    return lambda data: len(data)\n"
PROGRAMS = [release for exhibit in dpaudit.museum() for release in exhibit.releases if release.program is not None]


def _installed(folder, release):
    """An environment that has the standard library and no more."""
    place = environments.environment(release, folder) / "bin"
    place.mkdir(parents=True)
    (place / "python").symlink_to(os.path.realpath(sys.executable))


@pytest.mark.parametrize("release", PROGRAMS, ids=lambda release: f"{release.package}-{release.versions}")
def test_a_program_imports_its_library_only_when_it_is_asked_to(release):
    names: dict = {}
    exec(compile(release.program.read_text(), release.program, "exec"), names)
    assert callable(names["mechanism"]) and release.called
    assert "dpaudit" not in release.program.read_text()


def test_a_release_has_either_a_mechanism_or_a_program(tmp_path):
    with pytest.raises(UsageError, match="mechanism or program must be given, got neither at 'lib'"):
        Release("lib", "1.0")
    with pytest.raises(UsageError, match="got both at 'lib'"):
        Release("lib", "1.0", mechanism=list, program=tmp_path)


def test_a_program_is_audited_in_its_own_environment_and_skipped_without_one(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(NO_NOISE)
    release = Release("no-such-library", "1.0", program=program, called="count()")
    (known,) = dpaudit.museum("default-seed")
    exhibit = dataclasses.replace(known, releases=(release,))
    absent = run(exhibit, ("releases",), seed=1)["releases"][0]
    assert absent["found"] is None and absent["reason"] == "no-such-library 1.0 is not installed"
    _installed(tmp_path, release)
    record = run(exhibit, ("releases",), seed=1, libraries=tmp_path)  # no noise at all: an event of probability 0 or 1
    assert record["releases"][0]["found"] and record["releases"][0]["installed"] == "1.0"
    row = {section.id: section for section in page([record]).sections}["releases"].blocks[0].rows[0]
    assert row[:5] == ("default-seed", "no-such-library 1.0", "count()", "installed", "found")
    assert dict(figures([record]))["real releases audited"] == "1 of 1 libraries"


def test_a_program_that_does_not_run_is_skipped_with_its_reason(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("def mechanism():\n    import no_such_library_at_all\n")
    release = Release("no-such-library", "1.0", program=program)
    _installed(tmp_path, release)
    exhibit = dataclasses.replace(dpaudit.museum("default-seed")[0], releases=(release,))
    seen = run(exhibit, ("releases",), seed=1, libraries=tmp_path)["releases"][0]
    assert seen["found"] is None and "no-such-library does not run" in seen["reason"]


def test_serving_passes_nan_and_says_what_a_draw_raised(capsys):
    def draw(value):
        if value != value:
            raise ZeroDivisionError("of nothing")
        return [value, float("inf")]

    lines = [{"type": "hello", "protocol": [1], "id": 0}]
    lines += [{"type": "sample", "input": value, "size": 1, "seed": 1, "id": 1} for value in ({"$float": "nan"}, 0.5)]
    serve(draw, "name", iter(json.dumps(line) for line in lines), sys.stdout, batch=7)
    hello, raised, drawn = map(json.loads, capsys.readouterr().out.splitlines())
    assert hello == {"type": "hello", "protocol": 1, "name": "name", "batch": 7}
    assert raised["outputs"] == [{"$error": {"kind": "ZeroDivisionError", "message": "of nothing"}}]
    assert drawn["outputs"] == [[0.5, float("inf")]]


def test_an_environment_whose_making_was_broken_off_is_not_kept(tmp_path, monkeypatch):
    def broken(words, check):
        if "venv" in words:
            (tmp_path / "lib-1.0" / "bin").mkdir(parents=True)
            return subprocess.CompletedProcess(words, 0)
        raise KeyboardInterrupt

    monkeypatch.setattr(environments.subprocess, "run", broken)
    with pytest.raises(KeyboardInterrupt):
        environments.install([Release("lib", "1.0", program=tmp_path)], tmp_path)
    assert not (tmp_path / "lib-1.0").exists()


def test_what_compiled_code_prints_is_no_answer(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import os\n\ndef mechanism():\n    return lambda data: os.write(1, b'hello\\n')\n")
    ask = json.dumps({"type": "hello"}) + "\n" + json.dumps({"type": "draw", "id": 1, "input": 0, "size": 1}) + "\n"
    words = [sys.executable, str(environments.SERVING), str(program)]
    done = subprocess.run(words, input=ask, capture_output=True, text=True, check=True)
    assert [json.loads(line).get("outputs") for line in done.stdout.splitlines()] == [None, [6]]
    assert "hello" in done.stderr
