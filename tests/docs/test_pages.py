"""The pages of the manual: every example does what it says, and every page stays short enough to read."""

import re
from pathlib import Path

import pytest
from pages import run_page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*DOCS.rglob("*.md"), ROOT / "README.md", *ROOT.glob("[A-Z]*.md")]
    if not {"_build", "generated"} & set(path.parts)
)
NOT_RUN = ("docs/pytest.md", "README.md")  # tests of their own: tests/plugin/test_plugin_manual.py, and below
NEEDS = {  # a page: the module without which its examples cannot run
    "docs/tutorials/somebody-elses-library.md": "diffprivlib",
    "docs/howto/libraries.md": "opendp",
    "docs/howto/museum.md": "pandas",
    "docs/howto/reports.md": "cryptography",
    "docs/howto/tables.md": "pandas",
}
RUN = [
    page
    for page in PAGES
    if page not in NOT_RUN and re.search(r"^```(?!text$)[a-z]+$", (ROOT / page).read_text("utf-8"), re.MULTILINE)
]


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN)
def test_every_example_of_a_page_does_what_it_says(page, tmp_path, monkeypatch):
    if page in NEEDS:
        pytest.importorskip(NEEDS[page], reason=f"the examples of {page} need {NEEDS[page]}")
    assert run_page(ROOT / page, tmp_path, monkeypatch) >= 1


COMMAND = re.compile(r"^ {4}(?:\$ )?(?:dpaudit|pytest|python|openssl) .*", re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith(("docs/howto", "docs/tut", "README"))])
def test_every_command_of_a_guide_is_in_a_block_that_is_run(page):
    text = re.sub(r"^```console$.*?^```$", "", (ROOT / page).read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^```(python|toml|yaml|json)$.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert not COMMAND.findall(text)


def test_a_command_that_nothing_runs_is_found():
    assert COMMAND.findall("Run:\n\n    dpaudit audit x.py:f\n    make audit\n") == ["    dpaudit audit x.py:f"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```console\n$ echo one two\none three\n```\n", "not found, or not in this order: one three"),
        ("```console\n$ printf 'a\\nb\\n'\nb\na\n```\n", "not found, or not in this order: a"),
        ("```console\n$ exit 3\n```\n", "exit status 3"),
        ("```console\n$ exit 0  # exit status 5\n```\n", "exit status 0"),
        ("```python\n>>> 1 + 1\n3\n\n```\n", "Expected"),
        ("```python\nassert False, 'broken'\n```\n", "broken"),
        ("```toml\nkey = 1\n```\n", "nothing is done with a block of toml"),
    ],
)
def test_a_page_that_says_something_else_than_what_happens_fails(tmp_path, monkeypatch, text, message):
    page = tmp_path / "page.md"
    page.write_text(text, "utf-8")
    with pytest.raises(AssertionError, match=re.escape(message)):
        run_page(page, tmp_path, monkeypatch)
    page.write_text("```console\n$ printf 'a\\nb [c]\\n'\na\nb [c]\n```\n```python\n>>> 1 + 1\n2\n\n```\n", "utf-8")
    assert run_page(page, tmp_path, monkeypatch) == 2


def paragraphs(text):
    """(first line, number of lines) of each paragraph: blocks of code, tables and headings are none; an item is one."""
    text = re.sub(r"^(```|:::).*?^\1:*$", "", text, flags=re.MULTILINE | re.DOTALL)
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.splitlines() if line.strip() and not line.startswith(("|", "#", "    "))]
        start = 0
        for at, line in enumerate(lines):
            if at and re.match(r"\s*([-*]|\d+\.) ", line):
                yield lines[start], at - start
                start = at
        if lines:
            yield lines[start], len(lines) - start


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_short_and_so_are_its_paragraphs(page):
    text = (ROOT / page).read_text("utf-8")
    if "<!-- Made from the code" in text:  # to look things up
        return
    assert len(text.splitlines()) <= 300 or page == "CHANGELOG.md"  # which grows with each version
    assert not [(line, length) for line, length in paragraphs(text) if length > 6]
    limit = 60 if page.startswith("docs/howto/") else None
    assert limit is None or len(text.splitlines()) <= 1.6 * limit


def test_paragraphs_are_counted():
    text = "One\ntwo\n\n- a\n  b\n- c\n\n```text\n1\n2\n3\n4\n5\n6\n7\n```\n| a |\n\n" + "x\n" * 7
    assert [length for _, length in paragraphs(text)] == [2, 2, 1, 7]


OF_CONTRIBUTORS = ("ARCHITECTURE.md", "CONTRIBUTING.md", "docs/explanation/two-walks.md")
FOLDERS = ("", "dpaudit", "mechanisms", "mechanisms/dpaudit_mechanisms")  # in which their paths start
PATH = re.compile(r"`([\w./-]*(?:\.(?:py|md|toml|html)|/))`")


@pytest.mark.parametrize("page", OF_CONTRIBUTORS)
def test_every_path_that_a_contributor_is_sent_to_is_there(page):
    """A name without a folder may be anywhere: the sentence says where."""
    names = {path.name for folder in ("dpaudit", "mechanisms", "tests") for path in (ROOT / folder).rglob("*.py")}
    missing = [
        path
        for path in PATH.findall((ROOT / page).read_text("utf-8"))
        if not any((ROOT / folder / path).exists() for folder in FOLDERS) and path not in names
    ]
    assert not missing, f"{page} must not send its reader to what is not there: {', '.join(missing)}."


ASKS = re.compile(r"isinstance\([^)]*\b(?:PureDP|ApproxDP|GaussianDP|RenyiDP|ZeroConcentratedDP|ProfileClaim|FDP)\b")
OWN_BUSINESS = ("inference/saved.py", "subjects/libraries/opendp.py")  # how a claim is saved, and what a library states


def test_the_walk_of_a_claim_names_every_module_that_asks_for_its_class():
    text = (ROOT / "docs/explanation/two-walks.md").read_text("utf-8")
    asking = [
        path.relative_to(ROOT / "dpaudit").as_posix()
        for path in sorted((ROOT / "dpaudit").rglob("*.py"))
        if ASKS.search(path.read_text("utf-8")) and path.parent.name != "privacy"
    ]
    missing = [path for path in asking if f"`{path}`" not in text and path not in OWN_BUSINESS]
    assert len(asking) > 10 and not missing, f"two-walks.md, on a claim family, must name {', '.join(missing)}."


README = ROOT / "README.md"


def test_the_readme_has_at_most_700_words():
    assert len(README.read_text(encoding="utf-8").split()) <= 700


def test_it_says_what_it_is_and_then_how_to_install_it():
    _, what, how, *_ = README.read_text(encoding="utf-8").split("\n\n")
    assert what.startswith("**dpaudit is the test suite for differential privacy.**")
    assert "'.[pytest]'" in how and "`make dist`" in how and "'dpaudit[pytest]'" in how


@pytest.mark.slow
def test_every_example_of_the_readme_does_what_it_says(tmp_path, monkeypatch):
    assert run_page(README, tmp_path, monkeypatch) == 6
