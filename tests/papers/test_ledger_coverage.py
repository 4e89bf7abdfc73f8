"""Every claim of a ledger has a test, every mark names a claim, and every refuted claim keeps its counterexample."""

import importlib
import inspect
import json
import pkgutil
import re
from collections import Counter
from pathlib import Path

import pytest

from dpaudit.errors import UsageError
from dpaudit.ledgers import collect_marks
from dpaudit.ledgers.command import coverage_problems, ledger_json
from dpaudit.ledgers.entries import SEVERITIES, VERDICTS
from dpaudit_mechanisms.ledger import PAPERS, PAPERS_FOLDER, entry, ledger, ledgers, paper_ids

TESTS = Path(__file__).parents[1]
# Claims whose tests are not there yet. Each of them must be without a test, so that the list cannot outlive its reason.
AWAITED: set[str] = set()
SHARED = ("LevelMechanism", "Independent", "Body")  # parts that mechanisms share, and no mechanism by themselves


def test_every_claim_has_a_test_and_every_mark_names_a_claim():
    assert sorted(coverage_problems(ledgers(), collect_marks(TESTS))) == sorted(
        f"{name} has no test." for name in AWAITED
    )


def test_the_papers_have_the_claims_that_their_specifications_list():
    # The counts are those of the specification of each paper; ids X-N<k> are of what it leaves out.
    numbered = [name for name in paper_ids() if "-N" not in name]
    counts = Counter(name.split("-")[0] for name in numbered)
    assert counts == {"DX": 109, "UP": 70, "CD": 54, "DC": 77, "MQ": 69}
    assert [found.paper for found in ledgers()] == [paper for paper, _ in PAPERS.values()]
    assert ledger("DX").is_written


def test_a_refuted_claim_has_a_test_that_reads_its_counterexample():
    """A file of tests that carries the claim's mark reads its entry, or names it for a test that reads entries."""
    marks = collect_marks(TESTS)
    texts = {mark.path: (TESTS / mark.path).read_text(encoding="utf-8") for mark in marks}
    for found in ledgers():
        for item in found.entries:
            if item.verdict == "refuted as printed":
                files = [mark.path for mark in marks if mark.id == item.id]
                named = [texts[path].count(f'"{item.id}"') - files.count(path) for path in files]
                assert max(named) > 0 and any("entry(" in texts[path] for path in files), item.id


FORMULA = re.compile(r" (<=|>=|=|<|>) |O\(")


def test_a_statement_with_a_formula_has_it_as_it_is_printed():
    """A statement in our own words may repair a slip: the formula beside it is what was judged."""
    missing = [item.id for found in ledgers() for item in found.entries
               if FORMULA.search(item.statement) and not item.printed]  # fmt: skip
    assert missing == []
    (first, *_) = entry("MQ-S3").printed
    assert first == r"G(x)-G(x')+G'(x')(x-x')\le\alpha_1/2" and "+ G'(x') (x - x')" in entry("MQ-S3").statement


def test_a_general_statement_that_is_verified_says_for_what_it_is_stated():
    verified = [item for found in ledgers() for item in found.entries
                if item.is_general and item.verdict.startswith("verified")]  # fmt: skip
    assert len(verified) > 50 and all(item.scope.startswith("Stated for") for item in verified)


def test_the_page_on_the_five_papers_lists_every_mechanism_with_its_source_and_the_counts():
    """Every class that samples, or embeds, in the folders of the papers opens with its source, as `help` shows it."""
    page = (TESTS.parent / "docs" / "reference" / "five-papers.md").read_text(encoding="utf-8")
    modules = [*(f"{folder}.{found.name}" for folder in ("distances", "two_metrics", "constrained", "datacubes")
                 for found in pkgutil.iter_modules([str(PAPERS_FOLDER.parent / folder)])),
               "dx_laplace", "dx_exponential", "small_db", "mwem", "statistical_queries"]  # fmt: skip
    ids = {found.arxiv for found in ledgers()}
    shown = 0
    for name in modules:
        for kind in vars(importlib.import_module(f"dpaudit_mechanisms.{name}")).values():
            is_own = inspect.isclass(kind) and kind.__module__ == f"dpaudit_mechanisms.{name}"
            public = is_own and not kind.__name__.startswith("_") and not getattr(kind, "_is_protocol", False)
            if public and ("sample" in vars(kind) or "embed" in vars(kind)) and kind.__name__ not in SHARED:
                source = inspect.getdoc(kind).split("\n")[0].rstrip(".")
                assert any(f"arXiv:{one}" in source for one in ids), kind
                assert f"| `{name}.{kind.__name__}` | {source} |" in page
                shown += 1
    assert shown > 25
    for found in ledgers():
        assert f"| {found.source} | `{found.paper}` |" in page
        verdicts, severities = (Counter(getattr(one, key) for one in found.entries) for key in ("verdict", "severity"))
        counts = [len(found.ids), *(verdicts[name] for name in VERDICTS), *(severities[name] for name in SEVERITIES)]
        assert f"| `{found.paper}` | {' | '.join(map(str, counts))} |" in page


def test_what_is_refuted_says_how_badly():
    counts = Counter(item.severity for found in ledgers() for item in found.entries if item.verdict == VERDICTS[2])
    assert set(counts) == set(SEVERITIES) and sum(counts.values()) == 106
    page = (TESTS.parent / "docs" / "papers-read-again.md").read_text(encoding="utf-8")
    assert ", ".join(f"{counts[name]} {name}" for name in SEVERITIES) in page


def test_the_page_on_the_second_reading_has_the_counts_and_verdicts_of_the_ledgers():
    page = (TESTS.parent / "docs" / "papers-read-again.md").read_text(encoding="utf-8")
    rows = {row.split("|")[1].strip(): [cell.split()[-1] for cell in row.split("|")[2:-1]]
            for row in page.splitlines() if row.count("|") == 7 and "now" in row}  # fmt: skip
    written = {found.paper: found.entries for found in ledgers()}
    written["all"] = tuple(item for found in ledgers() for item in found.entries)
    assert rows.keys() == written.keys()
    for name, entries in written.items():
        counts = Counter(item.verdict for item in entries)
        assert [int(cell) for cell in rows[name]] == [len(entries), *(counts[verdict] for verdict in VERDICTS)], name
    sections = page.split("\n## ")
    for title, allowed in (
        ("From verified to refuted", {"refuted as printed"}), ("From refuted", {"verified", "verified in part"}),
        ("To verified in part", {"verified in part"}),
    ):  # fmt: skip
        (section,) = (part for part in sections if part.startswith(title))
        named = [name for row in section.splitlines() if row.startswith("| ") for name in row.split("|")[1].split(",")]
        named = [name.split()[0] for name in named if "-" in name and name.strip("- ")]
        assert len(named) > 4 and {entry(name).verdict for name in named} <= allowed


def test_the_published_table_has_the_verdicts_of_the_ledgers():
    """All of reports/claims.json but the names of tests: `dpaudit claims` writes it anew."""
    published = json.loads((TESTS.parent / "reports" / "claims.json").read_text(encoding="utf-8"))
    expected = json.loads(ledger_json(ledgers(), [], "tests"))
    assert [{**row, "tests": []} for row in published] == expected


def test_ids_and_prefixes_that_do_not_exist_are_refused():
    with pytest.raises(UsageError, match=r"prefix must be one of DX, UP, CD, DC, MQ, got 'XX'\."):
        ledger("XX")
    with pytest.raises(UsageError, match=r"claim_id must be an id of a ledger that is written, got 'DX-T99'\."):
        entry("DX-T99")
