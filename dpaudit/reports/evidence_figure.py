"""The first picture of an audit: outputs on x and on x', where the rule guesses, and how often it is right."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from dpaudit.reports import wording
from dpaudit.reports.drawing import Axis, Data, Drawing, Figure, area_swatch, caption, path, tag
from dpaudit.reports.wording import clean, name_text, number_text, plural
from dpaudit.reports.words import joined, said
from dpaudit.results.model import AuditResult, Finding, Sketch

GUESSES = 0.5  # mean guess of a bin from which on it is one where the rule guesses
PANEL, GAP = 118.0, 30.0  # heights of a panel and of what is between the two


def evidence_figure(result: AuditResult) -> Figure | None:
    """Earlier outputs of the worst pair along the view of its rule; None where the result holds none."""
    worst = result.worst
    if worst is None or worst.witness is None or worst.witness.sketch is None:
        return None
    sketch = worst.witness.sketch
    names = name_text(worst.x_id, 30), name_text(worst.x_prime_id, 30)
    view = clean(sketch.view, 80)
    draws = plural(sum(sketch.x) + sum(sketch.x_prime), "earlier draw")
    facts = {"view": f"{view[:1].upper()}{view[1:]}", "x": names[0], "x_prime": names[1], "draws": draws}
    description = said("figure.evidence", **facts, counts=wording.counts_sentence(worst))
    inputs = ("of-x", f"x = {names[0]}"), ("of-x-prime", f"x′ = {names[1]}")
    legend = [(area_swatch(cls), f"outputs on {name}") for cls, name in inputs]
    legend += [
        (area_swatch(cls), f"here the rule guesses {name}")
        for cls, name, sign in (("guess-x", names[0], 1), ("guess-x-prime", names[1], -1))
        if any(sign * one >= GUESSES for one in sketch.guesses)
    ]
    note = joined(said("figure.evidence_note"), wording.allowance_sentence(worst))
    rows = tuple(
        (f"{number_text(first, 4)} to {number_text(last, 4)}", f"{x:,}", f"{x_prime:,}", number_text(guess, 2))
        for (first, last), x, x_prime, guess in zip(
            itertools.pairwise(sketch.edges), sketch.x, sketch.x_prime, sketch.guesses, strict=True
        )
    )
    columns = (view, f"draws on {names[0]}", f"draws on {names[1]}", "mean guess, 1 for x, -1 for x′")
    draw = _drawing(worst, sketch, names, view, description)
    title = f"Outputs on {names[0]} and on {names[1]}, and where the rule guesses"
    return Figure("evidence", title, description, note, draw, tuple(legend), Data(columns, rows))


def right_text(finding: Finding) -> str:
    """Say how often the rule of a pair was right on fresh draws, in a few words."""
    witness = finding.witness
    guesses = witness.correct + witness.wrong if witness is not None else 0
    if witness is None or not guesses:
        return "the rule guesses nowhere"
    share = wording.percent_text(round(witness.correct / guesses, 3))
    return f"right in {witness.correct:,} of {guesses:,} guesses on fresh draws ({share})"


def _drawing(
    finding: Finding, sketch: Sketch, names: tuple[str, str], view: str, description: str
) -> Callable[[float], Drawing]:
    edges = sketch.edges
    shares = [[count / max(sum(counts), 1) for count in counts] for counts in (sketch.x, sketch.x_prime)]
    top = 1.08 * max(*shares[0], *shares[1], 1e-9)

    def drawn(page: float) -> Drawing:
        left, right, head = 12.0, page - 12.0, 26.0
        x = Axis(edges[0], edges[-1], left, right, False)
        bottoms = (head + PANEL, head + 2.0 * PANEL + GAP)
        last = bottoms[1]
        body = [tag("text", right_text(finding), x=left, y=16.0, cls="label")]
        for place, foot in enumerate(bottoms):
            y = Axis(0.0, top, foot, foot - PANEL, False)
            body.append(tag("rect", x=left, y=foot - PANEL, width=right - left, height=PANEL, cls="plot"))
            for (start, end), guess in zip(itertools.pairwise(edges), sketch.guesses, strict=True):
                if abs(guess) >= GUESSES:
                    cls = "guess-x" if guess > 0.0 else "guess-x-prime"
                    box = {"x": x(start), "y": foot - PANEL, "width": x(end) - x(start), "height": PANEL}
                    body.append(tag("rect", cls=cls, **box))
            for k, ((start, end), share) in enumerate(zip(itertools.pairwise(edges), shares[place], strict=True)):
                if share > 0.0:
                    count = (sketch.x, sketch.x_prime)[place][k]
                    told = (
                        f"{number_text(start, 3)} to {number_text(end, 3)}: {plural(count, 'draw')} on {names[place]}"
                    )
                    width = max(x(end) - x(start) - 1.0, 0.8)
                    box = {"x": x(start) + 0.5, "y": y(share), "width": width, "height": foot - y(share)}
                    body.append(tag("rect", title=told, cls=("of-x", "of-x-prime")[place], **box))
            body.append(path([(left, foot), (right, foot)], "edge"))
            name = f"{('x', 'x′')[place]} = {names[place]}"
            body.append(tag("text", name, x=left + 8.0, y=foot - PANEL + 17.0, cls="callout"))
        for at, label in x.ticks(9 if page > 500 else 5):
            body.append(tag("line", x1=at, x2=at, y1=last, y2=last + 4.0, cls="edge"))
            body.append(tag("text", label, x=at, y=last + 16.0, text_anchor="middle", cls="tick"))
        middle = (left + right) / 2.0
        body += caption(view, middle, last + 36.0, page)
        return Drawing(tuple(body), page, last + 47.0, description)

    return drawn
