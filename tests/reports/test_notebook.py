"""Results and running audits in a notebook: the cell, its Markdown, pictures by name, and the bar."""

import re
import sys
import types
import xml.etree.ElementTree as ElementTree

import pytest

import dpaudit
from dpaudit.errors import UsageError
from dpaudit.reports import progress
from dpaudit.results import shown


def test_a_cell_says_the_verdict_first_and_folds_the_rest(synthetic):
    violated = synthetic.result([synthetic.finding(ratio=1.4)])
    for result, first in ((violated, "Violated"), (synthetic.make("inconclusive"), "Inconclusive")):
        cell = result._repr_html_()
        heading = re.search(r"<h1>(.*?)</h1>", cell, re.DOTALL)
        assert heading is not None and heading[1].startswith(first)
        assert cell.count("<details>") == cell.count("</details>") >= 4
        assert result._repr_markdown_().startswith(f"# {first}")
    assert "What may be missed?" in synthetic.check()._repr_markdown_()


def test_what_is_printed_is_what_the_command_says_and_no_list_of_fields(synthetic):
    """`print` of these showed every field, a screen or ten; an audit has two lines of its own."""

    def release(data, size, rng):
        return data + rng.laplace(size=size)

    plan = dpaudit.plan(release, claim="eps=1", pairs=[(0.0, 1.0)], samples=1000, seed=1)
    for result, words in (
        (plan, "Found with probability 90% in 1,000 samples"),
        (synthetic.check(), "Error rate 0.1% for the list"),
        (synthetic.utility(), "What may be missed?"),
        (synthetic.scores(), "May it be released?"),
    ):
        shown = str(result)
        assert words in shown and not re.search(r"\w+\(\w+=", shown)
        assert max(map(len, shown.splitlines())) <= 80


def test_an_audit_that_broke_names_the_cause_where_it_is_printed():
    def breaks(data, rng):
        raise KeyError("age")

    shown = str(dpaudit.audit(breaks, claim="eps=1", pairs=[(0, 1)], samples=50, seed=1))
    assert "must return outputs, got KeyError: 'age' in" in " ".join(shown.split())


def test_the_styles_of_a_cell_stay_in_it(synthetic):
    cell = synthetic.make("inconclusive")._repr_html_()
    style = cell[cell.index("<style>") : cell.index("</style>")]
    assert style.split("{")[0].strip() == "<style>\n.dpaudit"
    assert style.count("{") == style.count("}") and not re.search(r"(^|})\s*(:root|body)\s*{", style, re.MULTILINE)


def test_what_a_subject_is_called_is_text(synthetic):
    result = synthetic.make("hostile")
    assert "<script" not in result._repr_html_()
    assert len(repr(result)) < 1000


def test_a_picture_has_a_name_and_is_saved_as_a_drawing(tmp_path, synthetic):
    result = synthetic.make("inconclusive")
    picture = result.plot("wealth")
    assert "<svg" in picture._repr_html_()
    saved = ElementTree.fromstring(picture.save(tmp_path / "wealth.svg").read_text(encoding="utf-8"))
    assert saved.tag == "{http://www.w3.org/2000/svg}svg"
    texts = " ".join(saved.itertext())
    assert all(text in texts for _, text in picture.figure.legend)
    with pytest.raises(UsageError, match=r"must be one of .*wealth.*Did you mean 'wealth'\?"):
        result.plot("weath")
    with pytest.raises(UsageError, match=r"must end in \.svg"):
        picture.save(tmp_path / "wealth.png")


def test_an_audit_at_a_prompt_shows_where_it_stands_and_takes_it_away(monkeypatch):
    """A stand-in for IPython's display; a kernel has been run by hand."""
    cells = []

    class Cell:
        def update(self, shown):
            cells.append(shown)

    shell = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=object()))
    display = types.SimpleNamespace(HTML=str, display=lambda shown, display_id: Cell())
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(shown, "SLOW", 0.0)
    monkeypatch.setattr(progress, "CELL_SECONDS", 0.0)

    def release(data, rng):
        return data + rng.laplace()

    options = {"claim": "eps=1", "pairs": [(0.0, 1.0)], "samples": 300, "seed": 7}
    silent = dpaudit.audit(release, **options)
    assert not cells  # a script
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    assert dpaudit.audit(release, **options).findings == silent.findings
    assert cells[0].startswith('<progress value="') and cells[-1] == ""
