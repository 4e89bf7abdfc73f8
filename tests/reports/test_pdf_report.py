"""The PDF: text that can be selected, vector figures, the same bytes for the same result, and nothing that can act."""

import io
import re

import pytest

from dpaudit import reports
from dpaudit.errors import UsageError
from dpaudit.reports.dossier import Dossier

pypdf = pytest.importorskip("pypdf", reason="no pypdf to read the PDF with")
pytest.importorskip("typst", reason="no typst to write a PDF with: the extra pdf is not installed")


def pages_of(result, profile="compliance"):
    content = reports.render(result, "pdf", profile)
    reader = pypdf.PdfReader(io.BytesIO(content))
    return content, [page.extract_text() for page in reader.pages]


def test_the_first_page_is_the_summary_and_its_text_can_be_selected(synthetic):
    content, pages = pages_of(synthetic.dossier())
    first = " ".join(pages[0].split())
    headline = "Violated: a promise is broken in 2 of 3 results; 1 of 6 checks failed"
    asked = "What was promised?", "How sure is that?", "What was not tested?", "promised", "Digest of these results"
    for words in (headline, *asked):
        assert words in first
    assert [k for k, page in enumerate(pages) if "☐ reject" in " ".join(page.split())] == [0]
    whole = " ".join(" ".join(pages).split())
    assert "Security, access control, collection exposure" in whole and "0.0|1.0" in whole and "ε" in whole
    assert not re.search(rb"/Subtype\s*/Image", content)  # figures are drawn, not pictures


@pytest.mark.parametrize("name", ["infinite", "error", "empty", "doubles", "sides", "renyi", "fixed"])
def test_results_of_every_kind_are_drawn(synthetic, name):
    content, pages = pages_of(synthetic.make(name), "plain")
    assert content.startswith(b"%PDF") and 2 <= len(pages) <= 8


def test_hostile_names_are_shown_and_do_nothing(synthetic):
    content, pages = pages_of(synthetic.attacked())
    text = "".join(pages)
    assert "<script>" in text and "\u202e" not in text and "\x1b" not in text
    assert not re.search(rb"/(JavaScript|JS|Launch|OpenAction|AA|URI|EmbeddedFile|AcroForm)\b", content)


def test_what_the_font_lacks_is_shown_as_an_escape(synthetic):
    result = synthetic.result([synthetic.finding("a", "\u4e2d\u6587\U0001f600", 0.5)], claim="eps=1")
    _, pages = pages_of(result, "plain")
    assert "\\u4e2d\\u6587" in "".join(pages).replace("\n", "")


def test_without_typst_the_extra_is_named(synthetic, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'dpaudit\[pdf\]'"):
        reports.render(synthetic.make("single"), "pdf")


def test_a_word_or_a_digest_in_a_table_is_not_broken_where_there_is_room(synthetic):
    source = Dossier.of(synthetic.make("hostile")).sources[0]
    _, pages = pages_of(Dossier((source,)))
    lines = " ".join("\n".join(pages).split(" ")).splitlines()
    assert any("not assessed" in line for line in lines) and any(source.digest in line for line in lines)
