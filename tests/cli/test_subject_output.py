"""Prints and warnings of a mechanism that is called thousands of times, and commands that say less."""

import io
import re
import warnings
from collections import Counter

import pytest
from click.testing import CliRunner
from test_repeated_options import commands

from dpaudit.cli import main
from dpaudit.cli import outputs as subject_output
from dpaudit.errors import DpauditNoteWarning

LOUD = """
import warnings

claim = "eps=1"
pairs = [(0.0, 1.0)]

def release(data, rng):
    print("called with", data)
    warnings.warn(f"a new text each time: {rng.random()}")
    return data + rng.laplace()
release.claim, release.pairs = claim, pairs
"""


def test_the_first_lines_are_passed_on_and_all_are_counted():
    into = io.StringIO()
    stream = subject_output.LimitedStream(into)
    for place in range(7):
        print("line", place, file=stream)
    stream.write("and a part")
    stream.writelines(["\n", "x\n"])
    assert into.getvalue() == "".join(f"line {place}\n" for place in range(subject_output.MAX_LINES))
    assert stream.count == 9 and not stream.closed  # what is no writing is the stream's own
    long = subject_output.LimitedStream(into := io.StringIO())
    for _ in range(10):
        long.write("x" * 100)
    assert into.getvalue() == "x" * subject_output.MAX_CHARACTERS + "…" and long.count == 1 and long.cut == 1
    assert subject_output.suppressed(long, Counter()) == ["Of 1 of these lines the first 500 characters are shown."]


def test_of_a_warning_from_one_line_the_first_is_shown_and_those_of_dpaudit_all():
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with subject_output.warnings_once() as more:
            for place in range(5):
                warnings.warn(f"text {place}", UserWarning, stacklevel=1)
                warnings.warn(f"note {place}", DpauditNoteWarning, stacklevel=1)
        warnings.warn("afterwards", UserWarning, stacklevel=1)
    texts = [str(one.message) for one in shown]
    assert [text for text in texts if "note" not in text] == ["text 0", "afterwards"]
    assert sum("note" in text for text in texts) == 5 and list(more.values()) == [4]
    with pytest.raises(UserWarning), warnings.catch_warnings():
        warnings.simplefilter("error")
        with subject_output.warnings_once():
            warnings.warn("an error", UserWarning, stacklevel=1)


def test_a_mechanism_that_prints_and_warns_each_time_does_not_flood_the_terminal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loud.py").write_text(LOUD)
    arguments = ["audit", "loud.py:release", "--samples", "100", "--seed", "1", "--no-floating-point"]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        shown = CliRunner().invoke(main, arguments)
    assert shown.exit_code in (0, 5), shown.output
    assert shown.stderr.count("called with") == subject_output.MAX_LINES and "called with" not in shown.stdout
    assert re.search(r"Note: The subject printed \d{3,} lines; the first 5 are shown\.", shown.stderr)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        quiet = CliRunner().invoke(main, [*arguments, "-q"])
    assert quiet.exit_code == shown.exit_code and "Note: " not in quiet.stderr


@pytest.mark.parametrize(("words", "command"), [pytest.param(*one, id=one[0]) for one in commands(main)])
def test_every_command_can_be_quiet(words, command):
    options = {text for parameter in command.params for text in parameter.opts}
    assert {"-q", "--quiet"} <= options


def test_a_quiet_check_says_no_word_of_what_it_wrote(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain.py").write_text("def release(data, size, rng):\n    return data + rng.laplace(size=size)\n")
    arguments = ["check", "plain.py:release", "--only", "deep_copy", "--out", "o", "--seed", "1"]
    assert "Written: " in CliRunner().invoke(main, arguments).output
    quiet = CliRunner().invoke(main, [*arguments, "-q"])
    assert quiet.exit_code in (0, 5) and "Written: " not in quiet.output and (tmp_path / "o" / "check.json").is_file()
