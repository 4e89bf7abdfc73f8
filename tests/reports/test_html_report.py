"""The HTML report: verdict first, complete, self-contained, deterministic, and unmoved by hostile names."""

import base64
import io
import math
import re
import xml.etree.ElementTree as ElementTree
from functools import partial
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from dpaudit import reports
from dpaudit.errors import UsageError
from dpaudit.reports import figures
from dpaudit.reports.html import PRINTED_ROWS, script
from dpaudit.results.model import Look

page = partial(reports.render, format="html")
VOID = {"meta", "wbr"}


class Page(HTMLParser):
    """Elements and text of a page; fails on an element that is not closed in its turn."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.elements, self.words, self.open = [], [], []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def drawings(source):
    """The inline drawings of a page, parsed as XML."""
    return [ElementTree.fromstring(text) for text in re.findall(r"<svg.*?</svg>", source, flags=re.DOTALL)]


def test_every_page_is_well_formed_asks_for_nothing_from_outside_and_has_finite_coordinates(any_result):
    source = page(any_result)
    own = f"<script>{script()}</script>"  # the one script that is ours stands there once and to the letter
    assert source.count(own) == 1
    source = source.replace(own, "")
    read = Page(source)
    for tag, attributes in read.elements:
        assert tag not in ("script", "link", "img", "iframe", "object", "base", "form")
        assert attributes.get("href", "#").startswith(("#", "data:image/png;base64,"))
        assert not {name for name in attributes if name.startswith("on") or name in ("src", "action", "srcdoc")}
    style = re.search(r"<style>(.*?)</style>", source, flags=re.DOTALL).group(1)
    assert "url(" not in style and "@import" not in style
    ids = [attributes["id"] for _, attributes in read.elements if "id" in attributes]
    assert read.text and len(ids) == len(set(ids))
    for drawing in drawings(source):
        assert drawing.get("aria-label") or drawing.get("aria-hidden") == "true"
        for element in drawing.iter():
            places = [value for name, value in element.items() if name not in ("aria-label", "class", "href")]
            assert not re.search(r"nan|inf", " ".join(places))


def test_a_print_has_the_first_rows_of_a_long_table_and_says_so(synthetic):
    long = synthetic.result([synthetic.finding("a", f"b{k}") for k in range(PRINTED_ROWS + 4)])
    for result, is_cut in ((long, True), (synthetic.make("violated"), False)):
        source = page(result)
        assert (f"Printed are the first {PRINTED_ROWS} of {PRINTED_ROWS + 4} rows" in source) == is_cut
        assert f"tr:nth-child(n+{PRINTED_ROWS + 1}){{display:none}}" in source


def test_the_matrix_outlines_exactly_the_violated_cells_and_tells_what_others_are(synthetic):
    result = synthetic.make("violated")
    drawing = ElementTree.fromstring(figures.heatmap(result).wide)
    marked = [element for element in drawing.iter() if element.get("class") == "outline"]
    assert len(marked) == 2 * len(result.violated)  # each pair stands above and below the diagonal
    findings = [synthetic.finding("a", "b"), synthetic.finding("b", "c"), synthetic.finding("c", "d")]
    legend = [text for _, text in figures.heatmap(synthetic.result(findings, not_asked=("a|c",))).legend]
    assert legend == ["same input", "not asked (infinite budget)", "not audited"]


def test_an_image_has_each_step_in_its_colour():
    steps = np.array([[0, 1], [2, 1]], dtype=np.uint8)
    colours = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    data = base64.b64decode(figures.pixels(steps, colours).partition(",")[2])
    image = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    assert image.tolist() == [[list(colours[step]) for step in row] for row in steps.tolist()]


def test_a_chain_of_many_inputs_gives_no_matrix(synthetic):
    chain = [synthetic.finding(f"x{k}", f"x{k + 1}") for k in range(40)]  # 40 of 820 cells
    assert figures.heatmap(synthetic.result(chain)) is None
    assert figures.bounds(synthetic.result(chain)) is not None
    star = [synthetic.finding("hub", f"x{k}") for k in range(60)]  # 61 inputs
    assert figures.heatmap(synthetic.result(star)) is None


def test_two_pairs_of_the_same_inputs_show_the_worse(synthetic):
    findings = [
        synthetic.finding("a", "b", 0.5),
        synthetic.finding("b", "a", 1.5),
        synthetic.finding("a", "c"),
        synthetic.finding("b", "c"),
    ]
    figure = figures.heatmap(synthetic.result(findings))
    assert figure.wide.count('class="outline"') == 2
    assert "the worst of them" in figure.note


@pytest.mark.parametrize(("ratio", "step"), [(0.0, 0), (0.999, 7), (1.0, 7), (1.0001, 8), (2.0, 15), (math.inf, 15)])
def test_colours_change_side_at_the_budget(ratio, step):
    assert figures.ratio_step(ratio, 2.0) == step


def test_a_curve_of_many_looks_is_thinned_and_keeps_its_end(synthetic):
    looks = tuple(Look(k, 0.001 * k, 0.0) for k in range(1, 5001))
    figure = figures.wealth(synthetic.result([synthetic.finding(looks=looks)]))
    curve = re.search(r'd="(M[^"]*)" class="curve w0"', str(figure.wide)).group(1)
    assert curve.count("L") <= figures.CURVE_POINTS
    assert figure.data.rows[-1][1] == "5,000" and "4,000 more rows" in page(
        synthetic.result([synthetic.finding(looks=looks)])
    )


def test_all_violated_pairs_are_in_the_ranked_table(synthetic):
    findings = [synthetic.finding(f"x{k}", "y", 1.5) for k in range(120)] + [synthetic.finding("z", "y", 0.5)]
    table = re.search(r'id="pairs".*?</table>', page(synthetic.result(findings)), flags=re.DOTALL).group(0)
    assert table.count("violated-row") == 120


def test_a_huge_message_and_input_are_cut(synthetic):
    finding = synthetic.finding(verdict="error", message="m" * 1_000_000, x="x" * 1_000_000, id="i" * 1_000_000)
    assert len(page(synthetic.result([finding]))) < 100_000


def test_the_suffix_chooses_the_format(synthetic, tmp_path):
    result = synthetic.make("single")
    for name in reports.FORMATS:
        if name == "pdf":
            pytest.importorskip("typst")
        path = reports.write_report(result, tmp_path / reports.file_name("audit", name).upper())
        written, made = path.read_bytes(), reports.render(result, name)
        assert written == (made if isinstance(made, bytes) else made.encode())


def test_an_unknown_format_names_the_known_ones(synthetic):
    with pytest.raises(UsageError, match=r"format must be one of html, json, md, junit, .*, oscal, got 'txt'"):
        reports.render(synthetic.make("single"), "txt")
