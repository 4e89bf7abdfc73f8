"""Drawing figures as SVG: elements, axes, frames with ticks and labels, plots of curves.

Conventions: one unit is one CSS pixel, y grows downwards; colours and fonts are classes that the page defines. Text is
escaped.
"""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
from markupsafe import Markup, escape

from dpaudit.reports.wording import clean, number_text

WIDE, NARROW = 900.0, 358.0  # widths of a drawing on a page, and of one that a phone shows whole
HEIGHTS = 380.0, 310.0  # of a plot at these widths
MARGINS = 62.0, 13.0, 10.0, 46.0  # of a plot: left, right, above and below
LETTER = 6.5  # the width of a character of a name, on average
N_ROWS = 13  # points of the curves that their table shows
DOT = 3.5  # the radius of a dot
TICK = 6.6  # the width of a character of a tick label, at most


def tag(name: str, says: str = "", /, *, title: str = "", turned: bool = False, **at: Any) -> Markup:
    """One element with its attributes: `cls` stands for class, an underscore for a hyphen; `turned` reads upwards.

    `title` is what a pointer shows; of another element `says` is the text.
    """
    if turned:
        at["transform"] = f"rotate(-90 {at['x']:.1f} {at['y']:.1f})"
    shown = {key: f"{one:.1f}".removesuffix(".0") if isinstance(one, float) else one for key, one in at.items()}
    names = ("class" if key == "cls" else key.replace("_", "-") for key in shown)
    parts = [Markup(' {}="{}"').format(key, value) for key, value in zip(names, shown.values(), strict=True)]
    inner = Markup("<title>{}</title>").format(title) if title else escape(says)
    end = Markup(">{}</{}>").format(inner, name) if inner else Markup("/>")
    return Markup("<{}{}{}").format(name, Markup("").join(parts), end)


def path(places: Iterable[tuple[float, float]], cls: str, title: str = "") -> Markup:
    """A broken line through these places."""
    return tag("path", d="M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places), cls=cls, title=title)


@dataclasses.dataclass(frozen=True)
class Drawing:
    """Elements of SVG on a canvas; without a description it stands beside a text that says the same."""

    body: tuple[Markup, ...]
    width: float
    height: float
    description: str = ""

    def __html__(self) -> str:
        cls = "fit" if self.width <= NARROW else ""  # a wider one would be too small to read: it scrolls
        cls = cls if self.description else "swatch"
        role = Markup('role="img" aria-label="{}"').format(self.description)
        size = (round(self.width), round(self.height))
        head = Markup('<svg{} viewBox="0 0 {} {}" width="{}" height="{}" {}>')
        named = Markup(' class="{}"').format(cls) if cls else ""
        opened = head.format(named, *size, *size, role if self.description else Markup('aria-hidden="true"'))
        return Markup("").join([opened, *self.body, Markup("</svg>")])

    def file(self, style: str) -> str:
        """The drawing as a file of its own, with its styles."""
        styles = Markup("<style>{}</style>").format(Markup(style))
        whole = str(dataclasses.replace(self, body=(styles, *self.body)).__html__())
        return whole.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)


def swatch(*body: Markup) -> Drawing:
    """A sample of what a legend explains."""
    return Drawing(body, 22.0, 14.0)


@dataclasses.dataclass(frozen=True)
class Scale:
    """Range that an axis of a plot shows, from `low` to `high`; values beyond are drawn at its ends.

    In the place of numbers `names` stand at 1, 2 and so on.
    """

    label: str
    low: float
    high: float
    is_log: bool = False
    names: tuple[str, ...] = ()

    @classmethod
    def log(cls, label: str, values: Iterable[float]) -> Scale:
        """A logarithmic scale that shows these numbers, at least a factor of four."""
        finite = [value for value in values if 1e-300 < value < 1e300] or [1.0]  # beyond, a margin is no double
        room = max(1.3, math.sqrt(4.0 * min(finite) / max(finite)))
        return cls(label, min(finite) / room, max(finite) * room, True)


@dataclasses.dataclass(frozen=True)
class Axis:
    """A scale from its `low` at the coordinate `start` to its `high` at `end`."""

    scale: Scale
    start: float
    end: float

    def __call__(self, value: float) -> float:
        scale = self.scale
        value = scale.low if math.isnan(value) else min(max(value, scale.low), scale.high)
        if scale.is_log:
            share = math.log(value / scale.low) / math.log(scale.high / scale.low)
        else:
            share = (value - scale.low) / (scale.high - scale.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Coordinates and labels of at most about `most` round values."""
        scale = self.scale
        if scale.names:
            every = math.ceil(len(scale.names) / most)
            return [(self(place), name) for place, name in enumerate(scale.names, 1) if (place - 1) % every == 0]
        if scale.is_log:
            values = _log_ticks(scale.low, scale.high, most)
        else:
            values = _linear_ticks(scale.low, scale.high, most)
        return [(self(value), number_text(float(value), 3)) for value in values]


def _linear_ticks(low: float, high: float, most: int) -> list[float]:
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1.0, 2.0, 5.0, 10.0) if power * factor >= raw)
    return [step * index for index in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float, most: int) -> list[float]:
    first, last = math.floor(math.log10(low)), min(math.ceil(math.log10(high)), 308)  # 10^309 is no double
    for multiples in ((1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 5), (1, 3), (1,)):
        values = [m * 10.0**k for k in range(first, last + 1) for m in multiples if low <= m * 10.0**k <= high]
        if len(values) <= most:
            return values
    return values[:: math.ceil(len(values) / most)]


def frame(x: Axis, y: Axis, width: float) -> tuple[Markup, list[Markup], list[Markup]]:
    """The ground of a plot, then its grid with ticks and labels, and names of rows; y runs upwards from its start."""
    left, right, bottom, top = x.start, x.end, y.start, y.end
    ground = tag("rect", x=left, y=top, width=right - left, height=bottom - top, cls="plot")
    body: list[Markup] = []
    names: list[Markup] = []
    is_wide = width > 500
    for at, label in x.ticks(9 if is_wide else 5):
        body.append(tag("line", x1=at, x2=at, y1=top, y2=bottom, cls="grid"))
        place, anchor = (at, "middle") if at + TICK * len(label) / 2 < width else (width - 1.0, "end")
        body.append(tag("text", label, x=place, y=bottom + 16.0, text_anchor=anchor, cls="tick"))
    for at, label in (tick for tick in y.ticks(max(7, len(y.scale.names))) if tick[1]):
        if y.scale.names and not is_wide:  # a name stands above its row
            names.append(tag("text", clean(label, int((right - left) / LETTER)), x=left + 4.0, y=at - 14.0, cls="name"))
        elif y.scale.names:
            name = clean(label, int((left - 10.0) / LETTER))
            body.append(tag("text", name, x=left - 8.0, y=at + 4.0, text_anchor="end", cls="name"))
        else:
            body.append(tag("line", x1=left, x2=right, y1=at, y2=at, cls="grid"))
            body.append(tag("text", label, x=left - 6.0, y=at + 4.0, text_anchor="end", cls="tick"))
    body += caption(x.scale.label, (left + right) / 2, bottom + 36.0, width)
    if y.scale.label:
        at = (top + bottom) / 2
        body.append(tag("text", y.scale.label, turned=True, x=13.0, y=at, text_anchor="middle", cls="label"))
    return ground, body, names


def caption(text: str, x: float, y: float, width: float) -> list[Markup]:
    """A text below a drawing of this width, centred at x: in two lines where it would be cut."""
    most = int(2.0 * min(x, width - x) / LETTER)
    lines = textwrap.wrap(text, most, max_lines=2, placeholder="…")
    return [
        tag("text", line, x=x, y=y + 13.0 * (k - (len(lines) - 1) / 2.0), text_anchor="middle", cls="label")
        for k, line in enumerate(lines)
    ]


@dataclasses.dataclass(frozen=True)
class Table:
    """A table, whose cells may have several lines.

    It has all rows, of which a format shows as many as it has room for, and counts the others with those that were left
    out before (`omitted`). `marks` are verdicts or statuses that colour each row.
    `is_closed`: shown on demand where the format can do that. `kind` "verdicts" is the table of page one.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    omitted: int = 0
    marks: Sequence[str] = ()
    is_closed: bool = False
    kind: Literal["table", "verdicts"] = "table"

    def first(self, most: int) -> Table:
        """The table with so many rows, which counts the others."""
        rest = max(0, len(self.rows) - most)
        return dataclasses.replace(self, rows=self.rows[:most], omitted=self.omitted + rest, marks=self.marks[:most])


@dataclasses.dataclass(frozen=True)
class Figure:
    """One figure with everything that a page needs to show it.

    `draw` gives the drawing of a width, `legend` holds (swatch, text), `data` is what is drawn as a table; `scale` is a
    colour scale drawn above the legend, if any; `is_image` says that it holds pixels.
    """

    id: str
    title: str
    description: str
    note: str
    draw: Callable[[float], Drawing]
    legend: tuple[tuple[Drawing, str], ...]
    data: Table
    scale: Drawing | None = None
    is_image: bool = False

    @property
    def wide(self) -> Markup:
        """The drawing for a page."""
        return Markup(self.draw(WIDE))

    @property
    def narrow(self) -> Markup:
        """The drawing for a phone; one of class "fit" is no wider than that."""
        return Markup(self.draw(NARROW))


@dataclasses.dataclass(frozen=True)
class Series:
    """Something that a plot shows: a line, dots with a line, the rectangle between two corners, and so on.

    `cls` is the class of its style, `label` its text in the legend, `title` what a pointer shows, and `text` writes a
    height in a table.
    """

    cls: str
    points: Sequence[tuple[float, float]]
    label: str = ""
    kind: Literal["line", "dots", "box"] = "line"
    title: str = ""
    text: Callable[[float], str] = number_text


@dataclasses.dataclass(frozen=True)
class Plot:
    """Series over two axes, the later ones on top; `further` gives marks that need the axes.

    Heights and margins are those of a wide drawing and of a narrow one.
    """

    x: Scale
    y: Scale
    series: tuple[Series, ...]
    heights: tuple[float, float] = HEIGHTS
    further: Callable[[Axis, Axis], Sequence[Markup]] = lambda x, y: ()
    margins: tuple[tuple[float, float, float, float], tuple[float, float, float, float]] = (MARGINS, MARGINS)

    def __call__(self, width: float, description: str) -> Drawing:
        """The drawing of a width."""
        place = 0 if width > 500 else 1
        height, (left, right, above, below) = self.heights[place], self.margins[place]
        x, y = Axis(self.x, left, width - right), Axis(self.y, height - below, above)
        ground, body, names = frame(x, y, width)
        shown = [mark for one in self.series for mark in self._marks(one, x, y)]
        marks = (ground, *body, *shown, *names, *self.further(x, y))  # nothing hides names above their rows
        return Drawing(marks, width, height, description)

    def _marks(self, one: Series, x: Axis, y: Axis) -> Iterator[Markup]:
        places = [(x(a), y(b)) for a, b in one.points if not math.isnan(b)]
        if one.kind == "box":
            (x0, y0), (x1, y1) = places
            sizes: dict[str, Any] = {"width": max(2.0, abs(x1 - x0)), "height": abs(y1 - y0)}
            yield tag("rect", title=one.title, x=min(x0, x1), y=min(y0, y1), **sizes, cls=one.cls)
        else:
            if len(places) > 1:
                yield path(places, one.cls, one.title)
            if one.kind == "dots":
                yield from (tag("circle", title=one.title, cx=a, cy=b, r=DOT, cls=one.cls) for a, b in places)

    @property
    def legend(self) -> tuple[tuple[Drawing, str], ...]:
        """A swatch for each text that a series has."""
        found = {one.label: one for one in reversed(self.series) if one.label}
        return tuple((_sample(one), label) for label, one in reversed(found.items()))

    @property
    def curves(self) -> Table:
        """The heights of the curves at some places, as a table."""
        drawn = [one for one in self.series if one.label and len(one.points) > 2]
        places = np.linspace(self.x.low, self.x.high, N_ROWS).tolist()
        corners = [np.array(one.points).T for one in drawn]
        heights = [np.interp(places, a, b, left=math.nan, right=math.nan).tolist() for a, b in corners]
        cells = [map(one.text, found) for one, found in zip(drawn, heights, strict=True)]
        rows = zip((number_text(place, 3) for place in places), *cells, strict=True)
        return Table("", (self.x.label, *(one.label for one in drawn)), tuple(rows))

    def figure(self, id: str, title: str, description: str, note: str, data: Table | None = None) -> Figure:
        """The figure of this plot, by default with its curves as data."""
        data = data if data is not None else self.curves
        return Figure(id, title, description, note, lambda width: self(width, description), self.legend, data)


def _sample(one: Series) -> Drawing:
    if one.kind == "box":
        return swatch(tag("rect", x=1.0, y=1.0, width=20.0, height=12.0, cls=one.cls))
    if one.kind == "dots" and len(one.points) == 1:
        return swatch(tag("circle", cx=11.0, cy=7.0, r=4.0, cls=one.cls))
    return swatch(path([(1.0, 7.0), (21.0, 7.0)], one.cls))
