"""Results at a prompt and in a notebook: as text, as page one with folded sections, as Markdown, and as pictures.

The cell is one element whose styles are nested in it, so that they touch nothing else of the notebook; it needs no
network and no script.
"""

from __future__ import annotations

import dataclasses
import io
import os
from pathlib import Path
from typing import Any

from markupsafe import Markup
from rich.console import Console

from dpaudit.arguments import did_you_mean
from dpaudit.conformance.result import CheckResult
from dpaudit.errors import UsageError
from dpaudit.reports import brief, scores, terminal
from dpaudit.reports.cases import utility_sentence
from dpaudit.reports.check import check_blocks
from dpaudit.reports.compliance import document_of
from dpaudit.reports.document import Paragraph
from dpaudit.reports.drawing import WIDE, Drawing, Figure, tag
from dpaudit.reports.html import environment, style
from dpaudit.reports.markdown import render as render_markdown
from dpaudit.reports.plan import plan_blocks
from dpaudit.results.model import AuditResult
from dpaudit.results.plan_result import Plan
from dpaudit.results.saving import write_whole
from dpaudit.scores.result import ScoresResult

FINDINGS = 20  # of a test of error bounds, that are printed
PREFERRED = ("by-mass", "evidence", "trade-off", "profile", "promises", "errors")  # the first that a result has


@dataclasses.dataclass(frozen=True)
class Picture:
    """A figure that a notebook shows."""

    figure: Figure

    @property
    def title(self) -> str:
        """The subject of the figure."""
        return self.figure.title

    def _repr_html_(self) -> str:
        return _cell("figure.html.j2", figure=self.figure)

    @property
    def svg(self) -> str:
        """The drawing and its legend, in the colours of a light or a dark screen."""
        drawn = self.figure.draw(WIDE)
        room = tuple(18.0 * place for place in range(len(self.figure.legend)))
        legend = [
            Markup('<g transform="translate(48 {})">{}</g>').format(drawn.height + 8.0 + at, shown)
            + tag("text", text, x=78.0, y=drawn.height + 19.0 + at, cls="label")
            for at, (shown, text) in zip(room, self.figure.legend, strict=True)
        ]
        ground = tag("rect", width="100%", height="100%", style="fill:var(--page)")
        height = drawn.height + 18.0 * (len(room) + 1)
        whole = Drawing((ground, *drawn.body, *legend), drawn.width, height, self.title)
        return whole.file(f"{style()}svg{{font-family:sans-serif}}")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the picture as SVG; `UsageError` for another suffix, and as `write_whole` raises."""
        target = Path(path)
        if target.suffix != ".svg":
            raise UsageError(f"path must end in .svg, got {os.fspath(path)!r}.")
        write_whole(target, self.svg)
        return target


def html(result: Any) -> str:
    """The cell of a result."""
    return _cell("cell.html.j2", document=document_of(result))


def text(result: Any) -> str:
    """The text that a command prints of a result (an audit in short, error bounds by page one): 80 columns."""
    if isinstance(result, AuditResult):
        blocks = brief.short(result)
    elif isinstance(result, Plan):
        blocks = plan_blocks(result)
    elif isinstance(result, CheckResult):
        blocks = check_blocks(result)
    elif isinstance(result, ScoresResult):
        blocks = scores.brief(result)
    else:
        page = document_of(result)
        blocks = [Paragraph(f"{page.headline}."), *page.first[:1]]
        for one in result.findings[:FINDINGS]:
            blocks.append(Paragraph(f"{one.bound} on {one.input_id}: {utility_sentence(result, one)}"))
    console = Console(file=io.StringIO(), width=80, markup=False, highlight=False, emoji=False)
    with console.capture() as shown:
        console.print(terminal.show(blocks), crop=False)
    return shown.get().rstrip()


def markdown(result: Any) -> str:
    """The same as Markdown, without the chapters."""
    return render_markdown(dataclasses.replace(document_of(result), sections=()))


def plot(result: Any, name: str | None = None) -> Picture:
    """A picture of a result by its name, or the first of `PREFERRED` that there is."""
    page = document_of(result)
    blocks = (*page.first, *(block for section in page.sections for block in section.blocks))
    figures = (block for block in blocks if isinstance(block, Figure))
    found = {figure.id.split("-", 1)[-1] if figure.id[:1] == "s" else figure.id: figure for figure in figures}
    chosen = next((one for one in (*PREFERRED, *found) if one in found), None) if name is None else name
    if chosen is None:
        raise UsageError("result must have a picture: it has none, since nothing was measured as a number.")
    if chosen not in found:
        raise UsageError(f"name must be one of {', '.join(found) or 'none'}, got {name!r}.{did_you_mean(name, found)}")
    return Picture(found[chosen])


def _cell(template: str, **shown: Any) -> str:
    """One element; what the page sets for itself is set for that element."""
    nested = str(style()).replace(":root{", "&{").replace("\nbody{", "\n&{")
    return environment().get_template(template).render(**shown, linked=str, style=Markup(nested))
