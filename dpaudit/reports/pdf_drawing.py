"""Our own SVG drawings as reportlab shapes: the elements and classes that `drawing` and the figures write, and no more.

It is no reader of SVG: an element or a path command that the figures never write is an error.
"""

from __future__ import annotations

import base64
import io
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any

from dpaudit.reports import figures

FONT, BOLD = "DejaVuSans", "DejaVuSans-Bold"
INK, SOFT, RULE, OTHER = "#16191d", "#59616b", "#d8dce1", "#8b949e"
W = ("#a81220", "#c65d00", "#7a3fa0", "#1f6f5c", "#1f5a96")
VERDICTS = {"violated": "#a81220", "error": "#63348a", "inconclusive": "#7a5200", "not_refuted": "#1f5a96"}
# fill, stroke, width, dash of each class, on a light page, as in templates/style.css.j2
Style = tuple[str | None, str | None, float, list[float] | None]
CLASSES: dict[str, Style] = {
    "plot": ("#fafbfc", None, 0.0, None),
    "grid": (None, RULE, 1.0, None),
    "edge": (None, SOFT, 1.0, None),
    "limit": (None, INK, 1.6, [6.0, 4.0]),
    "over": ("#f9ebec", None, 0.0, None),
    "band": ("#eceded", None, 0.0, None),
    "outline": (None, INK, 1.8, None),
    "unsure": (INK, None, 0.0, None),
    "cell-same": (RULE, None, 0.0, None),
    "cell-empty": ("#ffffff", RULE, 1.0, None),
    "cell-asked": ("#f5f6f8", None, 0.0, None),
    "cell-none": ("#e3e6ea", None, 0.0, None),
    "cell-error": ("#f4ecfa", None, 0.0, None),
    "slash": (None, OTHER, 1.0, None),
    "blind": (None, SOFT, 1.0, [1.5, 3.0]),
    "claimed": (None, INK, 2.0, [6.0, 4.0]),
    "estimated": (None, OTHER, 1.6, None),
    "confident": (None, W[0], 2.2, None),
    "bound": (None, W[4], 2.0, None),
    "bound-end": (W[4], None, 0.0, None),
    "estimate-end": (OTHER, None, 0.0, None),
    "place": (INK, None, 0.0, None),
    "of-x": (W[4], None, 0.0, None),
    "of-x-prime": (W[1], None, 0.0, None),
    "guess-x": ("#dfe9f3", None, 0.0, None),
    "guess-x-prime": ("#fae9db", None, 0.0, None),
    "more": (None, VERDICTS["violated"], 2.0, None),
    "blind-band": ("#d9dde2", None, 0.0, None),
    **{f"proven {verdict}": (colour, None, 0.0, None) for verdict, colour in VERDICTS.items()},
    "curve other": (None, OTHER, 0.9, None),
    "curve other many": (None, "#c3c8cd", 0.9, None),
    **{f"curve w{index}": (None, colour, 2.0, None) for index, colour in enumerate(W)},
    **{f"end w{index}": ("#ffffff", colour, 2.0, None) for index, colour in enumerate(W)},
    **{f"interval {verdict}": (None, colour, 2.0, None) for verdict, colour in VERDICTS.items()},
    "mark violated": (VERDICTS["violated"], "#ffffff", 0.6, None),
    "mark not_refuted": ("#bccde0", VERDICTS["not_refuted"], 1.4, None),
    "mark inconclusive": ("#d7cbb3", VERDICTS["inconclusive"], 1.4, None),
    "mark error": (None, VERDICTS["error"], 1.4, None),
    **{
        name: (fill, None, 0.0, None) for name, fill in re.findall(r"\.(k\d+){fill:(#\w+)}", figures.palette_css(False))
    },
}
SIZES = {"tick": 11.0, "name": 11.0, "callout": 11.0, "label": 12.0, "sign": 12.0}
SVG = "{http://www.w3.org/2000/svg}"


def convert(source: str, width: float, known: Callable[[str], str]) -> Any:
    """The drawing scaled to a width in points (never enlarged); `known` makes a text that the font can show."""
    from reportlab.graphics.shapes import Drawing, Group

    root = ElementTree.fromstring(source)
    _, _, across, down = (float(number) for number in root.attrib["viewBox"].split())
    factor = min(width / across, 1.0)
    group = Group(transform=(factor, 0.0, 0.0, -factor, 0.0, down * factor))
    for element in root:
        for shape in _shapes(element, known):
            group.add(shape)
    drawing = Drawing(across * factor, down * factor)
    drawing.add(group)
    return drawing


def _shapes(element: ElementTree.Element, known: Callable[[str], str]) -> list[Any]:
    from reportlab.graphics import shapes

    name, place = element.tag.removeprefix(SVG), element.attrib

    def at(key: str) -> float:
        return float(place.get(key, "0"))

    if name == "text":
        return [_words(element, known)]
    if name == "image":  # the group is mirrored: an image hangs from its upper edge
        data = base64.b64decode(place["href"].partition(",")[2])
        image = shapes.Image(at("x"), 0.0, at("width"), at("height"), _opened(data))
        return [shapes.Group(image, transform=(1.0, 0.0, 0.0, -1.0, 0.0, at("y") + at("height")))]
    fill, stroke, thick, dash = CLASSES[place["class"]]
    paint: dict[str, Any] = {"fillColor": _colour(fill), "strokeColor": _colour(stroke), "strokeWidth": thick}
    if dash:
        paint["strokeDashArray"] = dash
    if name == "rect":
        return [shapes.Rect(at("x"), at("y"), max(at("width"), 0.0), max(at("height"), 0.0), **paint)]
    if name == "circle":
        return [shapes.Circle(at("cx"), at("cy"), at("r"), **paint)]
    if name == "line":
        del paint["fillColor"]
        return [shapes.Line(at("x1"), at("y1"), at("x2"), at("y2"), **paint)]
    if name == "path":
        return [_path(place["d"], paint)]
    raise ValueError(f"an element of a figure must be rect, circle, line, path or text, got {name!r}.")


def _opened(data: bytes) -> Any:
    from PIL import Image

    return Image.open(io.BytesIO(data))


def _path(data: str, paint: dict[str, Any]) -> Any:
    from reportlab.graphics import shapes

    path = shapes.Path(**paint)
    x = y = 0.0
    for command, text in re.findall(r"([MLlmhvz])([^MLlmhvz]*)", data):
        numbers = [float(number) for number in re.findall(r"-?[\d.]+(?:e-?\d+)?", text)]
        if command == "z":
            path.closePath()
            continue
        if command in "hv":
            x, y = (x + numbers[0], y) if command == "h" else (x, y + numbers[0])
        else:
            x, y = numbers if command.isupper() else (x + numbers[0], y + numbers[1])
        (path.moveTo if command in "Mm" else path.lineTo)(x, y)
    return path


def _words(element: ElementTree.Element, known: Callable[[str], str]) -> Any:
    """A text, upright in the mirrored group, with the rotations that figures use."""
    from reportlab.graphics import shapes

    place, cls = element.attrib, element.attrib.get("class", "tick")
    size = SIZES.get(cls, 11.0)
    style = re.search(r"font-size:([\d.]+)px", place.get("style", ""))
    if style is not None:
        size = float(style[1])
    x, y = float(place.get("x", "0")), float(place.get("y", "0"))
    anchor = place.get("text-anchor", "middle" if cls == "sign" else "start")
    font = BOLD if cls == "callout" else FONT
    colour = _colour(SOFT if cls == "tick" else INK)
    turned = place.get("transform", "")
    shift = re.search(r"translate\((-?[\d.]+) (-?[\d.]+)\)", turned)
    turn = re.search(r"rotate\((-?[\d.]+)(?: (-?[\d.]+) (-?[\d.]+))?\)", turned)
    text = shapes.String(0.0, 0.0, known(element.text or ""), fontName=font, fontSize=size, textAnchor=anchor)
    text.fillColor = colour
    if shift is not None:
        x, y = x + float(shift[1]), y + float(shift[2])
    group = shapes.Group(text)
    if turn is not None:
        if (
            turn[2] is not None
        ):  # all rotations about a point are by -90 degrees: (x, y) goes to (cx + y - cy, cy + cx - x)
            cx, cy = float(turn[2]), float(turn[3])
            x, y = cx + (y - cy), cy - (x - cx)
        group.transform = (0.0, -1.0, -1.0, 0.0, x, y)  # up the page
    else:
        group.transform = (1.0, 0.0, 0.0, -1.0, x, y)
    return group


def _colour(name: str | None) -> Any:
    from reportlab.lib import colors

    return None if name is None else colors.HexColor(name)
