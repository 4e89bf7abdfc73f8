"""Drawings as reportlab shapes: their marks, in the styles that the page has for them on a light screen."""

from __future__ import annotations

import base64
import functools
import io
import re
from collections.abc import Callable, Mapping
from typing import Any

from dpaudit.reports.drawing import Drawing, Mark
from dpaudit.reports.html import style

FONT, BOLD = "DejaVuSans", "DejaVuSans-Bold"
NESTED = re.compile(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")  # rules for the dark, for phones and for paper
RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
SELECTOR = re.compile(r"(?:svg )?((?:\.[\w-]+)+)")  # of marks: by their classes alone


@functools.cache
def _rules() -> list[tuple[frozenset[str], Mapping[str, str]]]:
    """Classes that a mark must have, with what they set, those of fewer classes first."""
    css = NESTED.sub("", style())
    values = dict(re.findall(r"(--[\w-]+):([^;}]+)", css))
    found = []
    for selectors, body in RULE.findall(re.sub(r"var\((.*?)\)", lambda name: values[name[1]], css)):
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
        image = shapes.Image(at["x"], 0.0, at["width"], at["height"], _opened(at["href"]))
        return shapes.Group(image, transform=(1.0, 0.0, 0.0, -1.0, 0.0, at["y"] + at["height"]))
    paint: dict[str, Any] = {
        "fillColor": _colour(settings.get("fill"), settings.get("fill-opacity", "1")),
        "strokeColor": _colour(settings.get("stroke"), settings.get("stroke-opacity", "1")),
        "strokeWidth": float(settings.get("stroke-width", "1")),
    }
    dashes = settings.get("stroke-dasharray", "none")
    paint |= {} if dashes == "none" else {"strokeDashArray": [float(dash) for dash in dashes.split()]}
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


def _opened(uri: str) -> Any:
    from PIL import Image

    return Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2])))


def _words(mark: Mark, settings: Mapping[str, str], known: Callable[[str], str]) -> Any:
    """A text, upright in the mirrored group, or up the page."""
    from reportlab.graphics import shapes

    size = float(settings.get("font-size", "11px").removesuffix("px"))
    anchor = mark.at.get("text_anchor", settings.get("text-anchor", "start"))
    font = BOLD if settings.get("font-weight", "400") >= "600" else FONT
    text = shapes.String(0.0, 0.0, known(mark.says), fontName=font, fontSize=size, textAnchor=anchor)
    text.fillColor = _colour(settings.get("fill", "#16191d"))
    upright = (0.0, -1.0, -1.0, 0.0) if mark.turned else (1.0, 0.0, 0.0, -1.0)
    return shapes.Group(text, transform=(*upright, mark.at["x"], mark.at["y"]))
