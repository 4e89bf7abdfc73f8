"""docs/pytest.md is right: its files are written, its commands run, and its lines are found, section by section."""

import re
import shlex
from pathlib import Path

import pytest

MANUAL = Path(__file__).resolve().parents[2] / "docs" / "pytest.md"
BLOCK = re.compile(r"^```(python|toml|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECTIONS = {
    section.partition("\n")[0]: BLOCK.findall(section) for section in MANUAL.read_text(encoding="utf-8").split("\n## ")
}
SHOWN = {title: blocks for title, blocks in SECTIONS.items() if blocks}


def pattern(line):
    """A line of the manual as a glob: three dots stand for anything, and only they."""
    return re.sub(r"([\[*?])", r"[\1]", line).replace("...", "*")


@pytest.mark.slow
@pytest.mark.parametrize("title", SHOWN)
def test_the_examples_of_the_manual_do_what_it_says(pytester, title):
    pytester.makepyprojecttoml("")
    ran = 0
    for kind, text in SHOWN[title]:
        if kind != "console":
            name = text.partition("\n")[0].removeprefix("# ")
            (pytester.path / name).write_text(text, encoding="utf-8")
            continue
        for call in text.split("$ pytest")[1:]:
            command, *lines = call.rstrip("\n").split("\n")
            result = pytester.runpytest(*shlex.split(command))
            result.stdout.fnmatch_lines([pattern(line) for line in lines])
            ran += 1
    assert ran


def test_every_option_is_in_the_manual():
    from dpaudit.pytest_plugin.options import AUDIT_OPTIONS, SESSION_OPTIONS

    text = MANUAL.read_text(encoding="utf-8")
    for name in (*AUDIT_OPTIONS, *SESSION_OPTIONS, "strict", "only"):
        assert f"`--dp-{name}" in text, name


def test_the_table_of_profiles_is_right():
    from dpaudit.profiles import profile_named

    text = MANUAL.read_text(encoding="utf-8")
    for name in ("default", "quick", "ci", "nightly"):
        profile = profile_named(name)
        assert f"| `{name}` | {profile.samples or 100_000:,} | {profile.seeds} |" in text
