"""The calls of both runs side by side, for a terminal of 80 columns and as a table of HTML."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Sequence

from dpaudit.symbolic.generators import Event
from dpaudit.symbolic.runs import Path

WIDTH = 80
MAX_ROWS = 200
COLUMN = 29


@dataclasses.dataclass(frozen=True)
class Row:
    """One call on each input, as text, the line of the first, and whether they differ."""

    x: str
    x_prime: str
    place: str
    differs: bool


def rows(first: Path, second: Path) -> tuple[Row, ...]:
    """The first calls of both runs, in their order; and how each run ended."""
    a, b = first.tape.events, second.tape.events
    found = []
    for k in range(min(max(len(a), len(b)), MAX_ROWS)):
        u, v = (events[k] if k < len(events) else None for events in (a, b))
        place = (u or v).place  # type: ignore[union-attr]
        found.append(Row(_said(u), _said(v), place, u is None or v is None or str(u) != str(v)))
    ends = [_ended(path) for path in (first, second)]
    found.append(Row(ends[0], ends[1], first.place or second.place, ends[0] != ends[1]))
    return tuple(found)


def _said(event: Event | None) -> str:
    return "-" if event is None else str(event)


def _ended(path: Path) -> str:
    if path.raised:
        return f"raises {path.raised}"
    if path.output is None:
        return path.problem[:60]
    numbers = ", ".join(f"{value:.6g}" for value in path.output.values()[:4])
    more = len(path.output.leaves) - 4
    return f"returns {numbers}" + (f" and {more} more" if more > 0 else "")


def as_text(listed: Sequence[Row], with_values: bool = False) -> str:
    """The rows in 80 columns; a star marks those that differ.

    Without values a call has no parameters and an end no numbers, as they may be those of the inputs: a row that
    differs in nothing else says "(other values)".

    Examples
    --------
    >>> rows = [Row("numpy laplace(scale=1)", "numpy laplace(scale=2)", "count.py:3", True)]
    >>> print(as_text(rows))
      x                             x_prime                       line
    * numpy laplace                 numpy laplace (other values)  count.py:3
    >>> print(as_text(rows, with_values=True))
      x                             x_prime                       line
    * numpy laplace(scale=1)        numpy laplace(scale=2)        count.py:3
    """
    lines = [_line(" ", "x", "x_prime", "line")]
    for row in listed:
        texts = _texts(row, with_values)
        lines.append(_line("*" if row.differs else " ", *texts, row.place))
    return "\n".join(lines)


def _line(mark: str, *columns: str) -> str:
    first, second, place = columns
    text = f"{mark} {_cut(first, COLUMN):<{COLUMN}} {_cut(second, COLUMN):<{COLUMN}} {place}"
    return _cut(text.rstrip(), WIDTH)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _texts(row: Row, with_values: bool) -> tuple[str, str]:
    """Both calls of a row."""
    if with_values:
        return row.x, row.x_prime
    first, second = _without_values(row.x), _without_values(row.x_prime)
    return first, f"{second} (other values)" if row.differs and first == second else second


def _without_values(text: str) -> str:
    """A call without its parameters, an end without its numbers: they may be values of the inputs."""
    return "returns" if text.startswith("returns ") else text.split("(")[0]


def as_html(listed: Sequence[Row], title: str, with_values: bool = False) -> str:
    """The rows as a page of HTML, without scripts; `with_values` as for `as_text`.

    Examples
    --------
    >>> "<td>&lt;none&gt;</td>" in as_html([Row("<none>", "-", "", True)], "a trace")
    True
    """

    def cells(row: Row) -> str:
        return "".join(f"<td>{html.escape(text)}</td>" for text in _texts(row, with_values))

    body = "\n".join(
        f"<tr{' class=differs' if row.differs else ''}>{cells(row)}<td>{html.escape(row.place)}</td></tr>"
        for row in listed
    )
    name = html.escape(title)
    return (
        "<!DOCTYPE html>\n<html lang=en><meta charset=utf-8>\n"
        f"<title>{name}</title>\n<style>body{{font-family:monospace}}td,th{{padding:.2em 1em;text-align:left}}"
        ".differs{font-weight:bold;background:#fde8e8}</style>\n"
        f"<h1>{name}</h1>\n<table>\n<tr><th>x</th><th>x_prime</th><th>line</th></tr>\n{body}\n</table>\n</html>\n"
    )
