"""`dpaudit claims`: what it prints and writes, and the status it ends with."""

import json
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner
from test_ledger_entries import REFUTED, SOUND, stated

from dpaudit.cli import main
from dpaudit.ledgers import Entry, Ledger

HOSTILE = {**SOUND, "id": "AB-3", "statement": "x < y & <script>alert(1)</script>", "how": ("exact", "statistical")}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command in a folder with one file of tests, with two ledgers of which one is written."""
    entries = (Entry(**SOUND), Entry(**REFUTED), Entry(**HOSTILE, error_rate="1e-9", reading="A reading."))
    stated(
        monkeypatch,
        Ledger("ab", "A and B", tuple(entry.id for entry in entries), entries),
        Ledger("cd", "C and D", ("CD-1", "CD-2")),
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").mkdir()
    mark = "@pytest.mark.claim('{}')\ndef test_{}(): ...\n"
    text = "".join(
        mark.format(*pair) for pair in [("AB-1", "one"), ("AB-2", "two"), ("AB-2", "more"), ("AB-3", "three")]
    )
    (tmp_path / "tests" / "test_it.py").write_text(text)

    def run(*arguments):
        return CliRunner(env={"COLUMNS": "100"}).invoke(main, ["claims", *arguments], prog_name="dpaudit")

    return run


def test_a_word_of_the_table_is_never_cut_off(run, tmp_path):
    assert "\u2026" not in run("--out", "found").output
    assert "\u2026" not in CliRunner(env={"COLUMNS": "60"}).invoke(main, ["claims"]).output


@pytest.mark.parametrize("kind", ["no folder", "tests of something else", "no Python"])
def test_in_a_folder_whose_tests_mark_no_claim_nothing_is_called_untested(run, tmp_path, kind):
    file = tmp_path / "tests" / "test_it.py"
    file.write_text("def test_it(): ..." if kind == "tests of something else" else "def (")
    if kind == "no folder":
        file.unlink()
        file.parent.rmdir()
    result = run()
    assert result.exit_code == 0, result.stderr
    assert "AB-1" in result.stdout and "none" not in result.stdout and "gaps" not in result.stdout
    assert "No tests here mark these claims; name a folder that does with --tests." in result.stdout
    assert run("--check").exit_code == (1 if kind == "tests of something else" else 2)


def test_no_file_is_written_unless_a_folder_for_it_is_named(run, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    run()
    assert sorted(tmp_path.rglob("*")) == before


def test_the_json_file_has_the_published_fields(run, tmp_path):
    run("--out", "deep/place")
    rows = json.loads((tmp_path / "deep/place/claims.json").read_text(encoding="utf-8"))
    assert [set(row) for row in rows] == [
        {
            "id",
            "paper",
            "kind",
            "verdict",
            "evidence",
            "tests",
            "counterexample",
            "corrected",
            "unchecked",
            "scope",
            "extraction",
            "severity",
            "printed",
        }
    ] * 3
    assert rows[1] == {
        "id": "AB-2",
        "paper": "ab",
        "kind": "law",
        "verdict": "refuted as printed",
        "evidence": "exact: Looked at.",
        "tests": ["tests/test_it.py::test_two", "tests/test_it.py::test_more"],
        "counterexample": {"n": 1},
        "corrected": "Two is two.",
        "unchecked": None,
        "scope": None,
        "extraction": None,
        "severity": "slip",
        "printed": ["1=2"],
    }
    assert rows[0]["counterexample"] is None and rows[0]["corrected"] is None
    assert rows[2]["evidence"] == "exact, statistical: Looked at. Reading: A reading. Error rate: 1e-9"


def test_the_page_links_to_the_tests_and_escapes_what_it_shows(run, tmp_path):
    run("--out", "deep/place")
    page = (tmp_path / "deep/place/claims.html").read_text(encoding="utf-8")

    class Links(HTMLParser):
        def __init__(self):
            super().__init__()
            self.found, self.ids, self.scripts = [], [], 0

        def handle_starttag(self, tag, attrs):
            values = dict(attrs)
            self.scripts += tag == "script"
            self.found += [values["href"]] if tag == "a" else []
            self.ids += [values["id"]] if "id" in values else []

    parser = Links()
    parser.feed(page)
    assert parser.scripts == 0 and "&lt;script&gt;" in page
    assert set(parser.ids) >= {"ab", "AB-1", "AB-2", "AB-3"}
    outside = [link for link in parser.found if not link.startswith("#")]
    assert len(outside) == 4
    for link in outside:
        path, _, line = link.partition("#L")
        assert (tmp_path / "deep/place" / path).resolve() == tmp_path / "tests/test_it.py"
        assert "claim" in (tmp_path / "tests/test_it.py").read_text().splitlines()[int(line) - 1]
    assert {link[1:] for link in parser.found if link.startswith("#")} <= set(parser.ids)


def test_a_check_writes_nothing_and_fails_where_a_test_is_missing_or_names_nothing(run, tmp_path):
    assert run("--check").exit_code == 0
    assert not (tmp_path / "reports").exists()
    file = tmp_path / "tests" / "test_it.py"
    file.write_text(file.read_text().replace("AB-1", "AB-9"))
    result = run("--check")
    assert result.exit_code == 1
    assert "2 gaps between ledgers and tests:" in result.stdout
    assert "AB-1 has no test." in result.stdout
    assert "test_it.py::test_one (line 1) names AB-9, which is no claim of a paper." in result.stdout
    assert run().exit_code == 0  # the table alone is no check
