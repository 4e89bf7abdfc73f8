"""A document as PDF, by reportlab (extra `pdf`): text that can be selected, vector figures, DejaVu from matplotlib.

Nothing in it can act: no script, no form, no link. Texts are escaped for reportlab's own markup; a character that the
font lacks is shown as its escape.
"""

from __future__ import annotations

import base64
import functools
import io
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape as escape_markup

from dpaudit.errors import UsageError
from dpaudit.reports.document import Block, CodeBlock, Document, Facts, Paragraph, Section, SignOffBlock, Table
from dpaudit.reports.drawing import WIDE, Drawing, Figure, Mark
from dpaudit.reports.formats import NO_REPORTLAB
from dpaudit.reports.html import JOINTS, style
from dpaudit.reports.wording import plural

NORMAL, BOLD, MONO = "DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono"
MARGIN = 48.0  # points
MAX_PAGES = 8  # a longer report leaves out more, down to its shortest form
# Rows of a table: in full, and where that takes too many sheets; with the last but one details are left out, with the
# last the figures of chapters too. Page one and the items have fewer rows: none of these is cut.
ROW_LIMITS = (120, 30, 16, 15)
DETAILS = (
    "curves", "evidence", "pairs", "found", "worst", "floating-point", "laws", "method", "label", "glossary",
    "severity",
)  # fmt: skip
GRAVE = ("violated", "error")  # marks of details that are never left out
SIZE = 9.0  # points of running text and of tables
ELSEWHERE = "in the other formats of this report."
ROOM = 110.0  # points below a heading
WORD = 16  # characters of a word that is not broken
CELL = 6_000  # characters of a cell, which may go on on the next page
INK, SOFT, RULE, PANEL = "#16191d", "#59616b", "#d8dce1", "#f5f6f8"
COLOURS = {"violated": "#a81220", "error": "#63348a", "inconclusive": "#7a5200", "not_refuted": "#1f5a96"}
BACKS = {"violated": "#fcecec", "error": "#f4ecfa", "inconclusive": "#fdf4dd", "not_refuted": "#eaf2fa"}
NESTED = re.compile(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")  # rules for the dark, for phones and for paper
CSS_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
SELECTOR = re.compile(r"(?:svg )?((?:\.[\w-]+)+)")  # of marks: by their classes alone


def render(document: Document) -> bytes:
    """The file; the same bytes for the same document.

    `UsageError` if reportlab is not installed.
    """
    try:
        from reportlab.lib.pagesizes import A4
        from reportlab.platypus import PageBreak, SimpleDocTemplate
    except ImportError as error:
        raise UsageError(NO_REPORTLAB) from error
    _register()
    width, content = A4[0] - 2.0 * MARGIN, b""
    for most in ROW_LIMITS:
        target = io.BytesIO()
        page = SimpleDocTemplate(
            target,
            pagesize=A4,
            **{f"{side}Margin": MARGIN for side in ("left", "right", "top", "bottom")},
            title=_known(document.headline, NORMAL),
            author="dpaudit",
            subject=_known(document.kicker, NORMAL),
            invariant=1,  # no date, no random id
        )
        is_short = most <= ROW_LIMITS[-2]
        story = [*_first(document, width), *([] if is_short else [PageBreak()])]
        kept = [
            one for one in document.sections if not (is_short and one.id.endswith(DETAILS) and one.mark not in GRAVE)
        ]
        for section in kept:
            story += _section(section, width, most)
        if len(kept) < len(document.sections):
            story.append(_text(f"{plural(len(document.sections) - len(kept), 'more section')}: {ELSEWHERE}", "note"))
        story.append(_text(document.footer, "note"))
        page.build(story, onFirstPage=_number, onLaterPages=_number)
        content = target.getvalue()
        if page.page <= MAX_PAGES:
            break
    return content


def _number(canvas: Any, page: Any) -> None:
    canvas.setFont(NORMAL, SIZE)
    canvas.setFillColor(SOFT)
    canvas.drawRightString(page.pagesize[0] - MARGIN, MARGIN / 2.0, str(canvas.getPageNumber()))


@functools.cache
def _register() -> None:
    import matplotlib
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    for name in (NORMAL, BOLD, MONO):
        pdfmetrics.registerFont(TTFont(name, str(folder / f"{name}.ttf")))
    pdfmetrics.registerFontFamily(NORMAL, normal=NORMAL, bold=BOLD, italic=NORMAL, boldItalic=BOLD)


@functools.cache
def _glyphs(font: str) -> frozenset[int]:
    from reportlab.pdfbase import pdfmetrics

    return frozenset(pdfmetrics.getFont(font).face.charToGlyph)


def _known(text: str, font: str) -> str:
    """The text with an escape for each character that the font lacks."""
    glyphs = _glyphs(font)
    return "".join(char if ord(char) in glyphs else char.encode("unicode_escape").decode() for char in text)


def _style(name: str, colour: str = INK) -> Any:
    from reportlab.lib.styles import ParagraphStyle

    sizes = {"title": 17.0, "h2": 13.0, "h3": 11.0, "h4": 10.0, "lead": 10.0}
    bold = name in ("title", "h2", "h3", "h4", "lead", "head")
    size = sizes.get(name, SIZE)
    before = {"h2": 16.0, "h3": 11.0, "h4": 8.0}.get(name, 0.0)
    return ParagraphStyle(
        name,
        fontName=BOLD if bold else MONO if name == "code" else NORMAL,
        fontSize=size,
        leading=1.25 * size,
        textColor=colour,
        spaceBefore=before,
        spaceAfter=0.0 if name in ("cell", "head") else 0.5 * size,
        splitLongWords=1,
    )


def _text(text: str, style: str, colour: str = INK) -> Any:
    from reportlab.platypus import Paragraph as Running

    chosen = _style(style, SOFT if style == "note" else colour)
    lines = [escape_markup(_known(line, chosen.fontName)) for line in text.split("\n")]
    return Running("<br/>".join(lines), chosen)


def _first(document: Document, width: float) -> list[Any]:
    from reportlab.platypus import Spacer
    from reportlab.platypus import Table as Grid

    colour = COLOURS[document.verdict]
    box = Grid(
        [[[_text(document.kicker, "lead", colour), _text(document.headline, "title", colour)]]], colWidths=[width]
    )
    box.setStyle(
        [
            ("BACKGROUND", (0, 0), (-1, -1), BACKS[document.verdict]),
            ("LINEBEFORE", (0, 0), (0, -1), 4.0, colour),
            *_padding(left=14.0, top=10.0, bottom=10.0),
        ]
    )
    story = [box, Spacer(1.0, 8.0)]
    to_sign = [block for block in document.first if isinstance(block, SignOffBlock)]  # in 9 points it must come early
    for block in (*document.first[:1], *to_sign, *(one for one in document.first[1:] if one not in to_sign)):
        story += _page_one(block, width)
    return story


def _page_one(block: Block, width: float) -> list[Any]:
    """A block of page one: a figure without its data, statements as text."""
    from reportlab.platypus import KeepTogether

    if isinstance(block, Facts) and block.kind == "statements":
        lead, *rest = block.rows
        return [_text(f"{lead[0]} {lead[1]}", "h4"), *_grid(("", ""), rest, width, with_head=False)]
    if isinstance(block, Figure):
        drawing, *rest = _drawn(block, width)
        return [KeepTogether([_text(block.title, "h4"), drawing]), *rest, _text(block.note, "note")]
    return _block(block, width)


def _section(section: Section, width: float, most: int) -> list[Any]:
    mark = f" ({section.mark.replace('_', ' ')})" if section.mark else ""
    from reportlab.platypus import CondPageBreak, KeepTogether

    heading = _text(section.title + mark, f"h{section.level}", COLOURS.get(section.mark, INK))
    parts = [_block(block, width, most) for block in section.blocks]
    if section.level > 2 and parts and not any(parts):  # its figure was left out
        return []
    if parts and parts[0] and isinstance(section.blocks[0], Figure):
        # One block with the drawing, so that no page parts them.
        together, *rest = parts[0]
        return [KeepTogether([heading, *together._content]), *rest, *itertools.chain(*parts[1:])]
    room = 1.6 * ROOM if section.blocks and isinstance(section.blocks[0], Table) else ROOM  # for its own heading too
    return [CondPageBreak(room), heading, *itertools.chain(*parts)]


def _block(block: Block, width: float, most: int = ROW_LIMITS[0]) -> list[Any]:
    from reportlab.platypus import CondPageBreak, KeepTogether

    if isinstance(block, Paragraph):
        return [_text(block.text, block.kind)]
    if isinstance(block, Facts):
        return _grid(("", ""), block.rows, width, with_head=False)
    if isinstance(block, SignOffBlock):
        fields = []
        for name, decision, conditions in block.chosen:
            boxes = "   ".join(f"{'☒' if one == decision else '☐'} {one}" for one in block.decisions)
            fields.append((name, f"{boxes}{': ' if conditions else ''}{conditions}"))
        fields += [(name, text or "_" * 60) for name, text in block.rows]
        note = [_text(block.note, "note")] if block.note else []
        return [_text(block.title, "h4"), *_grid(("", ""), tuple(fields), width, with_head=False), *note]
    if isinstance(block, CodeBlock):
        return [_text(line, "code") for line in block.text.splitlines()]
    if isinstance(block, Table) and block.is_closed:
        return [_text(f"{block.title}: {ELSEWHERE}", "note")]
    if isinstance(block, Table):
        rows = block.rows[:most]
        rest = len(block.rows) - len(rows) + block.omitted
        more = [_text(f"{plural(rest, 'more row')}: {ELSEWHERE}", "note")] if rest else []
        return [CondPageBreak(ROOM), _text(block.title, "h4"), *_grid(block.columns, rows, width), *more]
    assert isinstance(block, Figure)
    if most == ROW_LIMITS[-1] or (most == ROW_LIMITS[-2] and not block.id.endswith("evidence")):
        return []
    said = f"{block.description} {block.note}"
    return [KeepTogether([_text(block.title, "h4"), *_drawn(block, width), _text(said, "note")])]


def _drawn(figure: Figure, width: float) -> list[Any]:
    """A drawing with its scale and its legend, two entries beside each other."""
    from reportlab.platypus import Table as Grid

    known = functools.partial(_known, font=NORMAL)
    scale = [convert(figure.scale, 0.45 * width, known)] if figure.scale else []
    shown = [convert(figure.draw(WIDE), width, known), *scale]
    entries = [[convert(sample, 22.0, known), _text(text, "cell", SOFT)] for sample, text in figure.legend]
    if not entries:
        return shown
    entries += [["", ""]] * (len(entries) % 2)
    grid = Grid([[*a, *b] for a, b in zip(entries[::2], entries[1::2], strict=True)],
                colWidths=[30.0, width / 2.0 - 30.0] * 2, hAlign="LEFT")  # fmt: skip
    grid.setStyle(_padding(top=0.5, bottom=0.5))
    return [*shown, grid]


def _padding(**points: float) -> list[tuple[Any, ...]]:
    return [(f"{side.upper()}PADDING", (0, 0), (-1, -1), room) for side, room in points.items()]


def _least(column: str, cells: Sequence[str]) -> float:
    """The width in which no word of a column is broken, but for those that are longer than words are; in points."""
    from reportlab.pdfbase.pdfmetrics import stringWidth

    texts = [(column, BOLD), *((cell, NORMAL) for cell in cells)]
    words = [(word, font) for text, font in texts for word in text.split()]
    parts = [(part, font) for word, font in words for part in (JOINTS.split(word) if len(word) > WORD else [word])]
    return max((stringWidth(part, font, SIZE) for part, font in parts if len(part) <= WORD), default=0.0) + 7.0


def _broken(text: str, width: float) -> str:
    """The text, with names that are wider than a column broken where names may be."""
    from reportlab.pdfbase.pdfmetrics import stringWidth

    def broken(name: re.Match[str]) -> str:
        lines = [""]
        for part in JOINTS.split(name[0]):
            if lines[-1] and stringWidth(lines[-1] + part, NORMAL, SIZE) > width:
                lines.append("")
            lines[-1] += part
        return "\n".join(lines)

    return re.sub(r"\S{8,}", broken, text)


def _widths(lengths: Sequence[float], least: Sequence[float], width: float) -> list[float]:
    """Widths in proportion to `lengths`, none below its least one as long as there is room; of sum `width`."""
    fixed: dict[int, float] = {}
    if sum(least) > width:
        return [length * width / sum(lengths) for length in lengths]
    while True:
        free = [k for k in range(len(lengths)) if k not in fixed]
        share = (width - sum(fixed.values())) / sum(lengths[k] for k in free)
        narrow = [k for k in free if lengths[k] * share < least[k]]
        if not narrow:
            return [fixed.get(k, lengths[k] * share) for k in range(len(lengths))]
        fixed |= {k: least[k] for k in narrow}
        if len(fixed) == len(lengths):
            return [least[k] * width / sum(least) for k in range(len(lengths))]


def _grid(columns: Sequence[str], rows: Sequence[Sequence[str]], width: float, with_head: bool = True) -> list[Any]:
    """A table that breaks over pages; the widths follow the lengths of the texts."""
    from reportlab.platypus import Spacer
    from reportlab.platypus import Table as Grid

    if not rows:
        return [_text("None.", "text")]
    lengths = []
    for place, column in enumerate(columns):
        longest = max(len(row[place]) for row in rows)
        words = max((len(word) for row in rows for word in row[place].split()), default=1)
        lengths.append(max(5.0, min(len(column), 12.0), min(0.8 * longest, 70.0), min(1.25 * words, 24.0)))
    widths = _widths(lengths, [_least(column, [row[k] for row in rows]) for k, column in enumerate(columns)], width)
    cells = [
        [
            _text(_broken(cell[:CELL], wide - 7.0) + ("…" if len(cell) > CELL else ""), "cell")
            for cell, wide in zip(row, widths, strict=True)
        ]
        for row in rows
    ]
    head = [[_text(column, "head") for column in columns]] if with_head else []
    grid = Grid([*head, *cells], colWidths=widths, repeatRows=len(head), splitInRow=1)
    style: list[Any] = [
        ("LINEBELOW", (0, 0), (-1, -1), 0.5, RULE),
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
        *_padding(top=2.5, bottom=3.0, left=3.0, right=3.0),
    ]
    grid.setStyle([*style, ("BACKGROUND", (0, 0), (-1, 0), PANEL)] if head else style)
    return [grid, Spacer(1.0, 7.0)]


@functools.cache
def _rules() -> list[tuple[frozenset[str], Mapping[str, str]]]:
    """Classes that a mark must have, with what they set, those of fewer classes first."""
    css = NESTED.sub("", style())
    values = dict(re.findall(r"(--[\w-]+):([^;}]+)", css))
    found = []
    for selectors, body in CSS_RULE.findall(re.sub(r"var\((.*?)\)", lambda name: values[name[1]], css)):
        settings = dict(re.findall(r"([\w-]+):([^;]+)", body))
        matches = filter(None, (SELECTOR.fullmatch(one.strip()) for one in selectors.split(",")))
        found += [(frozenset(match[1].strip(".").split(".")), settings) for match in matches]
    return sorted(found, key=lambda rule: len(rule[0]))


def _settings(mark: Mark) -> dict[str, str]:
    """Say what the page sets for a mark: colours, widths, sizes."""
    classes = set(str(mark.at.get("class", "")).split())
    found: dict[str, str] = {}
    for needed, settings in _rules():
        found |= settings if needed <= classes else {}
    return found | dict(re.findall(r"([\w-]+):([^;]+)", str(mark.at.get("style", ""))))


def _colour(text: str | None, opacity: str = "1") -> Any:
    """A colour on white paper: `#rgb`, `#rrggbb` or `#rrggbbaa`; None where nothing is painted."""
    from reportlab.lib import colors

    if text is None or text == "none":
        return None
    digits = text[1:] if len(text) > 4 else "".join(2 * digit for digit in text[1:])
    *parts, alpha = (int(digits.ljust(8, "f")[k : k + 2], 16) / 255.0 for k in (0, 2, 4, 6))
    share = alpha * float(opacity)
    return colors.Color(*(1.0 - share * (1.0 - part) for part in parts))


def convert(drawing: Drawing, width: float, known: Callable[[str], str]) -> Any:
    """The drawing scaled to a width in points (never enlarged); `known` makes a text that the font can show."""
    from reportlab.graphics import shapes

    factor = min(width / drawing.width, 1.0)
    group = shapes.Group(transform=(factor, 0.0, 0.0, -factor, 0.0, drawing.height * factor))
    for mark in drawing.body:
        group.add(_shape(mark, known))
    shown = shapes.Drawing(drawing.width * factor, drawing.height * factor)
    shown.add(group)
    return shown


def _shape(mark: Mark, known: Callable[[str], str]) -> Any:
    from reportlab.graphics import shapes

    at, settings = mark.at, _settings(mark)
    if mark.name == "text":
        return _words(mark, settings, known)
    if mark.name == "image":  # the group is mirrored: an image hangs from its upper edge
        from PIL import Image

        opened = Image.open(io.BytesIO(base64.b64decode(at["href"].partition(",")[2])))
        image = shapes.Image(at["x"], 0.0, at["width"], at["height"], opened)
        return shapes.Group(image, transform=(1.0, 0.0, 0.0, -1.0, 0.0, at["y"] + at["height"]))
    paint: dict[str, Any] = {
        "fillColor": _colour(settings.get("fill"), settings.get("fill-opacity", "1")),
        "strokeColor": _colour(settings.get("stroke"), settings.get("stroke-opacity", "1")),
        "strokeWidth": float(settings.get("stroke-width", "1")),
    }
    dashes = settings.get("stroke-dasharray", "none")
    if dashes != "none" and mark.name != "circle":
        paint["strokeDashArray"] = [float(dash) for dash in dashes.split()]
    if mark.name == "rect":
        return shapes.Rect(at["x"], at["y"], max(at["width"], 0.0), max(at["height"], 0.0), **paint)
    if mark.name == "circle":
        return shapes.Circle(at["cx"], at["cy"], at["r"], **paint)
    if mark.name == "line":
        del paint["fillColor"]
        return shapes.Line(at["x1"], at["y1"], at["x2"], at["y2"], **paint)
    line = shapes.Path(**paint)
    (x, y), *rest = at["d"].places
    line.moveTo(x, y)
    for x, y in rest:
        line.lineTo(x, y)
    if at["d"].is_closed:
        line.closePath()
    return line


def _words(mark: Mark, settings: Mapping[str, str], known: Callable[[str], str]) -> Any:
    """A text of a figure; its group is mirrored (SVG's y points down), so the text is mirrored back, or turned."""
    from reportlab.graphics import shapes

    size = float(settings.get("font-size", "11px").removesuffix("px"))
    anchor = mark.at.get("text_anchor", settings.get("text-anchor", "start"))
    font = BOLD if settings.get("font-weight", "400") >= "600" else NORMAL
    text = shapes.String(0.0, 0.0, known(mark.says), fontName=font, fontSize=size, textAnchor=anchor)
    text.fillColor = _colour(settings.get("fill", "#16191d"))
    upright = (0.0, -1.0, -1.0, 0.0) if mark.turned else (1.0, 0.0, 0.0, -1.0)
    return shapes.Group(text, transform=(*upright, mark.at["x"], mark.at["y"]))
