"""The pages of the five papers: made of the saved experiments, tied to the ledgers, and compared run by run."""

import json
import sys
from pathlib import Path

import pytest

from dpaudit_mechanisms.ledger import entry, ledgers

sys.path.insert(0, str(Path(__file__).parents[2] / "mechanisms" / "scripts"))
import papers_report

SAVED = Path(__file__).parents[2] / "reports" / "papers"
NAMES = [name for group in papers_report.EXPERIMENTS.values() for name in group]


def experiment(name, source, agrees, printed="a", ours="b"):
    row = {"source": source, "printed": printed, "ours": ours, "agrees": agrees}
    table = {"title": "t", "note": "", "columns": ["x", "y"], "rows": [[1.5, None], ["a|b", 2]]}
    return {"name": name, "description": name, "seed": 0, "quick": True, "seconds": 1.0, "statements": [row],
            "tables": [table]}  # fmt: skip


def test_a_page_sets_print_and_ours_side_by_side_and_says_why_they_differ():
    (found,) = [one for one in ledgers() if one.paper == "constrained-dp"]
    text = papers_report.page(found, [experiment("taxi", "CD-E1", "no", "1.68 | 1.53")])
    assert "| CD-E1 | 1.68 \\| 1.53 | b | no | not checkable | Open: errors on the zones" in text
    assert "![taxi](taxi.png)" in text and "| 1.5 |  |" in text and "| a\\|b | 2 |" in text
    assert papers_report.why(entry("CD-E1"), "yes") == ""


@pytest.mark.parametrize(
    ("source", "agrees", "count"),
    [("UP-T2", "yes", 0), ("UP-T2", "no", 1), ("UP-E2", "no", 0), ("UP-E2", "yes", 1), ("CD-U4", "yes", 0)],
)
def test_a_statement_that_contradicts_its_verdict_is_named(source, agrees, count):
    assert len(papers_report.contradictions([experiment("one", source, agrees)])) == count


def test_a_changed_statement_is_seen_and_the_status_says_so(tmp_path, capsys):
    before, after = tmp_path / "before", tmp_path / "after"
    for folder, agrees in ((before, "yes"), (after, "no")):
        folder.mkdir()
        (folder / "taxi.json").write_text(json.dumps(experiment("taxi", "CD-E1", agrees)))
    assert papers_report.main(["taxi", "--pages", "--out", str(after), "--check", str(before)]) == 1
    assert "was ('taxi', 'CD-E1', 'a', 'yes')" in capsys.readouterr().out and (after / "constrained-dp.md").exists()
    assert papers_report.main(["taxi", "--pages", "--out", str(after), "--check", str(after)]) == 0


def test_the_published_pages_are_those_of_the_saved_experiments_and_contradict_no_ledger():
    assert sorted(path.stem for path in SAVED.glob("*.json")) == sorted(NAMES)
    by_paper = {found.paper: found for found in ledgers()}
    for paper, group in papers_report.EXPERIMENTS.items():
        saved = papers_report.read(group, SAVED)
        assert (SAVED / f"{paper}.md").read_text(encoding="utf-8") == papers_report.page(by_paper[paper], saved)
        assert papers_report.contradictions(saved) == []
        assert all((SAVED / f"{name}.png").stat().st_size > 10_000 for name in group)


@pytest.mark.slow
def test_the_experiments_state_today_what_was_published(tmp_path):
    """Those that take seconds, run again: statements and their agreement, not the digits of a machine."""
    names = ["triangles", "constrained-variance"]
    assert papers_report.main([*names, "--out", str(tmp_path), "--check", str(SAVED)]) == 0
